/* SPDX-License-Identifier: MIT */
/*
 * What is known of a run: its processes, each with the model of its replay, the devices they shared, findings and warnings.
 * The pipeline fills it, analyses add findings, outputs read it.  What is kept per process is bounded by what lived
 * at once and by how varied the program is, not by how long it ran.
 */
#pragma once

#include <string.h>

#include "analyzer/report/found.h"
#include "analyzer/upstream/answers/answers.h"
#include "analyzer/model/state/model.h"
#include "analyzer/symbols/symbols.h"
#include "analyzer/trace/files.h"

struct sl_leak {
	struct sl_stack stack;
	unsigned kind;
	int device;
	uint64_t bytes, blocks, first_ns, last_ns; /* CLOCK_MONOTONIC of the process */
	const char *verdict, *severity;		   /* static */
	const char *library;			   /* of the model */
	bool growing, suppressed;		   /* suppressed: the suppressions file names it */
	/* For growing leaks; r_squared: over steps where there are some, of "kept" the confidence. */
	double bytes_per_second, bytes_per_step, r_squared;
	uint32_t step; /* text of the label whose entries are the steps; 0: none */
};

/* True: limits count this leak: it is not memory that an allocator or a library keeps to hand it out again. */
static inline bool sl_leak_counts(const struct sl_leak *leak)
{
	return !strcmp(leak->verdict, "live_at_exit") || !strcmp(leak->verdict, "growing") || !strcmp(leak->verdict, "kept");
}

/* A stack whose live bytes grew from entry to entry of a label. */
#define SL_HOLDERS_MAX 3
struct sl_holder_of_growth {
	struct sl_stack stack;
	const char *library; /* of the model */
	double bytes_per_entry;
};

struct sl_growth {
	uint32_t label; /* index into the model's labels */
	double slope, r_squared;
	double error;	     /* standard error of the slope */
	double at_most;	     /* upper bound of the slope: it is above with a probability of 1 in 200 */
	const char *verdict; /* growing, shrinking, steady, noisy; NULL: too few entries to tell */
	struct sl_holder_of_growth holders[SL_HOLDERS_MAX]; /* for growing labels, largest first */
	unsigned holder_count;
	bool inside;   /* it grows with a label around it, which is the one to tell */
	bool credited; /* what grew was allocated in its entries and something is kept, so it has a finding */
};

/* A line that keeps a part of what it allocates to the end of the run; analyses/leak.h. */
enum sl_leak_words_verdict {
	SL_KEPT_GROWING, /* evenly until the end: a leak */
	SL_KEPT_FILLING, /* more and more slowly: a cache that fills, or a leak that has just begun */
	SL_KEPT_UNCLEAR, /* the program did nothing but this, and ended; or it came in a few calls: a leak, or what it loads */
	SL_KEPT_COLLECTED = 5, /* evenly, and then the program freed it: a pass, a list that was joined */
	SL_KEPT_MEANT,	       /* a suppression names it */
	SL_KEPT_LATE,	       /* evenly since a moment amid the run, nothing before, too few to judge */
	SL_KEPT_SMALL,	       /* evenly until the end, but handles that hold little and are few */
	SL_KEPT_FEW,	       /* too few births to judge: added to a place of the same line that grows or is collected */
	SL_KEPT_HELD,	       /* one loop made it and ended, other work came; nothing shows whether it is used */
	SL_KEPT_END,
};
struct sl_leak_line {
	const struct sl_track *track; /* in the model; of several with one place the largest */
	enum sl_leak_words_verdict verdict;
	bool count_only;		     /* amount counts objects instead of bytes */
	bool young;			     /* most of what is kept is no older than freed blocks became, as in a queue */
	bool larger;			     /* each block is larger than all before it */
	double amount;			     /* kept at the end */
	uint64_t births, blocks;	     /* blocks allocated there, and how many of them are kept */
	uint64_t bytes;			     /* cost on the device, for objects too; SL_UNKNOWN */
	double per_birth;		     /* amount per birth */
	uint64_t bursts;		     /* of births, as struct sl_track_course has them; 0: of an older summary */
	double per_second, per_second_error; /* slope of a straight line through amount, and its standard error */
	double confidence;		     /* probability that it is not chance, over all places tested */
	uint64_t since_ns;		     /* birth of the first that is kept, to a window of its track */
	uint64_t left_blocks, left_bytes;    /* of it, still held when the process ended */
	uint32_t clock;			     /* text of the label whose entries are the clock of its loop; 0: none, or */
	struct sl_stack clock_at;	     /* the path whose births are; all 0: none */
	bool graph;		   /* half of the paths of its pass keep most of their blocks, as a graph of autograd does */
	uint64_t ended_ns;	   /* the loop ended, and other work came; 0: it went on to the end, or is not known */
	uint64_t bouts;		   /* times that the loop ran */
	struct sl_stack joined_at; /* after it a block as large as all of its together was made there; all 0: none */
	uint64_t rounds;	   /* from its first birth to its last, at least 1; 0: steps are a label's, or an older summary */
};

