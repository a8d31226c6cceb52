/* SPDX-License-Identifier: MIT */
/* Longer than other files: the functions that begin, follow and end the watch of a process share its private state. */
#include "tools/attach/attach.h"

#include <sys/stat.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>

#include "analyzer/base/escape.h"
#include "common/fnv.h"
#include "common/now.h"

static bool lives(long tid)
{
	char state = sl_procfile_state((uint64_t)tid);

	return state && state != 'Z' && state != 'X';
}

/*
 * A thread of the process that has not ended; 0: all have.  Where only the main thread has ended, /proc/PID shows no memory, files
 * and root, but /proc/TID does.
 */
static long mappings_thread(long pid)
{
	long found = lives(pid) ? pid : 0;
	struct dirent *entry;
	char path[64];
	DIR *threads;

	snprintf(path, sizeof(path), "/proc/%ld/task", pid);
	threads = found ? NULL : opendir(path);
	while (threads && !found && (entry = readdir(threads))) {
		long tid = atol(entry->d_name);

		found = tid > 0 && lives(tid) ? tid : 0;
	}
	if (threads)
		closedir(threads);
	return found;
}

void sl_mappings_path(const struct sl_mapping *mapping, char *path)
{
	snprintf(path, SL_MAPPINGS_PATH, "/proc/%ld/map_files/%llx-%llx", mapping->tid, (unsigned long long)mapping->begin,
		 (unsigned long long)mapping->end);
}

void sl_mappings_each(long pid, bool (*each)(void *data, const struct sl_mapping *mapping), void *data)
{
	char path[64], line[8192];
	bool over = false;
	FILE *file;

	pid = mappings_thread(pid);
	snprintf(path, sizeof(path), "/proc/%ld/maps", pid);
	file = fopen(path, "re");
	while (file && !over && fgets(line, sizeof(line), file)) {
		struct sl_mapping mapping = {.tid = pid, .name = strchr(line, '/')};
		unsigned long long begin, end, offset;
		char rights[8];

		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%llx-%llx %7s %llx", &begin, &end, rights, &offset) != 4)
			continue;
		mapping.begin = begin;
		mapping.end = end;
		mapping.offset = offset;
		mapping.is_code = rights[2] == 'x';
		over = each(data, &mapping);
	}
	if (file)
		fclose(file);
}

/*
 * May this be a GPU vendor's library?  Copies have names of their own (libcudart-d0da41ae.so.11.0 in wheels), so its exports
 * decide.  *runtime: the major version in a runtime's name.
 */
static bool mappings_is_vendors(const struct sl_mapping *mapping, unsigned *runtime)
{
	const char *name = mapping->is_code && mapping->name ? strrchr(mapping->name, '/') + 1 : "", *at, *version;

	if (!strstr(name, ".so") || (!strstr(name, "cuda") && !strstr(name, "amdhip64")))
		return false;
	if ((at = strstr(name, "cudart")))
		at += strlen("cudart");
	else if ((at = strstr(name, "amdhip64")))
		at += strlen("amdhip64");
	if (at && (version = strstr(at, ".so.")))
		*runtime = (unsigned)atoi(version + strlen(".so."));
	else if (at && atoi(at) > 0)
		*runtime = (unsigned)atoi(at);
	return true;
}

struct device;
struct process { /* The layout of _v2 and _v3.  Drivers before 11 have only the plain call, which is not asked. */
	unsigned pid;
	unsigned long long bytes;
	unsigned gpu_instance, compute_instance;
};

#define PROCESSES     1024
#define NOT_AVAILABLE UINT64_MAX

static int (*init)(void), (*count_of)(unsigned *), (*by_index)(unsigned, struct device **),
	(*running)(struct device *, unsigned *, struct process *);

static bool open_nvml(void)
{
	static bool tried;
	void *library = tried ? NULL : dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);

	tried = true;
	if (!library)
		return running != NULL;
	init = (__typeof__(init))dlsym(library, "nvmlInit_v2");
	count_of = (__typeof__(count_of))dlsym(library, "nvmlDeviceGetCount_v2");
	by_index = (__typeof__(by_index))dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
	running = (__typeof__(running))dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
	if (!running)
		running = (__typeof__(running))dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v2");
	if (!init || !count_of || !by_index || init())
		running = NULL;
	return running != NULL;
}

