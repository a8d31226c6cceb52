/* SPDX-License-Identifier: MIT */
/* The blocks LEAK, GROWTH and LEFT: memory that is kept.  A place shown by one of them is left out of the following ones. */

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/outputs/screen_page.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/leak_words.h"
#include "analyzer/report/place.h"

#define KEPT_SHOWN  3
#define PARTS_SHOWN 5
#define FULL_IN_MIN 1 /* seconds: a shorter forecast is not printed */
#define FULL_IN_MAX (30 * 86400)
#define LEAK_RIGHT  64

/* The least slope that its error allows. */
static double at_least(const struct sl_growth *growth)
{
	return 2 * growth->slope - growth->at_most;
}

#define ANY_KIND SL_KIND_COUNT

static bool is_kind(unsigned kind, unsigned of)
{
	return kind == ANY_KIND || kind == of;
}

/* True: the process leaks at that line on other devices only, so that LEAK does not tell of what is on this one. */
static bool is_elsewhere(struct sl_process *process, struct sl_stack stack, unsigned kind, int device)
{
	bool elsewhere = false;

	for (size_t i = 0; i < process->kept.count && process->kept.item[i].verdict == SL_KEPT_GROWING; i++) {
		const struct sl_track *track = process->kept.item[i].track;

		if (!is_kind(kind, track->kind) || sl_place_key(process, track->stack) != sl_place_key(process, stack))
			continue;
		if (track->device < 0 || track->device == device)
			return false;
		elsewhere = true;
	}
	return elsewhere && device >= 0;
}

/* True: a LEAK block above names the place.  kind: or ANY_KIND; device: on which, -1 any. */
static bool is_told(const struct sl_screen_page *page, struct sl_process *process, unsigned kind, int device, struct sl_stack stack)
{
	uint64_t line = sl_place_key(process, stack);

	for (size_t i = 0; i < page->leaking.place.count; i++) {
		const struct sl_leak_list_place *place = &page->leaking.place.item[i];

		if (place->told && is_kind(kind, place->kept->track->kind) &&
		    sl_place_key(&page->report->processes[place->process], place->stack) == line)
			return !is_elsewhere(process, stack, kind, device);
	}
	return false;
}

void sl_screen_growth(struct sl_screen_page *page)
{
	struct sl_process *process = NULL;
	const struct sl_growth *growth = NULL;
	const struct sl_label *label;
	struct sl_owners owners;
	char where[256];

	for (unsigned i = 0; i < page->report->process_count; i++)
		for (size_t k = 0; k < page->report->processes[i].growth.count; k++) {
			const struct sl_growth *g = &page->report->processes[i].growth.item[k];

			if (!g->verdict || strcmp(g->verdict, "growing") || !g->credited)
				continue;
			if (growth && at_least(g) <= at_least(growth))
				continue;
			growth = g;
			process = &page->report->processes[i];
		}
	if (!growth || (growth->holder_count == 1 && is_told(page, process, ANY_KIND, -1, growth->holders[0].stack)))
		return; /* a LEAK block above has the same place */
	label = &process->model->labels.item[growth->label];
	sl_screen_head(page, "GROWTH", SL_SCREEN_WARNING);
	sl_screen_say(page, "   +%s per %s%s, %s %.2f over %llu entries%s%s", SL_SIZE(sl_stats_bytes(growth->slope)),
		      sl_label_each(label), sl_label_words(sl_defs_text(process->model->defs, label->text)) ?: "?",
		      page->style->ascii ? "r2" : "r²", growth->r_squared, (unsigned long long)label->points,
		      page->report->process_count > 1 ? "   " : "", page->report->process_count > 1 ? SL_WHO(process) : "");
	sl_owners_init(&owners);
	for (unsigned i = 0; i < growth->holder_count; i++) {
		const struct sl_holder_of_growth *holder = &growth->holders[i];
		const char *names[2] = {holder->library, where};

		sl_owners_line(process, holder->stack, 2, where, sizeof(where));
		sl_owners_add(&owners, names, where[0] ? 2 : 1, sl_stats_bytes(holder->bytes_per_entry), 0);
	}
	sl_owners_sort(&owners);
	sl_screen_shares(page, &owners);
	sl_owners_free(&owners);
	page->said = true;
}

/* "64 ranks, most in rank 3", "2 processes, the same in each". */
static void put_several(char *out, size_t size, unsigned count, const struct sl_process *most, bool uneven)
{
	snprintf(out, size, "%u %s, %s%s", count, most->trace->header.rank >= 0 ? "ranks" : "processes",
		 uneven ? "most in " : "the same in each", uneven ? SL_WHO(most) : "");
}

