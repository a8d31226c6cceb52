/* SPDX-License-Identifier: MIT */
#include "agent/hooks/fields.h"

#include <stdlib.h>

#include "agent/symbols/symbols.h"

/* --- contexts and versions ------------------------------------------------------------------------------ */

unsigned sl_fields_primary_gone(void *real, const char *state, int device)
{
	int (*get_state)(int, unsigned *, int *) = sl_resolve_beside(real, state);
	unsigned flags;
	int active = 1;

	sl_agent_begin(&sl_thread);
	if (!get_state || get_state(device, &flags, &active))
		active = 1;
	sl_agent_end(&sl_thread);
	return !active;
}

int sl_fields_device_of_handle(void *real, CUmemGenericAllocationHandle handle)
{
	int (*get)(CUmemAllocationProp *, CUmemGenericAllocationHandle) =
		handle ? sl_resolve_beside(real, "cuMemGetAllocationPropertiesFromHandle") : NULL;
	CUmemAllocationProp prop = {0};
	int saved = sl_agent_work_begin();

	if (!get || get(&prop, handle))
		prop.location.type = 0;
	sl_agent_work_end(saved);
	return DEVICE_OF(prop.location);
}

uint64_t sl_fields_pool(uint64_t pool, int device_plus_one)
{
	sl_device_remember(pool, device_plus_one);
	return pool;
}

/* One word of cache: the last function asked for (47 bits) and its version in units of `unit` (below 2^16). */
static int version_beside(void *real, const char *function, int unit, _Atomic uint64_t *last)
{
	uint64_t word = atomic_load_explicit(last, memory_order_relaxed);
	int (*get_version)(int *);
	int version = 0;

	if (word >> 16 == (uintptr_t)real)
		return (int)(word & 0xffff) * unit;
	get_version = sl_resolve_beside(real, function);
	if (!get_version || get_version(&version))
		return 0;
	atomic_store_explicit(last, (uint64_t)(uintptr_t)real << 16 | (uint64_t)(version / unit), memory_order_relaxed);
	return version / unit * unit;
}

int sl_fields_runtime_version(void *real)
{
	static _Atomic uint64_t last;

	return version_beside(real, "cudaRuntimeGetVersion", 10, &last);
}

int sl_fields_hip_device(void *real, const hipMemAllocationProp *prop)
{
	static _Atomic uint64_t last;
	const int major = 10000000;

	if (!prop || version_beside(real, "hipRuntimeGetVersion", major, &last) < 6 * major)
		return 0;
	return DEVICE_OF(prop->location);
}

/* --- NVML under --limit --------------------------------------------------------------------------------- */

static unsigned hex_digit(char c)
{
	return c >= 'a' ? (unsigned)(c - 'a' + 10) : (unsigned)(c - '0');
}

/* "GPU-8f9b1c2d-...": the 16 bytes as text. */
static bool same_uuid(const char *text, const unsigned char *bytes)
{
	for (unsigned i = 0; i < 16; i++) {
		while (*text == '-')
			text++;
		if (!text[0] || !text[1] || hex_digit(text[0]) * 16 + hex_digit(text[1]) != bytes[i])
			return false;
		text += 2;
	}
	return true;
}

/* NVML numbers all devices; CUDA numbers the visible ones in its own order.  The uuid tells which are the same. */
static int ordinal_of(void *real, nvmlDevice_t device)
{
	int (*get_text)(nvmlDevice_t, char *, unsigned) = sl_resolve_beside(real, "nvmlDeviceGetUUID");
	int (*get_count)(int *) = sl_resolve_in("libcuda.so", "cuDeviceGetCount");
	int (*get_uuid)(unsigned char *, int) = sl_resolve_in("libcuda.so", "cuDeviceGetUuid");
	unsigned char bytes[16];
	char text[96] = "";
	int count = 0;

	if (!get_text || !get_count || !get_uuid || get_text(device, text, sizeof(text)) || get_count(&count))
		return -1;
	for (int i = 0; i < count; i++)
		if (!get_uuid(bytes, i) && !strncmp(text, "GPU-", 4) && same_uuid(text + 4, bytes))
			return i;
	return -1;
}

/*
 * True when --limit is on.  A program may ask for free memory before it allocates any, so the first query of a process looks
 * for the setting, and starts the recording if it is set.
 */
static bool is_limited(void)
{
	static atomic_bool asked;

	if (SL_LIKELY(atomic_load_explicit(&asked, memory_order_relaxed)))
		return sl_limit_active;
	atomic_store_explicit(&asked, true, memory_order_relaxed);
	if (sl_options_variable("STORMLOG_LIMIT"))
		sl_preload_running();
	return sl_limit_active;
}

void sl_fields_nvml(void *real, nvmlDevice_t device, unsigned long long *total_bytes, unsigned long long *free_bytes,
		    unsigned long long *used_bytes)
{
	unsigned long long total_before = total_bytes ? *total_bytes : 0;

	if (!total_bytes || !free_bytes || !used_bytes || !is_limited())
		return;
	sl_limit_clamp(ordinal_of(real, device), (uint64_t *)free_bytes, (uint64_t *)total_bytes);
	if (*total_bytes != total_before)
		*used_bytes = *total_bytes - *free_bytes;
}

