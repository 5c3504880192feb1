/* Namespaces to which something happens: the power goes or the process ends at some file operation, or an operation
 * fails; in a job that changes names and files, commits, publishes, withdraws, compacts and collects. Afterwards the
 * namespace is as it was at the last commit, or as it would be after the one that failed; each snapshot has what it had
 * when it was published; and the next job goes on.
 *
 *     torture-namespace [--count N] [--seed S] [--case I] [--folder DIR]
 *
 * Case I depends on the seed and I alone. Cases in which nothing happened are not counted. The last line is "torture:
 * namespace N tried, L lost, W wrong"; the exit code is 1 if L or W is above 0. A case whose process ends by a signal,
 * or hangs, is wrong. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <deltafs/deltafs_namespace.h>
#include "files.h"
#include "torture_cases.h"
#include "torture_faults.h"
#include "torture_job.h"

#define FOLDERS   2
#define NAMES     8 /* in each */
#define SNAPSHOTS 8
#define BYTES     (600u << 10) /* of a file, at most */

/* The bytes of a file; never changed once they are made, and shared by states. */
struct bytes_of {
    struct bytes_of *next; /* of all that were made */
    size_t size;
    uint8_t bytes[];
};

/* What a namespace has. */
struct state {
    int has_folder[FOLDERS];
    const struct bytes_of *file[FOLDERS][NAMES]; /* NULL: there is none */
    int is_open[FOLDERS][NAMES];                 /* a call failed: it may have anything, or not be there */
};

struct snapshot {
    struct state state;
    int is_there, may_be_there;
};

struct namespace_case {
    struct torture_rng rng; /* of the case; a job has its own */
    struct torture_verdict *v;
    char path[240], registry[240], save[240], text[300]; /* `text`: what happens, for messages */
    struct bytes_of *made;
    struct model {
        struct state now, committed, maybe; /* `maybe`: what a commit that failed would have brought */
        int has_maybe;
        int is_made; /* by a call that said so */
        struct snapshot snapshot[SNAPSHOTS];
    } m;
    int is_failing; /* calls may fail */
    int has_failed; /* one did */
};

/* ---- Calls ---- */

/* Returns whether the call succeeded; if it did not, something must have happened. */
static int ok(struct namespace_case *c, const char *call, int status)
{
    if (status == DELTAFS_OK)
        return 1;
    c->has_failed = 1;
    if (!c->is_failing || !torture_io_has_failed())
        torture_lost(c->v, "%s returns %d: %s", call, status, deltafs_errmsg(NULL));
    return 0;
}

static int open_ns(const char *path, int flags, deltafs_namespace **out)
{
    deltafs_options *o = NULL;

    *out = NULL;
    if (deltafs_options_create(&o) != DELTAFS_OK || deltafs_options_set(o, "memory", "32M") != DELTAFS_OK ||
        deltafs_options_set(o, "threads", "0") != DELTAFS_OK || deltafs_options_set(o, "sync", "commit") != DELTAFS_OK)
        files_die("options: %s", deltafs_errmsg(NULL));
    int status = deltafs_namespace_open(path, flags, o, out);
    deltafs_options_destroy(o);
    return status;
}

static const char *path_of(size_t folder, size_t name)
{
    static char text[4][32];
    static size_t next;
    char *p = text[next++ % 4];

    snprintf(p, sizeof text[0], "/folder%zu/file%zu", folder, name);
    return p;
}

static const char *snapshot_of(const struct namespace_case *c, size_t i, char text[300])
{
    snprintf(text, 300, "%s@s%zu", c->registry, i);
    return text;
}

/* ---- What must be there ---- */

