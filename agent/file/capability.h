/* SPDX-License-Identifier: MIT */
/* Records what this recording can do and what it lacks, as `capability` maps of the trace. */
#pragma once

/* Writes a `capability` map; of several with one name the last holds.  Any thread, safe on the path of a call. */
void sl_capability(const char *name, const char *value);
