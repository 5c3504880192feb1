/* The manifest: what is written is read; a torn last line does not count; no other change passes unseen. */
#include <fcntl.h>
#include "base/crc32c.h"
#include "directory/format/manifest.h"
#include "io/io_format.h"
#include "unit_help.h"

static struct io io;

static void save(const char *text, size_t n)
{
    unit_save(unit_path(MANIFEST_NAME), text, n);
}

static int read_back(struct manifest *m, struct error *e)
{
    return manifest_read(&io, unit_folder, m, e);
}

/* A line as it stands in the file. */
static size_t put_line(char *out, const char *text)
{
    return (size_t)sprintf(out, "%s ~%08x\n", text, crc32c(0, text, strlen(text)));
}

#define HEAD      "Deltafs version=1 uuid=01234567-89ab-4cde-8f01-23456789abcd"
#define DIRECTORY "Directory keys=u64 partitioner=xxh3 partitions=7 value_size=8"

/* A manifest of these lines, up to NULL, and what reading it gives. */
static int read_lines(struct manifest *m, struct error *e, ...)
{
    static char text[1 << 16];
    size_t n = 0;
    va_list ap;

    va_start(ap, e);
    for (const char *line; (line = va_arg(ap, const char *));)
        n += put_line(text + n, line);
    va_end(ap);
    save(text, n);
    return read_back(m, e);
}

/* Write one with `epochs` epochs, closed or not, by the functions a writer uses. */
static void make_manifest(uint32_t epochs, int closed, const char *schema)
{
    struct manifest m = {.partitions = 7, .value_size = schema[0] ? 8 : -1, .schema = (char *)(uintptr_t)schema};
    struct io_file file;
    struct error e;
    uint64_t size;

    if (m.value_size >= 0)
        m.strips = (struct strips){2, {3, 5}};
    unit_remove(unit_path(MANIFEST_NAME));
    CHECK_IS(uuid_create(m.uuid, &e), DELTAFS_OK);
    uuid_to_text(m.uuid, m.uuid_text);
    CHECK_IS(manifest_create(&io, unit_folder, &m, 0, &e), DELTAFS_OK);
    CHECK(!unit_exists(unit_path(MANIFEST_NEW_NAME)));
    CHECK_IS(io_file_open(&io, unit_path(MANIFEST_NAME), O_RDWR, &file, &e), DELTAFS_OK);
    CHECK_IS(io_file_size(&file, &size, &e), DELTAFS_OK);
    for (uint32_t i = 0; i < epochs; i++) {
        struct manifest_epoch epoch = {100 * i + 7, 1000 + i, UINT64_MAX - i, i, i / 2, 0};
        CHECK_IS(manifest_append_epoch(&file, &size, i, &epoch, i % 2, &e), DELTAFS_OK);
    }
    if (closed)
        CHECK_IS(manifest_append_close(&file, &size, epochs, 12345, 0, &e), DELTAFS_OK);
    CHECK_IS(io_file_close(&file, &e), DELTAFS_OK);
}

static void check_epochs(const struct manifest *m, uint64_t epochs)
{
    CHECK_IS(m->epoch_count, epochs);
    for (uint64_t i = 0; i < epochs; i++) {
        CHECK(m->epoch[i].label == 100 * i + 7 && m->epoch[i].records == 1000 + i);
        CHECK(m->epoch[i].bytes_raw == UINT64_MAX - i && m->epoch[i].bytes_stored == i && m->epoch[i].covers == i / 2);
    }
}

