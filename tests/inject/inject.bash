# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
#
# Faults of the host: each call that dlock makes fails in turn; see inject.py.
# A file sets redis_servers='b c d e' tcp_servers=a.

: "${INJECT:=$(dirname "$DLOCK")/tests/inject/inject.so}"
export INJECT

# The sanitizers' own allocator, fork and threads stand in the place of libc's, call the system for their own ends, and
# die where that fails: nothing would be learnt about dlock.  What gcov does for itself is left alone, see
# tests/coverage/flush.c.
is_sanitized() { grep -aqE '__(asan|tsan|msan)_init' "$DLOCK"; }

# every_fault [OPTION...] SCENARIO...: of inject.py.
every_fault() {
    local sockets
    if is_sanitized; then return; fi
    sockets=$(for i in a b c d e; do echo "$(server_dir "$i")/s"; done | paste -sd ,)
    timeout --foreground 1200 "$PYTHON" "$top_srcdir/tests/inject/inject.py" --library "$INJECT" \
        --servers "$sockets" --port "$(port_of a)" "$@" || fail "see above"
}
