/* The client's side: see shared.h. */
#include <stdlib.h>
#include <string.h>
#include "namespace/shared.h"

#define CREATE_BYTES (32u << 10)
#define CREATE_NAMES 2048
#define SEEN_NOT     UINT64_MAX

/* ---- Messages ---- */

void message_put_name(struct message *m, const struct entry_name *name)
{
    uint8_t size = (uint8_t)name->size;

    message_put(m, &name->parent, sizeof name->parent);
    message_put(m, &name->key, sizeof name->key);
    message_put(m, &size, sizeof size);
    message_put(m, name->text, size);
}

void message_put_item(struct message *m, const struct inode *inode, const char *target, size_t target_size)
{
    uint16_t size = (uint16_t)target_size;

    message_put(m, inode, sizeof *inode);
    message_put(m, &size, sizeof size);
    message_put(m, target, size);
}

const char *parcel_text(struct parcel *p, size_t n)
{
    const char *text = (const char *)p->at;

    if ((size_t)(p->end - p->at) < n) {
        p->is_short = 1;
        p->at = p->end;
        return NULL;
    }
    p->at += n;
    return text;
}

void parcel_take(struct parcel *p, void *out, size_t n)
{
    const char *bytes = parcel_text(p, n);

    if (bytes)
        memcpy(out, bytes, n);
    else
        memset(out, 0, n);
}

struct entry_name parcel_name(struct parcel *p)
{
    struct entry_name name = {.size = 0};
    uint8_t size;

    parcel_take(p, &name.parent, sizeof name.parent);
    parcel_take(p, &name.key, sizeof name.key);
    parcel_take(p, &size, sizeof size);
    name.text = parcel_text(p, size);
    name.size = name.text ? size : 0;
    return name;
}

struct inode parcel_item(struct parcel *p, const char **target, size_t *target_size)
{
    struct inode inode;
    uint16_t size;

    parcel_take(p, &inode, sizeof inode);
    parcel_take(p, &size, sizeof size);
    *target = parcel_text(p, size);
    *target_size = *target ? size : 0;
    return inode;
}

/* ---- Requests ---- */

struct message *shared_request(struct shared *s, enum shared_op op)
{
    uint32_t number = op;

    s->request.bytes.used = 0;
    s->request.error.status = DELTAFS_OK;
    message_put(&s->request, &number, sizeof number);
    return &s->request;
}

/* One request and its reply. An error of the owner becomes one of the client. */
static int ask_once(struct shared *s, uint32_t rank, const struct message *request, struct parcel *p)
{
    struct bytes *b = &s->reply.bytes;
    struct error *e = &s->client->error;
    int32_t verdict;

    if (request->error.status != DELTAFS_OK) {
        *e = request->error;
        return e->status;
    }
    if (rank == s->group.rank)
        shared_serve(s, &request->bytes, &s->reply);
    else if (s->transport->call(s->ctx, rank, &request->bytes, b, e) != DELTAFS_OK)
        return e->status;
    *p = (struct parcel){.at = b->buffer.bytes, .end = b->buffer.bytes + b->used};
    parcel_take(p, &verdict, sizeof verdict);
    if (verdict < 0 && b->used >= sizeof verdict + sizeof *e)
        memcpy(e, b->buffer.bytes + b->used - sizeof *e, sizeof *e);
    else if (verdict < 0 || p->is_short)
        return error_set(e, DELTAFS_ERR_MPI, "another rank sent an invalid reply");
    return verdict;
}

static int commit_for_all(struct shared *s);

int shared_ask(struct shared *s, uint32_t rank, struct parcel *reply)
{
    struct message request = s->request; /* a commit in between makes requests, too */
    int status;

    s->request = (struct message){.error.status = DELTAFS_OK};
    *reply = (struct parcel){.is_short = 0};
    while ((status = ask_once(s, rank, &request, reply)) == SHARED_WAIT || status == SHARED_FULL) {
        if (status == SHARED_WAIT)
            s->transport->wait(s->ctx);
        else if ((status = commit_for_all(s)) != DELTAFS_OK)
            break;
    }
    buffer_fini(&s->request.bytes.buffer);
    s->request = request;
    return status;
}

