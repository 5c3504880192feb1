#!/bin/sh
# deltafs-mpi ns cp: several ranks copy a tree as one does.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
export DELTAFS_SYNC=none
case $deltafs in /*) ;; *) deltafs=$PWD/$deltafs ;; esac
case $deltafs_mpi in /*) ;; *) deltafs_mpi=$PWD/$deltafs_mpi ;; esac
cd "$work" || exit 99

# cp_by RANKS CODE ARGUMENT...: exits with this code.
cp_by() {
    ranks=$1
    wanted=$2
    shift 2
    mpi "$ranks" "$deltafs_mpi" ns cp "$@" >out 2>err
    code=$?
    [ $code -eq "$wanted" ] || fail "$ranks ranks: ns cp $*: exit code $code, not $wanted: $(cat out err)"
    [ "$wanted" -ne 0 ] || [ ! -s err ] || fail "ns cp $*: $(cat err)"
}

# told N TEXT: N ranks have said this.
told() {
    [ "$(grep -cF -- "$2" err)" -eq "$1" ] || fail "not told $1 times: $2: $(cat err)"
}

# same_trees A B: also the modes, and the times of all but links.
same_trees() {
    diff -r --no-dereference "$1" "$2" || fail "$2 is not as $1"
    for folder in "$1" "$2"; do
        (cd "$folder" && find . ! -type l -printf '%p %m %T@\n' | sort) >"modes-$folder"
    done
    same "modes-$1" "modes-$2" "modes or times differ"
}

mkdir -p tree/a/b tree/empty
for i in 1 2 3 4 5 6 7 8; do
    echo "$i" >"tree/$i"
    echo "a $i" >"tree/a/$i"
    ln -s "a/$i" "tree/link$i"
done
head -c 700000 /dev/urandom >tree/a/b/large
chmod 640 tree/1
chmod 555 tree/a/b
chmod 511 tree/a
touch -d '2001-02-03 04:05:06.789 UTC' tree/1 tree/a tree

# ---- In and out ----
"$deltafs" ns create n || fail create
cp_by 3 0 -rp tree n:/
"$deltafs" ns cp -rp n:/tree alone || fail "ns cp alone"
same_trees tree alone
cp_by 3 0 -rp n:/tree together
same_trees tree together
cp_by 1 0 -rp n:/tree one
same_trees tree one
cp_by 2 0 -r tree n:/new
cp_by 3 0 -r n:/new new
diff -r --no-dereference tree new || fail "the copy of a copy differs"
[ "$(stat -c %a new/a)" = 511 ] || fail "mode of a folder: $(stat -c %a new/a)"
# Several sources; one target of two has the last.
cp_by 3 0 -r tree/1 tree/2 tree/a tree/a/1 n:/new/empty
"$deltafs" ns cat n:/new/empty/1 n:/new/empty/a/2 >out
[ "$(cat out)" = "a 1
a 2" ] || fail "several sources: $(cat out)"
cp_by 2 0 tree/1 n:/named
cp_by 3 0 -r n:/named n:/new n:/tree/empty
"$deltafs" ns cat n:/tree/empty/named n:/tree/empty/new/3 >out
[ "$(cat out)" = "1
3" ] || fail "within a namespace: $(cat out)"

# ---- What goes wrong is said once, and the rest is copied ----
mkdir bad bad/folder
for i in 1 2 3 4 5 6; do
    mkfifo "bad/pipe$i"
    echo "$i" >"bad/$i"
done
cp_by 3 3 -r bad none tree/a n:/
for i in 1 2 3 4 5 6; do
    told 1 "bad/pipe$i: neither a file"
done
told 1 "none: No such file"
[ "$("$deltafs" ls n:/bad | xargs)" = "1 2 3 4 5 6 folder" ] || fail "the rest: $("$deltafs" ls n:/bad)"
[ "$("$deltafs" cat n:/a/8)" = "a 8" ] || fail "the other source"
cp_by 3 3 -r n:/tree n:/tree/empty
told 1 "cannot be copied into itself"
cp_by 2 3 -r tree/a n:/named
told 1 "no folder takes its place"
cp_by 3 3 tree/1 tree/2 n:/named
told 1 "several sources need one"
"$deltafs" ns mkdir -p n:/other/2 || fail mkdir
cp_by 3 3 -r tree/2 n:/other
told 1 "no file takes its place"
cp_by 2 3 -r tree none:/
told 1 "there is no such namespace"
cp_by 2 2 tree/1 x
told 1 "is in a namespace"
