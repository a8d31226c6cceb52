/* SPDX-License-Identifier: MIT */
/*
 * The simulator's own record of its calls: one file per process image, mapped shared, so that it survives a SIGKILL.
 * A call's record is written at its entry and completed at its return. Each effect on memory is a record of its own,
 * numbered under the simulator's lock in the order in which the effects happened. README.md has the layout.
 */
#include "sim.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { RECORD_CALL_ENTERED = 1, RECORD_CALL_RETURNED = 2, RECORD_EFFECT = 3 };
enum { NAME_MAX_BYTES = 64, NAMES = 1000, HEADER_BYTES = 1 << 16, CHUNK_RECORDS = 1 << 13, CHUNKS = 1 << 15 };

struct sim_record {
	uint32_t state, thread;
	uint16_t api;
	uint8_t level, verb, kind, effect;
	uint16_t pad;
	int32_t result, device;
	uint64_t entered_ns, returned_ns;
	uint64_t address, bytes, other;
	uint64_t parent; /* number of the enclosing call's record, 0: none */
	uint64_t reserved;
};
_Static_assert(sizeof(struct sim_record) == 80, "journal.py reads 80 bytes");

struct header {
	char magic[8];
	uint32_t version, record_bytes, header_bytes, name_bytes;
	int32_t pid, parent_pid;
	uint64_t started_ns, started_unix_ns;
	uint64_t records; /* claimed so far; a claimed one may still be empty */
	uint32_t names;
	char pad[256 - 60];
	char name[NAMES][NAME_MAX_BYTES];
};
_Static_assert(sizeof(struct header) <= HEADER_BYTES, "names fit into the header");

static struct {
	char path[8192]; /* no descriptor: programs close those they do not know and reuse the numbers */
	bool tried;
	struct header *header;
	struct sim_record *chunks[CHUNKS];
} journal;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread uint32_t thread_id;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Shared memory of the file at `at`, which is made long enough; flags as of open(). NULL where it cannot be had. */
static void *map_file(int flags, off_t at, size_t bytes)
{
	int fd = open(journal.path, O_RDWR | O_CLOEXEC | flags, 0666);
	if (fd < 0)
		return NULL;
	/* Chunks may be asked for out of order: never shrink. */
	void *map = MAP_FAILED;
	if (lseek(fd, 0, SEEK_END) >= at + (off_t)bytes || !ftruncate(fd, at + bytes))
		map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
	close(fd);
	return map == MAP_FAILED ? NULL : map;
}

static void open_file(const char *dir)
{
	struct header *h = NULL;
	size_t n = 0;
	if (*dir != '/' && getcwd(journal.path, sizeof journal.path / 2)) { /* the program may go elsewhere before the file grows */
		n = strlen(journal.path);
		journal.path[n++] = '/';
	}
	for (int image = 0; image < 100 && !h; image++) {
		snprintf(journal.path + n, sizeof journal.path - n, "%s/journal-%d-%d.bin", dir, (int)getpid(), image);
		h = map_file(O_CREAT | O_EXCL, 0, HEADER_BYTES);
	}
	if (!h)
		return;
	h->version = 1;
	h->record_bytes = sizeof(struct sim_record);
	h->header_bytes = HEADER_BYTES;
	h->name_bytes = NAME_MAX_BYTES;
	h->pid = getpid();
	h->parent_pid = getppid();
	h->started_ns = now_ns(CLOCK_MONOTONIC);
	h->started_unix_ns = now_ns(CLOCK_REALTIME);
	h->names = 1;
	memcpy(h->magic, "SIMJRNL", 8);
	__atomic_store_n(&journal.header, h, __ATOMIC_RELEASE);
}

bool sim_journal_on(void)
{
	if (__builtin_expect(journal.header != NULL, 1))
		return true;
	if (journal.tried)
		return false;
	pthread_mutex_lock(&lock);
	const char *dir = getenv("SIM_JOURNAL");
	if (!journal.tried && dir && *dir)
		open_file(dir);
	journal.tried = true;
	pthread_mutex_unlock(&lock);
	return journal.header != NULL;
}