int shared_ask_all(struct shared *s)
{
    struct parcel reply;
    int status = DELTAFS_OK;

    for (uint32_t k = 1; k <= s->group.ranks; k++)
        status = error_first(status, shared_ask(s, (s->group.rank + k) % s->group.ranks, &reply));
    return status;
}

/* ---- The lock ---- */

static int take_lock(struct shared *s)
{
    struct parcel reply;

    shared_request(s, SHARED_LOCK);
    int status = shared_ask(s, 0, &reply);
    s->has_lock = status == DELTAFS_OK;
    return status;
}

static void release_lock(struct shared *s)
{
    struct error kept = s->client->error;
    struct parcel reply;

    shared_request(s, SHARED_UNLOCK);
    shared_ask(s, 0, &reply);
    s->client->error = kept;
    s->has_lock = 0;
}

int shared_lock(deltafs_namespace *ns)
{
    return ns->shared ? take_lock(ns->shared) : DELTAFS_OK;
}

void shared_unlock(deltafs_namespace *ns)
{
    if (ns->shared && ns->shared->has_lock)
        release_lock(ns->shared);
}

/* ---- Commits of one rank for all ---- */

/* After a step that failed on one rank, nothing is removed on any: what was moved may not be in its new place. */
static int commit_steps(struct shared *s)
{
    static const enum shared_op steps[] = {SHARED_FREEZE, SHARED_COMMIT_DATA, SHARED_COMMIT_ADDED,
                                           SHARED_COMMIT_REMOVED};
    int status = DELTAFS_OK;

    for (size_t i = 0; i < sizeof steps / sizeof steps[0] && status == DELTAFS_OK; i++) {
        shared_request(s, steps[i]);
        status = shared_ask_all(s);
    }
    if (status != DELTAFS_OK) {
        struct error kept = s->client->error;
        shared_request(s, SHARED_THAW);
        shared_ask_all(s);
        s->client->error = kept;
    }
    return status;
}

static int commit_for_all(struct shared *s)
{
    int had_lock = s->has_lock, status = had_lock ? DELTAFS_OK : take_lock(s);

    if (status == DELTAFS_OK)
        status = commit_steps(s);
    if (!had_lock && s->has_lock)
        release_lock(s);
    return status;
}

/* ---- Calls ---- */

/* Forget all copies; changes that were not sent, too. */
static void forget_copies(struct shared *s)
{
    deltafs_namespace *ns = s->client;

    ns->names.first_dirty = ns->names.last_dirty = 0;
    name_table_clear(&ns->names);
    ns_forget_walks(ns);
    s->is_stale = 0;
}

static void begin_changes(struct shared *s)
{
    s->seen_count = 0;
    s->must_forget = s->is_moving = 0;
    s->moved.bytes.used = 0;
    s->own_seals = 0;
}

void shared_begin(deltafs_namespace *ns)
{
    struct shared *s = ns->shared;

    s->transport->enter(s->ctx);
    if (s->is_stale || name_table_left(&ns->names) < SHARED_CACHE_BYTES / 4)
        forget_copies(s);
    s->assumes_new = 0;
    begin_changes(s);
}

void shared_end(deltafs_namespace *ns)
{
    ns->shared->transport->leave(ns->shared->ctx);
}

/* ---- Looking ---- */

static int note_seen(struct shared *s, const struct name_node *node, uint64_t state)
{
    int status =
        memory_extend(NULL, &s->seen, s->seen_count, &s->seen_room, sizeof *s->seen, "names", &s->client->error);

    if (status == DELTAFS_OK)
        s->seen[s->seen_count++] = (struct seen){node, state};
    return status;
}

/* What was known of the name when it was looked up last. */
static uint64_t seen_state(const struct shared *s, const struct name_node *node)
{
    for (size_t i = s->seen_count; i-- > 0;)
        if (s->seen[i].node == node)
            return s->seen[i].state;
    return SEEN_NOT;
}

