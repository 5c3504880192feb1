/* SOURCES: the text file of an index that says which files are indexed in it, and where their columns stand. Lines
 * as a manifest's, each with its checksum, appended and never changed; see deltafs-format(5).
 *
 * The lines "Begin" and those of its tables come before the epochs of a source's tables. The tables count from the line
 * "Source" on, which comes after these are committed. The last source of a path replaces the ones before, and a line
 * "Forget" takes them away. So each epoch of the index has a line: if not, lines are lost. */
#ifndef DELTAFS_FILEINDEX_SOURCES_H
#define DELTAFS_FILEINDEX_SOURCES_H

#include <deltafs/deltafs_fileindex.h>
#include "base/buffer.h"
#include "directory/format/manifest.h"

/* What identifies an unchanged file. */
struct source_identity {
    char kind; /* 'f' a logical file, '-' a plain one */
    uint64_t size;
    uint64_t mtime;                 /* a plain file's, in nanoseconds */
    char uuid_text[UUID_TEXT_SIZE]; /* a logical file's; "" else */
    uint64_t session, order;        /* of its last writer */
};

struct source_table {
    struct deltafs_table table; /* owns all of it */
    size_t column_capacity, piece_capacity;
    size_t columns;    /* that there are to be */
    uint64_t sequence; /* the label of its epoch in the index */
    uint32_t group;    /* rows that have the same number; 0: as version 1 has it */
    int has_padding;   /* rows with the key `padding` are not in the index */
    uint64_t padding;
    uint64_t records; /* rows that are in the index */
    int has_hash;     /* if not, the table is not known to have the keys of another */
    uint64_t hash;    /* of the keys and their rows: see hash_rows */
    char *schema;     /* of the values: all columns but the key */
    uint32_t size;    /* of such a value */
};

struct source_entry {
    char *path; /* from the folder of the index, "." that folder itself; or from the root */
    struct source_identity identity;
    size_t table_count; /* 0: the path is that of no source any longer */
    struct source_table *table;
    size_t number; /* of its last line among those of all sources */
    int is_begun;  /* there is no more than its line "Begin" */
};

struct sources {
    uint64_t version;               /* of the file; 0: none was read */
    char uuid_text[UUID_TEXT_SIZE]; /* of the index's directory */
    uint64_t size;                  /* of the file, without an incomplete last line */
    uint32_t chain;                 /* checksum of its last line */
    size_t count, capacity;
    struct source_entry *source; /* no two of the same path */
    size_t named_count, named_capacity;
    uint64_t *named;     /* sequences of all tables that lines tell of, in rising order */
    uint64_t last;       /* the highest sequence that any line names */
    uint64_t last_whole; /* the same of sources whose last line is there; of those that were replaced, too */
};

/* Write the file's first line, for the directory of this UUID; there must be none. */
int sources_create(struct io *io, const char *path, const char *uuid_text, int sync, struct error *e);
/* DELTAFS_ERR_NOT_FOUND, _VERSION, _DAMAGED. */
int sources_read(struct io *io, const char *path, struct sources *out, struct error *e);
/* Whether it belongs to the directory of this UUID: DELTAFS_OK or _DAMAGED. */
int sources_check_uuid(const struct sources *s, const char *path, const char *uuid_text, struct error *e);
void sources_fini(struct sources *s);
/* The source of this path, or NULL. */
const struct source_entry *sources_find(const struct sources *s, const char *path);

void table_fini(struct deltafs_table *t);

/* Which lines of a source: in front of its tables, of the tables, behind them. */
enum { SOURCE_BEGIN = 1, SOURCE_TABLES = 2, SOURCE_END = 4 };
/* These lines of `n` sources as one text, which the caller frees. One without tables is to be forgotten. */
int sources_format(const struct source_entry *s, size_t n, unsigned lines, char **text, struct error *e);
/* Take such a text, which is changed, apart. `path` is for messages. */
int source_parse(char *text, const char *path, struct source_entry *out, struct error *e);
void source_fini(struct source_entry *s);
/* Append these lines to the file that was read; `text` is changed. */
int sources_append(struct io *io, const char *path, struct sources *s, char *text, int sync, struct error *e);
/* Take over a source that was appended. A source without tables is removed, and the one of its path with it. */
int sources_add(struct sources *s, struct source_entry *source, struct error *e);

/* Whether the file's lines tell of all epochs of the index. If not, *lost gets the first that they do not. Before
 * version 3 it may have had none. */
int sources_name_all(const struct sources *s, const struct manifest *m, uint64_t *lost);
/* Whether the index has not the table's epoch, or another: a power loss, or a repair, has taken it. */
int source_table_is_lost(const struct source_table *t, const struct manifest *m);
/* Whether rows with this key are left out of the index. */
static inline int source_table_is_padding(const struct source_table *t, uint64_t key)
{
    return t->has_padding && key == t->padding;
}
/* How many rows have the same number in the index, from 1 on: so many are read at once anyway. */
uint32_t source_table_group(const struct source_table *t);
/* Choose that for a table that is to be appended to a file of this version. */
void source_table_choose_group(struct source_table *t, uint64_t version);

/* Where a column's value of row `row` (below the table's rows) is stored. */
uint64_t column_place(const struct deltafs_column *c, uint64_t row);
/* How many rows from `from` on, before `end`, have values that are one stride apart from each other. */
uint64_t column_run(const struct deltafs_column *c, uint64_t from, uint64_t end);

#endif
