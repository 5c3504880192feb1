#include "unit_repair.h"
#include <unistd.h>

static char repair_names[REPAIR_NAMES][24];

struct repair_said repair_said;

void repair_note(int status, const char *message, void *arg)
{
    size_t n = strlen(repair_said.text);

    (void)arg;
    snprintf(repair_said.text + n, sizeof repair_said.text - n, "%s\n", message);
    repair_said.done += status == DELTAFS_OK;
    repair_said.failed += status < DELTAFS_OK;
    repair_said.remarks += status == DELTAFS_REPAIR_REMARK;
}

int repair_run(const char *path, int dry_run, long label)
{
    struct deltafs_repair_options wish = {
        .struct_size = sizeof wish, .dry_run = dry_run, .has_label = label >= 0, .label = (uint64_t)label};

    memset(&repair_said, 0, sizeof repair_said);
    return deltafs_repair(path, &wish, repair_note, NULL);
}

void repair_check_said(const char *text)
{
    if (!strstr(repair_said.text, text))
        fail_msg("seed %llu: no '%s' in '%s'", (unsigned long long)unit_seed, text, repair_said.text);
}

void repair_check_errmsg(const char *text)
{
    if (!strstr(deltafs_errmsg(NULL), text))
        fail_msg("seed %llu: no '%s' in '%s'", (unsigned long long)unit_seed, text, deltafs_errmsg(NULL));
}

void repair_check(struct model *m, const char *path)
{
    struct rng r = {3};
    deltafs_dir *d = unit_open(path);

    if (m->is_bytes)
        for (int i = 0; i < REPAIR_NAMES; i++)
            model_check_name(m, d, repair_names[i], strlen(repair_names[i]), NULL);
    else
        model_check_all(m, d, &r);
    model_check_scan(m, d, NULL);
    model_check_facts(m, d);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(repair_run(path, 1, -1), DELTAFS_OK);
    if (repair_said.done > 0)
        fail_msg("%s", repair_said.text);
}

void repair_append(struct model *m, deltafs_dir *d, struct rng *r, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const char *name = repair_names[rng_below(r, REPAIR_NAMES)];
        uint32_t size = (uint32_t)rng_below(r, 3000);
        CHECK_CALL(d,
                   m->is_bytes ? model_append_bytes(m, d, name, strlen(name), size)
                               : model_append(m, d, rng_below(r, 5000), 40),
                   DELTAFS_OK);
    }
}

deltafs_dir *repair_create(const struct model *m, const char *path)
{
    return unit_create(path,
                       unit_options("memory", "8M", "partitions", "3", "threads", "0", "keys",
                                    m->is_bytes ? "bytes" : "u64", "value_size", m->is_bytes ? "any" : "40", NULL));
}

void repair_make_closed(struct model *m, const char *path, uint64_t seed, uint64_t epochs, uint32_t n)
{
    struct rng r = rng_init(seed);
    deltafs_dir *d = repair_create(m, path);

    for (uint64_t epoch = 1; epoch <= epochs; epoch++) {
        repair_append(m, d, &r, n);
        CHECK_CALL(d, deltafs_epoch_end(d, epoch), DELTAFS_OK);
        model_keep(m, epoch);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

void repair_make_unfinished(struct model *m, const char *path, struct rng *r)
{
    char copy[300];
    size_t n;
    deltafs_dir *d = repair_create(m, path);

    snprintf(copy, sizeof copy, "%s.open", path);
    for (uint64_t epoch = 1; epoch <= 2; epoch++) {
        repair_append(m, d, r, 1500);
        CHECK_CALL(d, deltafs_epoch_end(d, 10 * epoch), DELTAFS_OK);
        model_keep(m, 10 * epoch);
    }
    repair_append(m, d, r, 2000);
    CHECK_CALL(d, deltafs_epoch_end(d, 30), DELTAFS_OK);
    unit_copy(path, copy);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    unit_remove(path);
    CHECK(rename(copy, path) == 0);
    snprintf(copy, sizeof copy, "%s/MANIFEST", path);
    char *text = (char *)unit_load(copy, &n);
    char *line = strstr(text, "Epoch number=2");
    CHECK(line != NULL);
    unit_cut_manifest(path, (size_t)(line - text) + 9); /* a part of it has been written */
    free(text);
}

void repair_copy(const char *from, const char *to)
{
    unit_remove(to);
    unit_copy(from, to);
}

void repair_damage(const char *index, int how)
{
    size_t n;
    uint8_t *bytes = unit_load(index, &n);

    if (how == 0)
        CHECK(unlink(index) == 0);
    else if (how == 1)
        unit_save(index, bytes, n / 3);
    else
        unit_save(index, repair_names, sizeof repair_names);
    free(bytes);
}

int repair_setup(void **state)
{
    for (int i = 0; i < REPAIR_NAMES; i++)
        snprintf(repair_names[i], sizeof repair_names[i], "particle %d", i);
    return unit_setup(state);
}
