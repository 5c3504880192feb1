/* Clients of a pool that break its rules, in shared memory and by dying. The servers must go on.
 *
 *     pool_hostile POINT garbage|killed|mute|other ROUNDS
 *     pool_hostile POINT grow 1     requests that fail beside those for the same file that do not; 3 servers, each on
 * its own node */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <deltafs/deltafs_pool.h>
#include "pool/pool_link.h"

#define NOBODY 65534

static struct error e;

/* Any requests, any slots, and bytes that change meanwhile. */
static void garbage(const char *point, unsigned seed)
{
    struct pool_link l;

    srand(seed);
    if (pool_link_open(&l, point, &e) != DELTAFS_OK)
        exit(EXIT_FAILURE);
    struct pool_shared *s = l.home->shared;
    uint32_t asked = 0, vain = 0;
    for (int i = 0; i < 2000 && vain < 100; i++) {
        struct pool_request r;
        for (size_t k = 0; k < sizeof r; k++)
            ((uint8_t *)&r)[k] = (uint8_t)(rand() % 3 ? 0 : rand());
        r.op = (uint32_t)rand() % (POOL_OPS + 2);
        r.op = r.op == POOL_STOP ? POOL_LIST : r.op;
        r.server = (uint32_t)rand() % (l.servers + (rand() % 50 == 0));
        r.bytes = (uint32_t)rand() % (rand() % 4 ? 300 : POOL_SLOT_BYTES + (rand() % 1000 == 0));
        uint32_t slot = asked % POOL_SLOTS;
        if (asked - atomic_load(&s->answered) >= POOL_SLOTS) {
            if (rand() % 2000 == 0)
                asked += POOL_SLOTS; /* too many */
            else
                pool_ring_sleep(&s->answered, atomic_load(&s->answered), 1);
            vain++; /* the server may have closed the connection */
            continue;
        }
        vain = 0;
        s->slot[slot].request = r;
        for (int k = 0; k < 40; k++)
            s->buffer[slot][rand() % 64] = (uint8_t)(rand() % 2 ? '/' : rand());
        s->request[asked % POOL_SLOTS] = (uint8_t)(rand() % 500 ? slot : (uint32_t)rand());
        atomic_store(&s->asked, ++asked);
        memset(s->buffer[rand() % POOL_SLOTS], rand(), 64);
    }
    exit(EXIT_SUCCESS); /* without a close; answers are under way */
}

/* Writes until it is killed. */
static void killed(const char *point, unsigned seed)
{
    static char bytes[300000];
    deltafs_pool_file *f = NULL;
    deltafs_pool *pool = NULL;
    char path[64];

    snprintf(path, sizeof path, "/killed.%u", seed);
    if (deltafs_pool_open(point, &pool) != DELTAFS_OK ||
        deltafs_pool_file_open(pool, path, O_RDWR | O_CREAT, 0600, &f) != DELTAFS_OK)
        exit(EXIT_FAILURE);
    for (uint64_t i = 0;; i++)
        deltafs_pool_file_write(f, i * 7919 % 4000000, bytes, sizeof bytes);
}

