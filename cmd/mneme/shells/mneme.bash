# Completion of mneme in bash. To load it in every shell:
#   echo 'source <(mneme completion bash)' >> ~/.bashrc

_mneme() {
    local line=${COMP_LINE:0:COMP_POINT} words word cur cut kind answer
    # Bash cuts words at : and = too; ids contain them, so cut at blanks only.
    read -r -a words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    cur=${words[${#words[@]}-1]}
    # Of a word that bash has cut, only what comes after the cut is replaced.
    cut=""
    [[ $cur == *[:=]* ]] && cut=${cur%"${cur##*[:=]}"}
    COMPREPLY=()
    kind=""
    while IFS= read -r answer; do
        if [[ -z $kind ]]; then
            kind=$answer
            continue
        fi
        word=${answer%%$'\t'*}
        [[ $word == "$cur"* ]] && COMPREPLY+=("$(printf '%q' "${word#"$cut"}")")
    done < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
    case $kind in
    files) compopt -o default 2>/dev/null ;;
    directories)
        compopt -o filenames 2>/dev/null
        while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -d -- "${cur#"$cut"}")
        ;;
    esac
}
complete -F _mneme mneme
