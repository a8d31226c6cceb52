/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/commands.h"

#include "analyzer/base/format.h"
#include "analyzer/base/text_join.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/held_by.h"
#include "analyzer/report/place.h"
#include "analyzer/report/roles.h"
#include "analyzer/report/tensor.h"
#include "analyzer/report/window_facts.h"

/* The names from the root to a site. */
struct path {
	struct sl_arena arena; /* holds the names */
	const char *names[SL_STACK_MAX + 3];
	unsigned count;
};

static const char *described(struct sl_arena *arena, const struct sl_stack_frame *frame)
{
	char text[SL_STACKS_NAME_BYTES];

	sl_stacks_describe(text, sizeof(text), frame);
	return sl_arena_strdup(arena, text);
}

/* Ordinals belong to a process; a known uuid names the device for all processes. */
static const char *name_device(struct sl_arena *arena, const struct sl_process *process, int device)
{
	const struct sl_device *def = sl_defs_device(process->model->defs, device);

	if (device < 0)
		return "no device";
	if (def && def->uuid)
		return sl_arena_printf(arena, "%s, %s", def->name ? def->name : "device", def->uuid);
	return sl_arena_printf(arena, "device %d", device);
}

static const char *name_rank(struct sl_arena *arena, const struct sl_process *process)
{
	return sl_arena_strdup(arena, SL_WHO(process));
}

/* Functions with the same name in two files are different. */
static const char *name_function(struct sl_arena *arena, const struct sl_stack_frame *frame)
{
	const char *file = frame->file ? sl_paths_name(frame->file) : frame->module;

	return sl_arena_printf(arena, "%s%s%s", file ? file : "", file ? " " : "", frame->function);
}

/* The name of a site's first level; frames: its whole stack.  NULL: the stack itself makes up the levels. */
static const char *group_of(struct sl_arena *arena, struct sl_process *process, const struct sl_site *site,
			    const struct sl_stack_frame *stack, unsigned count, enum sl_group_by by)
{
	const struct sl_thread *thread = sl_defs_thread(process->model->defs, site->thread);
	const struct sl_stack_frame *place = by == SL_BY_PLACE || by == SL_BY_FUNCTION ? sl_place_of(process, stack, count) : NULL;

	switch (by) {
	case SL_BY_STACK:
		return NULL;
	case SL_BY_LABEL:
		return site->label ? sl_defs_text(process->model->defs, site->label) ?: "?" : "no label"; /* "?": a damaged trace */
	case SL_BY_THREAD:
		return sl_arena_printf(arena, "pid %lld thread %lld", (long long)process->trace->header.pid,
				       thread ? (long long)thread->tid : (long long)site->thread);
	case SL_BY_RANK:
		return name_rank(arena, process);
	case SL_BY_DEVICE:
		return name_device(arena, process, site->device);
	case SL_BY_NAME:
		return "no name";
	case SL_BY_HOLDER:
		return "no variable that Python told";
	case SL_BY_TYPE:
		return "no known type";
	case SL_BY_MODULE:
		return "in no module";
	case SL_BY_ROLE:
		return sl_roles_name(sl_roles_of(process, site));
	default:
		return place && by == SL_BY_FUNCTION && place->function ? name_function(arena, place)
		       : place						? described(arena, place)
									: sl_model_library(process->model, site);
	}
}

/*
 * A library's frames between the program's own are left out.  The innermost ones lose those between the first and the last.  Frames
 * are innermost first.
 */
static unsigned fold_libraries(struct sl_stack_frame *frames, unsigned count)
{
	unsigned inner = 0, kept_count = 0;

	while (inner < count && !frames[inner].own)
		inner++;
	for (unsigned i = 0; i < count; i++)
		if (frames[i].own || !i || (i + 1 == inner && inner < count && !sl_place_is_wrapper(&frames[i])) ||
		    (inner == count && i + 1 == count))
			frames[kept_count++] = frames[i];
	return kept_count;
}

