/* SPDX-License-Identifier: MIT */
/* Findings that are verdicts without a file of their own: unlike ranks, memory that no call asked for, the host's, JAX's. */
#include <math.h>
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
#include "analyzer/report/owners.h"
#include "analyzer/report/place.h"
#include "analyzer/report/skew.h"
#include "analyzer/report/window_facts.h"

/*
 * Ranks.  One may be unlike the others, use another's device, or run out of memory first.  A group of ranks that do the same has
 * one note.  Thousands of ranks make few groups.
 */

#define GROUPS_SHOWN 6

/* "800 MiB more at train.py:79 forward, which grows; 40 MiB less elsewhere, most at ..." */
static void put_places(char *out, size_t size, const struct sl_unlike *unlike)
{
	size_t at = 0;

	out[0] = 0;
	for (unsigned i = 0; i < unlike->places && at < size; i++) {
		bool rest = unlike->place[i].rest;
		char line[300] = "";

		if (unlike->place[i].process)
			sl_owners_line(unlike->place[i].process, unlike->place[i].stack, 2, line, sizeof(line));
		at += (size_t)snprintf(out + at, size - at, "%s%s %s%s%s%s%s", i ? "; " : "",
				       SL_ANSWER_SIZE(sl_stats_bytes(fabs(unlike->place[i].more))),
				       unlike->place[i].more > 0 ? "more" : "less", rest ? " elsewhere" : "",
				       !*line ? ""
				       : rest ? ", most at "
					      : " at ",
				       line, unlike->place[i].grows && !rest ? ", which grows" : "");
	}
}

static void make_outlier(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding)
{
	static const char *const fix[] = {
		[SL_UNLIKE_WORK] =
			"compare what this rank was given with the others: its batch, sequence lengths, part of the model",
		[SL_UNLIKE_KEEPS] = "free there what is not needed any more: the other ranks free it, or never ask for it",
		[SL_UNLIKE_KEEPS_MORE] = "free there what is not needed any more: the other ranks keep less of it",
		[SL_UNLIKE_FIRST] = ("the first rank often gathers or writes for the others: if this one does not, compare its "
				     "input with theirs"),
		[SL_UNLIKE_ALONE] = "no other rank asks for memory there: check that this one should",
		[SL_UNLIKE_ONCE] = "one of its steps was larger: on average it asks for as much there as the others",
	};
	const struct sl_unlike *unlike = &finding->unlike;
	bool more = finding->bytes > finding->other;
	char places[900];

	put_places(places, sizeof(places), unlike);
	sl_answer_headline(answer, "%s is an outlier", SL_WHO(&make->report->processes[finding->process]));
	sl_answer_say(answer, SL_LABEL_WHY, "it peaked at %s, %s %s than %s%s of %u ranks that do the same%s%s",
		      SL_ANSWER_SIZE(finding->bytes),
		      SL_ANSWER_SIZE(more ? finding->bytes - finding->other : finding->other - finding->bytes),
		      more ? "more" : "less", unlike->peer ? SL_WHO(unlike->peer) : "the median", unlike->peer ? ", one" : "",
		      finding->of, *places ? ": " : "", places);
	sl_answer_say(answer, SL_LABEL_FIX, "%s", fix[unlike->why]);
}

static void make_role(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding)
{
	char places[900];

	(void)make;
	put_places(places, sizeof(places), &finding->unlike);
	sl_answer_headline(answer, "%u of %u ranks each hold since their start %s", finding->count, finding->of, places);
}

static void make_first(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding)
{
	const char *who = SL_WHO(&make->report->processes[finding->process]);
	char within[160];

	switch (finding->first) {
	case SL_FIRST_CLOSE:
		sl_skew_describe(&make->report->skew, within, sizeof(within));
		sl_answer_headline(answer, "%s ran out of memory among the first: %u on other hosts did so within %s", who,
				   finding->count, within);
		break;
	case SL_FIRST_FOLLOWED:
		sl_answer_headline(answer, "%s was first; %u other%s %s later", who, finding->count,
				   finding->count == 1 ? " ran out too," : "s ran out too, the next", SL_SPAN(finding->other));
		break;
	case SL_FIRST_SILENT:
		sl_answer_headline(answer, "%s was first; the others made no call after it and ended %s later", who,
				   SL_SPAN(finding->other));
		break;
	case SL_FIRST_ONLY:
		sl_answer_headline(answer, "%s was the only one of %u to run out of memory", who, finding->of);
	}
	sl_answer_say(answer, SL_LABEL_FIX, "%s",
		      finding->first == SL_FIRST_CLOSE	    ? "look at each of them: their clocks do not tell which was first"
		      : finding->first == SL_FIRST_FOLLOWED ? "start with this rank: the other errors came after it"
							    : "look at what this rank holds and the others do not");
}

