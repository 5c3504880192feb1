#!/bin/sh
# Files and trees are copied into a pool, out of it, and into a namespace.
. "$top_srcdir/tests/pool/pool_lib.sh"
export DELTAFS_SYNC=none
case $deltafs in /*) ;; *) deltafs=$PWD/$deltafs ;; esac
case $deltafs_mpi in /*) ;; *) deltafs_mpi=$PWD/$deltafs_mpi ;; esac
cd "$work" || exit 99

# pool ARGUMENT...: succeeds, and says nothing.
pool() {
    expect 0 "$deltafs" pool "$@"
    [ ! -s err ] || fail "pool $*: $(cat err)"
}

# says TEXT: the last command said this.
says() { grep -qF -- "$1" err || fail "not said: $1: $(cat err)"; }

# same_trees A B: also modes and times, but not of the folders themselves, with what is in each.
same_trees() {
    diff -r "$1" "$2" >difference || fail "$2 is not as $1: $(cat difference)"
    for folder in "$1" "$2"; do
        (cd "$folder" && find . -mindepth 1 -printf '%p %m %T@\n' | sort) >"modes.$(basename "$folder")"
    done
    diff "modes.$(basename "$1")" "modes.$(basename "$2")" >difference ||
        fail "modes or times of $2: $(cat difference)"
}

mkdir -p tree/a/b tree/empty
printf one >tree/one
: >tree/a/nothing
head -c 2500000 /dev/urandom >tree/a/b/large
head -c 524288 /dev/urandom >tree/a/b/chunk
chmod 400 tree/one
chmod 555 tree/a/b
touch -d '2001-02-03 04:05:06.789012345 UTC' tree/one tree/a tree/empty

pool_start 2

# In and out: a folder becomes a copy, whether it is there or not.
pool load tree "$point/tree"
pool load tree "$point/tree"
pool drain "$point/tree" back
same_trees tree back
[ "$(stat -c '%a %Y' back)" = "$(stat -c '%a %Y' tree)" ] || fail "the folder's mode or time"
pool load tree/one "$point/single"
pool load tree/one "$point"
pool drain "$point/one" .
cmp tree/one one || fail "a file that is copied into a folder"
# All of the pool. A folder that is there keeps its mode.
mkdir all
chmod 750 all
pool drain "$point" all
[ "$(ls all | xargs)" = "one single tree" ] && cmp all/single tree/one && cmp all/tree/a/b/large tree/a/b/large ||
    fail "the whole pool: $(ls -R all)"
[ "$(stat -c %a all)" = 750 ] || fail "the mode of a folder that was there"

# What is there with the same size and time is not copied again; all else is.
printf two | dd of=back/a/b/large conv=notrunc status=none
touch -r tree/a/b/large back/a/b/large
chmod 600 back/one
printf 1 >back/one
touch -r tree/one back/one
pool drain "$point/tree" back
[ "$(head -c 3 back/a/b/large)" = two ] || fail "a file that is there was copied again"
cmp tree/one back/one || fail "a file of another size was not copied"
touch back/a/b/large
pool drain "$point/tree" back
same_trees tree back
for time in '2001-02-03 04:05:06.5 UTC' '2001-02-03 04:05:07.5 UTC'; do
    touch -d "$time" tree/one
    pool load tree "$point/tree"
    pool drain "$point/tree/one" back/one
    [ "$(stat -c %y back/one)" = "$(stat -c %y tree/one)" ] || fail "a newer file was not copied"
done

# By several ranks; and into a namespace, which is published, and from the snapshot into the pool.
expect 0 mpi 2 "$deltafs_mpi" pool load tree "$point/ranks"
expect 0 mpi 2 "$deltafs_mpi" pool drain "$point/ranks" ranks
same_trees tree ranks
mkdir reg
"$deltafs" ns create n || fail "create"
pool drain "$point/tree/a" n:/a
"$deltafs" snapshot publish n reg@first >out || fail "publish"
pool load reg@first:/ "$point/again"
pool drain "$point/again/a/b" from
same_trees tree/a/b from

# Links are copied as links; what cannot be copied is named, and the rest is copied.
mkdir links
ln -s ../tree/one links/file
ln -s ../tree links/folder
ln -s none links/none
mkfifo links/pipe
echo rest >links/rest
expect 3 "$deltafs" pool load links "$point/links"
says "links/pipe: neither a file"
ln -sf rest links/none
expect 3 "$deltafs" pool load links "$point/links"
pool drain "$point/links" links.out
pool drain "$point/links" links.out
for link in file folder none; do
    [ "$(readlink "links.out/$link")" = "$(readlink "links/$link")" ] || fail "the link $link: $(ls -l links.out)"
done
[ "$(ls links.out | xargs)" = "file folder none rest" ] || fail "links: $(ls links.out)"
pool drain "$point/links/none" none.out
[ "$(cat none.out)" = rest ] || fail "a link that is named itself is followed"
pool drain "$point/links" n:/links
[ "$("$deltafs" ns cat n:/links/none)" = rest ] || fail "links in a namespace"
expect 3 "$deltafs" pool load links/rest "$point/tree/one/rest"
expect 3 "$deltafs" pool load tree "$point/single"
says "$point/single: is no folder; no folder takes its place"
expect 3 "$deltafs" pool load none "$point/none"
says "none: No such file"
expect 3 "$deltafs" pool load tree/one "$point/none/one"
says "does not exist"
expect 3 "$deltafs" pool drain "$point/none" none
expect 3 "$deltafs" pool drain "$point/single" back/pipe/x
expect 1 "$deltafs" pool load tree/one "$work/other"
says "no pool is mounted here"
expect 2 "$deltafs" pool load tree

# The pool ends only if all that was to be drained is.
expect 2 "$deltafs" pool stop "$point" "$point/tree" last
expect 2 "$deltafs" pool stop "$point" --drain "$point/tree"
expect 2 "$deltafs" pool stop "$point" --drain "${point}2/tree" last
says "must be in $point"
expect 3 "$deltafs" pool stop "$point" --drain "$point/tree" none/last
says "not all was copied; $point goes on"
touch -d '2001-02-03 04:05:06.789012345 UTC' tree/one
pool load tree "$point/tree"
pool_stop --drain "$point/tree" last
same_trees tree last
