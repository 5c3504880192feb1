/* Directories with indexes by value to which something happens: the power goes or the process ends at some file
 * operation, an operation fails, the index cannot be read, or its files are damaged. A directory has then what its
 * calls returned; a select gives the same rows as a plain list, with the index and without it; and after all that a job
 * goes on, and the index can be completed.
 *
 *     torture-index [--count N] [--seed S] [--case I] [--folder DIR]
 *
 * Case I depends on the seed and I alone. Cases in which nothing happened are not counted. The last line is "torture:
 * index N tried, L lost, W wrong"; the exit code is 1 if L or W is above 0. A case whose process ends by a signal, or
 * hangs, is wrong. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <deltafs/deltafs_query.h>
#include "fake_io.h"
#include "files.h"
#include "query/value_index.h"
#include "torture_cases.h"
#include "torture_faults.h"
#include "torture_job.h"
#include "torture_rows.h"

#define STEPS     8   /* epochs of a case, at most */
#define QUESTIONS 12  /* at a time */
#define RECORDS   600 /* of an epoch, at most */

struct index_case {
    struct torture_rng rng;
    struct torture_verdict *v;
    char path[240], aside[240], text[256]; /* `text`: what happens, for messages */
    const char *partitions, *partitioner, *layout, *codec, *block, *threads, *sync;
    char indexes[128];
    uint64_t last; /* the label of the last epoch */
    /* What is known of the directory. */
    int is_made;  /* by a call that said so */
    int is_there; /* it can be opened */
    struct torture_epoch committed[STEPS], maybe;
    size_t commits;
    int may_be; /* `maybe` is committed, too, or not */
};

static void must(int is, const char *path)
{
    if (!is)
        files_die("%s: %m", path);
}

/* ---- Calls ---- */

/* A call returned `status`, which may be `expected`. */
static int noted(struct index_case *c, const char *call, int status, int expected)
{
    if (status != DELTAFS_OK && expected == DELTAFS_OK)
        torture_lost(c->v, "%s returns %d: %s", call, status, deltafs_errmsg(NULL));
    else if (status != DELTAFS_OK && status != expected)
        torture_wrong(c->v, "%s returns %d instead of %d: %s", call, status, expected, deltafs_errmsg(NULL));
    return status;
}

static deltafs_options *options(const struct index_case *c, const char *index_by)
{
    const char *const set[][2] = {
        {"schema", ROWS_SCHEMA}, {"partitions", c->partitions},  {"layout", c->layout}, {"codec", c->codec},
        {"block", c->block},     {"threads", c->threads},        {"sync", c->sync},     {"memory", "64M"},
        {"index_by", index_by},  {"partitioner", c->partitioner}};
    deltafs_options *o = NULL;
    int status = deltafs_options_create(&o);

    for (size_t i = 0; i < sizeof set / sizeof set[0] && status == DELTAFS_OK; i++)
        status = deltafs_options_set(o, set[i][0], set[i][1]);
    if (status != DELTAFS_OK)
        files_die("options: %s", deltafs_errmsg(NULL));
    return o;
}

/* One epoch more. Some have the same number of records as others. */
static int write_epoch(struct index_case *c, deltafs_dir *d, int expected)
{
    static const uint32_t records[] = {0, 100, 100, 100, 400};
    struct torture_epoch epoch = {.label = c->last + 1 + torture_below(&c->rng, 2), .seed = torture_next(&c->rng)};
    uint64_t dice = torture_below(&c->rng, 8);

    epoch.records = dice < 5 ? records[dice] : (uint32_t)torture_below(&c->rng, RECORDS);
    rows_append(&epoch, 0, 1, d);
    int status = deltafs_epoch_end(d, epoch.label);
    if (status == DELTAFS_OK)
        c->committed[c->commits++] = epoch;
    c->may_be = status != DELTAFS_OK;
    c->maybe = epoch;
    c->last = epoch.label;
    return noted(c, "deltafs_epoch_end", status, expected);
}

/* A job: creates the directory, or reopens it, and writes `epochs` epochs. Calls may fail with the status `expected`.
 */
static void write_job(struct index_case *c, const char *index_by, size_t epochs, int expected)
{
    deltafs_options *o = options(c, index_by);
    int is_new = !c->is_there;
    deltafs_dir *d;
    int status = (is_new ? deltafs_create : deltafs_reopen)(c->path, o, &d);

    deltafs_options_destroy(o);
    /* After an interrupted creation the folders of logs may be gone. */
    if (!is_new && !c->is_made && status == DELTAFS_ERR_NOT_FOUND) {
        c->is_there = 0;
        return;
    }
    if (noted(c, is_new ? "deltafs_create" : "deltafs_reopen", status, expected) != DELTAFS_OK)
        return;
    c->is_made = c->is_there = 1;
    for (size_t i = 0; i < epochs && status == DELTAFS_OK; i++)
        status = write_epoch(c, d, expected);
    noted(c, "deltafs_close", deltafs_close(d), expected);
}

