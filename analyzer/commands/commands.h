/* SPDX-License-Identifier: MIT */
/*
 * The verbs of stormlog-analyze.  argv[0] is the verb.  Each returns an exit status of the man page:
 *   0  fine
 *   1  a limit is exceeded
 *   2  usage, a path that does not exist, or a place that may not be replaced
 *   3  no input can be read; in convert and validate: some input is invalid
 *   4  the result could not be written
 */
#pragma once

#include "common/arguments.h"
#include "analyzer/base/escape.h"
#include "analyzer/base/terminal.h"
#include "analyzer/catalogue/catalogue.h"
#include "analyzer/exports/export.h"
#include "analyzer/follow/follow.h"
#include "analyzer/logs/log.h"
#include "analyzer/machine/machine.h"
#include "analyzer/outputs/output.h"
#include "analyzer/pipeline/pipeline.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/suppress.h"

/* Owners of memory: on a terminal as a tree, a table or collapsed stacks, and as JSON. */

/* What became of all blocks of an owner, up to the end of the replay. */
struct sl_tree_lives {
	uint64_t made, never_freed; /* blocks */
	uint64_t temporary, ended_ns;
	uint64_t sizes[SL_LIVES_CLASSES];
	bool unknown;  /* --keep has folded some of them, or the owners are not blocks */
	bool timeless; /* of a recording without the job's own times */
};

struct sl_tree_text {
	unsigned depth;
	uint64_t min;			   /* smallest owner of a tree in bytes; 0: 1/200 of the total */
	const struct sl_tree_lives *lives; /* one for each share; NULL: not asked for */
	const char *by;			   /* for a table: name of the column of owners */
	bool until;			   /* `lives` are counted up to the moment, otherwise over the whole run */
	bool parted;			   /* the first level is the device: shares are of it */
	bool compact;			   /* a chain of owners with one child each is one line */
};

#define SL_TREE_JSON_BYTES 16000

struct sl_tree_json {
	const char *dry_card;				      /* the card of a dry run; NULL: it ran on a device */
	const char *verb, *path, *by, *kind, *at, *from, *to; /* kind, at, from, to: NULL: not given */
	unsigned processes, depth;			      /* levels below the root */
	uint64_t min;					      /* smallest size of an owner, in bytes */
	const struct sl_tree_lives *lives;		      /* one for each share; NULL: not asked for */
	bool until;					      /* `lives` are counted up to the moment */
};

/* Writes schemas/tree.schema.json: the largest owners that fit into SL_TREE_JSON_BYTES.  False: it could not be written. */
bool sl_tree_json_put(const struct sl_owners *owners, const struct sl_tree_json *what);

enum { SL_EXIT_FINE = 0, SL_EXIT_LIMIT = 1, SL_EXIT_USAGE = 2, SL_EXIT_UNREADABLE = 3, SL_EXIT_UNSAVED = 4 };

#define sl_command_fail(...) sl_escape_fail("stormlog-analyze", __VA_ARGS__)

struct sl_command {
	const char *name;
	const char *summary; /* one line for --help */
	/* usage: "VERB [options] PATH..."; about: a paragraph for the verb's own --help, or NULL */
	const char *usage, *about;
	const struct sl_option *table;
	int (*run)(struct sl_arguments *arguments); /* `arguments` are not parsed yet; returns an exit status */
	enum sl_paths paths;
};

/* clang-format off */
/* Every verb, in the order of the help: the six that --help shows, those of `help all`, and verbs that it does not list. */
#define SL_COMMANDS(VERB) \
	VERB(report) VERB(tree) VERB(table) VERB(diff) VERB(check) VERB(export) \
	VERB(fit) VERB(monitor) VERB(watch) VERB(diagnose) VERB(collect) VERB(pack) VERB(push) VERB(convert) VERB(validate) \
	VERB(merge) VERB(summarize) VERB(runs) VERB(info) VERB(explain) \
	VERB(flame) VERB(dump) VERB(try)
/* clang-format on */

/* The row of verbs that read one run. */
#define SL_OPTION_RUN(member)                                                                                                      \
	{                                                                                                                          \
		"--run", 0, "ID|all", "which run of a folder with several (default: the newest)", SL_TO_TEXT(member)               \
	}

/* The row of verbs that name functions; its value is sl_arguments.symbols. */
#define SL_OPTION_SYMBOLS                                                                                                          \
	{                                                                                                                          \
		"--symbols", 0, "DIR",                                                                                             \
			"look there too for libraries, programs and debug files of the recorded build (default: where they were)", \
			SL_READ_FOLDER                                                                                             \
	}

