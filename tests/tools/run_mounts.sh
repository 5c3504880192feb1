#!/bin/sh
# deltafs run --mount and --particles: what is refused, what the program finds in its environment, and what follows after
# its end. The preloaded library is an empty file here.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/tools/run_lib.sh"

run() {
    without_loader "$deltafs" run "$@"
}
signals=$(realpath "$cli/run_signals.py")
hook=$(realpath "$top_builddir/.libs/libsync_hook.so")
cd "$work" || exit 99

# ---- The library

expect 3 run --mount /p=ns -- env
says "$lib/libdeltafs_posix.so is missing"
: >"$lib/libdeltafs_posix.so"
[ ! -e ns ] || fail "a namespace was created for nothing"

# ---- The environment

expect 0 run --mount //p/./a/=ns --particles "$work/q=deltafs:dumps=1" --schema x:f4 -- env
has "DELTAFS_POSIX=namespace=/p/a=$work/ns|particles=$work/q=$work/dumps=1"
has "DELTAFS_SCHEMA=x:f4"
has "LD_PRELOAD=$lib/libdeltafs_posix.so"
has_not DELTAFS_POSIX_SYNC
has_not DELTAFS_POSIX_LABEL
has_not DELTAFS_SYNC
has_not HDF5_DRIVER
expect 0 "$deltafs" ns ls ns:/
[ ! -e "$work/dumps=1" ] || fail "run created a directory of particles"
# shellcheck disable=SC2016
expect 0 run --particles /q=dumps --sync --label '$STEP' -- env
has "DELTAFS_POSIX=particles=/q=$work/dumps"
has "DELTAFS_POSIX_SYNC=1"
# shellcheck disable=SC2016
has 'DELTAFS_POSIX_LABEL=$STEP'
has_not DELTAFS_SYNC

# A mount point is known by the path without links, too: relative paths begin with that.
mkdir folder
ln -s folder link-to-folder
expect 0 run --mount "$work/link-to-folder/a/b=ns" --particles /q=dumps -- env
has "DELTAFS_POSIX=namespace=$work/link-to-folder/a/b=$work/ns|particles=/q=$work/dumps|namespace=$work/folder/a/b=$work/ns"
expect 2 run --mount "$work/link-to-folder/a=ns" --particles "$work/folder=dumps" -- env
says "$work/folder/a lies within $work/folder"
ln -s / link-to-root
expect 0 run --mount "$work/link-to-root/a=ns" -- env
has "DELTAFS_POSIX=namespace=$work/link-to-root/a=$work/ns|namespace=/a=$work/ns"

# ---- Snapshots

expect 0 "$deltafs" ns mkdir ns:/one
expect 0 "$deltafs" snapshot publish ns reg@first
expect 0 run --mount /p=reg@first -- env
has "DELTAFS_POSIX=namespace=/p=$work/reg@first"
mkdir empty
DELTAFS_REGISTRY=$work/reg
export DELTAFS_REGISTRY
expect 0 run --mount /p=@first -- env
has "DELTAFS_POSIX=namespace=/p=$work/reg@first"
unset DELTAFS_REGISTRY
expect 3 run --mount /p=reg@second -- env
says "second"

# ---- What is refused

# refuse MOUNT TEXT: --mount is refused with a message that has the text, whatever the program does.
refuse() {
    expect 2 run --mount "$1" -- touch ran
    says "$2"
    [ ! -e ran ] || fail "the program was started with --mount $1"
}
refuse /p "has no '='"
refuse p=ns "absolute path POINT"
refuse =ns "absolute path POINT"
refuse /=ns "has the root as its POINT"
refuse /./=ns "has the root as its POINT"
refuse /p/../q=ns "has '..' in its POINT"
refuse /p= "has no TARGET"
refuse '/p|q=ns' "has a '|'"
refuse '/p=n|s' "has a '|'"
mkdir "a@b"
refuse '/p=a@b' "has a TARGET with a '@'"
refuse "$work=ns" "$work/ns would be hidden by the mount point $work"
refuse "$work/ns=ns" "$work/ns would be hidden by the mount point $work/ns"
refuse "$work/ns/p=ns" "$work/ns/p would hide a part of $work/ns"
refuse "$work/reg=reg@first" "would be hidden by the mount point $work/reg"
ln -s ns link
refuse "$work/ns=link" "$work/link would be hidden by the mount point $work/ns"
expect 2 run --mount /p=ns --particles /p/q=dumps -- env
says "/p/q lies within /p"
expect 2 run --mount /p=ns --mount /p=other -- env
says "/p is the mount point of two"
expect 3 run --particles /p=ns -- env
says "$work/ns: a folder, not a DeltaFS directory"
expect 2 run --particles /q=dumps --mount "$work/dumps=ns" -- env
says "$work/dumps would be hidden by the mount point $work/dumps"
expect 3 run --mount /p=nowhere/ns -- env
says "$work/nowhere/ns: the folder $work/nowhere cannot be found: No such file or directory"
: >plain
expect 3 run --mount /p=plain -- env
says "$work/plain"
set --
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
    set -- "$@" --particles "/p$i=dumps"
done
expect 0 run "$@" -- true
expect 2 run "$@" --particles /q=dumps -- true
says "is one too many; 16 can be given"
shift 2
expect 2 run "$@" --particles "$work/link-to-folder/q=dumps" -- true
says "do not give $work/link-to-folder/q by a path with a symbolic link"
long=/$(printf '%04096d' 0)
refuse "$long=ns" "run: --mount: '/000" # and so on
refuse "/p=$long" "run: --mount: '/p=/000"
expect 3 run --mount "/p=${long#/0}" -- env
says "the path is too long"
DELTAFS_POSIX='particles=/q=/dumps'
export DELTAFS_POSIX
refuse /p=ns "another 'deltafs run' has started this one, and has mounted particles=/q=/dumps"
unset DELTAFS_POSIX
expect 2 run --mount /p=ns --label dump.%d -- env
says "--label is for --particles"
for label in "" '$' dump; do
    expect 2 run --particles /q=dumps --label "$label" -- env
    says "--label: '$label' is no label"
