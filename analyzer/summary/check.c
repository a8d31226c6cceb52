/* SPDX-License-Identifier: MIT */
/* A summary may be hostile: before anything reads the process, each number that is an index is checked to be one. */
#include "analyzer/summary/summary.h"

static bool is_device(int64_t device)
{
	return device >= -1 && device < SL_DEVICES_MAX;
}

/* A device that was used has a state. */
static bool is_used(const struct sl_model *model, int64_t device)
{
	return device == -1 || (is_device(device) && model->devices[device + 1]);
}

static bool is_track_kind(unsigned kind)
{
	return kind < SL_KIND_COUNT || (kind >= SL_OBJECT_CONTEXT && kind < SL_OBJECT_END);
}

#define EACH(type, one, vector) for (type const *one = (vector).item; one && one < (vector).item + (vector).count; one++)

static bool are_named(const struct sl_pair *pairs, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!pairs[i].name)
			return false;
	return true;
}

static bool trace_is_sound(const struct sl_trace *trace)
{
	const struct sl_header *header = &trace->header;

	for (unsigned i = 0; i < header->hook_count; i++) {
		const struct sl_hook *hook = &header->hooks[i];

		if (!hook->name || !hook->plain || hook->verb >= SL_VERB_COUNT || hook->kind >= SL_KIND_COUNT ||
		    hook->family > SL_FAMILY_COUNT)
			return false;
	}
	for (unsigned i = 0; i < header->argc; i++)
		if (!header->argv[i])
			return false;
	if (!are_named(header->metadata, header->metadata_count) || !are_named(header->settings, header->setting_count) ||
	    !are_named(header->environment, header->environment_count) || !are_named(header->system, header->system_count) ||
	    !are_named(header->dry, header->dry_count))
		return false;
	for (unsigned i = 0; i < trace->damage.lines; i++)
		if (!trace->damage.line[i])
			return false;
	EACH(const char *, note, trace->defs.notes)
	if (!*note)
		return false;
	EACH(struct sl_named, named, trace->defs.named)
	if (named->count > SL_SYMBOL_DEPTH)
		return false;
	EACH(struct sl_metadata, entry, trace->defs.metadata)
	if (!entry->key)
		return false;
	return trace->status <= SL_STATUS_UNKNOWN;
}

static bool lines_are_sound(const struct sl_model *model)
{
	for (unsigned i = 0; i < model->timeline.line_count; i++) {
		const struct sl_line *line = model->timeline.lines[i];
		size_t limit = line->what == SL_LINE_KIND      ? SL_KIND_COUNT
			       : line->what == SL_LINE_LIBRARY ? model->libraries.count
			       : line->what == SL_LINE_LABEL   ? model->labelled.count
							       : SIZE_MAX;

		if (line->what > SL_LINE_LABEL || !is_device(line->device) || line->index < 0 || (size_t)line->index >= limit)
			return false;
		for (uint32_t b = line->first; line->begun && b <= line->bin; b++)
			if (line->bins[b].max_site != SL_NO_SITE && line->bins[b].max_site >= model->sites.count)
				return false;
	}
	return true;
}

static bool segments_are_sound(const struct sl_model *model, const struct sl_segments *segments)
{
	for (uint32_t i = 0; i < segments->segment_count; i++)
		if (segments->segment[i].site >= model->sites.count)
			return false;
	for (uint32_t i = 0; i < segments->block_count; i++)
		if (segments->block[i].site >= model->sites.count)
			return false;
	return is_device(segments->device);
}

static bool moments_are_sound(const struct sl_model *model)
{
	const struct sl_moments *moments = &model->moments;

	for (size_t i = 0; i < moments->count; i++)
		for (uint32_t k = 0; k < moments->moment[i].count; k++)
			if (moments->moment[i].sites[k].site >= model->sites.count)
				return false;
	EACH(struct sl_segments, segments, moments->at_end)
	if (!segments_are_sound(model, segments))
		return false;
	EACH(struct sl_mark, mark, moments->marks)
	if (mark->kind > SL_MARK_RESET || !is_device(mark->device))
		return false;
	return segments_are_sound(model, &moments->largest) && segments_are_sound(model, &moments->at_oom);
}