/* "rank 3 ", "64 ranks, most in rank 3 ", "device 1 "; "" for a run with one process and one device. */
static void put_who(char *out, size_t size, const struct sl_screen_page *page, const struct sl_leak_list_place *place)
{
	const struct sl_process *process = &page->report->processes[place->process];
	char who[SL_FORMAT_BYTES + 48] = "";

	out[0] = 0;
	if (place->processes > 1)
		put_several(who, sizeof(who), place->processes, process, place->uneven);
	if (page->report->process_count > 1)
		snprintf(out, size, "%s  ", *who ? who : SL_WHO(process));
	if (place->kept->track->device >= 0 && sl_devices_held(process) > 1)
		snprintf(out + strlen(out), size - strlen(out), "device %d  ", place->kept->track->device);
}

/* "; at this rate device 0 is full in 41 min"; "" where that is unknown or of no interest. */
static void put_full_in(char *out, size_t size, const struct sl_process *process, int device, const char *how, unsigned *places)
{
	double full_in = sl_leak_words_full_in(process, device, places);

	out[0] = 0;
	if (full_in >= FULL_IN_MIN && full_in <= FULL_IN_MAX)
		snprintf(out, size, "%s device %d is full in %s", how, device, SL_SPAN(sl_stats_bytes(full_in * 1e9)));
}

/* The same for each device on which the process is the only one that leaks. */
static void put_full_ins(char *out, size_t size, struct sl_process *process, unsigned kind, const char *where)
{
	char line[300];
	size_t at = 0;
	unsigned places;

	out[0] = 0;
	for (size_t i = 0; i < process->kept.count && process->kept.item[i].verdict == SL_KEPT_GROWING; i++) {
		const struct sl_track *track = process->kept.item[i].track;

		sl_leak_list_line(process, track->stack, line, sizeof(line));
		if (track->kind != kind || strcmp(line, where) || !sl_leak_words_fills(process, &process->kept.item[i]))
			continue;
		put_full_in(out + at, size - at, process, track->device, at ? "," : "; at this rate", &places);
		if (places > 1)
			out[at] = 0; /* put_together prints one forecast for all */
		at += strlen(out + at);
	}
}

/* Prints since when the place leaks, whether it ever freed, and when the device is full.  before: "      ", or its rate. */
static void put_course(struct sl_screen_page *page, const struct sl_leak_list_place *place, const char *before)
{
	struct sl_process *process = &page->report->processes[place->process];
	const struct sl_kept *kept = place->kept;
	char text[800], time[SL_FORMAT_BYTES], full[400], thread[100], rounds[140];

	put_full_ins(full, sizeof(full), process, kept->track->kind, place->where);
	bool dry = process->trace->header.dry_count; /* its times are of no card */
	snprintf(text, sizeof(text), "%s%s%s%s%s%s%s%s", before, dry ? "" : "since ",
		 dry ? "" : sl_leak_words_begin(time, process, kept), dry ? "" : "; ",
		 process->model->snapshot	   ? "still held at the end of the window"
		 : kept->left_blocks		   ? "never freed"
		 : sl_leak_words_in_turns(process) ? "freed only as each process ended, before another began"
						   : "freed only as the program ended",
		 sl_leak_words_thread(thread, sizeof(thread), process, kept), sl_leak_words_young(kept),
		 sl_leak_words_cut(process, kept));
	if (kept->bytes != SL_UNKNOWN && place->bytes > kept->bytes)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "; %s in all %s", sl_format_size(time, place->bytes),
			 place->processes > 1 ? "of them" : "on several devices");
	sl_leak_words_rounds(rounds, sizeof(rounds), process, kept, !page->round_told);
	page->round_told |= rounds[0] != 0;
	snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", rounds, full);
	sl_screen_line(page, 0, text, "");
}

/* Prints one leaking place: its line, its figures, its course. */
static void put_kept_one(struct sl_screen_page *page, const struct sl_leak_list_place *place)
{
	struct sl_process *process = &page->report->processes[place->process];
	const struct sl_kept *kept = place->kept;
	char rate[200], what[200], text[800], where[512], who[128], label[200];
	size_t length = strlen(place->where), rest;
	bool beside;

	sl_owners_line(process, place->stack, 3, where, sizeof(where));
	sl_leak_words_rate(rate, sizeof(rate), process, kept);
	sl_leak_words_amount(what, sizeof(what), process, kept);
	sl_leak_words_label(label, sizeof(label), process, kept);
	put_who(who, sizeof(who), page, place);
	sl_screen_head(page, "LEAK", SL_SCREEN_BAD);
	snprintf(text, sizeof(text), "     %s%s, %s%s", who, rate, what, label);
	beside = page->indent + strlen(text) + 2 + length <= page->style->columns && !strncmp(where, place->where, length);
	sl_screen_line(page, LEAK_RIGHT, text, beside ? place->where : "");
	rest = beside ? length : 0;
	if (where[rest])
		sl_screen_say(page, "     %s%s", rest ? "" : " ", where + rest);
	put_course(page, place, "      ");
}

