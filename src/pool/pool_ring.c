#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "base/thread.h"
#include "pool/pool_ring.h"

static const char shared_memory[] = "memory that a client of a pool shares with its server";

int pool_ring_map(int fd, struct pool_shared **out, struct error *e)
{
    struct stat st;

    if (fstat(fd, &st) != 0 || st.st_size != (off_t)sizeof(struct pool_shared))
        return error_set(e, DELTAFS_ERR_IO, "%s: has another size than expected", shared_memory);
    void *p = mmap(NULL, sizeof **out, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return error_system(e, errno, "map", shared_memory);
    *out = p;
    return DELTAFS_OK;
}

int pool_ring_create(struct pool_shared **out, int *fd, struct error *e)
{
    int made = memfd_create("deltafs-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (made == -1)
        return error_system(e, errno, "create", shared_memory);
    int status =
        ftruncate(made, sizeof **out) == 0 && fcntl(made, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0
            ? DELTAFS_OK
            : error_system(e, errno, "create", shared_memory);
    if (status == DELTAFS_OK)
        status = pool_ring_map(made, out, e);
    if (status == DELTAFS_OK)
        *fd = made;
    else
        close(made);
    return status;
}

void pool_ring_unmap(struct pool_shared *r)
{
    if (r)
        munmap(r, sizeof *r);
}

/* Whether there is something to receive, after so many milliseconds at most, whatever signals come. */
static int socket_wait(int socket, int milliseconds)
{
    struct pollfd p = {.fd = socket, .events = POLLIN};
    uint64_t start = thread_clock();
    int n, left = milliseconds;

    while ((n = poll(&p, 1, left > 0 ? left : 0)) == -1 && errno == EINTR)
        left = milliseconds - (int)((thread_clock() - start) / 1000000);
    return n == 1;
}

int pool_ring_receive(int socket, int milliseconds, struct pool_hello *hello, int *memory, int *event)
{
    struct iovec part = {.iov_base = hello, .iov_len = sizeof *hello};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control;
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    int both[2] = {-1, -1};

    if (!socket_wait(socket, milliseconds))
        return -ETIMEDOUT;
    ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (got != (ssize_t)sizeof *hello)
        return got > 0 ? -EPROTO : -ECONNRESET;
    /* If this process may not have both descriptors, one or none comes. */
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    if (rights && rights->cmsg_type == SCM_RIGHTS && rights->cmsg_len <= CMSG_LEN(sizeof both))
        memcpy(both, CMSG_DATA(rights), rights->cmsg_len - CMSG_LEN(0));
    if (both[1] == -1) {
        if (both[0] != -1)
            close(both[0]);
        return message.msg_flags & MSG_CTRUNC ? -EMFILE : -EPROTO;
    }
    *memory = both[0];
    *event = both[1];
    return 0;
}

void pool_ring_sleep(_Atomic uint32_t *word, uint32_t seen, uint32_t milliseconds)
{
    const struct timespec most = {.tv_sec = milliseconds / 1000, .tv_nsec = (long)(milliseconds % 1000) * 1000000};

    syscall(SYS_futex, word, FUTEX_WAIT, seen, &most, NULL, 0);
}

void pool_ring_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}
