/* Containers of which files and folders are removed, renamed, swapped, taken from older copies or from others, or
 * replaced by links. Each is then read in all ways, and written, repaired or removed, and read again: an answer is
 * right, or an error says that it is not; and no other container is changed.
 *
 *     torture-files [--count N] [--seed S] [--case I] [--folder DIR]
 *
 * Case I depends on the seed and I alone. The last line is "torture: files N tried, L lost, W wrong"; the exit code is
 * 1 if L or W is above 0. A case whose process ends by a signal, or hangs, is wrong. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "torture_cases.h"
#include "torture_files.h"

/* ---- What is done with the container then ---- */

static int repair(struct files_case *c, int is_dry)
{
    const struct deltafs_repair_options options = {.struct_size = sizeof options, .dry_run = is_dry};
    char path[300];

    if (c->subject.shape.kind == FILES_LOGICAL ||
        (c->subject.shape.kind == FILES_INSIDE && torture_below(&c->rng, 2) == 0))
        return deltafs_logical_repair(c->subject.path, &options, NULL, NULL);
    snprintf(path, sizeof path, c->subject.shape.kind == FILES_INSIDE ? "%s/keys" : "%s", c->subject.path);
    return deltafs_repair(path, &options, NULL, NULL);
}

/* Empty the logical file. */
static int empty(struct files_case *c)
{
    deltafs_logical *l;
    int status = deltafs_logical_open(c->subject.path, O_WRONLY, NULL, &l);

    if (status != DELTAFS_OK)
        return status;
    status = deltafs_logical_truncate(l, 0);
    int closed = deltafs_logical_close(l);
    status = status == DELTAFS_OK ? closed : status;
    c->subject.is_emptied = 1;
    c->subject.other_size = 0;
    if (status == DELTAFS_OK)
        c->subject.size = 0;
    return status;
}

/* Returns what is said of it. */
static const char *act(struct files_case *c)
{
    static char text[1200];
    char message[1024] = "";
    int is_logical = c->subject.shape.kind == FILES_LOGICAL, status = DELTAFS_OK;
    uint64_t dice = torture_below(&c->rng, is_logical ? 8 : 5);

    if (dice == 0) {
        return "only read";
    } else if (dice <= 2) {
        status = repair(c, dice == 1);
        snprintf(text, sizeof text, "%s: %s", dice == 1 ? "repair, dry" : "repair",
                 status == DELTAFS_OK ? "done" : deltafs_errmsg(NULL));
    } else if (dice <= 4) {
        status = files_next(&c->subject, 0, message);
        snprintf(text, sizeof text, "written to: %s", status == DELTAFS_OK ? "done" : message);
    } else if (dice == 5) {
        status = empty(c);
        snprintf(text, sizeof text, "emptied: %s", status == DELTAFS_OK ? "done" : deltafs_errmsg(NULL));
    } else if (dice == 6) {
        status = deltafs_logical_flatten(c->subject.path);
        snprintf(text, sizeof text, "flattened: %s", status == DELTAFS_OK ? "done" : deltafs_errmsg(NULL));
    } else {
        status = deltafs_logical_remove(c->subject.path);
        snprintf(text, sizeof text, "removed: %s", status == DELTAFS_OK ? "done" : deltafs_errmsg(NULL));
    }
    if (dice == 2 && c->lacks_proof) {
        c->subject.state--;
        c->lacks_line = 1;
    }
    /* A repair may commit an epoch that was complete, and had no line. */
    int has_maybe = dice >= 3 ? status != DELTAFS_OK : dice == 2 && c->lacks_line;
    c->subject.maybe = has_maybe ? c->subject.state + 1 : 0;
    return text;
}

/* ---- One case ---- */

/* Make a container, with copies of what it was before in FOLDER/old0 and so on. */
static size_t make(struct files *f, uint64_t seed, uint64_t content, const char *folder, const char *name, int has_olds)
{
    struct files_shape shape;
    char root[200], old[200], message[1024];
    size_t olds = 0;

    files_shape_make(&shape, seed);
    shape.seed = content;
    snprintf(root, sizeof root, "%.150s/%s", folder, name);
    files_init(f, &shape, root);
    for (size_t i = 0; i < shape.states; i++) {
        if (files_next(f, shape.is_killed && i + 1 == shape.states, message) != DELTAFS_OK)
            files_die("seed %ju: %s", (uintmax_t)seed, message);
        snprintf(old, sizeof old, "%.150s/old%zu", folder, olds);
        if (has_olds)
            files_copy(root, old);
        olds += has_olds != 0;
    }
    return olds;
}

static void read_it(struct files_case *c, const char *when, struct torture_verdict *v)
{
    static char about[2600];
    struct files_reading reading;

    snprintf(about, sizeof about, "%s; %s; case", c->text, when);
    v->about = about;
    files_check(&c->subject, c->may_be_older ? 0 : c->subject.state, FILES_ANY, &reading, v);
    if (c->may_be_older && !reading.has_failed)
        files_check(&c->subject, c->subject.state, FILES_ANY, &reading, v);
}

