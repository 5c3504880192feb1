#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/import.h"

#define CHUNK_BYTES ((size_t)4 << 20) /* of records read at a time, */
#define CHUNK_MOST  32768             /* but no more records than this */

int input_open(struct input *in, const char *path)
{
    struct stat st;
    int code = EXIT_OK;

    *in = (struct input){.path = path, .fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
    if (in->fd < 0 || fstat(in->fd, &st) != 0)
        code = text_keep(EXIT_TROUBLE, "%s: cannot open: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        code = text_keep(EXIT_TROUBLE, "%s: %s", path,
                         S_ISDIR(st.st_mode) ? "a folder; give the files in it" : "not a regular file");
    if (code == EXIT_OK)
        in->size = (uint64_t)st.st_size;
    else
        input_close(in);
    return code;
}

int input_read(const struct input *in, uint64_t offset, void *bytes, size_t n)
{
    char *p = bytes;

    while (n > 0) {
        ssize_t got = pread(in->fd, p, n, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return text_keep(EXIT_TROUBLE, "%s: cannot read %zu bytes at offset %" PRIu64 ": %s", in->path, n, offset,
                             got < 0 ? strerror(errno) : "the file ends before");
        p += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return EXIT_OK;
}

void input_close(struct input *in)
{
    if (in->fd >= 0)
        close(in->fd);
    in->fd = -1;
}

/* Take the keys out of `n` records, in place: a value never begins behind its record. `first` is the number of the
 * first of them, and `offset` its offset, for messages. */
static int import_split(const struct import_layout *l, const struct input *in, uint64_t first, uint64_t offset,
                        uint8_t *records, uint64_t *keys, size_t n)
{
    size_t behind = l->key_at + l->key_size, size = l->size - l->key_size;

    for (size_t i = 0; i < n; i++) {
        const uint8_t *record = records + i * l->size;
        keys[i] = 0;
        for (size_t k = l->key_size; k-- > 0;)
            keys[i] = keys[i] << 8 | record[l->key_at + k];
        if (l->is_signed && keys[i] >> (8 * l->key_size - 1) != 0)
            return text_keep(EXIT_TROUBLE, "%s: at offset %" PRIu64 ": the key of record %" PRIu64 " is negative",
                             in->path, offset + i * l->size + l->key_at, first + i);
        memmove(records + i * size, record, l->key_at);
        memmove(records + i * size + l->key_at, record + behind, l->size - behind);
    }
    return EXIT_OK;
}

/* Put the number of the part behind each of `n` values of `size` bytes. */
static void import_add_part(const uint8_t *records, size_t size, uint32_t part, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++, out += 4) {
        memcpy(out, records + i * size, size);
        out += size;
        for (size_t k = 0; k < 4; k++)
            out[k] = (uint8_t)(part >> 8 * k);
    }
}

size_t import_print_field(char *schema, size_t used, const struct deltafs_field *f)
{
    used += (size_t)sprintf(schema + used, "%s%s:%c%" PRIu32, used > 0 ? "," : "", f->name, f->kind, f->size);
    if (f->bound > 0) {
        schema[used++] = '~';
        used += number_text_float(f->bound, schema + used);
    }
    return used;
}

int import_records(const struct import_layout *l, const struct import_file *f, const struct input *in, uint64_t from,
                   uint64_t to, deltafs_dir *d, struct progress *bar)
{
    size_t most = CHUNK_BYTES / l->size, size = l->has_key ? l->size - l->key_size : l->size;
    size_t stored = l->has_part ? size + 4 : size;
    int code = EXIT_OK;

    most = most < 1 ? 1 : most < CHUNK_MOST ? most : CHUNK_MOST;
    uint8_t *records = malloc(most * l->size);
    uint64_t *keys = malloc(most * sizeof *keys);
    uint8_t *values = l->has_part ? malloc(most * (size + 4)) : records;
    if (!records || !keys || !values)
        code = text_keep(EXIT_TROUBLE, "%s: no memory for records of %zu bytes", in->path, l->size);
    while (from < to && code == EXIT_OK) {
        size_t n = to - from < most ? (size_t)(to - from) : most;
        uint64_t offset = f->values + from * l->size;
        code = input_read(in, offset, records, n * l->size);
        if (code == EXIT_OK && l->has_key)
            code = import_split(l, in, from, offset, records, keys, n);
        else if (code == EXIT_OK)
            code = input_read(in, f->keys + from * sizeof *keys, keys, n * sizeof *keys);
        if (code == EXIT_OK && l->has_part)
            import_add_part(records, size, (uint32_t)f->part, values, n);
        if (code == EXIT_OK)
            deltafs_append_many(d, n, keys, sizeof *keys, values, stored, stored);
        from += n;
        progress_add(bar, n);
    }
    if (values != records)
        free(values);
    free(records);
    free(keys);
    return code;
}
