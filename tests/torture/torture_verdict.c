#include <stdarg.h>
#include <stdio.h>
#include "torture_verdict.h"

static void report(struct torture_verdict *v, const char *what, const char *fmt, va_list ap)
{
    fprintf(stderr, "torture: %s: seed %llu, %s %llu: ", what, (unsigned long long)v->seed, v->about,
            (unsigned long long)v->detail);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
}

void torture_lost(struct torture_verdict *v, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (!v->is_lost)
        report(v, "lost", fmt, ap);
    va_end(ap);
    v->is_lost = 1;
}

void torture_wrong(struct torture_verdict *v, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (!v->is_wrong)
        report(v, "wrong", fmt, ap);
    va_end(ap);
    v->is_wrong = 1;
}
