/* deltafs ns ls, stat, cat, find, du: what is in namespaces. */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "tools/cmd.h"
#include "tools/place.h"
#include "tools/report.h"

/* Do something with each operand; returns the last error. */
static int each_operand(const struct command_call *c, place_fn *fn)
{
    struct place_set set = {.flags = O_RDONLY};
    struct place p;
    struct stat st;
    int code = EXIT_OK;

    for (int i = 0; i < c->count; i++) {
        int one = place_must_find(&set, c->operand[i], &p);
        if (one == EXIT_OK)
            one = place_stat(&p, 0, 0, &st);
        if (one == EXIT_OK)
            one = fn(&p, &st, c->values);
        code = one != EXIT_OK ? one : code;
    }
    return place_close(&set, code);
}

static void mode_text(mode_t mode, char text[11])
{
    static const char letters[] = "rwxrwxrwx";

    text[0] = S_ISDIR(mode) ? 'd' : S_ISLNK(mode) ? 'l' : '-';
    for (int i = 0; i < 9; i++)
        text[i + 1] = (char)(mode >> (8 - i) & 1 ? letters[i] : '-');
    if (mode & S_ISUID)
        text[3] = (char)(mode & S_IXUSR ? 's' : 'S');
    if (mode & S_ISGID)
        text[6] = (char)(mode & S_IXGRP ? 's' : 'S');
    if (mode & S_ISVTX)
        text[9] = (char)(mode & S_IXOTH ? 't' : 'T');
    text[10] = '\0';
}

static void time_text(const struct timespec *t, const char *format, char *text, size_t room)
{
    struct tm tm;

    text[0] = '\0';
    if (localtime_r(&t->tv_sec, &tm))
        strftime(text, room, format, &tm);
}

/* Print the attributes of what is at a path; `count` have been printed before. */
static int print_attributes(struct place *p, const struct stat *st, int is_json, int count)
{
    struct report r = {.is_json = is_json};
    char name[2 * PATH_MAX], text[PATH_MAX], target[PATH_MAX];
    int code = S_ISLNK(st->st_mode) ? place_readlink(p, target) : EXIT_OK;

    if (code != EXIT_OK)
        return code;
    printf("%s%s", count > 0 ? is_json ? ",\n" : "\n" : "", is_json ? "{" : "");
    snprintf(name, sizeof name, "%s:%s", p->name, p->path);
    report_text(&r, "path", "path", name);
    report_text(&r, "kind", "kind", S_ISDIR(st->st_mode) ? "folder" : S_ISLNK(st->st_mode) ? "link" : "file");
    if (S_ISLNK(st->st_mode))
        report_text(&r, "target", "target", target);
    report_number(&r, "size", "size", (uint64_t)st->st_size);
    snprintf(text, sizeof text, "%04o", st->st_mode & 07777);
    report_text(&r, "mode", "mode", text);
    report_number(&r, "uid", "uid", st->st_uid);
    report_number(&r, "gid", "gid", st->st_gid);
    time_text(&st->st_mtim, "%Y-%m-%dT%H:%M:%S%z", text, sizeof text);
    report_text(&r, "modified", "modified", text);
    report_number(&r, "inode", "inode", st->st_ino);
    fputs(is_json ? "\n}" : "", stdout);
    return EXIT_OK;
}

/* ---- ls ---- */

struct ls_entry {
    struct stat st;
    char *name;
};

struct ns_ls {
    int is_long, is_all, is_recursive, is_json; /* options */
    int count;                                  /* operands, */
    int titles;                                 /* folders listed so far, */
    int printed;                                /* and JSON objects */
    struct ls_entry *entry;                     /* of one folder */
    size_t entries, room;
};

static void ls_line(const struct ns_ls *l, const struct place *p, const char *name, const struct stat *st)
{
    char mode[11], when[32], target[PATH_MAX] = "";
    const struct passwd *user = l->is_long ? getpwuid(st->st_uid) : NULL;
    const struct group *group = l->is_long ? getgrgid(st->st_gid) : NULL;
    char uid[16], gid[16];

    if (l->is_long) {
        snprintf(uid, sizeof uid, "%u", st->st_uid);
        snprintf(gid, sizeof gid, "%u", st->st_gid);
        mode_text(st->st_mode, mode);
        time_text(&st->st_mtim, "%Y-%m-%d %H:%M", when, sizeof when);
        printf("%s %-8s %-8s %9" PRIu64 " %s ", mode, user ? user->pw_name : uid, group ? group->gr_name : gid,
               (uint64_t)st->st_size, when);
    }
    if (l->is_long && S_ISLNK(st->st_mode) && place_readlink(p, target) == EXIT_OK)
        text_say("%s -> %s", name, target);
    else
        text_say("%s", name);
}

/* Print what is at `p`, as `name` in lines. */
static int ls_print(struct ns_ls *l, struct place *p, const char *name, const struct stat *st)
{
    int code = EXIT_OK;

    if (l->is_json)
        code = print_attributes(p, st, 1, l->printed);
    else
        ls_line(l, p, name, st);
    l->printed += code == EXIT_OK;
    return code;
}

