/* SPDX-License-Identifier: MIT */
/* What to change, where the replay of the changed program shows that it helps (analyzer/fit/change.h). */
#include <stdio.h>
#include <string.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/amounts.h"
#include "analyzer/base/format.h"
#include "analyzer/base/paths.h"
#include "analyzer/report/change.h"

#define TRIED_SHOWN 2

/* "peak 5.3 GiB -> 543 MiB, fits": the most that PyTorch reserves, with the request that failed */
static void put_effect(char *out, size_t size, const struct sl_changes *changes, const struct sl_change *change)
{
	uint64_t now = change->peak_reserved;
	size_t at = 0;

	out[0] = 0;
	if (now != SL_UNKNOWN && now && !change->about && change->less > 0)
		at = (size_t)snprintf(out, size, "peak %s -> %s, ", SL_ANSWER_SIZE(now + (uint64_t)change->less),
				      SL_ANSWER_SIZE(now));
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

const char *sl_answer_left_out(char text[200], const struct sl_changes *changes)
{
	static const char command[] = "stormlog-analyze fit --changes";

	switch (changes->left_out) {
	case SL_LEFT_OUT_NOTHING:
		return NULL;
	case SL_LEFT_OUT_ALL:
		snprintf(text, 200, "changes were not tried: %s", changes->why_not);
		break;
	case SL_LEFT_OUT_LARGE:
		snprintf(text, 200, "changes were not tried, since it has too many events: %s", command);
		break;
	case SL_LEFT_OUT_KINDS:
		snprintf(text, 200, "%u kinds of change were not tried, for lack of time: %s", changes->untried, command);
		break;
	case SL_LEFT_OUT_PROCESSES:
		snprintf(text, 200, "changes were tried on this process only: %s", command);
		break;
	}
	return text;
}

bool sl_make_changes(struct sl_answer *answer, const struct sl_process *process, enum sl_make_fix fix,
		     const struct sl_held_by *holder)
{
	const struct sl_changes *changes = process->changes;
	enum sl_said_as label = changes && changes->failed ? SL_LABEL_TRIED : SL_LABEL_LESS;
	char what[300], effect[300], left_out[200];
	const struct sl_change *own =
		fix == SL_MAKE_CAUSED ? sl_change_of_kind(changes, "no_grad") : NULL; /* the fix that is told */
	unsigned shown = 0;
	bool request = changes != NULL;

	for (unsigned i = 0; changes && i < changes->count; i++)
		request &= !helps(changes, &changes->tried[i], false) || changes->tried[i].given;
	for (unsigned i = 0; changes && i <= changes->count && shown < TRIED_SHOWN; i++) {
		const struct sl_change *change = i ? &changes->tried[i - 1] : own;

		if (!change || (i && change == own) || !helps(changes, change, request && !shown) ||
		    (fix == SL_MAKE_PLACED && sl_change_of_weights(change) == SL_WEIGHTS_MEANT))
			continue;
		sl_change_text(what, sizeof(what), change,
			       holder && (double)holder->whole >= SL_NEARLY_ALL * (double)change->less ? holder->variable : NULL);
		put_effect(effect, sizeof(effect), changes, change);
		bool is_fix = fix == SL_MAKE_PLACED ? sl_change_of_weights(change) == SL_WEIGHTS_TWICE
			      : fix == SL_MAKE_WEAK ? change->passes != SL_PASSES_REQUEST || sl_change_is_known(change)
						    : fix == SL_MAKE_SURE && change->passes == SL_PASSES;

		if (!shown && changes->failed && is_fix) {
			sl_answer_say(answer, SL_LABEL_FIX, "%s", what);
			sl_answer_say(answer, label, "%s", effect);
		} else {
			sl_answer_say(answer, label, "%s%s: %s", shown ? "\n" : "", what, effect);
		}
		shown++;
	}
	if (changes && sl_answer_left_out(left_out, changes))
		sl_answers_note(answer->of, "%s", left_out);
	return answer->label[SL_LABEL_FIX].count > 0;
}
