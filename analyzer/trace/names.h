/* SPDX-License-Identifier: MIT */
/* Names of a process's files: rank-00003-41237.msgpack.zst, later segments rank-00003-41237.000002.msgpack.zst, and its .ring. */
#pragma once

#include <stdbool.h>

bool sl_names_is_ring(const char *name);

/* True when the name is one of a trace file or a ring. */
bool sl_names_is_trace(const char *name);

/* True when the name is one of a pack (archive.h). */
bool sl_names_is_pack(const char *name);

/*
 * True when the name is one that snapshots of PyTorch's have: snapshot.pickle, .pkl, and those with .gz, .zst, .xz behind.  Other
 * files have such names, too.
 */
bool sl_names_may_be_snapshot(const char *name);

/* Which of its process's files a path names: 1, 2, ... */
unsigned sl_names_segment(const char *path);

/* The path without segment and suffix, malloc'ed; *segment as above. */
char *sl_names_stem(const char *path, unsigned *segment);
