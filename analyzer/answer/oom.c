/* SPDX-License-Identifier: MIT */
/*
 * OUT OF MEMORY: each error once, by what led to it; and requests that the program got over.  Longer than other files: each story
 * has its sentences, and they share the figures of one error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/analyses/oom_causes.h"
#include "analyzer/answer/make.h"
#include "analyzer/base/amounts.h"
#include "analyzer/base/format.h"
#include "analyzer/base/paths.h"
#include "analyzer/model/state/units.h"
#include "analyzer/report/change.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/operator.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/place.h"
#include "analyzer/report/refuser.h"
#include "analyzer/report/roles.h"
#include "analyzer/report/tensor.h"
#include "analyzer/source/source.h"

/* One error with all that its sentences need. */
struct error {
	struct sl_make *make;
	struct sl_answer *answer;
	struct sl_process *process;
	const struct sl_oom *oom;
	const struct sl_account *account;
	const struct sl_story *story;
	char line[SL_MAKE_LINE], at[SL_MAKE_LINE]; /* that asked; of the story */
	const struct sl_operator *ran;		   /* that explains the error; NULL: none */
	uint64_t made;				   /* that it asks for, with what it has */
	bool fills;				   /* it is that of the story */
	const struct sl_leak_line *leak_line;	   /* of a story that something grew; NULL: of none */
	struct sl_held_by holder;
	bool has_holder;	   /* the holder is known: of what the story is about */
	char in[SL_MAKE_LINE];	   /* "in `bank`", "at train.py:9": where one holds less */
	char learns[SL_MAKE_LINE]; /* of the backward() of what the holder gathers in a loop; "": there is none */
	char shape[160];	   /* of the request, to be put behind its size; "": not known, or told */
	char asked[48], room[48], bytes[48], before[48];
};

/* "6.7", "412": so many times as much. */
static const char *put_times(char out[24], double times)
{
	snprintf(out, 24, times < 99.5 ? "%.2g" : "%.0f", times);
	return out;
}
#define TIMES(times) put_times((char[24]){0}, times)

#define WHY(e, ...)  sl_answer_say((e)->answer, SL_LABEL_WHY, __VA_ARGS__)
#define FIX(e, ...)  sl_answer_say((e)->answer, SL_LABEL_FIX, __VA_ARGS__)
#define HEAD(e, ...) sl_answer_headline((e)->answer, __VA_ARGS__)

/* "step 117", or "this step" where it has no number. */
static const char *step_of(char out[48], const struct error *e)
{
	if (e->oom->step == SL_UNKNOWN)
		snprintf(out, 48, "this step");
	else
		snprintf(out, 48, "step %llu", (unsigned long long)e->oom->step);
	return out;
}
#define STEP(e) step_of((char[48]){0}, e)

static void say_holder(struct error *e)
{
	if (e->has_holder)
		sl_make_say_holder(e->answer, &e->holder,
				   e->leak_line && e->story->count == 1 ? e->leak_line->bytes : e->story->bytes);
	e->has_holder = false;
}

static void say_room(struct error *e)
{
	say_holder(e);
	if (!e->oom->asked_bytes || e->oom->free_bytes == SL_UNKNOWN)
		return;
	WHY(e, "%s were free when %s asked %s%s.", e->room, e->line, e->asked, e->shape);
	e->shape[0] = 0;
}

#define OPERATOR_PART 10 /* of the card: a smaller request is not the reason that the card is full */

/* Stories whose line holds the memory. */
#define HOLDING                                                                                                                    \
	(1u << SL_STORY_GREW | 1u << SL_STORY_TOOK | 1u << SL_STORY_TEETH | 1u << SL_STORY_HOLDER | 1u << SL_STORY_SERIES |        \
	 1u << SL_STORY_ACTIVATIONS | 1u << SL_STORY_AGAIN | 1u << SL_STORY_CACHES)

/* True: nothing that led to the error was seen, but that much was asked or held. */
static bool is_weak(enum sl_story_kind kind)
{
	return kind == SL_STORY_NONE || kind == SL_STORY_LARGEST || kind == SL_STORY_FIRST_PASS || kind == SL_STORY_JUMP ||
	       kind == SL_STORY_SURGE || kind == SL_STORY_TOOK || kind == SL_STORY_HOLDER;
}

/* What made the owner's largest block.  Its native frames are those of its tensor, where a dry run told it. */
static const struct sl_operator *operator_of(const struct error *e, const struct sl_owner *owner, struct sl_stack stack)
{
	if (!stack.native && owner->tensor)
		stack.native = e->process->model->tensors.item[owner->tensor].native;
	return sl_operator_of(e->process, stack);
}

static const struct sl_operator *operator_of_story(const struct error *e)
{
	const struct sl_site *site;

	for (const struct sl_owner *owner = NULL; (owner = sl_owners_at_error(e->process, e->oom, owner, &site));)
		if (sl_stack_same(site->stack, e->story->stack))
			return operator_of(e, owner, site->stack);
	return sl_operator_of(e->process, e->story->stack);
}

/* Bytes that the operator had made and that were held at the error.  line: only of the line that asked. */
static uint64_t held_by(const struct error *e, const char *name, bool line)
{
	const struct sl_operator *ran;
	const struct sl_site *site;
	uint64_t bytes = 0;

	for (const struct sl_owner *owner = NULL; (owner = sl_owners_at_error(e->process, e->oom, owner, &site));)
		if (sl_owners_shows(e->process, site) &&
		    (!line || sl_place_key(e->process, site->stack) == sl_place_key(e->process, e->oom->stack)) &&
		    (ran = operator_of(e, owner, site->stack)) && !strcmp(ran->name, name))
			bytes += owner->bytes;
	return bytes;
}

/* What ran explains a large request, many of one kind, or most of what was held. */
static void find_operator(struct error *e)
{
	uint64_t large = e->oom->total_bytes / OPERATOR_PART;

	if (!is_weak(e->story->kind) || !e->oom->asked_bytes || e->oom->total_bytes == SL_UNKNOWN)
		return;
	e->ran = e->account->ran;
	if (e->ran && e->ran->joins && e->story->kind != SL_STORY_LARGEST)
		e->ran = NULL; /* an operand may be as large */
	e->made = e->ran ? e->oom->asked_bytes : 0;
	if (e->ran && e->made < large)
		e->made += held_by(e, e->ran->name, true);
	if (e->made >= large)
		return;
	e->fills = true;
	e->ran = e->story->bytes >= e->oom->total_bytes / 2 ? operator_of_story(e) : NULL;
	if (e->ran && e->ran->joins)
		e->ran = NULL;
}

/* The line that calls the network of that stack, outside of all its forward(), else `line`. */
static const char *caller_of(const struct error *e, struct sl_stack stack, const char *line)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_own(e->process, frames, stack), at = 0;
	const char *end;

	for (unsigned i = 0; i < count; i++)
		if ((end = frames[i].function ? strrchr(frames[i].function, '.') : NULL) && !strcmp(end, ".forward"))
			at = i + 1;
	return at && at < count ? sl_answers_text(e->make->to, "%s:%u", sl_paths_name(frames[at].file), frames[at].line) : line;
}

/* What to change where most of the memory at the error is for one purpose; %s: the line. */
static const char *const by_role[SL_ROLE_COUNT] = {
	[SL_ROLE_ACTIVATIONS] = "compute fewer or smaller inputs at once at %s",
	[SL_ROLE_KV_CACHE] = "keep fewer sequences at once at %s, or bound their length",
	[SL_ROLE_PARAMETERS] = "load the weights of %s in a smaller type, or a part of them on the host",
	[SL_ROLE_OPTIMIZER] = "an optimizer with less state at %s (8-bit, Adafactor, SGD)",
};

