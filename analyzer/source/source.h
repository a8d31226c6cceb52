/* SPDX-License-Identifier: MIT */
/*
 * The program's source: the text of a frame's line, and what the text tells of what happens to a block that the line made.
 *
 * A trace names the files, so a stranger chooses them.  A file is read only if all of this holds (SECURITY.md, tests/hostile):
 *  - this host recorded the trace, and no pack brought it;
 *  - its name has the suffix of a source;
 *  - it lies below the recorded working folder, and no link leads to it;
 *  - it is a regular file of the trace's owner.  Where root recorded, the reader's own are read too;
 *  - it is not newer than the recording.  Otherwise its lines may be others;
 *  - it has at most SL_SOURCE_FILE bytes, and all files together SL_SOURCE_FILES.
 *
 * A handle serves a run, and each file is opened once.  Answers live as long as the handle.  One thread.
 */
#pragma once

#include "analyzer/symbols/symbols.h"

#define SL_SOURCE_FILE	(2u << 20)
#define SL_SOURCE_FILES (32u << 20)
#define SL_SOURCE_LINE	200 /* bytes of a line's text; a longer one is cut */

struct sl_source;
struct sl_source *sl_source_new(void);
void sl_source_free(struct sl_source *source); /* NULL: nothing */

/* Why a line has no text, in the order in which it is found out. */
enum sl_source_why {
	SL_SOURCE_FOUND,
	SL_SOURCE_OFF,	     /* there is no handle: --no-source, the server */
	SL_SOURCE_NO_LINE,   /* the frame names no file or line, or none that is a source */
	SL_SOURCE_ELSEWHERE, /* another host recorded it, or a pack brought it */
	SL_SOURCE_OUTSIDE,   /* not below the working folder, or the trace does not say which that was */
	SL_SOURCE_MISSING,   /* no such file; or a link, no regular file, or one that may not be read */
	SL_SOURCE_STRANGER,  /* a file of somebody else's */
	SL_SOURCE_CHANGED,   /* newer than the recording */
	SL_SOURCE_LARGE,     /* beyond a limit above */
	SL_SOURCE_SHORT,     /* the file has no such line, or it is empty */
	SL_SOURCE_WHY_END,
};

/* A clause for people: "the file has changed since"; "" for SL_SOURCE_FOUND. */
const char *sl_source_says(enum sl_source_why why);

/*
 * The text of the frame's line, without the blanks around it.  A hostile file has any bytes: print it through
 * analyzer/base/escape.h.  NULL: `why` tells.  source: NULL where nobody may read sources.  why: may be NULL.
 */
const char *sl_source_line(struct sl_source *source, const struct sl_trace *trace, const struct sl_stack_frame *frame,
			   enum sl_source_why *why);

/* The same with the blanks before it, for a line beside another one. */
const char *sl_source_text(struct sl_source *source, const struct sl_trace *trace, const char *path, uint32_t line,
			   enum sl_source_why *why);

/*
 * The line that likely keeps a block which a stack made: the innermost one that stores it where it outlives the pass.  Python only.
 * frames: the stack's own, innermost first.  keeper: its file, line and function.  False: not known, or two lines remain.
 */
bool sl_source_keeper(struct sl_source *source, const struct sl_trace *trace, const struct sl_stack_frame *frames, unsigned count,
		      struct sl_stack_frame *keeper);

enum sl_source_answer { SL_SOURCE_UNKNOWN, SL_SOURCE_NO, SL_SOURCE_YES };

/* The line copies to the card: .cuda(), or .to() of a device. */
enum sl_source_answer sl_source_copies(struct sl_source *source, const struct sl_trace *trace, const struct sl_stack_frame *frame);

/* One of the frames runs without autograd: a decorator or a `with` says so. */
enum sl_source_answer sl_source_without_grad(struct sl_source *source, const struct sl_trace *trace,
					     const struct sl_stack_frame *frames, unsigned count);

/* A function of the frames, number `at`, calls eval() before its line, and none asks for a gradient. */
enum sl_source_answer sl_source_is_evaluation(struct sl_source *source, const struct sl_trace *trace,
					      const struct sl_stack_frame *frames, unsigned count, unsigned *at);

/*
 * A frame's line, number `at`, calls a model in eval() whose parameters the file gives nobody.  The same function gives the same to
 * a model whose parameters it does give, to an optimizer: "self.student(x)" beside "self.teacher(x)".
 */
bool sl_source_is_teacher(struct sl_source *source, const struct sl_trace *trace, const struct sl_stack_frame *frames,
			  unsigned count, unsigned *at);

/* Own frames, innermost first, as of all questions: a line is in a `try` whose handler stores the exception at `keeper`. */
bool sl_source_keeps_error(struct sl_source *source, const struct sl_trace *trace, const struct sl_stack_frame *frames,
			   unsigned count, struct sl_stack_frame *keeper);

/* The loop around the line of frame `at` calls zero_grad() not before it, but between it and backward(). */
bool sl_source_zeroes_late(struct sl_source *source, const struct sl_trace *trace, const struct sl_stack_frame *frames,
			   unsigned count, unsigned *at);

/*
 * The only line of a file that puts something into the container `name`: "self.seen.append(x)", "cache[key] = x".  False: none
 * does, several do, or the file may not be read.
 */
bool sl_source_fills(struct sl_source *source, const struct sl_trace *trace, const char *path, const char *name,
		     struct sl_stack_frame *keeper);

/* The frame's statement asks a library to keep more: "output_scores=True", whose name is `out`. */
bool sl_source_keeps_output(struct sl_source *source, const struct sl_trace *trace, const struct sl_stack_frame *frame,
			    char out[64]);

/*
 * The line of a frame's function that calls backward() of the variable, behind the loop around the frame's line and not in it: once
 * for what all passes of the loop made.  0: none does.
 */
uint32_t sl_source_learns_once(struct sl_source *source, const struct sl_trace *trace, const struct sl_stack_frame *frames,
			       unsigned count, const char *variable, unsigned *at);

/* The line that calls backward(create_graph=True) in the function of a frame.  *where: that frame's index.  0: no function does. */
uint32_t sl_source_graph_of_gradients(struct sl_source *source, const struct sl_trace *trace, const struct sl_stack_frame *frames,
				      unsigned count, unsigned *where);

/* The keeper's line stores a slice, "rows.append(x[:, 0])": PyTorch keeps all of x for it. */
bool sl_source_keeps_view(struct sl_source *source, const struct sl_trace *trace, const struct sl_stack_frame *keeper);
