/* SPDX-License-Identifier: MIT */
#include "agent/hooks/fields.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/gpu/device.h"
#include "agent/preload.h"
#include "agent/hooks/table.h"
#include "agent/gpu/limit.h"
#include "agent/record.h"
#include "agent/symbols/resolve.h"
#include "agent/gpu/vendor.h"

/* --- arrays --------------------------------------------------------------------------------------------- */

#define ARRAY_CUBEMAP	       0x04
#define ARRAY_SPARSE	       0x40 /* no memory of its own: mapped later */
#define ARRAY_DEFERRED_MAPPING 0x80

/*
 * Bits of one element for the formats of CUarray_format.  Formats with their own layout name all their channels;
 * the planar video formats count a pixel of all planes; block-compressed ones are done apart.
 */
static unsigned element_bits(unsigned format, unsigned channels)
{
	switch (format) {
	case 0x01:
	case 0x08:
		return 8 * channels;
	case 0x02:
	case 0x09:
	case 0x10:
		return 16 * channels;
	case 0x03:
	case 0x0a:
	case 0x20:
		return 32 * channels;
	case 0x50:
		return 32; /* 10:10:10:2 */
	case 0xb0:
		return 12; /* NV12, 4:2:0 of 8 bits */
	case 0x9f:
	case 0xa1:
		return 24; /* P010, P016 */
	case 0xa0:
	case 0xa2:
		return 32;
	default:
		break;
	}
	if (format >= 0xc0 && format <= 0xcb) { /* UNORM and SNORM, 8 and 16 bits, 1, 2 and 4 channels */
		unsigned bits = (format - 0xc0) / 3 % 2 ? 16 : 8;

		return bits << (format - 0xc0) % 3;
	}
	return 32 * (channels ? channels : 1);
}

static unsigned block_bytes(unsigned format)
{
	if (format < 0x91 || format > 0x9e)
		return 0;
	/* BC1 and BC4, plain and sRGB or signed: 8 bytes for 4 x 4; the others 16. */
	return format == 0x91 || format == 0x92 || format == 0x97 || format == 0x98 ? 8 : 16;
}

static uint64_t at_least_one(uint64_t n)
{
	return n ? n : 1;
}

static uint64_t level_bytes(uint64_t width, uint64_t height, uint64_t depth, unsigned format, unsigned channels)
{
	unsigned block = block_bytes(format);

	if (block)
		return (width + 3) / 4 * ((height + 3) / 4) * depth * block;
	return width * height * depth * element_bits(format, channels) / 8;
}

static uint64_t half(uint64_t n)
{
	return n > 1 ? n / 2 : 1;
}

#define ARRAY_LAYERED 0x01

uint64_t sl_fields_array3d(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned levels)
{
	uint64_t bytes = 0, width, height, depth;

	if (!array || array->Flags & (ARRAY_SPARSE | ARRAY_DEFERRED_MAPPING))
		return 0;
	width = array->Width;
	height = at_least_one(array->Height);
	depth = at_least_one(array->Depth);
	for (unsigned level = 0; level < levels; level++) {
		bytes += level_bytes(width, height, depth, array->Format, array->NumChannels);
		if (width == 1 && height == 1 && (depth == 1 || array->Flags & (ARRAY_LAYERED | ARRAY_CUBEMAP)))
			break;
		width = half(width);
		height = half(height);
		if (!(array->Flags & (ARRAY_LAYERED | ARRAY_CUBEMAP))) /* layers and faces do not shrink */
			depth = half(depth);
	}
	return bytes;
}

uint64_t sl_fields_array(const CUDA_ARRAY_DESCRIPTOR *array)
{
	return array ? level_bytes(array->Width, at_least_one(array->Height), 1, array->Format, array->NumChannels) : 0;
}

uint64_t sl_fields_array_v1(const CUDA_ARRAY_DESCRIPTOR_v1 *array)
{
	return array ? level_bytes(array->Width, at_least_one(array->Height), 1, array->Format, array->NumChannels) : 0;
}

