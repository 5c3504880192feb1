/* deltafs doctor: whether this installation fits together and would be found, and the commands that repair it. */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <deltafs/deltafs_fileindex.h>
#include "tools/cmd.h"
#include "tools/installed.h"

#define LOAD_SECONDS 20
#define ANSWER_ROOM  8192 /* at least MPI_MAX_LIBRARY_VERSION_STRING of any MPI */

enum mpi { MPI_NONE, MPI_MPICH, MPI_OPEN, MPI_UNKNOWN };
static const char *const mpi_name[] = {"none", "MPICH", "Open MPI", "an MPI that is not known"};

struct doctor {
    char libraries[PATH_MAX], programs[PATH_MAX], folder[PATH_MAX]; /* `folder`: of what was found last */
    char mpi_library[PATH_MAX], mpi_text[ANSWER_ROOM];              /* the line in which the MPI names itself */
    enum mpi mpi;                                                   /* of this build */
    int problems;
};

/* ---- Printing ---- */

static void say_problem(struct doctor *d, const char *fix)
{
    d->problems++;
    text_say("  problem, solved by: %s", fix);
}

/* A variable that is a list lacks a folder, or has it too late. */
static void say_problem_list(struct doctor *d, const char *name, const char *folder)
{
    char fix[2 * PATH_MAX];
    const char *now = getenv(name);

    snprintf(fix, sizeof fix, "export %s=%s%s%s", name, folder, now && *now ? ":$" : "", now && *now ? name : "");
    say_problem(d, fix);
}

/* Whether a list such as PATH has this folder; an empty part is `empty`. */
static int list_has(const char *list, const char *folder, int empty)
{
    char part[PATH_MAX], real[PATH_MAX];

    for (size_t n; list; list = list[n] != '\0' ? list + n + 1 : NULL) {
        n = strcspn(list, ":");
        snprintf(part, sizeof part, "%.*s", n < sizeof part ? (int)n : 0, list);
        if (n == 0 ? empty : realpath(part, real) && strcmp(real, folder) == 0)
            return 1;
    }
    return 0;
}

/* ---- Programs ---- */

/* The first program of this name on the path, from *list on, which is moved behind it. */
static int find_program(const char **list, const char *name, char path[static PATH_MAX])
{
    while (*list) {
        size_t n = strcspn(*list, ":");
        int length = snprintf(path, PATH_MAX, "%.*s/%s", (int)n, *list, name);
        *list = (*list)[n] != '\0' ? *list + n + 1 : NULL;
        if (n > 0 && length < PATH_MAX && access(path, X_OK) == 0 && !strchr(path, '\''))
            return 1;
    }
    return 0;
}

static enum mpi mpi_of_text(const char *text)
{
    return strstr(text, "Open MPI") || strstr(text, "OpenRTE")                                      ? MPI_OPEN
           : strcasestr(text, "mpich") || strcasestr(text, "hydra") || strstr(text, "Intel(R) MPI") ? MPI_MPICH
                                                                                                    : MPI_UNKNOWN;
}

/* The MPI of a launcher or compiler, by what these commands of a shell print, in which it is $p. */
static enum mpi mpi_of_program(const char *path, const char *ask)
{
    char command[2 * PATH_MAX], answer[ANSWER_ROOM];

    snprintf(command, sizeof command, "exec 2>&1 </dev/null; p='%s'; %s", path, ask);
    FILE *f = popen(command, "r");
    size_t n = f ? fread(answer, 1, sizeof answer - 1, f) : 0;
    answer[n] = '\0';
    if (f)
        pclose(f);
    return mpi_of_text(answer);
}

/* A program of this build's MPI: of this name or with the ending that distributions give it, later on the path. */
static int find_fitting(const struct doctor *d, const char *name, const char *ask, char path[static PATH_MAX])
{
    char other[64];
    const char *list = getenv("PATH");

    snprintf(other, sizeof other, "%s.%s", name, d->mpi == MPI_OPEN ? "openmpi" : "mpich");
    if (find_program(&list, other, path))
        return 1;
    for (list = getenv("PATH"); find_program(&list, name, path);)
        if (mpi_of_program(path, ask) == d->mpi)
            return 1;
    snprintf(path, PATH_MAX, "%.*s/../bin/%s", PATH_MAX - 64, d->mpi_library, name);
    return *d->mpi_library != '\0' && access(path, X_OK) == 0;
}

