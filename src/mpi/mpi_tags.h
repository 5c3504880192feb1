/* All tags of point-to-point messages on the library's communicator, which nothing else uses. */
#ifndef DELTAFS_MPI_MPI_TAGS_H
#define DELTAFS_MPI_MPI_TAGS_H

enum mpi_tag {
    MPI_TAG_RECORDS = 1, /* and one for each stage */
    MPI_TAG_CREDITS = 9, /* the same */
};

#endif
