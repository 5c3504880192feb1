#include <fcntl.h>
#include "history.h"

#define OPEN_MOST  4
#define BYTES_MOST 700000 /* of a write, now and then; three chunks */

/* A file that stays open over several calls. */
struct held {
    deltafs_namespace_file *file;
    struct tree *node;
};

struct history {
    struct rng *rng;
    deltafs_namespace *ns;
    struct tree *root;
    const char *below;
    int commits;
    char path[2][256];
    uint8_t *bytes;
};

/* A path of a few names, so that calls meet. */
static const char *any_path(struct history *h, int which)
{
    static const char *const odd[] = {"/", "/..", "/.", "//", "/../a"};
    char *p = h->path[which], *end = p + sizeof h->path[which];
    char *at = p + snprintf(p, sizeof h->path[which], "%s", h->below);
    uint64_t depth = 1 + rng_below(h->rng, 3);

    for (uint64_t i = 0; i < depth; i++)
        at += snprintf(at, (size_t)(end - at), "/%c", (char)('a' + rng_below(h->rng, i == 0 ? 4 : 3)));
    /* Not for histories of one part of the tree: ".." leads out of it. */
    if (h->below[0] == '\0' && rng_below(h->rng, 20) == 0)
        snprintf(at, (size_t)(end - at), "%s", odd[rng_below(h->rng, 5)]);
    else if (rng_below(h->rng, 30) == 0)
        snprintf(at, (size_t)(end - at), "/");
    return p;
}

/* Both say the same; or there is only the tree. */
#define BOTH(call, tree_call)                                                                                          \
    do {                                                                                                               \
        int want = (tree_call);                                                                                        \
        if (h->ns)                                                                                                     \
            CHECK_IS(call, want);                                                                                      \
    } while (0)

static uint32_t any_mode(struct history *h)
{
    return (uint32_t)rng_below(h->rng, 01000);
}

static void make_folder(struct history *h)
{
    const char *path = any_path(h, 0);
    uint32_t mode = any_mode(h);

    BOTH(deltafs_namespace_mkdir(h->ns, path, mode), tree_new(h->root, path, TREE_FOLDER, mode, NULL));
}

static void make_file(struct history *h)
{
    const char *path = any_path(h, 0);
    uint32_t mode = any_mode(h);

    BOTH(deltafs_namespace_create(h->ns, path, mode, O_EXCL), tree_new(h->root, path, TREE_FILE, mode, NULL));
}

/* Where a folder has the name, and that is not in memory, the call may not see it. */
static void replace_file(struct history *h)
{
    const char *path = any_path(h, 0);
    uint32_t mode = any_mode(h);
    struct tree *t;

    if (tree_find(h->root, path, 0, &t) == DELTAFS_OK && t->type == TREE_FOLDER)
        return;
    BOTH(deltafs_namespace_create(h->ns, path, mode, 0), tree_replace(h->root, path, mode));
}

static void make_link(struct history *h)
{
    static const char *const odd[] = {"..", "a", "../b", "./c/", "b/a"};
    const char *path = any_path(h, 0), *target = any_path(h, 1);

    if (h->below[0] == '\0' && rng_below(h->rng, 2) == 0)
        target = odd[rng_below(h->rng, 5)];
    BOTH(deltafs_namespace_symlink(h->ns, target, path), tree_new(h->root, path, TREE_LINK, 0777, target));
}

static void unlink_it(struct history *h)
{
    const char *path = any_path(h, 0);

    BOTH(deltafs_namespace_unlink(h->ns, path), tree_unlink(h->root, path));
}

static void remove_folder(struct history *h)
{
    const char *path = any_path(h, 0);

    BOTH(deltafs_namespace_rmdir(h->ns, path), tree_rmdir(h->root, path));
}

static void rename_it(struct history *h)
{
    const char *from = any_path(h, 0), *to = any_path(h, 1);

    BOTH(deltafs_namespace_rename(h->ns, from, to), tree_rename(h->root, from, to));
}

static void stat_it(struct history *h)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    const char *path = any_path(h, 0);
    int flags = rng_below(h->rng, 2) ? AT_SYMLINK_NOFOLLOW : 0;
    struct tree *t = NULL;

    BOTH(deltafs_namespace_stat(h->ns, path, flags, &s), tree_find(h->root, path, flags == 0, &t));
    if (h->ns && t)
        CHECK_IS(s.mode & 07777, t->mode);
}

