/* Mounts of "deltafs run": POINT=TARGET of --mount and --particles. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <deltafs/deltafs_namespace.h>
#include <deltafs/deltafs_pool.h>
#include "tools/cmd.h"
#include "tools/run_parts.h"
#include "tools/target.h"
#include "tools/text.h"

/* ---- The text ---- */

/* Copy the `n` bytes of a POINT without '/' that are not needed, and without ".". */
static const char *take_point(const char *text, size_t n, char out[static PATH_MAX])
{
    size_t used = 0;

    if (*text != '/')
        return "is no POINT=TARGET with an absolute path POINT; $PWD/NAME is the path of NAME in the working folder";
    if (n >= PATH_MAX)
        return "has a POINT that is too long";
    for (size_t size; n > 0; text += size, n -= size) {
        size = 1 + strcspn(text + 1, "/=");
        if (size == 3 && memcmp(text, "/..", size) == 0)
            return "has '..' in its POINT; give the path without it";
        if (size > 1 && !(size == 2 && text[1] == '.')) {
            memcpy(out + used, text, size);
            used += size;
        }
    }
    out[used] = '\0';
    return used > 0 ? NULL : "has the root as its POINT; give a path below it";
}

static const char *parse(const char *text, struct run *r, int is_particles)
{
    struct run_mount *m = &r->mount[r->count];
    const char *equals = strchr(text, '=');

    if (r->count == RUN_MOUNTS_MAX)
        return "is one too many; 16 can be given";
    if (!equals)
        return "has no '='; give POINT=TARGET";
    if (strchr(text, '|'))
        return "has a '|', which cannot be in these paths; use a symbolic link with another name as the TARGET";
    const char *target = text_path(equals + 1);
    if (*target == '\0')
        return "has no TARGET behind the '='";
    if (strlen(target) >= PATH_MAX)
        return "has a TARGET that is too long";
    r->count++;
    m->is_particles = is_particles;
    m->is_snapshot = !is_particles && target_is_snapshot(target);
    if (!is_particles && !m->is_snapshot && strchr(target, '@'))
        return "has a TARGET with a '@', as snapshots have; use a symbolic link with another name";
    snprintf(m->target, sizeof m->target, "%s", target);
    return take_point(text, (size_t)(equals - text), m->point);
}

const char *run_parse_mount(const char *text, void *run)
{
    return parse(text, run, 0);
}

const char *run_parse_particles(const char *text, void *run)
{
    return parse(text, run, 1);
}

const char *run_parse_pool(const char *text, void *run)
{
    struct run *r = run;
    struct run_mount *m = &r->mount[r->count];

    if (r->count == RUN_MOUNTS_MAX)
        return "is one too many; 16 can be given";
    if (strpbrk(text, "=|"))
        return "has a '=' or a '|'; give the mount point of the pool's servers";
    const char *wrong = take_point(text, strlen(text), m->point);
    if (wrong)
        return wrong;
    r->count++;
    m->is_pool = 1;
    memcpy(m->target, m->point, sizeof m->target);
    return NULL;
}

/* ---- Other names of mount points ---- */

/* The path of a mount point by which the kernel names the folders above it. Relative paths begin with these. */
static int resolve_point(const char *point, char out[static PATH_MAX])
{
    char above[PATH_MAX], real[PATH_MAX] = "";
    size_t n = strlen(point);

    memcpy(above, point, n + 1);
    do
        *strrchr(above, '/') = '\0';
    while (*above && !realpath(above, real));
    n = strlen(above);
    if (strcmp(real, "/") == 0 || n == 0)
        *real = '\0';
    return snprintf(out, PATH_MAX, "%s%s", real, point + n) < PATH_MAX
               ? EXIT_OK
               : text_fail(EXIT_TROUBLE, "run: the path is too long: %s%s", real, point + n);
}

/* If it has another path, mount the target there, too. */
static int add_name(struct run *r, const struct run_mount *m)
{
    struct run_mount *other = &r->mount[r->count];
    char point[PATH_MAX];
    int code = resolve_point(m->point, point);

    if (code != EXIT_OK || strcmp(point, m->point) == 0)
        return code;
    if (r->count == RUN_MOUNTS_MAX)
        return text_fail(EXIT_USAGE, "run: too many mount points; do not give %s by a path with a symbolic link",
                         m->point);
    *other = *m;
    memcpy(other->point, point, sizeof point);
    r->count++;
    return EXIT_OK;
}

