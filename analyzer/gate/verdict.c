/* SPDX-License-Identifier: MIT */
/* Longer than other files: every limit and the baseline are judged here, by the same few words. */
#include "analyzer/gate/gate.h"

#include <inttypes.h>

#include "analyzer/answer/answer.h"
#include "analyzer/base/format.h"
#include "analyzer/base/library.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/stats.h"
#include "analyzer/faces/faces.h"
#include "analyzer/model/state/units.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/server.h"
#include "analyzer/report/missing.h"
#include "analyzer/report/place.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/suppress.h"
#include "analyzer/report/window_facts.h"

/* a smaller change of one place is rounding: drivers give out memory in units of 2 MiB at most */
#define STACK_SLACK_BYTES SL_DEVICE_UNIT

const char *const sl_level_names[] = {"pass", "unknown", "note", "warning", "critical"};

const struct sl_gate_rule sl_rules[] = {
	{"max-peak", "The most memory held on one device is above the limit"},
	{"max-allocated", "The most that tensors held on one device is above the limit"},
	{"max-tensors", "The most tensors alive at once on one device are more than the limit"},
	{"max-leak", "Memory still held when a process ended is above the limit"},
	{"max-growth", "Memory grows with every entry of a label by more than the limit"},
	{"max-hidden", "Memory used on a device beyond what was recorded is above the limit"},
	{"fits", "The run would not have fit on a device of the capacity that is asked for"},
	{"no-oom", "A call ran out of memory, and no retry and no smaller request succeeded"},
	{"dry", "A dry run did not come to its end"},
	{"baseline-total", "A total is above the baseline by more than the tolerance"},
	{"baseline-stack", "A place holds more at the peak than in the baseline"},
	{"baseline-leak", "A place leaks more than in the baseline, or is new"},
	{"baseline-growth", "A label grows by more than in the baseline"},
	{"leak", "A place kept more and more memory until its process ended"},
	{"left", "A place still held memory when its process ended"},
	{"growth", "Memory grows with every entry of a label"},
	{"finding", "The report found something else"},
	{"incomplete", "Parts of the run are missing or cannot be read"},
	{0},
};

static struct sl_outcome *add(struct sl_outcomes *outcomes, const char *rule, enum sl_level level, bool fails, const char *subject,
			      const char *format, ...) SL_PRINTF(6, 7);
static struct sl_outcome *add(struct sl_outcomes *outcomes, const char *rule, enum sl_level level, bool fails, const char *subject,
			      const char *format, ...)
{
	struct sl_outcome *outcome;
	va_list args;

	outcome = SL_PUSH(&outcomes->list);
	*outcome = (struct sl_outcome){.rule = rule, .subject = sl_memory_copy(subject), .level = level, .fails = fails};
	va_start(args, format);
	outcome->message = sl_memory_vprint(format, args);
	va_end(args);
	return outcome;
}

static void point(struct sl_outcome *outcome, const struct sl_measure_line *line, const char *key)
{
	if (!line)
		return;
	outcome->file = line->file ? sl_memory_copy(line->file) : NULL;
	outcome->line = line->line;
	outcome->fingerprint = key ? sl_memory_copy(key) : NULL;
}

static void point_at_stack(struct sl_outcome *outcome, struct sl_process *process, struct sl_stack stack)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	const struct sl_stack_frame *frame = sl_place_at(process, stack, frames);

	if (!frame || !frame->own)
		return;
	outcome->file = sl_memory_copy(frame->file);
	outcome->line = frame->line;
}

enum { BY_TIME, BY_LINE, BY_PROCESS, WAYS }; /* to find the verdict of an outcome */

static bool has_line(const struct sl_answer *answer, const struct sl_outcome *outcome)
{
	for (unsigned i = 0; outcome->file && i < answer->frames; i++)
		if (answer->stack[i].mark && answer->stack[i].file && answer->stack[i].line == outcome->line &&
		    !strcmp(sl_paths_name(answer->stack[i].file), sl_paths_name(outcome->file)))
			return true;
	return false;
}

/*
 * Gives the outcome the verdict of that time, or else that of its line or its process, and its words.  ids: the id begins so;
 * unix_ns 0: no time.  False: an earlier outcome has the verdict.
 */
