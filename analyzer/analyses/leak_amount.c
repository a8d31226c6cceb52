/* SPDX-License-Identifier: MIT */
#include "analyzer/analyses/freed_by_program.h"
#include "analyzer/analyses/leak.h"
#include "analyzer/base/amounts.h"
#include "analyzer/model/state/model.h"

bool sl_leak_by_count(const struct sl_track *track)
{
	return track->kind >= SL_OBJECT_CONTEXT || !track->born_bytes || track->kind == SL_KIND_imported;
}

/* True: the program ends without cleaning up.  Then as much lives on as was kept before the last round, whose blocks died. */
static bool lives_on(const struct sl_track *track, const struct sl_leak_windows *series)
{
	double live = sl_leak_by_count(track) ? (double)track->live_blocks : (double)track->live_bytes;

	return live > 0 && live >= series->kept[series->count * 3 / 4];
}

/* Leaves out blocks that were only in flight: a last window that is not full, and more than is kept. */
static struct sl_leak_windows steady_part(const struct sl_track_course *course, const struct sl_leak_windows *series, double kept)
{
	struct sl_leak_windows part = *series;

	if (part.count > 4 && course->births_in_last < course->births_per_window &&
	    part.tick[part.count - 1] == (double)course->windows[course->count - 1].begin_tick)
		part.count--;
	for (unsigned i = part.count; i-- && part.kept[i] > kept;)
		part.kept[i] = kept;
	return part;
}

/* What so many graphs of PyTorch's keep in their private pools, beside tensors. */
static uint64_t pools_of(const struct sl_model *model, int device, uint64_t graphs)
{
	const struct sl_torch *torch =
		device >= 0 && model->devices[device + 1] ? &model->devices[device + 1]->torch_at_peak : NULL;
	uint64_t unused = torch && torch->graph_reserved_bytes > torch->graph_allocated_bytes
				  ? torch->graph_reserved_bytes - torch->graph_allocated_bytes
				  : 0;

	return torch && graphs < torch->graph_pools ? unused / torch->graph_pools * graphs : unused;
}

void sl_leak_count(struct sl_kept *kept, const struct sl_model *model, bool lives)
{
	const struct sl_track *track = kept->track;
	uint64_t bytes = track->live_bytes, blocks = track->live_blocks;

	kept->left_blocks = track->live_blocks;
	kept->left_bytes = track->live_bytes;
	if (!lives)
		sl_tracks_held(&model->tracks, track, &bytes, &blocks);
	if (track->kind == SL_OBJECT_CONTEXT) /* the size of the first may not be known */
		bytes = blocks * track->most_bytes;
	if (track->kind == SL_OBJECT_EXEC)
		bytes = pools_of(model, track->device, blocks);
	kept->count_only = sl_leak_by_count(track);
	kept->amount = kept->count_only ? (double)blocks : (double)bytes;
	kept->births = track->births;
	kept->bursts = sl_tracks_course(&model->tracks, track)->bursts;
	kept->blocks = blocks;
	kept->bytes = bytes || track->kind < SL_OBJECT_CONTEXT ? bytes : SL_UNKNOWN;
}

void sl_leak_measure(struct sl_kept *kept, const struct sl_model *model, const struct sl_leak_windows *series)
{
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, kept->track);
	bool freed = sl_freed_is_freed(model, kept->track); /* then what is held at the end says nothing of what was */
	struct sl_leak_windows part;
	uint64_t bytes, blocks;
	double error;

	sl_tracks_held(&model->tracks, kept->track, &bytes, &blocks);
	sl_leak_count(kept, model, lives_on(kept->track, series));
	part = steady_part(course, series, freed ? series->kept[series->count - 1] : kept->amount);
	kept->per_birth = (part.kept[part.count - 1] - part.kept[0]) / (double)((part.count - 1) * course->births_per_window);
	if (kept->track->most_blocks == kept->births) /* each was kept */
		kept->per_birth = kept->count_only ? 1 : (double)kept->track->born_bytes / (double)kept->births;
	else if (!freed && part.kept[0] * (double)kept->blocks <= (1 + SL_LITTLE) * kept->amount &&
		 part.tick[0] <= (double)course->windows[0].begin_tick && 2 * kept->blocks >= blocks)
		kept->per_birth = kept->amount / (double)kept->births; /* kept from the first birth on */
	kept->per_second = sl_leak_windows_slope(&part, part.time, &error) * 1e9;
	kept->per_second_error = error * 1e9;
}
