/* A logical file: a byte (1: everything gets right checksums, 2: there is an INDEX, too, of what the extent log has),
 * the bytes of its manifest (u16), of SESSION (u16) and of an extent log (u16), then these, and what is left is the
 * data log behind its header, of session 0 and writer 0. It is opened and asked in all ways, flattened, and written to.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_logical.h>
#include "base/coding.h"
#include "fuzz_target.h"
#include "logical/format/logical_format.h"
#include "mem_io.h"
#include "logical/format/frames.h"
#include "io/log.h"
#include "logical/format/session.h"
#include "structures.h"

#define GROUP    ((size_t)FRAME_GROUP * FRAME_SIZE)
#define DATA_MAX (256u << 10) /* bytes of the data log */
#define PIECE    (64u << 10)  /* bytes read at once */

static uint8_t bytes_read[PIECE];

static void read_at(deltafs_logical *f, uint64_t offset, uint64_t size)
{
    size_t got = 0;

    if (deltafs_logical_read(f, offset, bytes_read, PIECE, &got) != DELTAFS_OK)
        return;
    FUZZ_CHECK(got == (offset >= size ? 0 : size - offset < PIECE ? size - offset : PIECE));
    fuzz_touch(bytes_read, got);
}

/* Returns whether it can be opened. */
static int use_file(void)
{
    deltafs_options *o;
    deltafs_logical *f;
    struct deltafs_logical_stat stat = {.struct_size = sizeof stat};
    uint64_t size;

    FUZZ_CHECK(deltafs_options_create(&o) == DELTAFS_OK);
    FUZZ_CHECK(deltafs_options_set(o, "memory", "8M") == DELTAFS_OK);
    int status = deltafs_logical_open("/f", O_RDONLY, o, &f);
    deltafs_options_destroy(o);
    if (status != DELTAFS_OK)
        return 0;
    FUZZ_CHECK(deltafs_logical_size(f, &size) == DELTAFS_OK && size <= INT64_MAX);
    read_at(f, 0, size);
    read_at(f, size / 2, size);
    read_at(f, size > 100 ? size - 100 : 0, size);
    deltafs_logical_stat(f, &stat);
    deltafs_logical_verify(f, NULL, NULL, NULL);
    FUZZ_CHECK(deltafs_logical_close(f) == DELTAFS_OK);
    return 1;
}

/* What is written to it is there. */
static void write_file(void)
{
    static const char text[] = "written anew";
    char got_text[sizeof text];
    deltafs_options *o;
    deltafs_logical *f;
    size_t got;

    FUZZ_CHECK(deltafs_options_create(&o) == DELTAFS_OK);
    FUZZ_CHECK(deltafs_options_set(o, "sync", "none") == DELTAFS_OK);
    if (deltafs_logical_open("/f", O_RDWR, o, &f) == DELTAFS_OK) {
        int status = deltafs_logical_write(f, 3, text, sizeof text);
        if (status == DELTAFS_OK)
            status = deltafs_logical_sync(f);
        int closed = deltafs_logical_close(f);
        if (status == DELTAFS_OK && closed == DELTAFS_OK) {
            FUZZ_CHECK(deltafs_logical_open("/f", O_RDONLY, o, &f) == DELTAFS_OK);
            FUZZ_CHECK(deltafs_logical_read(f, 3, got_text, sizeof text, &got) == DELTAFS_OK && got == sizeof text);
            FUZZ_CHECK(memcmp(got_text, text, sizeof text) == 0);
            FUZZ_CHECK(deltafs_logical_close(f) == DELTAFS_OK);
        }
    }
    deltafs_options_destroy(o);
}

static void put_data(struct mem_io *files, const uint8_t uuid[16], int is_sealed, const uint8_t *bytes, size_t n)
{
    static uint8_t log[FRAME_SIZE + GROUP + FRAME_SIZE];
    uint32_t seed = frame_seed(uuid, 0, 0);
    size_t frames = n / FRAME_SIZE + 1;

    memset(log, 0, FRAME_SIZE + DATA_MAX + FRAME_SIZE); /* behind it there are zeros still, but for the checksums */
    memset(log + FRAME_SIZE + GROUP, 0, FRAME_SIZE);
    log_put_header(log, LOG_KIND_FRAMES, 0, uuid);
    memcpy(log + FRAME_SIZE, bytes, n);
    for (size_t i = 0; i < frames && is_sealed; i++)
        put_u32(log + FRAME_SIZE + GROUP + 4 * i, frame_sum(seed, i, log + FRAME_SIZE + i * FRAME_SIZE));
    mem_put(files, "/f/s00000000/w00000000.data", log, is_sealed ? sizeof log : FRAME_SIZE + n);
}

/* An index of the batches of an extent log, with a trailer that is right. */
static void put_index(struct mem_io *files, const uint8_t uuid[16], const uint8_t *extents, size_t n)
{
    uint32_t seed = log_seed(uuid);
    uint8_t *index = malloc(n + LOG_HEADER_SIZE + FLAT_TRAILER_SIZE), *t = index + n;

    if (n >= LOG_HEADER_SIZE) {
        memcpy(index, extents, n);
        log_put_header(index, LOG_KIND_FLAT, 0, uuid);
        memset(t, 0, FLAT_TRAILER_SIZE);
        t[4] = FORMAT_FLAT_TRAILER;
        put_u64(t + 16, n - LOG_HEADER_SIZE);
        memcpy(t + 24, FLAT_MAGIC, 8);
        log_seal(seed, t, FLAT_TRAILER_SIZE);
        mem_put(files, "/f/s00000000/INDEX", index, n + FLAT_TRAILER_SIZE);
    }
    free(index);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static struct mem_io files;
    struct fuzz_input in = {bytes, n};
    uint64_t mode = fuzz_number(&in, 1), part[3];
    size_t size[4];
    uint8_t *file[4];
    struct container c;
    struct error e;
    char kind;

    for (int i = 0; i < 3; i++)
        part[i] = fuzz_number(&in, 2);
    for (int i = 0; i < 3; i++)
        file[i] = fuzz_bytes(&in, part[i], &size[i]);
    file[3] = fuzz_bytes(&in, DATA_MAX, &size[3]);
    for (int i = 0; i < 2 && (mode & 1); i++)
        structures_seal_manifest(file[i], size[i]);
    mem_io_begin(&files);
    mem_put(&files, "/f/MANIFEST", file[0], size[0]);
    mem_put(&files, "/f/s00000000/SESSION", file[1], size[1]);
    struct io io = io_default();
    if (container_open(&c, &io, "/f", O_RDONLY, 0, &e) == DELTAFS_OK) {
        if (mode & 1)
            structures_seal_extents(log_seed(c.uuid), file[2], size[2]);
        mem_put(&files, "/f/s00000000/w00000000.extents", file[2], size[2]);
        put_data(&files, c.uuid, mode & 1, file[3], size[3]);
        if (mode & 2)
            put_index(&files, c.uuid, file[2], size[2]);
        container_fini(&c);
    }
    deltafs_kind("/f", &kind);
    deltafs_logical_verify_path("/f", NULL, NULL, NULL);
    if (use_file()) {
        write_file();
        if (deltafs_logical_flatten("/f") == DELTAFS_OK)
            FUZZ_CHECK(use_file());
    }
    FUZZ_CHECK(mem_io_end(&files) == 0);
    for (int i = 0; i < 4; i++)
        free(file[i]);
    return 0;
}
