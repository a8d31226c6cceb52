/* SPDX-License-Identifier: MIT */
/*
 * Device-wide figures come from NVML, which the writer thread asks, or for AMD from the kernel driver's sysfs.  Without either, a
 * thread of the application asks cuMemGetInfo right after a call of its own, at most once an interval, since it has a context
 * then.  The writer thread has no context; to borrow one (cuCtxPushCurrent of the application's, or a retained primary context)
 * would race with its destruction.
 *
 * A device without memory of its own (GB10, Jetson, an APU) uses the host's, and NVML refuses to tell it.  Its free memory is then
 * what /proc/meminfo calls available: cuMemGetInfo counts the host's file cache as used.
 */
#include "agent/file/file.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "agent/gpu/gpu.h"
#include "agent/process/process.h"
#include "agent/symbols/symbols.h"
#include "common/now.h"
#include "common/text.h"

/* Structures of nvml.h, whose licence does not permit a copy; sizes are part of the interface. */
struct memory_v1 {
	unsigned long long total, free, used;
};
struct memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};
struct process_v1 {
	unsigned pid;
	unsigned long long bytes;
};
struct process_v2 { /* of _v2 and _v3 */
	unsigned pid;
	unsigned long long bytes;
	unsigned gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct memory_v2) == 40 && sizeof(struct process_v2) == 24, "nvml.h");

#define MEMORY_V2     (sizeof(struct memory_v2) | 2u << 24)
#define NOT_AVAILABLE UINT64_MAX
#define NOT_SUPPORTED 3		    /* the device has no memory of its own */
#define UNINITIALIZED 1		    /* the program has shut NVML down for us too */
#define INVALID	      2		    /* the handle is of before that */
#define AGAIN_NS      1000000000ull /* how often it is begun again at most: the program may go on shutting it down */

static int (*init)(void);
static int (*by_uuid)(const char *, struct sl_nvml_device **);
static int (*by_pci)(const char *, struct sl_nvml_device **);
static int (*memory_v2)(struct sl_nvml_device *, struct memory_v2 *);
static int (*memory_v1)(struct sl_nvml_device *, struct memory_v1 *);
static int (*running)(struct sl_nvml_device *, unsigned *, void *);
static bool running_is_v1;

/* The C library's dlsym: ours would return wrappers that obey --limit. */
static void *symbol(void *library, const char *name)
{
	void *(*real)(void *, const char *) = sl_resolve_dlsym();

	return real ? real(library, name) : NULL;
}

static const char *try_open(void)
{
	void *(*open_library)(const char *, int) = sl_resolve_symbol("dlopen");
	void *library;

	if (!open_library)
		return "the program has no dlopen";
	if (sl_sanitizers_present())
		return "beside a sanitizer or valgrind no library is opened";
	library = open_library("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
	if (!library)
		return "libnvidia-ml.so.1 cannot be loaded";
	init = symbol(library, "nvmlInit_v2");
	by_uuid = symbol(library, "nvmlDeviceGetHandleByUUID");
	by_pci = symbol(library, "nvmlDeviceGetHandleByPciBusId_v2");
	memory_v2 = symbol(library, "nvmlDeviceGetMemoryInfo_v2");
	memory_v1 = symbol(library, "nvmlDeviceGetMemoryInfo");
	running = symbol(library, "nvmlDeviceGetComputeRunningProcesses_v3");
	if (!running)
		running = symbol(library, "nvmlDeviceGetComputeRunningProcesses_v2");
	if (!running && (running = symbol(library, "nvmlDeviceGetComputeRunningProcesses")))
		running_is_v1 = true;
	if (!init || !memory_v1)
		return "libnvidia-ml.so.1 lacks what we need";
	return init() ? "nvmlInit failed" : NULL;
}

/* Opens NVML, once.  NULL: it works; else why it does not, in a few words. */
static const char *open_nvml(void)
{
	static bool tried;
	static const char *why;

	if (!tried) {
		sl_objects_use_begin(true);
		why = try_open();
		sl_objects_use_end();
	}
	tried = true;
	return why;
}

/* The device of that uuid ("GPU-...", "MIG-...") or PCI id; NULL: NVML does not know it. */
static struct sl_nvml_device *find_nvml(const char *uuid, const char *pci)
{
	struct sl_nvml_device *device = NULL;

	if (*uuid && by_uuid && !by_uuid(uuid, &device))
		return device;
	/* a MIG instance is not found by PCI id, which names the whole device */
	if (strncmp(uuid, "MIG", 3) && *pci && by_pci && !by_pci(pci, &device))
		return device;
	return NULL;
}

static int read_memory(struct sl_nvml_device *device, struct sl_device_sample *sample)
{
	struct memory_v2 v2 = {.version = MEMORY_V2};
	struct memory_v1 v1;
	int error;

	if (memory_v2 && !memory_v2(device, &v2)) {
		sample->total_bytes = v2.total;
		sample->free_bytes = v2.free;
		sample->used_bytes = v2.used;
		return 0;
	}
	if ((error = memory_v1(device, &v1)))
		return error;
	sample->total_bytes = v1.total;
	sample->free_bytes = v1.free;
	sample->used_bytes = v1.used;
	return 0;
}

static void take(struct sl_device_sample *sample, const void *list, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const struct process_v1 *v1 = &((const struct process_v1 *)list)[i];
		const struct process_v2 *v2 = &((const struct process_v2 *)list)[i];
		uint64_t pid = running_is_v1 ? v1->pid : v2->pid, bytes = running_is_v1 ? v1->bytes : v2->bytes;

		if (bytes != NOT_AVAILABLE)
			sl_sample_add(sample, pid, bytes);
	}
}