static int open_one(void *ctx, int is_made, const char *path, const deltafs_options *o, deltafs_dir **out)
{
    (void)ctx;
    return (is_made ? deltafs_reopen : deltafs_create)(path, o, out);
}

/* Bring an index up to date, as 'deltafs-mpi index --by' does. */
static int make_index(struct index_case *c, const char *index, int expected)
{
    static const struct collective alone = COLLECTIVE_ALONE;
    static const struct value_index_ranks ranks = {.group = &alone, .open = open_one};
    struct value_index_maker maker = {.ranks = &ranks};
    struct error e = {.status = DELTAFS_OK};
    int status = error_of_thread(deltafs_private_value_index_make(&maker, c->path, index, &e), &e);

    return noted(c, "index --by", status, expected);
}

/* ---- Checking ---- */

/* What is in the directory. Returns NULL if there is none, and need not be. */
static struct rows *settle(struct index_case *c)
{
    deltafs_dir *d;
    int status = deltafs_open(c->path, NULL, &d);

    if (status != DELTAFS_OK && (c->is_made || (status != DELTAFS_ERR_NOT_FOUND && status != DELTAFS_ERR_NOT_DELTAFS)))
        torture_lost(c->v, "deltafs_open returns %d: %s", status, deltafs_errmsg(NULL));
    c->is_there = status == DELTAFS_OK;
    if (status != DELTAFS_OK)
        return NULL;
    struct rows *m = rows_create(c->committed, c->commits);
    if (!rows_fit(m, d) && c->may_be) {
        rows_destroy(m);
        c->committed[c->commits++] = c->maybe;
        m = rows_create(c->committed, c->commits);
    }
    c->may_be = 0;
    if (!rows_fit(m, d))
        torture_lost(c->v, "there are other epochs than the %zu that were committed", c->commits);
    deltafs_close(d);
    return m;
}

/* Ask with the indexes that there are, then without any. */
static int check(struct index_case *c, const char *when)
{
    char by[300], hidden[310], about[sizeof c->text + 64];
    struct rows *m;

    snprintf(about, sizeof about, "%s; %s; case", c->text, when);
    c->v->about = about;
    m = settle(c);
    if (m) {
        rows_check(m, c->path, QUESTIONS, &c->rng, c->v);
        snprintf(by, sizeof by, "%s/%s", c->path, VALUE_INDEX_FOLDER);
        snprintf(hidden, sizeof hidden, "%s.hidden", by);
        int is_hidden = rename(by, hidden) == 0;
        rows_check(m, c->path, QUESTIONS / 2, &c->rng, c->v);
        must(!is_hidden || rename(hidden, by) == 0, hidden);
    }
    rows_destroy(m);
    c->v->about = c->text;
    return m != NULL;
}

/* The directory has the columns of its indexes. */
static void check_columns(struct index_case *c)
{
    struct deltafs_attribute a = {.struct_size = sizeof a};
    char name[16];
    deltafs_dir *d;

    if (deltafs_open(c->path, NULL, &d) != DELTAFS_OK)
        return;
    for (const char *p = c->indexes; *p; p += strcspn(p, ";"), p += *p == ';') {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(p, ":"), p);
        if (deltafs_attribute_get(d, name, UINT64_MAX, &a) != DELTAFS_OK || a.type != DELTAFS_ATTRIBUTE_EXPRESSION)
            torture_lost(c->v, "there is no column '%s'", name);
    }
    deltafs_close(d);
}

/* Bring all indexes up to date. They answer for all epochs then, unless they are damaged. */
static void complete(struct index_case *c, int is_damaged)
{
    struct rows *m = settle(c);

    for (size_t i = 0; m && i < ROWS_INDEXES; i++) {
        size_t n = strlen(rows_index[i]);
        const char *at = strstr(c->indexes, rows_index[i]);
        if (!at || (at[n] != '\0' && at[n] != ';'))
            continue;
        make_index(c, rows_index[i], DELTAFS_OK);
        unsigned used = rows_check_epochs(m, c->path, i, c->v);
        if (used != c->commits && !is_damaged)
            torture_lost(c->v, "the index '%s' is used in %u of %zu epochs, after it was completed", rows_index[i],
                         used, c->commits);
    }
    rows_destroy(m);
    check_columns(c);
    check(c, "after the indexes were completed");
}

/* A job goes on, and after it the indexes are completed. */
static void go_on(struct index_case *c, int is_damaged)
{
    write_job(c, torture_below(&c->rng, 2) ? c->indexes : "", 1, DELTAFS_OK);
    if (!c->is_there)
        return;
    check(c, "after one more job");
    complete(c, is_damaged);
}

