#include "posix/particles.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "posix/locks.h"
#include "posix/particles_parts.h"
#include "posix/posix_job.h"

#define MEMORY_AUTO                                                                                                    \
    ((uint64_t)32 << 20) /* bytes of the spool, if the option memory is not set; else the half of that */

int particles_says(struct particles *p, enum particles_said kind)
{
    return !(atomic_fetch_or(&p->said, 1u << kind) & 1u << kind);
}

int particles_failed(int status)
{
    posix_say("%s", deltafs_errmsg(NULL));
    return status == DELTAFS_ERR_LABEL || status == DELTAFS_ERR_SCHEMA || status == DELTAFS_ERR_SIZE
               ? EINVAL
               : deltafs_namespace_errno(status);
}

/* ---- What the directory is ---- */

/* A number with a unit, as options have them; `otherwise` if it is a word. */
static uint64_t size_of_option(const deltafs_options *o, const char *name, uint64_t otherwise)
{
    static const char units[] = "KMGT";
    const char *text = "";
    char *end;

    deltafs_options_get(o, name, &text);
    uint64_t size = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    return end == text ? otherwise : unit ? size << 10 * (unit - units + 1) : size;
}

static int know_from_options(struct particles *p, const deltafs_options *o)
{
    const char *keys = "", *text = "";
    deltafs_schema *schema;
    int status = deltafs_options_get(o, "keys", &keys);

    if (status == DELTAFS_OK)
        status = deltafs_options_get(o, "schema", &text);
    p->is_bytes = strcmp(keys, "bytes") == 0;
    p->value_size = (int64_t)size_of_option(o, "value_size", UINT64_MAX);
    if (status == DELTAFS_OK && *text && (status = deltafs_schema_parse(text, &schema)) == DELTAFS_OK) {
        p->value_size = (int64_t)deltafs_schema_size(schema);
        deltafs_schema_destroy(schema);
    }
    return status;
}

static int know_from_directory(struct particles *p, deltafs_dir *dir)
{
    struct deltafs_stat st = {.struct_size = sizeof st};
    int status = deltafs_stat(dir, &st);

    p->is_bytes = status == DELTAFS_OK && strcmp(st.keys, "bytes") == 0;
    p->value_size = status == DELTAFS_OK ? st.value_size : -1;
    deltafs_close(dir);
    return status;
}

int particles_know(struct particles *p)
{
    deltafs_options *o = NULL;
    deltafs_dir *dir;

    if (atomic_load(&p->is_known))
        return 0;
    int status = deltafs_options_create(&o);
    if (status == DELTAFS_OK) {
        p->memory = (size_t)size_of_option(o, "memory", 2 * MEMORY_AUTO) / 2;
        status = deltafs_open(p->target, NULL, &dir);
        /* A folder that is no directory yet: another process of the run is creating it, from the same options. */
        if (status == DELTAFS_OK)
            status = know_from_directory(p, dir);
        else if (status == DELTAFS_ERR_NOT_FOUND || status == DELTAFS_ERR_NOT_DELTAFS)
            status = know_from_options(p, o);
    }
    deltafs_options_destroy(o);
    if (status != DELTAFS_OK)
        return particles_failed(status);
    atomic_store_explicit(&p->is_known, 1, memory_order_release);
    return 0;
}

/* ---- Fork ---- */

static void each_particles(void (*fn)(struct particles *p))
{
    for (size_t i = 0; i < mounts.count; i++)
        if (mounts.mount[i].particles)
            fn(mounts.mount[i].particles);
}

static void hold(struct particles *p)
{
    lock_take(&p->epoch_lock);
    lock_take(&p->read_lock);
    lock_take(&p->lock);
}

static void release(struct particles *p, int is_child)
{
    lock_release(&p->lock, is_child);
    lock_release(&p->read_lock, is_child);
    lock_release(&p->epoch_lock, is_child);
}

static void let_go(struct particles *p)
{
    release(p, 0);
}

/* A handle's threads are not in the child, so it stays as it is there. */
static void forget(struct particles *p)
{
    spool_destroy(p->spool);
    p->spool = NULL;
    p->reader = NULL;
    p->error = 0;
    p->lost = p->lost_before = 0;
    release(p, 1);
}

void particles_before_fork(void)
{
    each_particles(hold);
}

void particles_after_fork(int is_child)
{
    if (is_child)
        file_each(record_forget, NULL);
    each_particles(is_child ? forget : let_go);
}

/* ---- The end ---- */

static void finish_epochs(int *first)
{
    for (size_t i = 0; i < mounts.count; i++) {
        struct mount *m = &mounts.mount[i];
        int error = m->particles ? particles_end_last(m->particles) : 0;
        *first = *first != 0 ? *first : error;
    }
}

static int finish(void)
{
    int error = file_each(record_finish, NULL);

    finish_epochs(&error);
    return error;
}

/* By all ranks of a job, at the end of MPI. */
static void finish_job(void)
{
    finish();
}

int particles_finish(void)
{
    job_leave();
    return finish();
}

/* ---- Creation ---- */

int particles_create(const char *target, struct particles **out)
{
    struct particles *p = calloc(1, sizeof *p);
    const char *label = getenv("DELTAFS_POSIX_LABEL");

    if (!p || !(p->target = strdup(target))) {
        free(p);
        return ENOMEM;
    }
    p->label = label && *label ? label : NULL;
    if (p->label && !label_is_valid(p->label)) {
        posix_say("DELTAFS_POSIX_LABEL=%s is no $NAME of an environment variable, and no pattern such as dump.%%d",
                  label);
        free(p->target);
        free(p);
        return EINVAL;
    }
    lock_init(&p->lock);
    lock_init(&p->epoch_lock);
    lock_init(&p->read_lock);
    job_at_end(finish_job);
    *out = p;
    return 0;
}
