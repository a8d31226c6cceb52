/* SPDX-License-Identifier: MIT */
/*
 * perfetto: https://ui.perfetto.dev.  Counters of the memory per device, slices of the labels per thread, instants
 * for what ran out of memory.  Field numbers: protos/perfetto/trace of the Perfetto project.  Times are Unix
 * nanoseconds on the trace's own clock.
 */

#include "analyzer/base/paths.h"
#include "analyzer/exports/export.h"

enum { PACKET = 1 }; /* Trace */
enum {
	TIMESTAMP = 8,
	SEQUENCE = 10,
	TRACK_EVENT = 11,
	SEQUENCE_FLAGS = 13,
	SYSTEM_INFO = 45,
	TRACK_DESCRIPTOR = 60
};									       /* TracePacket */
enum { TRACING_SERVICE = 4 };						       /* SystemInfo */
enum { UUID = 1, NAME = 2, PROCESS = 3, THREAD = 4, PARENT = 5, COUNTER = 8 }; /* TrackDescriptor */
enum { UNIT = 3, UNIT_BYTES = 3 };					       /* CounterDescriptor */
enum { ANNOTATION = 4, TYPE = 9, TRACK = 11, EVENT_NAME = 23, VALUE = 30 };    /* TrackEvent */
enum { ANNOTATION_UINT = 3, ANNOTATION_TEXT = 6, ANNOTATION_NAME = 10 };
enum { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3, COUNTER_SAMPLE = 4 };

/* Tracks of a process: uuid = process << 32 | what << 24 | number. */
enum what { OF_PROCESS = 1, OF_THREAD, OF_KNOWN, OF_KIND, OF_USED, OF_TORCH, OF_RANGE };

/* What the counters of a device show; SL_UNKNOWN: there is no such counter. */
struct figures {
	uint64_t known_bytes, torch, kinds[SL_KIND_COUNT];
};

struct writer {
	struct sl_export_job *job;
	struct sl_proto proto;
	struct sl_idmap seen; /* uuid -> index into values */
	SL_VECTOR(uint64_t) values;
	struct sl_idmap devices; /* uuid of OF_KNOWN -> index into shown */
	SL_VECTOR(struct figures) shown;
	bool begun;
};

static uint64_t uuid_of(const struct sl_merge_process *p, enum what what, uint32_t number)
{
	return ((uint64_t)(p->index + 1) << 32) | ((uint64_t)what << 24) | (number & 0xffffff);
}

static bool flush(struct writer *w)
{
	bool fine = fwrite(w->proto.bytes, 1, w->proto.size, w->job->out) == w->proto.size;

	w->proto.size = 0;
	return fine;
}

static size_t begin_packet(struct writer *w)
{
	size_t packet = sl_proto_begin(&w->proto, PACKET);

	sl_proto_uint(&w->proto, SEQUENCE, 1);
	if (!w->begun)
		sl_proto_uint(&w->proto, SEQUENCE_FLAGS, 1); /* incremental state begins here */
	w->begun = true;
	return packet;
}

/* Says what wrote the trace, where Perfetto names the version of its service. */
static void describe_writer(struct writer *w)
{
	size_t packet = sl_proto_begin(&w->proto, PACKET), info = sl_proto_begin(&w->proto, SYSTEM_INFO);

	sl_proto_text(&w->proto, TRACING_SERVICE, "stormlog " SL_VERSION);
	sl_proto_end(&w->proto, info);
	sl_proto_end(&w->proto, packet);
}

static const char *program_of(const struct sl_header *header)
{
	const char *script = NULL;

	for (unsigned i = 1; i < header->argc && !script; i++)
		if (header->argv[i] && header->argv[i][0] != '-')
			script = header->argv[i];
	if (header->exe && strstr(header->exe, "python") && script)
		return sl_paths_name(script);
	return header->exe ? sl_paths_name(header->exe) : "process";
}

