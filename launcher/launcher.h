/* SPDX-License-Identifier: MIT */
/* stormlog-run: starts a command with the agent inside.  Its own files, and what they ask of each other. */
#ifndef LAUNCHER_LAUNCHER_H
#define LAUNCHER_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "agent/options.h"
#include "common/base.h"

#define SL_LAUNCH_FAILED     125 /* our own failure, or usage */
#define SL_LAUNCH_NO_EXECUTE 126
#define SL_LAUNCH_NOT_FOUND  127

struct sl_ringfile;

struct sl_launch {
	bool report, gate, push, check;
	const char *watch[32]; /* rules */
	unsigned watch_count;
	struct sl_options options; /* as the command's processes will read them */
	char **command;		   /* argv of the command; [0] NULL: none given */
	char directory[4096];	   /* absolute; placeholders not replaced */
	char run_id[256];	   /* "": the environment names the run */
	char library[4096];	   /* absolute path of the agent; "": not found */
};

/* stderr, "stormlog-run: " before it, a newline after it. */
void sl_launcher_say(const char *format, ...) SL_PRINTF(1, 2);

/* --- launcher/flags.c --- */

/*
 * Flags into the environment and run->options.  -1: go on; else the exit status (usage, --help, --version).  Speaks
 * of unknown and unreadable STORMLOG_* when `aloud`.
 */
int sl_flags_parse(struct sl_launch *run, int argc, char **argv, bool aloud);

/* --- launcher/paths.c --- */

/* Path of our library or program, found beside the launcher in an installation or a build folder. */
bool sl_paths_library(char *path, size_t size);
bool sl_paths_analyzer(char *path, size_t size);

/* Finds a program as execvp does.  0, ENOENT or EACCES. */
int sl_paths_command(const char *name, char *path, size_t size);

/* --- launcher/target.c --- */

/*
 * Why the program in the file cannot be recorded; NULL: it can.  Follows #! lines.  The text is in static storage.
 * interpreter, if not NULL, receives the program that will finally run.
 */
const char *sl_target_hinders(const char *path, char *interpreter, size_t size);

/* --- launcher/starters.c --- */

/* What to type where the command starts programs elsewhere, and which it is; NULL: it is none that is known. */
const char *sl_starters_say(char *const *argv, const char **name);

/* --- launcher/git.c --- */

/* git.commit, git.branch and git.repository into STORMLOG_META, where they are known and not said. */
void sl_git_tell(void);

/* --- launcher/child.c --- */

/* In the process that will be the command: variables, then exec.  Returns the exit status for why it failed. */
int sl_child_exec(const struct sl_launch *run);

/*
 * The command as a child: signals sent to us go to it, it stops and we stop.  Its wait status, or a status that
 * means exit 125..127.
 */
int sl_child_run(const struct sl_launch *run);

/* End as the wait status says: exit, or the same signal. */
_Noreturn void sl_child_end(int status);

/* --- launcher/ended.c --- */

/*
 * How the command ended, into its rings, for the analyzer: a process that ends by the system call itself tells nobody in it, and is
 * else like one that was killed.
 */
void sl_ended_tell(const struct sl_launch *run, pid_t child, int status);

/* --- launcher/witness.c --- */

/* Before the command is started, to its end.  Where there can be no witness it has seen nothing. */
void sl_witness_start(const struct sl_launch *run);
void sl_witness_end(void);

/* The signal that has just reached us was sent to our whole group.  To be asked once for each. */
bool sl_witness_saw(int number);

/* --- launcher/watcher.c --- */

/* A watcher beside the command, told by run->watch.  False: a rule cannot be read, which the analyzer has said. */
bool sl_watcher_start(const struct sl_launch *run);
void sl_watcher_end(void);

/* --- launcher/recorded.c --- */

/* Traces of this run in its folder.  paths: folders that hold them, from malloc, NULL at their end; NULL: not asked. */
unsigned sl_recorded_count(const struct sl_launch *run, char ***paths);

/* The run's folder as a pattern of glob: a placeholder may have become anything. */
void sl_recorded_pattern(const char *directory, char *pattern, size_t size);

/* The header map of a ring file, into header; its bytes, 0: it is no ring, or has none yet. */
size_t sl_recorded_in_ring(int fd, struct sl_ringfile *head, char *header, size_t size);

/* The header map, as msgpack, is of a process of the run. */
bool sl_recorded_names(const void *header, size_t bytes, const char *run_id);

/* --- launcher/check.c --- */

/* Says on stderr what would work; 0, or 125 when nothing could be recorded. */
int sl_check_run(struct sl_launch *run);

/* --- launcher/trial.c --- */

/*
 * Nothing was recorded: try what the agent does first in the run's folder, and leave nothing behind.  0, or the errno that
 * it met; `folder` is what that is about.
 */
int sl_trial_run(const struct sl_launch *run, char *folder, size_t size);

#endif
