/* SPDX-License-Identifier: MIT */
#include <sys/stat.h>

#include "analyzer/pipeline/pipeline.h"

#include "analyzer/base/escape.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/terminal.h"
#include "analyzer/analyses/analysis.h"
#include "analyzer/base/memory.h"
#include "analyzer/report/missing.h"
#include "analyzer/report/merge_lines.h"
#include "analyzer/report/devices.h"
#include "analyzer/base/format.h"
#include "analyzer/base/stats.h"
#include "analyzer/model/replay/replay.h"
#include "analyzer/model/counts/between.h"
#include "analyzer/model/counts/survivors.h"
#include "analyzer/source/source.h"
#include "analyzer/summary/summary.h"
#include "analyzer/trace/files.h"
#include "common/fnv.h"
#include "common/now.h"

static uint64_t size_of(const char *path)
{
	struct stat st;

	return path && !stat(path, &st) ? (uint64_t)st.st_size : 0;
}

/* Bytes of the image's files; for a process in a summary, of its frame. */
static uint64_t weight_of(const struct sl_image *image)
{
	uint64_t bytes = image->bytes;

	if (image->summary)
		return bytes;
	for (unsigned f = 0; f < image->file_count; f++)
		bytes += size_of(image->files[f]);
	return bytes + size_of(image->ring);
}

struct weighed {
	uint64_t bytes;
	const struct sl_image *image;
};

/* A total order, so that the order of the listing does not matter. */
static int heaviest_first(const void *a, const void *b)
{
	const struct weighed *x = a, *y = b;
	const char *one = x->image->summary, *other = y->image->summary;

	return SL_FALLING(x->bytes, y->bytes) ?: strcmp(x->image->name, y->image->name)
	       ?: strcmp(one ? one : "", other ? other : "");
}

/* Gives each image, largest first, to the part with the fewest bytes so far.  is_mine: one flag for each image. */
static void deal(const struct sl_images *folder, unsigned part, unsigned parts, bool *is_mine)
{
	struct weighed *order = sl_memory_must(calloc(folder->image_count + 1, sizeof(*order)));
	uint64_t *has = sl_memory_must(calloc(parts, sizeof(*has)));

	for (unsigned i = 0; i < folder->image_count; i++)
		order[i] = (struct weighed){weight_of(&folder->images[i]), &folder->images[i]};
	if (folder->image_count)
		qsort(order, folder->image_count, sizeof(*order), heaviest_first);
	for (unsigned i = 0; i < folder->image_count; i++) {
		unsigned lightest = 0;

		for (unsigned p = 1; p < parts; p++)
			if (has[p] < has[lightest])
				lightest = p;
		has[lightest] += order[i].bytes + 1; /* + 1 because opening a file costs something too */
		is_mine[order[i].image - folder->images] = lightest == part;
	}
	free(order);
	free(has);
}

/*
 * Divides the images of a folder among processes that do not communicate.
 * To be called after the last sl_images_add and before grouping.  Keeps only the part-th (from 0) of so many parts with about
 * the same number of bytes.  While the files stay the same, every process computes the same parts.  Asks for each file's size.
 */
static void shards_keep(struct sl_images *folder, unsigned part, unsigned parts)
{
	bool *is_mine = sl_memory_must(calloc(folder->image_count + 1, sizeof(*is_mine)));
	unsigned kept_count = 0;

	deal(folder, part, parts, is_mine);
	for (unsigned i = 0; i < folder->image_count; i++)
		if (is_mine[i])
			folder->images[kept_count++] = folder->images[i];
		else
			sl_images_drop(&folder->images[i]);
	folder->image_count = kept_count;
	free(is_mine);
}

/* To be called before shards_keep: each image gets the listing, so that a reader of some parts knows of the others. */
static void shards_list(struct sl_images *folder)
{
	struct sl_listing listing = {.size = folder->image_count};

	for (unsigned i = 0; i < folder->image_count; i++)
		listing.key += sl_fnv_text(sl_paths_name(folder->images[i].name));
	for (unsigned i = 0; i < folder->image_count; i++)
		if (!folder->images[i].listing.size)
			folder->images[i].listing = listing;
}

