/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/fit.h"

#include "analyzer/base/escape.h"
#include "analyzer/report/dry.h"
#include "analyzer/symbols/symbols.h"

/* --- for people -------------------------------------------------------------------------------------------- */

static void put_line(const struct sl_fit_recording *r, size_t at)
{
	char text[300];

	if (*sl_fit_line(r, at, text, sizeof(text)))
		sl_escape_print(stdout, "  %s", text);
}

static void put_failures(const struct sl_fit_subject *s)
{
	for (unsigned c = 0; c < s->choice_count; c++)
		for (unsigned i = 0; i < s->capacity_count; i++) {
			const struct sl_fit_outcome *o = &s->answers[c].at[i];

			if (o->verdict != SL_FIT_FAILS)
				continue;
			sl_escape_print(stdout, "  %s, %s: ", SL_SIZE(s->capacities[i]), sl_fit_name(s, c));
			if (!o->request && s->recording->window)
				sl_escape_print(stdout, "a block from before the window, of %s", SL_SIZE(o->bytes));
			else if (o->request)
				sl_escape_print(stdout, "request %s, of %s", SL_NUMBER(o->request), SL_SIZE(o->bytes));
			else
				sl_escape_print(stdout, "another call, when everything else had %s", SL_SIZE(o->bytes));
			sl_escape_print(stdout, ", %s reserved%s", SL_SIZE(o->stats.reserved),
					o->stats.broken ? ": there PyTorch dies of a mistake of its own" : "");
			if (o->request)
				put_line(s->recording, o->at);
			putchar('\n');
		}
}

#define SPAN_WIDTH(s) ((s)->recording->window ? 20 : 10)

static void put_row(const struct sl_fit_subject *s, unsigned c)
{
	const struct sl_fit_answer *a = &s->answers[c];
	char span[SL_FORMAT_SPAN_BYTES];

	sl_escape_print(stdout, "  %-52.52s%s", sl_fit_name(s, c), !s->choices[c].text ? " (recorded)" : "           ");
	sl_escape_print(stdout, " %*s", SPAN_WIDTH(s),
			s->recording->window		    ? sl_fit_span(a, span)
			: a->scan.always_from == SL_UNKNOWN ? "unknown"
							    : SL_SIZE(a->scan.always_from));
	sl_escape_print(stdout, " %10s", SL_SIZE(a->free.stats.peak_reserved));
	for (unsigned i = 0; i < s->capacity_count; i++)
		sl_escape_print(stdout, " %10s", sl_fit_word(a, i));
	putchar('\n');
	for (size_t i = 0; i < a->scan.also.count && i < 3; i++) {
		char to[SL_FORMAT_BYTES];

		sl_escape_print(stdout, "    also from %s to %s\n", SL_SIZE(a->scan.also.item[i].from),
				sl_format_size(to, a->scan.also.item[i].to));
	}
	if (a->other_from != SL_UNKNOWN)
		sl_escape_print(stdout, "    %s where %s\n", SL_SIZE(a->other_from),
				s->recording->pools_open ? "its private pools are of no graph, or segments lie otherwise"
							 : "the driver places segments or streams otherwise");
}

static void put_best(const struct sl_fit_subject *s)
{
	unsigned best = sl_fit_best(s);
	char less[SL_FORMAT_BYTES];

	if (!best || s->choices[0].text || s->answers[best].scan.always_from == SL_UNKNOWN)
		return;
	sl_escape_print(stdout, "best: PYTORCH_%s_ALLOC_CONF=%s %s %s", s->recording->rocm ? "HIP" : "CUDA", sl_fit_name(s, best),
			s->recording->window && s->recording->ooms ? "gets past it from" : "needs",
			SL_SIZE(s->answers[best].scan.always_from));
	if (s->answers[0].scan.always_from != SL_UNKNOWN)
		sl_escape_print(stdout, ", %s less",
				sl_format_size(less, s->answers[0].scan.always_from - s->answers[best].scan.always_from));
	putchar('\n');
}