static bool take_verdict(struct sl_outcomes *outcomes, struct sl_outcome *outcome, const struct sl_answers *answers, int process,
			 uint64_t unix_ns, const char *id)
{
	for (unsigned way = unix_ns ? BY_TIME : BY_LINE; way < WAYS && !outcome->verdict; way++)
		for (size_t i = 0; i < answers->item.count && !outcome->verdict; i++) {
			const struct sl_answer *answer = answers->item.item[i];
			bool same = process >= 0 && answer->process == process;

			if (!strncmp(answer->id, id, strlen(id)) && (way == BY_TIME   ? same && answer->unix_ns == unix_ns
								     : way == BY_LINE ? has_line(answer, outcome)
										      : same))
				outcome->verdict = answer;
		}
	if (!outcome->verdict)
		return true;
	free(outcome->message);
	outcome->message = sl_face_line(outcome->verdict);
	for (size_t i = 0; i + 1 < outcomes->list.count; i++)
		if (outcomes->list.item[i].verdict == outcome->verdict)
			return false;
	return true;
}

static void free_outcome(struct sl_outcome *outcome)
{
	free(outcome->subject);
	free(outcome->message);
	free(outcome->file);
	free(outcome->fingerprint);
}

static void drop_last(struct sl_outcomes *outcomes)
{
	free_outcome(&outcomes->list.item[--outcomes->list.count]);
}

static const char *put_figure(char *out, enum sl_measure_of of, const char *key, uint64_t value)
{
	return sl_measure_is_count(of, key) ? sl_format_count(out, value) : sl_answer_size(out, value);
}

/* Two sizes as a reader compares them: in bytes where they differ and their rounded figures do not. */
static void put_both(char *one, uint64_t bytes, char *other, uint64_t than, enum sl_measure_of of, const char *key)
{
	if (strcmp(put_figure(one, of, key, bytes), put_figure(other, of, key, than)) || bytes == than ||
	    sl_measure_is_count(of, key))
		return;
	snprintf(one, SL_FORMAT_BYTES, "%llu B", (unsigned long long)bytes);
	snprintf(other, SL_FORMAT_BYTES, "%llu B", (unsigned long long)than);
}

static void check_total(struct sl_outcomes *outcomes, const struct sl_measures *measures, const char *rule, const char *key,
			uint64_t limit, unsigned culprits)
{
	static const struct sl_measure unknown = {.bytes = SL_UNKNOWN};
	const struct sl_measure *total = sl_measures_find(measures, SL_MEASURE_TOTAL, key) ?: &unknown;
	const struct sl_measure_line *first = measures->largest[culprits].place ? &measures->largest[culprits] : NULL;
	const char *word = sl_measure_word(key, measures->of_windows);
	const char *no_end = measures->of_windows ? "a snapshot does not tell how its program ended" : "no process ended by itself";
	char is[SL_FORMAT_BYTES], may[SL_FORMAT_BYTES], bound[80] = "";
	struct sl_outcome *outcome;

	if (limit == SL_NO_LIMIT)
		return;
	put_both(is, total->bytes, may, limit, SL_MEASURE_TOTAL, key);
	if (total->at_most)
		snprintf(bound, sizeof(bound), "at most %s, what other programs hold is part of it",
			 SL_ANSWER_SIZE(total->at_most));
	if (measures->no_device && !strcmp(key, "peak"))
		add(outcomes, rule, SL_LEVEL_PASS, false, key, "peak: no device was used, limit %s", may);
	else if (total->unknown && total->at_most && total->at_most <= limit)
		add(outcomes, rule, SL_LEVEL_PASS, false, key, "%s at most %s, limit %s", word, SL_ANSWER_SIZE(total->at_most),
		    may);
	else if (total->bytes == SL_UNKNOWN)
		add(outcomes, rule, SL_LEVEL_UNKNOWN, false, key, "%s is not known in this run: %s", word,
		    !strcmp(key, "leak") ? no_end
		    : sl_measure_is_count(SL_MEASURE_TOTAL, key) && sl_measures_find(measures, SL_MEASURE_TOTAL, "allocated")
			    ? "a part of it is folded (--keep)"
		    : !strcmp(key, "allocated") || sl_measure_is_count(SL_MEASURE_TOTAL, key) ? "no framework reported its blocks"
		    : *bound								      ? bound
		    : measures->of_windows ? "a snapshot has PyTorch's own figures only"
					   : "no figure of the device was recorded");
	else if (total->bytes <= limit && total->unknown)
		add(outcomes, rule, SL_LEVEL_UNKNOWN, false, key, "%s %s and more, limit %s: %u %s", word, is, may, total->unknown,
		    !strcmp(key, "leak") ? "of the processes did not end by themselves" : "of the devices have no figure");
	else if (total->bytes <= limit && !strcmp(key, "leak") && total->bytes + measures->held_bytes > limit)
		point_at_stack(add(outcomes, rule, SL_LEVEL_UNKNOWN, false, key,
				   "%s %s, limit %s; a loop that ended made %s more, and no line shows whether it is used", word,
				   is, may, SL_ANSWER_SIZE(measures->held_bytes)),
			       measures->held_by, measures->held_at);
	else if (total->bytes <= limit)
		add(outcomes, rule, SL_LEVEL_PASS, false, key, "%s %s, limit %s", word, is, may);
	else if (!first || sl_measure_is_count(SL_MEASURE_TOTAL, key)) /* the places are known by their bytes */
		add(outcomes, rule, SL_LEVEL_CRITICAL, true, key, "%s %s, limit %s", word, is, may);
	else {
		outcome = add(outcomes, rule, SL_LEVEL_CRITICAL, true, key, "%s %s, limit %s; %s %s at %s", word, is, may,
			      first->bytes > total->bytes / 2 ? "most of it" : "the largest part", SL_ANSWER_SIZE(first->bytes),
			      first->what);
		point(outcome, first, NULL);
	}
}

