#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "files.h"

const char *const files_kind_names[FILES_KINDS] = {"directory", "logical file", "index", "index in a logical file"};

void files_shape_make(struct files_shape *s, uint64_t seed)
{
    struct torture_rng r = {seed ^ 0xf11e5};

    *s = (struct files_shape){
        .kind = (enum files_kind)torture_below(&r, FILES_KINDS),
        .seed = seed,
        .states = 1 + (size_t)torture_below(&r, FILES_STATES - 1),
        .partitions = TORTURE_PICK(&r, "1", "2", "3"),
        .keys = TORTURE_PICK(&r, "u64", "u64", "bytes"),
        .value_size = TORTURE_PICK(&r, "24", "any"),
        .codec = TORTURE_PICK(&r, "snappy", "snappy", "none"),
        .layout = TORTURE_PICK(&r, "partitioned", "partitioned", "local"),
        .threads = "0",
        .sync = TORTURE_PICK(&r, "commit", "close", "none"),
        .volumes = torture_below(&r, 3) == 0 ? 1 + (uint32_t)torture_below(&r, 2) : 0,
        .is_flat = torture_below(&r, 3) == 0,
        .is_killed = torture_below(&r, 4) == 0,
    };
    s->is_killed &= s->kind < FILES_INDEX;
    /* What is closed without a sync may lose bytes, which a program is told of by deltafs_logical_stat alone. */
    if (s->kind == FILES_INSIDE)
        s->sync = "close";
}

void files_init(struct files *f, const struct files_shape *s, const char *root)
{
    static const char *const names[FILES_KINDS] = {"c", "c", "ix", "c.7"};

    memset(f, 0, sizeof *f);
    f->shape = *s;
    snprintf(f->root, sizeof f->root, "%s", root);
    snprintf(f->path, sizeof f->path, "%s/%s", root, names[s->kind]);
    if (mkdir(root, 0777) != 0)
        files_die("%s: %m", root);
    for (uint32_t i = 0; i < s->volumes; i++) {
        char volume[256];
        snprintf(volume, sizeof volume, "%s/volume%u", root, i);
        if (mkdir(volume, 0777) != 0)
            files_die("%s: %m", volume);
    }
}

const char *files_volumes(const struct files *f, char text[512])
{
    int n = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < f->shape.volumes; i++)
        n += snprintf(text + n, 512 - (size_t)n, "%s%s/volume%u", i > 0 ? ":" : "", f->root, i);
    return text;
}

/* NULL after an error, which deltafs_errmsg has. */
deltafs_options *files_options(const struct files *f)
{
    const struct files_shape *s = &f->shape;
    char volumes[512];
    /* The last four are of directories. */
    const char *set[][2] = {{"memory", strcmp(s->keys, "bytes") == 0 ? "16M" : "8M"},
                            {"threads", s->threads},
                            {"sync", s->sync},
                            {"codec", s->codec},
                            {"volumes", files_volumes(f, volumes)},
                            {"extents", s->is_flat ? "flatten" : "parallel"},
                            {"partitions", s->partitions},
                            {"keys", s->keys},
                            {"value_size", s->value_size},
                            {"layout", s->layout}};
    size_t n = sizeof set / sizeof set[0] - (s->kind == FILES_DIRECTORY ? 0 : 4);
    deltafs_options *o = NULL;
    int status = deltafs_options_create(&o);

    for (size_t i = 0; i < n && status == DELTAFS_OK; i++)
        status = deltafs_options_set(o, set[i][0], set[i][1]);
    if (status == DELTAFS_OK)
        return o;
    deltafs_options_destroy(o);
    return NULL;
}

/* Note why a call failed. */
static int failed(int status, const deltafs_dir *dir, char message[1024])
{
    if (status != DELTAFS_OK)
        snprintf(message, 1024, "%s", deltafs_errmsg(dir));
    return status;
}

/* ---- Directories ---- */

/* Records of epoch `i`, from 0: one of each key below that. */
uint64_t files_records(const struct files_shape *s, size_t i)
{
    struct torture_rng r = {s->seed ^ i * 977};

    return 1 + torture_below(&r, FILES_KEYS);
}

uint64_t files_label(size_t i)
{
    return 10 * (i + 1);
}

/* The bytes of a value, which are alike enough to be packed; returns how many. */
size_t files_value(const struct files_shape *s, uint64_t label, uint64_t key, uint8_t value[FILES_VALUE])
{
    size_t n = strcmp(s->value_size, "any") == 0 ? (size_t)(key * 7 + label) % FILES_VALUE : 24;

    for (size_t i = 0; i < n; i++)
        value[i] = (uint8_t)(i < 8 ? (s->seed * 31 + label * 131 + key) >> 8 * i : label);
    return n;
}

