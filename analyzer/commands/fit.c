/* SPDX-License-Identifier: MIT */
/* stormlog-analyze fit PATH: would it have fit on another card, or with other settings of PyTorch's allocator? */
#include "analyzer/commands/fit.h"

#include <unistd.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/json.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/terminal.h"
#include "analyzer/commands/commands.h"
#include "analyzer/fit/window.h"
#include "analyzer/gate/gate.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/missing.h"
#include "common/text.h"

#define PROOF_SECONDS 60 /* for --changes */

static const char about[] =
	"Replays what PyTorch's allocator was asked for, with its own rules, under other capacities and settings: whether it\n"
	"fits, where it would have failed, and the smallest capacity that is enough.  Exit status 1: a capacity that was asked\n"
	"for is too small, or no capacity has a verdict.  doc/would-it-fit.md, doc/proof.md";

struct asked {
	struct sl_fit_question question;
	const char *run, *vary;
	bool json, changes, layout;
};

#define INTO struct asked
static const struct sl_option table[] = {
	{"--capacity", 0, "SIZE,...",
	 "capacities of the device, as for --limit; contexts and other libraries are subtracted as recorded (default: the recorded "
	 "one, beside its other processes)"},
	{"--allocator-capacity", 0, "SIZE,...", "capacities of PyTorch's allocator only"},
	{"--settings", 0, "TEXT",
	 "of PYTORCH_CUDA_ALLOC_CONF (PYTORCH_HIP_ALLOC_CONF), may be given several times (default: the recorded ones and some "
	 "that are often tried)"},
	{"--addresses", 0, "reused|rising|falling",
	 "where the driver puts segments: in slots that are used again, or ever higher, lower ones (up to PyTorch 2.11 it matters; "
	 "default: as the recorded addresses tell, else reused)"},
	{"--torch", 0, "RELEASE,...",
	 "as 2.9,2.12: the same requests under the rules of other releases of PyTorch; a snapshot, which names no release, is of "
	 "the first that reproduces it"},
	{"--vary", 0, "KEY",
	 "of recordings at several values of a number that --meta KEY=N told (batch, sequence length): the largest that fits"},
	{"--changes", 0, NULL,
	 "which changes of the program or its settings would have let it fit on the recorded device, each one replayed",
	 SL_TO_FLAG(changes)},
	{"--layout", 0, NULL, "draw the segments where memory ran out", SL_TO_FLAG(layout)},
	{"--json", 0, NULL, "a JSON object on stdout", SL_TO_FLAG(json)},
	SL_OPTION_RUN(run),
	{0},
};
enum { CAPACITY, ALLOCATOR_CAPACITY, SETTINGS, ADDRESSES, TORCH, VARY };

static bool take_sizes(struct sl_fit_question *asked, const char *value, bool of_allocator)
{
	char text[64];

	if (asked->capacity_count && asked->of_allocator != of_allocator)
		return sl_command_fail(false, "--capacity and --allocator-capacity exclude each other");
	asked->of_allocator = of_allocator;
	for (bool more = true; more; value++) {
		size_t length = strcspn(value, ",");

		if (!length || length >= sizeof(text) || asked->capacity_count == SL_FIT_CAPACITIES)
			return false;
		memcpy(text, value, length);
		text[length] = 0;
		if (!sl_size_parse(text, &asked->capacities[asked->capacity_count]) || !asked->capacities[asked->capacity_count++])
			return false;
		value += length;
		more = *value == ',';
	}
	return true;
}

static bool take_settings(struct sl_fit_question *asked, const char *value)
{
	struct sl_fit_settings settings = sl_fit_defaults;
	const char *at, *wrong = sl_fit_settings_parse(&settings, value, SL_FIT_RELEASE(2, 14), &at);

	if (wrong)
		sl_escape_print(stderr, "stormlog-analyze: in the settings at \"%.30s\": %s\n", at, wrong);
	if (wrong || asked->setting_count == SL_FIT_CHOICES)
		return false;
	asked->settings[asked->setting_count++] = value;
	return true;
}

static bool take_addresses(struct sl_fit_question *asked, const char *value)
{
	static const char *const words[] = {
		[SL_FIT_ASCENDING] = "rising", [SL_FIT_DESCENDING] = "falling", [SL_FIT_REUSED] = "reused"};

	for (asked->ties = 0; asked->ties < SL_COUNT(words); asked->ties++)
		if (!strcmp(value, words[asked->ties]))
			return true;
	return false;
}

