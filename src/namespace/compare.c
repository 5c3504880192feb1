/* The paths that differ between two snapshots or namespaces, and those that several snapshots have changed differently.
 *
 * Folder after folder is compared. Both lists of a folder are in the order of the hashes of names, so that they are
 * merged without holding them; names with the same hash are collected. What is in memory are the folders that are still
 * to be compared. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "namespace/snapshot.h"

/* One of the two; of conflicts there is one. */
struct side {
    deltafs_namespace *ns;
    deltafs_namespace_list *list;
    int has_next;
    struct inode next; /* of conflicts it may be removed */
    uint32_t hash;     /* of its name */
};

/* An entry that one side or both have. */
struct pair {
    char name[ENTRY_NAME_MAX + 1];
    struct inode inode[2];
    int is_conflict;
};

struct folder_path {
    char *path;
    int is_in[2];
};

struct deltafs_snapshot_paths {
    int sides;
    struct side side[2];
    struct folder_path *folder; /* still to be compared */
    size_t folders, folder_room;
    struct folder_path now;
    struct pair *pair; /* of one hash */
    size_t pairs, pair_room, at;
    char *path; /* that was returned last */
    struct error error;
};

/* "FOLDER/NAME"; the root is "/". NULL: no memory. */
static char *path_join(const char *folder, const char *name)
{
    size_t n = strlen(folder), room = n + strlen(name) + 2;
    char *path = malloc(room);

    if (path)
        snprintf(path, room, "%s%s%s", folder, n > 1 ? "/" : "", name);
    return path;
}

/* ---- Folders ---- */

/* Of a merge, names that are removed in the end may be in conflict, too. */
static int next_of(const deltafs_snapshot_paths *p, struct side *s)
{
    int status;

    do
        status = list_next_name(s->list, &s->next, &s->has_next);
    while (status == DELTAFS_OK && s->has_next && s->next.type == ENTRY_REMOVED &&
           (p->sides == 2 || !list_is_conflict(s->list)));
    return status;
}

static int side_next(deltafs_snapshot_paths *p, struct side *s)
{
    int status = s->list ? ns_begin(s->ns, "deltafs_snapshot_paths_next", 0) : DELTAFS_OK;

    s->has_next = 0;
    if (s->list && status == DELTAFS_OK)
        status = next_of(p, s);
    if (status != DELTAFS_OK)
        p->error = s->ns->error;
    else if (s->has_next)
        s->hash = name_hash(list_name(s->list), strlen(list_name(s->list)));
    return status;
}

static void close_folder(deltafs_snapshot_paths *p)
{
    for (int i = 0; i < p->sides; i++) {
        deltafs_namespace_list_close(p->side[i].list);
        p->side[i].list = NULL;
    }
    free(p->now.path);
    p->now.path = NULL;
}

/* Begin to compare a folder that is left. */
static int open_folder(deltafs_snapshot_paths *p)
{
    int status = DELTAFS_OK;

    p->now = p->folder[--p->folders];
    for (int i = 0; i < p->sides && status == DELTAFS_OK; i++) {
        struct side *s = &p->side[i];
        if (p->now.is_in[i])
            status = error_of_call(deltafs_namespace_list_open(s->ns, p->now.path, &s->list), &p->error);
        if (status == DELTAFS_OK)
            status = side_next(p, s);
    }
    return status;
}

static int push_folder(deltafs_snapshot_paths *p, char *path, int is_in_a, int is_in_b)
{
    int status = path ? memory_extend(NULL, &p->folder, p->folders, &p->folder_room, sizeof *p->folder,
                                      "folders to compare", &p->error)
                      : error_no_memory(&p->error, 1, "folders to compare");

    if (status == DELTAFS_OK)
        p->folder[p->folders++] = (struct folder_path){path, {is_in_a, is_in_b}};
    else
        free(path);
    return status;
}

/* ---- Names ---- */

