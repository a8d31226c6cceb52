/* SPDX-License-Identifier: MIT */
#include "analyzer/fit/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/fit/window.h"
#include "analyzer/model/state/units.h"

static const char *const often_tried[] = {"", "expandable_segments:True", "max_split_size_mb:128", "roundup_power2_divisions:4",
					  "expandable_segments:True,roundup_power2_divisions:4"};

/* Why this recording says nothing about that release. */
static const char *unlike(const struct sl_fit_recording *r, unsigned release)
{
	if (release < r->pools_since)
		return "its rules for private pools of graphs or MemPools are not replayed";
	for (unsigned era = 0; era < SL_FIT_ERAS; era++)
		if (r->unlike >> era & 1 && sl_fit_era(release) == era)
			return "other requests would go to private pools of graphs or MemPools";
	return NULL;
}

/* Repeats the first choices under another release's rules. */
static void choose_release(struct sl_fit_subject *subject, unsigned release, unsigned of_each)
{
	const struct sl_fit_recording *r = subject->recording;

	for (unsigned i = 0; i < of_each && release != r->release && subject->choice_count < SL_FIT_CHOICES; i++) {
		struct sl_fit_choice *choice = &subject->choices[subject->choice_count++];
		const char *at;

		*choice = (struct sl_fit_choice){
			.text = subject->choices[i].text ?: r->text, .settings = sl_fit_defaults, .release = release};
		choice->wrong = sl_fit_settings_parse(&choice->settings, choice->text, release, &at) ?: unlike(r, release);
		snprintf(choice->name, sizeof(choice->name), "PyTorch %u.%u%s%s", release / 100, release % 100,
			 *choice->text ? ", " : "", choice->text);
	}
}

static void choose(struct sl_fit_subject *subject, const struct sl_fit_question *question)
{
	const struct sl_fit_recording *r = subject->recording;
	const char *const *list = question->setting_count ? question->settings : often_tried, *at;
	unsigned count = question->setting_count ? question->setting_count : SL_COUNT(often_tried);
	struct sl_fit_choice *choice;

	if (!question->setting_count && question->release_count)
		count = 0; /* a release's rows are compared with the recorded one's */
	if (!question->setting_count)
		subject->choices[subject->choice_count++] = (struct sl_fit_choice){.settings = r->settings};
	for (unsigned i = 0; i < count; i++) {
		if (list[i] && !question->setting_count && !strcmp(list[i], r->text))
			continue; /* it repeats the recorded one */
		choice = &subject->choices[subject->choice_count++];
		*choice = (struct sl_fit_choice){list[i], list[i] ? sl_fit_defaults : r->settings};
		if (list[i])
			sl_fit_settings_parse(&choice->settings, list[i], r->release, &at);
	}
	for (unsigned i = 0, of_each = subject->choice_count; i < question->release_count; i++)
		choose_release(subject, question->releases[i], of_each);
	subject->capacity_count = question->capacity_count;
	memcpy(subject->capacities, question->capacities, sizeof(subject->capacities));
	if (!subject->capacity_count && r->device_total)
		subject->capacities[subject->capacity_count++] = r->device_total;
}

struct sl_fit_recording sl_fit_under(const struct sl_fit_recording *r, const struct sl_fit_choice *choice)
{
	struct sl_fit_recording under = *r;

	under.release = choice->release ? choice->release : r->release;
	return under;
}

static void widen(struct sl_fit_answer *a, uint64_t from)
{
	if (from == SL_UNKNOWN)
		return;
	a->low = a->low == SL_UNKNOWN || from < a->low ? from : a->low;
	a->high = a->high == SL_UNKNOWN || from > a->high ? from : a->high;
}

/* Up to 2.11 results depend on where the driver puts segments, and so on the order in which those of several streams are given
 * back: the other ways are tried too. */
static void answer_otherwise(struct sl_fit_answer *a, const struct sl_fit_subject *subject, const struct sl_fit_recording *r,
			     struct sl_fit_case *how, const struct sl_fit_question *question)
{
	struct sl_fit_outcome other;
	struct sl_fit_scan scan;

	for (unsigned i = 0; i < subject->capacity_count; i++) {
		how->capacity = subject->capacities[i];
		if (how->capacity < r->reserved_start)
			continue;
		sl_fit_run(&other, r, how);
		a->ambiguous[i] |= other.verdict != a->at[i].verdict;
	}
	if (question->unscanned)
		return;
	sl_fit_scan(&scan, r, how);
	widen(a, scan.always_from);
	if (scan.always_from != a->scan.always_from && (a->other_from == SL_UNKNOWN || scan.always_from > a->other_from))
		a->other_from = scan.always_from;
	free(scan.also.item);
}

