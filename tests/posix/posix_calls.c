/* Calls functions of the C library that name or use files, in the folder FOLDER, and prints what they give. It knows
 * nothing of DeltaFS: what it prints in a mount must be what it prints in an ordinary folder.
 *
 *     posix_calls FOLDER PART...
 *
 * PART is folders, walks, paths, streams, maps, other, or refused; the last one is what mounts refuse. */
#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char *folder;

/* Print one result: a label, and a number; if that is negative, the error. */
static void say(const char *label, long long n)
{
    if (n < 0)
        printf("%s: %lld, %s\n", label, n, strerror(errno));
    else
        printf("%s: %lld\n", label, n);
}

/* A pointer: whether it is there. */
static void say_pointer(const char *label, const void *p)
{
    say(label, p ? 0 : -1);
}

static void say_text(const char *label, const char *text)
{
    if (text && strncmp(text, folder, strlen(folder)) == 0)
        printf("%s: FOLDER%s\n", label, text + strlen(folder));
    else
        printf("%s: %s\n", label, text ? text : strerror(errno));
}

static void make_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ssize_t n = write(fd, text, strlen(text));

    if (fd < 0 || n != (ssize_t)strlen(text) || close(fd) != 0)
        say(path, -1);
}

/* ---- Folders ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Print the rest of a stream, sorted. */
static void say_entries(const char *label, DIR *d)
{
    char *line[100];
    int n = 0;

    for (const struct dirent *e; n < 100 && (errno = 0, e = readdir(d));)
        if (asprintf(&line[n], "%s %d", e->d_name, e->d_type) > 0)
            n++;
    say(label, errno == 0 ? n : -1);
    qsort(line, (size_t)n, sizeof *line, compare_names);
    for (int i = 0; i < n; i++) {
        puts(line[i]);
        free(line[i]);
    }
}

static void check_inodes(const char *path)
{
    DIR *d = opendir(path);
    struct stat st;
    int differ = 0;

    for (const struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, "..") != 0)
            differ += fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_ino != e->d_ino;
    say("inodes that differ", differ);
    say("closedir", d ? closedir(d) : -1);
}

static void seek_entries(void)
{
    DIR *d = opendir("d");
    struct dirent *e = readdir(d);
    char first[NAME_MAX + 1], second[NAME_MAX + 1];

    strcpy(first, e->d_name);
    long at = telldir(d);
    strcpy(second, readdir(d)->d_name);
    while (readdir(d))
        ;
    seekdir(d, at);
    say("seekdir", strcmp(readdir(d)->d_name, second) == 0);
    rewinddir(d);
    say("rewinddir", strcmp(readdir(d)->d_name, first) == 0);
    make_file("d/later", "");
    rewinddir(d);
    say_entries("with a new one", d);
    unlink("d/later");
    closedir(d);
}

/* What is at places that no entry has is not defined, but there is an end. */
static void seek_wildly(void)
{
    char bytes[4096];
    int fd = open("d", O_RDONLY | O_DIRECTORY), entries = 0;
    DIR *d = opendir("d");

    readdir(d);
    for (long at = 1; at < 200; at++) {
        seekdir(d, at);
        while (entries < 100000 && readdir(d))
            entries++;
        lseek(fd, at, SEEK_SET);
        while (entries < 100000 && getdents64(fd, bytes, sizeof bytes) > 0)
            entries++;
    }
    say("entries at wild places", entries < 100000);
    close(fd);
    closedir(d);
}

/* Remove all that is listed. */
static void remove_entries(void)
{
    char path[PATH_MAX];
    int removed = 0;

    mkdir("full", 0755);
    for (int i = 0; i < 300; i++) {
        snprintf(path, sizeof path, "full/%d", i);
        make_file(path, "x");
    }
    DIR *d = opendir("full");
    for (const struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "full/%s", e->d_name);
        removed += *e->d_name != '.' && unlink(path) == 0;
    }
    say("removed", removed);
    say("closedir", closedir(d));
    say("rmdir", rmdir("full"));
}

static void read_removed(void)
{
    mkdir("gone", 0755);
    DIR *d = opendir("gone");
    rmdir("gone");
    say("readdir of a removed folder", readdir(d) != NULL && readdir(d) != NULL);
    rewinddir(d);
    mkdir("gone", 0755);
    make_file("gone/x", "");
    say("readdir when there is another of that name", readdir(d) != NULL && readdir(d) != NULL);
    closedir(d);
}

