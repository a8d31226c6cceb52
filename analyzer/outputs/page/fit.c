/* SPDX-License-Identifier: MIT */
/*
 * Would it have fit: the run replayed on other devices and with other settings, asked once for all sizes of the page.
 * What is asked is bounded by operations, so that a page takes at most about five seconds longer.
 */

#include "analyzer/base/memory.h"
#include "analyzer/fit/answer.h"
#include "analyzer/fit/window.h"
#include "analyzer/outputs/page/page.h"

#define SUBJECTS   4
#define POINTS	   256
#define OPERATIONS 30000000ull /* in all, about five seconds */
#define EVENTS	   4000000ull  /* of one process: it is read once more */
#define GIB	   (1ull << 30)

struct asked {
	unsigned process;
	bool of_allocator, whole; /* whole: the usual settings, and the smallest capacity of each */
	struct sl_fit_subject subject;
};

struct sl_page_fits {
	struct sl_fit_process processes[SUBJECTS];
	char *sessions[SUBJECTS];
	struct asked asked[SUBJECTS];
	unsigned process_count, count;
	uint64_t operations; /* left for further questions */
};

/* Devices that can be had, in GiB. */
static const unsigned short cards[] = {1, 2, 4, 6, 8, 10, 11, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 141, 180, 192, 256, 288};

static void add_capacity(struct sl_fit_question *question, uint64_t bytes)
{
	unsigned at = question->capacity_count;

	for (unsigned i = 0; i < at; i++)
		if (question->capacities[i] == bytes)
			return;
	for (question->capacity_count++; at && question->capacities[at - 1] > bytes; at--)
		question->capacities[at] = question->capacities[at - 1];
	question->capacities[at] = bytes;
}

/* The recorded device, the largest card that is smaller than what the run reserved, and the two next larger ones. */
static void choose_capacities(struct sl_fit_question *question, const struct sl_fit_recording *r)
{
	const struct sl_fit_case how = {
		.capacity = UINT64_MAX, .of_allocator = question->of_allocator, .ties = sl_fit_way(r, question->ties)};
	struct sl_fit_outcome o;
	unsigned at = 0, last;

	sl_fit_run(&o, r, &how);
	while (at < SL_COUNT(cards) && cards[at] * GIB < o.stats.granted)
		at++;
	last = at + 1 < SL_COUNT(cards) ? at + 1 : SL_COUNT(cards) - 1;
	for (at = at ? at - 1 : 0; at <= last; at++)
		add_capacity(question, cards[at] * GIB);
	if (r->device_total && !question->of_allocator)
		add_capacity(question, r->device_total);
}

/* How many operations a question takes without the search for the smallest capacity. */
static uint64_t cost_of(const struct sl_fit_recording *r, unsigned settings, unsigned capacities)
{
	return (uint64_t)r->ops.count * (settings * (1 + sl_fit_orders(r) * capacities) + 4);
}

/* Asks for the usual settings if they are cheap enough, else for the recorded ones and the one that helps most often. */
static bool ask(struct sl_page_fits *fits, struct asked *asked, const struct sl_fit_recording *r)
{
	struct sl_fit_question question = {.ties = SL_FIT_GIVEN, .points = POINTS, .of_allocator = !r->others_known};
	uint64_t cost = cost_of(r, 6, 4);

	asked->of_allocator = question.of_allocator;
	asked->whole = cost <= fits->operations / 2;
	question.scan_max = fits->operations / (3 * 6 * sl_fit_orders(r)); /* a third of what is left, for six settings together */
	if (!asked->whole) {
		question.settings[1] = "expandable_segments:True";
		question.setting_count = 2;
		question.unscanned = true;
		cost = cost_of(r, 2, 4);
	}
	if (cost > fits->operations)
		return false;
	fits->operations -= asked->whole ? cost + fits->operations / 3 : cost;
	if (!r->doubt)
		choose_capacities(&question, r);
	sl_fit_ask(&asked->subject, r, &question);
	return true;
}

/* What PyTorch reserved, on the device where that was most. */
static uint64_t reserved_by(const struct sl_process *p)
{
	uint64_t peak = 0;

	for (unsigned d = 1; d < SL_COUNT(p->model->devices); d++)
		if (p->model->devices[d] && p->model->devices[d]->torch.reported &&
		    p->model->devices[d]->torch.peak_reserved_bytes > peak)
			peak = p->model->devices[d]->torch.peak_reserved_bytes;
	return p->trace && p->model->events <= EVENTS ? peak : 0;
}

static void ask_process(struct sl_page_fits *fits, const struct sl_report *report, unsigned process)
{
	struct sl_trace *trace = report->processes[process].trace;
	struct sl_fit_process *fit = &fits->processes[fits->process_count];

	fits->sessions[fits->process_count] = sl_report_session(trace);
	sl_fit_record(fit, trace, fits->sessions[fits->process_count++], true);
	for (unsigned i = 0; i < fit->count && fits->count < SUBJECTS; i++) {
		fits->asked[fits->count] = (struct asked){.process = process};
		fits->count += ask(fits, &fits->asked[fits->count], &fit->recordings[i]);
	}
}

struct sl_page_fits *sl_page_fits_new(const struct sl_report *report)
{
	struct sl_page_fits *fits = sl_memory_must(calloc(1, sizeof(*fits)));
	bool *done = sl_memory_must(calloc(report->process_count + 1, sizeof(*done)));

	fits->operations = report->options.until_unix_ns ? 0 : OPERATIONS; /* the recording is read to its end */
	while (fits->operations && fits->process_count < SUBJECTS && fits->count < SUBJECTS) {
		unsigned best = report->process_count;

		for (unsigned i = 0; i < report->process_count; i++)
			if (!done[i] && reserved_by(&report->processes[i]) &&
			    (best == report->process_count ||
			     reserved_by(&report->processes[i]) > reserved_by(&report->processes[best])))
				best = i;
		if (best == report->process_count)
			break;
		done[best] = true;
		ask_process(fits, report, best);
	}
	free(done);
	return fits;
}

