/* SPDX-License-Identifier: MIT */
/* The parts of stormlog-attach: what each offers to the others. */
#pragma once

#include <elf.h>
#include <stdlib.h>

#include "agent/call/call.h"
#include "tools/attach/seen.h"

/* What a process already holds when it is attached to.  Those allocations were not seen; NVML knows their sum. */

/* Writes the trace of an attached process from outside: the same kind of file as the agent writes. */

struct sl_recording;

/*
 * A new trace of the process in `folder` (made if missing, with its parents), with header and modules.  NULL: *why says what
 * failed.
 */
struct sl_recording *sl_recording_open(const char *folder, long pid, const char **why);
const char *sl_recording_path(const struct sl_recording *output);

/* Defines its modules again if they have changed: libraries come and go, an exec replaces all. */
void sl_recording_modules(struct sl_recording *output);

/* Id of a Python frame, which is defined when it is new.  0: no room. */
uint32_t sl_recording_frame(struct sl_recording *output, const struct sl_python_text *text);

/* Id of the stack of these frames (with SL_PYTHON_ENTERED), innermost first.  0: no room. */
uint32_t sl_recording_python(struct sl_recording *output, const uint32_t *frames, unsigned count, bool truncated);

/* Id of the native stack of these return addresses, innermost first.  0: no room.  *is_new: it was defined now. */
uint32_t sl_recording_native(struct sl_recording *output, const uint64_t *pcs, unsigned count, bool truncated, bool *is_new);

/* Code of Python's evaluation loop. */
void sl_recording_loop(struct sl_recording *output, uint64_t begin, uint64_t end);

/* Adds an event of the thread; events come in order. */
void sl_recording_event(struct sl_recording *output, long tid, const struct sl_event *event);

/* Ends and adds one definition. */
void sl_recording_define(struct sl_recording *output, struct sl_definition *map);
void sl_recording_note(struct sl_recording *output, const char *text);
void sl_recording_lost(struct sl_recording *output, uint64_t count, uint64_t begin_ns, uint64_t end_ns);

/* Writes what waits to the file.  False: it could not be written. */
bool sl_recording_flush(struct sl_recording *output);

/* Writes the footer; `how` says how the process ended. */
bool sl_recording_close(struct sl_recording *output, const char *how);

/*
 * Turns the calls that were seen into events.  Inner calls return first, so they wait for the outermost one and then merge into
 * it by the same rule as in the agent (agent/call/classes.def).
 */

struct sl_calls;

/* runtime: major version of the process's CUDA or HIP runtime, 0 unknown. */
struct sl_calls *sl_calls_new(struct sl_recording *output, unsigned runtime);

void sl_calls_add(struct sl_calls *calls, const struct sl_seen *seen);

/* The stacks of the thread's next call, which has this number; 0: not known. */
void sl_calls_python(struct sl_calls *calls, uint32_t tid, uint64_t number, uint32_t python);
void sl_calls_native(struct sl_calls *calls, uint32_t tid, uint64_t number, uint32_t native);

/* Inner calls whose outer call never returned become events of their own.  Frees it. */
void sl_calls_end(struct sl_calls *calls);

/* The file of a library or program: the symbols that it exports, and the offsets of its addresses. */

struct sl_exports {
	const uint8_t *bytes;
	size_t size;
};

/*
 * False: errno says why; ENOEXEC: it is no regular file, or empty.  What is no ELF file of 64 bits has no symbols.  The file is
 * another user's: a part that is cut off while it is open reads as zeros (by a handler of SIGBUS for the whole program).
 */
bool sl_exports_open(struct sl_exports *file, const char *path);
void sl_exports_close(struct sl_exports *file);

/*
 * Calls each(data, ...) for what the file defines and exports: the first million symbols of its only table, whose names are
 * shorter than 256 bytes.
 */
void sl_exports_each(const struct sl_exports *file, void (*each)(void *data, const char *name, const Elf64_Sym *symbol),
		     void *data);

/* Offset in the file of an address in it; 0: there is none. */
uint64_t sl_exports_offset(const struct sl_exports *file, uint64_t address);

/* Address of the code at this offset in the file; 0: no code is there. */
uint64_t sl_exports_address(const struct sl_exports *file, uint64_t offset);

/* The address at which the file's first byte is mapped, if it is loaded where it asks to be. */
uint64_t sl_exports_base(const struct sl_exports *file);

/*
 * The header of a watched process's trace, made from its /proc and environment: the same that the agent in it would have
 * written.
 */

/* Reads a file of /proc/PID as far as it fits into the buffer; returns its length. */
size_t sl_recording_read_of(long pid, const char *name, char *buffer, size_t size);

/* The kernel's part of an attachment: the BPF programs, loaded by libbpf, which is opened only when needed. */

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

/*
 * Python stacks of a process that is watched.  The BPF program (python.bpf.c) copies addresses of code objects and instructions
 * while the thread stands still.  Here they get their names, a little later, from the process's memory.
 *
 * The names are exact, because deaths of code objects are counted by slot.  A name counts only if no code object of its slot died
 * between the call and the end of the reading, or if all that died are known to be others.  When one dies whose slot was seen on a
 * stack, the BPF program copies the memory of its name; without room for that it has no name.
 */

struct sl_lines;