static void follow_path(struct path *path, struct sl_process *process, const struct sl_site *site, const struct sl_group_how *how)
{
	struct sl_stack_frame stack[SL_STACK_MAX];
	unsigned count = sl_process_stack(process, stack, site->stack);
	const char *group = group_of(&path->arena, process, site, stack, count, how->by);

	path->count = 0;
	if (how->parted)
		path->names[path->count++] = sl_arena_printf(&path->arena, "device %d", site->device);
	if (group)
		path->names[path->count++] = group;
	if (!how->all_frames)
		count = sl_stacks_fold(stack, count);
	if (how->compact)
		count = fold_libraries(stack, count);
	if (!count)
		path->names[path->count++] = sl_model_library(process->model, site);
	for (unsigned i = 0; how->compact && group && i < count; i++)
		if (!strcmp(described(&path->arena, &stack[i]), group))
			count = i; /* below a place are the frames inside of it */
	for (unsigned i = count; i--;)
		path->names[path->count++] = described(&path->arena, &stack[i]);
	if (process->model->recording.lists_tensors && path->count == 2 && !strcmp(path->names[0], path->names[1]))
		path->count = 1; /* what blocks have beyond what was asked for */
}

static void add_rest(struct sl_owners *owners, struct sl_process *process, const struct sl_device_state *device,
		     const struct sl_group_how *how)
{
	struct sl_arena arena = {0};
	uint64_t bytes;
	const char *name =
		how->at_peak ? sl_model_rest_at_peak(process->model, device, &bytes) : sl_model_unused(&device->torch, &bytes);
	const char *names[3];
	unsigned levels = 0, count;
	struct sl_rest rests[SL_RESTS_MAX];

	count = sl_model_rests(process->model, how->at_peak ? &device->torch_at_peak : &device->torch, name, bytes, rests);
	if (how->parted)
		names[levels++] = sl_arena_printf(&arena, "device %d", device->device);
	if (how->by == SL_BY_DEVICE)
		names[levels++] = name_device(&arena, process, device->device);
	if (how->by == SL_BY_RANK)
		names[levels++] = name_rank(&arena, process);
	else if (how->by == SL_BY_ROLE)
		names[levels++] = sl_roles_name(SL_ROLE_CACHE);
	for (unsigned i = 0; i < count; i++) {
		names[levels] = rests[i].name;
		sl_owners_add(owners, names, levels + 1, rests[i].bytes, 0);
	}
	sl_arena_free(&arena);
}

#define STACK_BYTES 4096 /* of a whole stack in one name */

/* Joins the whole stack into one name, innermost first. */
static void join(struct path *path)
{
	struct sl_text_join line = sl_text_join_begin(sl_arena_alloc(&path->arena, STACK_BYTES), STACK_BYTES);

	for (unsigned i = path->count; i--;) {
		sl_text_join_add_text(&line, path->names[i]);
		sl_text_join_add_text(&line, i ? " < " : "");
	}
	sl_text_join_end(&line);
	path->names[0] = line.text;
}

static void add_lives(struct sl_group *owned, uint32_t at, const struct sl_process *process, size_t index)
{
	const struct sl_site *site = &process->model->sites.item[index];
	const struct sl_lives *seen = process->model->lives ? &process->model->lives[index] : NULL;
	struct sl_tree_lives *lives;

	while (owned->lives.count < owned->owners.share.count)
		*SL_PUSH(&owned->lives) = (struct sl_tree_lives){0};
	lives = &owned->lives.item[at];
	lives->unknown |= process->model->folded_ns != 0 || !seen;
	lives->timeless |= !process->model->recording.has_times;
	lives->made += site->total_blocks;
	lives->never_freed += site->live_blocks;
	if (!seen)
		return;
	lives->temporary += seen->temporary;
	lives->ended_ns += seen->ended_ns;
	for (unsigned i = 0; i < SL_LIVES_CLASSES; i++)
		lives->sizes[i] += seen->sizes[i];
}