/* What took more than its limit, where a verdict tells it. */
static void explain_hidden(struct sl_outcome *outcome, const struct sl_answers *answers)
{
	for (size_t i = 0; outcome->fails && i < answers->item.count; i++) {
		char *short_of = outcome->message, *words;

		if (answers->item.item[i]->word != SL_WORD_HIDDEN)
			continue;
		words = sl_face_line(answers->item.item[i]);
		outcome->message = sl_memory_print("%s; %s", short_of, words);
		free(words);
		free(short_of);
		return;
	}
}

/* "step" also means the label "step_#". */
static bool is_label(const char *label, const char *asked)
{
	size_t size = strlen(asked);

	return !size || !strcmp(label, asked) || (!strncmp(label, asked, size) && !strcmp(label + size, "_#")) ||
	       (!strncmp(label, asked, size) && !strcmp(label + size, " #"));
}

/* Fails where even the least slope that its error allows is above the limit.  An error that reaches below gives unknown. */
static void judge_growing(struct sl_outcomes *outcomes, const struct sl_measure *growth, uint64_t limit)
{
	char is[SL_FORMAT_BYTES], least[SL_FORMAT_BYTES], may[SL_FORMAT_BYTES];
	bool fails = growth->at_least > limit, above = growth->bytes > limit;

	sl_answer_size(least, growth->at_least);
	put_both(is, growth->bytes, may, limit, growth->of, growth->key);
	add(outcomes, "max-growth",
	    fails   ? SL_LEVEL_CRITICAL
	    : above ? SL_LEVEL_UNKNOWN
		    : SL_LEVEL_PASS,
	    fails, growth->key,
	    strcmp(SL_ANSWER_SIZE(growth->bytes), least) ? "%s grows by %s an entry, at least %s, limit %s"
							 : "%s grows by %s an entry%.0s, limit %s",
	    growth->key, is, least, may);
}

/* Processes that entered the label, and too few times to tell whether it grows. */
static unsigned entered_too_few_times(const struct sl_report *report, const char *asked, bool *met)
{
	unsigned few = 0;

	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *process = &report->processes[i];
		bool entered = false, judged = false;

		for (size_t k = 0; k < process->growth.count; k++) {
			const struct sl_growth *growth = &process->growth.item[k];
			const char *name = sl_defs_text(process->model->defs, process->model->labels.item[growth->label].text);

			if (!name || !is_label(name, asked))
				continue;
			entered = true;
			judged |= growth->verdict != NULL;
		}
		few += entered && !judged;
		*met |= entered;
	}
	return few;
}