static void read_processes(struct sl_nvml_device *device, struct sl_device_sample *sample)
{
	static struct process_v2 list[512];
	unsigned count = SL_COUNT(list);

	if (!running || running(device, &count, list) || count > SL_COUNT(list))
		return;
	take(sample, list, count);
	sl_sample_listed(sample);
}

/* True: the standard descriptors are open, so that a library's files, which stay open, get none of their numbers. */
static bool file_has_standard(void)
{
	int fd = 0;

	while (fd <= STDERR_FILENO && syscall(SYS_fcntl, fd, F_GETFD) >= 0)
		fd++;
	return fd > STDERR_FILENO;
}

static bool begin_again(void)
{
	static uint64_t begun_ns;
	uint64_t now_ns = sl_now_kernel_ns(CLOCK_MONOTONIC);

	if ((begun_ns && now_ns - begun_ns < AGAIN_NS) || !file_has_standard()) /* its files would get those numbers */
		return false;
	begun_ns = now_ns;
	return !init();
}

static bool nvml_sample(struct sl_nvml_device **device, const char *uuid, const char *pci, struct sl_device_sample *sample)
{
	struct sl_nvml_device *found;
	int error;

	memset(sample, 0, sizeof(*sample));
	error = read_memory(*device, sample);
	if (((error == UNINITIALIZED && begin_again()) || error == INVALID) && (found = find_nvml(uuid, pci))) {
		*device = found;
		error = read_memory(found, sample);
	}
	if (error && error != NOT_SUPPORTED)
		return false;
	read_processes(*device, sample);
	return true;
}

#define DEVICES	     64
#define HANDLES_LOG2 12

enum source { SOURCE_UNDECIDED, SOURCE_NVML, SOURCE_AMDGPU, SOURCE_MEMINFO, SOURCE_CALLERS };

enum state { UNUSED, DESCRIBING, USED };

struct device {
	/* enum state; aligned so that every call finds it by the device's number without a multiplication */
	_Alignas(256) _Atomic unsigned state;
	_Atomic unsigned due; /* the next caller takes a sample */
	struct sl_vendor_device is;
	enum source source; /* writer thread only, like the rest */
	struct sl_nvml_device *nvml;
	uint64_t kfd; /* KFD's number of the device; 0: it has none */
};

static struct device devices[SL_VENDOR_COUNT][DEVICES];
static _Atomic uint64_t handles[1u << HANDLES_LOG2]; /* handle << 8 | device + 1, by the handle's hash */
static _Atomic unsigned has_handles;
static _Atomic unsigned news;	  /* a device came into use */
static _Atomic unsigned is_child; /* NVML was opened in the parent and does not survive fork */
static bool nvml_opened;
static bool processes_said, full_said; /* written once in a recording: the source of process lists, and that a list is too long */

/* --- maps ------------------------------------------------------------------------------------------- */

#define MAP_MAX 2048 /* 64 processes of a sample, or the names of a device */

static void add_known_text(struct sl_definition *map, const char *key, const char *value)
{
	if (*value)
		sl_definition_text(map, key, value);
}

/* --- in the calling thread -------------------------------------------------------------------------- */

