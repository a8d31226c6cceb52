/* SPDX-License-Identifier: MIT */
/* Changes of sizes: of inputs, and of large temporaries. */
#include <math.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/fit/change.h"
#include "analyzer/fit/rest_of_step.h"

#define LARGE_PART 8 /* a large temporary takes one of so many parts of the device */
#define CHUNKS	   4
#define PIECE_PART 16 /* of the failed request: smaller blocks of its function stay whole */
#define LONGEST	   0.75
#define SIZES_MIN  3   /* of a step's first request */
#define ALIKE	   0.1 /* so far a block may be from what its exponent says */

enum { ONCE, ALWAYS_ALIKE, DIFFERS };

static uint64_t key_of(const struct sl_fit_life *life)
{
	return (uint64_t)life->python << 32 | life->nth;
}

/* For each block of a step, by stack and number, how its sizes in the steps compare. */
static void compare(struct sl_idmap *sizes, const struct sl_fit_program *p)
{
	struct sl_idmap first = {0};

	for (uint32_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];
		uint32_t at = life->step ? sl_idmap_claim(&first, key_of(life), i) : i;

		if (at != i && sl_idmap_get(sizes, key_of(life), ONCE) != DIFFERS)
			sl_idmap_set(sizes, key_of(life), p->lives.item[at].bytes == life->bytes ? ALWAYS_ALIKE : DIFFERS);
	}
	sl_idmap_free(&first);
}

/* How many sizes the inputs of steps have, counted to SIZES_MIN; *longest becomes the largest. */
static unsigned count_inputs(const struct sl_fit_program *p, double *longest)
{
	double sizes[SIZES_MIN], x;
	unsigned count = 0, at;

	*longest = 0;
	for (unsigned step = 1; step <= p->steps.count; step++) {
		x = (double)sl_fit_program_input(p, step);
		*longest = x > *longest ? x : *longest;
		for (at = 0; at < count && sizes[at] != x;)
			at++;
		if (at == count && count < SIZES_MIN && x > 0)
			sizes[count++] = x;
	}
	return count;
}

/*
 * Where inputs differ, blocks whose size is not the same in all steps are those that follow the batch.  One that only one step has
 * goes by the first of its stack.  Workspaces of libraries do not, nor do gradients: each backward pass numbers them otherwise
 * where they were zeroed and not set to None.
 */
bool sl_fit_change_half_batch(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	const struct sl_fit_place *place = NULL;
	const struct sl_fit_stack *maker;
	struct sl_idmap sizes = {0}, parameters;
	uint64_t bytes = 0;
	double longest;

	if (count_inputs(p, &longest) < 2)
		return false; /* what grows is kept, and no batch */
	compare(&sizes, p);
	parameters = sl_fit_rest_parameters(p);
	for (uint32_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];
		uint32_t how = sl_idmap_get(&sizes, key_of(life), ONCE);

		if (how == ONCE && life->nth < SL_FIT_APART)
			how = sl_idmap_get(&sizes, (uint64_t)life->python << 32, ONCE);
		maker = sl_fit_program_maker(p, i);
		if (!life->step || how != DIFFERS || maker->optimizer || maker->stepper ||
		    (maker->backward && sl_idmap_get(&parameters, life->bytes, 0)))
			continue;
		e->scale[i] = 0.5;
		bytes = life->bytes > bytes ? life->bytes : bytes;
		place = place ? place : sl_fit_program_statement(p, life->python);
	}
	sl_idmap_free(&sizes);
	sl_idmap_free(&parameters);
	e->scaled = true;
	sl_fit_change_name(change, place);
	return bytes && sl_fit_change_matters(p, bytes);
}

/* How the size of a block follows the input: as so many factors of it.  Of steps of two sizes. */
struct power {
	double bytes[2], input[2]; /* of the smallest and the largest input */
};

/* By stack and number in the step. */
struct powers {
	SL_VECTOR(struct power) list;
	struct sl_idmap at;
};

static double exponent(const struct power *power)
{
	return power->input[1] > power->input[0] && power->bytes[0] > 0
		       ? log(power->bytes[1] / power->bytes[0]) / log(power->input[1] / power->input[0])
		       : 0;
}

static void find_powers(struct powers *powers, const struct sl_fit_program *p)
{
	for (size_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];
		double x = (double)sl_fit_program_input(p, life->step);
		uint32_t number = sl_idmap_claim(&powers->at, key_of(life), (uint32_t)powers->list.count);
		struct power *at;

		if (number == powers->list.count)
			*SL_PUSH(&powers->list) = (struct power){0};
		at = &powers->list.item[number];
		for (int end = 0; x > 0 && end < 2; end++)
			if (at->input[end] == 0 || (end ? x > at->input[1] : x < at->input[0])) {
				at->input[end] = x;
				at->bytes[end] = (double)life->bytes;
			}
	}
}

