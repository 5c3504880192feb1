/* The directory that all ranks of a job write together: shuffle, agreement, commit.
 *
 * An epoch's end, on all ranks: agree that all call it, with one label; end the shuffle's round, so that every record
 * is with its partition's owner; end the epoch in the own partitions; agree on the outcome; rank 0 commits; all learn
 * its verdict; the next round begins. Three collective calls: the round ends without any. With commit=async what
 * follows the round is done by the next collective call.
 *
 * A rank that waits, for others or for its own storage, must serve the shuffles of all directories: its peers may be
 * waiting in another (a simulation has one for each species). So open directories stand in a list, and each has a lock
 * that its calls hold: whoever waits serves all those that nobody is in, besides its own.
 *
 * Ranks are numbered as the layout of nodes has them (topology.h), but in messages to users. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "base/thread.h"
#include "mpi/job/job.h"

#define THREAD_NAP_MIN 20000 /* ns between two looks of a thread for progress */
#define THREAD_NAP_MAX 1000000

enum job_meeting { JOB_EPOCH_END = 1, JOB_CLOSE = 2, JOB_EPOCH_WAIT = 3, JOB_SET_ATTRIBUTE = 4, JOB_PLACE = 5 };

/* ---- Open directories ---- */

static struct job *open_jobs;
static struct job_other *open_others;
static pthread_mutex_t open_jobs_lock = PTHREAD_MUTEX_INITIALIZER;

void job_register(struct job *j)
{
    pthread_mutex_lock(&open_jobs_lock);
    j->next = open_jobs;
    open_jobs = j;
    pthread_mutex_unlock(&open_jobs_lock);
}

static void job_unregister(struct job *j)
{
    pthread_mutex_lock(&open_jobs_lock);
    struct job **at = &open_jobs;
    while (*at != j)
        at = &(*at)->next;
    *at = j->next;
    pthread_mutex_unlock(&open_jobs_lock);
}

void job_register_other(struct job_other *o)
{
    pthread_mutex_lock(&open_jobs_lock);
    o->next = open_others;
    open_others = o;
    pthread_mutex_unlock(&open_jobs_lock);
}

void job_unregister_other(struct job_other *o)
{
    pthread_mutex_lock(&open_jobs_lock);
    struct job_other **at = &open_others;
    while (*at && *at != o)
        at = &(*at)->next;
    if (*at)
        *at = o->next;
    pthread_mutex_unlock(&open_jobs_lock);
}

/* Serve what no call is in. Returns whether there was anything to do. */
int job_serve_others(void)
{
    int has_moved = 0;

    if (pthread_mutex_trylock(&open_jobs_lock) != 0)
        return 0; /* another thread does it */
    for (struct job *j = open_jobs; j; j = j->next)
        if (pthread_mutex_trylock(&j->lock) == 0) {
            if (j->shuffle)
                has_moved |= shuffle_progress(j->shuffle);
            pthread_mutex_unlock(&j->lock);
        }
    for (struct job_other *o = open_others; o; o = o->next)
        if (pthread_mutex_trylock(&o->lock) == 0) {
            has_moved |= o->serve(o);
            pthread_mutex_unlock(&o->lock);
        }
    pthread_mutex_unlock(&open_jobs_lock);
    return has_moved;
}

/* If the ranks have lost each other, nothing is sent or received any more. */
void job_wait(void *arg)
{
    struct job *j = arg;
    int has_moved = 0;

    if (j && j->shuffle) {
        if (mpi_group_is_lost(&j->group))
            shuffle_kill(j->shuffle);
        has_moved = shuffle_progress(j->shuffle);
    }
    mpi_pause(job_serve_others() | has_moved);
}

/* The thread that serves other ranks, where the option progress asks for it: looks again soon while there is something
 * to do, later if not. */
static void *job_thread_run(void *arg)
{
    struct timespec nap = {.tv_nsec = THREAD_NAP_MIN};
    struct job_thread *t = arg;

    while (!atomic_load(&t->is_closing)) {
        nap.tv_nsec = job_serve_others() ? THREAD_NAP_MIN : 2 * nap.tv_nsec;
        if (nap.tv_nsec > THREAD_NAP_MAX)
            nap.tv_nsec = THREAD_NAP_MAX;
        nanosleep(&nap, NULL);
    }
    return NULL;
}