/* Returns what is not as in the state, or NULL. */
static const char *file_differs(const struct bytes_of *want, int is_open, deltafs_namespace *ns, const char *path)
{
    struct deltafs_namespace_stat st = {.struct_size = sizeof st};
    deltafs_namespace_file *f = NULL;
    static uint8_t bytes[BYTES + 1];
    size_t got = 0;
    int status = deltafs_namespace_stat(ns, path, 0, &st);

    if (status == DELTAFS_ERR_NOT_FOUND && (!want || is_open))
        return NULL;
    if (status != DELTAFS_OK)
        return deltafs_errmsg(NULL);
    if (!want && !is_open)
        return "is there";
    if (deltafs_namespace_file_open(ns, path, O_RDONLY, 0, &f) != DELTAFS_OK)
        return deltafs_errmsg(NULL);
    status = deltafs_namespace_file_read(f, 0, bytes, sizeof bytes, &got);
    deltafs_namespace_file_close(f);
    if (status != DELTAFS_OK)
        return deltafs_errmsg(NULL);
    if (is_open || (got == want->size && memcmp(bytes, want->bytes, got) == 0))
        return NULL;
    return got == want->size ? "has other bytes" : "has another size";
}

/* Returns how many entries a folder has; -1 if it cannot be listed. */
static int entries_of(deltafs_namespace *ns, const char *path)
{
    const struct deltafs_namespace_entry *entry = NULL;
    deltafs_namespace_list *l = NULL;
    int n = 0, status = deltafs_namespace_list_open(ns, path, &l);

    while (status == DELTAFS_OK && (status = deltafs_namespace_list_next(l, &entry)) == DELTAFS_OK && entry)
        n++;
    deltafs_namespace_list_close(l);
    return status == DELTAFS_OK ? n : -1;
}

/* Compare an open namespace; `why` gets what is not as in the state. Returns whether all is. */
static int fits(const struct state *s, deltafs_namespace *ns, char why[400])
{
    for (size_t i = 0; i < FOLDERS; i++) {
        char folder[32];
        int most = 0, least = 0, n;
        snprintf(folder, sizeof folder, "/folder%zu", i);
        for (size_t k = 0; k < NAMES; k++) {
            const char *differs = file_differs(s->file[i][k], s->is_open[i][k], ns, path_of(i, k));
            if (differs) {
                snprintf(why, 400, "%s: %s", path_of(i, k), differs);
                return 0;
            }
            most += s->file[i][k] || s->is_open[i][k];
            least += s->file[i][k] && !s->is_open[i][k];
        }
        n = entries_of(ns, folder);
        if (n < 0 && (s->has_folder[i] != 0 || entries_of(ns, "/") < 0)) {
            snprintf(why, 400, "%s: %s", folder, deltafs_errmsg(NULL));
            return 0;
        }
        if (n > most || (n >= 0 && n < least)) {
            snprintf(why, 400, "%s: has %d entries instead of %d to %d", folder, n, least, most);
            return 0;
        }
    }
    return 1;
}

static void check_snapshot(struct namespace_case *c, size_t i)
{
    struct snapshot *s = &c->m.snapshot[i];
    char name[300], why[400] = "";
    deltafs_namespace *ns;
    int status = open_ns(snapshot_of(c, i, name), O_RDONLY, &ns);

    if (status == DELTAFS_ERR_NOT_FOUND && !s->is_there) {
        s->may_be_there = 0;
        return;
    }
    if (status != DELTAFS_OK)
        torture_lost(c->v, "snapshot %zu: deltafs_namespace_open returns %d: %s", i, status, deltafs_errmsg(NULL));
    else if (!s->is_there && !s->may_be_there)
        torture_wrong(c->v, "snapshot %zu is there", i);
    else if (!fits(&s->state, ns, why))
        torture_lost(c->v, "snapshot %zu: %s", i, why);
    s->is_there = s->may_be_there = status == DELTAFS_OK;
    deltafs_namespace_close(ns);
}

/* A deltafs_damage_fn. The copy of a manifest is not needed to read, and may be damaged by the loss of power. */
static void report(int status, const char *message, void *verdict)
{
    if (!strstr(message, "/MANIFEST.copy: "))
        torture_wrong(verdict, "deltafs_namespace_verify: %d, %s", status, message);
}

