# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
#
# The temporary servers of a test file: Redis servers, and what servers.py offers, among it proxies.  redis.bash loads it.
# Every server has a name and its own folder, listens on a unix socket there (and on a TCP port only for tests of TCP), and
# ends with teardown_file, or when bats or make is killed (watch_parents).

# servers_root: the folder of the servers of this file.  The path of a unix socket has at most
# about 100 bytes, so a long TMPDIR is not used.
servers_root() {
    find_root
    echo "$root"
}

# find_root: the same in $root.
find_root() {
    root=$BATS_FILE_TMPDIR
    [ ${#root} -gt 60 ] || return 0
    [ -f "$root/root" ] || mktemp -d /tmp/dlock-test.XXXXXX >"$root/root"
    root=$(<"$root/root")
}

server_dir() {
    local root
    find_root
    echo "$root/$1"
}
server_pid() {
    local root
    find_root
    echo "$(<"$root/$1/pid")"
}

# node NAME: the URL of the server: a path, or host:port for redis_start_tcp.
node() {
    local node root
    find_node "$1"
    echo "$node"
}

# find_node NAME: the same in $node.
find_node() {
    find_root
    node=$root/$1/s
    [ ! -f "$root/$1/port" ] || node=127.0.0.1:$(<"$root/$1/port")
}

port_of() {
    local root
    find_root
    echo "$(<"$root/$1/port")"
}

# spawn NAME COMMAND...: a background process without the descriptors by which bats detects
# the end of a test.  It replaces an older process of that name.
spawn() {
    local dir fd root
    follow_failures # in setup_file, too
    watch_parents
    redis_stop "$1"
    find_root
    dir=$root/$1
    [ -d "$dir" ] || mkdir -p "$dir"
    shift
    : >"$dir/out" # it may have output of the older one
    (
        for fd in 3 4 5 6 7 8 9; do eval "exec $fd>&-"; done
        exec "$@"
    ) </dev/null >"$dir/out" 2>&1 &
    echo $! >"$dir/pid"
    start_time $! >"$dir/born"
    disown $!
}

# rcli NAME ARG...: redis-cli on that server, or rcli.c, which starts sooner, if it was built and can do it.  In a subshell
# that does nothing else, only=exec saves a process.
[ -x "${RCLI-}" ] || RCLI=
rcli() {
    local root
    find_root
    if [[ -n $RCLI && -n ${2-} && $2 != -* && $2 != monitor && -z ${REDISCLI_AUTH-} ]]; then
        ${only-} "$RCLI" "$root/$1/s" "${@:2}"
    else
        ${only-} "$REDIS_CLI" -s "$root/$1/s" "${@:2}"
    fi
}

redis_answers() {
    case $(only='exec' rcli "$1" ping 2>/dev/null) in
        PONG* | *NOAUTH* | *LOADING* | *MASTERDOWN* | *MISCONF* | *NOPERM*) return 0 ;;
    esac
    return 1
}

# redis_start NAME [redis-server argument...]: without persistence and TCP.
redis_start() {
    local name=$1 dir root
    find_root
    dir=$root/$name
    shift
    spawn "$name" "$REDIS_SERVER" --port 0 --unixsocket "$dir/s" --dir "$dir" --save '' \
        --appendonly no --daemonize no --logfile "$dir/log" "$@"
    # Its socket exists before it replies.
    if ! wait_until "[ -S '$dir/s' ] && redis_answers '$name' || ! alive $!" 30 || [ ! -S "$dir/s" ] || ! alive $!; then
        tail -n 5 "$dir/log" "$dir/out" >&2
        return 1
    fi
}

# redis_start_tcp NAME [ADDRESS [redis-server argument...]]: also on a free TCP port.
redis_start_tcp() {
    local name=$1 address=${2:-127.0.0.1} dir port i
    dir=$(server_dir "$name")
    shift
    [ $# -eq 0 ] || shift
    for ((i = 0; i < 20; i++)); do
        port=$((20000 + RANDOM % 12768))
        # A server that cannot listen on the port ends.
        if redis_start "$name" --port "$port" --bind "$address" "$@" 2>/dev/null; then
            echo "$port" >"$dir/port"
            return
        fi
        redis_stop "$name"
    done
    echo "no free port for $name" >&2
    return 1
}

# free_port: $port is one of 127.0.0.1 on which nobody listens, for a server that another one there would be taken for.
free_port() { while port=$((20000 + RANDOM % 12768)) && (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done; }

# redis_stop NAME...: at once, like a crash; also a server that was stopped by SIGSTOP.
redis_stop() {
    local dir root name
    find_root
    for name; do
        dir=$root/$name
        [ -f "$dir/pid" ] || continue
        end_server "$dir"
        rm -f "$dir"/{pid,born,s,port,rules,proxy.log} "$dir"/*.sock
    done
}

# redis_fill NAME: with data that takes a few seconds to load, saved for the next start.  Few keys, each with a long pause:
# of thousands of short ones, a busy machine makes far more than seconds.
redis_fill() {
    rcli "$1" config set rdbcompression no >/dev/null
    rcli "$1" eval 'for i = 1, 300 do redis.call("set", "filler" .. i, string.rep("x", 500)) end' 0 >/dev/null
    rcli "$1" save
}

# redis_start_loading NAME: it answers, but still loads its data.
redis_start_loading() { redis_start "$1" --key-load-delay 10000 --loading-process-events-interval-bytes 1024; }

# redis_freeze NAME..., redis_thaw NAME...
redis_freeze() { redis_signal STOP "$@"; }
redis_thaw() { redis_signal CONT "$@"; }
redis_signal() {
    local name root
    find_root
    for name in "${@:2}"; do kill "-$1" "$(<"$root/$name/pid")"; done
}

# runs NAME: the process of the server exists.
runs() {
    local root
    find_root
    [ -f "$root/$1/pid" ] && alive "$(<"$root/$1/pid")"
}

# redis_stop_all: every server of this file, for teardown_file.
redis_stop_all() {
    local root pidfile
    root=$(servers_root)
    for pidfile in "$root"/*/pid; do
        [ ! -f "$pidfile" ] || end_server "${pidfile%/pid}"
    done
    [ ! -s "$BATS_FILE_TMPDIR/watch" ] || end_process "$(<"$BATS_FILE_TMPDIR/watch")"
    [ "$root" = "$BATS_FILE_TMPDIR" ] || rm -rf "$root"
}

# is_ready NAME: a server of ours says so.
is_ready() {
    local root
    find_root
    [[ $'\n'$(<"$root/$1/out") == *$'\nREADY'* ]]
}

# servers_start NAME ARG...: tests/lib/servers.py; its sockets are in server_dir NAME.
servers_start() {
    local name=$1 dir root
    find_root
    dir=$root/$name
    shift
    spawn "$name" "$PYTHON" "$lib_dir/servers.py" "$dir" "$@"
    if ! wait_until "is_ready '$name' || ! alive $!" 30 || ! is_ready "$name"; then
        cat "$dir/out" >&2
        return 1
    fi
}

# proxy_start NAME SERVER [RULE...]: a proxy between dlock and a Redis, which is started if it does not run; see servers.py.
proxy_start() {
    local name=$1 server=$2
    shift 2
    runs "$server" || redis_start "$server"
    servers_start "$name" "proxy=$(server_dir "$server")/s"
    proxy_rules "$name" "$@"
}

# proxy_rules NAME [RULE...]: replace the rules of the proxy.
proxy_rules() {
    local root rules
    find_root
    rules=$root/$1/rules
    shift
    [ ! -f "$rules" ] || [ "$(<"$rules")" != "$*" ] || return 0
    echo "$*" >"$rules.new"
    mv "$rules.new" "$rules"
}

proxy_node() { echo "$(server_dir "$1")/proxy.sock"; }
proxy_log() { cat "$(server_dir "$1")/proxy.log"; }

# ---- the lying server: servers_start liar says tcp/says

liar() { echo "$(server_dir liar)/says.sock"; }
liar_tcp() { echo "127.0.0.1:$(cat "$(server_dir liar)/says.port")"; }

# says COMMAND TEXT: the reply of the lying server from now on; see servers.py.
says() {
    printf '%s' "$2" >"$(server_dir liar)/new"
    mv "$(server_dir liar)/new" "$(server_dir liar)/says.$1"
}

bulk() { printf '$%d\\r\\n%s\\r\\n' "$(printf %b "$1" | wc -c)" "$1"; }

# holder NUMBER TEXT: a reply of acquire.lua for a held lock, with these as its numbers and texts.
holder() {
    local n=":$1\r\n" s
    s=$(bulk "$2")
    printf '*12\\r\\n:0\\r\\n%s' "$s$n$n$s$s$n$n$n$s$n$n"
}
