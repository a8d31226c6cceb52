/* SPDX-License-Identifier: MIT */
/*
 * Follows a block through one function of Python: which names hold it from a line on, whether the function hands it out, and
 * which lines store it where it outlives the pass.  keeper.c asks this of each frame of a stack.
 */
#pragma once

#include "analyzer/source/script.h"

/* A value holds no block.  The graph or an unknown call may hold it.  It is a part of what has it.  It is or has the block. */
enum sl_flow_hold { SL_HOLDS_NOT, SL_HOLDS_GRAPH, SL_HOLDS_PART, SL_HOLDS_IT };

/* Lines that store it, the surest last.  A local of a function that a loop calls dies.  A sum has the graph of all. */
enum sl_flow_store { SL_STORE_DYING, SL_STORE_SUM, SL_STORE_LOCAL, SL_STORE_CONTAINER };

struct sl_flow_file {
	const char *path; /* as the frame names it */
	struct sl_script python;
	bool imported; /* its imports were read too */
};

struct sl_flow_found {
	const struct sl_flow_file *file;
	uint32_t line, function;		 /* function: statement of its header */
	const struct sl_script_token *container; /* the last word of its name */
	enum sl_flow_store store;
	enum sl_flow_hold hold;
};

/* The run of one question. */
struct sl_flow_case {
	struct sl_source *source;
	const struct sl_trace *trace;
	SL_VECTOR(struct sl_flow_file *) files;
	SL_VECTOR(struct sl_flow_found) found;
	uint64_t steps;	   /* tokens that were looked at */
	bool looped;	   /* a frame further out is in a loop */
	bool without_grad; /* a frame further out runs without autograd */
};

#define SL_FLOW_NAMES 64

struct sl_flow {
	struct sl_flow_case *of;
	struct sl_flow_file *file;
	uint32_t function;	       /* header; SL_SCRIPT_NONE: the module */
	uint32_t line;		       /* that made it, or called what did; 0: it came by a parameter */
	bool first;		       /* the frame is the innermost: the line made it */
	const char *callee;	       /* of that call; NULL: any call of the line */
	enum sl_flow_hold callee_hold; /* how the call's value holds it */
	uint32_t callee_parts, parts;  /* which elements of the tuple that the call, or the function, gives hold it; 0: any */
	unsigned calls;		       /* how deep calls are entered still */
	uint32_t statement;	       /* that is looked at */
	struct {
		const struct sl_script_token *name, *attribute; /* attribute NULL: the name itself */
		enum sl_flow_hold hold;
	} names[SL_FLOW_NAMES];
	unsigned name_count, depth;
	enum sl_flow_hold returned;
	bool constructs;		    /* the object that it is of is being made by this stack */
	bool self_holds;		    /* an attribute of its object holds it */
	bool linked;			    /* the statement makes an object that is given the one before it */
	const struct sl_script_token *link; /* the constructor's parameter that has that one; NULL: none */
};

/* Methods that put what they are given into their object. */
#define SL_FLOW_STORES " append appendleft add extend extendleft insert setdefault update put put_nowait push "

void sl_flow_end(struct sl_flow_case *of);

/* NULL: it may not be read. */
struct sl_flow_file *sl_flow_open(struct sl_flow_case *of, const char *path);

/* From statement `from` to the function's end, and around its loops. */
void sl_flow_run(struct sl_flow *f, uint32_t from);

/*
 * The program's functions of that name, of `class` where it is not NULL, are called with the block as all their arguments.
 * False: there are none, or too many.
 */
bool sl_flow_enter_all(struct sl_flow *f, const struct sl_script_token *name, const struct sl_script_token *class);

void sl_flow_hold(struct sl_flow *f, const struct sl_script_token *name, const struct sl_script_token *attribute,
		  enum sl_flow_hold hold);

/* True: the statement runs without autograd: a decorator or a `with` around it says so. */
bool sl_flow_is_without_grad(const struct sl_script *python, uint32_t statement);
