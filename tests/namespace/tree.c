#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include "tree.h"
#include "unit_help.h"

struct tree *tree_create(void)
{
    struct tree *t = calloc(1, sizeof *t);

    assert_non_null(t);
    t->type = TREE_FOLDER;
    t->mode = 0755;
    t->parent = t;
    return t;
}

void tree_destroy(struct tree *t)
{
    while (t->child) {
        struct tree *c = t->child;
        t->child = c->next;
        tree_destroy(c);
    }
    free(t->bytes);
    free(t);
}

static struct tree *child_of(struct tree *folder, const char *name)
{
    struct tree *c = folder->child;

    while (c && strcmp(c->name, name) != 0)
        c = c->next;
    return c;
}

static void take_out(struct tree *t)
{
    struct tree **link = &t->parent->child;

    while (*link != t)
        link = &(*link)->next;
    *link = t->next;
}

static void put_in(struct tree *folder, struct tree *t, const char *name)
{
    snprintf(t->name, sizeof t->name, "%s", name);
    t->parent = folder;
    t->next = folder->child;
    folder->child = t;
}

struct tree *tree_copy(const struct tree *t)
{
    struct tree *copy = tree_create();

    copy->type = t->type;
    copy->mode = t->mode;
    copy->mtime = t->mtime;
    tree_resize(copy, t->size);
    if (t->size > 0)
        memcpy(copy->bytes, t->bytes, t->size);
    for (const struct tree *c = t->child; c; c = c->next)
        put_in(copy, tree_copy(c), c->name);
    return copy;
}

/* ---- Paths ---- */

struct place {
    struct tree *folder;
    char name[256]; /* "": the place is the folder itself */
    int is_folder, is_dots;
};

/* Where the last name of a path is, from `at` on. */
static int find_place(struct tree *root, struct tree *at, const char *path, int *links, struct place *out)
{
    char part[PATH_MAX];
    size_t n = strcspn(path, "/"), slashes = strspn(path + n, "/");

    if (path[0] == '/')
        at = root;
    if (path[0] == '/')
        return find_place(root, at, path + strspn(path, "/"), links, out);
    snprintf(part, sizeof part, "%.*s", (int)n, path);
    int is_last = path[n + slashes] == '\0', is_dot = strcmp(part, ".") == 0, is_up = strcmp(part, "..") == 0;
    if (is_last && !is_dot && !is_up) {
        *out = (struct place){.folder = at, .is_folder = slashes > 0};
        if (n > 255)
            return DELTAFS_ERR_NAME;
        memcpy(out->name, part, n + 1);
        return DELTAFS_OK;
    }
    if (is_up)
        at = at->parent;
    else if (!is_dot) {
        if (n > 255)
            return DELTAFS_ERR_NAME;
        struct tree *c = child_of(at, part);
        if (!c)
            return DELTAFS_ERR_NOT_FOUND;
        if (c->type == TREE_FILE)
            return DELTAFS_ERR_NOT_FOLDER;
        if (c->type == TREE_LINK) {
            if (++*links > 40)
                return DELTAFS_ERR_LOOP;
            snprintf(part, sizeof part, "%.*s/.", (int)c->size, (const char *)c->bytes);
            int status = find_place(root, at, part, links, out);
            if (status != DELTAFS_OK)
                return status;
            at = out->folder;
        } else {
            at = c;
        }
    }
    if (!is_last)
        return find_place(root, at, path + n + slashes, links, out);
    *out = (struct place){.folder = at, .is_folder = 1, .is_dots = 1};
    return DELTAFS_OK;
}

/* The same, and what is there: *found may be NULL. */
static int find_at(struct tree *root, struct tree *at, const char *path, int follows, int *links, struct place *p,
                   struct tree **found)
{
    int status = find_place(root, at, path, links, p);

    if (status != DELTAFS_OK)
        return status;
    *found = p->name[0] == '\0' ? p->folder : child_of(p->folder, p->name);
    if (*found && (*found)->type == TREE_LINK && (follows || p->is_folder)) {
        char target[PATH_MAX];
        struct tree *in = p->folder;
        int is_folder = p->is_folder;
        snprintf(target, sizeof target, "%.*s", (int)(*found)->size, (const char *)(*found)->bytes);
        if (++*links > 40)
            return DELTAFS_ERR_LOOP;
        status = find_at(root, in, target, 1, links, p, found);
        p->is_folder |= is_folder;
        if (status != DELTAFS_OK)
            return status;
    }
    return *found && p->is_folder && (*found)->type != TREE_FOLDER ? DELTAFS_ERR_NOT_FOLDER : DELTAFS_OK;
}

