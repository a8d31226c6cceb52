/* SPDX-License-Identifier: MIT */
/*
 * A line asks for the memory that its stacks hold when the run's tensors are most.  A stack is the functions of its Python
 * frames, since releases move the numbers of lines.  Memory that one stack gained and another lost has only moved, and counts
 * as no change.
 */
#include "analyzer/answer/against.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/amounts.h"
#include "analyzer/base/format.h"
#include "analyzer/base/map.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/place.h"

#define PATH_BYTES 8192
#define SHOWN	   6 /* packages */

struct package {
	char name[64];
	const char *version[2]; /* NULL: not installed */
	double moved;		/* bytes of its lines that changed */
};

/* One stack of functions, on both sides. */
struct stack {
	const char *leaf; /* its innermost function, of the map's texts */
	uint64_t most[2];
	struct sl_stack at[2]; /* with the most bytes */
	double change;
};

/* A function whose stacks changed; the line is that of the largest change. */
struct change {
	const char *file, *function;
	uint32_t line;
	double bytes, most;
	size_t stack;
	long package; /* -1: none that differs */
};

struct against {
	const struct sl_against_side *side;
	struct sl_process *process[2];
	struct sl_map names, paths;
	SL_VECTOR(struct package) package;
	SL_VECTOR(struct stack) stack;
	SL_VECTOR(struct change) change;
	double total; /* by how much more the program held */
};

/* ---- packages */

/* As folders have it: flash-attn is flash_attn. */
static void name_folder(char out[64], const char *name, size_t length)
{
	length = length < 63 ? length : 63;
	for (size_t i = 0; i < length; i++)
		out[i] = name[i] == '-' || name[i] == '.' ? '_' : (char)tolower((unsigned char)name[i]);
	out[length] = 0;
}

static void take_packages(struct against *a, unsigned side)
{
	char *rest = a->side[side].packages, folder[64];

	for (char *line; (line = strsep(&rest, "\n"));) {
		char *blank = strrchr(line, ' ');
		uintptr_t *at;

		if (!blank)
			continue;
		name_folder(folder, line, (size_t)(blank - line));
		at = sl_map_at(&a->names, folder);
		if (!*at) {
			*SL_PUSH(&a->package) = (struct package){{0}};
			*at = a->package.count;
			memcpy(a->package.item[*at - 1].name, folder, sizeof(folder));
		}
		if (!a->package.item[*at - 1].version[side]) /* of two the first one is imported */
			a->package.item[*at - 1].version[side] = blank + 1;
	}
}

static bool differs(const struct package *p)
{
	return !p->version[0] || !p->version[1] || strcmp(p->version[0], p->version[1]) != 0;
}

/* The package of a frame that differs; -1: none. */
static long package_of(const struct against *a, const struct sl_stack_frame *frame)
{
	const char *at = frame->python && frame->file ? strstr(frame->file, "-packages/") : NULL;
	char folder[64];
	uintptr_t found;

	if (!at)
		return -1;
	at += strlen("-packages/");
	name_folder(folder, at, strncmp(at + strcspn(at, "/."), ".py", 3) ? strcspn(at, "/") : strcspn(at, "."));
	found = sl_map_find(&a->names, folder);
	return found && differs(&a->package.item[found - 1]) ? (long)found - 1 : -1;
}

/* ---- what changed */

static void take_stacks(struct against *a, unsigned side)
{
	struct sl_process *process = a->process[side];
	const struct sl_model *model = process->model;

	for (size_t i = 0; i < model->sites.count; i++) {
		const struct sl_site *site = &model->sites.item[i];
		uint64_t bytes = sl_owners_shows(process, site) ? site->live_bytes : 0;
		struct sl_stack_frame frames[SL_STACK_MAX];
		char path[PATH_BYTES] = "", *leaf = path;
		size_t used = 0;
		uintptr_t *at;

		if (!bytes)
			continue;
		for (unsigned f = sl_process_stack(process, frames, site->stack); f-- && used < sizeof(path);)
			if (frames[f].python && !sl_place_is_wrapper(&frames[f])) {
				leaf = path + used;
				used += (size_t)snprintf(leaf, sizeof(path) - used, "\n%s %s", sl_paths_name(frames[f].file),
							 frames[f].function ?: "");
			}
		at = sl_map_at(&a->paths, path);
		if (!*at) {
			*SL_PUSH(&a->stack) = (struct stack){.leaf = sl_map_intern(&a->names, leaf)};
			*at = a->stack.count;
		}
		a->stack.item[*at - 1].change += side ? (double)bytes : -(double)bytes;
		if (bytes > a->stack.item[*at - 1].most[side]) {
			a->stack.item[*at - 1].most[side] = bytes;
			a->stack.item[*at - 1].at[side] = site->stack;
		}
	}
}