/* Prints places that leak at the same pace: the line that calls all of them, and each place. */
static void put_kept_together(struct sl_screen_page *page, const bool *with, size_t count, const char *owner)
{
	struct sl_leak_list_place all = {0};
	struct sl_kept sum = {0};
	uint64_t least = 0;
	char rate[200], what[200], text[600], who[128];
	unsigned shown = 0;

	for (size_t i = 0; i < page->leaking.place.count; i++) {
		struct sl_leak_list_place *place = &page->leaking.place.item[i];

		if (!with[i])
			continue;
		place->told = true;
		if (!all.kept) {
			all = *place;
			sum = *place->kept;
			least = sum.births;
			continue;
		}
		sl_leak_words_add(&sum, place->kept);
		least = place->kept->births < least ? place->kept->births : least;
		all.bytes += place->bytes;
	}
	sum.bursts = least; /* all places leak in the same bursts */
	all.kept = &sum;
	sl_leak_words_rate(rate, sizeof(rate), &page->report->processes[all.process], &sum);
	sl_leak_words_amount(what, sizeof(what), &page->report->processes[all.process], &sum);
	put_who(who, sizeof(who), page, &all);
	sl_screen_head(page, "LEAK", SL_SCREEN_BAD);
	snprintf(text, sizeof(text), "     %s%s, %s, at %zu places", who, rate, what, count);
	sl_screen_line(page, LEAK_RIGHT, text, owner);
	for (size_t i = 0; i < page->leaking.place.count; i++) {
		const struct sl_leak_list_place *place = &page->leaking.place.item[i];

		if (!with[i] || ++shown > PARTS_SHOWN)
			continue;
		sl_leak_words_amount(what, sizeof(what), &page->report->processes[place->process], place->kept);
		sl_screen_say(page, "      %s: %s", place->where, what);
	}
	if (shown > PARTS_SHOWN)
		sl_screen_say(page, "      and %u more, in report.json", shown - PARTS_SHOWN);
	put_course(page, &all, "      ");
}

void sl_screen_leaks_within(struct sl_screen_page *page, struct sl_process *process, const char *cause)
{
	bool *with = sl_memory_must(calloc(page->leaking.place.count + 1, sizeof(*with)));
	char rate[200], before[210], owner[300];

	for (size_t i = 0; i < page->leaking.place.count; i++) {
		struct sl_leak_list_place *place = &page->leaking.place.item[i];

		if (!place->kept || place->told || place->processes > 1 || &page->report->processes[place->process] != process ||
		    !strstr(cause, place->where) ||
		    sl_leak_list_together(&page->leaking, page->report, i, with, owner, sizeof(owner)) > 1)
			continue;
		sl_leak_words_rate(rate, sizeof(rate), process, place->kept);
		snprintf(before, sizeof(before), "  %s, ", rate);
		put_course(page, place, before);
		place->told = true;
	}
	free(with);
}

/* Prints when all places that leak on a device fill it together, which is sooner than each forecast alone. */
static void put_together(struct sl_screen_page *page)
{
	char full[100], who[48] = "";
	unsigned places;

	for (unsigned i = 0; i < page->report->process_count; i++) {
		const struct sl_process *process = &page->report->processes[i];

		if (page->report->process_count > 1)
			sl_process_who(who, process);
		for (int device = 0; device < SL_DEVICES_MAX; device++) {
			put_full_in(full, sizeof(full), process, device, ":", &places);
			if (places < 2 || !full[0])
				continue;
			sl_screen_say(page, "  %s%sall %u together%s", who, who[0] ? ", " : "", places, full);
		}
	}
}

/* The largest kept memory over all processes. */
void sl_screen_kept(struct sl_screen_page *page)
{
	bool *with = sl_memory_must(calloc(page->leaking.place.count + 1, sizeof(*with)));
	unsigned more = 0;
	char owner[300];

	for (size_t i = 0; i < page->leaking.place.count; i++) {
		struct sl_leak_list_place *place = &page->leaking.place.item[i];
		size_t together;

		if (!place->kept || place->told)
			continue; /* it is in the block LEFT, or already above */
		if (page->leaks_shown == KEPT_SHOWN) {
			more++;
			continue;
		}
		together = sl_leak_list_together(&page->leaking, page->report, i, with, owner, sizeof(owner));
		if (together > 1)
			put_kept_together(page, with, together, owner);
		else
			put_kept_one(page, place);
		place->told = true;
		page->leaks_shown++;
	}
	if (more)
		sl_screen_say(page, "  and %u more place%s that leak%s, in report.json", more, more == 1 ? "" : "s",
			      more == 1 ? "s" : "");
	put_together(page);
	free(with);
	page->said |= page->leaks_shown > 0;
}

