/* Part of posix_calls: space, locks, asynchronous calls, and what a mount refuses. */
#include "tests/posix/posix_calls.h"

#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

/* ---- Space and locks ---- */

static void say_size(const char *label, int fd)
{
    struct stat st;

    say(label, fstat(fd, &st) == 0 ? st.st_size : -1);
}

static void check_space(void)
{
    int fd = open("space", O_RDWR | O_CREAT | O_TRUNC, 0644), reader = open("space", O_RDONLY);
    char text[16] = "";

    say("posix_fallocate", posix_fallocate(fd, 10, 90));
    say_size("size", fd);
    say("pwrite", pwrite(fd, "0123456789", 10, 0));
    say("fallocate", fallocate(fd, 0, 0, 50));
    say_size("size", fd);
    say("fallocate beyond the size", fallocate(fd, FALLOC_FL_KEEP_SIZE, 100, 1000));
    say_size("size", fd);
    say("a hole", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2, 3));
    say("pread", pread(fd, text, 10, 0));
    for (int i = 0; i < 10; i++)
        printf("%d ", text[i]);
    putchar('\n');
    say("without bytes", fallocate(fd, 0, 0, 0));
    say("of a reader", fallocate(reader, 0, 0, 10));
    say("posix_fallocate of a reader", posix_fallocate(reader, 0, 10));
    say("posix_fadvise", posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
    say("close", close(fd) + close(reader));
    fd = open("space", O_RDONLY);
    say_size("size", fd);
    say("read", read(fd, text, sizeof text));
    say("a byte", text[9]);
    close(fd);
}

static void check_systems(void)
{
    struct statvfs s;
    struct statfs f;
    int fd = open(".", O_RDONLY | O_DIRECTORY);

    say("statvfs", statvfs(".", &s) == 0 && s.f_bsize > 0 && s.f_blocks >= s.f_bfree && s.f_namemax == 255);
    say("fstatvfs", fstatvfs(fd, &s) == 0 && s.f_bsize > 0);
    say("statfs", statfs(folder, &f) == 0 && f.f_bsize > 0 && f.f_namelen == 255);
    say("fstatfs", fstatfs(fd, &f));
    say("statfs of none", statfs("none", &f));
    say("statvfs of none", statvfs("none", &s));
    say("pathconf", pathconf(".", _PC_NAME_MAX));
    say("pathconf", pathconf(".", _PC_PATH_MAX));
    say("pathconf of none", pathconf("none", _PC_NAME_MAX));
    say("fpathconf", fpathconf(fd, _PC_NAME_MAX));
    close(fd);
}

static void check_locks(void)
{
    int a = open("locked", O_RDWR | O_CREAT, 0644), b = open("locked", O_RDONLY), status = 0;

    make_file("other", "");
    say("flock", flock(a, LOCK_EX));
    say("again", flock(a, LOCK_EX | LOCK_NB));
    say("by another open file", flock(b, LOCK_EX | LOCK_NB));
    say("shared", flock(b, LOCK_SH | LOCK_NB));
    int other = open("other", O_RDONLY);
    say("another file", flock(other, LOCK_EX | LOCK_NB));
    close(other);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int c = open("locked", O_RDWR);
        _exit(flock(c, LOCK_EX | LOCK_NB) == 0 ? 0 : errno == EWOULDBLOCK ? 1 : 2);
    }
    waitpid(child, &status, 0);
    say("in a child", WEXITSTATUS(status));
    say("unlock", flock(a, LOCK_UN));
    say("shared", flock(b, LOCK_SH | LOCK_NB));
    say("twice", flock(a, LOCK_SH | LOCK_NB));
    say("not alone", flock(a, LOCK_EX | LOCK_NB));
    close(b);
    say("alone", flock(a, LOCK_EX | LOCK_NB));
    say("a wrong one", flock(a, 77));
    close(a);
}

/* ---- Asynchronous calls, and others ---- */

static void say_request(const char *label, struct aiocb *r, int result)
{
    const struct aiocb *list[] = {r};

    say(label, result);
    while (aio_error(r) == EINPROGRESS)
        aio_suspend(list, 1, NULL);
    say("error", aio_error(r));
    printf("result: %lld\n", (long long)aio_return(r));
}

