# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
#
# Shared by the tests of re-entry, beside quorum.bash.

# shellcheck source=tests/lib/quorum.bash disable=SC1091
. "${BASH_SOURCE[0]%/*}/quorum.bash"

# has_holds N: how often status says that our key is held.
has_holds() { [[ $(dlock status --json -- "$key") == *"\"holds\":$1,"* ]] || fail "expected $1 holds"; }

used=1
node_timeout=2s