/* The program's own steps: entries of a label, or the number of births that most of its places have in common. */
struct sl_iterations {
	uint64_t count;	  /* 0: no steps were found */
	const char *name; /* "step_#", "pass" */
	bool by_label;
};

/* Stormlog's leak heuristics on what was in use on a device; analyses/heuristics.c. */
struct sl_heuristics {
	int device;
	size_t samples;
	struct sl_leak_series series;
	/* The place whose larger requests add most to what is held at once; NULL: none. */
	const struct sl_track *larger;
	uint64_t larger_from, larger_to; /* bytes of a request, the means of the first and the last quarter */
	bool larger_on;			 /* larger from each quarter to the next, and by much */
};

/* Who held the device when an out-of-memory error occurred; bytes, SL_UNKNOWN where the trace does not tell. */
enum sl_cause {
	SL_CAUSE_UNKNOWN,
	SL_CAUSE_INJECTED,
	SL_CAUSE_HOST,
	SL_CAUSE_ADDRESS_SPACE,
	SL_CAUSE_FRAGMENTED, /* the allocator had enough unused memory, but in pieces too small */
	SL_CAUSE_DRIVER,     /* the device had room, and yet the driver refused */
	SL_CAUSE_NEIGHBOUR,  /* it would have fitted without other processes */
	SL_CAUSE_TOO_LARGE,  /* larger than the device */
	SL_CAUSE_FULL,	     /* the process itself held the memory */
};
#define SL_OTHERS_MAX 64

/*
 * What led to an error, as far as the trace proves it: a kind with its line and figures.  `bytes`, `before`, `count` and `times`
 * mean what is written at the kind; SL_UNKNOWN, 0: not known.
 */
enum sl_story_kind {
	SL_STORY_NONE,
	SL_STORY_ATTEMPTS,  /* before, bytes: held at the first and the last of `count` attempts, each of which kept what it got */
	SL_STORY_RETRY,	    /* bytes: got by a failed try at `stack`, and still held */
	SL_STORY_REQUEST,   /* the request is `times` as large as `before`, the largest of `count` at its line */
	SL_STORY_STEP,	    /* the same, of all requests before this step */
	SL_STORY_LIMIT,	    /* a limit of the context, raised `count` times at `stack`, has the context set `bytes` aside */
	SL_STORY_GREW,	    /* `count` lines leak, `bytes` together, most at `stack` */
	SL_STORY_TOOK,	    /* lines took `bytes` and freed none, most at `stack`; nothing tells what for */
	SL_STORY_SURGE,	    /* `stack` (`words`: the device) rose to hold `bytes`, `times` `before`, the most of `count` rises */
	SL_STORY_TEETH,	    /* each of `count` rises at `stack` was higher than all before; `bytes` is `times` the first */
	SL_STORY_JUMP,	    /* `before` were held at most, then `times` that, most of it at `stack` */
	SL_STORY_LARGER,    /* requests at `stack` grew from `before` to `bytes`, on average */
	SL_STORY_LARGEST,   /* the request is the largest of all; `before` is the largest that was granted */
	SL_STORY_HOLDER,    /* `stack` made `bytes` in `count` blocks and gave none back */
	SL_STORY_OPTIMIZER, /* the first step's state needs `bytes`, of which `before` were made; `words`: which optimizer */
	SL_STORY_SERIES,    /* a tensor is made again at `stack`, `count` larger each time; it has `before`, its copy `bytes` */
	SL_STORY_ACTIVATIONS, /* graphs of `count` batches are held, `bytes` in all, without a backward pass */
	SL_STORY_AGAIN,	      /* tensors made again, larger each time, hold `bytes`; most at `stack` */
	SL_STORY_INPUT,	      /* the input of this step has `bytes`, that of `count` steps before `before` at most */
	SL_STORY_FIRST_PASS,  /* modules had made `bytes` in the first pass, `words`: "forward" or "backward" */
	/*
	 * Weights need `bytes`; SL_UNKNOWN: more than the card has by now.  The card has `before` of them.  float32 takes `count`.
	 * `words` is the model's class.  NULL: they may be of several models.
	 */
	SL_STORY_WEIGHTS,
	SL_STORY_CACHES, /* key-value caches hold `bytes` in `count` tensors; `words`: each was made once, in full length */
	SL_STORY_POOL,	 /* the pool of `words` holds `bytes`, of which `before` are in use */
};
struct sl_story {
	enum sl_story_kind kind;
	struct sl_stack stack;
	uint64_t bytes, before, count;
	double times;
	const char *words; /* static or of the model */
};

