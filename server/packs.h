/* SPDX-License-Identifier: MIT */
/*
 * Stores packs as files: STORE/packs/ab/abcd...stormlog, named by the SHA-256 of the content, and STORE/incoming/abcd...part
 * while they arrive.  A pack gets its name only when all of it is on disk, so after any crash it is either complete or absent.
 * packs/ may be another file system, one that can rename a file.  Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "analyzer/base/hash.h"

#define SL_PACKS_NAME	64 /* hex digits of a name */
#define SL_PACKS_SUFFIX ".stormlog"

struct sl_packs {
	int folder; /* descriptor of the store's folder */
	uint64_t pack_max, quota, spare;
	uint64_t used; /* bytes of all packs, of uploads that were begun, and of pages, atomic */
};

/* One upload.  fd < 0: none is under way. */
struct sl_incoming {
	char name[SL_PACKS_NAME + 1];
	int fd;
	uint64_t size, end;    /* bytes received so far; where this upload ends */
	uint64_t total;	       /* bytes of the whole pack; UINT64_MAX: unknown, it ends with this upload */
	struct sl_digest hash; /* of the first hash.length bytes */
};

/* The outcome: an HTTP status and a sentence.  0: go on. */
struct sl_http_outcome {
	unsigned status;
	const char *why;
};

/* Makes missing folders.  False: errno; ENOTEMPTY: the folder has something in it and is no store, and stays as it is. */
bool sl_packs_open(struct sl_packs *packs, const char *path);
bool sl_packs_are_there(const char *path); /* true: a store is; false: errno */
bool sl_packs_is_name(const char *name);

/* Opens a pack for reading.  A descriptor, or -1: there is no such pack. */
int sl_packs_read(const struct sl_packs *packs, const char *name, struct stat *st);
/* "packs/ab/abcd...stormlog", relative to the store's folder. */
void sl_packs_path(const char *name, char path[SL_PACKS_NAME + 32]);
/* True: `coming` bytes more and `going` bytes less would leave less free room on the store's disk than it is to have. */
bool sl_packs_are_full(const struct sl_packs *packs, uint64_t coming, uint64_t going);
/* How many bytes an unfinished upload has left. */
uint64_t sl_packs_begun(const struct sl_packs *packs, const char *name);

/* The caller sets in->name, total and end.  200: the pack is stored already; 409: go on at in->size. */
struct sl_http_outcome sl_packs_begin(struct sl_packs *packs, struct sl_incoming *in, uint64_t offset);
struct sl_http_outcome sl_packs_add(struct sl_packs *packs, struct sl_incoming *in, const void *bytes, uint64_t size);
/* 201: stored and on disk; 202: this part is stored; anything else: refused and removed. */
struct sl_http_outcome sl_packs_end(struct sl_packs *packs, struct sl_incoming *in);
/* Keeps what has arrived, for the next try. */
void sl_packs_leave(struct sl_incoming *in);

bool sl_packs_remove(struct sl_packs *packs, const char *name);
/* Lists every pack of the folder. */
void sl_packs_each(const struct sl_packs *packs, void (*each)(void *context, const char *name, const struct stat *st),
		   void *context);
/* Removes unfinished uploads that got no data for a day. */
void sl_packs_sweep(struct sl_packs *packs);
