#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# dlock and the locks of kazoo and Curator on one path: each waits for the other, in the order of arrival.

# shellcheck disable=SC2153
load ../lib/zookeeper

setup_file() {
    [ -z "$(zk_lacks)" ] || return 0
    zk_start --one
    compile_peer
    [ -f "$BATS_FILE_TMPDIR/lacks" ] || peer_start
}
setup() {
    zk_real
    zk_begin
}

# compile_peer: the file "lacks" names what is not installed.
compile_peer() {
    local jar jars=
    for jar in curator-recipes curator-framework curator-client zookeeper guava slf4j-api; do
        [ -f "/usr/share/java/$jar.jar" ] || echo "the package libcurator-recipes-java is not installed" \
            >"$BATS_FILE_TMPDIR/lacks"
        jars+=/usr/share/java/$jar.jar:
    done
    command -v javac >/dev/null || echo "javac is not installed" >"$BATS_FILE_TMPDIR/lacks"
    peer_classes=$jars$BATS_FILE_TMPDIR
    [ -f "$BATS_FILE_TMPDIR/lacks" ] ||
        javac -nowarn -cp "$jars" -d "$BATS_FILE_TMPDIR" "$top_srcdir/tests/zookeeper/Peer.java" >&2
}

# peer_start: one Java process for all calls of curator.
peer_start() {
    zk_join
    mkfifo "$BATS_FILE_TMPDIR/calls"
    spawn peer java -Xmx48m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$peer_classes" Peer "$(hosts)" "$BATS_FILE_TMPDIR/calls"
}

# need_kazoo: with $PYTHON, or with the Python of the system.
need_kazoo() {
    local python
    for python in "$PYTHON" /usr/bin/python3; do
        if "$python" -c 'import kazoo' 2>/dev/null; then
            kazoo_python=$python
            return
        fi
    done
    must_run "no Python has the module kazoo"
}
need_curator() { [ ! -f "$BATS_FILE_TMPDIR/lacks" ] || must_run "$(tail -n 1 "$BATS_FILE_TMPDIR/lacks")"; }

# kazoo VERB KIND..., curator VERB KIND...: see kazoo_peer.py.
hosts() { printf '127.0.0.1:%s,127.0.0.1:%s,127.0.0.1:%s' "${zk_direct[@]}"; }
kazoo() { "$kazoo_python" "$top_srcdir/tests/zookeeper/kazoo_peer.py" "$(hosts)" "$@"; }
curator() {
    local answer reply=$PWD/reply.$BASHPID
    mkfifo "$reply"
    asks "$BATS_FILE_TMPDIR/calls" "$reply" "$reply" "$1" "$2" "$3" "${4:+$PWD/$4}" "${5-}"
    rm "$reply"
    return "${answer:-2}"
}

# exclude PEER KIND...: dlock and each KIND of lock of PEER wait for each other.
exclude() {
    local peer=$1 kind
    shift
    start_holding "$key" 'while [ ! -e stop ]; do sleep 0.2; done'
    for kind; do
        ! "$peer" try "$kind" "$chroot/$key" || fail "$peer's $kind does not wait for dlock"
    done
    stops 0
    for kind; do
        "$peer" hold "$kind" "$chroot/$key" there 3>&- &
        wait_until '[ -e there ]' 60
        refuses 75 '' run "$key" -- true
        rm there
        wait $!
        works run --wait 60s "$key" -- true
    done
}

# by_turns PEER KIND [OPTION...]: dlock with these and the other wait by turns, and are served in that order.
by_turns() {
    local i before holder jobs=() queue=$chroot/${queue_of:-$key}
    rm -f go
    start_holding "$key" "${@:3}" 'while [ ! -e go ]; do sleep 0.2; done'
    holder=$bg
    for i in 1 2 3 4 5 6; do
        before=$(zk_ask 1 children "$queue" | grep -oE '[0-9]{10}$' | wc -l)
        if [ $((i % 2)) -eq 0 ]; then
            start run --wait 60s "${@:3}" "$key" -- sh -c 'echo "$0" >>served' "$i"
            jobs+=("$bg")
        else
            "$1" wait "$2" "$chroot/$key" served "$i" 3>&- &
            jobs+=($!)
        fi
        wait_until "[ \"\$(zk_ask 1 children '$queue' | wc -l)\" -gt $before ]" 60
    done
    : >go
    finish "$holder"
    for i in "${jobs[@]}"; do wait "$i"; done
    [ "$(paste -sd ' ' served)" = '1 2 3 4 5 6' ] || fail "served: $(paste -sd ' ' served)"
}

