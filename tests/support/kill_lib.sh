# Sourced by kill.sh, soak.sh and query_kill.sh: jobs, such as of torture_worker, their deaths, and torture_judge on what
# they leave.
#
# A round starts a job on the directory that the rounds before it wrote, or on a new one, with any number of ranks and
# any options; ends it; and has the directory judged. Processes are found by a mark in their environment, so that only
# those of the job are killed, whatever session or group the MPI has put them in.
top_srcdir=${top_srcdir:-$(dirname "$0")/../..}
top_builddir=${top_builddir:-.}
MPIEXEC=${MPIEXEC:-mpiexec}
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/mpi_lib.sh"

name=$(basename "$0" .sh)
directory_kib=49152 # a larger one is left for a new one
kept_max=3
job_seconds=90       # at most, should this script die
epochs_endless=20000 # of a job that is killed before

job=
mark=0 # of the present job
trap 'job_kill; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# What MPI itself leaves when it is killed must be where it goes with the test.
export OMPI_MCA_btl_vader_backing_directory="$work" OMPI_MCA_orte_tmpdir_base="$work"

usage() {
    echo "usage: $name.sh $takes N [--seed S] [--with MPIEXEC=BUILD]..." >&2
    exit 2
}

# options WHAT ARGUMENT...: sets $bound to the value of WHAT, $state to the seed, $builds to "MPIEXEC=BUILD" words.
options() {
    takes=$1
    shift
    bound=
    state=1
    builds=
    while [ $# -gt 1 ]; do
        case $1 in
        "$takes") bound=$2 ;;
        --seed) state=$2 ;;
        --with) builds="$builds $2" ;;
        *) usage ;;
        esac
        shift 2
    done
    case $#$bound$state in 0*[!0-9]* | 0 | 1*) usage ;; esac
    [ -n "$bound" ] || usage
    builds=${builds:-"$MPIEXEC=$top_builddir"}
}

# pick N: a number below N, in $picked. one_of WORD...: one of them.
pick() {
    state=$(((state * 1103515245 + 12345) & 0x7fffffff))
    picked=$(((state >> 8) % $1))
}
one_of() {
    pick $#
    shift "$picked"
    picked=$1
}

# milliseconds_of N: as sleep takes them.
milliseconds_of() {
    printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000))
}

# ---- Processes ----

job_pids() {
    grep -lz "^DELTAFS_TORTURE_JOB=$$.$mark\$" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3
}

# A process that dies has no environment any more, but may have its files still.
is_alive() {
    case $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) in '' | Z* | X*) return 1 ;; esac
}

# await PID...: until they are gone.
await() {
    tries=0
    for pid in "$@"; do
        while is_alive "$pid"; do
            tries=$((tries + 1))
            [ $tries -lt 2000 ] || fail "process $pid does not go away"
            sleep 0.01
        done
    done
}

# job_begin RANKS COMMAND...
job_begin() {
    mark=$((mark + 1))
    : >"$work/err"
    : >"$work/began"
    DELTAFS_TORTURE_JOB=$$.$mark TMPDIR=$work timeout -k 5 $job_seconds $mpiexec -np "$@" >"$work/err" 2>&1 </dev/null &
    job=$!
}

# The shared memory of MPI has a name for a moment, and keeps it where the job is killed then: what was made since the
# job began and no process has open or mapped.
remove_shared() {
    for file in $(find /dev/shm -maxdepth 1 -user "$(id -u)" -newer "$work/began" \
        \( -name 'mpich_shar_tmp*' -o -name 'ucx_shm_posix_*' \) 2>/dev/null); do
        grep -qsF "$file" /proc/[0-9]*/maps || ls -l /proc/[0-9]*/fd 2>/dev/null | grep -qF "$file" || rm -f "$file"
    done
}

# job_kill: what is left of it.
job_kill() {
    gone=
    for try in 1 2 3 4 5; do
        pids=$(job_pids)
        [ -n "$pids" ] || break
        # shellcheck disable=SC2086 # words
        kill -9 $pids 2>/dev/null
        gone="$gone $pids"
    done
    # shellcheck disable=SC2086
    await $gone
    code=0
    [ -z "$job" ] || wait "$job" 2>/dev/null || code=$?
    job=
    remove_shared
}

# job_wait TENTHS: until it has ended by itself, or so long. Fails if it has not.
job_wait() {
    for try in $(seq "$1"); do
        is_alive "$job" || return 0
        sleep 0.1
    done
    return 1
}

# One rank dies, or the launcher; the others find out, or go on until they are killed too.
kill_one() {
    for pid in $(job_pids); do
        case $(cat "/proc/$pid/comm" 2>/dev/null) in
        *torture_work*) [ "$1" = rank ] || continue ;;
        mpi* | prte* | orte*) [ "$1" = launcher ] || continue ;;
        *) continue ;;
        esac
        pick 2
        kill -9 "$pid" 2>/dev/null
        [ "$picked" -eq 1 ] || break
    done
    job_wait 15
}

# job_kill_somehow: all at once, or one process first.
job_kill_somehow() {
    pick 10
    case $picked in
    0 | 1) kill_one rank ;;
    2) kill_one launcher ;;
    esac
    job_kill
}

# ---- Rounds ----

lost=0
wrong=0
kept=0
rounds=0
directories=0
restarts=0
unmade=0
all_epochs=0
all_looks=0
dir=

