#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-source.sh
#
# Rules for the files under src, tests and bench that no compiler knows.  Run at the top of the source.

set -eu

# shellcheck disable=SC2016 # the dollars are awk's
find src tests bench -name '*.[ch]' -o -name '*.lua' -o -name '*.bats' -o -name '*.bash' -o \
    -name '*.py' -o -name '*.js' | sort |
    xargs awk '
function complain(what) {
    printf "%s:%d: %s\n", FILENAME, FNR, what
    bad = 1
}

BEGIN {
    # A file includes files of its own folder and of those with a lower rank.
    rank["base"] = 1
    rank["lock"] = rank["net"] = 2
    rank["redis"] = rank["zk"] = rank["run"] = 3
    rank["cli"] = 4
    rank["dlock.c"] = rank["services.c"] = 5
}

FNR == 1 {
    licensed = 0
    split(FILENAME, part, "/")
    folder = part[1] == "src" ? part[2] : ""
}

/SPDX-License-Identifier: MIT/ { licensed = 1 }
FNR == 3 && !licensed { complain("no line SPDX-License-Identifier: MIT among the first three") }

FNR == 801 { complain("more than 800 lines; split it by what it is about") }

# bats 1.8 takes it for a failure.
/^setup_file\(\)/ { file_setup = 1 }
file_setup && /(^|[^a-z_])(skip|must_run|need_[a-z]+)([^a-z_]|$)/ { complain("a skip in setup_file") }
file_setup && /(^|[ ;])\}$/ { file_setup = 0 }

FILENAME !~ /\.[ch]$/ { next }

/^#include "[a-z]+\// && folder in rank {
    split($2, included, /["\/]/)
    other = included[2]
    if (other != folder && rank[other] >= rank[folder])
        complain("src/" folder " must not know src/" other)
}

# A service is a folder and a line in services.c: nothing else has a word of it.
folder ~ /^(base|lock|net|run|cli|dlock.c)$/ &&
    tolower($0) ~ /redis|zookeeper|(^|[^a-z0-9])zks?([^a-z0-9]|$)/ {
    complain("src/" folder " must not know services by name")
}

/^#include <(hiredis\/)?(hiredis|async|read|sds)\.h>/ && FILENAME !~ /^(src\/redis\/reply|tests\/rcli)\.c$/ {
    complain("of src only redis/reply.c knows hiredis")
}

/(^|[^a-z_0-9])(strcpy|strcat|sprintf|vsprintf|gets|strtok|atoi|atol|atof|gettimeofday|asctime|ctime)\(/ {
    complain("a function that has a safer one beside it")
}

/(^|[^a-z_0-9])(setenv|putenv|unsetenv|clearenv)\(/ && part[1] == "src" {
    complain("another thread may be reading the environment")
}

# A definition: its name is at the start of a line, and a line of its own may go on.  A callback of OpenSSL has the
# parameters that OpenSSL wants.
FILENAME ~ /^src\// && /^[a-z_0-9]+\(/ { head = ""; open_head = before !~ /OpenSSL.s type \*\/$/ }
{ before = $0 }
open_head { head = head $0 }
open_head && /[^,(]$/ {
    open_head = 0
    parameters = head
    while (gsub(/\([^()]*\)[^()]*\([^()]*\)/, "x", parameters) > 1)
        ;
    sub(/^[a-z_0-9]+\(/, "", parameters)
    sub(/, \.\.\./, "", parameters)
    while (gsub(/\([^()]*\)/, "", parameters))
        ;
    if (gsub(/,/, ",", parameters) > 4)
        complain("a function with more than five parameters")
}

/^\{/ { start = FNR }
/^\}/ && start {
    if (FNR - start - 1 > 60)
        complain("a function of " FNR - start - 1 " lines; 60 are the most")
    start = 0
}

END { exit bad }
'

# No module includes one that includes it, by whatever way.
loops=$(grep -oE '^#include "[a-z]+/[a-z0-9_]+\.h"' src/*/*.[ch] |
    sed -E 's|^src/([a-z0-9_/]+)\.[ch]:#include "(.*)\.h"|\1 \2|' | awk '$1 != $2' | tsort 2>&1 >/dev/null)
[ -z "$loops" ] || {
    echo "modules that include each other: $loops"
    exit 1
}
