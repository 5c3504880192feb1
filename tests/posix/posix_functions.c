/* Calls the functions of the C library that name or use a file, in the folder that is its argument, and prints what it
 * finds: the same in a mount and in another folder. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utime.h>

#define LARGE (6 << 20) /* bytes of a file that is not in memory when it is opened */

/* ---- Printing ---- */

static void show(const char *what, long long result)
{
    int error = errno;

    printf("%s: %lld", what, result);
    if (result == -1)
        printf(" %s", strerror(error));
    printf("\n");
    errno = 0;
}
#define SHOW(call) show(#call, (long long)(call))

static void show_stream(const char *what, FILE *f)
{
    printf("%s: %s\n", what, f ? "a stream" : strerror(errno));
    errno = 0;
}

/* The bytes of a file, as far as they can be printed. */
static void show_file(const char *path)
{
    unsigned char bytes[200];
    struct stat st;
    int fd = open(path, O_RDONLY);
    ssize_t got = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);

    printf("%s: %lld bytes, \"", path, fd >= 0 && fstat(fd, &st) == 0 ? (long long)st.st_size : -1);
    for (ssize_t i = 0; i < got; i++)
        printf(bytes[i] >= ' ' && bytes[i] < 127 ? "%c" : "\\%o", bytes[i]);
    printf("\"\n");
    if (fd >= 0)
        close(fd);
    errno = 0;
}

static void show_stat(const char *what, int result, const struct stat *st)
{
    show(what, result);
    if (result == 0)
        printf("  mode %o links %d size %lld mtime %lld\n", (unsigned)st->st_mode,
               S_ISDIR(st->st_mode) ? 0 : (int)st->st_nlink, S_ISDIR(st->st_mode) ? 0 : (long long)st->st_size,
               st->st_mtime < 1000000 ? (long long)st->st_mtime : -1);
}

static void make(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd) != 0)
        show(path, -1);
}

/* A file of LARGE bytes; each number in it is its own place. */
static void make_large(const char *path)
{
    static unsigned number[LARGE / sizeof(unsigned)];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    for (unsigned i = 0; i < LARGE / sizeof *number; i++)
        number[i] = i;
    if (fd < 0 || write(fd, number, LARGE) != LARGE || close(fd) != 0)
        show(path, -1);
}

/* ---- Opening ---- */

static void opening(void)
{
    struct stat st;
    int fd;

    SHOW(open("absent", O_RDONLY));
    SHOW(open("absent/below", O_RDWR | O_CREAT, 0600));
    SHOW(close(fd = open("file", O_RDWR | O_CREAT | O_EXCL, 0640)));
    SHOW(open("file", O_RDWR | O_CREAT | O_EXCL, 0640));
    show_stat("stat", stat("file", &st), &st);
    SHOW(open("file", O_RDONLY | O_DIRECTORY));
    SHOW(open("file/below", O_RDONLY));
    SHOW(open("file/", O_RDONLY));
    SHOW(open(".", O_WRONLY));
    SHOW(open("", O_RDONLY));
    SHOW(close(fd = creat("created", 0600)));
    SHOW(close(fd = openat(AT_FDCWD, "file", O_RDONLY)));
    int folder = open(".", O_RDONLY | O_DIRECTORY);
    SHOW(close(fd = openat(folder, "file", O_RDONLY)));
    SHOW(openat(folder, "absent", O_RDONLY));
    fd = open("file", O_RDONLY);
    SHOW(openat(fd, "x", O_RDONLY));
    SHOW(write(fd, "x", 1));
    SHOW(ftruncate(fd, 1));
    SHOW(fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK));
    SHOW(fcntl(fd, F_GETFD));
    SHOW(close(fd));
    SHOW(close(fd));
    SHOW(read(fd, &st, 1));
    SHOW(close(folder));
    fd = open("file", O_WRONLY | O_CLOEXEC);
    SHOW(fcntl(fd, F_GETFD));
    SHOW(read(fd, &st, 1));
    SHOW(close(fd));
    SHOW(fcntl(fd, F_GETFL));
    SHOW(symlink("file", "link"));
    SHOW(open("link", O_RDONLY | O_NOFOLLOW));
    SHOW(close(open("link", O_RDONLY)));
    SHOW(close(open("link", O_RDWR | O_CREAT, 0600)));
    SHOW(symlink("loop", "loop"));
    SHOW(open("loop", O_RDONLY));
}

