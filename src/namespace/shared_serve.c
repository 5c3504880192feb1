/* The owner's side: each function answers one kind of request, from the parcel `p`, and puts what it has to say into
 * the reply. It returns a status or a verdict; after an error the store has the message. Nothing here waits. */
#include <stdlib.h>
#include <string.h>
#include "namespace/shared.h"

#define STORE_RESERVE (2u << 20)  /* bytes of the names of one request */
#define LIST_BYTES    (32u << 10) /* about, of an answer */

/* ---- What cannot be changed now ---- */

static size_t seal_slot(const struct shared *s, const struct entry_id *id)
{
    size_t i = (size_t)((id->number ^ id->table) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (s->seal_room - 1);

    while (s->sealed[i].number != 0 && !id_is_same(&s->sealed[i], id))
        i = (i + 1) & (s->seal_room - 1);
    return i;
}

static int is_sealed(const struct shared *s, const struct entry_id *id)
{
    return s->seals > 0 && s->sealed[seal_slot(s, id)].number != 0;
}

/* Ids of folders that were removed are never used again, so a seal that is not taken back stays. */
static int add_seal(struct shared *s, const struct entry_id *id)
{
    struct entry_id *old = s->sealed;
    size_t room = s->seal_room;

    if (2 * (s->seals + 1) > room) {
        size_t more = room == 0 ? 64 : 2 * room;
        struct entry_id *grown = calloc(more, sizeof *grown);
        if (!grown)
            return error_no_memory(&s->store->error, more * sizeof *grown, "folders that were removed");
        s->sealed = grown;
        s->seal_room = more;
        for (size_t i = 0; i < room; i++)
            if (old[i].number != 0)
                grown[seal_slot(s, &old[i])] = old[i];
        free(old);
    }
    size_t at = seal_slot(s, id);
    s->seals += s->sealed[at].number == 0;
    s->sealed[at] = *id;
    return DELTAFS_OK;
}

/* What is behind a slot that becomes free may have to move there. */
static void drop_seal(struct shared *s, const struct entry_id *id)
{
    size_t at = s->seals > 0 ? seal_slot(s, id) : 0;

    if (s->seals == 0 || s->sealed[at].number == 0)
        return;
    s->sealed[at].number = 0;
    s->seals--;
    for (size_t i = (at + 1) & (s->seal_room - 1); s->sealed[i].number != 0; i = (i + 1) & (s->seal_room - 1)) {
        struct entry_id moved = s->sealed[i];
        s->sealed[i].number = 0;
        s->sealed[seal_slot(s, &moved)] = moved;
    }
}

static struct pin *find_pin(struct shared *s, const struct entry_name *name)
{
    for (size_t i = 0; i < s->pins; i++)
        if (s->pin[i].key == name->key && id_is_same(&s->pin[i].parent, &name->parent))
            return &s->pin[i];
    return NULL;
}

static void drop_pin(struct shared *s, const struct entry_name *name)
{
    struct pin *pin = find_pin(s, name);

    if (pin)
        *pin = s->pin[--s->pins];
}

/* Whether there is room for the names of a request. Names that are committed can be forgotten. */
static int check_room(struct shared *s)
{
    deltafs_namespace *store = s->store;

    if (name_table_left(&store->names) >= STORE_RESERVE)
        return DELTAFS_OK;
    if (store->names.first_dirty != 0)
        return s->is_frozen ? SHARED_WAIT : SHARED_FULL;
    name_table_clear(&store->names);
    store->clears++;
    return DELTAFS_OK;
}

/* Whether names can be changed now. */
static int check_change(struct shared *s)
{
    if (s->is_frozen)
        return SHARED_WAIT;
    int status = ns_check_sound(s->store);
    return status == DELTAFS_OK ? check_room(s) : status;
}

/* ---- Names ---- */

uint64_t shared_state(const struct name_table *t, const struct name_node *node)
{
    uint64_t state = 0;

    for (const struct name_item *i = name_item_at(t, node->items); i; i = name_item_at(t, i->next))
        if (i->inode.type != ENTRY_REMOVED)
            state += hash_key(i->inode.id.table ^ hash_key(i->inode.id.number ^ hash_key(i->inode.stamp))) | 1;
    return state;
}

static int serve_lookup(struct shared *s, struct parcel *p, struct message *reply)
{
    const struct name_table *t = &s->store->names;
    struct entry_name name = parcel_name(p);
    struct name_node *node;
    uint32_t count = 0;
    int status = check_room(s);

    if (status == DELTAFS_OK)
        status = ns_load_node(s->store, &name, 0, &node);
    if (status != DELTAFS_OK)
        return status;
    for (const struct name_item *i = name_item_at(t, node->items); i; i = name_item_at(t, i->next))
        count += i->inode.type != ENTRY_REMOVED;
    message_put(reply, &count, sizeof count);
    for (const struct name_item *i = name_item_at(t, node->items); i; i = name_item_at(t, i->next))
        if (i->inode.type != ENTRY_REMOVED)
            message_put_item(reply, &i->inode, i->target, i->inode.type == ENTRY_LINK ? i->target_size : 0);
    return DELTAFS_OK;
}

/* Give a name a new state of an entry, which is newer than what the name had, and than the last commit. */
static int put_newest(struct shared *s, struct name_node *node, struct inode inode, const char *target, size_t size)
{
    deltafs_namespace *store = s->store;

    if (inode.stamp > store->last_stamp)
        store->last_stamp = inode.stamp;
    if (inode.stamp <= s->last_committed)
        inode.stamp = ns_stamps(store, 1);
    for (const struct name_item *i = name_item_at(&store->names, node->items); i;
         i = name_item_at(&store->names, i->next))
        if (id_is_same(&i->inode.id, &inode.id) && i->inode.stamp >= inode.stamp)
            inode.stamp = ns_stamps(store, 1);
    struct name_item *item = name_table_put(&store->names, node, &inode, target, size);
    if (!item)
        return error_no_memory(&store->error, sizeof *node + size, "names; give the option memory more");
    name_table_mark(&store->names, node, item);
    return DELTAFS_OK;
}

/* A new file replaces what has the name; *had_link: also a link. */
static int create_one(struct shared *s, const struct entry_name *name, const struct inode *inode, uint8_t *had_link)
{
    const struct name_table *t = &s->store->names;
    struct name_node *node;
    int status = find_pin(s, name) ? SHARED_WAIT : ns_load_node(s->store, name, 0, &node);

    if (status != DELTAFS_OK)
        return status;
    for (const struct name_item *i = name_item_at(t, node->items); i; i = name_item_at(t, i->next))
        if (i->inode.type == ENTRY_FOLDER)
            return error_set(&s->store->error, DELTAFS_ERR_FOLDER, "%s: %.*s: is a folder", s->store->path,
                             (int)name->size, name->text);
    for (struct name_item *i = name_item_at(t, node->items); i; i = name_item_at(t, i->next))
        if (i->inode.type != ENTRY_REMOVED) {
            *had_link |= i->inode.type == ENTRY_LINK;
            ns_leave(s->store, node, i);
        }
    return put_newest(s, node, *inode, "", 0);
}

/* Says how many names it has done. */
static int serve_create(struct shared *s, struct parcel *p, struct message *reply)
{
    struct entry_id parent;
    struct inode inode;
    uint32_t count, done = 0;
    uint8_t size, had_link = 0;
    int status = check_change(s);

    parcel_take(p, &parent, sizeof parent);
    parcel_take(p, &inode, sizeof inode);
    parcel_take(p, &count, sizeof count);
    const struct folder folder = folder_of(&parent);
    if (status == DELTAFS_OK && is_sealed(s, &parent))
        status = SHARED_STALE;
    for (; done < count && status == DELTAFS_OK && !p->is_short; done++) {
        parcel_take(p, &size, sizeof size);
        const char *text = parcel_text(p, size);
        struct entry_name name = name_in(&folder, name_hash(text, size), text, size);
        status = create_one(s, &name, &inode, &had_link);
        if (status != DELTAFS_OK)
            break;
        inode.id.number++;
        inode.stamp++;
        inode.mtime++;
        inode.atime++;
    }
    if (status == SHARED_WAIT && done > 0) /* the client goes on from there */
        status = DELTAFS_OK;
    message_put(reply, &done, sizeof done);
    message_put(reply, &had_link, sizeof had_link);
    return status;
}

/* Whether this name can be changed by who knows this state of it. */
static int check_name(struct shared *s, const struct entry_name *name, uint64_t state, int is_holder,
                      struct name_node **node)
{
    int status = check_change(s);

    if (status == DELTAFS_OK && !is_holder && find_pin(s, name))
        status = SHARED_WAIT;
    if (status == DELTAFS_OK)
        status = ns_load_node(s->store, name, 0, node);
    if (status == DELTAFS_OK && shared_state(&s->store->names, *node) != state)
        status = SHARED_STALE;
    return status;
}

static int serve_change(struct shared *s, struct parcel *p, struct message *reply)
{
    struct entry_name name = parcel_name(p);
    struct name_node *node;
    const char *target;
    size_t target_size;
    uint64_t state;
    uint32_t count;
    uint8_t is_holder, adds;

    (void)reply;
    parcel_take(p, &state, sizeof state);
    parcel_take(p, &is_holder, sizeof is_holder);
    parcel_take(p, &adds, sizeof adds);
    parcel_take(p, &count, sizeof count);
    int status = check_name(s, &name, state, is_holder, &node);
    if (status == DELTAFS_OK && adds && is_sealed(s, &name.parent))
        status = SHARED_STALE;
    for (uint32_t i = 0; i < count && status == DELTAFS_OK; i++) {
        struct inode inode = parcel_item(p, &target, &target_size);
        status = put_newest(s, node, inode, target, target_size);
    }
    s->has_moved |= is_holder;
    if (is_holder && status == DELTAFS_OK)
        drop_pin(s, &name);
    return status;
}

static int serve_pin(struct shared *s, struct parcel *p, struct message *reply)
{
    struct entry_name name = parcel_name(p);
    struct name_node *node;
    uint64_t state;

    (void)reply;
    parcel_take(p, &state, sizeof state);
    int status = check_name(s, &name, state, 0, &node);
    if (status == DELTAFS_OK && is_sealed(s, &name.parent))
        status = SHARED_STALE;
    if (status == DELTAFS_OK)
        status = memory_extend(NULL, &s->pin, s->pins, &s->pin_room, sizeof *s->pin, "names", &s->store->error);
    if (status == DELTAFS_OK)
        s->pin[s->pins++] = (struct pin){name.parent, name.key};
    return status;
}

static int serve_unpin(struct shared *s, struct parcel *p, struct message *reply)
{
    struct entry_name name = parcel_name(p);

    (void)reply;
    drop_pin(s, &name);
    return DELTAFS_OK;
}

/* A file has other bytes; its other attributes may have changed meanwhile. SHARED_STALE: it has this name no more. */
static int serve_data(struct shared *s, struct parcel *p, struct message *reply)
{
    const struct name_table *t = &s->store->names;
    struct entry_name name = parcel_name(p);
    struct name_node *node;
    struct inode inode;
    int status = check_change(s);

    (void)reply;
    parcel_take(p, &inode, sizeof inode);
    if (status == DELTAFS_OK && find_pin(s, &name))
        status = SHARED_WAIT;
    if (status == DELTAFS_OK)
        status = ns_load_node(s->store, &name, 0, &node);
    if (status != DELTAFS_OK)
        return status;
    for (const struct name_item *i = name_item_at(t, node->items); i; i = name_item_at(t, i->next))
        if (i->inode.type == ENTRY_FILE && id_is_same(&i->inode.id, &inode.id)) {
            struct inode changed = i->inode;
            changed.stamp = inode.stamp;
            changed.mtime = inode.mtime;
            changed.size = inode.size;
            changed.data = inode.data;
            return put_newest(s, node, changed, "", 0);
        }
    return SHARED_STALE;
}

/* ---- Folders ---- */

/* The least hash of names in a part of a folder; of the part behind the last one 2^32. */
static uint64_t part_begin(const struct shared *s, uint64_t part)
{
    return ((part << 32) + s->parts - 1) / s->parts;
}

/* List this rank's part of a folder. What is in memory is of no other part. */
static int list_own_part(struct shared *s, const struct entry_id *id, deltafs_namespace_list **out)
{
    const struct folder folder = folder_of(id);
    uint32_t part = (s->group.rank + s->group.ranks - shared_owner(s, folder.hash, 0)) % s->group.ranks;

    return list_create_part(s->store, &folder, 1, (uint32_t)part_begin(s, part),
                            (uint32_t)(part_begin(s, part + UINT64_C(1)) - 1), out);
}

static int serve_seal(struct shared *s, struct parcel *p, struct message *reply)
{
    deltafs_namespace_list *l = NULL;
    struct inode shown = {.type = ENTRY_REMOVED};
    struct entry_id id;
    int status = check_change(s);

    (void)reply;
    parcel_take(p, &id, sizeof id);
    if (status == DELTAFS_OK)
        status = list_own_part(s, &id, &l);
    if (status == DELTAFS_OK)
        status = list_next(l, &shown);
    list_destroy(l);
    if (status == DELTAFS_OK && shown.type != ENTRY_REMOVED)
        return ns_fail(s->store, DELTAFS_ERR_NOT_EMPTY, "");
    return status == DELTAFS_OK ? add_seal(s, &id) : status;
}

static int serve_unseal(struct shared *s, struct parcel *p, struct message *reply)
{
    struct entry_id id;

    (void)reply;
    parcel_take(p, &id, sizeof id);
    drop_seal(s, &id);
    return DELTAFS_OK;
}

static void close_list(struct shared *s, uint32_t i)
{
    list_destroy(s->list[i]);
    s->list[i] = NULL;
}

/* The list's number, and some entries: of each its inode, and its name. */
static int put_some(struct shared *s, uint32_t i, struct message *reply)
{
    const uint32_t ended = SHARED_LIST_ENDED;
    size_t at = reply->bytes.used;
    struct inode shown = {.type = ENTRY_FILE};
    int status = DELTAFS_OK;

    message_put(reply, &i, sizeof i);
    while (status == DELTAFS_OK && reply->error.status == DELTAFS_OK && reply->bytes.used < LIST_BYTES) {
        status = list_next(s->list[i], &shown);
        if (status != DELTAFS_OK || shown.type == ENTRY_REMOVED)
            break;
        const char *name = list_name(s->list[i]);
        uint8_t size = (uint8_t)strlen(name);
        message_put(reply, &shown, sizeof shown);
        message_put(reply, &size, sizeof size);
        message_put(reply, name, size);
    }
    if (status == DELTAFS_OK && reply->error.status == DELTAFS_OK && shown.type == ENTRY_REMOVED) {
        memcpy(reply->bytes.buffer.bytes + at, &ended, sizeof ended);
        close_list(s, i);
    }
    return status;
}

static int serve_list_open(struct shared *s, struct parcel *p, struct message *reply)
{
    deltafs_namespace_list *l;
    struct entry_id id;
    uint32_t i = 0;
    int status = check_room(s);

    parcel_take(p, &id, sizeof id);
    if (status == DELTAFS_OK)
        status = list_own_part(s, &id, &l);
    if (status != DELTAFS_OK)
        return status;
    while (i < s->lists && s->list[i])
        i++;
    if (i == s->lists) {
        void *more = realloc(s->list, (s->lists + 1) * sizeof(void *));
        if (!more) {
            list_destroy(l);
            return error_no_memory(&s->store->error, (s->lists + 1) * sizeof(void *), "lists");
        }
        s->list = more;
        s->lists++;
    }
    s->list[i] = l;
    status = put_some(s, i, reply);
    if (status != DELTAFS_OK || reply->error.status != DELTAFS_OK)
        close_list(s, i);
    return status;
}

static int serve_list_next(struct shared *s, struct parcel *p, struct message *reply)
{
    uint32_t i;
    int status = check_room(s);

    parcel_take(p, &i, sizeof i);
    if (status == DELTAFS_OK && (i >= s->lists || !s->list[i]))
        return error_set(&s->store->error, DELTAFS_ERR_MPI, "another rank asked for a list that it has not open");
    return status == DELTAFS_OK ? put_some(s, i, reply) : status;
}

static int serve_list_close(struct shared *s, struct parcel *p, struct message *reply)
{
    uint32_t i;

    (void)reply;
    parcel_take(p, &i, sizeof i);
    if (i < s->lists)
        close_list(s, i);
    return DELTAFS_OK;
}

/* ---- What this rank has as a writer ---- */

static int serve_read(struct shared *s, struct parcel *p, struct message *reply)
{
    struct entry_id place;
    uint64_t size;

    parcel_take(p, &place, sizeof place);
    parcel_take(p, &size, sizeof size);
    size_t begin = reply->bytes.used, got = 0;
    int status = size > CHUNK_SIZE ? error_set(&s->client->error, DELTAFS_ERR_MPI, "a chunk of a file is too large")
                                   : buffer_reserve(&reply->bytes.buffer, begin + size, "a file", &s->client->error);
    if (status == DELTAFS_OK)
        status = ns_read_own_chunk(s->client, &place, size, reply->bytes.buffer.bytes + begin, &got);
    if (status == DELTAFS_OK)
        reply->bytes.used += got;
    else
        s->store->error = s->client->error;
    return status;
}

/* Paths may lead elsewhere now, and files that are open here may have other names. */
static int serve_forget(struct shared *s, struct parcel *p, struct message *reply)
{
    (void)reply;
    s->is_stale = 1;
    while (p->at < p->end && !p->is_short) {
        struct inode inode;
        parcel_take(p, &inode, sizeof inode);
        struct entry_name name = parcel_name(p);
        if (!p->is_short)
            ns_note_moved(s->client, &inode, &name);
    }
    return DELTAFS_OK;
}

/* ---- The lock ---- */

static int serve_lock(struct shared *s, struct parcel *p, struct message *reply)
{
    (void)p, (void)reply;
    if (s->is_locked)
        return SHARED_WAIT;
    s->is_locked = 1;
    return DELTAFS_OK;
}

static int serve_unlock(struct shared *s, struct parcel *p, struct message *reply)
{
    (void)p, (void)reply;
    s->is_locked = 0;
    return DELTAFS_OK;
}

/* ---- Commits ---- */

/* In two commits, the second has stamps that are not above the first: so these are epochs. */
int shared_commit_store(struct shared *s, enum commit_part part)
{
    deltafs_namespace *store = s->store;
    int status = part == COMMIT_ALL ? DELTAFS_OK : ns_break(store, ns_end_journal(store, &store->error));

    if (status == DELTAFS_OK)
        status = ns_commit_names(store, part);
    store->own.has_journal = store->has_journals;
    s->last_committed = store->last_stamp;
    return status;
}

static int serve_freeze(struct shared *s, struct parcel *p, struct message *reply)
{
    (void)p, (void)reply;
    s->is_frozen = 1;
    return DELTAFS_OK;
}

static int serve_commit_data(struct shared *s, struct parcel *p, struct message *reply)
{
    (void)p, (void)reply;
    int status = ns_check_sound(s->client);
    if (status == DELTAFS_OK)
        status = ns_commit_data(s->client);
    if (status != DELTAFS_OK)
        s->store->error = s->client->error;
    return status;
}

static int serve_commit_added(struct shared *s, struct parcel *p, struct message *reply)
{
    (void)p, (void)reply;
    return shared_commit_store(s, COMMIT_ADDED);
}

static int serve_commit_removed(struct shared *s, struct parcel *p, struct message *reply)
{
    (void)p, (void)reply;
    s->is_frozen = 0;
    s->has_moved = 0;
    return shared_commit_store(s, COMMIT_REMOVED);
}

static int serve_thaw(struct shared *s, struct parcel *p, struct message *reply)
{
    (void)p, (void)reply;
    s->is_frozen = 0;
    return DELTAFS_OK;
}

/* ---- Requests ---- */

void shared_serve(struct shared *s, const struct bytes *request, struct message *reply)
{
    static int (*const serve[SHARED_OPS])(struct shared * s, struct parcel * p,
                                          struct message * reply) = {[SHARED_LOOKUP] = serve_lookup,
                                                                     [SHARED_CREATE] = serve_create,
                                                                     [SHARED_CHANGE] = serve_change,
                                                                     [SHARED_PIN] = serve_pin,
                                                                     [SHARED_UNPIN] = serve_unpin,
                                                                     [SHARED_DATA] = serve_data,
                                                                     [SHARED_SEAL] = serve_seal,
                                                                     [SHARED_UNSEAL] = serve_unseal,
                                                                     [SHARED_LIST_OPEN] = serve_list_open,
                                                                     [SHARED_LIST_NEXT] = serve_list_next,
                                                                     [SHARED_LIST_CLOSE] = serve_list_close,
                                                                     [SHARED_READ] = serve_read,
                                                                     [SHARED_FORGET] = serve_forget,
                                                                     [SHARED_LOCK] = serve_lock,
                                                                     [SHARED_UNLOCK] = serve_unlock,
                                                                     [SHARED_FREEZE] = serve_freeze,
                                                                     [SHARED_COMMIT_DATA] = serve_commit_data,
                                                                     [SHARED_COMMIT_ADDED] = serve_commit_added,
                                                                     [SHARED_COMMIT_REMOVED] = serve_commit_removed,
                                                                     [SHARED_THAW] = serve_thaw};
    struct parcel p = {.at = request->buffer.bytes, .end = request->buffer.bytes + request->used};
    int32_t verdict = DELTAFS_OK;
    uint32_t op;

    reply->bytes.used = 0;
    reply->error.status = DELTAFS_OK;
    message_put(reply, &verdict, sizeof verdict);
    parcel_take(&p, &op, sizeof op);
    verdict = op < SHARED_OPS ? serve[op](s, &p, reply) : DELTAFS_ERR_MPI;
    if (op >= SHARED_OPS || p.is_short)
        verdict = error_set(&s->store->error, DELTAFS_ERR_MPI, "another rank sent an invalid request");
    if (verdict == DELTAFS_OK && reply->error.status != DELTAFS_OK) {
        s->store->error = reply->error;
        verdict = reply->error.status;
    }
    if (verdict < 0 && op != SHARED_CREATE) {
        reply->bytes.used = sizeof verdict;
        reply->error.status = DELTAFS_OK;
    }
    if (verdict < 0)
        message_put(reply, &s->store->error, sizeof s->store->error);
    memcpy(reply->bytes.buffer.bytes, &verdict, sizeof verdict);
}

void shared_end_serving(struct shared *s)
{
    for (size_t i = 0; i < s->lists; i++)
        list_destroy(s->list[i]);
    free(s->list);
    free(s->sealed);
    free(s->pin);
}