/* Prints which change would have been enough where memory ran out. */
static void put_instead(const struct sl_fit_subject *s, const struct sl_fit_instead *instead)
{
	bool any = false;

	if (!instead->known)
		return;
	sl_escape_print(stdout, "it ended out of memory: request %s, of %s", SL_NUMBER(instead->request), SL_SIZE(instead->bytes));
	put_line(s->recording, instead->at);
	fputs("\n  on the recorded device it would have been granted", stdout);
	for (unsigned c = 0; c < s->choice_count; c++)
		if (instead->granted[c]) {
			sl_escape_print(stdout, "%s %s", any ? "," : " with", sl_fit_name(s, c));
			any = true;
		}
	if (instead->block_bytes) {
		sl_escape_print(stdout, "%s had %s been freed before, request %s", any ? "; or" : ",",
				SL_SIZE(instead->block_bytes), SL_NUMBER(instead->block_request));
		put_line(s->recording, instead->block_at);
	} else if (!any) {
		sl_escape_print(stdout, " with no setting that was tried, and not by an earlier end of one of %u blocks",
				instead->tried);
	}
	putchar('\n');
	sl_fit_picture_print(s->recording, &instead->picture);
}

static void put_note(void *context, const char *text)
{
	(void)context;
	sl_escape_print(stdout, "%s\n", text);
}

static void put_subject(const struct sl_fit_subject *s, const struct sl_fit_instead *instead, bool of_allocator)
{
	const struct sl_fit_recording *r = s->recording;
	char why[120];

	if (r->window)
		sl_escape_print(stdout, "%s  device %d", sl_stacks_program(&r->trace->header), r->device);
	else
		sl_escape_print(stdout, "%s  device %d  PyTorch %u.%u", r->session, r->device, r->release / 100, r->release % 100);
	if (r->window && s->answers)
		sl_escape_print(stdout, "  by the rules of PyTorch %u.%u", r->release / 100, r->release % 100);
	sl_escape_print(stdout, "  %s requests\n", SL_NUMBER(r->requests));
	if (!s->answers) {
		sl_escape_print(stdout, "no verdict: %s\n", sl_fit_why(s, why, sizeof(why)));
		return;
	}
	sl_escape_print(stdout, "the replay reproduces the recorded run exactly (%s events)\n", SL_NUMBER(s->check.compared));
	sl_fit_notes(s, of_allocator || r->window, put_note, NULL);
	if (r->reserved_start)
		sl_escape_print(
			stdout,
			"%s were reserved before the window, part of it may be cache: work before it may have needed more\n",
			SL_SIZE(r->reserved_start));
	if (r->window)
		sl_escape_print(stdout, "sizes are PyTorch's allocator's" SL_FIT_CARD "\n");
	sl_escape_print(stdout, "\n  %-63s %*s %10s",
			of_allocator || r->window ? "settings; sizes are the allocator's" : "settings; sizes are the device's",
			SPAN_WIDTH(s),
			!r->window ? "always fits"
			: r->ooms  ? "gets past it from"
				   : "smallest that fits",
			r->window && r->ooms ? "unlimited" : "reserved");
	for (unsigned i = 0; i < s->capacity_count; i++)
		sl_escape_print(stdout, " %10s", SL_SIZE(s->capacities[i]));
	putchar('\n');
	for (unsigned c = 0; c < s->choice_count; c++)
		put_row(s, c);
	put_failures(s);
	put_best(s);
	put_instead(s, instead);
}

static void put_drivers(const struct sl_fit_process *p, const char *session, const struct sl_fit_question *question)
{
	static const char *const words[] = {[SL_FIT_FITS] = "fits", [SL_FIT_FAILS] = "no", [SL_FIT_UNKNOWN] = "unknown"};
	char why[120];

	for (unsigned i = 0; i < p->driver_count; i++) {
		sl_escape_print(stdout, "%s  device %d  without PyTorch's allocator: %s live at most%s\n", session,
				p->drivers[i].device, SL_SIZE(p->drivers[i].peak_bytes),
				p->drivers[i].pool ? ", a lower bound: the driver's pool keeps more" : ", and its context");
		for (unsigned k = 0; !question->of_allocator && k < question->capacity_count; k++) {
			const char *word = words[sl_fit_judge_driver(&p->drivers[i], question->capacities[k], why, sizeof(why))];

			sl_escape_print(stdout, "  %10s  %s: %s\n", SL_SIZE(question->capacities[k]), word, why);
		}
	}
}

void sl_fit_print(const struct sl_fit_result *result)
{
	if (result->vary) {
		sl_fit_vary_print(result);
		putchar('\n');
	}
	for (unsigned i = 0; i < result->subject_count; i++) {
		if (i)
			putchar('\n');
		put_subject(&result->subjects[i], &result->insteads[i], result->question->of_allocator);
	}
	for (unsigned p = 0; p < result->process_count; p++)
		put_drivers(&result->processes[p], result->sessions[p], result->question);
}

/* --- for programs ------------------------------------------------------------------------------------------ */

