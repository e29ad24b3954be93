# Completion of carrel for bash 4.4 or newer:  eval "$(carrel completion bash)"

_carrel() {
    local -a words=()
    local word line value kind="" cut=""
    # bash takes `--role=x` for three words; carrel wants it in one.
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
        if ((${#words[@]})) && [[ $word == "=" && ${words[-1]} == --* && ${words[-1]} != *=* ]]; then
            words[-1]+="="
        elif ((${#words[@]})) && [[ ${words[-1]} == --*= ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
    done
    word=${words[-1]-}
    # Of a word that bash breaks, it replaces only what is after the break.
    if [[ $word == --*=* && $COMP_WORDBREAKS == *=* ]]; then
        cut=${word%%=*}=
    elif [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then
        cut=${word%:*}:
    fi
    COMPREPLY=()
    while IFS= read -r line; do
        value=${line%%$'\t'*}
        if [[ -z $value ]]; then
            kind=${line#$'\t'}
            continue
        fi
        value=${value#"$cut"}
        # Within quotes that are open, bash takes it as it is.
        [[ $word == [\'\"]* ]] || printf -v value %q "$value"
        COMPREPLY+=("$value")
    done < <("${COMP_WORDS[0]/#\~/$HOME}" _complete -- "${words[@]}" 2>/dev/null)
    if [[ $kind == file ]]; then
        compopt -o default
    elif [[ $kind == dir ]]; then
        compopt -o filenames -o dirnames
    elif [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == */ ]]; then
        compopt -o nospace
    fi
}

complete -F _carrel carrel