/* Compare what is there, and take it for what is known from now on. */
static void check(struct namespace_case *c)
{
    char why[400] = "", first[400] = "";
    deltafs_namespace *ns;
    int status = open_ns(c->path, O_RDONLY, &ns);

    if (status == DELTAFS_ERR_NOT_FOUND && !c->m.is_made)
        return;
    if (status != DELTAFS_OK)
        torture_lost(c->v, "deltafs_namespace_open returns %d: %s", status, deltafs_errmsg(NULL));
    else if (c->m.has_maybe && fits(&c->m.maybe, ns, first))
        c->m.committed = c->m.maybe;
    else if (!fits(&c->m.committed, ns, why))
        torture_lost(c->v, "%s%s%s", why, *first ? "; " : "", first);
    deltafs_namespace_close(ns);
    int verified = status == DELTAFS_OK ? deltafs_namespace_verify(c->path, report, c->v, NULL) : DELTAFS_OK;
    if (verified != DELTAFS_OK && verified != DELTAFS_ERR_DAMAGED)
        torture_wrong(c->v, "deltafs_namespace_verify returns %d: %s", verified, deltafs_errmsg(NULL));
    c->m.has_maybe = 0;
    for (size_t i = 0; i < SNAPSHOTS; i++)
        check_snapshot(c, i);
}

/* What no call has told for certain: what is there counts. */
static void settle(struct namespace_case *c)
{
    struct state *s = &c->m.committed;
    struct deltafs_namespace_stat st = {.struct_size = sizeof st};
    deltafs_namespace *ns;

    if (open_ns(c->path, O_RDWR, &ns) != DELTAFS_OK)
        return;
    for (size_t i = 0; i < FOLDERS; i++) {
        char folder[32];
        snprintf(folder, sizeof folder, "/folder%zu", i);
        s->has_folder[i] = deltafs_namespace_stat(ns, folder, 0, &st) == DELTAFS_OK;
        for (size_t k = 0; k < NAMES; k++)
            if (s->is_open[i][k]) {
                deltafs_namespace_unlink(ns, path_of(i, k));
                s->file[i][k] = NULL;
                s->is_open[i][k] = 0;
            }
    }
    ok(c, "deltafs_namespace_close", deltafs_namespace_close(ns));
}

/* ---- A job ---- */

static struct bytes_of *new_bytes(struct namespace_case *c, const struct bytes_of *old, size_t size)
{
    struct bytes_of *b = calloc(1, sizeof *b + size);
    size_t n = old && old->size < size ? old->size : size;

    if (!b)
        files_die("no memory");
    b->size = size;
    if (old)
        memcpy(b->bytes, old->bytes, n);
    b->next = c->made;
    c->made = b;
    return b;
}

static int make_folder(struct namespace_case *c, deltafs_namespace *ns, size_t i)
{
    char folder[32];

    if (c->m.now.has_folder[i])
        return 1;
    snprintf(folder, sizeof folder, "/folder%zu", i);
    c->m.now.has_folder[i] = ok(c, "deltafs_namespace_mkdir", deltafs_namespace_mkdir(ns, folder, 0755));
    return c->m.now.has_folder[i];
}

/* Write a part of a file, which is created if it does not exist; then, now and then, cut it. */
static int write_file(struct namespace_case *c, struct torture_rng *r, deltafs_namespace *ns, size_t i, size_t k)
{
    const struct bytes_of *old = c->m.now.file[i][k];
    size_t n = 1 + (size_t)torture_below(r, torture_below(r, 8) == 0 ? BYTES / 2 : 2000);
    size_t at = (size_t)torture_below(r, old ? old->size + 1 : 1), end;
    deltafs_namespace_file *f = NULL;

    if (at + n > BYTES)
        at = 0;
    end = old && old->size > at + n ? old->size : at + n;
    struct bytes_of *b = new_bytes(c, old, end);
    torture_fill(r, b->bytes + at, n);
    int cut = torture_below(r, 6) == 0, done;
    size_t size = cut ? (size_t)torture_below(r, end) : end;
    done = ok(c, "deltafs_namespace_file_open",
              deltafs_namespace_file_open(ns, path_of(i, k), O_RDWR | O_CREAT, 0644, &f));
    if (!f)
        return done;
    done = ok(c, "deltafs_namespace_file_write", deltafs_namespace_file_write(f, at, b->bytes + at, n));
    if (done && cut)
        done = ok(c, "deltafs_namespace_file_truncate", deltafs_namespace_file_truncate(f, size));
    done &= ok(c, "deltafs_namespace_file_close", deltafs_namespace_file_close(f));
    b->size = size;
    c->m.now.file[i][k] = b;
    return done;
}

