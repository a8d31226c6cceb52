/* SPDX-License-Identifier: MIT */
#include "analyzer/fit/program.h"

#include <limits.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/symbols/symbols.h"

#define STEPS_MANY 4
#define STEPS_MIN  3 /* of a loop in one line, which only a stack that comes again tells */

static bool has(const char *text, const char *part)
{
	return text && strstr(text, part);
}

static bool is(const struct sl_fit_place *place, const char *function)
{
	const char *last = place->function ? strrchr(place->function, '.') : NULL;

	return place->function && !strcmp(last ? last + 1 : place->function, function);
}

static bool is_same_function(const struct sl_fit_place *a, const struct sl_fit_place *b)
{
	return a->file && b->file && !strcmp(a->file, b->file) && a->function && b->function && !strcmp(a->function, b->function);
}

bool sl_fit_place_is(const struct sl_fit_place *a, const struct sl_fit_place *b)
{
	return a->line == b->line && is_same_function(a, b);
}

static void note(struct sl_fit_stack *stack, struct sl_fit_place *place)
{
	place->torch = has(place->file, "/torch/");
	if (stack->optimizer && !place->torch && !stack->stepper && !(stack->stepper = is(place, "step")))
		stack->optimizer = stack->state = false; /* it calls the program's closure, as Lightning's */
	if (!place->torch && !has(place->file, "copy.py"))
		return;
	stack->module |= is(place, "_call_impl");
	stack->backward |= is(place, "_engine_run_backward");
	stack->optimizer |= has(place->file, "/torch/optim/") != 0;
	stack->guarded |= is(place, "decorate_context");
	stack->state |= is(place, "_init_group");
	stack->copies |= is(place, "deepcopy");
	stack->loads |= is(place, "_apply");
}

static uint32_t add_stack(struct sl_fit_program *p, uint32_t python)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	uint32_t at = sl_idmap_claim(&p->stack_ids, python, (uint32_t)p->stacks.count);
	struct sl_fit_stack stack = {0};
	unsigned count;

	if (at < p->stacks.count)
		return at;
	count = python ? sl_stacks_resolve(frames, &p->recorded->trace->defs, NULL, (struct sl_stack){.python = python}) : 0;
	stack.places = sl_memory_must(calloc(count + 1, sizeof(*stack.places)));
	for (unsigned i = count; i--;) {
		if (!frames[i].python)
			continue;
		stack.places[stack.count] = (struct sl_fit_place){.file = frames[i].file,
								  .function = frames[i].function,
								  .line = frames[i].line,
								  .own = sl_stacks_is_own(&frames[i])};
		note(&stack, &stack.places[stack.count++]);
	}
	*SL_PUSH(&p->stacks) = stack;
	return at;
}

const struct sl_fit_stack *sl_fit_program_stack(const struct sl_fit_program *p, uint32_t python)
{
	return &p->stacks.item[sl_idmap_get(&p->stack_ids, python, 0)];
}

const struct sl_fit_place *sl_fit_program_own(const struct sl_fit_stack *stack)
{
	for (unsigned i = stack->count; i--;)
		if (stack->places[i].own)
			return &stack->places[i];
	return NULL;
}

const struct sl_fit_place *sl_fit_program_statement(const struct sl_fit_program *p, uint32_t python)
{
	const struct sl_fit_stack *stack = sl_fit_program_stack(p, python);

	return p->depth < stack->count ? &stack->places[p->depth] : NULL;
}

uint32_t sl_fit_program_add(struct sl_fit_program *p, uint64_t bytes, uint32_t python)
{
	add_stack(p, python);
	*SL_PUSH(&p->lives) =
		(struct sl_fit_life){p->whole.ops.count, SL_FIT_GAP, .freed = SL_FIT_GAP, .bytes = bytes, .python = python};
	return (uint32_t)(p->lives.count - 1);
}

const struct sl_fit_place *sl_fit_program_caller(const struct sl_fit_program *p, uint32_t python)
{
	const struct sl_fit_stack *stack = sl_fit_program_stack(p, python);
	const struct sl_fit_place *found = NULL;

	for (unsigned i = p->depth < stack->count ? p->depth : 0; i < stack->count; i++) {
		if (found && stack->places[i].torch && is(&stack->places[i], "_call_impl"))
			break;
		found = stack->places[i].own ? &stack->places[i] : found;
	}
	return found;
}

/* --- blocks ------------------------------------------------------------------------------------------------- */

