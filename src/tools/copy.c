/* A buffer of COPY_BUFFER bytes goes from one end to the other, as often as it takes: large enough that a logical
 * file's logs are read and written in large pieces. Holes are not read, and become holes where the target can have
 * them. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "tools/copy.h"
#include "tools/text.h"

#define COPY_BUFFER ((size_t)4 << 20)

/* The signals that are held back. A pending one ends a copy. */
static sigset_t held;
static int held_fd = -1;

void copy_hold_signals(void)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
    struct sigaction action;

    sigemptyset(&held);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&held, signals[i]);
    sigprocmask(SIG_BLOCK, &held, NULL);
    held_fd = signalfd(-1, &held, SFD_CLOEXEC);
}

int copy_is_interrupted(void)
{
    struct pollfd p = {.fd = held_fd, .events = POLLIN};

    return held_fd >= 0 && poll(&p, 1, 0) > 0;
}

void copy_release_signals(void)
{
    if (held_fd < 0)
        return;
    close(held_fd);
    held_fd = -1;
    sigprocmask(SIG_UNBLOCK, &held, NULL);
}

static int copy_fail_write(struct copy *c, const char *why)
{
    c->is_target_failed = 1;
    return text_fail(EXIT_TROUBLE, "cannot write to %s: %s", c->to.name, why);
}

/* Up to `want` bytes at `at`; less only at the end. */
static int copy_read(const struct copy_end *from, uint64_t at, uint8_t *bytes, size_t want, size_t *got)
{
    if (from->logical)
        return text_of_call(deltafs_logical_read(from->logical, at, bytes, want, got));
    for (*got = 0; *got < want;) {
        /* Something to read, or a signal. */
        struct pollfd p[] = {{.fd = from->fd, .events = POLLIN}, {.fd = held_fd, .events = POLLIN}};
        int is_begin = from->is_pipe && at + *got == 0;
        if (!from->has_holes && !is_begin)
            poll(p, 2, -1);
        if (copy_is_interrupted())
            return EXIT_TROUBLE;
        ssize_t n = from->has_holes ? pread(from->fd, bytes + *got, want - *got, (off_t)(at + *got))
                                    : read(from->fd, bytes + *got, want - *got);
        /* Nobody has opened the pipe for writing, and perhaps nobody will. */
        if (n == 0 && is_begin)
            return text_fail(EXIT_TROUBLE, "%s: no process writes to this pipe; first start the one that does",
                             from->name);
        if (n == 0)
            break;
        if (n < 0 && errno == EAGAIN)
            poll(p, 2, -1);
        else if (n < 0 && errno != EINTR)
            return text_fail(EXIT_TROUBLE, "cannot read %s: %s", from->name, strerror(errno));
        *got += n > 0 ? (size_t)n : 0;
    }
    return EXIT_OK;
}

static int copy_write(struct copy *c, uint64_t at, const uint8_t *bytes, size_t n)
{
    if (c->to.logical) {
        if (deltafs_logical_write(c->to.logical, at, bytes, n) != DELTAFS_OK)
            return copy_fail_write(c, deltafs_errmsg(NULL));
        return EXIT_OK;
    }
    for (size_t done = 0; done < n;) {
        ssize_t put = c->to.has_holes ? pwrite(c->to.fd, bytes + done, n - done, (off_t)(at + done))
                                      : write(c->to.fd, bytes + done, n - done);
        if (put < 0 && errno != EINTR)
            return copy_fail_write(c, strerror(errno));
        done += put > 0 ? (size_t)put : 0;
    }
    return EXIT_OK;
}

/* The next data of the source from `at` on, and their end. All is data if the target cannot have holes, or the file
 * system does not say. */
static int copy_next(const struct copy *c, uint64_t at, uint64_t *start, uint64_t *end)
{
    int fd = c->from.fd;

    *start = at;
    *end = UINT64_MAX;
    if (c->from.logical) {
        int is_asked = c->to.logical || c->to.has_holes;
        return is_asked ? text_of_call(deltafs_logical_next(c->from.logical, at, start, end)) : EXIT_OK;
    }
    if (!c->from.has_holes)
        return EXIT_OK;
    off_t data = lseek(fd, (off_t)at, SEEK_DATA), hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
    if (data < 0 && errno == ENXIO) {
        /* Nothing but a hole, or the end. */
        off_t size = lseek(fd, 0, SEEK_END);
        *start = *end = size > (off_t)at ? (uint64_t)size : at;
        return EXIT_OK;
    }
    *start = data < 0 ? at : (uint64_t)data;
    *end = hole > data ? (uint64_t)hole : UINT64_MAX;
    return EXIT_OK;
}

/* A hole at the end belongs to the file. */
static int copy_end_at(struct copy *c, uint64_t size, uint64_t written)
{
    if (c->to.logical && written < size && deltafs_logical_extend(c->to.logical, size) != DELTAFS_OK)
        return copy_fail_write(c, deltafs_errmsg(NULL));
    if (!c->to.logical && c->to.has_holes && ftruncate(c->to.fd, (off_t)size) != 0)
        return copy_fail_write(c, strerror(errno));
    return EXIT_OK;
}

static int copy_run(struct copy *c, uint8_t *buffer, uint64_t offset, uint64_t size)
{
    uint64_t at = offset, last = size < UINT64_MAX - offset ? offset + size : UINT64_MAX, written = 0, start, end;

    while (at < last) {
        if (copy_is_interrupted())
            return EXIT_TROUBLE;
        int code = copy_next(c, at, &start, &end);
        if (code != EXIT_OK)
            return code;
        progress_add(&c->bar, start - at);
        at = start;
        end = end < last ? end : last;
        if (at >= end)
            break;
        size_t want = end - at < COPY_BUFFER ? (size_t)(end - at) : COPY_BUFFER, got;
        code = copy_read(&c->from, at, buffer, want, &got);
        if (code == EXIT_OK && got > 0)
            code = copy_write(c, at - offset, buffer, got);
        if (code != EXIT_OK)
            return code;
        at += got;
        written = at - offset;
        progress_add(&c->bar, got);
        if (got < want)
            break;
    }
    return copy_end_at(c, at - offset, written);
}

int copy_bytes(struct copy *c, uint64_t offset, uint64_t size)
{
    uint8_t *buffer = malloc(COPY_BUFFER);

    if (!buffer)
        return text_fail(EXIT_TROUBLE, "no memory for a buffer of %zu bytes", COPY_BUFFER);
    int code = copy_run(c, buffer, offset, size);
    free(buffer);
    return code;
}
