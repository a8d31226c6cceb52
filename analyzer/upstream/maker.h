/* SPDX-License-Identifier: MIT */
/*
 * What every event of a session is made with: who it is of, what the process held and what the device had in use at a time, and the
 * metadata that all events carry.  Texts and metadata live in the arena.
 */
#ifndef ANALYZER_UPSTREAM_MAKER_H
#define ANALYZER_UPSTREAM_MAKER_H

#include "analyzer/report/report.h"
#include "analyzer/upstream/files/telemetry.h"

struct sl_maker {
	const struct sl_process *process;
	struct sl_arena *arena;
	struct sl_session *session;
	const struct sl_value *plain; /* metadata of an event that has none of its own */
	const char *backend;
	int64_t last_allocated;
	uint32_t told; /* bins of the device whose samples are in the session */
	unsigned alerts;
};

/* "cuda" or "rocm", by the calls that were made. */
const char *sl_maker_backend(const struct sl_model *model);

/* With room for so many keys beside its own.  `device` may be NULL, here and below. */
struct sl_value *sl_maker_metadata(struct sl_maker *m, uint32_t room, const struct sl_device_state *device);

/* Mean of the bin in which ns lies; 0: no such line. */
int64_t sl_maker_at(const struct sl_model *model, const struct sl_line *line, uint64_t ns);

struct sl_v3_event sl_maker_event(struct sl_maker *m, const struct sl_device_state *device, uint64_t ns, const char *type);

/* What the process held of the device then, exactly: a bin of a line tells its mean. */
void sl_maker_set_held(struct sl_maker *m, const struct sl_device_state *device, uint64_t ns, uint64_t known, uint64_t unused,
		       struct sl_v3_event *event);

/* The device's own figures: by samples until then, else unknown. */
void sl_maker_set_used(struct sl_maker *m, const struct sl_device_state *device, uint64_t ns, struct sl_v3_event *event);

/* The same where `hidden` bytes are known to be neither free nor of a recorded process. */
void sl_maker_set_hidden(struct sl_maker *m, const struct sl_device_state *device, uint64_t ns, int64_t hidden,
			 struct sl_v3_event *event);

/* To the session, with what changed since the last one that was added. */
void sl_maker_add(struct sl_maker *m, struct sl_v3_event event);

#endif
