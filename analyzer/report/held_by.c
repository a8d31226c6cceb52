/* SPDX-License-Identifier: MIT */
#include "analyzer/report/held_by.h"

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/place.h"
#include "analyzer/trace/idmap.h"

/* PATH, HOW, CONTAINER, and FILE or "FILE:LINE FUNCTION", with tabs between them. */
bool sl_held_by_read(const char *text, struct sl_held_by *out)
{
	char *rest = out->text, *colon, *space;
	const char *item;

	*out = (struct sl_held_by){.function = ""};
	snprintf(out->text, sizeof(out->text), "%s", text);
	out->path = strsep(&rest, "\t");
	out->how = strsep(&rest, "\t");
	out->container = strsep(&rest, "\t");
	if (!rest)
		return false;
	out->file = rest;
	space = strrchr(rest, ' ');
	colon = space ? memrchr(rest, ':', (size_t)(space - rest)) : NULL;
	if (colon) {
		out->line = (unsigned)strtoul(colon + 1, NULL, 10);
		out->function = space + 1;
		*colon = 0;
	}
	item = strstr(out->path, "[*]");
	snprintf(out->variable, sizeof(out->variable), "%.*s", (int)(item ? item - out->path : (ptrdiff_t)strlen(out->path)),
		 out->path);
	item = strrchr(out->variable, '.');
	out->last = item ? item + 1 : out->variable;
	return true;
}

static int by_bytes(const void *a, const void *b)
{
	const struct sl_variable *x = a, *y = b;

	return SL_FALLING(x->peak.bytes, y->peak.bytes) ?: SL_FALLING(x->peak.blocks, y->peak.blocks)
							 ?: SL_FALLING(x->look, y->look)
							 ?: SL_RISING(x->text, y->text);
}

static bool is_of_line(const struct sl_process *process, uint32_t of, const struct sl_track *track)
{
	const struct sl_track *own = &process->model->tracks.item[of];
	struct sl_process *places = (struct sl_process *)process; /* whose keys are kept */

	return !track || own == track ||
	       (own->kind == track->kind && own->device == track->device &&
		sl_place_key(places, own->stack) == sl_place_key(places, track->stack));
}

size_t sl_held_by_take(const struct sl_process *process, const struct sl_track *track, struct sl_held_by *out, size_t max_count)
{
	const struct sl_model *model = process->model;
	SL_VECTOR(struct sl_variable) sum = {0};
	struct sl_idmap ids = {0};
	uint64_t total = 0;
	size_t count = 0;

	for (size_t i = 0; i < model->variables.count; i++) {
		const struct sl_variable *one = &model->variables.item[i];
		uint32_t at;

		at = sl_idmap_claim(&ids, one->text, sum.count);
		if (at == sum.count)
			*SL_PUSH(&sum) = (struct sl_variable){.text = one->text};
		sum.item[at].now.bytes += one->peak.bytes;
		if (!is_of_line(process, one->track, track))
			continue;
		total += one->peak.bytes;
		sum.item[at].peak.live += one->peak.live;
		sum.item[at].peak.blocks += one->peak.blocks;
		sum.item[at].peak.bytes += one->peak.bytes;
		sum.item[at].peak.seen += one->peak.seen;
		sum.item[at].look = one->look > sum.item[at].look ? one->look : sum.item[at].look;
		if (one->among > one->named) {
			sum.item[at].named = one->named;
			sum.item[at].among = one->among;
		}
	}
	if (sum.count)
		qsort(sum.item, sum.count, sizeof(*sum.item), by_bytes);
	for (size_t i = 0; i < sum.count && count < max_count; i++) {
		const char *text = sl_defs_text(model->defs, sum.item[i].text);

		if (!sum.item[i].peak.blocks || !text || !sl_held_by_read(text, &out[count]))
			continue; /* none of the place, or a damaged trace */
		out[count].whole = sum.item[i].now.bytes;
		out[count].of = sum.item[i].peak.live > total ? sum.item[i].peak.live : total;
		out[count].blocks = sum.item[i].peak.blocks;
		out[count].named = sum.item[i].named;
		out[count].among = sum.item[i].among;
		out[count].bytes = sum.item[i].peak.bytes;
		out[count++].seen = sum.item[i].peak.seen;
	}
	free(sum.item);
	sl_idmap_free(&ids);
	return count;
}
