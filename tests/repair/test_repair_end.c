/* Repair: which epoch was the last one, where the manifest's end, the logs and the note of the job that died differ. */
#include <unistd.h>
#include "directory/format/directory_format.h"
#include "unit_repair.h"

/* Cut the manifest before the line of epoch `number`, and lose its copy. */
static void cut_manifest(const char *file, unsigned number)
{
    char line[32], name[310];
    size_t n;

    snprintf(name, sizeof name, "%s.copy", file);
    CHECK(unlink(name) == 0);
    uint8_t *bytes = unit_load(file, &n);

    snprintf(line, sizeof line, "Epoch number=%u", number);
    uint8_t *at = memmem(bytes, n, line, strlen(line));
    CHECK(at != NULL);
    unit_save(file, bytes, (size_t)(at - bytes));
    free(bytes);
}

static int verify(const char *path)
{
    struct deltafs_verify_counts stat = {.struct_size = sizeof stat};
    deltafs_dir *d = unit_open(path);

    memset(&repair_said, 0, sizeof repair_said);
    int status = deltafs_verify(d, repair_note, NULL, &stat);
    CHECK_IS(repair_said.failed, stat.damages);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    return status;
}

/* Three epochs, labelled 10, 20, 30; with their tails, or as a job that died has left them. */
static void make_three(struct model *m, const char *path, int is_closed)
{
    struct rng r = rng_init(831);
    const char *copy = unit_path("three");
    deltafs_dir *d;

    unit_remove(path);
    d = repair_create(m, path);
    for (uint64_t epoch = 1; epoch <= 3; epoch++) {
        repair_append(m, d, &r, 200);
        CHECK_CALL(d, deltafs_epoch_end(d, 10 * epoch), DELTAFS_OK);
        model_keep(m, 10 * epoch);
    }
    if (!is_closed)
        unit_copy(path, copy);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    if (is_closed)
        return;
    unit_remove(path);
    CHECK(rename(copy, path) == 0);
    CHECK(unlink(unit_path("end/LEASE")) == 0);
}

/* Nothing is truncated unasked. */
static void check_refused(const char *copy, unsigned missing)
{
    const char *index = unit_path("end_copy/01/p00000001.index");
    deltafs_dir *d = NULL;
    size_t n, after;
    uint8_t *before = unit_load(index, &n);

    CHECK_IS(verify(copy), DELTAFS_ERR_DAMAGED);
    CHECK_IS(repair_said.failed, 1);
    repair_check_said("the manifest has lines of");
    CHECK_IS(deltafs_reopen(copy, NULL, &d), DELTAFS_ERR_DAMAGED);
    repair_check_errmsg("put a copy of MANIFEST back");
    for (int dry_run = 1; dry_run >= 0; dry_run--) {
        CHECK_IS(repair_run(copy, dry_run, -1), DELTAFS_ERR_DAMAGED);
        repair_check_said(missing == 1 ? "has lost the line of at least 1 committed epoch"
                                       : "has lost the lines of at least");
        repair_check_said("('deltafs repair --label L ");
        CHECK_IS(repair_said.done, 0);
    }
    uint8_t *now = unit_load(index, &after);
    CHECK(n == after && memcmp(before, now, n) == 0);
    free(before);
    free(now);
}

/* A manifest that has lost its end, more than a crash takes. (Reopening and repair_run cut the logs off, and verify
 * found nothing wrong.) */
