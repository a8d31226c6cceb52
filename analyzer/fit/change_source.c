/* SPDX-License-Identifier: MIT */
/* What is there twice or too long: gradients, a checkpoint's tensors, the state of weights that were replaced. */
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/fit/change.h"
#include "analyzer/fit/rest_of_step.h"

#define STATES_MAX 4096

static bool is_there(const struct sl_fit_program *p, uint32_t life)
{
	size_t at = sl_fit_program_moment(p);

	return p->lives.item[life].birth <= at && p->lives.item[life].death > at && !p->lives.item[life].before;
}

/* Gradients of the step before, where the source zeroes them only behind the forward pass: they end as the step begins. */
bool sl_fit_change_zero_early(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	const struct sl_fit_stack *failed;
	struct sl_idmap sizes;
	uint64_t bytes = 0;
	size_t begin;

	if (!p->recorded->zeroes_late || p->failed == SL_FIT_GAP || p->steps.count < 2)
		return false;
	failed = sl_fit_program_stack(p, p->whole.ops.item[p->failed].python);
	begin = p->steps.item[p->steps.count - 1];
	sizes = sl_fit_rest_parameters(p);
	for (uint32_t i = 0; i < p->lives.count && !failed->backward && !failed->optimizer; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];

		if (life->birth >= begin || !is_there(p, i) || !sl_fit_program_maker(p, i)->backward ||
		    !sl_idmap_get(&sizes, life->bytes, 0))
			continue;
		e->dies[i] = begin;
		bytes += life->bytes;
	}
	sl_idmap_free(&sizes);
	sl_fit_change_name(change, sl_fit_program_caller(p, p->whole.ops.item[p->failed].python));
	return bytes && sl_fit_change_matters(p, bytes);
}

/* torch.load or safetensors made it, on the card. */
static bool is_loaded(const struct sl_fit_stack *stack)
{
	for (unsigned i = 0; i < stack->count; i++)
		if (stack->places[i].file && (strstr(stack->places[i].file, "/torch/serialization.py") ||
					      strstr(stack->places[i].file, "/safetensors/torch.py")))
			return true;
	return false;
}

/* Tensors of a checkpoint beside weights of their size, to which they were or will be copied: they stay on the host. */
bool sl_fit_change_load_on_host(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	struct sl_idmap weights = {0};
	uint64_t bytes = 0;
	uint32_t left;

	for (uint32_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_stack *maker = sl_fit_program_maker(p, i);

		if (is_there(p, i) && !maker->backward && !maker->optimizer && !maker->module && !is_loaded(maker))
			sl_idmap_set(&weights, p->lives.item[i].bytes, sl_idmap_get(&weights, p->lives.item[i].bytes, 0) + 1);
	}
	for (uint32_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];

		if (!is_there(p, i) || !is_loaded(sl_fit_program_maker(p, i)) || !(left = sl_idmap_get(&weights, life->bytes, 0)))
			continue;
		sl_idmap_set(&weights, life->bytes, left - 1);
		e->gone[i] = true;
		bytes += life->bytes;
		sl_fit_change_name(change, sl_fit_program_own(sl_fit_program_maker(p, i)));
	}
	sl_idmap_free(&weights);
	return bytes && sl_fit_change_matters(p, bytes);
}

/* A block of that size was made between the two, and stays: a weight in place of an old one. */
static bool is_replaced(const struct sl_fit_program *p, uint32_t old, uint32_t new)
{
	for (uint32_t i = old + 1; i < new; i++) {
		const struct sl_fit_stack *maker = sl_fit_program_maker(p, i);

		if (p->lives.item[i].bytes == p->lives.item[old].bytes && is_there(p, i) && !maker->backward && !maker->optimizer &&
		    !maker->module)
			return true;
	}
	return false;
}

/* State that the optimizer made again, for weights in place of those it still holds: the old state ends where the new is made. */
bool sl_fit_change_new_optimizer(struct sl_fit_edits *e, struct sl_change *change, const struct sl_fit_program *p)
{
	SL_VECTOR(uint32_t) states = {0};
	uint64_t bytes = 0, last_bytes = 0;
	bool replaced = false;

	for (uint32_t i = 0; i < p->lives.count && states.count < STATES_MAX; i++)
		if (sl_fit_program_maker(p, i)->state && is_there(p, i))
			*SL_PUSH(&states) = i;
	for (size_t i = 0; i < states.count; i++) {
		const struct sl_fit_life *old = &p->lives.item[states.item[i]], *new = NULL;

		for (size_t k = i + 1; k < states.count && !new; k++) {
			new = &p->lives.item[states.item[k]];
			if (new->step == old->step || new->python != old->python || new->bytes != old->bytes)
				new = NULL;
			else if (old->bytes != last_bytes)
				replaced = is_replaced(p, states.item[i], states.item[k]);
		}
		last_bytes = old->bytes;
		if (!new || !replaced)
			continue;
		e->dies[states.item[i]] = new->birth;
		bytes += old->bytes;
		sl_fit_change_name(change, sl_fit_program_own(sl_fit_program_maker(p, states.item[i])));
	}
	SL_DROP(&states);
	return bytes && sl_fit_change_matters(p, bytes);
}
