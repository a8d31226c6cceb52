/* SPDX-License-Identifier: MIT */
/* What a program keeps from step to step. */
#pragma once

#include "analyzer/fit/program.h"

/* A stack of which most steps keep blocks. */
struct sl_fit_survivors {
	unsigned steps; /* that keep some */
	bool grows;
};

/* Blocks that were made in the last complete step at one line of the loop, by modules. */
struct sl_fit_line {
	unsigned made, survived;
	unsigned inner; /* kept, and made by a layer of PyTorch's */
	unsigned after; /* kept, and made outside of modules: what was computed of theirs */
};

struct sl_fit_keeps {
	struct sl_fit_survivors *stacks; /* for each stack of the program */
	size_t *leaves;			 /* for each block, the op at which the statement of the loop that made it has ended */
	struct sl_idmap ends;		 /* of line << 32 | step: the op at which that statement has ended */
	size_t *passes;			 /* for each step, the op after the last request of its backward passes; 0: it has none */
	SL_VECTOR(struct sl_fit_line) lines;
	struct sl_idmap line_numbers;
	unsigned from, to; /* the last complete steps: what one of them keeps, the program keeps */
	bool any;
};

void sl_fit_keeps_find(struct sl_fit_keeps *keeps, const struct sl_fit_program *program);
void sl_fit_keeps_free(struct sl_fit_keeps *keeps);

/* True: the program keeps this block, as it keeps one of each step. */
bool sl_fit_keeps_it(const struct sl_fit_keeps *keeps, const struct sl_fit_program *program, uint32_t life);
/* True: what is kept at the statement of this block is autograd's graph: most of what its modules requested. */
bool sl_fit_keeps_graph(const struct sl_fit_keeps *keeps, const struct sl_fit_program *program, uint32_t life);
