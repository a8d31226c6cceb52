/* SPDX-License-Identifier: MIT */
#include "analyzer/analyses/demand.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "analyzer/base/format.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/place.h"
#include "analyzer/report/roles.h"

#define SERIES_MIN   4	  /* blocks of a place that show how its requests grow */
#define SERIES_SLACK 0.1  /* of the sum of such a series: the last batch may be smaller */
#define MOST_PART    0.5  /* share of what the process held: less is not what filled the device */
#define BATCHES_MIN  2	  /* of which activations are kept */
#define STATE_SLACK  0.02 /* of the parameters: buffers of a model have no state */

/* Values that an optimizer of PyTorch keeps for each parameter, as large as the parameter; by the name of its file or function. */
static const struct {
	const char *name, *words;
	unsigned values;
} optimizers[] = {
	{"adam", "Adam keeps two values", 2},
	{"lamb", "LAMB keeps two values", 2},
	{"adadelta", "Adadelta keeps two values", 2},
	{"adagrad", "Adagrad keeps a value", 1},
	{"rmsprop", "RMSprop keeps a value", 1},
	{"sgd", "SGD keeps a momentum", 1},
	{"lion", "Lion keeps a value", 1},
};

static const struct sl_site *site_of(const struct sl_process *process, const struct sl_owner *owner)
{
	return &process->model->sites.item[owner->site];
}

/* A block that was held at the error and came by the same Python lines as the request; NULL: there is none. */
static const struct sl_site *alike(const struct sl_process *process, const struct sl_oom *oom)
{
	for (unsigned i = 0; i < oom->owner_count; i++) {
		const struct sl_site *site = site_of(process, &oom->owners[i]);

		if (oom->stack.python ? site->stack.python == oom->stack.python : sl_stack_same(site->stack, oom->stack))
			return site;
	}
	return NULL;
}

/* What was held for each purpose.  The owners of an error are its largest; where they lack some, the peak tells, if it is then. */
static void take_roles(struct sl_process *process, const struct sl_oom *oom, uint64_t bytes[SL_ROLE_COUNT])
{
	const struct sl_device_state *state = process->model->devices[oom->device + 1];

	if (state->known_peak == oom->live_bytes && sl_roles_at_peak(process, state, bytes))
		return;
	memset(bytes, 0, SL_ROLE_COUNT * sizeof(*bytes));
	for (unsigned i = 0; i < oom->owner_count; i++)
		if (sl_owners_shows(process, site_of(process, &oom->owners[i])))
			bytes[sl_roles_of(process, site_of(process, &oom->owners[i]))] += oom->owners[i].bytes;
}

/* The values that the optimizer keeps, by its name in the stack; 0: the stack does not name one. */
static unsigned values_of(struct sl_process *process, struct sl_stack stack, const char **words)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_stack(process, frames, stack);

	for (unsigned f = 0; f < count; f++)
		for (size_t i = 0; i < SL_COUNT(optimizers); i++)
			if (frames[f].python && ((frames[f].file && strstr(frames[f].file, "/optim") &&
						  strcasestr(strrchr(frames[f].file, '/'), optimizers[i].name)) ||
						 (frames[f].function && strcasestr(frames[f].function, optimizers[i].name)))) {
				*words = optimizers[i].words;
				return optimizers[i].values;
			}
	return 0;
}

/* The optimizer makes its state when it steps first: parameters tell how much that is. */
static bool tell_optimizer(struct sl_oom_causes *story, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_site *site = alike(process, oom);
	uint64_t bytes[SL_ROLE_COUNT], all;
	const char *words = NULL;
	unsigned values;
	char a[SL_FORMAT_BYTES], b[SL_FORMAT_BYTES];

	if (!site || sl_roles_of(process, site) != SL_ROLE_OPTIMIZER || !(values = values_of(process, site->stack, &words)))
		return false;
	take_roles(process, oom, bytes);
	all = values * bytes[SL_ROLE_PARAMETERS];
	if (!bytes[SL_ROLE_GRADIENTS] || (double)bytes[SL_ROLE_OPTIMIZER] >= (1 - STATE_SLACK) * (double)all ||
	    all - bytes[SL_ROLE_OPTIMIZER] < sl_oom_causes_missing(oom))
		return false;
	snprintf(story->text, sizeof(story->text),
		 "the optimizer makes its state in its first step: %s for each parameter, %s beside %s of parameters and %s of "
		 "gradients; %s of it are placed, and %s are missing",
		 words, SL_SIZE(all), sl_format_size(a, bytes[SL_ROLE_PARAMETERS]), sl_format_size(b, bytes[SL_ROLE_GRADIENTS]),
		 SL_SIZE(bytes[SL_ROLE_OPTIMIZER]), SL_SIZE(all - bytes[SL_ROLE_OPTIMIZER]));
	snprintf(story->advice, sizeof(story->advice),
		 "an optimizer with less state (8-bit, Adafactor, SGD), bfloat16 parameters, or shards over several devices");
	return true;
}