static void describe_process(struct writer *w, const struct sl_merge_process *p)
{
	const struct sl_header *header = &p->process.trace->header;
	size_t packet = begin_packet(w), track = sl_proto_begin(&w->proto, TRACK_DESCRIPTOR), inner;
	char name[64], text[400];

	sl_process_who(name, &p->process);
	snprintf(text, sizeof(text), "%s %s", program_of(header), name);
	sl_proto_uint(&w->proto, UUID, uuid_of(p, OF_PROCESS, 0));
	inner = sl_proto_begin(&w->proto, PROCESS);
	sl_proto_uint(&w->proto, 1, (uint64_t)header->pid);
	sl_proto_text(&w->proto, 6, text);
	sl_proto_end(&w->proto, inner);
	sl_proto_end(&w->proto, track);
	sl_proto_end(&w->proto, packet);
}

/* Describes a track before its first event. */
static uint64_t track_of(struct writer *w, const struct sl_merge_process *p, enum what what, uint32_t number, const char *name,
			 bool *fresh)
{
	uint64_t uuid = uuid_of(p, what, number);
	size_t packet, track, inner;

	*fresh = sl_idmap_get(&w->seen, uuid, UINT32_MAX) == UINT32_MAX;
	if (!*fresh)
		return uuid;
	SL_ROOM(&w->values);
	sl_idmap_set(&w->seen, uuid, (uint32_t)w->values.count);
	w->values.item[w->values.count++] = UINT64_MAX;
	packet = begin_packet(w);
	track = sl_proto_begin(&w->proto, TRACK_DESCRIPTOR);
	sl_proto_uint(&w->proto, UUID, uuid);
	sl_proto_uint(&w->proto, PARENT, uuid_of(p, OF_PROCESS, 0));
	if (what == OF_THREAD) {
		const struct sl_thread *thread = sl_defs_thread(&p->process.trace->defs, number);

		inner = sl_proto_begin(&w->proto, THREAD);
		sl_proto_uint(&w->proto, 1, (uint64_t)p->process.trace->header.pid);
		sl_proto_uint(&w->proto, 2, thread && thread->tid ? (uint64_t)thread->tid : number);
		sl_proto_text(&w->proto, 5, thread ? thread->name : NULL);
		sl_proto_end(&w->proto, inner);
	} else {
		sl_proto_text(&w->proto, NAME, name);
	}
	if (what != OF_THREAD && what != OF_RANGE) {
		inner = sl_proto_begin(&w->proto, COUNTER);
		sl_proto_uint(&w->proto, UNIT, UNIT_BYTES);
		sl_proto_end(&w->proto, inner);
	}
	sl_proto_end(&w->proto, track);
	sl_proto_end(&w->proto, packet);
	return uuid;
}

static void put_counter(struct writer *w, const struct sl_merge_process *p, enum what what, uint32_t number, const char *name,
			uint64_t value)
{
	bool fresh;
	uint64_t uuid = track_of(w, p, what, number, name, &fresh);
	uint64_t *last = &w->values.item[sl_idmap_get(&w->seen, uuid, 0)];
	size_t packet, event;

	if (*last == value)
		return;
	*last = value;
	packet = begin_packet(w);
	sl_proto_uint(&w->proto, TIMESTAMP, p->unix_ns);
	event = sl_proto_begin(&w->proto, TRACK_EVENT);
	sl_proto_uint(&w->proto, TYPE, COUNTER_SAMPLE);
	sl_proto_uint(&w->proto, TRACK, uuid);
	sl_proto_uint(&w->proto, VALUE, value);
	sl_proto_end(&w->proto, event);
	sl_proto_end(&w->proto, packet);
}

static size_t begin_event(struct writer *w, const struct sl_merge_process *p, unsigned type, uint64_t track, const char *name,
			  size_t *packet)
{
	size_t event;

	*packet = begin_packet(w);
	sl_proto_uint(&w->proto, TIMESTAMP, p->unix_ns);
	event = sl_proto_begin(&w->proto, TRACK_EVENT);
	sl_proto_uint(&w->proto, TYPE, type);
	sl_proto_uint(&w->proto, TRACK, track);
	sl_proto_text(&w->proto, EVENT_NAME, name);
	return event;
}

static void put_event(struct writer *w, const struct sl_merge_process *p, unsigned type, uint64_t track, const char *name)
{
	size_t packet, event = begin_event(w, p, type, track, name, &packet);

	sl_proto_end(&w->proto, event);
	sl_proto_end(&w->proto, packet);
}