static bool take_releases(struct sl_fit_question *asked, const char *value)
{
	for (bool more = true; more; value++) {
		char *end;
		unsigned long minor;

		if (strncmp(value, "2.", 2) || value[2] < '0' || value[2] > '9')
			return false;
		minor = strtoul(value + 2, &end, 10);
		if ((*end && *end != ',') || minor > SL_FIT_NEWEST || asked->release_count == SL_FIT_RELEASES)
			return sl_command_fail(false, "at most %d releases, of 2.0 to 2.%d", SL_FIT_RELEASES, SL_FIT_NEWEST);
		asked->releases[asked->release_count++] = SL_FIT_RELEASE(2, (unsigned)minor);
		value = end;
		more = *value == ',';
	}
	return true;
}

static bool take(void *context, int option, const char *value)
{
	struct asked *asked = context;

	switch (option) {
	case CAPACITY:
	case ALLOCATOR_CAPACITY:
		return take_sizes(&asked->question, value, option == ALLOCATOR_CAPACITY);
	case SETTINGS:
		return take_settings(&asked->question, value);
	case ADDRESSES:
		return take_addresses(&asked->question, value);
	case TORCH:
		return take_releases(&asked->question, value);
	default:
		asked->vary = value;
		return *value != 0;
	}
}

/* Counts the capacities with each verdict, by enum sl_fit_verdict. */
static void count_verdicts(const struct sl_fit_result *result, unsigned counts[3])
{
	const struct sl_fit_question *question = result->question;
	char why[120];

	for (unsigned s = 0; s < result->subject_count; s++)
		for (unsigned c = 0; result->subjects[s].answers && c < result->subjects[s].choice_count; c++)
			for (unsigned i = 0; i < result->subjects[s].capacity_count; i++)
				counts[result->subjects[s].answers[c].at[i].verdict]++;
	for (size_t d = 0; !question->of_allocator && d < result->drivers.count; d++)
		for (unsigned i = 0; i < question->capacity_count; i++)
			counts[sl_fit_judge_driver(result->drivers.item[d], question->capacities[i], why, sizeof(why))]++;
}

static void add_subject(struct sl_fit_result *result, const struct sl_fit_recording *recording, const struct asked *asked)
{
	struct sl_fit_subject *subject;
	bool rewrites = sl_terminal_rewrites(STDERR_FILENO);

	result->subjects = sl_memory_must(realloc(result->subjects, (result->subject_count + 1) * sizeof(*subject)));
	subject = &result->subjects[result->subject_count];
	if (rewrites)
		sl_escape_print(stderr, "\r\033[Kreplays %s requests of process %s, again and again",
				SL_NUMBER(recording->requests), SL_NUMBER(recording->trace->header.pid));
	sl_fit_ask(subject, recording, &asked->question);
	if (rewrites)
		fputs("\r\033[K", stderr);
	result->insteads = sl_memory_must(realloc(result->insteads, (result->subject_count + 1) * sizeof(*result->insteads)));
	sl_fit_other_settings(&result->insteads[result->subject_count++], subject);
	if (sl_fit_spent(subject) && !recording->budget->reported)
		sl_escape_print(stderr, "stormlog-analyze: %s: " SL_FIT_SPENT "\n", recording->trace->name);
	recording->budget->reported |= sl_fit_spent(subject);
}

/* run: an index from sl_images_choose. */
static void open_all(struct sl_fit_result *result, const struct sl_images *images, int run, bool alone)
{
	bool warned = false;

	result->processes = sl_memory_must(calloc(images->image_count + 1, sizeof(*result->processes)));
	result->sessions = sl_memory_must(calloc(images->image_count + 1, sizeof(*result->sessions)));
	for (unsigned i = 0; i < images->image_count; i++) {
		struct sl_damage damage = {0};
		struct sl_fit_process *process;
		struct sl_trace *trace = sl_images_is_of(images, i, run) ? sl_trace_open(&images->images[i], &damage) : NULL;

		sl_damage_print(&damage);
		sl_damage_free(&damage);
		if (!trace)
			continue;
		process = &result->processes[result->process_count];
		result->sessions[result->process_count] = sl_report_session(trace);
		sl_fit_record(process, trace, result->sessions[result->process_count++], alone);
		for (unsigned k = 0; k < process->count; k++)
			*SL_PUSH(&result->recordings) = &process->recordings[k];
		for (unsigned k = 0; k < process->driver_count; k++)
			*SL_PUSH(&result->drivers) = &process->drivers[k];
		sl_damage_print(&trace->damage);
		sl_missing_say_newer(trace, &warned);
	}
}