static void check_growth(struct sl_outcomes *outcomes, const struct sl_report *report, const struct sl_measures *measures,
			 const struct sl_growth_limit *limit)
{
	bool seen = false, met = false;
	unsigned few = limit->label[0] ? entered_too_few_times(report, limit->label, &met) : 0;
	char may[SL_FORMAT_BYTES];

	sl_answer_size(may, limit->bytes);
	for (size_t i = 0; i < measures->list.count; i++) {
		const struct sl_measure *growth = &measures->list.item[i];

		if (growth->of != SL_MEASURE_GROWTH || !is_label(growth->key, limit->label) ||
		    (!growth->is_outermost && !limit->label[0]))
			continue;
		seen = true;
		if (growth->unknown && growth->at_most <= limit->bytes &&
		    (growth->bytes == SL_UNKNOWN || growth->bytes <= limit->bytes))
			add(outcomes, "max-growth", SL_LEVEL_PASS, false, growth->key, "%s grows by %s an entry at most, limit %s",
			    growth->key,
			    SL_ANSWER_SIZE(growth->bytes != SL_UNKNOWN && growth->bytes > growth->at_most ? growth->bytes
													  : growth->at_most),
			    may);
		else if (growth->bytes == SL_UNKNOWN || (growth->bytes <= limit->bytes && growth->unknown))
			add(outcomes, "max-growth", SL_LEVEL_UNKNOWN, false, growth->key,
			    "%s varies too much to tell whether it grows, in %u of the processes; limit %s", growth->key,
			    growth->unknown, may);
		else if (!growth->bytes)
			add(outcomes, "max-growth", SL_LEVEL_PASS, false, growth->key, "%s does not grow, limit %s", growth->key,
			    may);
		else
			judge_growing(outcomes, growth, limit->bytes);
	}
	if (!seen)
		add(outcomes, "max-growth", SL_LEVEL_UNKNOWN, false, limit->label[0] ? limit->label : "labels",
		    limit->label[0] && !met ? "the run has no label%s%s" : "no label%s%s was entered often enough to tell",
		    limit->label[0] ? " " : "", limit->label);
	else if (few)
		add(outcomes, "max-growth", SL_LEVEL_UNKNOWN, false, limit->label,
		    "%s was not entered often enough to tell in %u of the processes; limit %s", limit->label, few, may);
}

static void check_ooms(struct sl_outcomes *outcomes, struct sl_report *report, const struct sl_limits *limits)
{
	bool fails = limits->no_oom || limits->fail_on, any = false, window = true;
	uint64_t unlisted = 0;

	for (unsigned i = 0; i < report->process_count; i++) {
		struct sl_process *process = &report->processes[i];

		window &= sl_window_shows(process);
		if (process->model->ooms_total > process->model->ooms.count)
			unlisted += process->model->ooms_total - process->model->ooms.count;
		for (const struct sl_oom *oom = NULL; (oom = sl_model_next_failure(process->model, oom));) {
			const struct sl_hook *hook = sl_header_hook(process->model->header, oom->api);
			struct sl_outcome *outcome;

			if (oom->in_retry || sl_oom_made_to_fail(oom))
				continue;
			outcome = add(outcomes, "no-oom", SL_LEVEL_CRITICAL, fails, hook ? hook->plain : "out of memory",
				      "%s found no memory", hook ? hook->plain : "a call");
			point_at_stack(outcome, process, oom->stack);
			if (!take_verdict(outcomes, outcome, report->answers, (int)i, sl_process_unix(process, oom->time_ns),
					  "oom."))
				drop_last(outcomes);
			any = true;
		}
	}
	for (size_t i = 0; i < report->findings.count; i++) {
		const struct sl_finding *finding = &report->findings.item[i];
		struct sl_outcome *outcome;

		if (!finding->lacked)
			continue;
		outcome = add(outcomes, "no-oom", SL_LEVEL_CRITICAL, fails, sl_found_id(finding->kind), "%s", finding->text);
		point_at_stack(outcome, &report->processes[finding->process], finding->stack);
		take_verdict(outcomes, outcome, report->answers, finding->process, finding->unix_ns, sl_found_id(finding->kind));
		any = true;
	}
	if (!any && fails && unlisted)
		add(outcomes, "no-oom", SL_LEVEL_UNKNOWN, false, "out of memory",
		    "no listed call ran out of memory for good; %s more errors are not listed", SL_NUMBER(unlisted));
	else if (!any && fails && !window)
		add(outcomes, "no-oom", SL_LEVEL_UNKNOWN, false, "out of memory",
		    "the snapshot has no window: it may have been written when memory ran out");
	else if (!any && fails)
		add(outcomes, "no-oom", SL_LEVEL_PASS, false, "out of memory", "no call ran out of memory for good");
}

static void check_fits(struct sl_outcomes *outcomes, struct sl_report *report, uint64_t capacity)
{
	static const enum sl_level levels[] = {
		[SL_FITS_YES] = SL_LEVEL_PASS, [SL_FITS_NO] = SL_LEVEL_CRITICAL, [SL_FITS_UNKNOWN] = SL_LEVEL_UNKNOWN};
	struct sl_serving server;
	struct sl_fits *fits;
	unsigned count;
	char text[400];
	bool sure;

	if (capacity == SL_NO_LIMIT)
		return;
	if (sl_server_of(report, &server)) {
		if (!server.up)
			sl_server_say(&server, sl_dry_report(report), text, sizeof(text));
		sure = !server.up && !server.stopped;
		add(outcomes, "fits", sure ? SL_LEVEL_CRITICAL : SL_LEVEL_UNKNOWN, sure, "fits", "%s",
		    server.up ? SL_SERVER_SIZES : text);
		return;
	}
	fits = sl_fits_of(report, capacity, &count);
	for (unsigned i = 0; i < count; i++) {
		struct sl_outcome *outcome = add(outcomes, "fits", levels[fits[i].verdict], fits[i].verdict == SL_FITS_NO,
						 fits[i].subject, "%s", fits[i].message);

		outcome->file = fits[i].file[0] ? sl_memory_copy(fits[i].file) : NULL;
		outcome->line = fits[i].line;
	}
	if (!count)
		add(outcomes, "fits", SL_LEVEL_UNKNOWN, false, "fits", "this run used no memory of a device");
	free(fits);
}

