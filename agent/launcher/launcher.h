/* SPDX-License-Identifier: MIT */
/* stormlog-run starts a command with the agent inside.  These are its files and what they call in each other. */
#pragma once

#include "agent/process/process.h"
#include "common/arguments.h"
#include "common/base.h"

#define SL_LAUNCH_FAILED     125 /* the launcher itself failed, or was used wrongly */
#define SL_LAUNCH_NO_EXECUTE 126
#define SL_LAUNCH_NOT_FOUND  127
#define SL_UNTIL_MAX	     512

#define SL_LARGEST_NAMES 2

struct sl_ringfile;

struct sl_launch {
	bool report, gate, push, check, json, force, init, no_values, keep_writes;
	bool warned;		   /* that nothing will be recorded */
	const char *shapes;	   /* --weights shapes; NULL: not given */
	struct sl_texts writes;	   /* --allow-writes: folders */
	const char *steps;	   /* --steps: a number; NULL: the job ends by itself */
	const char *until;	   /* --until: what a server prints when it is up; NULL: the command ends by itself */
	const char *dry;	   /* --dry: the card; NULL: record what runs on a real device */
	struct sl_texts largest;   /* --largest: NAME=LOW..HIGH, at most SL_LARGEST_NAMES */
	const char *against;	   /* --against: another environment's Python; NULL: not asked */
	struct sl_texts watch;	   /* --watch: alert rules */
	struct sl_options options; /* as the command's processes will read them from the environment */
	char **command;		   /* argv of the command; [0] NULL: none given */
	char directory[4096];	   /* absolute; placeholders are kept */
	char run_id[256];	   /* "": the environment names the run already */
	char library[4096];	   /* absolute path of the agent, as LD_PRELOAD can hold it; "": not found */
};

/* Prints to stderr, with "stormlog-run: " before the text and a newline after it, and returns the status. */
int sl_launcher_fail(int status, const char *format, ...) SL_PRINTF(2, 3);
#define sl_launcher_say(...) ((void)sl_launcher_fail(0, __VA_ARGS__))

/* --- agent/launcher/title.c --- */

/* Copies our words, which may then be cut.  NULL: there is no memory. */
char **sl_title_take(int argc, char **argv);

/* From now on ps shows our name without its folder and arguments, or if `whole`, an empty line. */
void sl_title_cut(bool whole);

/* --- agent/launcher/flags.c --- */

/*
 * Reads flags into the environment and run->options.  -1: go on; else the exit status (usage, --help, --version).  With
 * `aloud`, warns of unknown and unreadable STORMLOG_* variables.
 */
int sl_flags_parse(struct sl_launch *run, int argc, char **argv, bool aloud);

/* --- agent/launcher/paths.c --- */

/* Path of a library or program of ours, found relative to the launcher in an installation or a build folder. */
bool sl_paths_library(char *path, size_t size);
bool sl_paths_analyzer(char *path, size_t size);

/* Finds a program as execvp does.  Returns 0, ENOENT or EACCES. */
int sl_paths_command(const char *name, char *path, size_t size);

bool sl_paths_dry(char *path, size_t size); /* the folder of the dry run's libraries */

/* --- agent/launcher/dry.c --- */

/* Prints the cards on stdout. Returns the exit status. */
int sl_dry_list(void);
bool sl_dry_is_card(const char *id); /* of the list */

/* Chooses the card. False: this machine or this installation cannot run the command dry, and why was said. */
bool sl_dry_can(const struct sl_launch *run);

/* Before the command: the same, and makes what the run needs. */
bool sl_dry_begin(const struct sl_launch *run);
void sl_dry_hold(void);				/* before the command starts: its Python tells which variables hold its blocks */
void sl_dry_enter(const struct sl_launch *run); /* in the process that becomes the command: sets its variables */
void sl_dry_end(const struct sl_launch *run);	/* after the command: removes what begin made */
/* After the end: the runtime (of CUDA 11, ROCm) that the job asked for and a dry run does not have; "": none. */
const char *sl_dry_missing(void);
/* Marks the folders of the traces until the run has an answer: runs that are there are earlier ones. */
void sl_dry_answered(const struct sl_launch *run, bool yes);

/* --- agent/launcher/protect.c --- */

const char *sl_protect_temporary(void); /* the user's folder for temporary files */

/* False: the kernel cannot refuse the job's writes, and the user has not allowed them all. */
bool sl_protect_can(const struct sl_launch *run);

/*
 * In the process that becomes the command: caches go to `scratch`, writes elsewhere are refused. False: that failed, and it said
 * why. `folder` is of this run, in memory.
 */
bool sl_protect_enter(const struct sl_launch *run, const char *scratch, const char *folder);

/* --- agent/launcher/overlay.c --- */

enum { SL_LAYERS = 3 };

/*
 * In the process that becomes the command: lays a layer over its folder, its home and the folder for temporary files. Layers are
 * in scratch where that is possible, else in memory. Returns how many folders have one, whose paths `places` receives; -1: it said
 * which folder the job could harm.
 */