/* False: no purpose has most of it, or one of which no change is known. */
static bool fix_role(struct error *e)
{
	uint64_t bytes[SL_ROLE_COUNT] = {0};
	struct sl_stack largest[SL_ROLE_COUNT] = {0};
	const struct sl_site *site;

	for (const struct sl_owner *owner = NULL; (owner = sl_owners_at_error(e->process, e->oom, owner, &site));) {
		enum sl_role role = sl_owners_shows(e->process, site) ? sl_roles_of(e->process, site) : SL_ROLE_UNKNOWN;

		if (!bytes[role])
			largest[role] = site->stack;
		bytes[role] += owner->bytes;
	}
	for (unsigned role = 0; role < SL_ROLE_COUNT; role++) {
		if (!by_role[role] || !bytes[role] || bytes[role] < e->oom->live_bytes / 2)
			continue;
		FIX(e, by_role[role], caller_of(e, largest[role], SL_MAKE_LINE_OF(e->process, largest[role])));
		return true;
	}
	return false;
}

/* Where an operator of two operands writes a result as large as a held tensor and autograd is off, it may work in place. */
static bool fix_in_place(struct error *e)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	const struct sl_tensor *tensors = e->process->model->tensors.item;
	unsigned count = sl_process_own(e->process, frames, e->oom->stack);
	bool there = false;

	if (!e->account->ran || !e->account->ran->joins || !e->oom->tensor ||
	    sl_source_without_grad(e->process->report->source, e->process->trace, frames, count) != SL_SOURCE_YES)
		return false;
	for (unsigned i = 0; i < e->oom->owner_count; i++)
		there |= e->oom->owners[i].tensor && tensors[e->oom->owners[i].tensor].shape == tensors[e->oom->tensor].shape;
	if (there)
		FIX(e, "write the result into an operand at %s (`a /= b` for `a / b`), or compute it in pieces", e->line);
	return there;
}

static void fix_hold(struct error *e)
{
	if (!fix_in_place(e) && !fix_role(e))
		FIX(e, "hold less %s, or ask for less at %s", e->in, e->line);
}

static void fix_size(struct error *e)
{
	if (!fix_in_place(e))
		FIX(e, "bound the size of %s, or work in pieces", e->line);
}

/* A run that goes on where this one ended. */
static void next_larger(struct error *e)
{
	if (!sl_dry_report(e->make->report))
		sl_make_rerun(e->answer, e->process, "--dry=h200 --report", "the need of a whole step");
}

/* False: the line copies no tensors to the card, or a module. */
static bool fix_copies(struct error *e, struct sl_stack stack, const char *line)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned own = 0, count = sl_process_stack(e->process, frames, stack);

	for (; own < count && !(frames[own].python && frames[own].own); own++)
		if (frames[own].file && strstr(frames[own].file, "nn/modules/module.py"))
			return false;
	if (own == count || sl_source_copies(e->process->report->source, e->process->trace, &frames[own]) != SL_SOURCE_YES)
		return false;
	FIX(e, "move a batch to the card when its pass begins, and not all of them at %s", line);
	return true;
}

static bool tell_operator(struct error *e)
{
	const char *line = e->fills ? e->at : e->line;
	int64_t ranks = e->process->trace->header.world_size;

	if (!e->ran)
		return false;
	if (e->fills)
		HEAD(e, "%s fills the card with %s", line, e->ran->makes);
	else
		HEAD(e, "%s %s %s for %s", line, e->made > e->oom->asked_bytes ? "takes" : "asks", SL_ANSWER_SIZE(e->made),
		     e->ran->makes);
	if (e->made >= SL_FEW * e->oom->asked_bytes && fix_copies(e, e->fills ? e->story->stack : e->oom->stack, line)) {
		say_room(e);
		return true;
	}
	WHY(e, "%s.", e->ran->why);
	if (strstr(e->ran->name, "gather_object") && ranks > 1 && e->made % (uint64_t)ranks == 0)
		WHY(e, "That is %lld ranks times %s.", (long long)ranks, SL_ANSWER_SIZE(e->made / (uint64_t)ranks));
	say_room(e);
	FIX(e, "%s at %s", e->ran->change, e->ran->maps ? caller_of(e, e->fills ? e->story->stack : e->oom->stack, line) : line);
	return true;
}

static void tell_attempts(struct error *e)
{
	HEAD(e, "%llu failed tries at %s keep what each of them had got", (unsigned long long)e->story->count, e->line);
	WHY(e, "%s were held at the first failed try, %s at the last.", e->before, e->bytes);
	FIX(e, "free what a try at %s got before the next one begins", e->line);
}

static void tell_retry(struct error *e)
{
	struct sl_chain tried, failed;
	const struct sl_stack_frame *try;

	sl_place_take(&tried, e->process, e->story->stack);
	sl_place_take(&failed, e->process, e->oom->stack);
	try = tried.frame[tried.count - 1 - sl_place_shared(&tried, &failed)]; /* analyses/oom_causes.c: there is one */
	if (try->file && try->line)
		snprintf(e->at, sizeof(e->at), "%s:%u", sl_paths_name(try->file), try->line);
	HEAD(e, "the failed try at %s still holds %s", e->at, e->bytes);
	WHY(e, "%s asked %s in the handler of that error, which keeps the exception and with it the frames.", e->line, e->asked);
	FIX(e, "leave the handler of %s, or del the exception, before the next try", e->at);
}

static void tell_request(struct error *e)
{
	HEAD(e, "%s asks %s times as much as ever before", e->line, TIMES(e->story->times));
	WHY(e, "the largest of %s requests before it there was %s.", SL_NUMBER(e->story->count), e->before);
	say_room(e);
	fix_size(e);
}

static void tell_step(struct error *e)
{
	HEAD(e, "blocks of %s are %s times as large as any before", STEP(e), TIMES(e->story->times));
	WHY(e, "one block of %s is %s in %s, %s at most before.", e->line, e->asked, STEP(e), e->before);
	say_room(e);
	FIX(e, "bound what the size of %s comes from, or split that batch", e->line);
}

static void tell_limit(struct error *e)
{
	HEAD(e, "a limit that %s raised takes %s of the card", e->at, e->bytes);
	WHY(e, "the context sets that memory aside for its kernels.");
	say_room(e);
	FIX(e, "lower the limit at %s", e->at);
}

static void tell_grew(struct error *e)
{
	const struct sl_leak_line *leak_line = e->leak_line;
	struct sl_stack_frame frames[SL_STACK_MAX];
	char pace[200], output[64];
	bool own = sl_process_own(e->process, frames, e->story->stack) > 0;
	bool fixed = own && sl_source_keeps_output(e->process->report->source, e->process->trace, &frames[0], output);
	bool heads = !fixed && e->has_holder && leak_line && sl_make_heads(&e->holder, leak_line->bytes);

	if (leak_line && !fixed) /* a library's loop is none of the program's */
		sl_make_pace(pace, sizeof(pace), e->process, leak_line);
	else
		snprintf(pace, sizeof(pace), "%s", e->bytes);
	HEAD(e, "%s keeps %s until the card is full", heads ? e->holder.variable : e->at, pace);
	if (e->story->count > 1)
		WHY(e, "%llu lines leak, %s together, most of it %s%s.", (unsigned long long)e->story->count, e->bytes,
		    heads ? "at " : "here", heads ? e->at : "");
	else if (leak_line && leak_line->bytes > e->story->bytes)
		WHY(e, "%s had kept %s by then, and %s in the end.", heads ? e->at : "it", e->bytes,
		    SL_ANSWER_SIZE(leak_line->bytes));
	else if (leak_line)
		WHY(e, "%s of %s blocks that %s made were still held, %s.", SL_NUMBER(leak_line->blocks),
		    SL_NUMBER(leak_line->births), heads ? e->at : "it", SL_ANSWER_SIZE(leak_line->bytes));
	if (fixed) /* what keeps it is the library's */
		FIX(e, "leave out %s=True at %s, or call it for fewer inputs at once", output, e->at);
	else
		fixed = sl_make_fix_kept(e->answer, e->process, e->story->stack, e->has_holder ? &e->holder : NULL, false,
					 (char[SL_MAKE_LINE]){0});
	say_room(e);
	if (fixed)
		return;
	if (fix_copies(e, e->story->stack, e->at))
		return;
	if (e->story->stack.python)
		FIX(e, "find what keeps the result of %s and bound it: a list, a dictionary, a cache", e->at);
	else
		FIX(e, "free what %s makes when its work is done", e->at);
}