/* To be called before grouping: adds a line of damage for each listing that lacks processes. */
static void shards_miss(struct sl_images *folder)
{
	struct sl_idmap counts = {0};

	for (unsigned i = 0; i < folder->image_count; i++) {
		const struct sl_listing *listing = &folder->images[i].listing;

		if (listing->size)
			sl_idmap_set(&counts, listing->key, sl_idmap_get(&counts, listing->key, 0) + 1);
	}
	for (unsigned i = 0; i < folder->image_count; i++) {
		const struct sl_listing *listing = &folder->images[i].listing;
		uint32_t count = listing->size ? sl_idmap_get(&counts, listing->key, 0) : 0;

		if (!count)
			continue;
		if (count < listing->size)
			sl_damage_add(&folder->copies, folder->images[i].summary, -1,
				      "%llu of %llu processes are in parts of the summary that are not here",
				      (unsigned long long)(listing->size - count), (unsigned long long)listing->size);
		sl_idmap_set(&counts, listing->key, 0); /* said */
	}
	sl_idmap_free(&counts);
}

#define STRETCHES_PROCESSES 64
#define NOTES_MAX	    4	/* of a process, on the screen */
#define APART_S		    600 /* ranks of a run start, and clocks of machines differ, by less */

struct job {
	struct sl_report *report;
	const struct sl_pipeline_options *options;
	unsigned *images;	  /* of the chosen run */
	struct sl_damage *damage; /* for each image that did not open */
	_Atomic unsigned next;
	_Atomic uint64_t events, due_ns;
	bool on_terminal;
};

/* Shows a line on the terminal when the work takes more than a second.  Any thread, one at a time. */
static void progress(struct job *job, uint64_t events)
{
	uint64_t all = atomic_fetch_add(&job->events, events) + events, now, due = atomic_load(&job->due_ns);
	unsigned begun = atomic_load(&job->next), count = job->report->process_count;

	if (!job->on_terminal || (now = sl_now_ns(CLOCK_MONOTONIC)) < due ||
	    !atomic_compare_exchange_strong(&job->due_ns, &due, now + 200000000))
		return;
	sl_escape_print(stderr, "\r\033[K%s events, %u of %u processes", SL_NUMBER(all), begun < count ? begun : count, count);
	fflush(stderr);
}

static uint64_t end_of(const struct sl_process *process)
{
	uint64_t last = process->model->now_ns, footer = process->trace->footer_ns;

	return sl_process_unix(process, last > footer ? last : footer);
}

/* Where there are too many sites there are too many stacks too: only those up to the last kept site stay.  Ids grow. */
static void forget_the_crowd(struct sl_process *process)
{
	const struct sl_model *model = process->model;
	uint64_t python = 0, native = 0;

	for (size_t i = 0; i < model->sites.count; i++) {
		python = model->sites.item[i].stack.python > python ? model->sites.item[i].stack.python : python;
		native = model->sites.item[i].stack.native > native ? model->sites.item[i].stack.native : native;
	}
	sl_defs_cut(&process->trace->defs, python, native);
}

/* A running run may have got further images since its moments were computed; the newer ones have no moment. */
static const struct sl_stretch *span_of(const struct sl_pipeline_options *options, const struct sl_process *process)
{
	static const struct sl_stretch nothing = {.none = true};
	const struct sl_header *header = &process->trace->header;
	const struct sl_stretch *span;

	if (!options->spans)
		return NULL;
	span = process->image < options->span_count ? &options->spans[process->image] : &nothing;
	return span->pid == header->pid && span->started_ns == header->started_ns ? span : &nothing;
}

/* With more processes nobody looks at single windows, and counting for them would take a third of the memory. */
static bool tells_stretches(const struct job *job)
{
	return job->options->stretches && job->report->process_count <= STRETCHES_PROCESSES;
}

/* Memory gets its name after the call that made it, so a name that comes next counts at the moment, too. */
static bool gives_name(const struct sl_item *item)
{
	return item->hook && item->hook->verb == SL_VERB_NAME;
}

