/* Programs and libraries that are files of a mount. The kernel and the loader do not find them there, so they get a
 * copy of the file in a memfd. */
#ifndef DELTAFS_POSIX_PROGRAM_H
#define DELTAFS_POSIX_PROGRAM_H

/* As execveat(2), with an environment that is ready. */
int program_execute(int folder, const char *path, char *const arguments[], char *const environment[], int flags);
/* Whether a path leads into a mount. */
int program_is_inside(const char *path);
/* A descriptor of a copy of the file at `path`, which is closed on exec; -1 with errno. */
int program_copy(const char *path);

#endif