/* A dry run that stormlog ended where its memory had settled tells of its first steps only; a process that failed, of less. */
static void check_dry(struct sl_outcomes *outcomes, struct sl_report *report, const struct sl_limits *limits)
{
	const char *card = sl_dry_report(report), *why = sl_dry_unfinished(report), *end = sl_dry_noted(report, "dry.end");
	struct sl_serving server;
	struct sl_dry_need need;
	struct sl_dry_read read;
	char text[400], less[400] = "";
	bool sure;
	uint64_t step;

	if (sl_dry_uncounted(report, text, sizeof(text)))
		snprintf(less, sizeof(less), "; %.390s", text);
	if (card && !limits->accepts_dry)
		add(outcomes, "dry", SL_LEVEL_UNKNOWN, false, "dry",
		    "this is a dry run on %s; --dry accepts it if it came to its end", card);
	else if (sl_server_of(report, &server) && !server.up) {
		sl_server_say(&server, sl_dry_report(report), text, sizeof(text));
		add(outcomes, "dry", SL_LEVEL_CRITICAL, true, "dry", "%s", text);
	} else if (card && why)
		add(outcomes, "dry", SL_LEVEL_CRITICAL, true, "dry", "the dry run did not come to its end: %s", why);
	else if (card && sl_dry_ran_out(report))
		add(outcomes, "dry", SL_LEVEL_CRITICAL, true, "dry",
		    "the job does not fit %s: it ran out of memory, and caught the error", sl_dry_of(report, text, sizeof(text)));
	else if (card && sl_dry_refused(report))
		add(outcomes, "dry", SL_LEVEL_UNKNOWN, false, "dry", "the job caught an error, and needs more than was seen: %s",
		    sl_refuser_words(sl_dry_refused(report)));
	else if (card && (step = sl_dry_early(report, &read)))
		add(outcomes, "dry", SL_LEVEL_UNKNOWN, false, "dry",
		    "the job ended before step %" PRIu64 " of an optimizer, and %s read a value that was not computed (%s): on a "
		    "card it may go on",
		    step, sl_paths_name(read.line), read.what);
	else if (card && sl_dry_shape(report, &read))
		add(outcomes, "dry", SL_LEVEL_UNKNOWN, false, "dry",
		    "%s took a size from values that were not computed (%s): on a card it is another", sl_paths_name(read.line),
		    read.what);
	else if (card && sl_dry_need(report, &need) && sl_dry_depends(&need)) {
		sl_dry_say(&need, text, sizeof(text));
		add(outcomes, "dry", SL_LEVEL_UNKNOWN, false, "dry", "the dry run came to its end, and it depends on the card: %s",
		    text);
	} else if (card && end) {
		add(outcomes, "dry", SL_LEVEL_PASS, false, "dry", "on %s %s%s", card, end, less);
	} else if (card) {
		bool copied = sl_dry_copied(report, &read);

		sure = !limits->strict || !(sl_dry_late(report) || copied);
		why = sl_dry_ran(report, text, sizeof(text)) ? text : NULL;
		add(outcomes, "dry", sure ? SL_LEVEL_PASS : SL_LEVEL_UNKNOWN, false, "dry",
		    "the dry run on %s came to its end%s%s%s%s", card, why ? ": " : "", why ? why : "",
		    sure     ? ""
		    : copied ? "; values that were not computed went to the host, where they may have chosen sizes"
			     : "; --steps N decides otherwise",
		    less);
	}
}

/* ---- the report's findings, with --fail-on */

