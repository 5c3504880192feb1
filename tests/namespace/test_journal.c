/* Journals as files: what a commit appends, and what is left of it after a crash or damage. */
#include <errno.h>
#include "namespace/journal.h"
#include "unit_help.h"
#include "unit_kth.h"

#define GROUPS 4
#define TABLE  7

/* Commits of 1, 2, ... records, with labels 10, 20, ...; ends[i] is where commit i ends. */
static uint8_t *make_groups(int sync, size_t ends[GROUPS], size_t *n)
{
    const char *path = unit_path("groups");
    struct io io = io_default();
    struct journal j = {.table = TABLE};
    struct error e;

    for (uint64_t i = 0; i < GROUPS; i++) {
        for (uint64_t k = 0; k <= i; k++)
            CHECK_IS(journal_put(&j, k & 1 ? JOURNAL_CHUNK : JOURNAL_ENTRY, 100 - k, "record", 6, &e), DELTAFS_OK);
        CHECK_IS(journal_commit(&j, &io, path, 10 * i + 10, sync, &e), DELTAFS_OK);
        ends[i] = j.end;
    }
    CHECK_IS(journal_close(&j, &e), DELTAFS_OK);
    uint8_t *bytes = unit_load(path, n);
    CHECK_IS(*n, ends[GROUPS - 1]);
    unit_remove(path);
    return bytes;
}

/* What is read has the first so many commits, with the right records. */
static void check_groups(const uint8_t *bytes, size_t n, size_t groups)
{
    struct journal j;
    struct error e;
    size_t entries = 0, chunks = 0, count;

    for (size_t i = 0; i < groups; i++) {
        entries += i / 2 + 1;
        chunks += (i + 1) / 2;
    }
    CHECK_IS(journal_parse(&j, "journal", bytes, n, TABLE, &e), DELTAFS_OK);
    CHECK_IS(j.last_label, 10 * groups);
    const struct journal_record *r = journal_find(&j, JOURNAL_ENTRY, 0, UINT64_MAX, &count);
    CHECK_IS(count, entries);
    for (size_t i = 0; i < count; i++)
        CHECK(r[i].size == 6 && memcmp(journal_bytes(&j, &r[i]), "record", 6) == 0 &&
              (i == 0 || r[i].key > r[i - 1].key || (r[i].key == r[i - 1].key && r[i].label > r[i - 1].label)));
    journal_find(&j, JOURNAL_CHUNK, 99, 99, &count);
    CHECK_IS(count, groups > 0 ? groups - 1 : 0);
    journal_find(&j, JOURNAL_CHUNK, 101, UINT64_MAX, &count);
    CHECK_IS(count, 0);
    journal_drop(&j, 10);
    journal_find(&j, JOURNAL_ENTRY, 0, UINT64_MAX, &count);
    CHECK_IS(count, entries - (entries > 0));
    CHECK_IS(j.last_label, groups > 1 ? 10 * groups : 0);
    journal_fini(&j);
    CHECK_IS(journal_parse(&j, "journal", bytes, n, TABLE + 1, &e), groups > 0 ? DELTAFS_ERR_DAMAGED : DELTAFS_OK);
    journal_fini(&j);
}

/* A commit that a crash has interrupted does not count, wherever it was, and whatever follows it. */
static void interrupted_commits(void **state)
{
    size_t ends[GROUPS], n, whole = 0;
    uint8_t *bytes = make_groups(1, ends, &n), *tail = malloc(n + 100);

    (void)state;
    for (size_t cut = 0; cut <= n; cut++) {
        whole += whole < GROUPS && cut == ends[whole];
        check_groups(bytes, cut, whole);
        memcpy(tail, bytes, cut);
        memset(tail + cut, 0, n + 100 - cut);
        if (cut == 0 || tail[cut - 1] != 0 || (whole > 0 && cut == ends[whole - 1]))
            check_groups(tail, n + 100, whole);
    }
    free(tail);
    free(bytes);
}

/* One wrong byte: of the last commit it may be from a crash; before that it is damage, unless nothing was synced. */
static void damaged_commits(void **state)
{
    struct journal j;
    struct error e;
    char offset[32];

    (void)state;
    for (int sync = 0; sync < 2; sync++) {
        size_t ends[GROUPS], n, group = 0;
        uint8_t *bytes = make_groups(sync, ends, &n);
        for (size_t at = 0; at < n; at++) {
            group += at == ends[group];
            bytes[at] ^= 0x40;
            if (!sync || group == GROUPS - 1) {
                check_groups(bytes, n, group);
            } else {
                CHECK_IS(journal_parse(&j, "the/journal", bytes, n, TABLE, &e), DELTAFS_ERR_DAMAGED);
                snprintf(offset, sizeof offset, " %zu", group > 0 ? ends[group - 1] : 0);
                CHECK(strstr(e.text, "the/journal") && strstr(e.text, offset));
                journal_fini(&j);
            }
            bytes[at] ^= 0x40;
        }
        free(bytes);
    }
}

