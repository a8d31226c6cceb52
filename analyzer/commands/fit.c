/* SPDX-License-Identifier: MIT */
/* stormlog-analyze fit PATH: would it have fit on another card, or with other settings of PyTorch's allocator? */
#include "analyzer/commands/fit.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/base/door.h"
#include "analyzer/commands/native.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/report/report.h"
#include "common/size.h"

static const struct sl_option table[] = {
	{"--capacity", 0, "SIZE,...",
	 "of the device, as --limit has it; what everything else took is subtracted as recorded (default: the recorded one)"},
	{"--allocator-capacity", 0, "SIZE,...", "of PyTorch's allocator alone"},
	{"--settings", 0, "TEXT",
	 "of PYTORCH_CUDA_ALLOC_CONF, may be given several times (default: the recorded ones and some that are often tried)"},
	{"--json", 0, NULL, "a JSON object on stdout"},
	{"--run", 0, "ID|all", "which run of a folder with several (default: the newest)"},
	{0},
};
enum { CAPACITY, ALLOCATOR_CAPACITY, SETTINGS, JSON, RUN };

static const char about[] =
	"Replays what PyTorch's allocator was asked for, with its own rules, under other capacities and settings: fits or\n"
	"not, where it would have failed, and the smallest capacity that does.  Exit status 1: a capacity that was asked for\n"
	"does not do.  doc/would-it-fit.md";

static const char *const often_tried[] = {"", "expandable_segments:True", "max_split_size_mb:128", "roundup_power2_divisions:4",
					  "expandable_segments:True,roundup_power2_divisions:4"};

struct asked {
	uint64_t capacities[SL_FIT_CAPACITIES];
	unsigned capacity_count, setting_count;
	const char *settings[SL_FIT_CHOICES];
	const char *run;
	bool of_allocator, json;
};

static bool take_sizes(struct asked *asked, const char *value, bool of_allocator)
{
	char text[64];

	if (asked->capacity_count && asked->of_allocator != of_allocator)
		return false;
	asked->of_allocator = of_allocator;
	while (*value) {
		size_t length = strcspn(value, ",");

		if (!length || length >= sizeof(text) || asked->capacity_count == SL_FIT_CAPACITIES)
			return false;
		memcpy(text, value, length);
		text[length] = 0;
		if (!sl_size_parse(text, &asked->capacities[asked->capacity_count++]))
			return false;
		value += length + (value[length] == ',');
	}
	return true;
}

static bool take_settings(struct asked *asked, const char *value)
{
	struct sl_fit_settings settings = sl_fit_defaults;
	const char *at, *wrong = sl_fit_settings_parse(&settings, value, SL_FIT_RELEASE(2, 14), &at);

	if (wrong)
		sl_door_print(stderr, "stormlog-analyze: in the settings at \"%.30s\": %s\n", at, wrong);
	if (wrong || asked->setting_count == SL_FIT_CHOICES)
		return false;
	asked->settings[asked->setting_count++] = value;
	return true;
}

static bool take(void *context, int option, const char *value)
{
	struct asked *asked = context;

	switch (option) {
	case CAPACITY:
	case ALLOCATOR_CAPACITY:
		return take_sizes(asked, value, option == ALLOCATOR_CAPACITY);
	case SETTINGS:
		return take_settings(asked, value);
	case JSON:
		return asked->json = true;
	default:
		asked->run = value;
		return true;
	}
}

static void choose(struct sl_fit_subject *subject, const struct asked *asked)
{
	const char *const *list = asked->setting_count ? asked->settings : often_tried, *at;
	unsigned count = asked->setting_count ? asked->setting_count : SL_COUNT(often_tried);
	struct sl_fit_choice *choice;

	if (!asked->setting_count)
		subject->choices[subject->choice_count++] = (struct sl_fit_choice){.settings = subject->recording->settings};
	for (unsigned i = 0; i < count; i++) {
		if (!asked->setting_count && !strcmp(list[i], subject->recording->text))
			continue; /* it is the recorded one */
		choice = &subject->choices[subject->choice_count++];
		*choice = (struct sl_fit_choice){list[i], sl_fit_defaults};
		sl_fit_settings_parse(&choice->settings, list[i], subject->recording->release, &at);
	}
	subject->capacity_count = asked->capacity_count;
	memcpy(subject->capacities, asked->capacities, sizeof(subject->capacities));
	if (!subject->capacity_count && subject->recording->device_total)
		subject->capacities[subject->capacity_count++] = subject->recording->device_total;
}

/* Up to 2.11 results depend on where the driver puts segments: both orders are tried. */
static bool cares(const struct sl_fit_recording *recording)
{
	return recording->release <= SL_FIT_RELEASE(2, 11);
}