static void copies(void)
{
    char bytes[8] = "";
    int fd = open("copied", O_RDWR | O_CREAT | O_TRUNC, 0600), other = dup(fd), third = fcntl(fd, F_DUPFD, 100);

    SHOW(third >= 100);
    SHOW(write(fd, "one", 3));
    SHOW(write(other, "two", 3));
    SHOW(write(third, "three", 5));
    SHOW(lseek(fd, 1, SEEK_SET));
    SHOW(read(third, bytes, 5));
    printf("%s\n", bytes);
    SHOW(dup2(fd, other) == other);
    SHOW(dup3(fd, fd, 0));
    SHOW(dup2(fd, fd) == fd);
    SHOW(dup2(-1, fd));
    SHOW(dup3(fd, other, O_CLOEXEC) == other);
    SHOW(fcntl(other, F_GETFD));
    SHOW(close(fd));
    SHOW(write(other, "X", 1));
    SHOW(close(other));
    SHOW(close_range((unsigned)third, (unsigned)third, 0));
    SHOW(write(third, "X", 1));
    show_file("copied");
}

/* ---- Bytes ---- */

static void bytes_of_one(void)
{
    struct iovec piece[2] = {{"ab", 2}, {"cde", 3}};
    char one[4] = "", two[16] = "";
    struct iovec room[2] = {{one, 3}, {two, 15}};
    int fd = open("bytes", O_RDWR | O_CREAT | O_TRUNC, 0600);

    SHOW(writev(fd, piece, 2));
    SHOW(pwrite(fd, "ZZ", 2, 10));
    SHOW(pwrite(fd, "ZZ", 2, -1));
    SHOW(pwritev(fd, piece, 2, 20));
    SHOW(lseek(fd, 0, SEEK_CUR));
    SHOW(preadv(fd, room, 2, 0));
    printf("%s %s\n", one, two);
    SHOW(readv(fd, room, 2));
    SHOW(pread(fd, two, 5, 20));
    SHOW(pread(fd, two, 5, 100));
    SHOW(lseek(fd, -30, SEEK_CUR));
    SHOW(lseek(fd, -5, SEEK_END));
    SHOW(read(fd, two, 15));
    SHOW(read(fd, two, 15));
    SHOW(lseek(fd, 100, SEEK_SET));
    SHOW(write(fd, "end", 3));
    SHOW(ftruncate(fd, 12));
    show_file("bytes");
    SHOW(ftruncate(fd, 14));
    SHOW(ftruncate(fd, -1));
    SHOW(lseek(fd, 0, SEEK_END));
    SHOW(fsync(fd));
    SHOW(fdatasync(fd));
    SHOW(close(fd));
    show_file("bytes");
    SHOW(truncate("bytes", 3));
    SHOW(truncate("absent", 3));
    SHOW(truncate(".", 3));
    show_file("bytes");
}

static void appending(void)
{
    int fd;

    make("added", "0123");
    fd = open("added", O_RDWR | O_APPEND);
    SHOW(write(fd, "45", 2));
    SHOW(lseek(fd, 0, SEEK_SET));
    SHOW(write(fd, "67", 2));
    SHOW(pwrite(fd, "89", 2, 0));
    SHOW(fcntl(fd, F_GETFL) & O_APPEND);
    SHOW(fcntl(fd, F_SETFL, 0));
    SHOW(pwrite(fd, "X", 1, 0));
    SHOW(fcntl(fd, F_SETFL, O_APPEND));
    SHOW(write(fd, "Y", 1));
    SHOW(close(fd));
    show_file("added");
    fd = open("added", O_WRONLY);
    SHOW(fcntl(fd, F_SETFL, O_APPEND));
    SHOW(write(fd, "Z", 1));
    SHOW(close(fd));
    show_file("added");
}

