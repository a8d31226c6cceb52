/* SPDX-License-Identifier: MIT */
/*
 * LEAK: a line that keeps what it makes.  GROWS: a label of which each entry adds memory, where no line is known.
 * Longer than other files: a line is told once, so all that may tell it stands here.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/analyses/leak_windows.h"
#include "analyzer/answer/make.h"
#include "analyzer/base/amounts.h"
#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/leak_words.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/place.h"
#include "analyzer/report/roles.h"
#include "analyzer/source/source.h"

#define FULL_IN_MIN 1 /* seconds: a shorter forecast is not told */
#define FULL_IN_MAX (30 * 86400)

/* "step" of "step_#" */
static const char *put_label(char out[80], const char *name)
{
	snprintf(out, 80, "%.*s", (int)strcspn(name, "#"), name);
	for (size_t at = strlen(out); at > 1 && strchr("_ -", out[at - 1]); at--)
		out[at - 1] = 0;
	return out;
}

/* "training step", "backward pass", "step", "node", "pass" */
static const char *step_word(char out[80], const struct sl_process *process)
{
	const char *name = process->iterations.by_label ? process->iterations.name : NULL;
	uint64_t asked, steps = sl_dry_steps(process->report, &asked);

	if (!name)
		return "pass";
	if (!strcmp(name, "backward_#")) /* a dry run counted the optimizer's steps */
		return steps == SL_UNKNOWN || process->iterations.count <= steps + 1 ? "training step" : "backward pass";
	return put_label(out, name);
}

/* "50 MiB", "a context", "2 contexts" */
static void put_amount(char *out, size_t size, const struct sl_leak_line *leak_line, double amount)
{
	double whole = floor(amount + 0.5);
	const char *noun = sl_leak_words_noun(leak_line->track->kind, whole != 1);

	if (!leak_line->count_only)
		snprintf(out, size, "%s", SL_ANSWER_SIZE(sl_stats_bytes(amount + 0.5)));
	else if (whole <= 1)
		snprintf(out, size, "%s %s", strchr("aeiou", *noun) ? "an" : "a", noun);
	else
		snprintf(out, size, "%.0f %s", whole, noun);
}

void sl_make_pace(char *out, size_t size, const struct sl_process *process, const struct sl_leak_line *leak_line)
{
	struct sl_leak_pace pace = sl_leak_words_pace(process, leak_line);
	char amount[120], word[80], time[SL_FORMAT_BYTES];
	const char *step = step_word(word, process);

	put_amount(amount, sizeof(amount), leak_line, pace.amount);
	if (pace.steps == 1)
		snprintf(out, size, "%s of every %s", amount, step);
	else if (pace.steps > 0 && pace.whole && pace.steps < 2.5)
		snprintf(out, size, "%s of every second %s", amount, step);
	else if (pace.steps > 0 && pace.whole)
		snprintf(out, size, "%s every %.0f %s%s", amount, pace.steps, step, step[strlen(step) - 1] == 's' ? "es" : "s");
	else if (pace.steps > 0 || pace.at_once || !process->model->recording.has_times ||
		 !process->model->recording.follows_process || pace.ns < 1e6)
		snprintf(out, size, "%s",
			 leak_line->bytes != SL_UNKNOWN && leak_line->bytes ? SL_ANSWER_SIZE(leak_line->bytes) : amount);
	else
		snprintf(out, size, "%s every %s", amount, sl_format_duration(time, sl_stats_bytes(pace.ns)));
}

/* "about an hour", "9 minutes", "2 days" */
static const char *put_span(char *out, size_t size, double seconds)
{
	static const struct {
		double seconds;
		const char *one, *many;
	} units[] = {{86400, "about a day", "days"},
		     {3600, "about an hour", "hours"},
		     {60, "a minute", "minutes"},
		     {1, "a second", "seconds"}};

	for (size_t i = 0; i < SL_COUNT(units); i++)
		if (seconds >= units[i].seconds * 0.95) {
			double count = round(seconds / units[i].seconds);

			if (count <= 1)
				snprintf(out, size, "%s", units[i].one);
			else
				snprintf(out, size, "%.0f %s", count, units[i].many);
			return out;
		}
	return "no time";
}

