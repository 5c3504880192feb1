#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/input.h"

int input_open(struct input *in, const char *path, char message[INPUT_MESSAGE_MAX])
{
    struct stat st;

    *in = (struct input){.path = path, .fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
    if (in->fd < 0 || fstat(in->fd, &st) != 0) {
        snprintf(message, INPUT_MESSAGE_MAX, "%s: cannot open: %s", path, strerror(errno));
        input_close(in);
        return -1;
    }
    if (!S_ISREG(st.st_mode)) {
        snprintf(message, INPUT_MESSAGE_MAX, "%s: not a regular file", path);
        input_close(in);
        return -1;
    }
    in->size = (uint64_t)st.st_size;
    return 0;
}

int input_read(const struct input *in, uint64_t offset, void *bytes, size_t n, char message[INPUT_MESSAGE_MAX])
{
    char *p = bytes;

    while (n > 0) {
        ssize_t got = pread(in->fd, p, n, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            snprintf(message, INPUT_MESSAGE_MAX, "%s: cannot read %zu bytes at offset %" PRIu64 ": %s", in->path, n,
                     offset, got < 0 ? strerror(errno) : "the file ends before");
            return -1;
        }
        p += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return 0;
}

void input_close(struct input *in)
{
    if (in->fd >= 0)
        close(in->fd);
    in->fd = -1;
}
