/* Judges what a job of torture_worker has left, or is writing.
 *
 *     torture_judge --dir DIR --seed S --list FILE [--watch MILLISECONDS | --closed]
 *
 * The epochs must be 1, 2, ..., each with the records of torture_truth.h and no others; all that FILE lists, and at
 * most one more, whose job had no time to list it. With --watch a reader is kept open for so long and refreshed again
 * and again, beside jobs that write; with --closed the last job must have closed the directory.
 *
 * Lost: something that was committed is not there, or cannot be read. Wrong: something is there that must not be. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <deltafs/deltafs.h>
#include "torture_truth.h"

#define GETS       24 /* keys asked for */
#define SAYS_MAX   20 /* messages, at most */
#define OPEN_EVERY 10 /* looks of a watch, at which the directory is opened again, */
#define FULL_EVERY 16 /* all epochs are read again, */
#define OLD_EVERY  7  /* or what was seen is read once more before it is looked for new ones */
#define PAUSE_NS   2000000

struct judge {
    struct truth truth;
    const char *path, *list;
    deltafs_dir *dir;
    uint64_t epochs, records, looks, gets, lost, wrong, said;
    /* Of the epochs that are being read: */
    uint64_t first, last;
    uint64_t *start; /* of epoch first + i, in seen; one more than there are */
    uint8_t *seen;
};