static void make_strays(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding)
{
	const struct sl_strays *strays = &finding->strays;
	struct sl_process *processes = make->report->processes;
	unsigned shown = finding->count < SL_STRAYS_MAX ? finding->count : SL_STRAYS_MAX;
	const char *who = "", *whose = processes[finding->process].trace->header.rank >= 0 ? "ranks" : "processes",
		   *bytes = SL_ANSWER_SIZE(finding->other);
	char line[300], contexts[60] = "a stray context";

	for (unsigned i = 0; i < shown; i++)
		who = sl_answers_text(make->to, "%s%s%s", who, i ? ", " : "", SL_WHO(&processes[strays->process[i]]));
	if (strays->owner >= 0)
		sl_answer_headline(answer, "%s%s use%s device %d, which is %s's", who, finding->count > shown ? ", ..." : "",
				   finding->count > 1 ? "" : "s", finding->device, SL_WHO(&processes[strays->owner]));
	else
		sl_answer_headline(answer, "%s%s use%s devices that are other %s'", who, finding->count > shown ? ", ..." : "",
				   finding->count > 1 ? "" : "s", whose);
	sl_answer_brief(answer, "stray context: %s", answer->headline);
	sl_owners_line(&processes[finding->process], finding->stack, 2, line, sizeof(line));
	if (finding->of > 1)
		snprintf(contexts, sizeof(contexts), "%u stray contexts", finding->of);
	sl_answer_say(answer, SL_LABEL_WHY, "%s%s%s there%s%s", contexts, finding->other ? " and " : "",
		      finding->other ? bytes : "", *line ? ", first at " : "", line);
	sl_answer_say(answer, SL_LABEL_FIX, "%s, or set CUDA_VISIBLE_DEVICES",
		      strays->late ? "name the process's own device in that line"
				   : "call set_device(local_rank) before the first GPU call");
}

struct group {
	unsigned lead, count;
	uint64_t min_peak, max_peak; /* peaks */
};

/* For each process, whether it differs from its group; those are verdicts. */
static void find_outliers(const struct sl_report *report, bool *unlike)
{
	for (size_t i = 0; i < report->findings.count; i++)
		if (report->findings.item[i].kind == SL_FOUND_ranks_outlier)
			unlike[report->findings.item[i].process] = true;
}

static int by_count(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return SL_FALLING(x->count, y->count) ?: SL_RISING(x->lead, y->lead);
}

/* The groups, largest first, without outliers. */
static unsigned find_groups(const struct sl_report *report, const bool *unlike, struct group *group)
{
	unsigned count = 0;

	for (unsigned i = 0; i < report->process_count; i++)
		group[i] = (struct group){.lead = i, .min_peak = UINT64_MAX};
	for (unsigned i = 0; i < report->process_count; i++) {
		unsigned lead = report->processes[i].alike;
		uint64_t peak = sl_devices_peak(&report->processes[i]);

		if (lead == SL_ALIKE_UNKNOWN || unlike[i])
			continue;
		group[lead].count++;
		group[lead].min_peak = peak < group[lead].min_peak ? peak : group[lead].min_peak;
		group[lead].max_peak = peak > group[lead].max_peak ? peak : group[lead].max_peak;
	}
	qsort(group, report->process_count, sizeof(*group), by_count);
	while (count < report->process_count && group[count].count)
		count++;
	return count;
}

/* "0-10, 12, 14-63" in the order of the report, which is that of ranks; the rest is "...". */
static void name_ranks(const struct sl_report *report, const bool *unlike, unsigned lead, char *out, size_t size)
{
	size_t at = 0;

	out[0] = 0;
	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *process = &report->processes[i];
		long long first = process->trace->header.rank, last = first;

		if (process->alike != lead || unlike[i])
			continue;
		while (i + 1 < report->process_count && process[last - first + 1].alike == lead && !unlike[i + 1] &&
		       process[last - first + 1].trace->header.rank == last + 1) {
			last++;
			i++;
		}
		if (at + 48 > size) {
			snprintf(out + at, size - at, ", ...");
			return;
		}
		at += (size_t)snprintf(out + at, size - at, first == last ? "%s%lld" : "%s%lld-%lld", at ? ", " : "", first, last);
	}
}

