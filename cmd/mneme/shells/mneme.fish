# Completion of mneme in fish. To load it in every shell:
#   mneme completion fish > ~/.config/fish/completions/mneme.fish

function __mneme_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l answers ($words[1] __complete $words[2..-1] 2>/dev/null)
    switch "$answers[1]"
        case files
            __fish_complete_path (commandline -ct)
        case directories
            __fish_complete_directories (commandline -ct)
        case '*'
            string join \n -- $answers[2..-1]
    end
end
complete -c mneme -f -a '(__mneme_complete)'