static int ls_keep(struct place *p, const struct stat *st, void *arg)
{
    struct ns_ls *l = arg;
    char base[NAME_MAX + 1];

    place_base(p->path, base);
    if (base[0] == '.' && !l->is_all)
        return EXIT_OK;
    if (l->entries == l->room) {
        size_t room = l->room > 0 ? 2 * l->room : 64;
        struct ls_entry *more = realloc(l->entry, room * sizeof *more);
        if (!more)
            return text_fail(EXIT_TROUBLE, "no memory");
        l->entry = more;
        l->room = room;
    }
    l->entry[l->entries] = (struct ls_entry){*st, strdup(base)};
    if (!l->entry[l->entries].name)
        return text_fail(EXIT_TROUBLE, "no memory");
    l->entries++;
    return EXIT_OK;
}

static int ls_compare(const void *a, const void *b)
{
    return strcmp(((const struct ls_entry *)a)->name, ((const struct ls_entry *)b)->name);
}

/* List a folder, and with -R those in it. */
static int ls_folder(struct ns_ls *l, struct place *p)
{
    struct ns_ls own = *l;
    size_t before;
    int code;

    own.entry = NULL;
    own.entries = own.room = 0;
    if (!l->is_json && (l->is_recursive || l->count > 1)) {
        fputs(l->titles++ > 0 ? "\n" : "", stdout);
        text_say("%s:%s:", p->name, p->path);
    }
    code = place_each(p, ls_keep, &own);
    if (own.entries > 0)
        qsort(own.entry, own.entries, sizeof *own.entry, ls_compare);
    for (size_t i = 0; i < own.entries; i++)
        if (place_enter(p, own.entry[i].name, &before) == EXIT_OK) {
            int one = ls_print(l, p, own.entry[i].name, &own.entry[i].st);
            code = one != EXIT_OK ? one : code;
            place_leave(p, before);
        }
    for (size_t i = 0; i < own.entries; i++) {
        if (l->is_recursive && S_ISDIR(own.entry[i].st.st_mode) &&
            place_enter(p, own.entry[i].name, &before) == EXIT_OK) {
            int one = ls_folder(l, p);
            code = one != EXIT_OK ? one : code;
            place_leave(p, before);
        }
        free(own.entry[i].name);
    }
    free(own.entry);
    return code;
}

static int ls_place(struct place *p, const struct stat *st, void *arg)
{
    struct ns_ls *l = arg;
    struct stat target = *st;
    char name[2 * PATH_MAX];

    /* As ls(1): a link to a folder is listed as the folder, but not with -l. */
    if (S_ISLNK(st->st_mode) && !l->is_long && place_stat(p, 1, 1, &target) == EXIT_OK && !S_ISDIR(target.st_mode))
        target = *st;
    if (S_ISDIR(target.st_mode))
        return ls_folder(l, p);
    snprintf(name, sizeof name, "%s:%s", p->name, p->path);
    l->titles++;
    return ls_print(l, p, name, st);
}

static int ns_ls_run(const struct command_call *c)
{
    struct ns_ls *l = c->values;

    l->count = c->count;
    fputs(l->is_json ? "[" : "", stdout);
    int code = each_operand(c, ls_place);
    fputs(l->is_json ? "]\n" : "", stdout);
    return code;
}

static const struct command_option ns_ls_options[] = {
    {"long", 'l', NULL, "also mode, owner, group, bytes and time of the last change", NULL,
     offsetof(struct ns_ls, is_long)},
    {"all", 'a', NULL, "also names that begin with a dot", NULL, offsetof(struct ns_ls, is_all)},
    {"recursive", 'R', NULL, "also the folders in it, and so on", NULL, offsetof(struct ns_ls, is_recursive)},
    {"json", 0, NULL, "for programs: what 'ns stat --json' prints", NULL, offsetof(struct ns_ls, is_json)},
    {0}};

const struct command cmd_ns_ls = {.name = "ls",
                                  .usage = "NS:/PATH... [OPTION...]",
                                  .text = "List folders of a namespace, one name per line.",
                                  .missing = "NS:/PATH is missing",
                                  .least = 1,
                                  .size = sizeof(struct ns_ls),
                                  .option = ns_ls_options,
                                  .run = ns_ls_run};

/* ---- stat ---- */

struct ns_stat {
    int is_json;
    int count; /* printed so far */
};

static int stat_place(struct place *p, const struct stat *st, void *arg)
{
    struct ns_stat *s = arg;
    int code = print_attributes(p, st, s->is_json, s->count);

    s->count += code == EXIT_OK;
    return code;
}

static int ns_stat_run(const struct command_call *c)
{
    const struct ns_stat *s = c->values;

    fputs(s->is_json ? "[" : "", stdout);
    int code = each_operand(c, stat_place);
    fputs(s->is_json ? "]\n" : "", stdout);
    return code;
}

static const struct command_option ns_stat_options[] = {
    {"json", 0, NULL, "for programs", NULL, offsetof(struct ns_stat, is_json)}, {0}};

