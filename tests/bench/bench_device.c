#include <pthread.h>
#include "bench_device.h"
#include "bench_help.h"
#include "fake_io.h"

static struct device {
    struct fake_io fake;
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

static ssize_t device_do(struct fake_call *c)
{
    ssize_t put;

    switch (c->op) {
    case FAKE_SYNC:
    case FAKE_SYNC_FOLDER:
        bench_sleep(device_give(0, 0) + DEVICE_SYNC);
        return 0;
    case FAKE_WRITE:
        put = fake_do(c);
        if (put > 0)
            bench_sleep(device_give((double)put, DEVICE_CACHE / device.rate));
        return put;
    default:
        return fake_do(c);
    }
}

void device_install(double bytes_per_second)
{
    device.rate = bytes_per_second;
    fake_io_begin(&device.fake, device_do);
    fake_io_has_all(&device.fake);
}

double device_bytes(void)
{
    pthread_mutex_lock(&device.lock);
    double bytes = device.bytes;
    pthread_mutex_unlock(&device.lock);
    return bytes;
}
