/* NumPy's archive: an array for each column. The rows come one after the other, but an array is stored in one piece. So
 * blocks of rows, by column, wait in a second file without a name, and go to their arrays at the end. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/copy.h"
#include "tools/export_block.h"
#include "tools/export_numpy.h"
#include "tools/zip.h"

#define BLOCK_BYTES ((size_t)1 << 20)
#define COPY_BYTES  ((size_t)1 << 20)

struct npz {
    struct zip zip;
    struct export_block block;
    int waiting;  /* the second file; 0: none yet */
    size_t *rows; /* of each block in it */
    size_t blocks;
    uint64_t count; /* rows in all */
    uint8_t *buffer;
};

/* ---- The second file ---- */

static int npz_make_waiting(struct export *x)
{
    struct npz *npz = x->state;
    char name[ASIDE_ROOM + 8];

    snprintf(name, sizeof name, "%s.npz", x->path);
    npz->waiting = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (npz->waiting < 0) {
        npz->waiting = 0;
        return export_fail_write(x);
    }
    unlink(name);
    return EXIT_OK;
}

static int npz_put_waiting(struct export *x, const uint8_t *bytes, size_t n)
{
    const struct npz *npz = x->state;

    for (size_t done = 0; done < n;) {
        ssize_t put = write(npz->waiting, bytes + done, n - done);
        if (put < 0 && errno != EINTR)
            return export_fail_write(x);
        done += put > 0 ? (size_t)put : 0;
    }
    return EXIT_OK;
}

/* The block is full: it waits, and the next one begins. */
static int npz_put_block(struct export *x)
{
    struct npz *npz = x->state;
    int code = npz->waiting ? EXIT_OK : npz_make_waiting(x);
    size_t *rows = realloc(npz->rows, (npz->blocks + 1) * sizeof *rows);

    if (!rows)
        return text_fail(EXIT_TROUBLE, "export: no memory for %zu blocks", npz->blocks + 1);
    npz->rows = rows;
    rows[npz->blocks++] = npz->block.rows;
    for (size_t c = 0; c < x->columns && code == EXIT_OK; c++)
        code = npz_put_waiting(x, npz->block.part[c].bytes, npz->block.part[c].used);
    export_block_clear(&npz->block, x);
    return code;
}

/* ---- The archive ---- */

/* Copy `n` bytes of the second file into the current entry. */
static int npz_copy(struct export *x, uint64_t at, uint64_t n)
{
    struct npz *npz = x->state;

    while (n > 0) {
        size_t want = n < COPY_BYTES ? (size_t)n : COPY_BYTES;
        ssize_t got = pread(npz->waiting, npz->buffer, want, (off_t)at);
        if (got <= 0)
            return text_fail(EXIT_TROUBLE, "cannot read what was written for %s: %s", x->name,
                             got < 0 ? strerror(errno) : "it is shorter");
        if (zip_write(&npz->zip, npz->buffer, (size_t)got) != 0)
            return export_fail_write(x);
        at += (uint64_t)got;
        n -= (uint64_t)got;
    }
    return copy_is_interrupted() ? EXIT_TROUBLE : EXIT_OK;
}

/* The column's parts of all blocks. */
static int npz_put_column(struct export *x, size_t c)
{
    struct npz *npz = x->state;
    uint64_t at = 0, before = 0, row = 0, size = x->column[c].size;
    int code = EXIT_OK;

    for (size_t i = 0; i < x->columns; i++) {
        before += i < c ? x->column[i].size : 0;
        row += x->column[i].size;
    }
    for (size_t i = 0; i < npz->blocks && code == EXIT_OK; i++) {
        code = npz_copy(x, at + npz->rows[i] * before, npz->rows[i] * size);
        at += npz->rows[i] * row;
    }
    if (code == EXIT_OK && zip_write(&npz->zip, npz->block.part[c].bytes, npz->block.part[c].used) != 0)
        code = export_fail_write(x);
    return code;
}

static int npz_put_array(struct export *x, size_t c)
{
    struct npz *npz = x->state;
    char type[NUMPY_TYPE_ROOM], quoted[NUMPY_TYPE_ROOM + 2], *name = malloc(strlen(x->column[c].name) + 5);
    size_t size;

    numpy_type(&x->column[c], type);
    snprintf(quoted, sizeof quoted, "'%s'", type);
    char *header = numpy_header(quoted, npz->count, &size);
    int code = header && name ? EXIT_OK : text_fail(EXIT_TROUBLE, "export: no memory for a header");
    if (code == EXIT_OK) {
        sprintf(name, "%s.npy", x->column[c].name);
        if (zip_begin_entry(&npz->zip, name, size + npz->count * x->column[c].size) != 0 ||
            zip_write(&npz->zip, header, size) != 0)
            code = export_fail_write(x);
    }
    free(header);
    free(name);
    if (code == EXIT_OK)
        code = npz_put_column(x, c);
    return code == EXIT_OK && zip_end_entry(&npz->zip) != 0 ? export_fail_write(x) : code;
}

/* ---- The format ---- */

static int npz_begin(struct export *x)
{
    struct npz *npz = x->state;
    int code = numpy_check(x, "npz");

    npz->zip.file = x->file;
    npz->buffer = malloc(COPY_BYTES);
    if (code == EXIT_OK && !npz->buffer)
        code = text_fail(EXIT_TROUBLE, "export: no memory for a buffer");
    return code == EXIT_OK ? export_block_init(&npz->block, x) : code;
}

static int npz_rows(struct export *x, const struct deltafs_record *row, size_t count)
{
    struct npz *npz = x->state;
    int code = export_block_add(&npz->block, x, row, count);

    npz->count += count;
    return code == EXIT_OK && npz->block.bytes >= BLOCK_BYTES ? npz_put_block(x) : code;
}

static int npz_end(struct export *x)
{
    struct npz *npz = x->state;
    int code = EXIT_OK;

    for (size_t c = 0; c < x->columns && code == EXIT_OK; c++)
        code = npz_put_array(x, c);
    return code == EXIT_OK && zip_end(&npz->zip) != 0 ? export_fail_write(x) : code;
}

static void npz_release(struct export *x)
{
    struct npz *npz = x->state;

    if (npz->waiting)
        close(npz->waiting);
    export_block_fini(&npz->block, x);
    zip_fini(&npz->zip);
    free(npz->rows);
    free(npz->buffer);
}

const struct export_format export_npz = {.name = "npz",
                                         .state_size = sizeof(struct npz),
                                         .begin = npz_begin,
                                         .rows = npz_rows,
                                         .end = npz_end,
                                         .release = npz_release};