/* When the device is full, of all that leaks there. */
static void say_full(struct sl_answer *answer, const struct sl_process *process, int device)
{
	unsigned places;
	double seconds = sl_leak_words_full_in(process, device, &places);
	char span[80];

	if (seconds < FULL_IN_MIN || seconds > FULL_IN_MAX)
		return;
	sl_answer_say(answer, SL_LABEL_ELSE, "the card is full in %s at this rate%s", put_span(span, sizeof(span), seconds),
		      places > 1 ? ", with what else leaks" : "");
	sl_answer_figure(answer, "full_in", "seconds", seconds);
}

/* Stacks through that line whose activations were held at the peak. */
static unsigned paths_of(struct sl_process *process, const struct sl_leak_line *leak_line)
{
	const struct sl_model *model = process->model;
	unsigned paths = 0;

	for (size_t i = 0; i < model->sites.count; i++)
		paths += model->sites.item[i].device == leak_line->track->device &&
			 sl_model_blocks_at_peak(model, &model->sites.item[i]) &&
			 sl_roles_of(process, &model->sites.item[i]) == SL_ROLE_ACTIVATIONS &&
			 sl_place_key(process, model->sites.item[i].stack) == sl_place_key(process, leak_line->track->stack);
	return paths;
}

/* True: each step leaves several activations of one line, by several calls below it: their graph is held, not one result. */
static bool is_graph(struct sl_process *process, const struct sl_leak_line *leak_line)
{
	return leak_line->blocks == leak_line->births && leak_line->bursts && leak_line->track->kind == SL_KIND_block &&
	       sl_roles_of_track(process, leak_line->track) == SL_ROLE_ACTIVATIONS &&
	       (leak_line->births >= SL_FEW * leak_line->bursts || paths_of(process, leak_line) >= SL_FEW);
}

/* "all 3 960 tensors that it made are still held at the end, 2.92 GiB" */
static void say_kept(struct sl_answer *answer, struct sl_process *process, const struct sl_leak_line *leak_line,
		     const char *subject)
{
	char births[SL_FORMAT_BYTES], size[48] = "", thread[200], label[200];
	const char *noun = sl_leak_words_noun(leak_line->track->kind, leak_line->births != 1);
	const char *state = !process->model->recording.follows_process ? "still held at the end of the window"
			    : leak_line->left_blocks		       ? "never freed"
			    : sl_leak_words_in_turns(process)	       ? "freed only as each process ended"
								       : "freed only as the program ended";

	sl_format_count(births, leak_line->births);
	if (leak_line->bytes != SL_UNKNOWN && leak_line->bytes)
		snprintf(size, sizeof(size), ", %s", SL_ANSWER_SIZE(leak_line->bytes));
	if (leak_line->blocks == leak_line->births)
		sl_answer_say(answer, SL_LABEL_WHY, "all %s %s that %s made were %s%s.", births, noun, subject, state, size);
	else
		sl_answer_say(answer, SL_LABEL_WHY, "%s of the %s %s that %s made were %s%s.", SL_NUMBER(leak_line->blocks), births,
			      noun, subject, state, size);
	sl_leak_words_label(label, sizeof(label), process, leak_line);
	if (label[0]) /* ", in forward" */
		sl_answer_say(answer, SL_LABEL_WHY, "They are %s.", label + strspn(label, ", "));
	sl_leak_words_thread(thread, sizeof(thread), process, leak_line);
	if (thread[0])
		sl_answer_say(answer, SL_LABEL_WHY, "They are %s.", thread + strspn(thread, ", "));
	if (leak_line->young)
		sl_answer_say(answer, SL_LABEL_OPEN,
			      "whether it is a queue that fills faster than it is emptied: most are no older than those it freed");
	else if (leak_line->larger)
		sl_answer_say(answer, SL_LABEL_WHY, "Each is larger than the one before: a buffer grows, and its old block stays.");
	if (*sl_leak_words_cut(process, leak_line))
		sl_answer_say(answer, SL_LABEL_NOTE, "the stacks are cut: --stack-depth 256 may show who called");
}

static const struct sl_device_state *device_of(const struct sl_process *process, int device)
{
	return device >= 0 ? process->model->devices[device + 1] : NULL;
}

static void say_unknown_holder(struct sl_answer *answer, struct sl_process *process, const struct sl_leak_line *leak_line,
			       struct sl_stack stack, const char *line)
{
	unsigned kind = leak_line->track->kind;
	const struct sl_device_state *device = device_of(process, leak_line->track->device);
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_own(process, frames, stack), at = 0;
	struct sl_held_by any;
	uint32_t cycle;

