/* SPDX-License-Identifier: MIT */
#include "analyzer/watch/watch.h"

#include <math.h>

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "common/now.h"

#define DEVICES SL_FIGURES_DEVICES

/* What is remembered of one device of a process. */
struct looks {
	struct sl_outlook outlook;
	struct sl_trend by_step;
	struct sl_alarm *alarms; /* one for each rule */
};

struct watched {
	const struct sl_followed *followed;
	struct sl_met met;
	struct looks device[DEVICES]; /* by their place in `met` */
	struct sl_alarm *alarms;      /* one for each rule about the process */
	struct sl_growing growing;
	const char *recorded; /* how the process is recorded, as last reported */
	double away;	      /* at this look; NAN: too few ranks to compare */
	bool ended;
};

struct sl_watch {
	const struct sl_rule *rules;
	size_t count;
	SL_VECTOR(struct watched *) watched;
	struct sl_map sessions; /* index into watched + 1 */
	void (*turned)(void *context, const struct sl_alert *alert);
	void (*unseen)(void *context, const struct sl_followed *followed);
	void *context;
	struct sl_holders holders; /* at this look */
	uint64_t now_ns, unix_ns;
};

struct sl_watch *sl_watch_new(const struct sl_rule *rules, size_t count)
{
	struct sl_watch *watch = sl_memory_must(calloc(1, sizeof(*watch)));

	watch->rules = rules;
	watch->count = count;
	return watch;
}

void sl_watch_free(struct sl_watch *watch)
{
	for (size_t i = 0; i < watch->watched.count; i++) {
		struct watched *one = watch->watched.item[i];

		for (unsigned d = 0; d < DEVICES; d++)
			free(one->device[d].alarms);
		sl_growing_free(&one->growing);
		free(one->alarms);
		free(one);
	}
	free(watch->watched.item);
	sl_map_free(&watch->sessions);
	free(watch);
}

static struct watched *find(const struct sl_watch *watch, const struct sl_followed *followed)
{
	uintptr_t at = sl_map_find(&watch->sessions, followed->process.session_id);

	return at ? watch->watched.item[at - 1] : NULL;
}

const struct sl_outlook *sl_watch_outlook(const struct sl_watch *watch, const struct sl_followed *followed, int device)
{
	struct watched *one = find(watch, followed);
	unsigned at = one ? sl_figures_met(&one->met, device) : DEVICES;

	return at < DEVICES ? &one->device[at].outlook : NULL;
}

static void full_by(struct watched *one, struct sl_followed *followed, int device, char *out, size_t size)
{
	struct sl_figures figures[DEVICES];
	unsigned count = sl_figures_of(&followed->process, figures, DEVICES), at;

	for (unsigned d = 0; d < count; d++)
		if (figures[d].device == device && (at = sl_figures_met(&one->met, device)) < DEVICES)
			sl_figures_full_by(&one->device[at].outlook, &one->growing, followed, &figures[d], out, size);
}

void sl_watch_full_by(const struct sl_watch *watch, struct sl_followed *followed, int device, char *out, size_t size)
{
	struct watched *one = find(watch, followed);

	out[0] = 0;
	if (one)
		full_by(one, followed, device, out, size);
}

static struct watched *watched_of(struct sl_watch *watch, const struct sl_followed *followed)
{
	struct watched *one = find(watch, followed);

	if (one)
		return one;
	one = sl_memory_must(calloc(1, sizeof(*one)));
	one->alarms = calloc(watch->count + 1, sizeof(*one->alarms));
	for (unsigned d = 0; d < DEVICES; d++)
		one->device[d].alarms = calloc(watch->count + 1, sizeof(*one->alarms));
	*SL_PUSH(&watch->watched) = one;
	*sl_map_at(&watch->sessions, followed->process.session_id) = watch->watched.count;
	return one;
}

/* ---- values */

static double known(uint64_t bytes)
{
	return bytes == SL_UNKNOWN ? NAN : (double)bytes;
}

/* NAN: no sample says what others hold of the device. */
static double used_of(const struct sl_figures *f)
{
	return f->used == SL_UNKNOWN ? NAN : (double)sl_figures_used(f);
}

static double bytes_of(enum sl_metric metric, const struct sl_figures *f)
{
	switch (metric) {
	case SL_METRIC_USED:
		return used_of(f);
	case SL_METRIC_LIVE:
		return (double)f->live;
	case SL_METRIC_RESERVED:
		return known(f->reserved);
	default:
		return isnan(used_of(f)) ? NAN : known(f->total) - fmin(known(f->total), used_of(f));
	}
}