static void test_round_trip(void **state)
{
    static const uint32_t epochs[] = {0, 1, 2, 64, 65, 1000};
    struct manifest m;
    struct error e;
    size_t n;

    (void)state;
    for (size_t i = 0; i < sizeof epochs / sizeof epochs[0]; i++) {
        for (int closed = 0; closed < 2; closed++) {
            make_manifest(epochs[i], closed, i % 2 ? "x:f4~1e-3,y:f4" : "");
            CHECK_IS(read_back(&m, &e), DELTAFS_OK);
            CHECK_IS(m.partitions, 7);
            CHECK_IS(m.value_size, i % 2 ? 8 : -1);
            CHECK(strcmp(m.schema, i % 2 ? "x:f4~1e-3,y:f4" : "") == 0);
            CHECK_IS(m.strips.count, i % 2 ? 2 : 0);
            CHECK(i % 2 == 0 || (m.strips.bytes[0] == 3 && m.strips.bytes[1] == 5));
            CHECK_IS(m.is_closed, closed);
            CHECK(!closed || m.tail_length == 12345);
            check_epochs(&m, epochs[i]);
            free(unit_load(unit_path(MANIFEST_NAME), &n));
            CHECK_IS(m.size, n);
            manifest_fini(&m);
        }
    }
}

/* The first epoch from `epoch` on that none before `end` covers, by what covers says. */
static uint64_t first_uncovered(const struct manifest *m, uint64_t epoch, uint64_t end)
{
    for (uint64_t by = epoch + 1; by < end; by++)
        if (by - m->epoch[by].covers <= epoch)
            return first_uncovered(m, epoch + 1, end);
    return epoch;
}

static void test_covered(void **state)
{
    struct io_file file;
    struct manifest m;
    struct error e;
    uint64_t size;
    struct rng r = rng_init(1);

    (void)state;
    make_manifest(0, 0, "");
    CHECK_IS(io_file_open(&io, unit_path(MANIFEST_NAME), O_RDWR, &file, &e), DELTAFS_OK);
    CHECK_IS(io_file_size(&file, &size, &e), DELTAFS_OK);
    for (uint32_t i = 0; i < 60; i++) {
        struct manifest_epoch epoch = {i, 1, 1, 1, rng_below(&r, 4) == 0 ? (uint32_t)rng_below(&r, i + 1) : 0, 0};
        CHECK_IS(manifest_append_epoch(&file, &size, i, &epoch, 0, &e), DELTAFS_OK);
    }
    CHECK_IS(read_back(&m, &e), DELTAFS_OK);
    for (uint64_t end = 0; end <= 60; end++)
        for (uint64_t i = 0; i <= end; i++)
            CHECK_IS(manifest_uncovered(&m, i, end), first_uncovered(&m, i, end));
    manifest_fini(&m);
    CHECK_IS(manifest_append_epoch(&file, &size, 60, &(struct manifest_epoch){60, 1, 1, 1, 61, 0}, 0, &e), DELTAFS_OK);
    CHECK_IS(io_file_close(&file, &e), DELTAFS_OK);
    CHECK_IS(read_back(&m, &e), DELTAFS_ERR_DAMAGED);
    CHECK(strstr(e.text, "epoch number 60 covers epochs that are not there"));
}

static void test_uuids_are_random(void **state)
{
    uint8_t a[16], b[16];
    char text[UUID_TEXT_SIZE];
    struct error e;

    (void)state;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(uuid_create(a, &e), DELTAFS_OK);
        assert_int_equal(uuid_create(b, &e), DELTAFS_OK);
        assert_memory_not_equal(a, b, 16);
        uuid_to_text(a, text);
        assert_int_equal(strlen(text), 36);
        assert_true(text[14] == '4' && strchr("89ab", text[19]));
    }
}

/* Cut at every length: the lines that are whole count, no more and no fewer. */
static void test_torn(void **state)
{
    struct manifest m;
    struct error e;
    size_t n;

    (void)state;
    make_manifest(3, 1, "x:f4,y:f4");
    char *text = (char *)unit_load(unit_path(MANIFEST_NAME), &n);
    for (size_t cut = 0; cut < n; cut++) {
        uint64_t whole = 0, lines = 0, end = 0;
        for (size_t i = 0; i < cut; i++)
            if (text[i] == '\n') {
                lines++;
                end = i + 1;
            }
        whole = lines > 4 ? lines - 4 : 0;
        save(text, cut);
        int status = read_back(&m, &e);
        if (lines < 2) {
            CHECK(status == DELTAFS_ERR_DAMAGED || status == DELTAFS_ERR_NOT_DELTAFS);
            continue;
        }
        CHECK_IS(status, DELTAFS_OK);
        check_epochs(&m, whole);
        CHECK(!m.is_closed);
        CHECK_IS(m.size, end);
        manifest_fini(&m);
    }
    free(text);
}

