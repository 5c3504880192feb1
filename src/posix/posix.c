#include "posix/posix.h"
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "posix/locks.h"
#include "posix/next.h"

#define SAID_MAX 16 /* different messages of a process */

int posix_result(int error)
{
    if (error == 0)
        return 0;
    errno = error;
    return -1;
}

static void write_line(char *text)
{
    struct iovec piece[] = {{"deltafs: ", 9}, {text, strlen(text)}, {"\n", 1}};

    next.writev(STDERR_FILENO, piece, 3);
}

static pthread_mutex_t saying = LOCK_INITIALIZER;
pthread_mutex_t *const lock_of_messages = &saying;

void posix_say(const char *format, ...)
{
    static char *said[SAID_MAX];
    char text[PATH_MAX + 512];
    int kept = errno, i = 0;
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    lock_take(&saying);
    while (i < SAID_MAX && said[i] && strcmp(said[i], text) != 0)
        i++;
    if (i < SAID_MAX && !said[i]) {
        said[i] = strdup(text);
        write_line(text);
    }
    lock_give(&saying);
    errno = kept;
}
