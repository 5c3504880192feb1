/* The parts of the benchmark, each of which adds tables. */
#ifndef BENCH_SECTIONS_H
#define BENCH_SECTIONS_H

#include "bench_engine.h"
#include "bench_table.h"

void section_size(const struct bench *b, struct table *t);
void section_ingest(const struct bench *b, struct table *t);
void section_read(const struct bench *b, struct table *t);
void section_ranges(const struct bench *b, struct table *t);
void section_growth(const struct bench *b, struct table *t);
void section_storage(const struct bench *b, struct table *t);
void section_memory(const struct bench *b, struct table *t);
void section_namespace(const struct bench *b, struct table *t);
void section_machine(const struct bench *b, struct table *t);

#endif
