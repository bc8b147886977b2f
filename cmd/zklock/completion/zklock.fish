# The completion of zklock for fish. What is typed goes to zklock as arguments, and is never
# evaluated.
function __zklock_complete
    set -l before (commandline -opc)
    set -e before[1]
    set -l current (commandline -ct)
    command zklock __complete words $before "$current" 2>/dev/null
end

function __zklock_words
    set -l lines (__zklock_complete)
    set -e lines[1]
    printf '%s\n' $lines
end

function __zklock_wants
    set -l lines (__zklock_complete)
    contains -- "$lines[1]" $argv
end

# Completing a command, fish itself would run a substitution in it.
function __zklock_commands
    set -l current (commandline -ct)
    string match -qr '^([\w.+][\w.+-]*)?$' -- "$current"
    and complete -C "$current"
end

complete -c zklock -e
complete -c zklock -f -a '(__zklock_words)'
complete -c zklock -n '__zklock_wants files commands' -F
complete -c zklock -n '__zklock_wants commands' -a '(__zklock_commands)'