	if (sl_held_by_take(process, NULL, &any, 1)) {
		cycle = sl_source_graph_of_gradients(process->report->source, process->trace, frames, count, &at);
		if (cycle) {
			sl_answer_say(answer, SL_LABEL_FIX,
				      "torch.autograd.grad(..., create_graph=True) instead of backward() at %s:%u",
				      sl_paths_name(frames[at].file), cycle);
			sl_answer_say(answer, SL_LABEL_WHY, "Python found no variable: a parameter and its .grad keep each other.");
		} else if (any.among)
			sl_answer_say(answer, SL_LABEL_OPEN,
				      "which variable keeps it: Python's look ended early, after %s of %s blocks",
				      SL_NUMBER(any.named), SL_NUMBER(any.among));
		else
			sl_answer_say(answer, SL_LABEL_OPEN, "which variable keeps it: Python found none, a cycle in C++ may");
		return;
	}
	sl_answer_say(answer, SL_LABEL_FIX, "drop the results of %s%s", line,
		      kind == SL_KIND_block    ? ", or keep detached copies on the host"
		      : kind == SL_KIND_device ? ", or keep copies on the host"
					       : "");
	if (sl_dry_card(&process->trace->header)) {
		sl_answer_say(answer, SL_LABEL_OPEN, "which variable keeps it: a dry run that comes to its end tells it");
		return;
	}
	sl_answer_say(answer, SL_LABEL_OPEN, "which variable keeps it");
	if (kind == SL_KIND_block && device && device->torch.reported)
		sl_make_rerun(answer, process, "--holders", "the variable that keeps it");
}

static bool is_of_python(struct sl_process *process, struct sl_stack stack)
{
	struct sl_chain chain;

	sl_place_take(&chain, process, stack);
	return chain.count && chain.frame[0]->python;
}

static void say_fix(struct sl_answer *answer, struct sl_process *process, const struct sl_leak_line *leak_line,
		    struct sl_stack stack, const char *line, const struct sl_held_by *holder)
{
	unsigned kind = leak_line->track->kind;
	char keeper[SL_MAKE_LINE];
	bool graph = is_graph(process, leak_line), freed = kind != SL_KIND_block && !is_of_python(process, stack);

	if (holder)
		sl_make_say_holder(answer, holder, leak_line->bytes);
	else if (graph)
		sl_answer_say(answer, SL_LABEL_WHY, "Several are of each step, so a graph of autograd holds them.");
	if (sl_make_fix_kept(answer, process, stack, holder, graph, keeper))
		return;
	if (graph && *keeper)
		sl_answer_say(answer, SL_LABEL_FIX, "detach what %s stores, or run %s under torch.no_grad()", keeper, line);
	else if (*keeper)
		sl_answer_say(answer, SL_LABEL_FIX,
			      "bound or clear what %s stores, or store a number or a detached copy on the host", keeper);
	else if (graph)
		sl_answer_say(answer, SL_LABEL_FIX, "detach what is kept of %s, or run it under torch.no_grad()", line);
	else if (kind >= SL_OBJECT_CONTEXT)
		sl_answer_say(answer, SL_LABEL_FIX, "destroy each %s of %s when its work is done, or make it once%s",
			      sl_leak_words_noun(kind, false), line,
			      kind == SL_OBJECT_EXEC ? ", for inputs that are padded to few shapes" : "");
	else if (freed && leak_line->larger)
		sl_answer_say(answer, SL_LABEL_FIX, "free the old %s before %s replaces it", sl_leak_words_noun(kind, false), line);
	else if (freed)
		sl_answer_say(answer, SL_LABEL_FIX, "free each %s of %s when its work is done", sl_leak_words_noun(kind, false),
			      line);
	else
		say_unknown_holder(answer, process, leak_line, stack, line);
}

/* "8 ranks, most in rank 3"; "" for a run of one process. */
static void say_who(struct sl_make *make, struct sl_answer *answer, const struct sl_leak_list_place *place)
{
	const struct sl_process *process = &make->report->processes[place->process];
	const char *noun = process->trace->header.rank >= 0 ? "ranks" : "processes";

	if (place->processes > 1)
		sl_answer_figure(answer, "all", "bytes", (double)place->bytes);
	if (place->processes > 1)
		sl_answer_say(answer, SL_LABEL_WHY, "%u %s keep it, %s%s, %s in all.", place->processes, noun,
			      place->uneven ? "most of it " : "the same in each", place->uneven ? SL_WHO(process) : "",
			      SL_ANSWER_SIZE(place->bytes));
	else if (make->report->process_count > 1)
		sl_answer_say(answer, SL_LABEL_WHY, "It is in %s.", SL_WHO(process));
	if (place->leak_line && place->leak_line->track->device >= 0 && sl_devices_held(process) > 1)
		sl_answer_say(answer, SL_LABEL_WHY, "It is on device %d.", place->leak_line->track->device);
}