static void large_file(void)
{
    unsigned number[3] = {0};
    int fd;

    make_large("large");
    fd = open("large", O_RDWR);
    SHOW(pread(fd, number, sizeof number, 5000000));
    printf("%u %u %u\n", number[0], number[1], number[2]);
    SHOW(pwrite(fd, "changed", 7, 5000000));
    SHOW(pread(fd, number, sizeof number, 5000000));
    printf("%.7s %u\n", (char *)number, number[2]);
    SHOW(lseek(fd, -4, SEEK_END));
    SHOW(read(fd, number, sizeof number));
    printf("%u\n", number[0]);
    SHOW(lseek(fd, 10, SEEK_DATA));
    SHOW(lseek(fd, 10, SEEK_HOLE));
    SHOW(lseek(fd, LARGE, SEEK_DATA));
    SHOW(ftruncate(fd, 5500000));
    SHOW(ftruncate(fd, LARGE));
    SHOW(pread(fd, number, sizeof number, 5600000));
    printf("%u\n", number[0]);
    SHOW(close(fd));
    fd = open("large", O_RDONLY);
    SHOW(pread(fd, number, sizeof number, 5000000));
    printf("%.7s %u\n", (char *)number, number[2]);
    SHOW(unlink("large"));
    SHOW(pread(fd, number, sizeof number, 4000000));
    printf("%u\n", number[0]);
    SHOW(close(fd));
}

/* ---- Attributes ---- */

static void attributes(void)
{
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 2000, .tv_nsec = 5}};
    const struct timespec omit[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};
    const struct timeval tv[2] = {{.tv_sec = 3000}, {.tv_sec = 4000}};
    const struct utimbuf u = {.actime = 5000, .modtime = 6000};
    struct statx sx;
    struct stat st;

    make("a", "text");
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

/* ---- Names ---- */

static void names(void)
{
    char text[8] = "", path[4096];

    SHOW(mkdir("d", 0755));
    SHOW(mkdir("d", 0755));
    SHOW(mkdir("absent/d", 0755));
    int d = open("d", O_RDONLY | O_DIRECTORY);
    SHOW(mkdirat(d, "e", 0700));
    make("d/e/x", "x");
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
    make("d/y", "new");
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

/* ---- Streams ---- */

static void stream_modes(void)
{
    static const char *const modes[] = {"r", "r+", "w", "w+", "a", "a+", "wx", "we", "rb+", "q"};

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        char text[8] = "";
        make("mode", "0123456789");
        FILE *f = fopen("mode", modes[i]);
        show_stream(modes[i], f);
        if (!f)
            continue;
        SHOW(ftell(f));
        SHOW(fread(text, 1, 3, f));
        printf("%s, end %d, error %d\n", text, feof(f), ferror(f));
        clearerr(f);
        SHOW(fseek(f, 0, SEEK_CUR));
        SHOW(fputs("text", f) >= 0);
        SHOW(fflush(f));
        SHOW(ftell(f));
        SHOW(fcntl(fileno(f), F_GETFL) & (O_ACCMODE | O_APPEND));
        SHOW(fclose(f));
        show_file("mode");
    }
}

