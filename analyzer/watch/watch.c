/* SPDX-License-Identifier: MIT */
#include "analyzer/watch/watch.h"

#include <math.h>
#include <ctype.h>

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "common/now.h"
#include "common/text.h"

#define BACK 0.1 /* an alarm ends when the value has gone back by this part of the rule's value */

#define ONE(unit) (1u << (unit))
#define BYTES	  (ONE(SL_UNIT_BYTES) | ONE(SL_UNIT_SHARE))

static const struct {
	const char *name;
	unsigned units;
	bool of_process;
} metrics[SL_METRIC_COUNT] = {
	[SL_METRIC_USED] = {"used", BYTES},
	[SL_METRIC_LIVE] = {"live", BYTES},
	[SL_METRIC_RESERVED] = {"reserved", BYTES},
	[SL_METRIC_HIDDEN] = {"hidden", BYTES},
	[SL_METRIC_FREE] = {"free", BYTES},
	[SL_METRIC_GROWTH] = {"growth", ONE(SL_UNIT_RATE) | ONE(SL_UNIT_STEP)},
	[SL_METRIC_FULL_IN] = {"full-in", ONE(SL_UNIT_SECONDS)},
	[SL_METRIC_OOMS] = {"ooms", ONE(SL_UNIT_NUMBER), true},
	[SL_METRIC_CALL_AGE] = {"call-age", ONE(SL_UNIT_SECONDS), true},
	[SL_METRIC_UNLIKE] = {"unlike", ONE(SL_UNIT_NUMBER), true},
};

const char *sl_metric_name(enum sl_metric metric)
{
	return metrics[metric].name;
}

/* True for a rule about a whole process instead of one device. */
static bool metric_of_process(enum sl_metric metric)
{
	return metrics[metric].of_process;
}

static const struct {
	const char *name;
	double seconds;
} times[] = {{"ms", 0.001},  {"s", 1},	  {"sec", 1},	  {"second", 1}, {"min", 60},	{"m", 60},
	     {"minute", 60}, {"h", 3600}, {"hour", 3600}, {"d", 86400},	 {"day", 86400}};

static double time_named(const char *name)
{
	for (size_t i = 0; i < SL_COUNT(times); i++)
		if (!strcmp(name, times[i].name))
			return times[i].seconds;
	return 0;
}

/* 95 may be meant as 95 % or 95GiB: a number needs its unit, unless it is 0. */
static bool has_unit(const char *text)
{
	size_t length = strlen(text);

	return length && (!isdigit((unsigned char)text[length - 1]) || strtod(text, NULL) == 0);
}

static bool parse_seconds(const char *text, double *seconds)
{
	char *end;
	double number = strtod(text, &end);

	*seconds = number * time_named(*end ? end : "s");
	return end != text && has_unit(text) && number >= 0 && *seconds < 1e9 && time_named(*end ? end : "s") > 0;
}

/* Bytes per time or per step. */
static bool parse_growth(const char *text, enum sl_unit *unit, double *value)
{
	const char *slash = strchr(text, '/');
	char size[64];
	uint64_t bytes;

	if (!slash || (size_t)(slash - text) >= sizeof(size))
		return false;
	snprintf(size, sizeof(size), "%.*s", (int)(slash - text), text);
	*unit = !strcmp(slash + 1, "step") ? SL_UNIT_STEP : SL_UNIT_RATE;
	if (!sl_size_parse(size, &bytes) || (*unit == SL_UNIT_RATE && !time_named(slash + 1)))
		return false;
	*value = (double)bytes / (*unit == SL_UNIT_STEP ? 1 : time_named(slash + 1));
	return true;
}

static bool parse_number(const char *text, double *value, const char *after)
{
	char *end;

	*value = strtod(text, &end);
	return end != text && !strcmp(end, after) && *value >= 0 && *value < 1e15;
}

