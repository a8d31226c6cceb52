/* SPDX-License-Identifier: MIT */
#include "agent/gpu/gpu.h"
#include "agent/symbols/symbols.h"
#include "common/text.h"

/* A row for each function: name, prototype.  Numbers from cuda.h and hip/hip_runtime_api.h stand where they are used. */
#define CUDA_FUNCTIONS(ROW)                                                                                                        \
	ROW(cuCtxGetCurrent, (void **context))                                                                                     \
	ROW(cuCtxGetDevice, (int *device))                                                                                         \
	ROW(cuDeviceGetCount, (int *count))                                                                                        \
	ROW(cuDeviceGetName, (char *name, int size, int device))                                                                   \
	ROW(cuDeviceGetUuid, (unsigned char *uuid, int device))                                                                    \
	ROW(cuDeviceGetUuid_v2, (unsigned char *uuid, int device))                                                                 \
	ROW(cuDeviceGetPCIBusId, (char *text, int size, int device))                                                               \
	ROW(cuDeviceGetAttribute, (int *value, int attribute, int device))                                                         \
	ROW(cuDeviceTotalMem_v2, (size_t * bytes, int device))                                                                     \
	ROW(cuMemGetInfo_v2, (size_t * free_bytes, size_t * total))                                                                \
	ROW(cuPointerGetAttribute, (void *value, int attribute, uint64_t address))                                                 \
	ROW(cuMemGetAddressRange_v2, (uint64_t * base, size_t * bytes, uint64_t address))                                          \
	ROW(cuStreamIsCapturing, (void *stream, int *status))                                                                      \
	ROW(cuStreamGetCaptureInfo_v2, (void *stream, int *status, uint64_t *id, void **graph, void *deps, void *n))               \
	ROW(cuThreadExchangeStreamCaptureMode, (int *mode))

#define HIP_FUNCTIONS(ROW)                                                                                                         \
	ROW(hipGetDevice, (int *device))                                                                                           \
	ROW(hipPeekAtLastError, (void))                                                                                            \
	ROW(hipRuntimeGetVersion, (int *version))                                                                                  \
	ROW(hipGetDeviceCount, (int *count))                                                                                       \
	ROW(hipDeviceGetName, (char *name, int size, int device))                                                                  \
	ROW(hipDeviceGetUuid, (unsigned char *uuid, int device))                                                                   \
	ROW(hipDeviceGetPCIBusId, (char *text, int size, int device))                                                              \
	ROW(hipDeviceGetAttribute, (int *value, int attribute, int device))                                                        \
	ROW(hipDeviceTotalMem, (size_t * bytes, int device))                                                                       \
	ROW(hipMemGetInfo, (size_t * free_bytes, size_t * total))                                                                  \
	ROW(hipPointerGetAttribute, (void *value, int attribute, uint64_t address))                                                \
	ROW(hipMemGetAddressRange, (uint64_t * base, size_t * bytes, uint64_t address))                                            \
	ROW(hipStreamIsCapturing, (void *stream, int *status))                                                                     \
	ROW(hipStreamGetCaptureInfo_v2, (void *stream, int *status, uint64_t *id, void **graph, void *deps, void *n))              \
	ROW(hipThreadExchangeStreamCaptureMode, (int *mode))

/*
 * A search for a missing function takes a microsecond or two.  It is repeated after a library was opened, and now and then in
 * case we did not see that.
 */
#define ASKED_IN_VAIN 1024u

static SL_NOINLINE void *find(const char *library, const char *name, _Atomic uint64_t *saved, _Atomic uint64_t *absent,
			      uint64_t unloads)
{
	uint64_t loads = atomic_load(&sl_objects_loads) << 16, word = atomic_load_explicit(absent, memory_order_relaxed);
	void *found;

	if (word > loads && word < loads + ASKED_IN_VAIN) {
		atomic_store_explicit(absent, word + 1, memory_order_relaxed);
		return NULL;
	}
	found = sl_resolve_in(library, name);
	sl_objects_keep(saved, found, unloads);
	atomic_store_explicit(absent, found ? 0 : loads + 1, memory_order_relaxed);
	return found;
}

/*
 * Found at the first use: the library is loaded by then, since one of its functions was called.  It may be unloaded and
 * loaded again.
 */