/* Some file systems fill up with zeros what was not written before the power went. */
static void test_torn_in_zeros(void **state)
{
    struct manifest m;
    struct error e;
    size_t n, last;

    (void)state;
    make_manifest(2, 0, "");
    char *text = (char *)unit_load(unit_path(MANIFEST_NAME), &n);
    for (last = n - 1; text[last - 1] != '\n'; last--)
        ;
    for (size_t cut = last; cut < n; cut++) {
        memset(text + cut, 0, n - cut);
        save(text, n);
        CHECK_IS(read_back(&m, &e), DELTAFS_OK);
        check_epochs(&m, 1);
        CHECK_IS(m.size, last);
        manifest_fini(&m);
        free(text);
        make_manifest(2, 0, "");
        text = (char *)unit_load(unit_path(MANIFEST_NAME), &n);
    }
    free(text);
}

/* The last line stands in two sectors, and the power goes when only the second is written. (That was damage, and
 * nothing of the directory could be read.) With a byte fewer it is. */
static void test_torn_at_its_beginning(void **state)
{
    struct manifest m;
    struct error e;
    size_t n, last;

    (void)state;
    for (uint32_t epochs = 2; epochs < 40; epochs++) {
        make_manifest(epochs, 0, "");
        char *text = (char *)unit_load(unit_path(MANIFEST_NAME), &n);
        for (last = n - 1; text[last - 1] != '\n'; last--)
            ;
        size_t sector = last - last % 512 + 512;
        for (size_t end = sector - 2; sector < n - 1 && last + 1 < end && end <= sector + 2 && end < n; end++) {
            char was[256];
            memcpy(was, text + last, end - last);
            memset(text + last, 0, end - last);
            save(text, n);
            int status = read_back(&m, &e);
            CHECK_IS(status, end >= sector ? DELTAFS_OK : DELTAFS_ERR_DAMAGED);
            if (status == DELTAFS_OK) {
                check_epochs(&m, epochs - 1);
                CHECK_IS(m.size, last);
                manifest_fini(&m);
            }
            memcpy(text + last, was, end - last);
        }
        free(text);
    }
}

/* Change each byte: each bit of it, and to bytes that mean something. */
static void check_changes(uint32_t epochs, int closed, const char *schema)
{
    static const char others[] = {'\0', '\n', ' ', '~', '0', '1', '9', 'a', 'E', '=', '-'};
    struct manifest m;
    struct error e;
    size_t n;

    make_manifest(epochs, closed, schema);
    const char *path = unit_path(MANIFEST_NAME);
    uint8_t *text = unit_load(path, &n);
    for (size_t at = 0; at < n; at++) {
        for (size_t i = 0; i < 8 + sizeof others; i++) {
            uint8_t byte = (uint8_t)(i < 8 ? text[at] ^ 1 << i : others[i - 8]);
            /* The one change that cannot be distinguished from an incomplete line, see above: the last newline into a
             * zero. */
            if (byte == text[at] || (at == n - 1 && byte == 0))
                continue;
            unit_poke(path, at, byte);
            int status = read_back(&m, &e);
            if (status != DELTAFS_ERR_DAMAGED && status != DELTAFS_ERR_NOT_DELTAFS && status != DELTAFS_ERR_VERSION)
                fail_msg("byte %zu of %zu changed from %d to %d: status %d", at, n, text[at], byte, status);
            CHECK(e.text[0] != '\0');
        }
        unit_poke(path, at, text[at]);
    }
    free(text);
}

static void test_every_change(void **state)
{
    (void)state;
    check_changes(2, 1, "x:f4,y:f4");
    check_changes(1, 0, "");
    check_changes(0, 0, "x:f8");
}

/* ---- What lines may say ---- */

