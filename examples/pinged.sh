#!/bin/sh
# SPDX-License-Identifier: MIT
#
# pinged.sh URL COMMAND [ARG...]
#
# Run COMMAND between two pings of a dead-man's switch, such as Healthchecks: URL/start, then URL/0 if it succeeded or
# URL/STATUS if not.  In a crontab that all hosts share:
#
#   dlock run -q -E 0 --min-hold 5m backup -- pinged.sh https://hc.example.net/5b1e nightly-backup
#
# Only the host that runs the job pings.  If no host does, since Redis is down or all hosts are, the switch misses the
# start.  A command that dlock ends is a failure; one that dies with its host never tells its end, and the switch misses it.

set -u

if [ $# -lt 2 ]; then
    echo "usage: pinged.sh URL COMMAND [ARG...]" >&2
    exit 64
fi

url=$1
shift
trap : TERM # of dlock: COMMAND gets it too; its end is told
ping() { curl -fsS --max-time 5 --retry 2 -o /dev/null "$url/$1" || :; }

ping start
"$@" && status=0 || status=$?
ping "$status"

exit "$status"
