/* SPDX-License-Identifier: MIT */
/* The rules: what each kind of change does to the requests of a program, and where. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/fit/change.h"
#include "analyzer/fit/rest.h"

#define PART_MIN    50 /* a kind is offered where it concerns at least one of so many parts of what is held */
#define LARGE_PART  8  /* a large temporary takes one of so many parts of the device */
#define RISES	    4  /* steps in a row */
#define RESULTS_MAX 4  /* of modules in a step */
#define CHUNKS	    4
#define PIECE_PART  16 /* of the failed request: smaller blocks of its function stay whole */
#define LONGEST	    0.75
#define SIZES_MIN   3	/* of a step's first request */
#define ALIKE	    0.1 /* so far a block may be from what its exponent says */
#define UPDATES_MIN 2	/* by the optimizer, with gradients that stay */
#define BLOCK_8BIT  256 /* elements of state with a scale of 4 bytes */
#define STATE_8BIT  (16 << 10)
#define OWN_STEP    2 /* temporaries of an optimizer with small state, of the largest gradient's size */

static uint32_t failed_life(const struct sl_fit_program *p)
{
	return p->whole.ops.item[p->failed].id;
}

static void name(struct sl_change *change, const struct sl_fit_place *place)
{
	if (place)
		change->at = (struct sl_change_line){place->file, place->function, place->line};
}

/* True: the bytes are worth a change. */
static bool matters(const struct sl_fit_program *p, uint64_t bytes)
{
	uint64_t most;

	sl_fit_program_highest(p, &most);
	return bytes * PART_MIN >= most;
}

static bool set(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	const char *at;

	if (p->whole.seeds.count)
		return false; /* the blocks from before the window would lie elsewhere */
	e->made = p->recorded->settings;
	if (sl_fit_settings_parse(&e->made, change->settings, p->recorded->release, &at) ||
	    !memcmp(&e->made, &p->recorded->settings, sizeof(e->made)))
		return false;
	if (e->made.gc_threshold > 0 && !p->recorded->limits && !(e->made.fraction > 0))
		return false; /* it does nothing without a memory fraction */
	e->settings = &e->made;
	return true;
}

/* --- what is kept from step to step ------------------------------------------------------------------------- */

/*
 * For each block that each step keeps: 1 autograd's graph keeps it, 2 the same, as an input that was made before, -1 the program
 * does, 0 it is no such block.
 */
static signed char *who_keeps(const struct sl_fit_program *p, const struct sl_fit_keeps *keeps)
{
	signed char *found = sl_memory_must(calloc(p->lives.count + 1, 1)),
		    *by_stack = sl_memory_must(calloc(p->stacks.count + 1, 1));
	unsigned step = 0;

	for (uint32_t i = (uint32_t)p->lives.count; keeps->any && i--;) {
		const struct sl_fit_life *life = &p->lives.item[i];
		signed char *graph = &by_stack[sl_idmap_get(&p->stack_ids, life->python, 0)];

		if (!sl_fit_keeps_it(keeps, p, i))
			continue;
		if (!*graph)
			*graph = sl_fit_keeps_graph(keeps, p, i) ? 1 : -1;
		found[i] = *graph > 0 ? 1 : life->step == step ? 2 : -1;
		step = *graph > 0 ? life->step : step;
	}
	free(by_stack);
	return found;
}

/* Blocks that each step keeps; graph: by autograd's graph.  modules: only those that modules made, and their inputs. */
static bool end_kept(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p, bool graph, bool modules)
{
	const struct sl_fit_place *place = NULL;
	size_t leaves = SL_FIT_GAP;
	uint64_t bytes = 0;
	unsigned step = 0, results = 0;
	signed char *who;

	if (p->steps.count < 2)
		return false;
	who = who_keeps(p, e->keeps);
	for (uint32_t i = (uint32_t)p->lives.count; i--;) {
		const struct sl_fit_life *life = &p->lives.item[i];
		bool of_module = who[i] && sl_fit_program_maker(p, i)->module;

		if (!who[i] || (who[i] > 0) != graph || e->keeps->leaves[i] == SL_FIT_GAP)
			continue;
		if (!graph || of_module || step != life->step)
			leaves = e->keeps->leaves[i];
		if (modules && !of_module && step != life->step)
			continue; /* what the loss keeps by itself */
		step = life->step;
		e->dies[i] = leaves;
		bytes += life->bytes;
		results += life->step == e->keeps->to && of_module;
		if (who[i] != 2 && (!place || (of_module && modules)))
			place = sl_fit_program_caller(p, life->python);
	}
	free(who);
	name(change, place);
	if (!graph && results > RESULTS_MAX)
		e->most = SL_PASSES_STEP; /* modules may need them again, as a cache of keys and values */
	return bytes && matters(p, bytes);
}

