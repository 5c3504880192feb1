/* The lock of atomic mode, and the refresh under it. */
#include <fcntl.h>
#include "logical/format/logical_format.h"
#include "logical/logical.h"

void logical_unlock(deltafs_logical *f)
{
    if (io_file_unlock(&f->lock, LOCK_FILE, LOCK_BYTES, error_ignored()) != DELTAFS_OK)
        io_file_close(&f->lock, error_ignored()); /* which releases it, so that others do not wait for ever */
}

/* Readers share the lock, so new readers could starve a waiting writer. The writer therefore locks the gate first and
 * waits for the readers that are inside. A reader locks both at once, then unlocks the gate. No process waits for the
 * gate while it holds the lock. */
static int logical_pass_gate(deltafs_logical *f, int is_shared, struct error *e)
{
    int status = is_shared ? io_file_lock_wait(&f->lock, LOCK_FILE, LOCK_BYTES, 1, e)
                           : io_file_lock_wait(&f->lock, LOCK_GATE, 1, 0, e);

    if (status != DELTAFS_OK)
        return status;
    status = is_shared ? io_file_unlock(&f->lock, LOCK_GATE, 1, e) : io_file_lock_wait(&f->lock, LOCK_FILE, 1, 0, e);
    if (status != DELTAFS_OK)
        logical_unlock(f);
    return status;
}

int logical_lock(deltafs_logical *f, int is_shared, struct error *e)
{
    char path[PATH_ROOM];
    int flags = f->mode == O_RDONLY ? O_RDONLY : O_RDWR | O_CREAT, status = DELTAFS_OK;

    if (f->lock.fd < 0)
        status = io_file_open(&f->io, io_path_in(path, f->container.path, LOCK_NAME), flags, &f->lock, e);
    return status == DELTAFS_OK ? logical_pass_gate(f, is_shared, e) : status;
}

int logical_refresh_atomic(deltafs_logical *f, struct error *e)
{
    struct error own;
    int status = logical_lock(f, 1, &own);

    /* Nobody has written in atomic mode yet; the first writer may start meanwhile. */
    if (status == DELTAFS_ERR_NOT_FOUND && f->mode == O_RDONLY) {
        status = logical_refresh_alone(f, e);
        if (status != DELTAFS_OK)
            return status;
        status = logical_lock(f, 1, &own);
        if (status == DELTAFS_ERR_NOT_FOUND)
            return DELTAFS_OK;
    }
    if (status != DELTAFS_OK) {
        *e = own;
        return status;
    }
    status = logical_refresh_alone(f, e);
    logical_unlock(f);
    return status;
}
