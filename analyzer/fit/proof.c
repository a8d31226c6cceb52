/* SPDX-License-Identifier: MIT */
#include "analyzer/fit/proof.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/fit/answer.h"
#include "analyzer/fit/changes.h"
#include "analyzer/fit/rest_of_step.h"

#define MARGIN	      0.97
#define MARGIN_SCALED 0.9    /* of changed sizes: fragments of later steps may take as much */
#define GROWTH_PART   100000 /* what is held may grow by one of so many parts of the device a step */
#define GROWTH_MAX    (64 << 10)
#define RISES	      4	   /* of what is held, one after the other */
#define RISES_MIN     2	   /* the same, of a program with fewer steps */
#define ABOUT_PART    20   /* of a peak: so much of it ends by the change, at a time that is not known exactly */
#define ABOUT_EXACTLY 1000 /* the same, of one whose requests are the recorded ones */
#define LESS_PART     100  /* of a peak that did not fail: a change is told where it lowers it by one of so many parts */

/* --- the changed requests ----------------------------------------------------------------------------------- */

static void edits_begin(struct sl_fit_edits *e, const struct sl_fit_program *p, const struct sl_fit_keeps *keeps)
{
	size_t lives = p->lives.count + 1;

	*e = (struct sl_fit_edits){.keeps = keeps, .passes_max = SL_PASSES, .extra_from = SL_FIT_GAP};
	e->scale = sl_memory_must(malloc(lives * sizeof(*e->scale)));
	e->dies = sl_memory_must(malloc(lives * sizeof(*e->dies)));
	e->gone = sl_memory_must(calloc(lives, sizeof(*e->gone)));
	e->empties = sl_memory_must(calloc(p->whole.ops.count + 1, sizeof(*e->empties)));
	for (size_t i = 0; i < lives; i++) {
		e->scale[i] = 1;
		e->dies[i] = SL_FIT_GAP;
	}
}

static void edits_free(struct sl_fit_edits *e)
{
	free(e->scale);
	free(e->dies);
	free(e->gone);
	free(e->empties);
}

/* A free that comes before an op. */
struct insert {
	size_t before;
	uint32_t life;
};

static int by_place(const void *a, const void *b)
{
	const struct insert *x = a, *y = b;

	return SL_RISING(x->before, y->before) ?: SL_RISING(x->life, y->life);
}

struct inserts {
	SL_VECTOR(struct insert) list;
};

static void list_inserts(struct inserts *inserts, const struct sl_fit_program *p, const struct sl_fit_edits *e)
{
	for (uint32_t i = 0; i < p->lives.count; i++)
		if (!e->gone[i] && e->dies[i] != SL_FIT_GAP)
			*SL_PUSH(&inserts->list) =
				(struct insert){e->dies[i] < p->lives.item[i].freed ? e->dies[i] : p->lives.item[i].freed, i};
	if (inserts->list.count)
		qsort(inserts->list.item, inserts->list.count, sizeof(*inserts->list.item), by_place);
}

static struct sl_fit_op asked(const struct sl_fit_program *p, const struct sl_fit_edits *e, uint32_t life)
{
	struct sl_fit_op op = p->whole.ops.item[p->lives.item[life].birth];

	op.bytes = (uint64_t)((double)op.bytes * e->scale[life]);
	return op;
}

static bool is_free(const struct sl_fit_op *op)
{
	return op->verb == SL_FIT_FREE || op->verb == SL_FIT_FREE_LATER || op->verb == SL_FIT_DONE;
}

/*
 * The requests of the changed program; *failed, *end become the places in it.  Its times are places in the whole program.  The
 * caller frees both.
 */
static struct sl_fit_recording change(const struct sl_fit_program *p, const struct sl_fit_edits *e, size_t *failed, size_t *end)
{
	struct sl_fit_recording out = p->whole;
	struct inserts inserts = {0};
	uint32_t extra = p->whole.ids;
	size_t at = 0;

