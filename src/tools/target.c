#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "tools/target.h"
#include "tools/text.h"

const char *target_word(const struct target *t)
{
    static const char *const words[] = {[TARGET_LOGICAL] = "logical",
                                        [TARGET_DIRECTORY] = "directory",
                                        [TARGET_FOLDER] = "folder",
                                        [TARGET_FILE] = "file",
                                        [TARGET_OTHER] = "other"};

    return t->is_index ? "index" : words[t->kind];
}

int target_refuse_empty(void)
{
    return text_fail(EXIT_TROUBLE, "the name of the file is missing: it is empty, or nothing follows 'deltafs:'");
}

int target_look(const char *path, struct target *out)
{
    struct target t = {.of_file.struct_size = sizeof t.of_file, .of_dir.struct_size = sizeof t.of_dir};
    char kind;

    if (*path == '\0')
        return target_refuse_empty();
    if (stat(path, &t.stat) != 0)
        return text_fail(EXIT_TROUBLE, "%s: %s", path, strerror(errno));
    t.kind = S_ISREG(t.stat.st_mode) ? TARGET_FILE : TARGET_OTHER;
    if (S_ISDIR(t.stat.st_mode)) {
        int code = text_of_call(deltafs_kind(path, &kind));
        if (code != EXIT_OK)
            return code;
        t.kind = kind == 'f' ? TARGET_LOGICAL : kind == 'd' ? TARGET_DIRECTORY : TARGET_FOLDER;
    }
    *out = t;
    return EXIT_OK;
}

int target_is_logical(const char *path)
{
    char kind;

    return deltafs_kind(path, &kind) == DELTAFS_OK && kind == 'f';
}

int target_is_namespace(const char *path)
{
    char name[PATH_MAX];
    struct stat st;

    return snprintf(name, sizeof name, "%s/NAMESPACE", path) < (int)sizeof name && stat(name, &st) == 0;
}

int target_is_snapshot(const char *name)
{
    struct stat st;

    return strchr(name, '@') && lstat(name, &st) != 0;
}

int target_refuse(const char *path, enum target_kind kind)
{
    const char *what = "a plain file, not a logical one; use it as it is";

    if (kind == TARGET_DIRECTORY)
        what = "a DeltaFS directory, not a logical file; 'deltafs get' and 'deltafs scan' read it";
    else if (kind == TARGET_FOLDER)
        what = "a folder, not a logical file; 'deltafs ls' shows what is in it";
    return text_fail(EXIT_TROUBLE, "%s: %s", path, what);
}

/* ---- Opening ---- */

int target_open_directory(const char *path, deltafs_dir **out)
{
    int status = deltafs_open(path, NULL, out);

    if (status != DELTAFS_OK && status != DELTAFS_ERR_NOT_FOUND && target_is_logical(path))
        return text_fail(EXIT_TROUBLE,
                         "%s: a logical file, which has no records; read it by 'deltafs cat' or 'cp', or make an "
                         "index for 'get' and 'select' by 'deltafs-mpi index'",
                         path);
    return text_of_call(status);
}

int target_open_index(const char *path, deltafs_fileindex **out)
{
    *out = NULL;
    if (*path == '\0')
        return target_refuse_empty();
    int status = deltafs_fileindex_open(path, NULL, out);
    return status == DELTAFS_ERR_NOT_FOUND ? EXIT_OK : text_of_call(status);
}

int target_open_rows(const char *path, deltafs_fileindex **index, deltafs_dir **dir)
{
    int code = target_open_index(path, index);
    struct stat st;

    *dir = NULL;
    if (code != EXIT_OK || *index)
        return code;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
        return text_fail(EXIT_TROUBLE,
                         "%s: a plain file without an index; 'deltafs-mpi index' makes one, for 'get' and 'select'",
                         path);
    return target_open_directory(path, dir);
}

int target_open_records(const char *path, deltafs_dir **out)
{
    deltafs_fileindex *index;
    int code = target_open_index(path, &index);

    if (index)
        code =
            text_fail(EXIT_TROUBLE,
                      "%s: an index, which has no records of its own; 'deltafs get' and 'select' read rows through it, "
                      "'deltafs info' lists its files, and 'deltafs-mpi import' makes a directory of dumps",
                      path);
    deltafs_fileindex_close(index);
    return code == EXIT_OK ? target_open_directory(path, out) : code;
}

/* If a directory is an index, count its rows. */
static int target_count_rows(const char *path, struct target *t)
{
    struct deltafs_table_stat table = {.struct_size = sizeof table};
    deltafs_fileindex *index;
    int status = deltafs_fileindex_open(path, NULL, &index);

    t->is_index = status != DELTAFS_ERR_NOT_FOUND;
    if (status != DELTAFS_OK)
        return t->is_index ? status : DELTAFS_OK;
    for (size_t i = 0; deltafs_fileindex_table(index, i, &table) == DELTAFS_OK; i++)
        t->rows += table.rows;
    return deltafs_fileindex_close(index);
}