enum { ALIKE_THERE, ALIKE_ELSEWHERE, PARTS_THERE, WAYS }; /* as much in one function, in two, and parts in one */

/* Takes out memory that only moved from one stack to another. */
static void cancel(struct against *a, unsigned way)
{
	for (size_t i = 0; i < a->stack.count; i++)
		for (size_t k = 0; k < a->stack.count; k++) {
			double *more = &a->stack.item[i].change, *less = &a->stack.item[k].change, moved;

			if (*more <= 0 || *less >= 0 || (way != ALIKE_ELSEWHERE && a->stack.item[i].leaf != a->stack.item[k].leaf))
				continue;
			moved = *more < -*less ? *more : -*less;
			if (way == PARTS_THERE)
				*more -= moved, *less += moved;
			else if (fabs(*more + *less) <= SL_ALIKE * moved)
				*more = *less = 0;
		}
}

/* The frame to name: the innermost one of a package that differs, of PyTorch's only where no other is; else the program's line. */
static const struct sl_stack_frame *owner_of(const struct against *a, struct sl_process *process, struct sl_stack stack,
					     struct sl_stack_frame frames[SL_STACK_MAX], long *package)
{
	unsigned count = sl_process_stack(process, frames, stack);
	const struct sl_stack_frame *torch = NULL;

	for (unsigned f = 0; f < count; f++) {
		*package = package_of(a, &frames[f]);
		if (*package >= 0 && strcmp(a->package.item[*package].name, "torch") != 0)
			return &frames[f];
		torch = torch ?: *package >= 0 ? &frames[f] : NULL;
	}
	*package = torch ? package_of(a, torch) : -1;
	return torch ?: sl_place_of(process, frames, count);
}

static void add_change(struct against *a, size_t index)
{
	const struct stack *stack = &a->stack.item[index];
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned side = stack->most[1] || stack->change > 0;
	struct change now = {.stack = index, .bytes = stack->change, .most = fabs(stack->change)}, *same = NULL;
	const struct sl_stack_frame *owner = owner_of(a, a->process[side], stack->at[side], frames, &now.package);

	if (!owner || !stack->change)
		return;
	now.file = owner->file ?: owner->module;
	now.function = owner->function;
	now.line = owner->line;
	for (size_t i = 0; i < a->change.count && !same; i++)
		if (!strcmp(a->change.item[i].file ?: "", now.file ?: "") &&
		    !strcmp(a->change.item[i].function ?: "", now.function ?: ""))
			same = &a->change.item[i];
	if (!same) {
		*SL_PUSH(&a->change) = now;
		return;
	}
	now.bytes += same->bytes;
	*same = now.most > same->most ? now : (same->bytes = now.bytes, *same);
}

/* First the changes in the direction of the whole. */
static int by_change(const void *x, const void *y, void *total)
{
	double sign = *(const double *)total < 0 ? -1 : 1;

	return SL_FALLING(sign * ((const struct change *)x)->bytes, sign * ((const struct change *)y)->bytes);
}

static int by_moved(const void *x, const void *y)
{
	const struct package *a = x, *b = y;

	return SL_FALLING(a->moved, b->moved) ?: strcmp(a->name, b->name);
}

/* ---- in words */

static const char *say_change(struct sl_answer *answer, const struct change *c)
{
	return sl_answers_text(answer->of, "%s:%u %s asks %s %s", sl_paths_name(c->file ?: "?"), c->line, c->function ?: "",
			       SL_ANSWER_SIZE(sl_stats_bytes(fabs(c->bytes))), c->bytes < 0 ? "less" : "more");
}

static void say_packages(struct sl_answer *answer, struct against *a)
{
	unsigned count = 0;

	if (a->package.count)
		qsort(a->package.item, a->package.count, sizeof(*a->package.item), by_moved);
	for (size_t i = 0; i < a->package.count; i++) {
		const struct package *p = &a->package.item[i];

		if (differs(p) && count++ < SHOWN)
			sl_answer_say(answer, SL_LABEL_NOTE, "%s%s is %s, and %s there", sl_answer_break(answer, SL_LABEL_NOTE),
				      p->name, p->version[1] ?: "absent", p->version[0] ?: "absent");
	}
	if (count > SHOWN)
		sl_answer_say(answer, SL_LABEL_NOTE, "\n%u more packages differ", count - SHOWN);
	else if (!count)
		sl_answer_say(answer, SL_LABEL_NOTE, "no package differs");
}

