/* SPDX-License-Identifier: MIT */
/* replay RELEASE <LINES: the same lines as oracle.cpp's, answered by our engine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/fit/engine.h"
#include "common/base.h"
#include "tests/fit/ops.h"

static void one(uint64_t seed, uint64_t capacity, double fraction, const char *settings_text, unsigned release)
{
	struct sl_fit_settings settings = sl_fit_defaults;
	struct sl_fit_machine machine = {.release = release, .device_total = capacity << 20, .capacity = capacity << 20};
	struct sl_fit_engine *engine;
	const struct sl_fit_stats *stats;
	struct answer answer = {.oom = -1};
	const char *at, *wrong = sl_fit_settings_parse(&settings, settings_text, release, &at);
	unsigned count, first_later = 0;
	struct op *ops = ops_make(seed, &count);
	struct sl_fit_block **live = calloc(count, sizeof(*live));

	if (wrong) {
		printf("%s: %s\n", wrong, at);
		return;
	}
	settings.fraction = fraction > 0 ? fraction : 0;
	engine = sl_fit_new(&machine, &settings);
	stats = sl_fit_stats(engine);
	for (unsigned i = 0; i < count && answer.oom < 0; i++) {
		/* the real one looks at events when it is asked for memory; they end in the order in which they were recorded */
		for (; ops[i].kind == OP_ALLOC && first_later < i; first_later++) {
			if (ops[first_later].kind == OP_FREE_LATER && ops[first_later].due > i)
				break;
			if (ops[first_later].kind == OP_FREE_LATER)
				sl_fit_done(engine, ops[first_later].id);
		}
		if (ops[i].kind == OP_ALLOC && !(live[ops[i].id] = sl_fit_alloc(engine, ops[i].bytes, ops[i].stream)))
			answer.oom = i;
		else if (ops[i].kind == OP_FREE)
			sl_fit_free(engine, live[ops[i].id]);
		else if (ops[i].kind == OP_FREE_LATER)
			sl_fit_free_later(engine, live[ops[i].id], ops[i].id);
		else if (ops[i].kind == OP_EMPTY)
			sl_fit_empty_cache(engine);
	}
	answer.peak_reserved = stats->peak_reserved;
	answer.peak_allocated = stats->peak_allocated;
	answer.peak_inactive = stats->peak_inactive_split;
	answer.peak_segments = stats->peak_segments;
	answer.calls = stats->driver_calls;
	answer.retries = stats->retries;
	answer.reserved = stats->reserved;
	answer.allocated = stats->allocated;
	printf(ANSWER_FORMAT, ANSWER_VALUES(answer));
	sl_fit_delete(engine);
	free(live);
	free(ops);
}

int main(int argc, char **argv)
{
	unsigned long long seed, capacity;
	unsigned major, minor;
	double fraction;
	char settings[512];

	if (argc != 2 || sscanf(argv[1], "%u.%u", &major, &minor) != 2)
		return 2;
	while (scanf("%llu %llu %lf %511s", &seed, &capacity, &fraction, settings) == 4)
		one(seed, capacity, fraction, strcmp(settings, "-") ? settings : "", SL_FIT_RELEASE(major, minor));
	return 0;
}