static int append_epoch(const struct files_shape *s, deltafs_dir *d, size_t i)
{
    uint8_t value[FILES_VALUE];
    char name[32];
    int status = DELTAFS_OK;

    for (uint64_t key = 0; key < files_records(s, i) && status == DELTAFS_OK; key++) {
        size_t n = files_value(s, files_label(i), key, value);
        int length = snprintf(name, sizeof name, "key %ju", (uintmax_t)key);
        status = strcmp(s->keys, "bytes") == 0 ? deltafs_append_bytes(d, name, (size_t)length, value, n)
                                               : deltafs_append(d, key, value, n);
    }
    return status;
}

static int next_epoch(struct files *f, deltafs_options *o, int is_killed, char message[1024])
{
    deltafs_dir *d;
    int status = failed((access(f->path, F_OK) != 0 ? deltafs_create : deltafs_reopen)(f->path, o, &d), NULL, message);

    if (status != DELTAFS_OK)
        return status;
    append_epoch(&f->shape, d, f->state); /* an error of it is one of the epoch's end, too */
    status = failed(deltafs_epoch_end(d, files_label(f->state)), d, message);
    if (status == DELTAFS_OK)
        f->state++;
    if (is_killed)
        _exit(status != DELTAFS_OK);
    int closed = deltafs_close(d);
    return status != DELTAFS_OK ? status : failed(closed, NULL, message);
}

/* ---- Logical files ---- */

/* What session `i` writes: some extents, after it has removed what is beyond some size, or all. */
static void plan_session(struct files *f, size_t i)
{
    struct torture_rng r = {f->shape.seed ^ i * 7919 ^ 0x5e55};
    uint64_t dice = torture_below(&r, 8);

    memcpy(f->other, f->bytes, sizeof f->other);
    f->other_size = f->size;
    f->is_emptied = i > 0 && dice == 0;
    f->cut = i > 0 && dice == 1 ? f->size / 2 : FILES_BYTES;
    if (i > 0 && dice <= 1) {
        f->other_size = dice == 0 ? 0 : f->size / 2;
        memset(f->other + f->other_size, 0, sizeof f->other - f->other_size);
    }
    for (size_t n = 1 + torture_below(&r, 6); n > 0; n--) {
        size_t size = 1 + (size_t)torture_below(&r, 3000), at = (size_t)torture_below(&r, FILES_BYTES - size);
        memset(f->other + at, (int)(1 + (i * 40 + n) % 250), size);
        f->other_size = at + size > f->other_size ? at + size : f->other_size;
    }
}

/* What was to be written is. */
static void take_bytes(struct files *f)
{
    memcpy(f->past[f->state], f->bytes, sizeof f->bytes);
    memcpy(f->bytes, f->other, sizeof f->bytes);
    f->size = f->other_size;
}

static int write_session(struct files *f, deltafs_logical *l, size_t i, char message[1024])
{
    struct torture_rng r = {f->shape.seed ^ i * 7919 ^ 0x5e55};
    uint64_t dice = torture_below(&r, 8);
    static uint8_t bytes[3000];
    int status = DELTAFS_OK;

    if (i > 0 && dice == 1)
        status = failed(deltafs_logical_truncate(l, f->size / 2), NULL, message);
    for (size_t n = 1 + torture_below(&r, 6); n > 0 && status == DELTAFS_OK; n--) {
        size_t size = 1 + (size_t)torture_below(&r, 3000), at = (size_t)torture_below(&r, FILES_BYTES - size);
        memset(bytes, (int)(1 + (i * 40 + n) % 250), size);
        status = failed(deltafs_logical_write(l, at, bytes, size), NULL, message);
    }
    return status;
}

static int next_session(struct files *f, deltafs_options *o, int is_killed, char message[1024])
{
    deltafs_logical *l;

    plan_session(f, f->state);
    int flags = O_RDWR | O_CREAT | (f->is_emptied ? O_TRUNC : 0);
    int status = failed(deltafs_logical_open(f->path, flags, o, &l), NULL, message);
    if (status != DELTAFS_OK)
        return status;
    status = write_session(f, l, f->state, message);
    if (status == DELTAFS_OK && (is_killed || f->state % 2))
        status = failed(deltafs_logical_sync(l), NULL, message);
    if (is_killed)
        _exit(status != DELTAFS_OK);
    int closed = deltafs_logical_close(l);
    if (status == DELTAFS_OK)
        status = failed(closed, NULL, message);
    if (status != DELTAFS_OK)
        return status;
    take_bytes(f);
    f->state++;
    return DELTAFS_OK;
}