/* Bytes that the process holds on all devices, contexts included.  False: no NVML here, or it does not list the process. */
static bool before_bytes(long pid, uint64_t *bytes)
{
	static struct process list[PROCESSES];
	unsigned devices = 0;
	bool is_listed = false;

	*bytes = 0;
	if (!open_nvml() || count_of(&devices))
		return false;
	for (unsigned d = 0; d < devices; d++) {
		unsigned count = PROCESSES;
		struct device *device;

		if (by_index(d, &device) || running(device, &count, list) || count > PROCESSES)
			continue;
		for (unsigned i = 0; i < count; i++)
			if (list[i].pid == (unsigned long)pid && list[i].bytes != NOT_AVAILABLE) {
				*bytes += list[i].bytes;
				is_listed = true;
			}
	}
	return is_listed;
}

#define LOOK_MS	 20  /* the kernel's buffer holds 16 MiB: more than 20 000 calls, or 500 native stacks in its half */
#define BUSY	 200 /* records in one look: the next one comes after 1 ms */
#define FLUSH_NS SL_NS_PER_S

#define FILES 8 /* that are open at once while a process is looked at */

struct library {
	dev_t device;
	ino_t inode;
};

struct watched {
	long pid;
	uint64_t start; /* start of the process, since a later one may have its pid */
	struct sl_recording *output;
	struct sl_calls *calls;
	struct sl_lines *lines; /* NULL: no Python so far, or its stacks cannot be taken */
	const char *no_lines;	/* why not */
	bool said_no_lines;
	struct sl_unwind *unwind; /* NULL: native stacks cannot be taken */
	const char *no_unwind;
	bool said_no_unwind;
	char groups[512]; /* the cgroups that it was in last */
	uint64_t cgroup;  /* and the number of one, as its calls had it */
	unsigned long long seen;
	bool gone;
	uint64_t program, loads; /* what it ran, and how often it had loaded libraries, when these were looked for last */
	bool said_no_main;
	struct library *examined; /* libraries that were examined already */
	size_t examined_count, examined_capacity;
};

struct sl_attach_watch {
	const char *folder;
	struct sl_probes *probes;
	struct watched *item;
	size_t count, capacity;
	uint64_t lost, unwalked; /* calls; native stacks */
	uint64_t lost_since_ns;
	bool short_of_files;
	bool failed; /* a trace could not be written, or a process not be looked at */
};

struct sl_attach_watch *sl_watch_new(const char *folder)
{
	struct sl_attach_watch *watch = sl_attach_must(calloc(1, sizeof(*watch)));

	watch->folder = folder;
	return watch;
}

bool sl_watch_failed(const struct sl_attach_watch *watch)
{
	return watch->failed;
}

size_t sl_watch_count(const struct sl_attach_watch *watch)
{
	return watch->count;
}

static struct watched *watched_of(const struct sl_attach_watch *watch, long pid)
{
	for (size_t i = 0; i < watch->count; i++)
		if (watch->item[i].pid == pid)
			return &watch->item[i];
	return NULL;
}

bool sl_watch_has(const struct sl_attach_watch *watch, long pid)
{
	return watched_of(watch, pid);
}

/* Changes with an exec: the words that the kernel gives the program, with random addresses among them. */
static uint64_t program_of(long pid)
{
	char words[1024];

	return sl_fnv_bytes(SL_FNV_START, words, sl_recording_read_of(pid, "auxv", words, sizeof(words)));
}

static bool is_vendors(void *data, const struct sl_mapping *mapping)
{
	unsigned runtime;
	bool *found = data;

	return *found = mappings_is_vendors(mapping, &runtime);
}

bool sl_watch_uses_gpu(long pid)
{
	bool found = false;

	sl_mappings_each(pid, is_vendors, &found);
	return found;
}

