/* Clients of a pool that signals interrupt, or that have few descriptors.
 *
 *     pool_unlucky POINT connect N     connect N times, beside a timer of a millisecond
 *     pool_unlucky POINT lose          ask, beside a timer of 10 ms, until there is an error
 *     pool_unlucky POINT descriptors   connect with fewer and fewer descriptors
 *     pool_unlucky POINT many N        connect N times, and stay so */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>
#include <deltafs/deltafs_pool.h>

#define MANY 100

static const char *point;

static int complain(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, deltafs_errmsg(NULL));
    return EXIT_FAILURE;
}

static void interrupt(int number)
{
    (void)number;
}

static void set_timer(int microseconds)
{
    const struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
    const struct timeval often = {.tv_usec = microseconds};
    const struct itimerval timer = {often, often};

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static int connect_often(int n)
{
    set_timer(1000);
    for (int i = 0; i < n; i++) {
        deltafs_pool *pool = NULL;
        if (deltafs_pool_open(point, &pool) != DELTAFS_OK)
            return complain("beside a timer");
        deltafs_pool_close(pool);
    }
    return EXIT_SUCCESS;
}

static int lose(void)
{
    struct deltafs_pool_stat st = {.struct_size = sizeof st};
    deltafs_pool *pool = NULL;
    int status = deltafs_pool_open(point, &pool);

    set_timer(10000);
    while (status == DELTAFS_OK)
        status = deltafs_pool_stat(pool, "/", 0, &st);
    deltafs_pool_close(pool);
    return status == DELTAFS_ERR_IO ? EXIT_SUCCESS : complain("the server is lost");
}

static int count_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static int few_descriptors(void)
{
    int before = count_descriptors(), lowest = dup(0), status = DELTAFS_ERR_IO;
    struct rlimit usual, few;

    close(lowest);
    getrlimit(RLIMIT_NOFILE, &usual);
    few = usual;
    for (int k = 0; status != DELTAFS_OK && k < 10; k++) {
        deltafs_pool *pool = NULL;
        few.rlim_cur = (rlim_t)(lowest + k);
        setrlimit(RLIMIT_NOFILE, &few);
        status = deltafs_pool_open(point, &pool);
        setrlimit(RLIMIT_NOFILE, &usual);
        if (status != DELTAFS_OK && !strstr(deltafs_errmsg(NULL), "Too many open files"))
            return complain("with few descriptors");
        deltafs_pool_close(pool);
    }
    if (status != DELTAFS_OK || count_descriptors() != before)
        return complain("descriptors are left open, or nothing works");
    return EXIT_SUCCESS;
}

static int many(int n)
{
    deltafs_pool *pool[MANY] = {NULL};
    int status = DELTAFS_OK;

    for (int i = 0; i < n && i < MANY && status == DELTAFS_OK; i++)
        status = deltafs_pool_open(point, &pool[i]);
    for (int i = 0; i < MANY; i++)
        deltafs_pool_close(pool[i]);
    return status == DELTAFS_OK ? EXIT_SUCCESS : complain("many handles");
}

int main(int argc, char **argv)
{
    int n = argc > 3 ? atoi(argv[3]) : 0;

    if (argc < 3)
        return 2;
    point = argv[1];
    if (strcmp(argv[2], "connect") == 0)
        return connect_often(n);
    if (strcmp(argv[2], "lose") == 0)
        return lose();
    return strcmp(argv[2], "many") == 0 ? many(n) : few_descriptors();
}