	memset(&out.ops, 0, sizeof(out.ops));
	memset(&out.times, 0, sizeof(out.times));
	list_inserts(&inserts, p, e);
	out.ids++;
	for (size_t i = 0; i < p->whole.ops.count; i++) {
		const struct sl_fit_op *op = &p->whole.ops.item[i];

		while (out.times.count < out.ops.count)
			*SL_PUSH(&out.times) = i - 1;
		for (; at < inserts.list.count && inserts.list.item[at].before <= i; at++)
			*SL_PUSH(&out.ops) = (struct sl_fit_op){.verb = SL_FIT_FREE, .id = inserts.list.item[at].life};
		if (e->empties[i])
			*SL_PUSH(&out.ops) = (struct sl_fit_op){.verb = SL_FIT_EMPTY};
		if (e->extra && i == e->extra_from)
			*SL_PUSH(&out.ops) = (struct sl_fit_op){.verb = SL_FIT_ALLOC, .bytes = e->extra, .id = extra};
		if (e->extra && i == p->end && e->extra_from < i)
			*SL_PUSH(&out.ops) = (struct sl_fit_op){.verb = SL_FIT_FREE, .id = extra};
		if (i == p->failed)
			*failed = out.ops.count;
		if (i == p->end)
			*end = out.ops.count;
		if ((op->verb == SL_FIT_ALLOC || is_free(op)) && e->gone[op->id])
			continue;
		if (is_free(op) && e->dies[op->id] != SL_FIT_GAP)
			continue;
		*SL_PUSH(&out.ops) = op->verb == SL_FIT_ALLOC ? asked(p, e, op->id) : *op;
		if (op->verb == SL_FIT_OTHERS && e->others_less && i >= e->others_less_from)
			out.ops.item[out.ops.count - 1].bytes -= e->others_less;
	}
	while (out.times.count < out.ops.count)
		*SL_PUSH(&out.times) = p->whole.ops.count - 1;
	if (p->end >= p->whole.ops.count)
		*end = out.ops.count;
	SL_DROP(&inserts.list);
	return out;
}

/* --- its replay --------------------------------------------------------------------------------------------- */

struct clock {
	double until;
	bool over;
};

static double used(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool is_over(struct clock *clock)
{
	clock->over |= used() > clock->until;
	return clock->over;
}

/* The verdict on all its ops; the rest of the answer is in *o. */
static enum sl_fit_verdict run(const struct sl_fit_recording *r, struct sl_fit_case how, struct sl_fit_outcome *o)
{
	sl_fit_run(o, r, &how);
	return o->verdict;
}

/* The same with every way of the driver that the recording allows. */
static enum sl_passes judge(const struct sl_fit_recording *r, struct sl_fit_case how, size_t failed, struct clock *clock)
{
	enum sl_passes passes = SL_PASSES_UNKNOWN, one;
	bool newest = r->release > SL_FIT_RELEASE(2, 11) || r->window;
	struct sl_fit_outcome o;

	for (unsigned ties = 0; ties < (newest ? 1u : SL_FIT_WAYS); ties++) {
		if (!newest && !(r->models >> ties & 1))
			continue;
		if (is_over(clock))
			return SL_PASSES_UNKNOWN;
		how.ties = r->window ? SL_FIT_GIVEN : (enum sl_fit_ties)ties;
		if (run(r, how, &o) == SL_FIT_UNKNOWN)
			return SL_PASSES_UNKNOWN;
		one = o.verdict == SL_FIT_FITS		      ? SL_PASSES
		      : failed != SL_FIT_GAP && o.at > failed ? SL_PASSES_REQUEST
							      : SL_PASSES_NOT;
		passes = passes == SL_PASSES_UNKNOWN || one < passes ? one : passes;
	}
	return passes;
}

/* Bytes that the changed program keeps of each step. */
static uint64_t growth(const struct sl_fit_program *p, const struct sl_fit_edits *e)
{
	const struct sl_fit_keeps *keeps = e->keeps;
	double sum = 0;

	for (uint32_t i = 0; keeps->any && i < p->lives.count; i++) {
		unsigned step = p->lives.item[i].step;

		if (step >= keeps->from && step <= keeps->to && !e->gone[i] && e->dies[i] == SL_FIT_GAP &&
		    sl_fit_keeps_it(keeps, p, i))
			sum += (double)p->lives.item[i].bytes * e->scale[i];
	}
	return keeps->any ? (uint64_t)(sum / (keeps->to - keeps->from + 1)) : 0;
}

/*
 * What is held as a step begins, where it rose from each of the last steps to the next, and their first request did not: a tensor
 * that each step joins to, in a larger one, is no block that is kept.
 */
static uint64_t rise(const struct sl_fit_program *p, const struct sl_fit_edits *e)
{
	double *deltas = sl_memory_must(calloc(p->whole.ops.count + 2, sizeof(*deltas))), now = 0, last = 0, first = 0;
	uint64_t input = 0;
	unsigned rises = 0, next = 0, wanted = p->steps.count > RISES ? RISES : (unsigned)p->steps.count - 1;

	for (uint32_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];
		size_t end = e->dies[i] != SL_FIT_GAP ? e->dies[i] : life->death;

		if (e->gone[i])
			continue;
		deltas[life->birth] += (double)life->bytes * e->scale[i];
		if (end <= p->whole.ops.count)
			deltas[end] -= (double)life->bytes * e->scale[i];
	}
	for (size_t i = 0; i < p->whole.ops.count && next < p->steps.count; now += deltas[i++]) {
		if (i != p->steps.item[next])
			continue;
		next++;
		if (next + wanted < p->steps.count)
			continue;
		if (next + wanted == p->steps.count)
			first = now;
		else
			rises += now > last && p->whole.ops.item[i].bytes <= input;
		input = p->whole.ops.item[i].bytes;
		last = now;
	}
	free(deltas);
	return rises == wanted && wanted >= RISES_MIN ? (uint64_t)((last - first) / wanted) : 0;
}

