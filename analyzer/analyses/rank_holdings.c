/* SPDX-License-Identifier: MIT */
#include "analyzer/analyses/rank_holdings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/format.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/owners.h"

#define SHOWN	   2
#define PART_SHOWN 0.1	/* part of the difference: smaller ones are not mentioned */
#define ONCE_MEAN  1.25 /* a mean request below so many times the typical rank's counts as equal */
#define START_PART 0.5	/* of the time from a process's first request to its last call */

struct place {
	char name[300];
	const struct sl_site *site; /* the outlier's largest site of this place; NULL: it has none */
	uint64_t site_bytes;
	double more, blocks; /* bytes and blocks above the typical rank */
	bool grows, there;   /* in the unusual rank, in the typical one */
	bool told;
	bool late; /* either rank asked for something there after its start */
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

static bool grows(const struct sl_process *process, const struct sl_site *site)
{
	for (size_t i = 0; i < process->kept.count; i++) {
		const struct sl_kept *kept = &process->kept.item[i];

		if (kept->verdict == SL_KEPT_GROWING && kept->track == &process->model->tracks.item[site->track])
			return true;
	}
	return false;
}

/* The end of the first part of the time in which the process asked for memory. */
static double start_of(const struct sl_model *model)
{
	double first = (double)model->last_call_ns;

	for (size_t i = 0; i < model->tracks.count; i++)
		first = fmin(first, (double)model->tracks.item[i].first_ns);
	return first + START_PART * ((double)model->last_call_ns - first);
}

static void add(struct places *places, struct sl_process *process, int device, bool typical)
{
	double start = start_of(process->model);
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
		place->blocks += (typical ? -1 : 1) * (double)sl_model_blocks_at_peak(process->model, site);
		place->late |= (double)process->model->tracks.item[site->track].last_ns > start;
		*(typical ? &place->there : &place->grows) |= grows(process, site);
		if (typical)
			continue;
		if (bytes > place->site_bytes) {
			place->site = site;
			place->site_bytes = bytes;
		}
	}
}

/* What grows is first. */
static int by_difference(const void *a, const void *b)
{
	const struct place *one = a, *other = b;

	return SL_FALLING(one->grows, other->grows) ?: SL_FALLING(fabs(one->more), fabs(other->more))
	       ?: strcmp(one->name, other->name);
}

static void compare(struct places *places, struct sl_process *unlike, int device, struct sl_process *typical, int its_device)
{
	*places = (struct places){0};
	add(places, unlike, device, false);
	add(places, typical, its_device, true);
	if (places->list.count)
		qsort(places->list.item, places->list.count, sizeof(*places->list.item), by_difference);
}

static size_t say(char *out, size_t size, size_t at, const struct place *place)
{
	return at + (size_t)snprintf(out + at, size - at, "%s%s %s at %s%s", at ? "; " : "",
				     SL_SIZE(sl_stats_bytes(fabs(place->more))), place->more > 0 ? "more" : "less", place->name,
				     place->grows ? ", which grows" : "");
}

/* Tells the rest, so that the parts add up. */
static void say_rest(char *out, size_t size, size_t at, const struct places *places, double rest, double least)
{
	size_t i = 0;

	if (fabs(rest) <= least || at >= size)
		return;
	while (i < places->list.count && (places->list.item[i].told || (places->list.item[i].more > 0) != (rest > 0)))
		i++;
	snprintf(out + at, size - at, "; %s %s elsewhere%s%s", SL_SIZE(sl_stats_bytes(fabs(rest))), rest > 0 ? "more" : "less",
		 i < places->list.count ? ", most at " : "", i < places->list.count ? places->list.item[i].name : "");
}

/* What a process asked for at a place over its life. */
struct asked {
	uint64_t births, bytes, most;
};

static struct asked asked_at(struct sl_process *process, int device, const char *place)
{
	struct asked asked = {0};
	char name[300];

	for (size_t i = 0; i < process->model->tracks.count; i++) {
		const struct sl_track *track = &process->model->tracks.item[i];

		if (track->device != device || track->kind >= SL_OBJECT_CONTEXT)
			continue;
		sl_owners_line(process, track->stack, 2, name, sizeof(name));
		if (strcmp(name, place) != 0)
			continue;
		asked.births += track->births;
		asked.bytes += track->born_bytes;
		asked.most += track->most_blocks;
	}
	return asked;
}

static double mean_of(const struct asked *asked)
{
	return asked->births ? (double)asked->bytes / (double)asked->births : 0;
}

bool sl_rank_holdings_differ(struct sl_process *unlike, int device, struct sl_process *typical, int its_device,
			     struct sl_rank_difference *difference)
{
	struct places places;
	double all = (double)unlike->model->devices[device + 1]->known_peak -
		     (double)typical->model->devices[its_device + 1]->known_peak;
	double told = 0;
	size_t at = 0, size = sizeof(difference->text);
	unsigned shown = 0;

	*difference = (struct sl_rank_difference){.text = ""};
	compare(&places, unlike, device, typical, its_device);
	for (size_t i = 0; i < places.list.count && shown < SHOWN && at < size; i++) {
		struct place *place = &places.list.item[i];

		if (fabs(place->more) < PART_SHOWN * fabs(all))
			continue;
		if (!shown++ && place->site) {
			struct asked here = asked_at(unlike, device, place->name),
				     there = asked_at(typical, its_device, place->name);

			difference->stack = place->site->stack;
			difference->alone = !there.births;
			difference->passes = here.births >= 2 * here.most;
			difference->once = place->blocks <= 0 && mean_of(&here) < ONCE_MEAN * mean_of(&there);
		}
		place->told = true;
		difference->grows |= place->grows;
		difference->there |= place->grows && place->there;
		told += place->more;
		at = say(difference->text, size, at, place);
	}
	if (at)
		say_rest(difference->text, size, at, &places, all - told, PART_SHOWN * fabs(all));
	free(places.list.item);
	return at > 0;
}

void sl_rank_holdings_role(struct sl_process *unlike, int device, struct sl_process *typical, int its_device, double least,
			   struct sl_rank_role *role)
{
	struct places places;
	size_t at = 0;

	*role = (struct sl_rank_role){.text = ""};
	compare(&places, unlike, device, typical, its_device);
	for (size_t i = 0; i < places.list.count && at < sizeof(role->text); i++) {
		const struct place *place = &places.list.item[i];

		if (place->grows || place->late || fabs(place->more) < least)
			continue;
		role->bytes += place->more;
		at = say(role->text, sizeof(role->text), at, place);
	}
	free(places.list.item);
}
