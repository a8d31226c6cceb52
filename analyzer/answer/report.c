/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/analyses/hidden.h"
#include "analyzer/answer/make.h"
#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/api_names.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/missing.h"
#include "analyzer/report/window_facts.h"

/* The first line: which program, how many processes, how long, how they ended, and the card; below it what is incomplete. */

static const struct sl_process *first_recorded(const struct sl_report *report)
{
	for (unsigned i = 0; i < report->process_count; i++)
		if (report->processes[i].model->recording.follows_process)
			return &report->processes[i];
	return &report->processes[0];
}

static void put_statuses(char *out, size_t size, const struct sl_report *report, unsigned recorded)
{
	static const enum sl_ended order[] = {SL_ENDED_KILLED, SL_ENDED_FAILED, SL_ENDED_RUNNING, SL_ENDED_UNKNOWN,
					      SL_ENDED_COMPLETED};
	size_t at = 0;

	out[0] = 0;
	for (unsigned o = 0; o < SL_COUNT(order) && at < size; o++) {
		const char *word = order[o] == SL_ENDED_UNKNOWN ? "ended in an unknown way" : sl_ended_names[order[o]];
		unsigned count = 0;
		char name[48];

		for (unsigned i = 0; i < report->process_count; i++)
			if (report->processes[i].model->recording.follows_process &&
			    sl_trace_ended(report->processes[i].trace) == order[o] && !count++)
				sl_process_who(name, &report->processes[i]);
		if (!count)
			continue;
		if (recorded == 1 && order[o] == SL_ENDED_FAILED)
			at += (size_t)snprintf(out + at, size - at, "exit status %u", first_recorded(report)->trace->exited - 1);
		else if (recorded == 1)
			at += (size_t)snprintf(out + at, size - at, "%s", word);
		else if (count == 1 && order[o] != SL_ENDED_COMPLETED)
			at += (size_t)snprintf(out + at, size - at, "%s%s %s", at ? ", " : "", name, word);
		else
			at += (size_t)snprintf(out + at, size - at, "%s%u %s", at ? ", " : "", count, word);
	}
}

/* Each process on an unknown host counts as on a host of its own. */
static unsigned hosts_of(const struct sl_report *report)
{
	const char **names = sl_memory_must(calloc(report->process_count + 1, sizeof(*names)));
	unsigned named = 0, hosts = 0;

	for (unsigned i = 0; i < report->process_count; i++)
		if (!report->processes[i].model->recording.follows_process)
			continue;
		else if (report->processes[i].trace->header.host)
			names[named++] = report->processes[i].trace->header.host;
		else
			hosts++;
	qsort(names, named, sizeof(*names), sl_stats_by_text);
	for (unsigned i = 0; i < named; i++)
		hosts += !i || strcmp(names[i], names[i - 1]) != 0;
	free(names);
	return hosts;
}

/* "H200, 140 GiB": of the device on which most was held. */
static const char *card_of(struct sl_make *make)
{
	const struct sl_report *report = make->report;
	const struct sl_shared_device *fullest = NULL;
	const char *name = sl_dry_report(report);
	uint64_t limit = sl_header_limit(first_recorded(report)->model->header);

	for (unsigned i = 0; i < report->device_count; i++)
		if (!fullest || (report->devices[i].known_peak_bytes != SL_UNKNOWN &&
				 report->devices[i].known_peak_bytes > fullest->known_peak_bytes))
			fullest = &report->devices[i];
	if (!name && fullest)
		name = fullest->name;
	if (!name)
		return NULL;
	name += !strncmp(name, "NVIDIA ", 7) ? 7 : 0;
	if (fullest && limit < fullest->total_bytes)
		return sl_answers_text(make->to, "%s, limit %s", name, SL_ANSWER_SIZE(limit));
	if (fullest && fullest->total_bytes != SL_UNKNOWN && fullest->total_bytes)
		return sl_answers_text(make->to, "%s, %s", name, SL_ANSWER_SIZE(fullest->total_bytes));
	return sl_answers_text(make->to, "%s", name);
}

