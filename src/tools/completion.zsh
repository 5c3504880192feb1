#compdef deltafs deltafs-mpi
# Completion of deltafs and deltafs-mpi for zsh. The programs themselves say what there is (--list).
local -a found
if (( CURRENT == 2 )); then
    found=(${(f)"$($words[1] --list 2>/dev/null)"})
    compadd -a found
elif [[ $words[2] == help ]]; then
    found=(${(f)"$($words[1] --list 2>/dev/null)"} options)
    compadd -a found
elif [[ $words[2] == ns && CURRENT -eq 3 ]]; then
    found=(${(f)"$($words[1] ns --list 2>/dev/null)"})
    compadd -a found
elif [[ $words[2] == ns && $words[CURRENT] == -* ]]; then
    found=(${${(f)"$($words[1] ns --list $words[3] 2>/dev/null)"}%=})
    compadd -a found
elif [[ $words[CURRENT] == -* ]]; then
    found=(${${(f)"$($words[1] --list $words[2] 2>/dev/null)"}%=})
    compadd -a found
else
    _files
fi
