/* SPDX-License-Identifier: MIT */
/*
 * Packs as files: STORE/packs/ab/abcd...stormlog, named by the SHA-256 of what is in them, and STORE/incoming/abcd...part while
 * they arrive.  A pack has its name once all of it is on the disk, so whatever ends the server, there is the whole of it or
 * nothing.  Any thread.
 */
#ifndef SERVER_PACKS_H
#define SERVER_PACKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define SL_PACKS_NAME 64 /* hex digits of a name */

struct sl_packs {
	int folder; /* the store */
	uint64_t pack_max, quota, spare;
	uint64_t used; /* by packs, atomic */
};

/* One upload.  fd < 0: none. */
struct sl_incoming {
	char name[SL_PACKS_NAME + 1];
	int fd;
	uint64_t size, end; /* what is there; where this upload ends */
	uint64_t total;	    /* of the pack; UINT64_MAX: where the upload ends */
};

/* What became of it: a status of HTTP and a sentence.  0: go on. */
struct sl_http_outcome {
	unsigned status;
	const char *why;
};

/* Folders are made where they are missing.  false: errno. */
bool sl_packs_open(struct sl_packs *packs, const char *path);
bool sl_packs_is_name(const char *name);

/* A pack to read.  A descriptor, or -1: there is none. */
int sl_packs_read(const struct sl_packs *packs, const char *name, struct stat *st);
/* "packs/ab/abcd...stormlog", relative to the store. */
void sl_packs_path(const char *name, char path[SL_PACKS_NAME + 32]);
/* Bytes that an unfinished upload left. */
uint64_t sl_packs_begun(const struct sl_packs *packs, const char *name);

/* in->name, total and end are set.  200: the pack is there already; 409: in->size says where to go on. */
struct sl_http_outcome sl_packs_begin(struct sl_packs *packs, struct sl_incoming *in, uint64_t offset);
struct sl_http_outcome sl_packs_add(struct sl_packs *packs, struct sl_incoming *in, const void *bytes, uint64_t size);
/* 201: stored, and on the disk; 202: this part is; anything else: refused and removed. */
struct sl_http_outcome sl_packs_end(struct sl_packs *packs, struct sl_incoming *in);
/* What came stays for the next try. */
void sl_packs_leave(struct sl_incoming *in);

bool sl_packs_remove(struct sl_packs *packs, const char *name);
/* Every pack of the folder. */
void sl_packs_each(const struct sl_packs *packs, void (*each)(void *context, const char *name, const struct stat *st),
		   void *context);
/* Unfinished uploads that nobody went on with for a day. */
void sl_packs_sweep(const struct sl_packs *packs);

#endif
