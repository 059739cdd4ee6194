# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# For the simulation, see tests/sim/README.md.

sim=${DLOCK%/*}/tests/sim/dlock-sim
export MALLOC_MMAP_THRESHOLD_=4096 # large blocks of memory are unmapped when they are freed: using one then is a fault

setup() {
    test_begin
    [ -x "$sim" ] || must_run "no simulation was built: it needs Lua 5.1"
}

# keeps_rules FROM-TO: these schedules break no rule.
keeps_rules() {
    yields 0 "$sim" --seeds "$1" --jobs 2
    echo "# ${output##*$'\n'}" >&3
}

# catches MUTANT TO|SCENARIO: with this mutant one of the schedules 1 to TO breaks a rule, or one of the scenario.
catches() {
    local schedules=(--seeds "1-$2")
    [[ $2 != *[a-z]* ]] || schedules=(--scenario "$2")
    yields 1 "$sim" "${schedules[@]}" --mutant "$1"
    [[ $output == "seed "*": "* || $output == "$2, chance "*": "* ]]
}

# behaves_as_redis SECONDS: the simulated server replies to random commands as server "a" does.
behaves_as_redis() {
    yields 0 "$PYTHON" "$lib_dir/../sim/compare.py" "$(server_dir a)/s" "$sim" "$top_srcdir" "$1"
    echo "# $output" >&3
}