/* text: NULL for a number; ns: since when. */
static void say_capability(struct sl_recording *output, const char *name, const char *text, uint64_t number, uint64_t ns)
{
	uint8_t bytes[1024];
	struct sl_definition map = sl_definition_begin(bytes, sizeof(bytes), "capability");

	sl_definition_text(&map, "name", name);
	if (text)
		sl_definition_text(&map, "value", text);
	else
		sl_definition_uint(&map, "value", number);
	sl_definition_uint(&map, "ns", ns);
	sl_recording_define(output, &map);
}

/* Writes the cgroups again when the process has moved: they hold for the events after it. */
static void say_groups(struct watched *one, uint64_t ns)
{
	char groups[sizeof(one->groups)], text[sizeof(groups) + 32];

	if (!sl_targets_cgroups(mappings_thread(one->pid), groups, sizeof(groups)) || !strcmp(groups, one->groups))
		return;
	snprintf(text, sizeof(text), "it has moved to cgroups %s", groups);
	if (*one->groups)
		sl_recording_note(one->output, text);
	memcpy(one->groups, groups, sizeof(groups));
	say_capability(one->output, "cgroups", groups, 0, ns);
}

static void say_beginning(struct watched *one)
{
	uint64_t before, now = sl_now_ns(CLOCK_MONOTONIC);

	say_capability(one->output, "recorded", "attached by BPF while it ran", 0, now);
	say_groups(one, now);
	if (before_bytes(one->pid, &before))
		say_capability(one->output, "before_attach_bytes", NULL, before, now);
	sl_recording_note(one->output,
			  "attached while it ran: earlier allocations are not known, and their frees count as unknown; no labels, "
			  "no blocks of PyTorch's allocator; a call's device is known if its arguments name it");
}

/* Python may begin later than the attachment. */
static void find_lines(struct sl_attach_watch *watch, struct watched *one)
{
	if (!one->lines && !one->no_lines)
		one->lines = sl_lines_new(one->pid, watch->probes, &one->no_lines);
}

/* A look at the libraries of a process: the new ones. */
struct look {
	struct sl_attach_watch *watch;
	struct watched *one;
	unsigned runtime, libraries;
	int calls;
	const char *why; /* one could not be watched; NULL: none */
};

static bool is_known(struct watched *one, struct library library)
{
	for (size_t i = 0; i < one->examined_count; i++)
		if (one->examined[i].device == library.device && one->examined[i].inode == library.inode)
			return true;
	one->examined = sl_attach_room(one->examined, one->examined_count, &one->examined_capacity, sizeof(*one->examined));
	one->examined[one->examined_count++] = library;
	return false;
}

const char *sl_watch_open(struct sl_attach_watch *watch)
{
	const char *why = NULL;

	if (!watch->probes)
		watch->probes = sl_probes_open(&why);
	return why;
}

static bool add_library(void *data, const struct sl_mapping *mapping)
{
	struct look *look = data;
	struct sl_attach_watch *watch = look->watch;
	struct watched *one = look->one;
	char path[SL_MAPPINGS_PATH];
	const char *why;
	struct stat st;
	int calls;

	if (!mappings_is_vendors(mapping, &look->runtime))
		return false;
	sl_mappings_path(mapping, path);
	if (stat(path, &st)) {
		look->why = errno == EPERM ? sl_probes_refusal(errno) : look->why;
		return false;
	}
	if (is_known(one, (struct library){st.st_dev, st.st_ino}))
		return false;
	why = sl_watch_open(watch);
	calls = why ? -1 : sl_probes_add(watch->probes, path, (int)one->pid, &why);
	look->calls += calls > 0 ? calls : 0;
	look->libraries += calls > 0;
	look->why = calls < 0 ? why : look->why;
	return !watch->probes;
}

/* Watches libraries loaded since the last look.  Looks again while any are new: loads count only from sl_unwind_new on. */
static struct look add_libraries(struct sl_attach_watch *watch, struct watched *one)
{
	struct look look = {.watch = watch, .one = one};
	size_t before;

	do {
		before = one->examined_count;
		one->loads = watch->probes ? sl_probes_loads(watch->probes, (int)one->pid) : 0;
		sl_mappings_each(one->pid, add_library, &look);
		if (!one->examined_count || !watch->probes)
			return look;
		find_lines(watch, one);
		if (!one->unwind && !one->no_unwind)
			one->unwind = sl_unwind_new(one->pid, watch->probes, &one->no_unwind);
	} while (one->examined_count > before);
	return look;
}

