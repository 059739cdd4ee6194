# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
#
# Shared by the tests of the examples, beside redis.bash: commands of the user in the folder "bin", which is in PATH.

# shellcheck source=tests/lib/redis.bash disable=SC1091
. "${BASH_SOURCE[0]%/*}/redis.bash"

examples=$top_srcdir/examples

# stub NAME LINE...: a command of the user, as a shell script.
stub() {
    printf '#!/bin/sh\n' >"bin/$1"
    printf '%s\n' "${@:2}" >>"bin/$1"
    chmod +x "bin/$1"
}

# yaml FILE EXPRESSION: evaluate the Python EXPRESSION, in which d is the content; one line for each element.
yaml() {
    "$PYTHON" -c 'import yaml' 2>/dev/null || must_run "$PYTHON has no module yaml"
    "$PYTHON" -c '
import sys, yaml
d = yaml.safe_load(open(sys.argv[1]))
for line in eval(sys.argv[2]):
    print(line)' "$examples/$1" "$2"
}

# ---------------------------------------------------------------- hooks

begin_example() {
    test_begin
    mkdir bin
    ln -s "$DLOCK" bin/dlock
    PATH=$PWD/bin:$PATH
}
setup() { begin_example; }
