/* SPDX-License-Identifier: MIT */
/*
 * What NCCL reports of its communicators: their number, rank, size and device, and the bytes of each collective.  It reports
 * them as NVTX payloads (binary data whose fields a schema names), even where NCCL is linked statically.  Only the names come
 * from elsewhere: NCCL's configuration.  Each communicator is defined once in a recording, and again when its name is known.
 *
 * Schemas and payloads: nvToolsExtPayload.h of NVIDIA's nvtx 13.5.  Names of the fields: NCCL 2.16 to 2.32; before 2.24 no
 * communicator is given.  Everything concerns the calling thread and needs no allocation or lock.
 */
#pragma once

#include "agent/call/call.h"
#include "common/vendor_abi.h"

/* These have the layout of NVTX's nvtxPayloadSchemaEntry_t, nvtxPayloadSchemaAttr_t, nvtxPayloadData_t. */
struct sl_payload_entry {
	uint64_t flags, type;
	const char *name, *description;
	uint64_t detail, offset;
	const void *semantics, *reserved;
};

struct sl_payload_schema {
	uint64_t fields; /* which of these are set */
	const char *name;
	uint64_t type, flags;
	const struct sl_payload_entry *entries;
	size_t count, bytes, alignment;
	uint64_t id;
};

struct sl_payload {
	uint64_t schema;
	size_t bytes;
	const void *data;
};

/* known: the id that the user's tool gave the schema, 0 none.  Returns the schema's id. */
uint64_t sl_communicators_schema(unsigned domain, const struct sl_payload_schema *schema, uint64_t known);

struct sl_instant_details sl_communicators_payload(unsigned domain, const struct sl_payload *payloads, size_t count);

/*
 * Called before and after an NCCL call that makes a communicator, on its thread.  done: the call succeeded.  Returns the number
 * that the call's payload gave the communicator, 0 none.  rank, ranks: -1 unknown.  config: may be NULL.
 */
uint64_t sl_communicators_made(bool done, uint64_t handle, int rank, int ranks, const ncclConfig_t *config);
