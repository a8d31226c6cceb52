/* SPDX-License-Identifier: MIT */
/* The gate: the numbers of a run, baselines, limits, the comparison of two sides, and the verdict that CI reads. */
#pragma once

#include "analyzer/report/report.h"

/*
 * The lines of code that one entry of a baseline covers, and which of them are the same on both sides of a comparison.  An entry
 * is identified by its functions, so that code may move inside them; figures and messages name its lines.
 */

struct sl_measure_line {
	char *place, *what; /* place: the line, "train.py:97 remember"; what: with its caller, if there is one only */
	char *detail;	    /* "pool, libcudart.so.13": kind and library, to distinguish equal places; NULL: not known */
	char *file;	    /* source file for messages, NULL: none */
	char *key;	    /* in lists of leaks: fingerprint of the largest stack */
	uint32_t line;
	uint64_t order;		 /* number of the line in its source file */
	uint64_t bytes, growing; /* growing: in lists of leaks, the part of `bytes` that grew */
};

struct sl_measure_lines {
	SL_VECTOR(struct sl_measure_line) list; /* in the order of the source, after lines_sort */
	struct sl_map *numbers;			/* of the lines by place, from 1, while many are added; NULL: few, or sorted */
};

/* The line that holds most; NULL: there is none. */
const struct sl_measure_line *sl_measure_lines_most(const struct sl_measure_lines *lines);
/*
 * Sets was[i] to the index in `before` of the line that after[i] was, or -1. Lines are matched by name where one side has all names
 * of the other; otherwise in their order, with the least total change.
 */
void sl_measure_lines_match(const struct sl_measure_lines *before, const struct sl_measure_lines *after, long *was);

/*
 * Describes a run by a flat list of numbers whose names mean the same in other runs; limits, baselines and comparisons use it.
 * Every number is that of the worst process (or device), so that runs of different world sizes can be compared.
 */

enum sl_measure_of {
	SL_MEASURE_TOTAL,   /* key: "peak", "allocated", "hidden", "leak": bytes; "tensors": a count */
	SL_MEASURE_LIBRARY, /* key: library without version; bytes: its own peak on one device */
	SL_MEASURE_STACK,   /* key: fingerprint; bytes held at the peak of the device */
	SL_MEASURE_LEAK,    /* key: fingerprint; bytes of leaks that are live_at_exit or growing */
	SL_MEASURE_LABEL,   /* key: label; peak inside it */
	/* Key: label; bytes per entry, 0 where it stays or shrinks, unknown where entries vary too much */
	SL_MEASURE_GROWTH,
	SL_MEASURE_OF_COUNT,
	SL_MOST_TENSORS = SL_MEASURE_OF_COUNT, /* in `largest` only: tensors at that peak, where they were most then */
	SL_MOST_COUNT
};

struct sl_measure {
	enum sl_measure_of of;
	char *key, *what;	       /* what: the words for people, which tell how many lines there are */
	struct sl_measure_lines lines; /* of places and leaks: the lines that make up `bytes`; empty: not known */
	uint64_t bytes;		       /* the most that any process is known to have; SL_UNKNOWN: no process is known */
	uint64_t at_most;	       /* for growth and "hidden": an upper bound where the figure is unknown; 0: none */
	uint64_t at_least; /* for growth: a lower bound, from the error of the slope, in the process where it is highest */
	bool is_outermost; /* for growth: no label around it grows with it, in a process at least */
	unsigned unknown;  /* number of processes (devices) for which it is unknown; they may hold more */
};

struct sl_measures {
	SL_VECTOR(struct sl_measure) list;	  /* by `of`, then largest first */
	struct sl_map index[SL_MEASURE_OF_COUNT]; /* key -> position in `list` + 1 */
	/* For places and for leaks: the line that holds most in one process; place NULL: none.  A baseline has none. */
	struct sl_measure_line largest[SL_MOST_COUNT];
	/* Leaks of each line, over all its callers, in the process where they grow or are most.  A baseline has none. */
	struct sl_measure_lines left;
	uint64_t held_bytes; /* of one process, in places of which nothing shows whether it is used: no part of what leaked */
	struct sl_process *held_by;
	struct sl_stack held_at; /* the place with most of it */
	bool no_device;		 /* the run used no device */
	bool of_windows;	 /* sl_window_all: the peak is of what was reserved, and no end of a program is known */
	char *dry_card;		 /* the card of a dry run; NULL: it ran on a device */
};

