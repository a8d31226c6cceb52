/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/upstream.h"

#include "analyzer/base/stats.h"

#define COLLECTOR_CUDA "stormlog.cuda_preload"
#define COLLECTOR_ROCM "stormlog.rocm_preload"
#define COLLECTOR_CPU  "stormlog.cpu_tracker" /* the name of Stormlog's CPU tracker, whose samples have the same fields */

/* True: an earlier sample tells how much was hidden on the device.  The bin of the first such sample does not count. */
static bool was_looked_at(const struct sl_model *model, const struct sl_device_state *device, uint64_t ns)
{
	const struct sl_line *hidden = device->hidden_line;

	return hidden && hidden->begun && ns >= model->timeline.begin_ns + ((uint64_t)(hidden->first + 1) << model->timeline.shift);
}

/* Says why a device's figure was not measured at that time. */
static const char *computed(const struct sl_model *model, const struct sl_device_state *device, uint64_t ns)
{
	if (!device || !device->used_line)
		return "process allocations: no device figure";
	return was_looked_at(model, device, ns) ? "between samples of the device"
						: "process allocations: before the first sample of the device";
}

struct sl_value *sl_maker_metadata(struct sl_maker *m, uint32_t room, const struct sl_device_state *device, uint64_t ns)
{
	struct sl_value *metadata = sl_value_object(m->arena, room + 3);

	sl_value_set(metadata, "backend", sl_value_of_text(m->backend));
	sl_value_set(metadata, "sampling_source",
		     sl_value_of_text(!strcmp(m->backend, "cpu")			 ? "resident memory"
				      : device && device->used_line && device->source[0] ? device->source
											 : "preload"));
	if (!strcmp(m->backend, "cpu"))
		return metadata;
	if (!device || !device->used_line || ns)
		sl_value_set(metadata, "device_used_source", sl_value_of_text(computed(m->process->model, device, ns)));
	return metadata;
}

int64_t sl_maker_at(const struct sl_model *model, const struct sl_line *line, uint64_t ns)
{
	return line ? sl_stats_whole(sl_timeline_at(&model->timeline, line, ns)) : 0;
}

int64_t sl_maker_segments(const struct sl_model *model, const struct sl_device_state *device, uint64_t ns)
{
	int64_t reported = sl_maker_at(model, device->torch.reserved, ns), got = 0;

	for (unsigned i = 0; i < model->timeline.line_count && !device->torch.pooled; i++) {
		const struct sl_line *line = model->timeline.lines[i];

		if (line->what == SL_LINE_LIBRARY && line->device == device->device &&
		    sl_model_is_cache(model->libraries.item[line->index]))
			got += sl_maker_at(model, line, ns);
	}
	return got > reported ? got : reported;
}

/*
 * Sets the device's figures from its samples.  The process may have got or given back memory since the sample.  So the sample's
 * hidden bytes are added to what the process holds now; the gap is then exactly the hidden memory.  Memory of other recorded
 * processes is in their own sinks; here it only lowers the free bytes.
 */
void sl_maker_set_hidden(struct sl_maker *m, const struct sl_device_state *device, uint64_t ns, int64_t hidden,
			 struct sl_v3_event *event)
{
	const struct sl_model *model = m->process->model;

	event->used_bytes = event->reserved_bytes + hidden;
	if (device->total_bytes == SL_UNKNOWN)
		return;
	event->total_bytes = (int64_t)device->total_bytes;
	if (event->used_bytes > event->total_bytes)
		event->used_bytes = event->total_bytes;
	event->free_bytes = event->total_bytes - event->used_bytes;
	event->free_bytes -= sl_maker_at(model, device->others_line, ns) < event->free_bytes
				     ? sl_maker_at(model, device->others_line, ns)
				     : event->free_bytes;
}

void sl_maker_set_used(struct sl_maker *m, const struct sl_device_state *device, uint64_t ns, struct sl_v3_event *event)
{
	event->used_bytes = event->reserved_bytes;
	event->free_bytes = event->total_bytes = SL_EVENT_UNKNOWN;
	if (was_looked_at(m->process->model, device, ns))
		sl_maker_set_hidden(m, device, ns, sl_maker_at(m->process->model, device->hidden_line, ns), event);
}

static const char *collector_of(const char *backend)
{
	return !strcmp(backend, "rocm") ? COLLECTOR_ROCM : !strcmp(backend, "cpu") ? COLLECTOR_CPU : COLLECTOR_CUDA;
}

struct sl_v3_event sl_maker_event(struct sl_maker *m, const struct sl_device_state *device, uint64_t ns, const char *type)
{
	const struct sl_model *model = m->process->model;
	const struct sl_header *header = model->header;
	struct sl_v3_event event = {
		.timestamp_ns = (int64_t)sl_process_unix(m->process, ns),
		.active_bytes = SL_EVENT_UNKNOWN,
		.inactive_bytes = SL_EVENT_UNKNOWN,
		.free_bytes = SL_EVENT_UNKNOWN,
		.total_bytes = SL_EVENT_UNKNOWN,
		.device_id = device ? device->device : -1,
		.pid = header->pid,
		.rank = header->rank < 0 ? 0 : (int32_t)header->rank,
		.local_rank = header->rank < 0 || header->local_rank < 0 ? 0 : (int32_t)header->local_rank,
		.world_size = header->rank < 0 || header->world_size < 1 ? 1 : (int32_t)header->world_size,
		.session_id = m->process->session_id,
		.event_type = type,
		.collector = collector_of(m->backend),
		.host = header->host && *header->host ? header->host : "unknown",
		.job_id = header->job_id && *header->job_id ? header->job_id : NULL,
		.metadata = m->plain,
	};

	if (event.world_size == 1)
		event.rank = event.local_rank = 0;
	if (!device)
		return event;
	event.reserved_bytes = sl_maker_at(model, device->line, ns);
	event.allocated_bytes = event.reserved_bytes;
	if (device->torch.used) {
		int64_t cached = sl_maker_segments(model, device, ns) - sl_maker_at(model, device->torch.allocated, ns);

		event.allocated_bytes =
			cached > 0 && cached < event.allocated_bytes ? event.allocated_bytes - cached : event.allocated_bytes;
		event.active_bytes = event.allocated_bytes;
		event.inactive_bytes = event.reserved_bytes - event.allocated_bytes;
	}
	sl_maker_set_used(m, device, ns, &event);
	return event;
}

/* What the process held on the device at that time, exactly; a bin only gives a mean. */
void sl_maker_set_held(struct sl_maker *m, const struct sl_device_state *device, uint64_t ns, uint64_t known, uint64_t unused,
		       struct sl_v3_event *event)
{
	event->reserved_bytes = (int64_t)known;
	event->allocated_bytes = (int64_t)(known > unused ? known - unused : 0);
	if (event->active_bytes != SL_EVENT_UNKNOWN) {
		event->active_bytes = event->allocated_bytes;
		event->inactive_bytes = event->reserved_bytes - event->allocated_bytes;
	}
	sl_maker_set_used(m, device, ns, event);
}

void sl_maker_add(struct sl_maker *m, struct sl_v3_event event)
{
	event.change_bytes = event.allocated_bytes - m->last_allocated;
	m->last_allocated = event.allocated_bytes;
	sl_session_add_event(m->session, &event);
}