static void tell_plain(struct error *e)
{
	if (e->oom->asked_bytes && e->oom->free_bytes != SL_UNKNOWN) {
		HEAD(e, "%s asks %s, %s are free", e->line, e->asked, e->room);
		if (e->oom->asked_bytes <= e->oom->free_bytes && sl_units_taken(e->oom) > e->oom->free_bytes)
			WHY(e, "with its padding the request takes %s.", SL_ANSWER_SIZE(sl_units_taken(e->oom)));
	} else if (e->oom->asked_bytes)
		HEAD(e, "%s asks %s and does not get it", e->line, e->asked);
	else
		HEAD(e, "%s has no room on the card", e->line);
}

static void tell_took(struct error *e)
{
	tell_plain(e);
	WHY(e, "%s made %s and never gave it back.", e->at, e->bytes);
	fix_hold(e);
	sl_answer_say(e->answer, SL_LABEL_OPEN, "whether that is a leak, what it loads, or one step%s: %s until the error",
		      e->story->words ? ", or chunks of its own allocator, which may be fragmented" : "",
		      e->oom->device_rise.count ? "that line freed nothing" : "memory only rose");
	next_larger(e);
}

static void tell_surge(struct error *e)
{
	HEAD(e, "memory of %s rises to %s times its highest before", STEP(e), TIMES(e->story->times));
	WHY(e, "%s holds %s with this request, after %s at most in %s rises before.", e->story->words ? "the process" : e->at,
	    e->bytes, e->before, SL_NUMBER(e->story->count));
	say_room(e);
	if (!fix_in_place(e))
		FIX(e, "bound what %s takes in one step, such as its batch or length", e->at);
}

static void tell_teeth(struct error *e)
{
	HEAD(e, "%s grows from pass to pass, %s times the first by now", e->at, TIMES(e->story->times));
	WHY(e, "each of %s rises there was higher than all before, from %s to %s.", SL_NUMBER(e->story->count), e->before,
	    e->bytes);
	FIX(e, "bound what a pass gathers %s", e->in);
}

static void tell_jump(struct error *e)
{
	HEAD(e, "memory rises to %s times what it was, last at %s", TIMES(e->story->times), e->at);
	WHY(e, "%s were held at most before, and %s with this request.", e->before, e->bytes);
	say_room(e);
	FIX(e, "bound what is held at once below %s", e->at);
}

static void tell_larger(struct error *e)
{
	HEAD(e, "requests of %s grow from %s to %s", e->at, e->before, e->bytes);
	WHY(e, "they are %s times as large in the last quarter of the run as in the first.",
	    TIMES((double)e->story->bytes / (double)e->story->before));
	say_room(e);
	FIX(e, "bound the size of %s, such as a batch or a length", e->at);
}

static void tell_largest(struct error *e)
{
	HEAD(e, "%s asks %s, more than any request that was granted", e->line, e->asked);
	WHY(e, "the largest of them is %s.", e->before);
	say_room(e);
	fix_size(e);
}

static void tell_holder(struct error *e)
{
	tell_plain(e);
	WHY(e, "%s made %s in %s block%s and never gave one back.", e->at, e->bytes, SL_NUMBER(e->story->count),
	    e->story->count == 1 ? "" : "s");
	if (e->oom->place_births && e->oom->asked_bytes > e->oom->place_most)
		WHY(e, "This request is %s times the largest before at its line.",
		    TIMES((double)e->oom->asked_bytes / (double)e->oom->place_most));
	fix_hold(e);
}

static void tell_optimizer(struct error *e)
{
	const char *name = e->story->words;
	uint64_t tables = held_by(e, "embedding_dense_backward", false);

	HEAD(e, "%s's first step needs %s and %s of them are there", name, e->bytes, e->before);
	WHY(e, "%s keeps %s for each parameter, in its first step. %s of them are missing.", name,
	    e->story->count == 1 ? "a value" : "two values", SL_ANSWER_SIZE(e->story->bytes - e->story->before));
	if (e->oom->total_bytes != SL_UNKNOWN)
		sl_answer_say(e->answer, SL_LABEL_NEED, "at least %s for this step",
			      SL_ANSWER_SIZE(e->oom->total_bytes + e->story->bytes - e->story->before - e->oom->free_bytes));
	if (tables >= e->oom->total_bytes / OPERATOR_PART) {
		WHY(e, "%s are gradients of embeddings, with a row for every word.", SL_ANSWER_SIZE(tables));
		FIX(e, "pass sparse=True to the Embedding, with SparseAdam for it, or an optimizer with less state at %s", e->line);
		return;
	}
	FIX(e, "an optimizer with less state at %s (8-bit, Adafactor, SGD), or parameters in bfloat16", e->line);
}

static void tell_series(struct error *e)
{
	HEAD(e, "%s joins all results in one tensor, larger each time", e->line);
	WHY(e, "it has %s by now, %s more each time, and its copy of %s is held beside it.", e->before,
	    SL_ANSWER_SIZE(e->story->count), e->bytes);
	if (e->story->words)
		FIX(e, "TrainingArguments(eval_accumulation_steps=1), which moves results to the host, or "
		       "preprocess_logits_for_metrics");
	else
		FIX(e, "move each part to the host at %s instead of joining it with all before", e->line);
}

static void tell_activations(struct error *e)
{
	char function[SL_MAKE_LINE];

	sl_make_function(function, e->process, e->story->stack);
	HEAD(e, "%s keeps the activations of %llu batches", function[0] ? function : e->at, (unsigned long long)e->story->count);
	WHY(e, "autograd is on and no backward pass frees them: %s of each batch, made below %s.",
	    SL_ANSWER_SIZE(e->story->bytes / e->story->count), e->at);
	if (e->learns[0])
		FIX(e, "call backward() in each batch, not once for all of them at %s", e->learns);
	else
		FIX(e, "torch.no_grad() around %s, or detach() what %s; where it trains, backward() in each batch",
		    function[0] ? function : e->at,
		    e->has_holder ? sl_answers_text(e->make->to, "`%s` gets", e->holder.variable) : "it keeps");
}

static void tell_again(struct error *e)
{
	HEAD(e, "tensors of %s get larger each time and hold %s", e->at, e->bytes);
	WHY(e, "they are made again, %s larger than the time before.", e->before);
	FIX(e, "bound how large they become at %s, as by a length, or work on fewer at once", e->at);
}

static void tell_input(struct error *e)
{
	HEAD(e, "the input of %s is larger than all before", STEP(e));
	WHY(e, "it has %s, made at %s, where %s steps before had %s at most.", e->bytes, e->at, SL_NUMBER(e->story->count),
	    e->before);
	FIX(e, "bound the input at %s: a smaller batch or a shorter sequence", e->at);
}

/* True: the story's line made tensors of the shape of weights, so that fewer inputs make them no less. */
static bool is_of_weights(const struct error *e)
{
	const struct sl_tensor *tensors = e->process->model->tensors.item;
	const struct sl_site *site;
	uint32_t shape = 0;
	bool same = false;

	for (const struct sl_owner *owner = NULL; (owner = sl_owners_at_error(e->process, e->oom, owner, &site));)
		if (site->stack.python == e->story->stack.python && owner->tensor)
			shape = tensors[owner->tensor].shape;
	for (const struct sl_owner *owner = NULL; (owner = sl_owners_at_error(e->process, e->oom, owner, &site));)
		same |= shape && owner->tensor && tensors[owner->tensor].shape == shape &&
			sl_roles_of(e->process, site) == SL_ROLE_PARAMETERS;
	return same;
}

static void tell_first_pass(struct error *e)
{
	HEAD(e, "a %s pass needs more than the card has", e->story->words);
	WHY(e, "%s of activations were there when %s asked %s, most of them of %s.", e->bytes, e->line, e->asked, e->at);
	if (!is_of_weights(e)) {
		fix_role(e);
	} else {
		WHY(e, "They have the shape of weights: fewer inputs make them no less.");
		FIX(e, "torch.utils.checkpoint around the layers that %s calls, or detach() what %s makes",
		    caller_of(e, e->oom->stack, e->line), e->at);
	}
	sl_answer_say(e->answer, SL_LABEL_OPEN, "how much the rest of the step needs: the recording ends in its %s pass",
		      e->story->words);
	next_larger(e);
}

