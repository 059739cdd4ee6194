#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
#
# What zsh offers behind dlock.

load ../lib/completions

@test "zsh: the commands" { offers_commands in_zsh; }
@test "zsh: the options of each command, as its help lists them" { offers_options in_zsh; }
@test "zsh: the values that the help names" { offers_values in_zsh; }
@test "zsh: the keys of the existing locks" { offers_keys in_zsh; }
@test "zsh: after KEY the completions of COMMAND" { offers_command in_zsh; }
@test "zsh: no keys and no errors if no node replies" { is_silent in_zsh; }
@test "zsh: the options of a command after the cursor" { offers_options_before_command in_zsh; }

@test "zsh: with unusual settings of the user" {
    settings='setopt sh_word_split ksh_arrays no_unset glob_subst null_glob rematch_pcre bash_rematch'
    offers_keys in_zsh
}

@test "zsh: the descriptions of commands and options" {
    need in_zsh
    write_rc
    echo "zstyle -d ':completion:*' completer" >>.zshrc
    yields 0 "$PYTHON" "$lib_dir/terminal.py" 'expect=prompt> ' 'send=dlock re\x0f' 'expect=release KEY' \
        'send=\x15dlock run --on\x08\x08m\x0f' 'expect=end COMMAND after DUR' 'send=\x15exit\n' -- zsh -d -i
}
