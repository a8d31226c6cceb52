/* SPDX-License-Identifier: MIT */
/* What is mapped where: definitions of the objects that native addresses lie in. */
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>

#include "agent/file/define.h"
#include "agent/process/file.h"
#include "agent/symbols/objects.h"
#include "common/pack.h"
#include "agent/stacks/intern.h"
#include "agent/stacks/thread.h"
#include "agent/stacks/utf8.h"
#include "common/base.h"
#include "common/now.h"

static struct sl_intern modules;
/* The loader's counts of objects added and removed at the time when all were last defined, plus one. */
static _Atomic uint64_t seen_adds, seen_subs;

struct module {
	uint64_t begin, end, bias;
	const char *path;
	const uint8_t *build_id;
	uint32_t build_id_bytes;
	uint64_t time_ns;
	struct sl_stacks_thread *thread;
};

static bool publish_module(uint32_t id, const void *what)
{
	static const char digits[] = "0123456789abcdef";
	const struct module *module = what;
	char hex[2 * 64];
	struct sl_pack pack;
	uint32_t n = module->build_id_bytes;

	pack = sl_pack_begin(module->thread->map, sizeof(module->thread->map));
	sl_pack_map(&pack, 7 + (n > 0));
	sl_pack_pair_text(&pack, "def", "module");
	sl_pack_pair_uint(&pack, "id", id);
	sl_pack_pair_uint(&pack, "base", module->begin);
	sl_pack_pair_uint(&pack, "end", module->end);
	sl_pack_pair_uint(&pack, "bias", module->bias);
	sl_pack_text(&pack, "path");
	sl_pack_bytes(
		&pack, module->thread->function,
		sl_utf8_clean(module->path, strlen(module->path), module->thread->function, sizeof(module->thread->function)));
	if (n) {
		for (uint32_t i = 0; i < n; i++) {
			hex[2 * i] = digits[module->build_id[i] >> 4];
			hex[2 * i + 1] = digits[module->build_id[i] & 15];
		}
		sl_pack_text(&pack, "build_id");
		sl_pack_bytes(&pack, hex, 2 * n);
	}
	sl_pack_pair_uint(&pack, "ns", module->time_ns);
	return !pack.failed && sl_define_publish(pack.bytes, pack.used);
}

static void find_build_id(struct module *module, const uint8_t *at, size_t bytes)
{
	while (bytes >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) note;
		size_t name, size;

		memcpy(&note, at, sizeof(note));
		name = sizeof(note) + ((note.n_namesz + 3u) & ~(size_t)3);
		size = name + ((note.n_descsz + 3u) & ~(size_t)3);
		if (size > bytes)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(at + sizeof(note), "GNU", 4)) {
			module->build_id = at + name;
			module->build_id_bytes = note.n_descsz < 64 ? note.n_descsz : 64;
			return;
		}
		at += size;
		bytes -= size;
	}
}

struct visit {
	struct sl_stacks_thread *thread;
	uint64_t time_ns;
	uint64_t adds, subs;
	bool failed;
};

/* The program's path is asked of the kernel once: it may forbid itself to ask (seccomp). */
static const char *path_of(const struct dl_phdr_info *info, char *buffer, size_t bytes)
{
	static char program[4096];
	static _Atomic int known;
	ssize_t n;

	if (info->dlpi_name && info->dlpi_name[0])
		return info->dlpi_name;
	if (atomic_load(&known))
		return program;
	n = sl_file_link("/proc/self/exe", buffer, bytes - 1);
	if (n <= 0) /* no /proc here: the path as the program was called, perhaps relative */
		return getauxval(AT_EXECFN) ? (const char *)getauxval(AT_EXECFN) : "";
	buffer[n] = 0;
	if ((size_t)n < sizeof(program)) { /* several threads write the same */
		memcpy(program, buffer, (size_t)n + 1);
		atomic_store(&known, 1);
	}
	return buffer;
}

static int visit_module(struct dl_phdr_info *info, size_t size, void *data)
{
	struct visit *visit = data;
	struct module module = {.begin = UINT64_MAX, .bias = info->dlpi_addr, .thread = visit->thread};
	struct sl_hash hash = SL_HASH_INIT;

	if (!visit->time_ns) { /* at the first object: has anything changed at all? */
		visit->adds = info->dlpi_adds + 1;
		visit->subs = info->dlpi_subs + 1;
		if (visit->adds == atomic_load(&seen_adds) && visit->subs == atomic_load(&seen_subs))
			return 1;
		visit->time_ns = sl_now_kernel_ns(CLOCK_MONOTONIC);
	}
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uint64_t at = info->dlpi_addr + header->p_vaddr;

		if (header->p_type == PT_LOAD) {
			if (at < module.begin)
				module.begin = at;
			if (at + header->p_memsz > module.end)
				module.end = at + header->p_memsz;
		}
	}
	if (!module.end)
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum && !module.build_id; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uint64_t at = info->dlpi_addr + header->p_vaddr;

		/* Notes that are not loaded (tools for core files make such) are not in memory. */
		if (header->p_type == PT_NOTE && at >= module.begin && at + header->p_memsz <= module.end)
			find_build_id(&module, (const uint8_t *)at, header->p_memsz);
	}
	module.path = path_of(info, visit->thread->file, SL_STACKS_TEXT_MAX);
	module.time_ns = visit->time_ns;
	/* An object that was unloaded and came back to its place is defined again, later. */
	sl_hash_word(&hash, module.begin);
	sl_hash_word(&hash, module.end);
	sl_hash_bytes(&hash, module.path, strlen(module.path));
	sl_hash_bytes(&hash, module.build_id, module.build_id_bytes);
	sl_hash_word(&hash, visit->subs);
	if (!sl_intern(&modules, hash, publish_module, &module))
		visit->failed = true;
	return 0;
}

void sl_modules_define(struct sl_stacks_thread *thread)
{
	struct visit visit = {.thread = thread};

	sl_objects_walk(visit_module, &visit);
	if (visit.time_ns && !visit.failed) {
		atomic_store(&seen_adds, visit.adds);
		atomic_store(&seen_subs, visit.subs);
	}
}

void sl_modules_child(void)
{
	sl_intern_reset(&modules);
	atomic_store(&seen_adds, 0);
	atomic_store(&seen_subs, 0);
}
