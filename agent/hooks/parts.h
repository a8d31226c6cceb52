/* SPDX-License-Identifier: MIT */
/* What the files of agent/hooks offer to each other and to the rows. */
#pragma once

#include <alloca.h>

#include "agent/life/life.h"
#include "common/vendor_abi.h"

/*
 * What NCCL reports of its communicators: their number, rank, size and device, and the bytes of each collective.  It reports
 * them as NVTX payloads (binary data whose fields a schema names), even where NCCL is linked statically.  Only the names come
 * from elsewhere: NCCL's configuration.  Each communicator is defined once in a recording, and again when its name is known.
 *
 * Schemas and payloads: nvToolsExtPayload.h of NVIDIA's nvtx 13.5.  Names of the fields: NCCL 2.16 to 2.32; before 2.24 no
 * communicator is given.  Everything concerns the calling thread and needs no allocation or lock.
 */

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

/* given_id: the id that the user's tool gave the schema, 0 none.  Returns the schema's id. */
uint64_t sl_communicators_schema(unsigned domain, const struct sl_payload_schema *schema, uint64_t given_id);

struct sl_instant_details sl_communicators_payload(unsigned domain, const struct sl_payload *payloads, size_t count);

/*
 * Called before and after an NCCL call that makes a communicator, on its thread.  done: the call succeeded.  Returns the number
 * that the call's payload gave the communicator, 0 none.  rank, ranks: -1 unknown.  config: may be NULL.
 */
uint64_t sl_communicators_made(bool done, uint64_t handle, int rank, int ranks, const ncclConfig_t *config);

/*
 * Keeps the agent in programs that this one starts.  Trainers set LD_PRELOAD for their workers (torch_memory_saver and the
 * reinforcement learning frameworks around it) and so overwrite what the launcher set; the agent is put in front of the new
 * value. Where LD_PRELOAD is removed, the child runs without the agent, and one note in the trace says so.
 *
 * Safe in a vfork child: no lock, no allocation; the new environment lies on the caller's stack.  Where it would take much of that
 * the stack must be the thread's own: a vfork child may have been given a small one.
 */

/* Bytes that sl_children_fill needs; 0: the environment needs no change. */
size_t sl_children_room(char *const *envp);
char *const *sl_children_fill(char *const *envp, void *room, size_t bytes);

/* To be called in the function that passes envp on. */
#define SL_CHILDREN_KEEP(envp)                                                                                                     \
	do {                                                                                                                       \
		size_t room_ = sl_children_room(envp);                                                                             \
                                                                                                                                   \
		if (room_)                                                                                                         \
			envp = sl_children_fill(envp, alloca(room_), room_);                                                       \
	} while (0)

/* Our wrapper of that function of the C library; NULL: we have none. */
void *sl_exits_wrapper(const char *name);

/* ggml's buffers and tensors, for the rows of ggml.def.  real: the function of the library that `buffer` belongs to. */

void sl_ggml_named(unsigned api, const void *real, void *buffer); /* NULL: there is none */
void sl_ggml_used(unsigned api, const void *real, void *buffer);
void sl_ggml_tensor(unsigned api, const void *real, void *buffer, const void *tensor, uint64_t address);
void sl_ggml_freed(unsigned api, const void *real, void *buffer);

/*
 * NVTX and roctx: what nvtx.def and roctx.def are expanded into.  A call reaches us by NVTX 3's injected callbacks (nvtx.c), by
 * the exported functions of NVTX 2 and roctx (hooks.c), or by both, since NVTX 2 takes an injection too.  The innermost of them
 * records it.
 */

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
uint64_t sl_nvtx_schema(const void *domain, const struct sl_payload_schema *schema, uint64_t given_id);
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

/* Copies of PJRT's table with some functions replaced, and what the rows of pjrt.def do.  plugin: index of the plugin's table. */

struct sl_pjrt_execute;

/* The table to hand out instead of `real`; `real` itself where its layout is not known. */
const void *sl_pjrt_table(const void *real);

void sl_pjrt_made(unsigned plugin, unsigned api, const void *buffer, const char *how);
void sl_pjrt_executed(unsigned plugin, unsigned api, const struct sl_pjrt_execute *args);
void sl_pjrt_gone(unsigned api, const void *buffer);
/* A framework asks for the code of an error of a call, or of one that failed later; one for want of memory is recorded. */
void sl_pjrt_refused(unsigned plugin, unsigned api, const void *error, int code);
void sl_pjrt_loaded(unsigned plugin, const void *executable);
void sl_pjrt_unloaded(const void *executable);

