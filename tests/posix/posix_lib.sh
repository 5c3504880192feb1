# Tests of libdeltafs_posix: sourced behind lib.sh and cli_lib.sh, in the folder $work.
posix_libraries=$(cd "$top_builddir/.libs" && pwd)
case $deltafs in /*) ;; *) deltafs=$PWD/$deltafs ;; esac

# mounted MOUNTS COMMAND...: run a command with these mounts, as they are in DELTAFS_POSIX. If POSIX_PRELOAD is set, these
# libraries are loaded before this one; if POSIX_UNDER is set, programs of the tests run under that command: valgrind.
mounted() {
    (
        DELTAFS_POSIX=$1
        LD_LIBRARY_PATH=$posix_libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
        LD_PRELOAD=${POSIX_PRELOAD:+$POSIX_PRELOAD:}$posix_libraries/libdeltafs_posix.so
        export DELTAFS_POSIX LD_LIBRARY_PATH LD_PRELOAD
        shift
        case $1 in "${posix_libraries%/.libs}"/posix_*) exec ${POSIX_UNDER:-} "$@" ;; esac
        exec "$@"
    )
}

# m COMMAND...: run a command with the namespace $work/ns at /mounted.
m() { mounted "namespace=/mounted=$work/ns" "$@"; }
