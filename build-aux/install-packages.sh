#!/bin/sh
# SPDX-License-Identifier: MIT
#
# install-packages.sh
#
# Install what is missing to build and test dlock, with the system's package manager: apt, dnf or apk.  ./bootstrap
# calls it.  It prints the names of the packages that it installed, so nothing where nothing was missing; messages go to
# standard error.  What is still missing afterwards is a message, not a failure: dlock can be built without what only
# its tests need.

set -eu
# The system's own tools, which a user or cron may not have there.
PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin
export PATH

# What is needed, and the packages that bring it on Debian, Fedora and Alpine and their kin.
needs='
cc                      gcc                gcc                      gcc
header:stdio.h          libc6-dev          glibc-devel              musl-dev
make                    make               make                     make
autoconf                autoconf           autoconf                 autoconf
automake                automake           automake                 automake
pkg-config              pkg-config         pkgconf-pkg-config       pkgconf
lua5.1                  liblua5.1-0-dev    compat-lua-devel         lua5.1-dev
library:hiredis:0.14    libhiredis-dev     hiredis-devel            hiredis-dev
redis-server            redis-server       /usr/bin/redis-server    redis
redis-cli               redis-tools        /usr/bin/redis-cli       redis
bash                    bash               bash                     bash
bats                    bats               bats                     bats
python3                 python3            python3                  python3
python3:redis           python3-redis      python3-redis            py3-redis
jq                      jq                 jq                       jq
openssl                 openssl            openssl                  openssl
patch                   patch              patch                    patch
header:openssl/ssl.h    libssl-dev         openssl-devel            openssl-dev
mandoc                  mandoc             mandoc                   mandoc
ps                      procps             procps-ng                procps
flock                   util-linux         util-linux-core          flock
script                  bsdutils           /usr/bin/script          util-linux-misc
xz                      xz-utils           xz                       xz
'

say() {
    printf 'install-packages: %s\n' "$*" >&2
}

has_command() {
    command -v "$1" >/dev/null 2>&1
}

has() {
    case $1 in
        cc)
            has_command "${CC:-cc}" || has_command gcc || has_command clang
            ;;
        header:*)
            printf '#include <%s>\n' "${1#header:}" |
                $(command -v "${CC:-cc}" gcc clang | head -n 1) -E - >/dev/null 2>&1
            ;;
        library:*)
            has_command pkg-config &&
                pkg-config --atleast-version="${1##*:}" "$(echo "$1" | cut -d : -f 2)"
            ;;
        lua5.1)
            has_command pkg-config && { pkg-config lua5.1 || pkg-config lua-5.1; }
            ;;
        python3:*)
            python3 -c "import ${1#python3:}" >/dev/null 2>&1 ||
                /usr/bin/python3 -c "import ${1#python3:}" >/dev/null 2>&1
            ;;
        *)
            has_command "$1"
            ;;
    esac
}

# Print one column of the table for each thing that is missing.
missing() {
    printf '%s' "$needs" | while read -r need apt dnf apk; do
        if [ -z "$need" ] || has "$need"; then
            continue
        fi
        case $1 in
            need) echo "$need" ;;
            apt) echo "$apt" ;;
            dnf) echo "$dnf" ;;
            apk) echo "$apk" ;;
        esac
    done | sort -u
}

# -- The package managers ---------------------------------------------------

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

apt_lists_empty() {
    [ -z "$(find /var/lib/apt/lists -name '*_Packages*' 2>/dev/null | head -n 1)" ]
}

apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
        --no-install-recommends -o Dpkg::Use-Pty=0 "$@"
}

# Debian starts a service when it is installed, and again at every boot.  The tests start a Redis
# of their own, so the machine is left without another one.
apt_install_quietly() {
    policy=/usr/sbin/policy-rc.d
    ours=
    if ! has redis-server && [ ! -e "$policy" ]; then
        as_root sh -c "printf '#!/bin/sh\nexit 101\n' >$policy && chmod +x $policy"
        ours=yes
        trap 'as_root rm -f "$policy"' EXIT
    fi
    if apt_lists_empty || ! apt_install "$@"; then
        as_root apt-get update -q
        apt_install "$@"
    fi
    if [ -n "$ours" ]; then
        as_root rm -f "$policy"
        trap - EXIT
        as_root update-rc.d redis-server disable >/dev/null 2>&1 || :
        say "the service redis-server is installed but neither started nor enabled"
    fi
}

install_missing() {
    for manager in apt-get dnf apk; do
        has_command "$manager" && break
        manager=
    done
    if [ -z "$manager" ]; then
        say "please install what gives this system the following, then run ./bootstrap again:"
        missing need | sed 's/^/install-packages:     /' >&2
        exit 1
    fi
    # shellcheck disable=SC2046 # words are what is wanted
    set -- $(missing "${manager%-get}")
    if [ "$(id -u)" -ne 0 ] && ! has_command sudo; then
        say "please install the following as root, then run ./bootstrap again:"
        say "    $*"
        exit 1
    fi
    say "installing $*"
    echo "$*"
    case $manager in
        apt-get) apt_install_quietly "$@" ;;
        dnf) as_root dnf install -y -q "$@" ;;
        apk) as_root apk add -q "$@" ;;
    esac >&2
}

if [ -n "$(missing need)" ]; then
    install_missing
    left=$(missing need | tr '\n' ' ')
    [ -z "$left" ] || say "still missing: $left"
fi

# A container has these; in a chroot somebody mounts them.
[ -d /proc/self ] || say "the tests need /proc, which is not mounted here"
[ -e /dev/pts/ptmx ] || say "the tests need pseudo-terminals, but devpts is not mounted at /dev/pts"
