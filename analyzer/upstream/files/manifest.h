/* SPDX-License-Identifier: MIT */
/*
 * manifest.json: what kind of folder it heads, and the ledger of a telemetry sink.
 */
#pragma once

#include "analyzer/upstream/records/session.h"

#define SL_MANIFEST_NEWEST	2 /* schema_version */
#define SL_MANIFEST_SINK_FORMAT "stormlog.append_only_telemetry_sink"

enum sl_manifest_kind { SL_MANIFEST_NONE, SL_MANIFEST_SINK, SL_MANIFEST_OOM, SL_MANIFEST_DIAGNOSE };

struct sl_manifest_segment {
	const char *filename;
	int64_t event_count, size_bytes;
	bool closed;
	const char *session_id; /* or NULL */
};

struct sl_manifest {
	int64_t schema_version;
	const struct sl_session_summary *sessions;
	size_t session_count;
	const struct sl_manifest_segment *segments;
	size_t segment_count;
};

/* By its keys, as upstream recognises it. */
enum sl_manifest_kind sl_manifest_kind_of(const struct sl_value *payload);

/* Never fails: entries that make no sense are left out, as upstream does, and counted in *skipped. */
void sl_manifest_read(struct sl_arena *arena, const struct sl_value *payload, struct sl_manifest *manifest, size_t *skipped);

/* Appends a segment to the open array "segments". */
void sl_manifest_write_segment(struct sl_json *j, const struct sl_manifest_segment *segment);