static bool shows(const struct sl_process *process, const struct sl_site *site, const struct sl_group_how *how)
{
	return how->kind ? site->kind == how->kind : sl_owners_shows(process, site);
}

/* "?": missing in a damaged trace. */
static const char *name_given(const struct sl_model *model, uint32_t text)
{
	return sl_defs_text(model->defs, text) ?: "?";
}

/* "trace[*]", "graph of losses[*]", "cycle of Node", "batch of train()" */
static const char *name_holder(const struct sl_held_by *holder, char *out, size_t size)
{
	bool apart = !strcmp(holder->how, "graph") || !strcmp(holder->how, "cycle"), local = *holder->function;

	snprintf(out, size, "%s%s%s%s%s%s", apart ? holder->how : "", apart ? " of " : "", holder->path, local ? " of " : "",
		 holder->function, local ? "()" : "");
	return out;
}

/* NULL: not known. */
static const char *name_part(struct sl_arena *arena, const struct sl_model *model, uint32_t called, enum sl_group_by by)
{
	const struct sl_tensor *tensor = &model->tensors.item[called];
	struct sl_held_by holder;

	if (by == SL_BY_NAME)
		return name_given(model, model->called.item[called].text);
	if (by == SL_BY_HOLDER)
		return sl_held_by_read(name_given(model, model->variables.item[called].text), &holder)
			       ? name_holder(&holder, sl_arena_alloc(arena, sizeof(holder.text)), sizeof(holder.text))
			       : NULL;
	if (by == SL_BY_TYPE)
		return sl_tensor_type(tensor);
	return tensor->module ? name_given(model, tensor->module) : NULL;
}

/* Adds the blocks by names or variables, or the tensors by type or module.  The rest of the place follows like other memory. */
static void add_named(struct sl_group *owned, struct sl_process *process, const struct sl_group_how *how)
{
	const struct sl_model *model = process->model;
	struct path path = {0};

	for (size_t i = 0; i < model->born_named.count; i++) {
		const struct sl_born_named *named = &model->born_named.item[i];
		const struct sl_site *site = &model->sites.item[named->site];

		if (!shows(process, site, how))
			continue;
		follow_path(&path, process, site, how);
		path.names[how->parted] = name_part(&path.arena, model, named->called, how->by) ?: path.names[how->parted];
		sl_owners_add(&owned->owners, path.names, path.count, named->bytes, named->blocks);
		sl_arena_reset(&path.arena);
	}
	sl_arena_free(&path.arena);
}

/* Bytes of the site at that moment.  False: it held none. */
static bool held_of(const struct sl_process *process, size_t index, const struct sl_group_how *how, struct sl_born *memory)
{
	const struct sl_model *model = process->model;

	*memory = sl_roles_held(model, &model->sites.item[index], how->at_peak);
	if (model->born && how->by >= SL_BY_NAME) {
		memory->bytes -= memory->named_bytes;
		memory->blocks -= memory->named_blocks;
	}
	return memory->bytes != 0;
}

/* Workspaces of cuBLAS are PyTorch's tensors, whatever the line that asked makes; the rest of the site has its own role. */
static void add_workspaces(struct sl_group *owned, struct sl_process *process, const struct sl_site *site,
			   const struct sl_group_how *how, struct path *path, struct sl_born *memory)
{
	struct sl_born workspaces = sl_roles_workspaces(process, site, how->at_peak);
	const char *role = path->names[how->parted];
	uint64_t made = workspaces.blocks < site->total_blocks ? workspaces.blocks : site->total_blocks;
	uint32_t at, from;

	if (!workspaces.bytes)
		return;
	path->names[how->parted] = sl_roles_name(SL_ROLE_WORKSPACE);
	at = sl_owners_add(&owned->owners, path->names, how->lives ? 1 : path->count, workspaces.bytes, workspaces.blocks);
	path->names[how->parted] = role;
	memory->bytes -= workspaces.bytes;
	memory->blocks -= workspaces.blocks < memory->blocks ? workspaces.blocks : memory->blocks;
	if (!how->lives)
		return;
	from = sl_owners_add(&owned->owners, path->names, 1, 0, 0);
	while (owned->lives.count < owned->owners.share.count)
		*SL_PUSH(&owned->lives) = (struct sl_tree_lives){0};
	owned->lives.item[at].made += made; /* PyTorch keeps them, so that each that is held was made once */
	owned->lives.item[from].made -= made;
	owned->lives.item[at].never_freed += made < site->live_blocks ? made : site->live_blocks;
	owned->lives.item[from].never_freed -= made < site->live_blocks ? made : site->live_blocks;
}