static void test_versions(void **state)
{
    static const char *const later[] = {"Deltafs version=2 uuid=01234567-89ab-4cde-8f01-23456789abcd",
                                        "Deltafs version=0 uuid=01234567-89ab-4cde-8f01-23456789abcd",
                                        "Deltafs version=2 something=else"};
    struct manifest m;
    struct error e;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(read_lines(&m, &e, later[i], DIRECTORY, NULL), DELTAFS_ERR_VERSION);
        assert_non_null(strstr(e.text, "newer DeltaFS"));
    }
    assert_int_equal(read_lines(&m, &e, HEAD, DIRECTORY, "Moved into=elsewhere", NULL), DELTAFS_ERR_VERSION);
    assert_non_null(strstr(e.text, "Moved"));
    assert_int_equal(
        read_lines(&m, &e, HEAD, "Directory keys=strange partitioner=xxh3 partitions=7 value_size=8", NULL),
        DELTAFS_ERR_VERSION);
    assert_int_equal(read_lines(&m, &e, HEAD, "Directory keys=u64 partitioner=curve partitions=7 value_size=8", NULL),
                     DELTAFS_ERR_VERSION);
}

/* Unknown words in small letters, and unknown fields, are passed over. */
static void test_unknown_is_skipped(void **state)
{
    struct manifest m;
    struct error e;

    (void)state;
    assert_int_equal(read_lines(&m, &e, HEAD " host=h1",
                                "Directory volume=/tmp keys=u64 partitioner=xxh3 partitions=7 "
                                "value_size=8 more=1",
                                "note written by somebody", "note", "epoch number=9",
                                "Epoch number=0 label=7 records=1000 raw=18446744073709551615 stored=0 seconds=3",
                                "close epochs=1 tail=3 xtail=9", "note the end", NULL),
                     DELTAFS_OK);
    check_epochs(&m, 1);
    assert_true(m.is_closed && m.tail_length == 3);
    manifest_fini(&m);
}