/* True: each of the last inputs was larger than the one before, as sorted ones are: the next will be larger again. */
static bool is_sorted(const struct sl_fit_program *p)
{
	unsigned step = (unsigned)p->steps.count, rises = 0;

	for (; step > 1 && rises < RISES && sl_fit_program_input(p, step) > sl_fit_program_input(p, step - 1); step--)
		rises++;
	return rises == RISES || (step == 1 && rises > 1);
}

/* The largest input before the step that failed, as a part of its own; 1: it was not the largest yet. */
static double earlier_inputs(const struct sl_fit_program *p)
{
	uint64_t last = sl_fit_program_input(p, (unsigned)p->steps.count), largest = 0, now;

	for (unsigned step = 1; step < p->steps.count; step++) {
		now = sl_fit_program_input(p, step);
		largest = now > largest ? now : largest;
	}
	return largest && largest < last ? (double)largest / (double)last : 1;
}

static bool is_free_of_growth(uint64_t bytes, uint64_t capacity)
{
	return bytes <= capacity / GROWTH_PART && bytes <= GROWTH_MAX;
}

/* The most that PyTorch reserved. */
static uint64_t most_reserved(const struct sl_fit_recording *r)
{
	uint64_t peak = r->reserved_start;

	for (size_t i = 0; i < r->reserved.count; i++)
		if (r->reserved.item[i] != SL_UNKNOWN && r->reserved.item[i] > peak)
			peak = r->reserved.item[i];
	return peak;
}

/* The most that is held up to one of its ops; *ended becomes what of it ends by the changes `e`. */
static int64_t most_held(const struct sl_fit_recording *r, size_t count, const struct sl_fit_edits *e, int64_t *ended)
{
	int64_t *bytes = sl_memory_must(calloc(r->ids + 1, sizeof(*bytes))), now = 0, peak = 0, mine = 0, change;

	for (size_t i = 0; i < r->seeds.count; i++)
		if (r->seeds.item[i].active)
			now += bytes[r->seeds.item[i].id] = (int64_t)r->seeds.item[i].requested;
	for (size_t i = 0; i < count; i++) {
		const struct sl_fit_op *op = &r->ops.item[i];

		if (op->verb == SL_FIT_ALLOC)
			change = bytes[op->id] = (int64_t)op->bytes;
		else if (op->verb == SL_FIT_FREE || op->verb == SL_FIT_FREE_LATER)
			change = -bytes[op->id];
		else
			continue;
		now += change;
		mine += e && op->id + 1 < r->ids && e->dies[op->id] != SL_FIT_GAP ? change : 0;
		if (now > peak) {
			peak = now;
			*ended = mine;
		}
	}
	free(bytes);
	return peak;
}