int job_start_thread(struct job_thread *t, struct error *e)
{
    int level = MPI_THREAD_SINGLE;

    MPI_Query_thread(&level);
    if (level != MPI_THREAD_MULTIPLE)
        return error_set(e, DELTAFS_ERR_OPTION,
                         "option progress: a thread needs MPI_THREAD_MULTIPLE, which MPI_Init_thread did not give; ask "
                         "it for that level, or leave progress=calls");
    int status = thread_start(&t->thread, job_thread_run, t, e);
    t->is_running = status == DELTAFS_OK;
    return status;
}

void job_stop_thread(struct job_thread *t)
{
    if (!t->is_running)
        return;
    atomic_store(&t->is_closing, 1);
    pthread_join(t->thread, NULL);
    t->is_running = 0;
}

/* ---- Shuffle ---- */

static void job_send(void *ctx, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                     size_t value_stride, size_t size)
{
    struct job *j = ctx;

    if (j->shuffle)
        shuffle_put(j->shuffle, n, keys, key_stride, values, value_stride, size);
    else
        deltafs_private_writer_put(j->writer, 1, n, keys, key_stride, values, value_stride, size);
}

/* Hold records back as long as that is possible; meanwhile those of others must go on. */
static void job_put(struct job *j, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                    size_t value_stride, size_t size)
{
    if (deltafs_private_writer_hold(j->writer, n, keys, key_stride, values, value_stride, size)) {
        if (j->shuffle)
            shuffle_pass(j->shuffle, n * (sizeof(uint64_t) + size));
        return;
    }
    deltafs_private_writer_release(j->writer, job_send, j);
    job_send(j, n, keys, key_stride, values, value_stride, size);
}

/* The values stay here; their places go to the keys' partitions. */
static void job_put_local(struct job *j, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                          size_t value_stride, size_t size)
{
    for (size_t some; n > 0; n -= some) {
        const uint8_t *places;
        while (j->shuffle && !deltafs_private_writer_can_put_values(j->writer, size))
            job_wait(j);
        some = deltafs_private_writer_put_values(j->writer, n, keys, key_stride, values, value_stride, size, &places);
        if (some == 0)
            break;
        job_put(j, some, keys, key_stride, places, POSITION_SIZE, POSITION_SIZE);
        keys += some * key_stride;
        values += size > 0 ? some * value_stride : 0;
    }
}

static int job_append(void *ctx, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                      size_t value_stride, size_t size, struct error *e)
{
    struct job *j = ctx;

    pthread_mutex_lock(&j->lock);
    int status = mpi_group_check(&j->group, e);
    if (status == DELTAFS_OK) {
        if (deltafs_private_writer_is_local(j->writer))
            job_put_local(j, n, keys, key_stride, values, value_stride, size);
        else
            job_put(j, n, keys, key_stride, values, value_stride, size);
        j->pending += n;
        j->appended += n;
        status = mpi_group_check(&j->group, e); /* a shuffle that is lost meanwhile drops records */
    }
    pthread_mutex_unlock(&j->lock);
    return status;
}

static void job_fail(void *ctx, const struct error *e)
{
    struct job *j = ctx;

    pthread_mutex_lock(&j->lock);
    deltafs_private_writer_fail(j->writer, e);
    pthread_mutex_unlock(&j->lock);
}

/* Bring every record to its owner. The next round lets in what comes after. Fails only where the job is lost. */
static int job_deliver_all(struct job *j, struct error *e)
{
    struct error own;

    if (!j->shuffle)
        return DELTAFS_OK;
    shuffle_end(j->shuffle);
    int status = mpi_group_check(&j->group, e);
    if (status == DELTAFS_OK && shuffle_take_error(j->shuffle, &own) != DELTAFS_OK)
        deltafs_private_writer_fail(j->writer, &own);
    return status;
}