struct sl_operator;
struct sl_account {
	uint64_t cached, largest_cached; /* unused memory that PyTorch kept */
	/* memory of this process that no call named; rounding: about; aside: what its limit had the context set aside */
	uint64_t hidden, context, modules, rounding, unexplained, aside;
	const struct sl_operator *ran; /* what asked, by report/operator.h; NULL: not known */
	const char *context_bound;     /* sl_sample_wait_context_bound() */
	bool about;		       /* what was free then follows from an earlier sample */
	uint64_t own_limit;	       /* of PyTorch's that refused; SL_UNKNOWN: of unknown size; 0: none did */
	uint64_t others_bytes;	       /* sum over `others`, limited to what the device had room for */
	struct {
		int64_t pid, rank; /* rank -1: none or not recorded */
		uint64_t bytes;
		bool stray;			     /* a rank of this run on a device that is not its own */
		struct sl_process *process;	     /* NULL: not recorded */
		const struct sl_device_state *state; /* its own of the device */
	} others[SL_OTHERS_MAX];
	unsigned other_count;
	unsigned contexts; /* of other processes on the device; the largest took context_each bytes */
	uint64_t context_each;
	enum sl_cause cause;
	/* Earlier attempts at the same place, after which nothing was freed: reported together with this one. */
	unsigned attempts_before;
	unsigned first_attempt; /* index of the first of them, or its own */
	bool told_later;	/* it is such an earlier attempt */
	bool held_by_try;	/* a try that the program caught still holds enough: no change of its steps is asked for */
	bool replayed;		/* SL_CAUSE_FRAGMENTED: by the replay of all requests; else by what was unused when it failed */
	struct sl_story story;
	char *cause_text, *advice; /* sl_answer_describe() makes them; advice may be NULL */
};

/* What report.json and a bundle have as the cause; NULL: it is not known, whatever the text says of the error. */
static inline const char *sl_account_cause(const struct sl_account *account)
{
	return account->cause == SL_CAUSE_UNKNOWN ? NULL : account->cause_text;
}

/* What was free, or what the device has, as the driver said at the error; SL_UNKNOWN where it follows from an earlier sample. */
static inline uint64_t sl_account_measured(const struct sl_account *account, uint64_t bytes)
{
	return account->about ? SL_UNKNOWN : bytes;
}

/* What made memory hidden. */
enum sl_hidden_by { SL_HIDDEN_BY_CODE, SL_HIDDEN_BY_POOL, SL_HIDDEN_BY_CONTEXTS, SL_HIDDEN_BY_LIMIT };

/* What a rank holds more or less of than the others do, largest first; what grows is before it. */
#define SL_UNLIKE_MAX 3
struct sl_unlike {
	struct {
		struct sl_process *process;
		struct sl_stack stack; /* in it */
		double more;	       /* bytes; negative: less */
		bool grows, rest;      /* rest: of all other lines, most at this one */
	} place[SL_UNLIKE_MAX];
	unsigned places;
	struct sl_process *peer; /* that it is compared with; NULL: the median */
	enum sl_unlike_why {
		SL_UNLIKE_WORK,
		SL_UNLIKE_KEEPS,      /* it keeps what the others free */
		SL_UNLIKE_KEEPS_MORE, /* the others keep it too */
		SL_UNLIKE_FIRST,      /* it is the first rank */
		SL_UNLIKE_ALONE,      /* no other asks there */
		SL_UNLIKE_ONCE,	      /* one of its steps was larger */
	} why;
};

/* Contexts on a device of others. */
#define SL_STRAYS_MAX 4
struct sl_strays {
	unsigned process[SL_STRAYS_MAX]; /* the first of `count` */
	int owner;			 /* -1: there are several devices */
	bool late;			 /* its own device was used before */
};

