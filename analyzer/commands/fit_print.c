/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/fit.h"

#include "analyzer/answer/answer.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/terminal.h"
#include "analyzer/base/vector.h"
#include "analyzer/report/dry.h"
#include "analyzer/symbols/symbols.h"

/* --- for people -------------------------------------------------------------------------------------------- */

/* " at main.py:19 main"; "": not known. */
static const char *line_of(char out[310], const struct sl_fit_recording *r, size_t at)
{
	char text[300];

	snprintf(out, 310, "%s%s", *sl_fit_line(r, at, text, sizeof(text)) ? " at " : "", text);
	return out;
}
#define LINE_OF(r, at) line_of((char[310]){0}, r, at)

/* Which capacities have one verdict each: "8.00 GiB, 12.0 GiB". */
struct verdicts {
	char list[3][200]; /* by enum sl_fit_verdict */
};

static void add_verdict(struct verdicts *v, enum sl_fit_verdict verdict, uint64_t capacity)
{
	char *list = v->list[verdict];
	size_t used = strlen(list);

	snprintf(list + used, sizeof(v->list[0]) - used, "%s%s", used ? ", " : "", SL_ANSWER_SIZE(capacity));
}

/*
 * Prints which capacities are enough.  `need` is "394 MiB", or NULL where the replay does not know it.  `least` is then what the
 * error tells, as "at least 7.64 GiB for this step".
 */
static void put_head(const struct sl_terminal *to, const struct verdicts *v, const char *need, const char *least)
{
	const char *fits = v->list[SL_FIT_FITS], *fails = v->list[SL_FIT_FAILS], *unknown = v->list[SL_FIT_UNKNOWN];

	if (!*fits && !*fails && least) {
		sl_terminal_head(to, SL_COLOUR_YELLOW, "MAY FIT", "it needs %s", least);
		return;
	}
	if (!*fits && !*fails && !*unknown) { /* no capacity was asked for, or is known */
		sl_terminal_head(to, need ? SL_COLOUR_GREEN : SL_COLOUR_YELLOW, need ? "FITS" : "MAY FIT", "%s%s",
				 need ? "where there are " : "what it needs is not known", need ?: "");
		return;
	}
	sl_terminal_head(to,
			 *fails	    ? SL_COLOUR_RED
			 : *unknown ? SL_COLOUR_YELLOW
				    : SL_COLOUR_GREEN,
			 *fails	    ? "DOES NOT FIT"
			 : *unknown ? "MAY FIT"
				    : "FITS",
			 "%s%s%s%s%s%s%s%s%s%s", *fails ? "in " : "", fails, *fails && *fits ? ", fits " : "", *fits ? "in " : "",
			 fits, *unknown && (*fails || *fits) ? ", " : "", *unknown ? "not known for " : "", unknown,
			 need ? ", needs " : "", need ?: "");
}

/* Under the first settings: where it stops. */
static void put_failures(const struct sl_fit_subject *s, const struct sl_terminal *to)
{
	for (unsigned i = 0; i < s->capacity_count; i++) {
		const struct sl_fit_outcome *o = &s->answers[0].at[i];
		char what[100];

		if (o->verdict != SL_FIT_FAILS)
			continue;
		if (!o->request && s->recording->window)
			snprintf(what, sizeof(what), "a block from before the window, of %s", SL_SIZE(o->bytes));
		else if (o->request)
			snprintf(what, sizeof(what), "request %s, of %s", SL_NUMBER(o->request), SL_SIZE(o->bytes));
		else
			snprintf(what, sizeof(what), "another call, when everything else had %s", SL_SIZE(o->bytes));
		sl_terminal_line(to, 0, 4, "  %s, %s: %s%s, %s reserved%s", SL_SIZE(s->capacities[i]), sl_fit_name(s, 0), what,
				 o->request ? LINE_OF(s->recording, o->at) : "", SL_SIZE(o->stats.reserved),
				 o->stats.broken ? ": there PyTorch dies of a mistake of its own" : "");
	}
}

/* From where it fits wherever the driver puts segments. */
static uint64_t always_from(const struct sl_fit_answer *a)
{
	return a->scan.always_from != SL_UNKNOWN && a->other_from != SL_UNKNOWN && a->other_from > a->scan.always_from
		       ? a->other_from
		       : a->scan.always_from;
}

/* The same in words; "unknown". */
static const char *always_of(char out[SL_FORMAT_SPAN_BYTES], const struct sl_fit_subject *s, const struct sl_fit_answer *a)
{
	if (s->recording->window)
		return sl_fit_span(a, out);
	return always_from(a) == SL_UNKNOWN ? "unknown" : sl_format_size(out, always_from(a));
}