/* Let in what comes after a round, placed as the writer has it by now. */
static void job_begin_round(struct job *j)
{
    if (!j->shuffle)
        return;
    shuffle_place(j->shuffle, deltafs_private_writer_partitioner(j->writer));
    shuffle_begin(j->shuffle);
}

/* ---- Agreement ---- */

/* The maximum of a number is this of the minimum of the numbers' opposites. */
static uint64_t job_opposite(uint64_t v)
{
    return (UINT64_C(1) << 62) - v;
}

/* Collective: whether all ranks make the same call, with the same number. *pending gets the most records of a rank. It
 * is known then, too, whether all ranks hold all records of the epoch. */
static int job_meet(struct job *j, enum job_meeting call, uint64_t number, uint64_t *pending, struct error *e)
{
    uint64_t high = number >> 32, low = number & UINT32_MAX;
    uint64_t v[] = {(uint64_t)call,
                    high,
                    low,
                    job_opposite((uint64_t)call),
                    job_opposite(high),
                    job_opposite(low),
                    job_opposite(j->pending),
                    (uint64_t)deltafs_private_writer_is_holding(j->writer)};

    int status = mpi_reduce(&j->group, v, sizeof v / sizeof v[0], MPI_MIN, e);

    if (status != DELTAFS_OK)
        return status;
    if (v[0] != job_opposite(v[3])) {
        error_set(e, DELTAFS_ERR_COLLECTIVE,
                  "some ranks called another of deltafs_epoch_end, deltafs_epoch_wait, deltafs_attribute_set and "
                  "deltafs_close than others");
        mpi_group_lose(&j->group, e);
        return e->status;
    }
    if (v[1] != job_opposite(v[4]) || v[2] != job_opposite(v[5]))
        return error_set(e, DELTAFS_ERR_LABEL, "the ranks ended the epoch with different labels");
    *pending = job_opposite(v[6]);
    j->is_held = v[7] > 0;
    return DELTAFS_OK;
}

/* Collective: rank 0's verdict, *e there, to all. */
static int job_verdict(struct job *j, struct error *e)
{
    struct error verdict = *e;

    if (mpi_broadcast(&j->group, &verdict, sizeof verdict, e) == DELTAFS_OK && verdict.status != DELTAFS_OK)
        *e = verdict;
    return e->status;
}

/* Wait until the epoch that is ending is with storage on all ranks; *totals gets the sums. */
static int job_wait_end(struct job *j, struct writer_totals *totals, struct error *e)
{
    while (j->shuffle && !deltafs_private_writer_has_ended(j->writer))
        job_wait(j);
    e->status = deltafs_private_writer_wait_end(j->writer, totals, e);
    uint64_t v[4] = {totals->records, totals->bytes_raw, totals->bytes_stored, e->status != DELTAFS_OK};
    int status = mpi_reduce(&j->group, v, 4, MPI_SUM, e);

    *totals = (struct writer_totals){v[0], v[1], v[2]};
    return status == DELTAFS_OK && v[3] > 0 ? mpi_agree(&j->group, e) : status;
}

/* Collective: whether the directory is still this job's, before anything of it is truncated. */
static int job_check_lease(struct job *j, struct error *e)
{
    e->status = j->group.rank == 0 ? deltafs_private_writer_check_lease(j->writer, e) : DELTAFS_OK;
    return job_verdict(j, e);
}

/* Collective: rank 0 commits. */
static int job_commit(struct job *j, const struct writer_totals *totals, int *is_commit_unknown, struct error *e)
{
    e->status =
        j->group.rank == 0 ? deltafs_private_writer_commit(j->writer, totals, is_commit_unknown, e) : DELTAFS_OK;
    int status = job_verdict(j, e);
    if (status != DELTAFS_OK)
        mpi_broadcast(&j->group, is_commit_unknown, sizeof *is_commit_unknown, error_ignored());
    return status;
}