static void copy_ops(struct sl_fit_program *p)
{
	const struct sl_fit_recording *r = p->recorded;
	uint32_t *life = sl_memory_must(calloc(r->ids + 1, sizeof(*life)));
	size_t last = r->ops.count;

	for (size_t i = 0; i < r->ops.count; i++)
		if (r->ops.item[i].verb == SL_FIT_TRY && !r->goes_on)
			last = i;
	for (size_t i = 0; i < r->seeds.count; i++) {
		struct sl_fit_seed seed = r->seeds.item[i];

		if (seed.active) {
			life[seed.id] = (uint32_t)p->lives.count;
			seed.id = (uint32_t)p->lives.count;
			*SL_PUSH(&p->lives) = (struct sl_fit_life){
				.death = SL_FIT_GAP, .freed = SL_FIT_GAP, .bytes = seed.requested, .before = true};
		}
		*SL_PUSH(&p->whole.seeds) = seed;
	}
	for (size_t i = 0; i < r->ops.count && i <= last; i++) {
		struct sl_fit_op op = r->ops.item[i];

		if (op.verb == SL_FIT_TRY && i == last) {
			p->failed = p->whole.ops.count;
			op.verb = SL_FIT_ALLOC;
			op.id = r->ids;
		}
		if (op.verb == SL_FIT_ALLOC) {
			life[op.id] = (uint32_t)p->lives.count;
			op.id = sl_fit_program_add(p, op.bytes, op.python);
		} else if (op.verb == SL_FIT_FREE || op.verb == SL_FIT_FREE_LATER || op.verb == SL_FIT_DONE) {
			op.id = life[op.id];
			if (op.verb != SL_FIT_DONE)
				p->lives.item[op.id].death = p->whole.ops.count;
		}
		*SL_PUSH(&p->whole.ops) = op;
	}
	free(life);
}

/* --- the main loop ------------------------------------------------------------------------------------------ */

/* A request under the frame that may hold the loop. */
struct visit {
	size_t op;
	uint32_t python, line;
};

struct visits {
	SL_VECTOR(struct visit) list;
};

static bool is_under(const struct sl_fit_stack *stack, const struct sl_fit_stack *failed, unsigned depth)
{
	if (stack->count <= depth)
		return false;
	for (unsigned i = 0; i < depth; i++)
		if (!sl_fit_place_is(&stack->places[i], &failed->places[i]))
			return false;
	return is_same_function(&stack->places[depth], &failed->places[depth]);
}

static void visit(struct visits *visits, const struct sl_fit_program *p, const struct sl_fit_stack *failed, unsigned depth)
{
	visits->list.count = 0;
	for (size_t i = 0; i < p->whole.ops.count; i++) {
		const struct sl_fit_op *op = &p->whole.ops.item[i];
		const struct sl_fit_stack *stack = op->verb == SL_FIT_ALLOC ? sl_fit_program_stack(p, op->python) : NULL;

		if (stack && is_under(stack, failed, depth))
			*SL_PUSH(&visits->list) = (struct visit){i, op->python, stack->places[depth].line};
	}
}

/* A loop of several lines: a request in an earlier line than the one before begins a step. */
static void find_by_lines(struct sl_fit_program *p, const struct visits *visits, uint32_t line)
{
	uint32_t first = UINT32_MAX;
	bool begun = false;

	for (size_t i = visits->list.count; --i > 0;)
		if (visits->list.item[i].line < visits->list.item[i - 1].line && visits->list.item[i].line <= line &&
		    visits->list.item[i].line < first)
			first = visits->list.item[i].line;
	for (size_t i = 0; first != UINT32_MAX && i < visits->list.count; i++) {
		bool falls = i && visits->list.item[i].line < visits->list.item[i - 1].line;

		if (visits->list.item[i].line == first && (falls || !begun)) {
			*SL_PUSH(&p->steps) = visits->list.item[i].op;
			begun = true;
		}
	}
}

/* A function of PyTorch's that requests without a loop of its own. */
static bool is_plain(const struct sl_fit_place *place)
{
	return has(place->file, "/torch/nn/functional.py") || has(place->file, "/torch/functional.py") ||
	       has(place->file, "/torch/_tensor.py");
}

/*
 * True: the line itself requests, or a module that it calls.  Below it is no function of the user's, and none that may have a loop:
 * nn.Sequential's is one of layers, torch.load's one of tensors.
 */
static bool is_direct(const struct sl_fit_stack *stack, unsigned depth)
{
	bool direct = !stack->optimizer && !stack->backward && !stack->loads && !stack->copies, called = false;

	for (unsigned i = depth + 1; i < stack->count && direct; i++) {
		const struct sl_fit_place *place = &stack->places[i];

		called |= is(place, "_call_impl") || is(place, "_wrapped_call_impl");
		direct = !place->own && (called || is_plain(place)) && !has(place->file, "/torch/nn/modules/container.py") &&
			 !has(place->file, "/torch/nn/modules/transformer.py");
	}
	return direct;
}

