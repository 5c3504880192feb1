/* What calls of exec have in common. */
#ifndef DELTAFS_POSIX_EXECUTE_H
#define DELTAFS_POSIX_EXECUTE_H

struct execution {
    int folder;
    const char *path;
    char *const *arguments;
    char *const *environment;
    int flags;       /* of execveat */
    int is_searched; /* `path` is a name, which is searched for in PATH */
};

/* Whether this is the process, and not a child that was begun without the C library, by clone, or by a handler in the
 * middle of a call of this library: that has nothing of its own to publish, and may even share its parent's memory. */
int process_is_whole(void);
/* Returns -1 with errno. */
int execute(const struct execution *e);

#endif