static int is_way_on(const struct name_table *t, const struct name_node *node)
{
    for (const struct name_item *i = name_item_at(t, node->items); i; i = name_item_at(t, i->next))
        if (i->inode.type == ENTRY_FOLDER || i->inode.type == ENTRY_LINK)
            return 1;
    return 0;
}

static int look_up(struct shared *s, const struct entry_name *name, struct name_node *node)
{
    deltafs_namespace *ns = s->client;
    struct parcel reply;
    const char *target;
    size_t target_size;
    uint32_t count;

    message_put_name(shared_request(s, SHARED_LOOKUP), name);
    int status = shared_ask(s, shared_name_owner(s, name), &reply);
    if (status != DELTAFS_OK)
        return status;
    parcel_take(&reply, &count, sizeof count);
    for (uint32_t i = 0; i < count; i++) {
        struct inode inode = parcel_item(&reply, &target, &target_size);
        if (!name_table_put(&ns->names, node, &inode, target, target_size))
            return error_no_memory(&ns->error, target_size, "copies of names");
        if (inode.stamp > ns->last_stamp)
            ns->last_stamp = inode.stamp;
    }
    return DELTAFS_OK;
}

int shared_load(deltafs_namespace *ns, const struct entry_name *name, int is_way, struct name_node **out)
{
    struct shared *s = ns->shared;
    struct name_node *node = name_table_get(&ns->names, name);
    size_t folders;
    int status = DELTAFS_OK;

    if (!node)
        return error_no_memory(&ns->error, name->size, "copies of names");
    *out = node;
    if (is_way && is_way_on(&ns->names, node))
        return DELTAFS_OK;
    for (struct name_item *i = name_item_at(&ns->names, node->items); i; i = name_item_at(&ns->names, i->next))
        i->inode.type = ENTRY_REMOVED;
    walk_folders(&ns->walk, &folders);
    if (is_way || !s->assumes_new || folders > 1)
        status = look_up(s, name, node);
    return status == DELTAFS_OK ? note_seen(s, node, shared_state(&ns->names, node)) : status;
}

/* ---- Changing ---- */

static int pin_name(struct shared *s, const struct name_node *node)
{
    const struct entry_name name = node_name(node);
    uint64_t state = seen_state(s, node);
    struct parcel reply;

    struct message *m = shared_request(s, SHARED_PIN);
    message_put_name(m, &name);
    message_put(m, &state, sizeof state);
    return shared_ask(s, shared_name_owner(s, &name), &reply);
}

/* Pin all names that change. */
static int pin_names(struct shared *s)
{
    const struct name_table *t = &s->client->names;
    int status = DELTAFS_OK;

    for (const struct name_node *n = name_node_at(t, t->first_dirty); n && status == DELTAFS_OK;
         n = name_node_at(t, n->dirty))
        status = pin_name(s, n);
    return status;
}

/* Take the pins back that are left; no other rank can have one. */
static void unpin_names(struct shared *s)
{
    const struct name_table *t = &s->client->names;
    struct error kept = s->client->error;
    struct parcel reply;

    for (const struct name_node *n = name_node_at(t, t->first_dirty); n; n = name_node_at(t, n->dirty)) {
        const struct entry_name name = node_name(n);
        message_put_name(shared_request(s, SHARED_UNPIN), &name);
        shared_ask(s, shared_name_owner(s, &name), &reply);
    }
    s->client->error = kept;
}

