/* SPDX-License-Identifier: MIT */
/* What we ask of devices ourselves. */
#pragma once

#include "agent/process/process.h"

/* One reading of a device's memory, and of each process's part, by a source that sees all processes: NVML or AMD's driver. */

#define SL_SAMPLE_PROCESSES 64

struct sl_device_sample {
	/* used: by all processes, without reserved memory if the source distinguishes it */
	uint64_t total_bytes, free_bytes, used_bytes;
	bool has_processes; /* the list below is complete, or full, and its pids are of our namespace */
	bool full;	    /* there were more processes than fit */
	unsigned count;
	struct {
		uint64_t pid, bytes;
	} processes[SL_SAMPLE_PROCESSES]; /* processes whose bytes are known */
	uint64_t own_bytes;		  /* bytes of this process; 0: unknown */
};

/* Adds a process, where there is room. */
void sl_sample_add(struct sl_device_sample *sample, uint64_t pid, uint64_t bytes);

/* Called when the list is complete: decides whether its pids are of our namespace, and which one is ours. */
void sl_sample_listed(struct sl_device_sample *sample);

/*
 * Memory of an AMD device from sysfs: amdgpu's mem_info_vram_* of the PCI device, and what each process holds of it in KFD's
 * folders (Linux 5.9). No library, no context.
 */

/* Finds the device with that PCI id; false: the kernel does not show it. */
bool sl_amdgpu_memory(const char *pci, uint64_t *used_bytes, uint64_t *total_bytes);

/* KFD's number of the device with that PCI id; 0: it has none. */
uint64_t sl_amdgpu_kfd(const char *pci);

/* kfd 0: without its processes.  Writer thread. */
bool sl_amdgpu_sample(const char *pci, uint64_t kfd, struct sl_device_sample *sample);

/*
 * Asks the driver (CUDA) or the runtime (HIP) about devices, through the real functions, which are found once without the loader's
 * lock.  None makes a context.  For a thread that is inside the agent (sl_agent_begin), after a real call of the family has
 * returned.
 *
 * HIP before 7 forgets a pending error (hipGetLastError) at the next call that succeeds, so while one is pending HIP is not asked:
 * the answers are then "unknown", or the thread's last known device.  CUDA's driver has no such state.
 */

/* Families belong to two vendors: the runtime and the driver of CUDA number the same devices. */
enum sl_vendor { SL_VENDOR_CUDA, SL_VENDOR_HIP, SL_VENDOR_COUNT };

static inline enum sl_vendor sl_vendor_of(enum sl_family family)
{
	return family == SL_FAMILY_hip || family == SL_FAMILY_hsa ? SL_VENDOR_HIP : SL_VENDOR_CUDA;
}

struct sl_vendor_context {
	int device;	  /* its ordinal; -1 unknown */
	uint64_t context; /* 0 unknown */
};

struct sl_vendor_device {
	char name[128], uuid[48], pci[32]; /* "" unknown; uuid as NVML and rocm-smi write it, MIG-... for a MIG instance */
	uint64_t total_bytes;		   /* 0 unknown */
	bool integrated;		   /* it has no memory of its own: the host's is its memory (GB10, Jetson, APUs) */
};
unsigned sl_vendor_devices(enum sl_vendor vendor); /* number of devices that the process sees; 0 unknown */
bool sl_vendor_integrated(enum sl_vendor vendor, int ordinal);
void sl_vendor_describe(enum sl_vendor vendor, int ordinal, struct sl_vendor_device *device);

/* A context ends, or did so unseen: its handle may be another's. */
void sl_vendor_forget(void);

/* Device of the calling thread. */
struct sl_vendor_context sl_vendor_current(enum sl_vendor vendor);
int sl_vendor_device_of(enum sl_vendor vendor, uint64_t address);

/* Size of the allocation that begins at this address; 0 unknown. */
uint64_t sl_vendor_size_of(enum sl_vendor vendor, uint64_t address);

