/* SPDX-License-Identifier: MIT */
#include "analyzer/fit/survivors.h"

#include <string.h>

#include "analyzer/base/memory.h"

#define STEPS_MIN  3 /* that keep something: fewer may be the first ones, or what the next step frees */
#define RARE	   4 /* one of so many steps keeps something */
#define GRAPH_MIN  3 /* blocks of modules in a step */
#define GRAPH_PART 2 /* one of so many is kept */

static size_t number(const struct sl_fit_program *p, uint32_t python)
{
	return sl_idmap_get(&p->stack_ids, python, 0);
}

/* Steps whose blocks are old enough: not the one that failed, nor the one before, whose last blocks the next step frees. */
static unsigned old_steps(const struct sl_fit_program *p)
{
	return p->steps.count > 2 ? (unsigned)p->steps.count - 2 : 0;
}

static void find_kept(struct sl_fit_keeps *k, const struct sl_fit_program *p)
{
	unsigned *last = sl_memory_must(calloc(p->stacks.count + 1, sizeof(*last))), steps = old_steps(p);

	for (size_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];
		size_t at = number(p, life->python);

		if (!life->step || life->step > steps || life->death != SL_FIT_GAP || last[at] == life->step)
			continue;
		last[at] = life->step;
		k->stacks[at].steps++;
	}
	for (size_t i = 0; i < p->stacks.count; i++) {
		k->stacks[i].grows =
			i && k->stacks[i].steps >= STEPS_MIN && RARE * k->stacks[i].steps >= steps && last[i] + RARE > steps;
		k->stacks[i].grows &= !p->stacks.item[i].loads && !p->stacks.item[i].copies && !p->stacks.item[i].optimizer;
		k->any |= k->stacks[i].grows;
	}
	k->to = steps;
	k->from = steps > 3 ? steps - 2 : 1;
	free(last);
}

/* Where the loop goes on to its next statement. */
static void find_ends(struct sl_fit_keeps *k, const struct sl_fit_program *p)
{
	uint32_t first = 0, line = 0;
	unsigned step = 0;

	for (uint32_t i = 0; i <= p->lives.count; i++) {
		const struct sl_fit_life *life = i < p->lives.count ? &p->lives.item[i] : NULL;
		const struct sl_fit_place *at = life ? sl_fit_program_statement(p, life->python) : NULL;

		if (life && (!at || (at->line == line && life->step == step)))
			continue;
		for (uint32_t end = i; first < end; first++)
			k->leaves[first] = life ? life->birth : p->whole.ops.count;
		if (life && line)
			sl_idmap_set(&k->ends, (uint64_t)line << 32 | step, (uint32_t)life->birth);
		line = at ? at->line : 0;
		step = life ? life->step : 0;
	}
}

bool sl_fit_keeps_it(const struct sl_fit_keeps *k, const struct sl_fit_program *p, uint32_t life)
{
	const struct sl_fit_life *at = &p->lives.item[life];
	/* a queue that lets go of old ones keeps this one meanwhile */
	bool stays = at->death == SL_FIT_GAP || (at->step + 1 < p->steps.count && at->death > p->steps.item[at->step + 1]);

	return stays && at->step && k->stacks[number(p, at->python)].grows;
}

/* A layer of PyTorch's made the block: several such are no results.  A cache of keys and values is made by a model's own code. */
static bool is_layers(const struct sl_fit_stack *stack)
{
	return stack->count && stack->places[stack->count - 1].torch;
}

/* What was made in the last complete step, by the loop's lines. */
static void find_lines(struct sl_fit_keeps *k, const struct sl_fit_program *p)
{
	for (uint32_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_stack *maker = sl_fit_program_maker(p, i);
		const struct sl_fit_place *at = sl_fit_program_statement(p, p->lives.item[i].python);
		struct sl_fit_line *line;
		uint32_t number_of;

		if (p->lives.item[i].step != k->to || !at || maker->backward || maker->optimizer)
			continue;
		number_of = sl_idmap_claim(&k->line_numbers, at->line, k->lines.count);
		if (number_of == k->lines.count)
			*SL_PUSH(&k->lines) = (struct sl_fit_line){0};
		line = &k->lines.item[number_of];
		if (!maker->module) {
			line->after += line->survived && sl_fit_keeps_it(k, p, i);
			continue;
		}
		line->made++;
		line->survived += sl_fit_keeps_it(k, p, i);
		line->inner += sl_fit_keeps_it(k, p, i) && is_layers(maker);
	}
}

static void find_passes(struct sl_fit_keeps *k, const struct sl_fit_program *p)
{
	for (uint32_t i = 0; i < p->lives.count; i++)
		if (p->lives.item[i].step <= p->steps.count && sl_fit_program_maker(p, i)->backward)
			k->passes[p->lives.item[i].step] = p->lives.item[i].birth + 1;
}

void sl_fit_keeps_find(struct sl_fit_keeps *k, const struct sl_fit_program *p)
{
	*k = (struct sl_fit_keeps){.stacks = sl_memory_must(calloc(p->stacks.count + 1, sizeof(*k->stacks))),
				   .leaves = sl_memory_must(calloc(p->lives.count + 1, sizeof(*k->leaves))),
				   .passes = sl_memory_must(calloc(p->steps.count + 2, sizeof(*k->passes)))};
	find_kept(k, p);
	find_ends(k, p);
	find_lines(k, p);
	find_passes(k, p);
}

void sl_fit_keeps_free(struct sl_fit_keeps *k)
{
	free(k->stacks);
	free(k->leaves);
	free(k->passes);
	sl_idmap_free(&k->ends);
	SL_DROP(&k->lines);
	sl_idmap_free(&k->line_numbers);
}

bool sl_fit_keeps_graph(const struct sl_fit_keeps *k, const struct sl_fit_program *p, uint32_t life)
{
	const struct sl_fit_place *statement = sl_fit_program_statement(p, p->lives.item[life].python);
	uint32_t at = statement ? sl_idmap_get(&k->line_numbers, statement->line, UINT32_MAX) : UINT32_MAX;
	const struct sl_fit_line *line = at < k->lines.count ? &k->lines.item[at] : NULL;

	return line && !sl_fit_program_maker(p, life)->guarded && line->made >= GRAPH_MIN &&
	       (GRAPH_PART * line->survived >= line->made || line->inner >= GRAPH_MIN ||
		(line->survived >= GRAPH_MIN && line->after));
}