static struct sl_answer *begin_leak(struct sl_make *make, const struct sl_leak_list_place *place, const char *id, uint64_t bytes,
				    int device)
{
	struct sl_answer *answer = sl_answer_add(make->to, SL_WORD_LEAK, id);

	answer->process = (int)place->process;
	answer->device = device;
	answer->bytes = bytes == SL_UNKNOWN ? 0 : bytes;
	return answer;
}

static void end_leak(struct sl_make *make, struct sl_answer *answer, const struct sl_leak_list_place *place, int device,
		     bool has_holder)
{
	struct sl_process *process = &make->report->processes[place->process];
	unsigned kind = place->leak_line ? place->leak_line->track->kind : place->leak->kind;
	bool freed = kind >= SL_OBJECT_CONTEXT || (place->leak_line && !place->leak_line->left_blocks);
	char verb[64];

	snprintf(verb, sizeof(verb), "tree --at %s", freed ? "peak" : "end");
	if (device >= 0 && kind < SL_OBJECT_CONTEXT)
		sl_make_peak(make, answer, process, device_of(process, device), place);
	else
		sl_make_peak(make, answer, process, sl_devices_fullest(process), NULL);
	if (has_holder)
		snprintf(verb, sizeof(verb), "tree --by holder");
	else if (kind < SL_KIND_COUNT && !sl_model_is_known(kind))
		snprintf(verb, sizeof(verb), "tree --kind %s", sl_event_kinds[kind].name);
	sl_make_next(make, answer, verb, has_holder ? "every variable that holds" : "the lines that hold it");
}

/* place: of those that do the same; NULL: it is not told.  Returns true where Python found who holds what the line made. */
static bool say_leak(struct sl_make *make, struct sl_answer *answer, struct sl_process *process,
		     const struct sl_leak_line *leak_line, const struct sl_leak_list_place *place)
{
	const char *line = SL_MAKE_LINE_OF(process, leak_line->track->stack);
	struct sl_held_by holder;
	bool has_holder = sl_make_find_holder(process, leak_line->track, leak_line->bytes, &holder),
	     has = has_holder && sl_make_heads(&holder, leak_line->bytes);
	char what[200];

	sl_make_pace(what, sizeof(what), process, leak_line);
	sl_answer_headline(answer, "%s keeps %s%s", has ? holder.variable : line, what,
			   strstr(what, "every") ? ""
			   : has		 ? " of one line"
						 : " of what it makes");
	if (leak_line->bytes != SL_UNKNOWN && leak_line->bytes && strstr(what, "every"))
		sl_answer_brief(answer, "keeps %s, %s", what, SL_ANSWER_SIZE(leak_line->bytes));
	else
		sl_answer_brief(answer, "keeps %s", what);
	sl_make_stack(answer, process, leak_line->track->stack, "made here", 3);
	say_kept(answer, process, leak_line, line);
	if (place)
		say_who(make, answer, place);
	say_fix(answer, process, leak_line, leak_line->track->stack, line, has_holder ? &holder : NULL);
	return has_holder;
}

static void add_kept(struct sl_make *make, struct sl_leak_list_place *place)
{
	struct sl_process *process = &make->report->processes[place->process];
	const struct sl_leak_line *leak_line = place->leak_line;
	struct sl_answer *answer = begin_leak(make, place, "leak.growing", leak_line->bytes, leak_line->track->device);
	bool has_holder;

	sl_answer_figure(answer, "kept", leak_line->bytes == SL_UNKNOWN ? "objects" : "bytes",
			 leak_line->bytes == SL_UNKNOWN ? leak_line->amount : (double)leak_line->bytes);
	sl_answer_figure(answer, "pace", leak_line->count_only ? "objects" : "bytes",
			 sl_leak_words_pace(process, leak_line).amount);
	sl_answer_judged(answer, "made", "blocks", (double)leak_line->births, "at least", SL_KEEPING_BIRTHS);
	if (leak_line->bursts)
		sl_answer_judged(answer, "in", "calls", (double)leak_line->bursts, "at least", SL_KEEPING_CALLS);
	if (leak_line->confidence > 0)
		sl_answer_judged(answer, "chance", "over_all_lines", 1 - leak_line->confidence, "below", SL_KEEPING_LEVEL);
	has_holder = say_leak(make, answer, process, leak_line, place);
	say_full(answer, process, leak_line->track->device);
	end_leak(make, answer, place, leak_line->track->device, has_holder);
}

