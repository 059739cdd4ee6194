#!/bin/sh
# SPDX-License-Identifier: MIT
#
# fence-files.sh read NAME
# fence-files.sh write NAME <CONTENT
#
# A store of files, in the folder STORE, that refuses callers whose lock another client has taken since.
# It runs on the host of the files; remote clients call it by ssh.  All changes must go through it.
#
# DLOCK_FENCE is the fence of the caller.  NAME.fence is the greatest fence that NAME was read or written
# with; a smaller one is refused.  Reads count too: only the last reader may write afterwards.  flock makes
# checking, recording and executing one atomic step.

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
[ "$seen" -le "$fence" ] || refuse "$name: fence $fence is stale, $seen was seen before"
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