/* What else is on the device is not known: a capacity may fit and a larger one not, since fitting is not monotone. */
static void leave_open(struct sl_fit_answer *a, unsigned capacities)
{
	for (unsigned i = 0; i < capacities; i++)
		a->at[i].verdict = SL_FIT_UNKNOWN;
	a->scan.always_from = a->low = a->high = SL_UNKNOWN;
	a->scan.also.count = 0;
}

/* True: the recording allows this placement and this order of streams.  After 2.11 there is only one. */
static bool is_open(const struct sl_fit_recording *r, enum sl_fit_ties ties, bool streams_reversed)
{
	if (r->release > SL_FIT_RELEASE(2, 11))
		return ties == SL_FIT_ASCENDING && !streams_reversed;
	return r->models >> ties & 1 && (!streams_reversed || r->streams > 1);
}

/* Each way in which the program may go on: placements, orders of streams, uses of private pools. */
#define ORDERS (4 * SL_FIT_WAYS)

static bool take_order(struct sl_fit_case *how, const struct sl_fit_recording *r, unsigned order)
{
	how->ties = (enum sl_fit_ties)(order % SL_FIT_WAYS);
	how->streams_reversed = order / SL_FIT_WAYS % 2;
	how->loose = order / SL_FIT_WAYS / 2;
	return is_open(r, how->ties, how->streams_reversed) && (!how->loose || r->pools_open);
}

unsigned sl_fit_orders(const struct sl_fit_recording *r)
{
	struct sl_fit_case how = {0};
	unsigned count = 0;

	for (unsigned order = 0; order < ORDERS; order++)
		count += take_order(&how, r, order);
	return count;
}

enum sl_fit_ties sl_fit_way(const struct sl_fit_recording *r, enum sl_fit_ties wanted)
{
	static const enum sl_fit_ties likely[] = {SL_FIT_GIVEN, SL_FIT_REUSED, SL_FIT_ASCENDING, SL_FIT_DESCENDING};

	for (unsigned i = 0; wanted == SL_FIT_GIVEN && i < SL_COUNT(likely); i++)
		if (is_open(r, likely[i], false))
			return likely[i];
	return wanted;
}

/* True: it fits, too, where the card takes all that a dry run leaves open. */
static bool fits_any_card(const struct sl_fit_recording *r, struct sl_fit_case how)
{
	struct sl_fit_outcome upper;

	if (!r->unsure)
		return true;
	if (how.capacity <= r->unsure)
		return false;
	how.capacity -= r->unsure;
	sl_fit_run(&upper, r, &how);
	return upper.verdict == SL_FIT_FITS;
}

static void answer(struct sl_fit_answer *a, const struct sl_fit_subject *subject, const struct sl_fit_choice *choice,
		   const struct sl_fit_question *question)
{
	const struct sl_fit_recording under = sl_fit_under(subject->recording, choice), *r = &under;
	struct sl_fit_case how = {.capacity = UINT64_MAX,
				  .of_allocator = question->of_allocator,
				  .granted = r->window,
				  .settings = choice->text ? &choice->settings : NULL,
				  .operations_max = question->scan_max,
				  .ties = sl_fit_way(r, question->ties)};
	bool is_told = question->of_allocator || r->others_known;

	a->other_from = a->low = a->high = SL_UNKNOWN;
	if (question->points) {
		sl_fit_trail_begin(&a->trail, r, question->points);
		how.trail = &a->trail;
	}
	sl_fit_run(&a->free, r, &how);
	how.trail = NULL;
	for (unsigned i = 0; i < subject->capacity_count; i++) {
		how.capacity = subject->capacities[i];
		sl_fit_run(&a->at[i], r, &how);
		a->ambiguous[i] = !question->of_allocator && a->at[i].verdict == SL_FIT_FITS && !fits_any_card(r, how);
	}
	if (!question->unscanned) {
		sl_fit_scan(&a->scan, r, &how);
		widen(a, a->scan.always_from);
	}
	if (!is_told)
		leave_open(a, subject->capacity_count);
	for (unsigned order = 0; order < ORDERS && is_told; order++) {
		struct sl_fit_case other = how;

		if (take_order(&other, r, order) && order != how.ties)
			answer_otherwise(a, subject, r, &other, question);
	}
}

