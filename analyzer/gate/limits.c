/* SPDX-License-Identifier: MIT */
#include "analyzer/gate/gate.h"

#include <limits.h>

#include "analyzer/base/ini.h"
#include "common/text.h"

void sl_limits_init(struct sl_limits *limits)
{
	*limits = (struct sl_limits){.peak = SL_NO_LIMIT,
				     .allocated = SL_NO_LIMIT,
				     .tensors = SL_NO_LIMIT,
				     .leak = SL_NO_LIMIT,
				     .hidden = SL_NO_LIMIT,
				     .fits = SL_NO_LIMIT,
				     .tolerance = 0.05};
}

void sl_limits_describe(const struct sl_limits *limits, char *out, size_t size)
{
	const struct {
		bool asked;
		const char *name;
	} all[] = {
		{limits->peak != SL_NO_LIMIT, "max-peak"},
		{limits->allocated != SL_NO_LIMIT, "max-allocated"},
		{limits->tensors != SL_NO_LIMIT, "max-tensors"},
		{limits->leak != SL_NO_LIMIT, "max-leak"},
		{limits->hidden != SL_NO_LIMIT, "max-hidden"},
		{limits->fits != SL_NO_LIMIT, "fits"},
		{limits->growth_count, "max-growth"},
		{limits->no_oom, "no-oom"},
		{limits->accepts_dry, "dry"},
		{limits->baseline[0], "baseline"},
		{limits->fail_on, limits->fail_on == SL_FAIL_ON_WARNING ? "fail-on warning" : "fail-on critical"},
	};
	size_t at = 0;

	out[0] = 0;
	for (size_t i = 0; i < SL_COUNT(all); i++)
		if (all[i].asked && at < size)
			at += (size_t)snprintf(out + at, size - at, "%s%s", at ? ", " : "", all[i].name);
}

/* SIZE, SIZE/LABEL */
static const char *set_growth(struct sl_limits *limits, const char *value)
{
	struct sl_growth_limit *limit = &limits->growth[limits->growth_count];
	size_t length = strcspn(value, "/");
	const char *label = value[length] ? value + length + 1 : NULL;
	char size[64];

	if (limits->growth_count == SL_GROWTH_LIMITS_MAX)
		return "too many limits of growth";
	snprintf(size, sizeof(size), "%.*s", (int)length, value);
	if (length >= sizeof(size) || !sl_size_parse(size, &limit->bytes) ||
	    (label && (!*label || strlen(label) >= sizeof(limit->label))))
		return "is not SIZE or SIZE/LABEL, as 2MiB/step";
	snprintf(limit->label, sizeof(limit->label), "%s", label ?: "");
	limits->growth_count++;
	return NULL;
}

static const char *set_tolerance(struct sl_limits *limits, const char *value)
{
	char *end;
	double number = strtod(value, &end);

	while (*end == ' ')
		end++;
	if (end == value || value[strspn(value, "0123456789.eE+- %")] || !(number >= 0) || number > 1e6 ||
	    (strcmp(end, "%") && *end) || (!*end && number > 1))
		return "is not a share, as 5% or 0.05";
	limits->tolerance = *end == '%' ? number / 100 : number;
	return NULL;
}

static const char *set_truth(bool *truth, const char *value)
{
	static const char *const yes[] = {"1", "yes", "on", "true"}, *const no[] = {"0", "no", "off", "false"};

	for (unsigned i = 0; i < 4; i++)
		if (!strcasecmp(value, yes[i]) || !strcasecmp(value, no[i])) {
			*truth = !strcasecmp(value, yes[i]);
			return NULL;
		}
	return "is not yes or no";
}

static const char *set_count(uint64_t *count, const char *value)
{
	char *end;

	*count = strtoull(value, &end, 10);
	return *value >= '0' && *value <= '9' && !*end && *count != SL_NO_LIMIT
		       ? NULL
		       : "is not a number of tensors; max-allocated limits their bytes";
}

const char *sl_limits_set(struct sl_limits *limits, const char *name, const char *value)
{
	static const char no_size[] = "is not a size, as 20GiB";

	if (!strcmp(name, "max-peak"))
		return sl_size_parse(value, &limits->peak) ? NULL : no_size;
	if (!strcmp(name, "max-allocated"))
		return sl_size_parse(value, &limits->allocated) ? NULL : no_size;
	if (!strcmp(name, "max-tensors"))
		return set_count(&limits->tensors, value);
	if (!strcmp(name, "max-leak"))
		return sl_size_parse(value, &limits->leak) ? NULL : no_size;
	if (!strcmp(name, "max-hidden"))
		return sl_size_parse(value, &limits->hidden) ? NULL : no_size;
	if (!strcmp(name, "fits"))
		return sl_size_parse(value, &limits->fits) ? NULL : no_size;
	if (!strcmp(name, "max-growth"))
		return set_growth(limits, value);
	if (!strcmp(name, "no-oom"))
		return set_truth(&limits->no_oom, value);
	if (!strcmp(name, "dry"))
		return set_truth(&limits->accepts_dry, value);
	if (!strcmp(name, "strict"))
		return set_truth(&limits->strict, value);
	if (!strcmp(name, "fail-on-gaps"))
		return set_truth(&limits->fail_on_gaps, value);
	if (!strcmp(name, "tolerance"))
		return set_tolerance(limits, value);
	if (!strcmp(name, "baseline")) {
		return !*value || (size_t)snprintf(limits->baseline, sizeof(limits->baseline), "%s", value) >=
					       sizeof(limits->baseline)
			       ? "is not a path"
			       : NULL;
	}
	if (!strcmp(name, "fail-on")) {
		if (strcmp(value, "warning") && strcmp(value, "critical"))
			return "is not warning or critical";
		limits->fail_on = value[0] == 'w' ? SL_FAIL_ON_WARNING : SL_FAIL_ON_CRITICAL;
		return NULL;
	}
	return "is not a limit that check knows";
}

struct reading {
	struct sl_limits *limits;
	unsigned given; /* bits, by position in `once` */
};

/* A name that is given twice has a value that would not be held. */
static const char *take(void *context, const char *name, const char *value)
{
	static const char *const once[] = {"max-peak",	"max-allocated", "max-tensors", "max-leak", "max-hidden",
					   "fits",	"no-oom",	 "dry",		"strict",   "fail-on-gaps",
					   "tolerance", "baseline",	 "fail-on"};
	struct reading *reading = context;

	for (unsigned i = 0; i < SL_COUNT(once); i++) {
		if (strcmp(name, once[i]) != 0)
			continue;
		if (reading->given & 1u << i)
			return "is there twice";
		reading->given |= 1u << i;
	}
	return sl_limits_set(reading->limits, name, value);
}

bool sl_limits_read(struct sl_limits *limits, const char *path, char *why, size_t size)
{
	struct reading reading = {.limits = limits};
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];

	if (!sl_ini_read(path, "check", take, &reading, why, size))
		return false;
	if (limits->baseline[0] && limits->baseline[0] != '/' && slash) {
		char name[sizeof(limits->baseline)];

		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
		snprintf(name, sizeof(name), "%s", limits->baseline);
		if ((size_t)snprintf(limits->baseline, sizeof(limits->baseline), "%s/%s", folder, name) >=
		    sizeof(limits->baseline)) {
			snprintf(why, size, "%s: the baseline's path is too long", path);
			return false;
		}
	}
	return true;
}