static void put_stack(struct sl_json *j, const struct sl_fit_subject *s, size_t at)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_stacks_resolve(frames, &s->recording->trace->defs, NULL,
					   (struct sl_stack){.python = s->recording->ops.item[at].python});

	sl_stacks_write(j, frames, count);
}

static void put_release(struct sl_json *j, const struct sl_fit_subject *s, unsigned c)
{
	unsigned release = s->choices[c].release ? s->choices[c].release : s->recording->release;
	char text[24];

	snprintf(text, sizeof(text), "%u.%u", release / 100, release % 100);
	sl_json_string(j, "torch", release ? text : NULL);
}

static void put_failed(struct sl_json *j, const struct sl_fit_subject *s, const struct sl_fit_outcome *o)
{
	if (o->verdict != SL_FIT_FAILS) {
		sl_json_null(j, "failed_at");
		return;
	}
	sl_json_object(j, "failed_at");
	sl_json_known_uint(j, "request", o->request ? o->request : SL_UNKNOWN);
	sl_json_uint(j, "bytes", o->bytes);
	put_stack(j, s, o->at);
	sl_json_end(j);
}

static void put_run(struct sl_json *j, const struct sl_fit_subject *s, unsigned c, unsigned i, bool of_allocator)
{
	const struct sl_fit_answer *a = s->answers ? &s->answers[c] : NULL;
	const struct sl_fit_outcome *o = a ? &a->at[i] : NULL;
	const char *text = s->choices[c].text;

	sl_json_object(j, NULL);
	sl_json_string(j, "process", s->recording->session);
	sl_json_int(j, "device", s->recording->device);
	sl_json_uint(j, "capacity_bytes", s->capacities[i]);
	sl_json_string(j, "capacity_of", of_allocator ? "allocator" : "device");
	sl_json_string(j, "settings", text ? text : s->recording->text);
	put_release(j, s, c);
	if (!o || o->verdict == SL_FIT_UNKNOWN || a->ambiguous[i])
		sl_json_null(j, "fits");
	else
		sl_json_bool(j, "fits", o->verdict == SL_FIT_FITS);
	sl_json_known_uint(j, "peak_reserved_bytes", o ? o->stats.peak_reserved : SL_UNKNOWN);
	sl_json_known_uint(j, "peak_allocated_bytes", o ? o->stats.peak_allocated : SL_UNKNOWN);
	sl_json_known_uint(j, "fragmented_bytes", o ? o->stats.inactive_at_peak : SL_UNKNOWN);
	sl_json_known_uint(j, "retries", o ? o->stats.retries : SL_UNKNOWN);
	if (o)
		put_failed(j, s, o);
	else
		sl_json_null(j, "failed_at");
	sl_json_end(j);
}

/* A device without PyTorch's allocator. */
static void put_driver_run(struct sl_json *j, const char *session, const struct sl_fit_driver *driver, uint64_t capacity)
{
	char why[120];
	enum sl_fit_verdict verdict = sl_fit_judge_driver(driver, capacity, why, sizeof(why));

	sl_json_object(j, NULL);
	sl_json_string(j, "process", session);
	sl_json_int(j, "device", driver->device);
	sl_json_uint(j, "capacity_bytes", capacity);
	sl_json_string(j, "capacity_of", "device");
	sl_json_string(j, "settings", "");
	sl_json_null(j, "torch");
	if (verdict == SL_FIT_UNKNOWN)
		sl_json_null(j, "fits");
	else
		sl_json_bool(j, "fits", verdict == SL_FIT_FITS);
	sl_json_null(j, "peak_reserved_bytes");
	sl_json_null(j, "peak_allocated_bytes");
	sl_json_null(j, "fragmented_bytes");
	sl_json_null(j, "retries");
	sl_json_null(j, "failed_at");
	sl_json_end(j);
}

