# SPDX-License-Identifier: MIT
#
# Completion of dlock for fish 3 and 4.
#
# Commands, options and the kinds of their values are read from the output of dlock --help; keys are
# read from dlock status, with a limit of a second.
#
# Functions share the variables of __dlock_complete.

function __dlock_learn -S -d "Read the help of COMMAND, or of dlock, which has all options"
    set -l found
    set -l section ''
    set -l line
    set synopsis
    set columns
    set offered
    for line in (command $dlock $argv --help all </dev/null 2>/dev/null)
        switch $line
            case 'Exit status:'
                break
            case 'Usage: dlock *[options] *'
                set synopsis (string replace -r '.*?\[options\] ' '' -- $line)
            case 'Commands:' '*ptions:'
                set section $line
            case 'COLUMNS: *'
                set columns (string match -ra -- '[A-Z]+' (string replace COLUMNS '' -- $line))
            case '*'
                if test -z "$section"; and set -q columns[1]
                    set -a columns (string match -ra -- '\b[A-Z]+\b' $line)
                end
        end
        switch $line
            case '  *'
                switch $section
                    case Commands:
                        if set found (string match -r -- '^  ([a-z]+)(?: .*?)?  +(.*)$' $line)
                            set -a subcommands $found[2]\t$found[3]
                        end
                    case '*ptions:'
                        if set found (string match -r -- '^  (?:-|   )([A-Za-z0-9]?)(?:, | )--([a-z-]+)((?: (?:[A-Z]+|\[[A-Za-z]+\]|[a-z]+(?:\|[a-z]+)+)(?= |$))?) *(.*)$' $line)
                            set -a letters "$found[2]"
                            set -a names $found[3]
                            set -a arguments (string trim -- "$found[4]")
                            set -a meanings "$found[5]"
                            set -a offered (count $names)
                        else if test -z "$meanings[-1]"
                            set meanings[-1] (string trim -- $line)
                        end
                end
        end
    end
end

function __dlock_find -S -d "Find an option by its name or its letter"
    set -l name (string replace -r -- '^--?' '' $argv[1])
    set -l at
    if not string match -q -- '--*' $argv[1]
        set at (contains -i -- $name $letters)
    else
        set at (contains -i -- $name $names)
    end
    test -n "$at"
    or return 1
    set option $names[$at]
    set argument $arguments[$at]
    set meaning $meanings[$at]
end

function __dlock_given -S -d "Keep the options that select the locks, for __dlock_keys"
    contains -- $argv[1] node prefix config password-file
    or return
    # Nothing on the line is expanded; a node named $NODE has no keys.
    set -a where --$argv[1]=(string replace -r '^~/' "$HOME/" -- "$argv[2]")
end

function __dlock_take_option -S -d "A word that is an option"
    set -l word $argv[1]
    set -l long (string match -r -- '^(--[^=]+)(=?)(.*)$' $word)
    if set -q long[1]
        __dlock_find $long[2]
        or return
        if test -n "$long[3]"
            __dlock_given $option "$long[4]"
        else if string match -qr -- '^[^[]' "$argument"
            set wanted $option $argument $meaning
        end
        return
    end
    for at in (seq 2 (string length -- $word))
        __dlock_find -(string sub -s $at -l 1 -- $word)
        and string match -qr -- '^[^[]' "$argument"
        or continue
        if test $at -lt (string length -- $word)
            __dlock_given $option (string sub -s (math $at + 1) -- $word)
        else
            set wanted $option $argument $meaning
        end
        return
    end
end

function __dlock_take -S -d "One more word before the cursor; false if it begins COMMAND"
    set -l word "$argv[1]"
    if set -q wanted[1]
        __dlock_given $wanted[1] $word
        set wanted
    else if not set -q ended[1]; and test $word = --
        set ended yes
        test $operands -eq 0
        or set separated yes
    else if not set -q ended[1]; and string match -qr -- '^-.' $word
        __dlock_take_option $word
    else if test -z "$command"
        set command $word
        __dlock_learn $word
    else if set -q ended[1]; and not set -q separated[1]; and test $operands -eq 1; and test $word = --
        set separated yes # after "run -- KEY" another "--" may precede COMMAND
    else
        set operands (math $operands + 1)
        test $operands -ge 2
        and string match -q -- '*[--]*' "$synopsis"
        and return 1
    end
    return 0