/* Half the bytes of what has four a number, where they are enough; else fewer weights on this card. */
static void tell_weights(struct error *e)
{
	uint64_t need = e->story->bytes, room = e->story->before + (e->oom->free_bytes == SL_UNKNOWN ? 0 : e->oom->free_bytes);
	uint64_t all = need == SL_UNKNOWN ? e->story->before : need, half = all - e->story->count / 2;
	bool wide = (double)e->story->count >= SL_NEARLY_ALL * (double)all;
	struct sl_dry_weights weights;

	if (!sl_process_own(e->process, (struct sl_stack_frame[SL_STACK_MAX]){{0}}, e->oom->stack) &&
	    sl_dry_weights(e->process, &weights)) /* a thread of a library's pool */
		snprintf(e->line, sizeof(e->line), "%s", sl_paths_name(weights.line));
	if (need == SL_UNKNOWN)
		HEAD(e, "%s loads weights until the card is full", e->line);
	else
		HEAD(e, "weights need %s and the card has room for %s", SL_ANSWER_SIZE(need), SL_ANSWER_SIZE(room));
	if (need == SL_UNKNOWN || !*e->story->words)
		WHY(e, "the card held %s of them.", e->before);
	else
		WHY(e, "the card held %s of them, and lacked %s of %.*s.", e->before, SL_ANSWER_SIZE(need - e->story->before),
		    (int)strcspn(e->story->words, " "), e->story->words);
	say_room(e);
	if (wide && half < room)
		FIX(e, "give them dtype=torch.bfloat16 before %s, %s, or spread them over cards (device_map=\"auto\")", e->line,
		    need == SL_UNKNOWN ? "half as much" : sl_answers_text(e->make->to, "%s in all", SL_ANSWER_SIZE(half)));
	else if (e->story->words)
		FIX(e, "spread them over cards or the host at %s (device_map=\"auto\"), or take a smaller model", e->line);
	if (!e->story->words)
		sl_answer_say(e->answer, SL_LABEL_OPEN, "whether they are of one model, or of models that a loop keeps");
	else if (need == SL_UNKNOWN)
		sl_answer_say(e->answer, SL_LABEL_OPEN, "how much all of them need: the program ended while it loaded them");
	if (need == SL_UNKNOWN)
		sl_make_rerun(e->answer, e->process, "--dry=b200 --report", "the need of all weights");
}

static void tell_caches(struct error *e)
{
	HEAD(e, "key-value caches hold %s", e->bytes);
	if (e->story->words) {
		WHY(e, "%s tensors of %s were made for the most sequences, in full length. The process held %s beside them.",
		    SL_NUMBER(e->story->count), e->at, SL_ANSWER_SIZE(e->oom->live_bytes - e->story->bytes));
		FIX(e, "make them for fewer sequences or a shorter context %s", e->in);
		return;
	}
	WHY(e, "%s tensors of %s grow with the length of each sequence, times the sequences kept.", SL_NUMBER(e->story->count),
	    e->at);
	FIX(e, "keep fewer sequences %s, drop caches of those that ended, or bound their length", e->in);
}

static void tell_pool(struct error *e)
{
	HEAD(e, "%s's pool holds %s and uses %s of it", e->story->words, e->bytes, e->before);
	WHY(e, "%s took it in the same process. %s were free when %s asked %s.", e->at, e->room, e->line, e->asked);
	if (!strcmp(e->story->words, "JAX"))
		FIX(e, "XLA_PYTHON_CLIENT_PREALLOCATE=false, or a smaller XLA_PYTHON_CLIENT_MEM_FRACTION");
	else
		FIX(e, "bound the pool of %s, or give it a process of its own", e->at);
}

static void (*const tellers[])(struct error *) = {
	[SL_STORY_ATTEMPTS] = tell_attempts,
	[SL_STORY_RETRY] = tell_retry,
	[SL_STORY_REQUEST] = tell_request,
	[SL_STORY_STEP] = tell_step,
	[SL_STORY_LIMIT] = tell_limit,
	[SL_STORY_GREW] = tell_grew,
	[SL_STORY_TOOK] = tell_took,
	[SL_STORY_SURGE] = tell_surge,
	[SL_STORY_TEETH] = tell_teeth,
	[SL_STORY_JUMP] = tell_jump,
	[SL_STORY_LARGER] = tell_larger,
	[SL_STORY_LARGEST] = tell_largest,
	[SL_STORY_HOLDER] = tell_holder,
	[SL_STORY_OPTIMIZER] = tell_optimizer,
	[SL_STORY_SERIES] = tell_series,
	[SL_STORY_ACTIVATIONS] = tell_activations,
	[SL_STORY_AGAIN] = tell_again,
	[SL_STORY_INPUT] = tell_input,
	[SL_STORY_FIRST_PASS] = tell_first_pass,
	[SL_STORY_WEIGHTS] = tell_weights,
	[SL_STORY_CACHES] = tell_caches,
	[SL_STORY_POOL] = tell_pool,
};

static void tell_story(struct error *e)
{
	if (tell_operator(e))
		return;
	if (e->story->kind) {
		tellers[e->story->kind](e);
		return;
	}
	tell_plain(e);
	if (e->oom->live_bytes)
		WHY(e, "this process held %s.", SL_ANSWER_SIZE(e->oom->live_bytes));
	if (fix_role(e))
		return;
	if (e->oom->free_bytes != SL_UNKNOWN) {
		fix_size(e);
		return;
	}
	sl_answer_say(e->answer, SL_LABEL_OPEN, "how full the card was: no figure of it was recorded");
	sl_answer_next(e->answer, "the holders of this card now", "stormlog-top");
}

/* Says what the largest other process holds its memory for, and what would change that.  False: it was not recorded. */
static bool tell_other(struct error *e, unsigned index)
{
	struct sl_process *other = e->account->others[index].process;
	const struct sl_device_state *state = e->account->others[index].state;
	char line[SL_MAKE_LINE] = "";
	const struct sl_site *largest = NULL, *own;
	uint64_t bytes = 0, held_bytes;
	bool leaks = false, alike;

	if (!other)
		return false;
	for (const struct sl_site *site = NULL; (site = sl_owners_next(other, state->device, SL_WEIGH_PEAK, site, &held_bytes));)
		if (held_bytes > bytes) {
			bytes = held_bytes;
			largest = site;
		}
	if (largest)
		sl_make_line(line, other, largest->stack);
	for (size_t i = 0; i < other->leaks_by_line.count && other->leaks_by_line.item[i].verdict == SL_KEPT_GROWING; i++)
		leaks |= !strcmp(line, SL_MAKE_LINE_OF(other, other->leaks_by_line.item[i].track->stack));
	alike = sl_owners_at_error(e->process, e->oom, NULL, &own) && !strcmp(line, SL_MAKE_LINE_OF(e->process, own->stack));
	if (2 * state->context_bytes >= e->account->others[index].bytes) {
		sl_make_line(line, other, state->context_stack);
		WHY(e, "It is mostly contexts%s%s.", line[0] ? ", made at " : "", line);
		FIX(e, "make no context in those processes, or give each a card of its own (CUDA_VISIBLE_DEVICES)");
		return true;
	}
	if (line[0])
		WHY(e, "Most of process %lld is of %s%s.", (long long)e->account->others[index].pid, line,
		    alike   ? ", and so is most of this one"
		    : leaks ? ", which leaks"
			    : "");
	if (e->account->others[index].stray)
		FIX(e, "let those ranks use only their own card: torch.cuda.set_device before their first call");
	else if (leaks && !alike)
		FIX(e, "free at %s what is not needed any more, or give each process a card of its own", line);
	else if (sl_process_is_rank(e->process) && sl_devices_visible(e->process) > 1)
		FIX(e, "give each rank a card of its own: cudaSetDevice(LOCAL_RANK) first, or CUDA_VISIBLE_DEVICES");
	else if (alike)
		FIX(e, "share one copy between these processes, run fewer of them, or give each a card of its own");
	else
		FIX(e, "give each process a card of its own (CUDA_VISIBLE_DEVICES), or run fewer of them at once");
	return true;
}

