/* SPDX-License-Identifier: MIT */
#include "analyzer/follow/follow.h"

#include <malloc.h>
#include <sys/stat.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/pool.h"
#include "analyzer/model/replay/replay.h"
#include "analyzer/trace/inner.h"
#include "common/now.h"

/* Frees the texts and stacks of a run with its last process: a reader that follows a node for weeks sees thousands of runs. */
struct sl_follow_run {
	char *id;
	uid_t owner;	/* of what was added: another user may write the same id into a recording of his own */
	char *shown_id; /* the id as it is shown where another owner's run has it; NULL: as it is */
	struct sl_pool *pool;
	unsigned processes;
};

struct sl_follow {
	SL_VECTOR(struct sl_followed *) processes;
	SL_VECTOR(struct sl_follow_run *) runs;
	SL_VECTOR(char *) paths;
	struct sl_map states; /* names of images: FOLLOWED, or OF_ANOTHER_RUN of their folder */
	struct sl_symbols *symbols;
	char *run; /* follow only this run; NULL: any run */
};

enum { FOLLOWED = 1, OF_ANOTHER_RUN };

struct sl_follow *sl_follow_new(void)
{
	struct sl_follow *follow = sl_memory_must(calloc(1, sizeof(*follow)));

	follow->symbols = sl_symbols_new();
	return follow;
}

static struct sl_follow_run *enter(struct sl_follow *follow, const char *id, uid_t owner)
{
	struct sl_follow_run *run = NULL;
	bool is_known = false;

	for (size_t i = 0; i < follow->runs.count && !run; i++)
		if (!strcmp(follow->runs.item[i]->id, id)) {
			is_known = true;
			run = follow->runs.item[i]->owner == owner ? follow->runs.item[i] : NULL;
		}
	if (!run) {
		run = *SL_PUSH(&follow->runs) = sl_memory_must(calloc(1, sizeof(*run)));
		run->id = strdup(id);
		run->owner = owner;
		run->shown_id = is_known && *id ? sl_memory_print("%s (of user %u)", id, (unsigned)owner) : NULL;
		run->pool = sl_pool_new();
	}
	run->processes++;
	return run;
}

static void leave(struct sl_follow *follow, struct sl_follow_run *run)
{
	size_t at = 0;

	if (--run->processes)
		return;
	while (follow->runs.item[at] != run)
		at++;
	follow->runs.item[at] = follow->runs.item[--follow->runs.count];
	sl_pool_free(run->pool);
	free(run->shown_id);
	free(run->id);
	free(run);
}

static void close_process(struct sl_followed *followed)
{
	struct sl_process *process = &followed->process;

	sl_places_free(process->places);
	sl_roles_free(process->roles);
	sl_replay_free(process->model);
	sl_trace_close(process->trace);
	free(process->session_id);
	*process = (struct sl_process){0};
}

/* Closes the process and forgets it. */
static void drop(struct sl_follow *follow, struct sl_followed *followed)
{
	close_process(followed);
	leave(follow, followed->run);
	free(followed);
}

void sl_follow_free(struct sl_follow *follow)
{
	if (!follow)
		return;
	for (size_t i = 0; i < follow->processes.count; i++)
		drop(follow, follow->processes.item[i]);
	free(follow->runs.item);
	for (size_t i = 0; i < follow->paths.count; i++)
		free(follow->paths.item[i]);
	free(follow->processes.item);
	free(follow->paths.item);
	sl_map_free(&follow->states);
	sl_symbols_free(follow->symbols);
	free(follow->run);
	free(follow);
}

void sl_follow_only(struct sl_follow *follow, const char *run_id)
{
	free(follow->run);
	follow->run = strdup(run_id);
}

unsigned sl_follow_count(const struct sl_follow *follow)
{
	return (unsigned)follow->processes.count;
}

bool sl_follow_all_ended(const struct sl_follow *follow)
{
	for (size_t i = 0; i < follow->processes.count; i++)
		if (!sl_follow_process(follow, (unsigned)i)->ended)
			return false;
	return follow->processes.count > 0;
}

