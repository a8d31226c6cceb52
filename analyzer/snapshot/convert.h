/* SPDX-License-Identifier: MIT */
/*
 * A snapshot as a trace, so that everything else reads it as a recording: blocks from before its first event become events that
 * carry the flag `before`, then its events, one thread for each device.  doc/snapshot.md says what the trace holds.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct sl_converted {
	char why[160];	 /* the fault of the file; "": it could be read */
	uint64_t offset; /* where, in the unpacked file */
	int unwritten;	 /* errno where the trace found no room; 0: it did */
};

/*
 * The name of the trace that the snapshot at `path` becomes: rank-00003-7.msgpack.zst, where the file's name says the rank. number:
 * from 1, another one for each snapshot that one program reads; it takes the pid's place, which the file lacks.
 */
void sl_snapshot_member(const char *path, unsigned number, char *name, size_t size);

/* Reads `in`, which lies at `path`, and writes the trace to `out`.  False: `how` says why. */
bool sl_snapshot_convert(FILE *in, const char *path, unsigned number, FILE *out, struct sl_converted *how);
