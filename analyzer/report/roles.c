/* SPDX-License-Identifier: MIT */
#include "analyzer/report/roles.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "analyzer/base/amounts.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/place.h"
#include "analyzer/trace/idmap.h"

#define PARTS_MAX 12

/* What the program is doing when it allocates. */
enum phase { NONE, MAKING, COPYING, FORWARD, BACKWARD, OPTIMIZING, WORKING, TALKING, SERVING, OTHER };

struct sl_roles {
	SL_VECTOR(uint64_t) modules;	/* hashes of names of classes with a method forward; sorted */
	uint8_t *of;			/* role + 1 of each site; 0: not determined yet */
	uint64_t steps;			/* 1 + those of steps_of; 0: not determined yet */
	SL_VECTOR(uint32_t) workspaces; /* numbers of sites */
};

struct rule {
	const char *text;
	enum phase phase;
};

/* Parts of file paths. */
static const struct rule files[] = {
	{"/torch/optim/", OPTIMIZING},
	{"/torch/autograd/", BACKWARD},
	{"/torch/_tensor.py", BACKWARD},
	{"/torch/nn/parallel/", TALKING},
	{"/torch/distributed/", TALKING},
	{"/torch/nn/functional.py", FORWARD},
	{"/torch/nn/init.py", MAKING},
	{"/torch/nn/parameter.py", MAKING},
	{"/torch/nn/utils/clip_grad.py", WORKING},
	{"/transformers/core_model_loading.py", MAKING},
};

/* Whole names of functions and methods. */
static const struct rule functions[] = {
	{"forward", FORWARD},	     {"_call_impl", FORWARD},	     {"backward", BACKWARD},
	{"_apply", MAKING},	     {"load_state_dict", MAKING},    {"from_pretrained", MAKING},
	{"load_weights", MAKING},    {"load_model", MAKING},	     {"load_checkpoint", MAKING},
	{"init_weights", MAKING},    {"init_parameters", MAKING},    {"reset_parameters", MAKING},
	{"init_params", MAKING},     {"optimizer_step", OPTIMIZING}, {"apply_gradients", OPTIMIZING},
	{"adam", OPTIMIZING},	     {"adamw", OPTIMIZING},	     {"sgd", OPTIMIZING},
	{"all_reduce", TALKING},     {"allreduce", TALKING},	     {"all_gather", TALKING},
	{"reduce_scatter", TALKING}, {"all_to_all", TALKING},
};

/* Words in names of classes, functions and libraries. */
static const struct rule words[] = {
	{"optimizer", OPTIMIZING},
	{"allocate_kv_cache", SERVING}, /* vLLM */
	{"KVPool", SERVING},		/* SGLang's classes */
	{"workspace", WORKING},
	{"scratch", WORKING},
	{"deepcopy", OTHER}, /* Tensor.__deepcopy__ is in a file of autograd's */
	{"BlasHandle", WORKING},
	/* of a snapshot (analyzer/snapshot/convert.c), and its C++ frames */
	{"copies of weights by autocast", COPYING},
	{"torch::autograd::Engine", BACKWARD},
	{"torch::autograd::generated::", BACKWARD},
	{"AccumulateGrad", BACKWARD},
};
static const char *const optimizers[] = {"Adam",      "SGD",  "RMSprop", "Adagrad", "Adadelta",
					 "Adafactor", "Lion", "Lamb",	 "LBFGS",   "Muon"};
static const struct rule libraries[] = {
	{"nccl", TALKING},   {"rccl", TALKING},	    {"libmpi", TALKING},   {"cublas", WORKING},
	{"cudnn", WORKING},  {"cusolver", WORKING}, {"cusparse", WORKING}, {"cufft", WORKING},
	{"curand", WORKING}, {"rocblas", WORKING},  {"hipblas", WORKING},  {"miopen", WORKING},
};

