/* SPDX-License-Identifier: MIT */
/*
 * A line asks for the memory that its stacks hold when the run's tensors are most.  Stacks are compared by functions, since
 * releases move the numbers of lines.  Memory that one function gained and another lost has only moved: it counts as no change.
 */
#include "analyzer/answer/trial.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/amounts.h"
#include "analyzer/base/map.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/place.h"

#define SHOWN	 6	      /* packages */
#define PACKAGES "-packages/" /* site-packages, dist-packages */

struct package {
	const char *name;
	const char *version[2]; /* NULL: not installed */
	const char *home[2];	/* the folder from which the side has its frames; NULL: none */
	double moved;		/* bytes of its lines that changed */
};

/* What one innermost function asks for on behalf of its owner, the function to name. */
struct change {
	const char *owner, *leaf;
	struct package *package;    /* of the owner; NULL: none that differs */
	struct sl_stack_frame line; /* of the owner, in the largest stack of `side` */
	struct sl_stack stack;
	uint64_t largest;
	unsigned side;
	double bytes;
};

struct against {
	struct sl_process *process[2];
	struct sl_map texts; /* packages and changes by name */
	SL_VECTOR(struct package) package;
	SL_VECTOR(struct change) change;
	double total; /* by how much more the program held */
};

/* ---- packages */

/* As folders have it: Flash-Attn is flash_attn. */
static void name_folder(char *name)
{
	for (; *name; name++)
		*name = *name == '-' || *name == '.' ? '_' : (char)tolower((unsigned char)*name);
}

/* The package of a file, as its folder is called; "": none.  Returns what stands behind the folder with all packages, or NULL. */
static const char *name_package(char name[64], const char *file)
{
	const char *at = file ? strstr(file, PACKAGES) : NULL;

	*name = 0;
	if (at)
		sscanf(at += strlen(PACKAGES), "%63[^/.]", name);
	name_folder(name);
	return at;
}

static struct package *package_at(struct against *a, const char *name)
{
	uintptr_t *at = sl_map_at(&a->texts, name);

	if (!*at) {
		*SL_PUSH(&a->package) = (struct package){.name = sl_map_intern(&a->texts, name)};
		*at = a->package.count;
	}
	return &a->package.item[*at - 1];
}

/* entry: "flash_attn-2.6.3.dist-info".  Where two folders have it, that of its frames counts, and else both do. */
static void take_package(struct against *a, unsigned side, const char *folder, const char *entry)
{
	char name[64], version[64], *end;
	const char **is, *both;
	struct package *p;

	if (!sl_paths_ends(entry, "-info") || sscanf(entry, "%63[^-]-%63[^-]", name, version) != 2)
		return;
	end = strstr(version, ".dist") ?: strstr(version, ".egg") ?: strchr(version, 0);
	*end = 0;
	name_folder(name);
	p = package_at(a, name);
	is = &p->version[side];
	if (p->home[side] && p->home[side] != folder)
		return;
	both = *is && strcmp(*is, version) != 0 ? sl_arena_printf(&a->texts.arena, "%s or %s", *is, version) : version;
	*is = sl_map_intern(&a->texts, both);
}

/* What is installed in the folders from which the process has frames. */
static void take_packages(struct against *a, unsigned side)
{
	const struct sl_defs *defs = &a->process[side]->trace->defs;
	SL_VECTOR(const char *) folder = {0};
	char name[64], path[PATH_MAX];

	for (size_t i = 0, k = 0; i < defs->files.count; i++, k = 0) {
		const char *at = name_package(name, defs->files.item[i]), *home;

		if (!at)
			continue;
		snprintf(path, sizeof(path), "%.*s", (int)(at - defs->files.item[i]), defs->files.item[i]);
		home = package_at(a, name)->home[side] = sl_map_intern(&a->texts, path);
		while (k < folder.count && folder.item[k] != home)
			k++;
		if (k == folder.count)
			*SL_PUSH(&folder) = home;
	}
	for (size_t i = 0; i < folder.count; i++) {
		DIR *all = opendir(folder.item[i]);

		for (struct dirent *entry; all && (entry = readdir(all));)
			take_package(a, side, folder.item[i], entry->d_name);
		if (all)
			closedir(all);
	}
	SL_DROP(&folder);
}