/*
 * What a verb does before it opens its first input: checks the places of its outputs, gives up the rights that no reader of traces
 * needs, and watches signals.
 */

/* Files and folders that a verb reads and writes. */
struct sl_verb_files {
	char *const *inputs;		  /* ended by NULL */
	const char *reads[5], *writes[8]; /* others; NULL: not given */
	const char *through;		  /* of `writes`; may be a link: what it leads to is appended to, or the verb judges it */
	const char *open;		  /* of `writes`; SQLite has it open, and would lose its locks if it were closed */
	const char *symbols;		  /* --symbols */
	bool packs;			  /* `writes` are packs, and may replace one */
	bool changes;			  /* the inputs are folders in which files are made */
	bool processes;			  /* it reads processes of /proc */
};

/*
 * To be called once, before other threads start.  Ends the program with SL_EXIT_USAGE if an output would replace an input, a
 * recording or a link.  From here on a signal removes unfinished files.
 */
void sl_sandbox_setup(const struct sl_verb_files *files);

/* False: an output would replace one of these; `why` is a sentence for people.  Folders, devices and pipes are not checked. */
bool sl_sandbox_may_write(const struct sl_verb_files *files, char *why, size_t size);

/* True: the folder of `path` is one of the inputs or below one. */
bool sl_sandbox_is_inside(const char *path, char *const *inputs);

/* True: it also has a name under which files in folders are read. */
bool sl_sandbox_is_read(const char *path, char *const *inputs);

/* Opens the traces that a verb was given, with the messages and exit statuses that all verbs share. */
#define SL_NATIVE_NO_TELEMETRY "traces, not telemetry; report writes theirs to analysis/telemetry"

/* Prints warnings from `first` on, before `end`, on stderr; of very many the first. */
void sl_native_say(const struct sl_report *report, size_t first, size_t end);

/* Reads and analyses the paths, prints problems on stderr; returns an exit status. */
int sl_native_open(struct sl_report *report, char **paths, unsigned count, const struct sl_pipeline_options *options);

/* Reads the same paths again, with options that depend on the first reading; prints no damage again. */
int sl_native_again(struct sl_report *report, char **paths, unsigned count, const struct sl_pipeline_options *options);

/*
 * All traces at the paths (ended by NULL), grouped by run, for verbs that do not replay; an exit status after printing why, or
 * -1: go on.
 */
int sl_native_images(struct sl_images *images, char **paths);

/* Reads the file of --suppressions.  False: the reason was printed. */
struct sl_suppressions;
bool sl_native_suppressions(struct sl_suppressions *suppressions, const char *path);

/*
 * Writes a pack of a run (-1: of all) by exports/archive_write.c.  Returns an exit status; prints the reason of a failure on
 * stderr. SL_EXIT_UNREADABLE: no trace can be read, and no file is written.
 */
int sl_native_pack(const struct sl_images *images, int run, const char *path, const uint8_t *key, struct sl_archived *packed);

/* After writing `path`: SL_EXIT_UNREADABLE, and a message, where something that lies there is not in it; SL_EXIT_FINE: all is. */
int sl_native_left_out(const struct sl_images *images, const struct sl_archived *packed, const char *path);

/* The same where it is known that something is not in it. */
int sl_native_partly(const char *path);

/* Members of the open object: path and size of the file. */
struct sl_json;
void sl_native_tell_file(struct sl_json *j, const char *path);

/* Opens the page that a verb has written in the reader's browser. */

/*
 * Prepares to open `folder`'s report.html: starts a process that never sees the trace and waits for the
 * request. To be called before sl_sandbox_setup.
 */
void sl_browser_start(const char *folder);
void sl_browser_open(void);

/* What the verbs over many runs share: the catalogue and the choice of runs in it.  One thread. */
struct sl_catalogued {
	const char *catalogue; /* NULL: the default */
	const char *symbols;   /* --symbols */
	bool quiet, utc;
	struct sl_arena arena;
	const char *filters;	/* the filters as terms of a query; NULL: none */
	struct sl_query query;	/* the user's query and the filters */
	struct sl_store *store; /* NULL: not open */
	struct sl_scan scan;
	bool narrowed; /* paths were named, so only runs found there are shown */
};

bool sl_catalogued_is_query(const char *text); /* true: neither an existing path nor written like one */
/*
 * Both return an exit status after printing why, or -1: go on.  Call sl_catalogued_close in every case.  inputs: paths that are
 * read, ended by NULL, or NULL: the catalogue is made under none of their names.
 */