/* ---- Targets ---- */

static int make_absolute(char path[static PATH_MAX])
{
    char here[PATH_MAX], whole[PATH_MAX];
    const char *folder = *path == '/' ? "" : getcwd(here, sizeof here);

    if (!folder)
        return text_fail(EXIT_TROUBLE, "run: the working folder has no path: %s", strerror(errno));
    if (snprintf(whole, sizeof whole, "%s%s%s", folder, *folder ? "/" : "", path) >= (int)sizeof whole)
        return text_fail(EXIT_TROUBLE, "run: the path is too long: %s/%s", folder, path);
    memcpy(path, whole, sizeof whole);
    return EXIT_OK;
}

/* REG@NAME, where REG may be several folders, or come from the environment, becomes the path of that one which has it.
 */
static int find_snapshot(struct run_mount *m)
{
    struct deltafs_snapshot_stat st = {.struct_size = sizeof st};
    deltafs_snapshot *s;
    int status = deltafs_snapshot_open(m->target, &s);

    if (status != DELTAFS_OK)
        return text_of_call(status);
    status = deltafs_snapshot_stat(s, &st);
    int n = status == DELTAFS_OK ? snprintf(m->target, sizeof m->target, "%s", st.path) : 0;
    deltafs_snapshot_close(s);
    if (status != DELTAFS_OK)
        return text_of_call(status);
    if (n >= (int)sizeof m->target)
        return text_fail(EXIT_TROUBLE, "run: the path is too long: %s", m->target);
    int code = make_absolute(m->target);
    *strrchr(m->target, '/') = '@';
    return code;
}

/* The target without links. Its last name may be of something that does not exist yet. */
static int resolve(const struct run_mount *m, char out[static PATH_MAX])
{
    char folder[PATH_MAX];
    size_t n = strlen(m->target);

    if (realpath(m->target, out))
        return EXIT_OK;
    snprintf(folder, sizeof folder, "%s", m->target);
    while (n > 1 && folder[n - 1] == '/')
        folder[--n] = '\0';
    char *name = strrchr(folder, m->is_snapshot ? '@' : '/');
    *name++ = '\0';
    if (!realpath(*folder ? folder : "/", out))
        return text_fail(EXIT_TROUBLE, "run: %s: the folder %s cannot be found: %s", m->target, folder,
                         strerror(errno));
    n = strlen(out);
    if (snprintf(out + n, PATH_MAX - n, "/%s", name) >= (int)(PATH_MAX - n))
        return text_fail(EXIT_TROUBLE, "run: the path is too long: %s", m->target);
    return EXIT_OK;
}

/* ---- Checks ---- */