/* Let the subject be a copy, as cp -a makes it, whose links still lead to the original's volumes. */
static void copy_subject(struct files_case *c)
{
    char root[200];

    snprintf(root, sizeof root, "%.180s/t", c->folder);
    files_copy(c->subject.root, root);
    snprintf(c->subject.path, sizeof c->subject.path, "%s/%s", root, strrchr(c->subject.path, '/') + 1);
    snprintf(c->subject.root, sizeof c->subject.root, "%s", root);
    strcat(c->text, " that was copied");
}

/* Whether a file of the container has the bytes that file `made` had when the container was made. */
static int is_as_made(const struct files_case *c, const char *name, const char *made)
{
    char path[PATH_MAX], now[PATH_MAX], folder[PATH_MAX], old[32];

    snprintf(old, sizeof old, "old%zu", c->olds - 1);
    files_join(folder, c->folder, old);
    files_join(path, folder, strrchr(c->subject.path, '/') + 1);
    return files_same(files_join(folder, path, made), files_join(now, c->subject.path, name));
}

static int is_hurt(const struct files_case *c, const char *name)
{
    return !is_as_made(c, name, name);
}

/* A session of a logical file is known by its SESSION, and by its line in MANIFEST. One that has lost both, as if an
 * earlier state of the file had been restored, cannot be missed: what it wrote is then not read, and nothing tells.
 * (The manual says so where it describes what repair does with a logical file.) */
static int may_lack_sessions(const struct files_case *c)
{
    char name[32];
    int is = 0;

    for (size_t i = 0; i < c->subject.shape.states && !is; i++) {
        snprintf(name, sizeof name, "s%08zx/SESSION", i);
        is = is_hurt(c, name);
    }
    return is && is_hurt(c, "MANIFEST");
}

/* With sync=close, MANIFEST.copy gets the lines of epochs at the close, so that of a writer that was killed lacks the
 * last one; of a new directory there is no copy yet. If it is in MANIFEST's place, too, all is as it was just before
 * that line was written: the epoch is not committed. (The manual says so where it describes the lines of the manifest,
 * and the commit.) */
static int lacks_last_line(const struct files_case *c)
{
    const struct files_shape *s = &c->subject.shape;

    return s->kind == FILES_DIRECTORY && s->is_killed && strcmp(s->sync, "close") == 0 && s->states > 1 &&
           is_hurt(c, "MANIFEST") && is_as_made(c, "MANIFEST", "MANIFEST.copy");
}

/* The same where repair may take the copy of a hurt MANIFEST. It commits the epoch if LEASE says that the writer had
 * finished it, and the logs have it. If one of these is hurt, too, as by a swap with MANIFEST, the epoch is one that
 * was not finished for all that is left; repair says that it is discarded, and nobody can know better. */
static int lacks_proof(const struct files_case *c)
{
    static const char *const logs[] = {"%02zx/p%08zx.index", "%02zx/p%08zx.data", "%02zx/v%08zx.values"};
    const struct files_shape *s = &c->subject.shape;
    size_t partitions = (size_t)atoi(s->partitions);
    char name[32];
    int is = is_hurt(c, "LEASE");

    if (s->kind != FILES_DIRECTORY || !s->is_killed || strcmp(s->sync, "close") != 0 || s->states < 2 ||
        !is_hurt(c, "MANIFEST") || c->lacks_line)
        return 0;
    for (size_t i = 0; i < 3 * partitions && !is; i++) {
        snprintf(name, sizeof name, logs[i % 3], i / 3, i / 3);
        is = is_hurt(c, name);
    }
    return is;
}

static int run(const char *folder, uint64_t seed, uint64_t i, struct torture_verdict *v)
{
    static struct files_case c;
    struct torture_rng mix = {seed ^ i * 0xd1342543de82ef95u};
    char original[200];

    c.rng.state = torture_next(&mix);
    snprintf(c.folder, sizeof c.folder, "%s", folder);
    uint64_t shape = torture_next(&c.rng), other = torture_next(&c.rng);
    c.olds = make(&c.subject, shape, shape, folder, "s", 1);
    /* Of the same sort, mostly. */
    make(&c.other, torture_below(&c.rng, 4) ? shape : other, other, folder, "o", 0);
    snprintf(c.text, sizeof c.text, "a %s%s", files_kind_names[c.subject.shape.kind],
             c.subject.shape.is_killed ? " whose writer was killed" : "");
    snprintf(original, sizeof original, "%s", c.subject.root);
    int is_copy = c.subject.shape.volumes > 0 && torture_below(&c.rng, 3) == 0;
    uint64_t sum = files_sum(c.other.root), original_sum = is_copy ? files_sum(original) : 0;
    if (is_copy)
        copy_subject(&c);
    for (uint64_t n = is_copy ? torture_below(&c.rng, 2) : torture_below(&c.rng, 5) == 0 ? 2 : 1; n > 0; n--)
        files_hurt(&c);
    c.subject.may_lack = may_lack_sessions(&c);
    c.lacks_line = lacks_last_line(&c);
    c.lacks_proof = lacks_proof(&c);
    c.subject.state -= (size_t)c.lacks_line;
    read_it(&c, "read", v);
    const char *acted = act(&c);
    read_it(&c, acted, v);
    if (files_sum(c.other.root) != sum)
        torture_wrong(v, "another container has been changed");
    if (is_copy && files_sum(original) != original_sum)
        torture_wrong(v, "the original has been changed");
    return 1;
}

int main(int argc, char **argv)
{
    return torture_cases("files", run, argc, argv);
}
