#!/bin/sh
# SPDX-License-Identifier: MIT
#
# fence-files.sh read NAME
# fence-files.sh write NAME <CONTENT
#
# A store of files, in the folder STORE, that refuses callers whose lock another client has taken since.
# It runs on the host of the files.  All changes must go through it.  ssh passes no variables on, so remote clients call
#
#   ssh HOST "DLOCK_FENCE=$DLOCK_FENCE STORE=/srv/store fence-files.sh read NAME"
#
# DLOCK_FENCE is the fence of the caller.  NAME.fence is the greatest fence that NAME was read or written
# with; a smaller one is refused.  Reads count too: only the last reader may write afterwards.  flock makes
# checking, recording and executing one atomic step.  sync(1) keeps the fence if the host crashes.

set -eu

refuse() {
    echo "fence-files: $*" >&2
    exit 1
}

# replace FILE: by FILE.new, as a whole, also if the host crashes meanwhile.
replace() {
    sync "$1.new"
    mv "$1.new" "$1"
    sync .
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
[ "$seen" -le "$fence" ] || refuse "$name: fence $fence is stale, $seen was seen before"
echo "$fence" >"$name.fence.new"
replace "$name.fence"

case $action in
    read) cat "$name" ;;
    write)
        cat >"$name.new"
        replace "$name"
        ;;
    *) refuse "not read or write: '$action'" ;;
esac
