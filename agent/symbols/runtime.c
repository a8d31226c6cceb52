/* SPDX-License-Identifier: MIT */
#include "agent/symbols/symbols.h"

#include <elf.h>

#define GO_BUILD_ID 4

/* Go's linker writes a note of its own into every program, also where another linker links the program in the end. */
static bool has_go_note(const char *at, size_t bytes)
{
	const ElfW(Nhdr) * note;

	for (size_t size; bytes >= sizeof(*note); at += size, bytes -= size) {
		note = (const void *)at;
		if (note->n_type == GO_BUILD_ID && note->n_namesz == 4 && bytes >= sizeof(*note) + 4 &&
		    !memcmp(note + 1, "Go\0", 4))
			return true;
		size = sizeof(*note) + ((note->n_namesz + 3) & ~3ul) + ((note->n_descsz + 3) & ~3ul);
		if (size > bytes)
			break;
	}
	return false;
}

/* Only the program, which is the first. */
static int look(struct dl_phdr_info *info, size_t size, void *found)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_NOTE)
			*(bool *)found |= has_go_note((const char *)(info->dlpi_addr + header->p_vaddr), header->p_memsz);
	}
	return 1;
}

bool sl_runtime_leaves_by_call(void)
{
	bool found = false;

	sl_objects_walk(look, &found);
	return found;
}
