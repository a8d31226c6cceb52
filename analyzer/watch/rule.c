/* SPDX-License-Identifier: MIT */
#include "analyzer/watch/watch.h"

#include <ctype.h>
#include <math.h>

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
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

bool sl_metric_of_process(enum sl_metric metric)
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