struct parts {
	struct sl_make *make;
	unsigned count;
};

static void tell_part(void *context, bool damaged, const char *subject, const char *message)
{
	struct parts *parts = context;

	if (!parts->count++)
		sl_answers_under(parts->make->to, "incomplete: %s: %s", subject, message);
}

static void put_incomplete(struct sl_make *make)
{
	const struct sl_report *report = make->report;
	struct parts parts = {make, 0};
	struct sl_missing absent;
	uint64_t events, lost = sl_missing_events(report, &events);

	if (lost)
		sl_answers_under(make->to, "incomplete: %s of %s events lost", SL_NUMBER(lost), SL_NUMBER(events));
	if (sl_missing_ranks(report, &absent))
		sl_answers_under(make->to, "incomplete: without %llu of %llu ranks", (unsigned long long)absent.ranks,
				 (unsigned long long)absent.of);
	else if (!lost)
		sl_missing_tell(report, tell_part, &parts);
}

/* "xl.pickle  PyTorch snapshot (2.5 to 2.7)  device 0  563 ms" */
static void put_window(struct sl_make *make)
{
	struct sl_report *report = make->report;
	struct sl_process *process = &report->processes[0];
	const struct sl_header *header = process->model->header;
	const struct sl_device_state *device = sl_devices_home(process);
	struct sl_window_facts facts = {0};
	unsigned devices = sl_devices_held(process);
	char releases[40], on[40], window[60] = "";

	sl_window_facts(header, device ? device->device : 0, &facts);
	snprintf(on, sizeof(on), devices > 1 ? "%u devices" : "device %u",
		 devices > 1 ? devices
		 : device    ? (unsigned)device->device
			     : 0);
	if (facts.events < SL_WINDOW_FEW)
		snprintf(window, sizeof(window), "no history");
	else if (facts.span_ns)
		snprintf(window, sizeof(window), "%s", SL_SPAN(facts.span_ns));
	else
		snprintf(window, sizeof(window), "%s events", SL_NUMBER(facts.events));
	make->to->title =
		sl_answers_text(make->to, "%s  PyTorch snapshot (%s)  %s  %s", sl_stacks_program(header),
				*sl_header_setting(header, "snapshot_npu") ? "of torch_npu"
									   : sl_window_releases(header, releases, sizeof(releases)),
				on, window);
	if (*sl_header_setting(header, "snapshot_unknown"))
		sl_answers_under(make->to, "passed over, as unknown here: %s", sl_header_setting(header, "snapshot_unknown"));
	if (facts.trimmed)
		sl_answers_under(make->to, "incomplete: the events do not lead to the file's final state");
}

/* Other runs are here.  Ranks that were started without the id of a job are runs of their own. */
static void put_runs(struct sl_make *make, unsigned recorded, unsigned ranks)
{
	const struct sl_report *report = make->report;

	if (report->options.run)
		sl_answers_under(make->to, "one of %u runs here: --run all shows all", report->images.run_count);
	else if (recorded && ranks == 1 && report->process_count == 1)
		sl_answers_under(make->to, "the newest of %u runs here: --run all shows all, stormlog-run --job-id makes ranks one",
				 report->images.run_count);
	else
		sl_answers_under(make->to, "the newest of %u runs here: %s", report->images.run_count,
				 recorded || report->path_count > 1 ? "--run all shows all"
								    : "name its file for another one, or --run all");
}

/* The process that the open verdict is about; NULL: the title is of all of them. */
static const struct sl_process *subject_of(struct sl_make *make, unsigned ranks)
{
	const struct sl_answer *open = make->to->item.count ? make->to->item.item[0] : NULL;

	return open && open->process >= 0 && !open->several && !ranks &&
			       make->report->processes[open->process].model->recording.follows_process
		       ? &make->report->processes[open->process]
		       : NULL;
}