static void answer(struct sl_fit_answer *a, const struct sl_fit_subject *subject, unsigned choice, bool of_allocator)
{
	const struct sl_fit_recording *r = subject->recording;
	struct sl_fit_case how = {.capacity = UINT64_MAX,
				  .of_allocator = of_allocator,
				  .settings = subject->choices[choice].text ? &subject->choices[choice].settings : NULL},
			   other;
	struct sl_fit_outcome second;
	struct sl_fit_scan scan = {0};

	sl_fit_run(&a->free, r, &how);
	other = how;
	other.ties = SL_FIT_DESCENDING;
	a->other_from = SL_UNKNOWN;
	for (unsigned i = 0; i < subject->capacity_count; i++) {
		how.capacity = other.capacity = subject->capacities[i];
		sl_fit_run(&a->at[i], r, &how);
		if (!cares(r))
			continue;
		sl_fit_run(&second, r, &other);
		a->ambiguous[i] = second.verdict != a->at[i].verdict;
	}
	how.capacity = other.capacity = UINT64_MAX;
	sl_fit_scan(&a->scan, r, &how);
	if (!cares(r))
		return;
	sl_fit_run(&a->other, r, &other);
	sl_fit_scan(&scan, r, &other);
	if (scan.always_from != a->scan.always_from)
		a->other_from = scan.always_from;
	free(scan.also.item);
}

static bool all_fit(const struct sl_fit_result *result)
{
	for (unsigned s = 0; s < result->subject_count; s++)
		for (unsigned c = 0; result->subjects[s].answers && c < result->subjects[s].choice_count; c++)
			for (unsigned i = 0; i < result->subjects[s].capacity_count; i++)
				if (result->subjects[s].answers[c].at[i].verdict == SL_FIT_FAILS)
					return false;
	return true;
}

static void add_subject(struct sl_fit_result *result, const struct sl_fit_recording *recording, const struct asked *asked)
{
	struct sl_fit_subject *subject;

	result->subjects = realloc(result->subjects, (result->subject_count + 1) * sizeof(*subject));
	if (!result->subjects)
		abort();
	subject = &result->subjects[result->subject_count++];
	*subject = (struct sl_fit_subject){.recording = recording};
	choose(subject, asked);
	if (recording->doubt)
		return;
	sl_fit_check(&subject->check, recording);
	if (!subject->check.exact)
		return;
	subject->answers = calloc(subject->choice_count, sizeof(*subject->answers));
	if (!subject->answers)
		abort();
	for (unsigned c = 0; c < subject->choice_count; c++)
		answer(&subject->answers[c], subject, c, asked->of_allocator);
}

static unsigned open_all(struct sl_fit_result *result, const struct sl_images *images, const char *run)
{
	bool all = run && !strcmp(run, "all");
	unsigned chosen = 0;

	result->processes = calloc(images->image_count + 1, sizeof(*result->processes));
	result->sessions = calloc(images->image_count + 1, sizeof(*result->sessions));
	if (!result->processes || !result->sessions)
		abort();
	for (unsigned i = 0; run && !all && i < images->run_count; i++)
		if (!strcmp(images->runs[i].id, run))
			chosen = i;
	for (unsigned i = 0; i < images->image_count; i++) {
		struct sl_damage damage = {0};
		struct sl_trace *trace = all || images->run_of[i] == chosen ? sl_trace_open(&images->images[i], &damage) : NULL;

		for (unsigned k = 0; k < damage.lines; k++)
			sl_door_print(stderr, "stormlog-analyze: %s\n", damage.line[k]);
		sl_damage_free(&damage);
		if (!trace)
			continue;
		result->sessions[result->process_count] = sl_report_session(trace);
		sl_fit_record(&result->processes[result->process_count], trace, result->sessions[result->process_count]);
		result->process_count++;
	}
	return result->process_count;
}

static void close_all(struct sl_fit_result *result)
{
	for (unsigned s = 0; s < result->subject_count; s++) {
		for (unsigned c = 0; result->subjects[s].answers && c < result->subjects[s].choice_count; c++)
			free(result->subjects[s].answers[c].scan.also.item);
		free(result->subjects[s].answers);
	}
	for (unsigned p = 0; p < result->process_count; p++) {
		struct sl_trace *trace = result->processes[p].trace;

		sl_fit_forget(&result->processes[p]);
		sl_trace_close(trace);
		free(result->sessions[p]);
	}
	free(result->subjects);
	free(result->processes);
	free(result->sessions);
}

static int fit(const struct sl_images *images, const struct asked *asked)
{
	struct sl_fit_result result = {.of_allocator = asked->of_allocator};
	int status = SL_EXIT_FINE;

	if (!open_all(&result, images, asked->run)) {
		status = SL_EXIT_UNREADABLE;
	} else {
		for (unsigned p = 0; p < result.process_count; p++)
			for (unsigned i = 0; i < result.processes[p].count; i++)
				add_subject(&result, &result.processes[p].recordings[i], asked);
		(asked->json ? sl_fit_print_json : sl_fit_print)(&result);
		if (asked->capacity_count && !all_fit(&result))
			status = SL_EXIT_LIMIT;
	}
	close_all(&result);
	return status;
}

static int run(int argc, char **argv)
{
	struct asked asked = {0};
	struct sl_arguments parsed = {.usage = "fit [options] PATH...", .table = table, .argc = argc, .argv = argv, .about = about};
	struct sl_images images = {0};
	int status = sl_arguments_parse(&parsed, take, &asked);

	if (status < 0)
		status = sl_native_images(&images, parsed.paths);
	if (status < 0) {
		sl_images_group(&images);
		status = fit(&images, &asked);
	}
	sl_images_free(&images);
	sl_arguments_free(&parsed);
	return status;
}

const struct sl_command sl_command_fit = {"fit", "would it have fit on another card, with other settings of PyTorch's allocator",
					  run};