uint64_t sl_fields_array3d_v1(const CUDA_ARRAY3D_DESCRIPTOR_v1 *array)
{
	CUDA_ARRAY3D_DESCRIPTOR wide;

	if (!array)
		return 0;
	wide = (CUDA_ARRAY3D_DESCRIPTOR){array->Width,	array->Height,	    array->Depth,
					 array->Format, array->NumChannels, array->Flags};
	return sl_fields_array3d(&wide, 1);
}

uint64_t sl_fields_channels(const struct cudaChannelFormatDesc *format, size_t width, size_t height, size_t depth, unsigned flags,
			    unsigned levels)
{
	/* Elements of 32 bits stand for the sum of the channels, which is scaled afterwards. */
	CUDA_ARRAY3D_DESCRIPTOR array = {width, height, depth, 0x20, 1, flags};
	uint64_t bits = format ? (uint64_t)(format->x + format->y + format->z + format->w) : 0;

	return sl_fields_array3d(&array, levels) / 4 * bits / 8;
}

uint64_t sl_fields_hip_channels(const struct hipChannelFormatDesc *format, size_t width, size_t height, size_t depth,
				unsigned flags, unsigned levels)
{
	/* The same structure under HIP's name. */
	return sl_fields_channels((const void *)format, width, height, depth, flags, levels);
}

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

/* One word kept: the last function asked for (47 bits) and its version in units of `unit`, below 2^16. */
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

/* NVML counts all devices, CUDA those that are visible, in an order of its own: they are the same by uuid. */
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

void sl_fields_nvml(void *real, nvmlDevice_t device, unsigned long long *total_bytes, unsigned long long *free_bytes,
		    unsigned long long *used_bytes)
{
	unsigned long long total_before = total_bytes ? *total_bytes : 0;

	if (!total_bytes || !free_bytes || !used_bytes || !sl_fields_limited())
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

/* These count all devices, HIP those that are visible. */
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

	if (type || (!total_bytes && !used_bytes) || !sl_fields_limited() || !get_id || !get_total || get_id(device, &id) ||
	    get_total(device, type, &total))
		return;
	clamp_vram(id, total, total_bytes, used_bytes);
}

void sl_fields_amd_smi(void *real, amdsmi_processor_handle device, unsigned type, uint64_t *total_bytes, uint64_t *used_bytes)
{
	int (*get_id)(void *, uint64_t *) = sl_resolve_beside(real, "amdsmi_get_gpu_bdf_id");
	int (*get_total)(void *, unsigned, uint64_t *) = sl_resolve_beside(real, "amdsmi_get_gpu_memory_total");
	uint64_t id, total;

	if (type || (!total_bytes && !used_bytes) || !sl_fields_limited() || !get_id || !get_total || get_id(device, &id) ||
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
 * A driver knows no version above its own, whatever the request says: cuMulticastBindMem asked at 13010 of a driver
 * 13.0 is the form of 12010.
 */
static int known_version(void *found, int version)
{
	static atomic_int driver;
	int known = atomic_load_explicit(&driver, memory_order_relaxed);
	int (*get_version)(int *);

	if (!known) {
		get_version = sl_resolve_beside(found, "cuDriverGetVersion");
		if (!get_version || get_version(&known))
			return version;
		atomic_store_explicit(&driver, known, memory_order_relaxed);
	}
	return version < known ? version : known;
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

bool sl_fields_limited(void)
{
	static atomic_bool asked;

	if (SL_LIKELY(atomic_load_explicit(&asked, memory_order_relaxed)))
		return sl_limit_active;
	atomic_store_explicit(&asked, true, memory_order_relaxed);
	if (getenv("STORMLOG_LIMIT"))
		sl_preload_running();
	return sl_limit_active;
}

void sl_fields_clamp(enum sl_family family, int device, void *free_bytes, void *total_bytes)
{
	if (device < 0)
		device = sl_device_current(family).device;
	sl_limit_clamp(device, free_bytes, total_bytes);
}