static void say_no_stacks(const struct watched *one, const char *which, const char *why, bool *reported)
{
	char text[256];

	if (!why || *reported)
		return;
	*reported = true;
	snprintf(text, sizeof(text), "no %s stacks: %s", which, why);
	sl_recording_note(one->output, text);
	sl_escape_print(stderr, "stormlog-attach: %ld: %s\n", one->pid, text);
}

static void say_missing(struct watched *one)
{
	say_no_stacks(one, "Python", one->no_lines, &one->said_no_lines);
	say_no_stacks(one, "native", one->no_unwind, &one->said_no_unwind);
}

static void say_unwatched(struct watched *one, const struct look *look)
{
	char text[256];

	snprintf(text, sizeof(text), "a library is not watched: %s", look->why ? look->why : "");
	if (look->why)
		sl_recording_note(one->output, text);
}

static void free_parts(struct watched *one)
{
	sl_lines_free(one->lines);
	sl_unwind_free(one->unwind);
	free(one->examined);
}

const char *sl_watch_add(struct sl_attach_watch *watch, long pid)
{
	struct look look = {.calls = 0};
	const char *why = NULL;
	struct watched *one;

	watch->item = sl_attach_room(watch->item, watch->count, &watch->capacity, sizeof(*watch->item));
	one = &watch->item[watch->count];
	*one = (struct watched){.pid = pid, .start = sl_procfile_start((uint64_t)pid), .program = program_of(pid)};
	if (!mappings_thread(pid))
		why = "it has ended";
	else if (mappings_thread(pid) != pid)
		why = "its main thread has ended, and with that the kernel no longer places probes in it";
	else
		look = add_libraries(watch, one);
	if (!why && !look.calls)
		why = look.why ? look.why
			       : "it has not loaded libcuda, libcudart or libamdhip64, or its memory map may not be read";
	if (!why && !(one->output = sl_recording_open(watch->folder, pid, &why))) {
		sl_escape_print(stderr, "stormlog-attach: %s: %s\n", watch->folder, why);
		why = "no trace of it can be written";
		watch->failed = true;
	}
	if (!one->output) {
		if (watch->probes)
			sl_probes_forget(watch->probes, (int)pid);
		free_parts(one);
		return why;
	}
	one->calls = sl_calls_new(one->output, look.runtime);
	watch->count++;
	say_beginning(one);
	say_missing(one);
	say_unwatched(one, &look);
	if (!sl_probes_begin(watch->probes, (int)pid))
		return "the kernel has no room for another process";
	sl_escape_print(stderr, "stormlog-attach: %ld: %d calls of %u libraries are watched (%s)\n", pid, look.calls,
			look.libraries, sl_recording_path(one->output));
	return NULL;
}

static void take_call(struct sl_attach_watch *watch, const struct sl_seen *seen, size_t bytes)
{
	struct watched *one;

	if (bytes < SL_SEEN_BYTES(SL_SEEN_FEW) || (seen->copies > SL_SEEN_FEW && bytes < sizeof(*seen)))
		return;
	one = watched_of(watch, seen->pid);
	if (!one)
		return;
	if (seen->cgroup != one->cgroup)
		say_groups(one, seen->begin_ns);
	one->cgroup = seen->cgroup;
	one->seen++;
	sl_calls_add(one->calls, seen);
}

static void take(void *data, const void *record, size_t bytes)
{
	const struct sl_seen_lines *lines = record;
	const struct sl_seen_native *native = record;
	const struct sl_seen_death *death = record;
	struct watched *one;

	if (lines->kind == SL_SEEN_CALL)
		take_call(data, record, bytes);
	else if (lines->kind == SL_SEEN_PYTHON && bytes >= sizeof(*lines) && (one = watched_of(data, lines->pid)) && one->lines)
		sl_calls_python(one->calls, lines->tid, lines->number, sl_lines_stack(one->lines, one->output, lines));
	else if (lines->kind == SL_SEEN_NATIVE && bytes >= sizeof(*native) && (one = watched_of(data, native->pid)) && one->unwind)
		sl_calls_native(one->calls, native->tid, native->number, sl_unwind_stack(one->unwind, one->output, native));
	else if (lines->kind == SL_SEEN_DEATH && bytes >= sizeof(*death) && (one = watched_of(data, death->pid)) && one->lines)
		sl_lines_died(one->lines, death);
}