/* When a rank ran out of memory. */
enum sl_first { SL_FIRST_CLOSE, SL_FIRST_FOLLOWED, SL_FIRST_SILENT, SL_FIRST_ONLY };

/* A finding: a statement about a run with the numbers that prove it. */
struct sl_finding {
	enum sl_found kind;
	const char *severity;	 /* static: info, warning, critical */
	const char *class;	 /* static: "leak", the kind of cause; NULL: the family of its kind */
	double confidence;	 /* 0: not from a statistical test */
	int process, device;	 /* -1: about the whole run, about no device */
	uint64_t unix_ns, bytes; /* 0, SL_UNKNOWN: none */
	struct sl_stack stack;	 /* that it refers to, in its process; all 0: none */
	bool lacked;		 /* a process ended for want of memory, and no call of it was refused */
	/* What its sentences are made of besides; the analysis that finds the kind says what its numbers are. */
	union {
		const struct sl_leak_line *leak_line;
		const struct sl_leak *leak;
		const struct sl_growth *growth;
		const struct sl_oom *oom; /* of the family `oom` */
		const struct sl_heuristics *course;
		const char *name; /* static, or of the model */
		enum sl_hidden_by by;
		enum sl_first first;
		struct sl_unlike unlike;
		struct sl_strays strays;
	};
	unsigned count, of;
	uint64_t other; /* bytes, or nanoseconds */
	bool about;
	char *text, *advice; /* one sentence each; sl_answer_describe() makes them.  advice may be NULL */
};

struct sl_changes; /* change.h */
struct sl_source;
struct sl_answers;
struct sl_places;
void sl_places_free(struct sl_places *places); /* place.h */
struct sl_roles;
void sl_roles_free(struct sl_roles *roles); /* roles.h */

/* One process, replayed. */
#define SL_ALIKE_UNKNOWN UINT32_MAX

struct sl_process {
	struct sl_trace *trace;
	struct sl_model *model;
	struct sl_symbols *symbols; /* of the run: all its processes have the same; main thread only */
	struct sl_report *report;   /* of the run; NULL: read alone */
	/* The recorded process of the same rank that started it, whose rank it only inherited; NULL: none is known. */
	const struct sl_process *parent;
	struct sl_places *places; /* made when first asked for; place.h, main thread only */
	struct sl_roles *roles;	  /* the same; roles.h */
	unsigned image;		  /* index into the report's images */
	char *session_id;
	uint64_t started_unix_ns, ended_unix_ns;      /* end of a killed process: its last sign of life */
	bool gone;				      /* it had ended at the time up to which it was replayed */
	SL_VECTOR(struct sl_leak) leaks;	      /* largest first; analyses/left_at_exit.c */
	SL_VECTOR(struct sl_growth) growth;	      /* one per label; analyses/growth.c */
	SL_VECTOR(struct sl_leak_line) leaks_by_line; /* growing first, then largest first; analyses/leak.h */
	unsigned measured, unmeasured; /* places that may keep something and were measured for it, or were too many */
	struct sl_iterations iterations;
	SL_VECTOR(struct sl_heuristics) heuristics; /* one per device */
	struct sl_changes *changes;		    /* what would have let it fit; NULL: not asked; analyses/would_fit.c */
	struct sl_account *accounts;		    /* one for each error of model->ooms, NULL: no errors; analyses/oom.c */
	unsigned
		/* Index of the first rank that does the same; SL_ALIKE_UNKNOWN: none, or too few to tell; analyses/ranks.c. */
		alike;
};

/* A process that used a device. */
struct sl_device_user {
	unsigned process; /* index */
	struct sl_device_state *state;
	uint64_t left_ns; /* when it left the device (Unix), by the samples of others: its recording ends before that */
};

/* A device over all processes, matched by host and uuid; without a uuid it belongs to one process. */
struct sl_shared_device {
	const char *host, *uuid, *name, *source;				    /* NULL: unknown */
	int device;								    /* ordinal in the first of its processes */
	uint64_t total_bytes, used_peak_bytes, known_peak_bytes, hidden_peak_bytes; /* SL_UNKNOWN */
	uint64_t hidden_peak_unix_ns;
	bool partial; /* events of its processes were lost: what is known was at least that, and what was hidden is unknown */
	enum sl_figure figure; /* the figure that tells what is hidden */
	/* processes that were not recorded, and their sum in the sample in which it was largest; 0: unknown */
	unsigned others;
	uint64_t others_bytes;
	struct sl_device_user *users;
	unsigned user_count;
};

