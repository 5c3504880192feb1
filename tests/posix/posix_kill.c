/* A program that is killed while it changes files of a folder, and that checks afterwards what has to be there.
 *
 *     posix_kill write FOLDER LOG NUMBER STEPS
 *     posix_kill check FOLDER LOG NUMBER
 *
 * NUMBER, from 0 to 9, is the process's: its files begin with it, and it adds records to the file "all", as the others
 * do. Before and after each change, LOG gets a line. So at most the change of the last line is in doubt. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "torture_rng.h"

#define NAMES            6
#define SIZE_MAX_OF_FILE 3000000
#define LIMIT            60 /* seconds that a process may take */

enum { ABSENT = 0 };

/* What a name has: the file with this number, whose bytes follow from it; and so many at least, and at most. */
struct file_state {
    unsigned id;
    long least, most;
};

static struct file_state state[NAMES], before[2]; /* of the names of the last change, before it */
static int last_name = -1, last_from = -1;        /* that change, if it has not ended; the second for renaming */
static long records, records_most;
static const char *folder;
static int number, log_fd;

static void must(int is_true, const char *what)
{
    if (is_true)
        return;
    fprintf(stderr, "process %d: %s: %s\n", number, what, strerror(errno));
    exit(1);
}

static const char *path_of(int name)
{
    static char path[2][4096];
    static int turn;
    char *p = path[turn ^= 1];

    snprintf(p, sizeof path[0], "%s/%d.%d", folder, number, name);
    return p;
}

static unsigned char byte_of(unsigned id, long at)
{
    return (unsigned char)((id * 2654435761u + (unsigned long)at * 40503u) >> 7);
}

/* ---- The log ---- */

/* Lines: "w NAME ID SIZE": will have at most so many bytes; "d NAME ID SIZE": has them; "m FROM TO 0", "r NAME 0 0":
 * rename and remove, "e 0 0 0": done; "a 0 0 N": will add record N to the common file, "b 0 0 N": has. */
static void note(char what, long a, long b, long c)
{
    char line[100];
    int n = snprintf(line, sizeof line, "%c %ld %ld %ld\n", what, a, b, c);

    must(write(log_fd, line, (size_t)n) == n, "the log");
}

/* ---- Writing ---- */

static void write_bytes(int fd, unsigned id, long from, long to)
{
    unsigned char piece[20000];

    while (from < to) {
        size_t n = to - from < (long)sizeof piece ? (size_t)(to - from) : sizeof piece;
        for (size_t i = 0; i < n; i++)
            piece[i] = byte_of(id, from + (long)i);
        must(write(fd, piece, n) == (ssize_t)n, "write");
        from += (long)n;
    }
}

/* Create or replace a file, or add to it; mostly with fsync on the way. */
static void change_file(struct torture_rng *rng, int name, unsigned id)
{
    struct file_state *s = &state[name];
    int is_new = s->id == ABSENT || torture_below(rng, 4) == 0;
    long add = (long)torture_below(rng, torture_below(rng, 5) == 0 ? SIZE_MAX_OF_FILE : 30000), middle = add / 3;

    if (is_new && s->id != ABSENT) {
        note('r', name, 0, 0);
        must(unlink(path_of(name)) == 0, "unlink");
        note('e', 0, 0, 0);
    }
    if (is_new)
        *s = (struct file_state){.id = id};
    note('w', name, s->id, s->most + add);
    int fd = open(path_of(name), O_WRONLY | O_CREAT | (is_new ? O_EXCL : O_APPEND), 0644);
    must(fd >= 0, "open");
    write_bytes(fd, s->id, s->most, s->most + middle);
    if (torture_below(rng, 3) > 0) {
        must(fsync(fd) == 0, "fsync");
        note('d', name, s->id, s->most + middle);
    }
    write_bytes(fd, s->id, s->most + middle, s->most + add);
    must(close(fd) == 0, "close");
    s->most += add;
    note('d', name, s->id, s->most);
}

static void rename_file(int from, int to)
{
    note('m', from, to, 0);
    must(rename(path_of(from), path_of(to)) == 0, "rename");
    note('e', 0, 0, 0);
    state[to] = state[from];
    state[from] = (struct file_state){ABSENT, 0, 0};
}

static void add_record(void)
{
    char path[4096], record[40];

    snprintf(path, sizeof path, "%s/all", folder);
    snprintf(record, sizeof record, "%d %12ld\n", number, ++records);
    note('a', 0, 0, records);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    must(fd >= 0 && write(fd, record, 15) == 15 && close(fd) == 0, "a record");
    note('b', 0, 0, records);
}

