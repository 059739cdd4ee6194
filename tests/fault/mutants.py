#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlocks with a bug each, to show that the harness finds it.

    mutants.py list            the names
    mutants.py check           do all patches apply, and do the mutants compile?
    mutants.py build NAME OUT  writes the mutant to OUT
    mutants.py seeds NAME      the options of `fault` that find it

A mutant is mutants/NAME.patch: a line that says what is wrong, a line with the options of `fault`, and a patch of C
files and scripts under src.  Lines may have moved, and those around may be others (fuzz 2): only what is changed and what
stands right beside it must match.  Only the files that it changes are compiled; the rest comes from the build.  From the
environment: top_srcdir, top_builddir, CC, FAULT_FLAGS and FAULT_LIBS, as make has them.
"""

import glob
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

PATCHES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mutants")


def names():
    return sorted(name[:-len(".patch")] for name in os.listdir(PATCHES) if name.endswith(".patch"))


def path_of(name):
    return os.path.join(PATCHES, name + ".patch")


def read(name):
    """What is wrong, the options of `fault`, and the files that change."""
    with open(path_of(name), encoding="utf-8") as file:
        lines = file.read().splitlines()
    if not lines[1].startswith("fault "):
        sys.exit(f"mutants.py: {name}: the second line is not a command: {lines[1]}")
    return lines[0], lines[1][len("fault "):], [line[len("+++ b/"):] for line in lines if line.startswith("+++ b/")]


def apply(name, folder):
    """Why the patch does not apply, or None."""
    result = subprocess.run(["patch", "--batch", "--silent", "--forward", "--fuzz=2", "-p1", "--reject-file=-",
                             "--read-only=ignore", "--no-backup-if-mismatch",
                             "-d", folder, "-i", path_of(name)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            check=False, text=True)
    return result.stdout or "patch failed" if result.returncode else None


def prepare(name, copy):
    """A copy of the source with the bug: the files to compile, and what to compile them with; or None, and why not."""
    source = os.environ["top_srcdir"]
    changed = read(name)[2]
    shutil.copytree(os.path.join(source, "src"), os.path.join(copy, "src"),
                    ignore=shutil.ignore_patterns("*.o", "*.a", "*.inc", ".deps"))
    if why := apply(name, copy):
        return None, f"does not apply: {why}"
    files = [os.path.join(copy, path) for path in changed if path.endswith(".c")]
    if len(files) < len(changed):
        scripts = sorted(glob.glob(os.path.join(copy, "src/lua/*.lua")))
        with open(os.path.join(copy, "src/scripts.inc"), "wb") as embedded:
            subprocess.run(["sh", os.path.join(source, "build-aux/embed-lua.sh"), *scripts], stdout=embedded, check=True)
        files.append(os.path.join(copy, "src/redis/command.c"))
    return files, [*shlex.split(os.environ["CC"]), f"-I{copy}/src", *shlex.split(os.environ["FAULT_FLAGS"]), "-w"]


def check():
    fine = 0
    for name in names():
        with tempfile.TemporaryDirectory() as copy:
            files, how = prepare(name, copy)
            if files and subprocess.run([*how, "-fsyntax-only", *files], cwd=os.environ["top_builddir"],
                                        check=False).returncode:
                files, how = None, "does not compile"
        if files:
            fine += 1
        else:
            print(f"{name} {how}")
    print(f"{fine} of {len(names())} mutants apply and compile")
    return 0 if fine == len(names()) else 1


def build(name, out):
    out = os.path.abspath(out)
    with tempfile.TemporaryDirectory() as copy:
        files, how = prepare(name, copy)
        if not files:
            sys.exit(f"mutants.py: {name} {how}")
        # The objects stand before the library, whose members of the same names are then not needed.
        subprocess.run([*how, "-o", out, *files, "src/dlock.o", "src/libdlock.a", *shlex.split(os.environ["FAULT_LIBS"])],
                       cwd=os.environ["top_builddir"], check=True)


def main():
    if sys.argv[1:] == ["list"]:
        for name in names():
            print(f"{name:14} {read(name)[0]}")
    elif sys.argv[1:] == ["check"]:
        sys.exit(check())
    elif len(sys.argv) == 3 and sys.argv[1] == "seeds":
        print(read(sys.argv[2])[1])
    elif len(sys.argv) == 4 and sys.argv[1] == "build":
        build(sys.argv[2], sys.argv[3])
    else:
        sys.exit(__doc__)


main()
