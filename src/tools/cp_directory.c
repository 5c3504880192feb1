#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <deltafs/deltafs_query.h>
#include "tools/aside.h"
#include "tools/copy.h"
#include "tools/cp_directory.h"
#include "tools/progress.h"
#include "tools/target.h"
#include "tools/text.h"

struct directory_copy {
    const char *from;
    char to[PATH_MAX], folder[PATH_MAX], aside[ASIDE_ROOM];
    const struct deltafs_range *range;
    deltafs_dir *in, *out;
    struct deltafs_stat stat;
    struct progress bar;
    int is_quiet;
    uint64_t epochs;
};

/* The name of the copy, which nothing has. */
static int copy_find_name(struct directory_copy *c, const char *to)
{
    struct stat st;
    struct target t;
    char from[PATH_MAX];
    int n = snprintf(c->to, sizeof c->to, "%s", to), is_folder = stat(to, &st) == 0 && S_ISDIR(st.st_mode);

    while (n > 1 && c->to[n - 1] == '/')
        c->to[--n] = '\0';
    if (is_folder && target_look(to, &t) == EXIT_OK && t.kind == TARGET_FOLDER) {
        snprintf(from, sizeof from, "%s", c->from);
        n = snprintf(c->to, sizeof c->to, "%s/%s", to, basename(from));
    }
    if (n < 0 || (size_t)n >= sizeof c->to)
        return text_fail(EXIT_TROUBLE, "%s: %s", to, strerror(ENAMETOOLONG));
    return lstat(c->to, &st) != 0
               ? target_check_new(c->to)
               : text_fail(EXIT_TROUBLE, "%s: exists already; remove it (deltafs rm), or give another name", c->to);
}

/* A directory like the source. */
static int copy_create(struct directory_copy *c)
{
    char partitions[16], size[24];
    const struct {
        const char *name, *value;
    } options[] = {{"keys", c->stat.keys},
                   {"schema", c->stat.schema},
                   {"partitioner", strcmp(c->stat.partitioner, "range") == 0 ? "range" : "hash"},
                   {"partitions", partitions},
                   {"layout", "partitioned"},
                   {"value_size", size}};
    deltafs_options *o;
    int status = deltafs_options_create(&o);

    snprintf(partitions, sizeof partitions, "%" PRIu32, c->stat.partitions);
    if (c->stat.value_size < 0)
        snprintf(size, sizeof size, "any");
    else
        snprintf(size, sizeof size, "%" PRId64, c->stat.value_size);
    for (size_t i = 0; i < sizeof options / sizeof options[0] && status == DELTAFS_OK; i++)
        status = deltafs_options_set(o, options[i].name, options[i].value);
    if (status == DELTAFS_OK) {
        aside_name("cp", c->to, c->folder, c->aside);
        status = deltafs_create(c->aside, o, &c->out);
    }
    deltafs_options_destroy(o);
    return text_of_call(status);
}

static int copy_attributes(struct directory_copy *c)
{
    struct deltafs_attribute a = {.struct_size = sizeof a};

    int status = DELTAFS_OK;

    for (size_t i = 0; i < c->stat.attributes && status == DELTAFS_OK; i++) {
        status = deltafs_attribute_at(c->in, i, &a);
        if (status == DELTAFS_OK)
            status = deltafs_attribute_set(c->out, &a);
    }
    return text_of_call(status);
}

/* An append that fails makes deltafs_epoch_end return the error. */
static int copy_record(const struct deltafs_record *r, void *arg)
{
    struct directory_copy *c = arg;
    int status = r->key_bytes ? deltafs_append_bytes(c->out, r->key_bytes, r->key_size, r->value, r->size)
                              : deltafs_append(c->out, r->key, r->value, r->size);

    progress_add(&c->bar, 1);
    return status != DELTAFS_OK || copy_is_interrupted();
}

