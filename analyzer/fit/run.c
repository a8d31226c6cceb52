/* SPDX-License-Identifier: MIT */
#include "analyzer/fit/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/fit/block.h"

#define TRIES_MAX      600
#define OPERATIONS_MAX 25000000ull  /* limit of one scan: about four seconds */
#define STEP	       (2ull << 20) /* step at which each capacity needs its own run */
#define ASK_EVERY      128	    /* ops between two looks at the clock */

static struct sl_fit_engine *engine_of(const struct sl_fit_recording *r, const struct sl_fit_case *how)
{
	struct sl_fit_machine machine = {.release = r->release, .capacity = how->capacity, .ties = how->ties};

	machine.device_total = how->capacity != UINT64_MAX ? how->capacity : r->device_total ? r->device_total : 1ull << 40;
	return sl_fit_new(&machine, how->settings ? how->settings : &r->settings);
}

/* True: the run ends before op `i`. */
static bool is_spent(const struct sl_fit_recording *r, size_t i)
{
	return !(i % ASK_EVERY) && sl_budget_spent(r->budget);
}

/* Applies an op that does not request memory.  False: settings that PyTorch refuses, with which the program goes on in part. */
static bool step(struct sl_fit_engine *engine, const struct sl_fit_recording *r, const struct sl_fit_op *op,
		 struct sl_fit_block **live, struct sl_fit_settings *settings)
{
	struct sl_fit_settings made;
	const char *text, *at;

	switch (op->verb) {
	case SL_FIT_FREE:
		sl_fit_free(engine, live[op->id]);
		break;
	case SL_FIT_FREE_LATER:
		sl_fit_free_later(engine, live[op->id], op->id);
		break;
	case SL_FIT_DONE:
		sl_fit_done(engine, op->id);
		break;
	case SL_FIT_EMPTY:
		sl_fit_empty_cache(engine);
		break;
	case SL_FIT_PLACE:
		sl_fit_place(engine, op->bytes);
		break;
	case SL_FIT_SETTINGS: /* the program's own settings win over the environment's */
		text = sl_defs_text(&r->trace->defs, op->id);
		if (!text)
			break;
		made = *settings;
		sl_fit_settings_reset(&made, r->release);
		if (sl_fit_settings_parse(&made, text, r->release, &at))
			return false;
		*settings = made;
		sl_fit_set(engine, settings);
		break;
	case SL_FIT_FRACTION:
		memcpy(&settings->fraction, &op->bytes, sizeof(settings->fraction));
		sl_fit_set(engine, settings);
		break;
	case SL_FIT_BEGIN:
		sl_fit_pool_begin(engine, op->pool);
		sl_fit_capture(engine, op->pool, true);
		break;
	case SL_FIT_END:
		sl_fit_pool_end(engine);
		sl_fit_capture(engine, op->pool, false);
		break;
	case SL_FIT_HOLD:
		sl_fit_pool_hold(engine, op->pool);
		break;
	case SL_FIT_USE:
		sl_fit_pool_begin(engine, op->pool);
		break;
	case SL_FIT_UNUSE:
		sl_fit_pool_end(engine);
		break;
	case SL_FIT_GONE:
		sl_fit_pool_release(engine, op->pool);
		break;
	case SL_FIT_DROP:
		sl_fit_pool_empty(engine, op->pool);
		break;
	default:
		break;
	}
	return true;
}

static void compare(struct sl_fit_check *check, const struct sl_fit_recording *r, size_t i, uint64_t reserved)
{
	uint64_t recorded = r->reserved.item[i], error = recorded > reserved ? recorded - reserved : reserved - recorded;

	if (recorded == SL_UNKNOWN)
		return;
	check->compared++;
	if (!error)
		return;
	if (check->exact)
		check->first = i;
	check->exact = false;
	if (error > check->error)
		check->error = error;
}

/* In a window each block must lie where it lay. */
static void compare_place(struct sl_fit_check *check, const struct sl_fit_recording *r, size_t i, const struct sl_fit_block *block)
{
	if (!block || !r->addresses.item[i] || block->address == r->addresses.item[i])
		return;
	if (check->exact)
		check->first = i;
	check->exact = false;
	check->moved++;
}

