#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# The examples that other programs read: systemd, Kubernetes, GitLab, Docker Compose.  What they would run is taken out
# of them and run.

load ../lib/examples
load ../lib/systemd

setup() {
    begin_example
    rcli a flushall >/dev/null
}
teardown() {
    machine_stop
    test_end
}

# exec_start UNIT: what it runs, with the programs found here.
exec_start() { sed -n 's/^ExecStart=//p' "$examples/$1" | sed "s|/usr/local/bin/|$PWD/bin/|"; }

# ---------------------------------------------------------------------- systemd

# verify: what systemd complains of in the units, where /usr/local/bin is the folder "bin".
verify() {
    local new=(unshare --mount)
    [ "$(id -u)" -eq 0 ] || new+=(--map-root-user)
    # Only complaints that name these files count; others are about this machine.
    attempt "${new[@]}" sh -c 'mount --bind bin /usr/local/bin &&
        SYSTEMD_UNIT_PATH=$1: systemd-analyze verify --man=no --recursive-errors=no "$1"/*.service "$1"/*.timer' \
        sh "$(realpath "$examples")"
    complaints=$(grep -E 'nightly|leader' <<<"$stderr") || true
}

@test "systemd accepts the units, and finds dlock where make install and the packages put it" {
    command -v systemd-analyze >/dev/null || must_run "there is no systemd-analyze"
    stub nightly-backup
    stub scheduler
    rm bin/dlock
    cp "$DLOCK" bin/dlock
    verify
    exits 0
    [ -z "$complaints" ] || fail "expected no complaint about the units"
    for folder in /usr/local/bin /usr/bin; do
        [[ :$(systemd-path search-binaries-default): == *:$folder:* ]] || fail "systemd does not search $folder"
    done
}

@test "nightly.service: one host runs the job, the others do not fail" {
    stub nightly-backup "echo x >>'$PWD/runs'"
    passes sh -c "exec $(exec_start nightly.service)"
    passes sh -c "exec $(exec_start nightly.service)"
    [ "$(wc -l <runs)" -eq 1 ]
    stub nightly-backup 'exit 3'
    rcli a del nightly >/dev/null
    yields 3 sh -c "exec $(exec_start nightly.service)"
    is_free nightly
}

@test "leader.service: one host leads, and when it is stopped another one does" {
    stub scheduler "echo \$PPID >>'$PWD/leaders'" 'exec sleep 60'
    start $(exec_start leader.service | cut -d ' ' -f 2-)
    first=$bg
    wait_until '[ -s leaders ]'
    start $(exec_start leader.service | cut -d ' ' -f 2-)
    second=$bg
    works status scheduler
    [ "$(cat leaders)" = "$first" ]
    terminate "$first"
    wait_until '[ "$(wc -l <leaders)" -eq 2 ]'
    [ "$(tail -n 1 leaders)" = "$second" ]
    terminate "$second"
}

# machine_with UNIT...: a machine with these units, whose only node is its redis.service, which does not run yet.
machine_with() {
    local name
    rm bin/dlock
    cp "$DLOCK" bin/dlock
    cp "$(command -v "$REDIS_SERVER")" bin/redis
    mkdir units
    printf '[Service]\nExecStart=redis --port 6379 --bind 127.0.0.1 --save ""\n' >units/redis.service
    for name; do
        cp "$examples/$name" units/
        [[ $name == *.service ]] || continue
        mkdir "units/$name.d"
        printf '[Service]\nEnvironment=DLOCK_NODES=redis://127.0.0.1 DLOCK_CONFIG=/dev/null\nStandardOutput=append:%s\nStandardError=append:%s\n' \
            "$PWD/runs" "$PWD/errors" >"units/$name.d/test.conf"
    done
    machine_start
}

# leads N: the scheduler has been started N times.
leads() { [ -e runs ] && [ "$(wc -l <runs)" -ge "$1" ]; }

@test "leader.service under systemd: the unit survives an outage that ends its daemon, and leads again afterwards" {
    stub scheduler 'echo leads' 'exec sleep 60'
    machine_with leader.service
    # Faster, else the test would take a minute.
    printf 'RestartSec=50ms\n' >>units/leader.service.d/test.conf
    sed -i 's/--ttl 15s --kill-after 4s/--ttl 3s --kill-after 500ms/' units/leader.service
    in_machine systemctl daemon-reload
    in_machine systemctl start redis.service leader.service
    wait_until 'leads 1'
    in_machine systemctl stop redis.service
    # More than the five starts within ten seconds that systemd allows by default.
    before=$(unit leader.service NRestarts)
    state='[ "$(unit leader.service ActiveState)" = failed ]'
    wait_until "[ \"\$(unit leader.service NRestarts)\" -ge $((before + 8)) ] || $state" 30
    ! eval "$state" || fail "systemd has given up"
    before=$(wc -l <runs)
    in_machine systemctl start redis.service
    wait_until "leads $((before + 1))"
    in_machine systemctl stop leader.service
    [ "$(unit leader.service Result)" = success ]
}

# turned_on: the machine was off at the time of the nightly.timer; returns when its service has begun.
turned_on() {
    local before
    before=$(unit nightly.service InvocationID)
    in_machine touch -d '3 days ago' /var/lib/systemd/timers/stamp-nightly.timer
    in_machine systemctl restart nightly.timer
    wait_until "[ \"\$(unit nightly.service InvocationID)\" != '$before' ]"
}

@test "nightly.timer under systemd: a host that was off waits for the server, and no job runs a second time" {
    stub nightly-backup 'echo x'
    machine_with nightly.timer nightly.service
    turned_on
    # Without --node-wait it would fail now.
    wait_until '[ -n "$(in_machine pgrep -x dlock)" ]'
    in_machine systemctl start redis.service
    wait_until '[ "$(unit nightly.service ActiveState)" = inactive ]' 30
    [ "$(unit nightly.service Result)" = success ]
    [ "$(cat runs)" = x ] || fail "expected one run"
    # Another host, later: it has the same lock.
    turned_on
    wait_until '[ "$(unit nightly.service ActiveState)" = inactive ]'
    [ "$(unit nightly.service Result)" = success ]
    [ "$(cat runs)" = x ] || fail "expected no further run"
}

# ------------------------------------------------------------ Kubernetes, GitLab

@test "the CronJob runs its command once, the same job elsewhere is skipped, and a failure is tried again" {
    yaml kubernetes-cronjob.yaml '[d["apiVersion"], d["kind"], d["spec"]["schedule"], d["metadata"]["name"]]' >lines
    [ "$(tr '\n' ' ' <lines)" = 'batch/v1 CronJob 15 3 * * * billing ' ]
    yaml kubernetes-cronjob.yaml '[x for c in d["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        for x in c["command"] + c["args"]]' >argv
    mapfile -t argv <argv
    yaml kubernetes-cronjob.yaml '[e["name"] for c in d["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        for e in c["env"]]' >names
    while read -r name; do grep -qF "$name" "$top_srcdir/man/dlock.1" || fail "no variable of dlock: $name"; done <names
    stub send-invoices "echo x >>'$PWD/runs'" "[ \"\$(wc -l <'$PWD/runs')\" -gt 1 ]"
    # Where the init container has put it; see tests/slow/static.bats.
    [ "${argv[0]}" = /dlock/dlock ]
    argv[0]=dlock
    yields 1 "${argv[@]}"
    passes "${argv[@]}"
    for i in "${!argv[@]}"; do [ "${argv[i]}" != --wait ] || argv[i + 1]=300ms; done
    stalls_note
    attempt "${argv[@]}"
    waited_in_vain 0
    [ "$(wc -l <runs)" -eq 2 ]
}

@test "the CI job deploys under the lock, and fails if it has to wait for too long" {
    yaml gitlab-ci.yml 'd["deploy"]["script"]' >script
    [ "$(wc -l <script)" -eq 1 ]
    printf '#!/bin/sh\necho "deploys to $1 as $DLOCK_KEY"\n' >deploy
    chmod +x deploy
    ln -s "$DLOCK" dlock # the artifact of the job before; see tests/slow/static.bats
    export CI_PROJECT_PATH=shop/web CI_PIPELINE_ID=17
    passes sh -eu script
    prints 'deploys to production as deploy-production'
    take deploy-production
    sed -i 's/--wait 30m/--wait 100ms/' script
    stalls_note
    attempt sh -eu script
    waited_in_vain 75 deploy-production
}

# ---------------------------------------------------------------- Docker Compose

@test "the five nodes of docker-compose.yml start and keep a lock" {
    ports=
    yaml docker-compose.yml 'd["services"]' >names
    [ "$(wc -l <names)" -eq 5 ]
    while read -r name; do
        port=$(yaml docker-compose.yml "d['services']['$name']['ports']")
        [[ $port =~ ^127.0.0.1:[0-9]+:6379$ ]] || fail "$name: $port"
        ports+=" ${port%:*}"
        yaml docker-compose.yml "d['services']['$name']['command']" >argv
        mapfile -t argv <argv
        [ "${argv[0]}" = redis-server ]
        dir=$(server_dir "$name")
        mkdir -p "$dir"
        spawn "$name" "$REDIS_SERVER" "${argv[@]:1}" --port 0 --unixsocket "$dir/s" --dir "$dir"
        wait_until "redis_answers $name"
    done <names
    # They are the nodes that the comment in the file names.
    grep -qxF "#   export DLOCK_NODES='${ports# }'" "$examples/docker-compose.yml" || fail "expected ${ports# }"
    DLOCK_NODES=$(while read -r name; do node "$name"; done <names | tr '\n' ' ')
    works run "$key" -- true
    # A restart keeps what was granted.
    works acquire --ttl 60s "$key"
    token=$output
    wait_until "[ \"\$(rcli node1 get '$key')\" = '$token' ]"
    redis_stop node1
    spawn node1 "$REDIS_SERVER" "${argv[@]:1}" --port 0 --unixsocket "$(server_dir node1)/s" --dir "$(server_dir node1)"
    wait_until "[ \"\$(rcli node1 get '$key')\" = '$token' ]"
}