/* "a.py:4, a.py:5 and more": sets `was_printed` of each. */
static const char *tell_lines(struct sl_make *make, const bool *with)
{
	const char *lines = "";
	unsigned shown = 0;

	for (size_t i = 0; i < make->leaks.place.count; i++) {
		struct sl_leak_list_place *place = &make->leaks.place.item[i];

		if (!with[i])
			continue;
		place->was_printed = true;
		if (shown++ < SL_NAMED)
			lines = sl_answers_text(make->to, "%s%s%s", lines, shown > 1 ? ", " : "",
						SL_MAKE_LINE_OF(&make->report->processes[place->process], place->stack));
	}
	return shown > SL_NAMED ? sl_answers_text(make->to, "%s and more", lines) : lines;
}

const char *sl_make_together(struct sl_make *make, size_t first)
{
	bool *with = sl_memory_must(calloc(make->leaks.place.count, sizeof(*with)));
	char owner[300];
	const char *lines = sl_leak_list_together(&make->leaks, make->report, first, 2, with, owner, sizeof(owner)) > 1
				    ? tell_lines(make, with)
				    : NULL;

	free(with);
	return lines;
}

/* Lines that leak at the same pace below one line, or through one helper. */
static void add_together(struct sl_make *make, const bool *with, size_t count, const char *owner)
{
	struct sl_leak_list_place all = {0};
	struct sl_leak_line sum = {0};
	struct sl_process *process;
	struct sl_answer *answer;
	char what[200], line[SL_MAKE_LINE];
	const struct sl_leak_line *first = NULL;
	const char *lines = tell_lines(make, with);
	struct sl_held_by holder;
	bool has_holder;

	for (size_t i = 0; i < make->leaks.place.count; i++) {
		struct sl_leak_list_place *place = &make->leaks.place.item[i];

		if (!with[i])
			continue;
		if (!all.leak_line) {
			all = *place;
			first = place->leak_line;
			sum = *first;
			sum.bursts = sum.births;
		} else {
			uint64_t bursts = place->leak_line->births < sum.bursts ? place->leak_line->births : sum.bursts;

			sl_leak_words_add(&sum, place->leak_line);
			sum.bursts = bursts; /* all leak in the same bursts */
			all.bytes += place->bytes;
		}
	}
	all.leak_line = &sum;
	process = &make->report->processes[all.process];
	owner += strcspn(owner, " ") + strspn(owner + strcspn(owner, " "), " ");
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(owner, " "), owner);
	answer = begin_leak(make, &all, "leak.growing", sum.bytes, sum.track->device);
	sl_make_pace(what, sizeof(what), process, &sum);
	sl_answer_headline(answer, "%zu lines of %s keep %s", count, line, what);
	sl_answer_brief(answer, "%zu lines keep %s, %s", count, what, SL_ANSWER_SIZE(sum.bytes));
	sl_answer_figure(answer, "kept", "bytes", (double)sum.bytes);
	sl_make_stack(answer, process, all.stack, "made here", 3);
	say_kept(answer, process, &sum, "they");
	sl_answer_say(answer, SL_LABEL_WHY, "The lines are %s.", lines);
	say_who(make, answer, &all);
	has_holder = sl_make_find_holder(process, first->track, first->bytes, &holder);
	say_fix(answer, process, &sum, all.stack, line, has_holder ? &holder : NULL);
	say_full(answer, process, sum.track->device);
	end_leak(make, answer, &all, sum.track->device, has_holder);
}

/* What the end shows: no birth by birth evidence.  place: as above. */
static void say_left(struct sl_make *make, struct sl_answer *answer, struct sl_process *process, const struct sl_leak *leak,
		     const struct sl_leak_list_place *place)
{
	const char *line = SL_MAKE_LINE_OF(process, leak->stack);

	line = *line ? line : leak->library;
	sl_answer_headline(answer, "%s keeps %s and never frees it", line, SL_ANSWER_SIZE(leak->bytes));
	sl_answer_brief(answer, "keeps %s", SL_ANSWER_SIZE(leak->bytes));
	sl_make_stack(answer, process, leak->stack, "made here", 3);
	sl_answer_say(answer, SL_LABEL_WHY, "it added %s in %s block%s and was never freed.", SL_ANSWER_SIZE(leak->bytes),
		      SL_NUMBER(leak->blocks), leak->blocks == 1 ? "" : "s");
	if (place)
		say_who(make, answer, place);
	sl_answer_say(answer, SL_LABEL_FIX, "free what %s makes when its work is done", line);
}

