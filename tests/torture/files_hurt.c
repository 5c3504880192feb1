/* What befalls the files and folders of a container. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "torture_files.h"

/* The entry at hand, and where things go that it has to make room for. */
struct hurt {
    struct files_case *c;
    struct files_entries all;
    const struct files_entry *at;
    char path[PATH_MAX], aside[PATH_MAX];
};

static uint64_t below(struct hurt *h, uint64_t n)
{
    return n > 0 ? torture_below(&h->c->rng, n) : 0;
}

static void must(int rc, const char *path)
{
    if (rc != 0)
        files_die("%s: %m", path);
}

/* Have the entry's place free. */
static void put_aside(struct hurt *h)
{
    char name[32];

    snprintf(name, sizeof name, "aside%u", h->c->asides++);
    files_join(h->aside, h->c->folder, name);
    must(rename(h->path, h->aside), h->path);
}

static void remove_it(struct hurt *h)
{
    put_aside(h);
}

/* A name that it could have, or one that means nothing. */
static void rename_it(struct hurt *h)
{
    char to[PATH_MAX + 8];
    size_t n = strlen(h->path);

    if (below(h, 3) == 0) {
        snprintf(to, sizeof to, "%s.bak", h->path);
    } else {
        const struct files_entry *other = &h->all.entry[below(h, h->all.count)];
        const char *slash = strrchr(other->path, '/');
        while (n > 0 && h->path[n - 1] != '/')
            n--;
        snprintf(to, sizeof to, "%.*s%s", (int)n, h->path, slash ? slash + 1 : other->path);
        /* As if it were another's: the last digit of its name. */
        char *digit = to + n + strcspn(to + n, "0123456789");
        digit += strspn(digit, "0123456789abcdef");
        if (digit > to + n && digit[-1] >= '0' && digit[-1] < '9' && below(h, 2))
            digit[-1]++;
    }
    if (access(to, F_OK) != 0)
        must(rename(h->path, to), h->path);
}

static void swap(struct hurt *h)
{
    const struct files_entry *other = &h->all.entry[below(h, h->all.count)];
    char path[PATH_MAX];

    for (size_t i = 0; i < h->all.count && (other->kind != h->at->kind || other == h->at); i++)
        other = &h->all.entry[i];
    files_join(path, h->c->subject.root, other->path);
    size_t n = strlen(h->path), m = strlen(path);
    /* One in the other cannot be swapped. */
    if (other == h->at || strncmp(h->path, path, n < m ? n : m) == 0)
        return;
    put_aside(h);
    must(rename(path, h->path), path);
    must(rename(h->aside, path), h->aside);
}

/* Let a copy of what is at `from` be here; nothing, if nothing is there. */
static void copy_here(struct hurt *h, const char *from)
{
    struct stat st;

    put_aside(h);
    if (lstat(from, &st) == 0)
        files_copy(from, h->path);
}

static void make_older(struct hurt *h)
{
    char old[PATH_MAX], from[PATH_MAX], name[32];

    snprintf(name, sizeof name, "old%u", (unsigned)below(h, h->c->olds));
    files_join(from, files_join(old, h->c->folder, name), h->at->path);
    h->c->may_be_older |= strstr(h->at->path, "MANIFEST") != NULL;
    copy_here(h, from);
}

/* What another container has in the same place, or an entry of it of the same kind. */
static void find_foreign(struct hurt *h, char from[PATH_MAX])
{
    struct files_entries *theirs = malloc(sizeof *theirs);
    struct stat st;

    if (!theirs)
        files_die("no memory");
    files_list(h->c->other.root, theirs);
    if (lstat(files_join(from, h->c->other.root, h->at->path), &st) != 0 || below(h, 4) == 0) {
        size_t i = (size_t)below(h, theirs->count);
        for (size_t k = 0; k < theirs->count && theirs->entry[i].kind != h->at->kind; k++)
            i = (i + 1) % theirs->count;
        files_join(from, h->c->other.root, theirs->entry[i].path);
    }
    free(theirs);
}

static void make_foreign(struct hurt *h)
{
    char from[PATH_MAX];

    find_foreign(h, from);
    copy_here(h, from);
}