static void check_leaks(struct sl_outcomes *outcomes, const struct sl_report *report, const struct sl_measures *measures,
			enum sl_fail_on fail_on)
{
	for (size_t i = 0; i < measures->left.list.count; i++) {
		const struct sl_measure_line *line = &measures->left.list.item[i];
		struct sl_outcome *outcome;
		char part[64] = "";

		if (line->growing && line->growing < line->bytes) /* only some of these bytes grow, as on one device of several */
			snprintf(part, sizeof(part), " %s of it", SL_ANSWER_SIZE(line->growing));
		/* what does not grow is only a note: the system takes it back at exit */
		outcome = add(outcomes, line->growing ? "leak" : "left", line->growing ? SL_LEVEL_CRITICAL : SL_LEVEL_NOTE,
			      fail_on && line->growing, line->what, "%s %s%s%s at %s", SL_ANSWER_SIZE(line->bytes),
			      line->growing ? "left behind, and" : "still held at the end,", part, line->growing ? " growing," : "",
			      line->what);
		point(outcome, line, line->key);
		if (line->growing)
			take_verdict(outcomes, outcome, report->answers, -1, 0, "leak.");
	}
}

/* True: check_ooms or check_leaks reports it. */
static bool has_outcome(const struct sl_finding *finding)
{
	return finding->lacked || !strcmp(sl_found_family(finding->kind), "oom") || finding->kind == SL_FOUND_leak_growing;
}

/* Reports findings that have no outcome yet; growth of the same label in many ranks once. */
static void check_findings(struct sl_outcomes *outcomes, const struct sl_report *report, const struct sl_limits *limits)
{
	struct sl_map reported = {0};

	for (size_t i = 0; i < report->findings.count; i++) {
		const struct sl_finding *finding = &report->findings.item[i];
		bool critical = !strcmp(finding->severity, "critical"), growth = finding->kind == SL_FOUND_label_growing;
		bool gap = finding->class && !strcmp(finding->class, SL_GATE_GAP) && !limits->fail_on_gaps; /* never shown */
		bool fails =
			!gap && (limits->fail_on == SL_FAIL_ON_WARNING || (limits->fail_on == SL_FAIL_ON_CRITICAL && critical));
		struct sl_outcome *outcome;

		if (!strcmp(finding->severity, "info") || has_outcome(finding) ||
		    (growth && (*sl_map_at(&reported, finding->text))++))
			continue;
		outcome = add(outcomes, growth ? "growth" : "finding",
			      gap	 ? SL_LEVEL_NOTE
			      : critical ? SL_LEVEL_CRITICAL
					 : SL_LEVEL_WARNING,
			      fails, sl_found_id(finding->kind), "%s%s%s", growth ? "" : sl_found_id(finding->kind),
			      growth ? "" : ": ", finding->text);
		if (finding->process >= 0)
			point_at_stack(outcome, &report->processes[finding->process], finding->stack);
		if (!take_verdict(outcomes, outcome, report->answers, finding->process, finding->unix_ns,
				  sl_found_id(finding->kind)) ||
		    (!outcome->verdict && finding->kind == SL_FOUND_leak_kept &&
		     !take_verdict(outcomes, outcome, report->answers, finding->process, 0, "oom.")))
			drop_last(outcomes); /* what kept until memory ran out, the error's verdict tells */
	}
	sl_map_free(&reported);
}

struct missing {
	struct sl_outcomes *outcomes;
	bool fails;
};

static void add_missing(void *context, bool damaged, const char *subject, const char *message)
{
	struct missing *missing = context;

	add(missing->outcomes, "incomplete", damaged ? SL_LEVEL_WARNING : SL_LEVEL_UNKNOWN, damaged && missing->fails, subject,
	    "%s%s%s", strcmp(subject, "ranks") ? subject : "", strcmp(subject, "ranks") ? ": " : "", message);
}

/* True: without names of functions a place is another one, and suppressions match less. */
static bool takes_names(const struct sl_outcome *outcome, const struct sl_report *report)
{
	const struct sl_suppressions *list = report->options.suppressions;
	bool leaks = !strcmp(outcome->rule, "max-leak") || !strcmp(outcome->rule, "leak") || !strcmp(outcome->rule, "left") ||
		     !strcmp(outcome->subject, "leak");

	return !strcmp(outcome->rule, "baseline-stack") || !strcmp(outcome->rule, "baseline-leak") ||
	       (leaks && list && list->count);
}

