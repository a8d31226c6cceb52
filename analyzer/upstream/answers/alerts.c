/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/answers/answers.h"

const struct sl_alert_thresholds sl_alert_defaults = {
	.warning_percent = 80, .critical_percent = 95, .jump_bytes = 100 << 20, .fragmentation = 0.3};

struct deriving {
	const struct sl_alert_thresholds *thresholds;
	struct sl_arena *arena;
	void (*alert)(void *, const struct sl_v3_event *);
	void *context;
};

static void raise_alert(struct deriving *d, const struct sl_v3_event *sample, const char *type, const char *text, const char *key,
			struct sl_value value)
{
	uint32_t own = sample->metadata ? sample->metadata->count : 0;
	struct sl_value *metadata = sl_value_object(d->arena, own + 1);
	struct sl_v3_event event = *sample;

	for (uint32_t i = 0; i < own; i++)
		if (strcmp(sample->metadata->members[i].key, key) != 0)
			sl_value_set(metadata, sample->metadata->members[i].key, sample->metadata->members[i].value);
	sl_value_set(metadata, key, value);
	event.event_type = type;
	event.context = text;
	event.metadata = metadata;
	d->alert(d->context, &event);
}

/* 2 critical, 1 warning, 0 neither. */
static int level_of(double percent, const struct sl_alert_thresholds *t)
{
	return percent >= t->critical_percent ? 2 : percent >= t->warning_percent ? 1 : 0;
}

/* As upstream does: judges what the allocator has given out; where none reports, what the device has in use. */
static void check_usage(struct deriving *d, const struct sl_v3_event *sample, int *level)
{
	int64_t used = sample->active_bytes == SL_EVENT_UNKNOWN ? sample->used_bytes : sample->allocated_bytes;
	double percent = (double)used / (double)sample->total_bytes * 100;
	int now = level_of(percent, d->thresholds);
	bool say = now > *level;

	*level = now;
	if (!say)
		return;
	const char *word = now == 2 ? "CRITICAL" : "WARNING";

	raise_alert(d, sample, now == 2 ? "critical" : "warning",
		    sl_arena_printf(d->arena, "%s: Memory usage at %.1f%%", word, percent), "usage_percent",
		    sl_value_of_double(percent));
}

static void check_jump(struct deriving *d, const struct sl_v3_event *sample, int64_t change)
{
	char size[32];

	if (change <= 0 || (uint64_t)change <= d->thresholds->jump_bytes)
		return;
	sl_utf8_format_bytes((double)change, size);
	raise_alert(d, sample, "warning", sl_arena_printf(d->arena, "Large allocation detected: %s", size), "large_allocation",
		    (struct sl_value){.kind = SL_VALUE_BOOL, .truth = true});
}

static void check_fragmentation(struct deriving *d, const struct sl_v3_event *sample, bool *fragmented)
{
	double share = sample->reserved_bytes > 0
			       ? (double)(sample->reserved_bytes - sample->allocated_bytes) / (double)sample->reserved_bytes
			       : 0;
	bool now = share > d->thresholds->fragmentation, say = now && !*fragmented;

	*fragmented = now;
	if (say)
		raise_alert(d, sample, "warning", sl_arena_printf(d->arena, "High fragmentation: %.1f%%", share * 100),
			    "fragmentation", sl_value_of_double(share));
}

void sl_alerts_derive(const struct sl_series *samples, const struct sl_alert_thresholds *thresholds, struct sl_arena *arena,
		      void (*alert)(void *context, const struct sl_v3_event *event), void *context)
{
	struct deriving d = {thresholds, arena, alert, context};
	int64_t before = samples->count ? samples->events[0]->allocated_bytes : 0;
	bool fragmented = false;
	int level = 0;

	for (size_t i = 0; i < samples->count; i++) {
		const struct sl_v3_event *sample = samples->events[i];

		if (sample->total_bytes > 0) {
			check_usage(&d, sample, &level);
			check_jump(&d, sample, sample->allocated_bytes - before);
			check_fragmentation(&d, sample, &fragmented);
		}
		before = sample->allocated_bytes;
	}
}
