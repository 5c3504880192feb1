/* Repair of a manifest by its copy. Both have the same lines at the same offsets, and each line has a checksum, so a
 * damaged or lost line of one is taken from the other. The result must have every sound line of the manifest. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "io/io_format.h"
#include "repair/repair_parts.h"

#define KEPT_MAX 100000 /* files kept of what was replaced */

int text_load(struct io *io, const char *folder, const char *name, struct text *out, struct error *e)
{
    char path[PATH_ROOM];
    struct io_file file;
    uint64_t size = 0;
    int status = io_file_open(io, io_path_in(path, folder, "%s", name), O_RDONLY, &file, e);

    *out = (struct text){0};
    if (status == DELTAFS_OK) {
        status = textlog_load(&file, &out->bytes, &size, e);
        io_file_close(&file, error_ignored());
    }
    out->n = (size_t)size;
    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
}

/* Bytes of the sound line at `at`, with its newline; 0 if there is none. */
static size_t text_line(const struct text *t, size_t at)
{
    const char *newline = at < t->n ? memchr(t->bytes + at, '\n', t->n - at) : NULL;
    size_t n = newline ? (size_t)(newline - t->bytes) - at : 0;

    return newline && textlog_is_sealed(t->bytes + at, n) ? n + 1 : 0;
}

/* Whether `all` has each sound line of `t`, which are mostly in the same order. */
static int text_has_lines(const struct text *all, const struct text *t)
{
    const char *from = all->bytes, *end = all->bytes + all->n, *newline;

    for (size_t at = 0, n; at < t->n; at += n) {
        newline = memchr(t->bytes + at, '\n', t->n - at);
        n = newline ? (size_t)(newline - t->bytes) + 1 - at : t->n - at;
        if (text_line(t, at) == 0)
            continue;
        const char *found = memmem(from, (size_t)(end - from), t->bytes + at, n);
        if (!found && !(found = memmem(all->bytes, all->n, t->bytes + at, n)))
            return 0;
        from = found + n;
    }
    return 1;
}

/* The copy's lines, and the manifest's where it has no sound one; and what else the manifest has, which may be a line
 * that a crash left incomplete. */
static int text_merge(const struct text *manifest, const struct text *copy, struct text *out, struct error *e)
{
    const struct text *from;
    size_t n;

    *out = (struct text){malloc(manifest->n + copy->n + 1), 0};
    if (!out->bytes)
        return error_no_memory(e, manifest->n + copy->n, "a manifest");
    for (; (n = text_line(from = copy, out->n)) > 0 || (n = text_line(from = manifest, out->n)) > 0; out->n += n)
        memcpy(out->bytes + out->n, from->bytes + out->n, n);
    if (text_line(manifest, 0) > 0 && manifest->n > out->n) {
        memcpy(out->bytes + out->n, manifest->bytes + out->n, manifest->n - out->n);
        out->n = manifest->n;
    }
    return DELTAFS_OK;
}

int text_parse(const struct text *t, const char *folder, struct manifest *m, struct error *e)
{
    char path[PATH_ROOM], *bytes = malloc(t->n + 1); /* parsing changes it */

    if (!bytes)
        return error_no_memory(e, t->n, "a manifest");
    memcpy(bytes, t->bytes, t->n);
    int status = manifest_parse(m, bytes, t->n, io_path_in(path, folder, MANIFEST_NAME), e);
    free(bytes);
    return status;
}

/* Whether all of it can be read as a manifest. */
static int text_is_sound(const struct text *t, const char *folder)
{
    struct manifest m = {0};
    int is_sound = t->n > 0 && text_parse(t, folder, &m, error_ignored()) == DELTAFS_OK;

    manifest_fini(&m);
    return is_sound;
}

int text_repair(struct io *io, const char *folder, struct text *out, struct manifest *m, struct error *e)
{
    char path[PATH_ROOM];
    struct text manifest, copy = {0};
    int status = text_load(io, folder, MANIFEST_NAME, &manifest, e);

    io_path_in(path, folder, MANIFEST_NAME);
    *out = (struct text){0};
    if (status == DELTAFS_OK)
        status = text_load(io, folder, MANIFEST_COPY_NAME, &copy, e);
    if (status == DELTAFS_OK)
        status = text_merge(&manifest, &copy, out, e);
    if (status == DELTAFS_OK)
        status = text_parse(out, folder, m, e);
    if (status == DELTAFS_OK && !text_has_lines(out, &manifest))
        status = error_damaged(e, path, 0, "it has a line that is not in its copy, before others that are");
    if (status == DELTAFS_ERR_DAMAGED || status == DELTAFS_ERR_NOT_DELTAFS)
        status = error_set(
            e, copy.n > 0 ? status : DELTAFS_ERR_NOT_FOUND, "%s; %s.copy %s: restore a backup of one of the two%s",
            e->text, path, copy.n > 0 ? "does not help" : "is missing",
            text_is_sound(&manifest, folder) ? "; or remove the copy, if it is the one that is damaged" : "");
    if (status != DELTAFS_OK)
        text_fini(out);
    free(manifest.bytes);
    free(copy.bytes);
    return status;
}