static int no_dots(const struct dirent *e)
{
    return *e->d_name != '.';
}

static void say_scan(const char *label, int n, struct dirent ***found)
{
    struct dirent **e = n < 0 ? NULL : *found;

    say(label, n);
    for (int i = 0; i < n; i++) {
        puts(e[i]->d_name);
        free(e[i]);
    }
    free(e);
}

static void scan_folders(void)
{
    struct dirent **e;
    int fd = open(".", O_RDONLY | O_DIRECTORY);

    say_scan("scandir", scandir("d", &e, no_dots, alphasort), &e);
    say_scan("scandirat", scandirat(fd, "d", &e, NULL, alphasort), &e);
    say_scan("scandir of none", scandir("none", &e, NULL, alphasort), &e);
    say_scan("scandir of a file", scandir("d/a", &e, NULL, alphasort), &e);
    close(fd);
}

static void read_entries(void)
{
    char bytes[1024];
    int fd = open("d", O_RDONLY | O_DIRECTORY), entries = 0;
    ssize_t n, small = getdents64(fd, bytes, 4);

    say("getdents64 without room", small);
    while ((n = getdents64(fd, bytes, sizeof bytes)) > 0)
        for (ssize_t at = 0; at < n; entries++)
            at += ((struct dirent *)(void *)(bytes + at))->d_reclen;
    say("getdents64", entries);
    lseek(fd, 0, SEEK_SET);
    say("getdents64 again", getdents64(fd, bytes, sizeof bytes) > 0);
    close(fd);
    fd = open("d/a", O_RDONLY);
    say("getdents64 of a file", getdents64(fd, bytes, sizeof bytes));
    say_pointer("fdopendir of a file", fdopendir(fd));
    close(fd);
}

static void check_folders(void)
{
    mkdir("d", 0755);
    mkdir("d/sub", 0755);
    make_file("d/a", "1");
    make_file("d/b", "22");
    say("symlink", symlink("a", "d/link"));
    DIR *d = opendir("d");
    say_entries("opendir", d);
    say("closedir", closedir(d));
    int fd = open("d", O_RDONLY | O_DIRECTORY);
    d = fdopendir(fd);
    say("dirfd", dirfd(d) == fd);
    say_entries("fdopendir", d);
    say("closedir", closedir(d));
    say("the descriptor", fcntl(fd, F_GETFD));
    say_pointer("opendir of none", opendir("none"));
    say_pointer("opendir of a file", opendir("d/a"));
    say_pointer("opendir of nothing", opendir(""));
    say_pointer("fdopendir of none", fdopendir(-1));
    check_inodes("d");
    seek_entries();
    seek_wildly();
    remove_entries();
    read_removed();
    scan_folders();
    read_entries();
}

/* ---- Walks ---- */

/* Entries come in any order, so they are sorted before they are printed. */
static struct {
    char *text[100];
    int n;
} lines;

static void add_line(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    if (lines.n < 100 && vasprintf(&lines.text[lines.n], format, list) > 0)
        lines.n++;
    va_end(list);
}

static void say_lines(const char *label, int result)
{
    say(label, result);
    qsort(lines.text, (size_t)lines.n, sizeof *lines.text, compare_names);
    for (int i = 0; i < lines.n; i++) {
        puts(lines.text[i]);
        free(lines.text[i]);
    }
    lines.n = 0;
}

static int say_walk(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    add_line("%s %d %s %d %lld", path, kind, path + at->base, at->level,
             S_ISREG(st->st_mode) ? (long long)st->st_size : 0);
    return 0;
}

static int say_simple(const char *path, const struct stat *st, int kind)
{
    add_line("%s %d %lld", path, kind, kind == FTW_F ? (long long)st->st_size : 0);
    return 0;
}

static int stop_at_file(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)path;
    (void)st;
    (void)at;
    return kind == FTW_F ? 7 : 0;
}

static int skip_subtrees(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    add_line("%s %d", path, kind);
    return kind == FTW_D && at->level == 1 ? FTW_SKIP_SUBTREE : FTW_CONTINUE;
}

