/* Threads that use one descriptor, signals, and processes that begin or end in unusual ways, in the folder FOLDER.
 *
 *     posix_threads FOLDER PART
 *
 * It prints in a mount what it prints in an ordinary folder. */
#include "tests/posix/say.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROCESS_SECONDS 20 /* then it is ended by a signal */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- A descriptor that another thread closes ---- */

#define SHARED_FD      100
#define TOGGLE_SECONDS 0.4

static atomic_int is_over;

static void use_bytes(void)
{
    char byte = 'x';
    struct iovec piece[2] = {{&byte, 1}, {&byte, 1}};

    for (int i = 0; i < 100; i++) {
        (void)!read(SHARED_FD, &byte, 1);
        (void)!pread(SHARED_FD, &byte, 1, 0);
        (void)!readv(SHARED_FD, piece, 2);
        (void)!write(SHARED_FD, "y", 1);
        (void)!pwrite(SHARED_FD, "y", 1, 0);
        (void)!pwritev(SHARED_FD, piece, 2, 0);
        (void)!lseek(SHARED_FD, 0, SEEK_SET);
    }
}

static void use_rest(void)
{
    struct stat st;

    (void)!ftruncate(SHARED_FD, 2);
    (void)!posix_fallocate(SHARED_FD, 0, 1);
    (void)!fstat(SHARED_FD, &st);
    (void)!fcntl(SHARED_FD, F_GETFL);
    (void)!fchmod(SHARED_FD, 0644);
    (void)!fdatasync(SHARED_FD);
    (void)!fdopendir(SHARED_FD); /* it is none */
}

static void *use(void *unused)
{
    while (!is_over) {
        use_bytes();
        use_rest();
    }
    return unused;
}

static void close_while_used(void)
{
    int fd = open("closed", O_RDWR | O_CREAT, 0644);
    double end = now() + TOGGLE_SECONDS;
    pthread_t thread;

    pthread_create(&thread, NULL, use, NULL);
    while (now() < end)
        for (int i = 0; i < 100; i++)
            if (dup2(fd, SHARED_FD) < 0 || close(SHARED_FD) != 0)
                say("dup2 and close", -1);
    is_over = 1;
    pthread_join(thread, NULL);
    say("close", close(fd));
}

/* ---- The mask of new files, which is that of all threads ---- */

#define MASK_SECONDS 0.3

/* What the system has; -1 if that cannot be known. */
static int mask_of_process(void)
{
    char text[1000];
    int fd = open("/proc/self/status", O_RDONLY), mask = -1;
    ssize_t n = read(fd, text, sizeof text - 1);

    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *line = strstr(text, "Umask:");
    if (line)
        sscanf(line, "Umask: %o", (unsigned *)&mask);
    return mask;
}

static void *watch_mask(void *changes)
{
    int first = mask_of_process();

    while (!is_over)
        *(int *)changes += mask_of_process() != first;
    return NULL;
}

static void say_mode(const char *path)
{
    struct stat st;

    say(path, stat(path, &st) == 0 ? (long long)st.st_mode & 0777 : -1);
}

static void create_with_mask(void)
{
    double end = now() + MASK_SECONDS;
    int changes = 0;
    pthread_t thread;

    pthread_create(&thread, NULL, watch_mask, &changes);
    while (now() < end) {
        close(open("created", O_WRONLY | O_CREAT, 0666));
        mkdir("made", 0777);
        unlink("created");
        rmdir("made");
    }
    is_over = 1;
    pthread_join(thread, NULL);
    say("changes", changes);
    umask(077);
    make_file("private", "");
    mkdir("private folder", 0777);
    umask(02);
    make_file("of a group", "");
    say_mode("private");
    say_mode("private folder");
    say_mode("of a group");
}

/* ---- Processes ---- */

#define WAIT_SECONDS 5

/* The status of a child that ends in time; -1: it hangs, and is ended. */
static int wait_or_kill(pid_t pid)
{
    double end = now() + WAIT_SECONDS;
    int status;

    while (now() < end) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return status;
        usleep(200);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return -1;
}

#define HANDLER_TIMES  4
#define HANDLER_STATUS 7

static void end_process(int signal)
{
    (void)signal;
    _exit(HANDLER_STATUS);
}

static void write_until_signal(void)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 3000}};
    int fd = open("interrupted", O_WRONLY | O_CREAT | O_APPEND, 0644);

    signal(SIGALRM, end_process);
    setitimer(ITIMER_REAL, &soon, NULL);
    while (write(fd, "x", 1) == 1)
        ;
    _exit(1);
}

