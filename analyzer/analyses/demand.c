/* SPDX-License-Identifier: MIT */
#include "analyzer/analyses/demand.h"

#include <string.h>
#include <strings.h>

#include "analyzer/base/amounts.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/fit/survivors.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/place.h"
#include "analyzer/report/roles.h"
#include "analyzer/source/source.h"

/* Values that an optimizer of PyTorch keeps for each parameter, as large as the parameter; its file or function has its name. */
static const struct {
	const char *name;
	unsigned values;
} optimizers[] = {
	{"Adam", 2}, {"LAMB", 2}, {"Adadelta", 2}, {"Adagrad", 1}, {"RMSprop", 1}, {"SGD", 1}, {"Lion", 1},
};

/* A block that was held at the error and came by the same Python lines as the request; NULL: there is none. */
static const struct sl_site *alike(const struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_site *site;

	for (const struct sl_owner *owner = NULL; (owner = sl_owners_at_error(process, oom, owner, &site));)
		if (oom->stack.python ? site->stack.python == oom->stack.python : sl_stack_same(site->stack, oom->stack))
			break;
	return site;
}

/* What was held for each purpose.  The owners of an error are its largest; where they lack some, the peak tells, if it is then. */
static void take_roles(struct sl_process *process, const struct sl_oom *oom, uint64_t bytes[SL_ROLE_COUNT])
{
	const struct sl_device_state *state = process->model->devices[oom->device + 1];

	if (state->known_peak == oom->live_bytes && sl_roles_at_peak(process, state, bytes))
		return;
	sl_roles_at_error(process, oom, bytes);
}

/* The values that the optimizer keeps, by its name in the stack; 0: the stack does not name one. */
static unsigned values_of(struct sl_process *process, struct sl_stack stack, const char **name)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_stack(process, frames, stack);

	for (unsigned f = 0; f < count; f++)
		if (frames[f].python && frames[f].function && strstr(frames[f].function, "_multi_tensor_"))
			return 0; /* PyTorch has made all state before it updates */
	for (unsigned f = 0; f < count; f++)
		for (size_t i = 0; i < SL_COUNT(optimizers); i++)
			if (frames[f].python && ((frames[f].file && strstr(frames[f].file, "/optim") &&
						  strcasestr(strrchr(frames[f].file, '/'), optimizers[i].name)) ||
						 (frames[f].function && strcasestr(frames[f].function, optimizers[i].name)))) {
				*name = optimizers[i].name;
				return optimizers[i].values;
			}
	return 0;
}

/* The optimizer makes its state when it steps first: parameters tell how much that is. */
static bool tell_optimizer(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_site *site = alike(process, oom);
	uint64_t bytes[SL_ROLE_COUNT], all;
	const char *name = NULL;
	unsigned values;

	if (!site || sl_roles_of(process, site) != SL_ROLE_OPTIMIZER || !(values = values_of(process, site->stack, &name)))
		return false;
	take_roles(process, oom, bytes);
	all = values * bytes[SL_ROLE_PARAMETERS];
	if (!bytes[SL_ROLE_GRADIENTS] || (double)bytes[SL_ROLE_OPTIMIZER] >= (1 - SL_ALIKE) * (double)all ||
	    all - bytes[SL_ROLE_OPTIMIZER] < sl_oom_causes_missing(oom))
		return false;
	*story = (struct sl_story){.kind = SL_STORY_OPTIMIZER,
				   .stack = oom->stack,
				   .bytes = all,
				   .before = bytes[SL_ROLE_OPTIMIZER],
				   .count = values,
				   .words = name};
	return true;
}

/* The blocks of that place got larger by the same each time, and the request is the next of them. */
static bool is_series(const struct sl_track *track, uint64_t asked)
{
	double n = (double)track->births, step = (double)asked - (double)track->most_bytes, sum;

	sum = n * (double)track->most_bytes - step * n * (n - 1) / 2;
	return track->births >= SL_SEVERAL && step > 0 && (n - 1) * step < (double)track->most_bytes * (1 + SL_LITTLE) &&
	       (double)track->born_bytes >= (1 - SL_LITTLE) * sum && (double)track->born_bytes <= (1 + SL_LITTLE) * sum;
}

