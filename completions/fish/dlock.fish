# SPDX-License-Identifier: MIT
#
# Completion of dlock for fish 3 and 4.
#
# dlock itself says what may stand at the cursor: see src/cli/command.h.

function __dlock_complete -d "Complete a command line of dlock"
    set -l words (commandline -opc)
    set -l all (commandline -op)
    set -l current (commandline -ct)
    set -l dlock (string replace -r '^~/' "$HOME/" -- $words[1])
    set -l count (count $words)
    set -l after
    set -l at

    command -sq -- $dlock
    or return
    for at in (seq (math $count + 2) (count $all))
        set -a after "$all[$at]"
    end
    set -l said (command $dlock --complete (math $count - 1) $words[2..] "$current" $after </dev/null 2>/dev/null)
    set -l before (string match -r -- '^--[^=]*=' "$current")
    set -l value (string sub -s (math (string length -- "$before") + 1) -- "$current")
    switch "$said[1]"
        case 'command *'
            set -l n (string replace 'command ' '' -- $said[1])
            if test (math $n + 1) -lt $count
                __fish_complete_subcommand --commandline $words[(math $n + 2)..-1] "$current"
            else
                __fish_complete_subcommand --commandline "$current"
            end
        case files
            printf '%s\n' "$before"(__fish_complete_path "$value")
        case programs
            printf '%s\n' "$before"(complete -C "$value" | string replace -r '\t.*' '')
        case keys
            string replace -rf -- '^([^-"\\\\][^"\\\\]*)$' '$1\tlock' $said[2..-1]
        case '' # "?*" would be a question mark for fish 4
        case '*'
            printf '%s\n' $said[2..-1]
    end
end

complete -c dlock -f -a '(__dlock_complete)'
