/* One case of the campaign against files and folders: what its parts share. */
#ifndef DELTAFS_TORTURE_FILES_H
#define DELTAFS_TORTURE_FILES_H

#include "files.h"

struct files_case {
    struct torture_rng rng;
    char folder[180];            /* of the case; below it: */
    struct files subject, other; /* the container that is hurt, and one that nobody may change */
    size_t olds;                 /* copies of the subject, as it was earlier */
    unsigned asides;
    int has_foreign;  /* something is another container's: 1, or its MANIFEST: 2 */
    int may_be_older; /* MANIFEST, or its copy, is one of those */
    int lacks_line;   /* MANIFEST is as before the last epoch's line, which `subject` does not count */
    int lacks_proof;  /* nothing has that line, and what repair would commit the epoch for is hurt, too */
    char text[1024];  /* what was done */
};

/* Let something befall an entry of the subject. */
void files_hurt(struct files_case *c);

#endif
