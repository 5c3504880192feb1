#include <pthread.h>
#include "bench_device.h"
#include "bench_help.h"
#include "io/io.h"

static struct device {
    struct io_ops ops; /* the operating system's, with some of ours in their place */
    struct io inner;
    pthread_mutex_t lock; /* the library may write from several threads */
    double rate;
    double done; /* when the device will be done with all that it has been given */
    double bytes;
} device = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Hand `n` bytes over; returns how long it is until less than `left` seconds of work remain. */
static double device_give(double n, double left)
{
    pthread_mutex_lock(&device.lock);
    double now = bench_now();
    device.bytes += n;
    device.done = (device.done > now ? device.done : now) + n / device.rate;
    double wait = device.done - left - now;
    pthread_mutex_unlock(&device.lock);
    return wait;
}

static ssize_t device_pwrite(void *ctx, int fd, const void *bytes, size_t n, uint64_t offset)
{
    ssize_t put = device.inner.ops->pwrite(ctx, fd, bytes, n, offset);

    if (put > 0)
        bench_sleep(device_give((double)put, DEVICE_CACHE / device.rate));
    return put;
}

static int device_sync(void *ctx, int fd)
{
    (void)ctx;
    (void)fd;
    bench_sleep(device_give(0, 0) + DEVICE_SYNC);
    return 0;
}

static int device_sync_folder(void *ctx, const char *path)
{
    (void)ctx;
    (void)path;
    bench_sleep(device_give(0, 0) + DEVICE_SYNC);
    return 0;
}

void device_install(double bytes_per_second)
{
    device.inner = io_default();
    device.ops = *device.inner.ops;
    device.ops.pwrite = device_pwrite;
    device.ops.sync = device_sync;
    device.ops.sync_folder = device_sync_folder;
    device.rate = bytes_per_second;
    io_replace_default(&device.ops, device.inner.ctx);
}

double device_bytes(void)
{
    pthread_mutex_lock(&device.lock);
    double bytes = device.bytes;
    pthread_mutex_unlock(&device.lock);
    return bytes;
}
