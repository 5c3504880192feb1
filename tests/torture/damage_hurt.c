#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "damage.h"
#include "directory/format/directory_format.h"
#include "structures.h"

#define PARTS_MAX 4096 /* of a log's structures, that are swapped and the like */

/* The damage under way: to the file `name`, which is bytes[0 .. n) and has room for more. */
struct hurt {
    struct damage_rng *r;
    const struct damage_container *containers, *c;
    size_t count;
    struct damage *d;
    uint8_t *bytes;
    size_t n, room;
    int is_gone;
};

static size_t below(struct hurt *h, size_t n)
{
    return n > 0 ? (size_t)damage_below(h->r, n) : 0;
}

/* Let the file be these bytes. */
static void become(struct hurt *h, const void *bytes, size_t n)
{
    if (n > h->room) {
        h->bytes = realloc(h->bytes, 2 * n);
        if (!h->bytes)
            damage_die("no memory");
        h->room = 2 * n;
    }
    memmove(h->bytes, bytes, n);
    h->n = n;
}

/* A stretch of the file, not empty unless that is. */
static void choose(struct hurt *h, size_t most)
{
    h->d->n = 1 + below(h, most);
    h->d->at = below(h, h->n);
    if (h->d->n > h->n - h->d->at)
        h->d->n = h->n - h->d->at;
}

static void flip_bits(struct hurt *h)
{
    for (size_t k = 1 + below(h, 3); k > 0 && h->n > 0; k--) {
        h->d->at = below(h, h->n);
        h->bytes[h->d->at] ^= (uint8_t)(1u << below(h, 8));
    }
}

static void put_noise(struct hurt *h)
{
    choose(h, below(h, 4) ? 24 : 3000);
    for (size_t i = 0; i < h->d->n; i++)
        h->bytes[h->d->at + i] = (uint8_t)damage_next(h->r);
}

static void put_zeros(struct hurt *h)
{
    choose(h, below(h, 4) ? 64 : 5000);
    if (below(h, 4) == 0)
        h->d->n = h->n - h->d->at; /* to the end, as a lost write leaves it */
    memset(h->bytes + h->d->at, 0, h->d->n);
}

static void cut(struct hurt *h)
{
    h->d->at = h->n = below(h, h->n);
}

static void extend(struct hurt *h)
{
    size_t old = h->n, more = 1 + below(h, 400);
    int is_noise = below(h, 2) == 0;
    uint8_t *bytes = malloc(old + more);

    if (!bytes)
        damage_die("no memory");
    memcpy(bytes, h->bytes, old);
    for (size_t i = 0; i < more; i++)
        bytes[old + i] = (uint8_t)(is_noise ? damage_next(h->r) : 0);
    become(h, bytes, old + more);
    h->d->at = old;
    h->d->n = more;
    free(bytes);
}

struct stretch {
    size_t at, n;
};

/* The structures of a log, or the lines of a manifest. */
static size_t parts_of(const struct hurt *h, struct stretch *part)
{
    size_t count = 0;

    for (size_t at = 0, n; at < h->n && count < PARTS_MAX; at += n) {
        const uint8_t *newline = memchr(h->bytes + at, '\n', h->n - at);
        if (h->d->partition != DAMAGE_MANIFEST)
            n = structure_length(h->bytes, h->n, at);
        else
            n = newline ? (size_t)(newline + 1 - (h->bytes + at)) : h->n - at;
        if (n == 0)
            break;
        part[count++] = (struct stretch){at, n};
    }
    return count;
}