static void test_manifest_end(void **state)
{
    const char *path = unit_path("end"), *copy = unit_path("end_copy"), *file = unit_path("end_copy/MANIFEST");
    struct deltafs_repair_options wish = {.struct_size = sizeof wish, .has_drop_from = 1};

    (void)state;
    for (int is_closed = 0; is_closed < 2; is_closed++) {
        /* Of one that was not closed the last epoch may be one that has no commit yet. */
        unsigned known = is_closed ? 3 : 2;
        struct model m = {0};
        make_three(&m, path, is_closed);
        for (unsigned left = 0; left < known; left++) {
            repair_copy(path, copy);
            cut_manifest(file, left);
            check_refused(copy, known - left);
            /* With its labels, one after the other, all of it is back. (The last one, of which nothing in the logs says
             * that it was committed, was truncated.) */
            for (unsigned epoch = left; epoch < 3; epoch++) {
                CHECK_IS(repair_run(copy, 1, 10 * epoch + 10), DELTAFS_OK);
                CHECK_IS(repair_run(copy, 0, 10 * epoch + 10), DELTAFS_OK);
                repair_check_said("is committed: 200 records labelled");
                if (epoch < known)
                    repair_check_said("attributes that were set after the last line that is left are lost, too");
                if (epoch < 2)
                    repair_check_said("stays as it is");
            }
            repair_check(&m, copy);
        }
        /* Given up by name. */
        repair_copy(path, copy);
        cut_manifest(file, 1);
        wish.drop_from = 10;
        CHECK_IS(deltafs_repair(copy, &wish, repair_note, NULL), DELTAFS_ERR_LABEL);
        repair_check_errmsg("give any higher label");
        wish.drop_from = 11;
        for (wish.dry_run = 1; wish.dry_run >= 0; wish.dry_run--) {
            memset(&repair_said, 0, sizeof repair_said);
            CHECK_IS(deltafs_repair(copy, &wish, repair_note, NULL), DELTAFS_OK);
            repair_check_said(is_closed ? "at least 2 committed epochs are discarded"
                                        : "at least 1 committed epoch is discarded");
        }
        CHECK_IS(verify(copy), DELTAFS_OK);
        CHECK_IS(repair_run(copy, 1, -1), DELTAFS_OK);
        CHECK_IS(repair_said.done, 0);
        model_fini(&m);
    }
}

/* Lines of two epochs are lost, and the job had noted that the last one was finished: with a label for the first of
 * them the other is committed by what was noted. (It was truncated.) */
static void test_manifest_end_noted(void **state)
{
    const char *path = unit_path("ends"), *copy = unit_path("ends_copy");
    struct model m = {0};
    struct rng r = rng_init(832);
    deltafs_dir *d = repair_create(&m, path);

    (void)state;
    for (uint64_t epoch = 1; epoch <= 3; epoch++) {
        repair_append(&m, d, &r, 200);
        CHECK_CALL(d, deltafs_epoch_end(d, 10 * epoch), DELTAFS_OK);
        model_keep(&m, 10 * epoch);
    }
    unit_copy(path, copy);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    cut_manifest(unit_path("ends_copy/MANIFEST"), 1);
    CHECK_IS(deltafs_reopen(copy, NULL, &d), DELTAFS_ERR_DAMAGED);
    for (int dry_run = 1; dry_run >= 0; dry_run--) {
        CHECK_IS(repair_run(copy, dry_run, 20), DELTAFS_OK);
        repair_check_said("is committed: 200 records labelled 20");
        repair_check_said("stays as it is");
    }
    CHECK_IS(repair_run(copy, 0, -1), DELTAFS_OK);
    repair_check_said("is committed: 200 records labelled 30");
    repair_check(&m, copy);
    model_fini(&m);
}

/* A copy of the manifest from before the last job, which committed one epoch and died: that it says closed, and there
 * is an epoch behind, says. (The epoch was truncated.) But a footer that stands where it should not is no tail's. */