static void tell_neighbour(struct error *e)
{
	unsigned largest = 0;

	for (unsigned i = 1; i < e->account->other_count; i++)
		largest = e->account->others[i].bytes > e->account->others[largest].bytes ? i : largest;
	if (e->account->other_count == 1)
		HEAD(e, "another process holds %s of this card", SL_ANSWER_SIZE(e->account->others_bytes));
	else
		HEAD(e, "%u other processes hold %s of this card", e->account->other_count,
		     SL_ANSWER_SIZE(e->account->others_bytes));
	say_room(e);
	WHY(e, "Without %s the request would have passed.",
	    e->account->other_count == 1 ? sl_answers_text(e->make->to, "process %lld", (long long)e->account->others[0].pid)
					 : "them");
	if (!tell_other(e, largest))
		FIX(e, "take another card (CUDA_VISIBLE_DEVICES), or wait until %s",
		    e->account->other_count == 1 ? "that process has ended" : "those processes have ended");
	if (e->story->kind == SL_STORY_GREW)
		WHY(e, "This process leaks %s at %s.", e->bytes, e->at);
	sl_answer_next(e->answer, "the holders of this card now", "stormlog-top");
}

static void tell_fragmented(struct error *e)
{
	HEAD(e, "%s are unused, the largest piece %s", SL_ANSWER_SIZE(e->account->cached),
	     SL_ANSWER_SIZE(e->account->largest_cached));
	WHY(e, "%s asked %s in one piece. PyTorch's unused memory is in fragments, too small for it.", e->line, e->asked);
	if (e->account->replayed)
		FIX(e, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, with which the replay of this run passes");
	else
		FIX(e, "keep what stays apart from what %s frees: a small block holds its whole segment", e->line);
}

static void tell_driver(struct error *e)
{
	const struct sl_oom *oom = e->oom;

	if (!oom->pool_most_bytes) {
		HEAD(e, "%s were free, but not in one piece of %s", e->room, e->asked);
		WHY(e, "the driver found no room for one piece at %s.", e->line);
		FIX(e, "allocate what %s asks earlier, or in smaller pieces", e->line);
		return;
	}
	const char *pool = SL_MAKE_LINE_OF(e->process, e->process->model->tracks.item[oom->pool_made].stack);

	const struct sl_site *site;
	uint64_t pool_bytes = 0;

	for (const struct sl_owner *owner = NULL; (owner = sl_owners_at_error(e->process, oom, owner, &site));)
		pool_bytes += site->kind == SL_KIND_pool ? owner->bytes : 0;
	HEAD(e, "the pool of %s has no room for %s", pool, e->asked);
	if (pool_bytes > oom->pool_most_bytes) /* other pools hold some of it: no block tells its pool */
		WHY(e, "its limit (maxSize) is %s. The card had %s free.", SL_ANSWER_SIZE(oom->pool_most_bytes), e->room);
	else
		WHY(e, "its limit (maxSize) is %s, of which %s were held%s.", SL_ANSWER_SIZE(oom->pool_most_bytes),
		    SL_ANSWER_SIZE(pool_bytes),
		    pool_bytes + oom->asked_bytes <= oom->pool_most_bytes ? ", and the rest is in pieces" : "");
	FIX(e, "raise the pool's maxSize at %s, or %s", pool,
	    pool_bytes + oom->asked_bytes <= oom->pool_most_bytes
		    ? "trim the pool (cudaMemPoolTrimTo) before it is asked for other sizes"
		    : "ask less of it at once");
}

static void tell_host(struct error *e)
{
	const struct sl_oom_context *at = &e->oom->context;

	e->answer->word = SL_WORD_HOST_MEMORY;
	HEAD(e, "%s asks %s of pinned memory and the host refuses", e->line, e->asked);
	if (at->time_ns && at->cgroup_limit_bytes != SL_UNKNOWN && at->cgroup_bytes != SL_UNKNOWN)
		WHY(e, "its control group used %s of %s.", SL_ANSWER_SIZE(at->cgroup_bytes),
		    SL_ANSWER_SIZE(at->cgroup_limit_bytes));
	WHY(e, "%s of pinned memory were live. The card is not full.", SL_ANSWER_SIZE(e->oom->live_bytes));
	if (e->story->kind == SL_STORY_GREW) {
		WHY(e, "%s of it are kept by %s, which leaks.", e->bytes, e->at);
		FIX(e, "free at %s what is not needed any more: a higher limit is reached later", e->at);
		return;
	}
	FIX(e, "pin less at once at %s, or raise the limit of locked memory or of the control group", e->line);
}

static void tell_address_space(struct error *e)
{
	const struct sl_oom_context *at = &e->oom->context;

	e->answer->word = SL_WORD_HOST_MEMORY;
	HEAD(e, "%s finds no address space, the card is not full", e->line);
	if (at->time_ns && at->vm_limit_bytes != SL_UNKNOWN && at->vm_bytes != SL_UNKNOWN)
		WHY(e, "%s are mapped of %s allowed.", SL_ANSWER_SIZE(at->vm_bytes), SL_ANSWER_SIZE(at->vm_limit_bytes));
	else
		WHY(e, "the request was for addresses, not for memory.");
	FIX(e, "raise the limit: ulimit -v");
}

static void tell_too_large(struct error *e)
{
	if (tell_operator(e))
		return;
	HEAD(e, "%s asks %s, more than the %s has", e->line, e->asked,
	     e->oom->of_framework ? "pool"
	     : e->oom->injected	  ? "limit"
				  : "card");
	WHY(e, "the %s has %s in all.",
	    e->oom->of_framework ? "pool"
	    : e->oom->injected	 ? "limit (--limit)"
				 : "card",
	    SL_ANSWER_SIZE(e->oom->total_bytes));
	if (e->story->kind == SL_STORY_LARGEST || e->story->kind == SL_STORY_REQUEST || e->story->kind == SL_STORY_STEP)
		WHY(e, "It is %s times the largest that was granted before, %s.",
		    TIMES((double)e->oom->asked_bytes / (double)e->story->before), e->before);
	if (e->oom->of_framework)
		FIX(e, "a larger pool (XLA_PYTHON_CLIENT_MEM_FRACTION), or a smaller result at %s", e->line);
	else
		fix_size(e);
}

static void tell_framework(struct error *e)
{
	HEAD(e, "JAX's pool of %s has no room for %s", SL_ANSWER_SIZE(e->oom->total_bytes), e->asked);
	WHY(e, "%s of the pool were in use. The card may have had room.", SL_ANSWER_SIZE(e->oom->total_bytes - e->oom->free_bytes));
	FIX(e, "donate what the jitted step at %s replaces (donate_argnums), or raise XLA_PYTHON_CLIENT_MEM_FRACTION", e->line);
}

static void tell_own_limit(struct error *e)
{
	const char *line = SL_MAKE_LINE_OF(e->process, e->oom->torch.fraction_stack);

	if (e->account->own_limit == SL_UNKNOWN && e->oom->free_bytes == SL_UNKNOWN)
		HEAD(e, "PyTorch's own limit refuses %s, not the card", e->asked);
	else if (e->account->own_limit == SL_UNKNOWN)
		HEAD(e, "PyTorch's own limit refuses %s, %s are free", e->asked, e->room);
	else
		HEAD(e, "the program allows PyTorch %s, the card has more", SL_ANSWER_SIZE(e->account->own_limit));
	WHY(e, "PyTorch had reserved %s when %s asked %s.", SL_ANSWER_SIZE(e->oom->torch.reserved_bytes), e->line, e->asked);
	FIX(e, "raise set_per_process_memory_fraction%s%s, or ask less at %s", *line ? " at " : "", line, e->line);
}

static void tell_unasked(struct error *e)
{
	const struct sl_hook *hook = sl_header_hook(e->process->model->header, e->oom->api);
	const char *what = hook && hook->verb == SL_VERB_LIMIT		? "memory for the context's limit"
			   : e->oom->scope == SL_SCOPE_CONTEXT		? "a context"
			   : e->oom->scope == SL_SCOPE_CODE		? "its code"
			   : hook && hook->verb == SL_VERB_GRAPH_LAUNCH ? "memory of its graph"
									: "memory of the call itself";

	HEAD(e, "%s finds no room for %s", e->line, what);
	if (e->oom->free_bytes != SL_UNKNOWN)
		WHY(e, "%s were free, and this process held %s.", e->room, SL_ANSWER_SIZE(e->oom->live_bytes));
	if (e->oom->scope == SL_SCOPE_CONTEXT && e->oom->contexts > 1) {
		WHY(e, "It keeps %s contexts%s%s%s%s.", SL_NUMBER(e->oom->contexts),
		    e->account->context == SL_UNKNOWN ? "" : ", which take ", e->account->context_bound ?: "",
		    e->account->context_bound ? " " : "",
		    e->account->context == SL_UNKNOWN ? "" : SL_ANSWER_SIZE(e->account->context));
		FIX(e, "destroy each context when its work is done, or let its jobs share one at %s", e->line);
	} else if (e->oom->scope == SL_SCOPE_CONTEXT && e->account->contexts) {
		WHY(e, "%u contexts of others take %s each at most.", e->account->contexts,
		    SL_ANSWER_SIZE(e->account->context_each));
		FIX(e, "run fewer processes on this card: each makes a context there");
	} else if (e->story->kind == SL_STORY_LIMIT) {
		WHY(e, "The limit that %s raises grew, %s times by now.", e->at, SL_NUMBER(e->story->count));
		FIX(e, "lower the limit at %s when it is no longer needed", e->at);
	} else if (e->story->kind == SL_STORY_GREW) {
		WHY(e, "%s leaks %s.", e->at, e->bytes);
		FIX(e, "free what %s makes when its work is done", e->at);
	} else if (hook && hook->verb == SL_VERB_GRAPH_LAUNCH) {
		FIX(e, "make the blocks of its graph smaller, or free what is held before %s", e->line);
	} else if (e->oom->scope == SL_SCOPE_VRAM || e->oom->scope == SL_SCOPE_CODE) {
		FIX(e, "leave more memory free before %s: CUDA_MODULE_LOADING=EAGER loads code at the start", e->line);
	} else {
		FIX(e, "make the context of %s before the card is filled", e->line);
		sl_answer_next(e->answer, "the holders of this card now", "stormlog-top");
	}
}

static void tell_full(struct error *e)
{
	if (e->oom->of_framework)
		tell_framework(e);
	else if (e->account->own_limit)
		tell_own_limit(e);
	else if (!e->oom->asked_bytes || e->oom->scope == SL_SCOPE_CONTEXT)
		tell_unasked(e);
	else
		tell_story(e);
}

static void tell_injected(struct error *e)
{
	HEAD(e, "%s was made to fail by --inject-oom", e->line);
	WHY(e, "the card had room.");
	sl_answer_say(e->answer, SL_LABEL_OPEN, "no change: the error was asked for");
}

static const struct {
	const char *id;
	void (*tell)(struct error *);
} causes[] = {
	[SL_CAUSE_UNKNOWN] = {"oom.full", tell_story},
	[SL_CAUSE_INJECTED] = {"oom.injected", tell_injected},
	[SL_CAUSE_HOST] = {"oom.host", tell_host},
	[SL_CAUSE_ADDRESS_SPACE] = {"oom.address_space", tell_address_space},
	[SL_CAUSE_FRAGMENTED] = {"oom.fragmented", tell_fragmented},
	[SL_CAUSE_DRIVER] = {"oom.driver", tell_driver},
	[SL_CAUSE_NEIGHBOUR] = {"oom.neighbour", tell_neighbour},
	[SL_CAUSE_TOO_LARGE] = {"oom.too_large", tell_too_large},
	[SL_CAUSE_FULL] = {"oom.full", tell_full},
};

/* The rank that stands for the others: which was first, and what others had. */
static void say_ranks(struct error *e)
{
	for (size_t i = 0; i < e->make->report->findings.count; i++) {
		struct sl_finding *finding = &e->make->report->findings.item[i];

		if (finding->kind != SL_FOUND_ranks_first || finding->process != e->answer->process)
			continue;
		sl_make_describe(e->make->report, finding);
		sl_answer_say(e->answer, SL_LABEL_NOTE, "%s", finding->text);
	}
}

static uint64_t card_of(const struct sl_process *process)
{
	const struct sl_device_state *home = sl_devices_home(process);
	uint64_t limit = sl_header_limit(process->model->header), total = home ? home->total_bytes : SL_UNKNOWN;

	return limit < total ? limit : total;
}

#define GRID_RANKS 8

/* The rank's card is smaller than those of ranks that passed. */
static bool tell_smaller_card(struct error *e)
{
	const struct sl_report *report = e->make->report;
	uint64_t own = card_of(e->process), least = SL_UNKNOWN, peak = 0;
	unsigned ranks = 0;

	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *other = &report->processes[i];

		if (other == e->process || !sl_process_is_rank(other) || other->model->ooms.count)
			continue;
		least = card_of(other) < least ? card_of(other) : least;
		peak = sl_devices_peak(other) > peak ? sl_devices_peak(other) : peak;
		ranks++;
	}
	if (!sl_process_is_rank(e->process) || !ranks || own == SL_UNKNOWN || least == SL_UNKNOWN || own >= least ||
	    peak <= e->oom->live_bytes)
		return false;
	HEAD(e, "rank %lld's card has %s, the others' %s%s", (long long)e->process->trace->header.rank, SL_ANSWER_SIZE(own),
	     SL_ANSWER_SIZE(least), ranks > 1 ? " at least" : "");
	WHY(e, "%u other rank%s passed with %s at most. Rank %lld held %s when %s more were refused.", ranks, ranks == 1 ? "" : "s",
	    SL_ANSWER_SIZE(peak), (long long)e->process->trace->header.rank, SL_ANSWER_SIZE(e->oom->live_bytes), e->asked);
	FIX(e, "give rank %lld a card as the others have, or every rank a smaller batch",
	    (long long)e->process->trace->header.rank);
	sl_answer_say(e->answer, SL_LABEL_NEED, "%s on each card",
		      SL_ANSWER_SIZE(peak + (e->account->context == SL_UNKNOWN ? 0 : e->account->context)));
	if (report->process_count > GRID_RANKS)
		return true;
	e->answer->grid.corner = "rank";
	e->answer->grid.rows = 2;
	e->answer->grid.row[0].name = "peak";
	e->answer->grid.row[1].name = "card";
	for (unsigned i = 0; i < report->process_count; i++) {
		*SL_PUSH(&e->answer->grid.head) =
			sl_answers_text(e->make->to, "%lld", (long long)report->processes[i].trace->header.rank);
		*SL_PUSH(&e->answer->grid.row[0].bytes) = sl_devices_peak(&report->processes[i]);
		*SL_PUSH(&e->answer->grid.row[1].bytes) = card_of(&report->processes[i]);
	}
	return true;
}