# blame KIND TEXT: and keep the directory, where a later round cannot change it.
blame() {
    echo "$name: round $rounds: $1: $2 (directory's seed $seed; $said)" >&2
    if [ "$1" = lost ]; then lost=$((lost + 1)); else wrong=$((wrong + 1)); fi
    is_spoilt=1
}

keep() {
    if [ $kept -lt $kept_max ] && [ -e "$dir" ]; then
        kept=$((kept + 1))
        cp -r "$dir" "$list" "$(mktemp -d "${TMPDIR:-/tmp}/deltafs-kept.XXXXXX")" &&
            echo "$name: a copy is in ${TMPDIR:-/tmp}/deltafs-kept.*" >&2
    fi
    dir=
}

# judged FILE: adds up what a judge said.
judged() {
    line=$(sed -n 's/^judge: \([0-9]*\) epochs, [0-9]* records, \([0-9]*\) looks, \([0-9]*\) lost, \([0-9]*\) wrong$/\1 \2 \3 \4/p' "$1")
    # shellcheck disable=SC2086
    set -- "$1" ${line:-0 0 1 0}
    epochs=$2
    all_looks=$((all_looks + $3))
    [ "$4" -eq 0 ] || blame lost "$(cat "$1")"
    [ "$5" -eq 0 ] || blame wrong "$(cat "$1")"
}

judge() {
    timeout -k 5 120 "$build/torture_judge" --dir "$dir" --seed "$seed" --list "$list" "$@" 2>&1 </dev/null
}

new_directory() {
    rm -rf "$work"/d.*
    directories=$((directories + 1))
    pick 100000
    seed=$picked
    dir=$work/d.$directories
    list=$dir.list
    : >"$list"
    epochs=0
    one_of auto auto 1 2 3 5
    partitions=$picked
}

# What may be different from job to job.
any_options() {
    pick 4
    ranks=$((picked + 1))
    one_of $builds
    mpiexec=${picked%%=*}
    build=${picked#*=}
    pick $ranks
    export DELTAFS_TEST_NODES=$((picked + 1))
    one_of auto auto 0 1 3
    export DELTAFS_THREADS="$picked"
    one_of wait async
    export DELTAFS_COMMIT="$picked"
    one_of none commit close
    export DELTAFS_SYNC="$picked"
    one_of none snappy
    export DELTAFS_CODEC="$picked"
    one_of auto direct 3hop grid
    export DELTAFS_ROUTE="$picked"
    one_of 10M 12M 24M
    export DELTAFS_MEMORY="$picked"
    said="$mpiexec, $ranks ranks, $(env | grep '^DELTAFS_[A-Z_]*=' | sort | tr '\n' ' ')"
}

# is_too_large: a directory that takes long to judge.
is_too_large() {
    [ "$(du -sk "$dir" 2>/dev/null | cut -f1)" -gt $directory_kib ] 2>/dev/null
}

# end_job: by killing it, after some time.
end_job_kill() {
    pick 2
    [ "$picked" -eq 0 ] && pick 350 || pick 1450
    life=$((picked + 50))
    sleep "$(milliseconds_of $life)"
    complaints=$(grep 'torture_worker:' "$work/err")
    is_alive "$job" || complaints="${complaints:-it ended by itself: $(cat "$work/err")}"
    job_kill_somehow
    [ -z "$complaints" ] || blame lost "$complaints"
}

# end_job_close: it writes its epochs and closes the directory.
end_job_close() {
    job_wait $((job_seconds * 10))
    complaints=$(cat "$work/err")
    job_kill
    [ "$code" -eq 0 ] || blame lost "exit code $code: $complaints"
}

# round HOW: kill, or close.
round() {
    rounds=$((rounds + 1))
    is_spoilt=
    pick 12
    if [ -z "$dir" ] || [ "$picked" -eq 0 ] || is_too_large; then
        new_directory
    fi
    any_options
    if [ -e "$dir/MANIFEST" ]; then
        restarts=$((restarts + 1))
        unset DELTAFS_PARTITIONS
    else
        export DELTAFS_PARTITIONS="$partitions"
    fi
    before=$epochs
    pick 40
    [ "$1" = kill ] && how_many=$epochs_endless || how_many=$((picked + 1))
    pick 3
    watcher=
    if [ "$picked" -eq 0 ]; then
        pick 1500
        judge --watch $((picked + 400)) >"$work/watched" &
        watcher=$!
        one_of 0 0.1
        sleep "$picked"
    fi
    job_begin $ranks "$build/torture_worker" --dir "$dir" --seed "$seed" --epochs $how_many --list "$list"
    end_job_"$1"
    [ -z "$watcher" ] || { wait $watcher; judged "$work/watched"; }
    [ "$1" = kill ] && judge >"$work/judged" || judge --closed >"$work/judged"
    judged "$work/judged"
    all_epochs=$((all_epochs + epochs - before))
    # A job that died before it had made it.
    if [ -e "$dir" ] && [ ! -e "$dir/MANIFEST" ]; then
        unmade=$((unmade + 1))
        rm -rf "$dir"
    fi
    [ -z "$is_spoilt" ] || keep
}

# report: the last line, and the verdict.
report() {
    echo "$name: $directories directories, $unmade half made, $restarts restarts, $all_epochs epochs," \
        "$all_looks looks of readers meanwhile"
    echo "torture: $name $rounds tried, $lost lost, $wrong wrong"
    [ $lost -eq 0 ] && [ $wrong -eq 0 ]
}