/* Every trace says how many calls were lost, because it is not known whose they were.  True: much was seen. */
static bool look(struct sl_attach_watch *watch)
{
	uint64_t count[SL_SEEN_LOST_COUNT], lost, now = sl_now_ns(CLOCK_MONOTONIC);
	unsigned records = sl_probes_read(watch->probes, take, watch, count);

	lost = count[SL_SEEN_LOST_FULL] + count[SL_SEEN_LOST_DEPTH];
	watch->unwalked = count[SL_SEEN_LOST_STACK];
	for (size_t i = 0; i < watch->count && lost != watch->lost; i++)
		sl_recording_lost(watch->item[i].output, lost - watch->lost, watch->lost_since_ns, now);
	watch->lost = lost;
	watch->lost_since_ns = now;
	return records > BUSY;
}

static void find_gone(struct sl_attach_watch *watch)
{
	for (size_t i = 0; i < watch->count; i++) {
		struct watched *one = &watch->item[i];

		one->gone = !mappings_thread(one->pid) || sl_procfile_start((uint64_t)one->pid) != one->start;
	}
}

static void close_one(struct sl_attach_watch *watch, struct watched *one)
{
	char path[4096], text[128];

	snprintf(path, sizeof(path), "%s", sl_recording_path(one->output));
	sl_calls_end(one->calls);
	snprintf(text, sizeof(text), "%llu native stacks were left out, because this program did not keep pace",
		 (unsigned long long)watch->unwalked);
	if (watch->unwalked)
		sl_recording_note(one->output, text);
	/* what this program took for all processes that it watches */
	say_capability(one->output, "watcher_cpu_ns", NULL, sl_now_ns(CLOCK_PROCESS_CPUTIME_ID), sl_now_ns(CLOCK_MONOTONIC));
	free_parts(one);
	watch->failed = !sl_recording_close(one->output, one->gone ? "gone" : "detached") || watch->failed;
	sl_escape_print(stderr, "stormlog-attach: %ld: %s after %llu calls (%s)\n", one->pid,
			one->gone ? "it has ended" : "detached", one->seen, path);
}

/* Closes the traces of processes that have ended, whose calls have all been read by then. */
static void close_gone(struct sl_attach_watch *watch)
{
	size_t kept_count = 0;

	find_gone(watch);
	if (watch->probes)
		look(watch);
	for (size_t i = 0; i < watch->count; i++) {
		struct watched *one = &watch->item[i];

		if (one->gone) {
			sl_probes_forget(watch->probes, (int)one->pid);
			close_one(watch, one);
		} else {
			watch->item[kept_count++] = *one;
		}
	}
	watch->count = kept_count;
}

static void close_all(struct sl_attach_watch *watch)
{
	for (size_t i = 0; i < watch->count; i++)
		close_one(watch, &watch->item[i]);
	if (watch->lost)
		sl_escape_print(stderr, "stormlog-attach: %llu calls were lost, because this program did not keep pace\n",
				(unsigned long long)watch->lost);
	if (watch->unwalked)
		sl_escape_print(stderr,
				"stormlog-attach: %llu native stacks were left out, because this program did not keep pace\n",
				(unsigned long long)watch->unwalked);
	watch->count = 0;
}

static void say_no_main(struct watched *one)
{
	if (!one->said_no_main)
		sl_recording_note(one->output,
				  "its main thread has ended: libraries and Python that come from now on are not watched");
	one->said_no_main = true;
}

/* An exec: all that it had loaded is gone.  Its old probes stay until the new ones are there, since they may still see calls. */
static void begin_again(struct sl_attach_watch *watch, struct watched *one)
{
	size_t old = sl_probes_count(watch->probes);
	struct look look;

	free_parts(one);
	one->lines = NULL;
	one->unwind = NULL;
	one->examined = NULL;
	one->examined_count = one->examined_capacity = 0;
	one->no_lines = one->no_unwind = NULL;
	sl_probes_walk_no_more(watch->probes, (int)one->pid);
	look = add_libraries(watch, one);
	sl_probes_drop(watch->probes, (int)one->pid, old);
	sl_recording_modules(one->output);
	sl_recording_note(one->output, "it has executed a program, this one or another: calls of its first second may be missing");
	say_unwatched(one, &look);
}

