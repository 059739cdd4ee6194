#!/bin/sh
# SPDX-License-Identifier: MIT
#
# fence-files.sh read NAME
# fence-files.sh write NAME <CONTENT
#
# A store of files, in the folder STORE, that refuses whoever's lock has become another's.  It runs
# where the files are, for clients elsewhere behind ssh, and nobody changes them but through it.
#
# DLOCK_FENCE is the caller's fence.  The greatest one that NAME was read or written with is in
# NAME.fence, and a lesser one is refused.  Reading counts: who has read must be the only one to
# write afterwards.  flock makes one step of looking, noting and doing.

set -eu

refuse() {
    echo "fence-files: $*" >&2
    exit 1
}

action=${1-} name=${2-} fence=${DLOCK_FENCE-}
case $name in
    '' | .* | */* | *.fence) refuse "not a name: '$name'" ;;
esac
case $fence in
    '' | *[!0-9]*) refuse "not a fence: '$fence'" ;;
esac

cd "${STORE:-.}"
exec 9>>.lock
flock 9

seen=$(cat "$name.fence" 2>/dev/null || echo 0)
[ "$seen" -le "$fence" ] || refuse "$name: fence $fence is stale, $seen has been here"
echo "$fence" >"$name.fence.new"
mv "$name.fence.new" "$name.fence"

case $action in
    read) cat "$name" ;;
    write)
        cat >"$name.new"
        mv "$name.new" "$name"
        ;;
    *) refuse "not read or write: '$action'" ;;
esac