/* The blocks of that place got larger by the same each time, and the request is the next of them. */
static bool is_series(const struct sl_track *track, uint64_t asked)
{
	double n = (double)track->births, step = (double)asked - (double)track->most_bytes, sum;

	sum = n * (double)track->most_bytes - step * n * (n - 1) / 2;
	return track->births >= SERIES_MIN && step > 0 && (n - 1) * step < (double)track->most_bytes * (1 + SERIES_SLACK) &&
	       (double)track->born_bytes >= (1 - SERIES_SLACK) * sum && (double)track->born_bytes <= (1 + SERIES_SLACK) * sum;
}

/* "torch_pad_and_concatenate" of the innermost Python frame that is not the place's; "": the place is innermost. */
static void put_function(char *out, size_t size, struct sl_process *process, struct sl_stack stack)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_stack(process, frames, stack);

	out[0] = 0;
	for (unsigned i = 0; i < count; i++)
		if (frames[i].python) {
			if (!frames[i].own)
				snprintf(out, size, " (%s)", frames[i].function);
			return;
		}
}

/* torch.cat of all so far: the old tensor and the new one are held together. */
static bool tell_series(struct sl_oom_causes *story, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_track *found = NULL;
	char where[300], function[200], most[SL_FORMAT_BYTES], both[SL_FORMAT_BYTES];
	bool trainer;

	for (size_t i = 0; i < process->model->tracks.count && oom->stack.python; i++) {
		const struct sl_track *track = &process->model->tracks.item[i];

		if (track->kind == SL_KIND_block && track->device == oom->device && track->stack.python == oom->stack.python &&
		    track->first_ns < oom->time_ns && is_series(track, oom->asked_bytes))
			found = track;
	}
	if (!found || (double)(oom->asked_bytes + found->most_bytes) < MOST_PART * (double)oom->live_bytes)
		return false;
	sl_owners_line(process, oom->stack, 2, where, sizeof(where));
	put_function(function, sizeof(function), process, found->stack);
	trainer = strstr(function, "torch_pad_and_concatenate");
	snprintf(story->text, sizeof(story->text),
		 "a tensor is made again at %s%s, each time %s larger: of %s by now, and it is held beside its copy of %s while "
		 "that is made, %s together",
		 where, function, SL_SIZE(oom->asked_bytes - found->most_bytes), sl_format_size(most, found->most_bytes),
		 SL_SIZE(oom->asked_bytes), sl_format_size(both, oom->asked_bytes + found->most_bytes));
	snprintf(story->advice, sizeof(story->advice), "%s",
		 trainer ? "eval_accumulation_steps moves it to the host; preprocess_logits_for_metrics keeps less of each batch"
			 : "move each part to the host, or keep only what is needed of it, instead of torch.cat with all before");
	return true;
}

/* True: a backward pass began after that moment. */
static bool went_backward(const struct sl_model *model, uint64_t since_ns)
{
	for (size_t i = 0; i < model->labels.count; i++) {
		const char *text = sl_defs_text(model->defs, model->labels.item[i].text);

		if (text && !strncmp(text, "backward", 8) && model->labels.item[i].last_ns > since_ns)
			return true;
	}
	return false;
}

/* True: one of the Python lines sits in PyTorch's machinery of modules, so that the block is an activation of theirs. */
static bool is_of_torch(struct sl_process *process, struct sl_stack stack)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_stack(process, frames, stack);

	for (unsigned i = 0; i < count; i++)
		if (frames[i].python && frames[i].file && strstr(frames[i].file, "/torch/nn/"))
			return true;
	return false;
}

