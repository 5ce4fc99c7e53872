# fish completion of kdump. It asks the kdump that is being typed for the candidates.

function __kdump_complete
    set -lx _KDUMP_COMPLETE fish_complete
    set -l given (commandline -opc)
    set -l typed (commandline -ct)
    # Without quotes and backslashes; a quote that is still open can only be the first character.
    set -l now (string unescape -- "$typed"; or string replace -r -- '^["\']' '' "$typed")
    set -l program (string replace -r '^~/' "$HOME/" -- $given[1])
    for line in ($program $given[2..-1] "$now" 2>/dev/null)
        set -l parts (string split --max 2 \t -- $line)
        set -l option (string match -r -- '^--[^=]+=' "$now")
        set -l path (string replace -r -- '^--[^=]+=' '' "$now")
        switch $parts[1]
            case file
                printf "$option%s\n" (__fish_complete_path "$path" '')
            case dir
                printf "$option%s\n" (__fish_complete_directories "$path" '')
            case '*'
                printf '%s\t%s\n' $parts[2] $parts[3]
        end
    end
end

complete --command kdump --no-files --arguments '(__kdump_complete)'