/* One wrong byte in a commit costs this commit only, and what is kept is a journal without damage. */
static void salvaged_commits(void **state)
{
    size_t ends[GROUPS], n, group = 0, lost, count;
    uint8_t *bytes = make_groups(1, ends, &n), *kept = malloc(n);
    struct journal j;
    struct error e;

    (void)state;
    for (size_t at = 0; at < n; at++) {
        group += at == ends[group];
        size_t begin = group > 0 ? ends[group - 1] : 0, size = ends[group] - begin;
        bytes[at] ^= 0x40;
        CHECK_IS(journal_salvage(&j, "journal", bytes, n, TABLE, &lost, &e), DELTAFS_OK);
        bytes[at] ^= 0x40;
        CHECK_IS(lost, size);
        CHECK_IS(j.end, n - size);
        memcpy(kept, bytes, begin);
        memcpy(kept + begin, bytes + ends[group], n - ends[group]);
        CHECK(memcmp(j.bytes.bytes, kept, j.end) == 0);
        journal_fini(&j);
        CHECK_IS(journal_parse(&j, "journal", kept, n - size, TABLE, &e), DELTAFS_OK);
        CHECK_IS(j.last_label, group == GROUPS - 1 ? 10 * (GROUPS - 1) : 10 * GROUPS);
        journal_find(&j, JOURNAL_ENTRY, 0, UINT64_MAX, &count);
        CHECK_IS(count, 6 - (group / 2 + 1)); /* of all four commits: 1 + 1 + 2 + 2 */
        journal_fini(&j);
    }
    CHECK_IS(journal_salvage(&j, "journal", bytes, n, TABLE + 1, &lost, &e), DELTAFS_OK);
    CHECK_IS(lost, n);
    CHECK_IS(j.end, 0);
    journal_fini(&j);
    free(kept);
    free(bytes);
}

static void check_lookup(struct journal *j, const struct journal_record *model, size_t models, int kind, uint64_t key,
                         uint64_t high)
{
    size_t count, want[2] = {0}, found[2] = {0};
    uint64_t labels[2] = {0};

    for (const struct journal_record *m = model; m < model + models; m++) {
        want[0] += m->kind == kind && m->key == key;
        want[1] += m->kind == kind && m->key >= key && m->key <= high;
        labels[0] += m->kind == kind && m->key == key ? m->label : 0;
    }
    for (const struct journal_record *r = NULL; (r = journal_get(j, kind, key, r)) != NULL; found[0]++) {
        CHECK(r->kind == kind && r->key == key && r->size == 8 && memcmp(journal_bytes(j, r), &key, 8) == 0);
        labels[1] += r->label;
    }
    CHECK(found[0] == want[0] && labels[0] == labels[1]);
    if (high == key)
        return;
    const struct journal_record *r = journal_find(j, kind, key, high, &count);
    CHECK_IS(count, want[1]);
    for (size_t i = 1; i < count; i++)
        CHECK(r[i].key > r[i - 1].key || (r[i].key == r[i - 1].key && r[i].label >= r[i - 1].label));
}

/* Records are found by key and by range, while more are committed, aborted and left out. */
static void lookups(void **state)
{
    static struct journal_record model[20000];
    struct rng r = rng_init(27);
    const char *path = unit_path("lookups");
    struct io io = io_default();
    struct journal j = {.table = TABLE};
    struct error e;
    size_t models = 0;

    (void)state;
    for (uint64_t label = 1; label <= 400; label++) {
        size_t n = (size_t)rng_below(&r, label % 10 == 0 ? 200 : 4), before = models;
        for (size_t i = 0; i < n; i++) {
            uint64_t key = rng_below(&r, 500);
            int kind = rng_below(&r, 2) ? JOURNAL_ENTRY : JOURNAL_CHUNK;
            CHECK_IS(journal_put(&j, kind, key, &key, 8, &e), DELTAFS_OK);
            model[models++] = (struct journal_record){.key = key, .label = label, .kind = (uint8_t)kind};
        }
        if (rng_below(&r, 5) == 0) {
            journal_abort(&j);
            models = before;
        }
        CHECK_IS(journal_commit(&j, &io, path, label, 0, &e), DELTAFS_OK);
        for (int i = 0; i < 3; i++) {
            uint64_t key = rng_below(&r, 500);
            check_lookup(&j, model, models, rng_below(&r, 2) ? JOURNAL_ENTRY : JOURNAL_CHUNK, key,
                         key + (rng_below(&r, 10) == 0 ? 20 : 0));
        }
        if (label != 200)
            continue;
        journal_drop(&j, 100);
        size_t left = 0;
        for (size_t i = 0; i < models; i++)
            if (model[i].label > 100)
                model[left++] = model[i];
        models = left;
    }
    CHECK_IS(journal_close(&j, &e), DELTAFS_OK);
}

