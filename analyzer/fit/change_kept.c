/* SPDX-License-Identifier: MIT */
/* Changes of what a program keeps from step to step. */
#include "analyzer/base/memory.h"
#include "analyzer/fit/change.h"

#define RISES	    4 /* steps in a row */
#define RESULTS_MAX 4 /* of modules in a step */

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
	size_t leaves = SL_FIT_GAP, until;
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
		if (modules && life->step <= p->steps.count && e->keeps->passes[life->step] > life->birth)
			continue; /* a backward pass may need it */
		until = graph && !modules ? sl_fit_keeps_until(e->keeps, p, i) : 0;
		e->dies[i] = until > leaves ? until : leaves;
		bytes += life->bytes;
		results += life->step == e->keeps->to && of_module;
		if (who[i] != 2 && (!place || (of_module && modules)))
			place = sl_fit_program_caller(p, life->python);
	}
	free(who);
	sl_fit_change_name(change, place);
	if (!graph && results > RESULTS_MAX)
		e->most = SL_PASSES_STEP; /* modules may need them again, as a cache of keys and values */
	return bytes && sl_fit_change_matters(p, bytes);
}

bool sl_fit_change_free_leak(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	return end_kept(e, change, p, true, false);
}

bool sl_fit_change_no_grad(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
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
bool sl_fit_change_offload_joined(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
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
		sl_fit_change_name(change, sl_fit_program_caller(p, life->python));
	}
	free(rises);
	return largest && sl_fit_change_matters(p, largest);
}

bool sl_fit_change_offload_kept(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	return end_kept(e, change, p, false, false);
}
