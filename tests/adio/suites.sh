#!/bin/sh
# ROMIO's own test programs and MPICH's of MPI-IO, with and without DeltaFS.
#
#     tests/adio/suites.sh OVERLAY [PROGRAM...]    OVERLAY: libdeltafs_romio.so, as scripts/build-romio-overlay made it
#     tests/adio/suites.sh FOLDER [PROGRAM...]     FOLDER: of the components for Open MPI, which is used then
#
# Without names all are run but for four that write gigabytes. With SUITES_BRIEF set, a program that passes with deltafs:
# names is not run with others.
#
# The programs are taken from MPICH's source package, built with MPICH's mpicc as it is installed, and run three times each:
# as they are ("stock"), with the overlay preloaded and the same names of files ("ufs"), and with the overlay and deltafs:
# ("deltafs"). Prints a table. Fails if a program passes as it is and does not with the overlay, unless
# tests/adio/exceptions (for Open MPI tests/adio/ompio_exceptions) says why not; an exception that passes is said, too.
#
# With Open MPI "ufs" is with the components found, and the same names of files. What no longer is in MPI's header, and
# Open MPI has left out of its own, is given to the programs that use it.
#
# The programs and their output are kept in build/romio/suites, or build/ompio/suites. MPI_TIMEOUT is the limit for each
# run, in seconds.
set -u
overlay=$(realpath "$1")
shift
flavour=mpich
kept=romio
if [ -d "$overlay" ]; then
    flavour=openmpi
    kept=ompio
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
fi
cd "$(dirname "$0")/../.."
top=$(pwd)
mpicc=${MPICC:-$(command -v mpicc.$flavour || echo mpicc)}
mpifort=$(command -v mpifort.$flavour || true)
mpirun=${MPIEXEC:-$(command -v mpirun.$flavour || echo mpirun)}
limit=${MPI_TIMEOUT:-120}
source=$(scripts/fetch-mpich) || exit 1
romio=$source/src/mpi/romio/test
mpich=$source/test/mpi
programs=$top/build/$kept/suites/programs
logs=$top/build/$kept/suites/logs
mkdir -p "$programs" "$logs"
work=$(mktemp -d "${TMPDIR:-/tmp}/deltafs-suites.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# ---- Building ----

# What MPICH's tests ask their configure for.
harness() {
    [ -f "$programs/harness/done" ] && return
    mkdir -p "$programs/harness/include" "$programs/harness/f77/io"
    cat >"$programs/harness/mpitestconf.h" <<'END'
#define HAVE_INTTYPES_H 1
#define HAVE_STDARG_H 1
#define HAVE_STDINT_H 1
#define HAVE_STDLIB_H 1
#define HAVE_STRING_H 1
#define HAVE_SYS_TIME_H 1
#define HAVE_UNISTD_H 1
#define THREAD_PACKAGE_NAME THREAD_PACKAGE_POSIX
END
    cp "$programs/harness/mpitestconf.h" "$programs/harness/include/" # one is asked for as ../../include/...
    for file in "$mpich"/f77/io/*.h.in; do
        sed 's/@F77_MPI_[A-Z]*@/integer*8/' "$file" >"$programs/harness/$(basename "$file" .in)"
    done
    : >"$programs/harness/removed.h"
    if [ $flavour = openmpi ]; then
        cat >"$programs/harness/removed.h" <<'END'
#include <mpi.h>
#undef MPI_LB
#undef MPI_UB
#undef MPI_Address
#undef MPI_Type_hindexed
#undef MPI_Type_hvector
#undef MPI_Type_struct
extern struct ompi_predefined_datatype_t ompi_mpi_lb, ompi_mpi_ub;
#define MPI_LB            OMPI_PREDEFINED_GLOBAL(MPI_Datatype, ompi_mpi_lb)
#define MPI_UB            OMPI_PREDEFINED_GLOBAL(MPI_Datatype, ompi_mpi_ub)
#define MPI_Address       MPI_Get_address
#define MPI_Type_hindexed MPI_Type_create_hindexed
#define MPI_Type_hvector  MPI_Type_create_hvector
int MPI_Type_struct(int, int *, MPI_Aint *, MPI_Datatype *, MPI_Datatype *);
END
        "$mpicc" -shared -fPIC -o "$programs/harness/libprefix.so" "$top/tests/adio/ompio_prefix.c" -ldl || exit 1
    fi
    for part in mtest mtest_common mtest_single; do
        "$mpicc" -w -I"$programs/harness" -I"$mpich/include" -c -o "$programs/harness/$part.o" "$mpich/util/$part.c" ||
            exit 1
    done
    [ -z "$mpifort" ] || "$mpifort" -w -std=legacy -c -o "$programs/harness/mtest_f77.o" "$mpich/util/mtest_f77.f" ||
        exit 1
    touch "$programs/harness/done"
}

fortran() {
    [ -n "$mpifort" ] && "$mpifort" -w -std=legacy -fallow-argument-mismatch -I"$programs/harness" "$@"
}

# build SUITE NAME: the program, unless it is there.
build() {
    program=$programs/$1-$2
    [ ! -x "$program" ] || return 0
    case $1 in
    romio)
        if [ -f "$romio/$2.c" ]; then
            "$mpicc" -w -include "$programs/harness/removed.h" -o "$program" "$romio/$2.c" -lm
        elif [ -f "$romio/$2.c.in" ]; then
            sed 's/@LL@/lld/' "$romio/$2.c.in" >"$program.c"
            "$mpicc" -w -include "$programs/harness/removed.h" -o "$program" "$program.c" -lm
        else
            sed 's/@F77MPIOINC@//; s/@FORTRAN_MPI_OFFSET@/integer*8/; s/@F77IARGC@/iargc()/
                s/@F77GETARG@/call getarg(i,str)/' "$romio/$2.f.in" >"$program.f"
            fortran -o "$program" "$program.f"
        fi
        ;;
    f77)
        extra=
        for file in "$mpich/f77/io/${2%f}.c" "$mpich/f77/io/$2.c"; do
            [ ! -f "$file" ] || extra=$file
        done
        if [ -n "$extra" ]; then
            "$mpicc" -w -I"$programs/harness/f77/io" -I"$mpich/include" -DF77_NAME_LOWER_USCORE -c -o "$program.o" "$extra" &&
                fortran -o "$program" "$mpich/f77/io/$2.f" "$program.o" "$programs/harness"/*.o
        else
            fortran -o "$program" "$mpich/f77/io/$2.f" "$programs/harness"/*.o
        fi
        ;;
    *)
        folder=$mpich/io
        [ "$1" != errors ] || folder=$mpich/errors/io
        "$mpicc" -w -include "$programs/harness/removed.h" -I"$programs/harness" -I"$mpich/include" \
            -o "$program" "$folder/$2.c" \
            "$programs/harness"/mtest_common.o "$programs/harness"/mtest.o "$programs/harness"/mtest_single.o
        ;;
    esac >"$program.log" 2>&1
}

# ---- Running ----

# run KIND SUITE NAME RANKS ARGUMENT...: sets `verdict`. The word FILE among the arguments is the name of a file; where a
# program has its own names, DeltaFS is asked for by ROMIO's environment variable, or by a library that adds the prefix.
run() {
    kind=$1
    program=$programs/$2-$3
    log=$logs/$2-$3.$kind
    ranks=$4
    shift 4
    rm -rf "$work/run"
    mkdir "$work/run"
    target=testfile
    [ "$kind" != deltafs ] || target=deltafs:testfile
    force=
    case " $* " in
    *" FILE "*) ;;
    *) [ "$kind" != deltafs ] || force=deltafs: ;;
    esac
    words=
    for word in "$@"; do
        [ "$word" != FILE ] || word=$target
        words="$words $word"
    done
    started=$(date +%s)
    (
        cd "$work/run" || exit 1
        [ -z "$force" ] || export ROMIO_FSTYPE_FORCE=$force
        preload=
        if [ $flavour = openmpi ]; then
            [ "$kind" = stock ] || export OMPI_MCA_mca_base_component_path="SYSTEM_DEFAULT:$overlay"
            [ -z "$force" ] || preload="-x LD_PRELOAD=$programs/harness/libprefix.so"
        elif [ "$kind" != stock ]; then
            preload="-genv LD_PRELOAD $overlay"
        fi
        # shellcheck disable=SC2086 # lists of words
        exec timeout -k 5 "$limit" "$mpirun" -np "$ranks" $preload "$program" $words
    ) >"$log" 2>&1 </dev/null
    code=$?
    took=$(($(date +%s) - started))
    if [ $code -eq 124 ] || [ $code -eq 137 ]; then
        verdict=hangs
    elif [ $code -ne 0 ]; then
        verdict=fails
    elif grep -v -i 'no errors' "$log" | grep -q -i -E 'error|differ|wrong|fail|corrupt'; then
        verdict=fails
    else
        verdict=passes
    fi
}

# What is run: suite, program, ranks, arguments. Those that only measure are left out: perf, coll_perf, fperf.
list() {
    cat <<'END'
romio aggregation1 4 -h -f FILE
romio aggregation2 4 FILE
romio async 4 -fname FILE
romio async-multiple 4 -fname FILE
romio atomicity 4 -fname FILE
romio big_extents 2 FILE
romio coll_test 4 -fname FILE
romio creat_excl 4 -fname FILE
romio darray_read 4 FILE
romio error 1 -fname FILE
romio excl 4 -fname FILE
romio external32 1 FILE
romio file_info 4 -fname FILE
romio hindexed 4 FILE
romio i_noncontig 2 -fname FILE
romio misc 4 -fname FILE
romio noncontig 2 -fname FILE
romio noncontig_coll 2 -fname FILE
romio noncontig_coll2 4 -fname FILE
romio ordered_fp 4 -fname FILE
romio psimple 4 -fname FILE
romio shared_fp 4 -fname FILE
romio simple 4 -fname FILE
romio split_coll 4 -fname FILE
romio status 1 -fname FILE
romio types_with_zeros 2 FILE
romio fcoll_test 4 -fname FILE
romio fmisc 4 -fname FILE
romio pfcoll_test 4 -fname FILE
END
    sed 's/ mem=.*//; s/ arg=/ /; s/^/mpich /' "$mpich/io/testlist.in" | grep -v '^mpich *$'
    sed 's/^/errors /' "$mpich/errors/io/testlist"
    cat <<'END'
f77 fileerrf 1
f77 fileinfof 3
f77 shpositionf 4
f77 atomicityf 4
f77 miscfilef 4
f77 setviewcurf 4
f77 i_setviewcurf 4
f77 c2f2ciof 1
END
}

# Those of gigabytes, if they are asked for.
list_large() {
    cat <<'END'
romio large_array 2 -fname FILE
romio large_file 1 -fname FILE
END
    list | grep 'bigtype '
}

excused() {
    exceptions=$top/tests/adio/exceptions
    [ $flavour = mpich ] || exceptions=$top/tests/adio/ompio_exceptions
    sed -n "s/^$1 $2 *//p" "$exceptions"
}

# What is to be run, of that.
chosen() {
    if [ $# -eq 0 ]; then
        list | grep -v 'bigtype '
    else
        { list | grep -v 'bigtype ' && list_large; } | awk -v names=" $* " 'index(names, " " $2 " ")'
    fi
}

harness
total=0
bad=0
printf '%-8s %-26s %5s  %-7s %-7s %-7s  %s\n' suite program ranks stock ufs deltafs ''
while read -r suite name ranks arguments; do
    remark=
    if ! build "$suite" "$name"; then
        printf '%-8s %-26s %5s  %s\n' "$suite" "$name" "$ranks" "cannot be built, see $programs/$suite-$name.log"
        bad=$((bad + 1))
        continue
    fi
    total=$((total + 1))
    # shellcheck disable=SC2086
    run deltafs "$suite" "$name" "$ranks" $arguments
    deltafs=$verdict
    deltafs_log=$log
    stock=-
    ufs=-
    if [ -z "${SUITES_BRIEF:-}" ] || [ "$deltafs" != passes ]; then
        # shellcheck disable=SC2086
        run stock "$suite" "$name" "$ranks" $arguments
        stock=$verdict
        # shellcheck disable=SC2086
        run ufs "$suite" "$name" "$ranks" $arguments
        ufs=$verdict
    fi
    reason=$(excused "$suite" "$name")
    if [ "$stock" = passes ] && [ "$ufs" != passes ]; then
        remark="FAULT of the overlay, see $logs/$suite-$name.ufs"
        bad=$((bad + 1))
    elif [ "$stock" = passes ] && [ "$deltafs" != passes ] && [ -z "$reason" ]; then
        remark="FAULT, see $deltafs_log"
        bad=$((bad + 1))
    elif [ "$deltafs" != passes ]; then
        remark=$reason
    elif [ -n "$reason" ]; then
        remark="(an exception that passes: $reason)"
    fi
    printf '%-8s %-26s %5s  %-7s %-7s %-7s  %s\n' "$suite" "$name" "$ranks" "$stock" "$ufs" "$deltafs" "$remark"
done <<END
$(chosen "$@")
END
echo "$total programs, $bad faults"
[ "$bad" -eq 0 ]