static void replay(struct job *job, struct sl_process *process)
{
	struct sl_trace *trace = process->trace;
	struct sl_order *order = sl_order_new(trace);
	const struct sl_stretch *span = span_of(job->options, process);
	uint64_t until = job->options->until_unix_ns, done = 0;
	const struct sl_item *item;

	if (until)
		until = until - trace->header.started_ns + trace->header.monotonic_ns;
	if (span)
		until = span->until_ns;
	process->model = sl_replay_new(&trace->header, &trace->defs);
	process->model->recent = job->options->oom_events;
	if (tells_stretches(job))
		process->model->stays = sl_memory_must(calloc(1, sizeof(*process->model->stays)));
	memcpy(process->model->sought, job->options->sought, sizeof(process->model->sought));
	if (job->options->windows)
		sl_timeline_window(&process->model->timeline, job->options->windows[process->image].begin_ns,
				   job->options->windows[process->image].until_ns);
	sl_replay_folded(process->model, &trace->folded);
	while ((item = sl_order_next(order))) {
		if (until && item->kind == SL_ITEM_EVENT && item->event->time_ns > until && !gives_name(item))
			break;
		sl_replay_apply(process->model, item);
		if (!(++done & 0xffff))
			progress(job, 0x10000);
	}
	sl_order_free(order);
	sl_survivors_end(process->model);
	sl_replay_end(process->model, sl_trace_lost_events(trace));
	if (sl_trace_ended(trace) == SL_ENDED_FAILED || sl_trace_ended(trace) == SL_ENDED_KILLED)
		sl_replay_failed(process->model);
	sl_late_unwinder_name(process->model);
	process->started_unix_ns = trace->header.started_ns;
	process->ended_unix_ns = end_of(process);
	process->gone = span ? span->none : until && !item && !sl_process_lived(process, job->options->until_unix_ns);
	if (span) {
		sl_between_born(process->model, span->since_ns);
		if (job->options->variables)
			sl_named_variables(process->model);
		else
			(job->options->tensors ? sl_tensors_born : sl_named_born)(process->model, span->since_ns);
	}
	if (process->model->crowded)
		forget_the_crowd(process);
	process->session_id = sl_report_session(process->trace);
	for (const struct sl_analysis *const *a = sl_analyses; *a && !job->options->models_only; a++)
		if ((*a)->process && ((*a)->of_windows || process->model->recording.follows_process))
			(*a)->process(process);
	sl_replay_rest(process->model, job->options->lives || tells_stretches(job));
	sl_trace_rest(trace);
}

static void open_one(struct job *job, struct sl_process *process, const struct sl_image *image, struct sl_damage *damage)
{
	if (image->summary && (job->options->until_unix_ns || job->options->spans)) {
		sl_damage_add(damage, image->summary, -1, "a summary is of the end: an earlier moment needs the trace");
		return;
	}
	if (image->summary && job->options->each)
		return; /* its frame is copied unchanged */
	if (image->summary) {
		sl_summary_open(process, image, damage);
		return;
	}
	process->trace = sl_trace_open(image, damage);
	if (process->trace)
		replay(job, process);
}

static void *work(void *data)
{
	struct job *job = data;
	unsigned i;

	while ((i = atomic_fetch_add(&job->next, 1)) < job->report->process_count) {
		struct sl_process *process = &job->report->processes[i];

		process->image = job->images[i];
		open_one(job, process, &job->report->images.images[job->images[i]], &job->damage[i]);
		if (job->options->each)
			job->options->each(job->options->each_context, i, process, &job->report->images.images[job->images[i]],
					   &job->damage[i]);
	}
	return NULL;
}

static void work_over_threads(struct job *job)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned count = job->options->threads ? job->options->threads : cores > 0 ? (unsigned)cores : 1;
	pthread_t *threads;

	if (count > job->report->process_count)
		count = job->report->process_count;
	threads = sl_memory_must(calloc(count + 1, sizeof(*threads)));
	for (unsigned i = 1; i < count; i++)
		if (pthread_create(&threads[i], NULL, work, job))
			threads[i] = 0;
	work(job);
	for (unsigned i = 1; i < count; i++)
		if (threads[i])
			pthread_join(threads[i], NULL);
	free(threads);
}

static void warn_damage(struct sl_report *report, const struct sl_damage *damage)
{
	for (unsigned i = 0; i < damage->lines; i++)
		sl_report_warn(report, "%s", damage->line[i]);
	if (damage->count > damage->lines)
		sl_report_warn(report, "%u more of the same", damage->count - damage->lines);
}

