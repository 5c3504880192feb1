#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "tools/aside.h"
#include "tools/progress.h"

/* renameat2, which older C libraries do not have. */
#define RENAME_TO_NEW  1u
#define RENAME_TO_SWAP 2u

void aside_name(const char *command, const char *to, char folder[PATH_MAX], char out[ASIDE_ROOM])
{
    char copy[PATH_MAX];

    snprintf(copy, sizeof copy, "%s", to);
    snprintf(folder, PATH_MAX, "%s", dirname(copy));
    snprintf(out, ASIDE_ROOM, "%s/.deltafs-%s.%ld.%.6f", folder, command, (long)getpid(), progress_now());
}

static int aside_rename(const char *from, const char *to, unsigned flags)
{
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
}

/* On file systems that cannot do this in one step, a hard link ensures that nothing is replaced; a folder never
 * replaces one that is not empty. */
int aside_put_new(const char *aside, const char *to, int is_folder)
{
    if (aside_rename(aside, to, RENAME_TO_NEW) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (is_folder)
        return rename(aside, to);
    return link(aside, to) == 0 ? unlink(aside) : -1;
}

int aside_exchange(const char *aside, const char *to)
{
    return aside_rename(aside, to, RENAME_TO_SWAP);
}

/* There are file systems that do not sync folders, and folders that may be written but not read. */
int aside_sync(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), failed = 0;

    if (fd < 0)
        return 0;
    if (fsync(fd) != 0 && errno != EINVAL && errno != EROFS)
        failed = errno;
    close(fd);
    errno = failed;
    return failed ? -1 : 0;
}
