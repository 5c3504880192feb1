/* HDF5's functions, looked up in the object that calls the driver: the program itself, libhdf5, or the copy in a Python
 * package. A process may have several. An object that was used once stays loaded, so its functions stay valid. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "h5fd.h"

static const struct vfd_calls vfd_no_calls;
static struct vfd_calls *vfd_known;
static pthread_mutex_t vfd_known_lock = PTHREAD_MUTEX_INITIALIZER;

/* Functions and data pointers have one size where there is dlsym. */
#define LOOK_UP(c, object, field, name) (*(void **)&(c)->field = dlsym(object, name))

/* If the program itself uses a number of HDF5's, the program has the variable, and the library's own is never set. */
static const hid_t *vfd_look_up_id(void *object, const char *name)
{
    const hid_t *id = dlsym(object, name);

    return id && *id <= 0 ? dlsym(RTLD_DEFAULT, name) : id;
}

static void vfd_look_up(struct vfd_calls *c, void *object)
{
    static const char *const minor[VFD_FAULTS] = {
        [VFD_CANNOT_OPEN] = "H5E_CANTOPENFILE_g", [VFD_CANNOT_CLOSE] = "H5E_CANTCLOSEFILE_g",
        [VFD_CANNOT_READ] = "H5E_READERROR_g",    [VFD_CANNOT_WRITE] = "H5E_WRITEERROR_g",
        [VFD_CANNOT_FLUSH] = "H5E_CANTFLUSH_g",   [VFD_CANNOT_TRUNCATE] = "H5E_SEEKERROR_g",
        [VFD_CANNOT_LOCK] = "H5E_CANTLOCKFILE_g", [VFD_CANNOT_DELETE] = "H5E_CANTDELETEFILE_g",
        [VFD_UNSUPPORTED] = "H5E_UNSUPPORTED_g",
    };

    LOOK_UP(c, object, push, "H5Epush2");
    c->error_class = vfd_look_up_id(object, "H5E_ERR_CLS_g");
    c->major = vfd_look_up_id(object, "H5E_VFL_g");
    for (size_t i = 0; i < VFD_FAULTS; i++)
        c->minor[i] = vfd_look_up_id(object, minor[i]);
    LOOK_UP(c, object, config, "H5Pget_driver_config_str");
    LOOK_UP(c, object, select, "H5Ssel_iter_create");
    LOOK_UP(c, object, sequences, "H5Ssel_iter_get_seq_list");
    LOOK_UP(c, object, unselect, "H5Ssel_iter_close");
    LOOK_UP(c, object, count, "H5Sget_select_npoints");
}

const struct vfd_calls *vfd_calls_at(const void *address)
{
    Dl_info where;
    struct vfd_calls *c;

    if (dladdr(address, &where) == 0 || !where.dli_fname)
        return &vfd_no_calls;
    pthread_mutex_lock(&vfd_known_lock);
    for (c = vfd_known; c && c->base != where.dli_fbase;)
        c = c->next;
    if (!c && (c = calloc(1, sizeof *c))) {
        /* The program is no object that can be opened by its name. */
        void *object = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        vfd_look_up(c, object ? object : RTLD_DEFAULT);
        c->base = where.dli_fbase;
        c->next = vfd_known;
        vfd_known = c;
    }
    pthread_mutex_unlock(&vfd_known_lock);
    return c ? c : &vfd_no_calls;
}

/* What a thread has pushed last; also for the ranks that have no message of their own. */
static _Thread_local struct {
    enum vfd_fault fault;
    char message[VFD_MESSAGE_MAX];
} vfd_last;

int vfd_fail_again(const struct vfd_calls *c)
{
    enum vfd_fault fault = vfd_last.fault;

    if (c->push && c->error_class && c->major && c->minor[fault])
        c->push(0, "libh5fd_deltafs", "deltafs", 0, *c->error_class, *c->major, *c->minor[fault], "%s",
                vfd_last.message);
    return -1;
}

const char *vfd_last_message(void)
{
    return vfd_last.message;
}

int vfd_fail(const struct vfd_calls *calls, enum vfd_fault fault, const char *format, ...)
{
    va_list list;

    vfd_last.fault = fault;
    va_start(list, format);
    vsnprintf(vfd_last.message, sizeof vfd_last.message, format, list);
    va_end(list);
    return vfd_fail_again(calls);
}

/* With the number of an error of the system that says the same, by which h5py chooses its exceptions. */
int vfd_result(const struct vfd_calls *calls, enum vfd_fault fault, int status)
{
    static const struct {
        int status, number;
    } known[] = {{DELTAFS_ERR_NOT_FOUND, ENOENT},
                 {DELTAFS_ERR_EXISTS, EEXIST},
                 {DELTAFS_ERR_NOT_DELTAFS, EISDIR},
                 {DELTAFS_ERR_NO_SPACE, ENOSPC}};

    if (status == DELTAFS_OK)
        return 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].status == status)
            return vfd_fail(calls, fault, "deltafs: %s (errno = %d)", deltafs_errmsg(NULL), known[i].number);
    return vfd_fail(calls, fault, "deltafs: %s", deltafs_errmsg(NULL));
}
