/* SPDX-License-Identifier: MIT */
#include "common/buildid.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PARTS_MAX 65535

/* Finds the build id among ELF notes; writes it in hexadecimal. */
static bool find_note(int fd, uint64_t offset, uint64_t size, uint64_t align, char *text)
{
	unsigned char bytes[4096];
	ssize_t got = pread(fd, bytes, size < sizeof(bytes) ? size : sizeof(bytes), (off_t)offset);
	uint64_t end = got > 0 ? (uint64_t)got : 0, step = align == 8 ? 8 : 4;
	Elf64_Nhdr note;

	for (uint64_t at = 0; at + sizeof(note) <= end;) {
		memcpy(&note, bytes + at, sizeof(note));
		uint64_t name = at + sizeof(note), value = name + ((note.n_namesz + 3ull) & ~3ull);

		if (value + note.n_descsz > end)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(bytes + name, "GNU", 4) && note.n_descsz &&
		    note.n_descsz <= SL_BUILDID_MAX) {
			for (unsigned i = 0; i < note.n_descsz; i++)
				snprintf(text + 2 * i, 3, "%02x", bytes[value + i]);
			return true;
		}
		at = value + ((note.n_descsz + step - 1) & ~(step - 1));
	}
	return false;
}

/* By segments, else by sections: files that hold only debug information have no note segment. */
bool sl_buildid_read(int fd, char *text)
{
	Elf64_Ehdr head;
	Elf64_Phdr segment;
	Elf64_Shdr section;
	uint64_t count;

	*text = 0;
	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB)
		return false;
	for (unsigned i = 0; i < head.e_phnum; i++)
		if (pread(fd, &segment, sizeof(segment), (off_t)(head.e_phoff + i * sizeof(segment))) == sizeof(segment) &&
		    segment.p_type == PT_NOTE && find_note(fd, segment.p_offset, segment.p_filesz, segment.p_align, text))
			return true;
	count = head.e_shnum;
	if (!count && head.e_shoff && pread(fd, &section, sizeof(section), (off_t)head.e_shoff) == sizeof(section))
		count = section.sh_size < PARTS_MAX ? section.sh_size : PARTS_MAX;
	for (unsigned i = 0; i < count; i++)
		if (pread(fd, &section, sizeof(section), (off_t)(head.e_shoff + i * sizeof(section))) == sizeof(section) &&
		    section.sh_type == SHT_NOTE && find_note(fd, section.sh_offset, section.sh_size, section.sh_addralign, text))
			return true;
	return true;
}