static void put_ended(char *out, size_t size, const struct sl_process *process)
{
	enum sl_ended ended = sl_trace_ended(process->trace);

	if (ended == SL_ENDED_FAILED)
		snprintf(out, size, "exit status %u", process->trace->exited - 1);
	else
		snprintf(out, size, "%s", ended == SL_ENDED_UNKNOWN ? "ended in an unknown way" : sl_ended_names[ended]);
}

/* The first line, what stands at its right end, and the lines below it. */
static void make_title(struct sl_make *make)
{
	const struct sl_report *report = make->report;
	const struct sl_process *first = first_recorded(report);
	const char *card = sl_dry_report(report), *gap = "";
	const struct sl_process *subject = NULL;
	unsigned hosts = hosts_of(report), ranks = 0, recorded = sl_report_recorded(report);
	char status[256], who[80], span[SL_FORMAT_BYTES] = "", more[60] = "";

	for (unsigned i = 0; i < report->process_count; i++)
		ranks += report->processes[i].model->recording.follows_process && sl_process_is_rank(&report->processes[i]);
	if (!recorded && report->process_count == 1) {
		put_window(make);
	} else if (!recorded) {
		make->to->title = sl_answers_text(make->to, "%s  and %u more PyTorch snapshots",
						  sl_stacks_program(&first->trace->header), report->process_count - 1);
	} else {
		subject = subject_of(make, ranks);
		put_statuses(status, sizeof(status), report, recorded);
		if (subject)
			put_ended(status, sizeof(status), subject);
		if (subject && recorded > 1)
			snprintf(who, sizeof(who), "%s of %u", SL_WHO(subject), recorded);
		else if (recorded == 1)
			sl_process_who(who, first);
		else
			snprintf(who, sizeof(who), "%u %s", recorded, ranks == recorded ? "ranks" : "processes");
		if (!subject && (recorded > 1 || hosts > 1))
			snprintf(who + strlen(who), sizeof(who) - strlen(who), " on %u host%s", hosts, hosts == 1 ? "" : "s");
		if (!card) {
			sl_format_duration(span, report->ended_unix_ns - report->started_unix_ns);
			gap = "  ";
		}
		if (recorded < report->process_count)
			snprintf(more, sizeof(more), ", beside %u PyTorch snapshot%s", report->process_count - recorded,
				 report->process_count - recorded == 1 ? "" : "s");
		make->to->title = sl_answers_text(make->to, "%s  %s%s%s  %s%s",
						  sl_stacks_program(&(subject ? subject : first)->trace->header), who, gap, span,
						  status, more);
		make->to->right = card_of(make);
	}
	if (card)
		sl_answers_under(make->to, "DRY RUN as %s: " SL_DRY_WORDS "%s", card,
				 sl_dry_unanswered(report) ? ". " SL_DRY_EARLIER : "");
	if (recorded)
		put_incomplete(make);
	if (report->images.run_count > 1 && !sl_images_is_all(report->options.run))
		put_runs(make, recorded, ranks);
}

/* Notes of devices: what their processes held together, and what is hidden: in use there, and asked for by no recorded call. */

#define PARTS_SHOWN 4
#define LITTLE	    100 /* a part with less than one of so many parts of what is hidden is not named */

static bool has_pools(const struct sl_report *report, const struct sl_shared_device *device, bool *stacks)
{
	bool pools = false;

	*stacks = false;
	for (unsigned i = 0; i < device->user_count; i++) {
		const struct sl_device_state *state = device->users[i].state;

		pools |=
			sl_model_row(report->processes[device->users[i].process].model, SL_KIND_pool, state->device + 1)->frees > 0;
		*stacks |= state->limit_each > 0;
	}
	return pools;
}

/* Contexts of several processes are one part, and so is the code of one library. */
static bool is_alike(const struct sl_hidden_name *one, const struct sl_hidden_name *other)
{
	return !strcmp(one->what, other->what) && !strcmp(one->library ?: "", other->library ?: "");
}