void sl_group_add(struct sl_group *owned, struct sl_process *process, const struct sl_group_how *how)
{
	struct path path = {0};

	if (how->by >= SL_BY_NAME)
		add_named(owned, process, how);
	for (size_t i = 0; i < process->model->sites.count; i++) {
		const struct sl_site *site = &process->model->sites.item[i];
		struct sl_born memory;
		uint32_t at;

		if (!(held_of(process, i, how, &memory) || (how->lives && site->total_blocks)) || !shows(process, site, how))
			continue;
		follow_path(&path, process, site, how);
		if (how->by == SL_BY_ROLE)
			add_workspaces(owned, process, site, how, &path, &memory);
		if (how->lives && how->by == SL_BY_STACK)
			join(&path);
		at = sl_owners_add(&owned->owners, path.names, how->lives ? 1 : path.count, memory.bytes, memory.blocks);
		if (how->lives)
			add_lives(owned, at, process, i);
		sl_arena_reset(&path.arena);
	}
	sl_arena_free(&path.arena);
	for (size_t d = 1; d < SL_COUNT(process->model->devices) && !how->between && !how->kind; d++)
		if (process->model->devices[d])
			add_rest(&owned->owners, process, process->model->devices[d], how);
}

static double weight_of(const struct sl_group *owned, enum sl_group_sort sort, uint32_t at)
{
	const struct sl_tree_lives *lives = &owned->lives.item[at];
	uint64_t ended = lives->made - lives->never_freed;

	return sort == SL_SORT_MADE	   ? (double)lives->made
	       : sort == SL_SORT_KEPT	   ? (double)lives->never_freed
	       : sort == SL_SORT_TEMPORARY ? (double)lives->temporary
					   : (ended ? (double)lives->ended_ns / (double)ended : 0);
}

struct placed {
	double weight;
	uint32_t at, place; /* place: in the order so far */
};

static int by_weight(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	return SL_FALLING(x->weight, y->weight) ?: SL_RISING(x->place, y->place);
}

/* Sorts the owners of a table by another column, largest first; equal ones keep their order. */
static void sort_by(struct sl_group *owned, enum sl_group_sort sort)
{
	struct sl_share *share = owned->owners.share.item;
	struct placed *order = sl_memory_must(calloc(owned->owners.share.count, sizeof(*order)));
	uint32_t count = 0, *link = &share[0].child;

	for (uint32_t at = share[0].child; at; at = share[at].sibling, count++)
		order[count] = (struct placed){weight_of(owned, sort, at), at, count};
	qsort(order, count, sizeof(*order), by_weight);
	for (uint32_t i = 0; i < count; i++, link = &share[*link].sibling)
		*link = order[i].at;
	*link = 0;
	free(order);
}

void sl_group_sort(struct sl_group *owned, const struct sl_group_how *how)
{
	sl_owners_sort(&owned->owners);
	while (owned->lives.count < owned->owners.share.count) /* an empty one for owners that are not blocks */
		*SL_PUSH(&owned->lives) = (struct sl_tree_lives){0};
	if (how->sort)
		sort_by(owned, how->sort);
}