static bool parse_value(struct sl_rule *rule, const char *text)
{
	unsigned units = metrics[rule->metric].units;
	uint64_t bytes;

	if (units & ONE(SL_UNIT_SHARE) && parse_number(text, &rule->value, "%")) {
		rule->unit = SL_UNIT_SHARE;
		rule->value /= 100;
		return rule->value <= 1;
	}
	if (units & ONE(SL_UNIT_BYTES) && has_unit(text) && sl_size_parse(text, &bytes)) {
		rule->unit = SL_UNIT_BYTES;
		rule->value = (double)bytes;
		return true;
	}
	if (units & ONE(SL_UNIT_STEP))
		return parse_growth(text, &rule->unit, &rule->value);
	rule->unit = units & ONE(SL_UNIT_SECONDS) ? SL_UNIT_SECONDS : SL_UNIT_NUMBER;
	return units & ONE(SL_UNIT_SECONDS) ? parse_seconds(text, &rule->value)
					    : units & ONE(SL_UNIT_NUMBER) && parse_number(text, &rule->value, "");
}

static size_t without_blanks(const char *text, size_t length)
{
	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	return length;
}

static const char *parse_condition(struct sl_rule *rule, char *text)
{
	char *rest = text, *name = strsep(&rest, "<>"), *value, *length;
	double seconds = 0;
	size_t at = 0;

	if (!rest)
		return "is not NAME > VALUE or NAME < VALUE";
	rule->above = rule->text[rest - text - 1] == '>';
	rule->or_equal = *rest == '=';
	name[without_blanks(name, strlen(name))] = 0;
	while (at < SL_METRIC_COUNT && strcmp(name, metrics[at].name))
		at++;
	if (at == SL_METRIC_COUNT)
		return "names no figure: used, live, reserved, hidden, free, growth, full-in, ooms, call-age, unlike";
	rule->metric = (enum sl_metric)at;
	value = rest + rule->or_equal;
	value += strspn(value, " \t");
	length = strstr(value, " for ");
	if (length) {
		*length = 0;
		length += 5;
		length += strspn(length, " \t");
	}
	value[without_blanks(value, strlen(value))] = 0;
	if (!parse_value(rule, value))
		return "has no value with a unit that its name takes: 95% or 70GiB; growth 2GiB/hour or 1MiB/step; full-in, "
		       "call-age 10min; "
		       "ooms, unlike a "
		       "number";
	if (length && !parse_seconds(length, &seconds))
		return "has no time behind \"for\", as 30s";
	rule->for_ns = (uint64_t)(seconds * 1e9);
	return NULL;
}

static const char *parse_action(struct sl_rule *rule, char *text)
{
	static const char command[] = "command";

	if (!strcmp(text, "message"))
		return NULL;
	if (strncmp(text, command, strlen(command)) || !strchr(" \t", text[strlen(command)]))
		return "wants message or command LINE behind =>";
	text += strlen(command);
	rule->command = text + strspn(text, " \t");
	return *rule->command ? NULL : "wants a line of shell behind command";
}

const char *sl_rule_parse(struct sl_rule *rule, const char *text)
{
	char *arrow, *copy;
	const char *wrong;
	size_t length;

	text += strspn(text, " \t");
	*rule = (struct sl_rule){.text = sl_memory_must(strndup(text, without_blanks(text, strlen(text))))};
	arrow = strstr(rule->text, "=>");
	length = arrow ? (size_t)(arrow - rule->text) : strlen(rule->text);
	rule->condition = without_blanks(rule->text, length);
	copy = sl_memory_must(strndup(rule->text, rule->condition));
	wrong = parse_condition(rule, copy);
	free(copy);
	if (!wrong && arrow)
		wrong = parse_action(rule, arrow + 2 + strspn(arrow + 2, " \t"));
	return wrong;
}

void sl_rule_free(struct sl_rule *rule)
{
	free(rule->text);
	*rule = (struct sl_rule){0};
}

const char *sl_unit_format(enum sl_unit unit, double value, char *out)
{
	uint64_t whole = isnan(value) ? 0 : (uint64_t)fmin(fabs(value), 1e18);

	if (isinf(value))
		return strcpy(out, "not foreseen");
	switch (unit) {
	case SL_UNIT_SHARE:
		sprintf(out, "%.1f%%", 100 * value);
		break;
	case SL_UNIT_NUMBER:
		sprintf(out, "%.4g", value);
		break;
	case SL_UNIT_SECONDS:
		sl_format_duration(out, whole < 9000000000u ? (uint64_t)(value * 1e9) : UINT64_MAX);
		break;
	case SL_UNIT_BYTES:
		sl_format_size(out, whole);
		break;
	default:
		sprintf(out, "%s%s/%s", value < 0 ? "-" : "", SL_SIZE(whole), unit == SL_UNIT_STEP ? "step" : "s");
	}
	return out;
}

