/* The functions of libdeltafs. It is loaded when the first of them is called: most programs of a run, such as shells
 * and launchers, use no mount, and loading it costs more than they do; it also brings the libraries that it needs,
 * which may not be those that the program was built with. */
#ifndef DELTAFS_POSIX_LIBRARY_H
#define DELTAFS_POSIX_LIBRARY_H

#include <limits.h>
#include <deltafs/deltafs.h>
#include <deltafs/deltafs_logical.h>
#include <deltafs/deltafs_namespace.h>
#include <deltafs/deltafs_pool.h>

/* Each has a macro below of its name, so that calls look as they do elsewhere. */
#define LIBRARY_FUNCTIONS(X)                                                                                           \
    X(deltafs_append_bytes)                                                                                            \
    X(deltafs_append_many)                                                                                             \
    X(deltafs_close)                                                                                                   \
    X(deltafs_create)                                                                                                  \
    X(deltafs_epoch_cancel)                                                                                            \
    X(deltafs_epoch_end)                                                                                               \
    X(deltafs_errmsg)                                                                                                  \
    X(deltafs_get)                                                                                                     \
    X(deltafs_get_bytes)                                                                                               \
    X(deltafs_last_label)                                                                                              \
    X(deltafs_logical_close)                                                                                           \
    X(deltafs_logical_extend)                                                                                          \
    X(deltafs_logical_open)                                                                                            \
    X(deltafs_logical_read)                                                                                            \
    X(deltafs_logical_remove)                                                                                          \
    X(deltafs_logical_size)                                                                                            \
    X(deltafs_logical_truncate)                                                                                        \
    X(deltafs_logical_write)                                                                                           \
    X(deltafs_namespace_close)                                                                                         \
    X(deltafs_namespace_commit)                                                                                        \
    X(deltafs_namespace_errno)                                                                                         \
    X(deltafs_namespace_file_close)                                                                                    \
    X(deltafs_namespace_file_open)                                                                                     \
    X(deltafs_namespace_file_read)                                                                                     \
    X(deltafs_namespace_file_stat)                                                                                     \
    X(deltafs_namespace_file_truncate)                                                                                 \
    X(deltafs_namespace_file_write)                                                                                    \
    X(deltafs_namespace_list_close)                                                                                    \
    X(deltafs_namespace_list_next)                                                                                     \
    X(deltafs_namespace_list_open)                                                                                     \
    X(deltafs_namespace_mkdir)                                                                                         \
    X(deltafs_namespace_open)                                                                                          \
    X(deltafs_namespace_readlink)                                                                                      \
    X(deltafs_namespace_refresh)                                                                                       \
    X(deltafs_namespace_rename)                                                                                        \
    X(deltafs_namespace_rmdir)                                                                                         \
    X(deltafs_namespace_set_attributes)                                                                                \
    X(deltafs_namespace_stat)                                                                                          \
    X(deltafs_namespace_symlink)                                                                                       \
    X(deltafs_namespace_truncate)                                                                                      \
    X(deltafs_namespace_unlink)                                                                                        \
    X(deltafs_open)                                                                                                    \
    X(deltafs_options_create)                                                                                          \
    X(deltafs_options_destroy)                                                                                         \
    X(deltafs_options_get)                                                                                             \
    X(deltafs_options_set)                                                                                             \
    X(deltafs_pool_file_append)                                                                                        \
    X(deltafs_pool_file_close)                                                                                         \
    X(deltafs_pool_file_extend)                                                                                        \
    X(deltafs_pool_file_find_lock)                                                                                     \
    X(deltafs_pool_file_lock)                                                                                          \
    X(deltafs_pool_file_open)                                                                                          \
    X(deltafs_pool_file_read)                                                                                          \
    X(deltafs_pool_file_stat_opened)                                                                                   \
    X(deltafs_pool_file_stat)                                                                                          \
    X(deltafs_pool_file_truncate)                                                                                      \
    X(deltafs_pool_file_write)                                                                                         \
    X(deltafs_pool_list_close)                                                                                         \
    X(deltafs_pool_list_next)                                                                                          \
    X(deltafs_pool_list_open)                                                                                          \
    X(deltafs_pool_mkdir)                                                                                              \
    X(deltafs_pool_open)                                                                                               \
    X(deltafs_pool_readlink)                                                                                           \
    X(deltafs_pool_rename)                                                                                             \
    X(deltafs_pool_rmdir)                                                                                              \
    X(deltafs_pool_servers)                                                                                            \
    X(deltafs_pool_set_attributes)                                                                                     \
    X(deltafs_pool_stat)                                                                                               \
    X(deltafs_pool_status)                                                                                             \
    X(deltafs_pool_symlink)                                                                                            \
    X(deltafs_pool_truncate)                                                                                           \
    X(deltafs_pool_unlink)                                                                                             \
    X(deltafs_records_destroy)                                                                                         \
    X(deltafs_refresh)                                                                                                 \
    X(deltafs_reopen)                                                                                                  \
    X(deltafs_scan)                                                                                                    \
    X(deltafs_schema_destroy)                                                                                          \
    X(deltafs_schema_parse)                                                                                            \
    X(deltafs_schema_size)                                                                                             \
    X(deltafs_stat)                                                                                                    \
    X(deltafs_strerror)

