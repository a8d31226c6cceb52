/* SPDX-License-Identifier: MIT */
#include "tools/attach/attach.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <zstd.h>

#include "common/block.h"
#include "common/buildid.h"
#include "common/fnv.h"
#include "common/tracefile.h"
#include "common/now.h"

#define ENVIRONMENT_MAX (1u << 20) /* bytes */

size_t sl_recording_read_of(long pid, const char *name, char *buffer, size_t size)
{
	char path[96];
	long used;

	snprintf(path, sizeof(path), "/proc/%ld/%s", pid, name);
	used = sl_procfile_read(path, buffer, size);
	return used > 0 ? (size_t)used : 0;
}

static void key_link(struct sl_definition *out, const char *name, long pid)
{
	char path[64], link[4096];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%ld/%s", pid, name);
	length = readlink(path, link, sizeof(link) - 1);
	link[length > 0 ? length : 0] = 0;
	sl_definition_maybe_text(out, name, link);
}

/* The agent's rules read variables with getenv.  Here they are asked with the process's environment in place of ours. */
static long pack_run(struct sl_definition *out, long pid, const char *host, const char *boot_id)
{
	char *text = sl_attach_must(malloc(ENVIRONMENT_MAX)), **own = environ, **theirs, run[160], job[128];
	size_t bytes, count = 0;
	struct sl_identity_rank rank;

	bytes = sl_recording_read_of(pid, "environ", text, ENVIRONMENT_MAX);
	theirs = sl_attach_must(calloc(bytes / 2 + 2, sizeof(*theirs)));
	for (char *at = text; at < text + bytes; at += strlen(at) + 1)
		if (*at)
			theirs[count++] = at;
	environ = theirs;
	rank = sl_identity_rank();
	sl_identity_job(job, sizeof(job));
	if (!sl_identity_run_named(run, sizeof(run)))
		sl_identity_run_fallback(run, sizeof(run), host, boot_id, (uint64_t)pid);
	sl_definition_maybe_int(out, "restart", sl_identity_restart());
	environ = own;
	sl_definition_maybe_text(out, "run_id", run);
	sl_definition_maybe_text(out, "job_id", job);
	sl_definition_maybe_int(out, "rank", rank.rank);
	sl_definition_maybe_int(out, "local_rank", rank.local_rank);
	sl_definition_maybe_int(out, "world_size", rank.world_size);
	free(theirs);
	free(text);
	return rank.rank;
}

/*
 * Bytes of the map; 0: it does not fit.  *rank: within its run, -1 unknown.  One thread only: `environ` is replaced by the
 * process's during the call.
 */