static void test_malformed(void **state)
{
    static const char *const after[] = {
        "Epoch",
        "Epoch number=0",
        "Epoch number=0 label=1 records=1 raw=1",
        "Epoch number=0 label=x records=1 raw=1 stored=1",
        "Epoch number=0 label=1 records=-1 raw=1 stored=1",
        "Epoch number=0 label=18446744073709551616 records=1 raw=1 stored=1",
        "Epoch number=1 label=1 records=1 raw=1 stored=1",
        "Epoch  number= label=1 records=1 raw=1 stored=1",
        "close",
        "close epochs=1 tail=1",
        "close epochs=0",
        "close epochs=0 tail=1x",
        "schema x:f4",
        "schema x:q8",
        "schema",
        "bounds 0,1",
        "Strips",
        "Strips bytes=8",
        "Strips bytes=4,5",
        "Strips bytes=4,4,",
        "Compacted",
        "Compacted epochs=0",
        "Compacted epochs=4294967295",
        HEAD,
        DIRECTORY,
    };
    static const char *const heads[] = {
        "Deltafs version=1",
        "Deltafs uuid=01234567-89ab-4cde-8f01-23456789abcd",
        "Deltafs version=x uuid=01234567-89ab-4cde-8f01-23456789abcd",
        "Deltafs version=4294967297 uuid=01234567-89ab-4cde-8f01-23456789abcd",
        "Deltafs version=1 uuid=01234567-89ab-4cde-8f01-23456789abc",
        "Deltafs version=1 uuid=01234567-89ab-4cde-8f01-23456789abcde",
        "Deltafs version=1 uuid=01234567-89ab-4cde-8f01-23456789abcg",
        "Deltafs version=1 uuid=0123456789ab4cde8f0123456789abcd",
        "Deltafs version=1 uuid=01234567-89ab-4cde-8f01-23456789ab",
        "Deltafs version=1 uuid=-------------",
        "Deltafs version=1 uuid=",
        "Deltafs version=1 uuid=01234567-89AB-4cde-8f01-23456789abcd",
    };
    static const char *const directories[] = {
        "Directory",
        "Directory keys=u64 partitioner=xxh3 partitions=0 value_size=8",
        "Directory keys=u64 partitioner=xxh3 partitions=1048577 value_size=8",
        "Directory keys=u64 partitioner=xxh3 partitions=7 value_size=1048577",
        "Directory keys=u64 partitioner=xxh3 partitions=7 value_size=-1",
        "Directory keys=u64 partitioner=xxh3 partitions=7",
        "Directory keys=u64 partitioner=xxh3 value_size=8",
        "Directory keys=u64 partitions=7 value_size=8",
        "Directory partitioner=xxh3 partitions=7 value_size=8",
        "Directory keys=u64 partitioner=xxh3xxh3xxh3xxh3xxh3xxh3xxh3xxh3xxh3 partitions=7 value_size=8",
        "Directory keys=bytes partitioner=range partitions=7 value_size=8",
        "Directory keys=u64 partitioner=range partitions=65537 value_size=8",
        "Directory keys=u64 partitioner=range partitions=7 value_size=8 kind=index",
        "Epoch number=0 label=1 records=1 raw=1 stored=1",
        "note before its time",
        "close epochs=0 tail=0",
    };
    struct manifest m;
    struct error e;

    (void)state;
    for (size_t i = 0; i < sizeof after / sizeof after[0]; i++)
        if (read_lines(&m, &e, HEAD, DIRECTORY, after[i], NULL) != DELTAFS_ERR_DAMAGED)
            fail_msg("'%s' was taken", after[i]);
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        if (read_lines(&m, &e, heads[i], DIRECTORY, NULL) != DELTAFS_ERR_DAMAGED)
            fail_msg("'%s' was taken", heads[i]);
    for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++)
        if (read_lines(&m, &e, HEAD, directories[i], NULL) != DELTAFS_ERR_DAMAGED)
            fail_msg("'%s' was taken", directories[i]);
    assert_int_equal(read_lines(&m, &e, HEAD, NULL), DELTAFS_ERR_DAMAGED);
    assert_int_equal(read_lines(&m, &e, DIRECTORY, HEAD, NULL), DELTAFS_ERR_NOT_DELTAFS);
    assert_int_equal(read_lines(&m, &e, HEAD, DIRECTORY, "schema x:f8", "schema x:f8", NULL), DELTAFS_ERR_DAMAGED);
    static const char *const bounds[] = {
        "bounds", "bounds ", "bounds 1", "bounds 1,0,0", "bounds 1,1", "bounds 0.5,", "bounds -1,0", "bounds 1:f4,0",
    };
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
        if (read_lines(&m, &e, HEAD, DIRECTORY, "schema x:f4,y:i4", bounds[i], NULL) != DELTAFS_ERR_DAMAGED)
            fail_msg("'%s' was taken", bounds[i]);
    assert_int_equal(read_lines(&m, &e, HEAD, DIRECTORY, "schema x:f4,y:i4", "bounds 1,0", "bounds 1,0", NULL),
                     DELTAFS_ERR_DAMAGED);
    assert_int_equal(read_lines(&m, &e, HEAD, DIRECTORY, "schema x:f4,y:i4", "bounds 0,0", "bounds 0,0", NULL),
                     DELTAFS_ERR_DAMAGED);
    assert_int_equal(read_lines(&m, &e, HEAD, DIRECTORY, "Strips bytes=4,4", "Strips bytes=4,4", NULL),
                     DELTAFS_ERR_DAMAGED);
    assert_int_equal(read_lines(&m, &e, HEAD, DIRECTORY, "Epoch number=0 label=1 records=1 raw=1 stored=1",
                                "Strips bytes=4,4", NULL),
                     DELTAFS_ERR_DAMAGED);
    assert_int_equal(read_lines(&m, &e, HEAD, DIRECTORY, "Compacted epochs=2", "Compacted epochs=2", NULL),
                     DELTAFS_ERR_DAMAGED);
    assert_int_equal(read_lines(&m, &e, HEAD, DIRECTORY, "Epoch number=0 label=1 records=1 raw=1 stored=1",
                                "Compacted epochs=1", NULL),
                     DELTAFS_ERR_DAMAGED);
}

