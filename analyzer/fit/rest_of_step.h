/* SPDX-License-Identifier: MIT */
/* The requests that were still to come when a program ran out of memory: program.h says from where they are known. */
#pragma once

#include "analyzer/fit/program.h"

/* Sizes of blocks that stay, as parameters do; the caller frees it.  A module's call makes workspaces of libraries. */
struct sl_idmap sl_fit_rest_parameters(const struct sl_fit_program *program);

/* Gradients: blocks that autograd made and that stay, each of a parameter's size. */
struct sl_fit_gradients {
	SL_VECTOR(uint32_t) list; /* lives; the caller's */
};
void sl_fit_rest_gradients(struct sl_fit_gradients *gradients, const struct sl_fit_program *program);

/* Adds them to a program that failed. */
void sl_fit_rest_add(struct sl_fit_program *program);