static void warn_watched(struct sl_report *report, const struct sl_process *process, const char *name)
{
	const char *bytes = sl_defs_capability(&process->trace->defs, "before_attach_bytes");

	sl_report_warn(report, "%s: watched from outside for %s: how the process ended is not known", name,
		       SL_SPAN(process->model->now_ns - process->model->first_ns));
	if (bytes)
		sl_report_warn(report, "%s: before attach: %s held on all devices, contexts included, by NVML", name,
			       SL_SIZE(strtoull(bytes, NULL, 10)));
}

/* The recorder's notes on itself: calls that the trace lacks, and why. */
static void warn_notes(struct sl_report *report, const struct sl_defs *defs, const char *name)
{
	size_t printed = defs->notes.count < NOTES_MAX ? defs->notes.count : NOTES_MAX;

	for (size_t i = 0; i < printed; i++)
		sl_report_warn(report, "%s: %s", name, defs->notes.item[i]);
	if (printed < defs->notes.count)
		sl_report_warn(report, "%s: %zu more notes in report.json", name, defs->notes.count - printed);
}

static void warn_unknown(struct sl_report *report, const struct sl_process *process)
{
	const struct sl_trace *trace = process->trace;
	const char *name = sl_paths_name(trace->name);

	if (trace->how && trace->status == SL_STATUS_UNKNOWN && process->model->recording.follows_process)
		warn_watched(report, process, name);
	else if (trace->status == SL_STATUS_UNKNOWN && trace->ring.path)
		sl_report_warn(
			report,
			"%s: how it ended is not known: its runtime (Go) ends a program by a system call, as little seen as a kill",
			name);
	else if (trace->status == SL_STATUS_UNKNOWN && !trace->how)
		sl_report_warn(report, "%s: how it ended is not known: it has no footer and its ring is not here", name);
	if (process->model->unknown_hooks)
		sl_report_warn(report, "%s: %llu events name a call that its header does not have", name,
			       (unsigned long long)process->model->unknown_hooks);
	if (process->model->crowded)
		sl_report_warn(report,
			       "%s: more than %d places asked for memory; %llu requests of the later ones count as one place for "
			       "each call",
			       name, SL_SITES_MAX, (unsigned long long)process->model->crowded);
	if (process->unmeasured)
		sl_report_warn(report,
			       "%s: of the places that may keep memory only the first %u were judged; %u later ones were not", name,
			       process->measured, process->unmeasured);
	if (process->model->unlooked)
		sl_report_warn(
			report,
			"%s: %llu times there were too many blocks, places, threads or handles to look through for a pool's "
			"memory, "
			"the thread worked for, a handle's memory, what a graph's launch allocates or who held memory at an error",
			name, (unsigned long long)process->model->unlooked);
	if (process->model->ooms_total > process->model->ooms.count)
		sl_report_warn(report, "%s: of %llu out-of-memory errors the first %zu and the last are listed", name,
			       (unsigned long long)process->model->ooms_total, process->model->ooms.count - 1);
	warn_notes(report, &trace->defs, name);
}

static void warn_absent(struct sl_report *report)
{
	struct sl_missing absent;
	char *words;

	if (report->images.empty.count && report->process_count) /* where it is all, the caller says so */
		sl_report_warn(report, "%s: " SL_ABSENT_EMPTY, *report->images.empty.item);
	if (!sl_missing_ranks(report, &absent))
		return;
	words = sl_missing_words(&absent);
	sl_report_warn(report, "%s", words);
	free(words);
}

static int weight(const char *severity)
{
	return !strcmp(severity, "critical") ? 2 : !strcmp(severity, "warning") ? 1 : 0;
}

static uint64_t bytes_of(const struct sl_finding *finding)
{
	return finding->bytes == SL_UNKNOWN ? 0 : finding->bytes;
}

/* Most severe first, then by bytes, then in the order found. */
static int by_severity(const void *a, const void *b)
{
	const struct sl_finding *x = *(struct sl_finding *const *)a, *y = *(struct sl_finding *const *)b;

	if (weight(x->severity) != weight(y->severity))
		return weight(y->severity) - weight(x->severity);
	return SL_FALLING(bytes_of(x), bytes_of(y)) ?: SL_RISING(x, y);
}

