#!/bin/sh
# Programs as they are, on a directory of particles behind a mount point.
. "$top_srcdir/tests/support/lib.sh"
. "$top_srcdir/tests/support/cli_lib.sh"
. "$top_srcdir/tests/posix/posix_lib.sh"
program=$(cd "$top_builddir" && pwd)/file_per_particle
cd "$work" || exit 99

# In this file m is: run a command with the directory $work/dir at /p.
m() { mounted "particles=/p=$work/dir" "$@"; }

# refused TEXT COMMAND...: fails unless the command fails, and says the text, which is a pattern.
refused() {
    text=$1
    shift
    "$@" >out 2>err && fail "this was not refused: $*"
    grep -q -- "$text" err || fail "not '$text', but: $(cat err)"
}

# gives TEXT COMMAND...: fails unless the command prints the text.
gives() {
    text=$1
    shift
    "$@" >out 2>err || fail "$*: $(cat err)"
    [ "$(cat out)" = "$text" ] || fail "$*: '$(cat out)' instead of '$text'"
}

# Shells: the epochs end with the program, and a child does not store the records of its parent.
expect 0 m sh -c 'for i in 1 22 333; do printf first >>/p/$i; done; printf more >>/p/22; (true); (printf x >>/p/4)'
expect 0 m sh -c 'exec 3>>/p/22; printf sec >&3; printf ond >&3; exec 3>&-; printf second >>/p/0001'
gives firstmoresecond m cat /p/22
gives firstsecond m cat /p/1
expect 0 m cp /p/22 copied
gives firstmoresecond cat copied
gives "15:regular file
5:regular file
0:directory" m stat -c %s:%F /p/22 /p/333 /p
refused "No such file" m cat /p/5
gives firstmore "$deltafs" get dir 22 --epochs 1 --format raw
gives second "$deltafs" get dir 22 --epochs 2 --format raw
gives x "$deltafs" get dir 4 --epochs 0 --format raw

# What programs write to descriptors that they inherit.
echo hello >hello
expect 0 m sh -c 'cat hello >>/p/30; (cat hello; echo sub) >>/p/31; exec 3>>/p/32; cat hello >&3; echo end >&3; exec 3>&-
    cat hello | tr a-z A-Z >>/p/33; cd /p; echo relative >>34'
gives "hello hello sub hello end HELLO relative" m sh -c 'echo $(cat /p/30 /p/31 /p/32 /p/33 /p/34)'
rm -r dir
expect 0 m sh -c 'printf first >>/p/1; printf second >>/p/22'

# A descriptor shows the flags that it was opened with, and is made a stream by them.
if [ -n "${PYTHON3:-}" ]; then
    cat >flags.py <<'END_OF_PROGRAM'
