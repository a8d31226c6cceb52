/* SPDX-License-Identifier: MIT */
/* The file of a library or program: the symbols that it exports, and the offsets of its addresses. */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_exports {
	const uint8_t *bytes;
	size_t size;
};

/*
 * False: errno says why; ENOEXEC: it is no regular file, or empty.  What is no ELF file of 64 bits has no symbols.  The file is
 * another user's: a part that is cut off while it is open reads as zeros (by a handler of SIGBUS for the whole program).
 */
bool sl_exports_open(struct sl_exports *file, const char *path);
void sl_exports_close(struct sl_exports *file);

/*
 * Calls each(data, ...) for what the file defines and exports: the first million symbols of its only table, whose names are
 * shorter than 256 bytes.
 */
void sl_exports_each(const struct sl_exports *file, void (*each)(void *data, const char *name, const Elf64_Sym *symbol),
		     void *data);

/* Offset in the file of an address in it; 0: there is none. */
uint64_t sl_exports_offset(const struct sl_exports *file, uint64_t address);

/* Address of the code at this offset in the file; 0: no code is there. */
uint64_t sl_exports_address(const struct sl_exports *file, uint64_t offset);

/* The address at which the file's first byte is mapped, if it is loaded where it asks to be. */
uint64_t sl_exports_base(const struct sl_exports *file);