static void show_line(struct sl_answer *answer, const struct against *a, const struct change *c)
{
	const struct stack *stack = &a->stack.item[c->stack];
	unsigned side = stack->most[1] != 0;
	const char *mark = sl_answers_text(answer->of, "asks %s %s", SL_ANSWER_SIZE(sl_stats_bytes(fabs(c->bytes))),
					   c->bytes < 0 ? "less" : "more");

	sl_make_stack(answer, a->process[side], stack->at[side], c->package < 0 ? mark : NULL, c->package < 0 ? 3 : 2);
	if (c->package >= 0)
		sl_answer_frame(answer, &(struct sl_answer_line){.file = sl_paths_name(c->file),
								 .path = c->file,
								 .line = c->line,
								 .function = c->function,
								 .mark = mark});
}

static void say_fits(struct sl_answer *answer, const struct sl_against_side side[2], bool roomy)
{
	static const char *const words[] = {
		[SL_TRIAL_FAILS] = "does not fit", [SL_TRIAL_MAY] = "may fit", [SL_TRIAL_FITS] = "fits"};

	sl_answer_say(answer, SL_LABEL_WHY, "It held %s, and %s in the other environment.", SL_ANSWER_SIZE(side[1].ran->held),
		      SL_ANSWER_SIZE(side[0].ran->held));
	sl_answer_say(answer, SL_LABEL_CARDS, "It %s the %s; there it %s%s.", words[side[1].trial->fit], side[1].trial->card_name,
		      words[side[0].trial->fit], roomy ? ". The lines were compared on a card with room for both" : "");
}

static void say(struct sl_answer *answer, struct against *a, bool roomy)
{
	const struct change *first = a->change.item;

	if (!a->change.count || first->bytes * a->total <= 0) {
		sl_answer_headline(answer, a->total ? "no line asks for more than in the other environment"
						    : "it holds as much as in the other environment");
	} else {
		sl_answer_headline(answer, "%s than %s", say_change(answer, first),
				   first->package < 0
					   ? "in the other environment"
					   : sl_answers_text(answer->of, "with %s %s", a->package.item[first->package].name,
							     a->package.item[first->package].version[0] ?: "absent"));
		show_line(answer, a, first);
		sl_answer_figure(answer, "change", "bytes", first->bytes);
	}
	say_fits(answer, a->side, roomy);
	for (size_t i = 1; i < a->change.count && i < SL_NAMED; i++)
		if (fabs(a->change.item[i].bytes) > fabs(a->total) / 20)
			sl_answer_say(answer, SL_LABEL_HELD, "%s%s", sl_answer_break(answer, SL_LABEL_HELD),
				      say_change(answer, &a->change.item[i]));
}

static void compare(struct against *a)
{
	for (unsigned side = 0; side < 2; side++) {
		take_packages(a, side);
		if (a->process[side])
			take_stacks(a, side);
		for (size_t i = 0; side && i < a->stack.count; i++)
			a->total += a->stack.item[i].change;
	}
	for (unsigned way = 0; way < WAYS; way++)
		cancel(a, way);
	for (size_t i = 0; i < a->stack.count; i++)
		add_change(a, i);
	if (a->change.count)
		qsort_r(a->change.item, a->change.count, sizeof(*a->change.item), by_change, &a->total);
	for (size_t i = 0; i < a->change.count; i++)
		if (a->change.item[i].package >= 0)
			a->package.item[a->change.item[i].package].moved += fabs(a->change.item[i].bytes);
}

struct sl_answers *sl_answer_against(const struct sl_against_side side[2], bool roomy)
{
	struct against a = {.side = side};
	struct sl_answers *answers = sl_answers_new();
	enum sl_trial_fit fit = side[1].trial->fit;
	struct sl_answer *answer = sl_answer_add(answers,
						 fit == SL_TRIAL_FITS  ? SL_WORD_FITS
						 : fit == SL_TRIAL_MAY ? SL_WORD_MAY_FIT
								       : SL_WORD_DOES_NOT_FIT,
						 "dry.fits");

	for (unsigned i = 0; i < 2; i++)
		a.process[i] = sl_devices_fullest_process(side[i].report);
	compare(&a);
	answers->title = sl_answers_text(answers, "%s", side[1].trial->program);
	answers->right = sl_answers_text(answers, "%s", side[1].trial->card_name);
	sl_answers_under(answers, "DRY RUN: " SL_DRY_WORDS);
	say(answer, &a, roomy);
	say_packages(answer, &a);
	SL_DROP(&a.package);
	SL_DROP(&a.stack);
	SL_DROP(&a.change);
	sl_map_free(&a.names);
	sl_map_free(&a.paths);
	return answers;
}
