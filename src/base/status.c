#include <deltafs/deltafs.h>
#include "config.h"

const char *deltafs_strerror(int status)
{
    static const char *const texts[] = {
        [DELTAFS_OK] = "no error",
        [-DELTAFS_ERR_INVALID] = "invalid argument",
        [-DELTAFS_ERR_OPTION] = "unknown option or bad value",
        [-DELTAFS_ERR_SCHEMA] = "bad schema",
        [-DELTAFS_ERR_SIZE] = "value of the wrong size",
        [-DELTAFS_ERR_LABEL] = "epoch label does not increase, or differs between ranks",
        [-DELTAFS_ERR_MODE] = "directory is not open for this",
        [-DELTAFS_ERR_COLLECTIVE] = "ranks made different collective calls",
        [-DELTAFS_ERR_CANCELLED] = "epoch cancelled by the caller",
        [-DELTAFS_ERR_NOT_FOUND] = "not found",
        [-DELTAFS_ERR_EXISTS] = "exists already",
        [-DELTAFS_ERR_NOT_DELTAFS] = "not a DeltaFS directory",
        [-DELTAFS_ERR_UNCOMMITTED] = "records after the last epoch end were discarded",
        [-DELTAFS_ERR_BUSY] = "another job is writing",
        [-DELTAFS_ERR_CHANGED] = "file changed since it was indexed, or directory replaced since it was opened",
        [-DELTAFS_ERR_MEMORY] = "out of memory",
        [-DELTAFS_ERR_IO] = "input or output error",
        [-DELTAFS_ERR_NO_SPACE] = "no space left",
        [-DELTAFS_ERR_DAMAGED] = "damaged data",
        [-DELTAFS_ERR_VERSION] = "format version not supported",
        [-DELTAFS_ERR_MPI] = "MPI error",
        [-DELTAFS_ERR_NOT_FOLDER] = "not a folder",
        [-DELTAFS_ERR_FOLDER] = "is a folder",
        [-DELTAFS_ERR_NOT_EMPTY] = "folder is not empty",
        [-DELTAFS_ERR_LOOP] = "too many symbolic links",
        [-DELTAFS_ERR_NAME] = "name too long",
        [-DELTAFS_ERR_TOO_LARGE] = "file too large",
        [-DELTAFS_ERR_CONFLICT] = "snapshots in conflict",
    };
    const int count = sizeof texts / sizeof texts[0];

    return status <= 0 && status > -count && texts[-status] ? texts[-status] : "unknown status";
}

const char *deltafs_version(void)
{
    return PACKAGE_VERSION;
}
