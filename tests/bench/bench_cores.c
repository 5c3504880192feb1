#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include "bench_cores.h"
#include "bench_help.h"

#define TURNS 100000

static _Alignas(128) atomic_int ball[2 * 32]; /* [0] thrown and [32] returned, on lines of their own */

/* Keep the calling thread on the n-th processor that the process may use. Returns whether there is one. */
static int stay_on(const cpu_set_t *all, int n)
{
    cpu_set_t one;

    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, all) && n-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(i, &one);
            return pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0;
        }
    return 0;
}

static void *catch_and_return(void *arg)
{
    stay_on(arg, 1);
    for (int i = 1; i <= TURNS; i++) {
        while (atomic_load_explicit(&ball[0], memory_order_acquire) != i)
            continue;
        atomic_store_explicit(&ball[32], i, memory_order_release);
    }
    return NULL;
}

double bench_cores(void)
{
    cpu_set_t all;
    pthread_t thread;

    if (pthread_getaffinity_np(pthread_self(), sizeof all, &all) != 0 || CPU_COUNT(&all) < 2)
        return 0;
    stay_on(&all, 0);
    memset(ball, 0, sizeof ball);
    if (pthread_create(&thread, NULL, catch_and_return, &all) != 0)
        bench_die("cannot create a thread");
    double start = bench_now();
    for (int i = 1; i <= TURNS; i++) {
        atomic_store_explicit(&ball[0], i, memory_order_release);
        while (atomic_load_explicit(&ball[32], memory_order_acquire) != i)
            continue;
    }
    double ns = (bench_now() - start) * 1e9 / TURNS;
    pthread_join(thread, NULL);
    pthread_setaffinity_np(pthread_self(), sizeof all, &all);
    return ns;
}
