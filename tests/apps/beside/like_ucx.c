/* SPDX-License-Identifier: MIT */
/*
 * Like UCX's libucm, which hooks by relocation: its constructor overwrites the GOT slots of mmap, munmap, cudaMalloc and cudaFree in
 * every loaded object, and dlopen does so in new ones.  The functions are exported too, and find the next one by
 * RTLD_NEXT.
 */
#include "beside.h"

#include <elf.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int maps, allocations;

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	atomic_fetch_add(&maps, 1);
	return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

int munmap(void *at, size_t size)
{
	return (int)syscall(SYS_munmap, at, size);
}

static int pass_on(const char *name, void **kept, void *own, void *p, size_t size)
{
	static int depth;
	int result;

	if (!*kept)
		*kept = dlsym(RTLD_NEXT, name);
	if (!*kept || *kept == own)
		*kept = dlsym(RTLD_DEFAULT, name);
	need(*kept == own || depth++ > 8 ? NULL : *kept, name); /* HAMi-core's dlsym takes RTLD_NEXT from itself: may loop */
	result = CALL(*kept, p, size);
	depth--;
	return result;
}

int cudaMalloc(void **p, size_t size)
{
	static void *real;

	atomic_fetch_add(&allocations, 1);
	return pass_on("cudaMalloc", &real, (void *)cudaMalloc, p, size);
}

int cudaFree(void *p)
{
	static void *real;

	return pass_on("cudaFree", &real, (void *)cudaFree, p, 0);
}

static const struct {
	const char *name;
	void *hook;
} hooks[] = {
	{"mmap", (void *)mmap}, {"munmap", (void *)munmap}, {"cudaMalloc", (void *)cudaMalloc}, {"cudaFree", (void *)cudaFree}};

struct object {
	const ElfW(Rela) * jumps, *rela;
	size_t jump_bytes, rela_bytes;
	const ElfW(Sym) * symbols;
	const char *names;
};

static void patch(ElfW(Addr) base, const struct object *object, const ElfW(Rela) * rela, size_t bytes)
{
	for (; rela && bytes >= sizeof(*rela); rela++, bytes -= sizeof(*rela)) {
		void **slot = (void **)(base + rela->r_offset);
		unsigned type = ELF64_R_TYPE(rela->r_info);

		if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
			continue;
		for (unsigned i = 0; i < sizeof(hooks) / sizeof(*hooks); i++)
			if (!strcmp(object->names + object->symbols[ELF64_R_SYM(rela->r_info)].st_name, hooks[i].name) &&
			    !mprotect((void *)((uintptr_t)slot & ~(uintptr_t)4095), 4096, PROT_READ | PROT_WRITE))
				*slot = hooks[i].hook;
	}
}

static int visit(struct dl_phdr_info *info, size_t size, void *own)
{
	struct object object = {0};

	(void)size;
	if (info->dlpi_addr == *(ElfW(Addr) *)own || strstr(info->dlpi_name, "ld-linux") || strstr(info->dlpi_name, "libc.so") ||
	    strstr(info->dlpi_name, "vdso"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		for (const ElfW(Dyn) *d = (void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr); d->d_tag; d++) {
			void *at = (void *)d->d_un.d_ptr;

			object.jumps = d->d_tag == DT_JMPREL ? at : object.jumps;
			object.jump_bytes = d->d_tag == DT_PLTRELSZ ? d->d_un.d_val : object.jump_bytes;
			object.rela = d->d_tag == DT_RELA ? at : object.rela;
			object.rela_bytes = d->d_tag == DT_RELASZ ? d->d_un.d_val : object.rela_bytes;
			object.symbols = d->d_tag == DT_SYMTAB ? at : object.symbols;
			object.names = d->d_tag == DT_STRTAB ? at : object.names;
		}
	}
	if (object.symbols && object.names) {
		patch(info->dlpi_addr, &object, object.jumps, object.jump_bytes);
		patch(info->dlpi_addr, &object, object.rela, object.rela_bytes);
	}
	return 0;
}

__attribute__((constructor)) static void install(void)
{
	Dl_info own;

	if (dladdr((void *)install, &own))
		dl_iterate_phdr(visit, &own.dli_fbase);
}

__attribute__((destructor)) static void say(void)
{
	printf("like_ucx: %d%s\n", atomic_load(&allocations), atomic_load(&maps) ? "" : ", no mmap");
}