/* Have the owner make the changes of a name. */
static int send_node(struct shared *s, const struct name_node *node)
{
    const struct name_table *t = &s->client->names;
    const struct entry_name name = node_name(node);
    uint64_t state = seen_state(s, node);
    uint8_t is_holder = s->is_moving != 0, adds = 0;
    uint32_t count = 0;
    struct parcel reply;

    for (const struct name_item *i = name_item_at(t, node->items); i; i = name_item_at(t, i->next)) {
        count += i->is_dirty;
        adds |= i->is_dirty && i->inode.type != ENTRY_REMOVED;
    }
    struct message *m = shared_request(s, SHARED_CHANGE);
    message_put_name(m, &name);
    message_put(m, &state, sizeof state);
    message_put(m, &is_holder, sizeof is_holder);
    message_put(m, &adds, sizeof adds);
    message_put(m, &count, sizeof count);
    for (const struct name_item *i = name_item_at(t, node->items); i; i = name_item_at(t, i->next))
        if (i->is_dirty)
            message_put_item(m, &i->inode, i->target, i->inode.type == ENTRY_LINK ? i->target_size : 0);
    return shared_ask(s, shared_name_owner(s, &name), &reply);
}

static int forget_everywhere(struct shared *s)
{
    struct message *m = shared_request(s, SHARED_FORGET);

    message_put(m, s->moved.bytes.buffer.bytes, s->moved.bytes.used);
    if (m->error.status == DELTAFS_OK)
        m->error.status = s->moved.error.status;
    return shared_ask_all(s);
}

static int send_changes(struct shared *s)
{
    struct name_table *t = &s->client->names;
    const struct name_node *n = name_node_at(t, t->first_dirty);
    int status = DELTAFS_OK;

    if (n && s->is_stale)
        return SHARED_STALE;
    if (s->is_moving)
        status = pin_names(s);
    for (; n && status == DELTAFS_OK; n = name_node_at(t, n->dirty))
        status = send_node(s, n);
    if (status != DELTAFS_OK && s->is_moving)
        unpin_names(s);
    if (status == DELTAFS_OK && (s->must_forget || s->moved.bytes.used > 0))
        status = forget_everywhere(s);
    if (status == DELTAFS_OK)
        name_table_mark_clean(t);
    return status;
}

int shared_ask_part(struct shared *s, enum shared_op op, const struct folder *folder, uint32_t part,
                    struct parcel *reply)
{
    message_put(shared_request(s, op), &folder->id, sizeof folder->id);
    return shared_ask(s, shared_owner(s, folder->hash, part), reply);
}

static void unseal_folders(struct shared *s)
{
    struct error kept = s->client->error;
    struct parcel reply;

    for (; s->own_seals > 0; s->own_seals--) {
        const struct folder f = folder_of(&s->own_seal[s->own_seals - 1]);
        for (uint32_t part = 0; part < s->parts; part++)
            shared_ask_part(s, SHARED_UNSEAL, &f, part, &reply);
    }
    s->client->error = kept;
}

int shared_again(deltafs_namespace *ns, int *status)
{
    struct shared *s = ns->shared;

    if (!s)
        return 0;
    if (*status == DELTAFS_OK)
        *status = send_changes(s);
    else if (s->assumes_new)
        *status = SHARED_STALE; /* the error may be another one if the name is looked up */
    if (*status != DELTAFS_OK) {
        unseal_folders(s);
        forget_copies(s);
    }
    int must_forget = s->must_forget && *status == SHARED_STALE; /* a part of the changes is made */
    begin_changes(s);
    s->must_forget = must_forget;
    if (*status != SHARED_STALE)
        return 0;
    if (!s->assumes_new)
        s->transport->wait(s->ctx);
    s->assumes_new = 0;
    return 1;
}

int shared_seal(deltafs_namespace *ns, const struct folder *folder, size_t count, const char *path)
{
    struct shared *s = ns->shared;
    struct parcel reply;
    int status = DELTAFS_OK;

    for (size_t i = 0; i < count && status == DELTAFS_OK; i++) {
        status = memory_extend(NULL, &s->own_seal, s->own_seals, &s->own_seal_room, sizeof *s->own_seal, "folders",
                               &ns->error);
        if (status == DELTAFS_OK)
            s->own_seal[s->own_seals++] = folder[i].id;
        for (uint32_t part = 0; part < s->parts && status == DELTAFS_OK; part++)
            status = shared_ask_part(s, SHARED_SEAL, &folder[i], part, &reply);
    }
    return status == DELTAFS_ERR_NOT_EMPTY ? ns_fail(ns, status, path) : status;
}

