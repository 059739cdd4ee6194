#!/bin/sh
# SPDX-License-Identifier: MIT
#
# skipped.sh LOG...
#
# Say at the end of "make check", before its count, how many tests were skipped for which reason, and which packages of
# Debian would run them.
# LOG is the log of a test file.  Where nothing was skipped, nothing is printed.

set -eu

# Words of the reasons, and the package that each asks for.
packages='
HAProxy                 haproxy
PostgreSQL              postgresql
bash-completion         bash-completion
buildah                 buildah
dash                    dash
fish                    fish
flock                   util-linux
java                    zookeeper
javac                   default-jdk-headless
kazoo                   python3-kazoo
libcurator-recipes-java libcurator-recipes-java
libnetty-java           libnetty-java
mandoc                  mandoc
node                    nodejs
nutcracker              nutcracker
promtool                prometheus
redis                   python3-redis
spin                    spin
sqlite3                 sqlite3
stunnel                 stunnel4
sudo                    sudo
systemd                 systemd
systemd-analyze         systemd
tmux                    tmux
valgrind                valgrind
vi                      vim-tiny
yaml                    python3-yaml
zookeeper               zookeeper
zsh                     zsh
'

# "is not installed", "there is no X", "no X" and "has no module X" lack a package; all else is of the machine.
sed -n 's/^SKIP: .* # SKIP *//p; s/^SKIP: [^ ]* - //p' "$@" /dev/null |
    awk -v table="$packages" '
        BEGIN {
            n = split(table, word)
            for (i = 1; i < n; i += 2) package[word[i]] = word[i + 1]
        }
        {
            reason = $0
            if (/is not installed$|^there is no |^no [^ ]+$|has (no|the) module /)
                for (i = 1; i <= NF; i++)
                    if ($i in package) {
                        reason = package[$i]
                        missing[reason]
                    }
            if (!count[reason]++) order[++reasons] = reason
            total++
        }
        END {
            if (!total) exit
            printf "Skipped: %d tests.\n", total
            for (i = 1; i <= reasons; i++)
                printf "%6d  %s%s\n", count[order[i]], order[i] in missing ? "for lack of " : "", order[i]
            for (i = 1; i <= reasons; i++) if (order[i] in missing) list = list " " order[i]
            if (list) print "On Debian these packages run them: apt install" list
        }'