static double of_device(const struct sl_rule *rule, const struct looks *looks, const struct sl_holders *holders,
			const struct sl_process *process, const struct sl_figures *f)
{
	double slope = 0;

	if (rule->metric == SL_METRIC_FULL_IN)
		return sl_figures_full_in(&looks->outlook, process, f);
	if (rule->metric == SL_METRIC_GROWTH)
		return sl_trend_slope(rule->unit == SL_UNIT_STEP ? &looks->by_step : &looks->outlook.trend, &slope) ? slope : 0;
	slope = rule->metric == SL_METRIC_HIDDEN ? known(sl_figures_hidden(holders, process, f)) : bytes_of(rule->metric, f);
	return rule->unit == SL_UNIT_SHARE ? slope / known(f->total) : slope;
}

static double oldest_call(const struct sl_watch *watch, const struct sl_process *process)
{
	double oldest = 0;

	for (size_t i = 0; i < process->model->in_flight.count; i++) {
		uint64_t since = sl_process_unix(process, process->model->in_flight.item[i].since_ns);

		oldest = fmax(oldest, ((double)watch->unix_ns - (double)since) / 1e9);
	}
	return oldest;
}

/* The living processes of a run, to be compared. */
struct alike {
	SL_VECTOR(struct watched *) ranks;
	SL_VECTOR(double) held;
};

static void compare(struct alike *run)
{
	double *away = sl_memory_must(calloc(run->held.count + 1, sizeof(*away)));

	sl_figures_away(run->held.item, (unsigned)run->held.count, away);
	for (size_t i = 0; i < run->ranks.count; i++)
		run->ranks.item[i]->away = run->held.count >= SL_RANKS_COMPARED ? fabs(away[i]) : NAN;
	free(away);
}

/* How far each is from the others of its run. */
static void compare_all(struct sl_watch *watch, const struct sl_follow *follow)
{
	SL_VECTOR(struct alike) runs = {0};
	struct sl_map known = {0};

	for (unsigned i = 0; i < sl_follow_count(follow); i++) {
		const struct sl_followed *followed = sl_follow_process(follow, i);
		const char *id = followed->process.trace->header.run_id; /* NULL for one that is watched from outside */
		struct watched *one = watched_of(watch, followed);
		struct alike *run;
		uintptr_t *at;

		one->away = NAN;
		if (followed->ended || !id || !followed->process.model)
			continue;
		at = sl_map_at(&known, id);
		if (!*at) {
			*SL_PUSH(&runs) = (struct alike){0};
			*at = runs.count;
		}
		run = &runs.item[*at - 1];
		*SL_PUSH(&run->ranks) = one;
		*SL_PUSH(&run->held) = (double)sl_figures_live(&followed->process);
	}
	for (size_t i = 0; i < runs.count; i++) {
		compare(&runs.item[i]);
		SL_DROP(&runs.item[i].ranks);
		SL_DROP(&runs.item[i].held);
	}
	SL_DROP(&runs);
	sl_map_free(&known);
}

static double of_process(const struct sl_watch *watch, const struct sl_rule *rule, const struct watched *one)
{
	if (rule->metric == SL_METRIC_OOMS)
		return (double)one->followed->process.model->ooms_total;
	if (rule->metric == SL_METRIC_UNLIKE)
		return one->away;
	return oldest_call(watch, &one->followed->process);
}

/* ---- changes of state */

static void tell(struct sl_watch *watch, struct watched *one, struct sl_alert *alert)
{
	const struct sl_header *header = &one->followed->process.trace->header;
	const char *words = !strcmp(alert->state, "ended")     ? "ended with its process"
			    : !strcmp(alert->state, "unknown") ? "no longer known"
							       : alert->state;
	char value[SL_FORMAT_BYTES + 8], what[SL_FORMAT_BYTES + 64] = "", who[64] = "", place[512] = "", where[32] = "", text[1400];

	if (alert->device >= 0 && !isnan(alert->value)) {
		struct sl_followed *followed = (struct sl_followed *)one->followed;

		if (alert->rule->metric == SL_METRIC_FULL_IN)
			full_by(one, followed, alert->device, place, sizeof(place));
		else
			sl_growing_place(&one->growing, followed, alert->rule->metric == SL_METRIC_GROWTH, place, sizeof(place));
	}
	if (alert->device >= 0)
		snprintf(where, sizeof(where), " device %d", alert->device);
	if (!isnan(alert->value))
		snprintf(what, sizeof(what), "%s is %s, ", sl_metric_name(alert->rule->metric),
			 sl_unit_format(alert->rule->unit, alert->value, value));
	if (header->rank >= 0)
		snprintf(who, sizeof(who), "rank %lld ", (long long)header->rank);
	snprintf(text, sizeof(text), "%s (%.*s): %s%spid %lld%s of %.200s%s%s", words, (int)alert->rule->condition,
		 alert->rule->text, what, who, (long long)header->pid, where, sl_stacks_program(header), *place ? ": " : "", place);
	alert->text = text;
	alert->place = place;
	alert->followed = one->followed;
	alert->unix_ns = watch->unix_ns;
	watch->turned(watch->context, alert);
}