static bool free_leak(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	return end_kept(e, change, p, true, false);
}

static bool no_grad(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	return end_kept(e, change, p, true, true);
}

/*
 * Tensors that each step joins to a larger one, outside of modules (a cache of keys and values must stay where it is): for each
 * stack how many steps in a row its first request was larger.
 */
static unsigned *count_rises(const struct sl_fit_program *p)
{
	unsigned *rises = sl_memory_must(calloc(p->stacks.count + 1, sizeof(*rises)));
	uint64_t *size = sl_memory_must(calloc(p->stacks.count + 1, sizeof(*size)));
	unsigned *step = sl_memory_must(calloc(p->stacks.count + 1, sizeof(*step)));

	for (size_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];
		size_t at = sl_idmap_get(&p->stack_ids, life->python, 0);

		if (!life->step || life->nth || !at)
			continue;
		rises[at] = step[at] + 1 == life->step && life->bytes > size[at] ? rises[at] + 1 : 0;
		size[at] = life->bytes;
		step[at] = life->step;
	}
	for (size_t i = 0; i < p->stacks.count; i++)
		if (p->stacks.item[i].module || step[i] + 1 < p->steps.count)
			rises[i] = 0;
	free(size);
	free(step);
	return rises;
}

/* Results of each step that are joined to one tensor: they are on the host. */
static bool offload_joined(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	unsigned *rises = count_rises(p);
	uint32_t first = p->steps.count ? p->whole.ops.item[p->steps.item[0]].python : 0;
	bool grows = rises[sl_idmap_get(&p->stack_ids, first, 0)] >= RISES; /* so do the inputs: these are no joined results */
	uint64_t largest = 0;

	for (uint32_t i = 0; i < p->lives.count && !grows; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];

		if (!life->step || rises[sl_idmap_get(&p->stack_ids, life->python, 0)] < RISES)
			continue;
		e->gone[i] = true;
		largest = life->bytes > largest ? life->bytes : largest;
		name(change, sl_fit_program_caller(p, life->python));
	}
	free(rises);
	return largest && matters(p, largest);
}

static bool offload_kept(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	return end_kept(e, change, p, false, false);
}

/* --- optimizer, copies -------------------------------------------------------------------------------------- */

/* Blocks of the optimizer's state, of this size or larger, become this part of it. */
static bool shrink_state(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p, double part,
			 uint64_t least)
{
	const struct sl_fit_place *place = NULL;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];

		e->gone[i] = sl_fit_program_updates(p, i); /* another optimizer has temporaries of its own */
		if (e->gone[i] || life->death != SL_FIT_GAP || life->before || !sl_fit_program_maker(p, i)->optimizer ||
		    sl_fit_program_maker(p, i)->backward || life->bytes < least)
			continue;
		e->scale[i] = part;
		bytes += life->bytes;
		place = sl_fit_program_own(sl_fit_program_maker(p, i));
	}
	e->scaled = true;
	if (p->rest == SL_FIT_REST_STATE) {
		e->extra = OWN_STEP * p->temporary;
		e->extra_from = p->states;
	}
	name(change, place);
	return bytes && matters(p, bytes);
}

static bool half_state(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	return shrink_state(e, change, p, 0.5, 0);
}

/* State of float32 in 8 bits: that it has this type is not in the recording, so that it is never called fitting. */
static bool state_8bit(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	e->most = SL_PASSES_STEP;
	return shrink_state(e, change, p, 0.25 + 1.0 / BLOCK_8BIT, STATE_8BIT);
}