static void sort_findings(struct sl_report *report)
{
	size_t count = report->findings.count;
	struct sl_finding *sorted = sl_memory_must(calloc(count + 1, sizeof(*sorted)));
	struct sl_finding **order = sl_memory_must(calloc(count + 1, sizeof(*order)));

	for (size_t i = 0; i < count; i++)
		order[i] = &report->findings.item[i];
	qsort(order, count, sizeof(*order), by_severity);
	for (size_t i = 0; i < count; i++)
		sorted[i] = *order[i];
	free(order);
	free(report->findings.item);
	report->findings.item = sorted;
	report->findings.capacity = count + 1;
}

/* A snapshot beside recordings is of another time, and does not count. */
static void find_span(struct sl_report *report)
{
	bool recorded = sl_report_recorded(report);

	report->started_unix_ns = report->process_count ? UINT64_MAX : 0;
	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *p = &report->processes[i];

		if (recorded && !p->model->recording.follows_process)
			continue;

		uint64_t begin_ns = p->model->timeline.begin_ns, begin = begin_ns ? sl_process_unix(p, begin_ns) : UINT64_MAX;

		begin = p->started_unix_ns && p->started_unix_ns < begin ? p->started_unix_ns : begin;
		report->started_unix_ns = begin < report->started_unix_ns ? begin : report->started_unix_ns;
		report->ended_unix_ns = p->ended_unix_ns > report->ended_unix_ns ? p->ended_unix_ns : report->ended_unix_ns;
	}
	if (report->started_unix_ns > report->ended_unix_ns)
		report->started_unix_ns = report->ended_unix_ns;
}

/* The run began before the processes that were asked for. */
static void begin_with_all(struct sl_report *report)
{
	uint64_t began = report->images.runs[report->run].started_ns;

	if (began && began < report->started_unix_ns)
		report->started_unix_ns = began;
}

/* False: no header tells which run the image is of, and it is older than this one. */
static bool may_be_of_run(const struct sl_report *report, unsigned image)
{
	const struct sl_images *images = &report->images;
	int64_t began = (int64_t)(images->runs[report->run].started_ns / 1000000000);

	return images->runs[images->run_of[image]].id[0] || sl_image_written(&images->images[image], began - APART_S);
}

static void run_analysis(const struct sl_analysis *analysis, struct sl_report *report)
{
	for (unsigned i = 0; i < report->process_count; i++) {
		if (analysis->find_in_process)
			analysis->find_in_process(report, i);
		for (unsigned d = 1; d <= SL_DEVICES_MAX && analysis->find_on_device; d++)
			if (report->processes[i].model->devices[d])
				analysis->find_on_device(report, i, report->processes[i].model->devices[d]);
	}
	if (analysis->run)
		analysis->run(report);
}

/* In the order of images, so that the report does not depend on threads. */
static void reduce(struct job *job)
{
	struct sl_report *report = job->report;
	unsigned kept_count = 0;

	warn_damage(report, &report->images.copies);
	for (unsigned i = 0; i < report->process_count; i++) {
		struct sl_process *process = &report->processes[i];

		warn_damage(report, process->trace ? &process->trace->damage : &job->damage[i]);
		sl_damage_free(&job->damage[i]);
		process->symbols = report->symbols;
		if (process->trace)
			report->processes[kept_count++] = *process;
		else if (sl_images_is_all(job->options->run) || may_be_of_run(report, job->images[i]))
			*SL_PUSH(&report->unread) = job->images[i];
	}
	report->process_count = kept_count;
	for (unsigned i = 0; i < kept_count; i++)
		report->processes[i].report = report;
	sl_report_find_parents(report);
	find_span(report);
	if (job->options->only && kept_count)
		begin_with_all(report);
	for (unsigned i = 0; i < kept_count; i++)
		if (sl_missing_newer(report->processes[i].trace))
			sl_report_warn(report, "%s: " SL_ABSENT_NEWER, sl_paths_name(report->processes[i].trace->name));
	sl_report_join_warnings(report, 0);
	report->damage_lines = (unsigned)report->warnings.count;
	for (unsigned i = 0; i < kept_count; i++)
		warn_unknown(report, &report->processes[i]);
	sl_report_join_warnings(report, report->damage_lines);
	warn_absent(report);
	sl_devices_join(report);
	for (const struct sl_analysis *const *a = sl_analyses; *a && !report->options.models_only; a++)
		run_analysis(*a, report);
	sort_findings(report);
}

