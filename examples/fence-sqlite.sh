#!/bin/sh
# SPDX-License-Identifier: MIT
#
# fence-sqlite.sh read ITEM
# fence-sqlite.sh write ITEM <AMOUNT
#
# The table of stock.sql in the SQLite database STOCK, which refuses callers whose lock another client has
# taken since.  DLOCK_FENCE is the fence of the caller.  It is part of each statement: a row with a greater
# fence is not found.  Reading is an UPDATE too, because only the last reader may write afterwards.  A real
# program uses prepared statements.

set -eu

refuse() {
    echo "fence-sqlite: $*" >&2
    exit 1
}

# sql STATEMENT: prints what it returns.
sql() {
    sqlite3 -bail -cmd '.timeout 10000' "${STOCK:-stock.db}" "$1"
}

item=$(printf %s "${2-}" | sed "s/'/''/g")
fence=${DLOCK_FENCE-}
case $fence in
    '' | *[!0-9]*) refuse "not a fence: '$fence'" ;;
esac

case ${1-} in
    read)
        amount=$(sql "UPDATE stock SET fence = $fence
            WHERE item = '$item' AND fence <= $fence RETURNING amount")
        ;;
    write)
        read -r amount
        case $amount in
            '' | *[!0-9]*) refuse "not an amount: '$amount'" ;;
        esac
        amount=$(sql "UPDATE stock SET fence = $fence, amount = $amount
            WHERE item = '$item' AND fence <= $fence RETURNING amount")
        ;;
    *) refuse "not read or write: '${1-}'" ;;
esac
[ -n "$amount" ] || refuse "${2-}: fence $fence is stale, or there is no such item"
[ "$1" = write ] || echo "$amount"