/* The device's tensors are far larger than those of the process's other devices: parts of one batch, where one line made both. */
static bool tell_uneven_devices(struct error *e)
{
	uint64_t next = 0, own = 0, all[SL_DEVICES_MAX] = {0};
	bool copies = false;
	int at = -1;

	for (size_t i = 0; i < e->process->model->tracks.count; i++) {
		const struct sl_track *track = &e->process->model->tracks.item[i];

		if (track->device >= 0 && track->device < SL_DEVICES_MAX && track->kind == SL_KIND_block &&
		    track->most_bytes > all[track->device])
			all[track->device] = track->most_bytes;
	}
	for (int d = 0; d < SL_DEVICES_MAX; d++) {
		if (d == e->oom->device)
			own = all[d] > e->oom->asked_bytes ? all[d] : e->oom->asked_bytes;
		else if (all[d] > next)
			next = all[d], at = d;
	}
	if (at < 0 || own < 4 * next || sl_devices_held(e->process) < 2)
		return false;
	for (size_t i = 0; i < e->process->model->tracks.count && !copies; i++) {
		const struct sl_track *track = &e->process->model->tracks.item[i];

		copies = track->device == at && track->kind == SL_KIND_block &&
			 sl_place_key(e->process, track->stack) == sl_place_key(e->process, e->oom->stack);
	}
	HEAD(e, "device %d's tensors are %s times as large as device %d's", e->oom->device, TIMES((double)own / (double)next), at);
	WHY(e, "the largest tensor is %s on device %d and %s on device %d.", SL_ANSWER_SIZE(own), e->oom->device,
	    SL_ANSWER_SIZE(next), at);
	say_room(e);
	if (copies)
		FIX(e, "split the batch by size, not by number of items: device %d's part is far larger", e->oom->device);
	else
		FIX(e, "move some of what works at %s to device %d, or give it fewer or smaller inputs", e->line, at);
	return true;
}

