#include <time.h>
#include "fake_io.h"
#include "test_mpi_slow.h"

static struct fake_io fake;

/* Read by the writer's threads. */
static atomic_uint each_ms, stall_ms;
static _Atomic uint64_t stall_end; /* ns; 0: it has not begun */
static const atomic_int *_Atomic gate;
static _Atomic uint64_t gate_end; /* ns */
static atomic_int is_client_cached;

#define GATE_NS 1000000 /* between two looks at the gate */

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};

    nanosleep(&t, NULL);
}

static void wait_gate(void)
{
    const atomic_int *g = gate;

    while (g && !*g) {
        if (now_ns() > gate_end) {
            is_client_cached = 1;
            return;
        }
        sleep_ns(GATE_NS);
    }
}

static void slow_write(void)
{
    unsigned stall = atomic_exchange(&stall_ms, 0);
    uint64_t now = now_ns(), end;

    if (stall > 0)
        stall_end = now + stall * UINT64_C(1000000);
    end = stall_end;
    if (end > now)
        sleep_ns(end - now);
    sleep_ns(each_ms * UINT64_C(1000000));
    wait_gate();
}

static ssize_t slow_do(struct fake_call *c)
{
    if (c->op == FAKE_WRITE)
        slow_write();
    return fake_do(c);
}

void slow_install(void)
{
    fake_io_begin(&fake, slow_do);
}

void slow_writes(unsigned ms)
{
    each_ms = ms;
}

void slow_stall(unsigned ms)
{
    stall_end = 0;
    stall_ms = ms;
}

int slow_has_stalled(void)
{
    return stall_end != 0;
}

void slow_hold(const atomic_int *g, unsigned seconds)
{
    gate_end = now_ns() + seconds * UINT64_C(1000000000);
    gate = g;
}

int slow_is_client_cached(void)
{
    return is_client_cached;
}
