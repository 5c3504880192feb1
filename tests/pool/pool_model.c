/* Random operations of several clients of a pool, one at a time, against a reference in memory.
 *
 *     pool_model POINT CLIENTS OPERATIONS SEED [NODES]
 *
 * Clients are processes, so that they are of several servers, and on as many nodes. The parent chooses an operation and
 * a client, and compares what that answers with what the reference says. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <deltafs/deltafs_pool.h>
#include "base/hash.h"
#include "pool_node.h"
#include "tests/pool/pool_reference.h"

#define CLIENTS_MAX 8
#define SLOTS       3  /* files that a client has open */
#define DEEPEST     11 /* bytes of a path: folders that are renamed go no deeper */
#define ANSWER_S    70 /* seconds: more than any call takes */

static uint8_t buffer[FILE_MAX];
static struct inode *open_file[CLIENTS_MAX][SLOTS];

/* ---- A client ---- */

static int list(deltafs_pool *pool, const char *path, struct result *r)
{
    const struct deltafs_pool_entry *entry = NULL;
    deltafs_pool_list *l = NULL;
    int status = deltafs_pool_list_open(pool, path, &l);

    while (status == DELTAFS_OK && (status = deltafs_pool_list_next(l, &entry)) == DELTAFS_OK && entry) {
        r->hash += entry_sum(entry->name, entry->mode);
        r->value++;
    }
    deltafs_pool_list_close(l);
    return status;
}

static int do_stat(int status, const struct deltafs_pool_stat *st, struct result *r)
{
    r->value = status == DELTAFS_OK ? st->size : 0;
    r->mode = status == DELTAFS_OK ? st->mode : 0;
    return status;
}

static int do_readlink(deltafs_pool *pool, const char *path, struct result *r)
{
    char target[PATH_MAX];
    size_t n = 0;
    int status = deltafs_pool_readlink(pool, path, target, sizeof target, &n);

    r->value = n;
    r->hash = n > 0 ? hash_bytes(target, n) : 0;
    return status;
}

static int do_path(deltafs_pool *pool, const struct operation *o, struct result *r)
{
    struct deltafs_pool_stat st = {.struct_size = sizeof st};
    const struct deltafs_pool_attributes a = {
        .struct_size = sizeof a, .set = DELTAFS_POOL_MODE, .mode = (uint32_t)o->size & 0777};
    int flags = o->kind == LSTAT ? AT_SYMLINK_NOFOLLOW : 0;
    char target[PATH_MAX];

    switch (o->kind) {
    case STAT:
    case LSTAT:
        return do_stat(deltafs_pool_stat(pool, o->path, flags, &st), &st, r);
    case LINK:
        return deltafs_pool_symlink(pool, target_of(o->to, target), o->path);
    case READLINK:
        return do_readlink(pool, o->path, r);
    case UNLINK:
        return deltafs_pool_unlink(pool, o->path);
    case MKDIR:
        return deltafs_pool_mkdir(pool, o->path, 0700);
    case RMDIR:
        return deltafs_pool_rmdir(pool, o->path);
    case RENAME:
        return deltafs_pool_rename(pool, o->path, o->to);
    case LIST:
        return list(pool, o->path, r);
    case CUT:
        return deltafs_pool_truncate(pool, o->path, o->size);
    default:
        return deltafs_pool_set_attributes(pool, o->path, 0, &a);
    }
}

static int do_file(deltafs_pool *pool, deltafs_pool_file **f, const struct operation *o, struct result *r)
{
    struct deltafs_pool_stat st = {.struct_size = sizeof st};
    size_t got = 0;
    int status;

    switch (o->kind) {
    case OPEN:
        return deltafs_pool_file_open(pool, o->path, o->flags, 0600, f);
    case CLOSE:
        status = deltafs_pool_file_close(*f);
        *f = NULL;
        return status;
    case WRITE:
        memset(buffer, o->fill, o->size);
        return deltafs_pool_file_write(*f, o->offset, buffer, o->size);
    case READ:
        status = deltafs_pool_file_read(*f, o->offset, buffer, o->size, &got);
        r->value = got;
        r->hash = hash_bytes(buffer, got);
        return status;
    case STAT_FILE:
        return do_stat(deltafs_pool_file_stat(*f, &st), &st, r);
    default:
        return deltafs_pool_file_truncate(*f, o->size);
    }
}