static bool has_no_verdict(const struct sl_fit_result *result, const unsigned counts[3])
{
	bool answered = !result->subject_count;

	for (unsigned s = 0; s < result->subject_count; s++)
		answered |= result->subjects[s].answers != NULL;
	return !counts[SL_FIT_FITS] && !counts[SL_FIT_FAILS] && (counts[SL_FIT_UNKNOWN] || !answered);
}

/* The need that the report states, where the replay has no verdict. */
static char *ask_need(const struct sl_arguments *parsed, const char *run)
{
	struct sl_pipeline_options options = {.run = run, .quiet = true};
	struct sl_report report = {0};
	const struct sl_answers *answers;
	char *need = NULL;

	if (sl_pipeline_run(&report, parsed->paths, parsed->path_count, &options) == SL_PIPELINE_FINE) {
		answers = sl_answer_report(&report);
		for (size_t i = 0; !need && i < answers->item.count; i++)
			if (answers->item.item[i]->label[SL_LABEL_NEED].count)
				need = sl_memory_copy(answers->item.item[i]->label[SL_LABEL_NEED].item[0]);
	}
	sl_report_free(&report);
	return need;
}

/* Without PyTorch's allocator the report's analyses tell whether the program got over an error. */
static void ask_report(struct sl_fit_result *result, const struct sl_arguments *parsed, const char *run)
{
	struct sl_pipeline_options options = {.run = run, .quiet = true};
	struct sl_report report = {0};
	bool failed = false;

	for (size_t i = 0; i < result->drivers.count; i++)
		failed |= result->drivers.item[i]->failed_total != 0;
	if (!failed)
		return;
	sl_pipeline_run(&report, parsed->paths, parsed->path_count, &options);
	for (unsigned i = 0; i < report.process_count; i++) {
		char *session = report.processes[i].trace ? sl_report_session(report.processes[i].trace) : NULL;

		for (unsigned p = 0; session && p < result->process_count; p++)
			if (!strcmp(session, result->sessions[p]))
				sl_fits_go_on(&report.processes[i], &result->processes[p]);
		free(session);
	}
	sl_report_free(&report);
}

static void close_all(struct sl_fit_result *result)
{
	for (unsigned s = 0; s < result->subject_count; s++)
		sl_fit_other_settings_free(&result->insteads[s]), sl_fit_subject_free(&result->subjects[s]);
	for (unsigned p = 0; p < result->proof_count; p++)
		sl_fit_proof_free(&result->proofs[p]);
	free(result->proofs);
	for (unsigned p = 0; p < result->process_count; p++) {
		struct sl_trace *trace = result->processes[p].trace;

		sl_fit_forget(&result->processes[p]);
		sl_trace_close(trace);
		free(result->sessions[p]);
	}
	for (size_t i = 0; i < result->varied.count; i++)
		SL_DROP(&result->varied.item[i].curve.points);
	SL_DROP(&result->varied);
	SL_DROP(&result->recordings);
	SL_DROP(&result->drivers);
	sl_map_free(&result->varied_at);
	free(result->need);
	free(result->subjects);
	free(result->insteads);
	free(result->processes);
	free(result->sessions);
}

static void try_changes(struct sl_fit_result *result)
{
	result->proofs = sl_memory_must(calloc(result->recordings.count + 1, sizeof(*result->proofs)));
	for (size_t i = 0; i < result->recordings.count; i++)
		sl_fit_proof_make(&result->proofs[result->proof_count++], result->recordings.item[i], NULL, PROOF_SECONDS);
}

static void put_changes(const struct sl_fit_proof *proof, const struct sl_terminal *to)
{
	struct sl_cells table = {.columns = "lw"};
	char text[300], words[300];

	for (unsigned i = 0; i < proof->count; i++) {
		const struct sl_change *c = &proof->changes[i];

		sl_cells_put(&table, c->passes == SL_PASSES ? SL_COLOUR_GREEN : SL_COLOUR_NONE, "%s", sl_change_passes[c->passes]);
		sl_cells_put(&table, SL_COLOUR_NONE, "%s", sl_change_text(text, sizeof(text), c, NULL));
		sl_cells_put(&table, SL_COLOUR_NONE, "%s", "");
		sl_cells_put(&table, SL_COLOUR_NONE, "%s", sl_change_words(words, sizeof(words), c));
	}
	sl_cells_print(&table, to, 2);
	if (!proof->count && !proof->why_not)
		sl_terminal_line(to, 2, 4, "every change that is known leaves it as it is");
	if (proof->untried)
		sl_terminal_line(to, 2, 4, "%u more kinds were not tried: there was no time", proof->untried);
}

