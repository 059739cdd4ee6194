#!/bin/sh
# SPDX-License-Identifier: MIT
#
# deploy.sh HOST...
#
# Deploy to one host after the other, while nobody else deploys.  The command "deploy-to HOST", a program
# of your own, deploys to one host.
#
# Only this script renews a lock taken by acquire.  Each step must take less time than the lease, and
# begins with a renewal, which fails if the lock was lost meanwhile.  With "acquire --keep $$" a background process
# renews the lock instead, and ends the script if the lock is lost.  If one command does everything, "dlock run deploy --
# COMMAND" is simpler.
#
# Name the nodes in /etc/dlock/config: sudo drops DLOCK_NODES, and dlock would lock on a Redis of this host alone.

set -eu

lease=10m
wait=5m

if [ $# -eq 0 ]; then
    echo "usage: deploy.sh HOST..." >&2
    exit 64
fi

# Release the lock however the script ends.  A lock that is not held yet needs no release.
release() {
    [ -z "$DLOCK_TOKEN" ] || dlock release deploy
}
export DLOCK_TOKEN=
trap release EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

DLOCK_TOKEN=$(dlock acquire --ttl "$lease" --wait "$wait" --label "deploy to $# hosts" deploy)

for host; do
    dlock renew --ttl "$lease" deploy
    deploy-to "$host"
done