static void note_group(struct sl_make *make, const struct group *group, const bool *unlike)
{
	const char *low = SL_ANSWER_SIZE(group->min_peak), *high = SL_ANSWER_SIZE(group->max_peak);
	char ranks[120];

	name_ranks(make->report, unlike, group->lead, ranks, sizeof(ranks));
	sl_answers_note(make->to, "%u rank%s, %s%s%s at the peak: %s", group->count,
			group->count > 1 ? "s do the same" : " is like no other", low, strcmp(low, high) != 0 ? " to " : "",
			strcmp(low, high) != 0 ? high : "", ranks);
}

void sl_make_ranks(struct sl_make *make)
{
	const struct sl_report *report = make->report;
	bool *unlike = sl_memory_must(calloc(report->process_count + 1, sizeof(*unlike)));
	struct group *group = sl_memory_must(calloc(report->process_count + 1, sizeof(*group)));
	unsigned count;

	find_outliers(report, unlike);
	count = find_groups(report, unlike, group);
	for (unsigned i = 0; i < count && i < GROUPS_SHOWN && group[0].count > 1; i++)
		note_group(make, &group[i], unlike);
	if (count > GROUPS_SHOWN && group[0].count > 1)
		sl_answers_note(make->to, "and %u more groups of ranks", count - GROUPS_SHOWN);
	free(group);
	free(unlike);
}

#define HIDDEN_PART 4  /* hidden memory is a verdict if it is at least one of so many parts of what the calls hold */
#define HIDDEN_CARD 64 /* and of the card */

static struct sl_process *process_of(const struct sl_make *make, const struct sl_finding *finding)
{
	return finding->process < 0 ? NULL : &make->report->processes[finding->process];
}

/* "train.py:79 forward < train.py:120 main"; "": the stack is empty. */
static const char *callers(char out[300], const struct sl_make *make, const struct sl_finding *finding)
{
	sl_owners_line(process_of(make, finding), finding->stack, 2, out, 300);
	return out;
}
#define CALLERS(make, finding) callers((char[300]){0}, make, finding)
#define LINE(make, finding)    SL_MAKE_LINE_OF(process_of(make, finding), (finding)->stack)

static void say_idle(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding)
{
	struct sl_held_by holder;

	answer->several = true;
	sl_answer_headline(answer, "%u processes make a CUDA context each and nothing else", finding->count + finding->of);
	sl_answer_say(answer, SL_LABEL_WHY, "the contexts take %s of device %d.", SL_ANSWER_SIZE(finding->bytes), finding->device);
	if (finding->of)
		sl_answer_say(answer, SL_LABEL_WHY, "%u of them ended while making it.", finding->of);
	if (sl_make_find_holder(process_of(make, finding), NULL, 0, &holder))
		sl_make_say_holder(answer, &holder, 0);
	sl_answer_say(answer, SL_LABEL_FIX, "make no GPU call at %s in these processes, or let one process do their work",
		      LINE(make, finding));
	sl_answer_say(answer, SL_LABEL_FIX, "\nCUDA_VISIBLE_DEVICES= shows which of them needs the GPU.");
}

static void say_roomless(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding)
{
	const struct sl_jax_oom *last = &process_of(make, finding)->model->roomless;

	sl_answer_headline(answer, "JAX's pool of %s has no room for %s of results", SL_ANSWER_SIZE(last->held_bytes),
			   SL_ANSWER_SIZE(last->bytes));
	sl_answer_say(answer, SL_LABEL_WHY,
		      "%s of the pool were in use. Old and new values exist together, unless the old are donated.",
		      SL_ANSWER_SIZE(last->used_bytes));
	sl_answer_say(answer, SL_LABEL_FIX,
		      "@jax.jit(donate_argnums=...) for what %s replaces, or a larger XLA_PYTHON_CLIENT_MEM_FRACTION",
		      LINE(make, finding));
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

	sl_answer_headline(answer, "%s of %s at %s takes %s%s", name, SL_ANSWER_SIZE(state->limit_bytes), line,
			   own ? "" : "at most ", SL_ANSWER_SIZE(own ? own : hidden));
	sl_answer_say(answer, SL_LABEL_WHY, "the context sets %s aside for %s, and %s by default.",
		      SL_ANSWER_SIZE(state->limit_bytes), state->limit_each ? "each thread that the card can run" : "its kernels",
		      usual);
	if (!own)
		sl_answer_say(answer, SL_LABEL_WHY, "The bare context is part of the figure: no sample is from before the call.");
	sl_answer_say(answer, SL_LABEL_FIX, "set a smaller limit at %s, as much as the kernels use", line);
}

