/* A small HDF5 file, made in memory: groups, attributes, and contiguous datasets of one dimension.
 *
 * It follows the HDF5 File Format Specification, version 3: a superblock of version 2, and object headers of version 2
 * with compact links, which every HDF5 since 1.8 reads. HDF5's own functions are not used, because the driver is called
 * in the middle of an open, with HDF5's locks held.
 *
 * An object is collected in a struct h5_bytes of its own and placed in the image by h5_object_end, children before
 * their parents, and h5_image_end completes the file. If memory is lacking, `is_lacking` is set, and all later calls do
 * nothing. */
#ifndef DELTAFS_H5_IMAGE_H
#define DELTAFS_H5_IMAGE_H

#include <stddef.h>
#include <stdint.h>

struct h5_bytes {
    uint8_t *bytes;
    size_t used, room;
    int is_lacking; /* memory */
};

/* A type: of the letters of schemas, with its bytes. */
struct h5_type {
    char kind; /* 'f', 'i', 'u', 'S' or 'V' */
    uint32_t size;
};

void h5_put(struct h5_bytes *b, const void *bytes, size_t size);
void h5_put_zeros(struct h5_bytes *b, size_t size);
void h5_put_number(struct h5_bytes *b, uint64_t number, size_t size); /* little-endian */
void h5_put_type(struct h5_bytes *b, struct h5_type type);
/* A compound type of `size` bytes, which its `n` members follow. */
void h5_put_compound(struct h5_bytes *b, size_t n, uint32_t size);
void h5_put_member(struct h5_bytes *b, uint32_t compound_size, const char *name, uint32_t offset, struct h5_type type);
void h5_bytes_fini(struct h5_bytes *b);

/* An image begins with room for its superblock. */
void h5_image_begin(struct h5_bytes *image);
/* The superblock, with the address of the root group. */
void h5_image_end(struct h5_bytes *image, uint64_t root);

void h5_group_begin(struct h5_bytes *o);
void h5_link(struct h5_bytes *o, const char *name, uint64_t address);
/* A dataset of `n` elements of a type that was encoded, whose data is at `address` in the image. */
void h5_dataset_begin(struct h5_bytes *o, const struct h5_bytes *type, uint64_t n, uint64_t address, uint64_t size);
void h5_attribute_number(struct h5_bytes *o, const char *name, uint64_t number);
/* Left out if it is longer than an attribute can be. */
void h5_attribute_text(struct h5_bytes *o, const char *name, const char *text);
/* `n` numbers of 8 bytes and of `kind` f, i or u, by their bits; a single one is no array. Left out if they are longer
 * than an attribute can be. */
void h5_attribute_numbers(struct h5_bytes *o, const char *name, char kind, const uint64_t *numbers, size_t n);
/* Of `kind` S or V. */
void h5_attribute_bytes(struct h5_bytes *o, const char *name, char kind, const void *bytes, size_t size);
/* Place the object, and free it. Returns its address. */
uint64_t h5_object_end(struct h5_bytes *image, struct h5_bytes *o);

/* A message of an object, such as its type, can have so many bytes. */
#define H5_MESSAGE_MAX 65535

#endif
