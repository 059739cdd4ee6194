# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2016,SC2030,SC2031,SC2094,SC2154
#
# Shared by the tests of the completions, beside redis.bash: the shells themselves are asked, bash and zsh at a terminal,
# with a key that inserts everything they offer into the line.

# shellcheck source=tests/lib/redis.bash disable=SC1091
. "${BASH_SOURCE[0]%/*}/redis.bash"

completions=$top_srcdir/completions

setup_file() {
    redis_start a
    take_all
}
setup() {
    test_begin
    export TERM=dumb INPUTRC=/dev/null HISTFILE=/dev/null ZDOTDIR=$PWD
    unset PROMPT_COMMAND ENV BASH_COMPLETION_USER_DIR XDG_DATA_HOME
    mkdir bin
    ln -s "$DLOCK" bin/dlock
    # A command of the user's, and a file.
    printf '#!/bin/sh\n' >bin/zork
    chmod +x bin/zork
    echo 'prefix job:' >settings.conf
    PATH=$PWD/bin:$PATH
}

# The existing locks, some with names that have a meaning for a shell.
take_all() {
    local k
    for k in job:backup job:clean app/web 'odd key' "it's" 'qu"ote' '$(: >boom)' '`: >boom`' '*' -n $'new\nline'; do
        XDG_CONFIG_HOME=$PWD/nowhere take "$k" --node "$(node a)" --ttl 10m
    done
}

# ------------------------------------------------------------------ the shells

# What makes zsh know the completions; `compinit -C` takes them as they were found before.
zsh_functions() {
    cat <<END
fpath=("$completions/zsh" \$fpath)
autoload -Uz compinit
compinit -u -d '$BATS_FILE_TMPDIR/zcompdump'
END
}

# At a terminal, ^X d ends a question: the line goes to the file said.
write_rc() {
    cat >bashrc <<END
PS1='prompt> '
bind 'set enable-bracketed-paste off' 'set bell-style none' 'set completion-query-items 0'
bind '"\C-o": insert-completions'
asked=0
say() {
    printf '%s\n' "\$READLINE_LINE" >>said
    echo "said.\$((asked++))."
    READLINE_LINE=
    READLINE_POINT=0
}
bind -x '"\C-xd": say'
${1-}
complete -W 'one two' zork
END
    cat >.zshrc <<END
PS1='prompt> '
bindkey -e
$(zsh_functions) -C
zstyle ':completion:*' completer _all_matches _complete
zstyle ':completion:*' insert true
setopt no_beep
bindkey '^O' complete-word
asked=0
say() {
    print -r -- "\$BUFFER" >>said
    print said.\$((asked++)).
    BUFFER=
}
zle -N say
bindkey '^Xd' say
_zork() { compadd one two }
compdef _zork zork
END
}

# at_prompt QUESTION... -- SHELL...: a question is what is typed, with ^O where completion is asked
# for.  The lines that come of them are in $said, and in $output all that the terminal showed.
at_prompt() {
    local n=0 steps=('expect=prompt> ')
    : >said
    while [ "$1" != -- ]; do
        steps+=("send=$1"'\x18d' "expect=said.$n.")
        n=$((n + 1))
        shift
    done
    yields 0 "$PYTHON" "$lib_dir/terminal.py" "${steps[@]}" 'send=exit\n' "$@"
    # No word but the shells' own: nothing was typed that they would answer with an error.
    [[ $output != *dlock:* && $output != *bash:* && $output != *zsh:* && $output != *_dlock* ]] ||
        fail "expected no error"
    mapfile -t said <said
}

in_bash() {
    write_rc ". '$completions/bash/dlock'; ${settings-}"
    at_prompt "$@" -- bash --noprofile --rcfile bashrc -i
}

# The package loads the completion when it is needed.
in_bash_with_package() {
    mkdir -p user/completions
    ln -sf "$completions/bash/dlock" user/completions/dlock
    write_rc ". '$bash_completion'"
    BASH_COMPLETION_USER_DIR=$PWD/user at_prompt "$@" -- bash --noprofile --rcfile bashrc -i
}

in_zsh() {
    write_rc
    printf '%s\n' "${settings-}" >>.zshrc
    at_prompt "$@" -- zsh -d -i
}