static int copy_epochs(struct directory_copy *c)
{
    struct deltafs_epoch_stat epoch = {.struct_size = sizeof epoch};
    int code = EXIT_OK, stopped = 0;

    for (uint64_t i = 0; i < c->stat.epochs && code == EXIT_OK && !stopped; i++) {
        code = text_of_call(deltafs_epoch_stat(c->in, i, &epoch));
        const struct deltafs_range one = {epoch.label, epoch.label};
        if (code != EXIT_OK || (c->range && (epoch.label < c->range->first || epoch.label > c->range->last)))
            continue;
        code = text_of_call(deltafs_scan(c->in, &one, copy_record, c, &stopped));
        if (code == EXIT_OK && !copy_is_interrupted())
            code = text_of_call(deltafs_epoch_end(c->out, epoch.label));
        c->epochs++;
    }
    return code == EXIT_OK && c->epochs == 0 && c->range
               ? text_fail(EXIT_NOT_FOUND, "cp: %s has no epoch with such a label", c->from)
               : code;
}

/* The copy gets its name, or is removed. */
static int copy_finish(struct directory_copy *c, int code)
{
    int status = deltafs_close(c->out);

    if (code == EXIT_OK)
        code = text_of_call(status);
    if (code == EXIT_OK && !copy_is_interrupted()) {
        if (aside_put_new(c->aside, c->to, 1) == 0)
            return aside_sync(c->folder) == 0
                       ? EXIT_OK
                       : text_fail(EXIT_TROUBLE, "%s: cannot be synced: %s", c->folder, strerror(errno));
        code = text_fail(EXIT_TROUBLE, "%s: cannot be renamed: %s", c->to, strerror(errno));
    }
    if (deltafs_remove(c->aside) != DELTAFS_OK)
        text_fail(0, "%s: cannot be removed: %s", c->aside, deltafs_errmsg(NULL));
    return code;
}

static int copy_progress(uint64_t records, void *arg)
{
    progress_add(arg, records);
    return copy_is_interrupted();
}

/* The copy of a compacted directory is one, too: its epochs cannot be read one by one but by reading everything. */
static int copy_compacted(struct directory_copy *c)
{
    const struct deltafs_compact_options o = {
        .struct_size = sizeof o, .range = c->range, .progress = copy_progress, .arg = &c->bar};

    aside_name("cp", c->to, c->folder, c->aside);
    progress_begin(&c->bar, c->range ? 0 : c->stat.records, !c->is_quiet);
    int status = deltafs_compact(c->from, c->aside, &o);
    progress_end(&c->bar);
    if (status == DELTAFS_ERR_NOT_FOUND && c->range)
        return text_fail(EXIT_NOT_FOUND, "cp: %s has no epoch with such a label", c->from);
    if (status == DELTAFS_ERR_CANCELLED)
        return EXIT_TROUBLE; /* the signal ends the process */
    return status == DELTAFS_OK ? copy_finish(c, EXIT_OK) : text_of_call(status);
}

static int copy_by_epochs(struct directory_copy *c)
{
    int code = copy_create(c);

    if (code != EXIT_OK)
        return code;
    progress_begin(&c->bar, c->range ? 0 : c->stat.records, !c->is_quiet);
    code = copy_attributes(c);
    if (code == EXIT_OK)
        code = copy_epochs(c);
    progress_end(&c->bar);
    return copy_finish(c, code);
}

int cp_directory(const char *from, const char *to, const struct deltafs_range *range, int is_quiet)
{
    struct directory_copy c = {
        .from = from, .range = range, .is_quiet = is_quiet, .stat = {.struct_size = sizeof c.stat}};
    int code = target_open_records(from, &c.in);

    if (code != EXIT_OK)
        return code;
    code = text_of_call(deltafs_stat(c.in, &c.stat));
    if (code == EXIT_OK)
        code = copy_find_name(&c, to);
    if (code == EXIT_OK) {
        copy_hold_signals();
        code = c.stat.compacted > 0 ? copy_compacted(&c) : copy_by_epochs(&c);
    }
    deltafs_close(c.in);
    copy_release_signals();
    return code;
}