const char *sl_roles_name(enum sl_role role)
{
	static const char *const names[] = {
		[SL_ROLE_UNKNOWN] = "unknown",
		[SL_ROLE_PARAMETERS] = "parameters",
		[SL_ROLE_GRADIENTS] = "gradients",
		[SL_ROLE_OPTIMIZER] = "optimizer",
		[SL_ROLE_ACTIVATIONS] = "activations",
		[SL_ROLE_WORKSPACE] = "workspace",
		[SL_ROLE_COMMUNICATION] = "communication",
		[SL_ROLE_CACHE] = "cache",
		[SL_ROLE_KV_CACHE] = "kv_cache",
	};

	return names[role];
}

static enum phase phase_among(const struct rule *rules, size_t count, const char *text)
{
	for (size_t i = 0; text && i < count; i++)
		if (strcasestr(text, rules[i].text))
			return rules[i].phase;
	return NONE;
}

static size_t place_of(const char *name, size_t size, const char *word, size_t *from)
{
	size_t length = strlen(word);

	for (*from = 0; *from + length <= size; ++*from)
		if (!strncasecmp(name + *from, word, length))
			return length;
	return 0;
}

size_t sl_roles_word(const char *name, size_t size, size_t *from)
{
	size_t length = 0;

	for (size_t i = 0; i < SL_COUNT(functions) && !length; i++)
		length = strlen(functions[i].text) == size ? place_of(name, size, functions[i].text, from) : 0;
	for (size_t i = 0; i < SL_COUNT(words) && !length; i++)
		length = place_of(name, size, words[i].text, from);
	for (size_t i = 0; i < SL_COUNT(optimizers) && !length; i++)
		length = place_of(name, size, optimizers[i], from);
	return length;
}

/* "Net.fit.<locals>.step" gives Net, fit, step; "a::Net::forward" gives a, Net, forward. */
static unsigned split(char *name, char **parts)
{
	unsigned count = 0;
	char *state = NULL;

	for (char *part = strtok_r(name, ".:", &state); part; part = strtok_r(NULL, ".:", &state)) {
		if (*part == '<')
			continue;
		if (count == PARTS_MAX)
			memmove(parts, parts + 1, --count * sizeof(*parts));
		parts[count++] = part;
	}
	return count;
}

static bool is_module(const struct sl_roles *roles, const char *class)
{
	uint64_t hash = sl_place_hash(class);

	return roles->modules.count && bsearch(&hash, roles->modules.item, roles->modules.count, sizeof(hash), sl_stats_by_number);
}

/* What one part of a function's name tells, together with the class before it. */
static enum phase phase_of_part(const struct sl_roles *roles, const char *class, const char *part)
{
	for (size_t i = 0; i < SL_COUNT(functions); i++)
		if (!strcmp(part, functions[i].text))
			return functions[i].phase;
	if (!class)
		return NONE;
	for (size_t i = 0; i < SL_COUNT(optimizers); i++)
		if (strstr(class, optimizers[i]))
			return OPTIMIZING;
	if (is_module(roles, class) && (!strcmp(part, "__init__") || !strcmp(part, class)))
		return MAKING;
	return is_module(roles, class) && !strcmp(part, "__call__") ? FORWARD : NONE;
}

static enum phase phase_of_frame(const struct sl_roles *roles, const struct sl_stack_frame *frame)
{
	enum phase phase = phase_among(words, SL_COUNT(words), frame->function);
	char name[512], *parts[PARTS_MAX];
	unsigned count;

	if (phase == NONE)
		phase = phase_among(files, SL_COUNT(files), frame->file);
	if (phase == NONE && frame->function && frame->file && strstr(frame->file, "/torch/nn/modules/") &&
	    strstr(frame->function, "__init__"))
		return MAKING; /* of a layer that is made on the device */
	if (phase != NONE || !frame->function)
		return phase;
	sl_place_name(frame, name, sizeof(name));
	count = split(name, parts);
	for (unsigned i = count; i-- && phase == NONE;)
		phase = phase_of_part(roles, i ? parts[i - 1] : NULL, parts[i]);
	return phase;
}

/*
 * A class whose method forward allocates, or appears in the stack, is a module: its constructor makes parameters.  Tensors have a
 * method backward.
 */