static void find_new_libraries(struct sl_attach_watch *watch, struct watched *one)
{
	struct look look;

	if (one->unwind && (one->lines || one->no_lines) && sl_probes_loads(watch->probes, (int)one->pid) == one->loads)
		return;
	look = add_libraries(watch, one);
	if (look.calls)
		sl_recording_note(one->output, "a library was loaded while it was watched: its first calls are not seen");
	say_unwatched(one, &look);
}

/* True: it has loaded libraries since they were looked for last, and neither executed a program nor lost its main thread. */
static bool has_loaded(struct sl_attach_watch *watch, const struct watched *one)
{
	return one->unwind && sl_probes_loads(watch->probes, (int)one->pid) != one->loads && program_of(one->pid) == one->program &&
	       mappings_thread(one->pid) == one->pid;
}

/* Once a second: write what was seen, and watch libraries that were loaded since, even if the process's loads are not counted. */
static bool refresh(struct sl_attach_watch *watch, struct watched *one)
{
	uint64_t program = program_of(one->pid);

	if (mappings_thread(one->pid) != one->pid)
		say_no_main(one);
	else if (program != one->program)
		begin_again(watch, one);
	else
		find_new_libraries(watch, one);
	one->program = program;
	say_groups(one, sl_now_ns(CLOCK_MONOTONIC));
	say_missing(one);
	return sl_recording_flush(one->output);
}

/* Without descriptors no other process is found. */
static void check_files(struct sl_attach_watch *watch)
{
	int fd[FILES];
	unsigned count = 0;

	while (count < FILES && (fd[count] = dup(STDERR_FILENO)) >= 0)
		count++;
	if (count < FILES && !watch->short_of_files) {
		fputs("stormlog-attach: too many files are open: other processes may be passed over (ulimit -n)\n", stderr);
		watch->short_of_files = watch->failed = true;
	}
	while (count)
		close(fd[--count]);
}

bool sl_watch_run(struct sl_attach_watch *watch, double seconds, void (*search)(void *data), void *data)
{
	struct timespec step = {.tv_nsec = LOOK_MS * 1000000};
	uint64_t begin_ns = sl_now_ns(CLOCK_MONOTONIC), flushed_ns = begin_ns;
	bool good = true;
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	watch->lost_since_ns = begin_ns;
	while (good && sigtimedwait(&ends, NULL, &step) < 0 &&
	       (!(seconds > 0) || (double)(sl_now_ns(CLOCK_MONOTONIC) - begin_ns) < seconds * 1e9)) {
		if (watch->probes)
			step.tv_nsec = look(watch) ? 1000000 : LOOK_MS * 1000000;
		for (size_t i = 0; i < watch->count; i++)
			if (has_loaded(watch, &watch->item[i]))
				find_new_libraries(watch, &watch->item[i]);
		if (sl_now_ns(CLOCK_MONOTONIC) - flushed_ns > FLUSH_NS) {
			close_gone(watch);
			for (size_t i = 0; i < watch->count; i++)
				good = refresh(watch, &watch->item[i]) && good;
			flushed_ns = sl_now_ns(CLOCK_MONOTONIC);
			if (search) {
				check_files(watch);
				search(data);
			}
			if (!good || (!watch->count && !search))
				break;
		}
	}
	for (size_t i = 0; i < watch->count; i++)
		sl_probes_end(watch->probes, (int)watch->item[i].pid);
	if (watch->probes) {
		sl_probes_detach(watch->probes);
		look(watch);
	}
	find_gone(watch);
	close_all(watch);
	return good && !watch->failed;
}

void sl_watch_free(struct sl_attach_watch *watch)
{
	if (!watch)
		return;
	if (watch->probes)
		sl_probes_close(watch->probes);
	free(watch->item);
	free(watch);
}