/* What was not exceeded in a part of the run may have been in the rest, so that nothing passes. */
static void check_whole(struct sl_outcomes *outcomes, const struct sl_report *report, const struct sl_limits *limits)
{
	struct missing missing = {outcomes, limits->strict || limits->fail_on == SL_FAIL_ON_WARNING};
	size_t count = outcomes->list.count;
	/* parts of the run that are not here; names of libraries are not such parts */
	unsigned parts = sl_missing_tell(report, add_missing, &missing) - (sl_library_lacked() != 0);

	if (!report->options.run && report->images.run_count > 1 && sl_header_is_snapshot(&report->processes[0].trace->header))
		add(outcomes, "incomplete", SL_LEVEL_UNKNOWN, false, "snapshots",
		    "1 of %u runs here was checked, that of %s: name its file, or --run all", report->images.run_count,
		    sl_stacks_program(&report->processes[0].trace->header));
	for (size_t i = 0; i < count; i++) {
		struct sl_outcome *outcome = &outcomes->list.item[i];
		char *message = outcome->message;
		bool nameless = sl_library_lacked() && takes_names(outcome, report);

		if (outcome->level == SL_LEVEL_PASS ? !parts && !nameless : !(nameless && outcome->fails))
			continue;
		outcome->level = SL_LEVEL_UNKNOWN;
		outcome->fails = false;
		outcome->message = sl_memory_print("%s, in what is here of the run", message);
		free(message);
	}
}

/* ---- the baseline */

static uint64_t allowed(uint64_t before, const struct sl_limits *limits, enum sl_measure_of of)
{
	double more = (double)before * limits->tolerance;

	if (of == SL_MEASURE_STACK && more < (double)STACK_SLACK_BYTES)
		more = (double)STACK_SLACK_BYTES;
	return before + sl_stats_bytes(more);
}

static double percent(uint64_t before, uint64_t now)
{
	return 100.0 * ((double)now / (double)before - 1);
}

static bool grows(const struct sl_measure_lines *lines)
{
	for (size_t i = 0; i < lines->list.count; i++)
		if (lines->list.item[i].growing)
			return true;
	return false;
}

static void add_line(struct sl_outcomes *outcomes, const char *rule, const struct sl_measure *now,
		     const struct sl_measure_line *line, uint64_t before)
{
	char is[SL_FORMAT_BYTES], was[SL_FORMAT_BYTES];

	put_both(is, line->bytes, was, before, now->of, now->key);
	if (!before)
		point(add(outcomes, rule, SL_LEVEL_WARNING, true, line->what, "%s: %s, new", line->what, is), line, now->key);
	else
		point(add(outcomes, rule, line->growing ? SL_LEVEL_CRITICAL : SL_LEVEL_WARNING, true, line->what,
			  "%s: %s, baseline %s (%+.1f%%)", line->what, is, was, percent(before, line->bytes)),
		      line, now->key);
}

/* For a place above its limit: reports the lines that grew beyond it, or else the line that grew most. */
static void add_lines(struct sl_outcomes *outcomes, const char *rule, const struct sl_measure *now,
		      const struct sl_measure_lines *before, const struct sl_limits *limits)
{
	size_t count = now->lines.list.count, worst = 0;
	long *was = sl_memory_must(calloc(count, sizeof(*was)));
	bool any = false;

	sl_measure_lines_match(before, &now->lines, was);
	for (size_t i = 0; i < count; i++) {
		const struct sl_measure_line *line = &now->lines.list.item[i], *first = &now->lines.list.item[worst];
		uint64_t then = was[i] < 0 ? 0 : before->list.item[was[i]].bytes;
		uint64_t worst_then = was[worst] < 0 ? 0 : before->list.item[was[worst]].bytes;

		if ((int64_t)(line->bytes - then) > (int64_t)(first->bytes - worst_then))
			worst = i;
		if (line->bytes <= allowed(then, limits, now->of))
			continue;
		add_line(outcomes, rule, now, line, then);
		any = true;
	}
	if (!any)
		add_line(outcomes, rule, now, &now->lines.list.item[worst],
			 was[worst] < 0 ? 0 : before->list.item[was[worst]].bytes);
	free(was);
}