static void note_modules(struct sl_roles *roles, struct sl_idmap *seen, const struct sl_stack_frame *frames, unsigned count)
{
	char name[512], *parts[PARTS_MAX];

	for (unsigned i = 0; i < count; i++) {
		uint64_t text = (uintptr_t)frames[i].function; /* equal Python names have the same address */
		unsigned used;

		if (!text || sl_idmap_get(seen, text, 0))
			continue;
		sl_idmap_set(seen, text, 1);
		if (!strstr(frames[i].function, "forward"))
			continue;
		sl_place_name(&frames[i], name, sizeof(name));
		used = split(name, parts);
		for (unsigned k = 1; k < used; k++)
			if (!strcmp(parts[k], "forward"))
				*SL_PUSH(&roles->modules) = sl_place_hash(parts[k - 1]);
	}
}

/*
 * True: a segment that PyTorch took for a workspace of cuBLAS, by the stack of the driver's call; its block has a stack of Python
 * only.  The allocator makes segments above 20 MiB for one block; smaller workspaces share theirs, and stay tensors.
 */
static bool is_workspace(struct sl_process *process, const struct sl_site *site)
{
	uint64_t blocks = sl_model_blocks_at_peak(process->model, site), bytes = sl_model_site_at_peak(process->model, site);

	return site->kind == SL_KIND_device && sl_model_is_cache(sl_model_library(process->model, site)) &&
	       bytes > (20 << 20) * blocks && sl_process_calls(process, site->stack, SL_ROLES_WORKSPACE);
}

static struct sl_roles *roles_of(struct sl_process *process)
{
	const struct sl_tracks *tracks = &process->model->tracks;
	struct sl_stack_frame frames[SL_STACK_MAX];
	struct sl_roles *roles = process->roles;
	struct sl_idmap seen = {0};

	if (roles)
		return roles;
	roles = process->roles = sl_memory_must(calloc(1, sizeof(*roles)));
	roles->of = sl_memory_must(calloc(process->model->sites.count + 1, 1));
	for (size_t i = 0; i < tracks->count; i++)
		note_modules(roles, &seen, frames, sl_process_stack(process, frames, tracks->item[i].stack));
	sl_idmap_free(&seen);
	for (size_t i = 0; i < process->model->sites.count; i++)
		if (is_workspace(process, &process->model->sites.item[i]))
			*SL_PUSH(&roles->workspaces) = (uint32_t)i;
	if (roles->modules.count)
		qsort(roles->modules.item, roles->modules.count, sizeof(*roles->modules.item), sl_stats_by_number);
	return roles;
}

#define TEMPORARY_TIMES 50 /* state is made anew for each of a few models */

/* True: its blocks are not made again and again. */
static bool stays(const struct sl_track *track)
{
	return track->births <= 2 * track->most_blocks;
}

/* Uses the innermost frame that tells anything. */
static enum phase phase_of_stack(struct sl_process *process, const struct sl_roles *roles, struct sl_stack stack)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_stack(process, frames, stack);
	enum phase phase = NONE;

	for (unsigned i = 0; i < count && phase == NONE; i++)
		phase = phase_of_frame(roles, &frames[i]);
	return phase;
}

/* A workspace or a communication library decides wherever it appears. */
static enum phase phase_at(struct sl_process *process, const struct sl_roles *roles, const struct sl_site *site)
{
	const char *label = site->label ? sl_defs_text(process->model->defs, site->label) : NULL;
	enum phase phase = phase_among(libraries, SL_COUNT(libraries), sl_model_library(process->model, site));

	phase = phase == NONE ? phase_of_stack(process, roles, site->stack) : phase;
	return phase == NONE && label && !strcmp(label, "backward_#") ? BACKWARD : phase;
}

bool sl_roles_makes_weights(struct sl_process *process, struct sl_stack stack)
{
	static const char *const loaders[] = {"/torch/serialization.py", "/safetensors/torch.py"}; /* of what, they do not know */
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_stack(process, frames, stack);

	for (unsigned i = 0; i < count; i++)
		for (size_t k = 0; k < SL_COUNT(loaders); k++)
			if (frames[i].python && frames[i].file && strstr(frames[i].file, loaders[k]))
				return true;
	return phase_of_stack(process, roles_of(process), stack) == MAKING;
}

