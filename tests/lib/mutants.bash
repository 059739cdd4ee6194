# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
#
# Mutants of tests/fault, beside redis.bash.

# is_found MUTANT [JOBS]: one of its seeds breaks a promise.  They are several since a seed decides what is done, and the
# machine what comes of it.
is_found() {
    local fault=$top_srcdir/tests/fault _
    [ -n "${FAULT_FLAGS:-}" ] || must_run "make says how to compile a mutant"
    "$PYTHON" "$fault/mutants.py" build "$1" "$BATS_TEST_TMPDIR/dlock"
    # A fault has to meet a moment in which the mutant is wrong.  On a busy machine it may miss all of them.
    for _ in 1 2 3; do
        DLOCK=$BATS_TEST_TMPDIR/dlock attempt "$PYTHON" "$fault/fault" --jobs "${2:-5}" \
            $("$PYTHON" "$fault/mutants.py" seeds "$1")
        [ "$status" -eq 0 ] || break
    done
    exits 1
    [[ $output == *"VIOLATION: "* ]]
    echo "# $(grep -m 1 VIOLATION: <<<"$output")" >&3
    rm -rf "$(sed -n 's/^FAILED: .* is in //p' <<<"$output")"
}
