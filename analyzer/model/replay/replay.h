/* SPDX-License-Identifier: MIT */
/* Applies the items of a trace, in time order, to a model: what each verb means. */
#pragma once

#include "analyzer/model/counts/ledger.h"
#include "analyzer/model/counts/sample_wait.h"

/* Borrows header and definitions. sl_replay_blank: a model that is filled by other means, to which nothing can be applied. */
struct sl_model *sl_replay_blank(const struct sl_header *header, const struct sl_defs *defs);
struct sl_model *sl_replay_new(const struct sl_header *header, const struct sl_defs *defs);
void sl_replay_free(struct sl_model *model);

/* To be called before the first item: takes in the totals of folded files. */
void sl_replay_folded(struct sl_model *model, const struct sl_folded *folded);

void sl_replay_apply(struct sl_model *model, const struct sl_item *item);

/* To be called after the last item: closes lines and ranges.  lost: events were lost, so that it is unknown what is hidden. */
void sl_replay_end(struct sl_model *model, bool lost);
/* Called if the program did not end well: then a smaller size that another function got after an error was not enough. */
void sl_replay_failed(struct sl_model *model);

/*
 * Frees what only the replay and analyses of a single process need: live blocks, threads, courses of tracks. lives: keep
 * model->lives.
 */
void sl_replay_rest(struct sl_model *model, bool lives);

/*
 * Finds stacks for a process's first calls.  Calls before the unwinder was open have no stack, only their return address; opening
 * it takes a while on a busy machine.
 */

/*
 * After the replay: a site without a stack gets that of later calls which returned to the same address and asked for blocks of the
 * same size, if these have one stack only.
 */
void sl_late_unwinder_name(struct sl_model *model);

/* Fills model->born_named and named figures of model->born.  After sl_between_born with the same instant, before sl_replay_rest. */
void sl_named_born(struct sl_model *model, uint64_t since_ns);
/* The same of what Python told at its last look; `called` is an index into model->variables. */
void sl_named_variables(struct sl_model *model);
/* name: the part's; block: its address. */
void sl_named_add(struct sl_model *model, uint32_t name, uint32_t site, uint64_t block, uint64_t bytes);

/* What PyTorch's blocks are.  The event comes before its block on the same thread. */
void sl_tensors_told(struct sl_model *model, const struct sl_item *item);
/* The tensor that the thread told last, an index into model->tensors, once; 0: nothing is known. */
uint32_t sl_tensors_take(struct sl_model *model, uint32_t thread);
/* owners: at twice a site's track, and one more for a pool's. */
void sl_tensors_of_owners(const struct sl_model *model, struct sl_owner *owners, size_t count);
/* As sl_named_born, but `called` is an index into model->tensors. */
void sl_tensors_born(struct sl_model *model, uint64_t since_ns);

/* What was in use beside a process's blocks when it ran out of memory: its contexts and code, and its neighbours. */

/* Takes from the device's last sample, and from what its context and code are known to take. */
void sl_samples_neighbours(struct sl_oom *oom, const struct sl_device_state *device);

/* What each file of this folder does with an item of the trace, and the functions they call in each other. */

/* Ends a segment that PyTorch's allocator gives back to the driver. */
void sl_torch_release(struct sl_model *model, int device, const struct sl_live *segment);
void sl_torch_end(struct sl_model *model, uint64_t block);
void sl_torch_apply_captures(struct sl_model *model, const struct sl_item *item);
void sl_torch_apply(struct sl_model *model, const struct sl_item *item);
/* Notes a driver-level block that may become a segment. */
void sl_torch_fresh(struct sl_model *model, uint32_t thread, struct sl_table *table, uint64_t address, uint64_t bytes);

void sl_vmm_apply(struct sl_model *model, const struct sl_item *item);
/* True: this is the only mapping of its physical memory and covers all of it; both together are then one segment of a pool. */
bool sl_vmm_is_whole(const struct sl_vmm *vmm, const struct sl_live *mapping);
void sl_vmm_pooled(struct sl_model *model, struct sl_live *mapping);
bool sl_vmm_release(struct sl_model *model, const struct sl_event *event); /* False: the handle is not of cuMemCreate. */
void sl_vmm_add(struct sl_model *model, const struct sl_event *event, uint32_t site);
struct sl_vmm *sl_vmm_new(void);
void sl_vmm_free(struct sl_vmm *vmm);

void sl_graphs_apply(struct sl_model *model, const struct sl_item *item);
/* Adds a block of the graph's memory whose allocation node was not recorded. */
void sl_graphs_made(struct sl_model *model, uint64_t graph, uint64_t address);
void sl_graphs_free_node(struct sl_model *model, uint64_t graph, uint64_t address);
struct sl_graphs *sl_graphs_new(void);
void sl_graphs_free(struct sl_graphs *graphs);
void sl_contexts_apply(struct sl_model *model, const struct sl_item *item);
/* The key (sl_by_context_key) of the context or device with whose end the block ends. */
uint64_t sl_contexts_key(const struct sl_model *model, const struct sl_live *live);
void sl_labels_apply(struct sl_model *model, const struct sl_item *item);
/* The current label and step of `thread` (0: of any thread that is in a range). */
struct sl_instant sl_labels_instant(const struct sl_model *model, uint32_t thread);
void sl_labels_finish(struct sl_model *model);
/* A part of a live block that has a name. */
struct sl_memory_names_part {
	struct sl_node node;
	uint64_t address, bytes;     /* as a struct sl_extent */
	uint64_t block, block_bytes; /* the block in which it lies and with which it ends */
	uint32_t called;	     /* index into the model's */
};

/* The live block at the address with room for so many bytes, or around it; NULL: its allocation was not recorded. */
const struct sl_live *sl_memory_names_block(struct sl_model *model, uint64_t address, uint64_t bytes);
void sl_memory_names_apply(struct sl_model *model, const struct sl_event *event);
void sl_memory_names_drop(struct sl_model *model, uint64_t address, uint64_t bytes);
/* The block has ended; parts of it lose their names. */
static inline void sl_memory_names_freed(struct sl_model *model, uint64_t address, uint64_t bytes)
{
	if (SL_UNLIKELY(model->called_parts.root))
		sl_memory_names_drop(model, address, bytes);
}
/* Counts contexts, modules, pools, graphs and executables as blocks of their creators. */
void sl_objects_apply(struct sl_model *model, const struct sl_item *item);
/* The graph executable or event that has the driver's handle; NULL: none. */
const struct sl_live *sl_objects_find(const struct sl_model *model, uint64_t handle);
void sl_collectives_call(struct sl_model *model, const struct sl_item *item);
void sl_samples_apply(struct sl_model *model, const struct sl_sample *sample);
/* Called at the end: uses the last sample of each device. */
void sl_samples_end(struct sl_model *model, bool lost);
void sl_ooms_check(struct sl_model *model, const struct sl_item *item, bool failed);
void sl_ooms_context(struct sl_model *model, const struct sl_oom_context *context);
void sl_ooms_torch(struct sl_model *model, const struct sl_item *item);
void sl_ooms_tensor(struct sl_model *model, const struct sl_item *item); /* a tensor was made */

/* Called when a range ends. */
void sl_collectives_range(struct sl_model *model, const struct sl_open_range *range, uint32_t thread);
