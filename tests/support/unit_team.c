#include "unit_help.h"
#include "unit_team.h"

static void meet(struct unit_member *m, const void *bytes, size_t size)
{
    m->team->bytes[m->rank] = bytes;
    m->team->size[m->rank] = size;
    pthread_barrier_wait(&m->team->barrier);
}

static int team_agree(struct rank_group *ctx, struct error *e)
{
    struct unit_member *m = (struct unit_member *)(void *)ctx;
    struct error own = *e;

    meet(m, &own, sizeof own);
    for (uint32_t i = m->team->ranks; i-- > 0;)
        if (((const struct error *)m->team->bytes[i])->status != DELTAFS_OK)
            *e = *(const struct error *)m->team->bytes[i];
    pthread_barrier_wait(&m->team->barrier);
    return e->status;
}

static int team_max(struct rank_group *ctx, uint64_t *values, int n, struct error *e)
{
    struct unit_member *m = (struct unit_member *)(void *)ctx;
    uint64_t own[8];

    (void)e;
    memcpy(own, values, (size_t)n * sizeof *own);
    meet(m, own, (size_t)n);
    for (uint32_t i = 0; i < m->team->ranks; i++)
        for (int k = 0; k < n; k++)
            if (((const uint64_t *)m->team->bytes[i])[k] > values[k])
                values[k] = ((const uint64_t *)m->team->bytes[i])[k];
    pthread_barrier_wait(&m->team->barrier);
    return DELTAFS_OK;
}

struct told {
    struct error error;
    struct bytes *bytes;
};

static int team_report(struct rank_group *ctx, struct bytes *b, struct error *e)
{
    struct unit_member *m = (struct unit_member *)(void *)ctx;
    struct told own = {*e, b};

    meet(m, &own, sizeof own);
    const struct told *told = m->team->bytes[0];
    int status = told->error.status;
    if (status != DELTAFS_OK)
        *e = told->error;
    if (m->rank != 0)
        b->used = 0;
    if (m->rank != 0 && e->status == DELTAFS_OK)
        bytes_append(b, told->bytes->buffer.bytes, told->bytes->used, e);
    pthread_barrier_wait(&m->team->barrier);
    return status;
}

static int team_gather(struct rank_group *ctx, const void *mine, size_t n, struct bytes *all, struct error *e)
{
    struct unit_member *m = (struct unit_member *)(void *)ctx;
    int status = team_agree(ctx, e);

    if (status != DELTAFS_OK)
        return status;
    meet(m, mine, n);
    for (uint32_t i = 0; i < m->team->ranks && status == DELTAFS_OK; i++)
        status = bytes_append(all, m->team->bytes[i], m->team->size[i], e);
    pthread_barrier_wait(&m->team->barrier);
    return status;
}

void unit_team_init(struct unit_team *t, uint32_t ranks)
{
    *t = (struct unit_team){.ranks = ranks};
    CHECK_IS(pthread_barrier_init(&t->barrier, NULL, ranks), 0);
}

void unit_team_fini(struct unit_team *t)
{
    pthread_barrier_destroy(&t->barrier);
}

void unit_team_wait(struct unit_member *m)
{
    pthread_barrier_wait(&m->team->barrier);
}

const struct collective_calls unit_team_calls = {
    .agree = team_agree, .max = team_max, .broadcast = team_report, .gather = team_gather};

struct collective unit_team_group(struct unit_member *m)
{
    return (struct collective){.calls = &unit_team_calls,
                               .ctx = (struct rank_group *)(void *)m,
                               .rank = m->rank,
                               .ranks = m->team->ranks,
                               .job = m->team->ranks};
}
