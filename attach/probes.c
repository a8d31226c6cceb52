/* SPDX-License-Identifier: MIT */
#include "attach/probes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/hooks/ids.h"
#include "attach/rows.h"

#define UPROBE_MULTI 48 /* BPF_TRACE_UPROBE_MULTI, which older headers do not have */

/* The compiled programs: programs.S. */
extern const char sl_probes_programs[], sl_probes_programs_end[];

/* The functions of libbpf that are used, with its own types. */
static struct {
	__typeof__(bpf_object__open_mem) *open_mem;
	__typeof__(bpf_object__load) *load;
	__typeof__(bpf_object__close) *close;
	__typeof__(bpf_object__find_program_by_name) *find_program;
	__typeof__(bpf_object__find_map_fd_by_name) *find_map;
	__typeof__(bpf_program__fd) *program_fd;
	__typeof__(bpf_program__set_expected_attach_type) *set_type;
	__typeof__(bpf_program__attach_uprobe_opts) *attach;
	__typeof__(bpf_link__destroy) *destroy;
	__typeof__(ring_buffer__new) *ring_new;
	__typeof__(ring_buffer__consume) *ring_consume;
	__typeof__(ring_buffer__free) *ring_free;
	__typeof__(bpf_map_update_elem) *update;
	__typeof__(bpf_map_lookup_elem) *lookup;
	__typeof__(libbpf_set_print) *set_print;
} bpf;

static const struct {
	const char *name;
	void **to;
} wanted[] = {
	{"bpf_object__open_mem", (void **)&bpf.open_mem},
	{"bpf_object__load", (void **)&bpf.load},
	{"bpf_object__close", (void **)&bpf.close},
	{"bpf_object__find_program_by_name", (void **)&bpf.find_program},
	{"bpf_object__find_map_fd_by_name", (void **)&bpf.find_map},
	{"bpf_program__fd", (void **)&bpf.program_fd},
	{"bpf_program__set_expected_attach_type", (void **)&bpf.set_type},
	{"bpf_program__attach_uprobe_opts", (void **)&bpf.attach},
	{"bpf_link__destroy", (void **)&bpf.destroy},
	{"ring_buffer__new", (void **)&bpf.ring_new},
	{"ring_buffer__consume", (void **)&bpf.ring_consume},
	{"ring_buffer__free", (void **)&bpf.ring_free},
	{"bpf_map_update_elem", (void **)&bpf.update},
	{"bpf_map_lookup_elem", (void **)&bpf.lookup},
	{"libbpf_set_print", (void **)&bpf.set_print},
};

struct sl_probes {
	struct bpf_object *object;
	struct bpf_program *begins, *returns;
	struct ring_buffer *ring;
	int lost;
	bool at_once; /* the kernel can link many probes at once: 6.6 and later */
	struct link {
		struct bpf_link *link; /* NULL: fd */
		int fd;
	} * links;
	size_t link_count, link_capacity;
	void (*each)(void *data, const struct sl_seen *seen, size_t bytes);
	void *each_data;
};

