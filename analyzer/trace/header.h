/* SPDX-License-Identifier: MIT */
/* The header map: who was recorded, by what, and what the numbers of its events mean. */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "analyzer/base/arena.h"
#include "analyzer/trace/object.h"
#include "common/event.h"

#define SL_HEADER_FEW 1024 /* arguments, and keys of metadata, settings, environment, system */

struct sl_hook {
	const char *name;  /* exported symbol: cuMemAlloc_v2 */
	const char *plain; /* as outputs count it: cuMemAlloc */
	enum sl_verb verb; /* CALL where the verb's name is not known here */
	enum sl_kind kind;
	const char *family_name; /* as the header writes it */
	enum sl_family family;	 /* SL_FAMILY_COUNT: not known here */
	int64_t oom;		 /* result that means out of memory; 0: none does */
	bool is_call;		 /* counted in `apis`: not a label, a block report or a process event */
	bool stamped_before;	 /* its time is that of its begin, as its verb says */
};

struct sl_pair {
	const char *name, *value; /* value: NULL where the file has no text */
};

struct sl_header {
	struct sl_arena arena;
	bool known; /* false: no header could be read, and everything else is empty */
	int64_t version;
	const char *agent, *host, *boot_id, *run_id, *job_id, *exe, *cwd, *tag, *ring;
	uint64_t started_ns, monotonic_ns, process_start;
	uint64_t watcher, watcher_start; /* pid and process_start of stormlog-attach; 0: the process recorded itself */
	int64_t pid, ppid, rank, local_rank, world_size, restart; /* rank, local_rank, world_size, restart: -1 unknown */
	unsigned argc, hook_count, metadata_count, setting_count, environment_count, system_count, dry_count, unknown_verbs;
	unsigned kind_count;	/* of the file's list */
	unsigned unknown_kinds; /* kinds without a name that is known here, and what names a kind or family that no list has */
	unsigned left_out;	/* entries of lists that are longer than in any honest header */
	const char **argv;
	struct sl_pair *metadata, *settings, *environment, *system;
	struct sl_pair *dry;	     /* the card of a dry run; none: a real device */
	const struct sl_hook *hooks; /* row i belongs to api i + 1; in the pool */
	uint8_t kinds[256];	     /* index: kind in the file; value: enum sl_kind */
	bool same_kinds;	     /* kinds[i] == i for all i: nothing to translate */
};

/*
 * Fills it from a map whose "def" is "header"; false: not a header, or of an unknown format or version.  identify reads only
 * who was recorded, not lists, nor the tables that give numbers a meaning.  The other function needs the pool to be entered
 * (analyzer/base/pool.h).
 */
bool sl_header_identify(struct sl_header *header, const msgpack_object *map);
bool sl_header_read(struct sl_header *header, const msgpack_object *map);
void sl_header_free(struct sl_header *header);

/* CLOCK_MONOTONIC of the trace as Unix nanoseconds; 0 stays 0. */
static inline uint64_t sl_header_unix(const struct sl_header *header, uint64_t ns)
{
	return ns ? ns - header->monotonic_ns + header->started_ns : 0;
}

/* "rank 3", or "pid 41237" of a process without a rank, or a snapshot's file, in a buffer of SL_FORMAT_BYTES. */
const char *sl_header_who(char *out, const struct sl_header *header);

/* A setting of the recorder; "": it is not set, or the trace does not say. */
const char *sl_header_setting(const struct sl_header *header, const char *name);
/* Bytes that each device pretended to have (--limit); UINT64_MAX: it did not pretend. */
uint64_t sl_header_limit(const struct sl_header *header);

/* True: it was made of a snapshot of PyTorch's (analyzer/snapshot/), which knows its allocator alone. */
static inline bool sl_header_is_snapshot(const struct sl_header *header)
{
	return header->agent && !strcmp(header->agent, "snapshot");
}

/* NULL where no such row exists. */
static inline const struct sl_hook *sl_header_hook(const struct sl_header *header, uint64_t api)
{
	return api - 1 < header->hook_count ? &header->hooks[api - 1] : NULL;
}
