/* SPDX-License-Identifier: MIT */
#include "analyzer/fit/rest_of_step.h"

#include <math.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"

#define BACK   3   /* steps that are asked for the failed request */
#define BEFORE 8   /* steps that are asked for other sizes */
#define ALIKE  0.1 /* the logarithm of how far the growth of two blocks may differ */
#define SOUND  4   /* of an earlier step only: no block grew more, or the others look like it */

/* Blocks of the last steps, by stack, number and step. */
struct step_blocks {
	const struct sl_fit_program *p;
	struct sl_idmap at;
};

static uint64_t key_of(uint32_t python, uint32_t nth, unsigned step)
{
	return (uint64_t)python << 32 ^ (uint64_t)nth << 14 ^ (step & 0x3fff);
}

static void learn(struct step_blocks *blocks, const struct sl_fit_program *p, unsigned from)
{
	*blocks = (struct step_blocks){.p = p};
	for (uint32_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];

		if (life->step >= from && !life->before)
			sl_idmap_set(&blocks->at, key_of(life->python, life->nth, life->step), i);
	}
}

/* The block of another step; NULL: none. */
static const struct sl_fit_life *in_step(const struct step_blocks *blocks, const struct sl_fit_life *life, unsigned step)
{
	uint32_t at = sl_idmap_get(&blocks->at, key_of(life->python, life->nth, step), UINT32_MAX);
	const struct sl_fit_life *found = at == UINT32_MAX ? NULL : &blocks->p->lives.item[at];

	return found && found->python == life->python && found->nth == life->nth && found->step == step ? found : NULL;
}

static double ratio(const struct sl_fit_life *a, const struct sl_fit_life *b)
{
	return b->bytes ? (double)a->bytes / (double)b->bytes : 1;
}

/* A request that this step has made: how its size changed between two steps before, and from the later one to this. */
struct head {
	double before, now;
};

/* All requests that this step has made, by `before`. */
struct heads {
	SL_VECTOR(struct head) list;
	unsigned other; /* the earlier of the two steps; 0: no two differ */
	double now_max; /* the largest `now` */
	bool differs;	/* some block has another size than in step `old` */
};

static int by_before(const void *a, const void *b)
{
	const struct head *x = a, *y = b;

	return SL_RISING(x->before, y->before) ?: SL_RISING(x->now, y->now);
}

/* What the requests of step `now` tell of its sizes. */
static void find_heads(struct heads *h, const struct step_blocks *blocks, unsigned old, unsigned now, unsigned other)
{
	*h = (struct heads){.other = other, .now_max = 1};
	for (size_t i = blocks->p->lives.count; i--;) {
		const struct sl_fit_life *life = &blocks->p->lives.item[i], *then, *earlier;

		if (life->step && life->step < now)
			break;
		if (life->step != now || !(then = in_step(blocks, life, old)))
			continue;
		h->differs |= then->bytes != life->bytes;
		h->now_max = ratio(life, then) > h->now_max ? ratio(life, then) : h->now_max;
		if (other && (earlier = in_step(blocks, life, other)))
			*SL_PUSH(&h->list) = (struct head){log(ratio(then, earlier)), ratio(life, then)};
	}
	if (h->list.count)
		qsort(h->list.item, h->list.count, sizeof(*h->list.item), by_before);
}

/*
 * The size that a block of step `old` has now: it grows like one that was already requested, if both grew alike between two earlier
 * steps.  Where no two steps differ, like the one that grew most.  One that grew like no other has the larger of its two sizes.
 */
static uint64_t size_now(const struct heads *h, const struct step_blocks *blocks, const struct sl_fit_life *life)
{
	const struct sl_fit_life *earlier = h->other ? in_step(blocks, life, h->other) : NULL;
	double wanted = earlier ? log(ratio(life, earlier)) : 0;
	size_t from = 0, to = h->list.count;

	if (!earlier)
		return (uint64_t)((double)life->bytes * h->now_max);
	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (h->list.item[middle].before < wanted)
			from = middle + 1;
		else
			to = middle;
	}
	if (from && (from == h->list.count || wanted - h->list.item[from - 1].before < h->list.item[from].before - wanted))
		from--;
	if (from == h->list.count || fabs(h->list.item[from].before - wanted) > ALIKE)
		return life->bytes > earlier->bytes ? life->bytes : earlier->bytes;
	return (uint64_t)((double)life->bytes * h->list.item[from].now);
}