static void stream_calls(void)
{
    char text[32] = "", *line = NULL;
    size_t room = 0;
    struct stat st;
    FILE *f = fopen("stream", "w+");
    fpos_t place;

    SHOW(fprintf(f, "line %d\nline %d\n", 1, 2));
    show("bytes before fflush", fstat(fileno(f), &st) == 0 ? st.st_size : -1);
    SHOW(fflush(f));
    show("bytes behind fflush", fstat(fileno_unlocked(f), &st) == 0 ? st.st_size : -1);
    rewind(f);
    SHOW(getline(&line, &room, f));
    SHOW(fgetpos(f, &place));
    SHOW(ungetc('x', f));
    SHOW(ungetc('y', f) != EOF);
    SHOW(fgetc(f));
    SHOW(fgetc(f));
    SHOW(ftell(f));
    SHOW(fgets(text, sizeof text, f) != NULL);
    printf("%s", text);
    SHOW(fgetc(f));
    SHOW(feof(f));
    SHOW(fsetpos(f, &place));
    SHOW(fgetc(f));
    SHOW(fseeko(f, -2, SEEK_END));
    SHOW(fputs("3\nmore\n", f) >= 0);
    SHOW(ftello(f));
    SHOW(fseek(f, -100, SEEK_SET));
    SHOW(dprintf(fileno(f), "%s", ""));
    SHOW(fclose(f));
    show_file("stream");
    f = fopen("stream", "a");
    SHOW(setvbuf(f, NULL, _IONBF, 0));
    SHOW(fputs("unbuffered", f) >= 0);
    show_file("stream");
    SHOW(setvbuf(f, text, _IOLBF, sizeof text));
    SHOW(fputs("line\nrest", f) >= 0);
    show_file("stream");
    SHOW(fclose(f));
    int fd = open("stream", O_RDWR);
    show_stream("fdopen", fdopen(-1, "r"));
    show_stream("fdopen", fdopen(fd, "x"));
    f = fdopen(fd, "r+");
    SHOW(fileno(f) == fd);
    SHOW(fscanf(f, "line %d", &fd));
    SHOW(fclose(f));
    fd = open("stream", O_RDONLY);
    show_stream("fdopen to write", fdopen(fd, "w"));
    f = fdopen(fd, "r");
    SHOW(fputc('x', f));
    SHOW(fseek(f, 5, SEEK_SET));
    SHOW(fgetc(f));
    SHOW(lseek(fd, 0, SEEK_CUR) >= 6);
    SHOW(fclose(f));
    fd = open("stream", O_WRONLY);
    f = fdopen(fd, "a");
    SHOW(fcntl(fd, F_GETFL) & O_APPEND);
    SHOW(fputs("added", f) >= 0);
    SHOW(fclose(f));
    show_file("stream");
    fd = open("stream", O_WRONLY | O_TRUNC);
    SHOW(dprintf(fd, "%s %d\n", "formatted", 7));
    SHOW(close(fd));
    show_file("stream");
    f = fopen(".", "r");
    SHOW(fgetc(f));
    SHOW(fclose(f));
    show_stream("fopen to write a folder", fopen(".", "w"));
    show_stream("fopen of nothing", fopen("absent", "r"));
    free(line);
}

static void large_stream(void)
{
    unsigned number[1000];
    size_t wrong = 0, n = 0;

    make_large("large");
    FILE *f = fopen("large", "r+");
    for (unsigned i = 0; (n = fread(number, sizeof *number, 1000, f)) > 0; i += (unsigned)n)
        for (size_t j = 0; j < n; j++)
            wrong += number[j] != i + j;
    SHOW(wrong);
    for (unsigned i = 0; i < 100; i++) {
        long at = (long)(i * 7919 % (LARGE / 4)) * 4;
        wrong += fseek(f, at, SEEK_SET) != 0 || fread(number, sizeof *number, 3, f) != 3 || number[0] != at / 4;
    }
    SHOW(wrong);
    SHOW(fseek(f, 4000000, SEEK_SET));
    SHOW(fwrite("changed", 1, 7, f));
    SHOW(fseek(f, 3999996, SEEK_SET));
    SHOW(fread(number, sizeof *number, 4, f));
    printf("%u %.7s %u\n", number[0], (char *)&number[1], number[3]);
    SHOW(fclose(f));
    SHOW(remove("large"));
    f = fopen("written", "w");
    for (unsigned i = 0; i < 1000000; i++)
        wrong += fwrite(&i, sizeof i, 1, f) != 1;
    SHOW(fclose(f));
    f = fopen("written", "r");
    for (unsigned i = 0; i < 1000000; i++)
        wrong += fread(number, sizeof *number, 1, f) != 1 || number[0] != i;
    SHOW(fgetc(f));
    SHOW(fclose(f));
    SHOW(wrong);
}

