#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Read metrics in the text format of Prometheus, as strictly as its textfile collector does.

    prometheus.py <FILE

Prints a line for each sample, "NAME LABEL=VALUE... NUMBER", values quoted as Python strings; exits 1
with a sentence where the text is not what the format says.
"""

import re
import sys

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\[\\"n])*)"'
NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+-]Inf|NaN"
SAMPLE = re.compile(f"({NAME})(?:{{((?:{LABEL}(?:,|(?=}})))*)}})? ({NUMBER})")
KINDS = ("counter", "gauge", "histogram", "summary", "untyped")


class Bad(Exception):
    pass


def read_sample(text):
    match = SAMPLE.fullmatch(text)
    if not match:
        raise Bad(f"not a sample: {text!r}")
    labels = [(label, re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], value))
              for label, value in re.findall(LABEL, match[2] or "")]
    if len(dict(labels)) < len(labels):
        raise Bad(f"a label twice: {text!r}")
    return match[1], dict(labels), match[5]


class Metrics:
    def __init__(self):
        self.helped, self.kind, self.done = set(), {}, set()
        self.series = set()
        self.current = None

    def begin(self, name):
        """All lines of a metric stand together."""
        if name == self.current:
            return
        if name in self.done:
            raise Bad(f"{name}: its lines don't stand together")
        self.done.add(name)
        self.current = name

    def comment(self, line):
        words = line.split(" ", 3)
        if len(words) < 4 or words[0] != "#" or words[1] not in ("HELP", "TYPE"):
            raise Bad(f"neither HELP nor TYPE: {line!r}")
        self.begin(words[2])
        if words[1] == "HELP":
            if words[2] in self.helped:
                raise Bad(f"HELP twice: {line!r}")
            self.helped.add(words[2])
        elif words[2] in self.kind or words[3] not in KINDS:
            raise Bad(f"TYPE: {line!r}")
        else:
            self.kind[words[2]] = words[3]

    def sample(self, line):
        name, labels, number = read_sample(line)
        self.begin(name)
        if name not in self.kind or name not in self.helped:
            raise Bad(f"{name} has no HELP or no TYPE before it")
        series = (name, tuple(sorted(labels.items())))
        if series in self.series:
            raise Bad(f"the same series twice: {line!r}")
        self.series.add(series)
        print(name, *(f"{label}={value!r}" for label, value in labels.items()), number)


def main():
    text = sys.stdin.buffer.read().decode("utf-8")
    if not text.endswith("\n"):
        raise Bad("the last line has no end")
    metrics = Metrics()
    for line in text[:-1].split("\n"):
        if line.startswith("#"):
            metrics.comment(line)
        else:
            metrics.sample(line)


try:
    main()
except (Bad, UnicodeDecodeError) as error:
    sys.exit(f"{error}")