static void set_attributes(struct history *h)
{
    struct deltafs_namespace_attributes a = {.struct_size = sizeof a,
                                             .set = DELTAFS_NAMESPACE_MODE | DELTAFS_NAMESPACE_MTIME,
                                             .mode = any_mode(h),
                                             .mtime = (int64_t)rng_below(h->rng, 1000) - 500};
    const char *path = any_path(h, 0);
    struct tree *t = NULL;

    a.mtime += a.mtime == 0;
    BOTH(deltafs_namespace_set_attributes(h->ns, path, 0, &a), tree_find(h->root, path, 1, &t));
    if (t) {
        t->mode = a.mode;
        t->mtime = a.mtime;
    }
}

/* ---- Files ---- */

static void write_bytes(struct history *h, struct held *f)
{
    size_t size = 1 + (size_t)rng_below(h->rng, rng_below(h->rng, 40) == 0 ? BYTES_MOST : 300);
    size_t offset = (size_t)rng_below(h->rng, f->node->size + 100), end = offset + size;

    rng_fill(h->rng, h->bytes, size);
    if (h->ns)
        CHECK_IS(deltafs_namespace_file_write(f->file, offset, h->bytes, size), DELTAFS_OK);
    if (end > f->node->size)
        tree_resize(f->node, end);
    memcpy(f->node->bytes + offset, h->bytes, size);
    f->node->mtime = 0;
}

static void truncate_file(struct history *h, struct held *f)
{
    size_t size = (size_t)rng_below(h->rng, f->node->size + 50);

    if (h->ns)
        CHECK_IS(deltafs_namespace_file_truncate(f->file, size), DELTAFS_OK);
    tree_resize(f->node, size);
    f->node->mtime = 0;
}

static void read_bytes(struct history *h, struct held *f)
{
    size_t size = 1 + (size_t)rng_below(h->rng, BYTES_MOST), offset = (size_t)rng_below(h->rng, f->node->size + 10);
    size_t left = offset < f->node->size ? f->node->size - offset : 0, got = 0, want = size < left ? size : left;

    if (!h->ns)
        return;
    CHECK_IS(deltafs_namespace_file_read(f->file, offset, h->bytes, size, &got), DELTAFS_OK);
    CHECK_IS(got, want);
    CHECK(want == 0 || memcmp(h->bytes, f->node->bytes + offset, want) == 0);
}

/* Open a file, use it a few times, with other calls in between that cannot remove it, and close it. */
static void use_file(struct history *h)
{
    static const int ways[] = {
        O_RDWR,           O_RDWR | O_CREAT,          O_RDWR | O_CREAT,   O_RDWR | O_CREAT | O_TRUNC,
        O_RDWR | O_TRUNC, O_RDWR | O_CREAT | O_EXCL, O_RDWR | O_NOFOLLOW};
    const char *path = any_path(h, 0);
    int flags = ways[rng_below(h->rng, sizeof ways / sizeof ways[0])];
    uint32_t mode = any_mode(h);
    struct held f = {0};

    BOTH(deltafs_namespace_file_open(h->ns, path, flags, mode, &f.file),
         tree_open(h->root, path, flags, mode, &f.node));
    for (uint64_t i = rng_below(h->rng, 5); f.node && i > 0; i--)
        switch (rng_below(h->rng, 5)) {
        case 0:
            truncate_file(h, &f);
            break;
        case 1:
            read_bytes(h, &f);
            break;
        case 2:
            set_attributes(h);
            break;
        default:
            write_bytes(h, &f);
        }
    if (h->ns)
        CHECK_IS(deltafs_namespace_file_close(f.file), DELTAFS_OK);
}

static void commit(struct history *h)
{
    if (rng_below(h->rng, 10) == 0 && h->ns && h->commits)
        CHECK_IS(deltafs_namespace_commit(h->ns), DELTAFS_OK);
}

void history_run(struct rng *r, unsigned n, const char *below, int commits, deltafs_namespace *ns, struct tree *root)
{
    static void (*const calls[])(struct history * h) = {
        make_folder, make_folder, make_file, replace_file,   make_link, unlink_it, remove_folder, rename_it,
        rename_it,   stat_it,     stat_it,   set_attributes, use_file,  use_file,  use_file,      commit};
    struct history h = {
        .rng = r, .ns = ns, .root = root, .below = below, .commits = commits, .bytes = malloc(BYTES_MOST)};

    for (unsigned i = 0; i < n; i++)
        calls[rng_below(r, sizeof calls / sizeof calls[0])](&h);
    free(h.bytes);
}