static int check_folder(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    struct stat now;

    if (fstatat(AT_FDCWD, path + at->base, &now, kind == FTW_SL ? AT_SYMLINK_NOFOLLOW : 0) != 0 ||
        now.st_ino != st->st_ino)
        printf("%s: not in the folder\n", path);
    return 0;
}

static void check_walks(void)
{
    static const char *const patterns[] = {"t/*", "t/*/*", "t/[ab]*", "t/.*", "none*", "t/{a,b}", "*/one/", "t/b/../*"};
    char whole[PATH_MAX];
    glob_t g;

    mkdir("t", 0755);
    mkdir("t/one", 0755);
    make_file("t/one/deep", "123");
    symlink("..", "t/one/up");
    symlink("nowhere", "t/one/dangling");
    say_lines("nftw", nftw("t/one", say_walk, 8, FTW_PHYS));
    say_lines("nftw, links followed", nftw("t", say_walk, 8, 0));
    say_lines("nftw, depth first", nftw("t/", say_walk, 8, FTW_PHYS | FTW_DEPTH));
    say_lines("nftw with chdir", nftw("t", check_folder, 8, FTW_PHYS | FTW_CHDIR));
    say("back", access("t", F_OK));
    mkdir("elsewhere", 0755);
    make_file("elsewhere/x", "");
    mkdir("links", 0755);
    make_file("links/a", "");
    symlink("../elsewhere", "links/b");
    make_file("links/c", "");
    say_lines("nftw with chdir, links followed", nftw("links", check_folder, 8, FTW_CHDIR));
    say("back", access("links", F_OK));
    say_lines("nftw that is stopped", nftw("t", stop_at_file, 8, FTW_PHYS));
    say_lines("nftw that skips", nftw("t", skip_subtrees, 8, FTW_PHYS | FTW_ACTIONRETVAL));
    say_lines("nftw of none", nftw("none", say_walk, 8, 0));
    say_lines("nftw of a file", nftw("t/one/deep", say_walk, 8, FTW_MOUNT));
    say_lines("ftw", ftw("t", say_simple, 8));
    make_file("t/a", "");
    make_file("t/b1", "");
    make_file("t/.hidden", "");
    mkdir("t/b", 0755);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        say(patterns[i], glob(patterns[i], GLOB_MARK | GLOB_BRACE, NULL, &g));
        for (size_t k = 0; k < g.gl_pathc; k++)
            puts(g.gl_pathv[k]);
        globfree(&g);
    }
    snprintf(whole, sizeof whole, "%s/t/*", folder);
    say("glob of a whole path", glob(whole, 0, NULL, &g));
    for (size_t k = 0; k < g.gl_pathc; k++)
        say_text("found", g.gl_pathv[k]);
    globfree(&g);
}

/* ---- Paths ---- */

static void say_real(const char *path)
{
    char out[PATH_MAX];

    say_text(path, realpath(path, out));
}

static void say_place(const char *path)
{
    char here[PATH_MAX];

    say(path == folder ? "back" : path, chdir(path));
    say_text("getcwd", getcwd(here, sizeof here));
}

/* By descriptors of the folders above, one after the other. */
static void go_down(void)
{
    char path[PATH_MAX], *rest = path;
    struct stat above, st;
    int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    snprintf(path, sizeof path, "%s/p/q/f", folder + 1);
    say("stat by a descriptor of the root", fstatat(at, path, &st, 0) == 0 ? st.st_size : -1);
    for (char *name; at >= 0 && (name = strtok_r(NULL, "/", &rest));) {
        int next = fstatat(at, name, &above, AT_SYMLINK_NOFOLLOW) == 0 ? openat(at, name, O_RDONLY | O_NOFOLLOW) : -1;
        close(at);
        at = next;
    }
    say("the size of a file by descriptors", at < 0 ? -1 : above.st_size);
    say("it is the same", fstat(at, &above) == 0 && above.st_ino == st.st_ino && above.st_dev == st.st_dev);
    close(at);
}