static void put_row(struct sl_cells *table, const struct sl_fit_subject *s, unsigned c)
{
	static const enum sl_colour colours[] = {
		[SL_FIT_FITS] = SL_COLOUR_GREEN, [SL_FIT_FAILS] = SL_COLOUR_RED, [SL_FIT_UNKNOWN] = SL_COLOUR_NONE};
	const struct sl_fit_answer *a = &s->answers[c];
	char always[SL_FORMAT_SPAN_BYTES];

	sl_cells_put(table, SL_COLOUR_NONE, "%s%s", sl_fit_name(s, c), !s->choices[c].text ? " (recorded)" : "");
	sl_cells_put(table, SL_COLOUR_NONE, "%s", always_of(always, s, a));
	sl_cells_put(table, SL_COLOUR_NONE, "%s", SL_SIZE(a->free.stats.peak_reserved));
	for (unsigned i = 0; i < s->capacity_count; i++)
		sl_cells_put(table, a->ambiguous[i] ? SL_COLOUR_NONE : colours[a->at[i].verdict], "%s", sl_fit_word(a, i));
	for (size_t i = 0; i < a->scan.also.count && i < 3; i++)
		sl_cells_under(table, "also from %s to %s", SL_SIZE(a->scan.also.item[i].from), SL_SIZE(a->scan.also.item[i].to));
	if (a->other_from != SL_UNKNOWN)
		sl_cells_under(table, "from %s if %s",
			       SL_SIZE(a->other_from > a->scan.always_from ? a->scan.always_from : a->other_from),
			       s->recording->pools_open ? "its private pools are of graphs" : "the driver places segments well");
}

/* False: each cell of the table would say "unknown". */
static bool knows_any(const struct sl_fit_subject *s)
{
	bool any = s->recording->window;

	for (unsigned c = 0; c < s->choice_count; c++) {
		any |= s->answers[c].scan.always_from != SL_UNKNOWN;
		for (unsigned i = 0; i < s->capacity_count; i++)
			any |= s->answers[c].at[i].verdict != SL_FIT_UNKNOWN;
	}
	return any;
}

static void put_table(const struct sl_fit_subject *s, bool of_allocator, const struct sl_terminal *to)
{
	const struct sl_fit_recording *r = s->recording;
	char columns[SL_FIT_CAPACITIES + 4] = "wrr";
	struct sl_cells table = {.columns = columns};

	memset(columns + 3, 'r', s->capacity_count);
	columns[3 + s->capacity_count] = 0;
	sl_cells_put(&table, SL_COLOUR_DIM, "settings");
	sl_cells_put(&table, SL_COLOUR_DIM, "%s",
		     !r->window ? "always fits"
		     : r->ooms	? "gets past it from"
				: "smallest that fits");
	sl_cells_put(&table, SL_COLOUR_DIM, "%s", r->window && r->ooms ? "unlimited" : of_allocator ? "reserved" : "PyTorch's");
	for (unsigned i = 0; i < s->capacity_count; i++)
		sl_cells_put(&table, SL_COLOUR_DIM, "%s", SL_SIZE(s->capacities[i]));
	for (unsigned c = 0; c < s->choice_count; c++)
		put_row(&table, s, c);
	sl_cells_print(&table, to, 2);
}

static void put_best(const struct sl_fit_subject *s, const struct sl_terminal *to)
{
	unsigned best = sl_fit_best(s);
	char less[SL_FORMAT_BYTES + 10] = "";

	if (!best || s->choices[0].text || s->answers[best].scan.always_from == SL_UNKNOWN)
		return;
	if (always_from(&s->answers[0]) != SL_UNKNOWN && always_from(&s->answers[0]) > always_from(&s->answers[best]))
		snprintf(less, sizeof(less), ", %s less",
			 SL_ANSWER_SIZE(always_from(&s->answers[0]) - always_from(&s->answers[best])));
	sl_terminal_line(to, 0, 4, "best: PYTORCH_%s_ALLOC_CONF=%s %s %s%s", s->recording->rocm ? "HIP" : "CUDA",
			 sl_fit_name(s, best), s->recording->window && s->recording->ooms ? "gets past it from" : "needs",
			 SL_ANSWER_SIZE(always_from(&s->answers[best])), less);
}

