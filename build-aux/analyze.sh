#!/bin/sh
# SPDX-License-Identifier: MIT
#
# analyze.sh BUILD [FLAG...]
#
# gcc -fanalyzer, clang-tidy and cppcheck over the program, on all processors; run at the top of the source.  BUILD is a
# folder in which it was built, FLAG is what hiredis's headers need.  Silent where they find nothing.  As with the
# formatters, what they find depends on their version: it is that of Debian 12.

set -eu

# What gcc 12 finds in a file and isn't there:
# - view.c, backend.c: a pointer that is stored behind a computed index, or as that of its first member, counts as lost;
#   valgrind sees it freed.
disbelieved() {
    case $1 in
        src/cli/view.c | src/redis/backend.c) echo -Wno-analyzer-malloc-leak ;;
    esac
}

# One file by itself, called by ourselves.
case $1 in
    --gcc)
        file=$2
        shift 2
        # shellcheck disable=SC2046
        exec gcc -std=gnu11 -O1 -fanalyzer -Werror $(disbelieved "$file") "$@" -c -o /dev/null "$file"
        ;;
    --tidy)
        file=$2
        shift 2
        said=$(clang-tidy --quiet "$file" -- -std=gnu11 "$@" 2>&1) && exit
        echo "$said" | grep -v '^[0-9]* warnings generated'
        exit 1
        ;;
esac

build=$1
shift
set -- -include "$build/config.h" -Isrc "-I$build/src" "-I$build" -pthread "$@"
status=0
for tool in gcc tidy; do
    find src -name '*.c' | sort | xargs -P "$(nproc)" -I {} sh "$0" --$tool {} "$@" || status=1
done

# Not asked for: variableScope (variables stand at the top of a function), missingIncludeSystem (it knows the
# libraries).
# What it finds and isn't there:
# - doctor.c: the members of a struct that is declared within another one count as unused;
# - cmd_look.c, signals.c: raise() counts as a function that never returns.
cppcheck -q -j "$(nproc)" --std=c11 --enable=warning,performance,portability,style --error-exitcode=1 \
    --suppress=variableScope --suppress=missingIncludeSystem \
    --suppress=unusedStructMember:src/redis/doctor.c \
    --suppress=unreachableCode:src/cli/cmd_look.c --suppress=unreachableCode:src/run/signals.c \
    --include="$build/config.h" -I src -I "$build/src" src || status=1
exit $status
