/* SPDX-License-Identifier: MIT */
/* Estimates the bytes of an array from its descriptor.  Makes no call and keeps no state. */
#include "agent/hooks/fields.h"

#define ARRAY_CUBEMAP	       0x04
#define ARRAY_SPARSE	       0x40 /* has no memory of its own: it is mapped later */
#define ARRAY_DEFERRED_MAPPING 0x80

/*
 * Bits of one element for the formats of CUarray_format.  Formats with a layout of their own cover all their channels; planar
 * video formats count one pixel over all planes; block-compressed formats are handled separately.
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
	if (format >= 0xc0 && format <= 0xcb) { /* UNORM and SNORM with 8 and 16 bits and 1, 2 or 4 channels */
		unsigned bits = (format - 0xc0) / 3 % 2 ? 16 : 8;

		return bits << (format - 0xc0) % 3;
	}
	return 32 * (channels ? channels : 1);
}

static unsigned block_bytes(unsigned format)
{
	if (format < 0x91 || format > 0x9e)
		return 0;
	/* BC1 and BC4 (plain, sRGB, signed) take 8 bytes for 4 x 4 elements, the others 16. */
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
		/* Layers and faces are the same number at every mipmap level */
		if (!(array->Flags & (ARRAY_LAYERED | ARRAY_CUBEMAP)))
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
	/* One 32-bit element stands for the sum of the channels; the result is scaled afterwards. */
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