/* "3 contexts, together at most 900 MiB", "code of libcublas.so 120 MiB (step 3)" */
static const char *name_part(struct sl_answers *to, const struct sl_hidden *hidden, size_t first, const char *rest)
{
	const struct sl_hidden_name *name = &hidden->item[first];
	const char *bound = "", *text;
	uint64_t bytes = 0;
	unsigned count = 0;

	for (size_t i = first; i < hidden->count; i++) {
		if (!is_alike(name, &hidden->item[i]))
			continue;
		bytes += hidden->item[i].bytes;
		if (hidden->item[i].bound && strcmp(hidden->item[i].bound, "about") != 0)
			bound = hidden->item[i].bound;
		count++;
	}
	if (!strcmp(name->what, "rounding"))
		return sl_answers_text(to, "about %s rounding to 2 MiB", SL_ANSWER_SIZE(bytes));
	if (count > 1 && !strcmp(name->what, "context"))
		return sl_answers_text(to, "%u contexts, together %s%s%s", count, bound, *bound ? " " : "", SL_ANSWER_SIZE(bytes));
	text = sl_answers_text(to, "%s%s%s%s%s %s",
			       !strcmp(name->what, "unexplained") ? rest
			       : !strcmp(name->what, "limit")	  ? "set aside by its limit"
								  : name->what,
			       name->library ? " of " : "", name->library ?: "", *bound ? " " : "", bound, SL_ANSWER_SIZE(bytes));
	return name->step == SL_UNKNOWN ? text : sl_answers_text(to, "%s (step %llu)", text, (unsigned long long)name->step);
}

/* "context at most 518 MiB, code of main.py 92 MiB" */
static const char *name_parts(struct sl_make *make, const struct sl_shared_device *device, const struct sl_hidden *hidden)
{
	bool contexts = false, stacks, pools = has_pools(make->report, device, &stacks);
	const char *text = "", *rest;
	unsigned names = 0;

	for (size_t i = 0; i < hidden->count; i++)
		contexts |= !strcmp(hidden->item[i].what, "context");
	rest = sl_answers_text(make->to, "%s%s%s%sunexplained", contexts ? "" : "contexts, or ", pools ? "kept by pools, or " : "",
			       stacks ? "stacks of its kernels, or " : "",
			       device->figure == SL_FIGURE_DEVICE ? "other programs, or " : "");
	for (size_t i = 0; i < hidden->count; i++) {
		bool skipped = hidden->item[i].bytes * LITTLE < device->hidden_peak_bytes;

		for (size_t k = 0; k < i && !skipped; k++)
			skipped = is_alike(&hidden->item[k], &hidden->item[i]);
		if (!skipped && names++ < PARTS_SHOWN)
			text = sl_answers_text(make->to, "%s%s%s", text, *text ? ", " : "", name_part(make->to, hidden, i, rest));
	}
	return names > PARTS_SHOWN ? sl_answers_text(make->to, "%s, and %u more", text, names - PARTS_SHOWN) : text;
}

static void note_hidden(struct sl_make *make, const struct sl_shared_device *device)
{
	struct sl_hidden hidden;

	sl_hidden_split(make->report, device, &hidden);
	sl_answers_note(make->to, "device %d: %s%s hidden, %s: %s", device->device,
			device->figure == SL_FIGURE_DEVICE ? "at most " : "", SL_ANSWER_SIZE(device->hidden_peak_bytes),
			device->figure == SL_FIGURE_OWN		  ? "highest own figure"
			: device->figure == SL_FIGURE_LESS_OTHERS ? "the device's figure less others'"
								  : "the device's highest sample",
			name_parts(make, device, &hidden));
	sl_hidden_free(&hidden);
}

/* True: no process alone held as much on the device. */
static bool is_of_several(const struct sl_report *report, const struct sl_shared_device *device)
{
	for (unsigned i = 0; i < device->user_count; i++)
		if (device->users[i].state->known_peak >= device->known_peak_bytes)
			return false;
	return device->user_count > 1 && device->known_peak_bytes != SL_UNKNOWN;
}

