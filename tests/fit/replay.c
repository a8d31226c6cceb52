/* SPDX-License-Identifier: MIT */
/* replay RELEASE <LINES: answers the lines of oracle.cpp by our engine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/fit/engine.h"
#include "common/base.h"
#include "tests/fit/ops.h"

static void change(struct sl_fit_engine *engine, struct sl_fit_settings *settings, const char *text, unsigned release)
{
	const char *at;

	sl_fit_settings_reset(settings, release);
	sl_fit_settings_parse(settings, text, release, &at);
	sl_fit_set(engine, settings);
}

static void on_pool(struct sl_fit_engine *engine, const struct op *op)
{
	if (op->kind == OP_HOLD)
		sl_fit_pool_hold(engine, op->pool);
	else if (op->kind == OP_RELEASE || op->kind == OP_DROP)
		sl_fit_pool_release(engine, op->pool);
	else if (op->kind == OP_BEGIN)
		sl_fit_pool_begin(engine, op->pool);
	else if (op->kind == OP_END)
		sl_fit_pool_end(engine);
	if (op->kind == OP_DROP)
		sl_fit_pool_empty(engine, op->pool);
	if (op->captures)
		sl_fit_capture(engine, op->pool, op->kind == OP_BEGIN);
}

static void one(uint64_t seed, uint64_t capacity, double fraction, const char *settings_text, unsigned release)
{
	struct sl_fit_settings settings = sl_fit_defaults;
	struct sl_fit_machine machine = {.release = release, .device_total = capacity << 20, .capacity = capacity << 20};
	struct sl_fit_engine *engine;
	const struct sl_fit_stats *stats;
	struct answer answer = {.oom = -1};
	const char *at, *wrong = sl_fit_settings_parse(&settings, settings_text, release, &at);
	unsigned count, first_later = 0;
	int routed = 0;
	struct op *ops = ops_make(seed, &count);
	struct sl_fit_block **live = calloc(count, sizeof(*live));

	if (wrong) {
		printf("%s: %s\n", wrong, at);
		return;
	}
	settings.fraction = fraction > 0 ? fraction : settings.fraction;
	engine = sl_fit_new(&machine, &settings);
	stats = sl_fit_stats(engine);
	for (unsigned i = 0; i < count && answer.oom < 0; i++) {
		/* the real allocator looks at events when it is asked for memory; they complete in the order in which they were recorded */
		routed += ops[i].kind == OP_BEGIN ? 1 : ops[i].kind == OP_END ? -1 : 0;
		for (;
		     ops[i].kind == OP_ALLOC && !ops_captures(&ops[i], routed, release >= SL_FIT_RELEASE(2, 13)) && first_later < i;
		     first_later++) {
			if (ops[first_later].kind == OP_FREE_LATER && ops[first_later].due > i)
				break;
			if (ops[first_later].kind == OP_FREE_LATER)
				sl_fit_done(engine, ops[first_later].id);
		}
		if (ops[i].newer && sl_fit_pool_newest(release))
			ops[i].pool = ops[i].newer;
		if (ops[i].kind == OP_ALLOC && !(live[ops[i].id] = sl_fit_alloc(engine, ops[i].bytes, ops[i].stream, ops[i].pool)))
			answer.oom = i;
		else if (ops[i].kind == OP_FREE)
			sl_fit_free(engine, live[ops[i].id]);
		else if (ops[i].kind == OP_FREE_LATER)
			sl_fit_free_later(engine, live[ops[i].id], ops[i].id);
		else if (ops[i].kind == OP_EMPTY)
			sl_fit_empty_cache(engine);
		else if (ops[i].kind == OP_SETTINGS)
			change(engine, &settings, ops_settings[ops[i].id], release);
		else if (ops[i].kind >= OP_HOLD)
			on_pool(engine, &ops[i]);
		if (stats->broken)
			answer.oom = i;
	}
	answer.peak_reserved = stats->peak_reserved;
	answer.peak_allocated = stats->peak_allocated;
	answer.peak_inactive = stats->peak_inactive_split;
	answer.peak_segments = stats->peak_segments;
	answer.calls = stats->driver_calls;
	answer.retries = stats->retries;
	answer.reserved = stats->broken == SL_FIT_ASSERTED ? 0 : stats->reserved;
	answer.allocated = stats->allocated;
	if (stats->broken == SL_FIT_CORRUPT)
		printf("corrupt ");
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
