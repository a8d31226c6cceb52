/* SPDX-License-Identifier: MIT */
#include "analyzer/report/missing.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/library.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/dry.h"
#include "common/text.h"

#define LIST_MAX 4096 /* bytes of a list of ranks that is heeded, so that no trace makes looking long */

struct seen {
	unsigned run;
	int64_t rank, world;
	const char *recorded; /* ranks, as the user listed them; "": all */
};

static int by_rank(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return SL_RISING(x->run, y->run) ?: SL_RISING(x->rank, y->rank);
}

/* The ranks from `first` up to `end`, which are absent. */
static void add_gap(struct sl_missing *absent, size_t *at, int64_t first, int64_t end)
{
	size_t size = sizeof(absent->which);

	if (first >= end)
		return;
	absent->ranks += (uint64_t)(end - first);
	if (*at + 48 > size) {
		snprintf(absent->which + *at, size - *at, ", ...");
		return;
	}
	*at += (size_t)snprintf(absent->which + *at, size - *at, end == first + 1 ? "%s%lld" : "%s%lld-%lld", *at ? ", " : "",
				(long long)first, (long long)end - 1);
}

/* Those of them that were to be recorded. */
static void add_recorded(struct sl_missing *absent, size_t *at, int64_t first, int64_t end, const char *recorded)
{
	while (*recorded && first < end) {
		uint64_t until;
		bool has = sl_ranks_has(recorded, (uint64_t)first, &until);
		int64_t next = until < (uint64_t)end ? (int64_t)until : end;

		if (has)
			add_gap(absent, at, first, next);
		first = next;
	}
	add_gap(absent, at, first, end);
}

/* The list that all processes of the run have; "": they have none, or differ. */
static const char *recorded_of(const struct seen *seen, size_t number)
{
	for (size_t i = 0; i < number; i++)
		if (strcmp(seen[i].recorded, seen->recorded) != 0 || strlen(seen->recorded) > LIST_MAX)
			return "";
	return sl_ranks_valid(seen->recorded) ? seen->recorded : "";
}

/* The ranks of one run, in their order. */
static void count(struct sl_missing *absent, size_t *at, const struct seen *seen, size_t number)
{
	uint64_t before = absent->ranks;
	const char *recorded = recorded_of(seen, number);
	int64_t world = 0, next = 0;

	for (size_t i = 0; i < number; i++)
		world = seen[i].world > world ? seen[i].world : world;
	for (size_t i = 0; i < number && seen[i].rank < world; i++) {
		add_recorded(absent, at, next, seen[i].rank, recorded);
		next = seen[i].rank + 1;
	}
	add_recorded(absent, at, next, world, recorded);
	absent->of += absent->ranks > before ? (uint64_t)world : 0;
}

bool sl_missing_ranks(const struct sl_report *report, struct sl_missing *absent)
{
	struct seen *seen = sl_memory_must(calloc(report->process_count + 1, sizeof(*seen)));
	const struct sl_only *only = report->options.only;
	size_t seen_count = 0, at = 0;

	*absent = (struct sl_missing){0};
	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *process = &report->processes[i];

		if (process->trace->header.rank >= 0 && !sl_dry_card(&process->trace->header)) /* a dry run is one rank */
			seen[seen_count++] = (struct seen){report->images.run_of[process->image], process->trace->header.rank,
							   process->trace->header.world_size,
							   sl_header_setting(&process->trace->header, "ranks")};
	}
	if (seen_count && !(only && (only->rank >= 0 || only->pid >= 0)))
		qsort(seen, seen_count, sizeof(*seen), by_rank);
	else
		seen_count = 0;
	for (size_t first = 0, end; first < seen_count; first = end) {
		for (end = first + 1; end < seen_count && seen[end].run == seen[first].run;)
			end++;
		count(absent, &at, seen + first, end - first);
	}
	free(seen);
	return absent->ranks;
}

char *sl_missing_words(const struct sl_missing *absent)
{
	return sl_memory_print("no trace of rank%s %s, of %llu: no GPU was used there, or the trace is elsewhere",
			       absent->ranks == 1 ? "" : "s", absent->which, (unsigned long long)absent->of);
}

bool sl_missing_newer(const struct sl_trace *trace)
{
	return trace->header.unknown_verbs || trace->header.unknown_kinds || trace->unknown_maps || trace->unknown_columns;
}

/* The recorder's note (agent/symbols/objects.c, agent/life/writer.c) of calls that it did not see; NULL: none. */
static const char *note_of_hole(const struct sl_trace *trace)
{
	for (size_t i = 0; i < trace->defs.notes.count; i++)
		if (!strncmp(trace->defs.notes.item[i], "a library was opened ", 21) ||
		    !strncmp(trace->defs.notes.item[i], "a forked child could not make a trace ", 38))
			return trace->defs.notes.item[i];
	return NULL;
}