const struct command cmd_ns_stat = {.name = "stat",
                                    .usage = "NS:/PATH... [OPTION...]",
                                    .text = "Print the attributes of what is at a path.",
                                    .missing = "NS:/PATH is missing",
                                    .least = 1,
                                    .size = sizeof(struct ns_stat),
                                    .option = ns_stat_options,
                                    .run = ns_stat_run};

/* ---- cat ---- */

struct ns_cat {
    struct command_number offset, size;
};

static int cat_place(struct place *p, const struct stat *st, void *arg)
{
    static char bytes[1 << 16];
    const struct ns_cat *c = arg;
    deltafs_namespace_file *f;
    uint64_t offset = c->offset.value, left = c->size.is_given ? c->size.value : UINT64_MAX;
    size_t got = 1;

    (void)st;
    int status = deltafs_namespace_file_open(p->ns, p->path, O_RDONLY, 0, &f);
    if (status != DELTAFS_OK)
        return text_of_call(status);
    while (left > 0 && got > 0) {
        status = deltafs_namespace_file_read(f, offset, bytes, left < sizeof bytes ? left : sizeof bytes, &got);
        if (status != DELTAFS_OK || fwrite(bytes, 1, got, stdout) != got)
            break;
        offset += got;
        left -= got;
    }
    int code = text_of_call(status);
    deltafs_namespace_file_close(f);
    return code;
}

static int ns_cat_run(const struct command_call *c)
{
    return each_operand(c, cat_place);
}

static const struct command_option ns_cat_options[] = {
    {"offset", 0, "N", "start at byte N of each file", cmd_parse_number, offsetof(struct ns_cat, offset)},
    {"size", 0, "N", "at most N bytes of each file", cmd_parse_number, offsetof(struct ns_cat, size)},
    {0}};

const struct command cmd_ns_cat = {.name = "cat",
                                   .usage = "NS:/PATH... [OPTION...]",
                                   .text = "Write files of a namespace to standard output.",
                                   .missing = "NS:/PATH is missing",
                                   .least = 1,
                                   .size = sizeof(struct ns_cat),
                                   .option = ns_cat_options,
                                   .run = ns_cat_run};

/* ---- find ---- */

struct ns_find {
    const char *name, *type;
};

static int find_in(struct place *p, const struct stat *st, void *arg)
{
    const struct ns_find *f = arg;
    char base[NAME_MAX + 1];
    char type = (char)(S_ISDIR(st->st_mode) ? 'd' : S_ISLNK(st->st_mode) ? 'l' : 'f');

    place_base(p->path, base);
    if ((!f->name || fnmatch(f->name, base, 0) == 0) && (!f->type || f->type[0] == type))
        text_say("%s:%s", p->name, p->path);
    return type == 'd' ? place_each(p, find_in, arg) : EXIT_OK;
}

static int find_run(const struct command_call *c)
{
    return each_operand(c, find_in);
}

static const char *parse_type(const char *text, void *out)
{
    *(const char **)out = text;
    return text[0] != '\0' && text[1] == '\0' && strchr("fdl", text[0]) ? NULL : "is none of f, d and l";
}

static const struct command_option find_options[] = {
    {"name", 0, "PATTERN", "only names that match, as in a shell: '*.dat'", cmd_parse_text,
     offsetof(struct ns_find, name)},
    {"type", 0, "T", "only files (f), folders (d) or symbolic links (l)", parse_type, offsetof(struct ns_find, type)},
    {0}};

const struct command cmd_ns_find = {.name = "find",
                                    .usage = "NS:/PATH... [OPTION...]",
                                    .text = "Print the path of everything below a folder, one per line.",
                                    .missing = "NS:/PATH is missing",
                                    .least = 1,
                                    .size = sizeof(struct ns_find),
                                    .option = find_options,
                                    .run = find_run};

/* ---- du ---- */

struct ns_du {
    int is_sum;
    int depth;
    uint64_t bytes;
};

static void du_print(const struct place *p, uint64_t bytes)
{
    printf("%" PRIu64 "\t", bytes);
    text_say("%s:%s", p->name, p->path);
}

static int du_in(struct place *p, const struct stat *st, void *arg)
{
    struct ns_du *d = arg;

    if (!S_ISDIR(st->st_mode)) {
        uint64_t bytes = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
        d->bytes += bytes;
        if (d->depth == 0)
            du_print(p, bytes);
        return EXIT_OK;
    }
    struct ns_du below = {.is_sum = d->is_sum, .depth = d->depth + 1};
    int code = place_each(p, du_in, &below);
    if (!d->is_sum || d->depth == 0)
        du_print(p, below.bytes);
    d->bytes += below.bytes;
    return code;
}

static int du_run(const struct command_call *c)
{
    return each_operand(c, du_in);
}

static const struct command_option du_options[] = {
    {"summarize", 's', NULL, "only the sum, not each folder", NULL, offsetof(struct ns_du, is_sum)}, {0}};

const struct command cmd_ns_du = {.name = "du",
                                  .usage = "NS:/PATH... [OPTION...]",
                                  .text = "Print the bytes of the files below each folder.",
                                  .missing = "NS:/PATH is missing",
                                  .least = 1,
                                  .size = sizeof(struct ns_du),
                                  .option = du_options,
                                  .run = du_run};
