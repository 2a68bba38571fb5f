#compdef mneme
# Completion of mneme in zsh. To load it in every shell, after compinit:
#   echo 'source <(mneme completion zsh)' >> ~/.zshrc

_mneme() {
    local kind line
    local -a answers values
    answers=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    kind=${answers[1]}
    for line in "${(@)answers[2,-1]}"; do
        # _describe separates a value from its description by a colon.
        values+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    case $kind in
    files) _files ;;
    directories) _files -/ ;;
    *) _describe -V mneme values ;;
    esac
}

if [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then
    _mneme "$@"
else
    compdef _mneme mneme
fi
