#!/bin/sh
# SPDX-License-Identifier: MIT
#
# demo.sh [zookeeper]
#
# Show and check the main functions of dlock on temporary Redis servers.  They listen only on unix sockets
# in a temporary folder.  DLOCK and REDIS_SERVER name the programs; the defaults are dlock and redis-server
# in PATH.  The exit status is 0 only if every result is the promised one.
#
# With the argument the same is shown on a temporary ensemble of three ZooKeeper servers, which listen only on
# 127.0.0.1.  This needs Java and Debian's package zookeeper.

# shellcheck disable=SC2016 # commands are expanded when they run
set -eu

servers=
jobs=
folder=$(mktemp -d "${TMPDIR:-/tmp}/dlock-demo.XXXXXX")
# A unix socket's path fits into about 100 bytes.
if [ ${#folder} -gt 80 ]; then
    rmdir "$folder"
    folder=$(mktemp -d /tmp/dlock-demo.XXXXXX)
fi

clean_up() {
    trap - EXIT
    for pid in $jobs $servers; do
        kill -KILL "$pid" 2>/dev/null || continue
        wait "$pid" 2>/dev/null || :
    done
    rm -rf "$folder"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# -- Showing and checking ---------------------------------------------------

bold='' plain=''
if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; then
    bold=$(printf '\033[1m') plain=$(printf '\033[0m')
fi

say() {
    printf '\n# %s\n' "$@"
}

fail() {
    printf 'demo: %s\n' "$*" >&2
    exit 1
}

# show STATUS COMMAND: run it and show it like a terminal.  Its output is kept in the file "out".
show() {
    printf '%s$ %s%s\n' "$bold" "$2" "$plain"
    status=0
    eval "$2" >out 2>&1 || status=$?
    cat out
    if [ "$status" -ne 0 ]; then
        printf '[exit status %s]\n' "$status"
    fi
    [ "$status" -eq "$1" ] || fail "expected exit status $1: $2"
}

# prints PATTERN: the last command must have printed it.
prints() {
    grep -q -- "$1" out || fail "the last command did not print: $1"
}

# begin COMMAND: run it in the background; its process is $job.
begin() {
    printf '%s$ %s &%s\n' "$bold" "$1" "$plain"
    eval "$1 &"
    job=$!
    jobs="$jobs $job"
}

# finished STATUS: the last job must end by itself with this status.
finished() {
    status=0
    wait "$job" 2>/dev/null || status=$?
    jobs=
    [ "$status" -eq "$1" ] || fail "the job ended with $status instead of $1"
}

# until_true WHAT CONDITION [SECONDS]: wait for the condition, at most ten seconds.
until_true() {
    end=$(($(date +%s) + ${3:-10}))
    until eval "$2"; do
        [ "$(date +%s)" -lt "$end" ] || fail "timed out: $1"
        sleep 0.05
    done
}

# held_ms KEY: how long it has been held, in milliseconds.
held_ms() {
    dlock status --json "$1" | sed -n 's/.*"held_ms":\([0-9][0-9]*\).*/\1/p'
}

has_ended() {
    ! kill -0 "$1" 2>/dev/null || grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null
}

# -- Servers ----------------------------------------------------------------

program=$(command -v "${DLOCK:-dlock}") || fail "there is no ${DLOCK:-dlock}"
service=${1:-redis}
case $service in
    redis)
        redis=$(command -v "${REDIS_SERVER:-redis-server}") || fail "there is no ${REDIS_SERVER:-redis-server}"
        ;;
    zookeeper)
        jar=${ZOOKEEPER_JAR:-/usr/share/java/zookeeper.jar}
        command -v java >/dev/null || fail 'there is no java; on Debian: apt install default-jre-headless zookeeper'
        [ -f "$jar" ] || fail "there is no $jar; on Debian: apt install zookeeper"
        ;;
    *) fail "not a service: $service" ;;
esac
mkdir "$folder/bin"
ln -s "$(realpath "$program")" "$folder/bin/dlock"
PATH=$folder/bin:$PATH
cd "$folder"

