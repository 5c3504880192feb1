/* Lists of folders, and the bytes of files, that other ranks have. */
#include <stdlib.h>
#include <string.h>
#include "namespace/shared.h"
#include "namespace/table_data.h"

struct shared_list {
    uint32_t rank, number; /* SHARED_LIST_ENDED: the owner has no more */
    struct entry_id parent;
    struct bytes some; /* entries that the owner has sent */
    size_t at;
    uint8_t entry[ENTRY_SIZE_MAX];
};

/* ---- Lists ---- */

/* Take entries that the owner has sent. */
static int list_take(struct shared *s, struct shared_list *l, struct parcel *reply)
{
    parcel_take(reply, &l->number, sizeof l->number);
    l->some.used = l->at = 0;
    return bytes_append(&l->some, reply->at, (size_t)(reply->end - reply->at), &s->client->error);
}

int shared_list_open(deltafs_namespace *ns, const struct folder *folder, uint32_t part, struct shared_list **out)
{
    struct shared *s = ns->shared;
    struct shared_list *l = calloc(1, sizeof *l);
    struct parcel reply;

    if (!l)
        return error_no_memory(&ns->error, sizeof *l, "a list of a folder");
    l->parent = folder->id;
    l->rank = shared_owner(s, folder->hash, part);
    l->number = SHARED_LIST_ENDED;
    int status = shared_ask_part(s, SHARED_LIST_OPEN, folder, part, &reply);
    if (status == DELTAFS_OK)
        status = list_take(s, l, &reply);
    if (status == DELTAFS_OK)
        *out = l;
    else
        shared_list_close(ns, l);
    return status;
}

static int list_fill(struct shared *s, struct shared_list *l)
{
    struct parcel reply;

    message_put(shared_request(s, SHARED_LIST_NEXT), &l->number, sizeof l->number);
    int status = shared_ask(s, l->rank, &reply);
    return status == DELTAFS_OK ? list_take(s, l, &reply) : status;
}

/* The target of a link is not shown in lists, only how many bytes it has. */
int shared_list_next(deltafs_namespace *ns, struct shared_list *l, const uint8_t **bytes, size_t *size)
{
    static const char target[ENTRY_TARGET_MAX];
    struct entry entry = {.parent = l->parent, .target = target};
    uint8_t name_size;
    int has_more = l->at == l->some.used && l->number != SHARED_LIST_ENDED;
    int status = has_more ? list_fill(ns->shared, l) : DELTAFS_OK;

    *bytes = NULL;
    if (status != DELTAFS_OK || l->at == l->some.used)
        return status;
    struct parcel p = {.at = l->some.buffer.bytes + l->at, .end = l->some.buffer.bytes + l->some.used};
    parcel_take(&p, &entry.inode, sizeof entry.inode);
    parcel_take(&p, &name_size, sizeof name_size);
    entry.name = parcel_text(&p, name_size);
    if (!entry.name || (entry.inode.type == ENTRY_LINK && entry.inode.size > ENTRY_TARGET_MAX))
        return error_set(&ns->error, DELTAFS_ERR_MPI, "another rank sent an invalid list of a folder");
    entry.name_size = name_size;
    entry.target_size = entry.inode.type == ENTRY_LINK ? entry.inode.size : 0;
    l->at = (size_t)(p.at - l->some.buffer.bytes);
    *size = entry_encode(&entry, l->entry);
    *bytes = l->entry;
    return DELTAFS_OK;
}

void shared_list_close(deltafs_namespace *ns, struct shared_list *l)
{
    struct parcel reply;

    if (!l)
        return;
    struct error kept = ns->error;
    if (l->number != SHARED_LIST_ENDED) {
        message_put(shared_request(ns->shared, SHARED_LIST_CLOSE), &l->number, sizeof l->number);
        shared_ask(ns->shared, l->rank, &reply);
    }
    ns->error = kept;
    buffer_fini(&l->some.buffer);
    free(l);
}

/* ---- Bytes ---- */

/* The rank that writes a table; the number of ranks if none does. */
static uint32_t writer_of(const struct shared *s, uint64_t table)
{
    uint32_t rank = 0;

    while (rank < s->group.ranks && s->table[rank] != table)
        rank++;
    return rank;
}

int shared_read(deltafs_namespace *ns, const struct entry_id *place, size_t room, uint8_t *to, size_t *got)
{
    struct shared *s = ns->shared;
    uint32_t rank = place->number > s->first_stamp ? writer_of(s, place->table) : s->group.ranks;
    uint64_t bytes = room;
    struct parcel reply;

    if (rank == s->group.ranks)
        return tables_read_chunk(&ns->tables, place, room, to, got, &ns->error);
    struct message *m = shared_request(s, SHARED_READ);
    message_put(m, place, sizeof *place);
    message_put(m, &bytes, sizeof bytes);
    int status = shared_ask(s, rank, &reply);
    if (status != DELTAFS_OK)
        return status;
    *got = (size_t)(reply.end - reply.at);
    if (*got > room)
        return error_set(&ns->error, DELTAFS_ERR_MPI, "a chunk of a file is too large");
    parcel_take(&reply, to, *got);
    return DELTAFS_OK;
}

int shared_put_data(deltafs_namespace *ns, const struct entry_name *name, const struct inode *inode)
{
    struct parcel reply;

    struct message *m = shared_request(ns->shared, SHARED_DATA);
    message_put_name(m, name);
    message_put(m, inode, sizeof *inode);
    return shared_ask(ns->shared, shared_name_owner(ns->shared, name), &reply);
}