static void add_left(struct sl_make *make, struct sl_leak_list_place *place)
{
	const struct sl_leak *leak = place->leak;
	struct sl_answer *answer = begin_leak(make, place, "leak.growing", leak->bytes, leak->device);

	sl_answer_figure(answer, "kept", "bytes", (double)leak->bytes);
	say_left(make, answer, &make->report->processes[place->process], leak, place);
	end_leak(make, answer, place, leak->device, false);
}

/* The least slope that its error allows. */
static double slope_at_least(const struct sl_growth *growth)
{
	return 2 * growth->slope - growth->at_most;
}

static bool is_told(struct sl_make *make, struct sl_process *process, struct sl_stack stack)
{
	for (size_t i = 0; i < make->leaks.place.count; i++) {
		const struct sl_leak_list_place *place = &make->leaks.place.item[i];

		if (place->was_printed &&
		    sl_place_key(&make->report->processes[place->process], place->stack) == sl_place_key(process, stack))
			return true;
	}
	return false;
}

static void say_growth(struct sl_answer *answer, struct sl_process *process, const struct sl_growth *growth)
{
	const struct sl_label *label = &process->model->labels.item[growth->label];
	char name[80], line[SL_HOLDERS_MAX][SL_MAKE_LINE];
	double bytes[SL_HOLDERS_MAX] = {0};
	unsigned k;

	put_label(name, sl_label_words(sl_defs_text(process->model->defs, label->text)) ?: "range");
	sl_answer_headline(answer, "each %s%s adds %s that stays", sl_label_each(label), name,
			   SL_ANSWER_SIZE(sl_stats_bytes(growth->slope)));
	sl_answer_say(answer, SL_LABEL_WHY, "memory in use rose in step with %s entries of %s.", SL_NUMBER(label->points), name);
	for (unsigned i = 0; i < growth->holder_count; i++) {
		if (!*sl_make_line(line[i], process, growth->holders[i].stack))
			snprintf(line[i], sizeof(line[i]), "%s", growth->holders[i].library);
		for (k = 0; strcmp(line[k], line[i]) != 0; k++) /* several stacks through one line are one */
			;
		bytes[k] += growth->holders[i].bytes_per_entry;
	}
	for (unsigned i = 0; i < growth->holder_count; i++)
		if (bytes[i])
			sl_answer_say(answer, SL_LABEL_WHY, "%s adds %s.", line[i], SL_ANSWER_SIZE(sl_stats_bytes(bytes[i])));
	if (growth->holder_count)
		sl_answer_say(answer, SL_LABEL_FIX, "free what %s makes before its %s ends, or bound what it keeps", line[0], name);
	if (!growth->holder_count)
		sl_answer_say(answer, SL_LABEL_OPEN, "which line keeps it: no stack is known");
}

static void add_growth(struct sl_make *make)
{
	struct sl_process *process = NULL;
	const struct sl_growth *growth = NULL;
	struct sl_answer *answer;
	bool all_reported = true;

	for (unsigned i = 0; i < make->report->process_count; i++)
		for (size_t k = 0; k < make->report->processes[i].growth.count; k++) {
			const struct sl_growth *g = &make->report->processes[i].growth.item[k];

			if (!g->verdict || strcmp(g->verdict, "growing") || !g->credited ||
			    (growth && slope_at_least(g) <= slope_at_least(growth)))
				continue;
			growth = g;
			process = &make->report->processes[i];
		}
	if (!growth)
		return;
	for (unsigned i = 0; i < growth->holder_count; i++)
		all_reported &= is_told(make, process, growth->holders[i].stack);
	if (all_reported && growth->holder_count)
		return;
	answer = sl_answer_add(make->to, SL_WORD_GROWS, "label.growing");
	answer->process = (int)(process - make->report->processes);
	answer->bytes = sl_stats_bytes(growth->slope * (double)process->model->labels.item[growth->label].points);
	sl_answer_figure(answer, "each", "bytes", growth->slope);
	sl_answer_judged(answer, "each_at_least", "bytes", slope_at_least(growth), "above", 0);
	if (growth->holder_count)
		sl_make_stack(answer, process, growth->holders[0].stack, "most of it", 3);
	say_growth(answer, process, growth);
	sl_make_peak(make, answer, process, sl_devices_fullest(process), NULL);
	sl_make_next(make, answer, "tree --at end", "the lines that hold it");
}

