#!/bin/sh
# SPDX-License-Identifier: MIT
#
# embed-lua.sh FILE.lua...
#
# Print each script as a C string named lua_FILE, one literal for each line of Lua.  Comments,
# blank lines and indentation are for readers of the source: they are left out, since the server
# would have to receive and hash them with each request.  A line "--!" has flags for the server:
# it stays, and is the first line of the string.  A line "-- include OTHER.lua" is replaced by that
# script, without the lines that begin with "--".

set -eu

expand() {
    while IFS= read -r line; do
        case $line in
            *'-- include '*) sed '/^--/d' "$folder/${line##* }" || exit ;;
            *) printf '%s\n' "$line" ;;
        esac
    done
}

for file; do
    folder=$(dirname "$file")
    name=$(basename "$file" .lua | tr -c 'a-zA-Z0-9\n' _)
    if grep -qE '\[=*\[' "$file"; then
        echo "$file: long brackets cannot be embedded line by line" >&2
        exit 1
    fi
    printf '/* %s */\nstatic const char lua_%s[] =\n' "$file" "$name"
    expand <"$file" | sed -e 's/^[[:blank:]]*//' -e 's/[[:blank:]]*$//' \
        -e "s/[[:blank:]]*-- [^'\"]*\$//" -e '/^--\([^!]\|$\)/d' -e '/^$/d' \
        -e 's/[\\"]/\\&/g' -e 's/.*/    "&\\n"/'
    printf '    ;\n\n'
done