static int add_pair(deltafs_snapshot_paths *p, int side)
{
    const struct side *s = &p->side[side];
    const char *name = list_name(s->list);
    struct pair *pair = p->pair, *end = p->pair + p->pairs;

    while (pair < end && strcmp(pair->name, name) != 0)
        pair++;
    if (pair == end) {
        int status =
            memory_extend(NULL, &p->pair, p->pairs, &p->pair_room, sizeof *p->pair, "names to compare", &p->error);
        if (status != DELTAFS_OK)
            return status;
        pair = &p->pair[p->pairs++];
        *pair = (struct pair){.inode = {{.type = ENTRY_REMOVED}, {.type = ENTRY_REMOVED}}};
        strcpy(pair->name, name);
    }
    pair->inode[side] = s->next;
    pair->is_conflict = list_is_conflict(s->list);
    return DELTAFS_OK;
}

/* Collect the names of the least hash that is left; none: the folder is done. */
static int collect(deltafs_snapshot_paths *p)
{
    int status = DELTAFS_OK, has_hash = 0;
    uint32_t hash = 0;

    p->pairs = p->at = 0;
    for (int i = 0; i < p->sides; i++)
        if (p->side[i].has_next && (!has_hash || p->side[i].hash < hash)) {
            hash = p->side[i].hash;
            has_hash = 1;
        }
    for (int i = 0; i < p->sides && has_hash; i++)
        while (status == DELTAFS_OK && p->side[i].has_next && p->side[i].hash == hash) {
            status = add_pair(p, i);
            if (status == DELTAFS_OK)
                status = side_next(p, &p->side[i]);
        }
    return status;
}

static int are_same_links(deltafs_snapshot_paths *p, const char *path, int *are)
{
    char target[2][ENTRY_TARGET_MAX];
    size_t size[2];
    int status = DELTAFS_OK;

    for (int i = 0; i < 2 && status == DELTAFS_OK; i++)
        status = error_of_call(deltafs_namespace_readlink(p->side[i].ns, path, target[i], sizeof target[i], &size[i]),
                               &p->error);
    *are = status == DELTAFS_OK && size[0] == size[1] && memcmp(target[0], target[1], size[0]) == 0;
    return status;
}

/* Bytes that are stored once are the same; access times do not count. */
static int is_different(deltafs_snapshot_paths *p, const struct pair *pair, const char *path, int *is)
{
    const struct inode *a = &pair->inode[0], *b = &pair->inode[1];
    int are_same = a->type == b->type && a->mode == b->mode && a->uid == b->uid && a->gid == b->gid &&
                   a->mtime == b->mtime && a->size == b->size &&
                   (a->type != ENTRY_FILE || a->size == 0 || id_is_same(&a->data, &b->data));
    int status = DELTAFS_OK;

    if (are_same && a->type == ENTRY_LINK && !id_is_same(&a->id, &b->id))
        status = are_same_links(p, path, &are_same);
    *is = !are_same;
    return status;
}

/* Look at the next name; *path gets its path if it is to be returned. */
static int take_pair(deltafs_snapshot_paths *p, char **path)
{
    const struct pair *pair = &p->pair[p->at++];
    int is_a = pair->inode[0].type == ENTRY_FOLDER, is_b = pair->inode[1].type == ENTRY_FOLDER;
    int is = pair->is_conflict, status = DELTAFS_OK;
    char *own = path_join(p->now.path, pair->name);

    if (own && p->sides == 2)
        status = is_different(p, pair, own, &is);
    if (own && status == DELTAFS_OK && (is_a || is_b))
        status = push_folder(p, path_join(p->now.path, pair->name), is_a, is_b);
    if (!own)
        status = error_no_memory(&p->error, strlen(p->now.path), "a path");
    if (status == DELTAFS_OK && is)
        *path = own;
    else
        free(own);
    return status;
}

