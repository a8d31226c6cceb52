/* SPDX-License-Identifier: MIT */
/* fit --vary KEY: recordings at several values of a quantity, and the largest that fits. */
#include <math.h>

#include "analyzer/base/json.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/base/terminal.h"
#include "analyzer/commands/fit.h"

/* The value of the key, from --meta or the program itself.  False: not given, or not a number. */
static bool value_of(const struct sl_trace *trace, const char *key, double *value)
{
	const char *text = NULL;
	char *end;

	for (unsigned i = 0; i < trace->header.metadata_count; i++)
		if (!strcmp(trace->header.metadata[i].name, key))
			text = trace->header.metadata[i].value;
	for (size_t i = 0; i < trace->defs.metadata.count; i++)
		if (!strcmp(trace->defs.metadata.item[i].key, key))
			text = trace->defs.metadata.item[i].value;
	if (!text || !*text)
		return false;
	*value = strtod(text, &end);
	return !*end && isfinite(*value);
}

static struct sl_fit_varied *varied_of(struct sl_fit_result *result, const char *settings)
{
	uintptr_t *at = sl_map_at(&result->varied_at, settings);

	if (!*at) {
		*SL_PUSH(&result->varied) = (struct sl_fit_varied){.settings = settings};
		*at = result->varied.count;
	}
	return &result->varied.item[*at - 1];
}

static void take(struct sl_fit_result *result, const struct sl_fit_subject *s)
{
	double value;

	if (!value_of(s->recording->trace, result->vary, &value)) {
		result->without_value++;
		return;
	}
	for (unsigned c = 0; s->answers && c < s->choice_count; c++) {
		const struct sl_fit_answer *a = &s->answers[c];
		struct sl_fit_varied *varied = varied_of(result, sl_fit_text(s, c));
		uint64_t need = a->scan.always_from;

		if (need == SL_UNKNOWN)
			continue;
		if (a->other_from != SL_UNKNOWN && a->other_from > need)
			need = a->other_from;
		sl_fit_curve_add(&varied->curve, value, need);
	}
}

bool sl_fit_vary(struct sl_fit_result *result)
{
	for (unsigned i = 0; i < result->subject_count; i++)
		take(result, &result->subjects[i]);
	for (size_t i = 0; i < result->varied.count; i++)
		sl_fit_curve_draw(&result->varied.item[i].curve);
	for (unsigned i = 0; i < result->subject_count && !result->capacity_count; i++) {
		result->capacity_count = result->subjects[i].capacity_count;
		memcpy(result->capacities, result->subjects[i].capacities, sizeof(result->capacities));
	}
	return result->varied.count && result->varied.item[0].curve.points.count > 1;
}

static void put_largest(const struct sl_fit_curve *curve, uint64_t capacity, const char *key, const struct sl_terminal *to)
{
	struct sl_fit_largest l;
	char size[SL_FORMAT_BYTES], surely[32] = "none", too_large[40] = "";

	sl_fit_curve_largest(&l, curve, capacity);
	sl_format_size(size, capacity);
	if (isfinite(l.lower))
		snprintf(surely, sizeof(surely), "%.4g", floor(l.lower));
	if (isfinite(l.upper))
		snprintf(too_large, sizeof(too_large), ", not %.4g", floor(l.upper) + 1);
	if (!l.is_known)
		sl_terminal_line(to, 0, 6, "    %s: not known, the need does not rise with %s", size, key);
	else if (!isfinite(l.value))
		sl_terminal_line(to, 0, 6, "    %s: not even the smallest %s fits", size, key);
	else
		sl_terminal_line(to, 0, 6, "    %s: %s up to %.4g, surely %s%s%s", size, key, floor(l.value), surely, too_large,
				 l.extrapolated ? "; beyond what was recorded: record it to be sure" : "");
}

void sl_fit_vary_print(const struct sl_fit_result *result)
{
	struct sl_terminal to = sl_terminal_here();
	char *text, off[80] = "";

	sl_terminal_line(&to, 0, 4, "by %s: the capacity that always fits, and the largest value that would fit", result->vary);
	if (result->without_value)
		sl_terminal_line(&to, 0, 4, "  %u recordings have no value for it; record with --meta %s=N", result->without_value,
				 result->vary);
	for (size_t i = 0; i < result->varied.count; i++) {
		const struct sl_fit_curve *curve = &result->varied.item[i].curve;

		text = sl_memory_copy("");
		for (size_t k = 0; k < curve->points.count; k++) {
			char *more = sl_memory_print("%s%s%.6g: %s", text, k ? ", " : "", curve->points.item[k].value,
						     SL_SIZE(curve->points.item[k].need));

			free(text);
			text = more;
		}
		if (curve->error >= 0)
			snprintf(off, sizeof(off), " that is off by at most %s", SL_SIZE(sl_stats_bytes(curve->error)));
		sl_terminal_line(&to, 0, 4, "  %s", *result->varied.item[i].settings ? result->varied.item[i].settings : "(none)");
		sl_terminal_line(&to, 0, 6, "    %s%s%s", text,
				 !curve->degree	      ? ""
				 : curve->degree == 2 ? "; a parabola"
						      : "; a line",
				 off);
		free(text);
		for (unsigned c = 0; c < result->capacity_count; c++)
			put_largest(curve, result->capacities[c], result->vary, &to);
	}
}

static void put_curve(struct sl_json *j, const struct sl_fit_result *result, const struct sl_fit_varied *varied)
{
	const struct sl_fit_curve *curve = &varied->curve;

	sl_json_object(j, NULL);
	sl_json_string(j, "settings", varied->settings);
	sl_json_array(j, "points");
	for (size_t k = 0; k < curve->points.count; k++) {
		sl_json_object(j, NULL);
		sl_json_double(j, "value", curve->points.item[k].value);
		sl_json_uint(j, "always_from_bytes", curve->points.item[k].need);
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_json_uint(j, "degree", curve->degree);
	sl_json_double(j, "error_bytes", curve->error >= 0 ? curve->error : NAN);
	sl_json_array(j, "largest");
	for (unsigned c = 0; c < result->capacity_count; c++) {
		struct sl_fit_largest l;

		sl_fit_curve_largest(&l, curve, result->capacities[c]);
		sl_json_object(j, NULL);
		sl_json_uint(j, "capacity_bytes", result->capacities[c]);
		sl_json_double(j, "value", l.is_known ? l.value : NAN);
		sl_json_double(j, "at_least", isfinite(l.lower) ? l.lower : NAN);
		sl_json_double(j, "at_most", isfinite(l.upper) ? l.upper : NAN);
		sl_json_bool(j, "extrapolated", l.extrapolated);
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_json_end(j);
}

void sl_fit_vary_json(struct sl_json *j, const struct sl_fit_result *result)
{
	if (!result->vary) {
		sl_json_null(j, "vary");
		return;
	}
	sl_json_object(j, "vary");
	sl_json_string(j, "key", result->vary);
	sl_json_uint(j, "without_value", result->without_value);
	sl_json_array(j, "curves");
	for (size_t i = 0; i < result->varied.count; i++)
		put_curve(j, result, &result->varied.item[i]);
	sl_json_end(j);
	sl_json_end(j);
}