static bool holds(const struct sl_rule *rule, double value)
{
	if (value == rule->value)
		return rule->or_equal;
	return rule->above ? value > rule->value : value < rule->value;
}

/* True: the value is clearly on the other side again. */
static bool is_back(const struct sl_rule *rule, double value)
{
	double edge = rule->value * (rule->above ? 1 - BACK : 1 + BACK);

	return !holds(rule, value) && (rule->above ? value <= edge : value >= edge);
}

enum sl_turn sl_alarm_look(struct sl_alarm *alarm, const struct sl_rule *rule, double value, uint64_t now_ns)
{
	bool unknown = isnan(value);

	if (unknown ? !alarm->raised : !(alarm->raised ? is_back(rule, value) : holds(rule, value))) {
		alarm->since_ns = 0;
		return SL_TURN_NONE;
	}
	if (alarm->unknown != unknown)
		alarm->since_ns = 0;
	alarm->unknown = unknown;
	if (!alarm->since_ns)
		alarm->since_ns = now_ns;
	if (now_ns - alarm->since_ns < rule->for_ns)
		return SL_TURN_NONE;
	alarm->raised = !alarm->raised;
	alarm->since_ns = 0;
	return alarm->raised ? SL_TURN_RAISED : unknown ? SL_TURN_LOST : SL_TURN_CLEARED;
}

#define DEVICES SL_FIGURES_DEVICES

/* What is remembered of one device of a process. */
struct looks {
	struct sl_outlook outlook;
	struct sl_trend by_step;
	struct sl_alarm *alarms; /* one for each rule */
};

struct watched_process {
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
	SL_VECTOR(struct watched_process *) processes;
	struct sl_map sessions; /* index into processes + 1 */
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
	for (size_t i = 0; i < watch->processes.count; i++) {
		struct watched_process *one = watch->processes.item[i];

		for (unsigned d = 0; d < DEVICES; d++)
			free(one->device[d].alarms);
		sl_growing_free(&one->growing);
		free(one->alarms);
		free(one);
	}
	free(watch->processes.item);
	sl_map_free(&watch->sessions);
	free(watch);
}

static struct watched_process *find_process(const struct sl_watch *watch, const struct sl_followed *followed)
{
	uintptr_t at = sl_map_find(&watch->sessions, followed->process.session_id);

	return at ? watch->processes.item[at - 1] : NULL;
}

const struct sl_outlook *sl_watch_outlook(const struct sl_watch *watch, const struct sl_followed *followed, int device)
{
	struct watched_process *one = find_process(watch, followed);
	unsigned at = one ? sl_figures_met(&one->met, device) : DEVICES;

	return at < DEVICES ? &one->device[at].outlook : NULL;
}

static void full_by(struct watched_process *one, struct sl_followed *followed, int device, char *out, size_t size)
{
	struct sl_figures figures[DEVICES];
	unsigned count = sl_figures_of(&followed->process, figures, DEVICES), at;

	for (unsigned d = 0; d < count; d++)
		if (figures[d].device == device && (at = sl_figures_met(&one->met, device)) < DEVICES)
			sl_figures_full_by(&one->device[at].outlook, &one->growing, followed, &figures[d], out, size);
}

void sl_watch_full_by(const struct sl_watch *watch, struct sl_followed *followed, int device, char *out, size_t size)
{
	struct watched_process *one = find_process(watch, followed);

	out[0] = 0;
	if (one)
		full_by(one, followed, device, out, size);
}

static struct watched_process *process_of(struct sl_watch *watch, const struct sl_followed *followed)
{
	struct watched_process *one = find_process(watch, followed);

	if (one)
		return one;
	one = sl_memory_must(calloc(1, sizeof(*one)));
	one->alarms = calloc(watch->count + 1, sizeof(*one->alarms));
	for (unsigned d = 0; d < DEVICES; d++)
		one->device[d].alarms = calloc(watch->count + 1, sizeof(*one->alarms));
	*SL_PUSH(&watch->processes) = one;
	*sl_map_at(&watch->sessions, followed->process.session_id) = watch->processes.count;
	return one;
}

/* ---- values */

