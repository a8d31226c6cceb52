/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/upstream.h"

/* "step_#" with index 12 -> "step_12" */
static const char *range_name(struct sl_maker *m, uint32_t label, uint64_t step)
{
	const char *text = sl_defs_text(m->process->model->defs, m->process->model->labels.item[label].text);
	const char *mark = text ? strchr(text, '#') : NULL;

	if (!text || !*text)
		return "range";
	if (!mark || step == SL_UNKNOWN)
		return text;
	return sl_arena_printf(m->arena, "%.*s%llu%s", (int)(mark - text), text, (unsigned long long)step, mark + 1);
}

static const char *scope_id(struct sl_maker *m, uint64_t serial)
{
	return sl_arena_printf(m->arena, "range-%llu", (unsigned long long)serial);
}

/* What the program said of the range; for a repeated key, the last value. */
static struct sl_value *attributes_of(struct sl_maker *m, const struct sl_phase *phase)
{
	struct sl_value *attributes = sl_value_object(m->arena, phase->pair_count);

	for (unsigned i = 0; i < phase->pair_count; i++) {
		const char *text = sl_defs_text(m->process->model->defs, phase->pairs[i]);
		const char *value = text ? strchr(text, '=') : NULL;

		if (value)
			sl_value_set(attributes, sl_arena_printf(m->arena, "%.*s", (int)(value - text), text),
				     sl_value_of_text(value + 1));
	}
	return attributes;
}

/* Readers replay one stack per thread, so a range that is not properly nested gets a thread of its own. */
#define OWN_THREADS (1ll << 32)

static struct sl_value *scope_of(struct sl_maker *m, const struct sl_phase *phase, bool exit)
{
	const struct sl_thread *thread = sl_defs_thread(m->process->model->defs, phase->thread);
	const char *name = range_name(m, phase->label, phase->step);
	struct sl_value *scope = sl_value_object(m->arena, 10);
	unsigned depth = phase->overlaps ? 0 : phase->depth;
	struct sl_value *path = sl_arena_alloc(m->arena, (depth + 1) * sizeof(*path));

	for (unsigned i = 0; i < depth; i++)
		path[i] = sl_value_of_text(range_name(m, phase->outer[i].label, phase->outer[i].step));
	path[depth] = sl_value_of_text(name);
	sl_value_set(scope, "action", sl_value_of_text(exit ? "exit" : "enter"));
	sl_value_set(scope, "name", sl_value_of_text(name));
	sl_value_set(scope, "path", (struct sl_value){.kind = SL_VALUE_ARRAY, .count = depth + 1, .items = path});
	sl_value_set(scope, "depth", sl_value_of_int(depth + 1));
	sl_value_set(scope, "scope_id", sl_value_of_text(scope_id(m, phase->serial)));
	sl_value_set(scope, "parent_scope_id", sl_value_of_text(depth ? scope_id(m, phase->outer[depth - 1].serial) : NULL));
	sl_value_set(scope, "thread_id",
		     sl_value_of_int(phase->overlaps	     ? OWN_THREADS + (int64_t)phase->serial
				     : thread && thread->tid ? thread->tid
							     : phase->thread));
	sl_value_set(scope, "thread_name", sl_value_of_text(thread && thread->name ? thread->name : "thread"));
	sl_value_set(scope, "sequence", sl_value_of_int((int64_t)(exit ? phase->end_order : phase->begin_order)));
	if (phase->pair_count)
		sl_value_set(scope, "attributes", *attributes_of(m, phase));
	return scope;
}

void sl_session_phases_add(struct sl_maker *m, const struct sl_phase *phase, const struct sl_device_state *first)
{
	for (int exit = 0; exit < (phase->end_ns ? 2 : 1); exit++) {
		const struct sl_possession *held = exit ? &phase->after : &phase->before;
		const struct sl_device_state *device = held->device < 0 ? first : m->process->model->devices[held->device + 1];
		uint64_t ns = exit ? phase->end_ns : phase->begin_ns;
		struct sl_v3_event event = sl_maker_event(m, device, ns, exit ? "phase_exit" : "phase_enter");

		if (held->device >= 0)
			sl_maker_set_held(m, device, ns, held->known, held->unused, &event);
		else if (!first && m->process->model->host.rss)
			event.allocated_bytes = event.reserved_bytes = event.used_bytes =
				sl_maker_at(m->process->model, m->process->model->host.rss, ns);
		event.context = range_name(m, phase->label, phase->step);
		event.metadata = sl_maker_metadata(m, 1, device, ns);
		sl_value_set((struct sl_value *)event.metadata, "phase_scope", *scope_of(m, phase, exit));
		sl_maker_add(m, event);
	}
}
