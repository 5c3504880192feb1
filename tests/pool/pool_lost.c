/* A client of a pool whose servers, disks, network or clients fail: what it reads is right, or an error that comes
 * soon.
 *
 *     pool_lost POINT write FILES [SECONDS]      create files, or write them again; killed after that time
 *     pool_lost POINT remove FILES [SECONDS]     remove them
 *     pool_lost POINT lock FILES [SECONDS]       lock them
 *     pool_lost POINT hold FILES SECONDS         lock them, print, and keep the locks until it is killed
 *     pool_lost POINT read FILES SECONDS         read them; no call takes longer than that
 *
 * A number from 1 to 255 after the seconds goes into what is written; what is read must have it, if one is given.
 *
 * Prints what it has seen, and the first message. Files that are not there, and zeros, are what a client leaves that
 * was killed while it wrote. Exits with 1 if a byte is wrong, or a call takes too long. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <deltafs/deltafs_pool.h>

#define WORDS 80000 /* of 8 bytes; of a file, which has two chunks */

static deltafs_pool *pool;
static uint64_t words[WORDS];
static unsigned round_number;
static unsigned fine, failed, absent, short_ones, zeros;
static double longest;
static char message[2048] = "no error";

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Note how a call has ended that began at `start`; returns its status. */
static int note(double start, int status)
{
    double took = seconds() - start;

    longest = took > longest ? took : longest;
    if (status != DELTAFS_OK && status != DELTAFS_ERR_NOT_FOUND && failed == 0)
        snprintf(message, sizeof message, "%s", deltafs_errmsg(NULL));
    return status;
}

static uint64_t word_of(unsigned file, unsigned i)
{
    return (uint64_t)(file + 1) << 40 | (uint64_t)round_number << 32 | (i + 1);
}

static void name_file(unsigned file, char path[32])
{
    snprintf(path, 32, "/file.%u", file);
}

static int open_file(unsigned file, int flags, deltafs_pool_file **out)
{
    char path[32];
    double start = seconds();

    name_file(file, path);
    return note(start, deltafs_pool_file_open(pool, path, flags, 0600, out));
}

static void write_file(unsigned file)
{
    deltafs_pool_file *f = NULL;
    int status = open_file(file, O_RDWR | O_CREAT, &f);

    for (unsigned i = 0; i < WORDS; i++)
        words[i] = word_of(file, i);
    double start = seconds();
    if (status == DELTAFS_OK)
        status = note(start, deltafs_pool_file_write(f, 0, words, sizeof words));
    deltafs_pool_file_close(f);
    *(status == DELTAFS_OK ? &fine : &failed) += 1;
}

static void check_words(unsigned file, size_t size)
{
    size_t n = size / sizeof words[0];
    uint64_t all = round_number > 0 ? UINT64_MAX : ~((uint64_t)255 << 32);

    for (unsigned i = 0; i < n; i++) {
        if (words[i] != 0 && ((words[i] ^ word_of(file, i)) & all) != 0) {
            fprintf(stderr, "word %u of file %u is wrong\n", i, file);
            exit(1);
        }
        zeros += words[i] == 0;
    }
    short_ones += n < WORDS;
    fine++;
}

static void read_file(unsigned file)
{
    deltafs_pool_file *f = NULL;
    size_t got = 0;
    int status = open_file(file, O_RDONLY, &f);

    double start = seconds();
    if (status == DELTAFS_OK)
        status = note(start, deltafs_pool_file_read(f, 0, words, sizeof words, &got));
    deltafs_pool_file_close(f);
    if (status == DELTAFS_OK)
        check_words(file, got);
    else
        *(status == DELTAFS_ERR_NOT_FOUND ? &absent : &failed) += 1;
}

static void remove_file(unsigned file)
{
    char path[32];
    double start = seconds();

    name_file(file, path);
    int status = note(start, deltafs_pool_unlink(pool, path));
    *(status == DELTAFS_OK ? &fine : status == DELTAFS_ERR_NOT_FOUND ? &absent : &failed) += 1;
}

static void lock_file(unsigned file)
{
    const struct deltafs_pool_lock lock = {.struct_size = sizeof lock, .type = DELTAFS_POOL_EXCLUSIVE};
    deltafs_pool_file *f = NULL;
    int status = open_file(file, O_RDWR, &f);

    double start = seconds();
    if (status == DELTAFS_OK)
        status = note(start, deltafs_pool_file_lock(f, &lock));
    deltafs_pool_file_close(f);
    *(status == DELTAFS_OK ? &fine : &failed) += 1;
}

static void (*command(const char *name))(unsigned)
{
    switch (name[0]) {
    case 'w':
        return write_file;
    case 'l':
    case 'h':
        return lock_file;
    default:
        return name[2] == 'a' ? read_file : remove_file;
    }
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    void (*run)(unsigned) = command(argv[2]);
    unsigned files = (unsigned)atoi(argv[3]);
    double time = argc > 4 ? atof(argv[4]) : 100;
    round_number = argc > 5 ? (unsigned)atoi(argv[5]) : 0;
    const struct itimerval end = {.it_value = {.tv_sec = (time_t)time, .tv_usec = (suseconds_t)(1e6 * time) % 1000000}};

    if (deltafs_pool_open(argv[1], &pool) != DELTAFS_OK) {
        printf("%s\n", deltafs_errmsg(NULL));
        return 3;
    }
    /* The signal ends the process like any other that it does not handle. */
    if (run != read_file)
        setitimer(ITIMER_REAL, &end, NULL);
    for (unsigned i = 0; i < files; i++)
        run(i);
    if (argv[2][0] == 'h') {
        printf("%u locked\n", fine);
        fflush(stdout);
        pause();
    }
    deltafs_pool_close(pool);
    printf("%u fine, %u failed, %u absent, %u short, %u zeros; %.2f seconds at most; %s\n", fine, failed, absent,
           short_ones, zeros, longest, message);
    return run == read_file && longest > time;
}