int sl_catalogued_store(struct sl_catalogued *c, bool write, char *const *inputs);
int sl_catalogued_query(struct sl_catalogued *c, const char *text);
int sl_catalogued_fail(struct sl_catalogued *c); /* prints why the store failed */
/* Returns the exit status: of one that was fine, SL_EXIT_UNSAVED where a pack found no room to be read. */
int sl_catalogued_close(struct sl_catalogued *c, int status);

/* Prints each entry of a range (NVTX, roctx, stormlog.h, backward pass): the memory in use before and after it, and its peak. */
#define SL_ENTRIES_ALL "*" /* as a label: every label */

struct sl_label_entries_how {
	const char *label; /* as in report.json: step_# */
	const char *run;   /* NULL: the newest run of a folder */
	const struct sl_only *only;
	bool json, csv; /* neither: a text for people */
	bool lines;	/* with what each line of code allocated in the entry */
};

/*
 * Entries are printed in the order in which they ended.  One that never closed comes last, without an end and a use after it. 
 * Returns an exit status.
 */
int sl_label_entries_print(char **paths, const struct sl_label_entries_how *how);

/* runs --history: one quantity over the runs, and the runs where it changed. */
enum { SL_HISTORY_ANY = 5 }; /* the largest of all that the words of --of name */

/* Arguments of the verbs about running recordings: paths, process ids, or nothing, which means all of this node. */

/* True: the arguments are process ids, or there are none: recordings are found through /proc. */
bool sl_recordings_is_node(const struct sl_arguments *options);

/* Adds a path, or a recording process by its id.  False: it is neither. */
bool sl_recordings_add(struct sl_follow *follow, const char *what);

/* Adds all of them.  False: one is neither, or none is there and a file is no recording; which was printed. */
bool sl_recordings_add_all(struct sl_follow *follow, const struct sl_arguments *options);

/* Reads what is new.  Prints of each process, once it has ended, what of its trace could not be read. */
void sl_recordings_poll(struct sl_follow *follow);

/* Who held memory at a moment, from replayed processes: the owners that tree, table and flame show. */

/* In the order of --by and --sort. */
enum sl_group_by {
	SL_BY_LIBRARY,
	SL_BY_STACK,
	SL_BY_LABEL,
	SL_BY_THREAD,
	SL_BY_RANK,
	SL_BY_PLACE,
	SL_BY_DEVICE,
	SL_BY_FUNCTION,
	SL_BY_ROLE,
	SL_BY_NAME,   /* the program's own names for its memory */
	SL_BY_HOLDER, /* the variables that hold it, as Python told */
	SL_BY_TYPE,   /* of elements; in a dry run */
	SL_BY_MODULE
};
enum sl_group_sort { SL_SORT_HELD, SL_SORT_MADE, SL_SORT_KEPT, SL_SORT_TEMPORARY, SL_SORT_LIFETIME };

struct sl_group_how {
	enum sl_group_by by; /* what the first level is */
	enum sl_group_sort sort;
	unsigned kind;	 /* only memory of this kind, on a device or not; SL_KIND_none: all device memory */
	bool at_peak;	 /* each process at its own peak; otherwise at the end of the replay */
	bool between;	 /* only what was born in the span (counts/between.h) */
	bool all_frames; /* includes the interpreter's frames */
	bool compact;	 /* of a library's frames in a row only the first and the last */
	bool parted;	 /* the first level is the device */
	bool lives;	 /* a single level, with what became of all its blocks */
};

/* lives: one for each share, if how.lives is set. */
struct sl_group {
	struct sl_owners owners;
	SL_VECTOR(struct sl_tree_lives) lives;
};

void sl_group_add(struct sl_group *owned, struct sl_process *process, const struct sl_group_how *how);
/* Called before anything is read from `owned`. */
void sl_group_sort(struct sl_group *owned, const struct sl_group_how *how);

/* Options of `report`, over traces and over Stormlog's own files. */
struct sl_report_options {
	const char *output; /* -o, or NULL */
	bool json, quiet, open, oom, all, no_source;
	/* for traces; `pipeline` points to the members below */
	struct sl_pipeline_options pipeline;
	struct sl_alert_thresholds alerts;
	const char *suppressions_file;
	struct sl_suppressions suppressions;
	uint64_t html_max_bytes; /* 0: the default size */
	struct sl_emit_options emit;
	const char *states_file;
	struct sl_arena arena;	/* texts read from the files below */
	const char *session_id; /* for Stormlog's own files */
	/* an option that was given and is only for traces, and one only for Stormlog's files; NULL: none */
	const char *only_native, *only_telemetry;
};

