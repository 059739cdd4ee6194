# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034
#
# Shared by the tests of the documentation, beside redis.bash: where the pages are, and how lists are compared.

# shellcheck source=tests/lib/redis.bash disable=SC1091
. "${BASH_SOURCE[0]%/*}/redis.bash"

manual=$top_srcdir/man/dlock.1
readme=$top_srcdir/README.md

# same FILE FILE WHAT: no difference between two lists, of which neither is empty.
same() {
    [ -s "$1" ] || fail "nothing found: $3"
    diff -u "$1" "$2" >difference || fail "$3: $(cat difference)"
}

# dlock_first: the program under test is what PATH leads to.
dlock_first() {
    mkdir -p bin
    ln -s "$DLOCK" bin/dlock
    PATH=$PWD/bin:$PATH
}