/* What an alarm is about is over with its process, or out of sight once its recording is gone.  Neither clears it. */
static void hold(struct sl_watch *watch, struct watched *one, struct sl_alarm *alarm, struct sl_alert alert)
{
	static const char *const states[] = {
		[SL_TURN_RAISED] = "raised", [SL_TURN_CLEARED] = "cleared", [SL_TURN_LOST] = "unknown"};
	bool over = one->followed->ended;
	enum sl_turn turn = over && alarm->raised ? SL_TURN_NONE : sl_alarm_look(alarm, alert.rule, alert.value, watch->now_ns);

	alert.state = states[turn];
	if (turn != SL_TURN_NONE)
		tell(watch, one, &alert);
	if (!over || !alarm->raised)
		return;
	alarm->raised = false;
	alert.state = one->followed->removed ? "unknown" : "ended";
	alert.value = NAN;
	tell(watch, one, &alert);
}

static void add(struct sl_watch *watch, struct watched *one, struct looks *looks, const struct sl_figures *f)
{
	const struct sl_label *steps = sl_model_steps(one->followed->process.model);

	sl_figures_look(&looks->outlook, &one->followed->process, f, watch->now_ns);
	if (steps)
		sl_trend_add(&looks->by_step, steps->entries * SL_NS_PER_S, f->live); /* counts a step as a second */
}

static void look_at(struct sl_watch *watch, struct watched *one)
{
	const struct sl_process *process = &one->followed->process;
	struct sl_figures figures[DEVICES];
	unsigned count = sl_figures_of(process, figures, DEVICES);

	if (!one->followed->ended)
		sl_growing_look(&one->growing, one->followed);
	for (unsigned d = 0, at; d < count; d++) {
		if ((at = sl_figures_met(&one->met, figures[d].device)) == DEVICES)
			continue;
		if (!one->followed->ended)
			add(watch, one, &one->device[at], &figures[d]);
		for (size_t r = 0; r < watch->count; r++) {
			const struct sl_rule *rule = &watch->rules[r];

			if (!sl_metric_of_process(rule->metric))
				hold(watch, one, &one->device[at].alarms[r],
				     (struct sl_alert){
					     .rule = rule,
					     .device = figures[d].device,
					     .uuid = figures[d].uuid,
					     .value = of_device(rule, &one->device[at], &watch->holders, process, &figures[d])});
		}
	}
	for (size_t r = 0; r < watch->count; r++)
		if (sl_metric_of_process(watch->rules[r].metric))
			hold(watch, one, &one->alarms[r],
			     (struct sl_alert){
				     .rule = &watch->rules[r], .device = -1, .value = of_process(watch, &watch->rules[r], one)});
}

/* Reports when the recording falls asleep, wakes up, or is watched from outside. */
static void tell_unseen(struct sl_watch *watch, struct watched *one)
{
	const char *recorded = sl_trace_recorded(one->followed->process.trace);

	if (watch->unseen && strcmp(recorded, one->recorded ? one->recorded : "whole") != 0)
		watch->unseen(watch->context, one->followed);
	one->recorded = recorded;
}

void sl_watch_look(struct sl_watch *watch, const struct sl_follow *follow,
		   void (*turned)(void *context, const struct sl_alert *alert),
		   void (*unseen)(void *context, const struct sl_followed *followed), void *context)
{
	watch->turned = turned;
	watch->unseen = unseen;
	watch->context = context;
	watch->now_ns = sl_now_ns(CLOCK_MONOTONIC);
	watch->unix_ns = sl_now_ns(CLOCK_REALTIME);
	compare_all(watch, follow);
	sl_figures_holders(follow, &watch->holders);
	for (unsigned i = 0; i < sl_follow_count(follow); i++) {
		struct watched *one = watched_of(watch, sl_follow_process(follow, i));

		if (one->ended)
			continue;
		one->followed = sl_follow_process(follow, i);
		if (one->followed->process.model) {
			tell_unseen(watch, one);
			look_at(watch, one);
		}
		one->ended = one->followed->ended;
	}
	sl_holders_free(&watch->holders);
}
