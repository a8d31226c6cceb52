/* SPDX-License-Identifier: MIT */
/* Findings that are verdicts without a file of their own: unlike ranks, memory that no call asked for, the host's, JAX's. */
#include <stdio.h>
#include <string.h>

#include "analyzer/analyses/hidden.h"
#include "analyzer/answer/make.h"
#include "analyzer/base/format.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/place.h"
#include "analyzer/report/window_facts.h"

#define HIDDEN_PART 4  /* hidden memory is a verdict if it is at least one of so many parts of what the calls hold */
#define HIDDEN_CARD 64 /* and of the card */

/* The first clause of a finding's sentence. */
static void put_clause(char *out, size_t size, const char *text)
{
	size_t end = strlen(text);

	for (size_t i = 0; text[i]; i++)
		if ((text[i] == ';' || text[i] == ':') && text[i + 1] == ' ') {
			end = i;
			break;
		}
	snprintf(out, size, "%.*s", (int)end, text);
}

static const char *rest_of(const char *text)
{
	for (; *text; text++)
		if ((*text == ';' || *text == ':') && text[1] == ' ')
			return text + 2;
	return NULL;
}

static struct sl_answer *add(struct sl_make *make, const struct sl_finding *finding, enum sl_word word, const char *mark)
{
	struct sl_answer *answer = sl_answer_add(make->to, word, sl_found_id(finding->kind));

	answer->process = finding->process;
	answer->device = finding->device;
	answer->bytes = finding->bytes == SL_UNKNOWN ? 0 : finding->bytes;
	answer->unix_ns = finding->unix_ns;
	if (finding->bytes != SL_UNKNOWN && finding->bytes)
		sl_answer_figure(answer, "held", "bytes", (double)finding->bytes);
	if (finding->process >= 0)
		sl_make_stack(answer, &make->report->processes[finding->process], finding->stack, mark, 3);
	return answer;
}

static void add_text(struct sl_make *make, const struct sl_finding *finding, enum sl_word word, const char *mark)
{
	struct sl_answer *answer = add(make, finding, word, mark);
	struct sl_process *process = finding->process >= 0 ? &make->report->processes[finding->process] : NULL;
	char clause[300];

	put_clause(clause, sizeof(clause), finding->text);
	sl_answer_headline(answer, "%s", clause);
	sl_answer_brief(answer, "%s%s", finding->kind == SL_FOUND_ranks_stray_context ? "stray context: " : "", clause);
	sl_answer_say(answer, SL_LABEL_WHY, "%s", rest_of(finding->text) ?: finding->text);
	if (finding->advice)
		sl_answer_say(answer, SL_LABEL_FIX, "%s", finding->advice);
	if (process)
		sl_make_peak(make, answer, process, sl_devices_fullest(process), NULL);
	sl_make_next(make, answer, make->report->process_count > 1 ? "ranks" : "tree --at peak",
		     make->report->process_count > 1 ? "which ranks do the same" : "the lines that held it");
}

static void add_idle(struct sl_make *make, const struct sl_finding *finding)
{
	struct sl_answer *answer = add(make, finding, SL_WORD_HIDDEN, "first call");
	const char *line = SL_MAKE_LINE_OF(&make->report->processes[finding->process], finding->stack),
		   *more = strrchr(finding->text, ';');

	sl_answer_headline(answer, "%.*s hold a CUDA context each and nothing else", (int)strcspn(finding->text, "h") - 1,
			   finding->text);
	sl_answer_say(answer, SL_LABEL_WHY, "the contexts take %s of device %d.", SL_ANSWER_SIZE(finding->bytes), finding->device);
	if (more)
		sl_answer_say(answer, SL_LABEL_WHY, "%s.", more + 2);
	sl_answer_say(answer, SL_LABEL_FIX, "make no GPU call at %s in these processes, or let one process do their work", line);
	sl_answer_say(answer, SL_LABEL_FIX, "\nCUDA_VISIBLE_DEVICES= shows which of them needs the GPU.");
	sl_make_next(make, answer, "ranks", "the memory of each process");
}

static void add_roomless(struct sl_make *make, const struct sl_finding *finding)
{
	struct sl_process *process = &make->report->processes[finding->process];
	const struct sl_jax_oom *last = &process->model->roomless;
	char mark[80];
	struct sl_answer *answer;
	const char *line = SL_MAKE_LINE_OF(process, finding->stack);

	snprintf(mark, sizeof(mark), "asks %s", SL_ANSWER_SIZE(last->bytes));
	answer = add(make, finding, SL_WORD_OUT_OF_MEMORY, mark);
	sl_answer_headline(answer, "JAX's pool of %s has no room for %s of results", SL_ANSWER_SIZE(last->held_bytes),
			   SL_ANSWER_SIZE(last->bytes));
	sl_answer_say(answer, SL_LABEL_WHY,
		      "%s of the pool were in use. Old and new values exist together, unless the old are donated.",
		      SL_ANSWER_SIZE(last->used_bytes));
	sl_answer_say(answer, SL_LABEL_FIX,
		      "@jax.jit(donate_argnums=...) for what %s replaces, or a larger XLA_PYTHON_CLIENT_MEM_FRACTION", line);
	sl_make_peak(make, answer, process, sl_devices_fullest(process), NULL);
	sl_make_next(make, answer, "tree --at peak", "the lines that hold the pool");
}