extern const char *const sl_measure_names[SL_MEASURE_OF_COUNT]; /* total, library, stack, leak, label, growth */

/* How a total is called on screens: what is left at the end need not grow, as a LEAK does. */
const char *sl_measure_word(const char *key, bool of_windows);
bool sl_measure_is_count(enum sl_measure_of of, const char *key);

void sl_measures_take(struct sl_measures *measures, struct sl_report *report);
/* Adds bytes to the place of a site and to its line, which is returned; entry: the key of the place. */
struct sl_measure_line *sl_measures_put(struct sl_measures *measures, enum sl_measure_of of, struct sl_process *process,
					const struct sl_site *site, const char *library, uint64_t bytes, const char **entry);
void sl_measures_free(struct sl_measures *measures);

/* NULL: not in the list. */
struct sl_measure *sl_measures_find(const struct sl_measures *measures, enum sl_measure_of of, const char *key);
/* Appends one; texts are copied. */
struct sl_measure *sl_measures_add(struct sl_measures *measures, enum sl_measure_of of, const char *key, const char *what);
void sl_measures_sort(struct sl_measures *measures);

/* The numbers of a run as a small file for the repository, sorted and with one place per line, so that its diff can be read. */

/* Replaces the whole file; false: errno. */
bool sl_baseline_write(const struct sl_measures *measures, const char *path);

/* False: `why` says why it is not a baseline. */
bool sl_baseline_read(struct sl_measures *measures, const char *path, char *why, size_t size);

/*
 * Compares two sides, each of one run or several.  With several runs a number has a spread.  A change is noise if the ranges of
 * the two sides touch.
 */

struct sl_side {
	SL_VECTOR(struct sl_measures) runs;
};

enum sl_difference_kind {
	SL_CHANGE_SAME,
	SL_CHANGE_NOISE,
	SL_CHANGE_UNKNOWN,
	SL_CHANGE_LESS,
	SL_CHANGE_MORE,
	SL_CHANGE_GONE,
	SL_CHANGE_NEW
};
extern const char *const sl_change_names[]; /* same, noise, unknown, less, more, gone, new */

struct sl_spread {
	uint64_t min, max;
	double mean;
	unsigned count; /* number of runs that know the figure */
};

struct sl_difference {
	enum sl_measure_of of;
	const char *key, *what; /* key: as in struct sl_measure; what: the line, if every run knows the lines of the place */
	const char *detail;	/* as in struct sl_measure_line */
	const struct sl_measure *first; /* in the first row of a place: the measure whose lines the rows show */
	struct sl_spread before, after;
	enum sl_difference_kind change;
	double bytes; /* mean after minus mean before */
};

struct sl_differences {
	SL_VECTOR(struct sl_difference)
	list; /* sorted by `of`, then by size of the change; no two of one `of` with the same words */
	struct sl_arena words;
};

void sl_diff(struct sl_differences *differences, const struct sl_side *before, const struct sl_side *after);
void sl_differences_free(struct sl_differences *differences);
struct sl_json;
void sl_difference_write(struct sl_json *j, const struct sl_difference *difference); /* as in schemas/diff.schema.json */

/*
 * Why the peak of one run differs from that of another: both peaks are taken apart into the same terms, whose differences add
 * up to the difference of the peaks to the byte.  The peak is that of the process and device that held most.
 *
 * Where the replay reproduces both recordings (because.c), the run after is first replayed under the settings and release
 * of the run before.  The term SETTINGS is the difference, and the other terms are of that replay.  Else the recordings give the
 * terms: places with whole blocks, and one term for all that the allocator kept unused.
 */

/* In the order in which they are taken off. */
enum sl_because_term {
	SL_BECAUSE_SETTINGS,  /* other release or settings of PyTorch */
	SL_BECAUSE_REQUESTS,  /* by line: what was asked for and lived */
	SL_BECAUSE_ROUNDING,  /* blocks beyond what was asked for */
	SL_BECAUSE_FRAGMENTS, /* unused pieces beside blocks: empty_cache() would not give them back */
	SL_BECAUSE_CACHE,     /* unused, and empty_cache() would give it back */
	SL_BECAUSE_POOLS,     /* unused in private pools of graphs and MemPools */
	SL_BECAUSE_WAITING,   /* freed blocks that other streams may still use */
	SL_BECAUSE_UNUSED,    /* without a replay: fragments, cache and pools in one */
	SL_BECAUSE_LIBRARIES, /* asked of the driver by others than PyTorch; without a replay: places without a line */
	SL_BECAUSE_OUTSIDE,   /* context, code and other processes */
	SL_BECAUSE_TERMS,
};
extern const char *const sl_because_names[SL_BECAUSE_TERMS];