int sl_overlay_enter(const struct sl_launch *run, const char *traces, const char *scratch, const char *memory,
		     char places[SL_LAYERS][4096]);

#define SL_LAYER_TEMPORARY "tmp" /* among the layers: the job's own folder for temporary files */

struct sl_writes {
	unsigned count; /* files that the job wrote or removed */
	char one[8400]; /* path of one of them, as the job had it; of one that was there before, if there is one */
	bool was_there;
};

/*
 * After the command: adds what is in the layers. A memory snapshot of PyTorch is no computed value, and goes to where the job
 * wrote it.
 */
void sl_overlay_count(const char *layers, struct sl_writes *writes);

/* --- agent/launcher/link.c --- */

/* Replaces a path that LD_PRELOAD cannot hold by a link's.  Returns NULL, or why there can be no link (static text). */
const char *sl_link_library(char *library, size_t size);

/* --- agent/launcher/target.c --- */

/*
 * Says why the program in the file cannot be recorded (static text); NULL: it can.  Follows #! lines.  interpreter, if not
 * NULL, receives the program that will finally run.
 */
const char *sl_target_hinders(const char *path, char *interpreter, size_t size);

/* --- agent/launcher/child.c --- */

/*
 * Blocks the signals that failed output brings (SIGPIPE, SIGXFSZ), so that we outlive it.  To be called first; every process that
 * becomes another program restores them.
 */
void sl_child_signals_block(void);
void sl_child_signals_restore(void);

/* Adds a part to a variable whose parts have a colon between them: before the others, or behind them. */
void sl_child_join(const char *name, const char *part, bool first);

/* Runs in the process that becomes the command: sets variables, then execs.  Returns the exit status that says why exec failed. */
int sl_child_exec(const struct sl_launch *run);

/*
 * Runs the command as a child and forwards signals sent to us.  Returns its wait status, or one that means exit 125..127.  Where no
 * process can be started beside it, it becomes the command.
 */
int sl_child_run(const struct sl_launch *run);

/* Ends this process as the wait status says: the same exit status or the same signal. */
_Noreturn void sl_child_end(int status);

/* --- agent/launcher/until.c --- */

/* What a known server prints when it is up; NULL: the command is none. */
const char *sl_until_known(char *const *command);
bool sl_until_begin(const struct sl_launch *run);	       /* before the fork; false: it said why not */
void sl_until_enter(const struct sl_launch *run);	       /* in the process that becomes the command */
void sl_until_watch(const struct sl_launch *run, pid_t child); /* in the launcher */
void sl_until_ended(pid_t pid, int status);		       /* a child of the launcher has ended */
bool sl_until_wait(const struct sl_launch *run);	       /* after the command; true: it was ended since the text was there */
bool sl_until_missed(const struct sl_launch *run);	       /* it ended, and the text was never there */

/* --- agent/launcher/close_fds.c --- */

/*
 * For a process that lives beside the command: closes the descriptors that we were started with, and makes /dev/null of standard
 * input and output.  Kept are standard error, folders, opened anew without their locks, the file that STORMLOG_TOKEN_FILE names,
 * and files on which this process holds record locks (fcntl), which closing would end.
 */
void sl_close_inherited(void);

/* --- agent/launcher/watcher.c --- */

/* Starts a watcher beside the command, with run->watch as its rules.  False: a rule cannot be read; the analyzer has said so. */
bool sl_watcher_start(const struct sl_launch *run);
void sl_watcher_end(void);
void sl_watcher_ended(pid_t pid);

/* --- agent/launcher/recorded.c --- */

/* Counts this run's traces in its folder.  paths, if not NULL: receives the folders that hold them, from malloc, ended by NULL. */
unsigned sl_recorded_count(const struct sl_launch *run, char ***paths);
/* Events that rings of this run's unfinished traces count as lost. */
uint64_t sl_recorded_lost(const struct sl_launch *run);

/* The run's folder as a glob pattern, in which each placeholder matches anything. */
void sl_recorded_pattern(const char *directory, char *pattern, size_t size);

/*
 * The launcher writes the command's exit status into its rings, since a process that exits by a bare system call cannot do so and
 * would look killed.  child 0: into the rings of every living process of the run.
 */
void sl_recorded_end(const struct sl_launch *run, pid_t child, int status);

/* --- agent/launcher/check.c --- */

/* Prints on stderr what would work.  Returns 0, or 125 when nothing could be recorded. */
int sl_check_run(struct sl_launch *run);

/* --- agent/launcher/folder.c --- */

/* The run's folder, or the one that holds the first name with a placeholder. */
void sl_folder_stem(const struct sl_launch *run, char *folder, size_t size);

/*
 * Makes the run's folder, up to its first placeholder, and tries a file of a ring's size there.  `folder` receives its path, and on
 * failure that of the folder which could not be made.  Returns 0 or an errno.
 */
int sl_folder_prepare(const struct sl_launch *run, char *folder, size_t size);

/* Removes the folders that sl_folder_prepare made, if they are still empty.  Cuts `folder`. */
void sl_folder_leave(char *folder);