static void check_paths(void)
{
    static const char *const paths[] = {".",         "p",        "p/q/",     "p/l",    "p/l/f",    "p/abs/f",
                                        "p/loop",    "p/none",   "p/none/x", "p/q/f/", "p/q/f/..", "p/dangling",
                                        "p/q/../..", "p//q/./f", "p/above",  "",       "p/above/p"};
    char text[PATH_MAX];
    struct stat st;

    mkdir("p", 0755);
    mkdir("p/q", 0755);
    make_file("p/q/f", "123");
    symlink("q", "p/l");
    snprintf(text, sizeof text, "%s/p/q", folder);
    symlink(text, "p/abs");
    symlink("loop", "p/loop");
    symlink("nothing", "p/dangling");
    symlink("..", "p/above");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        say_real(paths[i]);
    char *heap = realpath("p/abs", NULL);
    say_text("realpath on the heap", heap);
    free(heap);
    heap = canonicalize_file_name("p/l/f");
    say_text("canonicalize_file_name", heap);
    free(heap);
    go_down();
    say("stat by an absolute link", stat("p/abs/f", &st) == 0 ? st.st_size : -1);
    say("lstat of it", lstat("p/abs", &st) == 0 ? S_ISLNK(st.st_mode) : -1);
    say("lstat with a slash", lstat("p/abs/", &st) == 0 ? S_ISDIR(st.st_mode) : -1);
    say("lstat of a relative one with a slash", lstat("p/l/", &st) == 0 ? S_ISDIR(st.st_mode) : -1);
    say("create by it", open("p/abs/new", O_CREAT | O_EXCL | O_WRONLY, 0644) >= 0);
    say("rename by it", rename("p/abs/new", "p/abs/newer"));
    say("chmod by it", chmod("p/abs/newer", 0600));
    say("access by it", access("p/abs/newer", R_OK));
    say("truncate by it", truncate("p/abs/newer", 5));
    say("mkdir by it", mkdir("p/abs/d", 0755));
    say("symlink by it", symlink("x", "p/abs/s"));
    say("readlink by it", readlink("p/abs/s", text, sizeof text));
    say("unlink by it", unlink("p/abs/newer"));
    say("rmdir by it", rmdir("p/abs/d"));
    say("nothing by it", open("p/abs/none", O_RDONLY));
    int root = open("/", O_PATH | O_DIRECTORY);
    snprintf(text, sizeof text, "%s/p/q/f", folder + 1);
    say("from the root", fstatat(root, text, &st, 0) == 0 ? st.st_size : -1);
    int fd = openat(root, folder + 1, O_RDONLY | O_DIRECTORY);
    say("the folder from the root", fstatat(fd, "p/q/f", &st, 0) == 0 ? st.st_size : -1);
    close(fd);
    close(root);
    say_place("p/l");
    say_place("..");
    say_place("abs");
    say_place("../..");
    say_place("none");
    say_place("p/q/f");
    say_place(folder);
}

/* ---- Streams ---- */

static void say_content(const char *path)
{
    char text[256] = "";
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;

    printf("%s has %zu: %s\n", path, n, f ? text : strerror(errno));
    if (f)
        say("fclose", fclose(f));
}

static void open_modes(void)
{
    static const char *const modes[] = {"r", "w", "a", "r+", "w+", "a+", "wx", "rb", "we", "z", "w+x", "ab+"};
    char text[16];

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        make_file("modes", "12345");
        FILE *f = fopen("modes", modes[i]);
        say_pointer(modes[i], f);
        if (!f)
            continue;
        int fd = fileno(f);
        say("mode of open", fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND));
        say("closed on exec", fcntl(fd, F_GETFD));
        say("at", ftell(f));
        say("read", (long long)fread(text, 1, 2, f));
        say("error", ferror(f) != 0);
        clearerr(f);
        fseek(f, 1, SEEK_SET);
        say("write", fputs("XY", f));
        say("flush", fflush(f));
        say("then at", ftell(f));
        say("fclose", fclose(f));
        say_content("modes");
    }
    say_pointer("fopen of none", fopen("none", "r"));
    say_pointer("fopen of a folder", fopen(".", "w"));
}

