#include <deltafs/deltafs.h>
#include "config.h"

const char *deltafs_strerror(int status)
{
    switch (status) {
    case DELTAFS_OK:
        return "no error";
    case DELTAFS_ERR_INVALID:
        return "invalid argument";
    case DELTAFS_ERR_OPTION:
        return "unknown option or bad value";
    case DELTAFS_ERR_SCHEMA:
        return "bad schema";
    case DELTAFS_ERR_SIZE:
        return "value of the wrong size";
    case DELTAFS_ERR_LABEL:
        return "epoch label does not increase, or differs between ranks";
    case DELTAFS_ERR_MODE:
        return "directory is not open for this";
    case DELTAFS_ERR_COLLECTIVE:
        return "ranks made different collective calls";
    case DELTAFS_ERR_CANCELLED:
        return "epoch cancelled by the caller";
    case DELTAFS_ERR_NOT_FOUND:
        return "not found";
    case DELTAFS_ERR_EXISTS:
        return "exists already";
    case DELTAFS_ERR_NOT_DELTAFS:
        return "not a DeltaFS directory";
    case DELTAFS_ERR_UNCOMMITTED:
        return "records after the last epoch end were discarded";
    case DELTAFS_ERR_BUSY:
        return "another job is writing";
    case DELTAFS_ERR_CHANGED:
        return "file changed since it was indexed";
    case DELTAFS_ERR_MEMORY:
        return "out of memory";
    case DELTAFS_ERR_IO:
        return "input or output error";
    case DELTAFS_ERR_NO_SPACE:
        return "no space left";
    case DELTAFS_ERR_DAMAGED:
        return "damaged data";
    case DELTAFS_ERR_VERSION:
        return "format version not supported";
    case DELTAFS_ERR_MPI:
        return "MPI error";
    default:
        return "unknown status";
    }
}

const char *deltafs_version(void)
{
    return PACKAGE_VERSION;
}