done

# ---- The end of the program

# shellcheck disable=SC2016
expect 7 run --mount /p=ns -- sh -c 'exit $1' sh 7
expect 2 run --mount /p=ns -- sh -c 'exit 2'
says_not() {
    ! grep -qF -- "$1" "$work/err" || fail "a message with '$1'"
}
says_not "Try 'deltafs help run'"
# shellcheck disable=SC2016
expect 137 run --mount /p=ns -- sh -c 'kill -KILL $$'
expect 3 run --mount /p=ns -- /nowhere/program
says "/nowhere/program cannot be started: No such file or directory"


if [ -n "${PYTHON3:-}" ]; then
    expect 0 "$PYTHON3" "$signals" "$deltafs" run --mount /p=ns --
fi

# ---- All is on storage

# synced ARGUMENT...: run with these; $work/synced gets the paths that the command itself forced to storage.
synced() {
    rm -f synced
    SYNC_HOOK_LOG=$work/synced LD_PRELOAD=$hook ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 \
        without_loader "$deltafs" run "$@"
}
if [ -e "$hook" ] && [ -z "${LD_PRELOAD:-}" ]; then
    find ns -exec touch -d '2 days ago' {} +
    expect 0 synced --mount /p=ns -- true
    [ ! -e synced ] || fail "nothing was changed, but there was an fsync of $(cat synced)"
    # The program does not wait for storage, and its table is new.
    expect 0 synced --mount /p=link -- env -u LD_PRELOAD DELTAFS_SYNC=none "$deltafs" ns mkdir ns:/two
    find ns -newermt '1 day ago' | sed "s|^|$work/|" | sort >wanted
    [ -s wanted ] || fail "the program changed nothing"
    sort synced | same wanted - "what changed (<) and what was forced to storage (>) differ"
    # A directory of particles, with a volume.
    expect 0 synced --particles /q=particles --particles /r=reg/none -- sh -c '
        mkdir -p particles/deep volume && : >particles/deep/file && : >volume/file &&
        ln -s ../volume particles/00 && ln -s nowhere particles/broken'
    sort synced >out
    for name in particles particles/deep particles/deep/file volume volume/file; do
        echo "$work/$name"
    done >wanted
    same wanted out "what was forced to storage (>) of a directory of particles"
    expect 0 run --mount /p=ns -- env -u LD_PRELOAD "$deltafs" ns cp plain ns:/three
    SYNC_HOOK_FAIL=/MANIFEST
    export SYNC_HOOK_FAIL
    expect 3 synced --mount /p=ns --publish reg@unsafe -- true
    says "MANIFEST: may not be safe on storage: Input/output error"
    says "reg@unsafe is not published"
    expect 7 synced --mount /p=ns -- sh -c 'exit 7'
    DELTAFS_SYNC=none
    export DELTAFS_SYNC
    expect 0 synced --mount /p=ns -- true
    unset SYNC_HOOK_FAIL DELTAFS_SYNC
    ! "$deltafs" snapshot show reg@unsafe >"$work/out" 2>&1 || fail "a namespace was published that is not safe"
fi
# The namespace is gone: somebody removed it.
expect 3 run --mount /p=gone -- rm -r gone
says "$work/gone: cannot be found: No such file or directory"
# A folder in it may not be read.
mkdir -m 0 ns/closed
chmod 755 "$work"
as=
[ "$(id -u)" -ne 0 ] || as="setpriv --reuid=1 --clear-groups"
if $as "$deltafs" --version >"$work/said" 2>&1; then
    # shellcheck disable=SC2086
    expect 3 without_loader $as "$deltafs" run --mount /p=ns -- true
    says "$work/ns/closed: may not be safe on storage: Permission denied"
fi
rmdir ns/closed

# ---- Publishing

expect 0 run --mount /p=ns --particles /q=dumps --publish reg@second -- "$deltafs" ns mkdir ns:/four
expect 0 "$deltafs" ns stat reg@second:/four
expect 2 run --mount /p=ns --publish reg@second -- touch ran
says "reg@second exists already; choose another name, or remove it with 'deltafs snapshot withdraw'"
expect 3 run --mount /p=ns --publish 'reg@a name' -- touch ran
expect 3 run --mount /p=ns --publish name -- touch ran
says "name"
for mounts in "--particles /q=dumps" "--mount /p=reg@first" "--mount /p=ns --mount /q=other"; do
    # shellcheck disable=SC2086
    expect 2 run $mounts --publish reg@third -- touch ran
    says "--publish takes exactly one namespace that is mounted with --mount"
done
for name in PMI_RANK PMIX_RANK OMPI_COMM_WORLD_RANK PALS_RANKID; do
    expect 2 env $name=0 "$deltafs" run --mount /p=ns --publish reg@third -- touch ran
    says "one rank of a job ($name is set)"
done
[ ! -e ran ] || fail "the program was started"
# A program that fails: its status is returned, and what it left is not published unless one wants that.
expect 7 run --mount /p=ns --publish reg@third -- sh -c 'exit 7'
says "reg@third is not published; 'deltafs snapshot publish $work/ns reg@third' publishes what $work/ns has now"
expect 0 "$deltafs" snapshot publish "$work/ns" reg@third
# Publishing fails.
expect 3 run --mount /p=ns --publish nowhere/reg@fourth -- true
says "the folder nowhere does not exist; create it first"
says "nowhere/reg@fourth is not published"
exit 0
