/* SPDX-License-Identifier: MIT */
/*
 * What memory is for, in a program that trains or infers: told from the names in its stack (PyTorch's files; else methods called
 * forward and backward, classes that have such, optimizers), from the range backward_#, the library that asked, and whether a
 * place asks again in each step.  What none of these tells is unknown.  Main thread only: symbols are read.
 */
#ifndef ANALYZER_REPORT_ROLES_H
#define ANALYZER_REPORT_ROLES_H

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
	SL_ROLE_COUNT,
};

const char *sl_roles_name(enum sl_role role);

enum sl_role sl_roles_of(struct sl_process *process, const struct sl_site *site);

/* Bytes of each role at the peak of what was held of the device; false: of all of it nothing is known. */
bool sl_roles_at_peak(struct sl_process *process, const struct sl_device_state *device, uint64_t bytes[SL_ROLE_COUNT]);

#endif