/* A capture of CUDA's has begun in this process: before, no stream is asked whether it is captured. */
extern _Atomic bool sl_vendor_captures;

/* The stream is being captured: an allocation on it is a node of *graph (0 unknown). */
bool sl_vendor_capturing(enum sl_vendor vendor, uint64_t stream, uint64_t *graph);

/* Memory of the current context's device; safe during stream capture.  False: it cannot be asked now. */
bool sl_vendor_memory(enum sl_vendor vendor, uint64_t *free_bytes, uint64_t *total_bytes);

/*
 * Memory of devices and of the process: samples, and what can be known when a call runs out of memory.  Everything is published by
 * sl_define_publish as `device`, `sample`, `oom` and `capability` maps (doc/trace-format.md).
 */

/*
 * Calling thread, right after a successful real call: notes that device `ordinal` of this family is in use.  Cheap if that is
 * known; the first time the device is described, by calls that need no context.  Without NVML it also takes the samples that are
 * due, by the real cuMemGetInfo.
 */
void sl_device_used(int ordinal, enum sl_family family);

/*
 * Writer thread, every device_interval ms: one sample of the process and its cgroup, stamped now_ns, and one of each device
 * in use, stamped when it was asked.
 */
void sl_device_sample(uint64_t now_ns);

/* Writer thread.  True: a device has come into use since the last call; it is sampled at once. */
bool sl_device_news(void);

/*
 * Writer thread, before the footer: takes a last sample, so that even a short run has figures of its end.  The process is ending,
 * so nothing is opened, and a source that no sample has used is not used now.
 */
void sl_device_sample_last(uint64_t now_ns);

/* Any thread, if there is no writer: samples only the process and its cgroup. */
void sl_device_sample_host(uint64_t now_ns);

/*
 * Calling thread, after the real call returned out of memory; the thread owns a context.  Publishes the `oom`
 * map: free and total by the real cuMemGetInfo/hipMemGetInfo (not during stream capture; not for host scopes),
 * VmSize, RLIMIT_AS, RSS, cgroup.  May make system calls; restores errno.
 */
void sl_device_oom(uint32_t thread, uint64_t seq, int device, enum sl_family family, enum sl_kind kind, uint64_t now_ns);

/* Device and context of the calling thread, by the real driver; cheap, no context is made. */
struct sl_vendor_context sl_device_current(enum sl_family family);

/* Device that owns this address (stream-ordered, managed): cuPointerGetAttribute; -1 unknown. */
int sl_device_of_pointer(enum sl_family family, uint64_t address);

/*
 * Remembers where a pool or stream lies, for the calls that name it alone: device + 1, 0 unknown, SL_NO_DEVICE the host.  Of very
 * many handles some are forgotten.
 */
void sl_device_remember(uint64_t handle, int device_plus_one);

/* Where an allocation from this pool (0: the stream's device's own) on this stream lies, in the same form. */
int sl_device_named(uint64_t pool, uint64_t stream);

/* Size of the block that begins at this address, for imported memory, whose call has no size; 0 unknown. */
uint64_t sl_device_size_of(enum sl_family family, uint64_t address);

/* The stream is being captured: what is allocated or freed on it are nodes of *graph (0 unknown). */
bool sl_device_capturing(enum sl_family family, uint64_t stream, uint64_t *graph);

/* Free bytes of the current device, for the calls that create contexts and modules; 0: not safe to ask now. */
uint64_t sl_device_free_bytes(enum sl_family family);

void sl_device_child(void); /* after fork in the child: forget handles and threads' state */

/*
 * STORMLOG_INJECT_OOM and STORMLOG_LIMIT: failures on demand.  Off: one load of sl_limit_active on the path of an
 * allocation and nothing else.  On, limit.c keeps the process's live bytes per device, the one place in the
 * agent that does (doc/architecture.md says why).
 */

extern bool sl_limit_active SL_HIDDEN;