static void put(struct sl_fit_program *p, struct sl_fit_op op)
{
	*SL_PUSH(&p->whole.ops) = op;
}

static uint32_t ask(struct sl_fit_program *p, const struct sl_fit_op *like, uint64_t bytes)
{
	struct sl_fit_op op = *like;

	op.verb = SL_FIT_ALLOC;
	op.bytes = bytes;
	op.refused = 0;
	op.id = sl_fit_program_add(p, bytes, op.python);
	put(p, op);
	return op.id;
}

/* Frees a block that is live. */
static void release(struct sl_fit_program *p, uint32_t life)
{
	if (p->lives.item[life].death != SL_FIT_GAP)
		return;
	p->lives.item[life].death = p->whole.ops.count;
	put(p, (struct sl_fit_op){.verb = SL_FIT_FREE, .id = life});
}

/* What an earlier step did after its request that is like the failed one, with the sizes that this step has. */
static bool add_step(struct sl_fit_program *p)
{
	unsigned now = (unsigned)p->steps.count, old, other = 0, from = now > BEFORE + BACK ? now - BEFORE - BACK : 1;
	uint32_t failed = p->whole.ops.item[p->failed].id, *mapped;
	const struct sl_fit_life *like = NULL;
	struct step_blocks blocks;
	struct heads heads = {0};
	size_t begin, end;

	if (now < 2)
		return false;
	learn(&blocks, p, from);
	for (old = now; !like && --old >= 1 && now - old <= BACK;)
		like = in_step(&blocks, &p->lives.item[failed], old);
	if (!like) {
		sl_idmap_free(&blocks.at);
		return false;
	}
	find_heads(&heads, &blocks, old, now, 0);
	if (heads.differs) {
		for (unsigned step = old; !other && --step >= from;) {
			find_heads(&heads, &blocks, step, old, 0);
			other = heads.differs ? step : 0;
		}
		find_heads(&heads, &blocks, old, now, other);
	}
	if (!heads.other && heads.now_max > SOUND) {
		sl_idmap_free(&blocks.at);
		return false;
	}
	mapped = sl_memory_must(calloc(p->lives.count + 1, sizeof(*mapped)));
	begin = like->birth + 1;
	end = p->steps.item[old];
	for (size_t i = begin; i < end; i++) {
		const struct sl_fit_op op = p->whole.ops.item[i];
		const struct sl_fit_life life = p->lives.item[op.id < p->lives.count ? op.id : 0], *same;

		if (op.verb == SL_FIT_ALLOC) {
			mapped[op.id] = 1 + ask(p, &op, heads.differs ? size_now(&heads, &blocks, &life) : life.bytes);
		} else if (op.verb == SL_FIT_EMPTY) {
			put(p, op);
		} else if (op.verb == SL_FIT_FREE || op.verb == SL_FIT_FREE_LATER) {
			if (mapped[op.id])
				release(p, mapped[op.id] - 1);
			else if (life.step && (same = in_step(&blocks, &life, life.step + now - old)))
				release(p, (uint32_t)(same - p->lives.item));
		}
	}
	free(mapped);
	SL_DROP(&heads.list);
	sl_idmap_free(&blocks.at);
	return true;
}

/* --- the optimizer's state ---------------------------------------------------------------------------------- */

struct sl_idmap sl_fit_rest_parameters(const struct sl_fit_program *p)
{
	struct sl_idmap sizes = {0};

	for (uint32_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_stack *maker = sl_fit_program_maker(p, i);

		if (p->lives.item[i].death == SL_FIT_GAP && !maker->backward && !maker->optimizer && !maker->module)
			sl_idmap_set(&sizes, p->lives.item[i].bytes, 1);
	}
	return sizes;
}

void sl_fit_rest_gradients(struct sl_fit_gradients *gradients, const struct sl_fit_program *p)
{
	struct sl_idmap sizes = sl_fit_rest_parameters(p);

	for (uint32_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];

		if (life->death == SL_FIT_GAP && sl_fit_program_maker(p, i)->backward && !life->before &&
		    sl_idmap_get(&sizes, life->bytes, 0))
			*SL_PUSH(&gradients->list) = i;
	}
	sl_idmap_free(&sizes);
}