/* Activations that were held at the error, and that no backward pass freed. */
struct kept {
	const struct sl_site *largest; /* NULL: they were not most of what was held */
	uint64_t bytes, batches;
	const struct sl_track *first; /* of the first layer */
	uint64_t first_ns,
		pass_ns; /* the first block of the first layer, and of the one that was the last to come for the first time */
	uint64_t most;	 /* blocks of one layer */
};

static bool is_activation(struct sl_process *process, const struct sl_oom *oom, unsigned owner)
{
	const struct sl_site *site = site_of(process, &oom->owners[owner]);

	return site->kind == SL_KIND_block && sl_roles_of(process, site) == SL_ROLE_ACTIVATIONS &&
	       is_of_torch(process, site->stack);
}

/* When the Python lines of an owner first made a block that was held, by whatever path in C. */
static uint64_t begun(struct sl_process *process, const struct sl_oom *oom, unsigned owner)
{
	uint32_t python = site_of(process, &oom->owners[owner])->stack.python;
	uint64_t ns = UINT64_MAX;

	for (unsigned i = 0; i < oom->owner_count; i++) {
		const struct sl_site *site = site_of(process, &oom->owners[i]);
		uint64_t first = process->model->tracks.item[site->track].first_ns;

		ns = site->stack.python == python && first < ns ? first : ns;
	}
	return ns;
}

static struct kept find_kept(struct sl_process *process, const struct sl_oom *oom)
{
	struct kept k = {.first_ns = UINT64_MAX};
	uint64_t most = 0, ns;

	for (unsigned i = 0; i < oom->owner_count; i++) {
		const struct sl_owner *owner = &oom->owners[i];

		if (!is_activation(process, oom, i))
			continue;
		ns = begun(process, oom, i);
		if (ns < k.first_ns) {
			k.first_ns = ns;
			k.first = &process->model->tracks.item[site_of(process, owner)->track];
		}
		k.pass_ns = ns > k.pass_ns ? ns : k.pass_ns;
		k.most = owner->blocks > k.most ? owner->blocks : k.most;
		if (owner->blocks < BATCHES_MIN)
			continue;
		k.bytes += owner->bytes;
		if (owner->bytes > most) {
			most = owner->bytes;
			k.largest = site_of(process, owner);
		}
		k.batches = !k.batches || owner->blocks < k.batches ? owner->blocks : k.batches;
	}
	if (k.largest && ((double)k.bytes < MOST_PART * (double)oom->live_bytes || went_backward(process->model, k.first_ns)))
		k.largest = NULL;
	return k;
}

/*
 * True: a pass had ended, and another began.  Each layer had come, and then its input was made again, or the first layer, which
 * comes less often than others, was called again.  Before that, a layer that comes again is one of several.
 */
static bool is_repeated(struct sl_process *process, const struct sl_oom *oom, const struct kept *k)
{
	if (k->first->last_ns > k->pass_ns && k->first->births < k->most)
		return true;
	for (size_t i = 0; i < process->model->tracks.count; i++) {
		const struct sl_track *track = &process->model->tracks.item[i];

		if (track->kind == SL_KIND_block && track->device == oom->device && track->stack.python &&
		    track->first_ns < k->pass_ns && track->last_ns > k->pass_ns && !is_of_torch(process, track->stack))
			return true;
	}
	return false;
}

/* Most of what was held are activations of several batches, and no backward pass came that would have freed them. */
static bool tell_activations(struct sl_oom_causes *story, struct sl_process *process, const struct sl_oom *oom)
{
	struct kept k = find_kept(process, oom);
	char where[300];

	if (!k.largest || !is_repeated(process, oom, &k))
		return false;
	sl_owners_line(process, k.largest->stack, 3, where, sizeof(where));
	snprintf(story->text, sizeof(story->text),
		 "activations of about %llu batches are kept, %s of each, since autograd is on and no backward pass freed them: "
		 "made at %s",
		 (unsigned long long)k.batches, SL_SIZE(k.bytes / k.batches), where);
	snprintf(story->advice, sizeof(story->advice),
		 "run that under torch.no_grad(), or keep results without their graph: detach() or item()");
	return true;
}