/* The bytes of a file can be those of a journal: of another one, or of this one as it was before, also when it was
 * closed. (A commit with such a file that was interrupted was taken for damage.) */
static void journals_in_files(void **state)
{
    struct io io = io_default();
    struct error e;
    size_t ends[GROUPS], n, closed_size;
    uint8_t *copy = make_groups(1, ends, &n);

    (void)state;
    for (uint64_t table = TABLE; table < TABLE + 2; table++) {
        const char *path = unit_path("in file %d", (int)table);
        struct journal j = {.table = table};
        CHECK_IS(journal_put(&j, JOURNAL_ENTRY, 1, "record", 6, &e), DELTAFS_OK);
        CHECK_IS(journal_commit(&j, &io, path, 10 * GROUPS, 1, &e), DELTAFS_OK);
        CHECK_IS(journal_seal(&j, &e), DELTAFS_OK);
        uint8_t *closed = unit_load(path, &closed_size);
        CHECK_IS(journal_put(&j, JOURNAL_CHUNK, 1, copy, ends[GROUPS - 1], &e), DELTAFS_OK);
        CHECK_IS(journal_put(&j, JOURNAL_CHUNK, 2, closed, closed_size, &e), DELTAFS_OK);
        free(closed);
        CHECK_IS(journal_put(&j, JOURNAL_ENTRY, 1, "record", 6, &e), DELTAFS_OK);
        CHECK_IS(journal_commit(&j, &io, path, 10 * GROUPS + 1, 1, &e), DELTAFS_OK);
        CHECK_IS(journal_close(&j, &e), DELTAFS_OK);
        uint8_t *bytes = unit_load(path, &n);
        CHECK_IS(journal_parse(&j, "journal", bytes, n - 1, table, &e), DELTAFS_OK);
        CHECK_IS(j.last_label, 10 * GROUPS);
        journal_fini(&j);
        free(bytes);
    }
    free(copy);
}

/* Sound commits that no writer makes. */
static void hostile_commits(void **state)
{
    struct io io = io_default();
    struct journal j = {.table = TABLE};
    struct error e;

    (void)state;
    for (int i = 0; i < 3; i++) {
        const char *path = unit_path("hostile%d", i);
        CHECK_IS(journal_put(&j, i == 0 ? 3 : JOURNAL_ENTRY, 1, "record", 6, &e), DELTAFS_OK);
        if (i == 1)
            j.bytes.bytes[j.end + JOURNAL_HEADER_SIZE + 1]++; /* the size of the record */
        CHECK_IS(journal_commit(&j, &io, path, 10, 1, &e), DELTAFS_OK);
        CHECK_IS(journal_put(&j, JOURNAL_ENTRY, 1, "record", 6, &e), DELTAFS_OK);
        CHECK_IS(journal_commit(&j, &io, path, i == 2 ? 10 : 11, 1, &e), DELTAFS_OK);
        CHECK_IS(journal_close(&j, &e), DELTAFS_OK);
        CHECK_IS(journal_read(&j, &io, path, TABLE, &e), DELTAFS_ERR_DAMAGED);
        journal_fini(&j);
    }
}

/* A commit that fails leaves none of it; and one with too much is none for a journal. */
static void failing_commits(void **state)
{
    const char *path = unit_path("failing");
    struct journal j = {.table = TABLE}, read;
    static uint8_t large[JOURNAL_GROUP_MAX];
    struct error e;

    (void)state;
    for (uint64_t k = 0, label = 0; k < 8; k++) {
        struct io io;
        unit_kth_begin(&io, k, EIO);
        j = (struct journal){.table = TABLE};
        int status = DELTAFS_OK;
        for (label = 0; label < 2 && status == DELTAFS_OK; label++) {
            CHECK_IS(journal_put(&j, JOURNAL_ENTRY, 1, "record", 6, &e), DELTAFS_OK);
            status = journal_commit(&j, &io, path, label + 1, 1, &e);
        }
        uint64_t committed = status == DELTAFS_OK ? 2 : label - 1;
        journal_close(&j, error_ignored());
        CHECK(unit_kth_end() == (status != DELTAFS_OK) || committed == 2);
        io = io_default();
        CHECK_IS(journal_read(&read, &io, path, TABLE, &e), DELTAFS_OK);
        CHECK_IS(read.last_label, committed);
        journal_fini(&read);
        if (unit_exists(path))
            unit_remove(path);
    }
    CHECK_IS(journal_put(&j, JOURNAL_CHUNK, 1, large, sizeof large, &e), DELTAFS_OK);
    CHECK(j.is_full);
    journal_abort(&j);
    CHECK(!j.is_full);
    journal_fini(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(interrupted_commits), cmocka_unit_test(damaged_commits),
                                       cmocka_unit_test(salvaged_commits),    cmocka_unit_test(lookups),
                                       cmocka_unit_test(journals_in_files),   cmocka_unit_test(hostile_commits),
                                       cmocka_unit_test(failing_commits)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