/* Two structures change places, or one takes the place of another, or stands behind it as well, or is left out. */
static void move_parts(struct hurt *h)
{
    static struct stretch part[PARTS_MAX];
    size_t count = parts_of(h, part), kind = below(h, 4), used = 0;

    if (count < 2)
        return;
    size_t a = below(h, count), b = below(h, count);
    uint8_t *bytes = malloc(2 * h->n);
    if (!bytes)
        damage_die("no memory");
    for (size_t i = 0; i < count; i++) {
        size_t from = kind == 0 && i == b ? a : kind <= 1 && i == a ? b : i;
        size_t times = kind == 3 && i == a ? 0 : 1;
        for (; times > 0; times--) {
            memcpy(bytes + used, h->bytes + part[from].at, part[from].n);
            used += part[from].n;
        }
        if (kind == 2 && i == b) {
            memcpy(bytes + used, h->bytes + part[a].at, part[a].n);
            used += part[a].n;
        }
    }
    size_t end = part[count - 1].at + part[count - 1].n;
    memcpy(bytes + used, h->bytes + end, h->n - end);
    used += h->n - end;
    h->d->at = part[a].at;
    h->d->n = part[b].at;
    become(h, bytes, used);
    free(bytes);
}

/* Some bytes of the file stand where others of it were: a block of a disk that was written to the wrong place. */
static void misplace(struct hurt *h)
{
    choose(h, 512);
    size_t from = below(h, h->n - h->d->n + 1);
    memmove(h->bytes + h->d->at, h->bytes + from, h->d->n);
}

static void take_from(struct hurt *h, const struct damage_state *s, const char *name)
{
    const struct damage_file *f = damage_file_of(s, name);

    if (f)
        become(h, f->bytes, f->n);
}

/* Another file of the same container. */
static void put_other_file(struct hurt *h)
{
    take_from(h, &h->c->now, h->c->now.file[below(h, h->c->now.count)].name);
}

/* The same file of another container, which has records. */
static void put_other_container(struct hurt *h)
{
    const struct damage_container *other = &h->containers[below(h, h->count)];

    /* One with keys of the other kind answers no question about these. */
    if (h->d->partition == DAMAGE_MANIFEST && other->is_bytes != h->c->is_bytes)
        other = h->c;
    h->d->is_foreign = other != h->c && h->d->partition == DAMAGE_MANIFEST;
    take_from(h, &other->now, h->d->file);
}

static void put_earlier(struct hurt *h)
{
    if (h->c->earlier_count > 0)
        take_from(h, &h->c->earlier[below(h, h->c->earlier_count)], h->d->file);
}

static void lose_file(struct hurt *h)
{
    h->is_gone = 1;
}

static const struct {
    const char *what;
    void (*hurt)(struct hurt *h);
    unsigned weight;
} ways[] = {
    {"bits flipped", flip_bits, 8},
    {"overwritten by noise", put_noise, 5},
    {"overwritten by zeros", put_zeros, 5},
    {"cut short", cut, 5},
    {"made longer", extend, 2},
    {"structures swapped, doubled or left out", move_parts, 8},
    {"bytes of another place", misplace, 3},
    {"another file of the container in its place", put_other_file, 2},
    {"the file of another container in its place", put_other_container, 3},
    {"an earlier state in its place", put_earlier, 3},
    {"missing", lose_file, 1},
};

/* The bytes of a line of an opening or a close with so many epochs; 0 if there is none at `line`. */
static size_t turn_length(const uint8_t *line, size_t n, size_t epochs)
{
    static const char *const words[] = {"open", "close", "Local"};
    const uint8_t *newline = memchr(line, '\n', n);
    char begin[64];

    for (int i = 0; i < 3 && newline; i++) {
        size_t length = (size_t)snprintf(begin, sizeof begin, "%s epochs=%zu ", words[i], epochs);
        if (length <= (size_t)(newline - line) && memcmp(line, begin, length) == 0)
            return (size_t)(newline + 1 - line);
    }
    return 0;
}

/* How many epochs the damaged manifest has, where it is one that no reader can tell from a right one: whole lines of
 * the original from its start on, which are an earlier state, and earlier states are right ones; then perhaps lines of
 * openings and closes with just these epochs, as a writer adds them that opens and closes it in that state; and behind
 * all bytes without a newline, which are what a crash leaves of a line that was being appended. Whatever else is done
 * to a manifest must be found: then it has all its epochs, of which none may be missing without an error. */
