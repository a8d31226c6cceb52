/* SPDX-License-Identifier: MIT */
/*
 * bench_fit: the cost of "would it have fit?".  Replays random programs (tests/fit/ops.h) of a million operations together under
 * each of twelve settings; then 30 000 operations, as many as a normal training run has, under 200 capacities.
 * The aims are 3 s and 5 s.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "analyzer/fit/engine.h"
#include "tests/fit/ops.h"

/* The processor's time: the machine may do other things. */
static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Replays programs of seeds from 1 on until `wanted` operations are done, those that empty the cache included. */
static unsigned long run(unsigned long wanted, const struct sl_fit_settings *settings, uint64_t capacity)
{
	const struct sl_fit_machine machine = {.release = SL_FIT_RELEASE(2, 14), .device_total = 80ull << 30, .capacity = capacity};
	unsigned long done = 0;

	for (uint64_t seed = 1; done < wanted; seed++) {
		unsigned count;
		struct op *ops = ops_make(seed, &count);
		struct sl_fit_engine *engine = sl_fit_new(&machine, settings);
		struct sl_fit_block **live = calloc(count, sizeof(*live));

		for (unsigned i = 0; i < count; i++) {
			if (ops[i].kind == OP_ALLOC) {
				if (!(live[ops[i].id] = sl_fit_alloc(engine, ops[i].bytes, ops[i].stream, 0)))
					break;
			} else if (ops[i].kind == OP_EMPTY) {
				sl_fit_empty_cache(engine);
			} else {
				sl_fit_free(engine, live[ops[i].id]);
			}
		}
		done += count; /* operations after an out-of-memory count too: they need no replay */
		sl_fit_delete(engine);
		free(live);
		free(ops);
	}
	return done;
}

int main(void)
{
	static const char *const texts[] = {"",
					    "expandable_segments:True",
					    "max_split_size_mb:32",
					    "max_split_size_mb:128",
					    "max_split_size_mb:512",
					    "roundup_power2_divisions:2",
					    "roundup_power2_divisions:4",
					    "roundup_power2_divisions:8",
					    "expandable_segments:True,roundup_power2_divisions:4",
					    "expandable_segments:True,max_split_size_mb:128",
					    "garbage_collection_threshold:0.8,per_process_memory_fraction:0.9",
					    "large_segment_size_mb:64"};
	unsigned long operations = 0;
	double begin = now_s(), settings_s;

	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct sl_fit_settings settings = sl_fit_defaults;
		const char *at, *wrong = sl_fit_settings_parse(&settings, texts[i], SL_FIT_RELEASE(2, 14), &at);

		if (wrong) {
			fprintf(stderr, "%s: %s\n", texts[i], wrong);
			return 1;
		}
		operations = run(1000000, &settings, UINT64_MAX);
	}
	settings_s = now_s() - begin;
	begin = now_s();
	for (unsigned i = 0; i < 200; i++)
		run(30000, &sl_fit_defaults, (3ull << 30) - ((uint64_t)i << 21));
	printf("%lu %.3f %.3f\n", operations, settings_s, now_s() - begin); /* columns for scripts/bench */
	return 0;
}
