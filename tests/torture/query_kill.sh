#!/bin/sh
# Jobs that write indexes by value, or compact, and are killed at random times: what was committed is there and nothing
# else, selects have the right rows, and the work can be done again.
#
#     tests/torture/query_kill.sh index|compact --count N [--seed S] [--with MPIEXEC=BUILD]...
kind=${1:-}
. "$(dirname "$0")/../support/kill_lib.sh"
name=query_kill
case $kind in
index | compact) shift ;;
*)
    echo "usage: query_kill.sh index|compact --count N [--seed S] [--with MPIEXEC=BUILD]..." >&2
    exit 2
    ;;
esac
options --count "$@"
name=$kind
directory_kib=4096
indexes='size:v*v +w
mixed:v + n
plain:w +v +n'

# rows_judge DIR [OPTION...]: has a directory judged.
rows_judge() {
    judge_dir=$1
    shift
    timeout -k 5 120 "$build/torture_rows_judge" --dir "$judge_dir" --seed "$seed" --list "$list" "$@" \
        >"$work/judged" 2>&1 </dev/null
    judged "$work/judged"
}

# job HOW COMMAND...: kill: it is killed after some time, if it has not ended by itself before. end: it ends well.
job() {
    how=$1
    shift
    job_begin $ranks "$@"
    if [ "$how" = end ]; then
        job_wait $((job_seconds * 10))
    else
        pick 450
        sleep "$(milliseconds_of $((picked + 20)))"
    fi
    if is_alive "$job"; then
        job_kill_somehow
        [ "$how" = kill ] || blame lost "it hangs: $*"
    else
        job_kill
        [ "$code" -eq 0 ] || blame lost "exit code $code of $*: $(cat "$work/err")"
    fi
}

# by_names: some indexes, as the option takes them, in $picked.
by_names() {
    pick 4
    picked=$(printf '%s\n' "$indexes" | sed -n "$((picked + 1))p")
    [ -n "$picked" ] || picked='size:v*v +w;mixed:v + n'
}

# write HOW: a job that appends epochs, with indexes or without.
write() {
    before=$epochs
    pick 3
    DELTAFS_INDEX_BY=
    [ "$picked" -eq 0 ] || { by_names && DELTAFS_INDEX_BY=$picked; }
    [ "$kind" = index ] || DELTAFS_INDEX_BY=
    said="$said; index_by=$DELTAFS_INDEX_BY"
    pick 12
    export DELTAFS_INDEX_BY
    job "$1" "$build/torture_rows_worker" --dir "$dir" --seed "$seed" --epochs $((picked + 1)) --list "$list"
    unset DELTAFS_INDEX_BY
    rows_judge "$dir"
    all_epochs=$((all_epochs + epochs - before))
}

# make_index HOW: index what there is.
make_index() {
    pick 3
    index=$(printf '%s\n' "$indexes" | sed -n "$((picked + 1))p")
    said="$said; $index"
    job "$1" "$build/deltafs-mpi" index --by "$index" "$dir"
    rows_judge "$dir"
}

# compact HOW: all epochs, or some; one that was killed is done again. Later epochs may be appended to what is new.
compact() {
    [ "$epochs" -gt 0 ] || return
    first=1
    last=$epochs
    pick 3
    if [ "$picked" -eq 0 ]; then
        pick "$epochs"
        first=$((picked + 1))
        pick $((epochs - first + 1))
        last=$((first + picked))
    fi
    said="$said; compact $first:$last"
    there=$epochs
    job "$1" "$build/deltafs-mpi" compact -q "$dir" -o "$dir.new" --epochs $first:$last
    [ ! -e "$dir.new" ] || rows_judge "$dir.new" --first $first --last $last
    if [ ! -e "$dir.new" ]; then
        job end "$build/deltafs-mpi" compact -q "$dir" -o "$dir.new" --epochs $first:$last
        rows_judge "$dir.new" --first $first --last $last
    fi
    rows_judge "$dir"
    pick 2
    if [ $first -eq 1 ] && [ "$last" -eq "$there" ] && [ "$picked" -eq 0 ] && [ -z "$is_spoilt" ]; then
        rm -rf "$dir"
        mv "$dir.new" "$dir"
        one_of make_index :
        "$picked" kill
    fi
    rm -rf "$dir.new" "$work"/.deltafs-compact*
}

while [ $rounds -lt "$bound" ]; do
    rounds=$((rounds + 1))
    is_spoilt=
    pick 10
    if [ -z "$dir" ] || [ "$picked" -eq 0 ] || is_too_large; then
        new_directory
    fi
    any_options
    unset DELTAFS_COMMIT DELTAFS_ROUTE
    export DELTAFS_MEMORY=64M
    said="$mpiexec, $ranks ranks, $(env | grep '^DELTAFS_[A-Z_]*=' | sort | tr '\n' ' ')"
    if [ ! -e "$dir/MANIFEST" ]; then
        rm -rf "$dir"
        write end
    fi
    restarts=$((restarts + 1))
    if [ "$kind" = index ]; then
        one_of write write make_index
    else
        one_of write compact compact
    fi
    act=$picked
    one_of kill kill kill end
    "$act" "$picked"
    [ -z "$is_spoilt" ] || keep
done
report