#define RANGES  "Directory keys=u64 partitioner=range partitions=4 value_size=8"
#define EPOCH_0 "Epoch number=0 label=5 records=1 raw=1 stored=1"
#define EPOCH_1 "Epoch number=1 label=6 records=1 raw=1 stored=1"
#define EPOCH_2 "Epoch number=2 label=7 records=1 raw=1 stored=1"

static void check_pivots(const struct manifest *m, uint64_t epoch, uint64_t first, uint64_t last, uint64_t end)
{
    uint64_t until;
    const struct partitioner by = manifest_partitioner(m, epoch, &until);

    CHECK_IS(by.partitions, 4);
    CHECK(by.pivots && by.pivots[0] == first && by.pivots[2] == last);
    CHECK(until == end);
}

/* Pivots hold for the epochs behind them, up to the next ones; and they are read as they were written. */
static void test_pivots(void **state)
{
    static const uint64_t written[][3] = {
        {0, 0, 0}, {1, 1, UINT64_MAX}, {UINT64_MAX, UINT64_MAX, UINT64_MAX}, {5, 17, 1 << 20}};
    struct io_file file;
    struct manifest m;
    struct error e;
    uint64_t end;

    (void)state;
    CHECK_IS(read_lines(&m, &e, HEAD, RANGES, EPOCH_0, "Pivots keys=a,0,ff", EPOCH_1, EPOCH_2, "open epochs=3",
                        "Pivots keys=0,fffffffffffffffe,1", NULL),
             DELTAFS_OK);
    CHECK(manifest_partitioner(&m, 0, &end).pivots == NULL && end == 1);
    check_pivots(&m, 1, 10, 265, 3);
    check_pivots(&m, 2, 10, 265, 3);
    check_pivots(&m, 3, 0, UINT64_MAX, UINT64_MAX);
    manifest_fini(&m);
    CHECK_IS(read_lines(&m, &e, HEAD, RANGES, "Compacted epochs=2", "Pivots keys=1,2,3", EPOCH_0, EPOCH_1,
                        "close epochs=2 tail=1", "Pivots keys=4,5,6", EPOCH_2, NULL),
             DELTAFS_OK);
    check_pivots(&m, 0, 1, 6, 2);
    check_pivots(&m, 1, 1, 6, 2);
    check_pivots(&m, 2, 4, 15, UINT64_MAX);
    manifest_fini(&m);
    /* No epoch was placed by those of a job that died. */
    CHECK_IS(read_lines(&m, &e, HEAD, RANGES, EPOCH_0, "Pivots keys=a,0,ff", "open epochs=1", "Pivots keys=4,5,6",
                        "Pivots keys=1,2,3", EPOCH_1, NULL),
             DELTAFS_OK);
    CHECK(manifest_partitioner(&m, 0, &end).pivots == NULL && end == 1);
    check_pivots(&m, 1, 1, 6, UINT64_MAX);
    CHECK_IS(m.pivots_count, 1);
    manifest_fini(&m);
    for (size_t i = 0; i < sizeof written / sizeof written[0]; i++) {
        CHECK_IS(read_lines(&m, &e, HEAD, RANGES, EPOCH_0, NULL), DELTAFS_OK);
        uint64_t size = m.size;
        manifest_fini(&m);
        CHECK_IS(io_file_open(&io, unit_path(MANIFEST_NAME), O_RDWR, &file, &e), DELTAFS_OK);
        CHECK_IS(manifest_append_pivots(&file, &size, written[i], 3, 1, &e), DELTAFS_OK);
        CHECK_IS(io_file_close(&file, &e), DELTAFS_OK);
        CHECK_IS(read_back(&m, &e), DELTAFS_OK);
        CHECK_IS(m.size, size);
        CHECK_IS(m.pivots_count, 1);
        CHECK(memcmp(m.pivots[0].key, written[i], sizeof written[i]) == 0);
        manifest_fini(&m);
    }
}