/* True: the innermost Python frame, which is not the program's own, is Trainer's function that joins what batches gave. */
static bool is_trainers(struct sl_process *process, struct sl_stack stack)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_stack(process, frames, stack), i = 0;

	while (i < count && !frames[i].python)
		i++;
	return i < count && !frames[i].own && frames[i].function && strstr(frames[i].function, "torch_pad_and_concatenate");
}

/* torch.cat of all so far: the old tensor and the new one are held together. */
static bool tell_series(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_track *found = NULL;

	for (size_t i = 0; i < process->model->tracks.count && oom->stack.python; i++) {
		const struct sl_track *track = &process->model->tracks.item[i];

		if (track->kind == SL_KIND_block && track->device == oom->device && track->stack.python == oom->stack.python &&
		    track->first_ns < oom->time_ns && is_series(track, oom->asked_bytes))
			found = track;
	}
	if (!found || (double)(oom->asked_bytes + found->most_bytes) < SL_HALF * (double)oom->live_bytes)
		return false;
	*story = (struct sl_story){.kind = SL_STORY_SERIES,
				   .stack = oom->stack,
				   .bytes = oom->asked_bytes,
				   .before = found->most_bytes,
				   .count = oom->asked_bytes - found->most_bytes,
				   .words = is_trainers(process, found->stack) ? "Trainer" : NULL};
	return true;
}

/* The program up to the request that failed: its steps, and what each of them keeps. */
struct moment {
	struct sl_fit_program program;
	struct sl_fit_keeps keeps;
	uint64_t live_bytes; /* of the process */
};

/* The recording has what came until the error, as long as the moment is used. */
static bool read_moment(struct moment *moment, struct sl_fit_recording *until, struct sl_fit_process *fit, const struct sl_oom *oom)
{
	bool found = false;

	for (unsigned i = 0; fit && i < fit->count && !found; i++)
		found = fit->recordings[i].device == oom->device && sl_fit_until(until, &fit->recordings[i], oom->time_ns);
	if (!found)
		return false;
	sl_fit_program_read(&moment->program, until);
	sl_fit_keeps_find(&moment->keeps, &moment->program);
	moment->live_bytes = oom->live_bytes;
	return true;
}

static void forget_moment(struct moment *moment)
{
	sl_fit_keeps_free(&moment->keeps);
	sl_fit_program_free(&moment->program);
}

/* Blocks that were held at the error. */
struct held_blocks {
	uint64_t bytes, largest_bytes;
	unsigned steps, last; /* that made some of them */
	uint32_t largest;     /* Python stack of most of them */
};

typedef bool held_if(const struct moment *moment, uint32_t life);

/* Those for which that holds, by their steps and by the stack that made most. */
static struct held_blocks find_held(const struct moment *moment, held_if *is)
{
	const struct sl_fit_program *p = &moment->program;
	uint64_t *bytes = sl_memory_must(calloc(p->stacks.count + 1, sizeof(*bytes)));
	struct held_blocks blocks = {0};

	for (uint32_t i = 0; i < p->lives.count; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];
		uint64_t *of_stack = &bytes[sl_idmap_get(&p->stack_ids, life->python, 0)];

		if (life->death != SL_FIT_GAP || life->birth >= p->failed || !is(moment, i))
			continue;
		if (p->steps.count > 1 && life->step == p->steps.count)
			break; /* the step that failed is not complete */
		blocks.bytes += life->bytes;
		blocks.steps += life->step != blocks.last;
		blocks.last = life->step;
		*of_stack += life->bytes;
		if (*of_stack >= blocks.largest_bytes) {
			blocks.largest_bytes = *of_stack;
			blocks.largest = life->python;
		}
	}
	free(bytes);
	return blocks;
}

static bool is_most(const struct held_blocks *blocks, const struct moment *moment)
{
	return blocks->bytes && (double)blocks->bytes >= SL_HALF * (double)moment->live_bytes;
}

static bool of_graph(const struct moment *m, uint32_t life)
{
	return sl_fit_keeps_it(&m->keeps, &m->program, life) && sl_fit_keeps_graph(&m->keeps, &m->program, life);
}

static bool of_module(const struct moment *m, uint32_t life)
{
	return sl_fit_program_maker(&m->program, life)->module;
}