/* A block that steps of one size have goes by the first of its stack. */
static const struct power *power_of(const struct powers *powers, const struct sl_fit_life *life)
{
	const struct power *own = &powers->list.item[sl_idmap_get(&powers->at, key_of(life), 0)];

	return own->input[1] > own->input[0] ? own : &powers->list.item[sl_idmap_get(&powers->at, (uint64_t)life->python << 32, 0)];
}

/* No step has a larger input than LONGEST of the largest one.  Blocks that follow the input follow it to there. */
bool sl_fit_change_shorter_longest(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	double longest, x, explained = 0, all = 0;
	struct powers powers = {0};
	size_t last;

	if (count_inputs(p, &longest) < SIZES_MIN)
		return false;
	last = sl_fit_program_moment(p);
	if ((double)sl_fit_program_input(p, p->lives.item[p->whole.ops.item[last].id].step) < LONGEST * longest)
		return false;
	find_powers(&powers, p);
	for (uint32_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];
		const struct power *at = power_of(&powers, life);
		double power = exponent(at);

		x = (double)sl_fit_program_input(p, life->step);
		if (x == 0 || life->nth >= SL_FIT_APART || fabs(power) < ALIKE)
			continue;
		all += (double)life->bytes;
		if (life->nth || fabs(at->bytes[0] * pow(x / at->input[0], power) / (double)life->bytes - 1) < ALIKE)
			explained += (double)life->bytes;
		if (x > LONGEST * longest)
			e->scale[i] = pow(LONGEST * longest / x, power);
	}
	SL_DROP(&powers.list);
	sl_idmap_free(&powers.at);
	e->scaled = true;
	sl_fit_change_name(change, sl_fit_program_statement(p, p->whole.ops.item[p->steps.item[0]].python));
	return explained > (1 - ALIKE) * all && all > 0;
}

/* True: the function of the line `place` is active. */
static bool is_inside(const struct sl_fit_stack *stack, const struct sl_fit_place *place)
{
	for (unsigned k = 0; k < stack->count; k++)
		if (stack->places[k].own && stack->places[k].function && !strcmp(stack->places[k].function, place->function))
			return true;
	return false;
}

/* The first request from the op `from` on that is outside of `place`; *at and *found are of a later place, or the end. */
static size_t returned(const struct sl_fit_program *p, size_t from, const struct sl_fit_place *place, size_t *at, size_t *found)
{
	while (*at > from) {
		const struct sl_fit_op *op = &p->whole.ops.item[--*at];

		if (op->verb == SL_FIT_ALLOC && !is_inside(sl_fit_program_stack(p, op->python), place))
			*found = *at;
	}
	return *found;
}

/* The largest block that was held at the peak and was given back later; NULL: none. */
static const struct sl_fit_life *largest_temporary(const struct sl_fit_program *p)
{
	const struct sl_fit_life *found = NULL;
	size_t peak = sl_fit_program_moment(p);

	for (size_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];

		if (life->birth <= peak && life->death > peak && life->death != SL_FIT_GAP &&
		    (!found || life->bytes > found->bytes))
			found = life;
	}
	return found;
}

/*
 * The largest temporaries of the function that failed, or that reached the peak, a part at a time.  Python holds the part before
 * until the next is made.
 */
bool sl_fit_change_chunked(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	const struct sl_fit_life *failed = p->failed == SL_FIT_GAP ? largest_temporary(p) : sl_fit_program_failed(p);
	const struct sl_fit_place *failed_place, *place;
	size_t at = p->whole.ops.count, found = at;
	unsigned count = 0;

	if (!failed || !p->recorded->device_total)
		return false;
	failed_place = sl_fit_program_own(sl_fit_program_stack(p, failed->python));
	if (!failed_place || !failed_place->function || failed->bytes * LARGE_PART < p->recorded->device_total ||
	    sl_fit_program_stack(p, failed->python)->backward || sl_fit_program_stack(p, failed->python)->optimizer)
		return false;
	for (uint32_t i = (uint32_t)p->lives.count; i--;) {
		const struct sl_fit_life *life = &p->lives.item[i];

		if ((life->step != failed->step && p->failed != SL_FIT_GAP) || life->bytes < failed->bytes / PIECE_PART)
			continue;
		place = sl_fit_program_own(sl_fit_program_maker(p, i));
		if (!place || !place->function || strcmp(place->function, failed_place->function) != 0)
			continue;
		if (life->death > returned(p, life->birth, failed_place, &at, &found)) {
			if (life->bytes >= failed->bytes / 2)
				return false; /* it is needed later, as by a backward pass */
			continue;
		}
		e->scale[i] = 1.0 / CHUNKS;
		e->extra_from = life->birth;
		count++;
	}
	e->extra = failed->bytes / CHUNKS;
	e->scaled = true;
	sl_fit_change_name(change, failed_place);
	return count;
}