/* What a loop made that ended. */
static void say_held(struct sl_answer *answer, struct sl_process *process, const struct sl_leak_line *leak_line)
{
	const char *line = SL_MAKE_LINE_OF(process, leak_line->track->stack),
		   *joined = SL_MAKE_LINE_OF(process, leak_line->joined_at);
	char amount[120];
	const char *what = leak_line->bytes == SL_UNKNOWN ? amount : SL_ANSWER_SIZE(leak_line->bytes);

	put_amount(amount, sizeof(amount), leak_line, leak_line->amount);
	sl_answer_headline(answer, "%s made %s that its loop left", line, what);
	sl_answer_brief(answer, "%s made in a loop", what);
	sl_make_stack(answer, process, leak_line->track->stack, "made here", 3);
	say_kept(answer, process, leak_line, line);
	sl_answer_say(answer, SL_LABEL_WHY, "The loop around it ended, and other work came.");
	if (*joined)
		sl_answer_say(answer, SL_LABEL_WHY, "%s then made a block as large as all of it.", joined);
	if (!is_graph(process, leak_line) || !sl_make_no_grad(answer, process, leak_line->track->stack, SL_LABEL_FIX))
		sl_answer_say(answer, SL_LABEL_FIX, "free the blocks of %s behind its loop, unless they are read later", line);
}

/* The largest of each process. */
static void add_held(struct sl_make *make, struct sl_process *process, const struct sl_leak_line *leak_line)
{
	struct sl_answer *answer = sl_answer_add(make->to, SL_WORD_HELD, "memory.held");

	answer->process = (int)(process - make->report->processes);
	answer->device = leak_line->track->device;
	answer->bytes = leak_line->bytes;
	sl_answer_figure(answer, "kept", "bytes", (double)leak_line->bytes);
	say_held(answer, process, leak_line);
	sl_make_next(make, answer, leak_line->left_blocks ? "tree --at end" : "tree --at peak", "the lines that hold it");
}

/* True: a request there was refused, for which it had to slow down. */
static bool was_refused(const struct sl_model *model, const struct sl_track *track)
{
	for (size_t i = 0; i < model->ooms.count; i++)
		if (sl_tracks_alike(model->defs, model->ooms.item[i].stack, track->stack))
			return true;
	return false;
}

void sl_make_keeping(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding)
{
	struct sl_process *process = &make->report->processes[finding->process];
	const struct sl_leak_line *leak_line = finding->leak_line;
	bool error = sl_model_ended_by(process->model); /* a longer run meets it too */
	char line[300], what[200], since[SL_FORMAT_BYTES];
	uint64_t begun = make->report->started_unix_ns, from;

	if (finding->kind == SL_FOUND_label_growing) {
		say_growth(answer, process, finding->growth);
		return;
	}
	if (finding->about) {
		say_left(make, answer, process, finding->leak, NULL);
		return;
	}
	if (finding->kind == SL_FOUND_leak_kept || finding->kind == SL_FOUND_leak_growing) {
		say_leak(make, answer, process, leak_line, NULL);
		return;
	}
	if (finding->kind == SL_FOUND_memory_held) {
		say_held(answer, process, leak_line);
		return;
	}
	sl_owners_line(process, leak_line->track->stack, 2, line, sizeof(line));
	if (finding->kind == SL_FOUND_memory_collected) {
		sl_make_pace(what, sizeof(what), process, leak_line);
		sl_answer_headline(answer, "%s collected %s, up to %.0f blocks, and the program freed them", line, what,
				   fmax((double)leak_line->track->most_blocks, (double)leak_line->blocks));
		sl_answer_say(answer, SL_LABEL_FIX, "if a longer run would collect more than fits, collect and free in parts");
		return;
	}
	from = sl_process_unix(process, sl_leak_words_since(leak_line));
	if (finding->kind == SL_FOUND_memory_kept_late)
		sl_answer_headline(answer, "%s keeps nearly all that it made since %s", line,
				   sl_format_duration(since, from > begun ? from - begun : 0));
	else if (finding->kind == SL_FOUND_memory_filling)
		sl_answer_headline(answer, "%s still fills, %s", line,
				   was_refused(process->model, leak_line->track) ? "and was refused memory"
										 : "more and more slowly");
	else if (finding->kind == SL_FOUND_memory_only_taken)
		sl_answer_headline(answer, "%s keeps what it took: a leak, or what it loads", line);
	else
		sl_answer_headline(answer, "%s keeps handles that hold little so far", line);
	say_kept(answer, process, leak_line, "it");
	if (finding->kind == SL_FOUND_memory_filling)
		sl_answer_say(answer, SL_LABEL_FIX, "a cache without a limit, or one %s",
			      error ? "whose limit is more than the device has"
				    : "that is not full yet: record a longer run to tell them apart");
	else if (finding->kind == SL_FOUND_memory_handles)
		sl_answer_say(answer, SL_LABEL_FIX, "close handles that are no longer used");
	else if (error)
		sl_answer_say(answer, SL_LABEL_FIX,
			      "find the line that keeps them, there or in its callers: a list, a cache "
			      "without a bound, a handle that is never closed");
	else
		sl_answer_say(answer, SL_LABEL_FIX, "record a longer run: it tells a leak from what %s",
			      finding->kind == SL_FOUND_memory_kept_late ? "is collected until the end" : "is loaded once");
}

