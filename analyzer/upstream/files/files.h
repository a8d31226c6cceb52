/* SPDX-License-Identifier: MIT */
/* Upstream's files: sinks, bundles and run folders that Python Stormlog reads and writes. */
#pragma once

#include "analyzer/base/vector.h"
#include "analyzer/upstream/records/records.h"

/*
 * Writes OOM bundles, the events before an out-of-memory error, in upstream's form (version 2) without its losses.  events.json
 * keeps upstream's keys and adds those that V3 needs, so that reading it back gives the same events.
 */

/* A file of our own in the bundle, listed in its manifest. The name must not look like telemetry. */
struct sl_bundle_file {
	const char *name;
	void (*write)(struct sl_json *j, void *context); /* one JSON document */
	void *context;
};

struct sl_bundle {
	int64_t created_at_ns; /* gives the folder its name */
	int64_t pid;
	const char *backend; /* cuda, rocm */
	const char *reason;  /* e.g. "message_pattern:out of memory", as Stormlog's Python side says: issues group with it */
	const char *exception_type, *exception_module, *exception_message, *context; /* or NULL */
	const struct sl_session_summary *session;				     /* or NULL */
	const struct sl_v3_event *events;					     /* the last ones, in time order */
	size_t event_count;
	/* Members of the objects custom_metadata and environment.json; may be NULL. */
	void (*custom)(struct sl_json *j, void *context);
	void (*environment)(struct sl_json *j, void *context);
	void *writer_context;
	const struct sl_bundle_file *files;
	size_t file_count;
};

/*
 * A new folder oom_dump_<utc>_<pid>_<backend>_<n> in dump_dir, complete or not there; its name is put into *name, in
 * the arena. false: errno says why.
 */
bool sl_bundle_write(struct sl_arena *arena, const char *dump_dir, const struct sl_bundle *bundle, const char **name);

/* Removes the oldest bundles until at most max_bytes are left.  Returns how many went. */
size_t sl_bundle_prune(const char *dump_dir, int64_t max_bytes);

/*
 * Writing a folder of files so that a reader sees all of it or nothing: built beside its place under a name with a
 * dot in front, then renamed. Folders are 0700, files 0600.
 */

struct sl_folder {
	struct sl_arena arena;
	const char *place, *temporary;
	int error;	    /* errno of the first thing that went wrong, 0 for none */
	const char *failed; /* the file it happened to */
};

/* Makes the parents too. The place must not exist, or be an empty folder. */
bool sl_folder_begin(struct sl_folder *folder, const char *place);

/* A new file in it, NULL on failure. Close with sl_folder_close. */
FILE *sl_folder_open(struct sl_folder *folder, const char *name);
bool sl_folder_close(struct sl_folder *folder, FILE *file, const char *name);

/* A JSON document as a file: open, then close what json points to. */
struct sl_json *sl_folder_json(struct sl_folder *folder, const char *name, FILE **file);
bool sl_folder_json_close(struct sl_folder *folder, struct sl_json *j, FILE *file, const char *name);

/* Rename into place when nothing went wrong, else remove; frees. false: nothing is there and errno says why. */
bool sl_folder_end(struct sl_folder *folder);

/* Remove a folder and all in it. */
void sl_folder_remove(const char *path);

/*
 * A telemetry sink that grows and that Python Stormlog reads meanwhile (sink.c writes a finished one).  A line is written whole
 * and the manifest is replaced by a rename, so a reader never sees a part of either.  There is no rollups.json, which would be
 * out of date.  One thread.
 */

struct sl_live_sink;

/* Makes the folder; it must not exist, or be empty: ENOTEMPTY, also where another sink begins there.  NULL: errno. */
struct sl_live_sink *sl_live_sink_open(const char *folder);

/* Adds a running session; texts are copied.  Returns its number. */
unsigned sl_live_sink_session(struct sl_live_sink *sink, const struct sl_session_summary *summary);

/* Adds an event; times of a session do not go back. */
void sl_live_sink_add(struct sl_live_sink *sink, unsigned session, const struct sl_v3_event *event);
/* Writes what was added to the files and the manifest.  False: something could not be written (errno of the first failure). */
bool sl_live_sink_flush(struct sl_live_sink *sink);
void sl_live_sink_end(struct sl_live_sink *sink, unsigned session, enum sl_session_status status, int64_t ended_at_ns);

