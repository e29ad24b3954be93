# Completion of carrel for fish:  carrel completion fish > ~/.config/fish/completions/carrel.fish

function __carrel_complete
    set -l tokens (commandline -opc)
    set -l word (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $tokens[1])
    for line in ($program _complete -- $tokens[2..] "$word" 2>/dev/null)
        switch $line
            case \tfile
                __fish_complete_path (string unescape -- "$word")
            case \tdir
                __fish_complete_directories (string unescape -- "$word")
            case '*'
                echo $line
        end
    end
end

complete -c carrel -f -a '(__carrel_complete)'
