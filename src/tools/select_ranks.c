/* The rows of a select that the ranks of a job read, each a part. Every rank gives its rows to rank 0 as packets, in
 * the order of its own select. Rank 0 merges them. A rank that is ahead waits for rank 0 to receive its packet, so
 * memory is bounded. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <mpi.h>
#include "tools/ranks.h"
#include "tools/select_source.h"
#include "tools/text.h"

#define TAG          25
#define ROWS_AT_ONCE 4096

/* A packet: this, `count` records with the sizes of their keys and values, `count` numbers if there is `by`, then the
 * bytes of the keys and values. Without rows, it is the last packet of the rank, and has a message if the status is an
 * error. */
struct packet {
    uint64_t count;
    int64_t status;
    uint64_t has_by;
};

/* The rows of a rank that are not merged yet. */
struct stream {
    int rank;
    const struct deltafs_record *row;
    const double *by;
    size_t at, count;
    int is_done;
    char *bytes; /* the packet, for another rank than 0 */
    size_t capacity;
    struct deltafs_record *records;
};

struct select_source {
    deltafs_select *rows; /* of this rank */
    uint64_t left;        /* rows that `top` allows */
    int ranks;
    struct stream *stream;
    struct deltafs_record merged[ROWS_AT_ONCE];
    int status; /* the first that a rank failed with, and its message: */
    char message[1024];
};

void select_divide(struct deltafs_select_options *o)
{
    int rank, ranks;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    o->part = (uint32_t)rank;
    o->parts = (uint32_t)ranks;
}

int select_agree(int code)
{
    return ranks_agree(code);
}

/* ---- Standard input ---- */

#define INPUT_ROOM ((size_t)1 << 16)

/* Rank 0: all of standard input. A file in memory is not empty, so a line feed, which adds no key, comes last. */
static int read_input(char **bytes, size_t *size)
{
    size_t n = 1, room = 0;

    for (*size = 0; n > 0; *size += n) {
        if (room - *size < INPUT_ROOM) {
            char *grown = realloc(*bytes, room = 2 * room + 2 * INPUT_ROOM);
            if (!grown)
                return text_keep(EXIT_TROUBLE, "select: no memory for %zu bytes of keys", room);
            *bytes = grown;
        }
        n = fread(*bytes + *size, 1, INPUT_ROOM - 1, stdin);
    }
    (*bytes)[(*size)++] = '\n';
    return ferror(stdin) ? text_keep(EXIT_TROUBLE, "select: cannot read standard input") : EXIT_OK;
}

int select_read_stdin(FILE **out)
{
    static char *bytes; /* what *out reads; until the program ends */
    uint64_t size = 0;
    size_t n = 0;
    int rank, code = EXIT_OK;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        code = read_input(&bytes, &n);
    size = n;
    MPI_Bcast(&size, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (rank != 0)
        bytes = malloc(size > 0 ? (size_t)size : 1);
    if (code == EXIT_OK && !bytes)
        code = text_keep(EXIT_TROUBLE, "select: no memory for %zu bytes of keys", (size_t)size);
    code = ranks_agree(code);
    for (uint64_t at = 0, part; at < size && code == EXIT_OK; at += part) {
        part = size - at < INT32_MAX ? size - at : INT32_MAX;
        MPI_Bcast(bytes + at, (int)part, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    if (code == EXIT_OK && !(*out = fmemopen(bytes, (size_t)size, "r")))
        code = text_keep(EXIT_TROUBLE, "select: no memory for %zu bytes of keys", (size_t)size);
    return ranks_agree(code);
}

/* MPI waits by spinning, which takes processors from the ranks and threads that work. So sleep a little between two
 * looks. */
static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 100 * 1000}, NULL);
}

/* ---- Giving rows to rank 0 ---- */

static void send_to_first(const void *bytes, size_t size)
{
    MPI_Request request;
    int is_sent = 0;

    MPI_Isend(bytes, (int)size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request);
    MPI_Test(&request, &is_sent, MPI_STATUS_IGNORE);
    while (!is_sent) {
        nap();
        MPI_Test(&request, &is_sent, MPI_STATUS_IGNORE);
    }
}

