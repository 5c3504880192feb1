/* Part of posix_calls: paths with links, the current folder, and names that the C library makes up. */
#include "tests/posix/posix_calls.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

void check_paths(void)
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

/* ---- Names that are made up ---- */

static void say_made_up(const char *label, const char *path, const char *before, const char *after)
{
    struct stat st;
    size_t n = strlen(path), b = strlen(before), a = strlen(after);
    int is_good = n == b + 6 + a && strncmp(path, before, b) == 0 && strcmp(path + b + 6, after) == 0;

    say(label, is_good && stat(path, &st) == 0 ? (long long)st.st_mode : -1);
}

void check_names(void)
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