/* Autograd keeps what the modules of each step made, and no backward pass frees it.  The source may say that it is off. */
static bool tell_activations(struct sl_story *story, struct sl_process *process, const struct moment *moment)
{
	struct held_blocks blocks = find_held(moment, of_graph);
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_own(process, frames, (struct sl_stack){.python = blocks.largest});

	if (!is_most(&blocks, moment) || (process->report->source && sl_source_without_grad(process->report->source, process->trace,
											    frames, count) == SL_SOURCE_YES))
		return false;
	*story = (struct sl_story){
		.kind = SL_STORY_ACTIVATIONS, .stack = {.python = blocks.largest}, .bytes = blocks.bytes, .count = blocks.steps};
	return true;
}

/* What a Python stack asked for. */
struct requested {
	uint64_t bytes, more; /* of the last request; by which it was larger than the one before of another size */
	uint64_t held_bytes, gone;
	uint32_t python;
	unsigned rises; /* since a request was smaller than the one before */
};

static struct requested *find_requested(const struct sl_fit_program *p)
{
	struct requested *found = sl_memory_must(calloc(p->stacks.count + 1, sizeof(*found)));

	for (size_t i = 0; i < p->lives.count && p->lives.item[i].birth < p->failed; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];
		struct requested *of = &found[sl_idmap_get(&p->stack_ids, life->python, 0)];

		if (life->bytes > of->bytes && of->bytes)
			of->more = life->bytes - of->bytes;
		of->rises = life->bytes < of->bytes ? 0 : of->rises + (life->bytes > of->bytes && of->bytes);
		of->bytes = life->bytes;
		of->python = life->python;
		*(life->death == SL_FIT_GAP ? &of->held_bytes : &of->gone) += life->bytes;
	}
	return found;
}

/* Tensors that are made again, larger each time, and of which the ones before are freed: torch.cat of all keys so far. */
static bool tell_growing(struct sl_story *story, struct sl_process *process, const struct moment *moment)
{
	const struct sl_fit_program *p = &moment->program;
	struct requested *found = find_requested(p), largest = {0};
	uint64_t bytes = 0;

	for (size_t i = 1; i < p->stacks.count; i++) {
		if (found[i].rises < SL_SEVERAL || found[i].gone < found[i].held_bytes)
			continue;
		bytes += found[i].held_bytes;
		largest = found[i].held_bytes > largest.held_bytes ? found[i] : largest;
	}
	free(found);
	if ((double)bytes < SL_HALF * (double)moment->live_bytes)
		return false;
	*story = (struct sl_story){
		.kind = SL_STORY_AGAIN, .stack = {.python = largest.python}, .bytes = bytes, .before = largest.more};
	return true;
}

/* No step before had as much to compute as the one that failed: its input is the largest. */
static bool tell_input(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom, const struct moment *moment)
{
	const struct sl_fit_program *p = &moment->program;
	const struct sl_leak_line *leak = sl_oom_causes_leak(process, oom);
	unsigned steps = (unsigned)p->steps.count, before = 0;
	uint64_t input = sl_fit_program_input(p, steps), max_input = 0;

	for (unsigned i = 1; i < steps; i++) {
		uint64_t bytes = sl_fit_program_input(p, i);

		before += bytes > 0;
		max_input = bytes > max_input ? bytes : max_input;
	}
	if (before < SL_FEW || input <= max_input || (leak && leak->verdict == SL_KEPT_GROWING))
		return false;
	*story = (struct sl_story){.kind = SL_STORY_INPUT,
				   .stack = {.python = p->whole.ops.item[p->steps.item[steps - 1]].python},
				   .bytes = input,
				   .before = max_input,
				   .count = before};
	return true;
}

/* The first forward pass or its backward pass did not end, so that no recording has the need of the rest of the step. */
static bool tell_first_pass(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom,
			    const struct moment *moment)
{
	const struct sl_fit_program *p = &moment->program;
	const struct sl_leak_line *leak = sl_oom_causes_leak(process, oom);
	const struct sl_fit_stack *asks = sl_fit_program_stack(p, sl_fit_program_failed(p)->python);
	struct held_blocks blocks = find_held(moment, of_module);

	if (p->steps.count > 1 || !(asks->module || asks->backward) || !is_most(&blocks, moment) ||
	    (leak && leak->verdict == SL_KEPT_GROWING))
		return false;
	*story = (struct sl_story){.kind = SL_STORY_FIRST_PASS,
				   .stack = {.python = blocks.largest},
				   .bytes = blocks.bytes,
				   .words = asks->module ? "forward" : "backward"};
	return true;
}