static void opening_again(void)
{
    char text[16] = "";
    FILE *f;

    make("again", "first line\n");
    make("other", "another line\n");
    f = fopen("again", "r");
    SHOW(fgetc(f));
    f = freopen("other", "r", f);
    SHOW(fgets(text, sizeof text, f) != NULL);
    printf("%s", text);
    f = freopen("other", "w", f);
    SHOW(fputs("written\n", f) >= 0);
    f = freopen("other", "a+", f);
    SHOW(fputs("added\n", f) >= 0);
    SHOW(fseek(f, 0, SEEK_SET));
    SHOW(fgets(text, sizeof text, f) != NULL);
    printf("%s", text);
    SHOW(fclose(f));
    show_file("other");
    f = fopen("other", "w");
    SHOW(fputs("once\n", f) >= 0);
    f = freopen(NULL, "r", f);
    SHOW(f && fgets(text, sizeof text, f) != NULL);
    printf("%s", text);
    f = freopen("/dev/null", "r", f);
    SHOW(fgetc(f));
    f = freopen("other", "r+", f);
    SHOW(fgetc(f));
    SHOW(fseek(f, 0, SEEK_END));
    SHOW(fputs("twice\n", f) >= 0);
    show_stream("freopen of nothing", freopen("absent", "r", f));
    show_file("other");
    f = fopen("/dev/null", "r");
    f = freopen("again", "r", f);
    SHOW(fgets(text, sizeof text, f) != NULL);
    SHOW(fclose(f));
    /* Two streams add to one file. */
    FILE *first = freopen("other", "a", fopen("/dev/null", "w")),
         *second = freopen("other", "a", fopen("/dev/null", "w"));
    SHOW(fputs("first\n", first) >= 0);
    SHOW(fputs("second\n", second) >= 0);
    SHOW(fclose(second));
    SHOW(fclose(first));
    show_file("other");
    f = freopen("other", "w", fopen("/dev/null", "w"));
    SHOW(fputs("0123456789", f) >= 0);
    SHOW(fseek(f, 3, SEEK_SET));
    SHOW(fputs("seek", f) >= 0);
    SHOW(fclose(f));
    show_file("other");
    make_large("large");
    f = freopen("large", "r", fopen("/dev/null", "r"));
    SHOW(fseek(f, 5000000, SEEK_SET));
    SHOW(fread(text, 1, 4, f));
    printf("%u\n", *(unsigned *)(void *)text);
    SHOW(fclose(f));
}

/* ---- Memory ---- */

