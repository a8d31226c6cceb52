/* SPDX-License-Identifier: MIT */
/* Changes of what a program keeps from step to step. */
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/fit/change.h"
#include "analyzer/fit/survivors.h"

#define RISES	    4 /* steps in a row */
#define RESULTS_MAX 4 /* of modules in a step */
#define GRAPH_MIN   3 /* blocks of modules that one statement holds */

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

/* True: this line also runs under another line of the program, where nothing is kept of each step. */
static bool is_shared(const struct sl_fit_program *p, const struct sl_fit_keeps *keeps, const struct sl_fit_place *place)
{
	for (size_t i = 1; i < p->stacks.count; i++) {
		const struct sl_fit_stack *stack = &p->stacks.item[i];

		for (unsigned k = 1; !keeps->stacks[i].grows && k < stack->count; k++)
			if (sl_fit_place_is(&stack->places[k], place) && !sl_fit_place_is(&stack->places[k - 1], place - 1))
				return true;
	}
	return false;
}

/* The line that keeps a block: one that other lines call, which keep nothing, is not it. */
static const struct sl_fit_place *keeper(const struct sl_fit_program *p, const struct sl_fit_keeps *keeps, uint32_t life)
{
	const struct sl_fit_place *at = sl_fit_program_caller(p, p->lives.item[life].python),
				  *statement = sl_fit_program_statement(p, p->lives.item[life].python);

	for (const struct sl_fit_place *outer = at; statement && outer > statement && is_shared(p, keeps, outer); at = outer)
		for (outer--; outer > statement && !outer->own;)
			outer--;
	return at;
}

/* For each step, true: its backward pass freed what modules had made.  With retain_graph it frees nothing. */
static bool *find_ended(const struct sl_fit_program *p)
{
	bool *ended = sl_memory_must(calloc(p->steps.count + 2, sizeof(*ended)));
	size_t *begins = sl_memory_must(calloc(p->steps.count + 2, sizeof(*begins)));

	for (uint32_t i = (uint32_t)p->lives.count; i--;) {
		const struct sl_fit_life *life = &p->lives.item[i];
		const struct sl_fit_stack *maker = sl_fit_program_maker(p, i);

		if (life->step > p->steps.count)
			continue;
		if (maker->backward)
			begins[life->step] = life->birth;
		else if (maker->module && begins[life->step] && life->death > begins[life->step])
			ended[life->step] |= life->step == p->steps.count || life->death < p->steps.item[life->step];
	}
	free(begins);
	return ended;
}

/*
 * True: a block that modules made may be part of autograd's graph, which its copy on the host would hold.  No backward pass
 * ended the graph, and something older of the same step stays, or nothing went that a graph would have kept.
 */
static bool may_be_graph(const struct sl_fit_program *p, const struct sl_fit_keeps *keeps, const signed char *who)
{
	unsigned step = 0, made = 0, survivors = 0;
	bool gone = false, found = false, *ended = find_ended(p);

	for (uint32_t i = 0; i < p->lives.count && p->lives.item[i].step <= keeps->to && !found; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];
		const struct sl_fit_stack *maker = sl_fit_program_maker(p, i);

		if (life->step != step) {
			step = life->step;
			made = survivors = 0;
			gone = false;
		}
		made += maker->module;
		found = who[i] < 0 && made && !maker->guarded && (keeps->passes[step] <= life->birth || !ended[step]) &&
			(survivors || (made < GRAPH_MIN && !gone));
		survivors += who[i] != 0;
		gone |= !maker->module && life->death != SL_FIT_GAP;
	}
	free(ended);
	return found;
}

/*
 * The op at which the program could drop the block: where its statement has ended, or, in the loop's own function, where the same
 * statement has ended in the next step, since a variable there may hold it until then.  And no backward pass needs it.
 */