/* Notes how many devices there are, so that the analyzer knows whether others could have been used. */
static void tell_devices(enum sl_vendor vendor)
{
	char number[24];
	struct sl_text text = sl_text_begin(number, sizeof(number));
	unsigned count = sl_vendor_devices(vendor);

	sl_text_add_number(&text, count);
	if (count)
		sl_capability_write("visible_devices", number);
}

static void describe(struct device *device, int ordinal, enum sl_vendor vendor)
{
	uint8_t bytes[MAP_MAX];
	struct sl_definition map;

	sl_vendor_describe(vendor, ordinal, &device->is);
	map = sl_definition_begin(bytes, sizeof(bytes), "device");
	sl_definition_uint(&map, "ns", sl_agent_now());
	sl_definition_uint(&map, "ordinal", (uint64_t)ordinal);
	add_known_text(&map, "family", vendor == SL_VENDOR_HIP ? "hip" : "cuda");
	add_known_text(&map, "name", device->is.name);
	add_known_text(&map, "uuid", device->is.uuid);
	add_known_text(&map, "pci", device->is.pci);
	sl_hostmem_add(&map, "total_bytes", device->is.total_bytes ? device->is.total_bytes : SL_HOSTMEM_UNKNOWN);
	sl_define_publish(&map);
	tell_devices(vendor);
}

/* Wakes a recording that sleeps when a device becomes nearly full, but not again while it stays so. */
#define NEARLY_FULL 50 /* less than 1/NEARLY_FULL of it is free */

static void look_whether_full(int ordinal, uint64_t free_bytes, uint64_t total_bytes)
{
	static _Atomic uint64_t full; /* a bit for each ordinal */
	uint64_t mine = 1ull << (ordinal & 63);

	if (!total_bytes || free_bytes > total_bytes / NEARLY_FULL)
		atomic_fetch_and(&full, ~mine);
	else if (!(atomic_fetch_or(&full, mine) & mine))
		sl_asleep_rouse("a device is nearly full");
}

/* The figure is of some instant between begin_ns and now: what came and went meanwhile is not hidden memory. */
static void begin_sample(struct sl_definition *map, int ordinal, const char *source, uint64_t begin_ns, uint64_t free_bytes,
			 uint64_t total_bytes, uint64_t used_bytes)
{
	look_whether_full(ordinal, free_bytes, total_bytes);
	sl_definition_uint(map, "ns", sl_agent_now());
	sl_definition_uint(map, "begin_ns", begin_ns);
	sl_definition_uint(map, "device", (uint64_t)ordinal);
	sl_definition_uint(map, "free_bytes", free_bytes);
	sl_hostmem_add(map, "total_bytes", total_bytes);
	sl_definition_uint(map, "used_bytes", used_bytes);
	add_known_text(map, "source", source);
}

static void publish_sample(int ordinal, const char *source, uint64_t begin_ns, uint64_t free_bytes, uint64_t total_bytes)
{
	uint8_t bytes[MAP_MAX];
	struct sl_definition map = sl_definition_begin(bytes, sizeof(bytes), "sample");

	begin_sample(&map, ordinal, source, begin_ns, free_bytes, total_bytes, total_bytes - free_bytes);
	sl_define_publish(&map);
}

static SL_NOINLINE void sample_here(int ordinal, enum sl_vendor vendor)
{
	struct sl_mute mute = sl_mute_begin(); /* a handler that left the driver by longjmp would leave its locks */
	uint64_t free_bytes, total_bytes, begin_ns = sl_agent_now();

	if (sl_vendor_current(vendor).device == ordinal && sl_vendor_memory(vendor, &free_bytes, &total_bytes))
		publish_sample(ordinal, vendor == SL_VENDOR_HIP ? "hipMemGetInfo" : "cuMemGetInfo", begin_ns, free_bytes,
			       total_bytes);
	sl_mute_end(&mute);
}

static SL_NOINLINE void first_used(struct device *device, int ordinal, enum sl_vendor vendor)
{
	struct sl_mute mute = sl_mute_begin();
	unsigned unused = UNUSED;

	if (atomic_compare_exchange_strong(&device->state, &unused, DESCRIBING)) {
		describe(device, ordinal, vendor);
		atomic_store_explicit(&device->state, USED, memory_order_release);
		atomic_store(&news, 1);
		sl_agent_ask();
	}
	sl_mute_end(&mute);
}

