#include "posix/posix_job.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "posix/library.h"
#include "posix/posix.h"
#include "posix/undeclared.h"

#define MPI_LIBRARY       "libdeltafs_mpi.so.0"
#define COMPANION_LIBRARY "libdeltafs_posix_mpi.so"

static struct {
    const struct job_companion *companion;
    void (*finish)(void); /* NULL: the program has no particles */
    int has_begun;
    int size;          /* 0: there is no job */
    const char *wrong; /* why the ranks cannot do something together; NULL: they can */
} job;

int job_is_on(void)
{
    return job.wrong || job.size > 1;
}

const char *job_most(uint64_t *numbers, int n)
{
    if (job.wrong || job.size < 2 || job.companion->most(numbers, n) == 0)
        return job.wrong;
    return "MPI has failed";
}

int job_open(const char *path, const deltafs_options *options, int is_new, deltafs_dir **out)
{
    return job.companion->open(path, options, is_new, out);
}

void job_forget(void)
{
    job.size = 0;
    job.wrong = NULL;
}

void job_leave(void)
{
    if (job.size > 1)
        job.wrong = "the program has ended without MPI_Finalize, by which all ranks store their last records";
}

/* ---- The companion ---- */

static const struct job_companion *load(void)
{
    const struct job_companion *(*get)(void);
    char path[PATH_MAX];
    void *object = NULL;

    /* libdeltafs_mpi uses the libdeltafs that is beside it, which is loaded by its path. */
    (void)library();
    if (library_path(MPI_LIBRARY, path) && dlopen(path, RTLD_NOW | RTLD_LOCAL) && library_path(COMPANION_LIBRARY, path))
        object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    *(void **)&get = object ? dlsym(object, "deltafs_posix_job") : NULL;
    return get ? get() : NULL;
}

/* MPI calls this when it ends. */
static void job_end(void)
{
    job.finish();
    job_forget();
}

void job_at_end(void (*finish)(void))
{
    job.finish = finish;
}

/* MPI has begun. */
static void job_begin(void)
{
    if (job.has_begun || !job.finish)
        return;
    job.has_begun = 1;
    job.companion = load();
    const char *wrong = job.companion ? job.companion->join(job_end, &job.size) : dlerror();
    if (!wrong && job.companion)
        return;
    job.wrong = "this MPI is not the one that DeltaFS was configured with";
    posix_say("%s; so records of particles cannot be stored in a job of this MPI",
              wrong ? wrong : COMPANION_LIBRARY " is damaged");
}

/* ---- The functions of MPI ---- */

/* The function behind ours. A program that has loaded its MPI itself, such as Python, has it where only the caller's
 * libraries see it. */
static void *find_next(const char *name, void *caller)
{
    void *found = dlsym(RTLD_NEXT, name);
    Dl_info who;

    if (!found && dladdr(caller, &who)) {
        void *object = dlopen(who.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        found = object ? dlsym(object, name) : NULL;
        if (object)
            dlclose(object);
    }
    if (!found)
        posix_say("%s: there is no MPI behind this function", name);
    return found;
}

#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))
#define NO_MPI 1 /* an error of every MPI */

CALL int MPI_Init(int *argc, char ***argv)
{
    int (*init)(int *, char ***);

    *(void **)&init = find_next("MPI_Init", CALLER);
    int code = init ? init(argc, argv) : NO_MPI;
    if (code == 0)
        job_begin();
    return code;
}

CALL int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int (*init)(int *, char ***, int, int *);

    *(void **)&init = find_next("MPI_Init_thread", CALLER);
    int code = init ? init(argc, argv, required, provided) : NO_MPI;
    if (code == 0)
        job_begin();
    return code;
}

/* Those of Fortran do not call those of C in every MPI. */
#define FORTRAN_INIT(name)                                                                                             \
    CALL void name(int *code)                                                                                          \
    {                                                                                                                  \
        void (*init)(int *);                                                                                           \
                                                                                                                       \
        *(void **)&init = find_next(#name, CALLER);                                                                    \
        if (!init)                                                                                                     \
            return;                                                                                                    \
        init(code);                                                                                                    \
        job_begin();                                                                                                   \
    }
FORTRAN_INIT(mpi_init_)
FORTRAN_INIT(mpi_init_f08_)

#define FORTRAN_INIT_THREAD(name)                                                                                      \
    CALL void name(int *required, int *provided, int *code)                                                            \
    {                                                                                                                  \
        void (*init)(int *, int *, int *);                                                                             \
                                                                                                                       \
        *(void **)&init = find_next(#name, CALLER);                                                                    \
        if (!init)                                                                                                     \
            return;                                                                                                    \
        init(required, provided, code);                                                                                \
        job_begin();                                                                                                   \
    }
FORTRAN_INIT_THREAD(mpi_init_thread_)
FORTRAN_INIT_THREAD(mpi_init_thread_f08_)
