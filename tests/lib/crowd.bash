# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
#
# Shared by the long tests, beside redis.bash: contenders, some of which are killed or stopped.

# contend COUNT CONDITION VISIT HARM: COUNT contenders; while the shell condition holds, each of them
# calls VISIT, which must exec dlock, and HARM with its pid.
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

# one_in N: true with a probability of 1/N.
one_in() { [ $((RANDOM % $1)) -eq 0 ]; }

# The resource of holders that may be killed inside: the first and the last part of COMMAND.  Each overlap
# is a line in "overlaps", "last" is the fence of the last holder.
enter='
if ! mkdir inside 2>/dev/null; then
    read -r old <inside/pid
    case $(sed -n "s/^State:[[:space:]]*\(.\).*/\1/p" "/proc/$old/status" 2>/dev/null) in
        Z | X | "") ;; # killed: its folder was left behind
        *) echo "$$ met $old" >>overlaps ;;
    esac
    mkdir -p inside
fi
echo $$ >inside/pid
last=$(cat last || echo 0)
[ "$DLOCK_FENCE" -gt "$last" ] || echo "fence $DLOCK_FENCE after $last" >>overlaps
echo "$DLOCK_FENCE" >"last.$$" && mv "last.$$" last
'
leave='rm -r inside'