SL_HOT void sl_device_used(int ordinal, enum sl_family family)
{
	enum sl_vendor vendor = sl_vendor_of(family);
	struct device *device = &devices[vendor][(unsigned)ordinal % DEVICES];

	if (ordinal < 0 || ordinal >= DEVICES)
		return;
	if (SL_UNLIKELY(atomic_load_explicit(&device->state, memory_order_acquire) != USED))
		first_used(device, ordinal, vendor);
	else if (SL_UNLIKELY(atomic_load_explicit(&device->due, memory_order_relaxed)) && atomic_exchange(&device->due, 0))
		sample_here(ordinal, vendor);
}

SL_HOT struct sl_vendor_context sl_device_current(enum sl_family family)
{
	return sl_vendor_current(sl_vendor_of(family));
}

int sl_device_of_pointer(enum sl_family family, uint64_t address)
{
	return sl_vendor_device_of(sl_vendor_of(family), address);
}

static _Atomic uint64_t *word_of(uint64_t handle)
{
	return &handles[handle * 0x9e3779b97f4a7c15ull >> (64 - HANDLES_LOG2)];
}

void sl_device_remember(uint64_t handle, int device_plus_one)
{
	if (!handle)
		return;
	atomic_store_explicit(word_of(handle), handle << 8 | (uint8_t)device_plus_one, memory_order_relaxed);
	atomic_store_explicit(&has_handles, 1, memory_order_relaxed);
}

static int remembered(uint64_t handle)
{
	uint64_t word = atomic_load_explicit(word_of(handle), memory_order_relaxed);

	return handle && word >> 8 == handle << 8 >> 8 ? (int8_t)word : 0;
}

int sl_device_named(uint64_t pool, uint64_t stream)
{
	int device_plus_one = remembered(pool);

	return device_plus_one ? device_plus_one : remembered(stream);
}

uint64_t sl_device_size_of(enum sl_family family, uint64_t address)
{
	return sl_vendor_size_of(sl_vendor_of(family), address);
}

bool sl_device_capturing(enum sl_family family, uint64_t stream, uint64_t *graph)
{
	return sl_vendor_capturing(sl_vendor_of(family), stream, graph);
}

uint64_t sl_device_free_bytes(enum sl_family family)
{
	uint64_t free_bytes, total_bytes;

	return sl_vendor_memory(sl_vendor_of(family), &free_bytes, &total_bytes) ? free_bytes : 0;
}

/* Reads the memory of the device that had no room.  False: no call that is safe now can. */
static bool memory_of(int ordinal, enum sl_vendor vendor, uint64_t *free_bytes, uint64_t *total_bytes)
{
	struct device *device = ordinal >= 0 && ordinal < DEVICES ? &devices[vendor][ordinal] : NULL;
	uint64_t used_bytes;

	if ((ordinal < 0 || sl_vendor_current(vendor).device == ordinal) && sl_vendor_memory(vendor, free_bytes, total_bytes))
		return true;
	/* HIP with a pending error is not asked, but the kernel is */
	if (vendor != SL_VENDOR_HIP || !device || atomic_load(&device->state) != USED ||
	    !sl_amdgpu_memory(device->is.pci, &used_bytes, total_bytes))
		return false;
	*free_bytes = *total_bytes - used_bytes;
	return true;
}

void sl_device_oom(uint32_t thread, uint64_t seq, int device, enum sl_family family, enum sl_kind kind, uint64_t now_ns)
{
	uint64_t free_bytes = 0, total_bytes = 0;
	struct sl_hostmem memory;
	int saved = errno;
	uint8_t bytes[MAP_MAX];
	struct sl_definition map;

	/* this may be the process's only call for this device, whose identity shows who else uses it */
	if (sl_vendor_of(family) == SL_VENDOR_CUDA && !sl_event_kinds[kind].on_host)
		sl_device_used(device, family);
	map = sl_definition_begin(bytes, sizeof(bytes), "oom");
	sl_definition_uint(&map, "ns", now_ns);
	sl_definition_uint(&map, "thread", thread);
	sl_definition_uint(&map, "seq", seq);
	if (device >= 0 && !sl_event_kinds[kind].on_host)
		sl_definition_uint(&map, "device", (uint64_t)device);
	if ((kind == SL_KIND_none || !sl_event_kinds[kind].on_host) &&
	    memory_of(device, sl_vendor_of(family), &free_bytes, &total_bytes)) {
		/* as the program sees it under --limit */
		sl_limit_clamp(device, &free_bytes, &total_bytes);
		sl_definition_uint(&map, "free_bytes", free_bytes);
		sl_hostmem_add(&map, "total_bytes", total_bytes);
	}
	sl_hostmem_read(&sl_hostmem_self, &memory);
	sl_hostmem_add(&map, "vm_bytes", memory.vm_bytes);
	sl_hostmem_add(&map, "vm_limit_bytes", sl_hostmem_limit());
	sl_hostmem_add(&map, "rss_bytes", memory.rss_bytes);
	sl_hostmem_add(&map, "cgroup_bytes", memory.cgroup_bytes);
	sl_hostmem_add(&map, "cgroup_limit_bytes", memory.cgroup_limit_bytes);
	sl_define_publish(&map);
	errno = saved;
}

