/* SPDX-License-Identifier: MIT */
/* The kernel's part of an attachment: the BPF programs, loaded by libbpf, which is opened only when needed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/seen.h"

struct sl_probes;

/* Why the kernel refuses, by an error number (static text): which right is missing. */
const char *sl_probes_refusal(int err);

/* NULL: *why (static text) names the library or the right that is missing. */
struct sl_probes *sl_probes_open(const char **why);

/*
 * Watches every known call that the library exports, in one process.  A call that is watched twice is seen once.  path: how the
 * library can be opened from here; it is identified by its inode.  Returns how many calls are watched; -1 with *why when the
 * kernel refuses.
 */
int sl_probes_add(struct sl_probes *probes, const char *path, int pid, const char **why);

/*
 * Begins to take the Python stacks of the process's calls. path, dealloc: where PyCode_Type.tp_dealloc is: its file, as it can be
 * opened from here, and its offset in that.  NULL, or why not.
 */
const char *sl_probes_walk(struct sl_probes *probes, int pid, struct sl_seen_python python, const char *path, uint64_t dealloc);
void sl_probes_walk_no_more(struct sl_probes *probes, int pid);

/*
 * Native stacks of the process's calls will be copied, and changes of its libraries counted.  path, offset: where its dynamic
 * loader's function for debuggers is.  NULL, or why not.
 */
const char *sl_probes_copy(struct sl_probes *probes, int pid, const char *path, uint64_t offset);

/* How often the dynamic loader has called that function so far. */
uint64_t sl_probes_loads(struct sl_probes *probes, int pid);

/* Starts to see the process's calls, after all its libraries are watched, so that it begins everywhere at once. */
bool sl_probes_begin(struct sl_probes *probes, int pid);

/* How many code objects of this one's slot have died so far. */
uint64_t sl_probes_deaths(struct sl_probes *probes, long pid, uint64_t code);

/* Reads the deaths of code objects out of turn, by the function that reads everything (sl_probes_read). */
void sl_probes_read_deaths(struct sl_probes *probes);

/* Called with a record that begins with its kind (enum sl_seen_kind). */
typedef void sl_probes_each(void *data, const void *record, size_t bytes);

/* What was seen since the last reading; returns how many records.  lost: how many of each (SL_SEEN_LOST_COUNT) so far. */
unsigned sl_probes_read(struct sl_probes *probes, sl_probes_each *each, void *data, uint64_t *lost);

/* Stops: calls that begin afterwards are not seen. */
void sl_probes_end(struct sl_probes *probes, int pid);

/* Counts the groups of probes; removes those of the process that are among the first `count`. */
size_t sl_probes_count(const struct sl_probes *probes);
void sl_probes_drop(struct sl_probes *probes, int pid, size_t count);

/* The process has ended: what is kept for it goes. */
void sl_probes_forget(struct sl_probes *probes, int pid);

/* Detaches: no call is watched afterwards.  Calls already seen can still be read. */
void sl_probes_detach(struct sl_probes *probes);
void sl_probes_close(struct sl_probes *probes);