/* ---- Faults ---- */

/* A job, or the first index made afterwards. */
static void act(struct index_case *c, int is_making, int expected)
{
    const char *index = rows_index[0];

    for (size_t i = 0; i < ROWS_INDEXES; i++)
        if (strncmp(c->indexes, rows_index[i], strlen(rows_index[i])) == 0)
            index = rows_index[i];
    if (is_making)
        make_index(c, index, expected);
    else
        write_job(c, c->indexes, 1 + (size_t)torture_below(&c->rng, 2), expected);
}

/* An operation of it fails: of those that it has if nothing fails. Returns whether it came to that. */
static int fail_one(struct index_case *c, int is_making)
{
    const struct torture_happening *h = torture_choose(&c->rng);
    size_t n = strlen(c->text);
    struct torture_rng r = {torture_next(&c->rng)};
    const struct index_case before = *c;

    if (c->is_there)
        files_copy(c->path, c->aside);
    torture_io_begin(TORTURE_NONE, 0, 0);
    act(c, is_making, DELTAFS_OK);
    uint64_t at =
        torture_below(&r, 3) == 0 ? torture_io_manifest(torture_next(&r)) : torture_below(&r, torture_io_count());
    torture_io_end();
    torture_remove(c->path);
    *c = before;
    must(!c->is_there || rename(c->aside, c->path) == 0, c->aside);
    snprintf(c->text + n, sizeof c->text - n, "; operation %ju of %s: %s", (uintmax_t)at,
             is_making ? "indexing" : "a job", h->text);
    torture_io_begin(h->fault, at, r.state);
    act(c, is_making, h->expected);
    return torture_happening_end(h, c->v);
}

/* Operations on the files of indexes fail, from some one on, or that one alone. */
static struct {
    struct fake_io io;
    _Atomic uint64_t count, failed;
    uint64_t at;
    int is_lasting;
} unreadable;

static ssize_t fail_index(struct fake_call *c)
{
    if (!strstr(c->path, "/" VALUE_INDEX_FOLDER))
        return fake_do(c);
    uint64_t i = unreadable.count++;
    if (i != unreadable.at && !(unreadable.is_lasting && i > unreadable.at))
        return fake_do(c);
    unreadable.failed++;
    if (c->op == FAKE_CLOSE)
        fake_do(c);
    return -EIO;
}

static int fail_reading(struct index_case *c)
{
    struct rows *m = settle(c);

    unreadable.count = unreadable.failed = 0;
    unreadable.at = torture_below(&c->rng, UINT64_C(1) << torture_below(&c->rng, 10));
    unreadable.is_lasting = torture_below(&c->rng, 2) == 0;
    snprintf(c->text + strlen(c->text), sizeof c->text - strlen(c->text),
             "; operation %ju%s of reading the index fails", (uintmax_t)unreadable.at,
             unreadable.is_lasting ? " and later ones" : "");
    fake_io_begin(&unreadable.io, fail_index);
    rows_check(m, c->path, QUESTIONS, &c->rng, c->v);
    int left = fake_io_end(&unreadable.io);
    if (left != 0)
        torture_wrong(c->v, "%d files are left open", left);
    rows_destroy(m);
    return unreadable.failed > 0;
}

/* ---- Damage ---- */

/* Change some bytes of a file, or its length. */
static void change_file(struct index_case *c, const char *path)
{
    uint8_t bytes[64];
    struct stat st;
    FILE *f = fopen(path, "r+b");

    must(f && fstat(fileno(f), &st) == 0, path);
    uint64_t size = (uint64_t)st.st_size, at = torture_below(&c->rng, size + 1), n = 1 + torture_below(&c->rng, 64);
    torture_fill(&c->rng, bytes, sizeof bytes);
    if (torture_below(&c->rng, 3) == 0)
        must(ftruncate(fileno(f), (off_t)at) == 0, path);
    else
        must(fseek(f, (long)at, SEEK_SET) == 0 && fwrite(bytes, 1, n, f) == n, path);
    must(fclose(f) == 0, path);
}

/* Something is done to an entry of the indexes: `older` is a copy of the directory as it was some epochs ago. Returns
 * whether one index now has what is another's. */
