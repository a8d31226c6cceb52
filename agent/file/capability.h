/* SPDX-License-Identifier: MIT */
/* Records what this recording can do and what it lacks, as `capability` maps of the trace. */
#pragma once

/* Writes a `capability` map; the last one of a name counts.  Any thread, safe on the path of a call. */
void sl_capability_write(const char *name, const char *value);