static const char *open_library(void)
{
	void *library = dlopen("libbpf.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return "libbpf.so.1 is not installed";
	for (size_t i = 0; i < SL_COUNT(wanted); i++)
		if (!(*wanted[i].to = dlsym(library, wanted[i].name)))
			return "libbpf is older than 1.0";
	return NULL;
}

static int be_silent(enum libbpf_print_level level, const char *format, va_list arguments)
{
	return getenv("STORMLOG_ATTACH_DEBUG") ? vfprintf(stderr, format, arguments) : 0;
}

static int hand_over(void *context, void *record, size_t bytes)
{
	struct sl_probes *probes = context;

	if (bytes >= offsetof(struct sl_seen, data))
		probes->each(probes->each_data, record, bytes);
	return 0;
}

static const char *refusal(int err)
{
	return err == EPERM || err == EACCES ? "the kernel does not permit it: CAP_BPF and CAP_PERFMON are needed, or root, and "
					       "before Linux 6.19 CAP_SYS_ADMIN"
	       : err == ENOMEM		     ? "the kernel has no memory for it: look at ulimit -l"
	       : err == ESRCH		     ? "it has ended"
	       : err == ENOSYS		     ? "this kernel has no BPF"
					     : "the kernel refuses it (STORMLOG_ATTACH_DEBUG=1 shows what libbpf says)";
}

static bool fill_rows(struct sl_probes *probes)
{
	int rows = bpf.find_map(probes->object, "rows");

	for (uint32_t api = 1; api < SL_API_COUNT; api++) {
		struct sl_seen_row row;

		if (!sl_rows_has(api))
			continue;
		row = sl_rows_wanted(api);
		if (bpf.update(rows, &api, &row, BPF_ANY))
			return false;
	}
	return true;
}

/* 0 or an error number. */
static int load(struct sl_probes *probes, bool at_once)
{
	int err;

	probes->at_once = at_once;
	probes->object = bpf.open_mem(sl_probes_programs, (size_t)(sl_probes_programs_end - sl_probes_programs), NULL);
	if (!probes->object)
		return errno;
	probes->begins = bpf.find_program(probes->object, "call_begins");
	probes->returns = bpf.find_program(probes->object, "call_returns");
	if (at_once) {
		bpf.set_type(probes->begins, UPROBE_MULTI);
		bpf.set_type(probes->returns, UPROBE_MULTI);
	}
	err = -bpf.load(probes->object);
	if (!err)
		return 0;
	bpf.close(probes->object);
	probes->object = NULL;
	return err;
}

struct sl_probes *sl_probes_open(const char **why)
{
	struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	struct sl_probes *probes;
	int err;

	_Static_assert(SL_API_COUNT <= SL_SEEN_APIS, "each call has its row");
	*why = open_library();
	if (*why)
		return NULL;
	probes = calloc(1, sizeof(*probes));
	if (!probes)
		abort();
	bpf.set_print(be_silent);
	setrlimit(RLIMIT_MEMLOCK, &unlimited); /* before Linux 5.11 maps count as locked */
	err = load(probes, true);
	if (err)
		err = load(probes, false);
	if (!err && fill_rows(probes)) {
		probes->lost = bpf.find_map(probes->object, "lost");
		probes->ring = bpf.ring_new(bpf.find_map(probes->object, "ring"), hand_over, probes, NULL);
	}
	if (probes->ring)
		return probes;
	*why = refusal(err ? err : errno);
	sl_probes_close(probes);
	return NULL;
}

/* Room for `more` links. */
static void expect_links(struct sl_probes *probes, size_t more)
{
	while (probes->link_count + more > probes->link_capacity) {
		probes->link_capacity = probes->link_capacity ? 2 * probes->link_capacity : 256;
		probes->links = realloc(probes->links, probes->link_capacity * sizeof(*probes->links));
		if (!probes->links)
			abort();
	}
}

/* One place to watch: its offset in the library's file, and the cookie that names the call (SL_SEEN_COOKIE). */
struct places {
	uint64_t pid, *offset, *cookie;
	uint32_t count, capacity;
};

static void add_place(struct places *places, uint64_t offset, unsigned api)
{
	if (places->count == places->capacity) {
		places->capacity = places->capacity ? 2 * places->capacity : 256;
		places->offset = realloc(places->offset, places->capacity * sizeof(*places->offset));
		places->cookie = realloc(places->cookie, places->capacity * sizeof(*places->cookie));
		if (!places->offset || !places->cookie)
			abort();
	}
	places->offset[places->count] = offset;
	places->cookie[places->count++] = SL_SEEN_COOKIE(places->pid, api);
}

/* One link for all places.  libbpf has this only from 1.3 on, so the system call is made directly. */
static bool attach_at_once(struct sl_probes *probes, struct bpf_program *program, bool at_return, int pid, const char *path,
			   const struct places *places)
{
	struct {
		uint32_t program, target, type, flags;
		uint64_t path, offsets, counters, cookies;
		uint32_t count, multi_flags, pid, padding;
	} request = {
		.program = (uint32_t)bpf.program_fd(program),
		.type = UPROBE_MULTI,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)places->offset,
		.cookies = (uintptr_t)places->cookie,
		.count = places->count,
		.multi_flags = at_return,
		.pid = (uint32_t)pid,
	};
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &request, sizeof(request));

	if (fd < 0)
		return false;
	expect_links(probes, 1);
	probes->links[probes->link_count++] = (struct link){.fd = fd};
	return true;
}

static bool attach_each(struct sl_probes *probes, struct bpf_program *program, bool at_return, int pid, const char *path,
			const struct places *places)
{
	expect_links(probes, places->count);
	for (uint32_t i = 0; i < places->count; i++) {
		LIBBPF_OPTS(bpf_uprobe_opts, options, .retprobe = at_return, .bpf_cookie = places->cookie[i]);
		struct bpf_link *link = bpf.attach(program, pid, path, places->offset[i], &options);

		if (!link)
			return false;
		probes->links[probes->link_count++] = (struct link){.link = link};
	}
	return true;
}

/* Attach entries first: a return whose entry was not seen is passed over. */
static bool attach(struct sl_probes *probes, int pid, const char *path, const struct places *places)
{
	__typeof__(&attach_each) with = probes->at_once ? attach_at_once : attach_each;

	return !places->count ||
	       (with(probes, probes->begins, false, pid, path, places) && with(probes, probes->returns, true, pid, path, places));
}

