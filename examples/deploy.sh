#!/bin/sh
# SPDX-License-Identifier: MIT
#
# deploy.sh HOST...
#
# Deploy to one host after the other, while nobody else does.  What is done to a host is the
# command "deploy-to HOST", a program of yours.
#
# A lock of acquire is renewed by nobody but this script: each step must take less than the lease,
# and each begins with a renewal, which fails if the lock was lost meanwhile.  Where one command
# does it all, "dlock run deploy -- COMMAND" is simpler, and it ends COMMAND if the lock is lost.

set -eu

lease=10m
wait=5m

if [ $# -eq 0 ]; then
    echo "usage: deploy.sh HOST..." >&2
    exit 64
fi

# Given back however the script ends; what is not held yet needs no release.
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
