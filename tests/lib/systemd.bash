# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2016,SC2154
#
# A machine that systemd has booted, beside redis.bash: process 1 of namespaces of its own.  It shares the files of this
# machine, but for /run and the state of systemd; its network is a loopback interface of its own, its units are those in the
# folder "units", and its /usr/local/bin is the folder "bin".

machine_cgroup=/sys/fs/cgroup/dlock-test.$BASHPID

# with_cgroups COMMAND [ARG...]: run it where the cgroups of this machine are mounted, to the outside invisibly.
with_cgroups() {
    "$@" --mount sh -c '[ -d /sys/fs/cgroup ] || mount -t sysfs sysfs /sys || exit
        mount -t cgroup2 cgroup2 /sys/fs/cgroup && eval "$2"' sh "$machine_cgroup" "$inside_cgroups"
}

# machine_start: returns when it takes commands.
machine_start() {
    local target systemd=/usr/lib/systemd/systemd
    [ -x "$systemd" ] || systemd=/lib/systemd/systemd
    [ -x "$systemd" ] || must_run "there is no systemd"
    [ "$(id -u)" -eq 0 ] || must_run "only root can boot systemd"
    local inside_cgroups='mkdir "$1"'
    attempt with_cgroups unshare
    [ "$status" -eq 0 ] || must_run "no cgroup can be made here, in which systemd boots: ${stderr##*$'\n'}"
    mkdir -p bin units
    for target in machine basic network-online shutdown sysinit time-set time-sync timers; do
        printf '[Unit]\nDefaultDependencies=no\n' >"units/$target.target"
    done
    cat >boot <<END
umount /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup && mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/lib/systemd &&
    mount --bind '$PWD/bin' /usr/local/bin && mkdir -p /var/lib/systemd/timers &&
    exec env -i PATH=/usr/local/bin:/usr/bin:/bin container=dlock-test SYSTEMD_UNIT_PATH='$PWD/units' \\
        $systemd --system --unit=machine.target --log-target=console --show-status=no
END
    inside_cgroups="echo \$\$ >\"\$1/cgroup.procs\" && exec unshare --pid --fork --kill-child --ipc --uts --net --cgroup \\
        --mount --mount-proc sh '$PWD/boot'"
    with_cgroups spawn machine unshare
    wait_until 'in_machine systemctl is-active --quiet machine.target 2>/dev/null' ||
        fail "systemd did not boot: $(cat "$(server_dir machine)/out")"
}

# in_machine COMMAND [ARG...]
in_machine() { nsenter --target "$(pgrep -P "$(server_pid machine)" | grep .)" --all --root "$@"; }

# unit NAME PROPERTY: what systemd says of it.
unit() { in_machine systemctl show --property "$2" --value "$1"; }

# machine_stop: with all that runs there.
machine_stop() {
    [ -e "$(server_dir machine)/pid" ] || return 0
    redis_stop machine
    local inside_cgroups='find "$1" -depth -type d -exec rmdir {} + 2>/dev/null'
    wait_until 'with_cgroups unshare'
}
