#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "torture_case.h"
#include "torture_cases.h"
#include "torture_job.h"

#define SECONDS 120 /* of a case, at most */
#define TURNS   20  /* times the cases that are wanted: not every one counts */

enum { CASE_LOST = 1, CASE_WRONG = 2, CASE_NONE = 4 };

struct campaign {
    uint64_t count, seed, first;
    int is_one;
    char folder[180];
};

static int campaign_parse(struct campaign *c, const char *kind, int argc, char **argv)
{
    static const struct option options[] = {{"count", required_argument, NULL, 'n'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"case", required_argument, NULL, 'i'},
                                            {"folder", required_argument, NULL, 'f'},
                                            {NULL, 0, NULL, 0}};
    const char *tmp = getenv("TMPDIR"), *in = tmp ? tmp : "/tmp";

    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (o == '?')
            return -1;
        if (o == 'f')
            in = optarg;
        else
            *(o == 'n' ? &c->count : o == 's' ? &c->seed : &c->first) = strtoull(optarg, NULL, 0);
        c->is_one |= o == 'i';
    }
    snprintf(c->folder, sizeof c->folder, "%.130s/deltafs-%s.XXXXXX", in, kind);
    return mkdtemp(c->folder) ? 0 : -1;
}

/* One case, in a process of its own. Returns its CASE_ bits. */
static int campaign_case(const struct campaign *c, torture_run_fn run, uint64_t i)
{
    char folder[200];
    int status = 0;

    snprintf(folder, sizeof folder, "%s/c", c->folder);
    pid_t child = mkdir(folder, 0777) == 0 ? fork() : -1;
    if (child == 0) {
        struct torture_verdict v = {.seed = c->seed, .detail = i, .about = "case"};
        alarm(SECONDS);
        int counts = run(folder, c->seed, i, &v);
        exit((v.is_lost ? CASE_LOST : 0) | (v.is_wrong ? CASE_WRONG : 0) | (counts ? 0 : CASE_NONE));
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("torture: a case cannot be run");
        exit(EXIT_FAILURE);
    }
    torture_remove(folder);
    if (WIFEXITED(status) && WEXITSTATUS(status) <= (CASE_LOST | CASE_WRONG | CASE_NONE))
        return WEXITSTATUS(status);
    fprintf(stderr, "torture: wrong: seed %ju, case %ju: ends by signal %d, exit code %d\n", (uintmax_t)c->seed,
            (uintmax_t)i, WIFSIGNALED(status) ? WTERMSIG(status) : 0, WIFEXITED(status) ? WEXITSTATUS(status) : 0);
    return CASE_WRONG;
}

int torture_cases(const char *kind, torture_run_fn run, int argc, char **argv)
{
    struct campaign c = {.count = 1000, .seed = 1};
    struct torture_tally tally = {0};

    if (campaign_parse(&c, kind, argc, argv) != 0) {
        fprintf(stderr, "usage: torture-%s [--count N] [--seed S] [--case I] [--folder DIR]\n", kind);
        return 2;
    }
    for (uint64_t i = c.first, end = c.first + (c.is_one ? 1 : TURNS * c.count); i < end && tally.tried < c.count;
         i++) {
        int bits = campaign_case(&c, run, i);
        tally.lost += (bits & CASE_LOST) != 0;
        tally.wrong += (bits & CASE_WRONG) != 0;
        tally.tried += !(bits & CASE_NONE) || (bits & (CASE_LOST | CASE_WRONG));
    }
    torture_remove(c.folder);
    return torture_case_report(kind, &tally);
}