/* A loop of one line: its first request comes again.  One of a function below may be that of a loop there. */
static void find_by_stack(struct sl_fit_program *p, const struct visits *visits, uint32_t line, unsigned depth)
{
	const struct visit *anchor = NULL;

	for (size_t i = 0; i < visits->list.count; i++) {
		const struct visit *at = &visits->list.item[i];

		if (at->line != line)
			continue;
		anchor = anchor ? anchor : at;
		if (at->python == anchor->python && (!i || at[-1].python != at->python))
			*SL_PUSH(&p->steps) = at->op;
	}
	if (p->steps.count < STEPS_MIN || !is_direct(sl_fit_program_stack(p, anchor->python), depth))
		p->steps.count = 0;
}

/*
 * The outermost loop that the last request is in.  One further in, where that has few steps or only its last step has that loop:
 * as epochs have batches, and a training loop an evaluation.  One inside of a module is no loop of steps but of layers.
 */
static void find_steps(struct sl_fit_program *p, size_t at)
{
	const struct sl_fit_stack *stack = sl_fit_program_stack(p, p->whole.ops.item[at].python);
	struct sl_fit_program inner = *p;
	struct visits visits = {0};

	p->depth = UINT_MAX;
	for (unsigned depth = 0; depth < stack->count; depth++) {
		if (is(&stack->places[depth], "_call_impl"))
			break;
		if (stack->places[depth].torch)
			continue;
		visit(&visits, p, stack, depth);
		inner.steps.count = 0;
		if (visits.list.count)
			find_by_lines(&inner, &visits, stack->places[depth].line);
		if (inner.steps.count < 2) {
			inner.steps.count = 0;
			find_by_stack(&inner, &visits, stack->places[depth].line, depth);
		}
		if (!inner.steps.count || (p->steps.count && inner.steps.count < STEPS_MANY) ||
		    (p->steps.count >= STEPS_MANY && inner.steps.item[0] < p->steps.item[p->steps.count - 1]))
			continue;
		p->depth = depth;
		p->steps.count = 0;
		for (size_t i = 0; i < inner.steps.count; i++)
			*SL_PUSH(&p->steps) = inner.steps.item[i];
	}
	SL_DROP(&inner.steps);
	SL_DROP(&visits.list);
}

/*
 * A program that did not fail frees what it kept after its loop.  Its blocks get the death that a failure at the loop's end would
 * leave them: those made in the loop at the end of that visit, all others at the end of the last one.
 */
static void keep_to_the_end(struct sl_fit_program *p)
{
	const struct sl_fit_stack *loop = sl_fit_program_stack(p, p->whole.ops.item[p->steps.item[0]].python), *stack;
	size_t over = 0, last = 0, until;
	bool inside = false, was;

	for (size_t i = p->whole.ops.count; i--;) {
		const struct sl_fit_op *op = &p->whole.ops.item[i];
		struct sl_fit_life *life = &p->lives.item[op->id];

		if (op->verb != SL_FIT_ALLOC)
			continue;
		was = inside;
		stack = sl_fit_program_stack(p, op->python);
		if (stack->count && is_same_function(&stack->places[0], &loop->places[0])) /* not of a thread of autograd's */
			inside = stack->count > p->depth && is_same_function(&stack->places[p->depth], &loop->places[p->depth]);
		over = inside && !was ? i + 1 : over;
		last = last ? last : over;
		until = inside ? over : last;
		if (i >= until || life->death == SL_FIT_GAP || life->death < until)
			continue;
		life->freed = life->death;
		life->death = SL_FIT_GAP;
	}
}

/* Blocks of one stack in one step: places in a list of lives. */
struct group {
	size_t from, to;
};

/* How many blocks of the later step have the size of their counterpart, with or without the blocks that stay. */
static unsigned alike(const struct sl_fit_program *p, const uint32_t *list, struct group a, struct group b, bool without)
{
	unsigned same = 0;

	for (size_t i = a.from, k = b.from; i < a.to && k < b.to; i++) {
		const struct sl_fit_life *life = &p->lives.item[list[i]];

		if (without && life->death == SL_FIT_GAP)
			continue;
		same += life->bytes == p->lives.item[list[k++]].bytes;
	}
	return same;
}

/*
 * Numbers blocks of a stack in a step.  Those that stay, and that the next step lacks, are apart from the others, as workspaces of
 * libraries in a first step.
 */
static void number_group(struct sl_fit_program *p, const uint32_t *list, struct group a, struct group b)
{
	bool apart = b.to > b.from && alike(p, list, a, b, true) > alike(p, list, a, b, false);
	uint32_t nth = 0, stays = SL_FIT_APART;

	for (size_t i = a.from; i < a.to; i++) {
		struct sl_fit_life *life = &p->lives.item[list[i]];

		life->nth = apart && life->death == SL_FIT_GAP ? stays++ : nth++;
	}
}