static char *put(char *to, const void *from, size_t size)
{
    if (size > 0)
        memcpy(to, from, size);
    return to + size;
}

/* Returns DELTAFS_OK, or that there is no memory or that a row is too long for a message. */
static int give(const struct deltafs_record *row, size_t n, const double *by)
{
    const struct packet head = {.count = n, .has_by = by != NULL};
    size_t size = sizeof head + n * sizeof *row + (by ? n * sizeof *by : 0);

    for (size_t i = 0; i < n; i++)
        size += row[i].key_size + row[i].size;
    char *bytes = size <= INT32_MAX ? malloc(size) : NULL, *p = bytes;
    if (!bytes)
        return DELTAFS_ERR_MEMORY;
    p = put(p, &head, sizeof head);
    p = put(p, row, n * sizeof *row);
    if (by)
        p = put(p, by, n * sizeof *by);
    for (size_t i = 0; i < n; i++) {
        p = put(p, row[i].key_bytes, row[i].key_size);
        p = put(p, row[i].value, row[i].size);
    }
    send_to_first(bytes, size);
    free(bytes);
    return DELTAFS_OK;
}

static void give_end(int status, const char *message)
{
    struct {
        struct packet head;
        char message[1024];
    } last = {.head = {.status = status}};

    snprintf(last.message, sizeof last.message, "%s", message);
    send_to_first(&last, sizeof last);
}

int select_prints(deltafs_select *rows)
{
    const struct deltafs_record *row;
    const char *message = "";
    int rank, status;
    size_t n;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        return 1;
    do {
        status = deltafs_select_next(rows, &row, &n);
        if (status != DELTAFS_OK) {
            message = deltafs_errmsg(NULL);
        } else if (n > 0) {
            status = give(row, n, deltafs_select_values(rows));
            message = "no memory for rows";
        }
    } while (status == DELTAFS_OK && n > 0);
    give_end(status, status != DELTAFS_OK ? message : "");
    return 0;
}

/* ---- Merging ---- */

/* The job cannot go on without this memory: other ranks wait for rank 0. */
static void *must_have(void *memory, size_t size)
{
    void *bytes = realloc(memory, size);

    if (!bytes) {
        text_fail(EXIT_TROUBLE, "select: no memory for %zu bytes of rows", size);
        MPI_Abort(MPI_COMM_WORLD, EXIT_TROUBLE);
    }
    return bytes;
}

struct select_source *select_source_open(const struct deltafs_select_options *o, deltafs_select *rows)
{
    static char buffer[1 << 16];
    struct select_source *s = must_have(NULL, sizeof *s);

    memset(s, 0, sizeof *s);
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer); /* MPICH leaves it without one, so each number would be a write */
    MPI_Comm_size(MPI_COMM_WORLD, &s->ranks);
    s->rows = rows;
    s->left = o->top > 0 ? o->top : UINT64_MAX;
    s->stream = must_have(NULL, (size_t)s->ranks * sizeof *s->stream);
    for (int i = 0; i < s->ranks; i++)
        s->stream[i] = (struct stream){.rank = i};
    return s;
}

/* Damage of one rank's part, or a file of an index that has changed, keeps no other row from being printed. */
static int is_fatal(int status)
{
    return status == DELTAFS_ERR_MEMORY || status == DELTAFS_ERR_INVALID;
}

static void fail(struct select_source *s, int status, const char *message)
{
    if (s->status != DELTAFS_OK && (is_fatal(s->status) || !is_fatal(status)))
        return;
    s->status = status;
    snprintf(s->message, sizeof s->message, "%s", message);
}

static void refill_own(struct select_source *s, struct stream *t)
{
    int status = deltafs_select_next(s->rows, &t->row, &t->count);

    if (status != DELTAFS_OK)
        fail(s, status, deltafs_errmsg(NULL));
    t->is_done = status != DELTAFS_OK || t->count == 0;
    t->by = deltafs_select_values(s->rows);
}