static void annotate(struct writer *w, const char *name, const char *text, uint64_t number)
{
	size_t annotation = sl_proto_begin(&w->proto, ANNOTATION);

	sl_proto_text(&w->proto, ANNOTATION_NAME, name);
	if (text)
		sl_proto_text(&w->proto, ANNOTATION_TEXT, text);
	else
		sl_proto_uint(&w->proto, ANNOTATION_UINT, number);
	sl_proto_end(&w->proto, annotation);
}

static void put_oom(struct writer *w, struct sl_merge_process *p, const char *name)
{
	const struct sl_where *where = sl_merge_place(w->job->merge, p);
	bool fresh;
	uint64_t thread = track_of(w, p, OF_THREAD, p->item->thread, NULL, &fresh);
	size_t packet, event;

	event = begin_event(w, p, INSTANT, thread, name, &packet);
	annotate(w, "requested_bytes", NULL, p->item->event->bytes);
	annotate(w, "library", where->library, 0);
	annotate(w, "where", where->line, 0);
	sl_proto_end(&w->proto, event);
	sl_proto_end(&w->proto, packet);
}

/* While a range of the process is open it has a track of its own, named after its label. */
static void put_range(struct writer *w, const struct sl_merge_process *p, const char *label)
{
	const struct sl_event *event = p->item->event;
	bool fresh;
	uint64_t track = track_of(w, p, OF_RANGE, (uint32_t)event->extra % 4096, "ranges", &fresh);

	put_event(w, p, p->item->hook->verb == SL_VERB_RANGE_START ? SLICE_BEGIN : SLICE_END, track,
		  p->item->hook->verb == SL_VERB_RANGE_START ? label : NULL);
}

static void put_call(struct writer *w, struct sl_merge_process *p)
{
	const struct sl_event *event = p->item->event;
	const struct sl_hook *hook = p->item->hook;
	const char *text = event->label ? sl_defs_text(&p->process.trace->defs, event->label) : NULL;
	enum sl_verb verb = hook ? hook->verb : SL_VERB_CALL;
	const char *hash = text ? strchr(text, '#') : NULL;
	int64_t step = sl_item_step(p->item, &p->process.trace->defs);
	bool fresh;
	uint64_t thread;
	char label[300];

	if (step >= 0) /* "step_#" with its number */
		snprintf(label, sizeof(label), "%.*s%lld%s", (int)(hash - text), text, (long long)step, hash + 1);
	else
		snprintf(label, sizeof(label), "%s", text ? text : "");
	if (verb == SL_VERB_RANGE_START || verb == SL_VERB_RANGE_END) {
		put_range(w, p, label);
		return;
	}
	if (verb != SL_VERB_RANGE_PUSH && verb != SL_VERB_RANGE_POP && verb != SL_VERB_MARK)
		return;
	thread = track_of(w, p, OF_THREAD, p->item->thread, NULL, &fresh);
	if (verb == SL_VERB_RANGE_PUSH)
		put_event(w, p, SLICE_BEGIN, thread, label);
	else if (verb == SL_VERB_RANGE_POP)
		put_event(w, p, SLICE_END, thread, NULL);
	else
		put_event(w, p, INSTANT, thread, label);
}

/* Applies the event.  An error that an inner call hands to its caller counts once; PyTorch may then report it again. */
static void put_errors(struct writer *w, struct sl_merge_process *p)
{
	uint64_t before = p->process.model->ooms_total;
	char name[128];

	sl_merge_apply(p);
	if (p->process.model->ooms_total > before) {
		snprintf(name, sizeof(name), "out of memory: %s", p->item->hook->plain);
		put_oom(w, p, name);
	} else if (p->item->hook && p->item->hook->verb == SL_VERB_BLOCK_OOM) {
		put_oom(w, p, "PyTorch gave up");
	}
}