/* Collective: commit the epoch that is ending, or discard it; if it is `refused`, in any case. */
static int job_conclude(struct job *j, const struct error *refused, struct error *e)
{
    struct writer_totals totals;
    struct error second;
    int is_commit_unknown = 0, status = job_wait_end(j, &totals, e);

    if (status == DELTAFS_OK && refused) {
        *e = *refused;
        status = e->status;
    }
    if (status == DELTAFS_OK)
        status = job_commit(j, &totals, &is_commit_unknown, e);
    if (status == DELTAFS_OK) {
        deltafs_private_writer_keep(j->writer);
        j->epochs++;
        return status;
    }
    if (!is_commit_unknown && !mpi_group_is_lost(&j->group) && job_check_lease(j, &second) != DELTAFS_OK) {
        is_commit_unknown = 1;
        *e = second;
    }
    deltafs_private_writer_discard(j->writer, is_commit_unknown || mpi_group_is_lost(&j->group), e);
    return e->status;
}

/* Collective: the same, if there is one, once all that was appended since is with its owner. On failure that is given
 * up as well. */
static int job_conclude_late(struct job *j, const struct error *refused, struct error *e)
{
    uint64_t label;

    if (!deltafs_private_writer_is_ending(j->writer, &label))
        return DELTAFS_OK;
    int status = job_conclude(j, refused, e);
    if (status != DELTAFS_OK) {
        j->pending = 0;
        if (j->is_async)
            deltafs_private_dir_explain_async(label, e);
    }
    return status;
}

/* Collective: how the next epoch is placed. Without memory for that on some rank it is as this one. Fails only where
 * the job is lost. */
static int job_choose(struct job *j, struct error *e)
{
    struct bytes own = {.used = 0}, all = {.used = 0};
    struct error why = {0};
    size_t n;

    if (!deltafs_private_writer_has_pivots(j->writer))
        return DELTAFS_OK;
    uint64_t sampled = deltafs_private_writer_sampled(j->writer);
    int status = mpi_reduce(&j->group, &sampled, 1, MPI_SUM, e);
    if (status != DELTAFS_OK)
        return status;
    deltafs_private_writer_sample(j->writer, sampled, &own, &why);
    status = mpi_gather_first(&j->group, own.used > 0 ? own.buffer.bytes : &(uint8_t){0}, own.used, &all, &why);
    if (j->group.rank == 0 && status == DELTAFS_OK)
        deltafs_private_writer_choose(j->writer, &all);
    buffer_fini(&own.buffer);
    buffer_fini(&all.buffer);
    void *chosen = deltafs_private_writer_chosen(j->writer, &n);
    return mpi_broadcast(&j->group, chosen, n, e);
}

/* Collective: all records of the epoch are held back: place them by their keys, and bring them to their owners. */
static int job_place(struct job *j, struct error *e)
{
    deltafs_private_writer_sample_held(j->writer);
    int status = job_choose(j, e);
    if (status != DELTAFS_OK)
        return status;
    deltafs_private_writer_place(j->writer);
    job_begin_round(j);
    deltafs_private_writer_release(j->writer, job_send, j);
    return job_deliver_all(j, e);
}

/* All records are with their owners, or held back: end the epoch, and the one before. */
static int job_seal(struct job *j, uint64_t label, int is_async, struct error *e)
{
    int status = job_conclude_late(j, NULL, e);

    if (status == DELTAFS_OK)
        status = j->is_held ? job_place(j, e) : job_choose(j, e);
    if (status != DELTAFS_OK)
        return status;
    while (j->shuffle && !deltafs_private_writer_can_end(j->writer))
        job_wait(j);
    deltafs_private_writer_end(j->writer, label);
    j->pending = 0;
    return j->is_async || is_async ? DELTAFS_OK : job_conclude(j, NULL, e);
}

/* Collective: begin the current epoch again; the one before is committed first. */
static int job_discard(struct job *j, struct error *e)
{
    int status = job_deliver_all(j, e);

    if (status != DELTAFS_OK)
        return status;
    status = job_conclude_late(j, NULL, e);
    if (status == DELTAFS_OK) {
        status = job_check_lease(j, e);
        deltafs_private_writer_discard(j->writer, status != DELTAFS_OK, e);
        j->pending = 0;
    }
    job_begin_round(j);
    return status;
}