static unsigned api_of(const char *name)
{
	for (unsigned api = 1; api < SL_API_COUNT; api++)
		if (sl_rows_has(api) && !strcmp(sl_hooks[api].name, name))
			return api;
	return 0;
}

/* --- symbols of a library ------------------------------------------------------------------------------- */

struct image {
	const uint8_t *bytes;
	size_t size;
};

static const void *part(const struct image *image, uint64_t offset, uint64_t bytes)
{
	return offset <= image->size && bytes <= image->size - offset ? image->bytes + offset : NULL;
}

/* Offset in the file of an address in the library; 0: there is none. */
static uint64_t offset_of(const struct image *image, uint64_t address)
{
	const Elf64_Ehdr *elf = (const void *)image->bytes;
	const Elf64_Phdr *segment = part(image, elf->e_phoff, (uint64_t)elf->e_phnum * sizeof(*segment));

	for (unsigned i = 0; segment && i < elf->e_phnum; i++)
		if (segment[i].p_type == PT_LOAD && address >= segment[i].p_vaddr &&
		    address - segment[i].p_vaddr < segment[i].p_filesz)
			return address - segment[i].p_vaddr + segment[i].p_offset;
	return 0;
}

static void find_symbols(struct places *places, const struct image *image, const Elf64_Shdr *symbols, const Elf64_Shdr *names)
{
	const Elf64_Sym *symbol = part(image, symbols->sh_offset, symbols->sh_size);
	const char *text = part(image, names->sh_offset, names->sh_size);

	for (uint64_t i = 0; symbol && text && i < symbols->sh_size / sizeof(*symbol); i++) {
		unsigned api;
		uint64_t offset;

		if (ELF64_ST_TYPE(symbol[i].st_info) != STT_FUNC || !symbol[i].st_shndx || symbol[i].st_name >= names->sh_size ||
		    !memchr(text + symbol[i].st_name, 0, names->sh_size - symbol[i].st_name))
			continue;
		api = api_of(text + symbol[i].st_name);
		offset = api ? offset_of(image, symbol[i].st_value) : 0;
		if (offset)
			add_place(places, offset, api);
	}
}

static void find_places(struct places *places, const struct image *image)
{
	const Elf64_Ehdr *elf = part(image, 0, sizeof(*elf));
	const Elf64_Shdr *section;

	if (!elf || memcmp(elf->e_ident, ELFMAG, SELFMAG) || elf->e_ident[EI_CLASS] != ELFCLASS64)
		return;
	section = part(image, elf->e_shoff, (uint64_t)elf->e_shnum * sizeof(*section));
	for (unsigned i = 0; section && i < elf->e_shnum; i++)
		if (section[i].sh_type == SHT_DYNSYM && section[i].sh_link < elf->e_shnum)
			find_symbols(places, image, &section[i], &section[section[i].sh_link]);
}

int sl_probes_add(struct sl_probes *probes, const char *path, int pid, const char **why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), count = -1;
	struct places places = {.pid = (uint64_t)pid};
	struct image image;
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0) {
		image = (struct image){mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0), (size_t)st.st_size};
		if (image.bytes != MAP_FAILED) {
			find_places(&places, &image);
			munmap((void *)image.bytes, image.size);
		}
		count = attach(probes, pid, path, &places) ? (int)places.count : -1;
		*why = refusal(errno);
	} else {
		*why = strerror(errno);
	}
	if (fd >= 0)
		close(fd);
	free(places.offset);
	free(places.cookie);
	return count;
}

void sl_probes_read(struct sl_probes *probes, void (*each)(void *data, const struct sl_seen *seen, size_t bytes), void *data,
		    unsigned long long *lost)
{
	probes->each = each;
	probes->each_data = data;
	bpf.ring_consume(probes->ring);
	*lost = 0;
	for (uint32_t why = 0; why < SL_SEEN_LOST_COUNT; why++) {
		uint64_t count = 0;

		if (!bpf.lookup(probes->lost, &why, &count))
			*lost += count;
	}
}

void sl_probes_detach(struct sl_probes *probes)
{
	while (probes->link_count) {
		struct link link = probes->links[--probes->link_count];

		if (link.link)
			bpf.destroy(link.link);
		else
			close(link.fd);
	}
}

void sl_probes_close(struct sl_probes *probes)
{
	sl_probes_detach(probes);
	if (probes->ring)
		bpf.ring_free(probes->ring);
	if (probes->object)
		bpf.close(probes->object);
	free(probes->links);
	free(probes);
}