# Ignore settings of the user.
unset DLOCK_TTL DLOCK_WAIT DLOCK_NODE_TIMEOUT DLOCK_LABEL DLOCK_PREFIX DLOCK_PASSWORD DLOCK_TOKEN
unset DLOCK_RESTART_GUARD
unset REDISCLI_AUTH
echo 'output key,state,ttl,owner,label,held,nodes' >config # what fits into 80 columns
export DLOCK_CONFIG="$folder/config"
export DLOCK_NODE_TIMEOUT=2s # the tenth of a lease of five seconds is little on a busy machine
export DLOCK_NODES="$folder/redis.sock"

# redis NAME: start a server; its process is $server.
redis() {
    "$redis" --port 0 --unixsocket "$folder/$1.sock" --dir "$folder" --save '' --appendonly no \
        --daemonize no --logfile "$1.log" &
    server=$!
    servers="$servers $server"
}

# answers NAME: wait until that server replies.
answers() {
    until_true "$1 answers" "ready '$folder/$1.sock' || has_ended $server"
    ready "$folder/$1.sock" || fail "redis-server ended: $(tail -n 3 "$1.log" 2>/dev/null)"
}

ready() {
    status=0
    dlock status --node "$1" nothing >/dev/null 2>&1 || status=$?
    [ "$status" -le 1 ]
}

# zookeeper N: start the server; its process is $server.
zookeeper() {
    java -Xmx64m -XX:TieredStopAtLevel=1 -cp "$jar" org.apache.zookeeper.server.quorum.QuorumPeerMain \
        "$folder/$1/zoo.cfg" >"$1/log" 2>&1 &
    server=$!
    servers="$servers $server"
}

# ensemble: three servers; their processes are $first, $second and $third.
ensemble() {
    base=$((10000 + $$ % 2000 * 10))
    DLOCK_NODES=zk://127.0.0.1:$((base + 1)),127.0.0.1:$((base + 2)),127.0.0.1:$((base + 3))/locks
    for n in 1 2 3; do
        mkdir $n
        echo $n >$n/myid
        cat >$n/zoo.cfg <<CONFIG
dataDir=$folder/$n
tickTime=500
initLimit=20
syncLimit=10
maxSessionTimeout=40000
admin.enableServer=false
server.1=127.0.0.1:$((base + 4)):$((base + 7));127.0.0.1:$((base + 1))
server.2=127.0.0.1:$((base + 5)):$((base + 8));127.0.0.1:$((base + 2))
server.3=127.0.0.1:$((base + 6)):$((base + 9));127.0.0.1:$((base + 3))
CONFIG
    done
    zookeeper 1
    first=$server
    zookeeper 2
    second=$server
    zookeeper 3
    third=$server
    for n in 1 2 3; do
        until_true "server $n answers" "ready zk://127.0.0.1:$((base + n)) || has_ended $first || has_ended $second || has_ended $third" 60
        ready zk://127.0.0.1:$((base + n)) || fail "server $n does not answer: $(tail -n 3 ./?/log)"
    done
}

if [ "$service" = redis ]; then
    redis redis
    answers redis
    printf '# A temporary Redis server: DLOCK_NODES=%s\n' "$DLOCK_NODES"
else
    ensemble
    printf '# A temporary ensemble of three ZooKeeper servers: DLOCK_NODES=%s\n' "$DLOCK_NODES"
fi

# -- acquire, release -------------------------------------------------------

say 'Take a lock.  Its token is needed to release it.'
show 0 'token=$(dlock acquire --label "release 1.2" deploy)'
show 0 'dlock status deploy'
prints '^deploy  *held .*release 1.2'

say 'Another client does not get it.  The exit status is 75.'
show 75 'dlock acquire deploy'
prints '^dlock: deploy: held by '

say 'Release it.'
show 0 'dlock release deploy "$token"'
show 1 'dlock status deploy'
prints '^deploy  *free'

# -- run --------------------------------------------------------------------

cat >backup <<'SCRIPT'
#!/bin/sh
until [ -e finish ]; do sleep 0.1; done
echo "backup: done; my fence was $DLOCK_FENCE"
SCRIPT
chmod +x backup

say 'Hold a lock while a command runs, which takes longer than its lease of 5 s.'
show 0 'cat backup'
begin 'dlock run --ttl 5s nightly -- ./backup'
until_true 'the lock is held' '[ -n "$(held_ms nightly)" ]'

say 'A second host has the same line in its crontab.  Its job is not started.'
show 75 'dlock run --ttl 5s nightly -- ./backup'
prints 'held by .*(backup)'

