/* deltafs verify: read everything, and report what is damaged.
 *
 * Damages are found in the order of keys and printed in the order of files and offsets. A truncated log can miss tens
 * of thousands of blocks, so the first SHOWN damages of each file are printed, and the others counted. */
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "tools/cmd.h"
#include "tools/target.h"
#include "tools/rows.h"

#define SHOWN 8 /* damages of a file */

struct damage {
    uint64_t offset;
    uint64_t order; /* in which it came */
    char *message;
};

struct damaged_file {
    char *path;
    uint64_t count;       /* damages met, */
    struct damage *shown; /* and those to be printed; */
    size_t used, capacity;
};

struct damage_list {
    struct damaged_file *file;
    size_t files;
    int is_all; /* keep all */
};

/* A damage's message begins with "FILE: damaged at offset N: ". Other messages, such as "FILE: truncated ...", are
 * about a whole file and come first. Returns the length of the file's path. */
static size_t damage_place(const char *message, uint64_t *offset)
{
    static const char mark[] = ": damaged at offset ";
    const char *at = strstr(message, mark);

    *offset = at ? strtoull(at + sizeof mark - 1, NULL, 10) : 0;
    if (!at)
        at = strstr(message, ": ");
    return at ? (size_t)(at - message) : 0;
}

static int damage_compare(const void *a, const void *b)
{
    const struct damage *x = a, *y = b;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static int file_compare(const void *a, const void *b)
{
    return strcmp(((const struct damaged_file *)a)->path, ((const struct damaged_file *)b)->path);
}

/* The entry of a file; NULL if there is no memory for one. */
static struct damaged_file *list_file(struct damage_list *l, const char *path, size_t n)
{
    /* The last is the likeliest. */
    for (size_t i = l->files; i-- > 0;)
        if (strncmp(l->file[i].path, path, n) == 0 && l->file[i].path[n] == '\0')
            return &l->file[i];
    struct damaged_file *grown = realloc(l->file, (l->files + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    l->file = grown;
    char *copy = strndup(path, n);
    if (!copy)
        return NULL;
    l->file[l->files] = (struct damaged_file){.path = copy};
    return &l->file[l->files++];
}

/* Keep a damage among those to be shown. Returns 0, or -1 if there is no memory for it. */
static int file_keep(struct damaged_file *f, const struct damage *d)
{
    if (f->used == f->capacity) {
        size_t capacity = f->capacity ? 2 * f->capacity : SHOWN;
        struct damage *grown = realloc(f->shown, capacity * sizeof *grown);
        if (!grown)
            return -1;
        f->shown = grown;
        f->capacity = capacity;
    }
    f->shown[f->used] = *d;
    f->shown[f->used].message = strdup(d->message);
    return f->shown[f->used].message ? (f->used++, 0) : -1;
}

static void note_damage(int status, const char *message, void *arg)
{
    struct damage_list *l = arg;
    struct damage d = {.message = (char *)(uintptr_t)message};
    size_t n = damage_place(message, &d.offset);
    struct damaged_file *f = list_file(l, message, n);

    (void)status;
    if (f)
        d.order = f->count++;
    if (f && !l->is_all && f->used == SHOWN) {
        if (damage_compare(&d, &f->shown[SHOWN - 1]) > 0)
            return;
        free(f->shown[--f->used].message);
    }
    if (!f || file_keep(f, &d) != 0)
        text_fail(0, "%s", message); /* out of order, but not lost */
    else if (!l->is_all)
        qsort(f->shown, f->used, sizeof d, damage_compare);
}

/* Print all, and free them. */
static void list_finish(struct damage_list *l)
{
    if (l->files > 0)
        qsort(l->file, l->files, sizeof *l->file, file_compare);
    for (size_t i = 0; i < l->files; i++) {
        struct damaged_file *f = &l->file[i];
        if (f->used > 0)
            qsort(f->shown, f->used, sizeof *f->shown, damage_compare);
        for (size_t k = 0; k < f->used; k++) {
            text_fail(0, "%s", f->shown[k].message);
            free(f->shown[k].message);
        }
        if (f->count > f->used)
            text_fail(0, "%s: and %" PRIu64 " more, which verify --all names", f->path, f->count - f->used);
        free(f->shown);
        free(f->path);
    }
    free(l->file);
}

static int verify_run(const char *path, int is_all)
{
    struct damage_list damages = {.is_all = is_all};
    struct deltafs_verify_counts v = {.struct_size = sizeof v};
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    deltafs_dir *d;
    int code = cmd_open(path, &d);

    if (code != EXIT_OK)
        return code;
    int status = deltafs_verify(d, note_damage, &damages, &v);
    if (status != DELTAFS_OK && damages.files == 0)
        text_fail(0, "%s", deltafs_errmsg(d));
    list_finish(&damages);
    printf("%s: %" PRIu64 " record%s in %" PRIu64 " block%s and %" PRIu64 " lea%s read, %" PRIu64 " damage%s\n", path,
           v.records, text_plural(v.records), v.blocks, text_plural(v.blocks), v.leaves, v.leaves == 1 ? "f" : "ves",
           v.damages, text_plural(v.damages));
    if (deltafs_stat(d, &stat) == DELTAFS_OK && !stat.is_closed)
        printf("%s: not closed: it is being written, or its writer died; committed epochs are not affected\n", path);
    deltafs_close(d);
    return cmd_finish(status == DELTAFS_OK ? EXIT_OK : EXIT_TROUBLE);
}

static int verify_logical(const char *path, int is_all)
{
    struct damage_list damages = {.is_all = is_all};
    struct deltafs_logical_stat stat = {.struct_size = sizeof stat};
    struct deltafs_verify_counts v = {.struct_size = sizeof v};
    deltafs_logical *f;

    int status = deltafs_logical_verify_path(path, note_damage, &damages, &v);
    if (status != DELTAFS_OK && damages.files == 0)
        return text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
    list_finish(&damages);
    printf("%s: %" PRIu64 " byte%s read, %" PRIu64 " damage%s\n", path, v.bytes, text_plural(v.bytes), v.damages,
           text_plural(v.damages));
    if (status == DELTAFS_OK && deltafs_logical_open(path, O_RDONLY, NULL, &f) == DELTAFS_OK) {
        if (deltafs_logical_stat(f, &stat) == DELTAFS_OK && !stat.is_closed)
            printf("%s: not closed: it is being written, or a writer died; what was published is not affected\n", path);
        deltafs_logical_close(f);
    }
    return cmd_finish(status == DELTAFS_OK ? EXIT_OK : EXIT_TROUBLE);
}

/* The index at `path`, or of the file there, and that it is right about its files. */
static int verify_keys(deltafs_fileindex *k, const char *path, int is_all)
{
    struct damage_list damages = {.is_all = is_all};
    struct deltafs_verify_counts v = {.struct_size = sizeof v};
    int status = deltafs_fileindex_verify(k, note_damage, &damages, &v);

    if (status != DELTAFS_OK && damages.files == 0)
        text_fail(0, "%s", deltafs_errmsg(NULL));
    list_finish(&damages);
    printf("%s: %" PRIu64 " row%s found under %s key%s, %" PRIu64 " damage%s\n", path, v.records,
           text_plural(v.records), v.records == 1 ? "its" : "their", text_plural(v.records), v.damages,
           text_plural(v.damages));
    deltafs_fileindex_close(k);
    return cmd_finish(status == DELTAFS_OK ? EXIT_OK : EXIT_TROUBLE);
}

static int verify_path(const char *path, int is_all)
{
    int is_logical = target_is_logical(path), verified = is_logical ? verify_logical(path, is_all) : EXIT_OK;
    deltafs_fileindex *k;
    int code = rows_open(path, &k);

    if (code == EXIT_OK && k)
        code = verify_keys(k, path, is_all);
    else if (code == EXIT_OK && !is_logical)
        code = verify_run(path, is_all);
    return verified != EXIT_OK ? verified : code;
}

int cmd_verify(int argc, char **argv)
{
    static const struct option options[] = {{"all", no_argument, NULL, 'a'}, {NULL, 0, NULL, 0}};
    int c, is_all = 0;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c != 'a')
            return cmd_usage("verify");
        is_all = 1;
    }
    if (argc == optind) {
        text_fail(EXIT_USAGE, "verify: DIR or FILE is missing");
        return cmd_usage("verify");
    }
    int code = EXIT_OK;
    for (int i = optind; i < argc; i++) {
        const char *path = text_path(argv[i]);
        int one = verify_path(path, is_all);
        code = one != EXIT_OK ? one : code;
    }
    return code;
}
