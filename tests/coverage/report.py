#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What gcov counted, as a table, and whether it is enough.

    report.py GCOV SOURCE LIST

Reads the counters below src in this folder, those of the files of SOURCE/src.  LIST is a text with a
table of functions, `| src/FILE | function, function | reason |`, that may never be entered.
Fails where less than 90 % of the lines were run, where another function was never entered, or where
LIST names a function that there is not.
"""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys

ENOUGH = 90.0


class File:
    def __init__(self):
        self.lines = collections.Counter()
        self.function_of = {}
        self.entered = collections.Counter()
        self.branches = collections.defaultdict(list)

    def add(self, found):
        for function in found["functions"]:
            self.entered[function["name"]] += function["execution_count"]
        for line in found["lines"]:
            number = line["line_number"]
            self.lines[number] += line["count"]
            self.function_of.setdefault(number, line.get("function_name", ""))
            counts = [branch["count"] for branch in line["branches"]]
            known = self.branches[number]
            if len(known) == len(counts):
                counts = [a + b for a, b in zip(known, counts)]
            self.branches[number] = counts or known

    def missed(self):
        return [number for number, count in sorted(self.lines.items()) if count == 0]

    def line_figures(self):
        return len(self.lines) - len(self.missed()), len(self.lines)

    def branch_figures(self):
        all_counts = [count for counts in self.branches.values() for count in counts]
        return sum(count > 0 for count in all_counts), len(all_counts)


def read(gcov, source):
    """The files of the source by name, as gcov knows them of each object."""
    notes = sorted(str(path) for path in pathlib.Path("src").rglob("*.gcno"))
    out = subprocess.run([gcov, "--json-format", "--stdout", "--branch-probabilities", *notes],
                         check=True, stdout=subprocess.PIPE, text=True).stdout
    files = collections.defaultdict(File)
    for document in map(json.loads, filter(None, out.splitlines())):
        for found in document["files"]:
            name = os.path.relpath(os.path.join(document.get("current_working_directory", "."), found["file"]), source)
            if name.startswith("src/"):
                files[name].add(found)
    return files


def excused(path):
    rows = re.findall(r"^\| (src/\S+) \| ([\w, ]+) \|", pathlib.Path(path).read_text(), re.M)
    return {(name, function) for name, functions in rows for function in functions.split(", ")}


def share(figures):
    return 100.0 * figures[0] / figures[1] if figures[1] else 100.0


def total(figures):
    return tuple(map(sum, zip(*figures)))


def show_table(files):
    row = "{:<28} {:>6} {:>6} {:>7}   {:>6} {:>6} {:>7}".format
    print(row("file", "run", "lines", "", "taken", "ways", ""))
    sums = {name: (file.line_figures(), file.branch_figures()) for name, file in sorted(files.items())}
    sums["all"] = tuple(total(column) for column in zip(*sums.values()))
    for name, (lines, branches) in sums.items():
        print(row(name, *lines, f"{share(lines):.1f} %", *branches, f"{share(branches):.1f} %"))
    return [share(figures) for figures in sums["all"]]


def ranges(numbers):
    """1 2 3 5 as 1-3 5."""
    text, last = [], None
    for number in numbers:
        if text and number == last + 1:
            text[-1] = text[-1].split("-")[0] + f"-{number}"
        else:
            text.append(str(number))
        last = number
    return " ".join(text)


def show_missed(files, listed):
    """The lines that were not run, by function; returns what should be listed and is not."""
    complaints = []
    print("\nLines that were not run:")
    for name, file in sorted(files.items()):
        by_function = collections.defaultdict(list)
        for number in file.missed():
            by_function[file.function_of[number]].append(number)
        for function, numbers in by_function.items():
            print(f"{name}: {function}: {ranges(numbers)}")
            if (name, function) not in listed and file.entered[function] == 0:
                complaints.append(f"{name}: {function}: never run, and not listed")
    return complaints


def main():
    gcov, source, listing = sys.argv[1:]
    files = read(gcov, os.path.realpath(source))
    listed = excused(listing)
    lines, branches = show_table(files)
    complaints = show_missed(files, listed)
    complaints += [f"{name}: {function}: listed, but there is none" for name, function in sorted(listed)
                   if name not in files or function not in files[name].entered]
    if lines < ENOUGH:
        complaints.append(f"{lines:.1f} % of the lines were run, {ENOUGH:.0f} % are wanted")
    print()
    for complaint in complaints:
        print(f"coverage: {complaint}")
    if not complaints:
        print(f"coverage: {lines:.1f} % of the lines, {branches:.1f} % of the branches were run; "
              f"what was not is listed in {os.path.relpath(listing, source)}")
    sys.exit(bool(complaints))


main()
