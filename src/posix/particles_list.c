/* The names of a directory of particles: its keys. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "posix/particles.h"
#include "posix/particles_parts.h"

#define ROOM_FIRST 1024

/* A key is in the directory once for each epoch. They are collected, and whenever they have become twice as many as
 * there were different ones, the others are left out. */
struct particles_list {
    struct particle_name *name;
    size_t count, room, at;
    char text[PARTICLE_NAME_MAX + 1];
};

struct particle_name {
    uint64_t key;
    uint8_t *bytes; /* NULL: the name is the number; else 1 byte with the size, and the name */
    ino_t inode;
};

static int compare_names(const void *a, const void *b)
{
    const struct particle_name *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (!x->bytes || !y->bytes || x->bytes[0] != y->bytes[0])
        return x->bytes && y->bytes ? x->bytes[0] - y->bytes[0] : 0;
    return memcmp(x->bytes, y->bytes, 1 + (size_t)x->bytes[0]);
}

static void leave_out_same(struct particles_list *l)
{
    size_t kept = 0;

    qsort(l->name, l->count, sizeof *l->name, compare_names);
    for (size_t i = 0; i < l->count; i++)
        if (kept > 0 && compare_names(&l->name[kept - 1], &l->name[i]) == 0)
            free(l->name[i].bytes);
        else
            l->name[kept++] = l->name[i];
    l->count = kept;
}

static int make_room(struct particles_list *l)
{
    if (l->count == l->room)
        leave_out_same(l);
    if (l->room > 0 && l->count <= l->room / 2)
        return 1;
    size_t room = l->room > 0 ? 2 * l->room : ROOM_FIRST;
    struct particle_name *more = realloc(l->name, room * sizeof *more);
    if (!more)
        return 0;
    l->name = more;
    l->room = room;
    return 1;
}

static int take_record(const struct deltafs_record *r, void *list)
{
    struct particles_list *l = list;
    struct particle_name n = {.key = r->key, .inode = particle_inode(r)};

    if (l->count == l->room && !make_room(l))
        return ENOMEM;
    if (r->key_size > 0) {
        n.bytes = malloc(1 + r->key_size);
        if (!n.bytes)
            return ENOMEM;
        n.bytes[0] = (uint8_t)r->key_size;
        memcpy(n.bytes + 1, r->key_bytes, r->key_size);
    }
    l->name[l->count++] = n;
    return 0;
}

static int take_all(struct particles_list *l, struct particles *p, const struct place *at)
{
    struct deltafs_range room;
    deltafs_dir *dir;
    int stopped = 0, error = particles_reader_begin(p, &dir);

    if (error != 0)
        return error == ENOENT ? 0 : error;
    int status = deltafs_scan(dir, place_range(at, &room), take_record, l, &stopped);
    if (status != DELTAFS_OK)
        posix_say("%s", deltafs_errmsg(dir));
    particles_reader_end(p);
    if (stopped == 0)
        leave_out_same(l);
    return stopped != 0 ? stopped : deltafs_namespace_errno(status);
}

int particles_list_open(struct mount *m, const char *path, struct particles_list **out)
{
    struct particles_list *l;
    struct place at;
    int error = place_find(m->particles, path, &at);

    if (error != 0 || at.kind != PLACE_FOLDER)
        return error != 0 && error != EINVAL ? error : ENOTDIR;
    l = calloc(1, sizeof *l);
    if (!l)
        return ENOMEM;
    error = take_all(l, m->particles, &at);
    if (error == 0)
        *out = l;
    else
        particles_list_close(l);
    return error;
}

const char *particles_list_next(struct particles_list *l, ino_t *ino)
{
    if (l->at == l->count)
        return NULL;
    const struct particle_name *n = &l->name[l->at++];
    if (n->bytes) {
        memcpy(l->text, n->bytes + 1, n->bytes[0]);
        l->text[n->bytes[0]] = '\0';
    } else {
        snprintf(l->text, sizeof l->text, "%llu", (unsigned long long)n->key);
    }
    *ino = n->inode;
    return l->text;
}

void particles_list_close(struct particles_list *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->count; i++)
        free(l->name[i].bytes);
    free(l->name);
    free(l);
}