/* Some names of a part, as many as one message has; *done are created. */
static int create_some(struct shared *s, const struct folder *folder, uint32_t part, const char *const *names, size_t n,
                       const struct inode *first, size_t *done)
{
    struct message *m = shared_request(s, SHARED_CREATE);
    size_t at = m->bytes.used + sizeof folder->id + sizeof *first;
    struct parcel reply;
    uint32_t count = 0, created;
    uint8_t had_link;

    message_put(m, &folder->id, sizeof folder->id);
    message_put(m, first, sizeof *first);
    message_put(m, &count, sizeof count);
    for (; count < n && count < CREATE_NAMES && m->bytes.used < CREATE_BYTES; count++) {
        uint8_t size = (uint8_t)strlen(names[count]);
        message_put(m, &size, sizeof size);
        message_put(m, names[count], size);
    }
    if (m->error.status == DELTAFS_OK)
        memcpy(m->bytes.buffer.bytes + at, &count, sizeof count);
    int status = shared_ask(s, shared_owner(s, folder->hash, part), &reply);
    if (reply.end - reply.at < (ptrdiff_t)(sizeof created + sizeof had_link))
        return status;
    parcel_take(&reply, &created, sizeof created);
    parcel_take(&reply, &had_link, sizeof had_link);
    *done = created;
    s->must_forget |= had_link;
    return status;
}

/* The names of a part; *next is the inode of the next new file. */
static int create_part(struct shared *s, const struct folder *folder, uint32_t part, const char *const *names, size_t n,
                       struct inode *next)
{
    int status = DELTAFS_OK;

    while (n > 0 && status == DELTAFS_OK) {
        size_t done = 0;
        status = create_some(s, folder, part, names, n, next, &done);
        names += done;
        n -= done;
        next->id.number += done;
        next->stamp += done;
        next->mtime += (int64_t)done;
        next->atime += (int64_t)done;
    }
    return status;
}

/* Order names by the parts that have them, into `sorted`; end[part] is where the part's names end. */
static void sort_by_part(const struct shared *s, const char *const *names, size_t n, const char **sorted, size_t *end)
{
    uint8_t part[SHARED_CREATE_MOST];
    size_t before = 0;

    memset(end, 0, s->parts * sizeof *end);
    for (size_t i = 0; i < n; i++) {
        part[i] = (uint8_t)shared_part(s, name_hash(names[i], strlen(names[i])));
        end[part[i]]++;
    }
    for (uint32_t k = 0; k < s->parts; k++) {
        size_t count = end[k];
        end[k] = before;
        before += count;
    }
    for (size_t i = 0; i < n; i++)
        sorted[end[part[i]]++] = names[i];
}

int shared_create(deltafs_namespace *ns, const struct folder *folder, const char *const *names, size_t n,
                  const struct inode *first)
{
    struct shared *s = ns->shared;
    const char *sorted[SHARED_CREATE_MOST];
    size_t end[SHARED_PARTS_MOST], at = 0;
    struct folder to = *folder; /* which is the walk's */
    struct inode inode = *first;
    int status = DELTAFS_OK, sent;

    sort_by_part(s, names, n, sorted, end);
    for (uint32_t part = 0; part < s->parts && status == DELTAFS_OK; at = end[part++])
        status = create_part(s, &to, part, sorted + at, end[part] - at, &inode);
    sent = s->must_forget ? forget_everywhere(s) : DELTAFS_OK;
    s->must_forget = 0;
    return error_first(status, sent);
}

void shared_note_moved(deltafs_namespace *ns, const struct inode *inode, const struct entry_name *to)
{
    struct shared *s = ns->shared;

    s->is_moving = 1;
    message_put(&s->moved, inode, sizeof *inode);
    message_put_name(&s->moved, to);
}