static int rename_file(struct namespace_case *c, deltafs_namespace *ns, size_t i, size_t k, size_t to, size_t other)
{
    if (i == to && k == other)
        return 1;
    int done = ok(c, "deltafs_namespace_rename", deltafs_namespace_rename(ns, path_of(i, k), path_of(to, other)));

    c->m.now.is_open[to][other] = !done;
    c->m.now.file[to][other] = c->m.now.file[i][k];
    c->m.now.file[i][k] = NULL;
    return done;
}

/* Change something; returns whether no call failed. After one that did, nothing is known of the file. */
static int change(struct namespace_case *c, struct torture_rng *r, deltafs_namespace *ns)
{
    size_t i = (size_t)torture_below(r, FOLDERS), k = (size_t)torture_below(r, NAMES);
    size_t to = (size_t)torture_below(r, FOLDERS), other = (size_t)torture_below(r, NAMES);
    uint64_t way = torture_below(r, 8);
    int done;

    if (!make_folder(c, ns, i) || !make_folder(c, ns, to))
        return 0;
    if (!c->m.now.file[i][k] || way > 2) {
        done = write_file(c, r, ns, i, k);
    } else if (way == 0) {
        done = ok(c, "deltafs_namespace_unlink", deltafs_namespace_unlink(ns, path_of(i, k)));
        c->m.now.file[i][k] = NULL;
    } else {
        done = rename_file(c, ns, i, k, to, other);
    }
    c->m.now.is_open[i][k] = !done;
    return done;
}

/* A commit, or the close. */
static int commit(struct namespace_case *c, const char *call, int status)
{
    int done = ok(c, call, status);

    if (done)
        c->m.committed = c->m.now;
    else
        c->m.maybe = c->m.now;
    c->m.has_maybe = !done;
    return done;
}

static void publish_or_withdraw(struct namespace_case *c, struct torture_rng *r)
{
    size_t i = (size_t)torture_below(r, SNAPSHOTS);
    struct snapshot *s = &c->m.snapshot[i];
    char name[300];

    snapshot_of(c, i, name);
    if (s->is_there) {
        s->is_there = !ok(c, "deltafs_snapshot_withdraw", deltafs_snapshot_withdraw(name));
        s->may_be_there = s->is_there;
        s->is_there = 0;
        return;
    }
    s->state = c->m.committed;
    s->is_there = ok(c, "deltafs_snapshot_publish", deltafs_snapshot_publish(c->path, name));
    s->may_be_there = 1;
}

/* As earlier versions made it: each commit is an epoch. */
static void make_without_journals(struct namespace_case *c)
{
    char name[300], text[4096];
    deltafs_namespace *ns;

    if (!ok(c, "deltafs_namespace_open", open_ns(c->path, O_RDWR | O_CREAT, &ns)) ||
        !ok(c, "deltafs_namespace_close", deltafs_namespace_close(ns)))
        return;
    c->m.is_made = 1;
    snprintf(name, sizeof name, "%s/NAMESPACE", c->path);
    FILE *f = fopen(name, "r+");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = '\0';
    char *line = strstr(text, "\nJournals "), *end = line ? strchr(line + 1, '\n') : NULL;
    if (!end || fseek(f, line - text, SEEK_SET) != 0 || fputs(end, f) == EOF ||
        ftruncate(fileno(f), (off_t)n - (end - line)) != 0 || fclose(f) != 0)
        files_die("%s: cannot be changed", name);
}

/* So many commits that the next ones may merge epochs. */
static void commit_often(struct namespace_case *c)
{
    deltafs_namespace *ns;
    int done = ok(c, "deltafs_namespace_open", open_ns(c->path, O_RDWR, &ns));

    c->m.now = c->m.committed;
    for (uint64_t left = 5 + torture_below(&c->rng, 4); left > 0 && done; left--) {
        done = change(c, &c->rng, ns) && commit(c, "deltafs_namespace_commit", deltafs_namespace_commit(ns));
    }
    if (ns)
        commit(c, "deltafs_namespace_close", deltafs_namespace_close(ns));
}

