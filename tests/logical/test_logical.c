/* Logical files against a plain array of bytes: random histories of writes, reads, syncs, truncations and reopenings,
 * by one process and by several together. The several are threads, whose collective calls meet at a barrier; each works
 * out what all of them do, and so knows what must be in the file. */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "logical/logical.h"
#include "unit_help.h"
#include "unit_io.h"
#include "unit_team.h"

#define RANKS_MAX TEAM_MAX
#define FILE_MAX  400000 /* bytes of the file, at most */
#define PIECES    40     /* of a call */

/* ---- The oracle ---- */

struct model_file {
    uint8_t *byte;
    uint64_t size;
};

static uint8_t noise(uint64_t round, uint32_t rank, uint64_t offset)
{
    uint64_t x = (offset + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (round * 131 + rank) * UINT64_C(0xbf58476d1ce4e5b9);

    return (uint8_t)(x >> 37);
}

/* What rank `rank` writes in a round: none of what another one does. */
static size_t plan_writes(uint64_t seed, uint64_t round, uint32_t rank, uint32_t ranks, struct deltafs_extent *out)
{
    struct rng all = rng_of(seed * 1000 + round), own = rng_of(seed * 1000 + round + 7919 * (rank + 1));
    uint64_t block = 1 + rng_below(&all, rng_below(&all, 4) == 0 ? 9000 : 300), base = rng_below(&all, 50000);
    int is_regular = rng_below(&all, 2) == 0;
    size_t n = 1 + rng_below(&own, PIECES);

    for (size_t i = 0; i < n; i++) {
        uint64_t k = is_regular ? i : rng_below(&own, PIECES), offset = base + (k * ranks + rank) * block, size = block;
        if (!is_regular) {
            uint64_t skip = rng_below(&own, block);
            offset += skip;
            size = rng_below(&own, block - skip + 1);
        }
        if (offset >= FILE_MAX)
            size = 0;
        else if (offset + size > FILE_MAX)
            size = FILE_MAX - offset;
        out[i] = (struct deltafs_extent){offset, size};
    }
    return n;
}

static void model_write(struct model_file *m, uint64_t round, uint32_t rank, const struct deltafs_extent *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (uint64_t k = 0; k < x[i].size; k++) {
            m->byte[x[i].offset + k] = noise(round, rank, x[i].offset + k);
            if (x[i].offset + k >= m->size)
                m->size = x[i].offset + k + 1;
        }
}

static void model_resize(struct model_file *m, uint64_t size)
{
    if (size < m->size)
        memset(m->byte + size, 0, m->size - size);
    m->size = size;
}

/* ---- One rank's part ---- */

struct part {
    uint64_t seed;
    struct unit_member member;
    const char *path, *index, *sync;
    pthread_t thread;
    deltafs_logical *f;
    struct model_file model;
    int mode;
    char *failure;
};

#define TELL_CHECK(p, condition)                                                                                       \
    do {                                                                                                               \
        if (!(condition) && !(p)->failure)                                                                             \
            (p)->failure = part_failure((p), __LINE__, #condition);                                                    \
    } while (0)

static char *part_failure(struct part *p, int line, const char *what)
{
    char *text = malloc(2048);

    snprintf(text, 2048, "rank %u of %u, line %d: %s; %s", p->member.rank, p->member.team->ranks, line, what,
             p->f ? deltafs_errmsg(NULL) : deltafs_errmsg(NULL));
    return text;
}

static void part_open(struct part *p, int flags)
{
    struct collective group = unit_team_group(&p->member);
    deltafs_options *o = unit_options("sync", p->sync, "extents", p->index, "memory", "8M", NULL);
    struct error e = {0};

    p->mode = flags & O_ACCMODE;
    p->f = NULL;
    int status = deltafs_private_logical_open_group(p->path, flags, o, &group, &p->f, &e);
    if (status != DELTAFS_OK) {
        fprintf(stderr, "cannot open: %s\n", e.text);
        abort();
    }
    deltafs_options_destroy(o);
}

static void part_close(struct part *p)
{
    int status = deltafs_logical_close(p->f);

    p->f = NULL;
    TELL_CHECK(p, status == DELTAFS_OK);
}

static void part_write(struct part *p, uint64_t round, int is_list)
{
    struct deltafs_extent x[PIECES];
    size_t n = plan_writes(p->seed, round, p->member.rank, p->member.team->ranks, x), at = 0, total = 0;
    uint8_t *bytes;

    for (size_t i = 0; i < n; i++)
        total += x[i].size;
    bytes = malloc(total + 1);
    for (size_t i = 0; i < n; i++)
        for (uint64_t k = 0; k < x[i].size; k++)
            bytes[at++] = noise(round, p->member.rank, x[i].offset + k);
    at = 0;
    if (is_list)
        TELL_CHECK(p, deltafs_logical_write_list(p->f, n, x, bytes) == DELTAFS_OK);
    for (size_t i = 0; i < n && !is_list; at += x[i++].size)
        TELL_CHECK(p, deltafs_logical_write(p->f, x[i].offset, bytes + at, x[i].size) == DELTAFS_OK);
    free(bytes);
}

static void part_read(struct part *p, struct rng *r, int times)
{
    uint8_t *bytes = malloc(FILE_MAX + 1000);
    uint64_t size = 0;

    TELL_CHECK(p, deltafs_logical_size(p->f, &size) == DELTAFS_OK);
    TELL_CHECK(p, size == p->model.size);
    for (int i = 0; i < times; i++) {
        uint64_t offset = i == 0 ? 0 : rng_below(r, FILE_MAX), n = i == 0 ? FILE_MAX : rng_below(r, 20000);
        uint64_t want = offset >= p->model.size ? 0 : p->model.size - offset < n ? p->model.size - offset : n;
        size_t got = 12345;
        TELL_CHECK(p, deltafs_logical_read(p->f, offset, bytes, n, &got) == DELTAFS_OK);
        TELL_CHECK(p, got == want);
        TELL_CHECK(p, want == 0 || memcmp(bytes, p->model.byte + offset, want) == 0);
    }
    free(bytes);
}

/* What it wrote itself in this round it sees at once. */
static void part_read_own(struct part *p, uint64_t round)
{
    struct deltafs_extent x[PIECES];
    size_t n = plan_writes(p->seed, round, p->member.rank, p->member.team->ranks, x), got, total = 0, at = 0;
    uint8_t *bytes;

    for (size_t i = 0; i < n; i++)
        total += x[i].size;
    bytes = malloc(total + 1);
    TELL_CHECK(p, deltafs_logical_read_list(p->f, n, x, bytes, &got) == DELTAFS_OK);
    for (size_t i = 0; i < n; at += x[i++].size)
        TELL_CHECK(p, memcmp(bytes + at, p->model.byte + x[i].offset, x[i].size) == 0);
    free(bytes);
}

static void part_round(struct part *p, uint64_t round)
{
    struct rng all = rng_of(p->seed * 77 + round), own = rng_of(p->seed * 77 + round + 31 * (p->member.rank + 1));
    uint32_t ranks = p->member.team->ranks;
    struct deltafs_extent x[PIECES];
    uint64_t kind = rng_below(&all, 12), size = rng_below(&all, FILE_MAX);
    int is_list = (int)rng_below(&all, 2), is_atomic = rng_below(&all, 9) == 0;

    if (is_atomic)
        TELL_CHECK(p, deltafs_logical_set_atomic(p->f, 1) == DELTAFS_OK);
    part_write(p, round, is_list);
    for (uint32_t i = 0; i < ranks; i++)
        model_write(&p->model, round, i, x, plan_writes(p->seed, round, i, ranks, x));
    if (p->mode == O_RDWR)
        part_read_own(p, round);
    if (p->mode == O_RDWR && !is_atomic && rng_below(&all, 3) == 0) {
        TELL_CHECK(p, deltafs_logical_exchange(p->f) == DELTAFS_OK);
        part_read(p, &own, 3);
    }
    if (is_atomic)
        TELL_CHECK(p, deltafs_logical_set_atomic(p->f, 0) == DELTAFS_OK);
    if (kind == 0) {
        TELL_CHECK(p, deltafs_logical_truncate(p->f, size) == DELTAFS_OK);
        model_resize(&p->model, size);
    } else if (kind == 1) {
        TELL_CHECK(p, deltafs_logical_extend(p->f, size) == DELTAFS_OK);
        if (size > p->model.size)
            model_resize(&p->model, size);
    } else if (kind == 2) {
        part_close(p);
        part_open(p, O_RDONLY);
        part_read(p, &own, 4);
        TELL_CHECK(p, deltafs_logical_verify(p->f, NULL, NULL, NULL) == DELTAFS_OK);
        part_close(p);
        part_open(p, rng_below(&all, 3) == 0 ? O_WRONLY : O_RDWR);
    } else if (kind == 3 && rng_below(&all, 3) == 0) {
        part_close(p);
        part_open(p, O_RDWR | O_TRUNC);
        model_resize(&p->model, 0);
    }
    TELL_CHECK(p, deltafs_logical_sync(p->f) == DELTAFS_OK);
    if (p->mode == O_RDWR)
        part_read(p, &own, 3);
}

#define ROUNDS 25

static void *part_run(void *arg)
{
    struct part *p = arg;
    struct rng own = rng_of(p->seed + p->member.rank);

    part_open(p, O_RDWR | O_CREAT | O_EXCL);
    for (uint64_t round = 0; round < ROUNDS; round++)
        part_round(p, round);
    part_close(p);
    part_open(p, O_RDONLY);
    part_read(p, &own, 30);
    TELL_CHECK(p, deltafs_logical_verify(p->f, NULL, NULL, NULL) == DELTAFS_OK);
    part_close(p);
    return NULL;
}

static void run(uint64_t seed, uint32_t ranks, const char *index, const char *sync)
{
    static struct part part[RANKS_MAX];
    struct unit_team team;
    const char *path = unit_path("file%llu", (unsigned long long)seed);

    unit_team_init(&team, ranks);
    for (uint32_t i = 0; i < ranks; i++) {
        part[i] = (struct part){.seed = seed, .member = {&team, i}, .path = path, .index = index, .sync = sync};
        part[i].model.byte = calloc(1, FILE_MAX);
        CHECK_IS(pthread_create(&part[i].thread, NULL, part_run, &part[i]), 0);
    }
    for (uint32_t i = 0; i < ranks; i++)
        pthread_join(part[i].thread, NULL);
    for (uint32_t i = 0; i < ranks; i++) {
        if (part[i].failure)
            fail_msg("history %llu: %s", (unsigned long long)seed, part[i].failure);
        free(part[i].model.byte);
    }
    unit_team_fini(&team);
    CHECK_IS(deltafs_logical_remove(path), DELTAFS_OK);
    CHECK(!unit_exists(path));
}

static void test_histories(void **state)
{
    static const char *const index[] = {"parallel", "broadcast", "flatten"};
    const char *given = getenv("UNIT_SEED");
    uint64_t first = given ? strtoull(given, NULL, 0) : 0;

    (void)state;
    for (uint64_t i = 0; i < 24; i++)
        run(first + i, (uint32_t)(1 + i % RANKS_MAX), index[i / 4 % 3], i % 5 == 0 ? "commit" : "none");
}

#define SMALL_PIECES 150000
#define SMALL_STEP   3 /* bytes from one to the next */

/* Write single bytes all over the file until that fails. */
static int write_pieces(deltafs_logical *f, struct rng *r, uint8_t *want)
{
    for (size_t i = 0; i < SMALL_PIECES; i++) {
        uint64_t at = rng_below(r, SMALL_PIECES) * SMALL_STEP;
        uint8_t byte = (uint8_t)(1 + rng_below(r, 255));
        int status = deltafs_logical_write(f, at, &byte, 1);
        want[at] = byte; /* what was written is taken over: it was the index that had no room */
        if (status != DELTAFS_OK)
            return status;
    }
    return DELTAFS_OK;
}

static void read_pieces(const char *path, const deltafs_options *o, const uint8_t *want)
{
    uint8_t *bytes = malloc(SMALL_PIECES * SMALL_STEP);
    deltafs_logical *f;
    uint64_t size;
    size_t got;

    CHECK_IS(deltafs_logical_open(path, O_RDONLY, o, &f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_read(f, 0, bytes, SMALL_PIECES * SMALL_STEP, &got), DELTAFS_OK);
    CHECK_IS(deltafs_logical_size(f, &size), DELTAFS_OK);
    CHECK(got == size && memcmp(bytes, want, got) == 0);
    CHECK(f->memory.peak <= f->memory.limit);
    CHECK(f->pieces.count <= f->pieces.limit);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    free(bytes);
}

/* Memory stays within the option: where the index does not fit, calls say so, and nothing that was written is lost;
 * with more of it all is there. A look-up of many small pieces goes on in parts. */
static void test_memory(void **state)
{
    const char *path = unit_path("memory");
    deltafs_options *small = unit_options("memory", "8M", NULL), *large = unit_options("memory", "128M", NULL);
    struct rng r = rng_init(5);
    uint8_t *want = calloc(1, SMALL_PIECES * SMALL_STEP);
    deltafs_logical *f;

    (void)state;
    CHECK_IS(deltafs_logical_open(path, O_RDWR | O_CREAT, small, &f), DELTAFS_OK);
    CHECK_IS(write_pieces(f, &r, want), DELTAFS_ERR_MEMORY);
    CHECK(strstr(deltafs_errmsg(NULL), "raise it"));
    CHECK(f->memory.peak <= f->memory.limit);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    read_pieces(path, large, want);
    CHECK_IS(deltafs_logical_open(path, O_RDWR, large, &f), DELTAFS_OK);
    CHECK_IS(write_pieces(f, &r, want), DELTAFS_OK);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_open(path, O_RDONLY, small, &f), DELTAFS_ERR_MEMORY);
    read_pieces(path, large, want);
    read_pieces(path, NULL, want);
    deltafs_options_destroy(small);
    deltafs_options_destroy(large);
    free(want);
}

/* A file that is only written, with as little memory as there can be, takes any number of small writes. */
static void test_little_memory(void **state)
{
    struct rng r = rng_init(6);
    const char *path = unit_path("little");
    deltafs_options *o = unit_options("memory", "8M", NULL);
    deltafs_logical *f;
    uint64_t size, end = 0;

    (void)state;
    CHECK_IS(deltafs_logical_open(path, O_WRONLY | O_CREAT, o, &f), DELTAFS_OK);
    for (uint64_t i = 0; i < 200000; i++) {
        uint64_t offset = rng_below(&r, UINT64_C(1) << 50);
        CHECK_IS(deltafs_logical_write(f, offset, "x", 1), DELTAFS_OK);
        end = offset >= end ? offset + 1 : end;
    }
    CHECK(f->memory.peak <= f->memory.limit);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_open(path, O_RDONLY, NULL, &f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_size(f, &size), DELTAFS_OK);
    CHECK_IS(size, end);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    deltafs_options_destroy(o);
    unit_remove(path);
}

/* ---- One call's writes behind another's ---- */

#define TURNS 9

/* In each turn another rank writes the same bytes, and another one's error is all ranks'. */
static void *part_take_turns(void *arg)
{
    struct part *p = arg;
    uint32_t ranks = p->member.team->ranks, rank = p->member.rank;

    part_open(p, p->mode | O_CREAT);
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        uint8_t byte = (uint8_t)('a' + turn);
        if ((TURNS - 1 - turn) % ranks == rank)
            TELL_CHECK(p, deltafs_logical_write(p->f, 0, &byte, 1) == DELTAFS_OK);
        uint64_t limit = p->f->memory.limit;
        int is_failing = turn == 4 && p->mode == O_WRONLY;
        if (is_failing && (TURNS - 1 - turn) % ranks == rank) {
            buffer_fini(&p->f->unpublished.buffer);
            p->f->unpublished = (struct bytes){{.memory = &p->f->memory}, 0};
            p->f->memory.limit = p->f->memory.used;
        }
        TELL_CHECK(p, deltafs_logical_exchange(p->f) == (is_failing ? DELTAFS_ERR_MEMORY : DELTAFS_OK));
        p->f->memory.limit = limit;
    }
    part_close(p);
    return NULL;
}

static void run_turns(int mode, uint32_t ranks)
{
    static struct part part[RANKS_MAX];
    struct unit_team team;
    const char *path = unit_path("turns%d.%u", mode, ranks);
    deltafs_logical *f;
    char byte;
    size_t got;

    unit_team_init(&team, ranks);
    for (uint32_t i = 0; i < ranks; i++) {
        part[i] = (struct part){.member = {&team, i}, .path = path, .index = "parallel", .sync = "none", .mode = mode};
        CHECK_IS(pthread_create(&part[i].thread, NULL, part_take_turns, &part[i]), 0);
    }
    for (uint32_t i = 0; i < ranks; i++)
        pthread_join(part[i].thread, NULL);
    for (uint32_t i = 0; i < ranks; i++)
        if (part[i].failure)
            fail_msg("%s", part[i].failure);
    unit_team_fini(&team);
    CHECK_IS(deltafs_logical_open(path, O_RDONLY, NULL, &f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_read(f, 0, &byte, 1, &got), DELTAFS_OK);
    CHECK_IS(byte, 'a' + TURNS - 1);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
}

/* What is written after deltafs_logical_exchange wins over what any rank wrote before, whether it can be read or not.
 */
static void test_turns(void **state)
{
    (void)state;
    for (uint32_t ranks = 2; ranks <= RANKS_MAX; ranks++) {
        run_turns(O_WRONLY, ranks);
        run_turns(O_RDWR, ranks);
    }
}

/* A program may change its folder while it has files open. (What it wrote was lost, or came to stand in others.) */
static void test_moved_on(void **state)
{
    char *here = getcwd(NULL, 0), got[7] = "";
    deltafs_options *o = unit_options("memory", "8M", NULL);
    deltafs_logical *f, *read;
    deltafs_dir *d;
    size_t n;

    (void)state;
    CHECK_IS(chdir(unit_path("%s", "")), 0);
    CHECK_IS(deltafs_logical_open("moved", O_RDWR | O_CREAT, NULL, &f), DELTAFS_OK);
    CHECK_IS(deltafs_create("moved_keys", o, &d), DELTAFS_OK);
    CHECK_IS(chdir("/"), 0);
    CHECK_IS(deltafs_logical_write(f, 0, "abcdef", 6), DELTAFS_OK);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    CHECK_IS(deltafs_append(d, 5, "value", 5), DELTAFS_OK);
    CHECK_IS(deltafs_epoch_end(d, 1), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(chdir(unit_path("%s", "")), 0);
    CHECK_IS(deltafs_logical_open("moved", O_RDONLY, NULL, &read), DELTAFS_OK);
    CHECK_IS(chdir(here), 0);
    CHECK_IS(deltafs_logical_read(read, 0, got, 6, &n), DELTAFS_OK);
    CHECK(n == 6 && strcmp(got, "abcdef") == 0);
    CHECK_IS(deltafs_logical_close(read), DELTAFS_OK);
    CHECK(unit_exists(unit_path("moved_keys/MANIFEST")) && !unit_exists(unit_path("moved_keys/LEASE")));
    deltafs_options_destroy(o);
    free(here);
}

/* Write a file and a directory whose paths are not from the root on, and read the file. Returns the first status that
 * is not DELTAFS_OK. */
static int write_here(void)
{
    deltafs_options *o = unit_options("memory", "8M", NULL);
    deltafs_logical *f;
    deltafs_dir *d;
    char got[7] = "";
    size_t n;
    int status = deltafs_logical_open("here", O_RDWR | O_CREAT, NULL, &f);

    if (status == DELTAFS_OK)
        status = deltafs_logical_write(f, 0, "abcdef", 6);
    if (status == DELTAFS_OK)
        status = deltafs_logical_close(f);
    if (status == DELTAFS_OK)
        status = deltafs_logical_open("here", O_RDONLY, NULL, &f);
    if (status == DELTAFS_OK)
        status = deltafs_logical_read(f, 0, got, 6, &n);
    if (status == DELTAFS_OK && strcmp(got, "abcdef") != 0)
        status = DELTAFS_ERR_DAMAGED;
    if (status == DELTAFS_OK)
        status = deltafs_logical_close(f);
    if (status == DELTAFS_OK)
        status = deltafs_create("here_keys", o, &d);
    if (status == DELTAFS_OK)
        status = deltafs_append(d, 5, "value", 5);
    if (status == DELTAFS_OK)
        status = deltafs_epoch_end(d, 1);
    if (status == DELTAFS_OK)
        status = deltafs_close(d);
    deltafs_options_destroy(o);
    return status;
}

/* A folder that deep has no path that can be opened, or its files have none. */
static void test_deep(void **state)
{
    static const size_t deep[] = {PATH_MAX - 60, PATH_MAX - 10, PATH_MAX + 300};
    char *here = getcwd(NULL, 0), name[101] = "";
    size_t room = sizeof name - 1;

    (void)state;
    memset(name, 'n', room);
    for (size_t i = 0; i < sizeof deep / sizeof deep[0]; i++) {
        size_t above = strlen(unit_path("%s", "")), levels = (deep[i] - above) / (room + 1);
        const char *last = name + room - (deep[i] - above) % (room + 1);
        CHECK_IS(chdir(unit_path("%s", "")), 0);
        for (size_t k = 0; k <= levels; k++) {
            CHECK_IS(mkdir(k < levels || !*last ? name : last, 0777), 0);
            CHECK_IS(chdir(k < levels || !*last ? name : last), 0);
        }
        CHECK_IS(write_here(), DELTAFS_OK);
        CHECK_IS(deltafs_logical_remove("here"), DELTAFS_OK);
        unit_remove("here_keys");
        for (size_t k = 0; k <= levels; k++) {
            CHECK_IS(chdir(".."), 0);
            CHECK_IS(rmdir(k > 0 || !*last ? name : last), 0);
        }
    }
    CHECK_IS(chdir(here), 0);
    free(here);
}

/* Who may not search a folder above may work in this one. (The superuser may: another does it.) */
static void test_closed_above(void **state)
{
    char *outer = strdup(unit_path("outer")), *inner = strdup(unit_path("outer/inner"));
    int is_root = geteuid() == 0, status;

    (void)state;
    CHECK(mkdir(outer, 0777) == 0 && mkdir(inner, 0777) == 0 && chmod(inner, 0777) == 0);
    pid_t child = fork();
    if (child == 0) {
        if (chdir(inner) != 0 || chmod(outer, is_root ? 0700 : 0) != 0 || (is_root && setuid(65534) != 0))
            _exit(99);
        status = write_here();
        fprintf(stderr, "%s", status == DELTAFS_OK ? "" : deltafs_errmsg(NULL));
        _exit(status == DELTAFS_OK ? 0 : 1);
    }
    CHECK_IS(waitpid(child, &status, 0), child);
    CHECK_IS(chmod(outer, 0777), 0);
    CHECK_IS(status, 0);
    free(outer);
    free(inner);
}

/* What is synced and then closed is as whole as what is closed with sync=close. */
static void test_synced_before_close(void **state)
{
    deltafs_logical *f;

    (void)state;
    for (int more = 0; more < 3; more++) {
        const char *path = unit_path("synced%d", more);
        char *text;
        size_t n;
        CHECK_IS(deltafs_logical_open(path, O_RDWR | O_CREAT, NULL, &f), DELTAFS_OK);
        CHECK_IS(deltafs_logical_write(f, 0, "abcdef", 6), DELTAFS_OK);
        CHECK_IS(deltafs_logical_sync(f), DELTAFS_OK);
        if (more == 1)
            CHECK_IS(deltafs_logical_write(f, 3, "x", 1), DELTAFS_OK);
        if (more == 2)
            CHECK_IS(deltafs_logical_truncate(f, 3), DELTAFS_OK);
        CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
        text = (char *)unit_load(unit_path("synced%d/s00000000/SESSION", more), &n);
        CHECK(memmem(text, n, more ? "synced=0" : "synced=1", 8));
        free(text);
    }
}

/* A write of no bytes made logs, which the close synced whatever the option sync said. */
static void test_nothing_written(void **state)
{
    static const char *const syncs[] = {"none", "commit"};
    const struct deltafs_extent extent[2] = {{5, 0}, {9, 0}};

    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *path = unit_path("nothing%d", i);
        deltafs_options *o = unit_options("sync", syncs[i], NULL);
        deltafs_logical *f;
        unit_io_begin();
        CHECK_IS(deltafs_logical_open(path, O_RDWR | O_CREAT, o, &f), DELTAFS_OK);
        uint64_t count = unit_io_count(OP_SYNC);
        CHECK_IS(deltafs_logical_write(f, 0, NULL, 0), DELTAFS_OK);
        CHECK_IS(deltafs_logical_write_list(f, 0, NULL, NULL), DELTAFS_OK);
        CHECK_IS(deltafs_logical_write_list(f, 2, extent, NULL), DELTAFS_OK);
        CHECK(!unit_exists(unit_path("nothing%d/s00000000", i)));
        CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
        CHECK_IS(unit_io_count(OP_SYNC), count);
        unit_io_end();
        deltafs_options_destroy(o);
    }
}

#define HANDLES 3

/* Handles of one process on one file: what it writes later wins, whichever handle it uses, and in whichever order they
 * are closed. One is opened for a group, one while another has unpublished writes. */
static void test_handles(void **state)
{
    char *path = strdup(unit_path("handles"));
    deltafs_options *o = unit_options("memory", "8M", NULL);
    deltafs_logical *f[HANDLES];
    struct rng r = rng_of(unit_seed);
    uint8_t want[64], got[64];
    size_t n;

    (void)state;
    for (int turn = 0; turn < 40; turn++) {
        uint64_t size = 0;
        memset(want, 0, sizeof want);
        for (int i = 0; i < HANDLES; i++) {
            CHECK_IS(deltafs_logical_open(path, i == 2 ? O_WRONLY | O_CREAT : O_RDWR | O_CREAT, o, &f[i]), DELTAFS_OK);
            CHECK_IS(deltafs_logical_set_atomic(f[i], i == 1 && turn % 4 == 3), DELTAFS_OK);
            CHECK_IS(deltafs_logical_write(f[i], 8 * (uint64_t)i, "abcdefghijkl", 12), DELTAFS_OK);
            memcpy(want + 8 * i, "abcdefghijkl", 12);
            size = 8 * (uint64_t)i + 12;
        }
        for (int k = 0; k < 60; k++) {
            deltafs_logical *x = f[rng_below(&r, HANDLES)];
            uint64_t at = rng_below(&r, 56), what = rng_below(&r, 20);
            uint8_t bytes[8];
            memset(bytes, 1 + k, sizeof bytes);
            if (what == 0) {
                CHECK_IS(deltafs_logical_sync(x), DELTAFS_OK);
            } else if (what == 1) {
                CHECK_IS(deltafs_logical_truncate(x, at), DELTAFS_OK);
                memset(want + at, 0, sizeof want - at);
                size = at;
            } else {
                CHECK_IS(deltafs_logical_write(x, at, bytes, sizeof bytes), DELTAFS_OK);
                memcpy(want + at, bytes, sizeof bytes);
                size = at + sizeof bytes > size ? at + sizeof bytes : size;
            }
        }
        for (int i = 0; i < HANDLES; i++)
            CHECK_IS(deltafs_logical_close(f[(turn + i) % HANDLES]), DELTAFS_OK);
        CHECK_IS(deltafs_logical_open(path, O_RDONLY, o, &f[0]), DELTAFS_OK);
        memset(got, 0, sizeof got);
        CHECK_IS(deltafs_logical_read(f[0], 0, got, sizeof got, &n), DELTAFS_OK);
        CHECK_IS(n, size);
        CHECK(memcmp(got, want, sizeof got) == 0);
        CHECK_IS(deltafs_logical_close(f[0]), DELTAFS_OK);
        CHECK_IS(deltafs_logical_remove(path), DELTAFS_OK);
    }
    deltafs_options_destroy(o);
    free(path);
}

/* Rank 0 writes through a handle of its own, then through the ranks' one; after that rank 1 writes through the latter.
 */
static void *part_write_behind(void *arg)
{
    struct part *p = arg;
    deltafs_logical *own = NULL;

    part_open(p, O_WRONLY | O_CREAT);
    TELL_CHECK(p, deltafs_logical_write(p->f, 0, "aaaaaaaa", 8) == DELTAFS_OK);
    unit_team_wait(&p->member);
    if (p->member.rank == 0) {
        TELL_CHECK(p, deltafs_logical_open(p->path, O_RDWR, NULL, &own) == DELTAFS_OK);
        TELL_CHECK(p, deltafs_logical_write(own, 0, "bbbbbbbb", 8) == DELTAFS_OK);
        TELL_CHECK(p, deltafs_logical_write(p->f, 8, "cccccccc", 8) == DELTAFS_OK);
    }
    unit_team_wait(&p->member);
    if (p->member.rank == 1)
        TELL_CHECK(p, deltafs_logical_write(p->f, 0, "dddddddd", 8) == DELTAFS_OK);
    part_close(p);
    if (own)
        TELL_CHECK(p, deltafs_logical_close(own) == DELTAFS_OK);
    return NULL;
}

/* The same order where the ranks of a handle are threads of one process. */
static void test_handles_of_threads(void **state)
{
    static struct part part[2];
    struct unit_team team;
    char *path = strdup(unit_path("threads")), got[16];
    deltafs_logical *f;
    size_t n;

    (void)state;
    unit_team_init(&team, 2);
    for (uint32_t i = 0; i < 2; i++) {
        part[i] = (struct part){.member = {&team, i}, .path = path, .index = "parallel", .sync = "none"};
        CHECK_IS(pthread_create(&part[i].thread, NULL, part_write_behind, &part[i]), 0);
    }
    for (uint32_t i = 0; i < 2; i++)
        pthread_join(part[i].thread, NULL);
    for (uint32_t i = 0; i < 2; i++)
        if (part[i].failure)
            fail_msg("%s", part[i].failure);
    unit_team_fini(&team);
    CHECK_IS(deltafs_logical_open(path, O_RDONLY, NULL, &f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_read(f, 0, got, sizeof got, &n), DELTAFS_OK);
    CHECK_IS(n, sizeof got);
    CHECK(memcmp(got, "ddddddddcccccccc", sizeof got) == 0);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_histories),
                                       cmocka_unit_test(test_memory),
                                       cmocka_unit_test(test_little_memory),
                                       cmocka_unit_test(test_turns),
                                       cmocka_unit_test(test_synced_before_close),
                                       cmocka_unit_test(test_nothing_written),
                                       cmocka_unit_test(test_deep),
                                       cmocka_unit_test(test_closed_above),
                                       cmocka_unit_test(test_moved_on),
                                       cmocka_unit_test(test_handles),
                                       cmocka_unit_test(test_handles_of_threads)};

    return cmocka_run_group_tests_name("logical files", tests, unit_setup, unit_teardown) == 0 ? 0 : 1;
}