#define SAVED(name, prototype, library)                                                                                            \
	static int(*name(void)) prototype                                                                                          \
	{                                                                                                                          \
		static _Atomic uint64_t saved, absent;                                                                             \
		uint64_t unloads = atomic_load_explicit(&sl_objects_unloads, memory_order_acquire);                                \
		void *cached = sl_objects_kept(&saved, unloads);                                                                   \
                                                                                                                                   \
		return (int(*) prototype)(SL_LIKELY(cached) ? cached : find(library, #name, &saved, &absent, unloads));            \
	}
#define CUDA(name, prototype) SAVED(name, prototype, "libcuda.so")
#define HIP(name, prototype)  SAVED(name, prototype, "libamdhip64.so")
CUDA_FUNCTIONS(CUDA)
HIP_FUNCTIONS(HIP)

/* True: the function exists and reports success. */
#define OK(name, ...)                                                                                                              \
	({                                                                                                                         \
		__typeof__(name()) found = name();                                                                                 \
		found &&found(__VA_ARGS__) == 0;                                                                                   \
	})

static __thread int hip_device = -1; /* the thread's device when it was last read */

static bool hip_is_quiet(void)
{
	static _Atomic int keeps_errors; /* 0: not known yet, 1: yes, -1: no */
	int keeps = atomic_load_explicit(&keeps_errors, memory_order_relaxed), version = 0;

	if (!keeps) {
		/*
		 * Major version times ten million.  Asking for it is a call that succeeds, so it is done only when no error
		 * is pending.
		 */
		if (!OK(hipPeekAtLastError))
			return false;
		keeps = OK(hipRuntimeGetVersion, &version) && version >= 70000000 ? 1 : -1;
		atomic_store_explicit(&keeps_errors, keeps, memory_order_relaxed);
	}
	return keeps > 0 || OK(hipPeekAtLastError);
}

static SL_NOINLINE struct sl_vendor_context hip_current(void)
{
	if (hip_is_quiet() && !OK(hipGetDevice, &hip_device))
		hip_device = -1;
	return (struct sl_vendor_context){hip_device, 0};
}

static _Atomic uint64_t contexts_ended = 1;

void sl_vendor_forget(void)
{
	atomic_fetch_add(&contexts_ended, 1);
}

/* A context is one device's for as long as it lives: only the first question in a context is about its device. */
SL_HOT struct sl_vendor_context sl_vendor_current(enum sl_vendor vendor)
{
	static __thread struct {
		uint64_t ended;
		struct sl_vendor_context last;
	} cached;
	uint64_t ended = atomic_load_explicit(&contexts_ended, memory_order_relaxed);
	void *context = NULL;
	int device;

	if (vendor == SL_VENDOR_HIP)
		return hip_current();
	if (!OK(cuCtxGetCurrent, &context) || !context)
		return (struct sl_vendor_context){-1, 0};
	if (SL_LIKELY(cached.ended == ended && cached.last.context == (uintptr_t)context))
		return cached.last;
	if (!OK(cuCtxGetDevice, &device))
		return (struct sl_vendor_context){-1, (uintptr_t)context};
	cached.ended = 0;
	atomic_signal_fence(memory_order_seq_cst); /* a signal handler's call may come in between */
	cached.last = (struct sl_vendor_context){device, (uintptr_t)context};
	atomic_signal_fence(memory_order_seq_cst);
	cached.ended = ended;
	return (struct sl_vendor_context){device, (uintptr_t)context};
}

int sl_vendor_device_of(enum sl_vendor vendor, uint64_t address)
{
	enum { DEVICE_ORDINAL = 9 }; /* both vendors' POINTER_ATTRIBUTE_DEVICE_ORDINAL */
	int ordinal = -1;
	bool answered = vendor == SL_VENDOR_CUDA ? OK(cuPointerGetAttribute, &ordinal, DEVICE_ORDINAL, address)
						 : hip_is_quiet() && OK(hipPointerGetAttribute, &ordinal, DEVICE_ORDINAL, address);

	return answered ? ordinal : -1;
}

uint64_t sl_vendor_size_of(enum sl_vendor vendor, uint64_t address)
{
	uint64_t base = 0;
	size_t bytes = 0;
	bool answered = vendor == SL_VENDOR_CUDA ? OK(cuMemGetAddressRange_v2, &base, &bytes, address)
						 : hip_is_quiet() && OK(hipMemGetAddressRange, &base, &bytes, address);

	return answered && base == address ? bytes : 0;
}

_Atomic bool sl_vendor_captures;

bool sl_vendor_capturing(enum sl_vendor vendor, uint64_t stream, uint64_t *graph)
{
	enum { LEGACY = 1, ACTIVE = 1 }; /* CU_STREAM_LEGACY; CU_STREAM_CAPTURE_STATUS_ACTIVE */
	void *handle = (void *)(uintptr_t)stream, *captured = NULL;
	int status = 0;

	*graph = 0;
	/* The legacy stream cannot be captured, and asking about it while another one is gives an error. */
	if (stream <= LEGACY)
		return false;
	if (vendor == SL_VENDOR_CUDA) {
		if (!atomic_load_explicit(&sl_vendor_captures, memory_order_relaxed) || !OK(cuStreamIsCapturing, handle, &status) ||
		    status != ACTIVE)
			return false;
		if (!OK(cuStreamGetCaptureInfo_v2, handle, &status, NULL, &captured, NULL, NULL))
			captured = NULL;
	} else {
		if (!hip_is_quiet() || !OK(hipStreamIsCapturing, handle, &status) || status != ACTIVE)
			return false;
		if (!OK(hipStreamGetCaptureInfo_v2, handle, &status, NULL, &captured, NULL, NULL))
			captured = NULL;
	}
	*graph = (uintptr_t)captured;
	return true;
}

bool sl_vendor_memory(enum sl_vendor vendor, uint64_t *free_bytes, uint64_t *total_bytes)
{
	enum { RELAXED = 2 }; /* CU_STREAM_CAPTURE_MODE_RELAXED: this thread's calls do not disturb a capture */
	int mode = RELAXED;
	size_t left, total;
	bool answered;

	if (vendor == SL_VENDOR_CUDA) {
		bool exchanged = OK(cuThreadExchangeStreamCaptureMode, &mode);

		answered = OK(cuMemGetInfo_v2, &left, &total);
		if (exchanged)
			cuThreadExchangeStreamCaptureMode()(&mode);
	} else {
		bool exchanged;

		if (!hip_is_quiet())
			return false;
		exchanged = OK(hipThreadExchangeStreamCaptureMode, &mode);
		answered = OK(hipMemGetInfo, &left, &total);
		if (exchanged)
			hipThreadExchangeStreamCaptureMode()(&mode);
	}
	if (answered) {
		*free_bytes = left;
		*total_bytes = total;
	}
	return answered;
}

static void uuid_text(char *out, size_t size, const char *prefix, const unsigned char *bytes)
{
	static const char hex[] = "0123456789abcdef";
	struct sl_text text = sl_text_begin(out, size);

	sl_text_add(&text, prefix);
	for (unsigned i = 0; i < 16; i++) {
		char two[2] = {hex[bytes[i] >> 4], hex[bytes[i] & 15]};

		if (i == 4 || i == 6 || i == 8 || i == 10)
			sl_text_add(&text, "-");
		sl_text_add_bytes(&text, two, 2);
	}
}

/* The first form names the whole device, the second the MIG instance, if there is one. */
static void cuda_uuid(int ordinal, char *out, size_t size)
{
	unsigned char whole[16], instance[16];
	bool has_whole = OK(cuDeviceGetUuid, whole, ordinal), has_instance = OK(cuDeviceGetUuid_v2, instance, ordinal);

	if (has_whole && has_instance && memcmp(whole, instance, 16))
		uuid_text(out, size, "MIG-", instance);
	else if (has_whole || has_instance)
		uuid_text(out, size, "GPU-", has_whole ? whole : instance);
}

unsigned sl_vendor_devices(enum sl_vendor vendor)
{
	int count = 0;

	if (vendor == SL_VENDOR_CUDA ? !OK(cuDeviceGetCount, &count) : !hip_is_quiet() || !OK(hipGetDeviceCount, &count))
		return 0;
	return count > 0 ? (unsigned)count : 0;
}

bool sl_vendor_integrated(enum sl_vendor vendor, int ordinal)
{
	enum {
		CUDA_INTEGRATED = 18,
		HIP_INTEGRATED = 16
	}; /* CU_DEVICE_ATTRIBUTE_INTEGRATED; hipDeviceAttributeIntegrated of HIP 5 */
	int value = 0;
	bool answered = vendor == SL_VENDOR_CUDA ? OK(cuDeviceGetAttribute, &value, CUDA_INTEGRATED, ordinal)
						 : hip_is_quiet() && OK(hipDeviceGetAttribute, &value, HIP_INTEGRATED, ordinal);

	return answered && value;
}

void sl_vendor_describe(enum sl_vendor vendor, int ordinal, struct sl_vendor_device *device)
{
	unsigned char uuid[16];
	size_t total = 0;

	memset(device, 0, sizeof(*device));
	device->integrated = sl_vendor_integrated(vendor, ordinal);
	if (vendor == SL_VENDOR_CUDA) {
		if (!OK(cuDeviceGetName, device->name, sizeof(device->name), ordinal))
			*device->name = 0;
		if (!OK(cuDeviceGetPCIBusId, device->pci, sizeof(device->pci), ordinal))
			*device->pci = 0;
		cuda_uuid(ordinal, device->uuid, sizeof(device->uuid));
		device->total_bytes = OK(cuDeviceTotalMem_v2, &total, ordinal) ? total : 0;
		return;
	}
	if (!hip_is_quiet())
		return;
	if (!OK(hipDeviceGetName, device->name, sizeof(device->name), ordinal))
		*device->name = 0;
	if (!OK(hipDeviceGetPCIBusId, device->pci, sizeof(device->pci), ordinal))
		*device->pci = 0;
	/* AMD's 16 bytes are text already: "GPU-" and 16 hexadecimal digits, of which it stores the digits. */
	if (OK(hipDeviceGetUuid, uuid, ordinal)) {
		struct sl_text text = sl_text_begin(device->uuid, sizeof(device->uuid));
		size_t length = 0;

		while (length < 16 && strchr("0123456789abcdef", uuid[length]) && uuid[length])
			length++;
		if (length == 16) {
			sl_text_add(&text, "GPU-");
			sl_text_add_bytes(&text, (const char *)uuid, 16);
		} else
			uuid_text(device->uuid, sizeof(device->uuid), "GPU-", uuid);
	}
	device->total_bytes = OK(hipDeviceTotalMem, &total, ordinal) ? total : 0;
}