#define WINDOW_OPERATIONS 3000000ull /* of one search where there are several */

/*
 * What the span misses of programs whose whole history is known (tests/snapshot/cuts.py, doc/snapshot.md): a large segment of
 * PyTorch's, and a part of all.  A program that runs short of memory lays its old blocks otherwise than it was recorded.
 */
#define SEGMENT	     (20ull << 20)
#define PAGE_PART    0.015
#define SEGMENT_PART 0.035
#define SHORT_PART   0.11
#define LOW_PART     0.015

static uint64_t part_of(uint64_t bytes, double part)
{
	return (uint64_t)((double)bytes * part);
}

static uint64_t smallest(const struct sl_fit_recording *r, const struct sl_fit_case *how)
{
	struct sl_fit_scan scan;

	sl_fit_scan(&scan, r, how);
	free(scan.also.item);
	return scan.always_from;
}

/* Numbers are those of the window's requests.  0: a block from before it found no room. */
static void number_from_window(struct sl_fit_outcome *o, const struct sl_fit_recording *all, const struct sl_fit_recording *window)
{
	uint64_t blocks = all->requests - window->requests, before = all->ops.count - window->ops.count;

	o->request = o->request > blocks ? o->request - blocks : 0;
	o->at = o->at > before ? o->at - before : 0;
}

/* One order in which the blocks from before the window are requested first. */
static void answer_from_nothing(struct sl_fit_answer *a, const struct sl_fit_subject *subject,
				const struct sl_fit_recording *recording, struct sl_fit_case *how, enum sl_fit_first first,
				bool only, bool scan)
{
	struct sl_fit_recording r = sl_fit_from_nothing(recording, first);
	struct sl_fit_outcome o;

	how->capacity = UINT64_MAX;
	if (only && !first)
		sl_fit_run(&a->free, &r, how);
	for (unsigned i = 0; i < subject->capacity_count; i++) {
		how->capacity = subject->capacities[i];
		if (!only && how->capacity >= subject->recording->reserved_start)
			continue; /* it is known exactly */
		sl_fit_run(&o, &r, how);
		number_from_window(&o, &r, recording);
		if (first)
			a->ambiguous[i] |= o.verdict != a->at[i].verdict;
		else
			a->at[i] = o;
	}
	if (scan)
		widen(a, smallest(&r, how));
	free(r.ops.item);
	free(r.reserved.item);
	free(r.times.item);
}

/*
 * The blocks have their recorded addresses, and only the window's requests go by the other settings.  Where the answer is below
 * what was reserved, segments that were free are away, as the allocator gives them back when memory runs short.
 */
static void answer_as_they_lay(struct sl_fit_answer *a, const struct sl_fit_recording *r, struct sl_fit_case *how)
{
	struct sl_fit_recording used = sl_fit_without_cache(r);
	uint64_t from = smallest(r, how);

	if (from != SL_UNKNOWN && from > r->reserved_start)
		widen(a, from);
	if (used.seeds.count)
		widen(a, smallest(&used, how));
	SL_DROP(&used.seeds);
}

static void add_margin(struct sl_fit_answer *a, double part)
{
	a->high += SEGMENT + part_of(a->high, part);
	a->low -= part_of(a->low, LOW_PART);
	a->low = a->low > a->free.floor ? a->low : a->free.floor;
	a->low += -a->low & (SL_DEVICE_UNIT - 1); /* a segment is a multiple of it */
	a->high += -a->high & (SL_DEVICE_UNIT - 1);
}

/* The recorded settings, and a capacity of at least what was reserved before the window.  The driver may put segments elsewhere. */
static void answer_exactly(struct sl_fit_answer *a, const struct sl_fit_subject *subject, struct sl_fit_case *how,
			   const struct sl_fit_question *question)
{
	const struct sl_fit_recording *r = subject->recording;

	how->ties = SL_FIT_GIVEN;
	sl_fit_run(&a->free, r, how);
	for (unsigned i = 0; i < subject->capacity_count; i++) {
		how->capacity = subject->capacities[i];
		if (how->capacity >= r->reserved_start)
			sl_fit_run(&a->at[i], r, how);
	}
	if (question->unscanned)
		return;
	sl_fit_scan(&a->scan, r, how);
	if (a->scan.always_from == SL_UNKNOWN || a->scan.always_from <= r->reserved_start)
		return;
	widen(a, a->scan.always_from);
	for (unsigned order = 0; order < ORDERS; order++)
		if (take_order(how, r, order) && order != SL_FIT_GIVEN)
			answer_otherwise(a, subject, r, how, question);
	a->other_from = SL_UNKNOWN; /* it is in the span */
}

