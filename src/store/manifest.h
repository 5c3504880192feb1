/* The manifest: a container's text file of facts, one checksummed line each, appended to and never changed.
 *
 * It is made aside and renamed, so a container either has a whole one or none. A line at its end that was cut short by
 * a crash does not count; any other line that does not match its checksum is damage. */
#ifndef DELTAFS_STORE_MANIFEST_H
#define DELTAFS_STORE_MANIFEST_H

#include "base/options.h"
#include "store/io.h"

#define MANIFEST_UUID_TEXT 37 /* bytes of a UUID as text, NUL included */

struct manifest_epoch {
    uint64_t label;
    uint64_t records;
    uint64_t bytes_raw;
    uint64_t bytes_stored;
};

struct manifest {
    uint32_t version;
    uint8_t uuid[16];
    char uuid_text[MANIFEST_UUID_TEXT];
    enum option_keys keys;
    uint32_t partitions;
    int64_t value_size; /* -1: any */
    char *schema;       /* "" if there is none */
    uint64_t epoch_count;
    struct manifest_epoch *epoch;
    size_t epoch_capacity;
    int is_closed;
    uint64_t tail_length; /* bound of the index logs' tails, if closed */
    uint64_t size;        /* bytes of the file, a torn line at its end left out */
};

/* Make a new random UUID. */
int manifest_new_uuid(uint8_t uuid[16], struct error *e);
void manifest_uuid_text(const uint8_t uuid[16], char text[MANIFEST_UUID_TEXT]);

/* Write a new container's manifest: uuid_text, keys, partitions, value_size and schema are used. `sync`: make
 * it durable. */
int manifest_create(struct io *io, const char *folder, const struct manifest *m, int sync, struct error *e);
/* Append a line, at *size, which is moved behind it. */
int manifest_append_epoch(struct io_file *file, uint64_t *size, uint64_t number, const struct manifest_epoch *epoch,
                          int sync, struct error *e);
/* That the container is open for writing again: what the last close line says of the index logs' ends holds no more. */
int manifest_append_open(struct io_file *file, uint64_t *size, uint64_t epochs, int sync, struct error *e);
int manifest_append_close(struct io_file *file, uint64_t *size, uint64_t epochs, uint64_t tail_length, int sync,
                          struct error *e);

/* Take the text of a manifest, which is changed, apart; all of it, in memory that the caller frees, and whether a line
 * of it, of `n` bytes without the newline, ends in its checksum. */
int manifest_parse(struct manifest *m, char *text, size_t n, const char *path, struct error *e);
int manifest_load(struct io_file *file, char **text, uint64_t *size, struct error *e);
int manifest_line_is_sealed(const char *line, size_t n);

/* Read and check a container's manifest. DELTAFS_ERR_NOT_FOUND if there is no such folder, _NOT_DELTAFS if it has none.
 */
int manifest_read(struct io *io, const char *folder, struct manifest *m, struct error *e);
void manifest_fini(struct manifest *m);

#endif