bool sl_pipeline_is_native(char *const *paths, unsigned count)
{
	struct sl_images folder = {.one_is_enough = true};
	bool found;

	for (unsigned i = 0; i < count && !folder.image_count; i++)
		sl_images_add(&folder, paths[i]);
	found = folder.image_count || folder.strangers.count ||
		folder.links.count; /* why those are not read is reported by who reads the rest */
	sl_images_free(&folder);
	return found;
}

static bool is_wanted(const struct sl_pipeline_options *options, const struct sl_image *image)
{
	const struct sl_only *only = options->only;

	return !only || ((only->rank < 0 || only->rank == image->rank) && (only->pid < 0 || only->pid == image->pid));
}

enum sl_pipeline_result sl_pipeline_run(struct sl_report *report, char *const *paths, unsigned count,
					const struct sl_pipeline_options *options)
{
	struct job job = {.report = report, .options = options};
	bool all = sl_images_is_all(options->run), any;
	int chosen;

	*report = (struct sl_report){.path = paths[0],
				     .paths = paths,
				     .path_count = count,
				     .options = *options,
				     .symbols = sl_symbols_new(),
				     .source = options->reads_source ? sl_source_new() : NULL};
	if (options->found) {
		report->images = *options->found;
		*options->found = (struct sl_images){0};
	}
	for (unsigned i = 0; i < count && !options->found; i++)
		if (!sl_images_add(&report->images, paths[i])) {
			report->path = paths[i];
			return SL_PIPELINE_NO_PATH;
		}
	any = report->images.image_count || report->images.summaries.count;
	report->images.copies_too = options->each != NULL;
	if (options->each) {
		warn_damage(report, &report->images.copies);
		report->damage_lines = (unsigned)report->warnings.count;
	}
	/* a summary that cannot be read, a folder that may hold others, or another user's file is not left out of another */
	if (options->each && (report->images.copies.damaged || report->images.closed.count || report->images.unseen.count ||
			      report->images.strangers.count))
		return SL_PIPELINE_UNREADABLE;
	if (options->parts && all)
		shards_list(&report->images);
	if (!options->each)
		shards_miss(&report->images);
	if (options->parts)
		shards_keep(&report->images, options->part - 1, options->parts);
	sl_images_group(&report->images);
	chosen = sl_images_choose(&report->images, options->run);
	if (chosen < -1)
		return SL_PIPELINE_NO_RUN;
	report->run = chosen > 0 ? (unsigned)chosen : 0;
	job.images = sl_memory_must(calloc(report->images.image_count + 1, sizeof(*job.images)));
	job.damage = sl_memory_must(calloc(report->images.image_count + 1, sizeof(*job.damage)));
	report->processes = sl_memory_must(calloc(report->images.image_count + 1, sizeof(*report->processes)));
	for (unsigned i = 0; i < report->images.image_count; i++)
		if (sl_images_is_of(&report->images, i, chosen) && is_wanted(options, &report->images.images[i]))
			job.images[report->process_count++] = i;
	if (options->begin)
		options->begin(options->each_context, report->process_count);
	job.on_terminal = !options->quiet && sl_terminal_rewrites(STDERR_FILENO);
	job.due_ns = sl_now_ns(CLOCK_MONOTONIC) + 1000000000;
	work_over_threads(&job);
	if (job.on_terminal)
		fputs("\r\033[K", stderr);
	if (!options->each)
		reduce(&job);
	for (unsigned i = 0; options->each && i < report->process_count; i++)
		sl_damage_free(&job.damage[i]);
	free(job.images);
	free(job.damage);
	if (options->only && (options->only->rank >= 0 || options->only->pid >= 0) && !report->process_count && any)
		return SL_PIPELINE_NONE_SUCH;
	/* with few processes some parts are empty, and so are their summaries */
	return report->process_count || (any && options->each) ? SL_PIPELINE_FINE : SL_PIPELINE_UNREADABLE;
}