static int is_within(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static int check_points(const struct run_mount *m, const struct run_mount *other)
{
    if (m != other && strcmp(m->point, other->point) == 0)
        return text_fail(EXIT_USAGE, "run: %s is the mount point of two; each needs one of its own", m->point);
    if (m != other && is_within(m->point, other->point))
        return text_fail(EXIT_USAGE, "run: %s lies within %s; mount points must lie side by side", m->point,
                         other->point);
    return EXIT_OK;
}

/* A target is a folder of the system, which must not be reached through a mount. */
static int check_target(const struct run_mount *m, const struct run_mount *other)
{
    char real[PATH_MAX];
    int code = m->is_pool ? EXIT_OK : resolve(m, real);

    if (m->is_pool)
        return EXIT_OK;

    if (code != EXIT_OK)
        return code;
    if (is_within(m->target, other->point) || is_within(real, other->point))
        return text_fail(EXIT_USAGE, "run: %s would be hidden by the mount point %s; choose another mount point",
                         m->target, other->point);
    if (is_within(other->point, m->target) || is_within(other->point, real))
        return text_fail(EXIT_USAGE, "run: %s would hide a part of %s; choose another mount point", other->point,
                         m->target);
    return EXIT_OK;
}

static int check_pairs(const struct run *r, int (*check)(const struct run_mount *mount, const struct run_mount *other))
{
    int code = EXIT_OK;

    for (size_t i = 0; i < r->count * r->count && code == EXIT_OK; i++)
        code = check(&r->mount[i / r->count], &r->mount[i % r->count]);
    return code;
}

int run_prepare_mounts(struct run *r)
{
    int code = EXIT_OK;

    r->given = r->count;
    for (size_t i = 0; i < r->given && code == EXIT_OK; i++)
        code = r->mount[i].is_pool       ? EXIT_OK
               : r->mount[i].is_snapshot ? find_snapshot(&r->mount[i])
                                         : make_absolute(r->mount[i].target);
    for (size_t i = 0; i < r->given && code == EXIT_OK; i++)
        code = add_name(r, &r->mount[i]);
    if (code == EXIT_OK)
        code = check_pairs(r, check_points);
    return code == EXIT_OK ? check_pairs(r, check_target) : code;
}

/* ---- Creating ---- */

/* One that exists is left as it is: the program opens it. */
static int create_namespace(const char *path)
{
    deltafs_namespace *ns;

    if (target_is_namespace(path))
        return EXIT_OK;
    int status = deltafs_namespace_open(path, O_RDWR | O_CREAT, NULL, &ns);
    return text_of_call(status == DELTAFS_OK ? deltafs_namespace_close(ns) : status);
}

/* Whether a folder can be made at a path. */
static int check_above(const char *path)
{
    char above[PATH_MAX];

    snprintf(above, sizeof above, "%s", path);
    const char *folder = dirname(above);
    if (access(folder, W_OK) == 0)
        return EXIT_OK;
    return text_fail(EXIT_TROUBLE, "run: %s cannot be created: %s: %s", path, folder, strerror(errno));
}

/* Error bounds of the directory's own schema may be left out. */
static int is_same_schema(const char *given, const char *own)
{
    for (;; given++, own++) {
        if (*own == '~' && *given != '~')
            own += strcspn(own, ",");
        if (*given != *own || *own == '\0')
            return *given == *own;
    }
}

/* A directory of particles is created when the first epoch ends, and one that exists may be here only to be read. So
 * this finds what can be known before the program runs. */
static int check_directory(const char *path, const deltafs_options *options)
{
    struct deltafs_stat st = {.struct_size = sizeof st};
    const struct timespec pause = {.tv_nsec = 200000000};
    const char *schema = cmd_option(options, "schema");
    deltafs_dir *dir;
    int code = EXIT_OK;

    if (access(path, F_OK) != 0 && errno == ENOENT)
        return check_above(path);
    int status = deltafs_open(path, NULL, &dir);
    if (status == DELTAFS_ERR_NOT_DELTAFS) { /* another process may be creating it */
        nanosleep(&pause, NULL);
        status = deltafs_open(path, NULL, &dir);
    }
    if (status != DELTAFS_OK)
        return text_fail(EXIT_TROUBLE, "run: %s", deltafs_errmsg(NULL));
    if (*schema && deltafs_stat(dir, &st) == DELTAFS_OK && !is_same_schema(schema, st.schema))
        code = text_fail(EXIT_TROUBLE, "run: the schema is '%s', but %s was made with '%s'; use another directory",
                         schema, path, st.schema);
    deltafs_close(dir);
    return code;
}

static int find_pool(const char *point)
{
    deltafs_pool *pool = NULL;
    int code = text_of_call(deltafs_pool_open(point, &pool));

    deltafs_pool_close(pool);
    return code;
}

int run_create_namespaces(const struct run *r, const deltafs_options *options)
{
    int code = EXIT_OK;

    for (size_t i = 0; i < r->given && code == EXIT_OK; i++)
        if (r->mount[i].is_particles)
            code = check_directory(r->mount[i].target, options);
        else if (r->mount[i].is_pool)
            code = find_pool(r->mount[i].point);
    for (size_t i = 0; i < r->given && code == EXIT_OK; i++)
        if (!r->mount[i].is_particles && !r->mount[i].is_pool && !r->mount[i].is_snapshot)
            code = create_namespace(r->mount[i].target);
    return code;
}