static void test_manifest_old(void **state)
{
    const char *path = unit_path("old"), *copy = unit_path("old_copy"), *file = unit_path("old_copy/MANIFEST"),
               *index = unit_path("old_copy/00/p00000000.index");
    struct model m = {0};
    struct rng r = rng_init(833);
    deltafs_dir *d = NULL;
    size_t n, size;

    (void)state;
    repair_make_closed(&m, path, 834, 2, 100);
    uint8_t *before = unit_load(unit_path("old/MANIFEST"), &n);
    CHECK_IS(deltafs_reopen(path, NULL, &d), DELTAFS_OK);
    repair_append(&m, d, &r, 100);
    CHECK_CALL(d, deltafs_epoch_end(d, 3), DELTAFS_OK);
    model_keep(&m, 3);
    unit_copy(path, copy);
    uint8_t *now = unit_load(file, &size);
    unit_save(file, before, n);
    CHECK(unlink(unit_path("old_copy/MANIFEST.copy")) == 0);
    CHECK_IS(verify(copy), DELTAFS_ERR_DAMAGED);
    repair_check_said("its end is lost");
    deltafs_dir *again = NULL;
    CHECK_IS(deltafs_reopen(copy, NULL, &again), DELTAFS_ERR_DAMAGED);
    CHECK_IS(repair_run(copy, 0, -1), DELTAFS_ERR_DAMAGED);
    CHECK_IS(repair_run(copy, 0, 3), DELTAFS_OK);
    repair_check(&m, copy);
    free(before);
    before = (uint8_t *)memmem(now, size, "Epoch number=2", 14);
    CHECK(before != NULL);
    repair_copy(path, copy);
    unit_cut_manifest(copy, (size_t)(before - now));
    free(now);
    uint8_t *log = unit_load(index, &size);
    log = realloc(log, size + FOOTER_SIZE);
    CHECK(log != NULL);
    memcpy(log + size, log + size - FOOTER_SIZE, FOOTER_SIZE);
    unit_save(index, log, size + FOOTER_SIZE);
    free(log);
    CHECK_IS(verify(copy), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    model_fini(&m);
}

/* Logs of bytes that are older than the manifest: the epochs that they lack can be discarded, too. (It was repair_said
 * that the logs have all.) */
static void test_logs_old(void **state)
{
    const char *path = unit_path("older"), *copy = unit_path("older_copy");
    struct deltafs_repair_options wish = {.struct_size = sizeof wish, .has_drop_from = 1, .drop_from = 2, .dry_run = 1};
    struct model m = {.is_bytes = 1};
    struct rng r = rng_init(835);
    deltafs_dir *d = repair_create(&m, path);
    size_t n;

    (void)state;
    repair_append(&m, d, &r, 300);
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    model_keep(&m, 1);
    unit_copy(path, copy);
    for (uint64_t epoch = 2; epoch < 4; epoch++) {
        repair_append(&m, d, &r, 300);
        CHECK_CALL(d, deltafs_epoch_end(d, epoch), DELTAFS_OK);
        model_discard(&m);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    uint8_t *manifest = unit_load(unit_path("older/MANIFEST"), &n);
    unit_save(unit_path("older_copy/MANIFEST"), manifest, n);
    free(manifest);
    CHECK_IS(repair_run(copy, 1, -1), DELTAFS_ERR_DAMAGED);
    repair_check_said("discard 2 epochs (epochs that stay: 1) with 'deltafs repair --drop-from 2 ");
    for (; wish.dry_run >= 0; wish.dry_run--) {
        memset(&repair_said, 0, sizeof repair_said);
        CHECK_IS(deltafs_repair(copy, &wish, repair_note, NULL), DELTAFS_OK);
        repair_check_said("epoch 3, of 300 records, is discarded");
    }
    repair_check(&m, copy);
    model_fini(&m);
}

/* Replace what follows `name` in a file, a text, by as many other digits. */
static void change_number(const char *path, const char *name)
{
    size_t n;
    uint8_t *bytes = unit_load(path, &n);
    char *at = memmem(bytes, n, name, strlen(name));

    CHECK(at != NULL);
    at += strlen(name);
    while (at[1] >= '0' && at[1] <= '9')
        at++;
    *at = *at == '9' ? '8' : (char)(*at + 1);
    unit_save(path, bytes, n);
    free(bytes);
}

/* Who reopens such a directory cuts the epoch off, and is told so; but if he cannot, then what the job noted is there
 * still for repair_run. (It was repair_said to nobody; and the repair_note went with the lease of a reopening that
 * failed.) */
static void test_reopened_instead(void **state)
{
    const char *path = unit_path("instead"), *other = unit_path("instead_copy");
    const char *log = unit_path("instead_copy/01/p00000001.data");
    struct model m = {0};
    struct rng r = rng_init(805);
    deltafs_dir *d = NULL;
    uint64_t last;

    (void)state;
    repair_make_unfinished(&m, path, &r);
    repair_copy(path, other);
    CHECK(rename(log, unit_path("elsewhere")) == 0);
    CHECK_IS(deltafs_reopen(other, NULL, &d), DELTAFS_ERR_DAMAGED);
    CHECK_IS(deltafs_reopen(other, NULL, &d), DELTAFS_ERR_DAMAGED);
    CHECK(rename(unit_path("elsewhere"), log) == 0);
    CHECK_IS(repair_run(other, 0, -1), DELTAFS_OK);
    repair_check_said("is committed: 2000 records labelled 30");
    CHECK_IS(deltafs_reopen(other, NULL, &d), DELTAFS_OK);
    CHECK(strcmp(deltafs_errmsg(d), "no error") == 0);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);

    repair_copy(path, other);
    CHECK_IS(deltafs_reopen(other, NULL, &d), DELTAFS_OK);
    CHECK(strstr(deltafs_errmsg(d), "the epoch labelled 30 is discarded"));
    CHECK_CALL(d, deltafs_last_label(d, &last), DELTAFS_OK);
    CHECK_IS(last, 20);
    /* Nothing is left of the note: what this job has not finished, repair must not take for that. */
    size_t n;
    char *lease = (char *)unit_load(unit_path("instead_copy/LEASE"), &n);
    CHECK(n > 0 && strstr(lease, "epoch=18446744073709551615 "));
    free(lease);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK(!unit_exists(unit_path("instead_copy/LEASE")));
    model_discard(&m);
    repair_check(&m, other);
    model_fini(&m);
}

/* The first epoch is no other than those behind it. (Its records were not counted, so it was never whole; and a
 * reopening that failed had begun its logs again.) */
static void test_first(void **state)
{
    const char *path = unit_path("first"), *copy = unit_path("first_copy"), *file = unit_path("first_copy/MANIFEST"),
               *open = unit_path("first_open");
    struct model m = {0};
    struct rng r = rng_init(806);
    deltafs_dir *d = repair_create(&m, path);
    size_t n;

    (void)state;
    repair_append(&m, d, &r, 300);
    CHECK_CALL(d, deltafs_epoch_end(d, 30), DELTAFS_OK);
    model_keep(&m, 30);
    unit_copy(path, open);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    for (int is_reopened = 0; is_reopened < 2; is_reopened++) {
        repair_copy(open, copy);
        uint8_t *bytes = unit_load(file, &n);
        unit_cut_manifest(copy, (size_t)((uint8_t *)memmem(bytes, n, "Epoch number=0", 14) - bytes));
        free(bytes);
        if (is_reopened) {
            CHECK(rename(unit_path("first_copy/02"), unit_path("first_copy/elsewhere")) == 0);
            CHECK(deltafs_reopen(copy, NULL, &d) != DELTAFS_OK);
            CHECK(rename(unit_path("first_copy/elsewhere"), unit_path("first_copy/02")) == 0);
        }
        CHECK_IS(repair_run(copy, 0, -1), DELTAFS_OK);
        repair_check_said("is committed: 300 records labelled 30");
        repair_check(&m, copy);
    }
    model_fini(&m);
}

/* What the job noted counts only if the logs have as much. */
static void test_noted_counts(void **state)
{
    static const char *const fields[] = {" records=", " stored="};
    const char *path = unit_path("noted"), *other = unit_path("noted_copy"), *lease = unit_path("noted_copy/LEASE");
    struct rng r = rng_init(840);
    struct model m = {.is_bytes = 1};

    (void)state;
    repair_make_unfinished(&m, path, &r);
    for (int i = 0; i < 2; i++) {
        repair_copy(path, other);
        change_number(lease, fields[i]);
        CHECK_IS(repair_run(other, 1, -1), DELTAFS_OK);
        repair_check_said("is discarded unless it gets a label");
        CHECK_IS(repair_run(other, 0, 44), DELTAFS_OK);
        repair_check_said("2000 records labelled 44");
    }
    model_fini(&m);
}

/* Where a manifest that is lost must be restored first, a dry run says too that the epoch is going to be discarded. */
static void test_not_noted(void **state)
{
    const char *path = unit_path("not_noted"), *copy = unit_path("not_noted_copy");
    struct rng r = rng_init(845);
    struct model m = {0};

    (void)state;
    repair_make_unfinished(&m, path, &r);
    CHECK(unlink(unit_path("not_noted/MANIFEST")) == 0 && unlink(unit_path("not_noted/LEASE")) == 0);
    for (int dry_run = 1; dry_run >= 0; dry_run--) {
        repair_copy(path, copy);
        CHECK_IS(repair_run(copy, dry_run, -1), DELTAFS_OK);
        repair_check_said("it is restored from MANIFEST.copy");
        repair_check_said("epoch number 2 is in all logs");
    }
    model_fini(&m);
}

/* An epoch that the job had agreed on is there too where an index log must be rebuilt. */
static void test_noted_rebuild(void **state)
{
    const char *path = unit_path("lost"), *other = unit_path("lost_copy");
    struct rng r = rng_init(850);
    struct model m = {.is_bytes = 1};

    (void)state;
    repair_make_unfinished(&m, path, &r);
    model_keep(&m, 30);
    for (int parts = 1; parts <= 3; parts += 2)
        for (int has_note = 0; has_note < 2; has_note++) {
            repair_copy(path, other);
            for (int p = 0; p < parts; p++)
                repair_damage(unit_path("lost_copy/%02x/p%08x.index", p, p), 0);
            if (!has_note)
                CHECK(unlink(unit_path("lost_copy/LEASE")) == 0);
            CHECK_IS(repair_run(other, 1, -1), DELTAFS_OK);
            repair_check_said("it is rebuilt from the data log");
            CHECK_IS(repair_run(other, 0, has_note ? -1 : 30), DELTAFS_OK);
            repair_check_said("2000 records labelled 30");
            CHECK(!strstr(repair_said.text, "is truncated"));
            repair_check(&m, other);
        }
    /* But not where its last block is damaged, or is not all there. */
    for (int how = 0; how < 2; how++) {
        const char *data = unit_path("lost_copy/01/p00000001.data");
        size_t n;
        struct deltafs_stat stat = {.struct_size = sizeof stat};
        repair_copy(path, other);
        repair_damage(unit_path("lost_copy/01/p00000001.index"), 0);
        uint8_t *bytes = unit_load(data, &n);
        bytes[n - 50] ^= 1;
        unit_save(data, bytes, how == 0 ? n : n - 20);
        free(bytes);
        CHECK_IS(repair_run(other, 0, -1), DELTAFS_OK);
        repair_check_said("had no commit, and is not in all logs");
        repair_check_said("lost_copy/01/p00000001.data: data after the last committed epoch is truncated");
        deltafs_dir *d = unit_open(other);
        CHECK_CALL(d, deltafs_stat(d, &stat), DELTAFS_OK);
        CHECK_IS(stat.epochs, 2);
        CHECK_CALL(d,
                   deltafs_verify(d, NULL, NULL,
                                  &(struct deltafs_verify_counts){.struct_size = sizeof(struct deltafs_verify_counts)}),
                   DELTAFS_OK);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
    }
    model_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_manifest_end), cmocka_unit_test(test_manifest_end_noted),
        cmocka_unit_test(test_manifest_old), cmocka_unit_test(test_logs_old),
        cmocka_unit_test(test_noted_counts), cmocka_unit_test(test_reopened_instead),
        cmocka_unit_test(test_first),        cmocka_unit_test(test_noted_rebuild),
        cmocka_unit_test(test_not_noted),
    };

    return cmocka_run_group_tests(tests, repair_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
