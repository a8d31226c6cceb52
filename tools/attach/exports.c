/* SPDX-License-Identifier: MIT */
#include "tools/attach/attach.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#define SYMBOLS_MAX (1u << 20)
#define NAME_BYTES  256

/* A page of a file that was cut short since: zeros. */
static void fill(int number, siginfo_t *info, void *context)
{
	const uintptr_t page = 4096;
	void *at = (void *)((uintptr_t)info->si_addr & ~(page - 1));

	(void)context;
	if (info->si_code != BUS_ADRERR || mmap(at, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		signal(number, SIG_DFL);
}

static void fill_what_is_cut(void)
{
	sigaction(SIGBUS, &(struct sigaction){.sa_sigaction = fill, .sa_flags = SA_SIGINFO}, NULL);
}

bool sl_exports_open(struct sl_exports *file, const char *path)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), error;
	void *bytes = MAP_FAILED;
	struct stat st;

	*file = (struct sl_exports){0};
	if (fd < 0)
		return false;
	pthread_once(&once, fill_what_is_cut);
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0)
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	else
		errno = ENOEXEC;
	error = errno;
	close(fd);
	errno = error;
	if (bytes == MAP_FAILED)
		return false;
	*file = (struct sl_exports){bytes, (size_t)st.st_size};
	return true;
}

void sl_exports_close(struct sl_exports *file)
{
	if (file->bytes)
		munmap((void *)file->bytes, file->size);
	file->bytes = NULL;
}

static const void *part(const struct sl_exports *file, uint64_t offset, uint64_t bytes)
{
	return offset <= file->size && bytes <= file->size - offset ? file->bytes + offset : NULL;
}

static const Elf64_Ehdr *header_of(const struct sl_exports *file)
{
	const Elf64_Ehdr *elf = part(file, 0, sizeof(*elf));

	return elf && !memcmp(elf->e_ident, ELFMAG, SELFMAG) && elf->e_ident[EI_CLASS] == ELFCLASS64 ? elf : NULL;
}

/* The next segment that is loaded, from *i on; NULL: no more. */
static const Elf64_Phdr *next_load(const struct sl_exports *file, unsigned *i)
{
	const Elf64_Ehdr *elf = header_of(file);
	const Elf64_Phdr *segment = elf ? part(file, elf->e_phoff, (uint64_t)elf->e_phnum * sizeof(*segment)) : NULL;

	for (; segment && *i < elf->e_phnum; ++*i)
		if (segment[*i].p_type == PT_LOAD)
			return &segment[(*i)++];
	return NULL;
}

uint64_t sl_exports_offset(const struct sl_exports *file, uint64_t address)
{
	const Elf64_Phdr *load;
	unsigned i = 0;

	while ((load = next_load(file, &i)))
		if (address >= load->p_vaddr && address - load->p_vaddr < load->p_filesz)
			return address - load->p_vaddr + load->p_offset;
	return 0;
}

uint64_t sl_exports_address(const struct sl_exports *file, uint64_t offset)
{
	const Elf64_Phdr *load;
	unsigned i = 0;

	while ((load = next_load(file, &i)))
		if (offset >= load->p_offset && offset - load->p_offset < load->p_filesz && load->p_flags & PF_X)
			return offset - load->p_offset + load->p_vaddr;
	return 0;
}

uint64_t sl_exports_base(const struct sl_exports *file)
{
	unsigned i = 0;
	const Elf64_Phdr *load = next_load(file, &i);

	return load ? load->p_vaddr - load->p_offset : 0;
}

static void each_of(const struct sl_exports *file, const Elf64_Shdr *symbols, const Elf64_Shdr *names,
		    void (*each)(void *data, const char *name, const Elf64_Sym *symbol), void *data)
{
	const Elf64_Sym *symbol = part(file, symbols->sh_offset, symbols->sh_size);
	const char *text = part(file, names->sh_offset, names->sh_size);
	uint64_t count = symbols->sh_size / sizeof(*symbol);

	for (uint64_t i = 0; symbol && text && i < count && i < SYMBOLS_MAX; i++) {
		uint64_t left = symbol[i].st_name < names->sh_size ? names->sh_size - symbol[i].st_name : 0;

		if (symbol[i].st_shndx && left && memchr(text + symbol[i].st_name, 0, left < NAME_BYTES ? left : NAME_BYTES))
			each(data, text + symbol[i].st_name, &symbol[i]);
	}
}

void sl_exports_each(const struct sl_exports *file, void (*each)(void *data, const char *name, const Elf64_Sym *symbol), void *data)
{
	const Elf64_Ehdr *elf = header_of(file);
	const Elf64_Shdr *section = elf ? part(file, elf->e_shoff, (uint64_t)elf->e_shnum * sizeof(*section)) : NULL;

	for (unsigned i = 0; section && i < elf->e_shnum; i++)
		if (section[i].sh_type == SHT_DYNSYM && section[i].sh_link < elf->e_shnum) {
			each_of(file, &section[i], &section[section[i].sh_link], each, data);
			return;
		}
}