/* --- in the writer thread --------------------------------------------------------------------------- */

/*
 * The memory that an integrated device shares with the host.  False: it is not known, as on a machine of several such devices,
 * each of which has a part of the host's memory.
 */
static bool read_shared_memory(const struct device *device, struct sl_device_sample *sample)
{
	uint64_t total, available;

	if (!device->is.integrated || sl_open_proc_sandboxed() || !sl_hostmem_machine(&total, &available) ||
	    (device->is.total_bytes && device->is.total_bytes < total / 2))
		return false;
	sample->total_bytes = device->is.total_bytes ?: total;
	sample->free_bytes = available < sample->total_bytes ? available : sample->total_bytes;
	sample->used_bytes = sample->total_bytes - sample->free_bytes;
	return true;
}

static void decide(struct device *device, enum sl_vendor vendor)
{
	static const char *const names[] = {[SOURCE_NVML] = "nvml", [SOURCE_AMDGPU] = "amdgpu", [SOURCE_MEMINFO] = "meminfo"};
	struct sl_device_sample sample;
	const char *why = NULL;
	uint64_t used, total;

	device->source = SOURCE_CALLERS;
	if (vendor == SL_VENDOR_HIP) {
		if (sl_amdgpu_memory(device->is.pci, &used, &total))
			device->source = SOURCE_AMDGPU;
		if (device->source == SOURCE_AMDGPU)
			device->kfd = sl_amdgpu_kfd(device->is.pci);
	} else if (atomic_load(&is_child)) {
		why = "NVML was opened before fork and cannot be used in the child";
	} else if (!sl_objects_trusted()) {
		why = "the process was forked while another thread held the loader's lock";
	} else if (!file_has_standard()) {
		why = "a standard descriptor of the program is closed, and a file of NVML's would get its number";
	} else {
		nvml_opened = true;
		why = open_nvml();
		if (!why && (device->nvml = find_nvml(device->is.uuid, device->is.pci)))
			device->source = SOURCE_NVML;
		else if (!why)
			why = "NVML does not know the device";
	}
	if (device->source == SOURCE_NVML && nvml_sample(&device->nvml, device->is.uuid, device->is.pci, &sample) &&
	    !sample.total_bytes) {
		device->source = SOURCE_CALLERS;
		why = "NVML does not tell this device's";
	}
	if (device->source == SOURCE_CALLERS && read_shared_memory(device, &sample))
		device->source = SOURCE_MEMINFO;
	sl_capability_write("device_source", device->source != SOURCE_CALLERS ? names[device->source]
					     : vendor == SL_VENDOR_HIP	      ? "hipMemGetInfo"
									      : "cuMemGetInfo");
	if (why && device->source == SOURCE_CALLERS) {
		char line[160];
		struct sl_text text = sl_text_begin(line, sizeof(line));

		sl_text_add(&text, "device-wide memory is sampled at calls of the program only: ");
		sl_text_add(&text, why);
		sl_define_note(line);
	}
}

static void publish_shared(int ordinal, const char *source, uint64_t begin_ns, const struct sl_device_sample *sample)
{
	uint8_t bytes[MAP_MAX];
	struct sl_definition map = sl_definition_begin(bytes, sizeof(bytes), "sample");

	begin_sample(&map, ordinal, source, begin_ns, sample->free_bytes, sample->total_bytes, sample->used_bytes);
	if (sample->own_bytes)
		sl_hostmem_add(&map, "process_bytes", sample->own_bytes);
	if (sample->has_processes) {
		sl_definition_key(&map, "processes");
		sl_pack_array(&map.pack, sample->count);
		for (unsigned i = 0; i < sample->count; i++) {
			sl_pack_array(&map.pack, 2);
			sl_pack_uint(&map.pack, sample->processes[i].pid);
			sl_pack_uint(&map.pack, sample->processes[i].bytes);
		}
	}
	sl_define_publish(&map);
}