static void test_malformed_pivots(void **state)
{
    static const char *const lines[] = {
        "Pivots",
        "Pivots keys=",
        "Pivots keys=1,2",
        "Pivots keys=1,2,3,4",
        "Pivots keys=1,2,3,",
        "Pivots keys=1,,3",
        "Pivots keys=1,2,g",
        "Pivots keys=1,2,A",
        "Pivots keys=1,2,0x3",
        "Pivots keys=1,2,-3",
        "Pivots keys=1,2;3",
        "Pivots keys=1,2, 3",
        "Pivots keys=1,2,ffffffffffffffff",
        "Pivots keys=1,2,10000000000000000",
    };
    struct manifest m;
    struct error e;

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (read_lines(&m, &e, HEAD, RANGES, lines[i], NULL) != DELTAFS_ERR_DAMAGED)
            fail_msg("'%s' was taken", lines[i]);
    CHECK_IS(read_lines(&m, &e, HEAD, DIRECTORY, "Pivots keys=1,1,1,1,1,1", NULL), DELTAFS_ERR_DAMAGED);
    CHECK_IS(read_lines(&m, &e, HEAD, "Directory keys=u64 partitioner=range partitions=1 value_size=8",
                        "Pivots keys=", NULL),
             DELTAFS_ERR_DAMAGED);
    CHECK_IS(read_lines(&m, &e, HEAD, "Pivots keys=1,2,3", RANGES, NULL), DELTAFS_ERR_DAMAGED);
    CHECK_IS(read_lines(&m, &e, HEAD, RANGES, "Compacted epochs=2", EPOCH_0, "Pivots keys=1,2,3", NULL),
             DELTAFS_ERR_DAMAGED);
}

static void test_label_order(void **state)
{
    static const char *const first = "Epoch number=0 label=5 records=1 raw=1 stored=1";
    struct manifest m;
    struct error e;

    (void)state;
    assert_int_equal(
        read_lines(&m, &e, HEAD, DIRECTORY, first, "Epoch number=1 label=5 records=1 raw=1 stored=1", NULL),
        DELTAFS_ERR_DAMAGED);
    assert_int_equal(
        read_lines(&m, &e, HEAD, DIRECTORY, first, "Epoch number=1 label=4 records=1 raw=1 stored=1", NULL),
        DELTAFS_ERR_DAMAGED);
    assert_int_equal(
        read_lines(&m, &e, HEAD, DIRECTORY, first, "Epoch number=2 label=6 records=1 raw=1 stored=1", NULL),
        DELTAFS_ERR_DAMAGED);
    assert_int_equal(
        read_lines(&m, &e, HEAD, DIRECTORY, first, "Epoch number=0 label=6 records=1 raw=1 stored=1", NULL),
        DELTAFS_ERR_DAMAGED);
    assert_int_equal(read_lines(&m, &e, HEAD, DIRECTORY, first,
                                "Epoch number=1 label=18446744073709551615 records=1 raw=1 stored=1", NULL),
                     DELTAFS_OK);
    assert_int_equal(m.epoch_count, 2);
    manifest_fini(&m);
}

static void test_not_ours(void **state)
{
    static const char *const texts[] = {"", "D", "Deltafs", "Deltafs", "hello, world\n", "\n", "deltafs version=1\n"};
    struct manifest m;
    struct error e;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        save(texts[i], strlen(texts[i]));
        assert_int_equal(read_back(&m, &e), DELTAFS_ERR_NOT_DELTAFS);
    }
    unit_remove(unit_path(MANIFEST_NAME));
    assert_int_equal(read_back(&m, &e), DELTAFS_ERR_NOT_DELTAFS);
}