static struct sl_fit_case case_of(const struct sl_fit_proof *proof, const struct sl_fit_recording *r)
{
	return (struct sl_fit_case){.capacity = proof->capacity,
				    .of_allocator = proof->of_allocator,
				    .ties = r->window ? SL_FIT_GIVEN : sl_fit_way(r, SL_FIT_GIVEN)};
}

/* The calls that curves show: to the end of the step, or to the one that failed where no more is known. */
static size_t shown(const struct sl_fit_program *p)
{
	size_t end = p->failed != SL_FIT_GAP && p->rest == SL_FIT_REST_NONE ? p->failed + 1 : p->end;

	return end < p->whole.ops.count ? end : p->whole.ops.count;
}

/* Runs it, and keeps what was reserved. */
static void draw(double curve[SL_CHANGE_POINTS], const struct sl_fit_program *p, const struct sl_fit_recording *r,
		 struct sl_fit_case how, struct sl_fit_outcome *o)
{
	uint64_t ends[] = {0, shown(p)};
	struct sl_fit_trail trail;

	sl_fit_trail_begin(&trail, &(struct sl_fit_recording){.times = {.item = ends, .count = SL_COUNT(ends)}}, SL_CHANGE_POINTS);
	how.trail = &trail;
	run(r, how, o);
	memcpy(curve, trail.reserved, SL_CHANGE_POINTS * sizeof(*curve));
	sl_fit_trail_free(&trail);
}

/* With what others have. */
static double highest(const double curve[SL_CHANGE_POINTS])
{
	double peak = 0;

	for (unsigned i = 0; i < SL_CHANGE_POINTS; i++)
		peak = fmax(peak, curve[i]); /* not NAN */
	return peak;
}

/* The program as it was. */
static void draw_recorded(struct sl_fit_proof *proof, const struct sl_fit_keeps *keeps)
{
	const struct sl_fit_program *p = &proof->program;
	struct sl_fit_outcome o;
	struct sl_fit_edits e;
	size_t failed, end;
	struct sl_fit_recording r;

	edits_begin(&e, p, keeps);
	r = change(p, &e, &failed, &end);
	r.ops.count = end < r.ops.count ? end : r.ops.count;
	draw(proof->curve, p, &r, case_of(proof, p->recorded), &o);
	proof->failed_at = p->failed == SL_FIT_GAP ? 1 : (double)p->failed / (double)(shown(p) + 1);
	free(r.ops.item);
	free(r.times.item);
	edits_free(&e);
}

/* True: the loop is the program's own, or it trains.  Another may run inside of one call, as for each token. */
static bool has_steps(const struct sl_fit_program *p, const struct sl_fit_keeps *keeps)
{
	bool own = p->steps.count && sl_fit_program_stack(p, p->whole.ops.item[p->steps.item[0]].python)->places[p->depth].own;

	for (size_t i = 0; i < p->steps.count && !own; i++)
		own = keeps->passes[i] > 0;
	return own;
}