/* Collective: whether the label is committed. */
static int job_find_label(struct job *j, uint64_t label, int *is_committed, struct error *e)
{
    e->status = j->group.rank == 0 ? deltafs_private_writer_find_label(j->writer, label, is_committed, e) : DELTAFS_OK;
    return job_verdict(j, e) == DELTAFS_OK ? mpi_broadcast(&j->group, is_committed, sizeof *is_committed, e)
                                           : e->status;
}

/* Collective: the label cannot end the epoch, as *e says: do what the option old_label asks for. `is_same`: it is the
 * same on all ranks. */
static int job_refuse(struct job *j, uint64_t label, int is_same, struct error *e)
{
    enum option_old_label how = deltafs_private_writer_old_label(j->writer);
    struct error why = *e;
    uint64_t records = j->pending;
    int is_committed = 0, status = mpi_reduce(&j->group, &records, 1, MPI_SUM, e);

    if (status == DELTAFS_OK && how != OLD_LABEL_KEEP)
        status = job_discard(j, e);
    if (status == DELTAFS_OK && how == OLD_LABEL_SKIP && is_same)
        status = job_find_label(j, label, &is_committed, e);
    if (status != DELTAFS_OK || is_committed)
        return status;
    *e = why;
    deltafs_private_writer_explain_label(j->writer, records, e);
    return e->status;
}

/* Collective: JOB_EPOCH_END. */
static int job_end(struct job *j, uint64_t label, int is_async, struct error *e)
{
    uint64_t pending;
    int status = job_meet(j, JOB_EPOCH_END, label, &pending, e), is_same = status == DELTAFS_OK;

    if (status == DELTAFS_OK)
        status = deltafs_private_writer_check_label(j->writer, label, e);
    if (status == DELTAFS_ERR_LABEL)
        return job_refuse(j, label, is_same, e);
    if (status == DELTAFS_OK && !j->is_held)
        deltafs_private_writer_release(j->writer, job_send, j);
    if (status == DELTAFS_OK)
        status = job_deliver_all(j, e);
    if (status != DELTAFS_OK)
        return status;
    status = job_seal(j, label, is_async, e);
    job_begin_round(j);
    return status;
}

/* Collective: JOB_EPOCH_WAIT. */
static int job_end_late(struct job *j, const struct error *refused, struct error *e)
{
    uint64_t pending, ending;
    int status = job_meet(j, JOB_EPOCH_WAIT, 0, &pending, e);

    if (status != DELTAFS_OK || !deltafs_private_writer_is_ending(j->writer, &ending))
        return status;
    status = job_deliver_all(j, e);
    if (status != DELTAFS_OK)
        return status;
    status = job_conclude_late(j, refused, e);
    job_begin_round(j);
    return status;
}

/* Collective: JOB_PLACE. */
static int job_place_early(struct job *j, struct error *e)
{
    uint64_t pending;
    int status = job_meet(j, JOB_PLACE, 0, &pending, e);

    if (status != DELTAFS_OK || deltafs_private_writer_is_placed(j->writer) || !j->is_held)
        return status;
    status = job_deliver_all(j, e);
    if (status != DELTAFS_OK)
        return status;
    status = job_conclude_late(j, NULL, e);
    if (status == DELTAFS_OK)
        status = job_place(j, e);
    job_begin_round(j);
    return status;
}

static int job_epoch_end(void *ctx, uint64_t label, int is_async, struct error *e)
{
    struct job *j = ctx;

    pthread_mutex_lock(&j->lock);
    int status = job_end(j, label, is_async, e);
    pthread_mutex_unlock(&j->lock);
    return status;
}

static int job_epoch_wait(void *ctx, const struct error *refused, struct error *e)
{
    struct job *j = ctx;

    pthread_mutex_lock(&j->lock);
    int status = job_end_late(j, refused, e);
    pthread_mutex_unlock(&j->lock);
    return status;
}

static int job_lock_and_place(void *ctx, struct error *e)
{
    struct job *j = ctx;

    pthread_mutex_lock(&j->lock);
    int status = job_place_early(j, e);
    pthread_mutex_unlock(&j->lock);
    return status;
}