/* What was tried in several orders fits from the span's end on. */
static void judge(struct sl_fit_answer *a, const struct sl_fit_subject *subject, bool exact)
{
	a->scan.always_from = a->high;
	for (unsigned i = 0; i < subject->capacity_count; i++) {
		uint64_t capacity = subject->capacities[i];

		if (exact && capacity >= subject->recording->reserved_start)
			continue;
		if (capacity >= a->high)
			a->at[i].verdict = SL_FIT_FITS;
		a->ambiguous[i] = capacity < a->high && (a->ambiguous[i] || capacity >= a->low);
	}
}

/*
 * A window.  With the recorded settings and at least the capacity that was reserved before it, the blocks from before it have their
 * recorded addresses, and the answer is exact.  Else their addresses are not known: they are requested first, in several orders.
 */
static void answer_window(struct sl_fit_answer *a, const struct sl_fit_subject *subject, const struct sl_fit_choice *choice,
			  const struct sl_fit_question *question)
{
	const struct sl_fit_recording under = sl_fit_under(subject->recording, choice), *r = &under;
	const struct sl_fit_settings *settings = choice->text ? &choice->settings : &r->settings;
	struct sl_fit_case how = {.capacity = UINT64_MAX,
				  .of_allocator = true,
				  .granted = true,
				  .settings = choice->text ? &choice->settings : NULL,
				  .operations_max = question->scan_max ? question->scan_max : WINDOW_OPERATIONS};
	bool exact = !choice->release && (!choice->text || !strcmp(choice->text, r->text)), answered;

	a->other_from = a->low = a->high = SL_UNKNOWN;
	if (exact)
		answer_exactly(a, subject, &how, question);
	answered = a->low != SL_UNKNOWN;
	how.ties = SL_FIT_REUSED;
	how.streams_reversed = how.loose = false;
	for (unsigned first = 0; first < SL_FIT_FIRSTS; first++)
		answer_from_nothing(a, subject, r, &how, (enum sl_fit_first)first, !exact, !answered && !question->unscanned);
	how.ties = SL_FIT_GIVEN;
	how.capacity = UINT64_MAX;
	if (a->low == SL_UNKNOWN)
		return;
	/* pieces of segments that a lower max_split_size would not have split are no places: PyTorch dies of such a change */
	if (!answered && settings->expandable == r->settings.expandable && settings->max_split >= r->settings.max_split)
		answer_as_they_lay(a, r, &how);
	if (!answered)
		add_margin(a, exact ? SHORT_PART : settings->expandable ? PAGE_PART : SEGMENT_PART);
	if (!answered && exact) { /* all that was reserved at the start does */
		a->high = a->high < r->reserved_start ? a->high : r->reserved_start;
		a->low = a->low < a->high ? a->low : a->high;
	}
	judge(a, subject, exact);
}

/*
 * "Always" is under every placement.  Past a request that was refused the program would have gone on, which the window does not
 * show.
 */
static void settle_window(struct sl_fit_answer *a, const struct sl_fit_subject *subject)
{
	for (unsigned i = 0; i < subject->capacity_count && subject->recording->ooms; i++)
		if (a->at[i].verdict == SL_FIT_FITS)
			a->at[i].verdict = SL_FIT_UNKNOWN;
	if (subject->recording->seeds.count)
		return;
	a->scan.always_from = a->high;
	if (!subject->recording->pools_open)
		a->other_from = SL_UNKNOWN;
}

/* Takes the release that reproduces the window: of those that the user named, else of those that write such a file. */
static void find_release(struct sl_fit_subject *subject, struct sl_fit_recording *r, const struct sl_fit_question *question)
{
	for (unsigned i = 0; i < question->release_count && !subject->check.exact; i++) {
		r->release = question->releases[i];
		sl_fit_check(&subject->check, r);
	}
	if (!subject->check.exact)
		sl_fit_check_releases(&subject->check, r);
}

