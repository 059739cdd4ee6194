# SPDX-License-Identifier: MIT
"""What a benchmark leaves: tables in Markdown, plots, figures for the table of aims, and where all that came from."""

import datetime
import glob
import json
import os
import platform
import re
import shlex
import shutil
import statistics
import subprocess
import sys

median = statistics.median


def percentile(values, percent):
    values = sorted(values)
    return values[min(int(len(values) * percent / 100), len(values) - 1)]


def spread(values, form="{:.2f}"):
    """The median, and from the 5th to the 95th percentile."""
    low, high = percentile(values, 5), percentile(values, 95)
    return f"{form.format(median(values))} ({form.format(low)}-{form.format(high)})"


def table(head, rows):
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in [head, *rows]]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines) + "\n"


def version(argv):
    """What a program says of its version, in one line; None if there is no such program."""
    if shutil.which(argv[0]) is None:
        return None
    result = subprocess.run(argv, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)
    found = re.search(rb"v?=?(\d+\.\d+[\w.~+-]*)", result.stdout)
    return found[1].decode() if found else None


def machine():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        found = re.search(r"^model name\s*: (.*)$", f.read(), re.M)
    with open("/proc/meminfo", encoding="ascii") as f:
        memory = int(f.readline().split()[1]) / 1048576
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        name = platform.system()
    return (f"{os.cpu_count()} x {found[1] if found else platform.machine()}, {memory:.0f} GiB, {name}, "
            f"Linux {platform.release()}")


class Origin:
    """Machine, versions, date and command, as every result begins with."""

    def __init__(self, dlock, redis, versions):
        said = {"dlock": version([dlock, "--version"]), "Redis": version([redis, "--version"]),
                "flock": version(["flock", "--version"]), **versions}
        self.machine, self.command = machine(), "bench/run " + shlex.join(sys.argv[1:])
        self.versions = ", ".join(f"{name} {number}" for name, number in said.items() if number)
        self.begun, self.load = datetime.datetime.now(datetime.timezone.utc), os.getloadavg()[0]

    def text(self):
        busy = "" if self.load < 0.5 else (
            "**The machine had other work**: wall times and their ratios tell little; CPU, memory, system calls, "
            "requests and order hold.\n")
        return (f"`{self.command.strip()}` on {self.begun:%Y-%m-%d %H:%M} UTC; load at its begin {self.load:.1f}.\n"
                f"{busy}"
                f"Machine: {self.machine}; clients and servers share it, over the loopback interface.\n"
                f"Versions: {self.versions}.\n")


def figures(folder):
    """What all scenarios have left in a folder."""
    found = {}
    for path in glob.glob(os.path.join(folder, "*.json")):
        with open(path, encoding="utf-8") as f:
            found.update(json.load(f))
    return found


class Report:
    """One scenario's: NAME.md, NAME.json and results/NAME*.svg in the folder."""

    def __init__(self, folder, name, title):
        self.folder, self.name = folder, name
        self.parts, self.figures = [f"## {title}\n"], {}
        os.makedirs(os.path.join(folder, "results"), exist_ok=True)

    def text(self, text):
        self.parts.append(" ".join(text.split()) + "\n")

    def table(self, head, rows):
        self.parts.append(table(head, rows))

    def plot(self, name, svg, what):
        with open(os.path.join(self.folder, "results", f"{name}.svg"), "w", encoding="utf-8") as f:
            f.write(svg)
        self.parts.append(f"![{what}](results/{name}.svg)\n")

    def figure(self, name, value):
        """A number that the summary or the table of aims asks for."""
        self.figures[name] = value

    def body(self):
        return "\n".join(self.parts)

    def write(self, origin):
        with open(os.path.join(self.folder, f"{self.name}.md"), "w", encoding="utf-8") as f:
            f.write(f"{self.body()}\n{origin.text()}")
        with open(os.path.join(self.folder, f"{self.name}.json"), "w", encoding="utf-8") as f:
            json.dump(self.figures, f, indent=1)
