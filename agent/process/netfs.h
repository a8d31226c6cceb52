/* SPDX-License-Identifier: MIT */
/* File systems that a ring must not lie on: their pages may hang, be out of reach when the node dies, or find no room. */
#ifndef AGENT_PROCESS_NETFS_H
#define AGENT_PROCESS_NETFS_H

#include "common/ringfile.h" /* SL_REMOTE_RING: where the ring of a trace on such a file system lies */

/* Why the ring of a trace in this folder lies in SL_REMOTE_RING, for people; NULL: it lies beside the trace. */
const char *sl_remote_why(const char *folder);

/* "NFS", "ext4", ...: what the folder lies on, for people; NULL where the number has no name here. */
const char *sl_remote_name(const char *folder);

#endif
