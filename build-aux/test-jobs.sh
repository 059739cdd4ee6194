#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# test-jobs.sh MAX
#
# How many test files this machine can run side by side: MAX, or fewer if it takes long to start a process, as a virtual
# machine may.  Tests mostly start programs.  With too many of them, each waits so long for a processor that servers do not
# reply in time.

process_us=1500 # MAX is for a machine where a process takes no longer
best=1000000
for _ in 1 2 3 4; do
    start=${EPOCHREALTIME/[.,]/}
    for _ in {1..50}; do /bin/true; done
    took=$(((${EPOCHREALTIME/[.,]/} - start) / 50))
    best=$((took < best ? took : best))
done
jobs=$(($1 * process_us / (best + 1)))
echo $((jobs > $1 ? $1 : jobs < 3 ? 3 : jobs))
