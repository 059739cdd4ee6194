#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# Keys: any bytes without NUL, 1 to 512 of them.

load ../lib/redis

# round_trip KEY...: each taken, refused, seen, renewed and released, in Redis under that very name.
round_trip() {
    local k
    for k; do round_trip_of "$k"; done
}
round_trip_of() {
    local k=$1
    works acquire -- "$k"
    token=$output
    [ "$(rcli a get "$k")" = "$token" ] || fail "not under that name in Redis"
    refuses 75 '' acquire -- "$k"
    gives 0 status --json -- "$k"
    works renew -- "$k" "$token"
    works release -- "$k" "$token"
    is_free "$k"
    works run -- "$k" -- true
}

@test "keys with spaces, quotes, shell characters, leading dashes, braces, colons and slashes" {
    round_trip 'with  two spaces' ' leading and trailing ' "single ' and double \"" 'back\slash' '%s%n%d' \
        '$HOME `id` * ? [a] ~ # ! & ; | < >' -k --ttl - --- '{tag}:job' 'job}' '{' '{}' '}{' '/a/b:c'
}

@test "keys with control characters, in UTF-8 and not; of one byte, and of 512 bytes, not characters" {
    round_trip $'two\nlines' $'ends in newline\n' $'tab\tcarriage\rreturn\a\x01\x7f\e[31m' 'schlüssel-ключ-鍵-🔒' \
        $'\x80\xff\xfe\xc3' x "$(printf 'k%.0s' {1..512})" "$(printf 'ü%.0s' {1..256})"
}

# refused WORD KEY: every command refuses it by that word.
refused() {
    local command
    for command in acquire status "release KEY $OTHER_TOKEN" "renew KEY $OTHER_TOKEN" 'run KEY -- touch begun'; do
        [[ $command == *KEY* ]] || command+=' KEY'
        refuses 64 "$1" ${command%%KEY*} "$2" ${command#*KEY}
    done
    [ ! -e begun ]
}

@test "a key of 513 bytes, or an empty one, is refused" {
    refused empty ''
    refused 512 "$(printf 'k%.0s' {1..513})"
    refuses 64 512 acquire "$(printf 'ü%.0s' {1..257})"
}

@test "messages show a key escaped, in one line" {
    for k in $'two\nlines' $'\e[31mred' $'\x80\xff' $'\r\a\x7f'; do
        rcli a set "$k" foreign
        refuses 75 '' acquire "$k"
        refuses 1 '' release "$k" "$OTHER_TOKEN"
    done
    rcli a set $'two\nlines' foreign
    refuses 75 'two\\nlines' acquire $'two\nlines'
}

@test "JSON shows any key, as valid UTF-8" {
    for k in $'a "b" \\ \n\t\x01\e' 'schlüssel' $'bad \xff\x80 bytes \xc3' $'\xed\xa0\x80' $'\xf4\x90\x80\x80'; do
        dlock acquire --json "$k" >out
        iconv -f UTF-8 -t UTF-8 out >/dev/null
        jq -e .key out >/dev/null
        dlock status --json "$k" >out
        iconv -f UTF-8 -t UTF-8 out >/dev/null
        jq -e .key out >/dev/null
    done
    dlock acquire --json $'x "b" \\ \n\t\x01\e' >out
    [ "$(jq -j .key out | od -An -tx1)" = "$(printf 'x "b" \\ \n\t\x01\e' | od -An -tx1)" ]
}

@test "JSON distinguishes a byte from the four characters of its escape" {
    dlock acquire --json $'x\xff' >byte
    dlock acquire --json 'x\xff' >text
    [ "$(jq -r .key byte)" = 'x\xff' ]
    [ "$(jq -r .key text)" = 'x\xff' ]
    [ "$(jq -r .key_hex byte)" = 78ff ]
    jq -e 'has("key_hex") | not' text
    dlock status --json $'x\xff' >status
    [ "$(jq -r .key_hex status)" = 78ff ]
    tells 0 '.key_hex == "78ff"' release --json $'x\xff' "$(jq -r .token byte)"
}