static size_t fit_keeps_until(const struct sl_fit_keeps *k, const struct sl_fit_program *p, uint32_t life)
{
	const struct sl_fit_life *at = &p->lives.item[life];
	const struct sl_fit_place *statement = sl_fit_program_statement(p, at->python);
	size_t until = k->leaves[life], pass = at->step <= p->steps.count ? k->passes[at->step] : 0;

	if (statement && statement == sl_fit_program_caller(p, at->python))
		until = sl_idmap_get(&k->ends, (uint64_t)statement->line << 32 | (at->step + 1), (uint32_t)p->whole.ops.count);
	return pass > until ? pass : until;
}

/* Blocks that each step keeps; graph: by autograd's graph.  modules: only those that modules made, and their inputs. */
static bool end_kept(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p, bool graph, bool modules)
{
	const struct sl_fit_place *place = NULL;
	size_t leaves = p->whole.ops.count, until;
	uint64_t bytes = 0, largest = 0;
	unsigned step = 0, made = 0, results = 0;
	bool result;
	signed char *who;

	if (p->steps.count < 2)
		return false;
	who = who_keeps(p, e->keeps);
	for (uint32_t i = (uint32_t)p->lives.count; i--;) {
		const struct sl_fit_life *life = &p->lives.item[i];
		bool of_module = who[i] && sl_fit_program_maker(p, i)->module;

		if (!who[i] || (who[i] > 0) != graph)
			continue;
		if (!graph || of_module || step != life->step)
			leaves = e->keeps->leaves[i];
		result = graph && (step != life->step || (!of_module && made != life->step)); /* or a loss: the program keeps it */
		step = life->step;
		made = result ? made : life->step;
		if (modules && result)
			continue;
		e->results += result ? life->bytes : 0;
		if (modules && life->step <= p->steps.count && e->keeps->passes[life->step] > life->birth)
			continue; /* a backward pass may need it */
		until = !modules ? fit_keeps_until(e->keeps, p, i) : 0;
		e->dies[i] = until > leaves ? until : leaves;
		bytes += life->bytes;
		results += life->step == e->keeps->to && of_module;
		if (who[i] != 2 && (!place || (graph ? of_module && modules : life->bytes > largest))) {
			place = keeper(p, e->keeps, i);
			largest = life->bytes;
		}
	}
	if (!graph && may_be_graph(p, e->keeps, who)) {
		change->given = "the results are detached";
		e->passes_max = SL_PASSES_STEP;
	}
	free(who);
	e->loose = graph;
	sl_fit_change_name(change, place);
	if (!graph && results > RESULTS_MAX)
		e->passes_max = SL_PASSES_STEP; /* modules may need them again, as a cache of keys and values */
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

/* What modules made at a line of the loop, before the backward pass of a step. */
struct forward {
	unsigned stays, goes; /* live on behind that pass; end in it */
};

/*
 * A model that no backward pass goes through, in a step that has one: as a teacher's, whose graph its answer keeps.  Of the last
 * complete step: what a backward pass goes through ends in it.
 */
bool sl_fit_change_no_grad_beside(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	unsigned last = p->steps.count > 1 ? (unsigned)p->steps.count - 1 : 0, step = 0;
	size_t end = last ? e->keeps->passes[last] : 0, begin = end;
	SL_VECTOR(struct forward) lines = {0};
	struct sl_idmap numbers = {0};
	uint64_t bytes = 0;
	uint32_t answer = 0;
	bool others = false;

	for (uint32_t i = (uint32_t)p->lives.count; end && i--;)
		if (p->lives.item[i].step == last && sl_fit_program_maker(p, i)->backward)
			begin = p->lives.item[i].birth;
	for (uint32_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];
		const struct sl_fit_place *at = sl_fit_program_statement(p, life->python);
		uint32_t number;

		if (life->step != last || life->birth >= begin || !at || !sl_fit_program_maker(p, i)->module ||
		    sl_fit_program_maker(p, i)->guarded || life->death < begin)
			continue;
		number = sl_idmap_claim(&numbers, at->line, (uint32_t)lines.count);
		if (number == lines.count)
			*SL_PUSH(&lines) = (struct forward){0};
		lines.item[number].stays += life->death >= end;
		lines.item[number].goes += life->death < end;
		others |= life->death < end;
	}
	for (uint32_t i = (uint32_t)p->lives.count; others && i--;) {
		const struct sl_fit_life *life = &p->lives.item[i];
		const struct sl_fit_place *at = sl_fit_program_statement(p, life->python);
		uint32_t number = at ? sl_idmap_get(&numbers, at->line, UINT32_MAX) : UINT32_MAX;

		if (number == UINT32_MAX || lines.item[number].goes || lines.item[number].stays < GRAPH_MIN || !life->step ||
		    !sl_fit_program_maker(p, i)->module || life->death <= e->keeps->leaves[i])
			continue;
		if (life->step != step || at->line != answer) { /* its answer stays */
			step = life->step;
			answer = at->line;
			continue;
		}
		e->dies[i] = e->keeps->leaves[i];
		bytes += life->step == p->steps.count ? life->bytes : 0;
		sl_fit_change_name(change, sl_fit_program_caller(p, life->python));
	}
	SL_DROP(&lines);
	sl_idmap_free(&numbers);
	e->loose = true;
	return bytes && sl_fit_change_matters(p, bytes);
}