void sim_journal_forget(void)
{
	/* Does not unmap the files, because a vfork-like child shares the parent's mappings. */
	memset(&lock, 0, sizeof lock);
	memset(&journal, 0, sizeof journal);
	thread_id = 0;
}

static struct sim_record *map_chunk(uint64_t chunk)
{
	struct sim_record *map = NULL;
	pthread_mutex_lock(&lock);
	if (chunk < CHUNKS && !(map = journal.chunks[chunk])) {
		size_t bytes = CHUNK_RECORDS * sizeof(struct sim_record);
		map = map_file(0, HEADER_BYTES + (off_t)(chunk * bytes), bytes);
		__atomic_store_n(&journal.chunks[chunk], map, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return map;
}

static struct sim_record *claim(uint64_t *number)
{
	uint64_t n = __atomic_fetch_add(&journal.header->records, 1, __ATOMIC_RELAXED);
	uint64_t chunk = n / CHUNK_RECORDS;
	struct sim_record *map = chunk < CHUNKS ? __atomic_load_n(&journal.chunks[chunk], __ATOMIC_ACQUIRE) : NULL;
	if (!map && !(map = map_chunk(chunk)))
		return NULL;
	struct sim_record *record = &map[n % CHUNK_RECORDS];
	if (!thread_id)
		thread_id = syscall(SYS_gettid);
	record->thread = thread_id;
	*number = n + 1;
	return record;
}

static uint16_t name_of(struct sim_api *api)
{
	if (__atomic_load_n(&api->generation, __ATOMIC_ACQUIRE) == sim_process.generation)
		return api->id;
	struct header *h = journal.header;
	pthread_mutex_lock(&lock);
	/* Two copies of a runtime have an api each with the same name. */
	uint32_t id = 1;
	while (id < h->names && strcmp(h->name[id], api->name))
		id++;
	if (id == h->names && id < NAMES) {
		snprintf(h->name[id], NAME_MAX_BYTES, "%s", api->name);
		__atomic_store_n(&h->names, id + 1, __ATOMIC_RELEASE);
	}
	api->id = id < NAMES ? id : 0;
	__atomic_store_n(&api->generation, sim_process.generation, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return api->id;
}

void sim_journal_open_call(struct sim_call *call)
{
	call->record = NULL;
	if ((call->api->verb == SIM_QUIET && !sim_config.journal_all) || !sim_journal_on())
		return;
	struct sim_record *r = claim(&call->number);
	if (!r)
		return;
	r->api = name_of(call->api);
	r->level = call->api->level;
	r->verb = call->api->verb;
	r->kind = call->kind;
	r->device = call->device;
	r->address = call->address;
	r->bytes = call->bytes;
	r->other = call->other;
	r->entered_ns = now_ns(CLOCK_MONOTONIC);
	for (struct sim_call *outer = call->outer; outer && !r->parent; outer = outer->outer)
		r->parent = outer->number;
	call->record = r;
	__atomic_store_n(&r->state, RECORD_CALL_ENTERED, __ATOMIC_RELEASE);
}

void sim_journal_close_call(struct sim_call *call)
{
	struct sim_record *r = call->record;
	if (!r)
		return;
	r->result = call->result;
	r->kind = call->kind;
	r->device = call->device;
	r->address = call->address;
	r->bytes = call->bytes;
	r->other = call->other;
	r->returned_ns = now_ns(CLOCK_MONOTONIC);
	__atomic_store_n(&r->state, RECORD_CALL_RETURNED, __ATOMIC_RELEASE);
}

void sim_journal_effect(struct sim_call *call, enum sim_effect effect, enum sim_kind kind, int device, uint64_t address,
			uint64_t bytes)
{
	uint64_t number;
	struct sim_record *r = sim_journal_on() ? claim(&number) : NULL;
	if (!r)
		return;
	r->effect = effect;
	r->kind = kind;
	r->device = device;
	r->address = address;
	r->bytes = bytes;
	for (; call && !r->parent; call = call->outer)
		r->parent = call->number;
	r->entered_ns = r->returned_ns = now_ns(CLOCK_MONOTONIC);
	__atomic_store_n(&r->state, RECORD_EFFECT, __ATOMIC_RELEASE);
}
