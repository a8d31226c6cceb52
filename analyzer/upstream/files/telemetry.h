/* SPDX-License-Identifier: MIT */
/*
 * All telemetry of a run: sessions read from Stormlog's own files or made from native traces.
 *
 *	struct sl_telemetry *t = sl_telemetry_new();
 *	sl_telemetry_add_path(t, "sink", false);
 *	sl_telemetry_finish(t);
 *	... t->sessions, t->selected, sl_emit_telemetry() (answers/emit.h) ...
 *	sl_telemetry_free(t);
 *
 * Damage never stops the reading: each loss is a problem with file and line.
 * Sessions of one id that came from several files become one, equal events once; the events of an OOM bundle count
 * only where nothing else has that session, since upstream's bundles lose fields. Ranks of one job whose files hold
 * one session each get an additional session in which all ranks share an id: cross-rank analysis needs one.
 */
#pragma once

#include "analyzer/base/vector.h"
#include "analyzer/upstream/files/manifest.h"
#include "analyzer/upstream/records/session.h"
#include "analyzer/upstream/records/source.h"

struct sl_problem {
	const char *file; /* as in sources */
	uint32_t line;	  /* 0: the file as a whole */
	const char *reason;
	enum sl_source_loss loss;
};

/* An OOM bundle's own words; texts may be NULL, counts SL_EVENT_UNKNOWN. */
struct sl_oom_row {
	const char *path, *created_at_utc, *backend, *reason, *session_id, *session_status;
	const char *exception_type, *exception_module, *exception_message, *context;
	const struct sl_value *account; /* lines of a summary, where the bundle is ours; an array or NULL */
	int64_t event_count;
};

struct sl_telemetry {
	SL_VECTOR(struct sl_session) loaded;   /* one for each session in each source, for the issues */
	SL_VECTOR(struct sl_session) sessions; /* merged, in the order of preference; after sl_telemetry_finish */
	const struct sl_session *selected;     /* the default one, NULL when there is none */
	SL_VECTOR(struct sl_oom_row) bundles;
	SL_VECTOR(struct sl_problem) problems;

	uint64_t disk_bytes; /* of the files that were read */

	struct sl_event_store store;
	struct sl_arena arena;
	/* private */
	const char *root;   /* prefix cut from the names of files */
	struct sl_map seen; /* files that were read, by real path */
	int32_t next_rank;
	int32_t max_world_size;
};

struct sl_telemetry *sl_telemetry_new(void);

/*
 * Read a sink folder, its manifest, a .jsonl, .json or .csv file, a bundle, or all of these below a folder.
 * full_names: names of files keep `path` as their prefix; else they are relative to the folder (or to the file's).
 * Returns how many sources were found; 0 with no problem added means that nothing there is telemetry.
 */
size_t sl_telemetry_add_path(struct sl_telemetry *t, const char *path, bool full_names);

/* A session of a native trace. Takes the events (a malloc'ed array, sorted or not); texts and metadata must outlive t. */
void sl_telemetry_add_session(struct sl_telemetry *t, const struct sl_session *session);

/* Merge, order, choose. Once, after all additions. session_id: choose this one, or NULL. False: it is not there. */
bool sl_telemetry_finish(struct sl_telemetry *t, const char *session_id);

/*
 * The session of all ranks: the one of the job where there is one, else made of all sessions that have events, if
 * their ranks differ. After sl_telemetry_finish. NULL: not possible, and why.
 */
const struct sl_session *sl_telemetry_merge_ranks(struct sl_telemetry *t, char *reason, size_t size);

void sl_telemetry_free(struct sl_telemetry *t);

/* --- for the parts of the room --------------------------------------------------------------------------- */

void sl_telemetry_problem(struct sl_telemetry *t, enum sl_source_loss loss, const char *file, uint32_t line, const char *reason);
const char *sl_telemetry_display(struct sl_telemetry *t, const char *path);
struct sl_session *sl_telemetry_new_loaded(struct sl_telemetry *t);
/* Appends to a list in the arena.  Its room doubles each time: a session may have many files. */
void sl_telemetry_add_text(struct sl_telemetry *t, const char ***list, size_t *count, const char *text);

/* diagnose.c: a bundle's folder (manifest or not) with telemetry_timeline.json. */
void sl_diagnose_load(struct sl_telemetry *t, const char *folder);
/* bundle_read.c: an OOM bundle's folder. */
void sl_bundle_load(struct sl_telemetry *t, const char *folder, const struct sl_value *manifest);
/* load.c: one file of records. */
void sl_telemetry_load_file(struct sl_telemetry *t, const char *path, enum sl_session_kind kind);
/* load.c: a sink; path is the folder, its manifest.json or one segment. */
void sl_telemetry_load_sink(struct sl_telemetry *t, const char *path, enum sl_session_kind kind);
