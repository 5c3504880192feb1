/* Error handlers of files that a program makes.
 *
 * They are libmpich's, but ROMIO calls them itself: a handler may change the error code, and what it makes of it is
 * what the call returns. MPI_File_call_errhandler would keep that to itself. So which function belongs to which handler
 * is noted when it is made. (Those of C++ are called in another way, and left to libmpich.) */
#include "adio.h"
#include "overlay.h"

#include <dlfcn.h>
#include <pthread.h>

struct handler {
    MPI_Errhandler handle;
    MPI_File_errhandler_function *function; /* NULL: not one that we can call */
};

static struct handler *handlers;
static size_t count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Under the lock. */
static struct handler *find(MPI_Errhandler handle)
{
    for (size_t i = 0; i < count; i++)
        if (handlers[i].handle == handle)
            return &handlers[i];
    return NULL;
}

/* A handle may be one that was freed and given out again. */
static void note(MPI_Errhandler handle, MPI_File_errhandler_function *function)
{
    pthread_mutex_lock(&lock);
    struct handler *h = find(handle), *more = h ? NULL : realloc(handlers, (count + 1) * sizeof *more);
    if (more) {
        handlers = more;
        h = &handlers[count++];
    }
    if (h)
        *h = (struct handler){handle, function};
    pthread_mutex_unlock(&lock);
}

static MPI_File_errhandler_function *function_of(MPI_Errhandler handle)
{
    pthread_mutex_lock(&lock);
    const struct handler *h = find(handle);
    MPI_File_errhandler_function *function = h ? h->function : NULL;
    pthread_mutex_unlock(&lock);
    return function;
}

/* libmpich's function of that name. */
static void next(const char *name, void *function)
{
    void *symbol = dlsym(RTLD_NEXT, name);

    memcpy(function, &symbol, sizeof symbol);
}

#pragma weak MPI_File_create_errhandler = PMPI_File_create_errhandler
int PMPI_File_create_errhandler(MPI_File_errhandler_function *function, MPI_Errhandler *handle)
{
    int (*theirs)(MPI_File_errhandler_function *, MPI_Errhandler *);

    next("PMPI_File_create_errhandler", &theirs);
    int error_code = theirs(function, handle);
    if (error_code == MPI_SUCCESS)
        note(*handle, function);
    return error_code;
}

/* How MPICH's C++ says that a handler which was just made is its own. */
void MPII_Errhandler_set_cxx(MPI_Errhandler handle, void (*call)(void));
void MPII_Errhandler_set_cxx(MPI_Errhandler handle, void (*call)(void))
{
    void (*theirs)(MPI_Errhandler, void (*)(void));

    note(handle, NULL);
    next("MPII_Errhandler_set_cxx", &theirs);
    theirs(handle, call);
}

int overlay_call_handler(MPI_File fh, int error_code)
{
    MPI_Errhandler handle = MPI_ERRHANDLER_NULL;

    if (PMPI_File_get_errhandler(fh, &handle) != MPI_SUCCESS)
        return error_code;
    MPI_File_errhandler_function *function = function_of(handle);
    if (function) {
        function(&fh, &error_code, 0);
        PMPI_Errhandler_free(&handle); /* what get_errhandler has lent */
        return error_code;
    }
    int result = PMPI_File_call_errhandler(fh, error_code);
    return result != MPI_SUCCESS ? result : error_code;
}