static void put_smallest(struct sl_json *j, const struct sl_fit_subject *s, unsigned c, bool of_allocator)
{
	const struct sl_fit_scan *scan = s->answers ? &s->answers[c].scan : NULL;
	const char *text = s->choices[c].text;

	sl_json_object(j, NULL);
	sl_json_string(j, "process", s->recording->session);
	sl_json_int(j, "device", s->recording->device);
	sl_json_string(j, "capacity_of", of_allocator ? "allocator" : "device");
	sl_json_string(j, "settings", text ? text : s->recording->text);
	put_release(j, s, c);
	sl_json_known_uint(j, "always_from_bytes",
			   !scan		  ? SL_UNKNOWN
			   : s->recording->window ? s->answers[c].high
						  : scan->always_from);
	if (s->recording->window)
		sl_json_known_uint(j, "least_bytes", s->answers ? s->answers[c].low : SL_UNKNOWN);
	sl_json_known_uint(j, "looked_down_to_bytes", scan ? scan->looked_to : SL_UNKNOWN);
	sl_json_array(j, "also_fits");
	for (size_t i = 0; scan && i < scan->also.count; i++) {
		sl_json_array(j, NULL);
		sl_json_uint(j, NULL, scan->also.item[i].from);
		sl_json_uint(j, NULL, scan->also.item[i].to);
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_json_end(j);
}

static void put_ended(struct sl_json *j, const struct sl_fit_subject *s, const struct sl_fit_instead *instead)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "process", s->recording->session);
	sl_json_int(j, "device", s->recording->device);
	sl_json_uint(j, "request", instead->request);
	sl_json_uint(j, "bytes", instead->bytes);
	put_stack(j, s, instead->at);
	sl_json_array(j, "granted_with");
	for (unsigned c = 0; c < s->choice_count; c++)
		if (instead->granted[c])
			sl_json_string(j, NULL, sl_fit_text(s, c));
	sl_json_end(j);
	if (instead->block_bytes) {
		sl_json_object(j, "granted_without");
		sl_json_uint(j, "request", instead->block_request);
		sl_json_uint(j, "bytes", instead->block_bytes);
		put_stack(j, s, instead->block_at);
		sl_json_end(j);
	} else {
		sl_json_null(j, "granted_without");
	}
	sl_json_uint(j, "tried", instead->tried);
	sl_json_uint(j, "live", instead->live);
	sl_fit_picture_json(j, s->recording, &instead->picture);
	sl_json_end(j);
}

static void put_string(void *j, const char *text)
{
	sl_json_string(j, NULL, text);
}

void sl_fit_print_json(const struct sl_fit_result *result)
{
	struct sl_json *j = sl_json_new(stdout, SL_JSON_INDENT);
	uint64_t events = 0;
	bool exact = result->subject_count > 0;

	for (unsigned i = 0; i < result->subject_count; i++) {
		exact &= result->subjects[i].answers != NULL;
		events += result->subjects[i].check.compared;
	}
	sl_json_document(j, "stormlog.fit", 1);
	sl_json_string(j, "dry", sl_dry_card(&result->processes[0].trace->header));
	sl_json_bool(j, "reproduces", exact);
	sl_json_uint(j, "events", events);
	sl_json_array(j, "runs");
	for (unsigned i = 0; i < result->subject_count; i++)
		for (unsigned c = 0; c < result->subjects[i].choice_count; c++)
			for (unsigned k = 0; k < result->subjects[i].capacity_count; k++)
				put_run(j, &result->subjects[i], c, k, result->question->of_allocator);
	for (unsigned p = 0; p < result->process_count; p++)
		for (unsigned i = 0; !result->question->of_allocator && i < result->processes[p].driver_count; i++)
			for (unsigned k = 0; k < result->question->capacity_count; k++)
				put_driver_run(j, result->sessions[p], &result->processes[p].drivers[i],
					       result->question->capacities[k]);
	sl_json_end(j);
	sl_json_array(j, "smallest");
	for (unsigned i = 0; i < result->subject_count; i++)
		for (unsigned c = 0; c < result->subjects[i].choice_count; c++)
			put_smallest(j, &result->subjects[i], c, result->question->of_allocator);
	sl_json_end(j);
	sl_json_array(j, "drivers");
	for (unsigned p = 0; p < result->process_count; p++)
		for (unsigned i = 0; i < result->processes[p].driver_count; i++) {
			sl_json_object(j, NULL);
			sl_json_string(j, "process", result->sessions[p]);
			sl_json_int(j, "device", result->processes[p].drivers[i].device);
			sl_json_uint(j, "peak_live_bytes", result->processes[p].drivers[i].peak_bytes);
			sl_json_bool(j, "lower_bound", result->processes[p].drivers[i].pool);
			sl_json_end(j);
		}
	sl_json_end(j);
	sl_json_array(j, "ended_by");
	for (unsigned i = 0; i < result->subject_count; i++)
		if (result->insteads[i].known)
			put_ended(j, &result->subjects[i], &result->insteads[i]);
	sl_json_end(j);
	sl_fit_vary_json(j, result);
	sl_json_array(j, "notes");
	for (unsigned i = 0; i < result->subject_count; i++)
		sl_fit_notes(&result->subjects[i], result->question->of_allocator, put_string, j);
	sl_json_end(j);
	sl_json_finish(j);
}
