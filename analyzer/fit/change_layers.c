/* SPDX-License-Identifier: MIT */
/* Activations of layers that are recomputed. */
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/fit/change.h"

#define DEPTH_MAX 8 /* of modules in modules */

/* The line from which the module at this depth of calls calls a module; 0: the stack has none. */
static unsigned layer_line(const struct sl_fit_stack *stack, unsigned depth)
{
	unsigned line = 0, calls = 0;

	for (unsigned i = 0; i < stack->count && calls <= depth; i++) {
		const char *function = stack->places[i].torch && stack->places[i].function ? stack->places[i].function : "";
		bool wrapper = strstr(function, "_wrapped_call_impl");

		if (strstr(function, "_call_impl") && !wrapper)
			calls++;
		else if (calls == depth && !wrapper)
			line = i + 1;
	}
	return calls > depth ? line : 0;
}

/* A larger block in place of one of its own line's, as a cache of keys and values that grows by torch.cat. */
static bool replaces(const struct sl_fit_program *p, const struct sl_fit_life *life)
{
	const struct sl_fit_op *next = &p->whole.ops.item[life->birth + 1];

	return life->birth + 1 < p->whole.ops.count && next->verb == SL_FIT_FREE &&
	       p->lives.item[next->id].python == life->python && p->lives.item[next->id].bytes < life->bytes;
}

/* An activation of steps from `since` on: a module made it, and a backward pass is to come. */
static bool is_activation(const struct sl_fit_program *p, uint32_t i, size_t until, unsigned since)
{
	const struct sl_fit_life *life = &p->lives.item[i];
	const struct sl_fit_stack *stack = sl_fit_program_maker(p, i);

	return stack->module && !stack->backward && !stack->loads && !stack->copies && !stack->optimizer && !life->before &&
	       life->step >= since && life->birth <= until && life->death > until && !replaces(p, life);
}

/*
 * True: a pass was repeated without a backward pass, so that none is to come: each layer had come, and the program's own line made
 * the input again.  A layer that is called again proves nothing: it may be one of several that are alike.
 */
static bool is_evaluation(const struct sl_fit_program *p)
{
	unsigned *counts = sl_memory_must(calloc(p->stacks.count + 1, sizeof(*counts)));
	bool *inputs = sl_memory_must(calloc(p->stacks.count + 1, sizeof(*inputs))), called = false, again = false;

	for (size_t i = 0; i < p->lives.count && p->lives.item[i].birth <= p->failed; i++) {
		const struct sl_fit_stack *stack = sl_fit_program_maker(p, (uint32_t)i);
		size_t at = (size_t)(stack - p->stacks.item);

		if (stack->backward || stack->optimizer) {
			again = false;
			break;
		}
		if (stack->loads || stack->copies || !at)
			continue;
		if (stack->module && !counts[at]) /* all before belongs to the first pass */
			again = false;
		else
			again |= inputs[at] && counts[at];
		called |= stack->module;
		inputs[at] |= !called && sl_fit_program_own(stack);
		counts[at]++;
	}
	free(counts);
	free(inputs);
	return again;
}

static bool is_backward(const struct sl_fit_program *p, size_t op)
{
	return p->whole.ops.item[op].verb == SL_FIT_ALLOC && sl_fit_program_stack(p, p->whole.ops.item[op].python)->backward;
}

/* The last request of the forward pass; the one that failed, where no backward pass is known. */
static size_t forward_end(const struct sl_fit_program *p, const struct sl_fit_stack *failed)
{
	size_t at = p->failed;

	if (failed->backward) {
		while (at && (p->whole.ops.item[at].verb != SL_FIT_ALLOC || is_backward(p, at)))
			at--;
		return at;
	}
	for (size_t i = p->failed + 1; p->rest == SL_FIT_REST_STEP && i < p->end; i++)
		if (is_backward(p, i))
			return i - 1;
	return at;
}

/* A function of PyTorch outside of modules, as of a loss. */
static bool is_loss(const struct sl_fit_stack *stack)
{
	for (unsigned i = 0; i < stack->count; i++)
		if (stack->places[i].file && strstr(stack->places[i].file, "/torch/nn/functional.py"))
			return true;
	return false;
}

/* Layers whose activations are dropped. */
struct layers {
	const struct sl_fit_place *largest; /* the call that has most; NULL: none */
	uint32_t python;		    /* a stack of it */
	uint64_t bytes, dropped;	    /* its own; of all */
	unsigned calls;
	size_t start; /* the first request; SL_FIT_GAP: none */
};

/*
 * Each call of a layer in a forward pass, from the step `since` until this op, keeps its last block only.  Layers are calls from
 * one line of a module at this depth, told apart by the first stack below it.  from: no block before that one is of this pass.
 */