/* Prints which change would have been enough where memory ran out. */
static void put_instead(const struct sl_fit_subject *s, const struct sl_fit_other_settings *instead, const struct sl_terminal *to)
{
	char with[1200] = "", freed[500] = "", tried[100] = "";
	size_t used = 0;

	if (!instead->is_known)
		return;
	for (unsigned c = 0; c < s->choice_count; c++)
		if (instead->granted[c] && used < sizeof(with))
			used += (size_t)snprintf(with + used, sizeof(with) - used, "%s%s", used ? ", " : " with ",
						 sl_fit_name(s, c));
	if (instead->block_bytes)
		snprintf(freed, sizeof(freed), "%s if the %s of request %s%s had been freed before", used ? ", or" : "",
			 SL_ANSWER_SIZE(instead->block_bytes), SL_NUMBER(instead->block_request),
			 LINE_OF(s->recording, instead->block_at));
	else if (!used)
		snprintf(tried, sizeof(tried), " with no setting that was tried, and not by an earlier end of one of %u blocks",
			 instead->tried);
	sl_terminal_line(to, 0, 4, "it ended out of memory: request %s, of %s%s", SL_NUMBER(instead->request),
			 SL_ANSWER_SIZE(instead->bytes), LINE_OF(s->recording, instead->at));
	sl_terminal_line(to, 2, 4, "on the recorded device it would have been granted%s%s%s", with, freed, tried);
}

/* Several processes have the same notes, which are printed below the first of them. */
struct notes {
	const struct sl_terminal *to;
	SL_VECTOR(char *) printed;
};

static void put_note(void *context, const char *text)
{
	struct notes *notes = context;

	for (size_t i = 0; i < notes->printed.count; i++)
		if (!strcmp(notes->printed.item[i], text))
			return;
	*SL_PUSH(&notes->printed) = sl_memory_copy(text);
	sl_terminal_line(notes->to, 0, 4, "%s", text);
}

/* Prints what the verdicts are of, and what they leave out. */
static void put_origin(const struct sl_fit_subject *s, bool of_allocator, struct notes *notes)
{
	const struct sl_terminal *to = notes->to;
	const struct sl_fit_recording *r = s->recording;
	char rules[60] = "", exact[100] = "";

	if (r->release)
		snprintf(rules, sizeof(rules), "%s PyTorch %u.%u,", r->window ? " by the rules of" : "", r->release / 100,
			 r->release % 100);
	if (s->answers)
		snprintf(exact, sizeof(exact), ": the replay reproduces the recorded run exactly (%s events)",
			 SL_NUMBER(s->check.compared));
	sl_terminal_line(to, 0, 4, "of %s, device %d,%s %s request%s%s",
			 r->window ? sl_stacks_program(&r->trace->header) : r->session, r->device, rules, SL_NUMBER(r->requests),
			 &"s"[r->requests == 1], exact);
	if (s->answers)
		sl_fit_notes(s, of_allocator, put_note, notes);
	if (s->answers && r->reserved_start)
		sl_terminal_line(to, 0, 4,
				 "%s were reserved before the window, part of it may be cache: work before it may have needed more",
				 SL_SIZE(r->reserved_start));
	if (s->answers)
		put_note(notes, r->window      ? "sizes are PyTorch's allocator's" SL_FIT_CARD
				: of_allocator ? "sizes are PyTorch's allocator's"
					       : "sizes are the device's; PyTorch's: what its allocator reserves without a limit, "
						 "part of which it gives back when it must");
}

static void put_subject(const struct sl_fit_result *result, unsigned index, struct notes *notes)
{
	const struct sl_terminal *to = notes->to;
	const struct sl_fit_subject *s = &result->subjects[index];
	bool of_allocator = result->question->of_allocator || s->recording->window;
	char why[120], always[SL_FORMAT_SPAN_BYTES], least[200] = "";
	struct verdicts verdicts = {0};
	const char *need;

	if (result->need)
		snprintf(least, sizeof(least), "%s, and later ones may need more", result->need);
	else if (s->recording->ooms && s->recording->device_total)
		snprintf(least, sizeof(least), "more than %s, and how much is not known",
			 SL_ANSWER_SIZE(s->recording->device_total));

	if (!s->answers) {
		sl_terminal_head(to, SL_COLOUR_YELLOW, "NO VERDICT", "%s", sl_fit_why(s, why, sizeof(why)));
	} else {
		need = always_of(always, s, &s->answers[0]);
		if (!s->recording->window && strcmp(need, "unknown"))
			need = sl_answer_size(always, always_from(&s->answers[0]));
		for (unsigned i = 0; i < s->capacity_count; i++)
			add_verdict(&verdicts, s->answers[0].ambiguous[i] ? SL_FIT_UNKNOWN : s->answers[0].at[i].verdict,
				    s->capacities[i]);
		put_head(to, &verdicts, strcmp(need, "unknown") && !s->recording->ooms ? need : NULL, *least ? least : NULL);
	}
	if (result->need && !s->answers)
		sl_terminal_line(to, 0, 9, "  need   %s", result->need);
	if (s->answers) {
		putchar('\n');
		if (knows_any(s))
			put_table(s, of_allocator, to);
		put_failures(s, to);
		put_best(s, to);
		put_instead(s, &result->insteads[index], to);
		if (result->layout && result->insteads[index].is_known)
			sl_fit_picture_print(s->recording, &result->insteads[index].picture, to);
	}
	putchar('\n');
	put_origin(s, of_allocator, notes);
}