static void write_and_look(void)
{
    FILE *f = fopen("stream", "w+");
    struct stat st;
    char line[64];

    fprintf(f, "line %d\nline %d\n", 1, 2);
    fflush(f);
    say("size behind fflush", fstat(fileno(f), &st) == 0 ? st.st_size : -1);
    rewind(f);
    say_text("fgets", fgets(line, sizeof line, f));
    say("ungetc", ungetc('Z', f));
    say_text("fgets", fgets(line, sizeof line, f));
    say("feof", feof(f));
    say("getc", getc(f) == EOF);
    say("feof", feof(f) != 0);
    say("fseek", fseek(f, -3, SEEK_END));
    say("getc", getc(f));
    say("ftell", ftell(f));
    fseek(f, 100, SEEK_SET);
    fputc('!', f);
    say("fclose", fclose(f));
    say("size", stat("stream", &st) == 0 ? st.st_size : -1);
    f = fopen("stream", "r");
    say("setvbuf", setvbuf(f, NULL, _IONBF, 0));
    say("getc", getc(f));
    say("lseek", lseek(fileno(f), 0, SEEK_CUR));
    say("fclose", fclose(f));
}

static void open_descriptors(void)
{
    int fd = open("byfd", O_RDWR | O_CREAT | O_TRUNC, 0644);
    FILE *f = fdopen(fd, "w");

    say("fileno", fileno(f) == fd);
    say("fileno_unlocked", fileno_unlocked(f) == fd);
    fputs("by a descriptor", f);
    say("fclose", fclose(f));
    say("the descriptor", fcntl(fd, F_GETFD));
    say_content("byfd");
    fd = open("byfd", O_RDONLY);
    say_pointer("fdopen for writing", fdopen(fd, "w"));
    f = fdopen(fd, "r");
    say("getc", getc(f));
    fclose(f);
    fd = open("byfd", O_WRONLY);
    f = fdopen(fd, "a");
    fputs(" and more", f);
    fclose(f);
    say_content("byfd");
}

static void open_again(void)
{
    FILE *f = fopen("first", "w");
    char text[16];

    fputs("one", f);
    f = freopen("second", "w", f);
    fputs("two", f);
    say("fclose", fclose(f));
    say_content("first");
    say_content("second");
    f = fopen("first", "r");
    say("getc", getc(f));
    f = freopen("second", "r", f);
    say_text("fgets", fgets(text, sizeof text, f));
    f = freopen("/dev/null", "r", f);
    say("getc", getc(f) == EOF);
    say("fclose", fclose(f));
    f = fopen("/dev/null", "w");
    f = freopen("third", "w", f);
    fputs("three", f);
    fclose(f);
    say_content("third");
}

/* More than what a file of a mount has in memory. */
static void large_streams(void)
{
    FILE *f = fopen("large", "w");
    unsigned long long sum = 0;
    unsigned x;
    int n = 0;

    for (unsigned i = 0; i < 3000000; i++)
        fwrite(&i, sizeof i, 1, f);
    say("fclose", fclose(f));
    f = fopen("large", "r");
    while (fread(&x, sizeof x, 1, f) == 1) {
        sum += x;
        n++;
    }
    say("numbers", n);
    say("sum", (long long)sum);
    say("fseek", fseek(f, 4 * 1234567, SEEK_SET));
    say("fread", (long long)fread(&x, sizeof x, 1, f));
    say("number", x);
    fclose(f);
    unlink("large");
}

static void check_streams(void)
{
    open_modes();
    write_and_look();
    open_descriptors();
    open_again();
    large_streams();
    FILE *f = fopen("unclosed", "w");
    fputs("at the end of the program\n", f); /* which the caller looks at */
}

/* ---- Names that are made up ---- */

static void say_made_up(const char *label, const char *path, const char *before, const char *after)
{
    struct stat st;
    size_t n = strlen(path), b = strlen(before), a = strlen(after);
    int is_good = n == b + 6 + a && strncmp(path, before, b) == 0 && strcmp(path + b + 6, after) == 0;

    say(label, is_good && stat(path, &st) == 0 ? (long long)st.st_mode : -1);
}

