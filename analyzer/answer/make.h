/* SPDX-License-Identifier: MIT */
/*
 * Makes the document of a run from what the analyses found: all sentences that a person reads about a run are in this room.  One
 * file for each verdict; report.c asks them in turn.  Main thread only, since symbols are read.
 */
#pragma once

#include "analyzer/answer/answer.h"
#include "analyzer/logs/log.h"
#include "analyzer/report/held_by.h"
#include "analyzer/report/leak_list.h"
#include "analyzer/report/report.h"

/* The document of a run, sorted; it is made once and belongs to the report. */
const struct sl_answers *sl_answer_report(struct sl_report *report);

/* The document of one error of one process. */
struct sl_answers *sl_answer_error(struct sl_report *report, struct sl_process *process, const struct sl_oom *oom);

/* The document of a log that was judged; name: of the file, as the title begins. */
struct sl_answers *sl_answer_log(const struct sl_log *log, const char *name);

/* Gives each error and each finding their sentences: the headline, why, and the changes of its document. */
void sl_answer_describe(struct sl_report *report);

/* The advice for memory that was left at the end; static. */
const char *sl_answer_leak_suggestion(const struct sl_leak *leak);
/* Which changes were not tried, and why; NULL: all were.  Writes into `text`. */
const char *sl_answer_left_out(char text[200], const struct sl_changes *changes);

/* Only its title and the lines below. */
struct sl_answers *sl_answer_title(struct sl_report *report);

/* Below: for the files of this room. */
struct sl_hint {
	const char *text, *advice; /* advice may be NULL */
};

struct sl_make {
	struct sl_answers *to;
	struct sl_report *report;
	struct sl_leak_list leaks;	 /* the leaking lines of the run; `was_printed` where a verdict has one */
	SL_VECTOR(struct sl_hint) hints; /* told where nothing is wrong; else notes */
	const char *retried;		 /* requests that the program got over; NULL: none */
};

/* stack.c */
#define SL_MAKE_LINE 160
/* The stack's own frames, outermost first, the innermost with the mark; `frames` of them at most. */
void sl_make_stack(struct sl_answer *answer, struct sl_process *process, struct sl_stack stack, const char *mark, unsigned frames);
/*
 * Marks the line that likely keeps the stack's blocks, by its source, or appends it.  False: the source does not tell.
 * out: "train.py:126".
 * holder: the variable that Python found, whose container names the line that fills it.  May be NULL.
 * view: set to true if the line keeps a slice, and with it the whole tensor.
 */
bool sl_make_keeper(struct sl_answer *answer, struct sl_process *process, struct sl_stack stack, char out[SL_MAKE_LINE],
		    const struct sl_held_by *holder, bool *view);
#define SL_MAKE_KEEPS "likely keeps it"
/* The source around the marked lines of the first verdicts, which are sorted. */
void sl_make_around(struct sl_make *make);
/* "train.py:79", "program+0xa74a"; "": the stack is empty. */
const char *sl_make_line(char out[SL_MAKE_LINE], struct sl_process *process, struct sl_stack stack);
/* The same with its function: "train.py:79 Layer.attention". */
const char *sl_make_named(char out[SL_MAKE_LINE], struct sl_process *process, struct sl_stack stack);
#define SL_MAKE_LINE_OF(process, stack) sl_make_line((char[SL_MAKE_LINE]){0}, process, stack)
/* "errors()": the innermost own function that is no forward pass of a module; "": none has a name. */
const char *sl_make_function(char out[SL_MAKE_LINE], struct sl_process *process, struct sl_stack stack);
/* The paths of the run as a shell reads them, here or, if whole, from any folder; malloc'ed. */
char *sl_make_paths(const struct sl_report *report, bool whole);
/* A command of ours with the run and its paths. */
void sl_make_next(struct sl_make *make, struct sl_answer *answer, const char *verb, const char *shows);
/* The recorded program's command again, under stormlog-run with the options. */
void sl_make_rerun(struct sl_answer *answer, const struct sl_process *process, const char *options, const char *shows);

/*
 * table.c: the memory that the process held on the device at its peak, or at the error.
 * leak: its bytes have a row of their own; may be NULL.
 * The table's total is at first that of a row which the caller adds.
 */
void sl_make_peak(struct sl_make *make, struct sl_answer *answer, struct sl_process *process, const struct sl_device_state *device,
		  const struct sl_leak_list_place *leak);