#define SEVERAL (-2)

/* What one line left, in however many processes. */
struct left {
	struct sl_process *most, *last; /* which left most of it, or grew */
	const struct sl_leak *leak;	/* a leak of `most` */
	uint64_t bytes, blocks;
	unsigned processes, growing;
	bool uneven; /* processes left different amounts */
	int device;  /* -1: the host's memory; SEVERAL */
};

struct all_left {
	SL_VECTOR(struct left) place;
	struct sl_map names;
};

static void take_left(struct all_left *all, struct sl_process *process, const struct sl_leak *leak)
{
	char key[320];
	int length = snprintf(key, sizeof(key), "%u ", leak->kind);
	uintptr_t *at;
	struct left *to;

	sl_leak_list_line(process, leak->stack, key + length, sizeof(key) - (size_t)length);
	if (!key[length])
		snprintf(key + length, sizeof(key) - (size_t)length, "%s", leak->library);
	at = sl_map_at(&all->names, key);
	if (!*at) {
		*SL_PUSH(&all->place) = (struct left){.most = process, .leak = leak, .device = leak->device};
		*at = all->place.count;
	}
	to = &all->place.item[*at - 1];
	to->processes += to->last != process;
	to->last = process;
	to->bytes += leak->bytes;
	to->blocks += leak->blocks;
	to->growing += leak->growing;
	to->uneven |= leak->bytes != to->leak->bytes;
	to->device = to->device == leak->device ? to->device : SEVERAL;
	if (leak->bytes > to->leak->bytes) {
		to->most = process;
		to->leak = leak;
	}
}

static const struct left *worst_left(const struct all_left *all)
{
	const struct left *worst = all->place.item;

	for (size_t i = 1; i < all->place.count; i++)
		worst = all->place.item[i].bytes > worst->bytes ? &all->place.item[i] : worst;
	return worst;
}

static void put_left(struct sl_screen_page *page, const struct all_left *all)
{
	const struct left *worst = worst_left(all);
	size_t places = all->place.count;
	bool growing = worst->growing;
	char where[300], left[160], right[600], amount[40] = "", who[64] = "", on[32] = "";
	uint64_t bytes = 0;

	for (size_t i = 0; i < places; i++)
		bytes += all->place.item[i].bytes;
	sl_owners_line(worst->most, worst->leak->stack, 2, where, sizeof(where));
	sl_screen_head(page, growing ? "LEAK" : "LEFT", growing ? SL_SCREEN_WARNING : SL_SCREEN_PLAIN);
	snprintf(left, sizeof(left), "%s   %s never freed, %zu place%s", growing ? "" : " ", SL_SIZE(bytes), places,
		 places == 1 ? "" : "s");
	if (worst->processes > 1)
		put_several(who, sizeof(who), worst->processes, worst->most, worst->uneven);
	if (page->report->process_count > 1)
		snprintf(left + strlen(left), sizeof(left) - strlen(left), places > 1 ? ", the worst in %s:" : "   %s",
			 *who ? who : SL_WHO(worst->most));
	if (worst->device != -1 && sl_devices_held(worst->most) > 1)
		snprintf(on, sizeof(on), worst->device == SEVERAL ? " on several devices" : " on device %d", worst->device);
	if (places > 1)
		snprintf(amount, sizeof(amount), "%s%s in ", page->report->process_count == 1 ? "worst: " : "",
			 SL_SIZE(worst->bytes));
	/* the place last: its outer frames go where the line is too narrow */
	snprintf(right, sizeof(right), "%s%llu %s%s%s, %s", amount, (unsigned long long)worst->blocks,
		 sl_leak_words_noun(worst->leak->kind, worst->blocks != 1), on, worst->growing ? ", growing" : "",
		 where[0] ? where : worst->leak->library);
	sl_screen_line(page, 30, left, right);
	page->said |= growing;
	page->noted = true;
}

void sl_screen_leaks(struct sl_screen_page *page)
{
	struct all_left all[2] = {0}; /* the places that do not grow, and those that do */

	for (unsigned i = 0; i < page->report->process_count; i++)
		for (size_t k = 0; k < page->report->processes[i].leaks.count; k++) {
			const struct sl_leak *leak = &page->report->processes[i].leaks.item[k];

			if (!sl_leak_counts(leak) || !strcmp(leak->verdict, "kept")) /* the block LEAK has these */
				continue;
			if (!is_told(page, &page->report->processes[i], leak->kind, leak->device, leak->stack))
				take_left(&all[leak->growing], &page->report->processes[i], leak);
		}
	for (unsigned grows = 2; grows--;) {
		if (all[grows].place.count)
			put_left(page, &all[grows]);
		SL_DROP(&all[grows].place);
		sl_map_free(&all[grows].names);
	}
}
