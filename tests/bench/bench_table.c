#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench_help.h"
#include "bench_table.h"

struct row {
    char title[64], label[64], peer_name[64], unit[32];
    enum better better;
    struct spread ours, peer;
    struct target target;
};

struct table {
    struct row *row;
    size_t count;
    struct row head; /* what table_begin said */
};

struct table *table_create(void)
{
    struct table *t = bench_grow(NULL, sizeof *t);

    *t = (struct table){0};
    return t;
}

void table_destroy(struct table *t)
{
    if (!t)
        return;
    free(t->row);
    free(t);
}

static double row_ratio(const struct row *r)
{
    return r->ours.median / r->peer.median;
}

static int row_is_reached(const struct row *r)
{
    if (r->better == MORE)
        return (r->target.judged == BY_WORST ? r->ours.low : r->ours.median) >= r->target.ratio * r->peer.median;
    return (r->target.judged == BY_WORST ? r->ours.high : r->ours.median) <= r->target.ratio * r->peer.median;
}

/* Three digits of a number, or four where it is near to one. */
static char *number(char out[static 32], double v)
{
    if (v == 0 || fabs(v) >= 100)
        snprintf(out, 32, "%.0f", v);
    else if (fabs(v) >= 10)
        snprintf(out, 32, "%.1f", v);
    else if (fabs(v) >= 1)
        snprintf(out, 32, "%.3f", v);
    else
        snprintf(out, 32, "%.3g", v);
    return out;
}

/* "median [low..high]", or the number alone where all are the same. */
static char *spread_text(char out[static 96], struct spread s)
{
    char median[32], low[32], high[32];

    if (s.low == s.high)
        snprintf(out, 96, "%s", number(median, s.median));
    else
        snprintf(out, 96, "%s [%s..%s]", number(median, s.median), number(low, s.low), number(high, s.high));
    return out;
}

void table_begin(struct table *t, const char *title, const char *unit, enum better better)
{
    t->head = (struct row){.better = better};
    snprintf(t->head.title, sizeof t->head.title, "%s", title);
    snprintf(t->head.unit, sizeof t->head.unit, "%s", unit);
    printf("\n%s, %s (%s is better)\n", title, unit, better == LESS ? "less" : "more");
    printf("%-30s %22s  %-22s %22s %7s %6s %s\n", "", "ours", "peer", "", "ratio", "target", "");
}

void table_row(struct table *t, const char *label, struct spread ours, const char *peer_name, struct spread peer,
               struct target target)
{
    char ours_text[96], peer_text[96], ratio[32], wanted[40] = "";

    t->row = bench_grow(t->row, (t->count + 1) * sizeof *t->row);
    struct row *r = &t->row[t->count++];
    *r = t->head;
    snprintf(r->label, sizeof r->label, "%s", label);
    snprintf(r->peer_name, sizeof r->peer_name, "%s", peer_name);
    r->ours = ours;
    r->peer = peer;
    r->target = target;
    if (target.judged != NO_TARGET)
        snprintf(wanted, sizeof wanted, "%s%.3g", r->better == LESS ? "<=" : ">=", target.ratio);
    printf("%-30s %22s  %-22s %22s %7s %6s %s\n", label, spread_text(ours_text, ours), peer_name,
           spread_text(peer_text, peer), number(ratio, row_ratio(r)), wanted,
           target.judged == NO_TARGET ? ""
           : row_is_reached(r)        ? "yes"
                                      : "NO");
    fflush(stdout);
}

void table_summary(const struct table *t)
{
    size_t reached = 0, missed = 0;

    for (size_t i = 0; i < t->count; i++) {
        if (t->row[i].target.judged == NO_TARGET)
            continue;
        if (row_is_reached(&t->row[i]))
            reached++;
        else
            missed++;
    }
    printf("\n%zu rows; %zu of %zu targets reached\n", t->count, reached, reached + missed);
    for (size_t i = 0; i < t->count; i++) {
        const struct row *r = &t->row[i];
        if (r->target.judged != NO_TARGET && !row_is_reached(r))
            printf("  not reached: %s: %s against %s: %.4g, target %s%.3g\n", r->title, r->label, r->peer_name,
                   row_ratio(r), r->better == LESS ? "<=" : ">=", r->target.ratio);
    }
}

static FILE *results_open(const char *path)
{
    FILE *f = fopen(path, "w");

    if (!f)
        bench_die("create %s: %s", path, strerror(errno));
    return f;
}

static void results_close(FILE *f, const char *path)
{
    int failed = ferror(f);

    if (fclose(f) != 0 || failed)
        bench_die("write %s: %s", path, strerror(errno));
}

void table_write_json(const struct table *t, const char *path)
{
    FILE *f = results_open(path);

    fprintf(f, "[\n");
    for (size_t i = 0; i < t->count; i++) {
        const struct row *r = &t->row[i];
        fprintf(f, "{\"name\": \"%s: %s (%s is better)\", ", r->title, r->label, r->better == LESS ? "less" : "more");
        fprintf(f, "\"ours\": %.6g, \"ours_low\": %.6g, \"ours_high\": %.6g, ", r->ours.median, r->ours.low,
                r->ours.high);
        fprintf(f, "\"peer\": %.6g, \"peer_low\": %.6g, \"peer_high\": %.6g, ", r->peer.median, r->peer.low,
                r->peer.high);
        fprintf(f, "\"peer_name\": \"%s\", \"unit\": \"%s\", ", r->peer_name, r->unit);
        if (isfinite(row_ratio(r)))
            fprintf(f, "\"ratio\": %.6g", row_ratio(r));
        else
            fprintf(f, "\"ratio\": null");
        if (r->target.judged != NO_TARGET)
            fprintf(f, ", \"target\": %.6g, \"reached\": %s", r->target.ratio, row_is_reached(r) ? "true" : "false");
        fprintf(f, "}%s\n", i + 1 < t->count ? "," : "");
    }
    fprintf(f, "]\n");
    results_close(f, path);
}

void table_write_tsv(const struct table *t, const char *path)
{
    FILE *f = results_open(path);

    for (size_t i = 0; i < t->count; i++) {
        const struct row *r = &t->row[i];
        fprintf(f, "%s\t%s\t%s\t%.6g\t%.6g\t%.6g\n", r->title, r->label, r->peer_name, r->ours.median, r->peer.median,
                row_ratio(r));
    }
    results_close(f, path);
}