/* The first forward pass did not end: what the rest of the step needs is in no recording. */
static bool tell_first_pass(struct sl_oom_causes *story, struct sl_process *process, const struct sl_oom *oom)
{
	struct kept k = find_kept(process, oom);
	char where[300];

	if (!k.largest || is_repeated(process, oom, &k))
		return false;
	sl_owners_line(process, k.largest->stack, 2, where, sizeof(where));
	snprintf(story->text, sizeof(story->text),
		 "it ran out in its first forward pass, with %s of activations by then, most of them made at %s: the step needs "
		 "more "
		 "than that, and how much more is not known",
		 SL_SIZE(k.bytes), where);
	snprintf(story->advice, sizeof(story->advice),
		 "a smaller batch, checkpointing, or autocast; a dry run on a larger card tells what the job needs");
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

/* Keys and values of attention, kept for each token of each sequence. */
static bool tell_caches(struct sl_oom_causes *story, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_site *largest = NULL;
	uint64_t bytes = 0, blocks = 0, most = 0;
	char where[300];

	for (unsigned i = 0; i < oom->owner_count; i++) {
		const struct sl_site *site = site_of(process, &oom->owners[i]);

		if (site->kind != SL_KIND_block || !is_cache(process, site->stack))
			continue;
		bytes += oom->owners[i].bytes;
		blocks += oom->owners[i].blocks;
		if (oom->owners[i].bytes > most) {
			most = oom->owners[i].bytes;
			largest = site;
		}
	}
	if (!largest || bytes < sl_oom_causes_missing(oom) || (double)bytes < MOST_PART / 2 * (double)oom->live_bytes)
		return false;
	sl_owners_line(process, largest->stack, 2, where, sizeof(where));
	snprintf(story->text, sizeof(story->text),
		 "key-value caches hold %s in %llu tensors, made at %s: they grow with the length of each sequence, times the "
		 "sequences kept",
		 SL_SIZE(bytes), (unsigned long long)blocks, where);
	snprintf(story->advice, sizeof(story->advice),
		 "keep fewer sequences, drop caches of those that ended, or bound their length");
	return true;
}

/* Memory of another framework's pool that is not in use would have been enough. */
static bool tell_pool(struct sl_oom_causes *story, struct sl_process *process, const struct sl_oom *oom)
{
	uint64_t held = oom->torch.pool_reserved_bytes, used = oom->torch.pool_allocated_bytes;
	const struct sl_site *pool = NULL;
	const char *library;
	char where[300];
	bool jax;

	if (!oom->torch.told || held < used || held - used < sl_oom_causes_missing(oom))
		return false;
	for (unsigned i = 0; i < oom->owner_count && !pool; i++)
		if (site_of(process, &oom->owners[i])->pooled)
			pool = site_of(process, &oom->owners[i]);
	if (!pool)
		return false;
	library = sl_model_library(process->model, pool);
	jax = strstr(library, "xla") || strstr(library, "jax");
	sl_owners_line(process, pool->stack, 2, where, sizeof(where));
	snprintf(story->text, sizeof(story->text),
		 "%s's pool holds %s in the same process, of which %s are in use; it was taken at %s", jax ? "JAX" : library,
		 SL_SIZE(held), SL_SIZE(used), where);
	snprintf(story->advice, sizeof(story->advice), "%s",
		 jax ? "let JAX take less: XLA_PYTHON_CLIENT_PREALLOCATE=false, or a smaller XLA_PYTHON_CLIENT_MEM_FRACTION"
		     : "bound that pool, or give each framework a process of its own");
	return true;
}

bool sl_demand_tell(struct sl_oom_causes *story, struct sl_process *process, const struct sl_oom *oom)
{
	if (oom->device < 0 || !oom->torch.used || oom->free_bytes == SL_UNKNOWN || oom->scope != SL_SCOPE_VRAM)
		return false;
	return tell_optimizer(story, process, oom) || tell_pool(story, process, oom) || tell_series(story, process, oom) ||
	       tell_activations(story, process, oom) || tell_caches(story, process, oom) || tell_first_pass(story, process, oom);
}