/* True: the weights of one model are what fills the card. */
static bool is_of_a_model(const struct error *e)
{
	return e->story->kind == SL_STORY_WEIGHTS && e->story->words;
}

/* The variable of the line that the story is about, or of a container that has more than half of what was held. */
static void find_holder(struct error *e)
{
	bool holds = HOLDING >> e->story->kind & 1, graph = e->story->kind == SL_STORY_ACTIVATIONS;
	const struct sl_model *model = e->process->model;
	const struct sl_track *track = NULL;

	for (size_t i = 0; e->story->kind == SL_STORY_GREW && i < e->process->leaks_by_line.count && !e->leak_line; i++)
		if (sl_stack_same(e->process->leaks_by_line.item[i].track->stack, e->story->stack))
			e->leak_line = &e->process->leaks_by_line.item[i];
	for (size_t i = 0; holds && !graph && i < model->tracks.count && !track; i++)
		if (sl_stack_same(model->tracks.item[i].stack, e->story->stack))
			track = &model->tracks.item[i];
	e->has_holder = is_of_a_model(e)
				? sl_make_find_root(e->process, e->story->before, &e->holder)
				: (track || graph || !holds) &&
					  sl_make_find_holder(e->process, track,
							      e->leak_line ? e->leak_line->bytes
							      : holds	   ? e->story->bytes
									   : 2 * e->oom->live_bytes,
							      &e->holder) &&
					  (track || graph == !strcmp(e->holder.how, "graph")) && (holds || *e->holder.container);
	snprintf(e->in, sizeof(e->in), e->has_holder ? "in `%.*s`" : "at %.*s", SL_MAKE_LINE - 6,
		 e->has_holder ? e->holder.variable : e->at);
	if (!e->has_holder)
		e->holder.text[0] = 0;
}

/* Where a loss gathers the graphs of all batches, they are for one backward(): to drop them is no change of use. */
static void find_learning(struct error *e)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_own(e->process, frames, e->oom->stack), at = 0;
	uint32_t line =
		e->has_holder && e->story->kind == SL_STORY_ACTIVATIONS
			? sl_source_learns_once(e->process->report->source, e->process->trace, frames, count, e->holder.last, &at)
			: 0;

	if (line)
		snprintf(e->learns, sizeof(e->learns), "%s:%u", sl_paths_name(frames[at].file), line);
}

/* A leak has no answer of its own at the error's line, together with that line, or in its variable. */
static void tell_once(struct error *e)
{
	struct sl_held_by other;

	for (size_t i = 0; i < e->make->leaks.place.count; i++) {
		struct sl_leak_list_place *place = &e->make->leaks.place.item[i];
		const char *lines;

		if (&e->make->report->processes[place->process] != e->process)
			continue;
		place->was_printed |= e->story->kind == SL_STORY_FIRST_PASS || /* nothing could go yet */
				      (e->story->kind == SL_STORY_WEIGHTS && sl_roles_makes_weights(e->process, place->stack));
		if (!(HOLDING >> e->story->kind & 1))
			continue;
		place->was_printed |= place->leak_line && *e->holder.text &&
				      sl_make_find_holder(e->process, place->leak_line->track, place->leak_line->bytes, &other) &&
				      !strcmp(other.variable, e->holder.variable) && !strcmp(other.file, e->holder.file);
		if (sl_place_key(e->process, place->stack) != sl_place_key(e->process, e->story->stack))
			continue;
		lines = place->leak_line ? sl_make_together(e->make, i) : NULL;
		place->was_printed = true;
		if (lines)
			WHY(e, "%s leak together.", lines);
	}
}

/* Stories whose fix says what to ask less of, and not how: a change that is known to help is told instead. */
#define ASKING (1u << SL_STORY_OPTIMIZER | 1u << SL_STORY_TEETH | 1u << SL_STORY_LARGER | 1u << SL_STORY_AGAIN)

/* Where a graph is held, no_grad comes before what only drops it. */
static enum sl_make_fix fix_of(const struct error *e)
{
	const struct sl_changes *changes = e->process->changes;
	const struct sl_change *change = sl_change_of_kind(changes, "no_grad");

	if (e->story->kind == SL_STORY_ACTIVATIONS && sl_change_ends_step(change))
		return SL_MAKE_CAUSED;
	if (e->story->kind == SL_STORY_WEIGHTS)
		return SL_MAKE_PLACED;
	if ((ASKING >> e->story->kind & 1 || e->fills) && changes && changes->count && sl_change_is_known(&changes->tried[0]))
		return SL_MAKE_WEAK;
	return !e->ran && is_weak(e->story->kind) ? SL_MAKE_WEAK : SL_MAKE_SURE;
}

#define WEIGHTS_PART 4 /* of the card: less is not why it is full */

/* Weights of 4 bytes a number, where the types are known. */
static void note_weights(const struct error *e)
{
	bool placed = e->story->kind == SL_STORY_WEIGHTS;
	uint64_t bytes = placed && e->story->bytes != SL_UNKNOWN ? e->story->count : 0;
	const struct sl_owner *owner = NULL;
	const struct sl_site *site;

	while (!placed && (owner = sl_owners_at_error(e->process, e->oom, owner, &site)))
		if (owner->tensor && sl_tensor_element(&e->process->model->tensors.item[owner->tensor]) == 4 &&
		    sl_roles_of(e->process, site) == SL_ROLE_PARAMETERS)
			bytes += owner->typed_bytes;
	if (e->oom->total_bytes != SL_UNKNOWN && bytes >= e->oom->total_bytes / WEIGHTS_PART)
		sl_answer_say(e->answer, SL_LABEL_NOTE, "weights have %s in float32, in bfloat16 %s", SL_ANSWER_SIZE(bytes),
			      SL_ANSWER_SIZE(bytes / 2));
}

/* What the request is, where no sentence has said it yet. */
static void say_tensor(struct error *e)
{
	const struct sl_tensor *tensor = e->oom->tensor ? &e->process->model->tensors.item[e->oom->tensor] : NULL;
	const char *module = tensor && tensor->module ? sl_defs_text(e->process->model->defs, tensor->module) : NULL;

	if (e->shape[0])
		WHY(e, "The request is%s.", e->shape + 1);
	if (module)
		sl_answer_say(e->answer, SL_LABEL_NOTE, "it was in the module %s", module);
	note_weights(e);
}