static void check_names(void)
{
    char file[] = "tempXXXXXX", suffixed[] = "tempXXXXXX.c", directory[] = "dirXXXXXX", bad[] = "tempXXXXX";
    char none[] = "none/XXXXXX", whole[PATH_MAX];
    int fd = mkstemp(file);

    say("write", write(fd, "1", 1));
    say("mode of open", fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND));
    say("close", close(fd));
    say_made_up("mkstemp", file, "temp", "");
    fd = mkostemps(suffixed, 2, O_CLOEXEC | O_APPEND);
    say("mkostemps", fcntl(fd, F_GETFD) | (fcntl(fd, F_GETFL) & O_APPEND));
    close(fd);
    say_made_up("mkostemps", suffixed, "temp", ".c");
    say_pointer("mkdtemp", mkdtemp(directory));
    say_made_up("mkdtemp", directory, "dir", "");
    say("mkstemp without X", mkstemp(bad));
    say("mkstemp in none", mkstemp(none));
    say_pointer("mkdtemp in none", mkdtemp(none));
    snprintf(whole, sizeof whole, "%s/wholeXXXXXX", folder);
    fd = mkostemp(whole, 0);
    say("a whole path", fstat(fd, &(struct stat){.st_size = 0}));
    close(fd);
    say("mknod of a file", mknod("node", S_IFREG | 0600, 0));
    say("again", mknod("node", 0600, 0));
}

/* ---- Space and locks ---- */

static void say_size(const char *label, int fd)
{
    struct stat st;

    say(label, fstat(fd, &st) == 0 ? st.st_size : -1);
}

static void check_space(void)
{
    int fd = open("space", O_RDWR | O_CREAT | O_TRUNC, 0644), reader = open("space", O_RDONLY);
    char text[16] = "";

    say("posix_fallocate", posix_fallocate(fd, 10, 90));
    say_size("size", fd);
    say("pwrite", pwrite(fd, "0123456789", 10, 0));
    say("fallocate", fallocate(fd, 0, 0, 50));
    say_size("size", fd);
    say("fallocate beyond the size", fallocate(fd, FALLOC_FL_KEEP_SIZE, 100, 1000));
    say_size("size", fd);
    say("a hole", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2, 3));
    say("pread", pread(fd, text, 10, 0));
    for (int i = 0; i < 10; i++)
        printf("%d ", text[i]);
    putchar('\n');
    say("without bytes", fallocate(fd, 0, 0, 0));
    say("of a reader", fallocate(reader, 0, 0, 10));
    say("posix_fallocate of a reader", posix_fallocate(reader, 0, 10));
    say("posix_fadvise", posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
    say("close", close(fd) + close(reader));
    fd = open("space", O_RDONLY);
    say_size("size", fd);
    say("read", read(fd, text, sizeof text));
    say("a byte", text[9]);
    close(fd);
}

static void check_systems(void)
{
    struct statvfs s;
    struct statfs f;
    int fd = open(".", O_RDONLY | O_DIRECTORY);

    say("statvfs", statvfs(".", &s) == 0 && s.f_bsize > 0 && s.f_blocks >= s.f_bfree && s.f_namemax == 255);
    say("fstatvfs", fstatvfs(fd, &s) == 0 && s.f_bsize > 0);
    say("statfs", statfs(folder, &f) == 0 && f.f_bsize > 0 && f.f_namelen == 255);
    say("fstatfs", fstatfs(fd, &f));
    say("statfs of none", statfs("none", &f));
    say("statvfs of none", statvfs("none", &s));
    say("pathconf", pathconf(".", _PC_NAME_MAX));
    say("pathconf", pathconf(".", _PC_PATH_MAX));
    say("pathconf of none", pathconf("none", _PC_NAME_MAX));
    say("fpathconf", fpathconf(fd, _PC_NAME_MAX));
    close(fd);
}

static void check_locks(void)
{
    int a = open("locked", O_RDWR | O_CREAT, 0644), b = open("locked", O_RDONLY), status = 0;

    make_file("other", "");
    say("flock", flock(a, LOCK_EX));
    say("again", flock(a, LOCK_EX | LOCK_NB));
    say("by another open file", flock(b, LOCK_EX | LOCK_NB));
    say("shared", flock(b, LOCK_SH | LOCK_NB));
    int other = open("other", O_RDONLY);
    say("another file", flock(other, LOCK_EX | LOCK_NB));
    close(other);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int c = open("locked", O_RDWR);
        _exit(flock(c, LOCK_EX | LOCK_NB) == 0 ? 0 : errno == EWOULDBLOCK ? 1 : 2);
    }
    waitpid(child, &status, 0);
    say("in a child", WEXITSTATUS(status));
    say("unlock", flock(a, LOCK_UN));
    say("shared", flock(b, LOCK_SH | LOCK_NB));
    say("twice", flock(a, LOCK_SH | LOCK_NB));
    say("not alone", flock(a, LOCK_EX | LOCK_NB));
    close(b);
    say("alone", flock(a, LOCK_EX | LOCK_NB));
    say("a wrong one", flock(a, 77));
    close(a);
}