static void put_driver(const struct sl_fit_driver *driver, const struct sl_fit_question *question, const struct sl_terminal *to)
{
	static const char *const words[] = {[SL_FIT_FITS] = "fits", [SL_FIT_FAILS] = "no", [SL_FIT_UNKNOWN] = "unknown"};
	struct sl_cells table = {.columns = "rlw"};
	struct verdicts verdicts = {0};
	char why[120];

	for (unsigned k = 0; !question->of_allocator && k < question->capacity_count; k++) {
		enum sl_fit_verdict verdict = sl_fit_judge_driver(driver, question->capacities[k], why, sizeof(why));

		add_verdict(&verdicts, verdict, question->capacities[k]);
		sl_cells_put(&table, SL_COLOUR_NONE, "%s", SL_SIZE(question->capacities[k]));
		sl_cells_put(&table, SL_COLOUR_NONE, "%s", words[verdict]);
		sl_cells_put(&table, SL_COLOUR_NONE, "%s", why);
	}
	if (table.cell.count)
		put_head(to, &verdicts, NULL, NULL);
	sl_cells_print(&table, to, 2);
	sl_terminal_line(to, 0, 4, "of %s, device %d, without PyTorch's allocator: %s live at most%s", driver->session,
			 driver->device, SL_SIZE(driver->peak_bytes),
			 driver->pool ? ", a lower bound: the driver's pool keeps more" : ", and its context");
}

void sl_fit_print(const struct sl_fit_result *result)
{
	struct sl_terminal to = sl_terminal_here();
	struct notes notes = {.to = &to};
	bool any = result->vary;

	if (result->vary)
		sl_fit_vary_print(result);
	for (unsigned i = 0; i < result->subject_count; i++, any = true) {
		if (any)
			putchar('\n');
		put_subject(result, i, &notes);
	}
	for (size_t i = 0; i < result->drivers.count; i++, any = true) {
		if (any)
			putchar('\n');
		put_driver(result->drivers.item[i], result->question, &to);
	}
	SL_DROP_EACH(&notes.printed);
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
static void put_driver_run(struct sl_json *j, const struct sl_fit_driver *driver, uint64_t capacity)
{
	char why[120];
	enum sl_fit_verdict verdict = sl_fit_judge_driver(driver, capacity, why, sizeof(why));

	sl_json_object(j, NULL);
	sl_json_string(j, "process", driver->session);
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

static void put_ended(struct sl_json *j, const struct sl_fit_subject *s, const struct sl_fit_other_settings *instead)
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
	for (size_t i = 0; !result->question->of_allocator && i < result->drivers.count; i++)
		for (unsigned k = 0; k < result->question->capacity_count; k++)
			put_driver_run(j, result->drivers.item[i], result->question->capacities[k]);
	sl_json_end(j);
	sl_json_array(j, "smallest");
	for (unsigned i = 0; i < result->subject_count; i++)
		for (unsigned c = 0; c < result->subjects[i].choice_count; c++)
			put_smallest(j, &result->subjects[i], c, result->question->of_allocator);
	sl_json_end(j);
	sl_json_array(j, "drivers");
	for (size_t i = 0; i < result->drivers.count; i++) {
		const struct sl_fit_driver *driver = result->drivers.item[i];

		sl_json_object(j, NULL);
		sl_json_string(j, "process", driver->session);
		sl_json_int(j, "device", driver->device);
		sl_json_uint(j, "peak_live_bytes", driver->peak_bytes);
		sl_json_bool(j, "lower_bound", driver->pool);
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_json_array(j, "ended_by");
	for (unsigned i = 0; i < result->subject_count; i++)
		if (result->insteads[i].is_known)
			put_ended(j, &result->subjects[i], &result->insteads[i]);
	sl_json_end(j);
	sl_fit_vary_json(j, result);
	sl_json_array(j, "notes");
	for (unsigned i = 0; i < result->subject_count; i++)
		sl_fit_notes(&result->subjects[i], result->question->of_allocator, put_string, j);
	sl_json_end(j);
	sl_json_finish(j);
}