/*
 * Gradients that the program zeroes: each was made in one step and stays, and each later backward pass makes a block of its size
 * beside it, in the same order.  With None the old one goes as a step begins, and the new one stays.  Where the program zeroes
 * them is not in the recording, so that it is never called fitting.  Between steps that add their gradients up on purpose the
 * optimizer makes nothing.
 */
static bool set_to_none(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	struct sl_fit_gradients old = {0};
	unsigned first, step = 0, updates = 0;
	uint64_t bytes = 0;
	size_t next = 0;

	sl_fit_rest_gradients(&old, p);
	first = old.list.count ? p->lives.item[old.list.item[0]].step : 0;
	for (uint32_t i = 0; i < p->lives.count && old.list.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];
		const struct sl_fit_stack *maker = sl_fit_program_maker(p, i);

		if (life->step <= first || life->step > p->steps.count)
			continue;
		next = life->step == step ? next : 0;
		step = life->step;
		if (maker->optimizer && next == old.list.count) {
			updates++;
			next++; /* counted */
			name(change, sl_fit_program_own(maker));
		}
		if (!maker->backward || next >= old.list.count || life->death == SL_FIT_GAP ||
		    life->bytes != p->lives.item[old.list.item[next]].bytes)
			continue;
		e->dies[old.list.item[next]] = p->steps.item[step - 1];
		e->dies[i] = p->whole.ops.count;
		old.list.item[next++] = i;
		bytes += life->bytes;
	}
	SL_DROP(&old.list);
	e->most = SL_PASSES_STEP;
	return updates >= UPDATES_MIN && matters(p, bytes / updates);
}

static bool no_second_copy(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	const struct sl_fit_place *place = NULL;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];

		if (life->death != SL_FIT_GAP || life->before || !sl_fit_program_maker(p, i)->copies)
			continue;
		e->gone[i] = true;
		bytes += life->bytes;
		place = sl_fit_program_own(sl_fit_program_maker(p, i));
	}
	name(change, place);
	return bytes && matters(p, bytes);
}

/*
 * A model is loaded in a function that loaded another before, and called it meanwhile.  Whether it is called again is not in the
 * recording, and neither is what the second one still needs.
 */
static bool free_before_build(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	const struct sl_fit_stack *failed =
		p->failed == SL_FIT_GAP ? NULL : sl_fit_program_stack(p, p->whole.ops.item[p->failed].python);
	size_t begin = SL_FIT_GAP, called = SL_FIT_GAP;
	uint64_t bytes = 0;

	for (unsigned depth = 0; failed && failed->loads && depth < failed->count && !bytes; depth++) {
		const struct sl_fit_place *here = &failed->places[depth];

		if (!here->own)
			continue;
		begin = called = SL_FIT_GAP;
		for (size_t i = p->failed + 1; i--;) {
			const struct sl_fit_op *op = &p->whole.ops.item[i];
			const struct sl_fit_stack *stack = op->verb == SL_FIT_ALLOC ? sl_fit_program_stack(p, op->python) : NULL;

			if (!stack || stack->count <= depth || !here->file || !stack->places[depth].file ||
			    strcmp(stack->places[depth].file, here->file) != 0 ||
			    strcmp(stack->places[depth].function ? stack->places[depth].function : "",
				   here->function ? here->function : "") != 0)
				continue;
			if (called == SL_FIT_GAP && stack->places[depth].line == here->line)
				begin = i;
			else if (stack->module && !stack->loads)
				called = i;
			else if (called != SL_FIT_GAP && stack->loads && stack->places[depth].line != here->line &&
				 p->lives.item[op->id].death == SL_FIT_GAP) {
				e->dies[op->id] = begin;
				bytes += op->bytes;
			}
		}
		name(change, here);
	}
	e->most = SL_PASSES_REQUEST;
	return bytes && begin != SL_FIT_GAP && matters(p, bytes);
}

/* --- sizes -------------------------------------------------------------------------------------------------- */

