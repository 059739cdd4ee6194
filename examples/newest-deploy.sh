#!/bin/sh
# SPDX-License-Identifier: MIT
#
# newest-deploy.sh VERSION
#
# Run this for each push, on any host.  The newest deploy wins: one that runs is asked to end, and this one starts when its
# last process has ended.  So two deploys never run beside each other.  The command "deploy VERSION" is a program of your
# own.  It gets SIGTERM when a newer one comes, and a minute to stop at a safe point.
#
# Exit status: that of deploy; 75 if a newer deploy came first, so that this one never ran; 76 if it was asked to end.
#
# Name the nodes in /etc/dlock/config: sudo drops DLOCK_NODES, and dlock would lock on a Redis of this host alone.

set -eu

if [ $# -ne 1 ]; then
    echo "usage: newest-deploy.sh VERSION" >&2
    exit 64
fi

exec dlock run --replace --wait 10m --kill-after 1m --label "deploy $1" deploy -- deploy "$1"
