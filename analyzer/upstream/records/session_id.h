/* SPDX-License-Identifier: MIT */
/* Makes a session id for the records of a file that name none.  It depends on the path alone, so all who read it get the same. */
#pragma once

#include "analyzer/base/arena.h"

const char *sl_session_id_of_file(struct sl_arena *arena, const char *path);

/* For the segments of a sink: `path` is the directory or file as the user named it. */
const char *sl_session_id_of_sink(struct sl_arena *arena, const char *path);
