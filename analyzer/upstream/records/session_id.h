/* SPDX-License-Identifier: MIT */
/* The made-up session of a file's records that name none: the same for everyone who reads that path. */
#pragma once

#include "analyzer/base/arena.h"

const char *sl_session_id_of_file(struct sl_arena *arena, const char *path);

/* For the segments of a sink: `path` is the directory or file as the user named it. */
const char *sl_session_id_of_sink(struct sl_arena *arena, const char *path);