/* From 2.10 on the program may have set a memory fraction unseen: takes that of the user's settings that explains the run. */
static void find_fraction(struct sl_fit_subject *subject, struct sl_fit_recording *r, const struct sl_fit_question *question)
{
	double seen = r->settings.fraction;

	for (unsigned i = 0; i < question->setting_count && !subject->check.exact; i++) {
		struct sl_fit_settings settings = sl_fit_defaults;
		const char *at;

		if (!question->settings[i] || sl_fit_settings_parse(&settings, question->settings[i], r->release, &at) ||
		    !(settings.fraction > 0))
			continue;
		r->settings.fraction = settings.fraction;
		sl_fit_check(&subject->check, r);
		if (!subject->check.exact)
			r->settings.fraction = seen;
	}
}

void sl_fit_ask(struct sl_fit_subject *subject, const struct sl_fit_recording *recording, const struct sl_fit_question *question)
{
	struct sl_fit_question asked = *question;

	asked.of_allocator |= recording->window;
	*subject = (struct sl_fit_subject){.recording = recording};
	if (!recording->doubt && !sl_fit_spent(subject)) {
		sl_budget_resume();
		sl_budget_begin(recording->budget, recording->trace->disk_bytes);
		if (recording->window)
			find_release(subject, (struct sl_fit_recording *)recording, question);
		else
			sl_fit_check(&subject->check, recording);
		if (recording->blind)
			find_fraction(subject, (struct sl_fit_recording *)recording, question);
	}
	choose(subject, question);
	if (!subject->check.exact)
		return;
	subject->answers = sl_memory_must(calloc(subject->choice_count, sizeof(*subject->answers)));
	for (unsigned c = 0; c < subject->choice_count && !sl_fit_spent(subject); c++) {
		sl_budget_begin(recording->budget, recording->trace->disk_bytes);
		if (subject->choices[c].wrong)
			subject->answers[c] = (struct sl_fit_answer){
				.scan.always_from = SL_UNKNOWN, .other_from = SL_UNKNOWN, .low = SL_UNKNOWN, .high = SL_UNKNOWN};
		else
			(recording->seeds.count ? answer_window : answer)(&subject->answers[c], subject, &subject->choices[c],
									  &asked);
		if (recording->window)
			settle_window(&subject->answers[c], subject);
		for (unsigned i = 0; subject->choices[c].wrong && i < subject->capacity_count; i++)
			subject->answers[c].at[i].verdict = SL_FIT_UNKNOWN;
	}
	if (sl_fit_spent(subject))
		sl_fit_subject_free(subject);
}

bool sl_fit_spent(const struct sl_fit_subject *subject)
{
	return !subject->recording->budget->left_ns;
}

void sl_fit_subject_free(struct sl_fit_subject *subject)
{
	for (unsigned c = 0; subject->answers && c < subject->choice_count; c++) {
		free(subject->answers[c].scan.also.item);
		sl_fit_trail_free(&subject->answers[c].trail);
	}
	free(subject->answers);
	subject->answers = NULL;
}

enum sl_fit_verdict sl_fit_judge_driver(const struct sl_fit_driver *d, uint64_t capacity, char *why, size_t size)
{
	uint64_t small = -d->given_bytes & (SL_DEVICE_UNIT - 1); /* small blocks share a unit */
	uint64_t needed_max = d->beside_bytes == SL_UNKNOWN ? SL_UNKNOWN : d->given_bytes + small + d->beside_bytes + d->unsure;
	bool refused = d->refused && (!d->went_on || capacity > d->failed_total);
	const char *open = refused		      ? "it ran out of memory in the recording; later requests are unknown"
			   : d->pool		      ? "the driver's pool keeps more than is live"
			   : d->partial		      ? SL_FIT_PARTIAL
			   : needed_max == SL_UNKNOWN ? "no sample after the peak has the memory of contexts and other processes"
						      : NULL;
	char bytes[SL_FORMAT_BYTES], all[SL_FORMAT_BYTES];

	if (d->peak_bytes > capacity || (!d->went_on && d->failed_total && capacity <= d->failed_total)) {
		if (d->peak_bytes > capacity)
			snprintf(why, size, "%s were live at once", sl_format_size(bytes, d->peak_bytes));
		else
			snprintf(why, size, "it ran out of memory on a device of %s", sl_format_size(bytes, d->failed_total));
		return SL_FIT_FAILS;
	}
	if (open)
		snprintf(why, size, "%s", open);
	else
		snprintf(why, size, "it needs between %s and %s", sl_format_size(bytes, d->peak_bytes),
			 sl_format_size(all, needed_max));
	return open || needed_max > capacity ? SL_FIT_UNKNOWN : SL_FIT_FITS;
}

