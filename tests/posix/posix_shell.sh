#!/bin/sh
# Shells on a namespace behind a mount point: redirections, working directories, jobs, processes that are killed.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
cd "$work" || exit 99
expect 0 "$deltafs" ns create ns

# check_script NAME SCRIPT: a shell does the same in a mount as in a folder of the system. $d is the folder.
check_script() {
    for shell in sh bash; do
        mkdir "real.$1.$shell"
        m mkdir "/mounted/$1.$shell"
        (cd "real.$1.$shell" && d=$PWD $shell -c "$2") >wanted 2>&1
        (cd / && d=/mounted/$1.$shell m $shell -c "$2") >got 2>&1
        same got wanted "$shell: $1: output"
        expect 0 "$deltafs" ns cp -r "ns:/$1.$shell" "copied.$1.$shell"
        diff -r "real.$1.$shell" "copied.$1.$shell" || fail "$shell: $1: files"
    done
}

# Built-in commands write by the C library in one shell and not in the other; others are children.
check_script redirect '
    echo one >$d/a; printf "%s\n" two >>$d/a; /bin/echo three >>$d/a; cat <$d/a
    (echo a; /bin/echo b; echo c) >$d/several; { echo d; env echo e; } >>$d/several
    (/bin/echo f; sh -c "echo g; /bin/echo h") >>$d/several
    (cd $d; ls none >both 2>&1; cat both)
    cat >$d/here <<END
$(cat $d/a) in a here document
END
    read first rest <$d/a; echo $first
    while read line; do echo "<$line>"; done <$d/several >$d/loop
    cat $d/a | tr a-z A-Z | sort >$d/sorted
    exec 3>$d/three; echo to 3 >&3; /bin/echo to 3 >&3; exec 3>&-
    exec 4<$d/a; read x <&4; read y <&4; cat <&4; echo $x $y; exec 4<&-
    { echo to err >/dev/stderr; } 2>>$d/err; { cat /dev/stdin; cat /dev/fd/0; } <$d/a; (echo again >>/dev/stdout) >$d/out
    exec >$d/rest; echo rest; /bin/echo more; seq 3'

check_script folders '
    mkdir -p $d/x/y && cd $d/x && pwd | sed "s,.*/x,x," && echo in x >f && cat f && cd y && cat ../f && sh -c "cat ../f; echo y >g"
    (cd .. && cat f y/g) && cd - >/dev/null && cd ../.. 2>&1 | head -c 0; /bin/pwd | sed "s,.*/x,x,"
    mv y/g h && cp h i && rm h; env -i /bin/sh -c "cat i"; env -i /bin/cat f'

# Nothing is lost or written twice when several write to one redirection, whoever ends first.
check_script jobs '
    { for i in 1 2 3; do seq $((i * 1000)) $((i * 1000 + 500)) & done; wait; } | sort >$d/piped
    { for i in 1 2 3; do seq $((i * 1000)) $((i * 1000 + 500)) & done; wait; } >$d/unsorted; sort $d/unsorted >$d/s && rm $d/unsorted
    echo begin >$d/added; for i in 1 2 3; do (seq 100; echo $i) >>$d/added & done; wait; sort $d/added >$d/t; rm $d/added
    (sleep 0.1; echo late) >$d/late & wait; echo $!>/dev/null
    { seq 10; (seq 11 20 &) ; sleep 0.2; seq 21 30; } >$d/mixed; sort $d/mixed >$d/u; rm $d/mixed
    { seq 5; { seq 6 9; kill -9 $(sh -c "echo \$PPID"); } & wait $!; seq 10 12; } >$d/killed 2>$d/killed.err; rm $d/killed.err'

# A large output: more than is kept in memory; one file, two programs, with and without the C library.
m sh -c '{ head -c 20000000 /dev/zero; seq 1000000; head -c 20000000 /dev/zero; } >/mounted/large' || fail "a large file"
{ head -c 20000000 /dev/zero; seq 1000000; head -c 20000000 /dev/zero; } >large
m cat /mounted/large | cmp - large || fail "a large file differs"

m sh -c 'tail -c +20000001 </mounted/large | head -n 3; sort -u </mounted/large | wc -l
    (head -n 1; sort -u | wc -l) </mounted/large' >out 2>err
tail -c +20000001 large | head -n 3 >wanted
sort -u <large | wc -l >>wanted
(head -n 1; sort -u | wc -l) <large >>wanted
same out wanted "a large file as standard input"

# A process that is killed leaves what it had closed, and does not hold up others.
for i in 1 2 3 4 5; do
    m sh -c 'echo kept >/mounted/kept.'$i'; exec 5>/mounted/lost; echo lost >&5; kill -9 $$' 2>/dev/null
    m sh -c 'cat /mounted/kept.'$i'; echo on >/mounted/on.'$i || fail "after a process was killed"
done >out
[ "$(grep -c kept out)" = 5 ] || fail "what killed processes had closed: $(cat out)"