/* What the raised limit takes by itself; 0: no figure tells it from the context that has it. */
static uint64_t own_of_limit(const struct sl_report *report, const struct sl_shared_device *device,
			     const struct sl_device_state *state)
{
	struct sl_hidden hidden;
	uint64_t bytes = 0;

	sl_hidden_split(report, device, &hidden);
	for (size_t i = 0; i < hidden.count; i++)
		if (!strcmp(hidden.item[i].what, state->limit_each ? "unexplained" : "limit"))
			bytes = hidden.item[i].bytes;
	sl_hidden_free(&hidden);
	return bytes;
}

static void tell_limit(struct sl_answer *answer, const struct sl_device_state *state, const char *line, uint64_t own,
		       uint64_t hidden)
{
	const char *name = state->limit_each	  ? "cudaLimitStackSize"
			   : state->limit_printed ? "cudaLimitPrintfFifoSize"
						  : "cudaLimitMallocHeapSize",
		   *usual = state->limit_each	   ? "1 KiB"
			    : state->limit_printed ? "1 MiB"
						   : "8 MiB";

	sl_answer_headline(answer, "%s of %s at %s takes %s%s of the card", name, SL_ANSWER_SIZE(state->limit_bytes), line,
			   own ? "" : "at most ", SL_ANSWER_SIZE(own ? own : hidden));
	sl_answer_say(answer, SL_LABEL_WHY, "the context sets %s aside for %s, and %s by default.",
		      SL_ANSWER_SIZE(state->limit_bytes), state->limit_each ? "each thread that the card can run" : "its kernels",
		      usual);
	if (!own)
		sl_answer_say(answer, SL_LABEL_WHY, "The bare context is part of the figure: no sample is from before the call.");
	sl_answer_say(answer, SL_LABEL_FIX, "set a smaller limit at %s, as much as the kernels use", line);
}

/* Hidden memory with a line that can be changed: a limit, a pool's threshold, several contexts.  Code cannot be. */
static void add_hidden(struct sl_make *make, const struct sl_finding *finding)
{
	struct sl_process *process = &make->report->processes[finding->process];
	const struct sl_device_state *state = NULL;
	const char *line = SL_MAKE_LINE_OF(process, finding->stack);
	bool limit = strstr(finding->text, "the limit was raised"), pool = strstr(finding->text, "release threshold");
	bool contexts = strstr(finding->text, "contexts at once");
	uint64_t bytes = finding->bytes, own = 0;
	struct sl_answer *answer;
	bool worth;

	for (unsigned i = 0; i < make->report->device_count && !state; i++)
		if (make->report->devices[i].device == finding->device) {
			state = sl_devices_state(make->report, &make->report->devices[i], (unsigned)finding->process);
			if (limit && state) {
				bytes = make->report->devices[i].hidden_peak_bytes;
				own = own_of_limit(make->report, &make->report->devices[i], state);
			}
		}
	worth = bytes == SL_UNKNOWN || !state || state->total_bytes == SL_UNKNOWN || bytes * HIDDEN_CARD >= state->total_bytes;
	if (!(limit || pool || contexts) || !worth || (bytes != SL_UNKNOWN && state && bytes * HIDDEN_PART < state->known_peak)) {
		if (bytes == SL_UNKNOWN || !state || bytes * HIDDEN_PART >= state->known_peak)
			*SL_PUSH(&make->hints) = (struct sl_hint){finding->text, finding->advice};
		else
			sl_answers_note(make->to, "%s", finding->text);
		return;
	}
	answer = add(make, finding, SL_WORD_HIDDEN, limit ? "raises the limit" : pool ? "sets the threshold" : "makes contexts");
	answer->bytes = bytes == SL_UNKNOWN ? 0 : bytes;
	if (limit) {
		tell_limit(answer, state, line, own, bytes);
	} else if (pool) {
		sl_answer_headline(answer, "a pool keeps up to %s without a use", SL_ANSWER_SIZE(bytes));
		sl_answer_say(answer, SL_LABEL_WHY, "its release threshold, set at %s, lets it keep what was freed.", line);
		sl_answer_say(answer, SL_LABEL_FIX, "lower the threshold at %s, or call cudaMemPoolTrimTo after the peak", line);
	} else {
		sl_answer_headline(answer, "%s makes several contexts at once", line);
		sl_answer_say(answer, SL_LABEL_WHY, "%s.", finding->text);
		sl_answer_say(answer, SL_LABEL_FIX, "destroy each context of %s when its work is done, or let its jobs share one",
			      line);
	}
	sl_make_peak(make, answer, process, sl_devices_fullest(process), NULL);
	sl_make_next(make, answer, "check --max-hidden 1G", "fails CI if it comes back");
}