static void exit_in_handler(void)
{
    int ended = 0;

    for (int i = 0; i < HANDLER_TIMES; i++) {
        pid_t child = fork();
        if (child == 0)
            write_until_signal();
        int status = wait_or_kill(child);
        ended += WIFEXITED(status) && WEXITSTATUS(status) == HANDLER_STATUS;
    }
    say("ended by a handler", ended);
}

#define WRITES 20000

static int fd_of_handler;
static volatile sig_atomic_t in_handler;

static void write_in_handler(int signal)
{
    int before = errno;

    (void)signal;
    if (write(fd_of_handler, "handler\n", 8) == 8)
        in_handler = in_handler + 1;
    errno = before;
}

/* Each record that was written is in the file, and whole. */
static void handler_writes(void)
{
    const struct itimerval often = {.it_value = {.tv_usec = 200}, .it_interval = {.tv_usec = 200}},
                           never = {.it_value = {0}};
    int written = 0, of_main = 0, of_handler = 0;
    char record[8];

    fd_of_handler = open("both", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = write_in_handler, .sa_flags = SA_RESTART}, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < WRITES; i++)
        written += write(fd_of_handler, "program\n", 8) == 8;
    setitimer(ITIMER_REAL, &never, NULL);
    say("close", close(fd_of_handler));
    int fd = open("both", O_RDONLY);
    while (read(fd, record, 8) == 8) {
        of_main += memcmp(record, "program\n", 8) == 0;
        of_handler += memcmp(record, "handler\n", 8) == 0;
    }
    say("of the program", of_main);
    say("all", written == of_main && in_handler == of_handler && in_handler > 0);
}

/* ---- Forks while another thread uses files ---- */

#define FORK_SECONDS 0.4

static void use_file(void)
{
    int fd = open("1", O_WRONLY | O_CREAT | O_APPEND, 0644);

    lockf(fd, F_TEST, 1); /* a mount says that it has no locks */
    close(fd);
}

static void map_file(int fd)
{
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (at != MAP_FAILED)
        munmap(at, 4096);
}

static void *use_files(void *unused)
{
    int fd = open("2", O_RDWR | O_CREAT, 0644);

    while (!is_over) {
        for (int i = 0; i < 100; i++)
            use_file();
        map_file(fd);
    }
    close(fd);
    return unused;
}

static void fork_while_used(void)
{
    double end = now() + FORK_SECONDS;
    int hanging = 0;
    pthread_t thread;

    pthread_create(&thread, NULL, use_files, NULL);
    while (now() < end && hanging == 0) {
        pid_t child = fork();
        if (child == 0) {
            use_file();
            _exit(0);
        }
        hanging += wait_or_kill(child) != 0;
    }
    is_over = 1;
    pthread_join(thread, NULL);
    say("hanging", hanging);
}

/* ---- Children and ends that are unusual ---- */

static void say_text(const char *path)
{
    char text[100] = "";
    int fd = open(path, O_RDONLY);

    printf("%s: %zd bytes, '%s'\n", path, read(fd, text, sizeof text - 1), text);
    close(fd);
}

static int fd_of_parent;

static int close_parents(void *unused)
{
    (void)unused;
    syscall(SYS_close, fd_of_parent);
    syscall(SYS_exit, 5);
    return 0;
}

