/* SPDX-License-Identifier: MIT */
/*
 * What a recorded program did with memory, as changes of it need to know: each block from its request to its free, the steps of its
 * main loop, and the requests that were still to come when it ran out of memory.
 */
#pragma once

#include "analyzer/fit/run.h"
#include "analyzer/trace/idmap.h"

/* A line of Python that is active. */
struct sl_fit_place {
	const char *file, *function; /* NULL: not known */
	uint32_t line;
	bool own;   /* the user's */
	bool torch; /* of PyTorch */
};

/* A Python stack, outermost first. */
struct sl_fit_stack {
	struct sl_fit_place *places;
	unsigned count;
	bool module, backward, optimizer; /* a call of nn.Module, of autograd, of torch.optim is active */
	bool state;			  /* torch.optim makes its state */
	bool stepper;			  /* torch.optim called an optimizer of the program's */
	bool guarded;			  /* a function with torch.no_grad or inference_mode is */
	bool copies;			  /* copy.deepcopy is */
	bool loads;			  /* nn.Module.to or cuda is */
};

#define SL_FIT_APART (1U << 17) /* the first number of those that stay, and that the next step lacks */

/* A block from its request on. */
struct sl_fit_life {
	size_t birth, death; /* ops of `whole`; death SL_FIT_GAP: it lives at the end, or when the program leaves its loop, */
	size_t freed;	     /* and ends here; SL_FIT_GAP: never */
	uint64_t bytes;
	uint32_t python;
	uint32_t nth;  /* of its stack in its step, from 0 on */
	unsigned step; /* from 1 on; 0: before the first */
	bool before;   /* it was there before a window's first op */
};

/* How what was still to come is known. */
enum sl_fit_rest {
	SL_FIT_REST_NONE,     /* not at all: only the failed request can be judged */
	SL_FIT_REST_RECORDED, /* nothing was to come: the program did not fail */
	SL_FIT_REST_STEP,     /* from the step before */
	SL_FIT_REST_STATE,    /* the optimizer makes its state: two blocks for each gradient, and the step's first part once more */
};

struct sl_fit_program {
	const struct sl_fit_recording *recorded;
	struct sl_fit_recording whole; /* the ids of its blocks are indexes into lives; the failed request is granted */
	SL_VECTOR(struct sl_fit_life) lives;
	SL_VECTOR(struct sl_fit_stack) stacks;
	struct sl_idmap stack_ids;
	size_t highest;		 /* op of `whole`: the request at which most was held */
	uint64_t highest_bytes;	 /* what was held then */
	size_t failed;		 /* op of `whole`; SL_FIT_GAP: it did not fail */
	size_t end;		 /* of the step that failed; later ops are one step more */
	SL_VECTOR(size_t) steps; /* their first ops; the last one may have been cut by the failure */
	unsigned depth;		 /* of the loop's line in the stacks; UINT_MAX: no loop */
	enum sl_fit_rest rest;
	uint64_t temporary; /* SL_FIT_REST_STATE: the largest gradient */
	size_t states;	    /* the same: the first op of the optimizer */
	uint32_t update;    /* the same: the stack of its temporaries; 0: those that were added */
};

/* The recording stays as long as the program. */
void sl_fit_program_read(struct sl_fit_program *program, const struct sl_fit_recording *recording);
/* A block that is requested by the next op of `whole`; returns its index. */
uint32_t sl_fit_program_add(struct sl_fit_program *program, uint64_t bytes, uint32_t python);
/* Numbers all blocks anew. */
void sl_fit_program_number(struct sl_fit_program *program);
void sl_fit_program_free(struct sl_fit_program *program);

/* True: they are one line of one file. */
bool sl_fit_place_is(const struct sl_fit_place *a, const struct sl_fit_place *b);
const struct sl_fit_stack *sl_fit_program_stack(const struct sl_fit_program *program, uint32_t python);
/* The stack that requested a block. */
static inline const struct sl_fit_stack *sl_fit_program_maker(const struct sl_fit_program *program, uint32_t life)
{
	return sl_fit_program_stack(program, program->lives.item[life].python);
}
/* The block that was refused.  Only of a program that failed. */
static inline const struct sl_fit_life *sl_fit_program_failed(const struct sl_fit_program *program)
{
	return &program->lives.item[program->whole.ops.item[program->failed].id];
}
/* The first request of a step, its input; 0: another line made it than that of the first step. */
uint64_t sl_fit_program_input(const struct sl_fit_program *program, unsigned step);
/* The request that failed; without an error the one at which most was held. */
size_t sl_fit_program_moment(const struct sl_fit_program *program);
/* The innermost line of the user's own; NULL: none. */
const struct sl_fit_place *sl_fit_program_own(const struct sl_fit_stack *stack);
/* The innermost line of the user's own inside the main loop that no module was called by; NULL: none. */
const struct sl_fit_place *sl_fit_program_caller(const struct sl_fit_program *program, uint32_t python);
/* The line of the main loop in this stack; NULL: it is outside. */
const struct sl_fit_place *sl_fit_program_statement(const struct sl_fit_program *program, uint32_t python);