/* Several commits by one process, each published or not; and a collection. */
static void job(struct namespace_case *c, uint64_t seed)
{
    struct torture_rng r = {seed};
    deltafs_namespace *ns;
    int done = ok(c, "deltafs_namespace_open", open_ns(c->path, O_RDWR | O_CREAT, &ns));

    c->m.is_made |= done;
    c->m.now = c->m.committed;
    for (uint64_t left = done ? 1 + torture_below(&r, 3) : 0; left > 0 && done; left--) {
        for (uint64_t n = torture_below(&r, 8); n > 0 && done; n--)
            done = change(c, &r, ns);
        if (done && left > 1) {
            done = commit(c, "deltafs_namespace_commit", deltafs_namespace_commit(ns));
            if (done && torture_below(&r, 3) == 0)
                publish_or_withdraw(c, &r);
        }
    }
    if (ns)
        commit(c, "deltafs_namespace_close", deltafs_namespace_close(ns));
    if (c->has_failed)
        return;
    for (uint64_t n = torture_below(&r, 3); n > 0 && !c->has_failed; n--)
        publish_or_withdraw(c, &r);
    if (!c->has_failed && torture_below(&r, 2) == 0)
        ok(c, "deltafs_namespace_compact", deltafs_namespace_compact(c->path, NULL));
    if (!c->has_failed && torture_below(&r, 3) == 0)
        ok(c, "deltafs_namespace_collect", deltafs_namespace_collect(c->path, NULL));
}

/* ---- One case ---- */

static void save(const char *from, const char *to)
{
    torture_remove(to);
    files_copy(from, to);
}

/* The job, with a fault. Returns whether it came to pass. */
static int fail_job(struct namespace_case *c, const char *folder)
{
    char data[240];
    const struct torture_happening *h = torture_choose(&c->rng);
    size_t n;
    uint64_t seed = torture_next(&c->rng);
    struct model before = c->m;

    /* Snapshots and pins know the paths: what is copied goes back where it was. */
    snprintf(data, sizeof data, "%s/d", folder);
    save(data, c->save);
    torture_io_begin(TORTURE_NONE, 0, 0);
    job(c, seed);
    uint64_t at = torture_below(&c->rng, torture_io_count());
    torture_io_end();
    save(c->save, data);
    c->m = before;
    n = strlen(c->text);
    snprintf(c->text + n, sizeof c->text - n, "; operation %ju: %s; case", (uintmax_t)at, h->text);
    c->is_failing = h->fault != TORTURE_SHORT && h->fault != TORTURE_EINTR;
    torture_io_begin(h->fault, at, torture_next(&c->rng));
    job(c, seed);
    int happened = torture_happening_end(h, c->v);
    c->is_failing = c->has_failed = 0;
    return happened;
}

static int run(const char *folder, uint64_t seed, uint64_t i, struct torture_verdict *v)
{
    static struct namespace_case c;
    struct torture_rng mix = {seed ^ i * 0xd1342543de82ef95u};
    char data[240];

    c = (struct namespace_case){.rng.state = torture_next(&mix), .v = v, .text = "namespace"};
    snprintf(data, sizeof data, "%s/d", folder);
    snprintf(c.path, sizeof c.path, "%s/d/ns", folder);
    snprintf(c.registry, sizeof c.registry, "%s/d/registry", folder);
    snprintf(c.save, sizeof c.save, "%s/save", folder);
    v->about = c.text;
    if (mkdir(data, 0777) != 0)
        files_die("%s: %m", data);
    int is_old = torture_below(&c.rng, 2) == 0;
    if (is_old)
        make_without_journals(&c);
    for (uint64_t n = torture_below(&c.rng, 4); n > 0; n--)
        job(&c, torture_next(&c.rng));
    if (is_old)
        commit_often(&c);
    int happened = fail_job(&c, folder);
    check(&c);
    settle(&c);
    snprintf(c.text + strlen(c.text), sizeof c.text - strlen(c.text), ", afterwards");
    for (int n = 0; n < 2; n++) {
        job(&c, torture_next(&c.rng));
        check(&c);
    }
    for (struct bytes_of *b = c.made, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    return happened;
}

int main(int argc, char **argv)
{
    return torture_cases("namespace", run, argc, argv);
}