void sl_page_fits_free(struct sl_page_fits *fits)
{
	for (unsigned i = 0; i < fits->count; i++)
		sl_fit_subject_free(&fits->asked[i].subject);
	for (unsigned i = 0; i < fits->process_count; i++) {
		sl_fit_forget(&fits->processes[i]);
		free(fits->sessions[i]);
	}
	free(fits);
}

/* --- how it is written ------------------------------------------------------------------------------------- */

static void put_column(struct sl_page *page, const char *key, const double *values, unsigned count)
{
	sl_json_column(page->j, key, SL_PACKED_F64, values, count);
}

static void put_run(struct sl_page *page, const struct asked *asked, const struct sl_fit_answer *a, unsigned i)
{
	const struct sl_fit_outcome *o = &a->at[i];
	const struct sl_fit_recording *r = asked->subject.recording;
	bool failed = o->verdict == SL_FIT_FAILS;

	sl_json_object(page->j, NULL);
	sl_json_string(page->j, "verdict", sl_fit_word(a, i));
	sl_json_known_uint(page->j, "reserved", o->stats.peak_reserved);
	sl_json_known_uint(page->j, "retries", o->stats.retries);
	sl_json_known_uint(page->j, "request", failed && o->request ? o->request : SL_UNKNOWN);
	sl_json_known_uint(page->j, "bytes", failed ? o->bytes : SL_UNKNOWN);
	sl_page_put_time(page, "at", asked->process, failed ? r->times.item[o->at] : SL_UNKNOWN);
	sl_json_uint(page->j, "stack",
		     failed ? sl_page_stack(page, asked->process, (struct sl_stack){.python = r->ops.item[o->at].python}) : 0);
	sl_json_end(page->j);
}

/* A window up to the request that was refused: what fits the rest of the program is not known. */
static bool ended_early(const struct asked *asked)
{
	return asked->subject.recording->window && asked->subject.recording->ooms;
}

static void put_choice(struct sl_page *page, const struct asked *asked, unsigned c)
{
	const struct sl_fit_subject *s = &asked->subject;
	const struct sl_fit_answer *a = &s->answers[c];

	sl_json_object(page->j, NULL);
	sl_json_string(page->j, "settings", sl_fit_name(s, c));
	sl_json_bool(page->j, "recorded", !s->choices[c].text);
	sl_json_known_uint(page->j, "always_from", asked->whole && !ended_early(asked) ? a->scan.always_from : SL_UNKNOWN);
	sl_json_known_uint(page->j, "otherwise", a->other_from);
	/* the search ended before it met one that does not */
	sl_json_bool(page->j, "at_most", a->scan.looked_to >= a->scan.always_from && a->scan.looked_to > a->free.floor);
	sl_json_array(page->j, "also");
	for (size_t i = 0; i < a->scan.also.count; i++) {
		sl_json_array(page->j, NULL);
		sl_json_double(page->j, NULL, (double)a->scan.also.item[i].from);
		sl_json_double(page->j, NULL, (double)a->scan.also.item[i].to);
		sl_json_end(page->j);
	}
	sl_json_end(page->j);
	sl_json_known_uint(page->j, "peak_reserved", a->free.stats.peak_reserved);
	put_column(page, "reserved", a->trail.reserved, a->trail.points);
	put_column(page, "needed", a->trail.needed, a->trail.points);
	sl_json_array(page->j, "runs");
	for (unsigned i = 0; i < s->capacity_count; i++)
		put_run(page, asked, a, i);
	sl_json_end(page->j);
	sl_json_end(page->j);
}

static void put_subject(struct sl_page *page, const struct asked *asked)
{
	const struct sl_fit_subject *s = &asked->subject;
	const struct sl_fit_recording *r = s->recording;
	uint32_t choices = s->answers ? s->choice_count : 0;
	char release[32];

	snprintf(release, sizeof(release), "%u.%u", r->release / 100, r->release % 100);
	sl_page_row(page, asked->process);
	sl_json_known(page->j, "device", r->device);
	sl_json_string(page->j, "release", r->release ? release : NULL);
	sl_json_bool(page->j, "reproduces", s->answers != NULL);
	sl_json_known_uint(page->j, "events", s->check.compared);
	sl_json_bool(page->j, "of_allocator", asked->of_allocator);
	sl_json_array(page->j, "notes");
	sl_fit_notes(s, asked->of_allocator, sl_page_put_warning, page);
	sl_json_end(page->j);
	sl_json_array(page->j, "capacities");
	for (unsigned i = 0; i < s->capacity_count; i++)
		sl_json_double(page->j, NULL, (double)s->capacities[i]);
	sl_json_end(page->j);
	sl_json_uint(page->j, "best", asked->whole && !ended_early(asked) ? sl_fit_best(s) : 0);
	sl_page_put_time(page, "start", asked->process, choices ? s->answers[0].trail.begin_ns : SL_UNKNOWN);
	sl_json_known_uint(page->j, "width", choices ? s->answers[0].trail.width_ns : SL_UNKNOWN);
	sl_json_array(page->j, "choices");
	for (unsigned c = 0; c < choices; c++)
		put_choice(page, asked, c);
	sl_json_end(page->j);
	sl_json_end(page->j);
}

void sl_page_fit(struct sl_page *page, const struct sl_page_fits *fits)
{
	sl_json_array(page->j, "fit");
	for (unsigned i = 0; i < fits->count; i++)
		put_subject(page, &fits->asked[i]);
	sl_json_end(page->j);
}