struct sl_followed *sl_follow_process(const struct sl_follow *follow, unsigned index)
{
	return follow->processes.item[index];
}

/* ---- one process */

/* False: the call has not returned; it goes into the model's list of calls in flight and holds back nothing. */
static bool is_done(struct sl_model *model, const struct sl_item *item)
{
	if (item->kind != SL_ITEM_EVENT || !(item->event->flags & SL_FLAG_in_flight))
		return true;
	if (item->hook)
		*SL_PUSH(&model->in_flight) =
			(struct sl_in_flight){(uint16_t)item->event->api, item->thread, item->event->bytes, item->event->time_ns};
	return false;
}

/* A free takes effect when it begins, so later events wait until it has returned, but at most SL_FOLLOW_HOLD_NS. */
static bool holds(const struct sl_item *item, uint64_t now)
{
	return item->hook && item->hook->stamped_before && item->event->time_ns + SL_FOLLOW_HOLD_NS > now;
}

static void apply(struct sl_followed *followed, const struct sl_item *item)
{
	bool abandoned = item->kind == SL_ITEM_EVENT && item->event->flags & SL_FLAG_abandoned;

	if (sl_item_time(item) < followed->applied_ns && item->kind != SL_ITEM_EVENT) {
		followed->late_records++;
	} else if (sl_item_time(item) < followed->applied_ns && !abandoned) {
		followed->late++;
		followed->late_ever++;
	} else if (!abandoned) {
		followed->applied_ns = sl_item_time(item);
	}
	sl_replay_apply(followed->process.model, item);
}

/* Applies the events up to `limit_ns`, of files and ring, that were not applied before. */
static bool pass(struct sl_followed *followed, uint64_t limit_ns, uint64_t now)
{
	struct sl_model *model = followed->process.model;
	struct sl_order *order = sl_order_new(followed->process.trace);
	const struct sl_item *item;
	bool any = false;

	model->in_flight.count = 0;
	while ((item = sl_order_next(order))) {
		if (!is_done(model, item)) {
			if (item->event->time_ns < limit_ns && limit_ns != UINT64_MAX && holds(item, now))
				limit_ns = item->event->time_ns;
		} else if (sl_item_time(item) <= limit_ns) {
			apply(followed, item);
			sl_order_take(order);
			any = true;
		}
	}
	sl_order_suspend(order);
	return any;
}

/* All events up to the returned time have arrived.  No limit: the process has ended, or its clock is not ours. */
static uint64_t limit_of(const struct sl_trace *trace, uint64_t now)
{
	bool lives = trace->ring.alive || (trace->header.watcher && !trace->ring.path);
	bool runs = trace->status == SL_STATUS_RUNNING && lives && now > trace->header.monotonic_ns;

	return !runs ? UINT64_MAX : now - (trace->ring.alive ? SL_FOLLOW_BEHIND_NS : SL_FOLLOW_WATCHED_NS);
}

static bool open_process(struct sl_followed *followed, const struct sl_image *image)
{
	struct sl_process *process = &followed->process;
	struct sl_damage damage = {0};
	uint64_t begin = sl_now_ns(CLOCK_MONOTONIC);

	process->trace = sl_trace_open(image, &damage);
	sl_damage_free(&damage);
	if (!process->trace)
		return false;
	if (followed->run->shown_id)
		process->trace->header.run_id = followed->run->shown_id;
	sl_live_passes_begin(process->trace);
	process->model = sl_replay_new(&process->trace->header, &process->trace->defs);
	process->model->timeline.bare = ~(1u << SL_LINE_KNOWN); /* live views draw only this line, and each line takes 96 KiB */
	sl_replay_folded(process->model, &process->trace->folded);
	process->started_unix_ns = process->trace->header.started_ns;
	process->session_id = sl_report_session(process->trace);
	followed->applied_ns = followed->late = followed->late_records = 0;
	pass(followed, limit_of(process->trace, begin), begin);
	malloc_trim(0); /* the replay of the whole file needed more memory than following does */
	followed->replayed_ns = sl_now_ns(CLOCK_MONOTONIC);
	followed->replay_cost_ns = followed->replayed_ns - begin;
	followed->replays++;
	return true;
}

