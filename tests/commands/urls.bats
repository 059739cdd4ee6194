#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# URLs of nodes, and where their passwords come from.

load ../lib/redis

setup_file() {
    redis_start_tcp a
    redis_start locked --requirepass 'p@ss:w/rd ü'
}

# --------------------------------------------------------------------- URLs

# leads_to_server URL...: each of them, without a word.
leads_to_server() {
    local url
    for url; do
        quietly 1 status --node "$url" "$key"
    done
}

@test "URLs: a path, unix:// and redis:// and host:port lead to the server" {
    port=$(port_of a) dir=$(server_dir a)
    leads_to_server "$dir/s" "unix://$dir/s" "unix://$dir/s?db=0" \
        "127.0.0.1:$port" "redis://127.0.0.1:$port" "redis://127.0.0.1:$port/" "redis://127.0.0.1:$port/0"
}

@test "URLs: an ensemble of ZooKeeper is not combined with other nodes" {
    for node in redis://h zk://h; do
        refuses 64 '^dlock: a ZooKeeper ensemble is a quorum already, and cannot be combined' acquire -N "$node" -N zk://i "$key"
    done
}

@test "URLs: a name leads to the server" {
    need_localhost
    leads_to_server "localhost:$(port_of a)" "redis://localhost:$(port_of a)"
}

@test "URLs: IPv6 addresses in brackets" {
    grep -q . /proc/net/if_inet6 || must_run "this machine has no IPv6"
    redis_start_tcp six ::1
    leads_to_server "[::1]:$(port_of six)" "redis://[::1]:$(port_of six)" "redis://[::1]:$(port_of six)/2" \
        "redis://[0:0::1]:$(port_of six)"
}

@test "URLs: the database" {
    for url in "redis://127.0.0.1:$(port_of a)/5" "unix://$(server_dir a)/s?db=5"; do
        works acquire --node "$url" "$key"
        [ "$(rcli a -n 5 get "$key")" = "$output" ]
        is_free "$key"
        dlock release --node "$url" "$key" "$output"
    done
}

@test "URLs: a database that the server does not have is an error" {
    try acquire --node "unix://$(server_dir a)/s?db=9999" "$key"
    [ "$status" -eq 69 ] || [ "$status" -eq 77 ] || fail "expected 69 or 77"
    complains
    wait_until "free '$key'"
}

@test "URLs: a path may be escaped" {
    dir="$(server_dir a)/with space%"
    mkdir -p "$dir"
    ln -sf ../s "$dir/s"
    try status --node "unix://${dir// /%20}/s" "$key"
    [ "$status" -ne 0 ]
    leads_to_server "unix://$(server_dir a)/with%20space%25/s" "$dir/s"
}

# Which URLs are invalid is in tests/unit/url.c, what messages show of them in the same file.
# ------------------------------------------------------------------ passwords

@test "DLOCK_PASSWORD, REDISCLI_AUTH, --password-file and the URL give the password; the file counts first" {
    word='p@ss:w/rd ü'
    DLOCK_NODES=$(node locked)
    DLOCK_PASSWORD=$word REDISCLI_AUTH=wrong gives 1 status "$key"
    DLOCK_PASSWORD='' REDISCLI_AUTH=$word gives 1 status "$key"
    DLOCK_PASSWORD=wrong REDISCLI_AUTH=$word gives 77 status "$key"
    for password in "$word" "$word"$'\n' "$word"$'\r\nanother line'; do
        printf %s "$password" >pass
        DLOCK_PASSWORD=wrong REDISCLI_AUTH=wrong gives 1 status --password-file pass "$key"
    done
    try status --node "unix://:p%40ss%3Aw%2Frd%20%C3%BC@$(server_dir locked)/s" "$key"
    [ "$status" -eq 1 ] || [ "$status" -eq 64 ]
}

@test "--password-file keeps the blanks of its first line, which must be a password" {
    redis_start blanks --requirepass ' blanks '
    printf ' blanks \r\n' >pass
    gives 1 status -N "$(node blanks)" --password-file pass "$key"
    head -c 600 /dev/zero | tr '\0' x >pass
    refuses 78 'first line is too long' status --password-file pass "$key"
    : >pass
    refuses 78 'pass: its first line is empty' status --password-file pass "$key"
    printf 'sesame\0word\n' >pass
    refuses 78 'pass: its first line contains a NUL byte' status --password-file pass "$key"
}

@test "user and password in the URL, with escapes" {
    redis_start_tcp named
    rcli named acl setuser jobs on '>s:e/c@r%t' '~*' '+@all' >/dev/null
    rcli named acl setuser default on '>secret' >/dev/null
    works acquire --node "redis://jobs:s%3Ae%2Fc%40r%25t@127.0.0.1:$(port_of named)" "$key"
    works status --node "redis://jobs:s%3ae%2fc%40r%25t@127.0.0.1:$(port_of named)/0" "$key"
    warns 77 '' status --node "redis://jobs:wrong@127.0.0.1:$(port_of named)/0" "$key"
    [[ $stderr != *wrong@* ]] || fail "the password is shown"
    # The user from there, the password from the environment; one in the URL counts first.
    DLOCK_PASSWORD='s:e/c@r%t' works acquire --node "redis://jobs@127.0.0.1:$(port_of named)" "$key-2"
    DLOCK_PASSWORD=wrong works status --node "redis://:secret@127.0.0.1:$(port_of named)" "$key"
}

@test "no message and no verbose line shows a password" {
    redis_start_tcp locked-too 127.0.0.1 --requirepass hidden-word
    url="redis://:hidden-word@127.0.0.1:$(port_of locked-too)"
    gives 0 run -v --node "$url" "$key" -- true
    [[ $stderr != *hidden* ]] || fail "the password is shown"
    [[ $stderr == *127.0.0.1* ]] || fail "expected the node"
    DLOCK_NODES=$url take "$key"
    gives 0 status --json --node "$url" "$key"
    [[ $output$stderr != *hidden* ]] || fail "the password is shown"
    redis_stop locked-too
    gives 69 run -v --node "$url" "$key" -- true
    [[ $stderr != *hidden* ]] || fail "the password is shown"
    DLOCK_PASSWORD=hidden-wrong gives 77 acquire -v --node "$(node locked)" "$key"
    [[ $stderr != *hidden* ]] || fail "the password is shown"
}

@test "a password for a server that needs none does not prevent a lock" {
    DLOCK_PASSWORD=unneeded try acquire "$key"
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ] || fail "expected 0 or 77"
}
