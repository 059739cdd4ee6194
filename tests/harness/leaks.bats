#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# In builds with AddressSanitizer every test looks for leaks as well, by LeakSanitizer, at the end of each process.  That
# is so only where dlock ends by exit(3), may be looked into, and nobody has turned it off: here it is given a leak.

load ../lib/redis
load ../inject/inject

# leaks ARG...: dlock ARG... has its leak reported.
leaks() {
    local ours=exitcode=98:log_path=stderr
    # Of flags that several sanitizers share, the last word is UBSan's.
    attempt env ASAN_OPTIONS="${ASAN_OPTIONS-}:$ours:verify_asan_link_order=0" UBSAN_OPTIONS="${UBSAN_OPTIONS-}:$ours" \
        LD_PRELOAD="$(dirname "$INJECT")/leak.so" timeout --foreground 60 "$DLOCK" "$@"
    exits 98
    [[ $stderr = *'LeakSanitizer: detected memory leaks'* ]] || fail "no report"
}

@test "AddressSanitizer detects a leak, however a command ends" {
    # Other builds have no LeakSanitizer; make check-valgrind looks for leaks in them.
    if ! grep -aq __asan_init "$DLOCK"; then return; fi
    leaks --version
    leaks acquire "$key"
    leaks acquire "$key"
    leaks acquire --ttl x "$key"
    take "$key-2"
    leaks renew "$key-2" "$token"
    leaks status "$key-2"
    leaks release "$key-2" "$token"
    leaks break --force "$key"
    leaks doctor
    leaks run "$key-3" true
    leaks run "$key-3" "$PWD/nowhere"
    leaks run --ttl 3s "$key-3" sleep 1.2
    leaks run "$key-3" "$REDIS_CLI" -s "$(server_dir a)/s" del "$key-3"
    DLOCK_PASSWORD=wrong leaks status "$key"
}