/* Notes of each device. */
static void make_devices(struct sl_make *make)
{
	for (unsigned i = 0; i < make->report->device_count; i++) {
		const struct sl_shared_device *device = &make->report->devices[i];

		if (is_of_several(make->report, device))
			sl_answers_note(make->to, "device %d: %u processes held %s together at most", device->device,
					device->user_count, SL_ANSWER_SIZE(device->known_peak_bytes));
		if (device->source && !strcmp(device->source, "meminfo") && device->used_peak_bytes != SL_UNKNOWN)
			sl_answers_note(make->to, "device %d: its %s are the host's too, %s of them in use at most", device->device,
					SL_ANSWER_SIZE(device->total_bytes), SL_ANSWER_SIZE(device->used_peak_bytes));
		if (device->hidden_peak_bytes != SL_UNKNOWN && device->hidden_peak_bytes)
			note_hidden(make, device);
	}
}

#define NAMES_SHOWN 20 /* of a process */
#define NOTES_TOLD  16

static void note_warnings(struct sl_make *make)
{
	struct sl_report *report = make->report;
	const struct sl_images *images = &report->images;
	const struct sl_run *ours = images->run_count ? &images->runs[report->run] : NULL;

	sl_report_warn_of_symbols(report);
	for (size_t i = 0; i < report->warnings.count; i++)
		sl_answers_note(make->to, "%s", report->warnings.item[i]);
	for (unsigned i = 0; ours && !sl_images_is_all(report->options.run) && i < images->run_count; i++)
		if (&images->runs[i] != ours && images->runs[i].id[0])
			sl_answers_note(make->to, "other run here: --run %s  (%u process%s)", images->runs[i].id,
					images->runs[i].images, images->runs[i].images == 1 ? "" : "es");
	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *process = &report->processes[i];

		for (size_t k = 0; k < process->model->in_flight.count; k++) {
			const struct sl_hook *hook = sl_header_hook(process->model->header, process->model->in_flight.item[k].api);

			sl_answers_note(make->to, "%s: %s had not returned", SL_WHO(process), hook ? hook->plain : "a call");
		}
	}
}

/* What the recorders themselves said, each sentence once. */
static void note_recorders(struct sl_make *make)
{
	SL_VECTOR(const char *) noted = {0};

	for (unsigned i = 0; i < make->report->process_count; i++) {
		const struct sl_defs *defs = &make->report->processes[i].trace->defs;

		for (size_t k = 0; k < defs->notes.count && noted.count < NOTES_TOLD; k++) {
			size_t at = 0;

			while (at < noted.count && strcmp(noted.item[at], defs->notes.item[k]) != 0)
				at++;
			if (at < noted.count)
				continue;
			*SL_PUSH(&noted) = defs->notes.item[k];
			sl_answers_note(make->to, "%s: %s", SL_WHO(&make->report->processes[i]), defs->notes.item[k]);
		}
	}
	free(noted.item);
}

/* What the program itself calls its memory. */
static void note_names(struct sl_make *make)
{
	for (unsigned i = 0; i < make->report->process_count; i++) {
		const struct sl_model *model = make->report->processes[i].model;

		for (size_t k = 0; k < model->called.count && k < NAMES_SHOWN; k++)
			sl_answers_note(make->to, "%s, so named by the program: %s at most, %s at the end",
					sl_defs_text(model->defs, model->called.item[k].text),
					SL_ANSWER_SIZE(model->called.item[k].peak_bytes),
					SL_ANSWER_SIZE(model->called.item[k].live_bytes));
	}
}

static bool is_bad(const struct sl_answers *answers)
{
	for (size_t i = 0; i < answers->item.count; i++)
		if (answers->item.item[i]->word < SL_WORD_OK)
			return true;
	return false;
}