bool sl_roles_is_loading(struct sl_process *process, const struct sl_track *track)
{
	const struct sl_tracks *tracks = &process->model->tracks;
	bool loads = sl_roles_makes_weights(process, track->stack);

	for (size_t i = 0; i < tracks->count && loads; i++)
		loads = tracks->item[i].first_ns > track->last_ns ||
			phase_of_stack(process, roles_of(process), tracks->item[i].stack) != FORWARD;
	return loads;
}

/* How often the steps made the same again: the least of what forward and backward passes make.  0: none did. */
static uint64_t steps_of(struct sl_process *process, struct sl_roles *roles)
{
	const struct sl_model *model = process->model;
	uint64_t least = UINT64_MAX;

	if (roles->steps)
		return roles->steps - 1;
	for (size_t i = 0; i < model->sites.count; i++) {
		const struct sl_track *track = &model->tracks.item[model->sites.item[i].track];
		enum phase phase = phase_at(process, roles, &model->sites.item[i]);

		if (track->most_blocks && track->births / track->most_blocks < least && (phase == FORWARD || phase == BACKWARD))
			least = track->births / track->most_blocks;
	}
	roles->steps = least == UINT64_MAX ? 1 : least + 1;
	return roles->steps - 1;
}

static enum sl_role find(struct sl_process *process, struct sl_roles *roles, const struct sl_site *site)
{
	const struct sl_track *track = &process->model->tracks.item[site->track];

	switch (phase_at(process, roles, site)) {
	case MAKING:
		return stays(track) ? SL_ROLE_PARAMETERS : SL_ROLE_UNKNOWN;
	case SERVING:
		return SL_ROLE_KV_CACHE;
	case COPYING:
		return SL_ROLE_PARAMETERS;
	case FORWARD:
		return SL_ROLE_ACTIVATIONS;
	case BACKWARD:
		return SL_ROLE_GRADIENTS;
	case OPTIMIZING:
		if (stays(track) || SL_SEVERAL * track->births <= track->most_blocks * steps_of(process, roles))
			return SL_ROLE_OPTIMIZER;
		return track->births >= TEMPORARY_TIMES * track->most_blocks ? SL_ROLE_WORKSPACE : SL_ROLE_UNKNOWN;
	case WORKING:
		return SL_ROLE_WORKSPACE;
	case TALKING:
		return SL_ROLE_COMMUNICATION;
	case NONE:
	case OTHER:
		break;
	}
	return SL_ROLE_UNKNOWN;
}

enum sl_role sl_roles_of(struct sl_process *process, const struct sl_site *site)
{
	struct sl_roles *roles = roles_of(process);
	size_t at = (size_t)(site - process->model->sites.item);

	if (!roles->of[at])
		roles->of[at] = (uint8_t)(1 + find(process, roles, site));
	return (enum sl_role)(roles->of[at] - 1);
}

enum sl_role sl_roles_of_track(struct sl_process *process, const struct sl_track *track)
{
	const struct sl_site *site = sl_model_site_of(process->model, track, NULL);

	return site ? sl_roles_of(process, site) : SL_ROLE_UNKNOWN;
}

/* Its frames of Python, innermost first. */
static unsigned python_of(struct sl_process *process, struct sl_stack stack, struct sl_stack_frame *frames)
{
	unsigned all = sl_process_stack(process, frames, stack), count = 0;

	for (unsigned i = 0; i < all; i++)
		if (frames[i].python)
			frames[count++] = frames[i];
	return count;
}

/* True: one line called both: the callers of `call`, which has `count` frames from there on outward, are those of the other. */
static bool is_same_call(const struct sl_stack_frame *call, unsigned count, const struct sl_stack_frame *others, unsigned size)
{
	if (size < count || !call->function || !others[size - count].function ||
	    strcmp(call->function, others[size - count].function) != 0)
		return false;
	for (unsigned k = 1; k < count; k++)
		if (!sl_place_same(&call[k], &others[size - count + k]))
			return false;
	return true;
}

