/* All tags of point-to-point messages on the library's communicator, which nothing else uses. */
#ifndef DELTAFS_MPI_TAGS_H
#define DELTAFS_MPI_TAGS_H

enum mpi_tag {
    MPI_TAG_LINK = 1, /* records on their way */
};

#endif