static bool places_are_sound(const struct sl_model *model)
{
	EACH(struct sl_site, site, model->sites)
	if (site->holder >= model->holders.count || site->track >= model->tracks.count || !is_device(site->device) ||
	    site->kind >= SL_KIND_COUNT)
		return false;
	EACH(struct sl_holder, holder, model->holders)
	if (holder->library >= model->libraries.count || !is_device(holder->device))
		return false;
	EACH(const char *, library, model->libraries)
	if (!*library)
		return false;
	EACH(struct sl_labelled, labelled, model->labelled)
	if (!is_device(labelled->device))
		return false;
	EACH(struct sl_track, track, model->tracks)
	if (!is_device(track->device) || !is_track_kind(track->kind))
		return false;
	EACH(struct sl_called, called, model->called)
	if (!is_device(called->device))
		return false;
	EACH(struct sl_variable, variable, model->variables)
	if ((variable->site >= model->sites.count && variable->site != SL_NO_SITE) || variable->track >= model->tracks.count)
		return false;
	EACH(struct sl_paired, paired, model->paired)
	if (paired->label >= model->labels.count)
		return false;
	return true;
}

static bool ooms_are_sound(const struct sl_model *model)
{
	EACH(struct sl_oom, oom, model->ooms)
	{
		if (oom->surge > model->tracks.count || (oom->pool_most_bytes && oom->pool_made >= model->tracks.count) ||
		    !is_used(model, oom->device) || oom->scope > SL_SCOPE_CODE || !oom->api || oom->api > model->header->hook_count)
			return false;
		for (unsigned i = 0; i < oom->owner_count; i++)
			if (oom->owners[i].site >= model->sites.count)
				return false;
	}
	EACH(struct sl_failed_free, failed, model->failed_frees)
	if (!failed->api || failed->api > model->header->hook_count)
		return false;
	EACH(struct sl_in_flight, one, model->in_flight)
	if (!one->api || one->api > model->header->hook_count)
		return false;
	return true;
}

static bool ranges_are_sound(const struct sl_model *model)
{
	EACH(struct sl_phase, phase, model->phases)
	{
		if (phase->label >= model->labels.count || !is_used(model, phase->before.device) ||
		    !is_used(model, phase->after.device))
			return false;
		for (unsigned i = 0; i < phase->depth; i++)
			if (phase->outer[i].label >= model->labels.count)
				return false;
	}
	EACH(struct sl_collective, one, model->collectives)
	if (!one->name)
		return false;
	for (int d = 0; d <= SL_DEVICES_MAX; d++)
		if (model->devices[d]) {
			if (model->devices[d]->source[sizeof(model->devices[d]->source) - 1])
				return false;
			EACH(struct sl_hidden_part, part, model->devices[d]->parts)
			if (part->what > SL_HIDDEN_CODE)
				return false;
			EACH(uint32_t, present, model->devices[d]->present)
			if (*present >= model->devices[d]->neighbours.count)
				return false;
		}
	return true;
}

/* A row, a holder and a label may lack a line, but lines that are drawn must exist. */
static bool rows_are_sound(const struct sl_model *model)
{
	for (int d = 0; d <= SL_DEVICES_MAX; d++)
		for (unsigned k = 0; model->rows[d] && k < SL_KIND_COUNT; k++)
			if (model->rows[d][k].used && !model->rows[d][k].line)
				return false;
	return true;
}

static bool answers_are_sound(const struct sl_process *process)
{
	EACH(struct sl_leak, leak, process->leaks)
	if (leak->kind >= SL_KIND_COUNT || !is_device(leak->device) || !leak->verdict || !leak->severity || !leak->library)
		return false;
	EACH(struct sl_growth, growth, process->growth)
	{
		if (growth->label >= process->model->labels.count)
			return false;
		for (unsigned i = 0; i < growth->holder_count; i++)
			if (!growth->holders[i].library)
				return false;
	}
	EACH(struct sl_leak_line, line, process->leaks_by_line)
	if (!line->track || line->verdict >= SL_KEPT_END || line->verdict == SL_KEPT_MEANT)
		return false;
	EACH(struct sl_heuristics, heuristics, process->heuristics)
	if (!is_device(heuristics->device))
		return false;
	if (process->iterations.by_label && !sl_model_steps(process->model))
		return false;
	return process->session_id && (!(process->iterations.count || process->iterations.by_label) || process->iterations.name);
}

const char *sl_summary_check(const struct sl_process *process)
{
	const struct sl_model *model = process->model;

	if (!trace_is_sound(process->trace) || !lines_are_sound(model) || !moments_are_sound(model) || !places_are_sound(model) ||
	    !ooms_are_sound(model) || !ranges_are_sound(model) || !rows_are_sound(model) || !answers_are_sound(process))
		return "a process whose parts do not fit together";
	return NULL;
}
