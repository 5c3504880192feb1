#include <string.h>
#include <sys/stat.h>
#include "base/coding.h"
#include "namespace/entry.h"

struct folder folder_of(const struct entry_id *id)
{
    uint8_t bytes[16];

    put_u64(bytes, id->table);
    put_u64(bytes + 8, id->number);
    return (struct folder){*id, (uint32_t)(hash_bytes(bytes, sizeof bytes) >> 32)};
}

/* ---- Records ---- */

static uint8_t *put_id(uint8_t *p, const struct entry_id *id)
{
    put_u64(p, id->table);
    put_u64(p + 8, id->number);
    return p + 16;
}

static struct entry_id get_id(const uint8_t *p)
{
    return (struct entry_id){get_u64(p), get_u64(p + 8)};
}

/* A time as its difference to the stamp. */
static uint8_t *put_time(uint8_t *p, int64_t t, uint64_t stamp)
{
    uint64_t d = (uint64_t)t - stamp;

    return put_varint(p, d << 1 ^ (0 - (d >> 63)));
}

size_t entry_encode(const struct entry *entry, uint8_t *out)
{
    const struct inode *i = &entry->inode;
    uint8_t *p = out;

    p[0] = i->type;
    p[1] = (uint8_t)entry->name_size;
    put_u16(p + 2, i->mode);
    p = put_id(p + 4, &entry->parent);
    p = put_id(p, &i->id);
    put_u64(p, i->stamp);
    memcpy(p + 8, entry->name, entry->name_size);
    p += 8 + entry->name_size;
    if (i->type == ENTRY_REMOVED)
        return (size_t)(p - out);
    p = put_varint(p, i->uid);
    p = put_varint(p, i->gid);
    p = put_time(p, i->mtime, i->stamp);
    p = put_time(p, i->atime, i->stamp);
    p = put_varint(p, i->size);
    if (i->type == ENTRY_FILE && i->size > 0)
        p = put_id(p, &i->data);
    if (i->type == ENTRY_LINK) {
        memcpy(p, entry->target, entry->target_size);
        p += entry->target_size;
    }
    return (size_t)(p - out);
}

/* What follows the name. */
static int decode_attributes(const uint8_t *p, const uint8_t *end, struct entry *out)
{
    struct inode *i = &out->inode;
    uint64_t uid, gid, mtime, atime;

    if (!(p = get_varint(p, end, &uid)) || !(p = get_varint(p, end, &gid)) || !(p = get_varint(p, end, &mtime)) ||
        !(p = get_varint(p, end, &atime)) || !(p = get_varint(p, end, &i->size)))
        return -1;
    i->uid = (uint32_t)uid;
    i->gid = (uint32_t)gid;
    i->mtime = (int64_t)(i->stamp + (mtime >> 1 ^ (0 - (mtime & 1))));
    i->atime = (int64_t)(i->stamp + (atime >> 1 ^ (0 - (atime & 1))));
    size_t left = (size_t)(end - p);
    if (uid > UINT32_MAX || gid > UINT32_MAX || (i->type == ENTRY_FOLDER && i->size > 0))
        return -1;
    if (i->type == ENTRY_FILE && i->size > 0) {
        if (left != 16 || i->size > FILE_MAX)
            return -1;
        i->data = get_id(p);
        return 0;
    }
    out->target = (const char *)p;
    out->target_size = i->type == ENTRY_LINK ? left : 0;
    return left == i->size && left <= ENTRY_TARGET_MAX && (left > 0) == (i->type == ENTRY_LINK) ? 0 : -1;
}

/* A name that no folder can have would lead a reader elsewhere. The root has the name "/" in no folder. */
static int name_is_possible(const struct entry *e)
{
    if (e->parent.number == 0)
        return e->name_size == 1 && e->name[0] == '/';
    return !memchr(e->name, '/', e->name_size) && !memchr(e->name, '\0', e->name_size) &&
           (e->name_size > 2 || memcmp(e->name, "..", e->name_size) != 0);
}

int entry_decode(const uint8_t *bytes, size_t n, struct entry *out)
{
    const uint8_t *end = bytes + n;

    if (n < ENTRY_HEADER_SIZE || bytes[0] > ENTRY_LINK || bytes[1] == 0 || n - ENTRY_HEADER_SIZE < bytes[1])
        return -1;
    /* Field by field: this is what a list spends its time with. */
    struct inode *i = &out->inode;
    out->parent = get_id(bytes + 4);
    out->name = (const char *)bytes + ENTRY_HEADER_SIZE;
    out->name_size = bytes[1];
    out->target = NULL;
    out->target_size = 0;
    i->id = get_id(bytes + 20);
    i->stamp = get_u64(bytes + 36);
    i->mode = get_u16(bytes + 2);
    i->type = bytes[0];
    i->mtime = i->atime = 0;
    i->size = 0;
    i->data = (struct entry_id){0, 0};
    i->uid = i->gid = 0;
    const uint8_t *rest = bytes + ENTRY_HEADER_SIZE + bytes[1];
    if (!name_is_possible(out))
        return -1;
    if (i->type == ENTRY_REMOVED)
        return rest == end ? 0 : -1;
    return decode_attributes(rest, end, out);
}

/* ---- States ---- */

int inode_show(struct inode *shown, const struct inode *i)
{
    int is_folder = i->type == ENTRY_FOLDER, was_folder = shown->type == ENTRY_FOLDER;
    struct entry_id least = shown->id;

    if (i->type == ENTRY_REMOVED || (was_folder && !is_folder))
        return 0;
    if (is_folder && was_folder) {
        int is_least = id_is_less(&i->id, &least);
        if (i->stamp > shown->stamp)
            *shown = *i;
        shown->id = is_least ? i->id : least;
        return is_least;
    }
    if (shown->type != ENTRY_REMOVED && is_folder == was_folder &&
        (i->stamp < shown->stamp || (i->stamp == shown->stamp && id_is_less(&i->id, &shown->id))))
        return 0;
    *shown = *i;
    return 1;
}

/* ---- Attributes ---- */

void inode_to_stat(const struct inode *i, struct deltafs_namespace_stat *out)
{
    static const uint32_t kinds[] = {[ENTRY_FILE] = S_IFREG, [ENTRY_FOLDER] = S_IFDIR, [ENTRY_LINK] = S_IFLNK};
    uint8_t id[16];

    put_id(id, &i->id);
    *out = (struct deltafs_namespace_stat){.struct_size = sizeof *out,
                                           .inode = i->id.table == 0 ? i->id.number : hash_bytes(id, sizeof id),
                                           .mode = kinds[i->type] | i->mode,
                                           .uid = i->uid,
                                           .gid = i->gid,
                                           .size = i->size,
                                           .mtime = i->mtime,
                                           .atime = i->atime,
                                           .ctime = (int64_t)i->stamp,
                                           .btime = (int64_t)i->id.number};
}