static bool is_cache(struct sl_process *process, struct sl_stack stack)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_stack(process, frames, stack);

	for (unsigned i = 0; i < count; i++)
		if (frames[i].python && ((frames[i].file && strstr(frames[i].file, "cache_utils.py")) ||
					 (frames[i].function && (strcasestr(frames[i].function, "kv_cache") ||
								 strcasestr(frames[i].function, "kvcache") ||
								 strstr(frames[i].function, "DynamicCache")))))
			return true;
	return false;
}

/* True: a model still sets itself up: a constructor asked, and no module has run. */
static bool is_set_up(struct sl_process *process, struct sl_stack stack)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_own(process, frames, stack);
	bool constructs = false;

	for (unsigned i = 0; i < count; i++)
		constructs |= frames[i].function && strstr(frames[i].function, "__init__") != NULL;
	for (size_t i = 0; i < process->model->sites.count && constructs; i++)
		constructs = sl_roles_of(process, &process->model->sites.item[i]) != SL_ROLE_ACTIVATIONS;
	return constructs;
}

/* Keys and values of attention, kept for each token of each sequence. */
static bool tell_caches(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_site *largest = NULL, *site;
	uint64_t bytes = 0, blocks = 0, largest_bytes = 0, born = 0;

	for (const struct sl_owner *owner = NULL; (owner = sl_owners_at_error(process, oom, owner, &site));) {
		if (site->kind != SL_KIND_block || !is_cache(process, site->stack))
			continue;
		bytes += owner->bytes;
		blocks += owner->blocks;
		born += site->total_blocks;
		if (owner->bytes > largest_bytes) {
			largest_bytes = owner->bytes;
			largest = site;
		}
	}
	if (!largest || bytes < sl_oom_causes_missing(oom) || (double)bytes < SL_HALF / 2 * (double)oom->live_bytes)
		return false;
	*story = (struct sl_story){.kind = SL_STORY_CACHES,
				   .stack = largest->stack,
				   .bytes = bytes,
				   .count = blocks,
				   .words = born == blocks && is_set_up(process, oom->stack) ? "whole" : NULL};
	return true;
}

/* Memory of another framework's pool that is not in use would have been enough. */
static bool tell_pool(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom)
{
	uint64_t reserved = oom->torch.pool_reserved_bytes, used = oom->torch.pool_allocated_bytes;
	const struct sl_owner *owner = NULL;
	const struct sl_site *pool;
	const char *library;
	bool jax;

	if (!oom->torch.reported || reserved < used || reserved - used < sl_oom_causes_missing(oom))
		return false;
	do
		owner = sl_owners_at_error(process, oom, owner, &pool);
	while (owner && !pool->pooled);
	if (!owner)
		return false;
	library = sl_model_library(process->model, pool);
	jax = strstr(library, "xla") || strstr(library, "jax");
	*story = (struct sl_story){
		.kind = SL_STORY_POOL, .stack = pool->stack, .bytes = reserved, .before = used, .words = jax ? "JAX" : library};
	return true;
}

/* Weights that were there when memory ran out. */
struct placed {
	uint64_t bytes;
	unsigned times; /* so often the failed line placed some, and modules worked in between */
	bool repeats;	/* they are the same, SL_FEW times or more */
};

/* True: the sequence is a shorter one that repeats so many times or more. */
static bool is_repeated(const uint64_t *item, size_t count, unsigned times)
{
	size_t *border = sl_memory_must(calloc(count + 1, sizeof(*border))), k = 0;
	bool repeated;

	for (size_t i = 1; i < count; i++) {
		while (k && item[i] != item[k])
			k = border[k];
		k += item[i] == item[k];
		border[i + 1] = k;
	}
	repeated = count && count / (count - border[count]) >= times;
	free(border);
	return repeated;
}

static struct placed find_placed(struct sl_process *process, const struct moment *moment)
{
	const struct sl_fit_program *p = &moment->program;
	const struct sl_fit_place *failed_place = sl_fit_program_own(sl_fit_program_stack(p, sl_fit_program_failed(p)->python));
	enum { UNKNOWN, OTHER, WEIGHTS } *kind = sl_memory_must(calloc(p->stacks.count + 1, sizeof(*kind)));
	SL_VECTOR(uint64_t) sequence = {0};
	struct placed placed = {0};
	bool worked = true;