/* Blocks whose size is not the same in all steps are those that follow the batch. */
static bool half_batch(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	uint64_t *first = sl_memory_must(calloc(p->stacks.count + 1, sizeof(*first))), bytes = 0;
	bool *varies = sl_memory_must(calloc(p->stacks.count + 1, sizeof(*varies)));
	const struct sl_fit_place *place = NULL;

	for (size_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];
		size_t at = sl_idmap_get(&p->stack_ids, life->python, 0);

		if (!life->step || life->nth || !at)
			continue;
		varies[at] |= first[at] && first[at] != life->bytes;
		first[at] = life->bytes;
	}
	for (uint32_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];

		if (!life->step || !varies[sl_idmap_get(&p->stack_ids, life->python, 0)])
			continue;
		e->scale[i] = 0.5;
		bytes = life->bytes > bytes ? life->bytes : bytes;
		place = place ? place : sl_fit_program_statement(p, life->python);
	}
	free(first);
	free(varies);
	e->scaled = true;
	name(change, place);
	return bytes && matters(p, bytes);
}

/* The first request of a step, its input; 0: another line made it than that of the first step. */
static double input(const struct sl_fit_program *p, unsigned step)
{
	const struct sl_fit_op *op = step && step <= p->steps.count ? &p->whole.ops.item[p->steps.item[step - 1]] : NULL;

	return op && op->verb == SL_FIT_ALLOC && op->python == p->whole.ops.item[p->steps.item[0]].python ? (double)op->bytes : 0;
}

/* How the size of what a stack requests follows the input: as so many factors of it.  Of steps of two sizes. */
struct power {
	double bytes[2], input[2]; /* of the smallest and the largest input */
};

static double exponent(const struct power *power)
{
	return power->input[1] > power->input[0] && power->bytes[0] > 0
		       ? log(power->bytes[1] / power->bytes[0]) / log(power->input[1] / power->input[0])
		       : 0;
}

static struct power *find_powers(const struct sl_fit_program *p)
{
	struct power *powers = sl_memory_must(calloc(p->stacks.count + 1, sizeof(*powers)));

	for (size_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];
		struct power *at = &powers[sl_idmap_get(&p->stack_ids, life->python, 0)];
		double x = input(p, life->step);

		for (int end = 0; x > 0 && !life->nth && end < 2; end++)
			if (at->input[end] == 0 || (end ? x > at->input[1] : x < at->input[0])) {
				at->input[end] = x;
				at->bytes[end] = (double)life->bytes;
			}
	}
	return powers;
}

/* No step has a larger input than LONGEST of the largest one.  Blocks that follow the input follow it to there. */
static bool shorter_longest(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	double longest = 0, sizes[SIZES_MIN], x, told = 0, all = 0;
	struct power *powers;
	unsigned count = 0;

	for (unsigned step = 1; step <= p->steps.count; step++) {
		unsigned at = 0;

		x = input(p, step);
		longest = x > longest ? x : longest;
		while (at < count && sizes[at] != x)
			at++;
		if (at == count && count < SIZES_MIN && x > 0)
			sizes[count++] = x;
	}
	if (count < SIZES_MIN || p->failed == SL_FIT_GAP || input(p, p->lives.item[failed_life(p)].step) < LONGEST * longest)
		return false;
	powers = find_powers(p);
	for (uint32_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];
		const struct power *at = &powers[sl_idmap_get(&p->stack_ids, life->python, 0)];
		double power = exponent(at);

		x = input(p, life->step);
		if (x == 0 || fabs(power) < ALIKE)
			continue;
		all += (double)life->bytes;
		if (life->nth || fabs(at->bytes[0] * pow(x / at->input[0], power) / (double)life->bytes - 1) < ALIKE)
			told += (double)life->bytes;
		if (x > LONGEST * longest)
			e->scale[i] = pow(LONGEST * longest / x, power);
	}
	free(powers);
	e->scaled = true;
	name(change, sl_fit_program_statement(p, p->whole.ops.item[p->steps.item[0]].python));
	return told > (1 - ALIKE) * all && all > 0;
}

