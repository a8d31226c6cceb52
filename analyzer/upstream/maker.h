/* SPDX-License-Identifier: MIT */
/*
 * Makes the events of a session: whose they are, what the process held, what the device had in use at a time, and the metadata
 * of every event.  Texts and metadata live in the arena.
 */
#pragma once

#include "analyzer/report/report.h"
#include "analyzer/upstream/files/telemetry.h"

struct sl_maker {
	const struct sl_process *process;
	struct sl_arena *arena;
	struct sl_session *session;
	const struct sl_value *plain; /* metadata for events that add none of their own */
	const char *backend;
	int64_t last_allocated;
	uint32_t told; /* bins of the device whose samples are in the session already */
	unsigned alerts;
};

/* Metadata with room for so many further keys.  `device` may be NULL, here and below. */
struct sl_value *sl_maker_metadata(struct sl_maker *m, uint32_t room, const struct sl_device_state *device, uint64_t ns);

/* Mean of the bin that contains ns; 0: there is no such line. */
int64_t sl_maker_at(const struct sl_model *model, const struct sl_line *line, uint64_t ns);

/*
 * The same for what PyTorch's allocator held.  The allocator gets a segment some time before it reports the segment; in between
 * the segment counts as the allocator's too.
 */
int64_t sl_maker_segments(const struct sl_model *model, const struct sl_device_state *device, uint64_t ns);

struct sl_v3_event sl_maker_event(struct sl_maker *m, const struct sl_device_state *device, uint64_t ns, const char *type);

/* What the process held on the device at that time, exactly; a bin only gives a mean. */
void sl_maker_set_held(struct sl_maker *m, const struct sl_device_state *device, uint64_t ns, uint64_t known, uint64_t unused,
		       struct sl_v3_event *event);

/* Sets the device's own figures from its samples up to that time, else unknown. */
void sl_maker_set_used(struct sl_maker *m, const struct sl_device_state *device, uint64_t ns, struct sl_v3_event *event);

/* The same where `hidden` bytes are known to be neither free nor held by a recorded process. */
void sl_maker_set_hidden(struct sl_maker *m, const struct sl_device_state *device, uint64_t ns, int64_t hidden,
			 struct sl_v3_event *event);

/* Appends the event to the session, with the changes since the one before. */
void sl_maker_add(struct sl_maker *m, struct sl_v3_event event);
