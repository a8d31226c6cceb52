/* SPDX-License-Identifier: MIT */
#include "analyzer/analyses/rank_holdings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/format.h"
#include "analyzer/report/owners.h"

#define SHOWN	   2
#define PART_SHOWN 0.1 /* part of the difference: smaller ones are not mentioned */

struct place {
	char name[300];
	const struct sl_site *site; /* the outlier's largest site of this place; NULL: it has none */
	uint64_t site_bytes;
	double more; /* bytes above the typical rank */
};

struct places {
	SL_VECTOR(struct place) list;
};

static struct place *place_of(struct places *places, const char *name)
{
	for (size_t i = 0; i < places->list.count; i++)
		if (!strcmp(places->list.item[i].name, name))
			return &places->list.item[i];
	struct place *place = SL_PUSH(&places->list);

	*place = (struct place){0};
	snprintf(place->name, sizeof(place->name), "%s", name);
	return place;
}

static void add(struct places *places, struct sl_process *process, int device, bool typical)
{
	char name[300];

	for (size_t i = 0; i < process->model->sites.count; i++) {
		const struct sl_site *site = &process->model->sites.item[i];
		uint64_t bytes =
			site->device == device && sl_owners_shows(process, site) ? sl_model_site_at_peak(process->model, site) : 0;
		struct place *place;

		if (!bytes)
			continue;
		sl_owners_line(process, site->stack, 2, name, sizeof(name));
		place = place_of(places, name);
		place->more += typical ? -(double)bytes : (double)bytes;
		if (!typical && bytes > place->site_bytes) {
			place->site = site;
			place->site_bytes = bytes;
		}
	}
}

static int by_difference(const void *a, const void *b)
{
	double x = fabs(((const struct place *)a)->more), y = fabs(((const struct place *)b)->more);

	return x < y ? 1 : x > y ? -1 : strcmp(((const struct place *)a)->name, ((const struct place *)b)->name);
}

static bool grows(const struct sl_process *process, const struct place *place)
{
	for (size_t i = 0; place->site && i < process->kept.count; i++) {
		const struct sl_kept *kept = &process->kept.item[i];

		if (kept->verdict == SL_KEPT_GROWING && kept->track == &process->model->tracks.item[place->site->track])
			return true;
	}
	return false;
}

bool sl_rank_holdings_differ(struct sl_process *unlike, int device, struct sl_process *typical, int its_device,
			     struct sl_rank_difference *difference)
{
	struct places places = {0};
	double all = (double)unlike->model->devices[device + 1]->known_peak -
		     (double)typical->model->devices[its_device + 1]->known_peak;
	double told = 0;
	size_t at = 0;

	*difference = (struct sl_rank_difference){.text = ""};
	add(&places, unlike, device, false);
	add(&places, typical, its_device, true);
	if (places.list.count)
		qsort(places.list.item, places.list.count, sizeof(*places.list.item), by_difference);
	for (size_t i = 0; i < places.list.count && i < SHOWN && at < sizeof(difference->text); i++) {
		const struct place *place = &places.list.item[i];
		char size[SL_FORMAT_BYTES];

		if (fabs(place->more) < PART_SHOWN * fabs(all))
			break;
		if (!i && place->site) {
			difference->stack = place->site->stack;
		}
		told += place->more;
		at += (size_t)snprintf(difference->text + at, sizeof(difference->text) - at, "%s%s %s at %s%s", at ? "; " : "",
				       sl_format_size(size, (uint64_t)fabs(place->more)), place->more > 0 ? "more" : "less",
				       place->name, grows(unlike, place) ? ", which grows" : "");
	}
	difference->part = all != 0 ? told / all : 0;
	free(places.list.item);
	return at > 0;
}