extern const struct sl_option sl_report_options_table[];
extern const char sl_report_about[];

/*
 * Logs, what programs printed (analyzer/logs/log.h).  True: every path is one; "-", standard input, is one always.  To be called
 * after sl_sandbox_setup.
 */
bool sl_logs_are(char *const *paths);
/* True: a path is neither text nor anything known, which was printed. */
bool sl_logs_refuse(char *const *paths);
/* Prints what they tell; an exit status.  check: of the limit --no-oom. */
int sl_logs_tell(char *const *paths, bool json, bool quiet, bool check);
/* Prints what the servers of two logs say of themselves, beside each other. */
int sl_logs_diff(char *const *paths, bool json);
/* A member of the open object. */
void sl_logs_json(struct sl_json *j, const char *key, const struct sl_log *log);

/* Which part of the work this process does: from an option, or from what srun, mpirun or a job array put into the environment. */
struct sl_shard {
	unsigned part, parts; /* part counts from 1; parts 0: not known yet */
	const char *by;	      /* the variable with the number, NULL: none */
};

/* "I/N", I from 1 to N. */
bool sl_shard_parse(struct sl_shard *shard, const char *text);

/* Without such variables there is one part.  False: a part is known but not the number of parts; `by` names the variable. */
bool sl_shard_from_environment(struct sl_shard *shard);

/* %s is the part, %h the host, %% a per cent sign.  False: another character follows %, or there is no room. */
bool sl_shard_name(const struct sl_shard *shard, const char *pattern, char *out, size_t size);

/* True: the pattern contains %s. */
bool sl_shard_is_asked(const char *pattern);

/* A side of a comparison that is given as a query: the newest runs that match it, read from their cards.  No trace is read. */
struct sl_side_names {
	SL_VECTOR(char *) list; /* malloc'ed texts */
};

/* The style for stdout. */
struct sl_face_style sl_terminal_style(void);
/* Prints the answers there. */
void sl_terminal_show(const struct sl_answers *answers);

/* monitor --format sink: what running programs hold, as a telemetry sink that Python Stormlog reads while it grows.  One thread. */
struct sl_tracking_settings {
	double interval; /* seconds between two looks */
	struct sl_alert_thresholds thresholds;
	bool watchdog; /* alerts go to stderr too */
};

/* The folder must not exist, or be empty: ENOTEMPTY.  NULL: errno. */
struct sl_tracking *sl_tracking_open(const char *folder, const struct sl_tracking_settings *settings);
/* Writes a sample of each process and of each device in `machine`.  False: errno. */
bool sl_tracking_look(struct sl_tracking *track, const struct sl_follow *follow, const struct sl_machine *machine);
/* Completes the sink and frees.  *events: their number.  False: errno of the first failure. */
bool sl_tracking_close(struct sl_tracking *track, uint64_t *events);

/* Moments as users write them, and the time spans of --from and --to.  TOLD: when Python told of most variables. */
enum sl_when { SL_WHEN_PEAK, SL_WHEN_END, SL_WHEN_OOM, SL_WHEN_TENSORS, SL_WHEN_TIME, SL_WHEN_START, SL_WHEN_ENTRY, SL_WHEN_TOLD };

struct sl_timespan {
	enum sl_when kind;
	const char *text;  /* as written; NULL: not given */
	size_t label_size; /* length of the label in `text`, before the last '#' */
	uint64_t number;
};

/* False: not a moment. */
bool sl_timespan_parse(struct sl_timespan *when, const char *text);

/*
 * The Unix time of a moment that is the same for all processes (a time, or the first error).  False: there is none, which was
 * printed.
 */
bool sl_timespan_unix(const struct sl_report *report, const struct sl_timespan *when, uint64_t *unix_ns);

/* Before the first replay: asks it to look for the entries that `when` names. */
void sl_timespan_seek(struct sl_pipeline_options *options, const struct sl_timespan span[2]);

/* After the first replay: the spans for the second, one for each image, malloc'ed; NULL: there are none, which was printed. */
struct sl_stretch *sl_timespan_spans(const struct sl_report *report, const struct sl_timespan span[2]);

#define SL_COMMAND(name) extern const struct sl_command sl_command_##name;
SL_COMMANDS(SL_COMMAND)
#undef SL_COMMAND
