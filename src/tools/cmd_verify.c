/* deltafs verify: read everything, and report what is damaged.
 *
 * Damages are found in the order of keys and printed in the order of files and offsets. A truncated log can miss tens
 * of thousands of blocks, so the first SHOWN damages of each file are printed, and the others counted. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_namespace.h>
#include "tools/cmd.h"
#include "tools/continuity.h"
#include "tools/progress.h"
#include "tools/target.h"
#include "tools/verify.h"

#define SHOWN 8 /* damages of a file */

struct damage {
    char *message;
    size_t path; /* bytes of the message that are the file's path */
    uint64_t offset;
    size_t order; /* in which it was found */
};

struct verify {
    int is_all, is_continuity;
    int is_alone; /* without the indexes by value of what is verified */
    struct damage *damage;
    size_t count, capacity;
    uint64_t changed; /* files that are not as they were indexed; they are in damages, too */
};

/* A damage's message begins with "FILE: damaged at offset N: ". Other messages, such as "FILE: truncated ...", are
 * about a whole file and come first. */
static void damage_place(struct damage *d)
{
    static const char mark[] = ": damaged at offset ";
    const char *at = strstr(d->message, mark);

    d->offset = at ? strtoull(at + sizeof mark - 1, NULL, 10) : 0;
    d->path = at || (at = strstr(d->message, ": ")) ? (size_t)(at - d->message) : 0;
}

static int is_same_file(const struct damage *a, const struct damage *b)
{
    return a->path == b->path && memcmp(a->message, b->message, a->path) == 0;
}