static void check_against(struct sl_outcomes *outcomes, const struct sl_measure *now, const struct sl_measures *baseline,
			  const struct sl_limits *limits)
{
	static const char *const rules[SL_MEASURE_OF_COUNT] = {"baseline-total", NULL, "baseline-stack",
							       "baseline-leak",	 NULL, "baseline-growth"};
	static const struct sl_measure_lines none;
	const struct sl_measure *before = sl_measures_find(baseline, now->of, now->key);
	const char *subject = now->of == SL_MEASURE_TOTAL ? now->key : now->what;
	char is[SL_FORMAT_BYTES], was[SL_FORMAT_BYTES], more[40] = "";
	bool total = now->of == SL_MEASURE_TOTAL, absent = !before || before->bytes == SL_UNKNOWN;
	bool unknown = now->bytes == SL_UNKNOWN || (before && before->bytes == SL_UNKNOWN);

	if (!rules[now->of] || (!before && sl_measure_is_count(now->of, now->key)))
		return; /* files of earlier versions have no counts */
	if (unknown || (total && absent)) {
		add(outcomes, rules[now->of], SL_LEVEL_UNKNOWN, false, subject, "%s is not known in %s", subject,
		    now->bytes == SL_UNKNOWN ? "this run" : "the baseline");
		return;
	}
	/* a place that the baseline lacks counts as 0 bytes */
	put_figure(is, now->of, now->key, now->bytes);
	put_figure(was, now->of, now->key, absent ? 0 : before->bytes);
	if (now->bytes <= allowed(absent ? 0 : before->bytes, limits, now->of)) {
		if (now->unknown)
			add(outcomes, rules[now->of], SL_LEVEL_UNKNOWN, false, subject,
			    "%s %s and more, baseline %s: it is not known in %u of the processes", subject, is, was, now->unknown);
		else if (total)
			add(outcomes, rules[now->of], SL_LEVEL_PASS, false, subject, "%s %s, baseline %s", subject, is, was);
		return;
	}
	put_both(is, now->bytes, was, absent ? 0 : before->bytes, now->of, now->key);
	if (!absent && before->bytes)
		snprintf(more, sizeof(more), " (%+.1f%%)", percent(before->bytes, now->bytes));
	if (now->lines.list.count && (absent || before->lines.list.count))
		add_lines(outcomes, rules[now->of], now, absent ? &none : &before->lines, limits);
	else
		point(add(outcomes, rules[now->of], total || grows(&now->lines) ? SL_LEVEL_CRITICAL : SL_LEVEL_WARNING, true,
			  subject, "%s: %s, baseline %s%s", subject, is, was, more),
		      sl_measure_lines_most(&now->lines), now->lines.list.count ? now->key : NULL);
}

/* A label that the baseline knows and the run does not have: it was renamed, or never entered often enough. */
static void check_labels_left(struct sl_outcomes *outcomes, const struct sl_measures *measures, const struct sl_measures *baseline)
{
	for (size_t i = 0; i < baseline->list.count; i++) {
		const struct sl_measure *before = &baseline->list.item[i];

		if (before->of == SL_MEASURE_GROWTH && !sl_measures_find(measures, before->of, before->key))
			add(outcomes, "baseline-growth", SL_LEVEL_UNKNOWN, false, before->key,
			    "%s is not known in this run: it was not entered often enough", before->key);
	}
}

static void count(struct sl_outcomes *outcomes, bool strict)
{
	for (size_t i = 0; i < outcomes->list.count; i++) {
		struct sl_outcome *outcome = &outcomes->list.item[i];

		outcome->fails |= strict && outcome->level == SL_LEVEL_UNKNOWN;
		outcomes->unknown += outcome->level == SL_LEVEL_UNKNOWN;
		outcomes->failures += outcome->fails;
	}
}

void sl_verdict(struct sl_outcomes *outcomes, struct sl_report *report, const struct sl_measures *measures,
		const struct sl_limits *limits, const struct sl_measures *baseline)
{
	*outcomes = (struct sl_outcomes){0};
	check_total(outcomes, measures, "max-peak", "peak", limits->peak, SL_MEASURE_STACK);
	check_total(outcomes, measures, "max-allocated", "allocated", limits->allocated, SL_MOST_TENSORS);
	check_total(outcomes, measures, "max-tensors", "tensors", limits->tensors, SL_MEASURE_STACK);
	check_total(outcomes, measures, "max-leak", "leak", limits->leak, SL_MEASURE_LEAK);
	check_total(outcomes, measures, "max-hidden", "hidden", limits->hidden, SL_MEASURE_TOTAL);
	if (limits->hidden != SL_NO_LIMIT)
		explain_hidden(&outcomes->list.item[outcomes->list.count - 1], report->answers);
	for (unsigned i = 0; i < limits->growth_count; i++)
		check_growth(outcomes, report, measures, &limits->growth[i]);
	check_fits(outcomes, report, limits->fits);
	check_dry(outcomes, report, limits);
	check_ooms(outcomes, report, limits);
	for (size_t i = 0; baseline && i < measures->list.count; i++)
		check_against(outcomes, &measures->list.item[i], baseline, limits);
	if (baseline)
		check_labels_left(outcomes, measures, baseline);
	check_leaks(outcomes, report, measures, limits->fail_on);
	check_findings(outcomes, report, limits);
	check_whole(outcomes, report, limits);
	count(outcomes, limits->strict);
}

void sl_verdict_free(struct sl_outcomes *outcomes)
{
	for (size_t i = 0; i < outcomes->list.count; i++)
		free_outcome(&outcomes->list.item[i]);
	free(outcomes->list.item);
}