static const struct sl_shared_device *device_of(const struct sl_make *make, const struct sl_finding *finding,
						const struct sl_device_state **state)
{
	const struct sl_report *report = make->report;

	for (unsigned i = 0; i < report->device_count; i++)
		if (report->devices[i].device == finding->device &&
		    (*state = sl_devices_state(report, &report->devices[i], (unsigned)finding->process)))
			return &report->devices[i];
	return NULL;
}

static void say_hidden(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding)
{
	const struct sl_device_state *state = NULL;
	const struct sl_shared_device *device = device_of(make, finding, &state);
	const char *line = LINE(make, finding);

	switch (finding->by) {
	case SL_HIDDEN_BY_CODE:
		sl_answer_headline(answer, "%s loads %s of code, which no call asked for", CALLERS(make, finding),
				   SL_ANSWER_SIZE(finding->bytes));
		break;
	case SL_HIDDEN_BY_POOL:
		sl_answer_headline(answer, "a pool keeps up to %s without a use", SL_ANSWER_SIZE(finding->bytes));
		sl_answer_say(answer, SL_LABEL_WHY, "its release threshold, set at %s, lets it keep what was freed.", line);
		sl_answer_say(answer, SL_LABEL_FIX, "lower the threshold at %s, or call cudaMemPoolTrimTo after the peak", line);
		break;
	case SL_HIDDEN_BY_CONTEXTS:
		sl_answer_headline(answer, "%s makes %u contexts at once", line, finding->count);
		if (finding->bytes != SL_UNKNOWN)
			sl_answer_say(answer, SL_LABEL_WHY, "they take %s of the card.", SL_ANSWER_SIZE(finding->bytes));
		sl_answer_say(answer, SL_LABEL_FIX, "destroy each context of %s when its work is done, or let its jobs share one",
			      line);
		break;
	case SL_HIDDEN_BY_LIMIT:
		answer->bytes = device->hidden_peak_bytes;
		tell_limit(answer, state, line, own_of_limit(make->report, device, state), device->hidden_peak_bytes);
	}
}

static void say_retried(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding)
{
	const char *line = LINE(make, finding);
	struct sl_window_cache cache = {0};

	sl_window_cache(process_of(make, finding)->model->header, finding->device, &cache);
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
}

static void say_host(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding)
{
	const struct sl_process *process = process_of(make, finding);
	const struct sl_host *host = &process->model->host;

	sl_answer_headline(answer, "pid %lld %s with %s resident", (long long)process->trace->header.pid,
			   finding->lacked ? "was killed" : "went on",
			   host->rss_peak == SL_UNKNOWN ? "an unknown size" : SL_ANSWER_SIZE(host->rss_peak));
	if (host->cgroup_limit != SL_UNKNOWN)
		sl_answer_say(answer, SL_LABEL_WHY, "its cgroup's limit is %s%s%s.", SL_ANSWER_SIZE(host->cgroup_limit),
			      finding->other ? ", of which it had used " : "",
			      finding->other ? SL_ANSWER_SIZE(finding->other) : "");
	if (finding->count)
		sl_answer_say(answer, SL_LABEL_WHY, "%s kernel killed in that cgroup for lack of memory meanwhile.",
			      answer->label[SL_LABEL_WHY].count ? "The" : "the");
	sl_answer_say(answer, SL_LABEL_FIX,
		      "raise the limit, or hold less on the host: workers that load data, pinned memory, "
		      "checkpoints, caches");
}

static void say_threads(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding)
{
	sl_answer_headline(answer, "%u threads stray to device %d and use no other, although there is a device for each",
			   finding->count, finding->device);
	sl_answer_say(answer, SL_LABEL_WHY, "%s", CALLERS(make, finding));
	sl_answer_say(answer, SL_LABEL_FIX,
		      "set the device in each thread: a new one starts on device 0, whatever another has set");
}

