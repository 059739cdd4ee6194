#!/bin/sh
# SPDX-License-Identifier: MIT
#
# rolling-restart.sh SERVICE
#
# Run this on all hosts at the same time: SERVICE is restarted on two hosts at a time.  The commands "restart SERVICE" and
# "is-healthy SERVICE" are programs of your own.  Each host has a lock "SERVICE-restart/HOST", whose history says how its
# last restart ended.  If one failed, the hosts that come after it leave SERVICE as it is, and name it.  After the repair
# run this again on the host that failed, then on the others.
#
# Exit status: 0 restarted; 1 not restarted, because it failed on another host; otherwise that of the restart, or of dlock.
#
# Name the nodes in /etc/dlock/config: sudo drops DLOCK_NODES, and dlock would lock on a Redis of this host alone.

set -eu

at_once=2
wait=2h

if [ $# -ne 1 ]; then
    echo "usage: rolling-restart.sh SERVICE" >&2
    exit 64
fi

# shellcheck disable=SC2016 # the inner shells have $1 and $2
exec dlock run --slots "$at_once" --wait "$wait" --label "restart $1" "$1-restart" -- sh -c '
    dlock status -q --failed "$1-restart/$2" && failed_here=0 || failed_here=$?
    [ "$failed_here" = 1 ] || dlock status -q --failed "$1-restart/*" || {
        status=$?
        [ "$status" = 1 ] && dlock status --failed "$1-restart/*" >&2
        exit "$status"
    }
    exec dlock run "$1-restart/$2" -- sh -c "restart \"\$1\" && is-healthy \"\$1\"" sh "$1"' sh "$1" "$(uname -n)"