/* source: as named in samples; processes: the source of the process list. */
static void take_shared(int ordinal, const char *source, const char *processes, uint64_t live, uint64_t begin_ns,
			const struct sl_device_sample *sample)
{
	uint64_t after;
	char text[64];
	struct sl_text value = sl_text_begin(text, sizeof(text));

	publish_shared(ordinal, source, begin_ns, sample);
	sl_text_add(&value, processes);
	if (!sample->own_bytes)
		sl_text_add(&value, sample->has_processes ? " does not list this process" : "'s pids are of another namespace");
	if (!processes_said)
		sl_capability_write("device_processes", text);
	processes_said = true;
	if (sample->full && !full_said)
		sl_define_note("more than 64 processes are on a device: samples have the 64 that were listed first");
	full_said = full_said || sample->full;
	/* only where no block came or went while NVML was asked */
	if (sl_limit_active && (sample->own_bytes || (sample->has_processes && !sample->full)) && sl_limit_live(ordinal, &after) &&
	    live == after)
		sl_limit_overhead(ordinal, sample->own_bytes, live);
}

static void sample_device(struct device *device, int ordinal, enum sl_vendor vendor, bool last)
{
	uint64_t live, begin_ns;
	struct sl_device_sample sample;

	if (device->source == SOURCE_UNDECIDED && (last || sl_open_proc_sandboxed()))
		return;
	if (device->source == SOURCE_UNDECIDED)
		decide(device, vendor);
	if (!sl_limit_live(ordinal, &live))
		live = UINT64_MAX; /* a block comes or goes: equals no other value */
	begin_ns = sl_agent_now();
	switch (device->source) {
	case SOURCE_NVML:
		if (!sl_open_proc_sandboxed() && nvml_sample(&device->nvml, device->is.uuid, device->is.pci, &sample))
			take_shared(ordinal, "nvml", "nvml", live, begin_ns, &sample);
		break;
	case SOURCE_AMDGPU:
		if (sl_open_proc_sandboxed() || !sl_amdgpu_sample(device->is.pci, device->kfd, &sample))
			break;
		if (device->kfd)
			take_shared(ordinal, "amdgpu", "kfd", live, begin_ns, &sample);
		else
			publish_shared(ordinal, "amdgpu", begin_ns, &sample);
		break;
	case SOURCE_MEMINFO:
		if (!device->nvml || sl_open_proc_sandboxed() ||
		    !nvml_sample(&device->nvml, device->is.uuid, device->is.pci, &sample))
			sample = (struct sl_device_sample){0};
		if (!read_shared_memory(device, &sample))
			break;
		if (device->nvml)
			take_shared(ordinal, "meminfo", "nvml", live, begin_ns, &sample);
		else
			publish_shared(ordinal, "meminfo", begin_ns, &sample);
		break;
	default:
		atomic_store(&device->due, 1);
	}
}

void sl_device_sample_host(uint64_t now_ns)
{
	struct sl_hostmem memory;
	uint8_t bytes[MAP_MAX];
	struct sl_definition map;

	sl_hostmem_follow(&sl_hostmem_self);
	sl_hostmem_read(&sl_hostmem_self, &memory);
	map = sl_hostmem_sample(bytes, sizeof(bytes), &memory, now_ns);
	sl_define_publish(&map);
}

static void sample_all(uint64_t now_ns, bool last)
{
	for (enum sl_vendor vendor = 0; vendor < SL_VENDOR_COUNT; vendor++)
		for (int ordinal = 0; ordinal < DEVICES; ordinal++)
			if (atomic_load_explicit(&devices[vendor][ordinal].state, memory_order_acquire) == USED)
				sample_device(&devices[vendor][ordinal], ordinal, vendor, last);
	sl_device_sample_host(now_ns);
}

void sl_device_sample(uint64_t now_ns)
{
	sample_all(now_ns, false);
}

void sl_device_sample_last(uint64_t now_ns)
{
	sample_all(now_ns, true);
}

bool sl_device_news(void)
{
	return atomic_load_explicit(&news, memory_order_relaxed) && atomic_exchange(&news, 0);
}

void sl_device_child(void)
{
	if (nvml_opened)
		atomic_store(&is_child, 1);
	memset(devices, 0, sizeof(devices));
	if (atomic_load(&has_handles)) /* else a child would have unused pages */
		memset(handles, 0, sizeof(handles));
	atomic_store(&has_handles, 0);
	processes_said = full_said = false;
	sl_hostmem_child();
}