unsigned sl_fit_best(const struct sl_fit_subject *subject)
{
	unsigned best = 0;

	for (unsigned c = 1; subject->answers && c < subject->choice_count; c++)
		if (!subject->choices[c].release && subject->answers[c].scan.always_from < subject->answers[best].scan.always_from)
			best = c;
	return best;
}

/* Answers as a reader has them. */

const char *sl_fit_why(const struct sl_fit_subject *subject, char *out, size_t size)
{
	if (subject->recording->doubt)
		return subject->recording->doubt;
	if (sl_fit_spent(subject))
		return SL_FIT_SPENT;
	if (subject->check.refused)
		return "settings that the program made are not understood";
	if (subject->check.moved) {
		snprintf(out, size, "the replay puts %s of the window's blocks elsewhere", SL_NUMBER(subject->check.moved));
		return out;
	}
	if (subject->check.error == SL_UNKNOWN)
		return "the replay of the recorded run is granted what was refused, or the other way round";
	snprintf(out, size, "the replay of the recorded run is off by up to %s", SL_SIZE(subject->check.error));
	return out;
}

const char *sl_fit_span(const struct sl_fit_answer *a, char out[SL_FORMAT_SPAN_BYTES])
{
	return a->high == SL_UNKNOWN ? "unknown" : sl_format_span(out, a->low, a->high);
}

const char *sl_fit_word(const struct sl_fit_answer *a, unsigned capacity)
{
	static const char *const words[] = {[SL_FIT_FITS] = "fits", [SL_FIT_FAILS] = "no", [SL_FIT_UNKNOWN] = "unknown"};

	return a->ambiguous[capacity] ? "either" : words[a->at[capacity].verdict];
}

#define FIT_OTHER_RELEASE                                                                                                          \
	"these are the same requests; another release may ask for other sizes, which stormlog-run --dry in its environment shows"

void sl_fit_notes(const struct sl_fit_subject *subject, bool of_allocator, void (*say)(void *context, const char *text),
		  void *context)
{
	const struct sl_fit_recording *r = subject->recording;
	char text[200];

	for (unsigned c = 0; subject->answers && c < subject->choice_count; c++)
		if (subject->choices[c].wrong) {
			snprintf(text, sizeof(text), "no verdict for %.90s: %s", subject->choices[c].name,
				 subject->choices[c].wrong);
			say(context, text);
		}
	if (subject->choice_count && subject->choices[subject->choice_count - 1].release)
		say(context, FIT_OTHER_RELEASE);
	if (!subject->answers)
		say(context, sl_fit_why(subject, text, sizeof(text)));
	if (r->unasked) {
		snprintf(text, sizeof(text),
			 "of %s requests the size is not known, and the block's is taken: other settings can be off",
			 SL_NUMBER(r->unasked));
		say(context, text);
	}
	if (!of_allocator && !r->others_known)
		say(context, "no verdict for a device: no sample has the memory of contexts and other processes; "
			     "--allocator-capacity asks without them");
	if (!of_allocator && r->unsure) {
		snprintf(text, sizeof(text),
			 "a card may take up to %s more than these sizes: either says that a verdict depends on it",
			 SL_SIZE(r->unsure));
		say(context, text);
	}
	if (r->blind && !(r->settings.fraction > 0))
		say(context, "this PyTorch hides a memory fraction that the program sets: "
			     "name it by --settings per_process_memory_fraction:0.8");
	if (r->asks_free)
		say(context, "it asks how much memory is free, so it may behave differently on another card");
	if (r->lacked)
		say(context,
		    "memory ran out outside of PyTorch's allocator: with more of it, what the program would have done is not "
		    "known");
	if (r->window && r->ooms)
		say(context, "memory ran out in the window: figures are up to the first request that was refused");
	else if (r->goes_on || r->ooms > 1)
		say(context, "it went on after an out-of-memory, so it behaves differently on another card");
}

const char *sl_fit_text(const struct sl_fit_subject *subject, unsigned choice)
{
	const struct sl_fit_choice *one = &subject->choices[choice];

	return one->release ? one->name : one->text ? one->text : subject->recording->text;
}

const char *sl_fit_name(const struct sl_fit_subject *subject, unsigned choice)
{
	const char *text = sl_fit_text(subject, choice);

	return *text ? text : "(none)";
}