/* ---- Indexes ---- */

size_t files_rows(const struct files_shape *s, size_t i)
{
    struct torture_rng r = {s->seed ^ i * 6151 ^ 0x1d};

    return 1 + (size_t)torture_below(&r, 200);
}

/* Row `k` of table `i`. */
struct files_row files_row_of(size_t i, size_t k)
{
    return (struct files_row){(k * 5 + i) % FILES_KEYS, (float)(1000 * i + k)};
}

static size_t rows_of(const struct files_shape *s, size_t i, struct files_row *row)
{
    size_t n = files_rows(s, i);

    for (size_t k = 0; k < n; k++)
        row[k] = files_row_of(i, k);
    return n * sizeof *row;
}

/* The file that is indexed next; of an index in a logical file, that file with more rows. */
static int write_rows(struct files *f, const char *path, deltafs_options *o, char message[1024])
{
    static struct files_row row[200];
    size_t n = rows_of(&f->shape, f->state, row), at = 0;
    deltafs_logical *l;

    if (f->shape.kind == FILES_INDEX) {
        unlink(path); /* it may be a link */
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666), is_written = fd >= 0 && write(fd, row, n) == (ssize_t)n;
        snprintf(message, 1024, "%s: %m", path);
        if (fd >= 0)
            close(fd);
        return is_written ? DELTAFS_OK : DELTAFS_ERR_IO;
    }
    /* Where they belong, also if they have been written before, and not indexed. */
    for (size_t i = 0; i < f->state; i++)
        at += files_rows(&f->shape, i) * sizeof row[0];
    memcpy(f->other, f->bytes, sizeof f->other);
    memcpy(f->other + at, row, n);
    f->other_size = at + n;
    int status = failed(deltafs_logical_open(path, O_RDWR | O_CREAT, o, &l), NULL, message);
    if (status != DELTAFS_OK)
        return status;
    status = failed(deltafs_logical_write(l, at, row, n), NULL, message);
    int closed = deltafs_logical_close(l);
    if (status == DELTAFS_OK)
        status = failed(closed, NULL, message);
    if (status == DELTAFS_OK)
        take_bytes(f);
    return status;
}

static int next_table(struct files *f, deltafs_options *o, char message[1024])
{
    char path[300], label[8] = "7";
    const char *const set[][2] = {{"key", "id"}, {"schema", "id:u8,x:f4"}, {"epoch", label}};
    int is_inside = f->shape.kind == FILES_INSIDE, status = DELTAFS_OK;
    deltafs_indexer *ix;

    snprintf(path, sizeof path, is_inside ? "%s" : "%s/rows.%zu", is_inside ? f->path : f->root, f->state);
    snprintf(label, sizeof label, "%zu", is_inside ? 7 : f->state);
    status = write_rows(f, path, o, message);
    for (size_t i = 0; i < 3 && status == DELTAFS_OK; i++)
        status = failed(deltafs_options_set(o, set[i][0], set[i][1]), NULL, message);
    if (status == DELTAFS_OK)
        status =
            failed(deltafs_indexer_open(is_inside ? NULL : f->path, is_inside ? path : NULL, o, &ix), NULL, message);
    if (status == DELTAFS_OK) {
        status = failed(deltafs_indexer_add_file(ix, path, o, NULL), NULL, message);
        int closed = deltafs_indexer_close(ix);
        if (status == DELTAFS_OK)
            status = failed(closed, NULL, message);
    }
    if (status == DELTAFS_OK)
        f->state++;
    return status;
}

static int next(struct files *f, int is_killed, char message[1024])
{
    deltafs_options *o = files_options(f);
    int status;

    if (!o)
        return failed(DELTAFS_ERR_MEMORY, NULL, message);
    if (f->shape.kind == FILES_DIRECTORY)
        status = next_epoch(f, o, is_killed, message);
    else if (f->shape.kind == FILES_LOGICAL)
        status = next_session(f, o, is_killed, message);
    else
        status = next_table(f, o, message);
    deltafs_options_destroy(o);
    return status;
}

int files_next(struct files *f, int is_killed, char message[1024])
{
    int status = 0;

    if (!is_killed || f->shape.kind >= FILES_INDEX)
        return next(f, 0, message);
    pid_t child = fork();
    if (child == 0) {
        next(f, 1, message);
        _exit(EXIT_FAILURE);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        files_die("a writer that is to be killed does not come so far");
    plan_session(f, f->state);
    f->was_emptied = f->shape.kind == FILES_LOGICAL && f->is_emptied;
    take_bytes(f);
    f->state++;
    return DELTAFS_OK;
}
