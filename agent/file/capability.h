/* SPDX-License-Identifier: MIT */
/* Records what this recording can do and what it lacks, as `capability` maps of the trace. */
#ifndef AGENT_FILE_CAPABILITY_H
#define AGENT_FILE_CAPABILITY_H

/* Writes a `capability` map; of several with one name the last holds.  Any thread, safe on the path of a call. */
void sl_capability(const char *name, const char *value);

#endif
