/* SPDX-License-Identifier: MIT */
/* What to change, where the replay of the changed program shows that it helps (analyzer/fit/change.h). */
#include <stdio.h>
#include <string.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/format.h"
#include "analyzer/base/paths.h"
#include "analyzer/report/change.h"

#define TRIED_SHOWN 2
#define ALL_OF_IT   0.9 /* of what a change saves: a variable with so much is named instead of the line */

/* What a reader does, by the kind of change: the words before and behind its line. */
static const struct {
	const char *kind, *before, *behind;
	bool keeps; /* what a variable holds, or several lines of a function, which is named */
} imperatives[] = {
	{"free_leak", "detach or drop what ", " keeps", true},
	{"no_grad", "run ", " under torch.no_grad()"},
	{"offload_results", "move what ", " keeps to the host", true},
	{"zero_early", "call zero_grad() before ", ""},
	{"load_on_host", "pass map_location=\"cpu\" to the load at ", ""},
	{"new_optimizer", "make a new optimizer where its weights are replaced: ", " still holds the state of the old ones"},
	{"no_second_copy", "make on the host what ", " copies"},
	{"one_by_one", "pass foreach=False to the optimizer of ", ""},
	{"half_state", "keep the state of ", " in half precision"},
	{"state_8bit", "use an 8-bit optimizer at ", ""},
	{"set_to_none", "let zero_grad() set gradients to None at ", ""},
	{"checkpointing", "use torch.utils.checkpoint at ", ""},
	{"chunked", "compute ", " in pieces"},
	{"half_batch", "halve the batch of ", ""},
	{"shorter_longest", "bound the longest input of ", ""},
	{"limit_pool", "let the pool of ", " take less"},
	{"free_before_build", "move the model that is no longer used to the host before ", ""},
	{"empty_cache_at_step", "call torch.cuda.empty_cache() before ", ""},
};

static void put_change(char *out, size_t size, const struct sl_change *change, const struct sl_held_by *holder)
{
	char line[200] = "";

	if (change->settings) {
		snprintf(out, size, "set PYTORCH_CUDA_ALLOC_CONF=%s", change->settings);
		return;
	}
	if (change->at.file)
		snprintf(line, sizeof(line), "%s:%u", sl_paths_name(change->at.file), change->at.line);
	for (size_t i = 0; i < SL_COUNT(imperatives); i++) {
		if (strcmp(change->kind, imperatives[i].kind) != 0)
			continue;
		if (imperatives[i].keeps && holder && (double)holder->whole >= ALL_OF_IT * (double)change->less)
			snprintf(out, size, "%s`%s`%s", imperatives[i].before, holder->variable, imperatives[i].behind);
		else if (imperatives[i].keeps && change->at.function && change->at.function[0] != '<')
			snprintf(out, size, "%s%s() (%s)%s", imperatives[i].before, change->at.function, line,
				 imperatives[i].behind);
		else
			snprintf(out, size, "%s%s%s", imperatives[i].before, line[0] ? line : "the program", imperatives[i].behind);
		return;
	}
	snprintf(out, size, "%s at %s", change->kind, line);
	for (char *at = strchr(out, '_'); at; at = strchr(at, '_'))
		*at = ' ';
}

/* "5.3 -> 0.53 GiB, fits" */
static void put_effect(char *out, size_t size, const struct sl_changes *changes, const struct sl_change *change)
{
	uint64_t now = change->peak_reserved;
	size_t at = 0;

	out[0] = 0;
	if (now != SL_UNKNOWN && now && !change->about && change->less > 0)
		at = (size_t)snprintf(out, size, "%s -> %s, ", SL_ANSWER_SIZE(now + (uint64_t)change->less), SL_ANSWER_SIZE(now));
	else if (change->less > 0)
		at = (size_t)snprintf(out, size, "%s%s less, ", change->about ? "about " : "",
				      SL_ANSWER_SIZE((uint64_t)change->less));
	if (!changes->failed)
		snprintf(out + at, size - at, "a lower peak");
	else if (change->passes == SL_PASSES)
		snprintf(out + at, size - at, "fits%s", change->tight ? " narrowly" : "");
	else if (change->passes == SL_PASSES_STEP && change->steps_later != SL_UNKNOWN && change->steps_later > 1)
		snprintf(out + at, size - at, "fits for about %s steps", SL_NUMBER(change->steps_later));
	else if (change->passes == SL_PASSES_REQUEST)
		snprintf(out + at, size - at, "this request passes; what comes after it is not known");
	else
		snprintf(out + at, size - at, "this step passes");
	if (change->given)
		snprintf(out + strlen(out), size - strlen(out), ", where %s", change->given);
}

/* request: it takes less and the request passes, which is told where no change of known worth does more. */
static bool helps(const struct sl_changes *changes, const struct sl_change *change, bool request)
{
	if (!changes->failed)
		return change->passes == SL_PASSES && change->less > 0;
	if (change->passes == SL_PASSES_REQUEST) /* other sizes let it pass once, and fail a moment later */
		return request && change->less > 0 && change->rung != SL_RUNG_SCALED;
	return sl_change_ends_step(change);
}

bool sl_make_change(struct sl_answer *answer, const struct sl_process *process, const char *kind)
{
	const struct sl_changes *changes = process->changes;
	const struct sl_change *change = changes && changes->failed ? sl_change_of_kind(changes, kind) : NULL;
	char effect[300];

	if (!change)
		return true;
	if (change->passes == SL_PASSES_NOT)
		return false;
	put_effect(effect, sizeof(effect), changes, change);
	sl_answer_say(answer, SL_LABEL_TRIED, "%s", effect);
	return true;
}

bool sl_make_changes(struct sl_answer *answer, const struct sl_process *process, enum sl_make_fix fix,
		     const struct sl_held_by *holder)
{
	const struct sl_changes *changes = process->changes;
	enum sl_said_as label = changes && changes->failed ? SL_LABEL_TRIED : SL_LABEL_LESS;
	char what[300], effect[300];
	unsigned told = 0;
	bool request = changes != NULL;

	for (unsigned i = 0; changes && i < changes->count; i++)
		request &= !helps(changes, &changes->tried[i], false) || changes->tried[i].given;
	for (unsigned i = 0; changes && i < changes->count && told < TRIED_SHOWN; i++) {
		const struct sl_change *change = &changes->tried[i];

		if (!helps(changes, change, request))
			continue;
		put_change(what, sizeof(what), change, holder);
		put_effect(effect, sizeof(effect), changes, change);
		if (!told && changes->failed && fix != SL_MAKE_CAUSED &&
		    (fix == SL_MAKE_WEAK ? change->passes != SL_PASSES_REQUEST || sl_change_is_known(change)
					 : change->passes == SL_PASSES)) {
			sl_answer_say(answer, SL_LABEL_FIX, "%s", what);
			sl_answer_say(answer, label, "%s", effect);
		} else {
			sl_answer_say(answer, label, "%s%s: %s", told ? "\n" : "", what, effect);
		}
		told++;
	}
	if (changes && changes->left_out[0])
		sl_answers_note(answer->of, "%s", changes->left_out);
	return answer->label[SL_LABEL_FIX].count > 0;
}