/* Another framework's pool takes what it uses of it, by its own figure; what it needs in other places is not known. */
static bool limit_pool(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	const struct sl_fit_beside *pool = &p->recorded->pool;

	if (!pool->bytes || pool->used >= pool->bytes)
		return false;
	e->beside = pool->bytes - pool->used;
	e->beside_from = pool->since;
	if (!pool->used)
		e->most = SL_PASSES_REQUEST;
	name(change, sl_fit_program_own(sl_fit_program_stack(p, pool->python)));
	return matters(p, e->beside);
}

/* The op at which the function `here` of a stack of so many frames has returned. */
static size_t returned(const struct sl_fit_program *p, size_t from, const struct sl_fit_place *here)
{
	for (size_t i = from; i < p->whole.ops.count; i++) {
		const struct sl_fit_op *op = &p->whole.ops.item[i];
		const struct sl_fit_stack *stack = op->verb == SL_FIT_ALLOC ? sl_fit_program_stack(p, op->python) : NULL;
		bool inside = false;

		for (unsigned k = 0; stack && k < stack->count && !inside; k++)
			inside = stack->places[k].own && here->function && stack->places[k].function &&
				 !strcmp(stack->places[k].function, here->function);
		if (stack && !inside)
			return i;
	}
	return p->whole.ops.count;
}