static void say_sharers(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding)
{
	const char *line = LINE(make, finding);

	sl_answer_headline(answer, "%u ranks share device %d, and this run leaves %u device%s that they see unused", finding->count,
			   finding->device, finding->of, finding->of == 1 ? "" : "s");
	if (*line)
		sl_answer_say(answer, SL_LABEL_WHY, "first allocation at %s", line);
	sl_answer_say(answer, SL_LABEL_FIX,
		      "if that is not intended, set the device first in each rank: cudaSetDevice(LOCAL_RANK), "
		      "or CUDA_VISIBLE_DEVICES");
}

static void say_neighbour(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding)
{
	(void)make;
	sl_answer_headline(answer, "process %u, which was not recorded, held %s of device %d", finding->count,
			   SL_ANSWER_SIZE(finding->bytes), finding->device);
}

static void say_failed_free(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding)
{
	char how[80];

	snprintf(how, sizeof(how), finding->count > 1 ? "%2$u times, first with error %1$u," : "with error %1$u", finding->of,
		 finding->count);
	sl_answer_headline(answer, "%s failed %s and freed no block: %s", finding->name, how, CALLERS(make, finding));
	sl_answer_say(answer, SL_LABEL_FIX, "free each address once, with the call that belongs to the one that allocated it%s",
		      !strncmp(finding->name, "hsa_", 4) ? ""
							 : ": cudaFree for cudaMalloc, cudaFreeHost for cudaMallocHost, "
							   "cudaHostUnregister for cudaHostRegister");
}

static void say_spike(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding)
{
	uint64_t second = process_of(make, finding)->model->devices[finding->device + 1]->swing.second;
	const char *other = SL_ANSWER_SIZE(second);

	sl_answer_headline(answer, "one rise and fall was %.1f times as high as any other: %s instead of %s, with %s at %s",
			   (double)finding->bytes / (double)second, SL_ANSWER_SIZE(finding->bytes), other,
			   SL_ANSWER_SIZE(finding->other), CALLERS(make, finding));
	sl_answer_say(answer, SL_LABEL_FIX, "do that part of the step in smaller pieces: the peak would then be %s", other);
}

static void say_overlap(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding)
{
	const char *about = finding->about ? "about " : "";
	char with[60] = "";

	if (finding->of > 1)
		snprintf(with, sizeof(with), ", with %u other line%s", finding->of - 1, finding->of == 2 ? "" : "s");
	sl_answer_headline(answer,
			   "%s frees what it made only after it has made as much again (%u%s times)%s: %s%s of the peak were of "
			   "the pass before",
			   CALLERS(make, finding), finding->count, finding->count == UINT8_MAX ? " or more" : "", with, about,
			   SL_ANSWER_SIZE(finding->bytes));
	sl_answer_say(answer, SL_LABEL_FIX,
		      "drop the old before the new are made (del, or assign None), or write into them: the "
		      "peak would be %s%s",
		      about, SL_ANSWER_SIZE(finding->other));
}

static void say_arena(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding)
{
	(void)make;
	sl_answer_headline(answer, "%s took %s in one block; the trace cannot see inside it", finding->name,
			   SL_ANSWER_SIZE(finding->bytes));
	sl_answer_say(answer, SL_LABEL_FIX, "set %s",
		      !strcmp(finding->name, "JAX") ? "XLA_PYTHON_CLIENT_PREALLOCATE=false to see single arrays"
						    : "TF_FORCE_GPU_ALLOW_GROWTH=true to see what it needs");
}

/* True: blocks that it made asleep have no line. */
static bool was_asleep(const struct sl_process *process)
{
	for (size_t i = 0; i < process->model->tracks.count; i++)
		if (process->model->tracks.item[i].stack.python == SL_ASLEEP_STACK)
			return true;
	return false;
}