/* A peak in terms. */
struct sl_because_parts {
	uint64_t bytes;			  /* of the peak; the sum of the terms */
	uint64_t terms[SL_BECAUSE_TERMS]; /* SETTINGS is 0 */
	struct sl_side lines;		  /* one run: places of SL_BECAUSE_REQUESTS with their lines */
};

/* One run. */
struct sl_because_run {
	char *who;			  /* session, and the device; NULL: no memory was held */
	struct sl_because_parts recorded; /* without a replay */
	bool replays;
	char why[160]; /* why it does not */
	struct sl_because_parts own;
	char *settings;
	unsigned release;
	bool likened;		      /* `like` differs from `own` */
	struct sl_because_parts like; /* under the settings and release of the run before */
};

struct sl_because {
	const struct sl_because_run *before, *after;
	bool replayed;
	const struct sl_because_parts *was, *is; /* whose terms are compared */
	double terms[SL_BECAUSE_TERMS];		 /* changes; their sum is the difference of the peaks */
	struct sl_differences lines;		 /* of SL_BECAUSE_REQUESTS */
};

/* Reads the run; before NULL: it is the run before. */
void sl_because_take(struct sl_because_run *run, struct sl_report *report, const struct sl_because_run *before);
void sl_because_run_free(struct sl_because_run *run);

/* False: one of the runs held no memory.  The runs stay as long as the result; the owner frees both. */
bool sl_because(struct sl_because *because, const struct sl_because_run *before, const struct sl_because_run *after);
void sl_because_free(struct sl_because *because);
/* A term in words, with the releases and settings of SL_BECAUSE_SETTINGS; `out` may be unused. */
const char *sl_because_text(char *out, size_t size, const struct sl_because *because, enum sl_because_term term);

/*
 * What a run must not exceed: options of `check` and keys of the file in the repository are the same names.
 *
 *	# .stormlog.ini
 *	[check]
 *	max-peak = 20GiB
 *	max-growth = 2MiB/step
 *	no-oom = yes
 */

#define SL_GROWTH_LIMITS_MAX 16
#define SL_NO_LIMIT	     UINT64_MAX

enum sl_fail_on { SL_FAIL_ON_NOTHING, SL_FAIL_ON_WARNING, SL_FAIL_ON_CRITICAL };

struct sl_growth_limit {
	uint64_t bytes;
	char label[120]; /* "": every label */
};

struct sl_limits {
	uint64_t peak, allocated, tensors, leak, hidden; /* SL_NO_LIMIT; tensors: how many */
	uint64_t fits;					 /* the run must fit on a device of this capacity; SL_NO_LIMIT: not asked */
	struct sl_growth_limit growth[SL_GROWTH_LIMITS_MAX];
	unsigned growth_count;
	bool no_oom;
	bool accepts_dry;    /* the run must be a dry one that came to its end (verdict.c) */
	bool strict;	     /* what a run cannot tell counts as a failure */
	char baseline[4096]; /* path; "": none */
	double tolerance;    /* allowed change from the baseline: 0.05 */
	enum sl_fail_on fail_on;
	bool fail_on_gaps; /* with fail_on: also on Stormlog's gap findings */
};

void sl_limits_init(struct sl_limits *limits);

/* name without leading dashes: "max-peak".  Returns NULL, or a static text that says what is wrong. */
const char *sl_limits_set(struct sl_limits *limits, const char *name, const char *value);

/* Reads a file; a relative baseline in it counts from the file's folder.  False: `why` says why, with file and line. */
bool sl_limits_read(struct sl_limits *limits, const char *path, char *why, size_t size);

/* The names of what is checked: "max-peak, no-oom". */
void sl_limits_describe(const struct sl_limits *limits, char *out, size_t size);

/* Compares a run with limits and a baseline; one outcome for each thing compared. */

enum sl_level {
	SL_LEVEL_PASS,
	SL_LEVEL_UNKNOWN, /* the run has no measurement to compare */
	SL_LEVEL_NOTE,	  /* for information: never fails */
	SL_LEVEL_WARNING,
	SL_LEVEL_CRITICAL,
};
extern const char *const sl_level_names[]; /* pass, unknown, note, warning, critical */