/* The largest temporaries of the function that failed, a part at a time; Python holds the part before until the next is made. */
static bool chunked(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	const struct sl_fit_life *failed;
	const struct sl_fit_place *here, *there;
	unsigned count = 0;

	if (p->failed == SL_FIT_GAP || !p->recorded->device_total)
		return false;
	failed = &p->lives.item[failed_life(p)];
	here = sl_fit_program_own(sl_fit_program_stack(p, failed->python));
	if (!here || !here->function || failed->bytes * LARGE_PART < p->recorded->device_total ||
	    sl_fit_program_stack(p, failed->python)->backward || sl_fit_program_stack(p, failed->python)->optimizer)
		return false;
	for (uint32_t i = (uint32_t)p->lives.count; i--;) {
		const struct sl_fit_life *life = &p->lives.item[i];

		if (life->step != failed->step || life->bytes < failed->bytes / PIECE_PART)
			continue;
		there = sl_fit_program_own(sl_fit_program_maker(p, i));
		if (!there || !there->function || strcmp(there->function, here->function) != 0)
			continue;
		if (life->death > returned(p, life->birth, here)) {
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
	name(change, here);
	return count;
}

static bool empty_cache(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	for (size_t i = 0; i < p->steps.count; i++)
		e->empties[p->steps.item[i]] = true;
	name(change, p->steps.count ? sl_fit_program_statement(p, p->whole.ops.item[p->steps.item[0]].python) : NULL);
	return p->steps.count;
}

/* The line from which a module's forward calls its modules: the outermost one; 0: the stack has none. */
static unsigned layer_line(const struct sl_fit_stack *stack)
{
	unsigned line = 0, calls = 0;

	for (unsigned i = 0; i < stack->count && calls < 2; i++) {
		bool call = stack->places[i].torch && stack->places[i].function &&
			    strstr(stack->places[i].function, "_call_impl") &&
			    !strstr(stack->places[i].function, "_wrapped_call_impl");

		calls += call;
		if (calls == 1 && !call && !line &&
		    !strstr(stack->places[i].function ? stack->places[i].function : "", "_wrapped_"))
			line = i + 1;
	}
	return calls == 2 ? line : 0;
}

/* An activation of the step that failed: a module made it, and a backward pass is to come. */
static bool is_activation(const struct sl_fit_program *p, uint32_t i, size_t until)
{
	const struct sl_fit_life *life = &p->lives.item[i];
	const struct sl_fit_stack *stack = sl_fit_program_maker(p, i);

	return stack->module && !stack->backward && !stack->loads && !stack->copies && !stack->optimizer && !life->before &&
	       life->step == p->lives.item[failed_life(p)].step && life->birth <= until && life->death > until;
}

/* True: modules were called again after a pass without a backward pass, so that none is to come. */
static bool is_evaluation(const struct sl_fit_program *p)
{
	uint32_t first = 0;
	bool again = false;

	for (uint32_t i = 0; i < p->lives.count && p->lives.item[i].birth <= p->failed; i++) {
		const struct sl_fit_stack *stack = sl_fit_program_maker(p, i);

		if (stack->backward || stack->optimizer)
			return false;
		if (!stack->module || stack->loads || stack->copies)
			continue;
		again |= first == p->lives.item[i].python && p->lives.item[i - 1].python != first;
		first = first ? first : p->lives.item[i].python;
	}
	return again;
}

/*
 * Each call of a layer keeps its last block only (no_grad keeps less), and the largest call is there once more while its backward
 * pass runs.  Layers are calls from one line of their model, told apart by the first stack below it.
 */
static bool checkpointing(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	const struct sl_fit_stack *failed =
		p->failed == SL_FIT_GAP ? NULL : sl_fit_program_stack(p, p->whole.ops.item[p->failed].python);
	const struct sl_fit_place *place = NULL, *here;
	uint32_t first = 0, begin = 0, last = UINT32_MAX;
	uint64_t now = 0, largest = 0, dropped = 0;
	unsigned calls = 0, line;
	size_t until;

	if (!failed || (!failed->module && !failed->backward) || failed->optimizer || failed->loads || failed->guarded)
		return false;
	for (until = p->failed; until && failed->backward; until--) /* the end of the forward pass */
		if (p->whole.ops.item[until].verb == SL_FIT_ALLOC &&
		    !sl_fit_program_stack(p, p->whole.ops.item[until].python)->backward)
			break;
	for (uint32_t i = 0; i < p->lives.count && p->lives.item[i].birth <= until; i++) {
		const struct sl_fit_stack *stack = sl_fit_program_maker(p, i);

		if (p->lives.item[i].step != p->lives.item[failed_life(p)].step || !(line = layer_line(stack)) || stack->backward)
			continue;
		here = &stack->places[line - 1];
		if (!place || here->line != place->line ||
		    strcmp(here->file ? here->file : "", place->file ? place->file : "") != 0 || p->lives.item[i].python == first) {
			for (uint32_t k = begin; calls && last != UINT32_MAX && k < i; k++)
				if (k != last && is_activation(p, k, until) && layer_line(sl_fit_program_maker(p, k))) {
					e->dies[k] = p->lives.item[i].birth;
					dropped += p->lives.item[k].bytes;
				}
			calls++;
			largest = now > largest ? now : largest;
			now = 0;
			first = p->lives.item[i].python;
			begin = i;
			place = here;
			last = UINT32_MAX;
		}
		if (is_activation(p, i, until)) {
			now += p->lives.item[i].bytes;
			last = i;
		}
	}
	largest = now > largest ? now : largest;
	if (failed->backward) {
		e->extra = largest;
		e->extra_from = until + 1;
	}
	name(change, place && place->torch ? sl_fit_program_caller(p, p->whole.ops.item[p->failed].python) : place);
	if (is_evaluation(p)) {
		change->kind = "no_grad";
		name(change, sl_fit_program_caller(p, p->whole.ops.item[p->failed].python));
	}
	return calls > 2 && dropped && matters(p, dropped);
}

const struct sl_fit_rule sl_fit_rules[] = {
	{"settings:expandable_segments", set, "expandable_segments:True"},
	{"settings:max_split_size_mb=128", set, "max_split_size_mb:128"},
	{"settings:garbage_collection_threshold=0.8", set, "garbage_collection_threshold:0.8"},
	{"free_leak", free_leak},
	{"no_grad", no_grad},
	{"offload_results", offload_kept},
	{"offload_results", offload_joined},
	{"no_second_copy", no_second_copy},
	{"half_state", half_state},
	{"state_8bit", state_8bit},
	{"set_to_none", set_to_none},
	{"free_before_build", free_before_build},
	{"chunked", chunked},
	{"checkpointing", checkpointing},
	{"half_batch", half_batch},
	{"shorter_longest", shorter_longest},
	{"limit_pool", limit_pool},
	{"empty_cache_at_step", empty_cache},
	{0},
};