/* False: the time is over. */
static bool prove(struct sl_fit_proof *proof, struct sl_change *c, const struct sl_fit_edits *e, struct clock *clock)
{
	const struct sl_fit_program *p = &proof->program;
	struct sl_fit_case how = case_of(proof, p->recorded);
	size_t failed = SL_FIT_GAP, end = 0, all;
	struct sl_fit_recording r = change(p, e, &failed, &end);
	uint64_t grows = growth(p, e), rises = rise(p, e);
	const struct sl_fit_place *place;
	struct sl_fit_outcome o;
	int64_t ended = 0, none, peak;

	how.settings = e->settings;
	how.caught = true;
	how.capacity += proof->of_allocator ? e->others_less : 0;
	all = r.ops.count;
	if (p->failed != SL_FIT_GAP && p->rest == SL_FIT_REST_NONE)
		all = end = failed + 1;
	r.ops.count = all;
	c->passes = judge(&r, how, failed, clock);
	c->passes = c->passes == SL_PASSES && p->rest == SL_FIT_REST_NONE ? SL_PASSES_REQUEST : c->passes;
	c->passes = c->passes != SL_PASSES_UNKNOWN && c->passes > e->passes_max ? e->passes_max : c->passes;
	c->rung = e->scaled && p->rest != SL_FIT_REST_STATE			? SL_RUNG_SCALED
		  : p->rest == SL_FIT_REST_STEP || p->rest == SL_FIT_REST_STATE ? SL_RUNG_COMPLETED
										: SL_RUNG_REPLAYED;
	if (is_over(clock)) {
		free(r.ops.item);
		free(r.times.item);
		return false;
	}
	if (run(&r, how, &o) == SL_FIT_FAILS && o.bytes <= how.capacity) {
		c->wanted = o.bytes;
		place = r.ops.item[o.at].verb == SL_FIT_ALLOC ? sl_fit_program_own(sl_fit_program_stack(p, r.ops.item[o.at].python))
							      : NULL;
		if (place)
			c->stops = (struct sl_change_line){place->file, place->function, place->line};
	}
	r.ops.count = end;
	draw(c->curve, p, &r, how, &o);
	c->peak_reserved = o.stats.peak_reserved;
	c->peak_allocated = o.stats.peak_allocated;
	peak = most_held(&r, end, e, &ended);
	c->about |= e->loose && (c->rung == SL_RUNG_REPLAYED ? peak < ABOUT_EXACTLY * (ended + (int64_t)e->results)
							     : peak < ABOUT_PART * ended);
	c->less = e->settings ? p->failed == SL_FIT_GAP ? (int64_t)most_reserved(p->recorded) - (int64_t)c->peak_reserved : 0
			      : most_held(&p->whole, p->failed == SL_FIT_GAP ? p->end : p->failed + 1, NULL, &none) -
					most_held(&r, p->failed == SL_FIT_GAP ? end : failed + 1, NULL, &none);
	c->less += (int64_t)e->others_less;
	r.ops.count = all;
	how.capacity = (uint64_t)((double)how.capacity * MARGIN);
	c->tight = c->passes >= SL_PASSES_STEP && c->passes != SL_PASSES_UNKNOWN && judge(&r, how, failed, clock) != SL_PASSES;
	c->steps_later = SL_UNKNOWN;
	grows = rises > grows ? rises : grows;
	if (sl_change_ends_step(c) && !is_free_of_growth(grows, proof->capacity)) {
		c->passes = SL_PASSES_STEP;
		if (has_steps(p, e->keeps))
			c->steps_later = (uint64_t)fmax((double)proof->capacity - highest(c->curve), 0) / grows;
	}
	if (c->passes == SL_PASSES && c->tight && (e->scaled || p->rest == SL_FIT_REST_STATE))
		c->passes = SL_PASSES_STEP; /* the sizes may be off by more */
	how.capacity = (uint64_t)((double)proof->capacity * MARGIN_SCALED);
	if (c->passes == SL_PASSES && e->scaled && p->rest != SL_FIT_REST_STATE && judge(&r, how, failed, clock) != SL_PASSES)
		c->passes = SL_PASSES_STEP; /* fragments of steps to come, whose sizes are not known */
	how.capacity = (uint64_t)((double)proof->capacity * earlier_inputs(p));
	if (c->passes == SL_PASSES && (is_sorted(p) || (c->less <= 0 && judge(&r, how, failed, clock) != SL_PASSES)))
		c->passes = SL_PASSES_STEP; /* the next input may be larger again */
	free(r.ops.item);
	free(r.times.item);
	return !clock->over;
}

/* --- all of them -------------------------------------------------------------------------------------------- */

static int by_worth(const void *a, const void *b)
{
	static const int order[] = {
		[SL_PASSES] = 0, [SL_PASSES_STEP] = 1, [SL_PASSES_REQUEST] = 2, [SL_PASSES_UNKNOWN] = 3, [SL_PASSES_NOT] = 4};
	const struct sl_change *x = a, *y = b;

	return SL_FALLING(x->passes == SL_PASSES, y->passes == SL_PASSES) ?: SL_FALLING(sl_change_is_known(x), sl_change_is_known(y))
	       ?: SL_RISING(order[x->passes], order[y->passes]) ?: SL_FALLING(x->steps_later, y->steps_later)
	       ?: SL_RISING(x->tight, y->tight) ?: SL_RISING(x->about && x->passes != SL_PASSES, y->about && y->passes != SL_PASSES)
	       ?: (x->passes == SL_PASSES ? SL_RISING(x->cost, y->cost) : 0) ?: SL_FALLING(x->less, y->less);
}