/* Another user: the server closes the connection. */
static void other(const char *point)
{
    struct pool_point p;
    struct sockaddr_un address;
    struct pool_hello hello;

    if (pool_point_init(&p, point, 0, &e) != DELTAFS_OK || pool_point_socket(&p, 0, &address, &e) != DELTAFS_OK)
        exit(EXIT_FAILURE);
    /* As if the folder could be entered. */
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), there = open(address.sun_path, O_PATH);
    if (there == -1 || setuid(NOBODY) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0)
        exit(EXIT_FAILURE);
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d", there);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        perror("connect");
        exit(EXIT_FAILURE);
    }
    /* Not a byte, and no descriptor. */
    exit(recv(fd, &hello, sizeof hello, 0) <= 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* The attributes of the file are on server 1; server 0 passes the requests on. */
static int grow(const char *point)
{
    const struct deltafs_pool_stat none = {.struct_size = sizeof none};
    struct deltafs_pool_stat st = none;
    deltafs_pool *pool = NULL;
    deltafs_pool_file *f = NULL;
    struct pool_call calls[6];
    struct pool_link l;
    char path[32];

    if (deltafs_pool_open(point, &pool) != DELTAFS_OK || pool_link_open(&l, point, &e) != DELTAFS_OK)
        return -1;
    for (int i = 0; pool_id_server(st.inode) != 1; i++) {
        snprintf(path, sizeof path, "/grow.%d", i);
        if (deltafs_pool_file_open(pool, path, O_RDWR | O_CREAT, 0600, &f) != DELTAFS_OK ||
            deltafs_pool_file_stat(f, &st) != DELTAFS_OK)
            return -1;
        deltafs_pool_file_close(f);
    }
    for (uint64_t i = 0; i < 6; i++)
        calls[i] = (struct pool_call){.request = {.op = POOL_GROW, .id = st.inode, .server = 1, .size = i}};
    calls[2].request.size = POOL_FILE_MAX + 1;
    calls[4].request.server = 2;
    int status = pool_link_calls(&l, calls, 6, &e);
    for (int i = 0; i < 6 && status == DELTAFS_OK; i++)
        if (calls[i].answer.status != (i == 2 ? DELTAFS_ERR_TOO_LARGE : i == 4 ? DELTAFS_ERR_NOT_FOUND : DELTAFS_OK)) {
            fprintf(stderr, "request %d to grow a file: status %d\n", i, calls[i].answer.status);
            status = DELTAFS_ERR_IO;
        }
    pool_link_close(&l);
    deltafs_pool_close(pool);
    return status == DELTAFS_OK ? 0 : -1;
}

static int run(const char *point, const char *what, unsigned seed)
{
    const struct timespec life = {.tv_nsec = 50000000};
    int status;
    pid_t pid = fork();

    if (pid == 0 && strcmp(what, "garbage") == 0)
        garbage(point, seed);
    if (pid == 0 && strcmp(what, "other") == 0)
        other(point);
    if (pid == 0)
        killed(point, seed);
    if (strcmp(what, "killed") == 0 || strcmp(what, "mute") == 0) {
        nanosleep(&life, NULL);
        kill(pid, strcmp(what, "killed") == 0 ? SIGKILL : SIGSTOP);
    }
    if (strcmp(what, "mute") == 0)
        return (int)pid;
    return waitpid(pid, &status, 0) == pid && (WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : status == 0) ? 0
                                                                                                                : -1;
}

/* Somebody else still has what it needs. */
static int check(deltafs_pool *pool, int round)
{
    deltafs_pool_file *f = NULL;
    char path[64], back[8];
    size_t got = 0;

    snprintf(path, sizeof path, "/good.%d", round);
    int status = deltafs_pool_file_open(pool, path, O_RDWR | O_CREAT | O_EXCL, 0600, &f);
    if (status == DELTAFS_OK)
        status = deltafs_pool_file_write(f, 5, "good", 4);
    if (status == DELTAFS_OK)
        status = deltafs_pool_file_read(f, 5, back, sizeof back, &got);
    deltafs_pool_file_close(f);
    if (status != DELTAFS_OK)
        fprintf(stderr, "%s\n", deltafs_errmsg(NULL));
    return status == DELTAFS_OK && got == 4 && memcmp(back, "good", 4) == 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
    deltafs_pool *pool = NULL;
    int failed = 0;

    if (argc == 4 && strcmp(argv[2], "grow") == 0)
        return grow(argv[1]) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    if (argc < 4 || deltafs_pool_open(argv[1], &pool) != DELTAFS_OK)
        return EXIT_FAILURE;
    for (int i = 0; i < atoi(argv[3]) && !failed; i++) {
        int answer = run(argv[1], argv[2], (unsigned)i);
        failed = answer < 0 || check(pool, i + 1000 * argv[2][0]) != 0;
        if (answer > 0) {
            kill(answer, SIGKILL);
            waitpid(answer, NULL, 0);
        }
    }
    deltafs_pool_close(pool);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
