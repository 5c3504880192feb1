#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "namespace/own_table.h"
#include "unit_namespace.h"

int setup_unsynced(void **state)
{
    int rc = unit_setup(state);

    setenv("DELTAFS_SYNC", "none", 1);
    return rc;
}

int try_open(const char *path, int flags, const char *memory, deltafs_namespace **out)
{
    deltafs_options *o = unit_options("memory", memory, "threads", "0", NULL);
    int status = deltafs_namespace_open(path, flags, o, out);

    deltafs_options_destroy(o);
    return status;
}

deltafs_namespace *open_ns(const char *path, int flags)
{
    deltafs_namespace *ns = NULL;

    CHECK_IS(try_open(path, flags, "32M", &ns), DELTAFS_OK);
    return ns;
}

deltafs_namespace *new_ns(const char *name)
{
    return open_ns(unit_path("%s", name), O_RDWR | O_CREAT | O_EXCL);
}

deltafs_namespace *new_ns_without_journals(const char *name)
{
    const char *head = unit_path("%s/NAMESPACE", name);
    size_t n;

    close_ns(new_ns(name));
    uint8_t *text = unit_load(head, &n), *line = (uint8_t *)memchr(text, '\n', n) + 1;
    const uint8_t *end = (const uint8_t *)memchr(line, '\n', n) + 1;
    CHECK(memcmp(line, "Journals ", 9) == 0);
    memmove(line, end, (size_t)(text + n - end));
    unit_save(head, text, n - (size_t)(end - line));
    free(text);
    return open_ns(unit_path("%s", name), O_RDWR);
}

void close_ns(deltafs_namespace *ns)
{
    CHECK_IS(deltafs_namespace_close(ns), DELTAFS_OK);
}

const char *named(const char *name)
{
    return unit_path("registry@%s", name);
}

struct deltafs_namespace_stat stat_of(deltafs_namespace *ns, const char *path)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};

    CHECK_IS(deltafs_namespace_stat(ns, path, AT_SYMLINK_NOFOLLOW, &s), DELTAFS_OK);
    return s;
}

int has(deltafs_namespace *ns, const char *path)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    int status = deltafs_namespace_stat(ns, path, 0, &s);

    CHECK(status == DELTAFS_OK || status == DELTAFS_ERR_NOT_FOUND);
    return status == DELTAFS_OK;
}

void put_file(deltafs_namespace *ns, const char *path, const char *text)
{
    deltafs_namespace_file *f;

    CHECK_IS(deltafs_namespace_file_open(ns, path, O_WRONLY | O_CREAT | O_TRUNC, 0644, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_write(f, 0, text, strlen(text)), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
}

void check_file(deltafs_namespace *ns, const char *path, const char *text)
{
    char bytes[256] = "";
    deltafs_namespace_file *f;
    size_t got;

    CHECK_IS(deltafs_namespace_file_open(ns, path, O_RDONLY, 0, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_read(f, 0, bytes, sizeof bytes - 1, &got), DELTAFS_OK);
    assert_string_equal(bytes, text);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
}

/* The names in a folder, sorted. */
const char *list_names(deltafs_namespace *ns, const char *path)
{
    static char text[512];
    const struct deltafs_namespace_entry *entry;
    deltafs_namespace_list *l;
    char name[64][16];
    size_t n = 0;

    CHECK_IS(deltafs_namespace_list_open(ns, path, &l), DELTAFS_OK);
    for (;;) {
        CHECK_IS(deltafs_namespace_list_next(l, &entry), DELTAFS_OK);
        if (!entry)
            break;
        CHECK(n < 64 && strlen(entry->name) < 16);
        strcpy(name[n++], entry->name);
    }
    CHECK_IS(deltafs_namespace_list_close(l), DELTAFS_OK);
    qsort(name, n, sizeof name[0], (int (*)(const void *, const void *))strcmp);
    text[0] = '\0';
    for (size_t i = 0; i < n; i++)
        strcat(strcat(text, i > 0 ? " " : ""), name[i]);
    return text;
}

unsigned count_names(const char *path, const char *begin)
{
    DIR *d = opendir(path);
    const struct dirent *e;
    unsigned n = 0;

    assert_non_null(d);
    while ((e = readdir(d)))
        n += strncmp(e->d_name, begin, strlen(begin)) == 0;
    closedir(d);
    return n;
}

/* The tables that a namespace has; the name of one of them. */
unsigned count_tables(const char *path, char name[32])
{
    DIR *d = opendir(path);
    const struct dirent *e;
    unsigned n = 0;

    assert_non_null(d);
    while ((e = readdir(d)))
        if (strlen(e->d_name) == 17) {
            snprintf(name, 32, "%.31s", e->d_name);
            n++;
        }
    closedir(d);
    return n;
}

void make_epochs(const char *path)
{
    struct io io = io_default();
    char name[PATH_ROOM];
    uint64_t *number;
    size_t count;
    struct error e;

    CHECK_IS(tables_list(&io, path, &number, &count, &e), DELTAFS_OK);
    for (size_t i = 0; i < count; i++)
        if (access(table_path(name, path, number[i], TABLE_JOURNAL), F_OK) == 0)
            CHECK_IS(own_table_recover(&io, path, number[i], NULL, &e), DELTAFS_OK);
    free(number);
}

void remove_leases(const char *path)
{
    DIR *d = opendir(path);
    const struct dirent *entry;

    assert_non_null(d);
    while ((entry = readdir(d)))
        if (strncmp(entry->d_name, "VIEW.", 5) == 0)
            CHECK_IS(unlinkat(dirfd(d), entry->d_name, 0), 0);
    closedir(d);
}

noreturn void die(void)
{
    kill(getpid(), SIGKILL);
    abort();
}

int has_died(int ended)
{
    return WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL;
}