	for (uint32_t i = 0; i < p->lives.count && p->lives.item[i].birth < p->failed; i++) {
		const struct sl_fit_life *life = &p->lives.item[i];
		const struct sl_fit_stack *maker = sl_fit_program_maker(p, i);
		const struct sl_fit_place *own = sl_fit_program_own(maker);
		size_t at = (size_t)sl_idmap_get(&p->stack_ids, life->python, 0);

		if (kind[at] == UNKNOWN)
			kind[at] = sl_roles_makes_weights(process, (struct sl_stack){.python = life->python}) ? WEIGHTS : OTHER;
		worked |= kind[at] == OTHER && maker->module;
		if (kind[at] == OTHER || life->death != SL_FIT_GAP)
			continue;
		placed.bytes += life->bytes;
		*SL_PUSH(&sequence) = (uint64_t)life->python << 40 ^ life->bytes;
		placed.times += worked && own && failed_place && sl_fit_place_is(own, failed_place);
		worked &= !own || !failed_place || !sl_fit_place_is(own, failed_place);
	}
	placed.repeats = is_repeated(sequence.item, sequence.count, SL_FEW);
	free(sequence.item);
	free(kind);
	return placed;
}

/*
 * Weights that are placed leave no room for the next.  A loop that keeps models looks alike: there modules work between them.
 * Where none did, and Python tells that the model is but a part (dry/python/stormlog_dry_modules.py), it may be a layer.
 */
static bool tell_weights(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom, const struct moment *moment)
{
	struct sl_dry_weights weights;
	bool is_known = sl_dry_weights(process, &weights), some, whole;
	bool makes = sl_roles_makes_weights(process, oom->stack);
	uint64_t need = SL_UNKNOWN, all_of;
	struct placed placed;

	if (!is_known && !makes)
		return false;
	placed = find_placed(process, moment);
	if (is_known && weights.placed > placed.bytes)
		placed.bytes = weights.placed;
	else if (!makes)
		return false;
	if (placed.times >= SL_FEW || (double)placed.bytes < SL_HALF * (double)moment->live_bytes)
		return false;
	some = is_known && (double)weights.placed < SL_HALF * (double)placed.bytes && placed.bytes >= SL_FEW * weights.own;
	whole = is_known && !some && weights.placed < weights.total;
	if (whole &&
	    (double)(placed.bytes - weights.placed) > SL_ALIKE * (double)weights.total) /* less is of other threads meanwhile */
		weights.total += placed.bytes - weights.placed;
	if (whole && weights.total > placed.bytes + oom->free_bytes)
		need = weights.total;
	all_of = need == SL_UNKNOWN ? placed.bytes : need;
	*story = (struct sl_story){.kind = SL_STORY_WEIGHTS,
				   .stack = oom->stack,
				   .bytes = need,
				   .before = placed.bytes,
				   .count = is_known ? sl_stats_bytes((double)all_of * (double)weights.wide / (double)weights.total)
						     : 0,
				   .words = some || (!is_known && placed.repeats) ? NULL
					    : is_known				  ? weights.class
										  : ""};
	return true;
}

static bool tell_steps(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom, struct sl_fit_process *fit)
{
	struct sl_fit_recording until;
	struct moment moment;
	bool found;

	if (!read_moment(&moment, &until, fit, oom))
		return tell_caches(story, process, oom);
	found = (is_cache(process, oom->stack) && tell_caches(story, process, oom)) || tell_weights(story, process, oom, &moment) ||
		tell_activations(story, process, &moment) || tell_caches(story, process, oom) ||
		tell_growing(story, process, &moment) || tell_first_pass(story, process, oom, &moment) ||
		tell_input(story, process, oom, &moment);
	forget_moment(&moment);
	return found;
}

bool sl_demand_tell(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom, struct sl_fit_process *fit)
{
	if (oom->device < 0 || !oom->torch.used || oom->free_bytes == SL_UNKNOWN || oom->scope != SL_SCOPE_VRAM)
		return false;
	return tell_optimizer(story, process, oom) || tell_pool(story, process, oom) || tell_series(story, process, oom) ||
	       tell_steps(story, process, oom, fit);
}
