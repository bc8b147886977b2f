#compdef zklock
# The completion of zklock for zsh. What is typed goes to zklock as arguments, without
# quotes and backslashes, and is never evaluated.
_zklock() {
    local line
    local -a before lines described
    # Completing a file, zsh itself would run a substitution in its path.
    [[ $PREFIX == *(\$\(|\`)* ]] && return 1
    before=("${(@Q)words[2,CURRENT-1]}")
    (( CURRENT > 2 )) || before=()
    lines=("${(@f)$(command zklock __complete words "${before[@]}" "${(Q)PREFIX}" 2>/dev/null)}")
    case $lines[1] in
    files)
        [[ $PREFIX == --*=* ]] && compset -P '*='
        _files
        ;;
    commands)
        if [[ $PREFIX == */* ]]; then
            _files
        else
            _command_names -e
        fi
        ;;
    words)
        for line in "${(@)lines[2,-1]}"; do
            described+=("${line%%$'\t'*}:${line#*$'\t'}")
        done
        _describe zklock described
        ;;
    esac
}

# In a file of fpath this is the body of _zklock itself.
if [[ ${funcstack[1]} == _zklock ]]; then
    _zklock "$@"
else
    compdef _zklock zklock
fi