void sl_limit_start(const struct sl_options *options); /* at the first GPU call */

/*
 * Called when an allocating call of the application begins (the outermost of its class).  True: it is to fail.  Then the driver
 * call inside it fails or, if there is none, the call itself.
 */
bool sl_limit_injects(unsigned api, enum sl_kind kind, uint64_t bytes);

/* Bytes of a call under way that count as live: of an allocation that may succeed, or of a block that may be freed. */
struct sl_limit_claim {
	uint64_t bytes;	  /* 0: none */
	uint64_t context; /* of the block that is freed; 0: not known */
	int device;
	bool pool;	 /* of a pool's block */
	bool is_in_slot; /* the slot of its event also has the claim (sl_limit_keep) */
};

/*
 * Called before a driver-level (or HIP) allocation of device memory.  True: it exceeds the limit.  Otherwise its bytes are claimed
 * in the same step, so that two threads cannot both take the last room.
 */
bool sl_limit_refuses(int device, enum sl_kind kind, uint64_t bytes, struct sl_limit_claim *claim);

/*
 * What the driver does, for the table of live blocks.  Called after an allocation, whose claim becomes the block; and before a
 * free, whose block becomes a claim until the call has returned.
 */
void sl_limit_allocated(struct sl_vendor_context place, enum sl_kind kind, uint64_t address, uint64_t bytes,
			struct sl_limit_claim *claim);
void sl_limit_freed(enum sl_kind kind, uint64_t address, struct sl_limit_claim *claim);

/* The primary context of place.device is place.context. */
void sl_limit_primary(struct sl_vendor_context place);

/* The context is gone, and its blocks with it: with context 0 the primary one of the device, else place.device is not looked at. */
void sl_limit_context_gone(struct sl_vendor_context place);

/* Drops the claim: the allocation failed, or the block was freed. */
void sl_limit_release(struct sl_limit_claim *claim);

/*
 * A claim is kept in the slot of its event too, because the stack of an unwound call belongs to the program again.  Whoever
 * takes the claim out of the slot must drop it.  `word` holds one claim, 0 none.
 */
static inline void sl_limit_keep(struct sl_limit_claim *claim, uint64_t *word)
{
	if (!claim->bytes || *word)
		return;
	claim->is_in_slot = true;
	*word = claim->bytes << 8 | (uint64_t)claim->pool << 7 | (uint8_t)claim->device;
}

static inline uint64_t sl_limit_take_kept(uint64_t *word)
{
	return __atomic_exchange_n(word, 0, __ATOMIC_RELAXED);
}

static inline void sl_limit_release_kept(uint64_t *word)
{
	uint64_t packed = sl_limit_take_kept(word);
	struct sl_limit_claim claim = {.bytes = packed >> 8, .device = packed & 0x7f, .pool = packed >> 7 & 1};

	sl_limit_release(&claim);
}

/*
 * Clamps to the limit what the program asked about memory, after the real call succeeded: the same for cuMemGetInfo,
 * cuDeviceTotalMem, device properties and NVML. Pointers may be NULL; device -1 is the calling thread's. Clamped figures are not
 * changed again.
 */
void sl_limit_clamp(int device, uint64_t *free_bytes, uint64_t *total_bytes);

/* Live bytes on the device, as counted for the limit; 0 without a limit.  False: a block comes or goes at this moment. */
bool sl_limit_live(int device, uint64_t *bytes);

/*
 * Writer thread, from NVML: the process held process_bytes on the device (0: it is not listed) while its blocks were live_bytes
 * before and after, so the difference (context, modules) counts inside the limit from now on, without what its pools may keep.
 */
void sl_limit_overhead(int device, uint64_t process_bytes, uint64_t live_bytes);

/*
 * Device memory from NVIDIA's management library: of all processes together, and of each.  Writer thread only: it opens
 * libnvidia-ml.so.1 (RTLD_LAZY | RTLD_LOCAL). NVML makes no context.
 */

struct sl_nvml_device;
