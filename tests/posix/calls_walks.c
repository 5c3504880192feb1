/* Part of posix_calls: walks through trees, and patterns of names. */
#include "tests/posix/posix_calls.h"

#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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

void check_walks(void)
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