/* For each gradient a block of this size, of those that the line requested, less those that it has. */
static void add_states(struct sl_fit_program *p, const struct sl_fit_op *like, const struct sl_fit_gradients *gradients)
{
	SL_VECTOR(uint32_t) had = {0};

	for (uint32_t i = 0; i < p->lives.count; i++)
		if (p->lives.item[i].python == like->python)
			*SL_PUSH(&had) = i;
	for (size_t g = 0; g < gradients->list.count; g++) {
		uint64_t bytes = p->lives.item[gradients->list.item[g]].bytes;
		size_t at = 0;

		while (at < had.count && p->lives.item[had.item[at]].bytes != bytes)
			at++;
		if (at < had.count)
			had.item[at] = had.item[--had.count];
		else
			ask(p, like, bytes);
	}
	SL_DROP(&had);
}

/* The step of all parameters at once needs as much again as they have. */
static void add_update(struct sl_fit_program *p, const struct sl_fit_op *like, const struct sl_fit_gradients *gradients)
{
	struct sl_fit_op op = *like;

	op.python = p->update;
	for (size_t g = 0; g < gradients->list.count && !p->update; g++)
		ask(p, &op, p->lives.item[gradients->list.item[g]].bytes);
	for (uint32_t i = 0; i < p->lives.count; i++)
		if (p->lives.item[i].birth >= p->states && p->lives.item[i].python == p->update)
			release(p, i);
}

/* Its forward and backward pass: the gradients go at its beginning, since they are set to None. */
static void add_next_step(struct sl_fit_program *p, const struct sl_fit_gradients *gradients)
{
	uint32_t *mapped = sl_memory_must(calloc(p->lives.count + 1, sizeof(*mapped)));
	size_t first = p->states;

	for (size_t i = 0; i < p->states && first == p->states; i++)
		if (p->whole.ops.item[i].verb == SL_FIT_ALLOC && sl_fit_program_stack(p, p->whole.ops.item[i].python)->module)
			first = i;
	for (size_t g = 0; g < gradients->list.count; g++)
		release(p, gradients->list.item[g]);
	for (size_t i = first; i < p->states; i++) {
		const struct sl_fit_op op = p->whole.ops.item[i];

		if (op.verb == SL_FIT_ALLOC) {
			mapped[op.id] = 1 + ask(p, &op, op.bytes);
			release(p, op.id); /* a variable that had the same of the step before */
		} else if ((op.verb == SL_FIT_FREE || op.verb == SL_FIT_FREE_LATER) && mapped[op.id]) {
			release(p, mapped[op.id] - 1);
		}
	}
	free(mapped);
}

static bool add_optimizer(struct sl_fit_program *p)
{
	struct sl_fit_gradients gradients = {0};
	uint32_t seen[8], count = 0;
	const struct sl_fit_stack *failed = sl_fit_program_stack(p, p->whole.ops.item[p->failed].python);

	if (!failed->optimizer)
		return false;
	sl_fit_rest_gradients(&gradients, p);
	for (size_t g = 0; g < gradients.list.count; g++)
		if (p->lives.item[gradients.list.item[g]].bytes > p->temporary)
			p->temporary = p->lives.item[gradients.list.item[g]].bytes;
	for (p->states = p->failed; p->states && !(p->whole.ops.item[p->states - 1].verb == SL_FIT_ALLOC &&
						   !sl_fit_program_stack(p, p->whole.ops.item[p->states - 1].python)->optimizer);)
		p->states--;
	for (size_t i = p->states; i <= p->failed; i++) {
		const struct sl_fit_op op = p->whole.ops.item[i];
		bool is_seen = op.verb != SL_FIT_ALLOC || p->lives.item[op.id].death != SL_FIT_GAP;

		for (uint32_t k = 0; k < count; k++)
			is_seen |= seen[k] == op.python;
		if (is_seen || count == sizeof(seen) / sizeof(*seen))
			continue;
		seen[count++] = op.python;
		add_states(p, &op, &gradients);
	}
	p->update = failed->state ? 0 : p->whole.ops.item[p->failed].python;
	add_update(p, &p->whole.ops.item[p->failed], &gradients);
	p->end = p->whole.ops.count;
	add_next_step(p, &gradients);
	SL_DROP(&gradients.list);
	return true;
}

void sl_fit_rest_add(struct sl_fit_program *p)
{
	if (p->failed == SL_FIT_GAP)
		return;
	p->rest = SL_FIT_REST_NONE;
	if (add_step(p))
		p->rest = SL_FIT_REST_STEP;
	else if (add_optimizer(p))
		p->rest = SL_FIT_REST_STATE;
	if (p->rest != SL_FIT_REST_STATE)
		p->end = p->whole.ops.count;
	p->whole.ids = (uint32_t)p->lives.count;
	sl_fit_program_number(p);
}