struct sl_alert_thresholds;
struct sl_suppressions;
struct sl_emit_options;

#define SL_OOM_DUMPS  16
#define SL_OOM_EVENTS 200
/* What is wanted of one image: a replay up to until_ns, and what was born after since_ns (CLOCK_MONOTONIC of the process). */
struct sl_stretch {
	int64_t pid; /* identifies the process, together with started_ns */
	uint64_t started_ns, since_ns, until_ns;
	bool none; /* the process has no such moments */
};

/* The processes to read: one rank, or one process; -1: any. */
struct sl_only {
	long rank, pid;
};

/* Limits by a process's own clock. */
struct sl_window {
	uint64_t begin_ns, until_ns;
};

struct sl_pipeline_options {
	/*
	 * Told the number of processes before the first one; then takes each process after its replay and empties it, on the
	 * thread that replayed it.  damage: of an image that did not open; it may be taken too.
	 * NULL: processes are kept and joined.
	 */
	void (*begin)(void *context, unsigned count);
	void (*each)(void *context, unsigned index, struct sl_process *process, const struct sl_image *image,
		     struct sl_damage *damage);
	void *each_context;
	struct sl_images *found;	/* processes that were searched before, and become the report's; NULL: paths are searched */
	const char *run;		/* an id, "all", or NULL: the newest run */
	const struct sl_only *only;	/* NULL: all processes of the run */
	unsigned part, parts;		/* only the part-th (from 1) of so many parts; 0: all */
	unsigned threads;		/* 0: as many as there are cores */
	bool reads_source;		/* lines of the program's source may be read (source/source.h) */
	bool lives;			/* record what became of blocks, by site */
	bool stretches;			/* the same for windows of the run, where there are few processes */
	uint64_t until_unix_ns;		/* end of the replay; 0: the end of the trace */
	bool tensors, variables;	/* born_named is to tell of these, not of names */
	bool models_only;		/* no analysis runs */
	const struct sl_stretch *spans; /* one for each image; NULL: nobody asks what was born in between */
	unsigned span_count;
	/* One for each image: lines over time cover it alone; NULL: they cover the whole run. */
	const struct sl_window *windows;
	struct sl_sought sought[2]; /* entries to look for; label NULL: none */
	bool quiet;		    /* no progress on the terminal */
	/* Limit for a telemetry session; 0: SL_SESSION_SAMPLES, fewer where there are many processes. */
	unsigned samples;
	unsigned oom_max_dumps, oom_events;	    /* bundles to keep, events in each; 0: SL_OOM_DUMPS, SL_OOM_EVENTS */
	unsigned oom_max_mb;			    /* limit for all bundles together; 0: none */
	unsigned skew_ms;			    /* the user's bound on how far hosts' clocks differ; 0: not given */
	const struct sl_alert_thresholds *alerts;   /* NULL: the defaults */
	const struct sl_emit_options *emit;	    /* for Stormlog's own answers; NULL: the defaults */
	const struct sl_suppressions *suppressions; /* NULL: only the built-in ones */
};

/* How far the clocks of hosts may differ; analyses/skew.h. */
struct sl_skew {
	uint64_t bound_ns, least_ns; /* upper bound; the difference that is proven */
	uint64_t differing;	     /* pairs of hosts that differ by more than SL_SKEW_NS */
	unsigned meetings, hosts;    /* calls that prove it, between each pair of hosts; 0: none */
	const char *evidence;	     /* static: communicators, option, assumed */
};

