/* Part of posix_functions: attributes and names of files. */
#include "tests/posix/posix_functions.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include <utime.h>

void attributes(void)
{
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 2000, .tv_nsec = 5}};
    const struct timespec omit[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};
    const struct timeval tv[2] = {{.tv_sec = 3000}, {.tv_sec = 4000}};
    const struct utimbuf u = {.actime = 5000, .modtime = 6000};
    struct statx sx;
    struct stat st;

    make_file("a", "text");
    SHOW(symlink("a", "la"));
    SHOW(symlink("absent", "lb"));
    SHOW(utimensat(AT_FDCWD, "a", times, 0));
    show_stat("stat", stat("a", &st), &st);
    show_stat("stat of a link", stat("la", &st), &st);
    show_stat("stat of a link that leads nowhere", stat("lb", &st), &st);
    show_stat("fstatat", fstatat(AT_FDCWD, "a", &st, 0), &st);
    show("stat of nothing", stat("", &st));
    show("the size of a link", lstat("la", &st) == 0 ? st.st_size : -1);
    int fd = open("a", O_RDWR), folder = open(".", O_RDONLY);
    show_stat("fstat", fstat(fd, &st), &st);
    show_stat("fstatat of a descriptor", fstatat(fd, "", &st, AT_EMPTY_PATH), &st);
    show_stat("fstatat in a folder", fstatat(folder, "a", &st, 0), &st);
    show_stat("fstat of a folder", fstat(folder, &st), &st);
    SHOW(statx(AT_FDCWD, "a", 0, STATX_BASIC_STATS, &sx));
    printf("%o %llu %lld\n", sx.stx_mode, (unsigned long long)sx.stx_size, (long long)sx.stx_mtime.tv_sec);
    SHOW(statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &sx));
    SHOW(futimens(fd, omit));
    SHOW(utimes("a", tv));
    show_stat("stat", stat("a", &st), &st);
    SHOW(utime("a", &u));
    show_stat("stat", stat("a", &st), &st);
    SHOW(futimens(fd, times));
    SHOW(lutimes("la", tv));
    SHOW(futimes(fd, tv));
    SHOW(futimesat(folder, "a", tv));
    show_stat("stat", stat("a", &st), &st);
    SHOW(chmod("a", 0600));
    show_stat("stat", stat("a", &st), &st);
    SHOW(fchmod(fd, 0751));
    SHOW(fchmodat(folder, "absent", 0600, 0));
    show_stat("stat", stat("a", &st), &st);
    SHOW(chown("a", (uid_t)-1, (gid_t)-1));
    SHOW(lchown("la", getuid(), (gid_t)-1));
    SHOW(fchown(fd, getuid(), getgid()));
    SHOW(fchownat(folder, "a", getuid(), getgid(), 0));
    SHOW(access("a", R_OK | W_OK | X_OK));
    SHOW(access("absent", F_OK));
    SHOW(faccessat(folder, "a", R_OK, 0));
    SHOW(eaccess("a", F_OK));
    SHOW(euidaccess("a", F_OK));
    SHOW(write(fd, "longer text", 11));
    show_stat("the size while it is open", stat("a", &st) + 0 * (int)(st.st_mtime = 1), &st);
    SHOW(close(fd));
    SHOW(close(folder));
}

void names(void)
{
    char text[8] = "", path[4096];

    SHOW(mkdir("d", 0755));
    SHOW(mkdir("d", 0755));
    SHOW(mkdir("absent/d", 0755));
    int d = open("d", O_RDONLY | O_DIRECTORY);
    SHOW(mkdirat(d, "e", 0700));
    make_file("d/e/x", "x");
    SHOW(rmdir("d"));
    SHOW(rmdir("absent"));
    SHOW(rmdir("d/e/x"));
    SHOW(unlink("d"));
    SHOW(unlink("absent"));
    SHOW(symlinkat("e/x", d, "l"));
    SHOW(symlink("e/x", "d/l"));
    SHOW(readlink("d/l", text, sizeof text - 1));
    SHOW(readlink("d/l", text, 2));
    SHOW(readlinkat(d, "l", text, sizeof text - 1));
    printf("%s\n", text);
    SHOW(readlink("d/e", text, sizeof text));
    show_file("d/l");
    SHOW(rename("d/e/x", "d/y"));
    show_file("d/y");
    SHOW(rename("d/absent", "d/z"));
    SHOW(rename("d/y", "d/e"));
    SHOW(rename("d/e", "d/y"));
    SHOW(rename("d", "d/e/f"));
    SHOW(renameat(d, "y", d, "z"));
    make_file("d/y", "new");
    SHOW(renameat2(d, "y", d, "z", RENAME_NOREPLACE));
    int fd = open("d/z", O_RDWR);
    SHOW(rename("d/y", "d/z"));
    SHOW(write(fd, "removed", 7));
    SHOW(pread(fd, text, 7, 0));
    printf("%s\n", text);
    SHOW(close(fd));
    show_file("d/z");
    fd = open("d/z", O_RDWR);
    SHOW(rename("d", "renamed"));
    SHOW(write(fd, "renamed", 7));
    SHOW(close(fd));
    show_file("renamed/z");
    SHOW(unlinkat(d, "l", 0));
    SHOW(unlinkat(d, "e", AT_REMOVEDIR));
    SHOW(chdir("renamed/z"));
    SHOW(chdir("renamed"));
    show_file("../renamed/z");
    SHOW(strcmp(strrchr(getcwd(path, sizeof path), '/'), "/renamed"));
    SHOW(getcwd(path, 2) != NULL);
    SHOW(remove("z"));
    SHOW(chdir(".."));
    SHOW(fchdir(d));
    SHOW(fchdir(d) + chdir(".."));
    SHOW(close(d));
    SHOW(remove("renamed"));
    SHOW(remove("renamed"));
}