static void say_rising(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding)
{
	const struct sl_heuristics *course = finding->course;
	const struct sl_leak_series *series = &course->series;

	if (finding->count)
		sl_answer_headline(answer, "memory in use rose in %.0f%% of %zu stretches of the run, from %s to %s",
				   100 * series->rising_share, course->samples - 1,
				   SL_ANSWER_SIZE(sl_stats_bytes(series->first_average * (1 << 20))),
				   SL_ANSWER_SIZE(sl_stats_bytes(series->last_average * (1 << 20))));
	if (course->larger) {
		char *larger = sl_answers_text(make->to, "requests at %s grew: on average from %s to %s each, up to %s at once",
					       CALLERS(make, finding), SL_ANSWER_SIZE(course->larger_from),
					       SL_ANSWER_SIZE(course->larger_to), SL_NUMBER(course->larger->most_blocks));

		if (finding->count)
			sl_answer_say(answer, SL_LABEL_WHY, "%s", larger);
		else
			sl_answer_headline(answer, "%s", larger);
	}
	sl_answer_say(answer, SL_LABEL_FIX, "%s",
		      course->larger ? "limit what is asked for there, such as a batch or a sequence length"
		      : was_asleep(process_of(make, finding))
			      ? "record it awake: the lines that keep it are then named"
			      : "put NVTX ranges around the steps: the stacks that hold the growth are then named");
}

