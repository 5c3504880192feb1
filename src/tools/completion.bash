# Completion of deltafs and deltafs-mpi for bash. The programs themselves say what there is (--list).
_deltafs()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} options
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$("$1" --list 2>/dev/null)" -- "$word")
        return
    fi
    if [ "$command" = help ]; then
        [ "$COMP_CWORD" -ne 2 ] ||
            mapfile -t COMPREPLY < <(compgen -W "$("$1" --list 2>/dev/null) options" -- "$word")
        return
    fi
    if [ "$command" = ns ]; then
        if [ "$COMP_CWORD" -eq 2 ]; then
            mapfile -t COMPREPLY < <(compgen -W "$("$1" ns --list 2>/dev/null)" -- "$word")
            return
        fi
        options=$("$1" ns --list "${COMP_WORDS[2]}" 2>/dev/null)
    else
        options=$("$1" --list "$command" 2>/dev/null)
    fi
    case $word in
    -*) mapfile -t COMPREPLY < <(compgen -W "${options//=/}" -- "$word") ;;
    *)
        case $before in
        --format)
            case $command in
            export) mapfile -t COMPREPLY < <(compgen -W "csv jsonl npy npz openpmd vtkhdf parquet" -- "$word") ;;
            import) mapfile -t COMPREPLY < <(compgen -W "vpic raw" -- "$word") ;;
            select) mapfile -t COMPREPLY < <(compgen -W "table csv json keys" -- "$word") ;;
            *) mapfile -t COMPREPLY < <(compgen -W "table csv json raw" -- "$word") ;;
            esac
            ;;
        esac
        ;;
    esac
}
complete -o default -F _deltafs deltafs deltafs-mpi