/* Replays from the files.  False: they are gone. */
static bool replay_again(struct sl_follow *follow, struct sl_followed *followed)
{
	const struct sl_trace *trace = followed->process.trace;
	struct sl_images images = {0};
	struct stat st; /* access() would check the real user, without capabilities */
	bool found;

	if (stat(trace->name, &st) && trace->cursor->ring)
		sl_images_add(&images, trace->cursor->ring);
	else
		sl_images_add(&images, trace->name);
	sl_images_group(&images);
	found = images.image_count == 1;
	if (found) {
		close_process(followed);
		found = open_process(followed, &images.images[0]);
		followed->process.symbols = follow->symbols;
	}
	sl_images_free(&images);
	return found;
}

static void end(struct sl_followed *followed)
{
	struct sl_process *process = &followed->process;
	uint64_t last = process->model->now_ns, footer = process->trace->footer_ns;

	sl_replay_end(process->model, sl_trace_lost_events(process->trace));
	if (sl_trace_ended(process->trace) == SL_ENDED_FAILED || sl_trace_ended(process->trace) == SL_ENDED_KILLED)
		sl_replay_failed(process->model);
	process->ended_unix_ns = sl_process_unix(process, last > footer ? last : footer);
	followed->ended = true;
}

static bool lives(const struct sl_trace *trace)
{
	const struct sl_header *header = &trace->header;

	return header->boot_id && header->pid > 0 &&
	       sl_ring_process_lives(header->boot_id, (uint64_t)header->pid, header->process_start);
}

/* True: the ring is gone although the trace has no footer and the process lives. */
static bool is_removed(const struct sl_trace *trace)
{
	return trace->cursor->ring && !trace->ring.path && trace->status == SL_STATUS_UNKNOWN && lives(trace);
}

/* 1: something is new; 0: nothing; -1: it can no longer be read. */
static int poll_process(struct sl_follow *follow, struct sl_followed *followed)
{
	uint64_t now = sl_now_ns(CLOCK_MONOTONIC);
	bool worn, ends;
	int changed;

	if (!sl_live_passes_next(followed->process.trace))
		return replay_again(follow, followed) ? 1 : -1;
	sl_places_free(followed->process.places); /* stacks were added */
	sl_roles_free(followed->process.roles);
	followed->process.places = NULL;
	followed->process.roles = NULL;
	changed = pass(followed, limit_of(followed->process.trace, now), now);
	if (is_removed(followed->process.trace))
		return -1;
	ends = followed->process.trace->status != SL_STATUS_RUNNING;
	worn = followed->late && now - followed->replayed_ns > 100 * followed->replay_cost_ns;
	if (worn || (ends && (followed->late || followed->late_records)))
		changed = replay_again(follow, followed) ? 1 : -1;
	if (ends && changed >= 0 && followed->process.trace->status != SL_STATUS_RUNNING) {
		end(followed);
		changed = 1;
	}
	return changed;
}

/* ---- which processes */

/* True: the folder was read before the new file's ring existed.  The caller looks again, to find the ring. */
static bool is_unborn(const struct sl_trace *trace)
{
	const struct sl_header *header = &trace->header;
	struct stat st;

	if (trace->ring.path || trace->footer_ns || header->watcher)
		return false;
	if (header->is_known)
		return lives(trace);
	return !stat(trace->name, &st) && time(NULL) - st.st_mtime < SL_FOLLOW_YOUNG_S;
}

/* A process of which nothing can be read yet is tried again at the next look. */
static void meet(struct sl_follow *follow, const struct sl_image *image, const char *run, uid_t owner)
{
	struct sl_followed *followed = sl_memory_must(calloc(1, sizeof(*followed)));

	bool readable;

	followed->run = enter(follow, run, owner);
	sl_pool_use(followed->run->pool);
	readable = open_process(followed, image);
	sl_pool_use(NULL);
	if (!readable || is_unborn(followed->process.trace)) {
		drop(follow, followed);
		return;
	}
	followed->process.symbols = follow->symbols;
	*SL_PUSH(&follow->processes) = followed;
	*sl_map_at(&follow->states, image->name) = FOLLOWED;
}

