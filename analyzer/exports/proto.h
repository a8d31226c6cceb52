/* SPDX-License-Identifier: MIT */
/*
 * Writing protocol buffers: fields appended to a buffer, messages nested by beginning and ending them.  Lengths of
 * nested messages take five bytes whatever they are, which every reader takes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sl_proto {
	uint8_t *bytes;
	size_t size, capacity;
};

void sl_proto_uint(struct sl_proto *proto, unsigned field, uint64_t value);
void sl_proto_text(struct sl_proto *proto, unsigned field, const char *text); /* NULL: nothing; bad UTF-8 becomes '?' */
size_t sl_proto_begin(struct sl_proto *proto, unsigned field);		      /* for sl_proto_end */
void sl_proto_end(struct sl_proto *proto, size_t begun);
void sl_proto_free(struct sl_proto *proto);
