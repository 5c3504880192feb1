/* Containers made to do harm: lengths that no file has, more runs than there is memory for, files that are none. What a
 * reader allocates is counted: this program is linked with malloc and the like wrapped. */
#include <errno.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/coding.h"
#include "directory/format/directory_format.h"
#include "mem_io.h"
#include "directory/format/index.h"
#include "directory/format/manifest.h"
#include "structures.h"
#include "unit_help.h"

#define HOLE       (UINT64_C(256) << 20) /* zeros behind a log, which take no room */
#define MEMORY_MAX (100 << 20)           /* bytes that reading anything takes at any time */

/* ---- Counting ---- */

static _Atomic int64_t held, most;
static _Atomic uint64_t allocations, first_failing = UINT64_MAX, end_failing;

void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t n);
void *__real_realloc(void *p, size_t n);
int __real_posix_memalign(void **p, size_t alignment, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
char *__wrap_strdup(const char *text);
void *__wrap_calloc(size_t count, size_t n);
void *__wrap_realloc(void *p, size_t n);
int __wrap_posix_memalign(void **p, size_t alignment, size_t n);
void __wrap_free(void *p);

static void *note(void *p, int64_t less)
{
    held += (p ? (int64_t)malloc_usable_size(p) : 0) - less;
    if (held > most)
        most = held;
    return p;
}

static int is_failing(void)
{
    uint64_t k = allocations++;
    int fails = k >= first_failing && k < end_failing;

    errno = fails ? ENOMEM : errno;
    return fails;
}

void *__wrap_malloc(size_t n)
{
    return is_failing() ? NULL : note(__real_malloc(n), 0);
}

void *__wrap_calloc(size_t count, size_t n)
{
    return is_failing() ? NULL : note(__real_calloc(count, n), 0);
}

char *__wrap_strdup(const char *text)
{
    char *p = __wrap_malloc(strlen(text) + 1);

    return p ? strcpy(p, text) : NULL;
}

void *__wrap_realloc(void *p, size_t n)
{
    int64_t old = p ? (int64_t)malloc_usable_size(p) : 0;

    return is_failing() ? NULL : note(__real_realloc(p, n), old);
}

int __wrap_posix_memalign(void **p, size_t alignment, size_t n)
{
    int rc = is_failing() ? ENOMEM : __real_posix_memalign(p, alignment, n);

    if (rc == 0)
        note(*p, 0);
    return rc;
}

void __wrap_free(void *p)
{
    held -= p ? (int64_t)malloc_usable_size(p) : 0;
    __real_free(p);
}

/* ---- No memory ---- */

/* Each allocation of a create fails, alone or with all that follow: nothing is left of the directory. */
static void test_create_without_memory(void **state)
{
    static const char *const layouts[] = {"partitioned", "local"};
    const char *path = unit_path("created"), *volume = unit_path("volume");

    (void)state;
    for (int i = 0; i < 4; i++) {
        deltafs_options *o = unit_options("partitions", "3", "memory", "8M", "layout", layouts[i / 2], "threads", "3",
                                          "keys", i / 2 ? "bytes" : "u64", "volumes", volume, NULL);
        deltafs_dir *d = NULL;
        uint64_t k, n = UINT64_MAX;
        for (k = 0; k < n; k++) {
            CHECK(mkdir(volume, 0777) == 0);
            allocations = 0;
            end_failing = i % 2 ? UINT64_MAX : k + 1;
            first_failing = k;
            int status = deltafs_create(path, o, &d);
            first_failing = UINT64_MAX;
            if (status == DELTAFS_OK)
                n = k;
            else
                CHECK(status == DELTAFS_ERR_MEMORY && !unit_exists(path));
            CHECK_IS(deltafs_close(status == DELTAFS_OK ? d : NULL), DELTAFS_OK);
            unit_remove(path);
            CHECK(status == DELTAFS_OK || rmdir(volume) == 0);
        }
        CHECK(k > 30);
        unit_remove(volume);
        deltafs_options_destroy(o);
    }
}

/* The manifest has lost a line that its copy has. Whatever allocation fails, an open says that or that memory is
 * lacking. */
static void test_lost_line_without_memory(void **state)
{
    const char *path = unit_path("lost");
    deltafs_dir *d = unit_create(path, unit_options("value_size", "8", NULL));
    int status = DELTAFS_ERR_MEMORY;
    uint64_t value = 0, k;
    size_t n;

    (void)state;
    for (uint64_t label = 1; label < 3; label++) {
        CHECK_CALL(d, deltafs_append(d, 1, &value, 8), DELTAFS_OK);
        CHECK_CALL(d, deltafs_epoch_end(d, label), DELTAFS_OK);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    uint8_t *manifest = unit_load(unit_path("lost/MANIFEST"), &n);
    const uint8_t *line = memmem(manifest, n, "Epoch number=1 ", 15);
    CHECK(line != NULL);
    unit_save(unit_path("lost/MANIFEST"), manifest, (size_t)(line - manifest));
    free(manifest);
    for (k = 0; status == DELTAFS_ERR_MEMORY; k++) {
        allocations = 0;
        first_failing = k;
        end_failing = k + 1;
        status = deltafs_open(path, NULL, &d);
        first_failing = UINT64_MAX;
    }
    CHECK_IS(status, DELTAFS_ERR_DAMAGED);
    CHECK(k > 3);
}

/* ---- Sizes ---- */

static struct mem_io files;

static int count_record(const struct deltafs_record *record, void *arg)
{
    (void)record;
    ++*(uint64_t *)arg;
    return 0;
}

/* Read all of the container c in every way, in bounded memory. Returns how many records a scan found. */
static uint64_t read_all(int *verdict)
{
    struct deltafs_verify_counts stat = {.struct_size = sizeof stat};
    deltafs_records *got = NULL;
    uint64_t records = 0;
    deltafs_dir *d;

    held = most = 0;
    CHECK_IS(deltafs_open("/c", NULL, &d), DELTAFS_OK);
    deltafs_get(d, 7, NULL, &got);
    deltafs_records_destroy(got);
    deltafs_scan(d, NULL, count_record, &records, NULL);
    *verdict = deltafs_verify(d, NULL, NULL, &stat);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK(most < MEMORY_MAX);
    return records;
}

static void make_small(void)
{
    deltafs_dir *d = unit_create("/c", unit_options("value_size", "8", "threads", "0", NULL));

    for (uint64_t i = 0; i < 100; i++)
        CHECK_CALL(d, deltafs_append(d, i, &i, 8), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* The manifest is believed to have this text as its last line. */
static void add_line(const char *text)
{
    struct mem_file *f = mem_find(&files, "/c/MANIFEST");
    char lines[4096];
    int n = snprintf(lines, sizeof lines, "%.*s%s ~00000000\n", (int)f->n, (const char *)f->bytes, text);

    structures_seal_manifest((uint8_t *)lines, (size_t)n);
    mem_put(&files, "/c/MANIFEST", lines, (size_t)n);
}

/* The manifest says that the tail is longer than any memory, and the log has as many bytes. */
static void test_tail_of_any_length(void **state)
{
    int verdict;

    (void)state;
    mem_io_begin(&files);
    make_small();
    add_line("close epochs=1 tail=1099511627776");
    CHECK_IS(read_all(&verdict), 100);
    CHECK_IS(verdict, DELTAFS_OK);
    mem_find(&files, "/c/00/p00000000.index")->hole = HOLE;
    CHECK_IS(read_all(&verdict), 100);
    CHECK_IS(verdict, DELTAFS_ERR_DAMAGED);
    CHECK_IS(mem_io_end(&files), 0);
}

/* A commit whose one record has as many bytes as a number can say. */
static void test_bytes_of_a_commit(void **state)
{
    static const char was[] = "records=100 raw=1600", is[] = "records=1 raw=18446744073709551615";
    char lines[4096];
    int verdict;

    (void)state;
    mem_io_begin(&files);
    make_small();
    struct mem_file *f = mem_find(&files, "/c/MANIFEST");
    const char *text = (const char *)f->bytes, *at = memmem(text, f->n, was, strlen(was));
    CHECK(at);
    int begin = (int)(at - text), behind = begin + (int)strlen(was);
    int n = snprintf(lines, sizeof lines, "%.*s%s%.*s", begin, text, is, (int)f->n - behind, text + behind);
    structures_seal_manifest((uint8_t *)lines, (size_t)n);
    mem_put(&files, "/c/MANIFEST", lines, (size_t)n);
    CHECK_IS(read_all(&verdict), 100);
    CHECK_IS(verdict, DELTAFS_ERR_DAMAGED);
    CHECK_IS(mem_io_end(&files), 0);
}

/* A manifest that is said to be larger than any memory: behind its lines there is a hole. (As much memory was taken as
 * it was said to have, up to 4 GiB.) */
static void test_manifest_of_any_length(void **state)
{
    deltafs_dir *d = NULL;

    (void)state;
    mem_io_begin(&files);
    make_small();
    struct mem_file *f = mem_find(&files, "/c/MANIFEST");
    f->hole = HOLE;
    held = most = 0;
    CHECK_IS(deltafs_open("/c", NULL, &d), DELTAFS_ERR_DAMAGED);
    CHECK(strstr(deltafs_errmsg(NULL), "/c/MANIFEST: damaged at offset") && strstr(deltafs_errmsg(NULL), "16777216"));
    CHECK_IS(deltafs_reopen("/c", NULL, &d), DELTAFS_ERR_DAMAGED);
    CHECK(most < MEMORY_MAX && d == NULL);
    f->hole = 4096; /* that much a power loss may leave of a line */
    CHECK_IS(deltafs_open("/c", NULL, &d), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    f->hole = 0;
    CHECK_IS(mem_io_end(&files), 0);
}

/* A directory of many epochs is reopened within the option memory, or not at all. (What its index logs took was not
 * counted, and came on top of that.) */
static void test_reopen_in_memory(void **state)
{
    deltafs_options *little = unit_options("memory", "8M", "threads", "0", NULL);
    deltafs_options *more = unit_options("memory", "32M", "threads", "0", NULL);
    deltafs_dir *d;
    uint64_t label = 0;

    (void)state;
    mem_io_begin(&files);
    d = unit_create("/c", unit_options("value_size", "8", "threads", "0", "memory", "8M", NULL));
    for (int round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < 30000; i++, label++) {
            CHECK_CALL(d, deltafs_append(d, i, &i, 8), DELTAFS_OK);
            CHECK_CALL(d, deltafs_epoch_end(d, label), DELTAFS_OK);
        }
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        held = most = 0;
        CHECK_IS(deltafs_reopen("/c", little, &d), round == 0 ? DELTAFS_OK : DELTAFS_ERR_MEMORY);
        CHECK(most < 8 << 20);
        if (round == 0)
            CHECK_IS(deltafs_close(d), DELTAFS_OK);
        else
            CHECK(strstr(deltafs_errmsg(NULL), "option memory"));
        held = most = 0;
        CHECK_IS(deltafs_reopen("/c", more, &d), DELTAFS_OK);
        CHECK(most < 32 << 20);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    deltafs_options_destroy(little);
    deltafs_options_destroy(more);
    CHECK_IS(mem_io_end(&files), 0);
}

/* A footer with a right checksum names a fence as long as the log. */
static void test_fence_of_any_length(void **state)
{
    struct manifest m;
    struct error e;
    int verdict;

    (void)state;
    mem_io_begin(&files);
    make_small();
    struct io io = io_default();
    CHECK_IS(manifest_read(&io, "/c", &m, &e), DELTAFS_OK);
    struct mem_file *f = mem_find(&files, "/c/00/p00000000.index");
    f->n -= TAIL_TRAILER_SIZE;
    for (size_t at = 0, n; (n = structure_length(f->bytes, f->n, at)) > 0; at += n) {
        if (f->bytes[at + 4] != FORMAT_FOOTER)
            continue;
        put_u32(f->bytes + at + 28, (uint32_t)HOLE - 4096);
        put_u64(f->bytes + at + 32, 4096);
        put_u64(f->bytes + at + 88, HOLE);
    }
    structures_seal_log(log_seed(m.uuid), f->bytes, f->n);
    manifest_fini(&m);
    f->hole = HOLE;
    CHECK_IS(read_all(&verdict), 0);
    CHECK_IS(verdict, DELTAFS_ERR_DAMAGED);
    CHECK_IS(mem_io_end(&files), 0);
}

/* ---- Runs ---- */

#define RUNS 20000

static void must(int status, const struct error *e)
{
    if (status != DELTAFS_OK)
        fail_msg("%s", e->text);
}

/* So many runs of one record each. */
static void write_runs(struct run *run, struct keys_store *keys, struct log *data)
{
    struct block_writer block;
    struct error e;

    must(block_writer_init(&block, 8, NULL, CODEC_NONE, 256, NULL, &e), &e);
    for (uint32_t i = 0; i < RUNS; i++) {
        uint64_t value = i;
        must(run_init(&run[i], i, 1, log_end(data), keys, &e), &e);
        must(block_writer_add(&block, NULL, &value, 8, &e), &e);
        must(run_add_block(&run[i], &block, 0, 0, data, &e), &e);
    }
    must(log_flush(data, &e), &e);
    block_writer_fini(&block);
}

/* One leaf with all of them, as no writer makes it, a fence and a footer; sealed by who calls. Returns the bytes. */
static size_t forge_index(const struct run *run, uint64_t data_end, struct buffer *out)
{
    static uint64_t keys[RUNS];
    static uint32_t cursors[RUNS], scratch[RUNS];
    static struct run_cursor cursor[RUNS];
    const struct leaf_id id = {0};
    struct error e;
    size_t n;

    for (uint32_t i = 0; i < RUNS; i++) {
        keys[i] = cursors[i] = i;
        cursor[i] = (struct run_cursor){.run = &run[i], .offset = run[i].offset};
    }
    const struct leaf_input in = {keys, cursors, RUNS, cursor, RUNS, scratch, 0, NULL};
    must(leaf_encode(&in, &id, 0, out, &n, &e), &e);
    must(buffer_reserve(out, LOG_HEADER_SIZE + n + 200, "an index", &e), &e);
    memmove(out->bytes + LOG_HEADER_SIZE, out->bytes, n);
    memset(out->bytes, 0, LOG_HEADER_SIZE);
    uint8_t *p = out->bytes + LOG_HEADER_SIZE + n, *fence = p;
    memset(p, 0, 200);
    p[4] = FORMAT_FENCE;
    put_u32(p + 24, 1);
    put_u64(p + 32, LOG_HEADER_SIZE);
    p = put_varint(put_varint(p + FENCE_HEADER_SIZE, 0), n);
    put_u32(fence + 8, (uint32_t)(p - fence));
    p[4] = FORMAT_FOOTER;
    p[5] = FOOTER_FLAG_LAST;
    put_u32(p + 20, 1);
    put_u32(p + 24, RUNS);
    put_u32(p + 28, (uint32_t)(p - fence));
    put_u64(p + 32, LOG_HEADER_SIZE + n);
    put_u64(p + 40, RUNS);
    put_u64(p + 48, RUNS * 16);
    put_u64(p + 72, RUNS - 1);
    put_u64(p + 80, data_end);
    put_u64(p + 88, (uint64_t)(p - out->bytes));
    memcpy(p + 96, FOOTER_MAGIC, 8);
    return (size_t)(p + FOOTER_SIZE - out->bytes);
}

static void make_runs(void)
{
    static const uint8_t uuid[FORMAT_UUID_SIZE] = {1, 2, 3};
    static struct run run[RUNS];
    struct manifest m = {.keys = KEYS_U64, .partitions = 1, .value_size = 8, .schema = (char *)(uintptr_t) ""};
    char line[128];
    struct keys_store keys = {0};
    struct buffer index = {0};
    struct log data;
    struct error e;
    struct io io = io_default();

    uuid_to_text(uuid, m.uuid_text);
    must(manifest_create(&io, "/c", &m, 0, &e), &e);
    must(log_create(&data, &io, "/c/00/p00000000.data", LOG_KIND_DATA, 0, uuid, 1, 1 << 16, NULL, NULL, &e), &e);
    write_runs(run, &keys, &data);
    size_t n = forge_index(run, log_end(&data), &index);
    structures_seal_log(log_seed(uuid), index.bytes + LOG_HEADER_SIZE, n - LOG_HEADER_SIZE);
    mem_put(&files, "/c/00/p00000000.index", index.bytes, n);
    must(log_close(&data, &e), &e);
    for (uint32_t i = 0; i < RUNS; i++)
        run_fini(&run[i]);
    keys_clear(&keys);
    buffer_fini(&index);
    snprintf(line, sizeof line, "Epoch number=0 label=1 records=%d raw=%d stored=1", RUNS, RUNS * 16);
    add_line(line);
}

/* A window to read ahead for each run would be 320 MB. */
static void test_many_runs(void **state)
{
    int verdict;

    (void)state;
    mem_io_begin(&files);
    make_runs();
    CHECK_IS(read_all(&verdict), RUNS);
    CHECK_IS(verdict, DELTAFS_ERR_DAMAGED); /* of the log's header alone */
    CHECK_IS(mem_io_end(&files), 0);
}

/* ---- What is no file ---- */

static void make_on_disk(const char *path)
{
    deltafs_dir *d = unit_create(path, unit_options("value_size", "8", NULL));

    CHECK_CALL(d, deltafs_append(d, 7, "outside", 8), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* A FIFO that nobody writes to does not keep a reader waiting. */
static void test_fifo(void **state)
{
    static const char *const names[] = {"00/p00000000.data", "00/p00000000.index", MANIFEST_NAME};
    const char *path = unit_path("fifo");
    deltafs_dir *d;

    (void)state;
    make_on_disk(path);
    for (int i = 0; i < 3; i++) {
        const char *file = unit_path("fifo/%s", names[i]);
        deltafs_records *got = NULL;
        assert_int_equal(unlink(file), 0);
        assert_int_equal(mkfifo(file, 0666), 0);
        alarm(20);
        int status = deltafs_open(path, NULL, &d);
        CHECK_IS(status, i < 2 ? DELTAFS_OK : DELTAFS_ERR_NOT_DELTAFS);
        if (status == DELTAFS_OK) {
            CHECK_CALL(d, deltafs_get(d, 7, NULL, &got), DELTAFS_ERR_DAMAGED);
            deltafs_records_destroy(got);
            CHECK(strstr(deltafs_errmsg(d), "p00000000."));
            CHECK_IS(deltafs_close(d), DELTAFS_OK);
        }
        alarm(0);
    }
}

/* What stands in the place of a lease or a manifest and is no file is said to be that, with what to do. (The message
 * was that a seek is illegal, or a folder a folder.) */
static void test_misfits(void **state)
{
    static const char *const names[] = {LEASE_NAME, MANIFEST_NAME};
    static const char *const what[] = {"a FIFO", "a folder", "a symbolic link"};
    const char *path = unit_path("misfits"), *target = unit_path("away");
    char is[40];
    deltafs_dir *d;

    (void)state;
    make_on_disk(path);
    for (int i = 0; i < 6; i++) {
        const char *file = unit_path("misfits/%s", names[i / 3]);
        if (i / 3 == 1)
            assert_int_equal(rename(file, target), 0);
        else
            unit_save(target, "", 0);
        assert_int_equal(i % 3 == 0 ? mkfifo(file, 0666) : i % 3 == 1 ? mkdir(file, 0777) : symlink(target, file), 0);
        CHECK(deltafs_reopen(path, NULL, &d) != DELTAFS_OK);
        snprintf(is, sizeof is, ": is %s; ", what[i % 3]);
        if (!strstr(deltafs_errmsg(NULL), file) || !strstr(deltafs_errmsg(NULL), is) ||
            !strstr(deltafs_errmsg(NULL), i / 3 == 1 ? "in its place" : "remove it"))
            fail_msg("%s", deltafs_errmsg(NULL));
        unit_remove(file);
        if (i / 3 == 1)
            assert_int_equal(rename(target, file), 0);
    }
    CHECK_IS(deltafs_reopen(path, NULL, &d), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* Symbolic links in the place of files: a reader goes through them, but nobody writes to what they lead to. */
static void test_links(void **state)
{
    static const char *const names[] = {LEASE_NAME, "00/p00000000.index", "00/p00000000.data", MANIFEST_NAME};
    const char *path = unit_path("links"), *target = unit_path("target");
    deltafs_records *got = NULL;
    deltafs_dir *d;
    size_t n;

    (void)state;
    make_on_disk(path);
    for (int i = 0; i < 4; i++) {
        const char *file = unit_path("links/%s", names[i]);
        if (i == 0)
            unit_save(target, "not yours", 9);
        else
            assert_int_equal(rename(file, target), 0);
        uint8_t *before = unit_load(target, &n);
        assert_int_equal(symlink(target, file), 0);
        CHECK_IS(deltafs_reopen(path, NULL, &d), DELTAFS_ERR_IO);
        CHECK(strstr(deltafs_errmsg(NULL), file));
        d = unit_open(path);
        CHECK_CALL(d, deltafs_get(d, 7, NULL, &got), DELTAFS_OK);
        deltafs_records_destroy(got);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        size_t after_n;
        uint8_t *after = unit_load(target, &after_n);
        CHECK(after_n == n && memcmp(before, after, n) == 0);
        free(before);
        free(after);
        assert_int_equal(unlink(file), 0);
        if (i > 0)
            assert_int_equal(rename(target, file), 0);
    }
}

/* ---- What is another container's ---- */

static void check_readable(const char *path)
{
    deltafs_dir *d = unit_open(path);

    CHECK_CALL(d, deltafs_verify(d, NULL, NULL, NULL), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* Everything that writes is refused with this status, and says this; `file` keeps its bytes. */
static void check_refused(const char *path, const char *file, int status, const char *said)
{
    const struct deltafs_repair_options dry = {.struct_size = sizeof dry, .dry_run = 1};
    size_t n, after_n;
    uint8_t *before = unit_load(file, &n), *after;
    deltafs_dir *d;

    for (int i = 0; i < 3; i++) {
        int is = i == 0 ? deltafs_reopen(path, NULL, &d) : deltafs_repair(path, i == 1 ? &dry : NULL, NULL, NULL);
        CHECK_IS(is, status);
        if (!strstr(deltafs_errmsg(NULL), said))
            fail_msg("%s", deltafs_errmsg(NULL));
    }
    after = unit_load(file, &after_n);
    CHECK(after_n == n && memcmp(before, after, n) == 0);
    free(before);
    free(after);
}

/* A file that has another name, too, is read, and not written to. (What another container had was truncated.) */
static void test_hard_links(void **state)
{
    static const char *const names[] = {"00/p00000000.index", "00/p00000000.data", LEASE_NAME, MANIFEST_NAME,
                                        MANIFEST_COPY_NAME};
    const char *path = unit_path("several"), *other = unit_path("other");
    deltafs_dir *d;

    (void)state;
    make_on_disk(path);
    for (int i = 0; i < 5; i++) {
        const char *file = unit_path("several/%s", names[i]);
        if (i == 2)
            unit_save(file, "not yours", 9);
        assert_int_equal(link(file, other), 0);
        if (i < 2)
            check_refused(path, other, DELTAFS_ERR_IO, "several names");
        CHECK_IS(deltafs_reopen(path, NULL, &d), DELTAFS_ERR_IO);
        CHECK(strstr(deltafs_errmsg(NULL), file) && strstr(deltafs_errmsg(NULL), "several names"));
        check_readable(path);
        unit_remove(i == 2 ? file : other);
        if (i == 2)
            unit_remove(other);
    }
    CHECK_IS(deltafs_reopen(path, NULL, &d), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* Without an epoch, logs are begun again, but not another container's. (They were.) */
static void test_foreign_logs(void **state)
{
    static const char *const names[] = {"00/p00000000.index", "00/p00000000.data"};
    const char *path = unit_path("none"), *own = unit_path("own"), *other;
    deltafs_dir *d;

    (void)state;
    make_on_disk(unit_path("owner"));
    d = unit_create(path, unit_options("value_size", "8", NULL));
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    for (int i = 0; i < 2; i++) {
        const char *file = unit_path("none/%s", names[i]);
        assert_int_equal(rename(file, own), 0);
        assert_int_equal(rename(unit_path("owner/%s", names[i]), file), 0);
        check_refused(path, file, DELTAFS_ERR_DAMAGED, "not the container's");
        assert_int_equal(rename(file, unit_path("owner/%s", names[i])), 0);
        assert_int_equal(rename(own, file), 0);
    }
    assert_int_equal(rename(unit_path("none/00"), own), 0);
    assert_int_equal(symlink("../owner/00", unit_path("none/00")), 0);
    other = unit_path("owner/00/p00000000.data");
    check_refused(path, other, DELTAFS_ERR_NOT_DELTAFS, "none/00: leads to ../owner/00, which is not this container's");
    assert_int_equal(unlink(unit_path("none/00")), 0);
    assert_int_equal(rename(own, unit_path("none/00")), 0);
    CHECK_IS(deltafs_reopen(path, NULL, &d), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* Nor is a value log of another container begun again. */
static void test_foreign_values(void **state)
{
    const char *path = unit_path("local"), *file = unit_path("local/00/v00000001.values");
    deltafs_dir *d;

    (void)state;
    make_on_disk(unit_path("stranger"));
    d = unit_create(path, unit_options("value_size", "8", "layout", "local", NULL));
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    assert_int_equal(rename(unit_path("stranger/00/p00000000.data"), file), 0);
    CHECK_IS(deltafs_reopen(path, NULL, &d), DELTAFS_OK);
    deltafs_append(d, 7, "outside", 8);
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_ERR_DAMAGED);
    CHECK(strstr(deltafs_errmsg(d), file) && strstr(deltafs_errmsg(d), "not the container's"));
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* A copy of a directory has links to the same buckets: it is read, and not written to, until its user says that the
 * other is gone. (The epochs that the other had committed since were truncated.) */
static void test_copy_on_volume(void **state)
{
    const char *path = unit_path("spread"), *copy = unit_path("copy"), *moved = unit_path("moved"), *owner;
    char target[600] = "";
    deltafs_dir *d;

    (void)state;
    CHECK(mkdir(unit_path("volume"), 0777) == 0 && mkdir(copy, 0777) == 0);
    d = unit_create(path, unit_options("value_size", "8", "volumes", unit_path("volume"), NULL));
    CHECK_CALL(d, deltafs_append(d, 7, "outside", 8), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    unit_copy(unit_path("spread/MANIFEST"), unit_path("copy/MANIFEST"));
    CHECK(readlink(unit_path("spread/00"), target, sizeof target - 1) > 0);
    CHECK(symlink(target, unit_path("copy/00")) == 0);
    owner = unit_path("%s/OWNER", target + strlen(unit_folder) + 1);
    check_refused(copy, unit_path("spread/00/p00000000.index"), DELTAFS_ERR_NOT_DELTAFS, path);
    CHECK(strstr(deltafs_errmsg(NULL), copy) && strstr(deltafs_errmsg(NULL), "OWNER"));
    check_readable(copy);
    CHECK(rename(path, moved) == 0); /* it is still the same */
    CHECK_IS(deltafs_reopen(moved, NULL, &d), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    unit_remove(moved);
    check_refused(copy, owner, DELTAFS_ERR_NOT_DELTAFS, path);
    unit_poke(owner, 8, '?');
    check_refused(copy, owner, DELTAFS_ERR_DAMAGED, "remove the file");
    unit_remove(owner);
    CHECK_IS(deltafs_reopen(copy, NULL, &d), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    unit_save(owner, "", 0); /* a crash has left that */
    CHECK_IS(deltafs_reopen(copy, NULL, &d), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_without_memory),
        cmocka_unit_test(test_lost_line_without_memory),
        cmocka_unit_test(test_tail_of_any_length),
        cmocka_unit_test(test_bytes_of_a_commit),
        cmocka_unit_test(test_manifest_of_any_length),
        cmocka_unit_test(test_reopen_in_memory),
        cmocka_unit_test(test_fence_of_any_length),
        cmocka_unit_test(test_many_runs),
        cmocka_unit_test(test_fifo),
        cmocka_unit_test(test_misfits),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_hard_links),
        cmocka_unit_test(test_foreign_logs),
        cmocka_unit_test(test_foreign_values),
        cmocka_unit_test(test_copy_on_volume),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
