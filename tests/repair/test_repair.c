/* Repair: what a job that died left, at each step of a commit; index logs rebuilt; what cannot be repaired. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/coding.h"
#include "directory/format/manifest.h"
#include "logical/format/session.h"
#include "unit_io.h"
#include "unit_repair.h"

/* All ranks had written the epoch, and the job had agreed on it: it is committed. */
static void test_unfinished(void **state)
{
    (void)state;
    for (int is_bytes = 0; is_bytes < 2; is_bytes++) {
        struct model m = {.is_bytes = is_bytes}, before = {.is_bytes = is_bytes};
        const char *path = unit_path("unfinished%d", is_bytes), *other = unit_path("other%d", is_bytes);
        const char *lease = unit_path("other%d/LEASE", is_bytes);
        struct rng r = rng_init(800), again = rng_init(800);
        repair_make_unfinished(&m, path, &r);

        repair_copy(path, other);
        CHECK_IS(repair_run(other, 1, -1), DELTAFS_OK);
        repair_check_said("an incomplete last line is removed: 9 bytes");
        repair_check_said("epoch number 2, complete but without its commit, is committed: 2000 records labelled 30");
        CHECK_IS(repair_run(other, 1, -1), DELTAFS_OK); /* nothing has changed */
        repair_check_said("labelled 30");
        CHECK_IS(repair_run(other, 0, -1), DELTAFS_OK);
        CHECK(!strstr(repair_said.text, "is truncated"));
        model_keep(&m, 30);
        repair_check(&m, other);

        /* A label that it cannot get is not passed over. */
        CHECK_IS(repair_run(other, 0, 77), DELTAFS_ERR_NOT_FOUND);
        repair_copy(path, other);
        CHECK_IS(repair_run(other, 0, 77), DELTAFS_ERR_LABEL);
        CHECK(strstr(deltafs_errmsg(NULL), "its job noted 30") && unit_exists(lease));

        /* Where the job had not said so, a label must be given. */
        repair_copy(path, other);
        CHECK(unlink(lease) == 0);
        CHECK_IS(repair_run(other, 1, -1), DELTAFS_OK);
        repair_check_said("is discarded unless it gets a label");
        CHECK_IS(repair_run(other, 1, 20), DELTAFS_ERR_LABEL);
        CHECK_IS(repair_run(other, 0, 77), DELTAFS_OK);
        repair_check_said("2000 records labelled 77");
        deltafs_dir *d = unit_open(other);
        uint64_t last = 0;
        CHECK_CALL(d, deltafs_last_label(d, &last), DELTAFS_OK);
        CHECK_IS(last, 77);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);

        /* Or it goes. */
        repair_copy(path, other);
        CHECK(unlink(lease) == 0);
        CHECK_IS(repair_run(other, 0, -1), DELTAFS_OK);
        for (int epoch = 1; epoch <= 2; epoch++) {
            repair_append(&before, NULL, &again, 1500);
            model_keep(&before, (uint64_t)epoch * 10);
        }
        repair_check(&before, other);

        /* One that is not whole goes, whatever the job said. */
        repair_copy(path, other);
        const char *log = unit_path("other%d/01/p00000001.data", is_bytes);
        size_t n;
        uint8_t *bytes = unit_load(log, &n);
        unit_poke(log, n - 100, (uint8_t)(bytes[n - 100] ^ 1));
        free(bytes);
        CHECK_IS(repair_run(other, 0, -1), DELTAFS_OK);
        repair_check_said("is incomplete");
        repair_check(&before, other);
        model_fini(&m);
        model_fini(&before);
    }
}

/* An epoch that was not finished, in runs and segments, and a directory that was not closed. */
static void test_torn(void **state)
{
    const char *path = unit_path("torn"), *copy = unit_path("torn_copy");
    struct rng r = rng_init(810);
    struct model m = {0};
    deltafs_dir *d = repair_create(&m, path);

    (void)state;
    repair_append(&m, d, &r, 100);
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    model_keep(&m, 1);
    repair_append(&m, d, &r, 200000);
    model_discard(&m);
    unit_copy(path, copy);
    CHECK_IS(repair_run(path, 0, -1), DELTAFS_ERR_BUSY);
    CHECK_CALL(d, deltafs_epoch_cancel(d, "enough"), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_ERR_UNCOMMITTED);
    repair_check(&m, path);
    CHECK_IS(repair_run(copy, 1, -1), DELTAFS_OK);
    repair_check_said("data after the last committed epoch is truncated");
    repair_check_said("the directory is closed");
    CHECK_IS(repair_run(copy, 0, -1), DELTAFS_OK);
    repair_check(&m, copy);
    CHECK_IS(deltafs_repair(unit_path("nowhere"), NULL, NULL, NULL), DELTAFS_ERR_NOT_FOUND);
    CHECK(mkdir(unit_path("half"), 0777) == 0);
    CHECK_IS(deltafs_repair(unit_path("half"), NULL, NULL, NULL), DELTAFS_ERR_NOT_DELTAFS);
    repair_check_errmsg("half: a folder, not a DeltaFS directory: it has no MANIFEST");
    CHECK(mkdir(unit_path("half/00"), 0777) == 0);
    CHECK_IS(deltafs_repair(unit_path("half"), NULL, NULL, NULL), DELTAFS_ERR_NOT_DELTAFS);
    repair_check_errmsg("creation was interrupted (it has no records: remove it)");
    CHECK_IS(deltafs_repair("", NULL, NULL, NULL), DELTAFS_ERR_INVALID);
    model_fini(&m);
}

