/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the simulated GPU share. One process may hold two copies of this core (in libcuda.so.1 and in
 * libhsa-runtime64.so.1); they meet only in the device file (device.c) and in the journal's folder (journal.c).
 *
 * Locking: one mutex per process around everything behind a driver call, taken by sim_enter, dropped by sim_leave.
 * Functions here are called with it held unless they say otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_EXPORT	   __attribute__((visibility("default")))
#define SIM_MAX_DEVICES	   16
#define SIM_MAX_NEIGHBOURS 64
#define SIM_ARRAY_SIZE(a)  (sizeof(a) / sizeof((a)[0]))

/* The driver's codes. HIP uses the same numbers for those it shares. */
enum sim_error {
	SIM_OK = 0,
	SIM_INVALID_VALUE = 1,
	SIM_OUT_OF_MEMORY = 2,
	SIM_NOT_INITIALIZED = 3,
	SIM_NO_DEVICE = 100,
	SIM_INVALID_DEVICE = 101,
	SIM_INVALID_CONTEXT = 201,
	SIM_MAP_FAILED = 205,
	SIM_INVALID_HANDLE = 400,
	SIM_NOT_FOUND = 500,
	SIM_ILLEGAL_ADDRESS = 700,
	SIM_CONTEXT_IS_DESTROYED = 709,
	SIM_ALREADY_REGISTERED = 712,
	SIM_NOT_REGISTERED = 713,
	SIM_NOT_PERMITTED = 800,
	SIM_NOT_SUPPORTED = 801,
	SIM_CAPTURE_UNSUPPORTED = 900,
	SIM_CAPTURE_INVALIDATED = 901,
};

/* Kinds of memory, as the journal numbers them (journal.py has the same list). */
enum sim_kind {
	SIM_KIND_NONE,
	SIM_KIND_DEVICE,
	SIM_KIND_POOL,
	SIM_KIND_MANAGED,
	SIM_KIND_VMM,
	SIM_KIND_ARRAY,
	SIM_KIND_GRAPH,
	SIM_KIND_IMPORTED,
	SIM_KIND_HOST_PINNED,
	SIM_KIND_HOST_REGISTERED,
};

/* What a call does. A quiet one is in the journal only with SIM_JOURNAL_ALL=1. */
enum sim_verb { SIM_QUIET, SIM_ALLOC, SIM_FREE, SIM_OTHER };

enum sim_level {
	SIM_DRIVER = 0,	  /* cu*, hsa_*: where memory really changes */
	SIM_RUNTIME = 1,  /* cuda* of a shared libcudart, hip* */
	SIM_EMBEDDED = 2, /* cuda* of a static runtime: a tracer cannot see the call by name */
};

enum sim_effect { SIM_EFFECT_ALLOC = 1, SIM_EFFECT_FREE = 2, SIM_EFFECT_IMPLICIT = 3 };

/* One function of the simulated API; static, beside its call. */
struct sim_api {
	const char *name;
	uint8_t verb, level;
	uint16_t id;	     /* its name in the journal */
	uint32_t generation; /* of the journal that `id` belongs to */
	uint32_t rules_read;
	uint32_t calls;	       /* so far, for SIM_FAIL */
	struct sim_fail *fail; /* first rule for this name */
	uint64_t latency_ns;
};

struct sim_out {
	void *at;
	size_t size;
};

/* One call in progress; lives on the caller's stack. The fields above the line are set by the caller. */
struct sim_call {
	struct sim_api *api;
	struct sim_out out[4]; /* poisoned when the call fails */
	uint64_t address, bytes, other;
	int32_t device;
	uint8_t kind;
	uint8_t needs; /* 0 a context, 1 only cuInit, 2 nothing */
	/* ---- */
	int result;
	struct sim_ctx *ctx;
	struct sim_record *record;
	uint64_t number; /* of its record, from 1; 0 where it has none */
	struct sim_call *outer;
};

#define SIM_OUT(p)                                                                                                                 \
	{                                                                                                                          \
		(p), sizeof(*(p))                                                                                                  \
	}