/*
 * Tensors that each step joins to a larger one, outside of modules: for each stack how many steps in a row its first request was
 * larger.  All are 0 where such a tensor of modules grows too: they read it, as a cache of keys and values.
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
		if (step[i] + 1 < p->steps.count)
			rises[i] = 0;
	for (size_t i = 0; i < p->stacks.count; i++)
		if (p->stacks.item[i].module && rises[i] >= RISES)
			memset(rises, 0, p->stacks.count * sizeof(*rises));
	free(size);
	free(step);
	return rises;
}

/* True: the block that the next step makes there lives on in the step behind it, held by a variable. */
static bool is_held_on(const struct sl_fit_program *p, uint32_t life)
{
	const struct sl_fit_life *at = &p->lives.item[life], *next = at + 1, *end = p->lives.item + p->lives.count;

	while (next < end && (next->python != at->python || next->nth != at->nth || next->step != at->step + 1))
		next++;
	return next < end && next->step < p->steps.count && next->death > p->steps.item[next->step];
}

/* Results of each step that are joined to one tensor: they are on the host, and so is the first, which the first join ends. */
bool sl_fit_change_offload_joined(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	unsigned *rises = count_rises(p);
	uint32_t input = p->steps.count ? p->whole.ops.item[p->steps.item[0]].python : 0;
	bool grows = rises[sl_idmap_get(&p->stack_ids, input, 0)] >= RISES; /* so do the inputs: these are no joined results */
	uint64_t largest = 0;
	size_t after = 0, until;

	for (uint32_t i = 0; i < p->lives.count && !grows; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];

		if (!life->step || rises[sl_idmap_get(&p->stack_ids, life->python, 0)] < RISES)
			continue;
		for (after = after ? after : life->birth;
		     after < p->whole.ops.count && p->whole.ops.item[after].verb != SL_FIT_FREE;)
			after++;
		e->gone[i] = true;
		largest = life->bytes > largest ? life->bytes : largest;
		sl_fit_change_name(change, sl_fit_program_caller(p, life->python));
	}
	for (uint32_t i = 0; largest && i < p->lives.count; i++) {
		if (p->lives.item[i].death != after)
			continue;
		until = is_held_on(p, i) ? fit_keeps_until(e->keeps, p, i) : e->keeps->leaves[i];
		if (until < after)
			e->dies[i] = until;
	}
	free(rises);
	return largest && sl_fit_change_matters(p, largest);
}

bool sl_fit_change_offload_kept(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	return end_kept(e, change, p, false, false);
}