static void check_with(struct sl_fit_check *check, const struct sl_fit_recording *r, enum sl_fit_ties ties)
{
	const struct sl_fit_case how = {.capacity = UINT64_MAX, .of_allocator = true, .ties = ties};
	struct sl_fit_engine *engine = engine_of(r, &how);
	struct sl_fit_block **live = sl_memory_must(calloc(r->ids + 1, sizeof(*live)));
	struct sl_fit_settings settings = r->settings;

	*check = (struct sl_fit_check){.exact = true, .ties = ties};
	if (r->window)
		sl_fit_seed(engine, r->seeds.item, r->seeds.count, r->lowest, live);
	for (size_t i = 0; i < r->ops.count; i++) {
		const struct sl_fit_op *op = &r->ops.item[i];

		if (is_spent(r, i)) {
			check->exact = false;
			break;
		}
		if (op->verb == SL_FIT_ALLOC || op->verb == SL_FIT_TRY) {
			struct sl_fit_block *block;

			sl_fit_refuse(engine, op->refused);
			block = sl_fit_alloc(engine, op->bytes, op->stream, op->pool);
			/* The replay grants what was refused, or refuses what was granted. */
			if (!block != (op->verb == SL_FIT_TRY)) {
				if (check->exact)
					check->first = i;
				check->exact = false;
				check->error = SL_UNKNOWN;
				break;
			}
			live[op->id] = block ? block : live[op->id];
			if (r->window) {
				sl_fit_place(engine, 0);
				compare_place(check, r, i, block);
			}
		} else if (!step(engine, r, op, live, &settings)) {
			check->exact = false;
			check->refused = true;
			break;
		}
		compare(check, r, i, sl_fit_stats(engine)->reserved);
	}
	sl_fit_delete(engine);
	free(live);
}

void sl_fit_check(struct sl_fit_check *check, const struct sl_fit_recording *r)
{
	static const enum sl_fit_ties ties[] = {SL_FIT_GIVEN, SL_FIT_ASCENDING, SL_FIT_DESCENDING};
	struct sl_fit_check one;

	for (unsigned i = 0; i < SL_COUNT(ties) && !(i && check->exact); i++) {
		check_with(&one, r, ties[i]);
		if (!i || one.exact || one.error < check->error)
			*check = one;
	}
}

void sl_fit_check_releases(struct sl_fit_check *check, struct sl_fit_recording *r)
{
	check->exact = false;
	for (unsigned minor = r->newest; minor >= r->oldest && !check->exact; minor--) {
		r->release = SL_FIT_RELEASE(2, 0) + minor;
		sl_fit_check(check, r);
	}
}

/* True: the run goes on. */
static bool ask(struct sl_fit_outcome *o, struct sl_fit_engine *engine, const struct sl_fit_recording *r,
		const struct sl_fit_case *how, const struct sl_fit_op *op, struct sl_fit_block **live)
{
	bool captures = r->pools && op->pool && !how->loose;
	unsigned stream = how->streams_reversed && op->stream ? r->streams + 1 - op->stream : op->stream;
	struct sl_fit_block *block;

	if (how->as_recorded)
		sl_fit_refuse(engine, op->refused);
	if (captures) {
		sl_fit_pool_begin(engine, op->pool);
		sl_fit_capture(engine, op->pool, true);
	}
	block = sl_fit_alloc(engine, op->bytes, stream, op->pool);
	if (captures) {
		sl_fit_capture(engine, op->pool, false);
		sl_fit_pool_end(engine);
		sl_fit_pool_release(engine, op->pool);
	}
	o->request++;
	o->bytes = op->bytes;
	if (op->verb == SL_FIT_TRY) {
		bool last = !r->goes_on && o->request == r->requests;

		if (how->granted) {
			o->verdict = block ? SL_FIT_FITS : SL_FIT_FAILS;
			return false;
		}
		if (how->caught && block)
			sl_fit_free(engine, block);
		if (how->caught)
			return true;
		if (block || last)
			o->verdict = block ? SL_FIT_UNKNOWN : SL_FIT_FAILS;
		return !block && !last;
	}
	live[op->id] = block;
	if (r->window)
		sl_fit_place(engine, 0);
	if (!block)
		o->verdict = SL_FIT_FAILS;
	return block;
}

/*
 * A call that is not the allocator's was refused in the recording.  Where it is granted, nothing is known of what comes next.
 * True: the run goes on.
 */
