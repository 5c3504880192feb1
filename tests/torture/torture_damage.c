/* Damages containers in memory, one damage a case, and reads them in all ways: an answer is right, or an error names
 * the damaged file and the place. Some are then repaired or reopened, and read again. See damage.h.
 *
 *     torture-damage [--count N] [--seed S] [--case I] [--corpus FOLDER]
 *
 * Case I depends on the seed and I alone. FOLDER has the golden containers. The last line is
 * "torture: damage N tried, L lost, W wrong"; the exit code is 1 if L or W is above 0. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "damage.h"

#define SHOWN  20 /* failures that are told in full */
#define MENDED 5  /* of so many cases, one is repaired or reopened */

struct campaign {
    uint64_t count, seed, first;
    const char *corpus;
    struct damage_container *containers;
    size_t containers_count;
    uint64_t tried, lost, wrong;
};

static void campaign_parse(struct campaign *c, int argc, char **argv)
{
    static const struct option options[] = {{"count", required_argument, NULL, 'n'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"case", required_argument, NULL, 'i'},
                                            {"corpus", required_argument, NULL, 'c'},
                                            {NULL, 0, NULL, 0}};

    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        uint64_t *number = o == 'n' ? &c->count : o == 's' ? &c->seed : o == 'i' ? &c->first : NULL;
        if (o == 'c')
            c->corpus = optarg;
        else if (!number || number_parse(optarg, number) != 0)
            damage_die("usage: torture-damage [--count N] [--seed S] [--case I] [--corpus FOLDER]");
        if (o == 'i')
            c->count = 1;
    }
}

static void campaign_case(struct campaign *c, uint64_t i)
{
    static struct mem_io m;
    struct damage_rng mix = {c->seed}, r = {damage_next(&mix) ^ i * 0xd1342543de82ef95u};
    size_t which = (size_t)damage_below(&r, c->containers_count);
    struct damage d;
    struct damage_verdict v;

    mem_io_begin(&m);
    damage_show(&m, &c->containers[which].now);
    damage_do(&m, &r, c->containers, c->containers_count, which, &d);
    damage_check(&c->containers[which], &d, &r, &v);
    if (v.lost + v.wrong == 0 && damage_below(&r, MENDED) == 0) {
        damage_mend(&c->containers[which], &d, &r, &v);
        if (v.lost + v.wrong == 0)
            damage_check(&c->containers[which], &d, &r, &v);
    }
    if (mem_io_end(&m) != 0 && v.lost + v.wrong == 0) {
        v.wrong = 1;
        snprintf(v.text, sizeof v.text, "a file is still open");
    }
    c->tried++;
    if ((v.lost || v.wrong) && c->lost + c->wrong < SHOWN)
        fprintf(stderr, "case %llu of seed %llu: %s\n    %s\n", (unsigned long long)i, (unsigned long long)c->seed,
                d.text, v.text);
    c->lost += v.lost > 0;
    c->wrong += v.wrong > 0;
}

int main(int argc, char **argv)
{
    struct campaign c = {.count = 20000, .seed = 1};

    campaign_parse(&c, argc, argv);
    c.containers_count = damage_containers(&c.containers, c.corpus);
    for (uint64_t i = 0; i < c.count; i++)
        campaign_case(&c, c.first + i);
    damage_containers_free(c.containers, c.containers_count);
    printf("torture: damage %llu tried, %llu lost, %llu wrong\n", (unsigned long long)c.tried,
           (unsigned long long)c.lost, (unsigned long long)c.wrong);
    return c.lost + c.wrong > 0;
}