# fish tells what it would offer, a line for each, at the end of a question only; what it takes
# for meant, though it begins otherwise, is left out.
in_fish() {
    local word offer
    set -- "${@%'\x0f'}"
    attempt fish --no-config -c 'set -p fish_complete_path $argv[1]
        complete -c zork -f -a "one two"
        for line in $argv[2..]
            echo /next
            complete -C $line
        end' -- "$completions/fish" "$@"
    succeeds
    said=()
    for offer in "${lines[@]%%$'\t'*}"; do
        if [ "$offer" = /next ]; then
            word=${1##* }
            said+=("${1% *}")
            shift
        elif [[ $offer == "${word#\"}"* ]]; then
            said[-1]+=" $offer"
        fi
    done
}

bash_completion=
for folder in /usr/share /usr/local/share; do
    if [ -f "$folder/bash-completion/bash_completion" ]; then
        bash_completion=$folder/bash-completion/bash_completion
    fi
done

need() {
    case $1 in
        in_bash) ;;
        in_bash_with_package) [ -n "$bash_completion" ] || must_run 'bash-completion is not installed' ;;
        in_*) command -v "${1#in_}" >/dev/null || must_run "${1#in_} is not installed" ;;
    esac
    # This reads a thousand files, a character at a time: once for all tests of the file, and it may take minutes.
    if [[ $1 = in_zsh && ! -e $BATS_FILE_TMPDIR/zcompdump ]]; then zsh_functions | timeout 300 zsh -df; fi
}