static void client(int socket)
{
    deltafs_pool_file *file[SLOTS] = {NULL};
    deltafs_pool *pool = NULL;
    struct operation o;

    if (deltafs_pool_open(point, &pool) != DELTAFS_OK) {
        fprintf(stderr, "%s\n", deltafs_errmsg(NULL));
        exit(EXIT_FAILURE);
    }
    while (recv(socket, &o, sizeof o, 0) == (ssize_t)sizeof o) {
        struct result r = {.value = 0};
        r.status = o.kind <= CUT_FILE ? do_file(pool, &file[o.slot], &o, &r) : do_path(pool, &o, &r);
        if (r.status == DELTAFS_ERR_IO || r.status == DELTAFS_ERR_DAMAGED)
            fprintf(stderr, "%s\n", deltafs_errmsg(NULL));
        if (send(socket, &r, sizeof r, MSG_NOSIGNAL) != (ssize_t)sizeof r)
            break;
    }
    for (int i = 0; i < SLOTS; i++)
        deltafs_pool_file_close(file[i]);
    exit(deltafs_pool_close(pool) == DELTAFS_OK ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* ---- Choosing ---- */

static void choose_path(char path[64])
{
    int depth = rand() % 16 == 0 ? 0 : 1 + rand() % 3;

    path[0] = '\0';
    for (int i = 0; i < depth; i++)
        snprintf(path + strlen(path), 64 - strlen(path), "/%c", 'a' + rand() % 4);
    if (depth == 0)
        strcpy(path, "/");
}

static void choose_target(char to[64])
{
    static const char *const begin[] = {"", "@", "@", "..", "../.."};
    const char *chosen = begin[rand() % 5];
    char path[64];

    choose_path(path);
    snprintf(to, 64, "%s%.32s", chosen, *chosen ? path : path + 1);
    if (!*to)
        snprintf(to, 64, ".");
}

/* Whether something would be too deep if this were renamed. */
static int is_deep(const struct operation *given)
{
    struct operation real = *given, *o = &real;

    if (resolve(given->path, 0, o->path) != DELTAFS_OK || resolve(given->to, 0, o->to) != DELTAFS_OK)
        return 0;
    for (size_t i = 0; i < nodes; i++)
        if (is_below(node[i].path, o->path) && strlen(node[i].path) - strlen(o->path) + strlen(o->to) >= DEEPEST)
            return 1;
    return 0;
}

static void choose(struct operation *o, int who)
{
    static const int flags[] = {0, O_CREAT, O_CREAT | O_EXCL, O_CREAT | O_TRUNC, O_TRUNC};

    memset(o, 0, sizeof *o);
    o->slot = rand() % SLOTS;
    o->kind = rand() % KINDS;
    if (o->kind > CUT_FILE && rand() % 2)
        o->kind = rand() % (CUT_FILE + 1);
    if (o->kind <= CUT_FILE && (open_file[who][o->slot] == NULL) != (o->kind == OPEN))
        o->kind = open_file[who][o->slot] ? (rand() % 2 ? WRITE : READ) : OPEN;
    o->flags = O_RDWR | flags[rand() % 5];
    o->fill = (uint8_t)(1 + rand() % 255);
    choose_path(o->path);
    choose_path(o->to);
    o->size = (uint64_t)rand() % (rand() % 4 ? 9000 : FILE_MAX / 2);
    o->offset = (uint64_t)rand() % (FILE_MAX - o->size);
    if (rand() % 3 == 0)
        o->offset -= o->offset % 4096;
    if (o->kind == CUT || o->kind == CUT_FILE)
        o->size = o->offset;
    if (o->kind == RENAME && is_deep(o))
        o->kind = STAT;
    if (o->kind == LINK)
        choose_target(o->to);
}

static int compare(const struct operation *o, int who, const struct result *is, const struct result *should, long n)
{
    if (is->status == should->status && is->value == should->value && is->hash == should->hash &&
        is->mode == should->mode)
        return 0;
    fprintf(stderr,
            "operation %ld: client %d, kind %d, slot %d, flags %o, %s -> %s, offset %llu, size %llu:\n"
            "  status %d, value %llu, mode %o; expected %d, %llu, %o%s\n",
            n, who, o->kind, o->slot, (unsigned)o->flags, o->path, o->to, (unsigned long long)o->offset,
            (unsigned long long)o->size, is->status, (unsigned long long)is->value, is->mode, should->status,
            (unsigned long long)should->value, should->mode, is->hash != should->hash ? "; the bytes differ" : "");
    return -1;
}

/* At the end all is removed, and the servers have nothing left. */
static int check_empty(void)
{
    struct deltafs_pool_status s = {.struct_size = sizeof s};
    uint64_t files = 0, folders = 0, bytes = 0;
    deltafs_pool *pool = NULL;
    int status = deltafs_pool_open(point, &pool);

    for (size_t left = 1; status == DELTAFS_OK && nodes > 1 && left > 0;) {
        left = 0;
        for (size_t i = nodes; i-- > 1 && status == DELTAFS_OK;) {
            if (S_ISDIR(node[i].inode->mode) && has_children(node[i].path))
                continue;
            status = S_ISDIR(node[i].inode->mode) ? deltafs_pool_rmdir(pool, node[i].path)
                                                  : deltafs_pool_unlink(pool, node[i].path);
            node_remove(node[i].path, 1);
            left = 1;
        }
    }
    for (uint32_t i = 0; status == DELTAFS_OK && i < deltafs_pool_servers(pool); i++) {
        status = deltafs_pool_status(pool, i, &s);
        files += s.files;
        folders += s.folders;
        bytes += s.bytes;
    }
    if (status != DELTAFS_OK)
        fprintf(stderr, "at the end: %s\n", deltafs_errmsg(NULL));
    deltafs_pool_close(pool);
    if (status == DELTAFS_OK && files == 0 && folders == 1 && bytes == 0)
        return 0;
    fprintf(stderr, "at the end: %llu files, %llu folders, %llu bytes\n", (unsigned long long)files,
            (unsigned long long)folders, (unsigned long long)bytes);
    return -1;
}

static int start(int clients, int on_nodes, int sockets[])
{
    const struct timeval most = {.tv_sec = ANSWER_S};

    for (int i = 0; i < clients; i++) {
        int both[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, both) != 0)
            return -1;
        setsockopt(both[0], SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
        pid_t pid = fork();
        if (pid == -1)
            return -1;
        if (pid == 0) {
            for (int k = 0; k < i; k++)
                close(sockets[k]);
            close(both[0]);
            if (on_nodes > 0)
                pool_node_enter(i % on_nodes);
            client(both[1]);
        }
        close(both[1]);
        sockets[i] = both[0];
    }
    return 0;
}

int main(int argc, char **argv)
{
    int sockets[CLIENTS_MAX], clients = argc > 4 ? atoi(argv[2]) : 0, failed = 0, status;
    long operations = argc > 4 ? atol(argv[3]) : 0;

    point = argv[1];
    if (clients < 1 || clients > CLIENTS_MAX || start(clients, argc > 5 ? atoi(argv[5]) : 0, sockets) != 0)
        return EXIT_FAILURE;
    srand((unsigned)atoi(argv[4]));
    inode_create("/", S_IFDIR | 0700);
    for (long n = 0; n < operations && !failed; n++) {
        struct operation o;
        struct result is, should = {.value = 0};
        int who = rand() % clients;
        choose(&o, who);
        should.status =
            o.kind <= CUT_FILE ? expect_file(&open_file[who][o.slot], &o, &should) : expect_path(&o, &should);
        if (o.kind == READ && should.status != DELTAFS_OK)
            should.hash = hash_bytes(buffer, 0);
        if (send(sockets[who], &o, sizeof o, MSG_NOSIGNAL) != (ssize_t)sizeof o ||
            recv(sockets[who], &is, sizeof is, 0) != (ssize_t)sizeof is) {
            fprintf(stderr, "operation %ld: client %d does not answer: %s\n", n, who, strerror(errno));
            failed = 1;
        } else {
            failed = compare(&o, who, &is, &should, n) != 0;
        }
    }
    for (int i = 0; i < clients; i++)
        close(sockets[i]);
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed || check_empty() != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