/* Completes sessions that were not ended.  *events: their number.  False: something was not written. */
bool sl_live_sink_close(struct sl_live_sink *sink, int64_t now_ns, uint64_t *events);

/*
 * manifest.json: what kind of folder it heads, and the ledger of a telemetry sink.
 */

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

/*
 * Rollups: what happened in a session, per rank and per minute, small enough to read at a glance.
 * Numbers and layout are upstream's (rollups.json, version 1).
 */

#define SL_ROLLUP_WINDOW_NS INT64_C(60000000000)

/* One session's rollup object. */
void sl_rollup_write(struct sl_json *j, const char *key, const struct sl_session *session, const struct sl_session_series *series,
		     int64_t window_ns);

/*
 * stormlog_run.json: the run as a whole, so that `stormlog query runs` lists it with its sessions and attachments.
 * Upstream refuses a file with a key it does not know: these structures have all there are.
 */

struct sl_run_attachment {
	const char *title, *kind; /* e.g. "report", "native_trace" */
	const char *path;	  /* absolute, or relative to the envelope */
	const char *session_id;	  /* or NULL */
	int64_t start_ns, end_ns; /* or SL_EVENT_UNKNOWN */
};

struct sl_run_envelope {
	const char *run_id;		    /* not blank */
	const char *title, *job_id;	    /* or NULL */
	int64_t started_at_ns, ended_at_ns; /* or SL_EVENT_UNKNOWN */
	const char *const *tags;	    /* blank and repeated ones are left out */
	size_t tag_count;
	const struct sl_session_summary *const *sessions;
	size_t session_count;
	const struct sl_run_attachment *attachments;
	size_t attachment_count;
	const struct sl_value *metadata; /* an object, or NULL */
};

/* The document. */
void sl_run_envelope_write(struct sl_json *j, const struct sl_run_envelope *run);

/*
 * Writing a telemetry sink that Python Stormlog opens as its own: manifest.json, segment-NNNNNN.jsonl, rollups.json.
 */

struct sl_sink_options {
	int64_t segment_events, segment_bytes; /* a segment is full at either; 10000 and 64 MiB */
	int64_t rollup_window_ns;	       /* 60 s; 0: no rollups.json */
};

extern const struct sl_sink_options sl_sink_defaults;

/*
 * A new folder, complete or not there at all. Each session's events must be sorted by time and carry its session id;
 * sessions are written by their start. The last segment of a running session stays open. options NULL: the defaults.
 * false: nothing was written and errno says why (EEXIST or ENOTEMPTY: the folder has something in it).
 */
bool sl_sink_write(const char *folder, const struct sl_session *const *sessions, size_t count,
		   const struct sl_sink_options *options);

/* Is rollups.json next to the manifest still true of it? */
enum sl_rollups_state { SL_ROLLUPS_ABSENT, SL_ROLLUPS_FRESH, SL_ROLLUPS_STALE, SL_ROLLUPS_BROKEN };
enum sl_rollups_state sl_sink_rollups_state(const char *folder);

/*
 * All telemetry of a run: sessions read from Stormlog's own files or made from native traces.
 *
 *	struct sl_telemetry *t = sl_telemetry_new();
 *	sl_telemetry_add_path(t, "sink", false);
 *	sl_telemetry_finish(t);
 *	... t->sessions, t->selected, sl_emit_telemetry() (answers/emit.c) ...
 *	sl_telemetry_free(t);
 *
 * Damage never stops the reading: each loss is a problem with file and line.
 * Sessions of one id from several files become one, and equal events count once.  The events of an OOM bundle count only where no
 * other file has that session, since upstream's bundles lose fields. Ranks of one job whose files hold one session each get an
 * additional session in which all ranks share an id: cross-rank analysis needs one.
 */

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

/* load.c: one file of records. */
void sl_telemetry_load_file(struct sl_telemetry *t, const char *path, enum sl_session_kind kind);
/* load.c: a sink; path is the folder, its manifest.json or one segment. */
void sl_telemetry_load_sink(struct sl_telemetry *t, const char *path, enum sl_session_kind kind);
