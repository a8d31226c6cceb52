/* SPDX-License-Identifier: MIT */
/*
 * What memory is used for, in a program that trains or infers.  The role is derived from names in the stack (PyTorch's files;
 * otherwise methods called forward and backward, classes that have such methods, optimizers), the range backward_#, the library
 * that allocated, and whether a place allocates again in each step.  Otherwise it is unknown.  Main thread only, since symbols
 * are read.
 */
#pragma once

#include "analyzer/report/report.h"

enum sl_role {
	SL_ROLE_UNKNOWN,
	SL_ROLE_PARAMETERS,
	SL_ROLE_GRADIENTS,
	SL_ROLE_OPTIMIZER,
	SL_ROLE_ACTIVATIONS,
	SL_ROLE_WORKSPACE,
	SL_ROLE_COMMUNICATION,
	SL_ROLE_CACHE,
	SL_ROLE_KV_CACHE,
	SL_ROLE_COUNT,
};

const char *sl_roles_name(enum sl_role role);

enum sl_role sl_roles_of(struct sl_process *process, const struct sl_site *site);
enum sl_role sl_roles_of_track(struct sl_process *process, const struct sl_track *track); /* that of its first site */

/* True: the stack makes, moves or loads a model's weights. */
bool sl_roles_makes_weights(struct sl_process *process, struct sl_stack stack);

/* What a site held: at the moment that the model was asked for, else at the peak or the end. */
struct sl_born sl_roles_held(const struct sl_model *model, const struct sl_site *site, bool at_peak);

/* True: the place makes weights, and none of them after a module had run. */
bool sl_roles_is_loading(struct sl_process *process, const struct sl_track *track);

/* What a site of tensors held then in segments that the same Python code took for workspaces of cuBLAS. */
struct sl_born sl_roles_workspaces(struct sl_process *process, const struct sl_site *tensors, bool at_peak);

/* Bytes of each role at the device's peak of held memory; false: nothing of it is known. */
bool sl_roles_at_peak(struct sl_process *process, const struct sl_device_state *device, uint64_t bytes[SL_ROLE_COUNT]);

/* The same at an error, of its largest owners. */
void sl_roles_at_error(struct sl_process *process, const struct sl_oom *oom, uint64_t bytes[SL_ROLE_COUNT]);

/*
 * True: since the place first asked for memory, all of its kind was asked for in fewer than four calls from one line: of a module,
 * a constructor, a backward pass or an optimizer.  Of rounds of the program's own this shows too few.
 */
bool sl_roles_is_few_calls(struct sl_process *process, const struct sl_track *track);

/* The first word in a part of a function's name that tells a role: its length, and where it begins.  0: none does. */
size_t sl_roles_word(const char *name, size_t size, size_t *from);

/* The function of PyTorch below which a segment is a workspace of cuBLAS. */
#define SL_ROLES_WORKSPACE "getCurrentCUDABlasHandle"