static int find_next(deltafs_snapshot_paths *p, char **path)
{
    int status = DELTAFS_OK;

    while (status == DELTAFS_OK && !*path) {
        if (p->at < p->pairs) {
            status = take_pair(p, path);
        } else if (p->now.path) {
            status = collect(p);
            if (status == DELTAFS_OK && p->pairs == 0)
                close_folder(p);
        } else if (p->folders > 0) {
            status = open_folder(p);
        } else {
            break;
        }
    }
    return status;
}

/* ---- Public functions ---- */

/* Begin at the root; the sides are open. */
static int paths_begin(struct snapshot_call *c, deltafs_snapshot_paths *p, deltafs_snapshot_paths **out)
{
    int status = push_folder(p, strdup("/"), 1, 1);

    if (status == DELTAFS_OK)
        *out = p;
    else
        c->error = p->error;
    return status;
}

static int open_conflicts(struct snapshot_call *c, size_t count, const char *const *snapshots,
                          deltafs_snapshot_paths **out)
{
    deltafs_snapshot_paths *p = calloc(1, sizeof *p);

    if (!p)
        return error_no_memory(&c->error, sizeof *p, "paths");
    p->sides = 1;
    int status = snapshot_open_view(c, count, snapshots, DELTAFS_SNAPSHOT_NEWEST, 1, c->options, &p->side[0].ns);
    if (status == DELTAFS_OK)
        status = paths_begin(c, p, out);
    if (status != DELTAFS_OK)
        deltafs_snapshot_paths_close(p);
    return status;
}

static int open_diff(struct snapshot_call *c, const char *const name[2], deltafs_snapshot_paths **out)
{
    deltafs_snapshot_paths *p = calloc(1, sizeof *p);
    int status = p ? DELTAFS_OK : error_no_memory(&c->error, sizeof *p, "paths");

    if (!p)
        return status;
    p->sides = 2;
    for (int i = 0; i < 2 && status == DELTAFS_OK; i++)
        status = error_of_call(deltafs_namespace_open(name[i], O_RDONLY, c->options, &p->side[i].ns), &c->error);
    if (status == DELTAFS_OK)
        status = paths_begin(c, p, out);
    if (status != DELTAFS_OK)
        deltafs_snapshot_paths_close(p);
    return status;
}

int deltafs_snapshot_conflicts_open(size_t count, const char *const *snapshots, deltafs_snapshot_paths **out)
{
    struct snapshot_call c;

    if (count == 0 || !snapshots || !out)
        return snapshot_no_argument("deltafs_snapshot_conflicts_open", "snapshots and out");
    int status = snapshot_call_begin(&c);
    if (status == DELTAFS_OK)
        status = open_conflicts(&c, count, snapshots, out);
    return snapshot_call_end(&c, status);
}

int deltafs_snapshot_diff_open(const char *a, const char *b, deltafs_snapshot_paths **out)
{
    struct snapshot_call c;

    if (!a || !b || !out)
        return snapshot_no_argument("deltafs_snapshot_diff_open", "a, b and out");
    int status = snapshot_call_begin(&c);
    if (status == DELTAFS_OK)
        status = open_diff(&c, (const char *const[2]){a, b}, out);
    return snapshot_call_end(&c, status);
}

int deltafs_snapshot_paths_next(deltafs_snapshot_paths *p, const char **path)
{
    char *next = NULL;

    if (!p || !path)
        return snapshot_no_argument("deltafs_snapshot_paths_next", "paths and path");
    int status = find_next(p, &next);
    if (status != DELTAFS_OK)
        return error_of_thread(status, &p->error);
    free(p->path);
    p->path = next;
    *path = next;
    return DELTAFS_OK;
}

int deltafs_snapshot_paths_close(deltafs_snapshot_paths *p)
{
    if (!p)
        return DELTAFS_OK;
    close_folder(p);
    for (size_t i = 0; i < p->folders; i++)
        free(p->folder[i].path);
    for (int i = 0; i < p->sides; i++)
        deltafs_namespace_close(p->side[i].ns);
    free(p->folder);
    free(p->pair);
    free(p->path);
    free(p);
    return DELTAFS_OK;
}