/* The first of `name` on the path must be of the MPI of this build. */
static void check_program(struct doctor *d, const char *what, const char *name, const char *ask)
{
    char path[PATH_MAX], fix[2 * PATH_MAX], real[PATH_MAX];
    const char *list = getenv("PATH");
    int is_found = find_program(&list, name, path);
    enum mpi mpi = is_found ? mpi_of_program(path, ask) : MPI_NONE;

    text_say("%-15s %s, of %s", what, is_found ? path : name, is_found ? mpi_name[mpi] : "nothing: not on the PATH");
    if (mpi == d->mpi || mpi == MPI_UNKNOWN)
        return;
    const char *slash = find_fitting(d, name, ask, path) && realpath(path, real) ? strrchr(path, '/') : NULL;
    if (slash && strcmp(slash + 1, name) == 0)
        snprintf(fix, sizeof fix, "export PATH=%.*s:$PATH", (int)(slash - path), path);
    else if (slash)
        snprintf(fix, sizeof fix, "%s ...   in place of %s", path, name);
    else
        snprintf(fix, sizeof fix, "module load ...   with the %s that DeltaFS was built with, which has its %s",
                 mpi_name[d->mpi], name);
    say_problem(d, fix);
}

/* ---- Versions and variables ---- */

static void check_versions(struct doctor *d)
{
    text_say("program         %s, %s/deltafs", DELTAFS_VERSION, d->programs);
    text_say("library         %s, %s/libdeltafs.so.0", deltafs_version(), d->libraries);
    if (strcmp(DELTAFS_VERSION, deltafs_version()) != 0)
        say_problem(d, "unset LD_LIBRARY_PATH   and, if that does not help, install DeltaFS again");
}

static void check_path(struct doctor *d)
{
    char path[PATH_MAX], real[PATH_MAX];
    const char *list = getenv("PATH");
    int is_found = find_program(&list, "deltafs", path) && realpath(path, real);

    if (is_found)
        *strrchr(real, '/') = '\0';
    text_say("PATH            leads to %s", is_found ? path : "no deltafs");
    if (!is_found || strcmp(real, d->programs) != 0)
        say_problem_list(d, "PATH", d->programs);
}

/* Whether the loader's cache has the library: its folder is a default one. */
static int is_default_folder(const char *folder)
{
    char line[2 * PATH_MAX], wanted[2 * PATH_MAX];
    FILE *f = popen("PATH=$PATH:/sbin:/usr/sbin; ldconfig -p 2>/dev/null", "r");
    int is_found = 0;

    snprintf(wanted, sizeof wanted, "=> %s/libdeltafs.so.0\n", folder);
    while (f && fgets(line, sizeof line, f))
        is_found |= strstr(line, wanted) != NULL;
    if (f)
        pclose(f);
    return is_found;
}

static void check_library_path(struct doctor *d)
{
    int is_listed = list_has(getenv("LD_LIBRARY_PATH"), d->libraries, 0);

    text_say("LD_LIBRARY_PATH %s", is_listed ? "has the folder of the libraries" : "does not have the folder");
    if (!is_listed && !is_default_folder(d->libraries))
        say_problem_list(d, "LD_LIBRARY_PATH", d->libraries);
}

/* An empty part of MANPATH is the default, which follows from PATH. */
static void check_manual(struct doctor *d)
{
    char pages[PATH_MAX], path[2 * PATH_MAX];
    const char *list = getenv("MANPATH");

    snprintf(path, sizeof path, "%s/../share/man", d->programs);
    if (!realpath(path, pages))
        return;
    text_say("MANPATH         %s", list && *list ? list : "not set, so man follows PATH");
    if (list && *list && !list_has(list, pages, 1))
        say_problem_list(d, "MANPATH", pages);
}

/* ---- Drivers ---- */

struct driver {
    char version[64], mpi[64], why[1024]; /* of DeltaFS and of the MPI that it was built for; why it cannot be loaded */
};

static void driver_load(const char *path, struct driver *answer)
{
    void *library = dlopen(path, RTLD_NOW);
    const char *version = library ? dlsym(library, "deltafs_driver_version") : NULL;
    const char *mpi = library ? dlsym(library, "deltafs_driver_mpi") : NULL;

    if (!library)
        snprintf(answer->why, sizeof answer->why, "%s", dlerror());
    snprintf(answer->version, sizeof answer->version, "%s%s", version ? "version " : "another version",
             version ? version : "");
    snprintf(answer->mpi, sizeof answer->mpi, "%s", mpi ? mpi : "");
}