/*
 * At first the newest run and the living processes of other runs are followed, later everything that appears.  A trace
 * without a header does not tell its run yet.
 */
static bool is_of_others(const struct sl_follow *follow, const struct sl_images *images, unsigned image, bool first)
{
	const struct sl_run *run = &images->runs[images->run_of[image]];

	if (!run->id[0])
		return false;
	if (follow->run)
		return strcmp(run->id, follow->run) != 0;
	return first && images->run_of[image] != 0 && !sl_image_lives(&images->images[image]);
}

/* named: the path is the file itself, so that it is followed whatever run its folder's newest is. */
static bool is_new(struct sl_follow *follow, const struct sl_image *image, bool named)
{
	uintptr_t state = *sl_map_at(&follow->states, image->name);

	return !state || (named && state == OF_ANOTHER_RUN);
}

static void look(struct sl_follow *follow, const char *path, bool first)
{
	struct sl_images images = {.packs_apart = true};
	struct stat st = {0};
	bool any = false, named;
	size_t packs;

	stat(path, &st);
	sl_images_add(&images, path);
	packs = images.packs.count;
	for (size_t i = 0; first && i < packs; i++) /* a snapshot of PyTorch's does not change */
		if (sl_archive_is_snapshot(images.packs.item[i]))
			sl_images_add(&images, images.packs.item[i]);
	named = S_ISREG(st.st_mode) && !follow->run && images.image_count == 1; /* a pack is followed as a folder is */
	for (unsigned i = 0; i < images.image_count; i++)
		any = any || is_new(follow, &images.images[i], named);
	if (any)
		sl_images_group(&images);
	if (first)
		sl_damage_print(&images.copies);
	for (unsigned i = 0; any && i < images.image_count; i++) {
		const struct sl_image *image = &images.images[i];

		if (!is_new(follow, image, named))
			continue;
		if (is_of_others(follow, &images, i, first))
			*sl_map_at(&follow->states, image->name) = OF_ANOTHER_RUN;
		else if (!follow->run || images.runs[images.run_of[i]].id[0])
			meet(follow, image, images.runs[images.run_of[i]].id, st.st_uid);
	}
	sl_images_free(&images);
}

bool sl_follow_add(struct sl_follow *follow, const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return false;
	for (size_t i = 0; i < follow->paths.count; i++)
		if (!strcmp(follow->paths.item[i], path))
			return true;
	*SL_PUSH(&follow->paths) = strdup(path);
	look(follow, path, true);
	return true;
}

void sl_follow_forget(struct sl_follow *follow, unsigned index)
{
	struct sl_followed *followed = follow->processes.item[index];

	for (size_t i = 0; followed->process.trace && i < follow->paths.count; i++)
		if (!strcmp(follow->paths.item[i], followed->process.trace->name)) {
			free(follow->paths.item[i]);
			follow->paths.item[i--] = follow->paths.item[--follow->paths.count];
		}
	drop(follow, followed);
	follow->processes.item[index] = follow->processes.item[--follow->processes.count];
	malloc_trim(0); /* give memory of a large run back to the system */
}

bool sl_follow_poll(struct sl_follow *follow)
{
	bool changed = false;
	size_t before = follow->processes.count;

	for (size_t i = 0; i < follow->paths.count; i++)
		look(follow, follow->paths.item[i], false);
	for (size_t i = 0; i < follow->processes.count; i++) {
		struct sl_followed *followed = follow->processes.item[i];
		int state;

		sl_pool_use(followed->run->pool);
		state = followed->ended ? 0 : poll_process(follow, followed);
		sl_pool_use(NULL);
		changed = changed || state;
		if (state < 0) {
			followed->ended = true;
			followed->removed = followed->process.trace && lives(followed->process.trace);
		}
		if (state < 0 && !followed->process.trace) {
			drop(follow, followed);
			follow->processes.item[i--] = follow->processes.item[--follow->processes.count];
		}
	}
	return changed || follow->processes.count != before;
}