static void write_all(int steps)
{
    struct torture_rng rng = {(uint64_t)number};

    for (int i = 0; i < steps; i++) {
        int name = (int)torture_below(&rng, NAMES), to = (int)torture_below(&rng, NAMES);
        if (torture_below(&rng, 4) == 0 && state[name].id != ABSENT && name != to)
            rename_file(name, to);
        else
            change_file(&rng, name, (unsigned)i + 1);
        if (i % 2 == 0)
            add_record();
    }
}

/* ---- Checking ---- */

static void read_line(char what, int a, long b, long c)
{
    switch (what) {
    case 'w':
        last_name = a;
        before[0] = state[a];
        state[a] = (struct file_state){(unsigned)b, state[a].least, c};
        break;
    case 'd':
        last_name = -1;
        state[a].least = c;
        before[0] = state[a];
        break;
    case 'm':
        last_from = a;
        last_name = (int)b;
        before[0] = state[b];
        before[1] = state[a];
        state[b] = state[a];
        state[a] = (struct file_state){ABSENT, 0, 0};
        break;
    case 'r':
        last_name = a;
        before[0] = state[a];
        state[a] = (struct file_state){ABSENT, 0, 0};
        break;
    case 'e':
        last_name = last_from = -1;
        break;
    case 'b':
        records = c;
        break;
    default:
        records_most = c;
    }
}

/* Whether the name has this. */
static int has(int name, struct file_state s)
{
    unsigned char piece[20000];
    long at = 0;
    ssize_t n;
    int fd = open(path_of(name), O_RDONLY);

    if (fd < 0)
        return s.id == ABSENT && errno == ENOENT;
    while ((n = read(fd, piece, sizeof piece)) > 0 && s.id != ABSENT)
        for (ssize_t i = 0; i < n; i++, at++)
            if (piece[i] != byte_of(s.id, at)) {
                close(fd);
                return 0;
            }
    must(n >= 0 && close(fd) == 0, "read");
    return s.id != ABSENT && at >= s.least && at <= s.most;
}

static void check_names(void)
{
    int is_done = last_name < 0 || has(last_name, state[last_name]);

    for (int i = 0; i < NAMES; i++) {
        struct file_state *s = is_done || (i != last_name && i != last_from) ? &state[i] : &before[i != last_name];
        if (has(i, *s))
            continue;
        struct stat st = {.st_size = -1};
        stat(path_of(i), &st);
        fprintf(stderr, "process %d: file %d should be number %u with %ld to %ld bytes, and has %ld\n", number, i,
                s->id, s->least, s->most, (long)st.st_size);
        exit(1);
    }
}

static void check_records(void)
{
    char path[4096], line[100];
    long n = 0, record;
    int of;

    snprintf(path, sizeof path, "%s/all", folder);
    FILE *f = fopen(path, "r");
    must(f || records == 0, path);
    while (f && fgets(line, sizeof line, f)) {
        must(strlen(line) == 15 && sscanf(line, "%d %ld", &of, &record) == 2, "a record that is not whole");
        must(of != number || record == ++n, "the order of records");
    }
    must(n >= records && n <= records_most, "the number of records");
    if (f)
        fclose(f);
}

static void check_list(void)
{
    DIR *dir = opendir(folder);
    int count = 0, wanted = 0;

    must(dir != NULL, folder);
    for (struct dirent *e; (e = readdir(dir));)
        count += e->d_name[0] == '0' + number;
    closedir(dir);
    for (int i = 0; i < NAMES; i++)
        wanted += access(path_of(i), F_OK) == 0;
    must(count == wanted, "names that are listed");
}

static void check_all(const char *log)
{
    FILE *f = fopen(log, "r");
    char line[100], what;
    int a;
    long b, c;

    while (f && fgets(line, sizeof line, f) && sscanf(line, "%c %d %ld %ld", &what, &a, &b, &c) == 4)
        read_line(what, a, b, c);
    check_names();
    check_records();
    check_list();
    if (f)
        fclose(f);
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    folder = argv[2];
    number = atoi(argv[4]);
    alarm(LIMIT);
    if (strcmp(argv[1], "check") == 0) {
        check_all(argv[3]);
        return 0;
    }
    log_fd = open(argv[3], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    must(log_fd >= 0, argv[3]);
    write_all(argc > 5 ? atoi(argv[5]) : 0);
    return 0;
}