bool sl_roles_is_few_calls(struct sl_process *process, const struct sl_track *track)
{
	const struct sl_tracks *tracks = &process->model->tracks;
	struct sl_stack_frame frames[SL_STACK_MAX], others[SL_STACK_MAX];
	const struct sl_roles *roles = roles_of(process);
	unsigned count = python_of(process, track->stack, frames), call = count;
	uint64_t calls = UINT64_MAX; /* in each call each place asks at least once */
	enum phase phase = NONE;

	while (call && phase == NONE)
		phase = phase_of_frame(roles, &frames[--call]);
	for (size_t i = tracks->count; phase != NONE && i--;) {
		const struct sl_track *other = &tracks->item[i];

		if (other->kind != track->kind || !other->births)
			continue;
		if (is_same_call(frames + call, count - call, others, python_of(process, other->stack, others)))
			calls = other->births < calls ? other->births : calls;
		else if (other->last_ns > track->first_ns)
			return false;
	}
	return phase == OPTIMIZING || calls < SL_SEVERAL; /* an optimizer is not called again without other calls between */
}

struct sl_born sl_roles_held(const struct sl_model *model, const struct sl_site *site, bool at_peak)
{
	if (model->born)
		return model->born[site - model->sites.item];
	if (at_peak)
		return (struct sl_born){.bytes = sl_model_site_at_peak(model, site),
					.blocks = sl_model_blocks_at_peak(model, site)};
	return (struct sl_born){.bytes = site->live_bytes, .blocks = site->live_blocks};
}

struct sl_born sl_roles_workspaces(struct sl_process *process, const struct sl_site *tensors, bool at_peak)
{
	const struct sl_roles *roles = roles_of(process);
	const struct sl_model *model = process->model;
	struct sl_born all = sl_roles_held(model, tensors, at_peak), workspaces = {0};

	for (size_t i = 0; tensors->kind == SL_KIND_block && tensors->stack.python && i < roles->workspaces.count; i++) {
		const struct sl_site *site = &model->sites.item[roles->workspaces.item[i]];
		struct sl_born memory = sl_roles_held(model, site, at_peak);

		if (site->stack.python != tensors->stack.python || site->thread != tensors->thread ||
		    site->device != tensors->device || workspaces.bytes + memory.bytes > all.bytes)
			continue;
		workspaces.bytes += memory.bytes;
		workspaces.blocks += memory.blocks;
	}
	return workspaces;
}

void sl_roles_at_error(struct sl_process *process, const struct sl_oom *oom, uint64_t bytes[SL_ROLE_COUNT])
{
	const struct sl_site *site;

	memset(bytes, 0, SL_ROLE_COUNT * sizeof(*bytes));
	for (const struct sl_owner *owner = NULL; (owner = sl_owners_at_error(process, oom, owner, &site));)
		if (sl_owners_shows(process, site))
			bytes[sl_roles_of(process, site)] += owner->bytes;
}

bool sl_roles_at_peak(struct sl_process *process, const struct sl_device_state *device, uint64_t bytes[SL_ROLE_COUNT])
{
	const struct sl_model *model = process->model;
	uint64_t rest, known_bytes = 0, workspace_bytes, held_bytes;
	const char *unused;

	memset(bytes, 0, SL_ROLE_COUNT * sizeof(*bytes));
	for (const struct sl_site *site = NULL;
	     (site = sl_owners_next(process, device->device, SL_WEIGH_PEAK, site, &held_bytes));) {
		workspace_bytes = sl_roles_workspaces(process, site, true).bytes;
		bytes[SL_ROLE_WORKSPACE] += workspace_bytes;
		bytes[sl_roles_of(process, site)] += held_bytes - workspace_bytes;
	}
	for (int role = SL_ROLE_UNKNOWN + 1; role < SL_ROLE_COUNT; role++)
		known_bytes += bytes[role];
	unused = sl_model_rest_at_peak(model, device, &rest);
	if (unused)
		bytes[strstr(unused, "folded") ? SL_ROLE_UNKNOWN : SL_ROLE_CACHE] += rest;
	return known_bytes > 0;
}

void sl_roles_free(struct sl_roles *roles)
{
	if (!roles)
		return;
	free(roles->modules.item);
	free(roles->workspaces.item);
	free(roles->of);
	free(roles);
}
