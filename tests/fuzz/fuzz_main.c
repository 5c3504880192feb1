/* Runs a target without a fuzzer: over all files given, and then over changed ones.
 *
 *     fuzz-TARGET [--runs N] [--seed S] [--first I] FILE|FOLDER...
 *
 * Run I depends on the files, the seed and I alone. A run that does not end within LIMIT seconds ends the program. */
#if !defined(FUZZER) /* libFuzzer has a main of its own */
#include <dirent.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/number.h"
#include "fuzz_target.h"

#undef main /* which fuzz-command has under another name, that of the command */

#define LIMIT     20 /* seconds */
#define INPUT_MAX (1u << 20)

struct corpus {
    struct seed_file {
        uint8_t *bytes;
        size_t n;
    } * file;
    size_t count;
};

static char now[600] = "nothing"; /* being run, for who asks why the program ended */

static _Noreturn void die(const char *text, const char *what)
{
    fprintf(stderr, "fuzz: %s%s\n", text, what);
    exit(3);
}

static void say_now(void)
{
    if (write(2, now, strlen(now)) > 0 && write(2, "\n", 1) > 0)
        return;
}

static void on_signal(int number)
{
    say_now();
    signal(number, SIG_DFL);
    raise(number);
}

static void corpus_add(struct corpus *c, const char *path);

static void corpus_add_folder(struct corpus *c, const char *path)
{
    struct dirent **entries;
    char inside[1024];
    int n = scandir(path, &entries, NULL, alphasort);

    for (int i = 0; i < n; i++) {
        snprintf(inside, sizeof inside, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            corpus_add(c, inside);
        free(entries[i]);
    }
    if (n < 0)
        die("cannot read the folder ", path);
    free(entries);
}

static void corpus_add(struct corpus *c, const char *path)
{
    static uint8_t bytes[INPUT_MAX];
    DIR *folder = opendir(path);

    if (folder) {
        closedir(folder);
        corpus_add_folder(c, path);
        return;
    }
    FILE *f = fopen(path, "rb");
    if (!f)
        die("cannot open ", path);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    c->file = realloc(c->file, (c->count + 1) * sizeof *c->file);
    struct fuzz_input in = {bytes, n};
    if (!c->file)
        die("no memory", "");
    c->file[c->count].bytes = fuzz_bytes(&in, n, &c->file[c->count].n);
    snprintf(now, sizeof now, "fuzz: file %s", path);
    LLVMFuzzerTestOneInput(c->file[c->count].bytes, n);
    c->count++;
}

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static size_t below(uint64_t *state, size_t n)
{
    return n > 0 ? (size_t)(next(state) % n) : 0;
}

/* One change: a bit, a byte, a number, a stretch left out, doubled, or taken from another file. Returns the new size;
 * there is room for INPUT_MAX. */
static size_t change(uint8_t *bytes, size_t n, const struct corpus *c, uint64_t *r)
{
    static const uint64_t numbers[] = {0, 1, 2, 0x7f, 0x80, 0xff, 0xffff, 0x7fffffff, UINT32_MAX, UINT64_MAX};
    size_t at = below(r, n), length = below(r, below(r, 3) ? 8 : 400) + 1, from = below(r, n);
    const struct seed_file *other = &c->file[below(r, c->count)];
    uint64_t number = numbers[below(r, sizeof numbers / sizeof numbers[0])];

    if (n == 0)
        return n;
    length = length < n - at ? length : n - at;
    switch (below(r, 7)) {
    case 0:
        bytes[at] ^= (uint8_t)(1u << below(r, 8));
        return n;
    case 1:
        bytes[at] = (uint8_t)next(r);
        return n;
    case 2:
        bytes[at] = (uint8_t)(bytes[at] + (below(r, 2) ? 1 : -1));
        return n;
    case 3:
        for (size_t i = 0, size = (size_t)1 << below(r, 4); i < size && at + i < n; i++)
            bytes[at + i] = (uint8_t)(number >> 8 * i);
        return n;
    case 4:
        memmove(bytes + at, bytes + at + length, n - at - length);
        return n - length;
    case 5:
        length = length < n - from ? length : n - from;
        if (n + length > INPUT_MAX)
            return n;
        memmove(bytes + at + length, bytes + at, n - at);
        memmove(bytes + at, bytes + from, length);
        return n + length;
    default:
        from = below(r, other->n);
        length = length < other->n - from ? length : other->n - from;
        memcpy(bytes + at, other->bytes + from, length);
        return n;
    }
}

static void run(const struct corpus *c, uint64_t seed, uint64_t i)
{
    static uint8_t bytes[INPUT_MAX];
    uint64_t r = seed;

    r = next(&r) ^ i * 0xd1342543de82ef95u;
    const struct seed_file *f = &c->file[below(&r, c->count)];
    size_t n = f->n;
    memcpy(bytes, f->bytes, n);
    for (size_t k = below(&r, 5) + 1; k > 0; k--)
        n = change(bytes, n, c, &r);
    struct fuzz_input in = {bytes, n};
    uint8_t *alone = fuzz_bytes(&in, n, &n);
    snprintf(now, sizeof now, "fuzz: run %llu of seed %llu", (unsigned long long)i, (unsigned long long)seed);
    alarm(LIMIT);
    LLVMFuzzerTestOneInput(alone, n);
    free(alone);
}

void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

int main(int argc, char **argv)
{
    static const struct option options[] = {{"runs", required_argument, NULL, 'n'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"first", required_argument, NULL, 'i'},
                                            {NULL, 0, NULL, 0}};
    struct corpus c = {0};
    uint64_t runs = 0, seed = 1, first = 0;

    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        uint64_t *number = o == 'n' ? &runs : o == 's' ? &seed : o == 'i' ? &first : NULL;
        if (!number || number_parse(optarg, number) != 0)
            die("usage: fuzz-TARGET [--runs N] [--seed S] [--first I] FILE|FOLDER...", "");
    }
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(say_now);
    signal(SIGABRT, on_signal);
    signal(SIGALRM, on_signal);
    for (int i = optind; i < argc; i++)
        corpus_add(&c, argv[i]);
    if (c.count == 0)
        die("no files given", "");
    for (uint64_t i = 0; i < runs; i++)
        run(&c, seed, first + i);
    for (size_t i = 0; i < c.count; i++)
        free(c.file[i].bytes);
    free(c.file);
    return 0;
}
#endif