import ctypes, fcntl, os
c = ctypes.CDLL(None)
c.fdopen.restype = ctypes.c_void_p
f = os.open("/p/40", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
flags = fcntl.fcntl(f, fcntl.F_GETFL)
assert flags & os.O_ACCMODE == os.O_WRONLY and flags & os.O_APPEND and not flags & os.O_PATH, flags
fcntl.fcntl(f, fcntl.F_SETFL, flags | os.O_NONBLOCK)
stream = c.fdopen(f, b"a")
assert stream
assert c.fputs(b"stream", ctypes.c_void_p(stream)) >= 0 and c.fclose(ctypes.c_void_p(stream)) == 0
END_OF_PROGRAM
    expect 0 m "$PYTHON3" flags.py
    gives stream m cat /p/40
fi
rm -r dir
expect 0 m sh -c 'printf first >>/p/1; printf second >>/p/22'

# Values with an error bound, which need not be given again.
bounded() {
    schema=$1
    shift
    "$deltafs" run --particles "/p=$work/bounded" --schema "$schema" -- "$@"
}
for schema in x:f4~1e-4,y:f4 x:f4,y:f4; do
    expect 0 bounded $schema sh -c 'printf 00010002 >>/p/1'
done
for schema in x:f4~1e-3,y:f4 x:f4 x:f4~1e-4,y:f4,z:f4 x:f4,y:f8; do
    refused "was made with 'x:f4~1e-4,y:f4'" bounded $schema sh -c 'printf 00010002 >>/p/1'
done

# Another process of the run is creating the directory: its folder is there, and no manifest yet.
expect 0 "$deltafs" run --particles "/p=$work/late" -- sh -c 'mkdir late; (sleep 0.3; rmdir late) & printf first >>/p/1'
gives first "$deltafs" get late 1 --format raw

# What cannot be.
refused "deltafs: /p/name: .*number" m sh -c 'printf x >>/p/name'
refused "deltafs: /p/5: .*O_APPEND" m sh -c 'printf x >/p/5'
refused "deltafs: /p/22: .*O_APPEND" m dd if=copied of=/p/22 conv=notrunc
refused "File exists" m sh -c 'set -C; printf x >/p/22'
refused "not permitted" m rm /p/1
refused "not permitted" m mv /p/1 /p/6
refused "No such file" m cat /p/name
refused "Not a directory\|No such file" m cat /p/1/2

# The simulation: each dump is an epoch.
rm -r dir
expect 0 m "$program" write /p 2000 3
expect 0 m "$program" read /p 2000 3
seq 0 1999 | sort >wanted
m ls -U /p | sort >out
same out wanted "the list of particles"
gives 3 sh -c '"$0" info dir | sed -n "s/^epochs *//p"' "$deltafs"
expect 137 m "$program" killed /p 500 2
gives 160 m stat -c %s /p/499
[ "$(m cat /p/1999 | wc -c)" = 96 ] || fail "an epoch that was not ended is there"

# A program that goes to the end of the file itself: Fortran's.
cat >append.f90 <<END
program append
  integer :: i
  do i = 1, 3
    open(unit=10, file='/p/7', position='append', form='formatted')
    write(10, '(i0)') i
    write(10, '(a)') 'line'
    close(10)
  end do
end program
END
if command -v gfortran >/dev/null; then
    rm -r dir
    expect 0 gfortran -o append append.f90
    expect 0 m ./append
    expect 0 m ./append
    gives "1 line 2 line 3 line 1 line 2 line 3 line" m sh -c 'echo $(cat /p/7)'
fi

# All at the end, more than is kept in memory.
rm -r dir
DELTAFS_MEMORY=8M expect 0 m "$program" plain /p 100000 2
expect 0 m "$program" read /p 200 2
limited='trap "" XFSZ; ulimit -f 1000; exec "$@"'
DELTAFS_MEMORY=8M refused "records cannot be kept" m sh -c "$limited" sh "$program" plain /p 200000 1
grep -q "records of this program were not stored" err || fail "what is lost is not said: $(cat err)"

# A file system that is full when the epoch ends.
rm -r dir
refused "syncfs" m sh -c "$limited" sh "$program" sync /p 100000 1
grep -q "deltafs: .*dir.*100000 records of this program" err || fail "a full file system: $(cat err)"
expect 0 m "$program" sync /p 200 2
expect 0 m "$program" read /p 200 2

# Records of one size.
rm -r dir
DELTAFS_SCHEMA=x:f8 refused "deltafs: /p/0: 32 bytes .* 8" m "$program" sync /p 3 1
DELTAFS_SCHEMA=x:f8,y:f8,z:f8,dump:i4,particle:i4 expect 0 m "$program" sync /p 30 2
expect 0 m "$program" read /p 30 2
gives "key,epoch,x,y,z,dump,particle
9,1,4.5,0.25,10.0,1,9" "$deltafs" get dir 9 --epochs 1 --format csv
refused "/p/1: 1 bytes" m sh -c 'printf x >>/p/1; false'

# Names of any kind.
rm -r dir
DELTAFS_KEYS=bytes expect 0 m sh -c 'printf one >>"/p/a b"; printf two >>/p/12'
gives one m cat "/p/a b"
gives two "$deltafs" get dir 12 --format raw
expect 0 m sh -c 'printf one >>"/p/a b"'
gives "12
a b" m ls /p

# Labels of the program.
rm -r dir
STEP=17 DELTAFS_POSIX_LABEL='$STEP' expect 0 m sh -c 'printf a >>/p/1'
STEP=17 DELTAFS_POSIX_LABEL='$STEP' refused "label" m sh -c 'printf b >>/p/1; false'
STEP=x DELTAFS_POSIX_LABEL='$STEP' refused "STEP must have" m sh -c 'printf c >>/p/1; false'
DELTAFS_POSIX_LABEL=dump.%d expect 0 m sh -c 'mkdir /p/dump.20 && printf d >/p/dump.20/1'
DELTAFS_POSIX_LABEL=dump.%d gives d m cat /p/dump.20/1
DELTAFS_POSIX_LABEL=dump.%d expect 0 m "$program" write /p/dump.25 2 1
DELTAFS_POSIX_LABEL=dump.%d gives "0
1" m ls /p/dump.25
gives "d" "$deltafs" get dir 1 --epochs 20 --format raw
DELTAFS_POSIX_LABEL=dump.%d refused "No such file" m cat /p/dump.21/1
DELTAFS_POSIX_LABEL=dump.%d refused "two epochs" m sh -c 'printf e >/p/dump.30/1; printf f >/p/dump.31/1; false'
gives e "$deltafs" get dir 1 --epochs 30 --format raw
gives 35 m stat -c %s /p/1
gives a "$deltafs" get dir 1 --epochs 17 --format raw
DELTAFS_POSIX_LABEL=dump refused "is no .NAME" m true