/* True: the figures are others than at the last call for this device.  Frees ask this of every device. */
static bool has_changed(struct writer *w, const struct sl_merge_process *p, const struct sl_device_state *device, int64_t ordinal)
{
	uint32_t at = sl_idmap_claim(&w->devices, uuid_of(p, OF_KNOWN, (uint32_t)ordinal), w->shown.count);
	struct figures now = {.known_bytes = device->known_bytes,
			      .torch = device->torch.used ? device->torch.allocated_bytes : SL_UNKNOWN};

	for (unsigned kind = 0; kind < SL_KIND_COUNT; kind++) {
		const struct sl_row *row = sl_model_row(p->process.model, kind, (int)ordinal + 1);

		now.kinds[kind] = row->used ? row->live_bytes : SL_UNKNOWN;
	}
	if (at == w->shown.count)
		*SL_PUSH(&w->shown) = (struct figures){.known_bytes = SL_UNKNOWN};
	if (!memcmp(&w->shown.item[at], &now, sizeof(now)))
		return false;
	w->shown.item[at] = now;
	return true;
}

static void put_counters(struct writer *w, const struct sl_merge_process *p, int64_t ordinal)
{
	const struct sl_device_state *device = ordinal < SL_DEVICES_MAX ? p->process.model->devices[ordinal + 1] : NULL;
	char name[64];

	if (!device || !has_changed(w, p, device, ordinal))
		return;
	snprintf(name, sizeof(name), "device %lld held", (long long)ordinal);
	put_counter(w, p, OF_KNOWN, (uint32_t)ordinal, name, device->known_bytes);
	if (device->torch.used) {
		snprintf(name, sizeof(name), "device %lld PyTorch allocated", (long long)ordinal);
		put_counter(w, p, OF_TORCH, (uint32_t)ordinal, name, device->torch.allocated_bytes);
	}
	for (unsigned kind = 1; kind < SL_KIND_COUNT; kind++) {
		const struct sl_row *row = sl_model_row(p->process.model, kind, ordinal + 1);

		if (!row->used || kind == SL_KIND_block)
			continue;
		snprintf(name, sizeof(name), "device %lld %s", (long long)ordinal, sl_event_kinds[kind].name);
		put_counter(w, p, OF_KIND, (uint32_t)ordinal << 8 | kind, name, row->live_bytes);
	}
}

/* Frees name no device, so the counters of all devices that changed are written. */
static void put_all_counters(struct writer *w, const struct sl_merge_process *p, int64_t ordinal)
{
	if (ordinal >= 0)
		put_counters(w, p, ordinal);
	for (int i = 0; ordinal < 0 && i < SL_DEVICES_MAX; i++)
		put_counters(w, p, i);
}

static void put_sample(struct writer *w, const struct sl_merge_process *p)
{
	char name[64];

	if (p->item->sample.device < 0 || p->item->sample.used_bytes == SL_UNKNOWN)
		return;
	snprintf(name, sizeof(name), "device %lld used, all processes", (long long)p->item->sample.device);
	put_counter(w, p, OF_USED, (uint32_t)p->item->sample.device, name, p->item->sample.used_bytes);
}

static bool run(struct sl_export_job *job)
{
	struct writer w = {.job = job};
	struct sl_merge_process *p;
	bool fine = true;

	describe_writer(&w);
	for (unsigned i = 0; i < job->merge->count; i++)
		describe_process(&w, &job->merge->processes[i]);
	while (fine && (p = sl_merge_next(job->merge))) {
		if (p->item->kind == SL_ITEM_EVENT) {
			put_call(&w, p);
			put_errors(&w, p);
			put_all_counters(&w, p, p->item->event->device);
		} else if (p->item->kind == SL_ITEM_SAMPLE) {
			put_sample(&w, p);
		}
		if (w.proto.size > 1 << 20)
			fine = flush(&w);
	}
	fine = fine && flush(&w);
	sl_proto_free(&w.proto);
	sl_idmap_free(&w.seen);
	free(w.values.item);
	sl_idmap_free(&w.devices);
	free(w.shown.item);
	return fine;
}

const struct sl_export sl_export_perfetto = {.name = "perfetto",
					     .summary = "https://ui.perfetto.dev: counters, labels, errors",
					     .models = true,
					     .places = true,
					     .run = run};