static char *map(int fd, size_t size, int protection, int flags, off_t from)
{
    char *memory = mmap(NULL, size, protection, flags, fd, from);

    show("mmap", memory == MAP_FAILED ? -1 : 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void mapping(void)
{
    make("mapped", "0123456789");
    int fd = open("mapped", O_RDWR), reader = open("mapped", O_RDONLY), writer = open("mapped", O_WRONLY);
    char *all = map(fd, 10, PROT_READ | PROT_WRITE, MAP_SHARED, 0),
         *copy = map(reader, 10, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0);
    char byte[3] = "";

    map(reader, 10, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
    map(writer, 10, PROT_READ, MAP_SHARED, 0);
    map(fd, 10, PROT_READ, MAP_SHARED, 5);
    map(fd, 0, PROT_READ, MAP_SHARED, 0);
    printf("%.10s %.10s\n", all, copy);
    copy[0] = 'x';
    SHOW(close(reader));
    all[1] = 'A';
    SHOW(pread(fd, byte, 2, 0));
    printf("%s\n", byte);
    SHOW(msync(all, 10, MS_SYNC));
    show_file("mapped");
    all[2] = 'B';
    SHOW(close(fd));
    show_file("mapped");
    all[3] = 'C';
    SHOW(munmap(all, 10));
    show_file("mapped");
    SHOW(munmap(copy, 10));
    SHOW(close(writer));

    fd = open("grown", O_RDWR | O_CREAT | O_TRUNC, 0600);
    SHOW(ftruncate(fd, 20000));
    all = map(fd, 20000, PROT_READ, MAP_SHARED, 0);
    SHOW(mprotect(all, 20000, PROT_READ | PROT_WRITE));
    memset(all, 'y', 20000);
    SHOW(ftruncate(fd, 40000));
    all = mremap(all, 20000, 40000, MREMAP_MAYMOVE);
    all[39999] = 'z';
    SHOW(munmap(all, 8192));
    all[10000] = '!';
    SHOW(close(fd));
    SHOW(munmap(all + 8192, 40000 - 8192));
    show_file("grown");
    fd = open("grown", O_RDONLY);
    SHOW(pread(fd, byte, 2, 9999));
    printf("%s\n", byte);
    SHOW(pread(fd, byte, 2, 39999));
    printf("%s\n", byte);
    SHOW(close(fd));
}

static void mapping_large(void)
{
    make_large("large");
    int fd = open("large", O_RDONLY);
    unsigned *number = (void *)map(fd, LARGE, PROT_READ, MAP_SHARED, 0);
    unsigned *part = (void *)map(fd, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, 4096 * 1000);
    size_t wrong = 0;

    SHOW(close(fd));
    for (unsigned i = 0; i < LARGE / sizeof *number; i++)
        wrong += number[i] != i;
    for (unsigned i = 0; i < 2048; i++)
        wrong += part[i]++ != 1024 * 1000 + i;
    SHOW(wrong);
    SHOW(munmap(number, LARGE));
    SHOW(munmap(part, 8192));
    /* More than this library keeps of a file is written while it is mapped. */
    fd = open("large", O_RDWR | O_TRUNC);
    SHOW(ftruncate(fd, 4 * LARGE));
    number = (void *)map(fd, 4 * LARGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
    for (unsigned i = 0; i < LARGE / sizeof *number; i++) {
        number[i] = i;
        wrong += i % 1024 == 0 && pwrite(fd, number, 16384, LARGE + i * 4 / 4096 * 12288) != 16384;
    }
    for (unsigned i = 0; i < LARGE / sizeof *number; i++)
        wrong += number[i] != i;
    SHOW(wrong);
    SHOW(munmap(number, 4 * LARGE));
    SHOW(close(fd));
    fd = open("large", O_RDONLY);
    number = (void *)map(fd, LARGE, PROT_READ, MAP_PRIVATE, 0);
    for (unsigned i = 0; i < LARGE / sizeof *number; i++)
        wrong += number[i] != i;
    SHOW(wrong);
    SHOW(close(fd));
    SHOW(unlink("large"));
}

/* A file that is too large to have all of it in memory. */
static void mapping_huge(void)
{
    const off_t size = ((off_t)1 << 30) + 4096;
    int fd = open("huge", O_RDWR | O_CREAT, 0600);
    const char *part;

    SHOW(ftruncate(fd, size));
    SHOW(pwrite(fd, "the end", 7, size - 7));
    SHOW(close(fd));
    fd = open("huge", O_RDWR);
    part = map(fd, 4096, PROT_READ, MAP_SHARED, size - 4096);
    printf("%.7s\n", part + 4089);
    map(fd, 4096, PROT_READ, MAP_PRIVATE, 5);
    SHOW(close(fd));
}

/* ---- Others ---- */

/* Names that programs have that were built long ago. */
int __open(const char *path, int flags, ...);
int __open64(const char *path, int flags, ...);
int __close(int fd);
int __dup2(int from, int to);
int __fcntl(int fd, int command, ...);
ssize_t __read(int fd, void *bytes, size_t size);
ssize_t __write(int fd, const void *bytes, size_t size);
ssize_t __pread64(int fd, void *bytes, size_t size, off_t at);
ssize_t __pwrite64(int fd, const void *bytes, size_t size, off_t at);
off_t __lseek(int fd, off_t offset, int whence);
int __xmknod(int version, const char *path, mode_t mode, const dev_t *device);

static void other_names(void)
{
    char bytes[4] = "";
    const dev_t none = 0;
    int fd;

    SHOW(__xmknod(0, "node", S_IFREG | 0600, &none));
    fd = __open("node", O_RDWR);
    SHOW(__write(fd, "abc", 3));
    SHOW(__pwrite64(fd, "B", 1, 1));
    SHOW(__lseek(fd, 0, SEEK_SET));
    SHOW(__read(fd, bytes, 2));
    SHOW(__pread64(fd, bytes + 2, 1, 2));
    printf("%s\n", bytes);
    SHOW(__dup2(fd, 77));
    SHOW(__fcntl(77, F_GETFL) & O_ACCMODE);
    SHOW(__close(fd));
    SHOW(__write(77, "x", 1));
    SHOW(__close(77));
    SHOW(__close(fd = __open64("node", O_RDONLY)));
    show_file("node");
}

static void others(void)
{
    struct iovec piece = {"x", 1};
    char *(*name_in)(const char *folder, const char *prefix) = NULL;
    char *name;
    int fd = open("node", O_RDWR);

    *(void **)&name_in = dlsym(RTLD_DEFAULT, "tempnam"); /* linkers warn of it */

    SHOW(preadv(fd, &piece, 0, -1));
    SHOW(pwritev(fd, &piece, 1, -1));
    SHOW(fpathconf(fd, _PC_NAME_MAX));
    SHOW(fpathconf(fd, _PC_PIPE_BUF));
    SHOW(fpathconf(fd, -1));
    SHOW(posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL));
    SHOW(readahead(fd, 0, 1));
    SHOW(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
    SHOW(close(fd));
    unsetenv("TMPDIR");
    name = name_in(".", "prefix");
    printf("%.7s %d\n", name, (int)strlen(name) > 7);
    free(name);
    setenv("TMPDIR", "absent", 1);
    name = name_in(".", NULL);
    printf("%.6s\n", name);
    free(name);
}

/* What a mount refuses. */
static void refused(void)
{
    SHOW(open(".", O_TMPFILE | O_RDWR, 0600));
    map(open("huge", O_RDWR), 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
}

/* What is not closed is written at the end of the program. */
static void not_closed(void)
{
    static FILE *f;

    f = fopen("not_closed", "w");
    SHOW(fputs("written at the end\n", f) >= 0);
    f = freopen("standard_error", "a", stderr);
    SHOW(fprintf(f, "an error\n"));
}

/* posix_functions FOLDER [refused] */
int main(int argc, char **argv)
{
    static void (*const parts[])(void) = {opening,       copies,    bytes_of_one,  appending,    large_file,
                                          attributes,    names,     stream_modes,  stream_calls, large_stream,
                                          opening_again, mapping,   mapping_large, mapping_huge, other_names,
                                          others,        not_closed};

    setvbuf(stdout, NULL, _IOLBF, 0);
    umask(022);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (argc < 2 || *argv[1] != '/' || chdir(argv[1]) != 0) {
            perror(argc < 2 ? "the path of a folder is missing" : argv[1]);
            return 2;
        }
        if (argc > 2)
            return refused(), 0;
        parts[i]();
    }
    return 0;
}
