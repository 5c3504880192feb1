#include <string.h>
#include "damage.h"

#define ADDED 5 /* records of the new epoch */

static const char value[] = "added after the damage";

static deltafs_options *text_repair_options(void)
{
    static const char *const options[][2] = {{"memory", "8M"}, {"threads", "0"}, {"sync", "none"}};
    deltafs_options *o;

    if (deltafs_options_create(&o) != DELTAFS_OK)
        damage_die("no memory");
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (deltafs_options_set(o, options[i][0], options[i][1]) != DELTAFS_OK)
            damage_die("%s", deltafs_errmsg(NULL));
    return o;
}

static void text_repair_failed(const struct damage *d, const char *call, const char *message,
                               struct damage_verdict *out)
{
    if (!damage_is_named(d, message) && !(d->partition == DAMAGE_MANIFEST && strstr(message, ".index: ")))
        damage_blame(out, &out->wrong, "%s: the message does not name what is damaged: %s", call, message);
}

static int64_t text_repair_value_size(const struct damage_container *c)
{
    deltafs_dir *d;
    struct deltafs_stat stat = {.struct_size = sizeof stat};

    if (deltafs_open(DAMAGE_PATH, NULL, &d) != DELTAFS_OK)
        return -1;
    if (deltafs_stat(d, &stat) != DELTAFS_OK)
        damage_die("%s: %s", c->name, deltafs_errmsg(d));
    deltafs_close(d);
    return stat.value_size;
}

static int text_repair_append(const struct damage_container *c, deltafs_dir *d, size_t size)
{
    static const char bytes[1024];
    int status = DELTAFS_OK;

    for (uint64_t i = 0; i < ADDED && status == DELTAFS_OK; i++)
        status = c->is_bytes ? deltafs_append_bytes(d, &i, 1 + i, size == sizeof value ? value : bytes, size)
                             : deltafs_append(d, i, size == sizeof value ? value : bytes, size);
    return status;
}

/* The new epoch's records are there; or damage is in their way. */
static void text_repair_read(const struct damage_container *c, const struct damage *d, struct damage_verdict *out)
{
    const struct deltafs_range range = {d->new_label, d->new_label};
    deltafs_dir *dir;

    if (deltafs_open(DAMAGE_PATH, NULL, &dir) != DELTAFS_OK) {
        damage_blame(out, &out->lost, "open after a reopening that went well: %s", deltafs_errmsg(NULL));
        return;
    }
    for (uint64_t i = 0; i < ADDED; i++) {
        deltafs_records *got = NULL;
        int status = c->is_bytes ? deltafs_get_bytes(dir, &i, 1 + i, &range, &got) : deltafs_get(dir, i, &range, &got);
        if (status != DELTAFS_OK || got->count != 1)
            damage_blame(out, &out->lost, "a record added after a reopening: %s", deltafs_errmsg(dir));
        deltafs_records_destroy(got);
    }
    deltafs_close(dir);
}

static void text_repair_reopen(const struct damage_container *c, struct damage *d, struct damage_verdict *out)
{
    deltafs_options *o = text_repair_options();
    deltafs_dir *dir;
    int64_t size = text_repair_value_size(c);
    uint64_t last = c->label[c->epochs - 1];
    int status = deltafs_reopen(DAMAGE_PATH, o, &dir);

    deltafs_options_destroy(o);
    if (status != DELTAFS_OK) {
        text_repair_failed(d, "reopen", deltafs_errmsg(NULL), out);
        return;
    }
    if (last < UINT64_MAX) {
        d->new_label = last + 1;
        if (text_repair_append(c, dir, size < 0 ? sizeof value : (size_t)size) != DELTAFS_OK ||
            deltafs_epoch_end(dir, d->new_label) != DELTAFS_OK)
            damage_blame(out, &out->wrong, "reopened, but nothing can be added: %s", deltafs_errmsg(dir));
    }
    if (deltafs_close(dir) != DELTAFS_OK)
        damage_blame(out, &out->wrong, "close after a reopening: %s", deltafs_errmsg(NULL));
    if (d->new_label > 0 && out->lost + out->wrong == 0)
        text_repair_read(c, d, out);
}

void damage_mend(const struct damage_container *c, struct damage *d, struct damage_rng *r, struct damage_verdict *out)
{
    /* What is truncated, or rebuilt, is no damage any more. */
    d->is_committed = 0;
    if (damage_below(r, 2) == 0)
        text_repair_reopen(c, d, out);
    else if (deltafs_repair(DAMAGE_PATH, NULL, NULL, NULL) != DELTAFS_OK)
        text_repair_failed(d, "repair", deltafs_errmsg(NULL), out);
}