static int find(struct tree *root, const char *path, int follows, struct place *p, struct tree **found)
{
    int links = 0;

    if (path[0] == '\0')
        return DELTAFS_ERR_NOT_FOUND;
    return find_at(root, root, path, follows, &links, p, found);
}

int tree_find(struct tree *root, const char *path, int follows, struct tree **out)
{
    struct place p;
    struct tree *t;
    int status = find(root, path, follows, &p, &t);

    if (status == DELTAFS_OK && !t)
        status = DELTAFS_ERR_NOT_FOUND;
    if (status == DELTAFS_OK)
        *out = t;
    return status;
}

/* ---- Changes ---- */

static struct tree *add(const struct place *p, enum tree_type type, uint32_t mode)
{
    struct tree *t = tree_create();

    t->type = type;
    t->mode = mode;
    put_in(p->folder, t, p->name);
    return t;
}

int tree_new(struct tree *root, const char *path, enum tree_type type, uint32_t mode, const char *target)
{
    struct place p;
    int links = 0, status = path[0] != '\0' ? find_place(root, root, path, &links, &p) : DELTAFS_ERR_NOT_FOUND;

    if (status != DELTAFS_OK)
        return status;
    if (p.name[0] == '\0' || child_of(p.folder, p.name))
        return DELTAFS_ERR_EXISTS;
    if (p.is_folder && type != TREE_FOLDER)
        return DELTAFS_ERR_NOT_FOUND;
    struct tree *t = add(&p, type, mode);
    if (target) {
        t->size = strlen(target);
        t->bytes = (uint8_t *)strdup(target);
    }
    return DELTAFS_OK;
}

static void drop(struct tree *t)
{
    take_out(t);
    tree_destroy(t);
}

int tree_replace(struct tree *root, const char *path, uint32_t mode)
{
    struct place p;
    int links = 0, status = path[0] != '\0' ? find_place(root, root, path, &links, &p) : DELTAFS_ERR_NOT_FOUND;

    if (status != DELTAFS_OK)
        return status;
    struct tree *t = p.name[0] == '\0' ? p.folder : child_of(p.folder, p.name);
    if (p.is_folder || (t && t->type == TREE_FOLDER))
        return DELTAFS_ERR_FOLDER;
    if (t)
        drop(t);
    add(&p, TREE_FILE, mode);
    return DELTAFS_OK;
}

int tree_open(struct tree *root, const char *path, int flags, uint32_t mode, struct tree **out)
{
    struct place p;
    struct tree *t;
    int is_exclusive = (flags & O_CREAT) && (flags & O_EXCL);
    int status = find(root, path, !(flags & O_NOFOLLOW) && !is_exclusive, &p, &t);

    if (status != DELTAFS_OK)
        return status;
    if (!t && (flags & O_CREAT)) {
        if (p.is_folder)
            return DELTAFS_ERR_FOLDER;
        t = add(&p, TREE_FILE, mode);
    } else if (!t || is_exclusive) {
        return t ? DELTAFS_ERR_EXISTS : DELTAFS_ERR_NOT_FOUND;
    }
    if (t->type != TREE_FILE)
        return t->type == TREE_FOLDER ? DELTAFS_ERR_FOLDER : DELTAFS_ERR_LOOP;
    if (flags & O_TRUNC) {
        tree_resize(t, 0);
        t->mtime = 0;
    }
    *out = t;
    return DELTAFS_OK;
}

void tree_resize(struct tree *file, size_t size)
{
    file->bytes = realloc(file->bytes, size + 1);
    assert_non_null(file->bytes);
    if (size > file->size)
        memset(file->bytes + file->size, 0, size - file->size);
    if (size != file->size)
        file->mtime = 0;
    file->size = size;
}

int tree_unlink(struct tree *root, const char *path)
{
    struct tree *t;
    int status = tree_find(root, path, 0, &t);

    if (status == DELTAFS_OK && t->type == TREE_FOLDER)
        status = DELTAFS_ERR_FOLDER;
    if (status == DELTAFS_OK)
        drop(t);
    return status;
}

static int check_movable(const struct tree *root, const struct place *p, const struct tree *t)
{
    if (p->is_dots)
        return DELTAFS_ERR_INVALID;
    return t == root ? DELTAFS_ERR_BUSY : DELTAFS_OK;
}

int tree_rmdir(struct tree *root, const char *path)
{
    struct place p;
    struct tree *t;
    int status = find(root, path, 0, &p, &t);

    if (status == DELTAFS_OK && !t)
        status = DELTAFS_ERR_NOT_FOUND;
    if (status == DELTAFS_OK)
        status = check_movable(root, &p, t);
    if (status != DELTAFS_OK)
        return status;
    if (t->type != TREE_FOLDER)
        return DELTAFS_ERR_NOT_FOLDER;
    if (t->child)
        return DELTAFS_ERR_NOT_EMPTY;
    drop(t);
    return DELTAFS_OK;
}