/* Questions to a plugin about what a call made; used by pjrt.c. */

#define SL_PJRT_PLUGINS 4
#define SL_PJRT_NAME	192u /* bytes; longer names of arrays are cut */

struct sl_pjrt_api;

/* pjrt_table.c: the plugin's own table. */
const struct sl_pjrt_api *sl_pjrt_real(unsigned plugin);

/* Indexes in the table of the functions that are asked; a plugin that lacks one is left alone. */
extern const unsigned sl_pjrt_question[];
extern const size_t sl_pjrt_questions;

/*
 * Names of PJRT's arrays.  To write a shape as text costs more than the rest of an event; programs have few shapes, so names
 * are kept.
 */

#define SL_PJRT_RANK_MAX 6 /* arrays with more dimensions have their names made each time */

/* Everything that a name is made of.  Unused dimensions are 0. */
struct sl_pjrt_key {
	uint64_t origin; /* one number for each host origin, and for each output of each executable */
	uint64_t bytes;
	uint32_t type, rank;
	int64_t dims[SL_PJRT_RANK_MAX];
};

/* Which real function a wrapper calls: by name, ABI version and caller. */

/*
 * A row has up to SL_HOOK_INSTANCES wrappers, because one process may hold several real functions of one name (libcudart.so.11.0
 * beside .so.13).  Instance 0 is the exported one, which finds its real function per caller.  Look-ups hand out the others, one per
 * real function.
 */
#define SL_HOOK_INSTANCES 4

/*
 * The wrapper to hand out instead of `real`, which a look-up of the exact exported name has found (dlsym, cuGetProcAddress,
 * ...). Returns `real` itself when the name is not ours or all instances are taken.  Lock-free, any thread, also before the
 * constructor has run.
 */
void *sl_hooks_wrap(const char *name, void *real);

/* The same for a driver or HIP entry point asked for by base name and version: picks the ABI variant. */
void *sl_hooks_wrap_version(const char *base, int version, uint64_t flags, enum sl_family family, void *real);

/* The row that wraps this exported name, of any family that is looked up by name; SL_API_none if there is none. */
unsigned sl_hooks_find(const char *name);

/* True when the address is one of our wrappers. */
bool sl_hooks_is_wrapper(const void *address);

/*
 * The real function that instance `instance` of row `api` calls when it is called from `caller`; NULL: nobody provides it.  A
 * few loads where the caller is known.
 */
void *sl_hooks_real(unsigned api, unsigned instance, const void *caller);

/* hooks.c: distance from each element itself to the wrapper of instance 1, 2, 3; 0 none. */
extern const int32_t sl_hook_entries[][3] __attribute__((visibility("hidden")));

/* Whether blocks of a framework's allocator are recorded (--tensors).  Asking may begin the recording. */

/* --tensors cpu; it is asked before there is a recording and does not begin one. */
bool sl_tensors_of_cpu(void);

static inline bool sl_tensors_wanted(void)
{
	return sl_preload_running() && sl_agent->options.tensors != SL_TENSORS_OFF;
}

/* The same for allocators that may be of host memory, which alone does not begin a recording. */
static inline bool sl_tensors_wanted_anywhere(void)
{
	return (atomic_load_explicit(&sl_agent->generation, memory_order_relaxed) || sl_tensors_of_cpu()) && sl_tensors_wanted();
}

/* Names the module of PyTorch's that the thread's blocks are made in from now on, "layers.12.mlp"; NULL: none. */
void sl_torch_within(const char *module);

/* PyTorch's allocator, for rows of other tables. */

/* Bounds of the code of the library that reports CUDA blocks; end 0: none has reported yet. */
extern struct sl_torch_code {
	uintptr_t begin, bytes;
} sl_torch_code SL_HIDDEN;

void sl_torch_event_seen(unsigned api, uint64_t event);

/* True: PyTorch's allocator (up to 2.9) asks for free memory because the program sets its memory fraction, which is recorded. */
bool sl_torch_sets_fraction(enum sl_family family, const void *caller);

/* After a call about an event succeeded: records it if PyTorch's allocator made the call.  Any thread. */
static inline void sl_torch_event(unsigned api, uint64_t event, const void *caller)
{
	if (SL_UNLIKELY((uintptr_t)caller - __atomic_load_n(&sl_torch_code.begin, __ATOMIC_RELAXED) <
			__atomic_load_n(&sl_torch_code.bytes, __ATOMIC_RELAXED)))
		sl_torch_event_seen(api, event);
}