void sl_missing_say_newer(const struct sl_trace *trace, bool *warned)
{
	if (!*warned && sl_missing_newer(trace)) {
		sl_escape_print(stderr, "stormlog-analyze: %s: " SL_ABSENT_NEWER "\n", sl_paths_name(trace->name));
		*warned = true;
	}
}

#define NAMES "their names could not be looked up: "

bool sl_missing_say_names(void)
{
	static bool warned;

	if (sl_library_lacked() && !warned) {
		sl_escape_print(stderr, "stormlog-analyze: native frames: " NAMES "%s; %stry again\n",
				strerror(sl_library_lacked()),
				sl_library_lacked() == EIO ? "" : "raise the limit (ulimit -n or -v, or the container's) and ");
		warned = true;
	}
	return warned;
}

bool sl_missing_torn(const struct sl_damage *damage)
{
	return (damage->damaged && !damage->readable) || damage->lost_events;
}

uint64_t sl_missing_events(const struct sl_report *report, uint64_t *of)
{
	uint64_t lost = 0;

	*of = 0;
	for (unsigned i = 0; i < report->process_count; i++) {
		lost += sl_trace_lost_events(report->processes[i].trace);
		*of += report->processes[i].model->events;
	}
	*of += lost;
	return lost;
}

bool sl_missing_unreadable(const struct sl_report *report)
{
	bool torn = sl_library_lacked() || report->unread.count || report->images.copies.damaged || report->images.unseen.count;

	for (unsigned i = 0; i < report->process_count; i++)
		torn |= sl_missing_torn(&report->processes[i].trace->damage);
	return torn;
}

/* Why less is known of a process than happened; NULL: all is known.  *damaged as sl_missing_told has it. */
static const char *why_partly(const struct sl_process *process, bool *damaged)
{
	const struct sl_trace *trace = process->trace;
	const char *hole = note_of_hole(trace);

	*damaged = trace->damage.damaged || trace->damage.lost_events || trace->gap_events;
	if (*damaged)
		return "parts of the trace are missing, so less is known than happened";
	*damaged = trace->status == SL_STATUS_UNKNOWN && !trace->how && !trace->ring.path;
	if (*damaged)
		return "it has no footer and its ring is not here, so its last events may be missing";
	if (sl_defs_capability(&trace->defs, "recorded"))
		return "it was not recorded all the time";
	if (trace->status == SL_STATUS_RUNNING)
		return "it still runs";
	if (hole)
		return hole;
	if (sl_missing_newer(trace) || process->model->unknown_hooks)
		return SL_ABSENT_NEWER;
	if (process->model->unlooked)
		return "there was too much to look through, so parts of its figures are missing";
	return NULL;
}

#define FIRST(list) ((list).count ? *(list).item : NULL)

/* Told under the last part of a path, which may end in a slash. */
static unsigned tell_path(sl_missing_told *tell, void *context, bool damaged, const char *path, const char *message)
{
	char *copy = path ? sl_memory_copy(path) : NULL;

	if (copy)
		tell(context, damaged, basename(copy), message);
	free(copy);
	return path != NULL;
}

unsigned sl_missing_tell(const struct sl_report *report, sl_missing_told *tell, void *context)
{
	const struct sl_images *images = &report->images;
	struct sl_missing absent;
	unsigned count = 0;

	for (unsigned i = 0; i < report->process_count; i++) {
		const char *name = sl_paths_name(report->processes[i].trace->name);
		bool damaged;
		const char *why = why_partly(&report->processes[i], &damaged);

		if (why && ++count)
			tell(context, damaged, name, why);
	}
	for (size_t i = 0; i < report->unread.count; i++, count++)
		tell(context, true, sl_paths_name(images->images[report->unread.item[i]].name), "it cannot be read");
	if (images->copies.damaged)
		count += tell_path(tell, context, true, FIRST(images->broken) ?: report->path, "parts of the run cannot be read");
	count += tell_path(tell, context, true, FIRST(images->unseen), "it cannot be read, and a part of the run may be in it");
	count += tell_path(tell, context, false, FIRST(images->strangers), "files of other users were not read");
	count += tell_path(tell, context, false, FIRST(images->links), "links that lead to no trace by its name were not read");
	count += tell_path(tell, context, false, FIRST(images->closed), "folders that may not be listed were not read");
	count += tell_path(tell, context, false, FIRST(images->empty), SL_ABSENT_EMPTY);
	if (sl_library_lacked() && ++count) {
		char *words = sl_memory_print(NAMES "%s", strerror(sl_library_lacked()));

		tell(context, true, "native frames", words);
		free(words);
	}
	if (sl_missing_ranks(report, &absent) && ++count) {
		char *words = sl_missing_words(&absent);

		tell(context, false, "ranks", words);
		free(words);
	}
	return count;
}