/* Set the addresses of the rows of a packet. */
static void unpack(struct stream *t, const struct packet *head)
{
    char *p = t->bytes + sizeof *head;
    struct deltafs_record *records = must_have(t->records, head->count * sizeof *records);

    t->row = t->records = records;
    memcpy(records, p, head->count * sizeof *records);
    p += head->count * sizeof *records;
    t->by = head->has_by ? (const double *)(const void *)p : NULL;
    p += head->has_by ? head->count * sizeof *t->by : 0;
    for (size_t i = 0; i < head->count; i++) {
        records[i].key_bytes = records[i].key_size > 0 ? p : NULL;
        p += records[i].key_size;
        records[i].value = p;
        p += records[i].size;
    }
    t->count = head->count;
}

/* Receive a packet into the memory of the stream. */
static void refill(struct select_source *s, struct stream *t)
{
    struct packet head;
    MPI_Status probed;
    int size, is_there = 0;

    MPI_Iprobe(t->rank, TAG, MPI_COMM_WORLD, &is_there, &probed);
    while (!is_there) {
        nap();
        MPI_Iprobe(t->rank, TAG, MPI_COMM_WORLD, &is_there, &probed);
    }
    MPI_Get_count(&probed, MPI_BYTE, &size);
    if ((size_t)size > t->capacity) {
        t->bytes = must_have(t->bytes, (size_t)size);
        t->capacity = (size_t)size;
    }
    MPI_Recv(t->bytes, size, MPI_BYTE, t->rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    memcpy(&head, t->bytes, sizeof head);
    t->count = 0;
    if (head.count == 0) {
        t->is_done = 1;
        if (head.status != DELTAFS_OK)
            fail(s, (int)head.status, t->bytes + sizeof head);
    } else {
        unpack(t, &head);
    }
}

/* Compare the next rows as a select orders its rows; below 0 if that of `a` comes first. */
static int stream_compare(const struct stream *a, const struct stream *b)
{
    const struct deltafs_record *x = &a->row[a->at], *y = &b->row[b->at];
    size_t size = x->key_size < y->key_size ? x->key_size : y->key_size;
    int order = 0, label = (x->label > y->label) - (x->label < y->label);

    if (a->by) {
        double v = a->by[a->at], w = b->by[b->at];
        order = isnan(v) || isnan(w) ? (isnan(v) != 0) - (isnan(w) != 0) : (v < w) - (v > w);
    } else {
        order = label;
    }
    if (order == 0)
        order = size > 0 ? memcmp(x->key_bytes, y->key_bytes, size) : (x->key > y->key) - (x->key < y->key);
    if (order == 0)
        order = (x->key_size > y->key_size) - (x->key_size < y->key_size);
    return order != 0 ? order : label;
}

/* The stream whose row is the next; NULL if a stream must be refilled before, or all are done. */
static struct stream *next_stream(struct select_source *s)
{
    struct stream *first = NULL;

    for (int i = 0; i < s->ranks; i++) {
        struct stream *t = &s->stream[i];
        if (t->is_done)
            continue;
        if (t->at == t->count)
            return NULL;
        if (!first || stream_compare(t, first) < 0)
            first = t;
    }
    return first;
}

static void refill_all(struct select_source *s)
{
    for (int i = 0; i < s->ranks; i++) {
        struct stream *t = &s->stream[i];
        if (t->is_done || t->at < t->count)
            continue;
        t->at = 0;
        if (i == 0)
            refill_own(s, t);
        else
            refill(s, t);
    }
}

int select_source_next(struct select_source *s, const struct deltafs_record **rows, size_t *n, const char **message)
{
    struct stream *t;
    size_t count = 0;

    refill_all(s);
    while (!is_fatal(s->status) && count < ROWS_AT_ONCE && count < s->left && (t = next_stream(s)) != NULL)
        s->merged[count++] = t->row[t->at++];
    s->left -= count;
    *rows = s->merged;
    *n = count;
    *message = s->message;
    return count > 0 ? DELTAFS_OK : s->status;
}

/* The other ranks send all they have. */
void select_source_close(struct select_source *s)
{
    for (int i = 1; i < s->ranks; i++)
        while (!s->stream[i].is_done)
            refill(s, &s->stream[i]);
    for (int i = 0; i < s->ranks; i++) {
        free(s->stream[i].bytes);
        free(s->stream[i].records);
    }
    free(s->stream);
    free(s);
}
