#!/bin/sh
# SPDX-License-Identifier: MIT
#
# rolling-restart.sh SERVICE
#
# Run this on all hosts at the same time: SERVICE is restarted on two hosts at a time.  The commands "restart SERVICE" and
# "is-healthy SERVICE" are programs of your own.  If either fails on a host, that host holds the lock "SERVICE-failed" for a
# day, and hosts that come after it leave SERVICE as it is.  After the repair: dlock break SERVICE-failed.
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

# shellcheck disable=SC2016 # the inner shell has $1
exec dlock run --slots "$at_once" --wait "$wait" --label "restart $1" "$1-restart" -- sh -c '
    dlock status -q "$1-failed" && failed=0 || failed=$?
    case $failed in
        0) echo "$1 failed on another host: not restarted" >&2 && exit 1 ;;
        1) ;;             # the lock is free
        *) exit "$failed" ;; # nobody knows
    esac
    restart "$1" && is-healthy "$1" && exit
    status=$?
    dlock acquire --ttl 1d --label "restart failed" "$1-failed" >/dev/null || :
    exit "$status"' sh "$1"
