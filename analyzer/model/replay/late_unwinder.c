/* SPDX-License-Identifier: MIT */
#include "analyzer/model/replay/replay.h"

#define BARE_MAX 256 /* most sites that are named: calls made before libunwind was open */

static bool is_bare(const struct sl_track *track)
{
	return !track->stack.python && !track->stack.native && track->stack.caller && track->births;
}

static bool is_alike(const struct sl_defs *defs, const struct sl_track *bare, const struct sl_track *track)
{
	const struct sl_native_stack *stack = track->stack.native ? sl_defs_native(defs, track->stack.native) : NULL;

	return stack && stack->count && stack->pcs[0] == bare->stack.caller && track->kind == bare->kind &&
	       track->device == bare->device && track->most_bytes == bare->most_bytes;
}

/* The only track whose stack the site may have; NULL: there is none, or several. */
static const struct sl_track *find(const struct sl_model *model, const struct sl_track *bare)
{
	const struct sl_track *found = NULL;

	for (size_t i = 0; i < model->tracks.count; i++) {
		const struct sl_track *track = &model->tracks.item[i];

		if (!is_alike(model->defs, bare, track))
			continue;
		if (found)
			return NULL;
		found = track;
	}
	return found;
}

static void name(struct sl_model *model, uint32_t index)
{
	struct sl_track *track = &model->tracks.item[index];
	const struct sl_track *like = find(model, track);

	if (!like)
		return;
	for (size_t i = 0; i < model->sites.count; i++)
		if (model->sites.item[i].track == index) {
			model->sites.item[i].stack.python = like->stack.python;
			model->sites.item[i].stack.native = like->stack.native;
		}
	track->stack.python = like->stack.python;
	track->stack.native = like->stack.native;
}

void sl_late_unwinder_name(struct sl_model *model)
{
	unsigned seen = 0;

	if (!model->defs->natives.count)
		return;
	for (uint32_t i = 0; i < model->tracks.count && seen < BARE_MAX; i++)
		if (is_bare(&model->tracks.item[i])) {
			seen++;
			name(model, i);
		}
}