/* Opens a driver function: the lock is held and the context known, or the function has returned. */
#define SIM_BEGIN(fn, api_verb, ...)                                                                                               \
	static struct sim_api sim_api_here = {.name = #fn, .verb = SIM_##api_verb, .level = SIM_DRIVER};                           \
	struct sim_call call = {.api = &sim_api_here, .device = -1, __VA_ARGS__};                                                  \
	if (sim_enter(&call))                                                                                                      \
	return sim_leave(&call, call.result)

#define SIM_RETURN(code) return sim_leave(&call, code)

/* enter.c */
int sim_enter(struct sim_call *call);		  /* locks; nonzero: call->result is the answer */
int sim_leave(struct sim_call *call, int result); /* unlocks, returns result */

/* call.c */
void sim_call_open(struct sim_call *call); /* journal, latency, injection: without lock or checks */
int sim_call_close(struct sim_call *call, int result);
void sim_call_drop_outer(void);

/* What the runtimes use of the driver beside its API, got by cuGetExportTable(sim_journal_uuid). */
struct sim_table {
	size_t size;
	void (*open)(struct sim_call *call); /* call->result holds an injected error */
	int (*close)(struct sim_call *call, int result);
};
/* ef0b67e2-...: the simulator's own table. */
static const unsigned char sim_journal_uuid[16]
	__attribute__((unused)) = {0xef, 0x0b, 0x67, 0xe2, 0x53, 0x49, 0x4d, 0x4a, 0x4f, 0x55, 0x52, 0x4e, 0x41, 0x4c, 0, 1};

static inline uint64_t sim_round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* Which processes NVML lists, and by which numbers: as on the host, as in a container that lists none or knows no number. */
enum sim_pids { SIM_PIDS_HOST, SIM_PIDS_NONE, SIM_PIDS_OTHERS, SIM_PIDS_SERVER };

/* settings.c */
struct sim_config {
	bool off; /* no device at all, and no file of the machine: a dry library outside of a dry run */
	int devices, neighbours;
	enum sim_pids pids;
	uint64_t neighbour_bytes; /* the most that each holds */
	uint64_t vram, ctx_bytes, granularity, pool_step, module_bytes, pinned_limit, latency_ns;
	bool journal_all, lazy_modules, mig, integrated;
	int driver_version;
};
extern struct sim_config sim_config;
struct sim_fail {
	char name[64];
	uint32_t first, count; /* calls first..first+count-1 fail */
	int code;
	struct sim_fail *next;
};
void sim_settings_read(void);
const char *sim_settings_folder(void); /* of the machine; NULL: a default */
struct sim_fail *sim_process_fail_rules(const char *name);
uint64_t sim_process_latency(const char *name);

/* process.c */
struct sim_process {
	bool initialized;    /* cuInit succeeded in this process */
	bool forked;	     /* cuInit was called before fork: every call fails here */
	uint32_t generation; /* counts forks */
};
extern struct sim_process sim_process;
void sim_process_check(void); /* notices a fork; reads the environment the first time; needs no lock */
void sim_lock(void);
void sim_unlock(void);

/* device.c: memory of the devices, shared by all processes of one SIM_DIR */
int sim_device_count(void);
int sim_device_physical(int ordinal);
int sim_device_take(int device, uint64_t bytes); /* physical bytes, whole granules; 0 or an error */
void sim_device_give(int device, uint64_t bytes);
int sim_device_charge(int device, uint64_t bytes, uint64_t *charge); /* an allocation: small ones share granules */
void sim_device_discharge(int device, uint64_t charge);
void sim_device_info(int device, uint64_t *free_bytes, uint64_t *total);
void sim_device_stir(int device); /* a neighbour allocates or frees; together they leave half of the device */
void sim_device_uuid(int device, unsigned char uuid[16]);
void sim_device_whole_uuid(int device, unsigned char uuid[16]);
void sim_device_pci(int device, char *text, size_t size);
int sim_device_processes(int device, int *pids, uint64_t *bytes, int max); /* with the host's pids; returns how many */
const char *sim_device_dir(void);
void sim_device_forget(void); /* in a forked child */

/* journal.c */
bool sim_journal_on(void);
void sim_journal_open_call(struct sim_call *call);
void sim_journal_close_call(struct sim_call *call);
void sim_journal_effect(struct sim_call *call, enum sim_effect effect, enum sim_kind kind, int device, uint64_t address,
			uint64_t bytes);
void sim_journal_forget(void);

/* object.c: whatever has an address or a handle */
enum sim_type {
	SIM_T_ANY,
	SIM_T_BLOCK,
	SIM_T_CTX,
	SIM_T_STREAM,
	SIM_T_EVENT,
	SIM_T_POOL,
	SIM_T_PHYSICAL,
	SIM_T_MAPPING,
	SIM_T_RESERVATION,
	SIM_T_ARRAY,
	SIM_T_MIPMAP,
	SIM_T_GRAPH,
	SIM_T_NODE,
	SIM_T_EXEC,
	SIM_T_EXTMEM,
	SIM_T_MODULE,
	SIM_T_RESOURCE,
};
struct sim_object {
	uint64_t key, span;
	enum sim_type type;
	struct sim_ctx *ctx; /* freed with this context; NULL: with none */
	struct sim_object *next, **link;
	void (*drop)(struct sim_object *self, struct sim_call *call); /* frees what it holds and itself */
};
void *sim_object_new(size_t size, enum sim_type type, struct sim_ctx *ctx); /* a handle: key is its address */
void sim_object_insert(struct sim_object *object);			    /* key, span, type set */
void sim_object_remove(struct sim_object *object);			    /* not freed */
void *sim_object_get(uint64_t key, enum sim_type type);			    /* the one that contains key */
void sim_object_each(enum sim_type type, void (*visit)(struct sim_object *, void *), void *arg);

/* attributes.c: a device's attributes */
extern const char sim_driver_text[]; /* the driver's version as NVML tells it */
void sim_device_name(char *name, size_t size, int physical);
int sim_device_attribute(int attribute, int physical); /* of CUdevice_attribute */

/* traps.c: addresses and contents of device memory */
uint64_t sim_va_take(int device, uint64_t bytes); /* LIFO per power of two */
void sim_va_give(int device, uint64_t address, uint64_t bytes);
void sim_va_back(uint64_t address, uint64_t bytes); /* a range was reserved for virtual memory */
void sim_contents_copy(uint64_t to, bool to_host, uint64_t from, bool from_host, uint64_t bytes);
void sim_contents_fill(uint64_t to, bool host, uint64_t value, size_t width, uint64_t count);
void sim_table_missing(const void *caller); /* an export table was asked for that is not here */

/* alloc.c */
struct sim_block {
	struct sim_object object; /* key: address */
	enum sim_kind kind;
	int device;	 /* -1: host */
	uint64_t bytes;	 /* asked for */
	uint64_t charge; /* of device memory */
	uint32_t flags;
	uint64_t id;
	void *host;	/* mapped memory to unmap */
	int references; /* IPC opens */
	struct sim_pool *pool;
	struct sim_node *node;
	uint64_t source; /* imported from */
	char *file;	 /* IPC file to remove */
};
struct sim_block *sim_block_add(struct sim_call *call, enum sim_kind kind, int device, uint64_t address, uint64_t bytes);
void sim_block_drop(struct sim_block *block, struct sim_call *call, enum sim_effect effect);
int sim_alloc_device(struct sim_call *call, int device, struct sim_ctx *ctx, uint64_t bytes, uint64_t *address);
int sim_alloc_managed(struct sim_call *call, int device, struct sim_ctx *ctx, uint64_t bytes, uint64_t *address);
int sim_alloc_host(struct sim_call *call, struct sim_ctx *ctx, uint64_t bytes, uint32_t flags, void **p);
int sim_free_device(struct sim_call *call, uint64_t address);
int sim_free_host(struct sim_call *call, uint64_t address);
int sim_register_host(struct sim_call *call, struct sim_ctx *ctx, void *p, uint64_t bytes, uint32_t flags);
int sim_unregister_host(struct sim_call *call, void *p);
uint64_t sim_array_bytes(uint64_t width, uint64_t height, uint64_t depth, unsigned format, unsigned channels);

/* context.c */
struct sim_ctx {
	struct sim_object object;
	int device;
	bool primary, active;
	int references;
	uint32_t flags;
	uint64_t charge;
	uint64_t limits[10], limit_charge;
	struct sim_object *owned;
	struct sim_stream *default_streams[2]; /* legacy; per thread is approximated by one per context */
};
struct sim_ctx *sim_ctx_current(void);
int sim_ctx_check_current(struct sim_ctx **out); /* 0, 201 or 709 */

/* stream.c, pool.c, graph.c */
struct sim_pool {
	struct sim_object object;
	int device;
	uint64_t reserved, taken, used, reserved_high, used_high, threshold;
	uint64_t flags[3];
	uint64_t max_size;
	int blocks;
	bool is_default, doomed, imported;
	int handle_types;
};
struct sim_pending {
	struct sim_pool *pool;
	uint64_t address, bytes;
	struct sim_pending *next;
};
struct sim_stream {
	struct sim_object object;
	uint32_t flags;
	int priority;
	uint64_t id;
	struct sim_pending *pending; /* freed in this stream, which may reuse it at once; others after a sync */
	struct sim_graph *capture;
	bool capture_broken;
};
struct sim_stream *sim_stream_of(struct sim_call *call, void *handle); /* NULL: invalid handle */
void sim_stream_complete(struct sim_stream *stream);
void sim_stream_complete_all(struct sim_ctx *ctx);
struct sim_pool *sim_pool_default(int device);
struct sim_pool *sim_pool_current(int device);
int sim_pool_alloc(struct sim_call *call, struct sim_pool *pool, struct sim_stream *stream, uint64_t bytes, uint64_t *out);
int sim_pool_free(struct sim_call *call, struct sim_block *block, struct sim_stream *stream);
void sim_pool_settle(struct sim_pool *pool, struct sim_pending *pending);
void sim_pool_shrink(struct sim_pool *pool, uint64_t keep);
int sim_graph_capture_alloc(struct sim_call *call, struct sim_graph *graph, int device, uint64_t bytes, uint64_t *out);
int sim_graph_capture_free(struct sim_call *call, struct sim_graph *graph, uint64_t address);
int sim_graph_free_block(struct sim_call *call, struct sim_block *block);
void sim_graph_block_gone(struct sim_block *block);
struct sim_graph *sim_graph_new(struct sim_ctx *ctx);
uint64_t sim_graph_id(struct sim_graph *graph);

/* vmm.c */
int sim_mapping_device(struct sim_object *mapping);