struct sl_outcome {
	const char *rule;		 /* name of a row of sl_rules */
	char *subject;			 /* what was compared: "peak", "step_#", "train.py:97 remember" */
	char *message;			 /* one line: the verdict's, or one that begins with the numbers */
	const struct sl_answer *verdict; /* of the run's document; NULL: of a limit */
	char *file;			 /* source file that a CI system points at; NULL: none */
	uint32_t line;
	char *fingerprint; /* fingerprint of the stack; NULL: none */
	enum sl_level level;
	bool fails; /* this outcome makes the exit status 1 */
};

/* Every rule, for SARIF and the manual; ended by a NULL name. */
struct sl_gate_rule {
	const char *name, *summary;
};
extern const struct sl_gate_rule sl_rules[];

struct sl_outcomes {
	SL_VECTOR(struct sl_outcome) list;
	unsigned failures, unknown;
};

/* Class of findings of Stormlog's gap analysis. */
#define SL_GATE_GAP "gap"

/* baseline NULL: none.  The report's document was made before. */
void sl_verdict(struct sl_outcomes *outcomes, struct sl_report *report, const struct sl_measures *measures,
		const struct sl_limits *limits, const struct sl_measures *baseline);
void sl_verdict_free(struct sl_outcomes *outcomes);

/* Writes the outcomes of a check in the formats that CI systems read.  False: a write failed (errno). */

/* What the formats need in addition to the outcomes. */
struct sl_ci_reports {
	const struct sl_outcomes *outcomes;
	const struct sl_answers *answers;
	const struct sl_measures *measures;
	const char *path;	/* what was checked, as the user named it */
	const char *repository; /* absolute; NULL: none is known */
	const char *cwd;	/* working folder of the recorded program, NULL: unknown */
	const struct sl_limits *limits;
	const char *config;  /* the file with the limits, NULL: none */
	unsigned other_runs; /* that lie there too, and were not read */
};

struct sl_terminal;
bool sl_ci_reports_text(const struct sl_ci_reports *forms, const struct sl_terminal *to);
bool sl_ci_reports_json(const struct sl_ci_reports *forms, FILE *out);

/* The part of JUnit XML that Jenkins, GitLab and Azure all read: a test case for each outcome. */
bool sl_ci_reports_junit(const struct sl_ci_reports *forms, FILE *out);

/* SARIF 2.1.0: only results with a file inside the repository, at most 5000, which is GitHub's limit. */
bool sl_ci_reports_sarif(const struct sl_ci_reports *forms, FILE *out);

/* OpenMetrics: what GitLab compares in merge requests. */
bool sl_ci_reports_metrics(const struct sl_ci_reports *forms, FILE *out);

/* Markdown for $GITHUB_STEP_SUMMARY, below its 1024 KiB. */
bool sl_ci_reports_summary(const struct sl_ci_reports *forms, FILE *out);

/* ::error lines, which GitHub shows beside the code. */
void sl_ci_reports_annotations(const struct sl_ci_reports *forms, FILE *out);

/*
 * A name for a place that allocates which stays the same when lines move, when programs and libraries are built again, and on other
 * machines: no addresses, offsets, line numbers, paths or versions go into it.  In a stack with lines of the user's own Python only
 * those count, by file name and function; else all Python lines; else the native functions, or their modules where the objects are
 * not here.  The kind of memory and the library that asked are part of it.  A function that is renamed or moved to another file is
 * another place.
 */

#define SL_FINGERPRINT_BYTES 17

void sl_fingerprint(char out[SL_FINGERPRINT_BYTES], unsigned kind, const char *library, const struct sl_stack_frame *frames,
		    unsigned count);

/* libcublas.so.13.1 -> libcublas.so; bytes of out as snprintf. */
void sl_fingerprint_library(char *out, size_t size, const char *library);

/* --fits: would the run have fit on a device of this capacity?  analyzer/fit answers. */

enum sl_fits_verdict { SL_FITS_YES, SL_FITS_NO, SL_FITS_UNKNOWN };

/* The answer for one device of a process. */
struct sl_fits {
	enum sl_fits_verdict verdict;
	char subject[120], message[400]; /* subject: which device; message: one line that begins with the numbers */
	char file[400];			 /* source file of the request that fails; "": none */
	uint32_t line;
};

struct sl_fit_process;
/* Tells the recordings of a process whether it got over its errors. */
void sl_fits_go_on(const struct sl_process *process, struct sl_fit_process *fit);

/* An answer for every device of every process of the report; the caller frees the array. */
struct sl_fits *sl_fits_of(struct sl_report *report, uint64_t capacity, unsigned *count);
