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

/* Returns -1 with errno. */
int execute(const struct execution *e);

#endif