/* Lines with any bytes under a right checksum: taken or refused, and nothing worse. */
static void test_forged(void **state)
{
    static const char *const lines[] = {HEAD,
                                        DIRECTORY,
                                        "schema x:f4,y:u4",
                                        "Strips bytes=4,4",
                                        "Epoch number=0 label=5 records=1 raw=1 stored=1",
                                        "close epochs=1 tail=77"};
    struct rng r = rng_init(51);
    struct manifest m;
    struct error e;
    unsigned taken = 0;

    (void)state;
    for (int round = 0; round < 4000; round++) {
        char text[5][200];
        size_t which = (size_t)rng_below(&r, 5), n = strlen(lines[which]);
        for (size_t i = 0; i < 5; i++)
            strcpy(text[i], lines[i]);
        for (uint64_t k = rng_below(&r, 3) + 1; k > 0; k--) {
            char byte = rng_below(&r, 2) ? (char)rng_next(&r) : " =:,-0x"[rng_below(&r, 7)];
            text[which][rng_below(&r, n)] = byte == '\n' || byte == '\0' ? ' ' : byte;
        }
        if (read_lines(&m, &e, text[0], text[1], text[2], text[3], text[4], NULL) == DELTAFS_OK) {
            CHECK(m.schema && m.epoch_count <= 1 && m.partitions >= 1);
            manifest_fini(&m);
            taken++;
        }
    }
    CHECK(taken > 30);
}

/* A last line longer than any other there is. (Its newline, changed, made it an incomplete line, and the schema was
 * gone.) */
static void test_long_last_line(void **state)
{
    char schema[800];
    size_t n = 0;

    (void)state;
    for (int i = 0; i < 8; i++)
        n += (size_t)snprintf(schema + n, sizeof schema - n,
                              "%sa_name_that_is_as_long_as_names_of_fields_never_are_"
                              "in_any_code_that_people_can_be_asked_to_read_%d:u1",
                              i ? "," : "", i);
    check_changes(0, 0, schema);
}

/* More than is read at once; a line that is longer than that, and one that is longer than any. */
static void test_in_pieces(void **state)
{
    static const size_t lengths[] = {3 << 20, (16 << 20) - 1, 17 << 20};
    struct manifest m;
    struct error e;
    size_t n;

    (void)state;
    make_manifest(40000, 1, "x:f4,y:f4");
    CHECK_IS(read_back(&m, &e), DELTAFS_OK);
    check_epochs(&m, 40000);
    CHECK(m.is_closed);
    manifest_fini(&m);
    char *text = (char *)unit_load(unit_path(MANIFEST_NAME), &n);
    CHECK(n > 2 << 20);
    text[n / 2] ^= 1;
    save(text, n);
    CHECK_IS(read_back(&m, &e), DELTAFS_ERR_DAMAGED);
    text[n / 2] ^= 1;
    uint64_t number = 1, at = 0;
    for (size_t i = 0; i < n / 2; i++)
        if (text[i] == '\n') {
            number++;
            at = i + 1;
        }
    char want[100];
    snprintf(want, sizeof want, "damaged at offset %llu: line %llu does not match its checksum", (unsigned long long)at,
             (unsigned long long)number);
    CHECK(strstr(e.text, want) && strstr(e.text, unit_path(MANIFEST_NAME)));

    for (size_t i = 0; i < 3; i++) {
        char *line = malloc(lengths[i] + 12), *all = malloc(n + lengths[i] + 12);
        CHECK(line && all);
        memset(line, 'a', lengths[i]);
        line[lengths[i] - 11] = '\0';
        size_t got = put_line(all + n, line);
        memcpy(all, text, n);
        save(all, n + got);
        CHECK_IS(read_back(&m, &e), i < 2 ? DELTAFS_OK : DELTAFS_ERR_DAMAGED);
        if (i < 2)
            check_epochs(&m, 40000);
        CHECK(i == 2 || m.size == n + lengths[i]);
        manifest_fini(&m);
        free(line);
        free(all);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_last_line),
        cmocka_unit_test(test_in_pieces),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_covered),
        cmocka_unit_test(test_uuids_are_random),
        cmocka_unit_test(test_torn),
        cmocka_unit_test(test_torn_in_zeros),
        cmocka_unit_test(test_torn_at_its_beginning),
        cmocka_unit_test(test_every_change),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_unknown_is_skipped),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_pivots),
        cmocka_unit_test(test_malformed_pivots),
        cmocka_unit_test(test_label_order),
        cmocka_unit_test(test_not_ours),
        cmocka_unit_test(test_forged),
    };

    io = io_default();
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