/* Whether there is a sound line at `at` or behind. */
static int has_line(const struct text *t, size_t at)
{
    const char *newline = t->bytes + at;

    while (text_line(t, at) == 0 && (newline = memchr(t->bytes + at, '\n', t->n - at)) != NULL)
        at = (size_t)(newline - t->bytes) + 1;
    return newline != NULL;
}

int text_check_copy(struct io *io, const char *folder, int is_closed, struct error *e)
{
    char path[PATH_ROOM];
    struct text manifest = {0}, copy;
    size_t at = 0, n;
    int status = text_load(io, folder, MANIFEST_COPY_NAME, &copy, e);

    if (status == DELTAFS_OK)
        status = text_load(io, folder, MANIFEST_NAME, &manifest, e); /* after it: a writer may append */
    while (status == DELTAFS_OK && (n = text_line(&manifest, at)) > 0 && n <= copy.n - at &&
           memcmp(manifest.bytes + at, copy.bytes + at, n) == 0)
        at += n;
    /* No sync forces the copy to storage until the close: a crash may leave anything in place of its last lines. */
    if (status == DELTAFS_OK && at < copy.n && memchr(copy.bytes + at, '\n', copy.n - at) &&
        (is_closed || has_line(&copy, at)))
        status = error_damaged(e, io_path_in(path, folder, MANIFEST_COPY_NAME), at,
                               "a line differs from that in %s, which readers use", MANIFEST_NAME);
    free(manifest.bytes);
    free(copy.bytes);
    return status;
}

int text_cut(struct io *io, const char *folder, uint64_t number, struct text *out, struct error *e)
{
    static const char word[] = "Epoch ", kept[] = ATTRIBUTE_WORD " ";
    size_t at = 0, end, n;
    int status = text_load(io, folder, MANIFEST_NAME, out, e);

    while (status == DELTAFS_OK && (n = text_line(out, at)) > 0) {
        if (n > sizeof word && memcmp(out->bytes + at, word, sizeof word - 1) == 0 && number-- == 0)
            break;
        at += n;
    }
    /* Attributes are no part of the epochs before or behind them. */
    for (end = at; status == DELTAFS_OK && (n = text_line(out, at)) > 0; at += n)
        if (memcmp(out->bytes + at, kept, sizeof kept - 1) == 0) {
            memmove(out->bytes + end, out->bytes + at, n);
            end += n;
        }
    out->n = end;
    return status;
}

void text_fini(struct text *t)
{
    free(t->bytes);
    *t = (struct text){0};
}

const char *repair_kept_name(struct io *io, const char *path, char kept[PATH_ROOM])
{
    struct io_file file = {.fd = -1};
    int status = DELTAFS_OK;

    for (unsigned i = 1; status != DELTAFS_ERR_NOT_FOUND && i < KEPT_MAX; i++) {
        snprintf(kept, PATH_ROOM, i == 1 ? "%s" KEPT_SUFFIX : "%s" KEPT_SUFFIX ".%u", path, i);
        status = io_file_open(io, kept, O_RDONLY, &file, error_ignored());
        io_file_close(&file, error_ignored());
    }
    return strrchr(kept, '/') + 1;
}

int repair_write(struct io *io, const char *path, int flags, uint64_t at, const void *bytes, size_t n, struct error *e)
{
    struct io_file file;
    int status = io_file_open(io, path, O_RDWR | (flags & ~O_TRUNC), &file, e);

    if (status != DELTAFS_OK)
        return status;
    /* Not by opening it: a file with several names is refused then, as it is. */
    if (flags & O_TRUNC)
        status = io_file_truncate(&file, 0, e);
    if (status == DELTAFS_OK)
        status = io_file_write(&file, at, bytes, n, e);
    if (status == DELTAFS_OK)
        status = io_file_sync(&file, e);
    return io_file_finish(&file, status, e);
}

int text_replace(struct io *io, const char *folder, const char *name, const struct text *t, const char *kept,
                 struct error *e)
{
    char path[PATH_ROOM], aside[PATH_ROOM];
    struct text old;
    int status = text_load(io, folder, name, &old, e);

    if (status == DELTAFS_OK && kept)
        status = repair_write(io, kept, O_CREAT | O_TRUNC, 0, old.bytes, old.n, e);
    if (status == DELTAFS_OK)
        status =
            repair_write(io, io_path_in(aside, folder, "%s" NEW_SUFFIX, name), O_CREAT | O_TRUNC, 0, t->bytes, t->n, e);
    if (status == DELTAFS_OK)
        status = io_sync_folder(io, folder, e);
    if (status == DELTAFS_OK)
        status = io_rename(io, aside, io_path_in(path, folder, "%s", name), e);
    if (status == DELTAFS_OK)
        status = io_sync_folder(io, folder, e);
    text_fini(&old);
    return status;
}