/*
 * Looks for the interpreter and has its stacks taken.  NULL: there is none so far (*why NULL), or *why (static text)
 * it cannot be.
 */
struct sl_lines *sl_lines_new(long pid, struct sl_probes *probes, const char **why);

/* Id of the stack in the recording, always the same one; 0: it is not known. */
uint32_t sl_lines_stack(struct sl_lines *lines, struct sl_recording *output, const struct sl_seen_lines *seen);

/* A code object has died (SL_SEEN_DEATH). */
void sl_lines_died(struct sl_lines *lines, const struct sl_seen_death *death);

void sl_lines_free(struct sl_lines *lines);

/* What a process has mapped. */

struct sl_mapping {
	long tid; /* of a thread that has not ended */
	uint64_t begin, end, offset;
	bool is_code;
	const char *name; /* of a file, as the process sees it; NULL: it is no file */
};

/*
 * Where the file can be opened from here, whatever is at its name now: it may have been removed or replaced, or the process may
 * have another root.  A mapping without a file cannot be opened.
 */
#define SL_MAPPINGS_PATH 96
void sl_mappings_path(const struct sl_mapping *mapping, char *path);

/* Calls each(data, mapping), in the order of addresses, until it says true. */
void sl_mappings_each(long pid, bool (*each)(void *data, const struct sl_mapping *mapping), void *data);

/* Room for one more item of a malloc'ed array, which doubles: items = sl_attach_room(items, count, &capacity, sizeof(*items)). */

/* What an allocation returned; without memory the program ends. */
static inline void *sl_attach_must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static inline void *sl_attach_room(void *items, size_t count, size_t *capacity, size_t bytes)
{
	if (count < *capacity)
		return items;
	*capacity = *capacity ? 2 * *capacity : 2;
	return sl_attach_must(realloc(items, *capacity * bytes));
}

/* The rows of agent/hooks/ as the collector uses them: what a recorded call means, found without calling anything. */

/* True: this call is watched.  Look-ups, queries and calls that matter only when they run out of memory are not. */
bool sl_rows_has(unsigned api);

/* Which data behind its arguments the BPF program is to copy for this call. */
struct sl_seen_row sl_rows_wanted(unsigned api);

/* The fields of a call.  runtime: major version of the library it was made to, 0 unknown. */
struct sl_fields sl_rows_read(const struct sl_seen *seen, unsigned runtime);

/*
 * Recordings that obey a request in their ring's header.  They are woken and put to sleep without a signal and without any
 * right but to write the ring, a file that belongs to the recording's user.
 */

/* ENDED: the process has ended, or its ring was removed, cut or replaced. */
enum sl_answer { SL_ANSWER_NONE, SL_ANSWER_DONE, SL_ANSWER_ENDED };

/* Finds processes by the group they belong to. */

enum sl_group { SL_GROUP_NONE, SL_GROUP_ALL, SL_GROUP_CGROUP, SL_GROUP_CONTAINER };

/*
 * The paths of the process's cgroups, which differ where there are several hierarchies, with a space between: pods,
 * containers, jobs and steps of Slurm have their ids in them.  "/": none but the root.  False: it has ended.
 */
bool sl_targets_cgroups(long pid, char *paths, size_t size);

/*
 * Native stacks of a process that is watched.  The BPF program (native.bpf.c) copies a piece of the stack.  Here it is unwound by
 * the tables of the process's libraries (.eh_frame), read by libdw, which is opened only when needed.
 *
 * Exact or cut: a frame that no table describes, or that lies beyond the copied piece, ends the stack, which then says that it is
 * truncated.  Changes of the process's libraries are counted: a stack is unwound only by the libraries of its own moment.
 */

struct sl_unwind;

/* Has the process's stacks copied.  NULL: *why (static text) says why not. */
struct sl_unwind *sl_unwind_new(long pid, struct sl_probes *probes, const char **why);

/* Id of the stack in the recording; 0: not known. */
uint32_t sl_unwind_stack(struct sl_unwind *unwind, struct sl_recording *output, const struct sl_seen_native *seen);

void sl_unwind_free(struct sl_unwind *unwind);

/* Attaches to processes without a recording, until an interrupt, a time limit, or the end of all of them. */

struct sl_attach_watch;

struct sl_attach_watch *sl_watch_new(const char *folder);

/* NULL: the kernel lets us watch; else why not (static text). */
const char *sl_watch_open(struct sl_attach_watch *watch);

/* A trace could not be written. */
bool sl_watch_failed(const struct sl_attach_watch *watch);

/* True: the process has loaded a GPU vendor's library that can be watched. */
bool sl_watch_uses_gpu(long pid);

/* NULL: the process is watched from now on; else why not (static text). */
const char *sl_watch_add(struct sl_attach_watch *watch, long pid);

size_t sl_watch_count(const struct sl_attach_watch *watch);

bool sl_watch_has(const struct sl_attach_watch *watch, long pid);

/*
 * Runs until an interrupt, or for `seconds` where that is not 0.  search is called every second to add new processes.  Where it
 * is NULL, the end of all processes ends the watch too.  False: a trace could not be written.
 */
bool sl_watch_run(struct sl_attach_watch *watch, double seconds, void (*search)(void *data), void *data);

void sl_watch_free(struct sl_attach_watch *watch);