int target_open(const char *path, struct target *out)
{
    struct target t;
    int status = DELTAFS_OK, code = target_look(path, &t);

    if (code != EXIT_OK)
        return code;
    if (t.kind == TARGET_LOGICAL) {
        status = deltafs_logical_open(path, O_RDONLY, NULL, &t.file);
        if (status == DELTAFS_OK)
            status = deltafs_logical_stat(t.file, &t.of_file);
        t.stored = t.of_file.bytes_stored;
    } else if (t.kind == TARGET_DIRECTORY) {
        status = deltafs_open(path, NULL, &t.dir);
        if (status == DELTAFS_OK)
            status = deltafs_stat(t.dir, &t.of_dir);
        if (status == DELTAFS_OK)
            status = deltafs_bytes_stored(t.dir, &t.stored);
        if (status == DELTAFS_OK)
            status = target_count_rows(path, &t);
    }
    code = text_of_call(status);
    if (code != EXIT_OK) {
        out->kind = t.kind;
        out->is_index = t.is_index;
        target_close(&t);
        return code;
    }
    if (t.of_file.is_incomplete)
        text_fail(0,
                  "%s: data that was written to it is lost; the rest is read; 'deltafs verify' names what is missing",
                  path);
    *out = t;
    return EXIT_OK;
}

void target_close(struct target *t)
{
    deltafs_logical_close(t->file);
    deltafs_close(t->dir);
}

int target_open_logical(const char *path, deltafs_logical **out)
{
    struct target t;
    int code = target_open(path, &t);

    if (code == EXIT_OK && t.kind == TARGET_LOGICAL) {
        *out = t.file;
    } else if (code == EXIT_OK) {
        target_close(&t);
        code = target_refuse(path, t.kind);
    }
    return code;
}

/* ---- Reporting ---- */

static void report_closed(struct report *r, const char *uuid, int is_closed, const char *open)
{
    report_text(r, "uuid", "uuid", uuid);
    report_text(r, "closed", NULL, is_closed ? "yes" : open);
    report(r, NULL, "closed", "%s", is_closed ? "true" : "false");
}

/* The bytes of its log and index files, and how many they are for each of `of` units. */
static void report_stored(struct report *r, uint64_t stored, uint64_t of, const char *unit)
{
    if (of > 0)
        report(r, "bytes stored", NULL, "%" PRIu64 " (%.3f %s)", stored, (double)stored / (double)of, unit);
    else
        report_number(r, "bytes stored", NULL, stored);
    report_number(r, NULL, "bytes_stored", stored);
}

static void report_logical(struct report *r, const struct deltafs_logical_stat *s)
{
    report_number(r, "size", "size", s->size);
    report_closed(r, s->uuid, s->is_closed, "no (being written, or a writer died)");
    report(r, "sessions", NULL, "%" PRIu64 " (%" PRIu64 " with the index in one file)", s->sessions, s->flat_sessions);
    report_number(r, NULL, "sessions", s->sessions);
    report_number(r, NULL, "flat", s->flat_sessions);
    report_number(r, "writers", "writers", s->writers);
    report_number(r, "extents", "extents", s->extents);
    report_stored(r, s->bytes_stored, s->size, "times the size");
}

static void report_directory(struct report *r, const struct target *t)
{
    const struct deltafs_stat *s = &t->of_dir;
    uint64_t of = t->is_index ? t->rows : s->bytes_raw;
    /* An index's own records and labels say nothing to its user. */
    int is_shown = r->is_json || !t->is_index;

    report_number(r, "format version", "version", s->version);
    report_closed(r, s->uuid, s->is_closed, "no (being written, or its writer died)");
    report_number(r, "partitions", "partitions", s->partitions);
    if (is_shown) {
        report_text(r, "keys", "keys", s->keys);
        report_text(r, "layout", "place", s->layout);
        if (s->value_size < 0)
            report(r, "value size", "value_size", r->is_json ? "null" : "any");
        else
            report_number(r, "value size", "value_size", (uint64_t)s->value_size);
        report_text(r, "partitioner", "partitioner", s->partitioner);
        report_text(r, "schema", "schema", s->schema[0] || r->is_json ? s->schema : "none");
        if (s->compacted > 0)
            report(r, "compacted", NULL, "the first %" PRIu64 " epoch%s", s->compacted, text_plural(s->compacted));
        report_number(r, NULL, "compacted", s->compacted);
        report_number(r, "records", "records", s->records);
        report_number(r, "bytes raw", "bytes_raw", s->bytes_raw);
    }
    if (t->is_index) {
        report(r, "index of", NULL, "%" PRIu64 " row%s of other files", t->rows, text_plural(t->rows));
        report_number(r, NULL, "rows", t->rows);
    }
    /* What is not committed is stored, too. */
    report_stored(r, t->stored, s->is_closed ? of : 0, t->is_index ? "per row" : "times bytes raw");
}

void target_report(struct report *r, const struct target *t)
{
    report(r, "kind", NULL, "%s%s", t->kind == TARGET_FILE ? "plain " : "",
           t->kind == TARGET_LOGICAL ? "logical file" : target_word(t));
    report_text(r, NULL, "kind", target_word(t));
    if (t->kind == TARGET_LOGICAL)
        report_logical(r, &t->of_file);
    else if (t->kind == TARGET_DIRECTORY)
        report_directory(r, t);
    else if (t->kind == TARGET_FILE)
        report_number(r, "size", "size", (uint64_t)t->stat.st_size);
}

int target_check_new(const char *path)
{
    char copy[PATH_MAX], manifest[PATH_MAX + 16];

    snprintf(copy, sizeof copy, "%s", path);
    const char *folder = dirname(copy);
    snprintf(manifest, sizeof manifest, "%s/MANIFEST", folder);
    return access(manifest, F_OK) != 0
               ? EXIT_OK
               : text_fail(EXIT_TROUBLE,
                           "%s: %s is a DeltaFS directory or a logical file, not a folder; give another name", path,
                           folder);
}