static void drop(struct layers *layers, struct sl_fit_edits *e, const struct sl_fit_program *p, unsigned depth, unsigned since,
		 uint32_t from, size_t until)
{
	const struct sl_fit_place *place = NULL, *current;
	uint32_t first = 0, begin = 0, last = UINT32_MAX;
	uint64_t now = 0;
	unsigned line;

	for (uint32_t i = from; i <= p->lives.count; i++) {
		const struct sl_fit_life *life = i < p->lives.count && p->lives.item[i].birth <= until ? &p->lives.item[i] : NULL;
		const struct sl_fit_stack *stack = life ? sl_fit_program_maker(p, i) : NULL;

		if (life && (life->step < since || !(line = layer_line(stack, depth)) || stack->backward))
			continue;
		current = life ? &stack->places[line - 1] : NULL;
		if (!life || !place || current->line != place->line ||
		    strcmp(current->file ? current->file : "", place->file ? place->file : "") != 0 || life->python == first) {
			for (uint32_t k = begin; life && place && last != UINT32_MAX && k < i; k++)
				if (k != last && is_activation(p, k, until, since) &&
				    layer_line(sl_fit_program_maker(p, k), depth)) {
					e->dies[k] = life->birth;
					layers->dropped += p->lives.item[k].bytes;
				}
			if (place && (now > layers->bytes || !layers->largest)) {
				layers->largest = place;
				layers->python = first;
				layers->bytes = now;
			}
			if (!life)
				return;
			layers->calls++;
			now = 0;
			first = life->python;
			begin = i;
			place = current;
			last = UINT32_MAX;
		}
		if (is_activation(p, i, until, since)) {
			layers->start = layers->start == SL_FIT_GAP ? life->birth : layers->start;
			now += life->bytes;
			last = i;
		}
	}
}

/* The forward pass that failed.  The largest of its layers is there once more in the backward pass. */
static bool recompute_failed(struct layers *layers, struct sl_fit_edits *e, struct sl_change *change,
			     const struct sl_fit_program *p, unsigned depth)
{
	const struct sl_fit_stack *failed = sl_fit_program_stack(p, p->whole.ops.item[p->failed].python);
	size_t until = forward_end(p, failed);
	unsigned since = sl_fit_program_failed(p)->step;

	while (failed->backward && since > 1 && !e->keeps->passes[since - 1])
		since--; /* losses of several steps go backward at once */
	if (failed->optimizer || failed->loads || failed->guarded || (until == p->failed && !failed->module && !is_loss(failed)))
		return false;
	drop(layers, e, p, depth, since, 0, until);
	if (until != p->failed) {
		e->extra = layers->bytes;
		e->extra_from = until + 1;
		if (until < p->recorded->times.count && layers->start < until &&
		    sl_header_capabilities(&p->recorded->trace->header).has_times)
			change->seconds = (double)(p->recorded->times.item[until] - p->recorded->times.item[layers->start]) / 1e9;
	}
	return true;
}

/* The forward pass of each step that a backward pass ends. */
static bool recompute_all(struct layers *layers, struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p,
			  unsigned depth)
{
	unsigned step = 0;
	size_t until = 0;

	for (size_t i = 0; i < p->whole.ops.count; i++) {
		while (step < p->steps.count && p->steps.item[step] <= i)
			until = p->steps.item[step++]; /* the next pass begins */
		if (!step || p->whole.ops.item[i].verb != SL_FIT_ALLOC || until == SL_FIT_GAP)
			continue;
		if (!is_backward(p, i)) {
			until = i;
			continue;
		}
		drop(layers, e, p, depth, step, p->whole.ops.item[p->steps.item[step - 1]].id, until);
		e->extra_from = e->extra_from == SL_FIT_GAP ? until + 1 : e->extra_from;
		until = SL_FIT_GAP;
	}
	e->extra = layers->bytes; /* until the end, though later forward passes do without */
	change->about = true;
	return layers->calls > 0;
}

/* no_grad keeps less than recomputed layers do, so it saves at least as many bytes as they do. */
static bool recompute(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p, unsigned depth)
{
	struct layers layers = {.start = SL_FIT_GAP};

	if (!(p->failed == SL_FIT_GAP ? recompute_all : recompute_failed)(&layers, e, change, p, depth))
		return false;
	sl_fit_change_name(change,
			   layers.largest && !layers.largest->own ? sl_fit_program_caller(p, layers.python) : layers.largest);
	if (p->failed != SL_FIT_GAP && is_evaluation(p)) {
		change->kind = "no_grad";
		sl_fit_change_name(change, sl_fit_program_caller(p, p->whole.ops.item[p->failed].python));
	}
	return layers.calls > 2 && layers.dropped && sl_fit_change_matters(p, layers.dropped);
}

/* The outermost module that calls several. */
bool sl_fit_change_checkpointing(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	struct sl_change empty;

	if (p->rest == SL_FIT_REST_NONE) /* how much of them one line can recompute shows only in a whole pass */
		change->given = "all layers are computed again";
	empty = *change;
	for (unsigned depth = 1; depth <= DEPTH_MAX; depth++) {
		if (recompute(e, change, p, depth))
			return true;
		*change = empty;
		for (size_t i = 0; i < p->lives.count; i++)
			e->dies[i] = SL_FIT_GAP;
	}
	return false;
}