static size_t header_of(long pid, uint8_t *bytes, size_t size, long *rank)
{
	struct sl_definition out = sl_definition_begin(bytes, size, "header");
	char boot_id[40], host[256] = "", path[64];

	sl_procfile_read("/proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id));
	boot_id[strcspn(boot_id, "\n")] = 0;
	gethostname(host, sizeof(host) - 1);
	sl_definition_maybe_text(&out, "format", SL_TRACE_FORMAT);
	sl_definition_uint(&out, "version", SL_TRACE_VERSION);
	sl_definition_maybe_text(&out, "agent", SL_VERSION);
	sl_definition_uint(&out, "started_ns", sl_now_ns(CLOCK_REALTIME));
	sl_definition_uint(&out, "monotonic_ns", sl_now_ns(CLOCK_MONOTONIC));
	sl_definition_maybe_text(&out, "host", host);
	sl_definition_uint(&out, "pid", (uint64_t)pid);
	sl_definition_uint(&out, "ppid", sl_procfile_parent((uint64_t)pid));
	sl_definition_uint(&out, "process_start", sl_procfile_start((uint64_t)pid));
	sl_definition_maybe_text(&out, "boot_id", boot_id);
	*rank = pack_run(&out, pid, host, boot_id);
	snprintf(path, sizeof(path), "/proc/%ld/cmdline", pid);
	sl_redact_pack(&out, path);
	key_link(&out, "exe", pid);
	key_link(&out, "cwd", pid);
	sl_definition_uint(&out, "watcher",
			   (uint64_t)getpid()); /* while this process lives the file grows; there is no ring that would say so */
	sl_definition_uint(&out, "watcher_start", sl_procfile_start((uint64_t)getpid()));
	sl_definition_uint(&out, "file", 1);
	sl_definition_key(&out, "system");
	sl_system_pack(&out.pack);
	sl_tables_pack(&out);
	return sl_definition_end(&out) ? out.pack.used : 0;
}

#define SLOTS	   65536 /* slots of a table; a stack or frame without room is unknown */
#define NAMES_MAX  1000
#define DEFS_BYTES (1u << 20)

struct thread {
	long tid;
	uint64_t next; /* number of its next event, from 1 */
	struct sl_event *events;
	size_t count, capacity;
};

/* Content -> id, from 1.  The content is known by its hash. */
struct ids {
	struct {
		uint64_t hash;
		uint32_t id;
	} * slots;
	uint32_t count;
};

struct sl_recording {
	int fd;
	bool failed;
	char path[4096];
	long pid;
	uint64_t events;
	struct thread *threads;
	size_t thread_count, thread_capacity;
	struct ids natives, pythons, frames, loops;
	uint64_t modules; /* hash of the memory map's files when they were last defined */
	uint8_t *defs;
	size_t defs_used;
	unsigned defs_count;
	uint8_t *block, *frame;
	size_t frame_bytes;
	ZSTD_CCtx *compressor;
};

static bool put(int fd, const void *bytes, size_t size)
{
	const char *at = bytes;

	while (size) {
		ssize_t written = write(fd, at, size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return false;
		at += written;
		size -= (size_t)written;
	}
	return true;
}

static void append(struct sl_recording *output, struct sl_frame_index index, const void *bytes, size_t size)
{
	size_t packed = ZSTD_compress2(output->compressor, output->frame, output->frame_bytes, bytes, size);

	if (ZSTD_isError(packed)) {
		output->failed = true;
		return;
	}
	index.magic = SL_FRAME_MAGIC;
	index.size = sizeof(index) - 8;
	index.compressed = (uint32_t)packed;
	index.check = sl_frame_index_check(&index);
	output->failed = output->failed || !put(output->fd, &index, sizeof(index)) || !put(output->fd, output->frame, packed);
}

/* --- definitions ---------------------------------------------------------------------------------------- */

static void write_defs(struct sl_recording *output)
{
	if (output->defs_count)
		append(output, (struct sl_frame_index){.kind = SL_FRAME_DEFS, .count = output->defs_count}, output->defs,
		       output->defs_used);
	output->defs_count = 0;
	output->defs_used = 0;
}

void sl_recording_define(struct sl_recording *output, struct sl_definition *map)
{
	const struct sl_pack *pack = &map->pack;

	if (!sl_definition_end(map) || pack->used > DEFS_BYTES)
		return;
	if (output->defs_used + pack->used > DEFS_BYTES)
		write_defs(output);
	memcpy(output->defs + output->defs_used, pack->bytes, pack->used);
	output->defs_used += pack->used;
	output->defs_count++;
}

void sl_recording_note(struct sl_recording *output, const char *text)
{
	uint8_t bytes[1024];
	struct sl_definition map = sl_definition_note(bytes, sizeof(bytes), text, sl_now_ns(CLOCK_MONOTONIC));

	sl_recording_define(output, &map);
}

void sl_recording_lost(struct sl_recording *output, uint64_t count, uint64_t begin_ns, uint64_t end_ns)
{
	uint8_t bytes[256];
	struct sl_definition map = sl_definition_gap(bytes, sizeof(bytes), count, begin_ns, end_ns,
						     "the collector did not keep pace with the calls of this node", false);

	sl_recording_define(output, &map);
}

/* A library or program, from its first mapping to its last. */
struct module {
	struct sl_recording *output;
	struct sl_mapping first;
	uint64_t end;
	char path[4096]; /* "": none so far */
};

/* "": not known. */
static void find_build_id(const struct sl_mapping *mapping, char *text)
{
	char path[SL_MAPPINGS_PATH];
	struct stat st;
	int fd;

	*text = 0;
	sl_mappings_path(mapping, path);
	if (stat(path, &st) || !S_ISREG(st.st_mode)) /* the map also lists mappings of devices */
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return;
	sl_buildid_read(fd, text);
	close(fd);
}

static void define_module(const struct module *module)
{
	uint8_t bytes[4096 + 256 + SL_BUILDID_TEXT];
	struct sl_definition map = sl_definition_begin(bytes, sizeof(bytes), "module");
	char build_id[SL_BUILDID_TEXT];

	if (!*module->path)
		return;
	find_build_id(&module->first, build_id);
	if (*build_id)
		sl_definition_text(&map, "build_id", build_id);
	sl_definition_uint(&map, "base", module->first.begin);
	sl_definition_uint(&map, "end", module->end);
	sl_definition_text(&map, "path", module->path);
	sl_definition_uint(&map, "ns", sl_now_ns(CLOCK_MONOTONIC));
	sl_recording_define(module->output, &map);
}

static bool extend_module(void *data, const struct sl_mapping *mapping)
{
	struct module *module = data;

	if (!mapping->name)
		return false;
	if (strcmp(mapping->name, module->path)) {
		define_module(module);
		module->first = *mapping;
		snprintf(module->path, sizeof(module->path), "%s", mapping->name);
	}
	module->end = mapping->end;
	return false;
}

static bool add_to_hash(void *data, const struct sl_mapping *mapping)
{
	uint64_t *hash = data;

	if (mapping->name) {
		*hash = sl_fnv_bytes(*hash, &mapping->begin, sizeof(mapping->begin));
		*hash = sl_fnv_bytes(*hash, &mapping->end, sizeof(mapping->end));
		*hash = sl_fnv_bytes(*hash, mapping->name, strlen(mapping->name));
	}
	return false;
}

void sl_recording_modules(struct sl_recording *output)
{
	struct module module = {.output = output};
	uint64_t hash = SL_FNV_START;

	sl_mappings_each(output->pid, add_to_hash, &hash);
	if (hash == output->modules)
		return;
	output->modules = hash;
	sl_mappings_each(output->pid, extend_module, &module);
	define_module(&module);
}

/* --- file ----------------------------------------------------------------------------------------------- */

static bool make_folder(const char *folder)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s", folder);
	for (char *at = path + 1; (at = strchr(at, '/')); at++) {
		*at = 0;
		mkdir(path, 0700);
		*at = '/';
	}
	return !mkdir(path, 0700) || errno == EEXIST;
}

static bool claim(struct sl_recording *output, const char *folder, long rank)
{
	output->fd = -1;
	for (unsigned attempt = 1; output->fd < 0 && attempt < NAMES_MAX; attempt++) {
		int used =
			snprintf(output->path, sizeof(output->path), "%s/rank-%05ld-%ld", folder, rank < 0 ? 0 : rank, output->pid);

		if (attempt > 1)
			used += snprintf(output->path + used, sizeof(output->path) - (size_t)used, "-%u", attempt);
		if (used + sizeof(SL_TRACE_SUFFIX) > sizeof(output->path))
			break;
		strcpy(output->path + used, SL_TRACE_SUFFIX);
		output->fd = open(output->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (output->fd < 0 && errno != EEXIST)
			break;
	}
	return output->fd >= 0;
}

struct sl_recording *sl_recording_open(const char *folder, long pid, const char **why)
{
	struct sl_recording *output = sl_attach_must(calloc(1, sizeof(*output)));
	size_t bytes;
	long rank;

	output->pid = pid;
	output->frame_bytes = ZSTD_compressBound(SL_BLOCK_BYTES(SL_BLOCK_EVENTS));
	output->block = sl_attach_must(malloc(SL_BLOCK_BYTES(SL_BLOCK_EVENTS)));
	output->frame = sl_attach_must(malloc(output->frame_bytes));
	output->defs = sl_attach_must(malloc(DEFS_BYTES));
	output->compressor = sl_attach_must(ZSTD_createCCtx());
	ZSTD_CCtx_setParameter(output->compressor, ZSTD_c_checksumFlag, 1);
	bytes = header_of(pid, output->block, SL_BLOCK_BYTES(SL_BLOCK_EVENTS), &rank);
	if (!make_folder(folder) || !claim(output, folder, rank)) {
		*why = strerror(errno);
		sl_recording_close(output, NULL);
		return NULL;
	}
	append(output, (struct sl_frame_index){.kind = SL_FRAME_HEADER, .count = 1}, output->block, bytes);
	sl_recording_modules(output);
	return output;
}

const char *sl_recording_path(const struct sl_recording *output)
{
	return output->path;
}

/* --- events --------------------------------------------------------------------------------------------- */

static struct thread *thread_of(struct sl_recording *output, long tid)
{
	uint8_t bytes[256];
	struct sl_definition map;
	char name[64], file[64];
	struct thread *thread;

	for (size_t i = 0; i < output->thread_count; i++)
		if (output->threads[i].tid == tid)
			return &output->threads[i];
	output->threads = sl_attach_room(output->threads, output->thread_count, &output->thread_capacity, sizeof(*output->threads));
	thread = &output->threads[output->thread_count++];
	*thread = (struct thread){.tid = tid, .next = 1};
	snprintf(file, sizeof(file), "task/%ld/comm", tid);
	name[sl_recording_read_of(output->pid, file, name, sizeof(name))] = 0;
	name[strcspn(name, "\n")] = 0;
	map = sl_definition_thread(bytes, sizeof(bytes), (uint32_t)output->thread_count, (int)tid, name,
				   sl_now_ns(CLOCK_MONOTONIC));
	sl_recording_define(output, &map);
	return thread;
}

static uint64_t hash_of(uint64_t hash, uint64_t word)
{
	return (hash ^ word) * 0x9e3779b97f4a7c15ull ^ hash >> 29;
}

/* Id of what has this hash; *is_new: it is to be defined.  0: no room. */
static uint32_t id_of(struct ids *ids, uint64_t hash, bool *is_new)
{
	uint32_t at;

	*is_new = false;
	if (!ids->slots)
		ids->slots = sl_attach_must(calloc(SLOTS, sizeof(*ids->slots)));
	hash += !hash;
	for (at = hash % SLOTS; ids->slots[at].hash; at = (at + 1) % SLOTS)
		if (ids->slots[at].hash == hash)
			return ids->slots[at].id;
	if (ids->count >= SLOTS / 4 * 3)
		return 0;
	*is_new = true;
	ids->slots[at].hash = hash;
	return ids->slots[at].id = ++ids->count;
}

uint32_t sl_recording_native(struct sl_recording *output, const uint64_t *pcs, unsigned count, bool truncated, bool *is_new)
{
	uint8_t bytes[8192];
	struct sl_definition map;
	uint64_t hash = hash_of(SL_FNV_START, truncated);
	uint32_t id = 0;

	*is_new = false;
	for (unsigned i = 0; i < count; i++)
		hash = hash_of(hash, pcs[i]);
	if (count)
		id = id_of(&output->natives, hash, is_new);
	if (!*is_new)
		return id;
	map = sl_definition_native(bytes, sizeof(bytes), id, pcs, count, truncated);
	sl_recording_define(output, &map);
	return id;
}

void sl_recording_loop(struct sl_recording *output, uint64_t begin, uint64_t end)
{
	uint8_t bytes[128];
	struct sl_definition map;
	bool is_new;
	uint32_t id = id_of(&output->loops, hash_of(hash_of(SL_FNV_START, begin), end), &is_new);

	if (!is_new)
		return;
	map = sl_definition_loop(bytes, sizeof(bytes), id, begin, end);
	sl_recording_define(output, &map);
}

uint32_t sl_recording_frame(struct sl_recording *output, const struct sl_python_text *text)
{
	uint8_t bytes[8192];
	struct sl_definition map;
	uint64_t hash = sl_fnv_bytes(SL_FNV_START, text->function, text->function_bytes);
	uint32_t id;
	bool is_new;

	hash = sl_fnv_bytes(hash_of(hash, text->function_bytes), text->file, text->file_bytes);
	id = id_of(&output->frames, hash_of(hash, (uint64_t)(uint32_t)text->line << 32 | (uint32_t)text->first_line), &is_new);
	if (!id || !is_new)
		return id;
	map = sl_definition_frame(bytes, sizeof(bytes), id, text);
	sl_recording_define(output, &map);
	return id;
}

uint32_t sl_recording_python(struct sl_recording *output, const uint32_t *frames, unsigned count, bool truncated)
{
	uint8_t bytes[8192];
	struct sl_definition map;
	uint64_t hash = SL_FNV_START;
	uint32_t id;
	bool is_new;

	for (unsigned i = 0; i < count; i++)
		hash = hash_of(hash, frames[i]);
	id = id_of(&output->pythons, hash_of(hash, truncated), &is_new);
	if (!id || !is_new)
		return id;
	map = sl_definition_python(bytes, sizeof(bytes), id, frames, count, truncated);
	sl_recording_define(output, &map);
	return id;
}

static void write_block(struct sl_recording *output, struct thread *thread)
{
	struct sl_frame_index index = {.kind = SL_FRAME_BLOCK, .count = (uint32_t)thread->count, .begin_ns = UINT64_MAX};
	size_t bytes;

	if (!thread->count)
		return;
	write_defs(output);
	index.thread = (uint32_t)(thread - output->threads) + 1;
	index.first = thread->next - thread->count;
	index.next = thread->next;
	for (size_t i = 0; i < thread->count; i++) {
		uint64_t ns = thread->events[i].time_ns;

		index.begin_ns = ns < index.begin_ns ? ns : index.begin_ns;
		index.end_ns = ns > index.end_ns ? ns : index.end_ns;
	}
	bytes = sl_block_encode(output->block, index.thread, index.first, index.next, thread->events, index.count);
	append(output, index, output->block, bytes);
	output->events += thread->count;
	thread->count = 0;
}

void sl_recording_event(struct sl_recording *output, long tid, const struct sl_event *event)
{
	struct thread *thread = thread_of(output, tid);

	thread->events = sl_attach_room(thread->events, thread->count, &thread->capacity, sizeof(*thread->events));
	thread->events[thread->count++] = *event;
	thread->next++;
	if (thread->count == SL_BLOCK_EVENTS)
		write_block(output, thread);
}

bool sl_recording_flush(struct sl_recording *output)
{
	for (size_t i = 0; i < output->thread_count; i++) {
		struct thread *thread = &output->threads[i];

		write_block(output, thread);
		free(thread->events); /* most of many threads have ended */
		thread->events = NULL;
		thread->capacity = 0;
	}
	write_defs(output);
	return !output->failed;
}

bool sl_recording_close(struct sl_recording *output, const char *how)
{
	uint8_t bytes[256];
	struct sl_definition map = sl_definition_begin(bytes, sizeof(bytes), "footer");
	bool good = how && sl_recording_flush(output);

	sl_definition_uint(&map, "ns", sl_now_ns(CLOCK_MONOTONIC));
	sl_definition_text(&map, "how", how ? how : "");
	sl_definition_uint(&map, "events", output->events);
	if (good && sl_definition_end(&map))
		append(output, (struct sl_frame_index){.kind = SL_FRAME_FOOTER, .count = 1}, bytes, map.pack.used);
	good = good && !output->failed;
	if (output->fd >= 0 && close(output->fd))
		good = false;
	for (size_t i = 0; i < output->thread_count; i++)
		free(output->threads[i].events);
	free(output->threads);
	free(output->natives.slots);
	free(output->pythons.slots);
	free(output->frames.slots);
	free(output->loops.slots);
	free(output->block);
	free(output->frame);
	free(output->defs);
	ZSTD_freeCCtx(output->compressor);
	free(output);
	return good;
}