/* A partition whose index is rebuilt though its data log is damaged: said to be so by the dry run, too. */
static void check_lossy(struct model *m, const char *path, const char *data)
{
    struct deltafs_verify_counts counts = {.struct_size = sizeof counts};
    deltafs_dir *d;

    for (int dry_run = 1; dry_run >= 0; dry_run--) {
        CHECK_IS(repair_run(path, dry_run, -1), DELTAFS_ERR_DAMAGED);
        repair_check_said("it is rebuilt from the data log; the damaged one is saved as p00000000.index.damaged");
        repair_check_said(data);
        repair_check_said("are lost; a query for any key of this partition returns an error");
        repair_check_errmsg(data);
    }
    /* What is lost stays lost: it is said again. */
    for (int dry_run = 1; dry_run >= 0; dry_run--) {
        CHECK_IS(repair_run(path, dry_run, -1), DELTAFS_ERR_DAMAGED);
        CHECK_IS(repair_said.done, 0);
        repair_check_said("records are lost, of epoch ");
        repair_check_said("with 'deltafs repair --drop-from ");
        repair_check_errmsg("as an earlier repair recorded");
    }
    d = unit_open(path);
    CHECK(model_check_honest(m, d) > 0);
    CHECK_CALL(d, deltafs_verify(d, NULL, NULL, &counts), DELTAFS_ERR_DAMAGED);
    CHECK(strstr(deltafs_errmsg(d), "are lost"));
    CHECK(counts.records > m->committed / 2);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = NULL;
    CHECK_IS(deltafs_reopen(path, NULL, &d), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* Keys of bytes are with the values: their index can be rebuilt, for all partitions or one. */
static void test_rebuild(void **state)
{
    const char *path = unit_path("rebuild"), *copy = unit_path("rebuild_copy");
    struct rng r = rng_init(820);
    struct model m = {.is_bytes = 1};
    deltafs_dir *d = repair_create(&m, path);

    (void)state;
    for (uint64_t epoch = 1; epoch < 6; epoch++) {
        repair_append(&m, d, &r, epoch == 3 ? 0 : epoch == 4 ? 1 : 8000);
        CHECK_CALL(d, deltafs_epoch_end(d, epoch), DELTAFS_OK);
        model_keep(&m, epoch);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    for (int how = 0; how < 3; how++)
        for (int parts = 1; parts <= 3; parts += 2) {
            repair_copy(path, copy);
            for (int p = 0; p < parts; p++)
                repair_damage(unit_path("rebuild_copy/%02x/p%08x.index", p, p), how);
            CHECK_IS(repair_run(copy, 1, -1), DELTAFS_OK);
            repair_check_said("it is rebuilt from the data log");
            CHECK_IS(repair_run(copy, 0, -1), DELTAFS_OK);
            CHECK(unit_exists(unit_path("rebuild_copy/00/p00000000.index.damaged")) == (how != 0));
            repair_check(&m, copy);
        }
    /* Where the data log lacks records too, or has a damaged block, the others are there again, and who asks for what
     * is lost is told so: in a dry run, which changes nothing, and in earnest. */
    repair_copy(path, copy);
    const char *index = unit_path("rebuild_copy/00/p00000000.index"),
               *data = unit_path("rebuild_copy/00/p00000000.data");
    size_t n;
    uint8_t *bytes = unit_load(data, &n);
    repair_damage(index, 1);
    unit_save(data, bytes, n / 2);
    check_lossy(&m, copy, data);
    CHECK(!unit_exists(unit_path("rebuild_copy/00/p00000000.index.new")));
    for (int how = 0; how < 4; how++) {
        size_t at = how == 3 ? 32 : n / 2; /* the first block, or one in the middle; its payload, or its header */
        repair_copy(path, copy);
        repair_damage(index, 1);
        while (how < 2 && memcmp(bytes + at, "\xd1\x05", 2) != 0)
            at++;
        bytes[at + (how == 1 ? 12 : how == 0 ? 60 : 9)] ^= 4;
        unit_save(data, bytes, n);
        bytes[at + (how == 1 ? 12 : how == 0 ? 60 : 9)] ^= 4;
        check_lossy(&m, copy, data);
        CHECK(unit_exists(unit_path("rebuild_copy/00/p00000000.index.damaged")));
        CHECK(!unit_exists(unit_path("rebuild_copy/00/p00000000.index.damaged.2")));
        /* A second one does not take the first one's place; and is named. */
        repair_damage(index, 1);
        CHECK_IS(repair_run(copy, 0, -1), DELTAFS_ERR_DAMAGED);
        repair_check_said("saved as p00000000.index.damaged.2");
    }
    free(bytes);
    model_fini(&m);
}

/* The place of an epoch's k-th block in a data log, or, if k is negative, of one from behind: -1 is the last. */
static size_t find_block(const uint8_t *bytes, size_t n, uint32_t epoch, int k)
{
    size_t at[1000], count = 0;

    for (size_t next = 32; next + 32 <= n && count < 1000; next += 32 + get_u32(bytes + next + 8))
        if (get_u32(bytes + next + 20) == epoch)
            at[count++] = next;
    CHECK(count > 2 && (size_t)abs(k) < count);
    return k < 0 ? at[count + (size_t)k] : at[k];
}

/* What is lost is told apart from what is not, where several blocks are damaged, or headers that say where others are:
 * where records are missing none is taken for absent, and where none is missing nothing is discarded. (Of two damaged
 * blocks the last one, if its header was damaged, was truncated as if nobody missed it; one wrong epoch in a header
 * gave up all epochs from there on; and damage at an epoch's beginning also gave up the one before, of which all is
 * there.)
 */
static void test_lossy(void **state)
{
    const char *path = unit_path("lossy"), *copy = unit_path("lossy_copy"), *open = unit_path("lossy_open"),
               *index = unit_path("lossy_copy/00/p00000000.index"), *data = unit_path("lossy_copy/00/p00000000.data");
    struct model m = {.is_bytes = 1}, unfinished = {.is_bytes = 1};
    struct rng r = rng_init(824);
    size_t n;

    (void)state;
    repair_make_closed(&m, path, 823, 4, 1000);
    for (int how = 0; how < 4; how++) {
        repair_copy(path, copy);
        uint8_t *bytes = unit_load(data, &n);
        if (how == 0) {
            bytes[find_block(bytes, n, 3, 5) + 60] ^= 4;
            bytes[find_block(bytes, n, 3, -1) + 9] ^= 4;
        } else if (how == 1) {
            bytes[find_block(bytes, n, 0, 0) + 20] ^= 2;
        } else if (how == 2) {
            bytes[find_block(bytes, n, 2, 0) + 9] ^= 4;
        } else {
            bytes[find_block(bytes, n, 3, 5) + 60] ^= 4;
            n = find_block(bytes, n, 3, -1) + 40;
        }
        unit_save(data, bytes, n);
        free(bytes);
        repair_damage(index, 0);
        CHECK_IS(repair_run(copy, 0, -1), DELTAFS_ERR_DAMAGED);
        for (int label = 1; label <= 4; label++)
            CHECK((strstr(repair_said.text, unit_path("lossy_copy: epoch %d has lost", label)) != NULL) ==
                  (label == (how == 1   ? 1
                             : how == 2 ? 3
                                        : 4)));
        CHECK(strstr(repair_said.text, "of epoch 2 of keys") == NULL);
        CHECK(strstr(repair_said.text, "is truncated") == NULL);
        deltafs_dir *d = unit_open(copy);
        CHECK(model_check_honest(&m, d) > 0);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
    }
    repair_make_unfinished(&unfinished, open, &r);
    model_discard(&unfinished);
    repair_copy(open, copy);
    uint8_t *bytes = unit_load(data, &n);
    bytes[find_block(bytes, n, 2, 0) + 9] ^= 4;
    unit_save(data, bytes, n);
    free(bytes);
    repair_damage(index, 0);
    CHECK_IS(repair_run(copy, 0, -1), DELTAFS_OK);
    repair_check(&unfinished, copy);
    model_fini(&m);
    model_fini(&unfinished);
}

/* The place of a structure of this type, the k-th, in a log. */
static size_t find_type(const uint8_t *bytes, size_t n, uint8_t type, int k)
{
    for (size_t at = 32; at + 104 < n; at++)
        if (bytes[at + 4] == type && memcmp(bytes + at + 13, "\0\0", 2) == 0 &&
            (type != 0xd4 || memcmp(bytes + at + 96, "dltfsFTR", 8) == 0) &&
            (type != 0xd2 || (bytes[at + 7] == 0 && memcmp(bytes + at + 17, "\0\0", 3) == 0)) &&
            (type != 0xd3 || memcmp(bytes + at + 5, "\0\0", 3) == 0) && k-- == 0)
            return at;
    fail_msg("there is none");
    return 0;
}

/* What is stored in two places is restored: headers, footers, fences; then the directory can be reopened. A leaf of
 * keys that are bytes is rebuilt with its log. */
static void test_restore(void **state)
{
    const char *copy = unit_path("restore_copy"), *index = unit_path("restore_copy/01/p00000001.index"),
               *data = unit_path("restore_copy/01/p00000001.data");
    static const uint8_t types[] = {0, 0, 0xd4, 0xd3, 0xd2};

    (void)state;
    for (int is_bytes = 0; is_bytes < 2; is_bytes++) {
        const char *path = unit_path("restore%d", is_bytes);
        struct model m = {.is_bytes = is_bytes};
        deltafs_dir *d = NULL;
        size_t n;
        repair_make_closed(&m, path, 825, 3, 1000);
        for (int what = 0; what < 4 + is_bytes; what++)
            for (int has_tail = what == 2; has_tail < 2; has_tail++) {
                repair_copy(path, copy);
                uint8_t *bytes = unit_load(what == 1 ? data : index, &n);
                bytes[what < 2 ? 9 : find_type(bytes, n, types[what], 1) + 40] ^= 0x10;
                /* A fence is known from its leaves, too. */
                unit_save(what == 1 ? data : index, bytes, has_tail ? n : n - (what != 1));
                free(bytes);
                d = NULL;
                if (what < 4)
                    CHECK(deltafs_reopen(copy, NULL, &d) == DELTAFS_ERR_DAMAGED);
                CHECK_IS(repair_run(copy, 1, -1), DELTAFS_OK);
                repair_check_said(what < 4 ? "it is written again" : "it is rebuilt from the data log");
                CHECK_IS(repair_run(copy, 0, -1), DELTAFS_OK);
                repair_check_said(what < 4 ? "it is written again" : "it is rebuilt from the data log");
                repair_check(&m, copy);
                CHECK_IS(deltafs_reopen(copy, NULL, &d), DELTAFS_OK);
                CHECK_IS(deltafs_close(d), DELTAFS_OK);
            }
        model_fini(&m);
    }
}

static void check_restored(struct model *m, const char *copy, const uint8_t *bytes, size_t n)
{
    const char *file = unit_path("manifest_copy/MANIFEST");
    size_t after;
    deltafs_dir *d;
    int has_old = unit_exists(file);

    CHECK(deltafs_open(copy, NULL, &d) != DELTAFS_OK && deltafs_reopen(copy, NULL, &d) != DELTAFS_OK);
    CHECK_IS(repair_run(copy, 1, -1), DELTAFS_OK);
    repair_check_said("MANIFEST: is written again");
    CHECK_IS(repair_run(copy, 0, -1), DELTAFS_OK);
    repair_check_said(has_old ? "saved as MANIFEST.damaged" : "MANIFEST: is written again");
    uint8_t *now = unit_load(file, &after);
    CHECK(after >= n && memcmp(now, bytes, n) == 0);
    free(now);
    /* There is nothing to save of one that was lost. */
    CHECK(!unit_exists(unit_path("manifest_copy/MANIFEST.damaged")) == !has_old);
    repair_check(m, copy);
}

/* A crash may leave anything in place of the last lines of the copy, but not of one that is closed, nor before others.
 */
static void test_torn_copy(void **state)
{
    static const char *const gone[] = {"Epoch number=1", "Epoch number=0"};
    const char *path = unit_path("left"), *copy = unit_path("left_copy"),
               *second = unit_path("left_copy/MANIFEST.copy");
    struct model m = {0};
    size_t n;

    (void)state;
    repair_make_closed(&m, path, 827, 2, 50);
    uint8_t *bytes = unit_load(unit_path("left/MANIFEST"), &n);
    size_t close = (size_t)((uint8_t *)memmem(bytes, n, "\nclose ", 7) - bytes) + 1;
    for (int is_closed = 0; is_closed < 2; is_closed++)
        for (int k = 0; k < 2; k++) {
            struct deltafs_verify_counts counts = {.struct_size = sizeof counts};
            size_t at = (size_t)((uint8_t *)memmem(bytes, n, gone[k], 14) - bytes);
            int is_torn = k == 0 && !is_closed;
            deltafs_dir *d;
            repair_copy(path, copy);
            if (!is_closed)
                unit_cut_manifest(copy, close);
            unit_save(second, bytes, is_closed ? n : close);
            unit_poke(second, at, '\0');
            d = unit_open(copy);
            CHECK_CALL(d, deltafs_verify(d, NULL, NULL, &counts), is_torn ? DELTAFS_OK : DELTAFS_ERR_DAMAGED);
            CHECK_IS(counts.damages, !is_torn);
            CHECK_IS(deltafs_close(d), DELTAFS_OK);
        }
    free(bytes);
    model_fini(&m);
}

/* Whatever has become of the manifest, its copy has all of it; and the other way round. */
static void test_manifest(void **state)
{
    const char *path = unit_path("manifest"), *copy = unit_path("manifest_copy"),
               *file = unit_path("manifest_copy/MANIFEST"), *second = unit_path("manifest_copy/MANIFEST.copy");
    struct deltafs_verify_counts counts = {.struct_size = sizeof counts};
    struct model m = {0};
    size_t n, after;

    (void)state;
    repair_make_closed(&m, path, 826, 2, 50);
    uint8_t *bytes = unit_load(unit_path("manifest/MANIFEST"), &n);
    for (size_t at = 0; at < n; at += 1 + at % 7) {
        uint8_t was = bytes[at];
        repair_copy(path, copy);
        unit_poke(file, at, at % 2 && was != '\n' ? '\n' : was ^ 1);
        check_restored(&m, copy, bytes, n);
    }
    for (size_t left = 0; left < n; left += 61) {
        repair_copy(path, copy);
        unit_save(file, bytes, left);
        check_restored(&m, copy, bytes, n);
    }
    repair_copy(path, copy);
    CHECK(unlink(file) == 0);
    check_restored(&m, copy, bytes, n);
    /* A line is left out. */
    uint8_t *line = memmem(bytes, n, "Epoch number=0", 14), *next = memmem(bytes, n, "Epoch number=1", 14);
    uint8_t *other = malloc(n);
    CHECK(line && next && other);
    memcpy(other, bytes, (size_t)(line - bytes));
    memcpy(other + (line - bytes), next, n - (size_t)(next - bytes));
    repair_copy(path, copy);
    unit_save(file, other, n - (size_t)(next - line));
    check_restored(&m, copy, bytes, n);
    free(other);
    /* Different lines of the two are damaged. */
    repair_copy(path, copy);
    unit_poke(file, 20, '#');
    unit_poke(second, n - 20, '#');
    check_restored(&m, copy, bytes, n);

    /* The same line of both, which is not guessed at; or there is no copy. */
    repair_copy(path, copy);
    unit_poke(file, (size_t)(next - bytes) + 20, '#');
    unit_poke(second, (size_t)(next - bytes) + 23, '#');
    CHECK_IS(repair_run(copy, 0, -1), DELTAFS_ERR_DAMAGED);
    repair_check_errmsg("MANIFEST.copy does not help: restore a backup");
    CHECK(unlink(second) == 0);
    CHECK_IS(repair_run(copy, 0, -1), DELTAFS_ERR_DAMAGED);
    repair_check_errmsg("MANIFEST.copy is missing: restore a backup");

    /* The copy is damaged: nothing is lost, but verify says so, and repair writes it again. */
    for (size_t at = 0; at < n; at += 40) {
        repair_copy(path, copy);
        unit_poke(second, at, '#');
        deltafs_dir *d = unit_open(copy);
        CHECK_CALL(d, deltafs_verify(d, NULL, NULL, &counts), DELTAFS_ERR_DAMAGED);
        CHECK(strstr(deltafs_errmsg(d), second) && counts.damages == 1);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        CHECK_IS(repair_run(copy, 1, -1), DELTAFS_OK);
        repair_check_said("a line differs from that in MANIFEST");
        CHECK_IS(repair_run(copy, 0, -1), DELTAFS_OK);
        repair_check(&m, copy);
        uint8_t *now = unit_load(second, &after);
        CHECK(after > n && memcmp(now, bytes, n) == 0);
        free(now);
    }
    free(bytes);
    model_fini(&m);
}

/* A logical file's manifest is not a directory's, damaged or not. (If it was, it was changed, and an epoch was seen.)
 */
static void test_logical(void **state)
{
    const char *path = unit_path("logical"), *file = unit_path("logical/MANIFEST");
    struct container c;
    struct io io = io_default();
    struct error e;
    size_t n, after;

    (void)state;
    CHECK_IS(container_open(&c, &io, path, O_CREAT, 0, &e), DELTAFS_OK);
    container_fini(&c);
    for (int is_damaged = 0; is_damaged < 2; is_damaged++) {
        if (is_damaged)
            unit_poke(file, 20, '#');
        uint8_t *before = unit_load(file, &n);
        for (int dry_run = 1; dry_run >= 0; dry_run--) {
            CHECK_IS(repair_run(path, dry_run, -1), is_damaged ? DELTAFS_ERR_DAMAGED : DELTAFS_ERR_NOT_DELTAFS);
            repair_check_errmsg(is_damaged ? "MANIFEST.copy is missing" : "is a logical file");
            CHECK_IS(repair_said.done, 0);
        }
        uint8_t *now = unit_load(file, &after);
        CHECK(n == after && memcmp(before, now, n) == 0 && !unit_exists(unit_path("logical/MANIFEST.damaged")));
        free(before);
        free(now);
    }
}

/* Epochs that the logs lack, as after a power loss with sync=none, are discarded only by name. */
static void test_drop(void **state)
{
    const char *path = unit_path("drop"), *copy = unit_path("drop_copy"),
               *data = unit_path("drop_copy/01/p00000001.data");
    struct deltafs_repair_options wish = {.struct_size = sizeof wish, .has_drop_from = 1, .drop_from = 3};
    struct model m = {0};
    struct rng r = rng_init(827);
    deltafs_dir *d = repair_create(&m, path);
    size_t n = 0;

    (void)state;
    for (uint64_t epoch = 1; epoch < 5; epoch++) {
        repair_append(&m, d, &r, 300);
        CHECK_CALL(d, deltafs_epoch_end(d, epoch), DELTAFS_OK);
        if (epoch < 3)
            model_keep(&m, epoch);
        else
            model_discard(&m);
        if (epoch == 2)
            free(unit_load(unit_path("drop/01/p00000001.data"), &n));
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    repair_copy(path, copy);
    CHECK_IS(deltafs_repair(copy, &wish, repair_note, NULL), DELTAFS_ERR_NOT_FOUND);
    CHECK(truncate(data, (off_t)n + 100) == 0);
    CHECK_IS(repair_run(copy, 0, -1), DELTAFS_ERR_DAMAGED);
    repair_check_said("from the one labelled 3 on; readers return what they can of them: restore a copy; or, ");
    repair_check_said("discard 2 epochs (epochs that stay: 2) with 'deltafs repair --drop-from 3 ");
    wish.drop_from = 4;
    CHECK_IS(deltafs_repair(copy, &wish, repair_note, NULL), DELTAFS_ERR_LABEL);
    wish.drop_from = 3;
    /* Each time that the manifest is read it can fail. (What was read was freed twice.) */
    for (uint64_t skip = 0, is_failed = 1; is_failed; skip++) {
        wish.dry_run = 1;
        unit_io_begin();
        unit_io_fail(OP_READ, "MANIFEST", skip, 1, EIO);
        int status = deltafs_repair(copy, &wish, repair_note, NULL);
        is_failed = unit_io_failures();
        CHECK_IS(status, is_failed ? DELTAFS_ERR_IO : DELTAFS_OK);
        unit_io_end();
    }
    for (wish.dry_run = 1; wish.dry_run >= 0; wish.dry_run--) {
        memset(&repair_said, 0, sizeof repair_said);
        CHECK_IS(deltafs_repair(copy, &wish, repair_note, NULL), DELTAFS_OK);
        repair_check_said("epoch 3, of 300 records, is discarded");
        repair_check_said("epoch 4, of 300 records, is discarded");
        repair_check_said("saved as MANIFEST.damaged");
    }
    repair_check(&m, copy);
    model_fini(&m);
}

/* Numbers stand in the index alone. */
static void test_hopeless(void **state)
{
    const char *path = unit_path("hopeless"), *index = unit_path("hopeless/01/p00000001.index");
    struct model m = {0};

    (void)state;
    repair_make_closed(&m, path, 830, 1, 500);
    repair_damage(index, 1);
    for (int dry_run = 1; dry_run >= 0; dry_run--) {
        CHECK_IS(repair_run(path, dry_run, -1), DELTAFS_ERR_DAMAGED);
        CHECK_IS(repair_said.failed, 1);
        repair_check_said(index);
    }
    CHECK(!unit_exists(unit_path("hopeless/LEASE")));
    model_fini(&m);
}

/* Counts keys of an epoch that are not found. */
static unsigned count_lost(deltafs_dir *d, uint32_t keys, uint32_t step)
{
    unsigned lost = 0;

    for (uint32_t i = 0; i < keys; i += step) {
        deltafs_records *got = NULL;
        char name[24];
        size_t n = (size_t)snprintf(name, sizeof name, "particle %u", i);
        lost += deltafs_get_bytes(d, name, n, NULL, &got) != DELTAFS_OK;
        deltafs_records_destroy(got);
    }
    return lost;
}

/* An index that is rebuilt has one segment where there were several. A reader that had read leaves of the old one is
 * not misled by them: neither refreshed, nor when it opens a partition's files again, of which it keeps 32 open. */
static void test_warm_reader(void **state)
{
    enum { KEYS = 900000, STEP = 61, PARTITIONS = 33 };
    const char *path = unit_path("warm");
    deltafs_dir *d = unit_create(path, unit_options("memory", "8M", "partitions", "33", "threads", "0", "keys", "bytes",
                                                    "value_size", "0", NULL));
    char name[24];

    (void)state;
    for (uint32_t i = 0; i < KEYS; i++) {
        size_t n = (size_t)snprintf(name, sizeof name, "particle %u", i);
        CHECK_CALL(d, deltafs_append_bytes(d, name, n, NULL, 0), DELTAFS_OK);
    }
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    deltafs_dir *fresh = unit_open(path), *stale = unit_open(path);
    CHECK_IS(count_lost(fresh, KEYS, STEP), 0);
    CHECK_IS(count_lost(stale, KEYS, STEP), 0);
    for (int p = 0; p < PARTITIONS; p++)
        CHECK(unlink(unit_path("warm/%02x/p%08x.index", p, p)) == 0);
    CHECK_IS(repair_run(path, 0, -1), DELTAFS_OK);
    CHECK_CALL(fresh, deltafs_refresh(fresh), DELTAFS_OK);
    CHECK_IS(count_lost(fresh, KEYS, STEP), 0);
    CHECK_IS(count_lost(stale, KEYS, STEP), 0);
    CHECK_IS(deltafs_close(fresh), DELTAFS_OK);
    CHECK_IS(deltafs_close(stale), DELTAFS_OK);
}

/* All that the line of an epoch counts on is on storage before it is written, though the job synced nothing; if that
 * fails, no line is written, and nothing is repair_said to be done. */
static void test_durable(void **state)
{
    const char *path = unit_path("durable"), *other = unit_path("durable_copy");
    static const char *const files[] = {"p00000000.data", "p00000002.index", "MANIFEST"};
    struct rng r = rng_init(860);
    struct model m = {0};
    size_t before, after;

    (void)state;
    repair_make_unfinished(&m, path, &r);
    model_keep(&m, 30);
    for (int i = 0; i < 3; i++) {
        repair_copy(path, other);
        unit_io_begin();
        unit_io_fail(OP_SYNC, files[i], 0, 1, EIO);
        CHECK_IS(repair_run(other, 0, -1), DELTAFS_ERR_IO);
        CHECK_IS(unit_io_failures(), 1);
        CHECK_IS(repair_said.done, 0);
        unit_io_fail(OP_SYNC, files[i], 0, 0, 0);
        unit_io_end();
        uint8_t *text = unit_load(unit_path("durable_copy/MANIFEST"), &after);
        CHECK(!memmem(text, after, "Epoch number=2", 14));
        free(text);
        free(unit_load(unit_path("durable/MANIFEST"), &before));
        CHECK_IS(after, before - (i == 2 ? 9 : 0));
        CHECK_IS(repair_run(other, 0, -1), DELTAFS_OK);
        repair_check_said("2000 records labelled 30");
        repair_check(&m, other);
    }
    model_fini(&m);
}

/* Whatever fails when the manifest is read, what the job noted is there for the next attempt. (It was not where the
 * manifest could be read only before the lease was taken: then the epoch was truncated.) */
static void test_unread(void **state)
{
    static const enum unit_op ops[] = {OP_OPEN, OP_READ};
    const char *path = unit_path("unread"), *other = unit_path("unread_copy");
    struct rng r = rng_init(865);
    struct model m = {0};

    (void)state;
    repair_make_unfinished(&m, path, &r);
    model_keep(&m, 30);
    for (int i = 0; i < 2; i++)
        for (uint64_t skip = 0; skip < 3; skip++) {
            repair_copy(path, other);
            unit_io_begin();
            unit_io_fail(ops[i], "MANIFEST", skip, 1, EIO);
            int status = repair_run(other, 0, -1);
            unit_io_end();
            /* The copy is not needed for reading. */
            CHECK(status == DELTAFS_ERR_IO || (status == DELTAFS_OK && i == 0 && skip == 1));
            if (status != DELTAFS_OK)
                CHECK_IS(repair_run(other, 0, -1), DELTAFS_OK);
            repair_check_said("2000 records labelled 30");
        }
    repair_check(&m, other);
    model_fini(&m);
}

/* A directory that is sound and closed is not touched. */
static void test_sound(void **state)
{
    const char *path = unit_path("sound"), *copy = unit_path("sound_copy");
    const char *index = unit_path("sound_copy/01/p00000001.index");
    struct model m = {0};
    deltafs_dir *d;
    size_t n, more;

    (void)state;
    repair_make_closed(&m, path, 870, 1, 500);
    uint8_t *before = unit_load(unit_path("sound/MANIFEST"), &n);
    CHECK_IS(repair_run(path, 0, -1), DELTAFS_OK);
    CHECK_IS(repair_said.done, 0);
    uint8_t *after = unit_load(unit_path("sound/MANIFEST"), &more);
    CHECK(n == more && memcmp(before, after, n) == 0 && !unit_exists(unit_path("sound/LEASE")));
    free(before);
    free(after);

    /* One that lacks a tail is. */
    repair_copy(path, copy);
    d = unit_open(copy);
    free(unit_load(index, &n));
    CHECK(truncate(index, (off_t)n - 1) == 0);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(repair_run(copy, 1, -1), DELTAFS_OK);
    CHECK_IS(repair_said.done, 1);
    CHECK_IS(repair_run(copy, 0, -1), DELTAFS_OK);
    repair_check(&m, copy);
    model_fini(&m);
}

/* What a job has in its environment is about other directories; but not how much memory there is. */
static void test_environment(void **state)
{
    const char *path = unit_path("environment"), *other = unit_path("environment_copy");
    struct deltafs_repair_options wish = {.struct_size = sizeof wish, .has_lease = 1, .lease = 0};
    struct rng r = rng_init(880);
    struct model m = {0};
    FILE *f;

    (void)state;
    repair_make_unfinished(&m, path, &r);
    model_keep(&m, 30);
    repair_copy(path, other);
    setenv("DELTAFS_PARTITIONS", "7", 1);
    setenv("DELTAFS_KEYS", "bytes", 1);
    setenv("DELTAFS_SCHEMA", "x:f4", 1);
    CHECK_IS(repair_run(other, 0, -1), DELTAFS_OK);
    unsetenv("DELTAFS_PARTITIONS");
    unsetenv("DELTAFS_KEYS");
    unsetenv("DELTAFS_SCHEMA");
    repair_check(&m, other);

    repair_copy(path, other);
    CHECK((f = fopen(unit_path("environment_copy/LEASE"), "w")) != NULL);
    fprintf(f, "host=elsewhere pid=1 job=- session=01234567-89ab-4def-8123-456789abcdef renewed=%020llu\n",
            (unsigned long long)time(NULL));
    fclose(f);
    CHECK_IS(repair_run(other, 0, -1), DELTAFS_ERR_BUSY);
    CHECK_IS(repair_said.done, 0);
    CHECK_IS(deltafs_repair(other, &wish, repair_note, NULL), DELTAFS_OK);
    model_fini(&m);
}

/* Within the memory of the option an index is made of several segments, as a writer does; nothing is left of one that
 * cannot be made. */
static void test_rebuild_memory(void **state)
{
    enum { KEYS = 1500000, STEP = 997 };
    const char *path = unit_path("memory"), *index = unit_path("memory/00/p00000000.index");
    struct deltafs_verify_counts counts = {.struct_size = sizeof counts};
    char name[24];

    (void)state;
    for (int is_small = 1; is_small >= 0; is_small--) {
        unit_remove(path);
        deltafs_dir *d = unit_create(path, unit_options("memory", is_small ? "8M" : "512M", "threads", "0", "keys",
                                                        "bytes", "value_size", "0", NULL));
        for (uint32_t i = 0; i < KEYS; i++) {
            size_t n = (size_t)snprintf(name, sizeof name, "particle %u", i);
            CHECK_CALL(d, deltafs_append_bytes(d, name, n, NULL, 0), DELTAFS_OK);
        }
        CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        CHECK(unlink(index) == 0);
        setenv("DELTAFS_MEMORY", "8M", 1);
        int status = repair_run(path, 0, -1);
        unsetenv("DELTAFS_MEMORY");
        CHECK(!unit_exists(unit_path("memory/00/p00000000.index.new")));
        if (!is_small) { /* its runs are larger than that memory */
            CHECK_IS(status, DELTAFS_ERR_MEMORY);
            repair_check_errmsg("option memory");
            continue;
        }
        CHECK_IS(status, DELTAFS_OK);
        d = unit_open(path);
        CHECK_CALL(d, deltafs_verify(d, NULL, NULL, &counts), DELTAFS_OK);
        CHECK_IS(counts.records, KEYS);
        CHECK_IS(count_lost(d, KEYS, STEP), 0);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unfinished),     cmocka_unit_test(test_torn),        cmocka_unit_test(test_rebuild),
        cmocka_unit_test(test_lossy),          cmocka_unit_test(test_restore),     cmocka_unit_test(test_torn_copy),
        cmocka_unit_test(test_manifest),       cmocka_unit_test(test_logical),     cmocka_unit_test(test_drop),
        cmocka_unit_test(test_hopeless),       cmocka_unit_test(test_warm_reader), cmocka_unit_test(test_durable),
        cmocka_unit_test(test_unread),         cmocka_unit_test(test_sound),       cmocka_unit_test(test_environment),
        cmocka_unit_test(test_rebuild_memory),
    };

    return cmocka_run_group_tests(tests, repair_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