struct library {
#define LIBRARY_MEMBER(name) __typeof(name) *name;
    LIBRARY_FUNCTIONS(LIBRARY_MEMBER)
#undef LIBRARY_MEMBER
};

/* Those functions. If libdeltafs cannot be loaded, this says so and ends the process with status 127. */
const struct library *library(void);
/* The path of a file beside this library. Returns whether it is short enough. */
int library_path(const char *name, char out[static PATH_MAX]);

/* Whether a function was called by libdeltafs: `from` is where it returns to. */
int library_is_caller(const void *from);

#define deltafs_append_bytes(...)             library()->deltafs_append_bytes(__VA_ARGS__)
#define deltafs_append_many(...)              library()->deltafs_append_many(__VA_ARGS__)
#define deltafs_close(...)                    library()->deltafs_close(__VA_ARGS__)
#define deltafs_create(...)                   library()->deltafs_create(__VA_ARGS__)
#define deltafs_epoch_cancel(...)             library()->deltafs_epoch_cancel(__VA_ARGS__)
#define deltafs_epoch_end(...)                library()->deltafs_epoch_end(__VA_ARGS__)
#define deltafs_errmsg(...)                   library()->deltafs_errmsg(__VA_ARGS__)
#define deltafs_get(...)                      library()->deltafs_get(__VA_ARGS__)
#define deltafs_get_bytes(...)                library()->deltafs_get_bytes(__VA_ARGS__)
#define deltafs_last_label(...)               library()->deltafs_last_label(__VA_ARGS__)
#define deltafs_logical_close(...)            library()->deltafs_logical_close(__VA_ARGS__)
#define deltafs_logical_extend(...)           library()->deltafs_logical_extend(__VA_ARGS__)
#define deltafs_logical_open(...)             library()->deltafs_logical_open(__VA_ARGS__)
#define deltafs_logical_read(...)             library()->deltafs_logical_read(__VA_ARGS__)
#define deltafs_logical_remove(...)           library()->deltafs_logical_remove(__VA_ARGS__)
#define deltafs_logical_size(...)             library()->deltafs_logical_size(__VA_ARGS__)
#define deltafs_logical_truncate(...)         library()->deltafs_logical_truncate(__VA_ARGS__)
#define deltafs_logical_write(...)            library()->deltafs_logical_write(__VA_ARGS__)
#define deltafs_namespace_close(...)          library()->deltafs_namespace_close(__VA_ARGS__)
#define deltafs_namespace_commit(...)         library()->deltafs_namespace_commit(__VA_ARGS__)
#define deltafs_namespace_errno(...)          library()->deltafs_namespace_errno(__VA_ARGS__)
#define deltafs_namespace_file_close(...)     library()->deltafs_namespace_file_close(__VA_ARGS__)
#define deltafs_namespace_file_open(...)      library()->deltafs_namespace_file_open(__VA_ARGS__)
#define deltafs_namespace_file_read(...)      library()->deltafs_namespace_file_read(__VA_ARGS__)
#define deltafs_namespace_file_stat(...)      library()->deltafs_namespace_file_stat(__VA_ARGS__)
#define deltafs_namespace_file_truncate(...)  library()->deltafs_namespace_file_truncate(__VA_ARGS__)
#define deltafs_namespace_file_write(...)     library()->deltafs_namespace_file_write(__VA_ARGS__)
#define deltafs_namespace_list_close(...)     library()->deltafs_namespace_list_close(__VA_ARGS__)
#define deltafs_namespace_list_next(...)      library()->deltafs_namespace_list_next(__VA_ARGS__)
#define deltafs_namespace_list_open(...)      library()->deltafs_namespace_list_open(__VA_ARGS__)
#define deltafs_namespace_mkdir(...)          library()->deltafs_namespace_mkdir(__VA_ARGS__)
#define deltafs_namespace_open(...)           library()->deltafs_namespace_open(__VA_ARGS__)
#define deltafs_namespace_readlink(...)       library()->deltafs_namespace_readlink(__VA_ARGS__)
#define deltafs_namespace_refresh(...)        library()->deltafs_namespace_refresh(__VA_ARGS__)
#define deltafs_namespace_rename(...)         library()->deltafs_namespace_rename(__VA_ARGS__)
#define deltafs_namespace_rmdir(...)          library()->deltafs_namespace_rmdir(__VA_ARGS__)
#define deltafs_namespace_set_attributes(...) library()->deltafs_namespace_set_attributes(__VA_ARGS__)
#define deltafs_namespace_stat(...)           library()->deltafs_namespace_stat(__VA_ARGS__)
#define deltafs_namespace_symlink(...)        library()->deltafs_namespace_symlink(__VA_ARGS__)
#define deltafs_namespace_truncate(...)       library()->deltafs_namespace_truncate(__VA_ARGS__)
#define deltafs_namespace_unlink(...)         library()->deltafs_namespace_unlink(__VA_ARGS__)
#define deltafs_open(...)                     library()->deltafs_open(__VA_ARGS__)
#define deltafs_options_create(...)           library()->deltafs_options_create(__VA_ARGS__)
#define deltafs_options_destroy(...)          library()->deltafs_options_destroy(__VA_ARGS__)
#define deltafs_options_get(...)              library()->deltafs_options_get(__VA_ARGS__)
#define deltafs_options_set(...)              library()->deltafs_options_set(__VA_ARGS__)
#define deltafs_pool_file_append(...)         library()->deltafs_pool_file_append(__VA_ARGS__)
#define deltafs_pool_file_close(...)          library()->deltafs_pool_file_close(__VA_ARGS__)
#define deltafs_pool_file_extend(...)         library()->deltafs_pool_file_extend(__VA_ARGS__)
#define deltafs_pool_file_find_lock(...)      library()->deltafs_pool_file_find_lock(__VA_ARGS__)
#define deltafs_pool_file_lock(...)           library()->deltafs_pool_file_lock(__VA_ARGS__)
#define deltafs_pool_file_open(...)           library()->deltafs_pool_file_open(__VA_ARGS__)
#define deltafs_pool_file_read(...)           library()->deltafs_pool_file_read(__VA_ARGS__)
#define deltafs_pool_file_stat(...)           library()->deltafs_pool_file_stat(__VA_ARGS__)
#define deltafs_pool_file_stat_opened(...)    library()->deltafs_pool_file_stat_opened(__VA_ARGS__)
#define deltafs_pool_file_truncate(...)       library()->deltafs_pool_file_truncate(__VA_ARGS__)
#define deltafs_pool_file_write(...)          library()->deltafs_pool_file_write(__VA_ARGS__)
#define deltafs_pool_list_close(...)          library()->deltafs_pool_list_close(__VA_ARGS__)
#define deltafs_pool_list_next(...)           library()->deltafs_pool_list_next(__VA_ARGS__)
#define deltafs_pool_list_open(...)           library()->deltafs_pool_list_open(__VA_ARGS__)
#define deltafs_pool_mkdir(...)               library()->deltafs_pool_mkdir(__VA_ARGS__)
#define deltafs_pool_open(...)                library()->deltafs_pool_open(__VA_ARGS__)
#define deltafs_pool_readlink(...)            library()->deltafs_pool_readlink(__VA_ARGS__)
#define deltafs_pool_rename(...)              library()->deltafs_pool_rename(__VA_ARGS__)
#define deltafs_pool_rmdir(...)               library()->deltafs_pool_rmdir(__VA_ARGS__)
#define deltafs_pool_servers(...)             library()->deltafs_pool_servers(__VA_ARGS__)
#define deltafs_pool_set_attributes(...)      library()->deltafs_pool_set_attributes(__VA_ARGS__)
#define deltafs_pool_stat(...)                library()->deltafs_pool_stat(__VA_ARGS__)
#define deltafs_pool_status(...)              library()->deltafs_pool_status(__VA_ARGS__)
#define deltafs_pool_symlink(...)             library()->deltafs_pool_symlink(__VA_ARGS__)
#define deltafs_pool_truncate(...)            library()->deltafs_pool_truncate(__VA_ARGS__)
#define deltafs_pool_unlink(...)              library()->deltafs_pool_unlink(__VA_ARGS__)
#define deltafs_records_destroy(...)          library()->deltafs_records_destroy(__VA_ARGS__)
#define deltafs_refresh(...)                  library()->deltafs_refresh(__VA_ARGS__)
#define deltafs_reopen(...)                   library()->deltafs_reopen(__VA_ARGS__)
#define deltafs_scan(...)                     library()->deltafs_scan(__VA_ARGS__)
#define deltafs_schema_destroy(...)           library()->deltafs_schema_destroy(__VA_ARGS__)
#define deltafs_schema_parse(...)             library()->deltafs_schema_parse(__VA_ARGS__)
#define deltafs_schema_size(...)              library()->deltafs_schema_size(__VA_ARGS__)
#define deltafs_stat(...)                     library()->deltafs_stat(__VA_ARGS__)
#define deltafs_strerror(...)                 library()->deltafs_strerror(__VA_ARGS__)

#endif