static void print_changes(const struct sl_fit_result *result)
{
	struct sl_terminal to = sl_terminal_here();

	if (!result->proof_count)
		sl_terminal_line(&to, 0, 4, "no change was tried: PyTorch's allocator was not recorded");
	for (unsigned i = 0; i < result->proof_count; i++) {
		const struct sl_fit_proof *proof = &result->proofs[i];
		const struct sl_fit_recording *r = proof->recording;

		if (proof->why_not)
			sl_terminal_line(&to, 0, 4, "changes were not tried: %s", proof->why_not);
		else
			sl_terminal_line(&to, 0, 4, "what a change lets pass, with %s for %s", SL_SIZE(proof->capacity),
					 proof->of_allocator ? "PyTorch's allocator" : "the device");
		put_changes(proof, &to);
		sl_terminal_line(&to, 0, 4, "of %s, device %d, PyTorch %u.%u, %s requests", r->session, r->device, r->release / 100,
				 r->release % 100, SL_NUMBER(r->requests));
	}
}

static void write_changes(const struct sl_fit_result *result)
{
	struct sl_json *j = sl_json_new(stdout, SL_JSON_INDENT);

	sl_json_document(j, "stormlog.fit_changes", 1);
	sl_json_string(j, "dry", sl_dry_card(&result->processes[0].trace->header));
	sl_json_array(j, "recordings");
	for (unsigned i = 0; i < result->proof_count; i++) {
		const struct sl_fit_proof *proof = &result->proofs[i];

		sl_json_object(j, NULL);
		sl_json_string(j, "process", proof->recording->session);
		sl_json_int(j, "device", proof->recording->device);
		sl_json_uint(j, "capacity_bytes", proof->capacity);
		sl_json_string(j, "not_tried_because", proof->why_not);
		sl_json_uint(j, "kinds_left_out", proof->untried);
		sl_json_array(j, "changes");
		for (unsigned c = 0; c < proof->count; c++)
			sl_change_write(j, &proof->changes[c]);
		sl_json_end(j);
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_json_finish(j);
}

static int fit(const struct sl_images *images, const struct asked *asked, const struct sl_arguments *parsed)
{
	const char *chosen = asked->vary && !asked->run ? "all" : asked->run;
	struct sl_fit_result result = {.question = &asked->question, .vary = asked->vary, .layout = asked->layout};
	int status = SL_EXIT_FINE, run = sl_images_choose(images, chosen);
	unsigned counts[3] = {0};

	if (run < -1)
		return SL_EXIT_USAGE;
	open_all(&result, images, run, asked->question.capacity_count);
	ask_report(&result, parsed, chosen);
	if (!asked->json && result.process_count)
		sl_dry_head(stdout, sl_dry_card(&result.processes[0].trace->header));
	if (!result.process_count) {
		status = SL_EXIT_UNREADABLE;
	} else if (asked->changes) {
		try_changes(&result);
		(asked->json ? write_changes : print_changes)(&result);
	} else {
		for (size_t i = 0; i < result.recordings.count; i++)
			add_subject(&result, result.recordings.item[i], asked);
		if (asked->vary && !sl_fit_vary(&result))
			status = sl_command_fail(SL_EXIT_USAGE,
						 "--vary %s needs two recordings: record each with stormlog-run --meta %s=N",
						 asked->vary, asked->vary);
		count_verdicts(&result, counts);
		if (!asked->json && has_no_verdict(&result, counts))
			result.need = ask_need(parsed, chosen);
		(asked->json ? sl_fit_print_json : sl_fit_print)(&result);
		if (asked->question.of_allocator && !result.subject_count)
			status = sl_command_fail(
				SL_EXIT_USAGE,
				"this recording has no PyTorch allocator: use --capacity, which is about the whole device");
		if (status == SL_EXIT_FINE &&
		    ((asked->question.capacity_count && counts[SL_FIT_FAILS]) || (!asked->vary && has_no_verdict(&result, counts))))
			status = SL_EXIT_LIMIT;
	}
	close_all(&result);
	return status;
}

static int run(struct sl_arguments *parsed)
{
	struct asked asked = {.question.ties = SL_FIT_GIVEN};
	struct sl_images images = {0};
	int status = sl_arguments_parse(parsed, take, &asked);

	if (status < 0)
		sl_sandbox_setup(&(struct sl_verb_files){.inputs = parsed->paths});
	if (status < 0)
		status = sl_native_images(&images, parsed->paths);
	if (status < 0)
		status = fit(&images, &asked, parsed);
	sl_images_free(&images);
	return status;
}

const struct sl_command sl_command_fit = {
	"fit", "would it have fit on another card, with other settings", "fit [options] PATH...", about, table, run};