static bool differs(const struct package *p)
{
	return p->version[0] != p->version[1];
}

static bool is_torch(const struct package *p)
{
	return !strcmp(p->name, "torch");
}

/* The package of a frame that differs; NULL: none. */
static struct package *package_of(const struct against *a, const struct sl_stack_frame *frame)
{
	uintptr_t found;
	char name[64];

	name_package(name, frame->python ? frame->file : NULL);
	found = sl_map_find(&a->texts, name);
	return found && differs(&a->package.item[found - 1]) ? &a->package.item[found - 1] : NULL;
}

/* ---- what changed */

static const char *name_function(struct against *a, const struct sl_stack_frame *frame)
{
	char text[1024];

	snprintf(text, sizeof(text), "%s %s", sl_paths_name(frame->file ?: frame->module) ?: "", frame->function ?: "");
	return sl_map_intern(&a->texts, text);
}

/* Names the innermost frame of a package that differs, of PyTorch's only where no other is; else the program's line. */
static void take_stack(struct against *a, unsigned side, struct sl_stack stack, uint64_t bytes)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_stack(a->process[side], frames, stack), inner = 0;
	struct change now = {.side = side, .largest = bytes, .stack = stack, .bytes = side ? (double)bytes : -(double)bytes}, *to;
	const struct sl_stack_frame *owner = NULL;
	char key[2100];
	uintptr_t *at;

	a->total += now.bytes;
	for (unsigned f = count; f--;) {
		struct package *p = package_of(a, &frames[f]);

		if (!p || (is_torch(p) && now.package && !is_torch(now.package)))
			continue;
		now.package = p;
		owner = &frames[f];
	}
	owner = owner ?: sl_place_of(a->process[side], frames, count);
	if (!owner)
		return;
	while (inner + 1 < count && (!frames[inner].python || sl_place_is_wrapper(&frames[inner])))
		inner++;
	now.owner = name_function(a, owner);
	now.leaf = name_function(a, &frames[inner]);
	now.line = *owner;
	snprintf(key, sizeof(key), "%s\n%s", now.owner, now.leaf);
	at = sl_map_at(&a->texts, key);
	if (!*at) {
		*SL_PUSH(&a->change) = (struct change){.side = side};
		*at = a->change.count;
	}
	to = &a->change.item[*at - 1];
	now.bytes += to->bytes;
	if (side == to->side && bytes < to->largest)
		to->bytes = now.bytes;
	else
		*to = now;
}

enum { ALIKE_THERE, ALIKE_ELSEWHERE, PARTS_THERE, WAYS }; /* there: in one function or for one owner */

/* Takes out memory that only moved: as much of it, or parts. */
static void cancel(struct against *a, unsigned way)
{
	for (struct change *more = a->change.item; more < a->change.item + a->change.count; more++)
		for (struct change *less = a->change.item; less < a->change.item + a->change.count; less++) {
			double moved = fmin(more->bytes, -less->bytes);

			if (moved <= 0 || (way != ALIKE_ELSEWHERE && more->leaf != less->leaf && more->owner != less->owner) ||
			    (way != PARTS_THERE && fabs(more->bytes + less->bytes) > SL_ALIKE * moved))
				continue;
			more->bytes -= way == PARTS_THERE ? moved : more->bytes;
			less->bytes += way == PARTS_THERE ? moved : -less->bytes;
		}
}

/* First the changes in the direction of the whole. */
static int by_change(const void *x, const void *y, void *total)
{
	double sign = *(const double *)total < 0 ? -1 : 1;

	return SL_FALLING(sign * ((const struct change *)x)->bytes, sign * ((const struct change *)y)->bytes);
}

static void compare(struct against *a)
{
	const struct sl_site *site = NULL;
	uint64_t bytes;

	for (unsigned side = 0; side < 2; side++)
		if (a->process[side])
			take_packages(a, side);
	for (unsigned side = 0; side < 2; side++)
		while (a->process[side] && (site = sl_owners_next(a->process[side], SL_DEVICE_ANY, SL_WEIGH_LIVE, site, &bytes)))
			take_stack(a, side, site->stack, bytes);
	for (unsigned way = 0; way < WAYS; way++)
		cancel(a, way);
	if (a->change.count)
		qsort_r(a->change.item, a->change.count, sizeof(*a->change.item), by_change, &a->total);
	for (size_t i = 0; i < a->change.count; i++)
		if (a->change.item[i].package)
			a->change.item[i].package->moved += fabs(a->change.item[i].bytes);
}

