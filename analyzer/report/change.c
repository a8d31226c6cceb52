/* SPDX-License-Identifier: MIT */
#include "analyzer/report/change.h"

#include <stdio.h>
#include <string.h>

#include "analyzer/base/format.h"
#include "analyzer/base/json.h"
#include "analyzer/base/paths.h"
#include "analyzer/model/state/units.h"

const char *const sl_change_rungs[] = {
	[SL_RUNG_REPLAYED] = "replayed", [SL_RUNG_SCALED] = "scaled", [SL_RUNG_COMPLETED] = "completed"};
/* The same for a reader: what was added or multiplied is an estimate. */
static const char *const rung_words[] = {
	[SL_RUNG_REPLAYED] = "replayed", [SL_RUNG_SCALED] = "estimated", [SL_RUNG_COMPLETED] = "estimated"};
const char *const sl_change_passes[] = {[SL_PASSES_NOT] = "no",
					[SL_PASSES_REQUEST] = "this request",
					[SL_PASSES_STEP] = "this step",
					[SL_PASSES] = "the whole step",
					[SL_PASSES_UNKNOWN] = "unknown"};

/* What a reader does, by the kind of change: the words before and behind its line. */
static const struct imperative {
	const char *kind, *before, *behind;
	bool keeps; /* what a variable holds, or several lines of a function, which is named */
	bool twice; /* what is there twice */
} imperatives[] = {
	{"free_leak", "detach or drop what ", " keeps", true},
	{"no_grad", "run ", " under torch.no_grad()"},
	{"offload_results", "move what ", " keeps to the host by .detach().cpu()", true},
	{"zero_early", "call zero_grad() before ", ""},
	{"load_on_host", "pass map_location=\"cpu\" to the load at ", "", false, true},
	{"new_optimizer", "make a new optimizer where its weights are replaced: ", " still holds the state of the old ones", false,
	 true},
	{"no_second_copy", "make on the host what ", " copies", false, true},
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

/* The same for offload_results that are moved. */
static const struct imperative hold = {"", "hold on the host what ", " keeps, and copy it to the card for each use", true};

/* NULL: a summary of a newer release has the kind. */
static const struct imperative *find_imperative(const char *kind)
{
	for (size_t i = 0; i < SL_COUNT(imperatives); i++)
		if (!strcmp(kind, imperatives[i].kind))
			return &imperatives[i];
	return NULL;
}

enum sl_weights sl_change_of_weights(const struct sl_change *c)
{
	const struct imperative *does = find_imperative(c->kind);

	return !does || (does->keeps && !does->twice) ? SL_WEIGHTS_MEANT : does->twice ? SL_WEIGHTS_TWICE : SL_WEIGHTS_OTHER;
}

const char *sl_change_text(char *out, size_t size, const struct sl_change *c, const char *variable)
{
	const struct imperative *does = c->moved ? &hold : find_imperative(c->kind);
	char line[200] = "the program";

	if (c->settings) {
		snprintf(out, size, "set PYTORCH_CUDA_ALLOC_CONF=%s", c->settings);
		return out;
	}
	if (c->at.file)
		snprintf(line, sizeof(line), "%s:%u", sl_paths_name(c->at.file), c->at.line);
	if (!does)
		snprintf(out, size, "%s at %s", c->kind, line);
	else if (does->keeps && variable)
		snprintf(out, size, "%s`%s`%s", does->before, variable, does->behind);
	else if (does->keeps && c->at.function && c->at.function[0] != '<')
		snprintf(out, size, "%s%s() (%s)%s", does->before, c->at.function, line, does->behind);
	else
		snprintf(out, size, "%s%s%s", does->before, line, does->behind);
	return out;
}

const char *sl_change_words(char *out, size_t size, const struct sl_change *c)
{
	size_t at;

	if (c->settings)
		at = (size_t)snprintf(out, size, "%s reserved, %s", SL_SIZE(c->peak_reserved), rung_words[c->rung]);
	else
		at = (size_t)snprintf(out, size, "%s%s%s, %s", c->about ? "about " : "", c->less < 0 ? "+" : &"-"[!c->less],
				      SL_SIZE((uint64_t)(c->less < 0 ? -c->less : c->less)), rung_words[c->rung]);

	if (c->wanted && at < size)
		at += (size_t)snprintf(out + at, size - at, ", then %s fail", SL_SIZE(c->wanted));
	if (c->wanted && c->stops.file && at < size)
		at += (size_t)snprintf(out + at, size - at, " at %s:%u", sl_paths_name(c->stops.file), c->stops.line);
	if (c->passes == SL_PASSES_STEP && c->steps_later != SL_UNKNOWN && at < size)
		at += (size_t)snprintf(out + at, size - at,
				       c->steps_later > 1 ? ", and fails about %llu steps later" : ", and fails in the next",
				       (unsigned long long)c->steps_later);
	if (c->seconds > 0 && at < size)
		at += (size_t)snprintf(out + at, size - at, ", a step takes %.2g s more", c->seconds);
	if (c->tight && at < size)
		at += (size_t)snprintf(out + at, size - at, ", not with 3 %% less memory");
	if (c->given && at < size)
		snprintf(out + at, size - at, ", where %s", c->given);
	return out;
}

bool sl_change_is_known(const struct sl_change *c)
{
	return c->passes == SL_PASSES || ((c->passes == SL_PASSES_STEP || c->passes == SL_PASSES_REQUEST) && c->less > 0 &&
					  !c->given && c->rung != SL_RUNG_SCALED);
}

const struct sl_change *sl_change_of_kind(const struct sl_changes *changes, const char *kind)
{
	for (unsigned i = 0; changes && i < changes->count; i++)
		if (!strcmp(changes->tried[i].kind, kind))
			return &changes->tried[i];
	return NULL;
}

static void write_line(struct sl_json *j, const char *key, const struct sl_change_line *line)
{
	char text[600];

	snprintf(text, sizeof(text), "%s:%u", line->file ? line->file : "", line->line);
	sl_json_string(j, key, line->file ? text : NULL);
}

void sl_change_write(struct sl_json *j, const struct sl_change *c)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "kind", c->kind);
	write_line(j, "line", &c->at);
	sl_json_string(j, "function", c->at.function);
	sl_json_string(j, "rung", sl_change_rungs[c->rung]);
	sl_json_string(j, "passes", sl_change_passes[c->passes]);
	sl_json_bool(j, "fits", c->passes == SL_PASSES);
	sl_json_bool(j, "tight", c->tight);
	sl_json_string(j, "given", c->given);
	sl_json_known_uint(j, "steps_later", c->steps_later);
	sl_json_known_uint(j, "lacks_bytes", c->wanted ? c->wanted : SL_UNKNOWN);
	write_line(j, "lacks_at", &c->stops);
	sl_json_known_uint(j, "peak_reserved_bytes", c->peak_reserved);
	sl_json_known_uint(j, "peak_allocated_bytes", c->peak_allocated);
	sl_json_int(j, "less_bytes", c->less);
	if (c->seconds > 0)
		sl_json_double(j, "more_seconds", c->seconds);
	else
		sl_json_null(j, "more_seconds");
	sl_json_end(j);
}
