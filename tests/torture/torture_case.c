#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "torture_case.h"

#define HANG_SECONDS 60

int torture_options_parse(int argc, char **argv, int first, struct torture_options *out)
{
    for (int i = first; i < argc; i += 2) {
        const char *value = argv[i + 1];
        if (!value)
            return 0;
        if (strcmp(argv[i], "--count") == 0)
            out->count = strtoull(value, NULL, 0);
        else if (strcmp(argv[i], "--seed") == 0)
            out->seed = strtoull(value, NULL, 0);
        else if (strcmp(argv[i], "--folder") == 0)
            out->folder = value;
        else
            return 0;
    }
    return 1;
}

static void on_alarm(int signal)
{
    static const char text[] = "torture: a case takes more than a minute: it hangs\n";

    (void)signal;
    if (write(STDERR_FILENO, text, sizeof text - 1) > 0)
        _exit(EXIT_FAILURE);
    _exit(EXIT_FAILURE);
}

void torture_case_begin(struct torture_verdict *v, uint64_t seed, const char *about, uint64_t detail)
{
    *v = (struct torture_verdict){.seed = seed, .about = about, .detail = detail};
    signal(SIGALRM, on_alarm);
    alarm(HANG_SECONDS);
}

void torture_case_end(const struct torture_verdict *v, struct torture_tally *tally)
{
    alarm(0);
    tally->tried++;
    tally->lost += (uint64_t)v->is_lost;
    tally->wrong += (uint64_t)v->is_wrong;
}

int torture_case_report(const char *kind, const struct torture_tally *tally)
{
    printf("torture: %s %llu tried, %llu lost, %llu wrong\n", kind, (unsigned long long)tally->tried,
           (unsigned long long)tally->lost, (unsigned long long)tally->wrong);
    return tally->lost + tally->wrong > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