static bool lack(struct sl_fit_outcome *o, const struct sl_fit_engine *engine, const struct sl_fit_recording *r,
		 const struct sl_fit_case *how, const struct sl_fit_op *op, uint64_t others)
{
	if (how->top || how->caught)
		return true;
	if (how->of_allocator || sl_fit_has_more(engine, op->bytes)) {
		o->verdict = SL_FIT_UNKNOWN;
		return false;
	}
	if (r->goes_on || o->request < r->requests)
		return true;
	o->verdict = SL_FIT_FAILS;
	o->request = 0;
	o->bytes = others + op->bytes + 1;
	return false;
}

/* Blocks that live before op `end`: for each id the op that made it. */
static size_t *made_before(const struct sl_fit_recording *r, size_t end)
{
	size_t *made = sl_memory_must(malloc((r->ids + 1) * sizeof(*made)));

	for (uint32_t id = 0; id < r->ids; id++)
		made[id] = SL_FIT_GAP;
	for (size_t i = 0; i < end; i++) {
		const struct sl_fit_op *op = &r->ops.item[i];

		if (op->verb == SL_FIT_ALLOC)
			made[op->id] = i;
		else if (op->verb == SL_FIT_FREE || op->verb == SL_FIT_FREE_LATER)
			made[op->id] = SL_FIT_GAP;
	}
	return made;
}

static void take_picture(const struct sl_fit_case *how, const struct sl_fit_outcome *o, const struct sl_fit_engine *engine,
			 const struct sl_fit_recording *r, struct sl_fit_block *const *live)
{
	size_t *made;

	if (!how->picture || o->verdict != SL_FIT_FAILS)
		return;
	made = made_before(r, o->at);
	sl_fit_picture_take(how->picture, engine, live, made, r->ids);
	free(made);
}

void sl_fit_trail_begin(struct sl_fit_trail *trail, const struct sl_fit_recording *r, unsigned points)
{
	uint64_t begin = r->times.count ? r->times.item[0] : 0, end = r->times.count ? r->times.item[r->times.count - 1] : 0;

	*trail = (struct sl_fit_trail){.points = points, .begin_ns = begin, .width_ns = (end - begin) / points + 1};
	trail->reserved = sl_memory_must(malloc(2 * points * sizeof(double)));
	trail->needed = trail->reserved + points;
	for (unsigned i = 0; i < 2 * points; i++)
		trail->reserved[i] = NAN;
}

void sl_fit_trail_free(struct sl_fit_trail *trail)
{
	free(trail->reserved);
}

/* Notes what is held from now on; the points since the last op get what was held then. */
static void follow(struct sl_fit_trail *trail, uint64_t now, uint64_t reserved, uint64_t needed)
{
	uint64_t at = (now - trail->begin_ns) / trail->width_ns;

	while (trail->at < at && trail->at + 1 < trail->points) {
		trail->at++;
		trail->reserved[trail->at] = trail->current[0];
		trail->needed[trail->at] = trail->current[1];
	}
	trail->current[0] = (double)reserved;
	trail->current[1] = (double)needed;
	trail->reserved[trail->at] = fmax(trail->reserved[trail->at], trail->current[0]);
	trail->needed[trail->at] = fmax(trail->needed[trail->at], trail->current[1]);
}

static void note_top(struct sl_fit_top *top, size_t at, const struct sl_fit_stats *stats, uint64_t others, uint64_t outside)
{
	uint64_t bytes = stats->reserved + others;

	if (bytes < top->bytes || (bytes == top->bytes && stats->allocated <= top->stats.allocated))
		return;
	*top = (struct sl_fit_top){.at = at, .bytes = bytes, .others = others, .outside = outside, .stats = *stats};
}