static void link_aside(struct hurt *h)
{
    put_aside(h);
    must(symlink(h->aside, h->path), h->path);
}

static void link_foreign(struct hurt *h)
{
    char from[PATH_MAX];

    find_foreign(h, from);
    put_aside(h);
    must(symlink(from, h->path), h->path);
}

static void link_hard(struct hurt *h)
{
    char from[PATH_MAX];
    struct stat st;

    find_foreign(h, from);
    put_aside(h);
    if (lstat(from, &st) == 0 && S_ISREG(st.st_mode))
        must(link(from, h->path), h->path);
}

static void link_sibling(struct hurt *h)
{
    const struct files_entry *other = &h->all.entry[below(h, h->all.count)];
    char from[PATH_MAX];
    struct stat st;

    files_join(from, h->c->subject.root, other->path);
    put_aside(h);
    if (lstat(from, &st) == 0 && S_ISREG(st.st_mode) && below(h, 2))
        must(link(from, h->path), h->path);
    else
        must(symlink(from, h->path), h->path);
}

static void link_nowhere(struct hurt *h)
{
    static const char *const targets[] = {"/nowhere/at/all", ".", "..", "/dev/null", "/dev/full"};

    put_aside(h);
    must(symlink(below(h, 6) == 0 ? h->path : targets[below(h, 5)], h->path), h->path);
}

static void be_empty(struct hurt *h)
{
    uint64_t kind = below(h, 4);

    put_aside(h);
    if (kind == 0)
        must(mkdir(h->path, 0777), h->path);
    else if (kind == 1)
        must(mkfifo(h->path, 0666), h->path);
    else
        must(close(open(h->path, O_WRONLY | O_CREAT, 0666)), h->path);
}

static const struct {
    const char *text;
    void (*fn)(struct hurt *h);
    int weight;
} kinds[] = {{"removed", remove_it, 4},
             {"renamed", rename_it, 3},
             {"swapped with another", swap, 4},
             {"an older copy", make_older, 5},
             {"another container's", make_foreign, 3},
             {"a link to where it went", link_aside, 3},
             {"a link to another container's", link_foreign, 4},
             {"a hard link of another container's", link_hard, 4},
             {"a link to another of the container's own", link_sibling, 2},
             {"a link to nowhere", link_nowhere, 1},
             {"empty", be_empty, 2}};

#define KINDS (sizeof kinds / sizeof kinds[0])

void files_hurt(struct files_case *c)
{
    struct hurt *h = calloc(1, sizeof *h);
    size_t kind = 0, n = strlen(c->text);
    int sum = 0;

    if (!h)
        files_die("no memory");
    h->c = c;
    files_list(c->subject.root, &h->all);
    h->at = &h->all.entry[below(h, h->all.count)];
    /* The container as a whole is what its name leads to. */
    for (size_t i = 0; i < h->all.count && !strchr(h->at->path, '/') && h->at->kind == 'd'; i++)
        h->at = &h->all.entry[i];
    files_join(h->path, c->subject.root, h->at->path);
    for (size_t i = 0; i < KINDS; i++)
        sum += kinds[i].weight;
    for (int dice = (int)below(h, (uint64_t)sum); dice >= kinds[kind].weight; kind++)
        dice -= kinds[kind].weight;
    /* So is an index in a logical file; and with MANIFEST and a log of another container, it is that one. */
    int is_other = kinds[kind].fn == make_foreign || kinds[kind].fn == link_foreign || kinds[kind].fn == link_hard;
    int is_manifest = strcmp(strrchr(h->path, '/'), "/MANIFEST") == 0;
    if ((h->at->kind == 'd' && (!strchr(h->at->path, '/') || (is_other && strcmp(h->at->path, "c.7/keys") == 0))) ||
        (is_other && c->has_foreign + is_manifest > 1))
        snprintf(c->text + n, sizeof c->text - n, "; nothing is hurt");
    else {
        kinds[kind].fn(h);
        c->has_foreign |= is_other ? 1 + is_manifest : 0;
        snprintf(c->text + n, sizeof c->text - n, "; %s: %s", h->at->path, kinds[kind].text);
    }
    free(h);
}