static size_t epochs_left(const struct hurt *h, const struct damage_file *whole)
{
    size_t at = 0, epochs = 0;

    for (;;) {
        const uint8_t *line = whole->bytes + at, *newline = memchr(line, '\n', whole->n - at);
        size_t n = newline ? (size_t)(newline + 1 - line) : 0;
        if (n == 0 || h->n - at < n || memcmp(h->bytes + at, line, n) != 0)
            break;
        epochs += n > 6 && memcmp(line, "Epoch ", 6) == 0;
        at += n;
    }
    int is_begun = at > 0;
    for (size_t n; is_begun && (n = turn_length(h->bytes + at, h->n - at, epochs)) > 0;)
        at += n;
    return is_begun && !memchr(h->bytes + at, '\n', h->n - at) ? epochs : h->c->epochs;
}

/* The bytes of an index log's tail; 0 if it has none. */
static size_t tail_length(const struct damage_file *f)
{
    const uint8_t *t = f->bytes + f->n - TAIL_TRAILER_SIZE;

    return f->n >= TAIL_TRAILER_SIZE && memcmp(t + 24, TAIL_MAGIC, 8) == 0 ? (size_t)get_u64(t + 16) : 0;
}

/* Whether a log lacks anything of what it had. Behind its segments or blocks there may be more, in front of the tail
 * and behind all: what is not committed, and garbage. In the one container that has such itself, some of the damage is
 * to that. */
static int is_committed(const struct hurt *h, const struct damage_file *whole)
{
    size_t tail = tail_length(whole), segments = whole->n - tail;

    if (h->d->partition == DAMAGE_MANIFEST || strcmp(h->c->name, "torn") == 0)
        return 0;
    return h->is_gone || h->n < whole->n || memcmp(h->bytes, whole->bytes, segments) != 0 ||
           (memcmp(h->bytes + segments, whole->bytes + segments, tail) != 0 &&
            memcmp(h->bytes + h->n - tail, whole->bytes + segments, tail) != 0);
}

void damage_do(struct mem_io *m, struct damage_rng *r, const struct damage_container *containers, size_t count,
               size_t which, struct damage *out)
{
    const struct damage_container *c = &containers[which];
    const struct damage_file *f = &c->now.file[damage_below(r, c->now.count)];
    struct hurt h = {.r = r, .containers = containers, .c = c, .count = count, .d = out};
    unsigned weights = 0, chosen, partition;
    size_t way = 0;
    char path[MEM_NAME_MAX + 8];

    *out = (struct damage){.file = f->name, .partition = DAMAGE_MANIFEST, .epochs = c->epochs};
    if (sscanf(f->name, "%*x/p%x", &partition) == 1)
        out->partition = partition;
    else if (sscanf(f->name, "%*x/v%x", &partition) == 1)
        out->partition = DAMAGE_VALUES;
    become(&h, f->bytes, f->n);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        weights += ways[i].weight;
    for (chosen = (unsigned)damage_below(r, weights); chosen >= ways[way].weight; way++)
        chosen -= ways[way].weight;
    out->what = ways[way].what;
    ways[way].hurt(&h);
    out->is_committed = is_committed(&h, f);
    snprintf(path, sizeof path, DAMAGE_PATH "/%s", f->name);
    if (h.is_gone)
        mem_remove(m, path);
    else
        mem_put(m, path, h.bytes, h.n);
    /* A directory with a copy of its manifest has all epochs, or there is an error. */
    if (out->partition == DAMAGE_MANIFEST && !h.is_gone && !damage_file_of(&c->now, MANIFEST_COPY_NAME))
        out->epochs = epochs_left(&h, f);
    snprintf(out->text, sizeof out->text, "%s, %s: %s (%zu, %zu)", c->name, f->name, out->what, out->at, out->n);
    free(h.bytes);
}