static int damage_compare(const void *a, const void *b)
{
    const struct damage *x = a, *y = b;
    int order = memcmp(x->message, y->message, x->path < y->path ? x->path : y->path);

    if (order != 0 || x->path != y->path)
        return order != 0 ? order : x->path < y->path ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static void verify_damage(int status, const char *message, void *arg)
{
    struct verify *v = arg;
    struct damage d = {.message = strdup(message), .order = v->count};

    v->changed += status == DELTAFS_ERR_CHANGED;
    if (v->count == v->capacity) {
        size_t capacity = v->capacity ? 2 * v->capacity : 64;
        struct damage *grown = realloc(v->damage, capacity * sizeof *grown);
        v->damage = grown ? grown : v->damage;
        v->capacity = grown ? capacity : v->capacity;
    }
    if (!d.message || v->count == v->capacity) {
        free(d.message);
        text_fail(0, "%s", message); /* out of order, but not lost */
        return;
    }
    damage_place(&d);
    v->damage[v->count++] = d;
}

/* Print the damages, or what else failed; then forget them. */
static void verify_finish(struct verify *v, int status)
{
    size_t nth = 0;

    if (status != DELTAFS_OK && v->count == 0)
        text_fail(0, "%s", deltafs_errmsg(NULL));
    if (v->count > 0)
        qsort(v->damage, v->count, sizeof *v->damage, damage_compare);
    for (size_t i = 0; i < v->count; i++) {
        const struct damage *d = &v->damage[i];
        nth = i > 0 && is_same_file(d, d - 1) ? nth + 1 : 0;
        if (v->is_all || nth < SHOWN)
            text_fail(0, "%s", d->message);
        else if (i + 1 == v->count || !is_same_file(d, d + 1))
            text_fail(0, "%.*s: and %zu more, which verify --all names", (int)d->path, d->message, nth + 1 - SHOWN);
    }
    for (size_t i = 0; i < v->count; i++)
        free(v->damage[i].message);
    free(v->damage);
    v->damage = NULL;
    v->count = v->capacity = 0;
}

struct reading {
    const deltafs_dir *dir;
    uint64_t before;
};

static uint64_t reading_bytes(void *arg)
{
    const struct reading *r = arg;
    struct deltafs_io_stat io = {.struct_size = sizeof io};

    return deltafs_io_stat(r->dir, &io) == DELTAFS_OK ? io.bytes_read - r->before : 0;
}

static void say_counts(const char *path, const struct deltafs_verify_counts *n)
{
    text_say("%s: %" PRIu64 " record%s in %" PRIu64 " block%s and %" PRIu64 " lea%s read, %" PRIu64 " damage%s", path,
             n->records, text_plural(n->records), n->blocks, text_plural(n->blocks), n->leaves,
             n->leaves == 1 ? "f" : "ves", n->damages, text_plural(n->damages));
}

/* Returns the exit code. */
static int verify_directory(struct verify *v, const char *path)
{
    struct deltafs_verify_counts n = {.struct_size = sizeof n};
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    struct progress bar;
    uint64_t stored = 0;
    deltafs_dir *d;
    int code = target_open_directory(path, &d);

    if (code != EXIT_OK)
        return code;
    deltafs_bytes_stored(d, &stored);
    struct reading reading = {.dir = d};
    reading.before = reading_bytes(&reading);
    progress_begin(&bar, stored, 1);
    bar.is_bytes = 1;
    progress_watch(&bar, reading_bytes, &reading);
    int status = deltafs_verify(d, verify_damage, v, &n);
    progress_end(&bar);
    verify_finish(v, status);
    say_counts(path, &n);
    if (deltafs_stat(d, &stat) == DELTAFS_OK && !stat.is_closed)
        text_say("%s: not closed: it is being written, or its writer died; committed epochs are not affected", path);
    if (v->is_continuity)
        code = continuity_check(d, path, v->is_all);
    deltafs_close(d);
    return status == DELTAFS_OK ? code : EXIT_TROUBLE;
}

static int fail_value_index(const char *path)
{
    deltafs_dir *d = NULL;
    int is_readable = deltafs_open(path, NULL, &d) == DELTAFS_OK;

    deltafs_close(d);
    return text_fail(
        EXIT_TROUBLE,
        "%s: an index by value, without which all answers are the same; to replace it, %s%s%s (deltafs-mpi "
        "index --by)",
        path, is_readable ? "remove it (deltafs rm " : "", is_readable ? path : "",
        is_readable ? "), and index again" : "index again");
}

static int verify_value_index(struct verify *v, const char *path)
{
    struct stat s;

    if (stat(path, &s) == 0 && !S_ISDIR(s.st_mode))
        return text_fail(EXIT_TROUBLE, "%s: a file, and no index by value; remove it", path);
    return verify_directory(v, path) == EXIT_OK ? EXIT_OK : fail_value_index(path);
}

/* Those in a folder, if there is one. Nothing else is damaged if they are. */
static int verify_value_indexes(const struct verify *v, const char *path, const char *folder)
{
    struct verify one = {.is_all = v->is_all};
    struct dirent **entry = NULL;
    char name[PATH_MAX];
    int size = snprintf(name, sizeof name, "%s%s", path, folder), code = EXIT_OK;
    int n = size < (int)sizeof name ? scandir(name, &entry, NULL, alphasort) : 0;

    if (n < 0 && errno != ENOENT && errno != ENOTDIR)
        return text_fail(EXIT_TROUBLE, "%s: %s", name, strerror(errno));
    for (int i = 0; i < n; i++) {
        int is_whole = snprintf(name, sizeof name, "%s%s/%s", path, folder, entry[i]->d_name) < (int)sizeof name;
        if (is_whole && entry[i]->d_name[0] != '.' && verify_value_index(&one, name) != EXIT_OK)
            code = EXIT_TROUBLE;
        free(entry[i]);
    }
    free(entry);
    return code;
}

/* In or beside a directory, an index, or a file that has one. */
static int verify_all_value_indexes(const struct verify *v, const char *path, int has_index)
{
    static const char *const folders[] = {"/by", ".keys/by", "/keys/by"};
    int code = EXIT_OK;

    for (int i = 0; i < (has_index ? 3 : 1) && !v->is_alone; i++) {
        int one = verify_value_indexes(v, path, folders[i]);
        code = code == EXIT_OK ? one : code;
    }
    return code;
}

static int verify_logical(struct verify *v, const char *path)
{
    struct deltafs_verify_counts n = {.struct_size = sizeof n};
    struct target t;
    int status = deltafs_logical_verify_path(path, verify_damage, v, &n),
        is_read = status == DELTAFS_OK || v->count > 0;

    verify_finish(v, status);
    if (is_read)
        text_say("%s: %" PRIu64 " byte%s of logs and indexes read, %" PRIu64 " damage%s", path, n.bytes,
                 text_plural(n.bytes), n.damages, text_plural(n.damages));
    if (status != DELTAFS_OK)
        return EXIT_TROUBLE;
    if (target_open(path, &t) == EXIT_OK) {
        if (!t.of_file.is_closed)
            text_say("%s: not closed: it is being written, or a writer died; what was published is not affected", path);
        target_close(&t);
    }
    return EXIT_OK;
}

static int refuse_continuity(const char *path)
{
    return text_fail(EXIT_USAGE, "verify: --continuity is for directories with records; %s is none", path);
}

/* An index, and that it is right about its files. */
static int verify_index(struct verify *v, deltafs_fileindex *index, const char *path)
{
    struct deltafs_verify_counts n = {.struct_size = sizeof n};
    char changed[64] = "";

    v->changed = 0;
    int status = deltafs_fileindex_verify(index, verify_damage, v, &n);
    verify_finish(v, status);
    uint64_t damages = n.damages - v->changed;
    if (v->changed > 0)
        snprintf(changed, sizeof changed, ", %" PRIu64 " file%s not as %s indexed", v->changed, text_plural(v->changed),
                 v->changed == 1 ? "it was" : "they were");
    text_say("%s: %" PRIu64 " row%s found under %s key%s, %" PRIu64 " damage%s%s", path, n.records,
             text_plural(n.records), n.records == 1 ? "its" : "their", text_plural(n.records), damages,
             text_plural(damages), changed);
    deltafs_fileindex_close(index);
    return status == DELTAFS_OK ? EXIT_OK : EXIT_TROUBLE;
}

static int verify_namespace(struct verify *v, const char *path)
{
    struct deltafs_verify_counts n = {.struct_size = sizeof n};
    int status = deltafs_namespace_verify(path, verify_damage, v, &n);

    verify_finish(v, status);
    if (status == DELTAFS_OK || n.damages > 0)
        say_counts(path, &n);
    return status == DELTAFS_OK ? EXIT_OK : EXIT_TROUBLE;
}

static int verify_snapshot(struct verify *v, const char *name)
{
    struct deltafs_verify_counts n = {.struct_size = sizeof n};
    int status = deltafs_namespace_verify(name, verify_damage, v, &n);

    verify_finish(v, status);
    if (status == DELTAFS_OK || n.damages > 0)
        text_say("%s: %" PRIu64 " name%s and %" PRIu64 " byte%s of files read, %" PRIu64 " damage%s", name, n.records,
                 text_plural(n.records), n.bytes, text_plural(n.bytes), n.damages, text_plural(n.damages));
    return status == DELTAFS_OK ? EXIT_OK : EXIT_TROUBLE;
}

static int verify_one(void *values, const char *path)
{
    struct verify *v = values;

    if (target_is_snapshot(path)) {
        int code = verify_snapshot(v, path);
        return v->is_continuity ? refuse_continuity(path) : code;
    }
    if (target_is_namespace(path)) {
        int code = verify_namespace(v, path);
        return v->is_continuity ? refuse_continuity(path) : code;
    }
    int is_logical = target_is_logical(path), verified = is_logical ? verify_logical(v, path) : EXIT_OK;
    deltafs_fileindex *index;
    int code = target_open_index(path, &index), has_index = index != NULL;
    int has_rows = code == EXIT_OK && (has_index || !is_logical);

    if (has_index)
        code = verify_index(v, index, path);
    else if (has_rows)
        code = verify_directory(v, path);
    int indexes = has_rows ? verify_all_value_indexes(v, path, has_index) : EXIT_OK;
    code = code == EXIT_OK ? indexes : code;
    if ((has_index || is_logical) && v->is_continuity)
        code = refuse_continuity(path);
    return verified != EXIT_OK ? verified : code;
}

int verify_path(const char *path)
{
    struct verify v = {.is_alone = 1};

    return verify_one(&v, path);
}

static const struct command_option options[] = {
    {"continuity", 0, NULL,
     "also list tracks that jump farther than light moves (columns x, y, z; attributes time, cvac)", NULL,
     offsetof(struct verify, is_continuity)},
    {"all", 0, NULL, "list all damages and jumps", NULL, offsetof(struct verify, is_all)},
    {0}};

const struct command cmd_verify = {.name = "verify",
                                   .usage = "DIR|FILE|NS|REG@NAME... [OPTION...]",
                                   .text =
                                       "Read everything, check the checksums, and list the first damages of each file.",
                                   .missing = "DIR, FILE, NS or REG@NAME is missing",
                                   .least = 1,
                                   .size = sizeof(struct verify),
                                   .option = options,
                                   .each = verify_one};