static void check_async(void)
{
    char text[16] = "", more[16] = "more";
    int fd = open("async", O_RDWR | O_CREAT | O_TRUNC, 0644);
    struct aiocb r = {.aio_fildes = fd, .aio_buf = (char[]){"asynchronous"}, .aio_nbytes = 12, .aio_offset = 2};
    struct aiocb other = {.aio_fildes = fd, .aio_buf = more, .aio_nbytes = 4, .aio_lio_opcode = LIO_WRITE};
    struct aiocb *list[] = {&r, &other, NULL};
    struct iovec v[] = {{text, 3}, {text + 3, 5}};

    r.aio_sigevent.sigev_notify = other.aio_sigevent.sigev_notify = SIGEV_NONE;
    say_request("aio_write", &r, aio_write(&r));
    say_request("aio_fsync", &r, aio_fsync(O_SYNC, &r));
    r.aio_buf = text;
    say_request("aio_read", &r, aio_read(&r));
    say_text("read", text);
    r.aio_lio_opcode = LIO_READ;
    r.aio_offset = 6;
    say("lio_listio", lio_listio(LIO_WAIT, list, 3, NULL));
    say("result", aio_return(&r));
    say("result", aio_return(&other));
    say("preadv2", preadv2(fd, v, 2, 0, 0));
    say("pwritev2", pwritev2(fd, v, 2, 20, RWF_SYNC));
    say("preadv2 at the offset", preadv2(fd, v, 2, -1, 0));
    close(fd);
    say_bytes("async", "async", 2, 12);
    say_bytes("more", "async", 0, 2);
    fd = open("async", O_RDONLY);
    r = (struct aiocb){.aio_fildes = fd, .aio_buf = text, .aio_nbytes = 4};
    r.aio_sigevent.sigev_notify = SIGEV_NONE;
    say_request("aio_write of a reader", &r, aio_write(&r));
    close(fd);
    say("lchmod", lchmod("async", 0600));
    say("ftok", ftok("async", 'x') == ftok("async", 'x'));
    say("ftok of none", ftok("none", 'x'));
    sync();
}

void check_other(void)
{
    check_names();
    check_space();
    check_systems();
    check_locks();
    check_async();
}

/* What a mount refuses, which is not what an ordinary folder does. */
static int bind_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    strcpy(address.sun_path, path);
    int result = bind(fd, (const struct sockaddr *)(const void *)&address, sizeof address), error = errno;
    close(fd);
    errno = error;
    return result;
}

void check_refused(void)
{
    struct flock lock = {.l_type = F_WRLCK};
    struct {
        struct file_handle handle;
        char bytes[128];
    } h = {.handle = {.handle_bytes = 128}};
    char *list[] = {(char *)".", NULL}, value[16];
    int fd = open("refused", O_RDWR | O_CREAT, 0644), mount, watches = inotify_init();

    say("mkfifo", mkfifo("fifo", 0644));
    say("mknod", mknod("device", S_IFCHR | 0644, 0));
    say("bind", bind_socket("socket"));
    say("link", link("refused", "hard"));
    say("fcntl", fcntl(fd, F_SETLK, &lock));
    say("lockf", lockf(fd, F_TLOCK, 0));
    say("setxattr", setxattr("refused", "user.a", "1", 1, 0));
    say("getxattr", getxattr("refused", "user.a", value, sizeof value));
    say("getxattr of none", getxattr("none", "user.a", value, sizeof value));
    say("fremovexattr", fremovexattr(fd, "user.a"));
    say("listxattr", listxattr(".", value, sizeof value));
    say("inotify_add_watch", inotify_add_watch(watches, ".", IN_CREATE));
    say("name_to_handle_at", name_to_handle_at(AT_FDCWD, "refused", &h.handle, &mount, 0));
    say_pointer("fts_open", fts_open(list, FTS_PHYSICAL, NULL));
    say("fallocate", fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 4096));
    close(watches);
    close(fd);
}