static int damage_one(struct index_case *c, const char *older)
{
    static const char *const what[] = {"changed", "removed", "exchanged", "an older one"};
    struct files_entries *all = calloc(1, sizeof *all);
    char by[PATH_MAX], path[PATH_MAX], other[PATH_MAX], moved[PATH_MAX];
    uint64_t kind = torture_below(&c->rng, 4);
    size_t n = strlen(c->text);

    must(all != NULL, "memory");
    files_list(files_join(by, c->path, VALUE_INDEX_FOLDER), all);
    size_t i = (size_t)torture_below(&c->rng, all->count), k = (size_t)torture_below(&c->rng, all->count);
    while (kind == 0 && all->entry[i].kind == 'd')
        i = (i + 1) % all->count;
    while (kind == 2 && all->entry[i].kind != all->entry[k].kind)
        k = (k + 1) % all->count;
    snprintf(c->text + n, sizeof c->text - n, "; %.60s: %s", all->entry[i].path, what[kind]);
    files_join(path, by, all->entry[i].path);
    files_join(other, by, all->entry[k].path);
    files_join(moved, by, "moved");
    if (kind == 0) {
        change_file(c, path);
    } else if (kind == 1) {
        torture_remove(path);
    } else if (kind == 2) {
        /* One in the other cannot be exchanged. */
        if (strncmp(path, other, strlen(path) < strlen(other) ? strlen(path) : strlen(other)) != 0) {
            must(rename(path, moved) == 0 && rename(other, path) == 0 && rename(moved, other) == 0, path);
        }
    } else {
        torture_remove(path);
        files_join(moved, older, VALUE_INDEX_FOLDER);
        files_join(other, moved, all->entry[i].path);
        if (access(other, F_OK) == 0)
            files_copy(other, path);
    }
    free(all);
    return kind == 2;
}

static void damage(struct index_case *c)
{
    char by[300];
    int is_mixed = 0;

    files_copy(c->path, c->aside);
    write_job(c, c->indexes, 1 + (size_t)torture_below(&c->rng, 2), DELTAFS_OK);
    for (uint64_t n = 1 + torture_below(&c->rng, 2); n > 0; n--)
        is_mixed |= damage_one(c, c->aside);
    check(c, "read");
    if (!is_mixed)
        return;
    /* These are refused, and to be removed. */
    snprintf(by, sizeof by, "%s/%s", c->path, VALUE_INDEX_FOLDER);
    torture_remove(by);
}

/* The directory is again as it was an epoch ago, as if a copy had been restored, but its indexes are not. */
static void go_back(struct index_case *c)
{
    const struct index_case before = *c;
    char by[300], now[300];

    files_copy(c->path, c->aside);
    write_job(c, c->indexes, 1, DELTAFS_OK);
    snprintf(by, sizeof by, "%s/%s", c->path, VALUE_INDEX_FOLDER);
    snprintf(now, sizeof now, "%s.now", c->aside);
    must(rename(by, now) == 0, by);
    torture_remove(c->path);
    must(rename(c->aside, c->path) == 0, c->path);
    torture_remove(by);
    must(rename(now, by) == 0, by);
    struct torture_rng rng = c->rng;
    *c = before;
    c->rng = rng;
    strcat(c->text, "; going back");
}

/* ---- One case ---- */

static void make_case(struct index_case *c)
{
    struct torture_rng *r = &c->rng;

    c->partitions = TORTURE_PICK(r, "1", "2", "3");
    c->partitioner = TORTURE_PICK(r, "hash", "range");
    c->layout = TORTURE_PICK(r, "partitioned", "partitioned", "local");
    c->codec = TORTURE_PICK(r, "snappy", "none");
    c->block = TORTURE_PICK(r, "256", "4K", "16K");
    c->threads = TORTURE_PICK(r, "0", "0", "1", "2");
    c->sync = "commit";
    rows_indexes(r, c->indexes);
    snprintf(c->text, sizeof c->text, "%s", c->indexes);
}

static int run(const char *folder, uint64_t seed, uint64_t i, struct torture_verdict *v)
{
    static struct index_case c;
    struct torture_rng mix = {seed ^ i * 0xd1342543de82ef95u};
    int happened = 1;

    c = (struct index_case){.rng.state = torture_next(&mix), .v = v};
    snprintf(c.path, sizeof c.path, "%s/d", folder);
    snprintf(c.aside, sizeof c.aside, "%s/aside", folder);
    make_case(&c);
    v->about = c.text;
    uint64_t way = torture_below(&c.rng, 9);
    /* Some epochs with the indexes, and some without; or none at all. */
    if (way > 1)
        write_job(&c, torture_below(&c.rng, 3) ? c.indexes : "", 1 + (size_t)torture_below(&c.rng, 2), DELTAFS_OK);
    if (way > 4)
        write_job(&c, way > 5 ? c.indexes : "", 1, DELTAFS_OK);
    if (way == 8)
        go_back(&c);
    if (way <= 5 || way == 8)
        happened = fail_one(&c, way == 4 || way == 5);
    else if (way == 6)
        happened = fail_reading(&c);
    else
        damage(&c);
    check(&c, "read");
    if (c.is_there)
        go_on(&c, way == 7);
    return happened;
}

int main(int argc, char **argv)
{
    return torture_cases("index", run, argc, argv);
}
