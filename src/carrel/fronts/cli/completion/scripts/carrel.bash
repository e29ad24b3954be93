# Completion of carrel for bash 4.4 or newer:  eval "$(carrel completion bash)"

_carrel() {
    local -a words=()
    local word line value kind="" cut=""
    # bash splits `--role=x` into three words; carrel expects one.
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
    # bash replaces only the part of a word after the last break character.
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
        # Inside open quotes bash inserts the value unchanged.
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