struct sl_report {
	const char *path;   /* the first path that the user named */
	char *const *paths; /* all of them */
	unsigned path_count;
	struct sl_images images;
	unsigned run; /* index into images.runs; of several runs, the first */
	struct sl_process *processes;
	unsigned process_count;
	SL_VECTOR(unsigned) unread;		 /* images that did not open, and may be of the run */
	uint64_t started_unix_ns, ended_unix_ns; /* from the first sign of any process to the last; both 0: none */
	struct sl_shared_device *devices;
	unsigned device_count;
	SL_VECTOR(char *) warnings;	       /* damage and what was not understood, as lines for people */
	unsigned damage_lines;		       /* the first so many warnings, which all verbs print: damage, and a newer agent */
	SL_VECTOR(struct sl_finding) findings; /* most severe first */
	struct sl_skew skew;
	/* Errors before it (Unix) have no bundle, because of the limit on their number. */
	uint64_t bundles_from_ns;
	/* The same because of the limit on bytes, known only after they are written. */
	uint64_t bundles_kept_ns;
	struct sl_symbols *symbols;
	struct sl_answers *answers;	/* answer/answer.h, made when first asked for (answer/make.h); the report's */
	struct sl_source *source;	/* source/source.h, and the report's; NULL: no source may be read */
	struct sl_places *places;	/* of all processes, when first asked for */
	struct sl_telemetry *telemetry; /* its sessions, when first asked for (upstream/upstream.h); the report's */
	unsigned missed_said;		/* libraries without names that are among the warnings */
	struct sl_pipeline_options options;
	uint64_t html_max_bytes;	 /* of report.html; 0: 8 MiB */
	const struct sl_report *tensors; /* a dry run's, at its peak (commands/report.c), which the caller frees; NULL */
};

void sl_report_free(struct sl_report *report);
void sl_process_free(struct sl_process *process);      /* frees what it owns, not the struct */
void sl_report_free_devices(struct sl_report *report); /* for a report that borrows its processes: frees only the devices */

void sl_report_warn(struct sl_report *report, const char *format, ...) SL_PRINTF(2, 3);

/* Adds a warning for each library whose frames have no names and that has none yet; called before warnings are shown. */
void sl_report_warn_of_symbols(struct sl_report *report);

/* Adds a copy; a text, malloc'ed by the caller, then belongs to the report. */
void sl_report_find(struct sl_report *report, const struct sl_finding *finding);

/*
 * Main thread only.  A stack of autograd's thread may have no frame of the program's own, as in a library's hook.  Then the stack
 * of the pass for which the thread ran follows it, which has the line with .backward().
 */
unsigned sl_process_stack(struct sl_process *process, struct sl_stack_frame *frames, struct sl_stack stack);
/* True: a native frame of the stack is of a function whose name has that part. */
bool sl_process_calls(struct sl_process *process, struct sl_stack stack, const char *function);
/* Only the lines of the program's own Python. */
unsigned sl_process_own(struct sl_process *process, struct sl_stack_frame *frames, struct sl_stack stack);
/* True when the process had begun by then and had not ended, so that it held what its trace says.  A killed process counts for
 * one second after its last sample. */
bool sl_process_lived(const struct sl_process *process, uint64_t unix_ns);
/* True: a launcher numbered it. */
static inline bool sl_process_is_rank(const struct sl_process *process)
{
	return process->trace->header.rank >= 0 && !process->parent;
}

/* "rank 3", "pid 4711 of rank 3", "pid 4711"; SL_FORMAT_BYTES at most. */
const char *sl_process_who(char *out, const struct sl_process *process);
#define SL_WHO(process) sl_process_who((char[SL_FORMAT_BYTES]){0}, process) /* in a buffer that lives until the block ends */
static inline uint64_t sl_process_unix(const struct sl_process *process, uint64_t ns)
{
	return sl_header_unix(&process->trace->header, ns);
}

/* True: it failed without a recorded error, and a pool had had no room for results of its last execution. */
static inline bool sl_report_lacked_room(const struct sl_model *model, const struct sl_trace *trace)
{
	return model->roomless.bytes && trace->exited > 1 && !model->ooms.count;
}
static inline bool sl_process_lacked_room(const struct sl_process *process)
{
	return sl_report_lacked_room(process->model, process->trace);
}

/* What led to an error of the process. */
struct sl_account *sl_process_account(const struct sl_process *process, const struct sl_oom *oom);
/* The first error by the clock that a process, or any of the run, did not survive, else the first of all; NULL: no error. */
const struct sl_oom *sl_process_first_oom(const struct sl_process *process);
const struct sl_oom *sl_report_first_oom(const struct sl_report *report, const struct sl_process **process);

/* How many processes are no snapshots. */
unsigned sl_report_recorded(const struct sl_report *report);
/* True: a process of the run ended so, snapshots apart. */
bool sl_report_has_ended(const struct sl_report *report, enum sl_ended how);
/* The number of ranks by their launcher, the largest of the processes; -1: unknown. */
int64_t sl_report_world(const struct sl_report *report);

/* Sets the parent of each process; before any analysis. */
void sl_report_find_parents(struct sl_report *report);

/* The name of a process in every output; malloc'ed. */
char *sl_report_session(const struct sl_trace *trace);