/* True: a leak at that line is told. */
static bool leaks_at(const struct sl_make *make, struct sl_process *process, struct sl_stack stack)
{
	for (size_t i = 0; i < make->leaks.place.count; i++) {
		const struct sl_leak_list_place *place = &make->leaks.place.item[i];

		if (&make->report->processes[place->process] == process &&
		    sl_place_key(process, place->stack) == sl_place_key(process, stack))
			return true;
	}
	return false;
}

static void add_all_held(struct sl_make *make)
{
	for (unsigned i = 0; i < make->report->process_count; i++) {
		struct sl_process *process = &make->report->processes[i];

		for (size_t k = 0; k < process->leaks_by_line.count; k++) {
			const struct sl_leak_line *leak_line = &process->leaks_by_line.item[k];

			if (leak_line->verdict == SL_KEPT_HELD && leak_line->bytes != SL_UNKNOWN &&
			    !leaks_at(make, process, leak_line->track->stack)) {
				add_held(make, process, leak_line);
				break;
			}
		}
	}
}

/* True: the births at that line have told of it. */
static bool is_kept(const struct sl_make *make, const struct sl_leak_list_place *left)
{
	struct sl_process *process = &make->report->processes[left->process];

	for (size_t i = 0; i < make->leaks.place.count; i++) {
		const struct sl_leak_list_place *place = &make->leaks.place.item[i];

		if (place->leak_line && place->process == left->process && place->leak_line->track->kind == left->leak->kind &&
		    place->leak_line->track->device == left->leak->device &&
		    sl_place_key(process, place->stack) == sl_place_key(process, left->stack))
			return true;
	}
	return false;
}

void sl_make_leaks(struct sl_make *make)
{
	bool *with = sl_memory_must(calloc(make->leaks.place.count + 1, sizeof(*with)));
	char owner[300];

	for (size_t i = 0; i < make->leaks.place.count; i++) {
		struct sl_leak_list_place *place = &make->leaks.place.item[i];
		size_t together;

		if (place->was_printed)
			continue;
		place->was_printed = true;
		if (!place->leak_line) {
			if (!is_kept(make, place))
				add_left(make, place);
			continue;
		}
		together = sl_leak_list_together(&make->leaks, make->report, i, SL_FEW, with, owner, sizeof(owner));
		if (together > 1)
			add_together(make, with, together, owner);
		else
			add_kept(make, place);
	}
	free(with);
	add_growth(make);
	add_all_held(make);
}

const char *sl_answer_leak_suggestion(const struct sl_leak *leak)
{
	static const char *const words[][2] = {
		{"growing", "free each block when its work is done: this place kept adding to the total"},
		{"kept", "free each block when its work is done: it was freed only as the program ended"},
		{"live_at_exit", "free it before the end if this code will run inside a longer process"},
		{"cache", "held by an allocator that hands it out again; empty its cache to give it back"},
		{"workspace", "kept by the library; destroy its handle to give it back"},
	};

	for (size_t i = 0; i < SL_COUNT(words) && !leak->suppressed; i++)
		if (!strcmp(leak->verdict, words[i][0]))
			return words[i][1];
	return "named in the suppressions file";
}