/* ---- in words */

static int by_moved(const void *x, const void *y)
{
	const struct package *a = x, *b = y;

	return SL_FALLING(a->moved, b->moved) ?: strcmp(a->name, b->name);
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
	else if (!count && a->package.count)
		sl_answer_say(answer, SL_LABEL_NOTE, "no package differs");
}

/* "train.py:9 forward asks 2.32 GiB more".  mark: gets what stands behind the function. */
static const char *say_change(struct sl_answer *answer, const struct change *c, const char **mark)
{
	*mark = sl_answers_text(answer->of, "asks %s %s", SL_ANSWER_SIZE(sl_stats_bytes(fabs(c->bytes))),
				c->bytes < 0 ? "less" : "more");
	return sl_answers_text(answer->of, "%s:%u %s %s", sl_paths_name(c->line.file ?: c->line.module ?: "?"), c->line.line,
			       c->line.function ?: "", *mark);
}

/* The headline and its lines: those of the program, and behind them the package's. */
static void say_first(struct sl_answer *answer, const struct against *a, const struct change *c)
{
	const struct package *p = c->package;
	const char *mark, *text = say_change(answer, c, &mark);

	sl_answer_headline(answer, "%s than %s", text,
			   p ? sl_answers_text(answer->of, "with %s %s", p->name, p->version[0] ?: "absent")
			     : "in the other environment");
	sl_make_stack(answer, a->process[c->side], c->stack, p ? NULL : mark, p ? 2 : 3);
	if (p)
		sl_answer_frame(answer, &(struct sl_answer_line){.file = sl_paths_name(c->line.file),
								 .path = c->line.file,
								 .line = c->line.line,
								 .function = c->line.function,
								 .mark = mark});
	sl_answer_figure(answer, "change", "bytes", c->bytes);
}

struct sl_answers *sl_answer_against(struct sl_trial *const asked[2], struct sl_trial *const ran[2], struct sl_report report[2])
{
	static const enum sl_word word[] = {
		[SL_TRIAL_FAILS] = SL_WORD_DOES_NOT_FIT, [SL_TRIAL_MAY] = SL_WORD_MAY_FIT, [SL_TRIAL_FITS] = SL_WORD_FITS};
	const char *mark;
	struct against a = {.process = {sl_devices_fullest_process(&report[0]), sl_devices_fullest_process(&report[1])}};
	struct sl_answers *answers = sl_answers_new();
	struct sl_answer *answer = sl_answer_add(answers, word[asked[1]->fit], "dry.fits");

	compare(&a);
	answers->title = sl_answers_text(answers, "%s", asked[1]->program);
	answers->right = sl_answers_text(answers, "%s", asked[1]->card_name);
	sl_answers_under(answers, "DRY RUN: " SL_DRY_WORDS);
	if (a.change.count && a.change.item[0].bytes * a.total > 0)
		say_first(answer, &a, &a.change.item[0]);
	else
		sl_answer_headline(answer, a.total ? "no line asks for more than in the other environment"
						   : "it holds as much as in the other environment");
	sl_answer_say(answer, SL_LABEL_WHY, "It held %s, and %s in the other environment.", SL_ANSWER_SIZE(ran[1]->peak),
		      SL_ANSWER_SIZE(ran[0]->peak));
	sl_answer_say(answer, SL_LABEL_CARDS, "It %s the %s; there it %s%s.", sl_trial_words[asked[1]->fit], asked[1]->card_name,
		      sl_trial_words[asked[0]->fit],
		      asked[0] != ran[0] ? ". The lines were compared on a card with room for both" : "");
	for (size_t i = 1; i < a.change.count && i < SL_NAMED; i++)
		if (fabs(a.change.item[i].bytes) > fabs(a.total) / 20)
			sl_answer_say(answer, SL_LABEL_HELD, "%s%s", sl_answer_break(answer, SL_LABEL_HELD),
				      say_change(answer, &a.change.item[i], &mark));
	say_packages(answer, &a);
	SL_DROP(&a.package);
	SL_DROP(&a.change);
	sl_map_free(&a.texts);
	return answers;
}