/* ---- Mappings ---- */

static void say_bytes(const char *label, const char *path, off_t at, size_t size)
{
    char text[64] = "";
    int fd = open(path, O_RDONLY);
    ssize_t n = pread(fd, text, size, at);

    printf("%s: %zd %s\n", label, n, text);
    close(fd);
}

static void map_small(void)
{
    int fd = open("small", O_RDWR | O_CREAT | O_TRUNC, 0644), reader = open("small", O_RDONLY);
    const size_t size = 5000;

    say("ftruncate", ftruncate(fd, (off_t)size));
    say("pwrite", pwrite(fd, "before", 6, 0));
    char *own = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    say("own", own[0]);
    strcpy(own, "own");
    say_bytes("an own mapping changes nothing", "small", 0, 6);
    munmap(own, size);
    char *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    memcpy(shared, "shared", 6);
    say("msync", msync(shared, size, MS_ASYNC));
    say_bytes("behind msync", "small", 0, 6);
    memcpy(shared + 4990, "end", 3);
    say("close", close(fd));
    memcpy(shared + 100, "behind close", 12);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        memcpy(shared + 200, "child", 5);
        _exit(0);
    }
    say("child", waitpid(child, NULL, 0) == child);
    say("munmap", munmap(shared, size));
    say_bytes("the end", "small", 4990, 10);
    say_bytes("behind close", "small", 100, 12);
    say_bytes("by a child", "small", 200, 5);
    say("shared by a reader", mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, reader, 0) != MAP_FAILED);
    say("error", errno);
    say("own by a reader", mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, reader, 0) != MAP_FAILED);
    close(reader);
    fd = open("small", O_WRONLY);
    say("by a writer", mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED);
    close(fd);
    fd = open(".", O_RDONLY | O_DIRECTORY);
    say("a folder", mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED);
    say("error", errno);
    close(fd);
}

/* One that has not all bytes in memory when it is opened. */
static void map_large(void)
{
    const size_t size = 6000000;
    char *bytes = malloc(size);
    int fd = open("big", O_RDWR | O_CREAT | O_TRUNC, 0644);
    unsigned long sum = 0;

    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(i * 7 / 3);
    say("write", write(fd, bytes, size));
    close(fd);
    fd = open("big", O_RDONLY);
    const char *read_only = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    const char *part = mmap(NULL, 100, PROT_READ, MAP_PRIVATE, fd, 4096 * 1000);
    close(fd);
    say("all", memcmp(read_only, bytes, size) == 0);
    say("a part", memcmp(part, bytes + 4096000, 100) == 0);
    fd = open("big", O_RDWR | O_APPEND);
    char *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (size_t i = 0; i < size; i++)
        sum += (unsigned char)shared[i];
    memcpy(shared + 5000000, "written", 7);
    say("append", write(fd, "appended", 8));
    munmap(shared, size);
    close(fd);
    say("sum", (long long)sum);
    say_bytes("written", "big", 5000000, 7);
    say_bytes("appended", "big", (off_t)size, 20);
    munmap((void *)read_only, size);
    free(bytes);
    unlink("big");
}