static int check_replaced(const struct tree *from, const struct place *p, const struct tree *to)
{
    int is_folder = from->type == TREE_FOLDER;

    for (const struct tree *t = p->folder; is_folder; t = t->parent) {
        if (t == from)
            return DELTAFS_ERR_INVALID;
        if (t->parent == t)
            break;
    }
    if (!to)
        return p->is_folder && !is_folder ? DELTAFS_ERR_NOT_FOLDER : DELTAFS_OK;
    if (is_folder != (to->type == TREE_FOLDER))
        return is_folder ? DELTAFS_ERR_NOT_FOLDER : DELTAFS_ERR_FOLDER;
    return to->child ? DELTAFS_ERR_NOT_EMPTY : DELTAFS_OK;
}

int tree_rename(struct tree *root, const char *from, const char *to)
{
    struct place p, q;
    struct tree *a, *b;
    int status = find(root, from, 0, &p, &a);

    if (status == DELTAFS_OK && !a)
        status = DELTAFS_ERR_NOT_FOUND;
    if (status == DELTAFS_OK)
        status = check_movable(root, &p, a);
    if (status == DELTAFS_OK)
        status = find(root, to, 0, &q, &b);
    if (status == DELTAFS_OK)
        status = check_movable(root, &q, b);
    if (status != DELTAFS_OK || a == b)
        return status;
    status = check_replaced(a, &q, b);
    if (status != DELTAFS_OK)
        return status;
    if (b)
        drop(b);
    take_out(a);
    put_in(q.folder, a, q.name);
    return DELTAFS_OK;
}

/* ---- Comparing ---- */

static void check_bytes(const struct tree *t, deltafs_namespace *ns, const char *path)
{
    deltafs_namespace_file *f;
    uint8_t *bytes = malloc(t->size + 1);
    size_t got;

    CHECK_IS(deltafs_namespace_file_open(ns, path, O_RDONLY, 0, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_read(f, 0, bytes, t->size + 1, &got), DELTAFS_OK);
    CHECK_IS(got, t->size);
    CHECK(t->size == 0 || memcmp(bytes, t->bytes, t->size) == 0);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    free(bytes);
}

static void check_attributes(const struct tree *t, const struct deltafs_namespace_stat *s)
{
    static const uint32_t kinds[] = {[TREE_FILE] = S_IFREG, [TREE_FOLDER] = S_IFDIR, [TREE_LINK] = S_IFLNK};

    CHECK_IS(s->mode, kinds[t->type] | t->mode);
    CHECK_IS(s->size, t->type == TREE_FOLDER ? 0 : t->size);
    CHECK(t->mtime == 0 || s->mtime == t->mtime);
}

static void check_folder(struct tree *folder, deltafs_namespace *ns, const char *path)
{
    const struct deltafs_namespace_entry *entry;
    deltafs_namespace_list *l;
    char below[PATH_MAX], target[PATH_MAX];
    size_t count = 0, size;

    for (const struct tree *c = folder->child; c; c = c->next)
        count++;
    CHECK_IS(deltafs_namespace_list_open(ns, path, &l), DELTAFS_OK);
    for (;;) {
        CHECK_IS(deltafs_namespace_list_next(l, &entry), DELTAFS_OK);
        if (!entry)
            break;
        struct tree *c = child_of(folder, entry->name);
        if (!c)
            fail_msg("seed %llu: %s/%s is not in the tree", (unsigned long long)unit_seed, path, entry->name);
        check_attributes(c, &entry->stat);
        count--;
        snprintf(below, sizeof below, "%s/%s", path, entry->name);
        if (c->type == TREE_FOLDER)
            check_folder(c, ns, below);
        if (c->type == TREE_FILE)
            check_bytes(c, ns, below);
        if (c->type == TREE_LINK) {
            CHECK_IS(deltafs_namespace_readlink(ns, below, target, sizeof target, &size), DELTAFS_OK);
            CHECK(size == c->size && memcmp(target, c->bytes, size) == 0);
        }
    }
    CHECK_IS(deltafs_namespace_list_close(l), DELTAFS_OK);
    CHECK_IS(count, 0);
}

void tree_check(struct tree *root, const char *path, deltafs_namespace *ns)
{
    struct tree *t;

    CHECK_IS(tree_find(root, path, 0, &t), DELTAFS_OK);
    check_folder(t, ns, path);
}