static int compare_answers(const void *a, const void *b)
{
	const struct sl_answer *one = *(struct sl_answer *const *)a, *other = *(struct sl_answer *const *)b;

	if (one->word != other->word)
		return one->word < other->word ? -1 : 1;
	if (one->bytes != other->bytes)
		return one->bytes > other->bytes ? -1 : 1;
	if (one->unix_ns != other->unix_ns)
		return one->unix_ns < other->unix_ns ? -1 : 1;
	return one->process < other->process ? -1 : one->process > other->process;
}

static void sort_answers(struct sl_answers *answers)
{
	if (answers->item.count)
		qsort(answers->item.item, answers->item.count, sizeof(*answers->item.item), compare_answers);
}

const struct sl_answers *sl_answer_report(struct sl_report *report)
{
	struct sl_make make = {.report = report};

	if (report->answers)
		return report->answers;
	make.to = report->answers = sl_answers_new();
	sl_leak_list_take(&make.leaks, report);
	sl_make_ooms(&make);
	sl_make_leaks(&make);
	sl_make_findings(&make);
	if (sl_window_all(report))
		sl_make_windows(&make);
	else
		sl_make_dry(&make);
	if (!is_bad(make.to) && !make.to->item.count)
		sl_make_ok(&make);
	if (make.retried)
		sl_answers_note(make.to, "%s", make.retried);
	for (size_t i = 0; i < make.hints.count; i++)
		sl_answers_note(make.to, "%s%s%s", make.hints.item[i].text, make.hints.item[i].advice ? ": " : "",
				make.hints.item[i].advice ?: "");
	SL_DROP(&make.hints);
	note_names(&make);
	note_recorders(&make);
	sl_make_ranks(&make);
	make_devices(&make);
	note_warnings(&make);
	sl_leak_list_free(&make.leaks);
	sort_answers(make.to);
	sl_make_around(&make);
	make_title(&make);
	return make.to;
}

struct sl_answers *sl_answer_error(struct sl_report *report, struct sl_process *process, const struct sl_oom *oom)
{
	struct sl_make make = {.to = sl_answers_new(), .report = report};

	make_title(&make);
	sl_make_error(&make, process, oom);
	return make.to;
}

static void describe_error(struct sl_report *report, struct sl_process *process, size_t index)
{
	struct sl_make make = {.to = sl_answers_new(), .report = report};
	const struct sl_answer *answer = sl_make_error(&make, process, &process->model->ooms.item[index]);
	struct sl_account *account = &process->accounts[index];

	account->cause_text = sl_answer_join(answer, answer->headline, SL_LABEL_WHY);
	account->advice = sl_api_names_translate(process->model, sl_answer_join(answer, NULL, SL_LABEL_FIX));
	sl_answers_free(make.to);
}

/* What an error found has its sentences. */
static void describe_finding(const struct sl_report *report, struct sl_finding *finding)
{
	const struct sl_account *account = sl_process_account(&report->processes[finding->process], finding->oom);

	if (finding->text)
		return;
	finding->text = sl_memory_copy(account->cause_text);
	finding->advice = account->advice ? sl_memory_copy(account->advice) : NULL;
}

void sl_answer_describe(struct sl_report *report)
{
	for (unsigned i = 0; i < report->process_count; i++) {
		struct sl_process *process = &report->processes[i];

		for (size_t k = 0; k < process->model->ooms.count; k++)
			if (!process->accounts[k].cause_text)
				describe_error(report, process, k);
	}
	for (size_t i = 0; i < report->findings.count; i++)
		if (!strcmp(sl_found_family(report->findings.item[i].kind), "oom"))
			describe_finding(report, &report->findings.item[i]);
		else
			sl_make_describe(report, &report->findings.item[i]);
}

struct sl_answers *sl_answer_title(struct sl_report *report)
{
	struct sl_make make = {.to = sl_answers_new(), .report = report};

	make_title(&make);
	return make.to;
}
