# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
#
# What the long tests share, beside redis.bash: a crowd of contenders, some of which come to harm.

# contend COUNT CONDITION VISIT HARM: so many contenders; while the shell condition holds, each of them
# calls VISIT, which must become a dlock by exec, and HARM with the pid of that.
contend() {
    local count=$1 condition=$2 visit=$3 harm=$4 i
    for ((i = 0; i < count; i++)); do
        (
            while eval "$condition"; do
                "$visit" &
                pid=$!
                "$harm" "$pid"
                wait "$pid" || true
            done
        ) </dev/null >/dev/null 2>&1 3>&- 4>&- &
    done
    wait
}

# With a chance of one in N.
one_in() { [ $((RANDOM % $1)) -eq 0 ]; }

# The resource of holders that may be killed inside: what COMMAND does first and last.  Each breach is a
# line in "overlaps", "last" is the last holder's fence.
# shellcheck disable=SC2016,SC2034
enter='
if ! mkdir inside 2>/dev/null; then
    read -r old <inside/pid
    case $(sed -n "s/^State:[[:space:]]*\(.\).*/\1/p" "/proc/$old/status" 2>/dev/null) in
        Z | X | "") ;; # killed; who came before left the folder behind
        *) echo "$$ met $old" >>overlaps ;;
    esac
    mkdir -p inside
fi
echo $$ >inside/pid
last=$(cat last || echo 0)
[ "$DLOCK_FENCE" -gt "$last" ] || echo "fence $DLOCK_FENCE after $last" >>overlaps
echo "$DLOCK_FENCE" >"last.$$" && mv "last.$$" last
'
# shellcheck disable=SC2034
leave='rm -r inside'