# ask SHELL LINE...: what is offered at the end of each line, sorted, in $offers.
ask() {
    local shell=$1 line word words n=0
    shift
    need "$shell"
    "$shell" "${@/%/\\x0f}"
    offers=()
    for line; do
        words=()
        if [ "${said[n]}" != "$line" ]; then
            for word in ${said[n]#"${line% *}"}; do
                words+=("${word#--*=}")
            done
        fi
        if [ ${#words[@]} -gt 1 ]; then
            mapfile -t words < <(printf '%s\n' "${words[@]}" | LC_ALL=C sort -u)
        fi
        offers+=("${words[*]}")
        n=$((n + 1))
    done
}

# is_offered N WORD...: to question N, exactly these.
is_offered() {
    local n=$1
    shift
    [ "${offers[n]}" = "$*" ] || fail "question $n: offered '${offers[n]}', expected '$*'"
}

# offers SHELL LINE[=>WORD...]...: at the end of each line exactly these words, if there is an arrow.
offers() {
    local table=("${@:2}")
    ask "$1" "${table[@]%%=>*}"
    are_offered "${table[@]}"
}

# are_offered LINE[=>WORD...]...: the last questions were these.
are_offered() {
    local table=("$@") n
    for n in "${!table[@]}"; do [[ ${table[n]} != *'=>'* ]] || is_offered "$n" ${table[n]#*=>}; done
}

names() { dlock --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' | LC_ALL=C sort; }
long_options() { dlock "$@" --help all | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -e '--.*' | LC_ALL=C sort; }

# ------------------------------------------------------------ what all of them do

offers_commands() {
    offers "$1" "dlock =>$(names)" 'dlock re=>release renew' 'dlock -v --ttl 5s he=>help' 'dlock help re=>release renew'
}

offers_options() {
    local name table=()
    for name in $(names) ''; do table+=("dlock ${name:+$name }--=>$(long_options $name)"); done
    offers "$1" "${table[@]}" 'dlock run x --min=>--min-hold' 'dlock acquire --min=>' 'dlock --max-run 5s run --max-r=>--max-run' \
        'dlock --max-run 5s re=>release renew' 'dlock run x zork --min=>' 'dlock run -- --min=>'
}

offers_values() {
    local signal all=()
    offers "$1" 'dlock run --signal ' 'dlock acquire --keep ' 'dlock run --on-lost =>kill warn' 'dlock run --on-lost==>kill warn' \
        'dlock run --on-lost=w=>warn' 'dlock -w f=>forever' 'dlock acquire --wait=f=>forever' 'dlock run --signal T=>TERM' \
        'dlock run --signal=SIGT=>SIGTERM' 'dlock --config se=>settings.conf' 'dlock run --report=se=>settings.conf' \
        'dlock --password-file se=>settings.conf' 'dlock --ttl =>' 'dlock --on-l w=>' 'dlock status -o T=>TOKEN TOOK TTL' \
        'dlock status --output=key,st=>key,state' 'dlock status --watch --no-h=>--no-headings' \
        'dlock status -o KEY,OW=>KEY,OWNER' 'dlock --restart-guard a=>auto' 'dlock run --exec-on-lost dirnam=>dirname' \
        'dlock status -o =>CLIENT FENCE HELD HOST KEY LABEL LAST NODES OUTCOME OWNER PID STATE SUCCESS TOKEN TOOK TTL USER WAITING'
    for signal in HUP INT KILL TERM USR1; do
        [[ " ${offers[0]} " == *" $signal "* ]] || fail "$signal is missing: ${offers[0]}"
    done
    for signal in ${offers[0]}; do all+=(--signal "$signal"); done
    works run "${all[@]}" --help
    [[ ${offers[1]} =~ ^[0-9]+$ ]] || fail "not a process: ${offers[1]}"
}

# On a busy machine the completion may not get the locks within its limit of a fifth of a second: what was offered once
# counts.
offers_keys() {
    local n missing offered=() table=('dlock release "job:b' 'dlock release ' 'dlock acquire app=>app/web' 'dlock renew app=>app/web'
        'dlock release app=>app/web' 'dlock status app=>app/web' 'dlock run app=>app/web' 'dlock release job:b=>job:backup'
        'dlock status x job:c=>job:clean' 'dlock -vt 5s release -q -- app=>app/web' 'dlock release job:clean a=>'
        'dlock --prefix job: release =>backup clean' 'dlock --config ~/settings.conf release b=>backup'
        "dlock -N $(node a) --prefix=job: release b=>backup"
        'dlock -N /nowhere release =>' 'dlock -N $x release =>' 'dlock --json release --quiet app=>app/web'
        'dlock --ttl=5s release --unknown app=>app/web' 'dlock break app=>app/web' 'dlock break -f job:b=>job:backup'
        'dlock doctor app=>')
    for _ in {1..20}; do
        ask "$1" "${table[@]%%=>*}"
        missing=
        for n in "${!offers[@]}"; do
            offered[n]=${offered[n]:-${offers[n]}}
            [[ ${table[n]} == *'=>' || -n ${offered[n]} ]] || missing=yes
        done
        [ -n "$missing" ] || break
    done
    offers=("${offered[@]}")
    [[ ${offers[0]} =~ ^\"?job:backup\"?$ ]] || fail "in quotes offered ${offers[0]}"
    [[ ${offers[1]} == *app/web* && ${offers[1]} == *job:backup*job:clean* && " ${offers[1]} " != *' -n '* ]]
    are_offered "${table[@]}"
    [ ! -e boom ]
}

offers_command() {
    offers "$1" 'dlock run x -- zor=>zork' 'dlock run x zor=>zork' 'dlock run x -- zork =>one two' 'dlock run x zork t=>two' \
        'dlock run -qw 5s x --ttl 3s -- zork o=>one' 'dlock run -- x -- zork =>one two' \
        'dlock run a -- dlock run --on-lost =>kill warn' 'dlock run a -- dlock run -w 1s b zork t=>two' \
        'dlock run x -- bin/zor=>bin/zork' 'dlock run x -- ./unknown se=>settings.conf' \
        'dlock --max-run 5s run x -- zork =>one two' 'dlock --foreground run --shell --json x zork =>one two'
}

# The cursor goes back to the begin of the line, and COMMAND is behind it.
offers_options_before_command() {
    need "$1"
    "$1" ' run x\x01dlock --on-\x0f' ' acquire x\x01dlock -q --exp\x0f' ' renew x\x01dlock --exp\x0f'
    [[ ${said[0]} =~ ^'dlock --on-lost '\ ?'run x'$ ]] || fail "expected --on-lost: ${said[0]}"
    [[ ${said[1]} =~ ^'dlock -q --export '\ ?'acquire x'$ ]] || fail "expected --export: ${said[1]}"
    [[ ${said[2]} =~ ^'dlock --exp renew x'$ ]] || fail "expected nothing: ${said[2]}"
}

is_silent() {
    local where
    redis_start silent
    redis_freeze silent
    for where in /nowhere "$(node silent)"; do
        DLOCK_NODES=$where DLOCK_NODE_TIMEOUT=1m within 20000 offers "$1" 'dlock release =>' 'dlock run jo=>' 'dlock re=>release renew'
    done
    redis_stop silent
    rm bin/dlock
    # fish offers files behind a command that is not there.
    offers "$1" 'dlock run --=>' "dlock $([ "$1" = in_fish ] || echo '=>')"
}