struct sl_answer *sl_make_error(struct sl_make *make, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_account *account = sl_process_account(process, oom);
	struct error e = {.make = make, .process = process, .oom = oom, .account = account, .story = &account->story};
	const struct sl_process *first;
	const char *ranges = ""; /* of the ranges that were open, by stormlog_pair */
	char mark[80] = "asks";
	bool full = account->cause == SL_CAUSE_FULL && oom->asked_bytes;
	const char *label = oom->label ? sl_label_words(sl_defs_text(process->model->defs, oom->label)) : NULL;

	e.answer =
		sl_answer_add(make->to,
			      sl_dry_report(make->report) && !sl_refuser_words(sl_refuser_of(process, oom)) ? SL_WORD_DOES_NOT_FIT
													    : SL_WORD_OUT_OF_MEMORY,
			      causes[account->cause].id);
	e.answer->process = (int)(process - make->report->processes);
	e.answer->device = oom->device;
	e.answer->unix_ns = sl_process_unix(process, oom->time_ns);
	e.answer->bytes = oom->asked_bytes;
	sl_make_line(e.line, process, oom->stack);
	if (!e.line[0])
		snprintf(e.line, sizeof(e.line), "%s", sl_process_who((char[SL_FORMAT_BYTES]){0}, process));
	sl_make_line(e.at, process, account->story.stack);
	if (!e.at[0])
		snprintf(e.at, sizeof(e.at), "%s", e.line);
	sl_answer_size(e.asked, oom->asked_bytes);
	sl_answer_size(e.room, oom->free_bytes == SL_UNKNOWN ? 0 : oom->free_bytes);
	sl_answer_size(e.bytes, account->story.bytes);
	sl_answer_size(e.before, account->story.before);
	sl_tensor_words(e.shape, sizeof(e.shape), process, oom->tensor);
	if (oom->asked_bytes)
		snprintf(mark, sizeof(mark), "asks %s", e.asked);
	sl_answer_figure(e.answer, "asked", "bytes", (double)oom->asked_bytes);
	if (oom->free_bytes != SL_UNKNOWN)
		sl_answer_figure(e.answer, "free", "bytes", (double)oom->free_bytes);
	if (account->story.kind == SL_STORY_REQUEST || account->story.kind == SL_STORY_STEP)
		sl_answer_judged(e.answer, "asked", "times_the_largest_before", account->story.times, "at least", SL_SPIKE_TIMES);
	if (oom->total_bytes != SL_UNKNOWN)
		sl_answer_figure(e.answer, "total", "bytes", (double)oom->total_bytes);
	sl_make_stack(e.answer, process, oom->stack, mark, 3);
	if (!(full && !account->own_limit && (tell_smaller_card(&e) || tell_uneven_devices(&e)))) {
		bool proven = full && !sl_oom_got_over(oom) && sl_make_text(e.answer, process, oom);

		find_operator(&e);
		find_holder(&e);
		find_learning(&e);
		if (full && !sl_oom_got_over(oom) && !proven && !e.learns[0] &&
		    !(e.story->kind == SL_STORY_CACHES && e.story->words)) /* each pass reads them on the card */
			sl_make_changes(e.answer, process, fix_of(&e), e.has_holder && !is_of_a_model(&e) ? &e.holder : NULL);
		bool has_fix = e.answer->label[SL_LABEL_FIX].count > 0;
		size_t fixes = e.answer->label[SL_LABEL_FIX].count;

		if (!proven)
			causes[account->cause].tell(&e);
		if (oom->device > 0 || (oom->device == 0 && sl_devices_held(process) > 1))
			WHY(&e, "It was on device %d.", oom->device);
		if (has_fix && !proven) /* a change that the replay tried is told instead of one of unknown worth */
			e.answer->label[SL_LABEL_FIX].count = fixes;
		say_holder(&e);
	}
	say_tensor(&e);
	sl_answer_brief(e.answer, "asks %s", e.asked);
	tell_once(&e);
	say_ranks(&e);
	if (!e.answer->grid.rows)
		sl_make_full(make, e.answer, process, oom);
	for (unsigned i = 0; i < oom->pair_count; i++)
		ranges = sl_answers_text(make->to, "%s%s%s", ranges, i ? ", " : " with ",
					 sl_defs_text(process->model->defs, oom->pairs[i]));
	if (label && (ranges[0] || (strncmp(label, "step", 4) != 0 && strncmp(label, "training step", 13) != 0)))
		sl_answer_say(e.answer, SL_LABEL_NOTE, "it was in %s%s", label, ranges);
	if (make->report->images.images[process->image].summary)
		sl_make_next(make, e.answer, "tree --at peak", "the lines that held it");
	else
		sl_make_next(
			make, e.answer,
			sl_answers_text(make->to, "tree --at oom%s%s",
					!process->model->recording.follows_process && sl_devices_held(process) > 1 ? " --by device"
														   : "",
					sl_report_first_oom(make->report, &first) == oom
						? ""
						: sl_answers_text(make->to, " --pid %lld", (long long)process->trace->header.pid)),
			"the lines that held it");
	return e.answer;
}

struct shown {
	struct sl_process *process;
	const struct sl_oom *oom;
	uint64_t unix_ns;
	unsigned processes, again; /* again: more requests of the same process that failed for the same leak */
};

/* True: both are one error for a reader: other processes at the same line with the same story, or later ones of one leak. */
static bool are_alike(const struct shown *a, const struct shown *b)
{
	const struct sl_account *one = sl_process_account(a->process, a->oom), *other = sl_process_account(b->process, b->oom);

	if (one->cause != other->cause || one->story.kind != other->story.kind)
		return false;
	if (a->process == b->process)
		return one->story.kind == SL_STORY_GREW || one->story.kind == SL_STORY_WEIGHTS;
	return sl_place_key(a->process, a->oom->stack) == sl_place_key(b->process, b->oom->stack) &&
	       sl_place_key(a->process, one->story.stack) == sl_place_key(b->process, other->story.stack);
}

/* Requests that the program got over. */
static void note_retries(struct sl_make *make, uint64_t count, struct sl_process *process, const struct sl_oom *largest)
{
	char line[SL_MAKE_LINE];

	if (!largest)
		return;
	sl_make_line(line, process, largest->stack);
	make->retried = sl_answers_text(make->to, "%llu request%s failed, up to %s at %s%s, and the program went on",
					(unsigned long long)count, count == 1 ? "" : "s", SL_ANSWER_SIZE(largest->asked_bytes),
					line, sl_oom_made_to_fail(largest) ? ", made to fail by --inject-oom" : "");
}

static int compare_times(const void *a, const void *b)
{
	const struct shown *one = a, *other = b;

	return one->unix_ns < other->unix_ns ? -1 : one->unix_ns > other->unix_ns;
}

void sl_make_ooms(struct sl_make *make)
{
	SL_VECTOR(struct shown) all = {0};
	struct sl_process *cured_process = NULL;
	const struct sl_oom *cured = NULL;
	uint64_t retried = 0;

	for (unsigned i = 0; i < make->report->process_count; i++) {
		struct sl_process *process = &make->report->processes[i];

		retried += process->model->ooms_total - process->model->ooms.count; /* not listed: others came after them */
		for (size_t k = 0; k < process->model->ooms.count; k++) {
			const struct sl_oom *oom = &process->model->ooms.item[k];

			if (process->accounts[k].told_later)
				continue;
			if (sl_oom_got_over(oom)) {
				retried++;
				if (!cured || oom->asked_bytes > cured->asked_bytes)
					cured = oom, cured_process = process;
			} else {
				*SL_PUSH(&all) = (struct shown){process, oom, sl_process_unix(process, oom->time_ns), 1, 0};
			}
		}
	}
	if (all.count)
		qsort(all.item, all.count, sizeof(*all.item), compare_times);
	for (size_t i = 0; i < all.count; i++) {
		struct sl_answer *answer;

		if (!all.item[i].processes)
			continue;
		for (size_t k = i + 1; k < all.count; k++)
			if (all.item[k].processes && are_alike(&all.item[i], &all.item[k])) {
				all.item[i].processes += all.item[k].process != all.item[i].process;
				all.item[i].again += all.item[k].process == all.item[i].process;
				all.item[k].processes = 0;
			}
		answer = sl_make_error(make, all.item[i].process, all.item[i].oom);
		if (all.item[i].processes > 1)
			sl_answer_say(answer, SL_LABEL_NOTE, "%u processes failed there", all.item[i].processes);
		if (all.item[i].again)
			sl_answer_say(answer, SL_LABEL_NOTE, "%u more request%s failed for the same reason", all.item[i].again,
				      all.item[i].again == 1 ? "" : "s");
	}
	SL_DROP(&all);
	note_retries(make, retried, cured_process, cured);
}
