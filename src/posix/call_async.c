/* Asynchronous reading and writing. The C library has threads for it, which read and write without this library; so
 * what concerns a file of a mount is done at once, and its request is complete when the call returns. */
#include <aio.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include "posix/begin.h"
#include "posix/file.h"
#include "posix/next.h"

static void *run_notice(void *event)
{
    const struct sigevent *e = event;
    void (*notice)(union sigval) = e->sigev_notify_function;
    union sigval value = e->sigev_value;

    free(event);
    notice(value);
    return NULL;
}

static void start_notice(const struct sigevent *e)
{
    struct sigevent *copy = malloc(sizeof *copy);
    pthread_t thread;

    if (!copy)
        return;
    *copy = *e;
    if (pthread_create(&thread, e->sigev_notify_attributes, run_notice, copy) != 0)
        free(copy);
    else
        pthread_detach(thread);
}

/* Say that something is complete, in the way that was asked for. */
static void notify(const struct sigevent *e)
{
    if (e->sigev_notify == SIGEV_SIGNAL)
        sigqueue(getpid(), e->sigev_signo, e->sigev_value);
    else if (e->sigev_notify == SIGEV_THREAD)
        start_notice(e);
}

/* The result of a request is where aio_error and aio_return look. */
static int complete(struct aiocb *request, ssize_t result)
{
    request->__error_code = result < 0 ? errno : 0;
    request->__return_value = result;
    notify(&request->aio_sigevent);
    return 0;
}

static void *bytes_of(const struct aiocb *request)
{
    return (void *)(uintptr_t)request->aio_buf;
}

CALL int aio_read(struct aiocb *request)
{
    posix_begin();
    if (!file_is_ours(request->aio_fildes))
        return next.aio_read(request);
    return complete(request, pread(request->aio_fildes, bytes_of(request), request->aio_nbytes, request->aio_offset));
}

CALL int aio_write(struct aiocb *request)
{
    posix_begin();
    if (!file_is_ours(request->aio_fildes))
        return next.aio_write(request);
    return complete(request, pwrite(request->aio_fildes, bytes_of(request), request->aio_nbytes, request->aio_offset));
}

CALL int aio_fsync(int operation, struct aiocb *request)
{
    posix_begin();
    return file_is_ours(request->aio_fildes) ? complete(request, fsync(request->aio_fildes))
                                             : next.aio_fsync(operation, request);
}

static int has_ours(struct aiocb *const list[], int n)
{
    for (int i = 0; i < n; i++)
        if (list[i] && list[i]->aio_lio_opcode != LIO_NOP && file_is_ours(list[i]->aio_fildes))
            return 1;
    return 0;
}

static int wait_for(const struct aiocb *request)
{
    while (aio_error(request) == EINPROGRESS)
        if (aio_suspend(&request, 1, NULL) != 0 && errno != EAGAIN)
            return -1;
    return aio_error(request);
}

/* Start each one; all are waited for, also those of the C library. */
static int run_list(struct aiocb *const list[], int n)
{
    int error = 0;

    for (int i = 0; i < n; i++)
        if (list[i] && list[i]->aio_lio_opcode != LIO_NOP) {
            int result = list[i]->aio_lio_opcode == LIO_READ ? aio_read(list[i]) : aio_write(list[i]);
            error |= result != 0;
        }
    for (int i = 0; i < n; i++)
        if (list[i] && list[i]->aio_lio_opcode != LIO_NOP)
            error |= wait_for(list[i]) != 0;
    return error ? EIO : 0;
}

CALL int lio_listio(int mode, struct aiocb *const list[], int n, struct sigevent *event)
{
    posix_begin();
    if (mounts.count == 0 || !has_ours(list, n))
        return next.lio_listio(mode, list, n, event);
    int error = run_list(list, n);
    if (mode == LIO_NOWAIT && event)
        notify(event);
    return posix_result(error);
}

/* struct aiocb64 is struct aiocb here. */
CALL int aio_read64(struct aiocb64 *request)
{
    return aio_read((struct aiocb *)(void *)request);
}

CALL int aio_write64(struct aiocb64 *request)
{
    return aio_write((struct aiocb *)(void *)request);
}

CALL int aio_fsync64(int operation, struct aiocb64 *request)
{
    return aio_fsync(operation, (struct aiocb *)(void *)request);
}

CALL int lio_listio64(int mode, struct aiocb64 *const list[], int n, struct sigevent *event)
{
    return lio_listio(mode, (struct aiocb *const *)(const void *)list, n, event);
}