__attribute__((format(printf, 3, 4))) static void fault(struct judge *j, uint64_t *kind, const char *fmt, ...)
{
    va_list ap;

    *kind += 1;
    if (j->said++ >= SAYS_MAX)
        return;
    fprintf(stderr, "torture_judge: %s: %s: ", j->path, kind == &j->lost ? "lost" : "wrong");
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

static void *get_memory(size_t n)
{
    void *p = calloc(n ? n : 1, 1);

    if (!p) {
        fputs("torture_judge: no memory\n", stderr);
        exit(2);
    }
    return p;
}

/* The last label listed; an incomplete line does not count. */
static uint64_t last_listed(const struct judge *j)
{
    char line[32];
    uint64_t last = 0;
    FILE *f = fopen(j->list, "r");

    while (f && fgets(line, sizeof line, f))
        if (strchr(line, '\n'))
            last = strtoull(line, NULL, 10);
    if (f)
        fclose(f);
    return last;
}

/* ---- Records ---- */

static int see_record(const struct deltafs_record *r, void *arg)
{
    struct judge *j = arg;

    if (r->label < j->first || r->label > j->last) {
        fault(j, &j->wrong, "a record of epoch %" PRIu64 " in a scan of others", r->label);
        return 0;
    }
    uint64_t i = truth_find(&j->truth, r);
    if (i == UINT64_MAX || !truth_is(&j->truth, i, r)) {
        fault(j, &j->wrong, "epoch %" PRIu64 ": a record, key %" PRIu64 ", that was not written", r->label, r->key);
        return 0;
    }
    if (j->seen[j->start[r->label - j->first] + i]++)
        fault(j, &j->wrong, "epoch %" PRIu64 ": record %" PRIu64 " twice", r->label, i);
    j->records++;
    return 0;
}

/* Read epochs first .. last whole. */
static void check_records(struct judge *j, uint64_t first, uint64_t last)
{
    struct deltafs_range range = {first, last};

    if (first > last)
        return;
    j->first = first;
    j->last = last;
    j->start = get_memory((last - first + 2) * sizeof *j->start);
    for (uint64_t label = first; label <= last; label++)
        j->start[label - first + 1] = j->start[label - first] + truth_records(&j->truth, label);
    j->seen = get_memory(j->start[last - first + 1]);
    if (deltafs_scan(j->dir, &range, see_record, j, NULL) != DELTAFS_OK)
        fault(j, &j->lost, "scan: %s", deltafs_errmsg(j->dir));
    for (uint64_t label = first; label <= last; label++)
        for (uint64_t at = j->start[label - first]; at < j->start[label - first + 1]; at++)
            if (!j->seen[at])
                fault(j, &j->lost, "epoch %" PRIu64 ": record %" PRIu64, label, at - j->start[label - first]);
    free(j->seen);
    free(j->start);
}

/* Compare what one key has with the slot's records of all epochs, in their order. */
static void check_answer(struct judge *j, uint64_t slot, const deltafs_records *got)
{
    size_t at = 0, count = got ? got->count : 0;

    for (uint64_t label = 1; label <= j->epochs; label++) {
        uint64_t copies = truth_copies(&j->truth, label), n = truth_records(&j->truth, label);
        for (uint64_t i = slot * copies; i < (slot + 1) * copies && i < n; i++, at++) {
            if (at >= count || got->record[at].label != label) {
                fault(j, &j->lost, "epoch %" PRIu64 ": record %" PRIu64 " in the answer for its key", label, i);
                return;
            }
            if (!truth_is(&j->truth, i, &got->record[at]))
                fault(j, &j->wrong, "epoch %" PRIu64 ": record %" PRIu64 " in the answer for its key", label, i);
        }
    }
    if (at != count)
        fault(j, &j->wrong, "slot %" PRIu64 ": %zu records instead of %zu in the answer", slot, count, at);
}

/* Any few keys: of some epoch's records, or of one behind its last. */
static void check_gets(struct judge *j)
{
    struct truth_record r;
    deltafs_records *got;

    for (uint64_t k = 0; k < GETS && j->epochs > 0; k++) {
        uint64_t any = truth_mix(j->truth.seed, j->epochs, k), label = 1 + any % j->epochs;
        uint64_t i = (any >> 20) % (truth_records(&j->truth, label) + 1);
        truth_make(&j->truth, label, i, &r);
        got = NULL;
        int status = j->truth.is_bytes ? deltafs_get_bytes(j->dir, r.name, r.name_size, NULL, &got)
                                       : deltafs_get(j->dir, r.key, NULL, &got);
        if (status != DELTAFS_OK && status != DELTAFS_ERR_NOT_FOUND)
            fault(j, &j->lost, "get: %s", deltafs_errmsg(j->dir));
        check_answer(j, i / truth_copies(&j->truth, label), got);
        deltafs_records_destroy(got);
        j->gets++;
    }
}

/* ---- Epochs ---- */

/* Which epochs the handle sees: 1 .. j->epochs. `listed` were committed before it looked. */
static void check_epochs(struct judge *j, uint64_t listed)
{
    struct deltafs_epoch_stat epoch = {.struct_size = sizeof epoch};
    struct deltafs_stat stat = {.struct_size = sizeof stat};

    if (deltafs_stat(j->dir, &stat) != DELTAFS_OK) {
        fault(j, &j->lost, "stat: %s", deltafs_errmsg(j->dir));
        return;
    }
    uint64_t most = last_listed(j) + 1, before = j->epochs;
    j->epochs = stat.epochs;
    if (j->epochs < listed || j->epochs < before)
        fault(j, &j->lost, "%" PRIu64 " epochs, of %" PRIu64, j->epochs, listed > before ? listed : before);
    if (j->epochs > most)
        fault(j, &j->wrong, "%" PRIu64 " epochs where %" PRIu64 " may have been committed", j->epochs, most);
    for (uint64_t i = 0; i < j->epochs; i++) {
        if (deltafs_epoch_stat(j->dir, i, &epoch) != DELTAFS_OK)
            fault(j, &j->lost, "epoch %" PRIu64 ": %s", i + 1, deltafs_errmsg(j->dir));
        else if (epoch.label != i + 1 || epoch.records != truth_records(&j->truth, i + 1))
            fault(j, &j->wrong, "epoch %" PRIu64 " is labelled %" PRIu64 " and has %" PRIu64 " records", i + 1,
                  epoch.label, epoch.records);
    }
}

/* Open it; nothing to open is right as long as nothing was committed. Returns whether it is open. */
static int open_dir(struct judge *j)
{
    uint64_t listed = last_listed(j);
    int status = deltafs_open(j->path, NULL, &j->dir);

    if (status != DELTAFS_OK) {
        j->dir = NULL;
        if (listed > 0 || (status != DELTAFS_ERR_NOT_FOUND && status != DELTAFS_ERR_NOT_DELTAFS))
            fault(j, &j->lost, "open: %s", deltafs_errmsg(NULL));
        return 0;
    }
    check_epochs(j, listed);
    return 1;
}

static void close_dir(struct judge *j)
{
    if (j->dir && deltafs_close(j->dir) != DELTAFS_OK)
        fault(j, &j->lost, "close: %s", deltafs_errmsg(NULL));
    j->dir = NULL;
}

static void say_damage(int status, const char *message, void *arg)
{
    struct judge *j = arg;

    (void)status;
    fault(j, &j->lost, "verify: %s", message);
}

static void judge_end(struct judge *j, int must_be_closed)
{
    struct deltafs_verify_counts verified = {.struct_size = sizeof verified};
    struct deltafs_stat stat = {.struct_size = sizeof stat};

    if (!open_dir(j)) {
        if (must_be_closed)
            fault(j, &j->lost, "there is no directory");
        return;
    }
    check_records(j, 1, j->epochs);
    check_gets(j);
    if (deltafs_verify(j->dir, say_damage, j, &verified) != DELTAFS_OK && j->lost == 0)
        fault(j, &j->lost, "verify: %s", deltafs_errmsg(j->dir));
    if (must_be_closed && (deltafs_stat(j->dir, &stat) != DELTAFS_OK || !stat.is_closed))
        fault(j, &j->lost, "it is not closed");
    if (must_be_closed && j->epochs != last_listed(j))
        fault(j, &j->wrong, "%" PRIu64 " epochs, of which %" PRIu64 " are listed", j->epochs, last_listed(j));
    close_dir(j);
}

/* ---- A watch ---- */

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* See what has been committed since; returns whether the handle is open. */
static int look(struct judge *j)
{
    if (j->dir && j->looks % OPEN_EVERY == OPEN_EVERY - 1)
        close_dir(j);
    if (!j->dir)
        return open_dir(j);
    uint64_t listed = last_listed(j);
    if (deltafs_refresh(j->dir) != DELTAFS_OK)
        fault(j, &j->lost, "refresh: %s", deltafs_errmsg(j->dir));
    check_epochs(j, listed);
    return 1;
}

static void judge_watch(struct judge *j, uint64_t milliseconds)
{
    uint64_t end = now_ms() + milliseconds;

    while (now_ms() < end) {
        uint64_t before = j->epochs;
        if (j->dir && j->looks % OLD_EVERY == 0) {
            check_gets(j);
            check_records(j, 1, before);
        }
        if (look(j)) {
            j->looks++;
            check_records(j, j->looks % FULL_EVERY == 0 ? 1 : before + 1, j->epochs);
            if (j->looks % FULL_EVERY == 0)
                check_gets(j);
        }
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    close_dir(j);
}

int main(int argc, char **argv)
{
    struct judge j = {0};
    uint64_t seed = 0, watch = 0;
    int must_be_closed = 0;

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--closed") == 0) {
            must_be_closed = 1;
            continue;
        }
        if (strcmp(argv[i], "--dir") == 0)
            j.path = value;
        else if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--list") == 0)
            j.list = value;
        else if (strcmp(argv[i], "--watch") == 0)
            watch = strtoull(value, NULL, 10);
        i++;
    }
    if (!j.path || !j.list) {
        fputs("usage: torture_judge --dir DIR --seed S --list FILE [--watch MILLISECONDS | --closed]\n", stderr);
        return 2;
    }
    truth_init(&j.truth, seed);
    if (watch > 0)
        judge_watch(&j, watch);
    else
        judge_end(&j, must_be_closed);
    printf("judge: %" PRIu64 " epochs, %" PRIu64 " records, %" PRIu64 " looks, %" PRIu64 " lost, %" PRIu64 " wrong\n",
           j.epochs, j.records, j.looks, j.lost, j.wrong);
    return j.lost + j.wrong > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
