/* SPDX-License-Identifier: MIT */
/*
 * NVTX and roctx: what nvtx.def and roctx.def are expanded into.  A call reaches us by NVTX 3's injected callbacks (nvtx.c), by
 * the exported functions of NVTX 2 and roctx (hooks.c), or by both, since NVTX 2 takes an injection too.  The innermost of them
 * records it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/hooks/communicators.h"
#include "agent/call/labels.h"

/* nvtxEventAttributes_t as far as all versions have it; the program's may be longer. */
struct sl_nvtx_attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, payload_count; /* number of payloads where the type is SL_NVTX_PAYLOAD_EXTENDED */
	const struct sl_payload *payload;
	int32_t message_type; /* SL_NVTX_MESSAGE_* */
	int32_t unused;
	const void *message;
};

enum { SL_NVTX_PAYLOAD_EXTENDED = (int32_t)0xdfbd0009 };
enum { SL_NVTX_MESSAGE_ASCII = 1, SL_NVTX_MESSAGE_WIDE = 2, SL_NVTX_MESSAGE_REGISTERED = 3 };

/* domain: the handle that the caller of NVTX holds, NULL the default domain. */
struct sl_labels_entry sl_nvtx_ascii(const void *domain, const char *text);
struct sl_labels_entry sl_nvtx_wide(const void *domain, const wchar_t *text);
struct sl_labels_entry sl_nvtx_attributes(const void *domain, const struct sl_nvtx_attributes *attributes);
uint64_t sl_nvtx_schema(const void *domain, const struct sl_payload_schema *schema, uint64_t known);
void sl_nvtx_payload(const void *domain, const struct sl_payload *payloads, size_t count);

/* A small number for the domain, for the stack of open ranges; 0 the default domain. */
unsigned sl_nvtx_domain(const void *domain);

/* A domain or a registered string was made.  `handle` is the tool's; NULL: there is no tool, and the handle returned is ours. */
void *sl_nvtx_created(void *handle, const char *name);
void *sl_nvtx_created_wide(void *handle, const wchar_t *name);
void *sl_nvtx_registered(void *handle, struct sl_labels_entry label);
int sl_nvtx_destroyed(const void *domain);

/* How many calls were recorded on this thread. */
extern __thread uint32_t sl_nvtx_delivered __attribute__((tls_model("initial-exec")));

/*
 * Wraps InitializeInjectionNvtx2 of a module that includes NVTX.  tool: that function in the injection library of the user's
 * choice, NULL none; its callbacks are wrapped.
 */
typedef const void *sl_nvtx_export_table(uint32_t id);
int sl_nvtx_initialize(sl_nvtx_export_table *export_table, int (*tool)(sl_nvtx_export_table *));

/* InitializeInjectionNvtxExtension: gets nvtxExtModuleInfo_t, of which only the payload extension is used. */
struct sl_nvtx_extension {
	uint16_t version, size, module, compatible;
	size_t segment_count;
	const struct {
		size_t id, count;
		void **slots;
	} * segments;
	void *get_export_function;
	const void *info;
};
int sl_nvtx_initialize_extension(struct sl_nvtx_extension *extension, int (*tool)(struct sl_nvtx_extension *));