/* True: the device's peak came later than that of PyTorch's tensors, and half of what was unused then is what they had held. */
bool sl_make_was_fuller(const struct sl_device_state *device);
void sl_make_full(struct sl_make *make, struct sl_answer *answer, struct sl_process *process, const struct sl_oom *oom);

/*
 * holder.c: the variable that holds most of so many bytes of a place.  False: Python knows none, or one of little.
 * track: NULL for all places.
 */
bool sl_make_find_holder(const struct sl_process *process, const struct sl_track *track, uint64_t bytes, struct sl_held_by *holder);
/* The same, of all memory: the name with which nearly all of its variables begin, as a model. */
bool sl_make_find_root(const struct sl_process *process, uint64_t bytes, struct sl_held_by *holder);
/* True: the headline may say that the variable keeps the line's bytes. */
bool sl_make_heads(const struct sl_held_by *holder, uint64_t bytes);
/* bytes: of the sentence before; "them", where the variable holds all of them. */
void sl_make_say_holder(struct sl_answer *answer, const struct sl_held_by *holder, uint64_t bytes);
/*
 * Marks the line that keeps the blocks of the stack, and writes it to `keeper`; "": not known.  Then it says what to do to the
 * variable, or to a slice.  False: it said no fix.  holder: NULL where Python found no variable.  graph: autograd's holds it.
 */
bool sl_make_fix_kept(struct sl_answer *answer, struct sl_process *process, struct sl_stack stack, const struct sl_held_by *holder,
		      bool graph, char keeper[SL_MAKE_LINE]);

/* oom.c: out of memory, in each process once, and requests that the program got over. */
void sl_make_ooms(struct sl_make *make);
struct sl_answer *sl_make_error(struct sl_make *make, struct sl_process *process, const struct sl_oom *oom);
/* Which replayed change is the fix. */
enum sl_make_fix {
	SL_MAKE_SURE,	/* one with which the program passes */
	SL_MAKE_WEAK,	/* the cause is not known: one with which this request passes, too */
	SL_MAKE_CAUSED, /* none: the cause has a fix of its own */
	SL_MAKE_PLACED, /* weights are being placed: one after which nothing of them is there twice */
};
/*
 * changes.c: `fix` and `tried` from the replayed changes of the process's program.  False: none is the fix.
 * holder: of what is held; NULL: not known.
 */
bool sl_make_changes(struct sl_answer *answer, const struct sl_process *process, enum sl_make_fix fix,
		     const struct sl_held_by *holder);
/* The effect of a change that the answer has told; false: its replay fails where the program failed. */
bool sl_make_change(struct sl_answer *answer, const struct sl_process *process, const char *kind);
/* oom_text.c: the cause of an error that the source proves; false: it proves no cause. */
bool sl_make_text(struct sl_answer *answer, struct sl_process *process, const struct sl_oom *oom);
/* An imperative, where the source proves that the stack evaluates with autograd on.  False: it does not. */
bool sl_make_no_grad(struct sl_answer *answer, struct sl_process *process, struct sl_stack stack, enum sl_said_as label);
/* The same as `less`, of a run that passed, where half of the device's peak is activations. */
void sl_make_no_grad_at_peak(struct sl_answer *answer, struct sl_process *process, const struct sl_device_state *device);
/* leak.c: what is kept, and what grows. */
void sl_make_leaks(struct sl_make *make);
void sl_make_keeping(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding);
/* "a.py:4, a.py:5 and more": a leaking line and those that leak with it; sets `was_printed` of each.  NULL: it leaks alone. */
const char *sl_make_together(struct sl_make *make, size_t first);
/* "2 MiB of every training step", "3 MiB every 20 steps"; one line of the program. */
void sl_make_pace(char *out, size_t size, const struct sl_process *process, const struct sl_leak_line *leak_line);
/* found.c: findings that have no file of their own. */
void sl_make_findings(struct sl_make *make);
/* Gives the finding its text and advice, if an analysis left them to this room and it has none. */
void sl_make_describe(struct sl_report *report, struct sl_finding *finding);
/* dry.c: whether the job fits the card. */
void sl_make_dry(struct sl_make *make);
const char *sl_make_card_of(uint64_t memory); /* the id of the first card of that size in dry/cards.def; NULL: none */
/* window.c: snapshots of PyTorch's. */
void sl_make_windows(struct sl_make *make);
/* Notes of those that do the same. */
void sl_make_ranks(struct sl_make *make);
/* ok.c: nothing went wrong. */
void sl_make_ok(struct sl_make *make);
/* True: a part of the recording is missing, so that each figure is a least. */
bool sl_make_is_damaged(struct sl_make *make);