static void check_maps(void)
{
    map_small();
    map_large();
    int fd = open("mapped", O_RDWR | O_CREAT, 0644);
    say("ftruncate", ftruncate(fd, 27));
    char *left = mmap(NULL, 27, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    memcpy(left, "mapped when the program ends", 27); /* which the caller looks at */
}

/* ---- Asynchronous calls, and others ---- */

static void say_request(const char *label, struct aiocb *r, int result)
{
    const struct aiocb *list[] = {r};

    say(label, result);
    while (aio_error(r) == EINPROGRESS)
        aio_suspend(list, 1, NULL);
    say("error", aio_error(r));
    printf("result: %lld\n", (long long)aio_return(r));
}

static void check_async(void)
{
    char text[16] = "", more[16] = "more";
    int fd = open("async", O_RDWR | O_CREAT | O_TRUNC, 0644);
    struct aiocb r = {.aio_fildes = fd, .aio_buf = (char[]){"asynchronous"}, .aio_nbytes = 12, .aio_offset = 2};
    struct aiocb other = {.aio_fildes = fd, .aio_buf = more, .aio_nbytes = 4, .aio_lio_opcode = LIO_WRITE};
    struct aiocb *list[] = {&r, &other, NULL};
    struct iovec v[] = {{text, 3}, {text + 3, 5}};

    r.aio_sigevent.sigev_notify = other.aio_sigevent.sigev_notify = SIGEV_NONE;
    say_request("aio_write", &r, aio_write(&r));
    say_request("aio_fsync", &r, aio_fsync(O_SYNC, &r));
    r.aio_buf = text;
    say_request("aio_read", &r, aio_read(&r));
    say_text("read", text);
    r.aio_lio_opcode = LIO_READ;
    r.aio_offset = 6;
    say("lio_listio", lio_listio(LIO_WAIT, list, 3, NULL));
    say("result", aio_return(&r));
    say("result", aio_return(&other));
    say("preadv2", preadv2(fd, v, 2, 0, 0));
    say("pwritev2", pwritev2(fd, v, 2, 20, RWF_SYNC));
    say("preadv2 at the offset", preadv2(fd, v, 2, -1, 0));
    close(fd);
    say_bytes("async", "async", 2, 12);
    say_bytes("more", "async", 0, 2);
    fd = open("async", O_RDONLY);
    r = (struct aiocb){.aio_fildes = fd, .aio_buf = text, .aio_nbytes = 4};
    r.aio_sigevent.sigev_notify = SIGEV_NONE;
    say_request("aio_write of a reader", &r, aio_write(&r));
    close(fd);
    say("lchmod", lchmod("async", 0600));
    say("ftok", ftok("async", 'x') == ftok("async", 'x'));
    say("ftok of none", ftok("none", 'x'));
    sync();
}

static void check_other(void)
{
    check_names();
    check_space();
    check_systems();
    check_locks();
    check_async();
}

/* What a mount refuses, which is not what an ordinary folder does. */
static int bind_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    strcpy(address.sun_path, path);
    int result = bind(fd, (const struct sockaddr *)(const void *)&address, sizeof address), error = errno;
    close(fd);
    errno = error;
    return result;
}

static void check_refused(void)
{
    struct flock lock = {.l_type = F_WRLCK};
    struct {
        struct file_handle handle;
        char bytes[128];
    } h = {.handle = {.handle_bytes = 128}};
    char *list[] = {(char *)".", NULL}, value[16];
    int fd = open("refused", O_RDWR | O_CREAT, 0644), mount, watches = inotify_init();

    say("mkfifo", mkfifo("fifo", 0644));
    say("mknod", mknod("device", S_IFCHR | 0644, 0));
    say("bind", bind_socket("socket"));
    say("link", link("refused", "hard"));
    say("fcntl", fcntl(fd, F_SETLK, &lock));
    say("lockf", lockf(fd, F_TLOCK, 0));
    say("setxattr", setxattr("refused", "user.a", "1", 1, 0));
    say("getxattr", getxattr("refused", "user.a", value, sizeof value));
    say("getxattr of none", getxattr("none", "user.a", value, sizeof value));
    say("fremovexattr", fremovexattr(fd, "user.a"));
    say("listxattr", listxattr(".", value, sizeof value));
    say("inotify_add_watch", inotify_add_watch(watches, ".", IN_CREATE));
    say("name_to_handle_at", name_to_handle_at(AT_FDCWD, "refused", &h.handle, &mount, 0));
    say_pointer("fts_open", fts_open(list, FTS_PHYSICAL, NULL));
    say("fallocate", fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 4096));
    close(watches);
    close(fd);
}

int main(int argc, char **argv)
{
    static const struct part {
        const char *name;
        void (*check)(void);
    } parts[] = {{"folders", check_folders}, {"walks", check_walks}, {"paths", check_paths},
                 {"streams", check_streams}, {"maps", check_maps},   {"other", check_other},
                 {"refused", check_refused}};

    if (argc < 3 || chdir(argv[1]) != 0) {
        fprintf(stderr, "usage: posix_calls FOLDER PART...\n");
        return 2;
    }
    folder = argv[1];
    for (int i = 2; i < argc; i++)
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
            if (strcmp(argv[i], parts[k].name) == 0) {
                printf("---- %s\n", argv[i]);
                parts[k].check();
            }
    return 0;
}