end

function __dlock_options -S -d "The options with their descriptions"
    set -l at
    for at in $offered
        printf '%s\t%s\n' --$names[$at] $meanings[$at]
        test -n "$letters[$at]"
        and printf '%s\t%s\n' -$letters[$at] $meanings[$at]
    end
end

function __dlock_keys -S -d "The keys of existing locks"
    env DLOCK_NODE_TIMEOUT=200ms timeout 1 $dlock status --json $where </dev/null 2>/dev/null |
        string replace -rf -- '^\{"key":"([^-"\\\\][^"\\\\]*)".*' '$1\tlock'
end

function __dlock_value -S -d "The values of an option, each after BEFORE"
    set -l name $argv[1]
    set -l kind $argv[2]
    set -l means $argv[3]
    set -l before $argv[4]
    set -l value (string sub -s (math (string length -- "$before") + 1) -- "$current")
    set -l signals HUP INT QUIT ABRT KILL USR1 USR2 ALRM TERM WINCH
    set -l values
    switch $kind
        case FILE
            set values (__fish_complete_path "$value")
        case PID
            set values $fish_pid
        case CMD
            set values (complete -C "$value" | string replace -r '\t.*' '')
        case URL
            string match -qr -- '^[/~]' $value
            and set values (__fish_complete_path "$value")
        case SIG
            set values $signals
            string match -q -- 'S*' $value
            and set values SIG$signals
        case COLUMNS
            set -l column (string replace -r '.*,' '' -- "$value")
            set before $before(string replace -r '[^,]*$' '' -- "$value")
            set values $columns
            string match -qr -- '^[a-z]' "$column"
            and set values (string lower -- $columns)
        case '*|*'
            set values (string split '|' -- $kind)
        case '*'
            string match -q -- '*or forever*' "$means"
            and set values forever
            string match -q -- '*or auto*' "$means"
            and set values auto
    end
    set -q values[1]
    and printf '%s\n' $before$values
end

function __dlock_operand -S -d "The first operand, or one that may be repeated"
    test $operands -eq 0
    or string match -q -- '*...*' "$synopsis"
    or return
    switch "$synopsis"
        case 'KEY*' '[KEY*'
            __dlock_keys
        case '[COMMAND]'
            printf '%s\n' $subcommands
    end
end

function __dlock_complete -d "Complete a command line of dlock"
    set -l words (commandline -opc)
    set -l all (commandline -op)
    set -l current (commandline -ct)
    set -l dlock (string replace -r '^~/' "$HOME/" -- $words[1])
    set -l subcommands
    set -l synopsis
    set -l columns
    set -l letters
    set -l names
    set -l arguments
    set -l meanings
    set -l offered # the places of options in these lists
    set -l option
    set -l argument
    set -l meaning
    set -l command
    set -l wanted # an option's name, argument and meaning
    set -l ended
    set -l separated
    set -l operands 0
    set -l where
    set -l at

    command -sq -- $dlock
    or return
    __dlock_learn
    for at in (seq 2 (count $words))
        if not __dlock_take "$words[$at]"
            __fish_complete_subcommand --commandline $words[$at..-1] "$current"
            return
        end
    end
    if set -q wanted[1]
        __dlock_value $wanted ''
    else if not set -q ended[1]; and string match -q -- '--*=*' "$current"
        set -l before (string replace -r '=.*' '' -- $current)
        __dlock_find $before
        and __dlock_value "$option" "$argument" "$meaning" $before=
    else if not set -q ended[1]; and string match -q -- '-*' "$current"
        # The command may be after the cursor.
        for at in (seq (math (count $words) + 2) (count $all))
            test -z "$command"
            and __dlock_take "$all[$at]"
        end
        __dlock_options
    else if test -z "$command"
        printf '%s\n' $subcommands
    else if test $operands -eq 1; and string match -q -- '*[--]*' "$synopsis"
        __fish_complete_subcommand --commandline "$current"
    else
        __dlock_operand
    end
end

complete -c dlock -f -a '(__dlock_complete)'