/* --- ROCm SMI and AMD SMI under --limit ------------------------------------------------------------------- */

/* "0000:c1:00.0" as both libraries number it: the domain from bit 32 on, bus, device and function from 8, 3 and 0. */
static bool is_pci(const char *text, uint64_t id)
{
	uint64_t part[3] = {0, 0, 0}; /* domain, bus, device */

	for (unsigned at = 0; at < 3 && *text && *text != '.'; text++)
		if (*text == ':')
			at++;
		else
			part[at] = part[at] << 4 | hex_digit((char)(*text | 0x20));
	return part[0] == id >> 32 && part[1] == (id >> 8 & 0xff) && part[2] == (id >> 3 & 0x1f);
}

/* These libraries number all devices; HIP numbers only the visible ones. */
static int hip_ordinal_of(uint64_t id)
{
	struct sl_vendor_device device;

	for (int i = 0; i < 64; i++) {
		sl_vendor_describe(SL_VENDOR_HIP, i, &device);
		if (!*device.pci)
			break;
		if (is_pci(device.pci, id))
			return i;
	}
	return -1;
}

static void clamp_vram(uint64_t id, uint64_t real_total, uint64_t *total_bytes, uint64_t *used_bytes)
{
	uint64_t total = total_bytes ? *total_bytes : real_total, free_bytes;

	if (used_bytes && total <= *used_bytes)
		return;
	free_bytes = used_bytes ? total - *used_bytes : total;
	sl_limit_clamp(hip_ordinal_of(id), &free_bytes, &total);
	if (used_bytes && total != real_total)
		*used_bytes = total - free_bytes;
	if (total_bytes)
		*total_bytes = total;
}

void sl_fields_rocm_smi(void *real, uint32_t device, unsigned type, uint64_t *total_bytes, uint64_t *used_bytes)
{
	int (*get_id)(uint32_t, uint64_t *) = sl_resolve_beside(real, "rsmi_dev_pci_id_get");
	int (*get_total)(uint32_t, unsigned, uint64_t *) = sl_resolve_beside(real, "rsmi_dev_memory_total_get");
	uint64_t id, total;

	if (type || (!total_bytes && !used_bytes) || !is_limited() || !get_id || !get_total || get_id(device, &id) ||
	    get_total(device, type, &total))
		return;
	clamp_vram(id, total, total_bytes, used_bytes);
}

void sl_fields_amd_smi(void *real, amdsmi_processor_handle device, unsigned type, uint64_t *total_bytes, uint64_t *used_bytes)
{
	int (*get_id)(void *, uint64_t *) = sl_resolve_beside(real, "amdsmi_get_gpu_bdf_id");
	int (*get_total)(void *, unsigned, uint64_t *) = sl_resolve_beside(real, "amdsmi_get_gpu_memory_total");
	uint64_t id, total;

	if (type || (!total_bytes && !used_bytes) || !is_limited() || !get_id || !get_total || get_id(device, &id) ||
	    get_total(device, type, &total))
		return;
	clamp_vram(id, total, total_bytes, used_bytes);
}

void sl_fields_amd_smi_usage(void *real, amdsmi_processor_handle device, amdsmi_vram_usage_t *usage)
{
	uint64_t total, used;

	if (!usage)
		return;
	total = (uint64_t)usage->vram_total << 20;
	used = (uint64_t)usage->vram_used << 20;
	sl_fields_amd_smi(real, device, 0, NULL, &used);
	sl_fields_amd_smi(real, device, 0, &total, NULL);
	usage->vram_total = (uint32_t)(total >> 20);
	usage->vram_used = (uint32_t)(used >> 20);
}

/*
 * A driver gives no version above its own, whatever was requested: asked for cuMulticastBindMem at 13010, a 13.0 driver returns
 * the form of 12010.
 */
static int known_version(void *found, int version)
{
	static atomic_int driver;
	int driver_version = atomic_load_explicit(&driver, memory_order_relaxed);
	int (*get_version)(int *);

	if (!driver_version) {
		get_version = sl_resolve_beside(found, "cuDriverGetVersion");
		if (!get_version || get_version(&driver_version))
			return version;
		atomic_store_explicit(&driver, driver_version, memory_order_relaxed);
	}
	return version < driver_version ? version : driver_version;
}

void sl_fields_by_version(const char *base, void **found, int version, uint64_t flags, enum sl_family family)
{
	if (!base || !found || !*found || sl_hooks_is_wrapper(*found))
		return;
	if (family == SL_FAMILY_cuda_driver)
		version = known_version(*found, version);
	*found = sl_hooks_wrap_version(base, version, flags, family, *found);
}

/* --- --limit -------------------------------------------------------------------------------------------- */

bool sl_fields_asked(enum sl_family family, const void *caller, const void *free_bytes)
{
	bool limited = is_limited();

	if (!sl_torch_sets_fraction(family, caller) && free_bytes)
		sl_early_notes_free_asked();
	return limited;
}