/* How a finding is told.  mark: of its line; "asks": with its size.  verb NULL: it is no verdict, but a hint or a note. */
static const struct teller {
	enum sl_found kind;
	void (*say)(struct sl_make *, struct sl_answer *, const struct sl_finding *);
	enum sl_word word;
	const char *mark, *verb, *shows;
} tellers[] = {
	{SL_FOUND_processes_idle_contexts, say_idle, SL_WORD_HIDDEN, "first call", "ranks", "the memory of each process"},
	{SL_FOUND_memory_no_room, say_roomless, SL_WORD_OUT_OF_MEMORY, "asks", "tree --at peak", "the lines that hold the pool"},
	{SL_FOUND_hidden_place, say_hidden, SL_WORD_HIDDEN, NULL, "check --max-hidden 1G", "fails CI if it comes back"},
	{SL_FOUND_memory_retried, say_retried, SL_WORD_NEARLY, "asks", "fit", "how much memory it needs"},
	{SL_FOUND_ranks_outlier, make_outlier, SL_WORD_UNEVEN, "made here", "", NULL},
	{SL_FOUND_ranks_stray_context, make_strays, SL_WORD_UNEVEN, "stray context", "", NULL},
	{SL_FOUND_stray_threads, say_threads, SL_WORD_UNEVEN, "first use", "", NULL},
	{SL_FOUND_host_killed, say_host, SL_WORD_HOST_MEMORY, NULL, "", NULL},
	{.kind = SL_FOUND_leak_growing, .say = sl_make_keeping},
	{.kind = SL_FOUND_leak_kept, .say = sl_make_keeping},
	{.kind = SL_FOUND_label_growing, .say = sl_make_keeping},
	{.kind = SL_FOUND_memory_held, .say = sl_make_keeping},
	{.kind = SL_FOUND_memory_only_taken, .say = sl_make_keeping},
	{.kind = SL_FOUND_memory_collected, .say = sl_make_keeping},
	{.kind = SL_FOUND_memory_kept_late, .say = sl_make_keeping},
	{.kind = SL_FOUND_memory_handles, .say = sl_make_keeping},
	{.kind = SL_FOUND_memory_filling, .say = sl_make_keeping},
	{.kind = SL_FOUND_ranks_first, .say = make_first},
	{.kind = SL_FOUND_ranks_role, .say = make_role},
	{.kind = SL_FOUND_ranks_share_device, .say = say_sharers},
	{.kind = SL_FOUND_device_neighbour, .say = say_neighbour},
	{.kind = SL_FOUND_leak_failed_free, .say = say_failed_free},
	{.kind = SL_FOUND_memory_spike, .say = say_spike},
	{.kind = SL_FOUND_memory_overlap, .say = say_overlap},
	{.kind = SL_FOUND_allocator_arena, .say = say_arena},
	{SL_FOUND_memory_rising, say_rising, SL_WORD_GROWS, "made here", "", NULL},
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

static const struct teller *teller_of(const struct sl_finding *finding)
{
	for (size_t i = 0; i < SL_COUNT(tellers); i++)
		if (tellers[i].kind == finding->kind)
			return &tellers[i];
	return NULL;
}

void sl_make_describe(struct sl_report *report, struct sl_finding *finding)
{
	const struct teller *teller = teller_of(finding);
	struct sl_make make = {.report = report};
	struct sl_answer *answer;

	if (finding->text || !teller)
		return;
	make.to = sl_answers_new();
	answer = sl_answer_add(make.to, teller->word, sl_found_id(finding->kind));
	teller->say(&make, answer, finding);
	finding->text = sl_answer_join(answer, answer->headline, SL_LABEL_WHY);
	if (finding->text[strlen(finding->text) - 1] == '.')
		finding->text[strlen(finding->text) - 1] = 0; /* the advice follows */
	finding->advice = sl_answer_join(answer, NULL, SL_LABEL_FIX);
	if (finding->process >= 0)
		finding->advice = sl_api_names_translate(process_of(&make, finding)->model, finding->advice);
	sl_answers_free(make.to);
}

static void add_verdict(struct sl_make *make, const struct sl_finding *finding, const struct teller *teller)
{
	static const char *const of_hidden[] = {[SL_HIDDEN_BY_POOL] = "sets the threshold",
						[SL_HIDDEN_BY_CONTEXTS] = "makes contexts",
						[SL_HIDDEN_BY_LIMIT] = "raises the limit"};
	struct sl_answer *answer = sl_answer_add(make->to, teller->word, sl_found_id(finding->kind));
	struct sl_process *process = process_of(make, finding);
	const char *verb = teller->verb, *shows = teller->shows, *mark = teller->mark ?: of_hidden[finding->by];
	char asks[80];

	if (mark && !strcmp(mark, "asks")) {
		snprintf(asks, sizeof(asks), "asks %s", SL_ANSWER_SIZE(finding->bytes));
		mark = asks;
	}
	answer->process = finding->process;
	answer->device = finding->device;
	answer->bytes = finding->bytes == SL_UNKNOWN ? 0 : finding->bytes;
	answer->unix_ns = finding->unix_ns;
	if (answer->bytes)
		sl_answer_figure(answer, "held", "bytes", (double)answer->bytes);
	if (process)
		sl_make_stack(answer, process, finding->stack, mark, 3);
	teller->say(make, answer, finding);
	if (!*verb) {
		verb = make->report->process_count > 1 ? "ranks" : "tree --at peak";
		shows = make->report->process_count > 1 ? "which ranks do the same" : "the lines that held it";
	}
	if (process && finding->kind != SL_FOUND_processes_idle_contexts)
		sl_make_peak(make, answer, process, sl_devices_fullest(process), NULL);
	sl_make_next(make, answer, verb, shows);
}

/* Hidden memory is a verdict where a line can be changed that takes much of it; where it takes little, it is no hint either. */
static bool is_worth(const struct sl_make *make, const struct sl_finding *finding, bool verdict)
{
	const struct sl_device_state *state = NULL;
	const struct sl_shared_device *device = device_of(make, finding, &state);
	uint64_t bytes = finding->by == SL_HIDDEN_BY_LIMIT ? device->hidden_peak_bytes : finding->bytes;

	if (finding->kind == SL_FOUND_memory_rising)
		return !verdict || (finding->count && was_asleep(process_of(make, finding)));
	if (finding->kind != SL_FOUND_hidden_place)
		return true;
	if (bytes != SL_UNKNOWN && state && bytes * HIDDEN_PART < state->known_peak)
		return false;
	return !verdict ||
	       (finding->by != SL_HIDDEN_BY_CODE &&
		(bytes == SL_UNKNOWN || !state || state->total_bytes == SL_UNKNOWN || bytes * HIDDEN_CARD >= state->total_bytes));
}

void sl_make_findings(struct sl_make *make)
{
	for (size_t i = 0; i < make->report->findings.count; i++) {
		struct sl_finding *finding = &make->report->findings.item[i];
		unsigned processes = is_told_elsewhere(finding->kind) ? 0 : count_processes(make->report, i);
		const struct teller *teller = teller_of(finding);
		const char *text;

		sl_make_describe(make->report, finding);
		if (!processes)
			continue;
		text = processes > 1 ? sl_answers_text(make->to, "%u processes: %s", processes, finding->text) : finding->text;
		if (teller && teller->verb && is_worth(make, finding, true))
			add_verdict(make, finding, teller);
		else if (!is_aside(finding->kind) && is_worth(make, finding, false))
			*SL_PUSH(&make->hints) = (struct sl_hint){text, finding->advice};
		else
			sl_answers_note(make->to, "%s%s%s", text, finding->advice ? ": " : "", finding->advice ?: "");
	}
}