void sl_fit_run(struct sl_fit_outcome *o, const struct sl_fit_recording *r, const struct sl_fit_case *how)
{
	struct sl_fit_engine *engine = engine_of(r, how);
	const struct sl_fit_stats *stats = sl_fit_stats(engine);
	struct sl_fit_block **live = sl_memory_must(calloc(r->ids + 1, sizeof(*live)));
	struct sl_fit_settings settings = how->settings ? *how->settings : r->settings;
	uint64_t others = 0, outside = 0;
	bool on = true;

	*o = (struct sl_fit_outcome){.verdict = SL_FIT_FITS};
	if (r->seeds.count)
		sl_fit_seed(engine, r->seeds.item, r->seeds.count, r->lowest, live);
	for (size_t i = 0; i < r->ops.count && on; i++) {
		const struct sl_fit_op *op = &r->ops.item[i];

		if (is_spent(r, i)) {
			o->verdict = SL_FIT_UNKNOWN;
			break;
		}
		o->at = i;
		o->operations++;
		if (op->verb == SL_FIT_ALLOC || op->verb == SL_FIT_TRY) {
			on = ask(o, engine, r, how, op, live);
		} else if (op->verb == SL_FIT_LACK) {
			on = lack(o, engine, r, how, op, others);
		} else if (op->verb == SL_FIT_OUTSIDE) {
			outside = op->bytes;
		} else if (op->verb == SL_FIT_OTHERS && !how->of_allocator) {
			others = op->bytes;
			if (!sl_fit_others(engine, op->bytes)) {
				*o = (struct sl_fit_outcome){.verdict = SL_FIT_FAILS, .at = i, .bytes = others, .operations = i};
				on = false;
			}
		} else if (how->loose && (op->verb == SL_FIT_HOLD || op->verb == SL_FIT_GONE)) {
			continue;
		} else if (!step(engine, r, op, live, &settings)) {
			o->verdict = SL_FIT_UNKNOWN;
			on = false;
		}
		if (stats->allocated + others > o->floor)
			o->floor = stats->allocated + others;
		if (how->top)
			note_top(how->top, i, stats, others, outside);
		if (how->trail)
			follow(how->trail, r->times.item[i], stats->reserved + others, stats->allocated + others);
	}
	o->stats = *stats;
	if (how->top)
		sl_fit_unused(engine, &how->top->unused);
	take_picture(how, o, engine, r, live);
	sl_fit_delete(engine);
	free(live);
}

/* With garbage collection or a fraction each capacity may behave differently, and gets its own run. */
static bool is_stepped(const struct sl_fit_recording *r, const struct sl_fit_case *how)
{
	const struct sl_fit_settings *settings = how->settings ? how->settings : &r->settings;

	return (settings->fraction > 0 || r->limits) && settings->gc_threshold > 0;
}

static void add_span(struct sl_fit_scan *scan, uint64_t from, uint64_t to)
{
	struct sl_fit_span *last = scan->also.count ? &scan->also.item[scan->also.count - 1] : NULL;

	if (last && last->from == to + 1) {
		last->from = from;
		return;
	}
	*SL_PUSH(&scan->also) = (struct sl_fit_span){from, to};
}

/*
 * Where so many capacities suffice that not all can be tried, the smallest is looked for by halves, as if those between did too.
 * operations_max: of all replays.
 */
static uint64_t by_halves(struct sl_fit_scan *scan, const struct sl_fit_recording *r, struct sl_fit_case *how, uint64_t low,
			  uint64_t high, uint64_t operations_max)
{
	struct sl_fit_outcome o;

	for (uint64_t done = 0; low + 1 < high && done < operations_max && r->budget->left_ns; scan->runs++) {
		how->capacity = low + (high - low) / 2;
		sl_fit_run(&o, r, how);
		done += o.operations;
		if (o.verdict == SL_FIT_FITS)
			high = o.stats.granted < how->capacity ? o.stats.granted : how->capacity;
		else
			low = how->capacity;
	}
	return high;
}

void sl_fit_scan(struct sl_fit_scan *scan, const struct sl_fit_recording *r, const struct sl_fit_case *how)
{
	struct sl_fit_case one = *how;
	struct sl_fit_outcome o;
	uint64_t next, from, floor, operations = 0, operations_max = how->operations_max ? how->operations_max : OPERATIONS_MAX;
	bool always = true;

	*scan = (struct sl_fit_scan){.always_from = SL_UNKNOWN, .looked_to = SL_UNKNOWN};
	one.capacity = UINT64_MAX;
	sl_fit_run(&o, r, &one);
	if (o.verdict != SL_FIT_FITS)
		return;
	scan->always_from = next = o.stats.granted;
	floor = r->seeds.count && r->reserved_start > o.floor ? r->reserved_start : o.floor;
	for (; next > floor && scan->runs < TRIES_MAX && operations < operations_max && r->budget->left_ns; scan->runs++) {
		one.capacity = --next;
		sl_fit_run(&o, r, &one);
		operations += o.operations;
		from = is_stepped(r, how) ? (next > STEP ? next - STEP + 1 : 0) : o.stats.granted < next ? o.stats.granted : next;
		if (o.verdict != SL_FIT_FITS)
			always = false;
		else if (always)
			scan->always_from = from;
		else
			add_span(scan, from, next);
		next = from;
	}
	if (always)
		scan->always_from = next = by_halves(scan, r, &one, floor, next, operations_max);
	scan->looked_to = next > floor ? next : floor;
}