/* The child shares the memory, but not the descriptors. */
static void share_memory(void)
{
    static _Alignas(16) char stack[1 << 16];
    int status = 0;

    fd_of_parent = open("shared", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    say("write", write(fd_of_parent, "1234", 4));
    pid_t child = clone(close_parents, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
    waitpid(child, &status, 0);
    say("status", status);
    say("write", write(fd_of_parent, "5678", 4));
    close(fd_of_parent);
    say_text("shared");
}

#define HANDLER_FORKS 40

static volatile sig_atomic_t forks;

static void fork_quickly(int signal)
{
    (void)signal;
    pid_t child = _Fork();
    if (child == 0)
        _exit(4);
    waitpid(child, NULL, 0);
    forks++;
}

static void *wait_for_end(void *unused)
{
    pause();
    return unused;
}

/* While the heap is locked, which it is only in a process with several threads. */
static void fork_while_allocating(void)
{
    const struct itimerval often = {.it_value = {.tv_usec = 1000}, .it_interval = {.tv_usec = 1000}};
    void *volatile one = NULL;
    pthread_t thread;

    pthread_create(&thread, NULL, wait_for_end, NULL);
    signal(SIGALRM, fork_quickly);
    setitimer(ITIMER_REAL, &often, NULL);
    for (unsigned i = 0; forks < HANDLER_FORKS; i++) {
        free(one);
        one = malloc(2000 + i % 20000);
    }
    _exit(0);
}

static void fork_in_handler(void)
{
    pid_t child = fork();

    if (child == 0)
        fork_while_allocating();
    say("_Fork in a handler", wait_or_kill(child));
}

static void raw_children(void)
{
    make_file("parent", "text");
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        _exit(3);
    say("clone", wait_or_kill(child));
    child = _Fork();
    if (child == 0)
        _exit(4);
    say("_Fork", wait_or_kill(child));
    fork_in_handler();
    share_memory();
}

static void quick_ends(void)
{
    int ends[2] = {-1, -1}, fd;
    pid_t child = fork();

    if (child == 0) {
        fd = open("quick", O_WRONLY | O_CREAT, 0644);
        say("write", write(fd, "quick", 5));
        quick_exit(5);
    }
    say("quick_exit", wait_or_kill(child));
    say_text("quick");
    fd = open("closed by the kernel", O_WRONLY | O_CREAT, 0644);
    say("write", write(fd, "text", 4));
    say("SYS_close", syscall(SYS_close, fd));
    say_text("closed by the kernel");
    say("pipe", pipe(ends));
    say("write", write(ends[1], "pipe", 4));
    close(ends[0]);
    close(ends[1]);
    fd = open("closed in a range", O_WRONLY | O_CREAT, 0644);
    say("write", write(fd, "text", 4));
    say("SYS_close_range", syscall(SYS_close_range, fd, fd, 0));
    say_text("closed in a range");
}

/* ---- A number that becomes that of another file ---- */

#define REUSE_NS   500000000
#define OTHER_SIZE 100000

static void *opens(void *unused)
{
    while (!is_over) {
        int fd = open("reused", O_RDWR | O_CREAT, 0644);
        (void)!write(fd, "12345678", 8);
        close(fd);
    }
    return unused;
}

static void *truncates(void *failed)
{
    while (!is_over) {
        int fd = open("reused", O_WRONLY | O_CREAT | O_TRUNC, 0644);
        *(int *)failed += fd < 0 || write(fd, "abc", 3) != 3 || close(fd) != 0;
    }
    return NULL;
}

/* A file that is not in the folder is not changed by what others do with one that is. */
static void *watches(void *changes)
{
    struct stat st;

    while (!is_over) {
        int fd = memfd_create("other", MFD_CLOEXEC);
        *(int *)changes += ftruncate(fd, OTHER_SIZE) != 0;
        for (int i = 0; i < 5; i++) {
            sched_yield();
            *(int *)changes += fstat(fd, &st) != 0 || st.st_size != OTHER_SIZE;
        }
        close(fd);
    }
    return NULL;
}

static void reuse_numbers(void)
{
    static void *(*const what[])(void *) = {opens, opens, truncates, watches, watches};
    const struct timespec some = {.tv_nsec = REUSE_NS};
    pthread_t thread[5];
    int changes[5] = {0}; /* or failures */

    for (int i = 0; i < 5; i++)
        pthread_create(&thread[i], NULL, what[i], &changes[i]);
    nanosleep(&some, NULL);
    is_over = 1;
    for (int i = 0; i < 5; i++)
        pthread_join(thread[i], NULL);
    say("calls that failed", changes[2]);
    say("changes of another file", changes[3] + changes[4]);
}

/* ---- posix_spawn with signals ---- */

#define SPAWN_TIMES 30

static void nothing(int signal)
{
    (void)signal;
}

static void spawn_with_signals(void)
{
    const struct itimerval often = {.it_value = {.tv_usec = 200}, .it_interval = {.tv_usec = 200}},
                           never = {.it_value = {0}};
    char *arguments[] = {(char *)"none", NULL};
    posix_spawn_file_actions_t actions;
    int missing = 0;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "output", O_WRONLY | O_CREAT, 0644);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = nothing}, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < SPAWN_TIMES; i++) {
        pid_t child;
        missing += posix_spawn(&child, "none", &actions, NULL, arguments, environ) == ENOENT;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    posix_spawn_file_actions_destroy(&actions);
    say("programs that do not exist", missing);
    say("children left", waitpid(-1, NULL, WNOHANG));
}

static const struct part {
    const char *name;
    void (*fn)(void);
} parts[] = {{"close", close_while_used}, {"mask", create_with_mask},    {"handler", exit_in_handler},
             {"write", handler_writes},   {"fork", fork_while_used},     {"raw", raw_children},
             {"quick", quick_ends},       {"spawn", spawn_with_signals}, {"reuse", reuse_numbers}};

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(PROCESS_SECONDS);
    if (argc != 3 || chdir(argv[1]) != 0) {
        fprintf(stderr, "usage: %s FOLDER PART\n", argv[0]);
        return 2;
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(argv[2], parts[i].name) == 0)
            parts[i].fn();
    return 0;
}