@test "kazoo's Lock, WriteLock and ReadLock wait for dlock, and dlock for them" {
    need_kazoo
    exclude kazoo Lock WriteLock ReadLock
}

@test "kazoo and dlock are served in the order of arrival" {
    need_kazoo
    by_turns kazoo Lock
}

@test "a Lock object of kazoo fails when the node has gone, unless the node is made again" {
    need_kazoo
    start_holding "$key" 'while [ ! -e stop ]; do sleep 0.2; done'
    kazoo again Lock "$chroot/$key" stop
    finish
}

@test "Curator's mutex and read-write lock wait for dlock, and dlock for them" {
    need_curator
    exclude curator mutex write read
}

@test "Curator and dlock are served in the order of arrival" {
    need_curator
    by_turns curator mutex
}

@test "Curator's semaphore and --slots count each other's leases" {
    need_curator
    curator hold semaphore2 "$chroot/$key" there 3>&- &
    peer=$!
    wait_until '[ -e there ]' 60
    start_holding "$key" --slots 2 'while [ ! -e stop ]; do sleep 0.2; done; echo "$DLOCK_SLOT"'
    works status --slots 2 --json "$key"
    [ "$(jq -r '"\(.state) \(.client)"' <<<"$output" | sort | paste -sd ,)" = 'foreign Curator,held dlock' ] || fail 'expected both'
    refuses 75 'all 2 slots are held' run --slots 2 "$key" -- true
    ! curator try semaphore2 "$chroot/$key" || fail 'Curator has a third lease'
    rm there
    wait "$peer"
    curator try semaphore2 "$chroot/$key"
    stops 0
}

@test "Curator's semaphore and --slots are served in the order of arrival" {
    need_curator
    queue_of=$key/locks
    zk_ask 1 create "$chroot/$queue_of" ''
    by_turns curator semaphore1 --slots 1
}

# shares PEER READ WRITE: dlock's readers and those of PEER hold the lock together, and each waits for the other's writer.
shares() {
    local peer=$1 pid
    start_holding "$key" --shared 'while [ ! -e stop ]; do sleep 0.2; done'
    "$peer" hold "$2" "$chroot/$key" there 3>&- &
    pid=$!
    wait_until '[ -e there ]' 60
    ! "$peer" try "$3" "$chroot/$key" || fail "a writer of $peer beside readers"
    works run --shared "$key" -- true
    stops 0
    # Now its reader is alone.
    refuses 75 '' run "$key" -- true
    works run --shared "$key" -- true
    rm there
    wait "$pid"
    "$peer" hold "$3" "$chroot/$key" there 3>&- &
    pid=$!
    wait_until '[ -e there ]' 60
    refuses 75 '' run --shared "$key" -- true
    start run --shared --wait 60s "$key" -- true
    rm there
    wait "$pid"
    finishes 0 "$bg" 60
}

@test "Curator's read-write lock and --shared share a lock" {
    need_curator
    shares curator read write
}

@test "kazoo's ReadLock and WriteLock and --shared share a lock" {
    need_kazoo
    shares kazoo ReadLock WriteLock
}

@test "kazoo sees the holder, and status shows a lock of kazoo as foreign" {
    need_kazoo
    kazoo hold Lock "$chroot/$key" there 3>&- &
    wait_until '[ -e there ]' 60
    status_is '.state == "foreign"'
    rm there
    wait $!
    wait_until '! dlock status "$key" >/dev/null'
}