static void add_retried(struct sl_make *make, const struct sl_finding *finding)
{
	struct sl_process *process = &make->report->processes[finding->process];
	const char *line = SL_MAKE_LINE_OF(process, finding->stack);
	struct sl_window_cache cache = {0};
	struct sl_answer *answer;
	char mark[80];

	sl_window_cache(process->model->header, finding->device, &cache);
	snprintf(mark, sizeof(mark), "asks %s", SL_ANSWER_SIZE(finding->bytes));
	answer = add(make, finding, SL_WORD_NEARLY, mark);
	sl_answer_headline(answer, "%s%sasks %s and finds no memory at first", line, *line ? " " : "a request ",
			   SL_ANSWER_SIZE(finding->bytes));
	sl_answer_say(answer, SL_LABEL_WHY,
		      "PyTorch gave %s of its cache back and asked again, which takes time in each such request.",
		      SL_ANSWER_SIZE(cache.retry_bytes));
	if (cache.retry_bytes >= cache.asked) /* so the memory was there, in other pieces */
		sl_answer_say(answer, SL_LABEL_FIX, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or sizes that repeat at %s",
			      *line ? line : "its line");
	else if (*line)
		sl_answer_say(answer, SL_LABEL_FIX, "hold less when %s asks, or ask for less there", line);
	sl_make_peak(make, answer, process, sl_devices_fullest(process), NULL);
	sl_make_next(make, answer, "fit", "how much memory it needs");
}

/* How a finding is told; word SL_WORD_COUNT: a note for --all. */
static const struct {
	enum sl_found kind;
	void (*tell)(struct sl_make *, const struct sl_finding *);
	enum sl_word word;
	const char *mark;
} tellers[] = {
	{SL_FOUND_processes_idle_contexts, add_idle, 0, NULL},
	{SL_FOUND_memory_no_room, add_roomless, 0, NULL},
	{SL_FOUND_hidden_place, add_hidden, 0, NULL},
	{SL_FOUND_memory_retried, add_retried, 0, NULL},
	{SL_FOUND_ranks_outlier, NULL, SL_WORD_UNEVEN, "made here"},
	{SL_FOUND_ranks_stray_context, NULL, SL_WORD_UNEVEN, "stray context"},
	{SL_FOUND_stray_threads, NULL, SL_WORD_UNEVEN, "first use"},
	{SL_FOUND_host_killed, NULL, SL_WORD_HOST_MEMORY, NULL},
};

/* Told by another file of this room. */
static bool is_told_elsewhere(enum sl_found kind)
{
	return kind == SL_FOUND_ranks_first || kind == SL_FOUND_leak_growing || kind == SL_FOUND_leak_kept ||
	       kind == SL_FOUND_label_growing || !strcmp(sl_found_family(kind), "oom");
}

/* What nobody would look for where nothing is wrong: handles that hold little, and neighbours, which the card's row has. */
static bool is_aside(enum sl_found kind)
{
	return kind == SL_FOUND_memory_handles || kind == SL_FOUND_device_neighbour;
}

/* True: both are told once, since another process has the same at the same line. */
static bool is_same(const struct sl_report *report, const struct sl_finding *one, const struct sl_finding *other)
{
	return one->kind == other->kind && one->process >= 0 && other->process >= 0 && one->process != other->process &&
	       one->bytes == other->bytes &&
	       sl_place_key(&report->processes[one->process], one->stack) ==
		       sl_place_key(&report->processes[other->process], other->stack);
}

/* In how many processes the finding is; 0: it was told of an earlier one. */
static unsigned count_processes(const struct sl_report *report, size_t index)
{
	const struct sl_finding *item = report->findings.item;
	unsigned count = 1;

	for (size_t i = 0; i < report->findings.count; i++)
		if (is_same(report, &item[i], &item[index])) {
			if (i < index)
				return 0;
			count++;
		}
	return count;
}

void sl_make_findings(struct sl_make *make)
{
	for (size_t i = 0; i < make->report->findings.count; i++) {
		const struct sl_finding *finding = &make->report->findings.item[i];
		unsigned processes = is_told_elsewhere(finding->kind) ? 0 : count_processes(make->report, i);
		const char *text = finding->text;
		size_t k = 0;

		if (!processes)
			continue;
		if (processes > 1)
			text = sl_answers_text(make->to, "%u processes: %s", processes, text);
		while (k < SL_COUNT(tellers) && tellers[k].kind != finding->kind)
			k++;
		if (k < SL_COUNT(tellers) && tellers[k].tell)
			tellers[k].tell(make, finding);
		else if (k < SL_COUNT(tellers))
			add_text(make, finding, tellers[k].word, tellers[k].mark);
		else if (!is_aside(finding->kind))
			*SL_PUSH(&make->hints) = (struct sl_hint){text, finding->advice};
		else if (finding->advice)
			sl_answers_note(make->to, "%s: %s", text, finding->advice);
		else
			sl_answers_note(make->to, "%s", text);
	}
}
