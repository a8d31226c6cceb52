/* SPDX-License-Identifier: MIT */
/* What this recording can and cannot, said in the trace. */
#ifndef AGENT_FILE_CAPABILITY_H
#define AGENT_FILE_CAPABILITY_H

/* A `capability` map; of several with one name the last holds.  Any thread, safe on the path of a call. */
void sl_capability(const char *name, const char *value);

#endif