static struct group group_at(const struct sl_fit_program *p, const uint32_t *list, size_t from, size_t to)
{
	struct group g = {from, from};

	while (g.to < to && p->lives.item[list[g.to]].step == p->lives.item[list[from]].step)
		g.to++;
	return g;
}

/* Numbers each block by its step, and among those of its stack there. */
static void find_highest(struct sl_fit_program *p)
{
	uint64_t now = 0;

	for (size_t i = 0; i < p->lives.count && p->lives.item[i].before; i++)
		now += p->lives.item[i].bytes;
	p->highest = 0;
	p->highest_bytes = 0;
	for (size_t i = 0; i < p->whole.ops.count; i++) {
		const struct sl_fit_op *op = &p->whole.ops.item[i];

		if (op->verb == SL_FIT_ALLOC)
			now += op->bytes;
		else if (op->verb == SL_FIT_FREE || op->verb == SL_FIT_FREE_LATER)
			now -= p->lives.item[op->id].bytes;
		if (op->verb == SL_FIT_ALLOC && now > p->highest_bytes) {
			p->highest_bytes = now;
			p->highest = i;
		}
	}
}

void sl_fit_program_number(struct sl_fit_program *p)
{
	size_t *ends = sl_memory_must(calloc(p->stacks.count + 1, sizeof(*ends))), from = 0;
	uint32_t *list = sl_memory_must(calloc(p->lives.count + 1, sizeof(*list)));
	unsigned step = 0;

	for (size_t i = 0; i < p->lives.count; i++) {
		struct sl_fit_life *life = &p->lives.item[i];

		ends[sl_idmap_get(&p->stack_ids, life->python, 0)]++;
		while (!life->before && step < p->steps.count && p->steps.item[step] <= life->birth)
			step++;
		life->step = life->before ? 0 : step;
	}
	for (size_t i = 0; i < p->stacks.count; i++)
		from = ends[i] += from;
	for (uint32_t i = (uint32_t)p->lives.count; i--;)
		list[--ends[sl_idmap_get(&p->stack_ids, p->lives.item[i].python, 0)]] = i;
	for (size_t i = 0; i < p->stacks.count; i++) {
		size_t to = i + 1 < p->stacks.count ? ends[i + 1] : p->lives.count;

		for (struct group a = group_at(p, list, ends[i], to), b; a.from < to; a = b) {
			b = group_at(p, list, a.to, to);
			number_group(p, list, a, b);
		}
	}
	free(ends);
	free(list);
	find_highest(p);
}

uint64_t sl_fit_program_input(const struct sl_fit_program *p, unsigned step)
{
	const struct sl_fit_op *op = step && step <= p->steps.count ? &p->whole.ops.item[p->steps.item[step - 1]] : NULL;

	return op && op->verb == SL_FIT_ALLOC && op->python == p->whole.ops.item[p->steps.item[0]].python ? op->bytes : 0;
}

size_t sl_fit_program_moment(const struct sl_fit_program *p)
{
	return p->failed != SL_FIT_GAP ? p->failed : p->highest;
}

void sl_fit_program_read(struct sl_fit_program *p, const struct sl_fit_recording *r)
{
	size_t last;

	*p = (struct sl_fit_program){.recorded = r, .whole = *r, .failed = SL_FIT_GAP, .depth = UINT_MAX};
	memset(&p->whole.ops, 0, sizeof(p->whole.ops));
	memset(&p->whole.seeds, 0, sizeof(p->whole.seeds));
	add_stack(p, 0);
	add_stack(p, r->pool.python);
	copy_ops(p);
	find_highest(p);
	last = sl_fit_program_moment(p);
	if (p->whole.ops.count)
		find_steps(p, last);
	if (p->failed == SL_FIT_GAP && p->steps.count)
		keep_to_the_end(p);
	sl_fit_program_number(p);
	p->rest = SL_FIT_REST_RECORDED;
	p->end = p->whole.ops.count;
	p->whole.ids = (uint32_t)p->lives.count;
	p->whole.goes_on = true; /* all its requests are granted */
}

void sl_fit_program_free(struct sl_fit_program *p)
{
	for (size_t i = 0; i < p->stacks.count; i++)
		free(p->stacks.item[i].places);
	SL_DROP(&p->stacks);
	SL_DROP(&p->lives);
	SL_DROP(&p->steps);
	free(p->whole.ops.item);
	free(p->whole.seeds.item);
	sl_idmap_free(&p->stack_ids);
}
