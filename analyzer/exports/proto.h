/* SPDX-License-Identifier: MIT */
/*
 * Writes protocol buffers: appends fields to a buffer; a nested message has a begin and an end.  The length of a nested message
 * always takes five bytes, which every reader accepts.  Texts go through base/escape.h.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sl_proto {
	uint8_t *bytes;
	size_t size, capacity;
};

void sl_proto_uint(struct sl_proto *proto, unsigned field, uint64_t value);
void sl_proto_text(struct sl_proto *proto, unsigned field, const char *text); /* NULL: writes nothing */
size_t sl_proto_begin(struct sl_proto *proto, unsigned field);		      /* for sl_proto_end */
void sl_proto_end(struct sl_proto *proto, size_t begun);
void sl_proto_free(struct sl_proto *proto);
