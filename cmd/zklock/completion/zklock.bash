# The completion of zklock for bash. What is typed goes to zklock as one argument, and is
# never evaluated.
_zklock() {
    local kind= line
    COMPREPLY=()
    {
        read -r kind
        while IFS= read -r line; do
            COMPREPLY+=("${line%%$'\t'*}")
        done
    } < <(command zklock __complete line "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    case $kind in
    commands)
        [[ $2 == */* ]] && return
        while IFS= read -r line; do
            COMPREPLY+=("$line")
        done < <(compgen -c -- "$2")
        ;;
    words)
        # No files. Bash 3 has no compopt, and offers them.
        compopt +o bashdefault +o default 2>/dev/null
        ;;
    esac
}

complete -o bashdefault -o default -F _zklock zklock