/* Load a driver in a process of its own: a damaged file may end that. MPI's handlers of signals would print a stack. */
static void driver_ask(const char *path, struct driver *answer)
{
    int ends[2] = {-1, -1};
    static const int fatal[] = {SIGABRT, SIGALRM, SIGBUS, SIGFPE, SIGILL, SIGSEGV};

    fflush(stdout); /* the child must not print it again */
    pid_t child = pipe(ends) == 0 ? fork() : -1;

    memset(answer, 0, sizeof *answer);
    if (child == 0) {
        for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
            signal(fatal[i], SIG_DFL);
        alarm(LOAD_SECONDS);
        driver_load(path, answer);
        _exit(write(ends[1], answer, sizeof *answer) != sizeof *answer);
    }
    if (child < 0)
        snprintf(answer->why, sizeof answer->why, "%s", strerror(errno));
    close(ends[1]);
    if (child > 0 && read(ends[0], answer, sizeof *answer) != sizeof *answer)
        snprintf(answer->why, sizeof answer->why, "it ends the process that loads it, or takes too long");
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
}

/* Whether a text has this version, and not just one that begins or ends like it. */
static int text_has_version(const char *text, const char *version)
{
    const char *at = strstr(text, version);
    size_t n = strlen(version);

    return at && n > 0 && (at == text || !isdigit((unsigned char)at[-1])) && at[n] != '.' &&
           !isalnum((unsigned char)at[n]);
}

/* A driver must load, and be of this version, and for this MPI unless `mpi` is NULL. */
static int check_driver(struct doctor *d, const char *name, const char *mpi, const char *fix)
{
    char path[2 * PATH_MAX];
    struct driver answer;

    snprintf(path, sizeof path, "%s/%s", d->folder, name);
    driver_ask(path, &answer);
    if (*answer.why)
        text_say("  %s cannot be loaded: %s", name, answer.why);
    else if (strcmp(answer.version, "version " DELTAFS_VERSION) != 0)
        text_say("  %s is of %s of DeltaFS, not of %s", name, answer.version, DELTAFS_VERSION);
    else if (mpi && !text_has_version(mpi, answer.mpi))
        text_say("  %s was built for version %s of the MPI", name, answer.mpi);
    else
        return 1;
    say_problem(d, fix);
    return 0;
}

/* ---- MPI ---- */

/* Ask the MPI that libdeltafs_mpi loads for its name. */
static void check_mpi_library(struct doctor *d)
{
    char path[2 * PATH_MAX], *answer = d->mpi_text;
    int length = 0;
    Dl_info at;

    snprintf(path, sizeof path, "%s/" INSTALLED_MPI, d->libraries);
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        text_say("MPI             cannot be loaded: %s", dlerror());
        say_problem(d,
                    "module load ...   with the MPI that DeltaFS was built with, or add its folder to LD_LIBRARY_PATH");
        return;
    }
    int (*version)(char *, int *) = (int (*)(char *, int *))dlsym(library, "MPI_Get_library_version");
    if (version)
        version(answer, &length);
    if (version && dladdr((void *)version, &at) != 0 && realpath(at.dli_fname, d->mpi_library))
        *strrchr(d->mpi_library, '/') = '\0';
    d->mpi = mpi_of_text(answer);
    answer[strcspn(answer, "\n")] = '\0';
    for (char *tab = answer; (tab = strchr(tab, '\t'));)
        *tab = ' ';
    text_say("MPI             %s: %s", mpi_name[d->mpi], answer);
}

static void check_mpi_drivers(struct doctor *d, int is_open)
{
    static const char *const component[] = {INSTALLED_COMPONENT, "mca_fbtl_deltafs.so", "mca_fcoll_deltafs.so"};
    char fix[3 * PATH_MAX];

    for (size_t i = 0; is_open && i < sizeof component / sizeof *component; i++)
        if (!check_driver(d, component[i], d->mpi_text, "make install   in the folder in which DeltaFS was built"))
            return;
    snprintf(fix, sizeof fix, "rm %s/" INSTALLED_OVERLAY "; scripts/build-romio-overlay --output %s", d->folder,
             d->folder);
    if (!is_open)
        check_driver(d, INSTALLED_OVERLAY, d->mpi_text, fix);
}

