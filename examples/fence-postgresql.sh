#!/bin/sh
# SPDX-License-Identifier: MIT
#
# fence-postgresql.sh read ITEM
# fence-postgresql.sh write ITEM <AMOUNT
#
# The table of stock.sql in PostgreSQL, which refuses callers whose lock another client has taken since.
# PGHOST, PGDATABASE and so on select the database.  DLOCK_FENCE is the fence of the caller.  It is part of
# each statement: a row with a greater fence is not found.  Reading is an UPDATE too, because only the last
# reader may write afterwards.

set -eu

refuse() {
    echo "fence-postgresql: $*" >&2
    exit 1
}

# sql [VARIABLE...]: the statement on standard input; prints what it returns.
sql() {
    psql -X -q -A -t -v ON_ERROR_STOP=1 -v item="$item" -v fence="$fence" "$@"
}

item=${2-} fence=${DLOCK_FENCE-}
case $fence in
    '' | *[!0-9]*) refuse "not a fence: '$fence'" ;;
esac

case ${1-} in
    read)
        amount=$(
            sql <<'SQL'
UPDATE stock SET fence = :fence
    WHERE item = :'item' AND fence <= :fence RETURNING amount;
SQL
        )
        ;;
    write)
        read -r amount
        amount=$(
            sql -v amount="$amount" <<'SQL'
UPDATE stock SET fence = :fence, amount = :'amount'
    WHERE item = :'item' AND fence <= :fence RETURNING amount;
SQL
        )
        ;;
    *) refuse "not read or write: '${1-}'" ;;
esac
[ -n "$amount" ] || refuse "$item: fence $fence is stale, or there is no such item"
[ "$1" = write ] || echo "$amount"