static double or_nan(uint64_t bytes)
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
		return or_nan(f->reserved);
	default:
		return isnan(used_of(f)) ? NAN : or_nan(f->total) - fmin(or_nan(f->total), used_of(f));
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
	slope = rule->metric == SL_METRIC_HIDDEN ? or_nan(sl_figures_hidden(holders, process, f)) : bytes_of(rule->metric, f);
	return rule->unit == SL_UNIT_SHARE ? slope / or_nan(f->total) : slope;
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
	SL_VECTOR(struct watched_process *) ranks;
	SL_VECTOR(double) live_bytes;
};

static void compare(struct alike *run)
{
	double *away = sl_memory_must(calloc(run->live_bytes.count + 1, sizeof(*away)));

	sl_figures_away(run->live_bytes.item, (unsigned)run->live_bytes.count, away);
	for (size_t i = 0; i < run->ranks.count; i++)
		run->ranks.item[i]->away = run->live_bytes.count >= SL_RANKS_COMPARED ? fabs(away[i]) : NAN;
	free(away);
}

/* How far each is from the others of its run. */
static void compare_all(struct sl_watch *watch, const struct sl_follow *follow)
{
	SL_VECTOR(struct alike) runs = {0};
	struct sl_map by_run = {0};

	for (unsigned i = 0; i < sl_follow_count(follow); i++) {
		const struct sl_followed *followed = sl_follow_process(follow, i);
		const char *id = followed->process.trace->header.run_id; /* NULL for one that is watched from outside */
		struct watched_process *one = process_of(watch, followed);
		struct alike *run;
		uintptr_t *at;

		one->away = NAN;
		if (followed->ended || !id || !followed->process.model)
			continue;
		at = sl_map_at(&by_run, id);
		if (!*at) {
			*SL_PUSH(&runs) = (struct alike){0};
			*at = runs.count;
		}
		run = &runs.item[*at - 1];
		*SL_PUSH(&run->ranks) = one;
		*SL_PUSH(&run->live_bytes) = (double)sl_figures_live(&followed->process);
	}
	for (size_t i = 0; i < runs.count; i++) {
		compare(&runs.item[i]);
		SL_DROP(&runs.item[i].ranks);
		SL_DROP(&runs.item[i].live_bytes);
	}
	SL_DROP(&runs);
	sl_map_free(&by_run);
}

static double of_process(const struct sl_watch *watch, const struct sl_rule *rule, const struct watched_process *one)
{
	if (rule->metric == SL_METRIC_OOMS)
		return (double)one->followed->process.model->ooms_total;
	if (rule->metric == SL_METRIC_UNLIKE)
		return one->away;
	return oldest_call(watch, &one->followed->process);
}

/* ---- changes of state */

static void tell(struct sl_watch *watch, struct watched_process *one, struct sl_alert *alert)
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
static void hold(struct sl_watch *watch, struct watched_process *one, struct sl_alarm *alarm, struct sl_alert alert)
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

static void add(struct sl_watch *watch, struct watched_process *one, struct looks *looks, const struct sl_figures *f)
{
	const struct sl_label *steps = sl_model_steps(one->followed->process.model);

	sl_figures_look(&looks->outlook, &one->followed->process, f, watch->now_ns);
	if (steps)
		sl_trend_add(&looks->by_step, steps->entries * SL_NS_PER_S, f->live); /* counts a step as a second */
}

static void look_at(struct sl_watch *watch, struct watched_process *one)
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

			if (!metric_of_process(rule->metric))
				hold(watch, one, &one->device[at].alarms[r],
				     (struct sl_alert){
					     .rule = rule,
					     .device = figures[d].device,
					     .uuid = figures[d].uuid,
					     .value = of_device(rule, &one->device[at], &watch->holders, process, &figures[d])});
		}
	}
	for (size_t r = 0; r < watch->count; r++)
		if (metric_of_process(watch->rules[r].metric))
			hold(watch, one, &one->alarms[r],
			     (struct sl_alert){
				     .rule = &watch->rules[r], .device = -1, .value = of_process(watch, &watch->rules[r], one)});
}

/* Reports when the recording falls asleep, wakes up, or is watched from outside. */
static void tell_unseen(struct sl_watch *watch, struct watched_process *one)
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
		struct watched_process *one = process_of(watch, sl_follow_process(follow, i));

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