static const char *why_not(const struct sl_fit_recording *r, const struct sl_fit_check *check)
{
	if (r->doubt)
		return r->doubt;
	if (!check->exact)
		return "the replay does not reproduce the recorded run";
	if (!r->window && !r->others_known && !r->ooms)
		return "no sample has the memory of contexts and other processes";
	if (r->lacked)
		return "memory ran out outside of PyTorch's allocator, and what follows is not known";
	if (r->ooms && r->goes_on)
		return "the program went on after its out-of-memory error";
	return NULL;
}

/* True: the replay fails where the program failed. */
static bool fails_alike(const struct sl_fit_proof *proof, const struct sl_fit_recording *r)
{
	struct sl_fit_case how = case_of(proof, r);
	struct sl_fit_outcome o;

	return run(r, how, &o) == SL_FIT_FAILS && r->ops.item[o.at].verb == SL_FIT_TRY && o.request == r->requests;
}

/*
 * The device's size or --limit.  Where that does not explain the failure, or in a file that does not name the device, it is what
 * PyTorch reserved at most: less it cannot have.
 */
static bool find_capacity(struct sl_fit_proof *proof, const struct sl_fit_recording *r)
{
	proof->capacity = r->device_total;
	proof->of_allocator = r->window;
	if (r->window || (r->ooms && !fails_alike(proof, r))) {
		proof->of_allocator = true;
		proof->capacity = r->ooms ? most_reserved(r) : 0;
	}
	return proof->capacity;
}

static void try_rule(struct sl_fit_proof *proof, const struct sl_fit_rule *rule, const struct sl_fit_keeps *keeps,
		     struct clock *clock)
{
	struct sl_change *c = &proof->changes[proof->count];
	struct sl_fit_edits edits;
	bool found, done;

	*c = (struct sl_change){.kind = rule->kind, .settings = rule->settings, .about = rule->about};
	sl_budget_begin(proof->program.recorded->budget, proof->program.recorded->trace->disk_bytes);
	edits_begin(&edits, &proof->program, keeps);
	if (proof->program.failed != SL_FIT_GAP) /* else what takes most is first */
		c->cost = (unsigned)(rule - sl_fit_rules);
	found = rule->apply(&edits, c, &proof->program);
	done = found && prove(proof, c, &edits, clock);
	edits_free(&edits);
	proof->untried += found && !done;
	if (!done)
		return;
	proof->count += proof->program.failed != SL_FIT_GAP || c->less * LESS_PART > (int64_t)c->peak_allocated;
	if (c->about || (c->passes == SL_PASSES_REQUEST && !c->settings)) /* what comes after it is not known */
		c->peak_reserved = c->peak_allocated = SL_UNKNOWN;
}

void sl_fit_proof_make(struct sl_fit_proof *proof, struct sl_fit_recording *r, const char *only, double seconds)
{
	struct clock clock = {.until = used() + seconds};
	struct sl_fit_check check = {0};
	struct sl_fit_keeps keeps;

	*proof = (struct sl_fit_proof){.recording = r};
	sl_budget_resume();
	sl_budget_begin(r->budget, r->trace->disk_bytes);
	if (!r->doubt && r->window)
		sl_fit_check_releases(&check, r);
	else if (!r->doubt)
		sl_fit_check(&check, r);
	proof->why_not = why_not(r, &check);
	if (!proof->why_not && !find_capacity(proof, r))
		proof->why_not = "it did not run out of memory, and the size of its device is not known";
	if (proof->why_not)
		return;
	sl_fit_program_read(&proof->program, r);
	sl_fit_rest_add(&proof->program);
	sl_fit_keeps_find(&keeps, &proof->program);
	draw_recorded(proof, &keeps);
	for (const struct sl_fit_rule *rule = sl_fit_rules; rule->kind; rule++)
		if (only && strcmp(rule->kind, only) != 0)
			continue;
		else if (is_over(&clock) || proof->count == SL_CHANGES_MAX)
			proof->untried++;
		else
			try_rule(proof, rule, &keeps, &clock);
	sl_fit_keeps_free(&keeps);
	qsort(proof->changes, proof->count, sizeof(*proof->changes), by_worth);
}

void sl_fit_proof_free(struct sl_fit_proof *proof)
{
	sl_fit_program_free(&proof->program);
}