/* Collective: rank 0 stores its attribute. */
static int job_set_attribute(void *ctx, const struct deltafs_attribute *a, int refused, struct error *e)
{
    struct job *j = ctx;
    struct error why = *e;
    uint64_t pending;

    pthread_mutex_lock(&j->lock);
    int status = job_meet(j, JOB_SET_ATTRIBUTE, 0, &pending, e);
    if (status == DELTAFS_OK && j->group.rank == 0 && refused != DELTAFS_OK)
        *e = why;
    else if (status == DELTAFS_OK)
        e->status = j->group.rank == 0 ? deltafs_private_writer_set_attribute(j->writer, a, e) : DELTAFS_OK;
    status = status == DELTAFS_OK ? job_verdict(j, e) : status;
    pthread_mutex_unlock(&j->lock);
    return status;
}

/* ---- Closing ---- */

void job_close_shuffle(struct job *j)
{
    if (j->shuffle && mpi_group_is_lost(&j->group))
        shuffle_kill(j->shuffle);
    shuffle_destroy(j->shuffle);
    j->shuffle = NULL;
}

/* If the ranks have lost each other, others may still write: no other job may have the lease before this process ends.
 */
int job_close_own(struct job *j, struct error *e)
{
    struct lease kept;

    job_close_shuffle(j);
    if (mpi_group_is_lost(&j->group))
        deltafs_private_writer_return_lease(j->writer, &kept);
    int status = deltafs_private_writer_destroy(j->writer, e);
    j->writer = NULL;
    return status;
}

void job_free(struct job *j)
{
    topology_fini(&j->topology, mpi_group_is_lost(&j->group));
    if (j->stats_fd >= 0)
        close(j->stats_fd);
    free(j->path);
    free(j->index_by);
    pthread_mutex_destroy(&j->lock);
    mpi_group_destroy(&j->group);
}

/* Collective: finish the logs, and rank 0 notes that. */
static int job_finish(struct job *j, struct error *e)
{
    uint64_t tail_length = 0;

    if (job_check_lease(j, e) != DELTAFS_OK)
        return e->status;
    e->status = deltafs_private_writer_finish(j->writer, &tail_length, e);
    if (mpi_agree(&j->group, e) != DELTAFS_OK || mpi_reduce(&j->group, &tail_length, 1, MPI_MAX, e) != DELTAFS_OK)
        return e->status;
    if (j->group.rank == 0)
        e->status = deltafs_private_writer_commit_close(j->writer, tail_length, e);
    return job_verdict(j, e);
}

/* All ranks have come to close. */
static int job_close_together(struct job *j, uint64_t pending, struct error *e)
{
    if (pending > 0 && job_deliver_all(j, e) != DELTAFS_OK)
        return e->status;
    struct error second;
    int status = job_conclude_late(j, NULL, e);
    status = error_first(status, job_finish(j, status == DELTAFS_OK ? e : &second));
    if (status == DELTAFS_OK && pending > 0)
        status = error_set(e, DELTAFS_ERR_UNCOMMITTED,
                           "records were appended after the last epoch end; they are discarded (up to %llu on a rank)",
                           (unsigned long long)pending);
    return status;
}

static int job_close(void *ctx, struct error *e)
{
    struct job *j = ctx;
    uint64_t pending;

    job_stop_thread(&j->thread);
    pthread_mutex_lock(&j->lock);
    int status = job_meet(j, JOB_CLOSE, 0, &pending, e);
    if (status == DELTAFS_OK)
        status = job_close_together(j, pending, e);
    if (j->shuffle)
        shuffle_wind_up(j->shuffle);
    if (status == DELTAFS_OK)
        status = mpi_group_check(&j->group, e);
    if (j->has_stats)
        status = error_first(status, stats_write(j, error_after(status, e)));
    pthread_mutex_unlock(&j->lock);
    job_unregister(j);
    struct error *closing = error_after(status, e);
    closing->status = job_close_own(j, closing);
    status = error_first(status, mpi_agree(&j->group, closing));
    job_free(j);
    return status;
}

const struct dir_transport job_transport = {.append = job_append,
                                            .fail = job_fail,
                                            .epoch_end = job_epoch_end,
                                            .epoch_wait = job_epoch_wait,
                                            .place = job_lock_and_place,
                                            .set_attribute = job_set_attribute,
                                            .close = job_close};
