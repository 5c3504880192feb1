#!/bin/sh
# Symbolic links between the system and a mount, and paths without links.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
paths=$(cd "$top_builddir" && pwd)/posix_paths
cd "$work" || exit 99
real=$(pwd -P)

# gives WANTED WHAT SCRIPT [ARGUMENT...]: the output of a shell with the mount.
gives() {
    wanted=$1 what=$2
    shift 2
    m sh -c "$@" >out 2>err || fail "$what: it ends with $?: $(cat err)"
    [ "$(cat out)" = "$wanted" ] || fail "$what: $(cat out)"
}

expect 0 "$deltafs" ns create ns
mkdir folder && echo outside >folder/file
m sh -c 'a=/mounted/a && mkdir -p $a/b && echo inside >$a/b/file && ln -s b $a/near && ln -s $a/b/file $a/far &&
    ln -s $a $a/folder && ln -s "$1/folder" $a/out && ln -s "$1/folder/new" $a/out_new &&
    ln -s "../../../..$1/folder" $a/up && ln -s loop $a/loop && ln -s $a/loop2 $a/loop2 && ln -s nothing $a/dangling &&
    ln -s /nothing $a/nothing' - "$real" || fail "links in a mount"
ln -s /mounted/a in
ln -s /mounted/a/b/file in_file
ln -s in again

# In a mount, to a path of the system.
gives inside "a target that is the path of a mount" 'cat /mounted/a/far'
gives inside "a folder with such a target" 'cat /mounted/a/folder/folder/near/file'
gives outside "a target outside" 'cat /mounted/a/out/file'
gives outside "a relative target outside" 'cat /mounted/a/up/file'
gives "directory" "what is above a mount point" 'stat -c %F /mounted/..'
gives "regular file" "attributes through a link" 'stat -L -c %F /mounted/a/out/file'
gives created "a file that a link to nothing creates" 'echo created >/mounted/a/out_new && cat "$1/folder/new"' - "$real"
[ "$(cat folder/new)" = created ] || fail "a link to nothing outside has created nothing"
gives made "a folder is created behind a link" 'mkdir /mounted/a/out/made && cd "$1/folder" && echo made*' - "$real"
gives "" "names are changed behind links" 'o=/mounted/a/folder/out && mv $o/new $o/new2 && rm $o/new2 && rmdir $o/made &&
    mv /mounted/a/folder/b/file /mounted/a/b/moved && mv /mounted/a/b/moved /mounted/a/folder/b/file'
gives "" "attributes are set behind links" 'chmod 600 /mounted/a/far && touch -d @0 /mounted/a/far'
gives "600 0" "attributes that were set behind links" 'stat -c "%a %Y" /mounted/a/b/file'

# Outside, into a mount.
gives inside "a link into a mount" 'cat in_file in/nothing 2>/dev/null || true'
gives inside "a link to a link into a mount" 'cat again/near/file'
gives more "a file is created behind a link into a mount" 'echo more >in/more && cat /mounted/a/more && rm in/more'

gives "fuseblk fuseblk $(stat -f -c %T .)" "kinds of file systems" 'echo $(stat -f -c %T again /mounted/a/folder /mounted/a/out)'

gives "/mounted/a /mounted/a/b/file" "programs that list behind a link" 'echo $(realpath in) $(find -L in/b -name file -exec realpath {} +)'

# What is not there, and what has no end.
for f in /mounted/a/loop /mounted/a/loop2 /mounted/a/dangling /mounted/a/nothing in/nothing /mounted/a/b/file/x; do
    m cat "$f" >out 2>err && fail "$f can be read"
    case $f in
    *loop*) why="symbolic links" ;;
    *x) why="Not a directory" ;;
    *) why="No such file" ;;
    esac
    grep -q "$why" err || fail "$f: $(cat err)"
done
gives "/mounted/a/b/file" "a link itself" 'readlink in_file'

# Paths without links, of the C library and of the shell.
for f in /mounted/a/far in_file again/folder/near/../near/file /mounted/../mounted//a/./folder/b/file; do
    gives /mounted/a/b/file "the path of $f" '"$2" "$1"' - "$f" "$paths"
done
gives /mounted "the path of a mount point" '"$1" /mounted/a/..' - "$paths"
gives "$real/folder/file" "a path that leads out" '"$1" /mounted/a/out/../folder/file' - "$paths"
gives "$real/folder/file" "a path outside" '"$1" folder/file' - "$paths"
gives "No such file or directory" "a path of nothing" '"$1" /mounted/a/dangling' - "$paths"
gives "Too many levels of symbolic links" "a path without an end" '"$1" in/loop' - "$paths"
gives "Not a directory" "a file as a folder" '"$1" in_file/..' - "$paths"
gives "Not a directory" "a file with a slash" '"$1" /mounted/a/b/file/' - "$paths"
gives "/mounted/a/b inside" "the working directory behind links" 'cd -P again/near && read x <file && echo "$(pwd -P) $x"'
gives "$real outside" "the working directory outside" 'cd -P /mounted/a/out/.. && read x <folder/file && echo "$(pwd -P) $x"'
gives /mounted/a/c "a working directory that is renamed" '"$1" /mounted/a/b /mounted/a/c' - "$paths"
