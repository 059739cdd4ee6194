#!/bin/sh
# SPDX-License-Identifier: MIT
#
# test-device.sh COMMAND [ARG...]
#
# Run COMMAND with one of five test devices, which no other run on any host has meanwhile.  The number of the slot is the
# number of the device: COMMAND gets its address in DEVICE.  All five in use: wait up to an hour for the first that is free.

set -eu

devices=5
wait=1h

if [ $# -eq 0 ]; then
    echo "usage: test-device.sh COMMAND [ARG...]" >&2
    exit 64
fi

# shellcheck disable=SC2016 # the inner shell has DLOCK_SLOT
exec dlock run --slots "$devices" --wait "$wait" --label "${1##*/}" device -- \
    sh -c 'DEVICE=device$DLOCK_SLOT.lab.example.net && export DEVICE && exec "$@"' sh "$@"