static void check_mpi_io(struct doctor *d)
{
    int is_open = d->mpi == MPI_OPEN;
    int is_found = is_open ? installed_components(d->libraries, d->folder) : installed_overlay(d->libraries, d->folder);

    text_say("MPI-IO          %s", is_found ? d->folder : "not installed; only MPI-IO and HDF5 in parallel need it");
    if (is_found)
        check_mpi_drivers(d, is_open);
    else if (is_open)
        text_say(
            "  to get it: install Open MPI's internal headers (Debian: libopenmpi-dev), configure and install again");
    else
        text_say("  to get it: scripts/build-romio-overlay --output %s", d->libraries);
}

static void check_mpi(struct doctor *d)
{
    if (!installed_mpi(d->libraries, d->folder)) {
        text_say("MPI             none: this DeltaFS was built without it");
        return;
    }
    check_mpi_library(d);
    if (d->mpi == MPI_NONE || d->mpi == MPI_UNKNOWN)
        return;
    const char *path = getenv("PATH");
    int is_slurm = !find_program(&path, "mpirun", d->folder) && (path = getenv("PATH")) != NULL &&
                   find_program(&path, "srun", d->folder);
    check_program(d, "launcher", is_slurm ? "srun" : "mpirun", "\"$p\" --version");
    check_program(d, "compiler", "mpicc", "\"$p\" --showme:version; \"$p\" -v");
    check_mpi_io(d);
}

/* ---- HDF5 ---- */

static void check_plugin(struct doctor *d, unsigned major, unsigned minor)
{
    int is_found = installed_plugin(d->libraries, d->folder);

    text_say("HDF5 driver     %s", is_found ? d->folder : "not installed; only programs that write with HDF5 need it");
    if (!is_found)
        text_say("  to get it: configure with --with-hdf5=DIR and install again (scripts/build-hdf5 builds an HDF5)");
    else if (!check_driver(d, INSTALLED_PLUGIN, NULL, "make install   in the folder in which DeltaFS was built"))
        return;
    else if (major == 1 && minor < 14)
        text_say("  it needs HDF5 1.14 or later, which programs must be linked with");
}

static void check_hdf5(struct doctor *d)
{
    unsigned major = 0, minor = 0, release = 0;
    void *library = NULL;
    Dl_info at = {0};

    if (deltafs_hdf5_library(NULL, &library) != DELTAFS_OK) {
        text_say("HDF5            %s", deltafs_errmsg(NULL));
        check_plugin(d, 0, 0);
        return;
    }
    int (*version)(unsigned *, unsigned *, unsigned *) =
        (int (*)(unsigned *, unsigned *, unsigned *))dlsym(library, "H5get_libversion");
    if (version && version(&major, &minor, &release) >= 0)
        dladdr((void *)version, &at);
    text_say("HDF5            %u.%u.%u, %s", major, minor, release, at.dli_fname ? at.dli_fname : "no name");
    check_plugin(d, major, minor);
}

/* ---- POSIX ---- */

static void check_posix(struct doctor *d)
{
    int is_found = installed_posix(d->libraries, d->folder);

    text_say("POSIX library   %s",
             is_found ? d->folder : "not installed; only 'deltafs run' with --mount or --particles needs it");
}

/* ---- The command ---- */

static int doctor_run(const struct command_call *c)
{
    struct doctor *d = c->values;
    int code = c->count > 0 ? text_fail(EXIT_USAGE, "doctor: takes no arguments")
                            : installed_libraries("doctor", d->libraries);

    if (code != EXIT_OK)
        return code;
    if (!realpath("/proc/self/exe", d->programs))
        return text_fail(EXIT_TROUBLE, "doctor: /proc/self/exe cannot be read, which names this program; mount /proc");
    *strrchr(d->programs, '/') = '\0';
    check_versions(d);
    check_path(d);
    check_library_path(d);
    check_manual(d);
    check_mpi(d);
    check_hdf5(d);
    check_posix(d);
    text_say("%d problem%s", d->problems, text_plural((uint64_t)d->problems));
    return d->problems > 0 ? EXIT_TROUBLE : EXIT_OK;
}

const struct command cmd_doctor = {.name = "doctor",
                                   .usage = "",
                                   .text =
                                       "Check that this installation fits together and is found; print the commands "
                                       "that repair it.",
                                   .size = sizeof(struct doctor),
                                   .run = doctor_run};