say 'The lease is renewed in the background: the lock is held longer than its TTL.'
for ms in 2000 4000 6000; do
    until_true "the lock is held for $ms ms" "[ \"\$(held_ms nightly)\" -ge $ms ] 2>/dev/null"
    show 0 'dlock status nightly'
    prints '^nightly  *held  *[0-9.]*m\{0,1\}s '
done
show 0 'touch finish'
finished 0
show 1 'dlock status nightly'

# -- A holder that is killed ------------------------------------------------

cat >stubborn <<'SCRIPT'
#!/bin/sh
echo $$ >pid.new
mv pid.new pid
exec sleep 60
SCRIPT
chmod +x stubborn

say 'Kill dlock itself, so that it cannot react.  Its command dies with it.'
begin 'dlock run --ttl 8s nightly -- ./stubborn'
until_true 'the command has started' '[ -e pid ]'
show 0 "kill -KILL $job"
finished 137
until_true 'the command has ended' 'has_ended "$(cat pid)"'
printf '# The command, process %s, has ended.\n' "$(cat pid)"

say 'The lock is free when its lease has ended, not before.'
show 0 'dlock status nightly'
show 75 'dlock run nightly -- echo mine'
show 0 'dlock run --wait 30s nightly -- echo mine'
prints '^mine$'

# -- The leader of an ensemble dies --------------------------------------------

rm finish
if [ "$service" = zookeeper ]; then
    say 'One of the three servers leads the others.  It dies while the command runs.'
    begin 'dlock run --ttl 10s nightly -- ./backup'
    until_true 'the lock is held' '[ -n "$(held_ms nightly)" ]'
    show 1 'dlock doctor --ttl 10s' # a warning: this host alone can reach these servers
    prints 'ok  *lock '
    leader=$(sed -n 's/^  ok  *leader  *127\.0\.0\.1:.*\([0-9]\)$/\1/p' out)
    case $leader in
        1) leader=$first ;;
        2) leader=$second ;;
        3) leader=$third ;;
        *) fail "no server leads: $leader" ;;
    esac
    show 0 "kill -KILL $leader"
    until_true 'it has ended' "has_ended $leader"

    say 'The others elect another one.  The command is not affected, and nobody else gets the lock.'
    until_true 'another server leads' 'ready "$DLOCK_NODES"' 30
    until_true 'the lock is held on' '[ "$(held_ms nightly)" -ge 11000 ]' 30
    show 75 'dlock run nightly -- echo mine'
    show 0 'touch finish'
    finished 0
    show 0 'dlock run nightly -- echo mine'
    prints '^mine$'
    printf '\n# Everything came out as promised.\n'
    exit 0
fi

# -- Five nodes -------------------------------------------------------------

say 'Five independent Redis nodes: a majority of them decides who holds the lock.'
DLOCK_NODES=
for name in n1 n2 n3 n4 n5; do
    redis $name
    answers $name
    DLOCK_NODES="$DLOCK_NODES $folder/$name.sock"
    [ $name != n1 ] || first=$server
    [ $name != n4 ] || fourth=$server
done
show 69 'dlock run nightly -- echo mine'
prints 'grants nothing for another'

say 'They have just started, and may have forgotten locks.' 'These have not, so we disable the guard.'
show 0 'export DLOCK_RESTART_GUARD=0'
begin 'dlock run --ttl 5s nightly -- ./backup'
until_true 'all five hold the lock' 'dlock status nightly | grep -q "^nightly  *held .* 5/5$"'
show 0 'dlock status nightly'
prints ' 5/5$'

say 'Two of them die while the command runs.' 'It is not affected, and nobody else gets the lock.'
show 0 "kill -KILL $first $fourth"
until_true 'they have ended' 'has_ended $first && has_ended $fourth'
died=$(held_ms nightly)
for ms in 2700 5400; do
    until_true "the lock is held on" "[ \"\$(held_ms nightly)\" -ge $((died + ms)) ] 2>/dev/null"
    show 0 'dlock status nightly'
    prints '^nightly  *held .* 3/5$'
done
show 75 'dlock run nightly -- echo mine'
show 0 'touch finish'
finished 0
show 0 'dlock run nightly -- echo mine'
prints '^mine$'

printf '\n# All results are as promised.\n'
