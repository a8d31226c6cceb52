/* SPDX-License-Identifier: MIT */
/*
 * What is mapped where: definitions of the objects that native addresses are in.
 *
 * A definition says which object is at a place from now on; one without a path says that none does.  Where one object replaces
 * another, the same addresses mean other code.  So the new object is hashed into the ids of the stacks that lead through it.
 */
#include <elf.h>
#include <sched.h>
#include <sys/auxv.h>

#include "agent/file/file.h"
#include "agent/symbols/symbols.h"
#include "agent/stacks/inner.h"
#include "common/now.h"

#define SPINS_MAX      1000
#define UNLOAD_WAIT_NS 1000000000

struct place {
	uint64_t begin, end;
	uint64_t object; /* hash of the object there, or of the last one */
	uint64_t turn;	 /* the walk that saw it last */
	bool moved, gone;
};

/* Sorted, without overlap.  These and what follows belong to the owner of the lock. */
static struct place *places;
static uint32_t place_count, place_room;
static uint64_t turn;
static _Atomic uint64_t walked_ns; /* time at which all loaded objects were known */
static uint32_t last_id;
static struct sl_intern originals, movers;
static _Atomic int locked;
static _Atomic bool has_moved; /* an object has come where another one was */
/* The loader's counts of objects added and removed at the time when all were last defined, plus one. */
static _Atomic uint64_t seen_adds, seen_subs;

struct module {
	uint64_t begin, end, bias;
	const char *path; /* NULL: the place is empty now */
	const uint8_t *build_id;
	uint32_t build_id_bytes;
	uint64_t time_ns;
	struct sl_stacks_thread *thread;
};

/*
 * The owner of this lock waits for nobody: it walks the loader's list, whose lock it already has, or looks into the table.
 * False: another thread has held the lock for longer than that takes.  A thread that is about to unload waits longer, for an
 * owner that has no processor: an object that is not defined before it goes would get the name of the next object at its place.
 */
static bool lock(bool unloads)
{
	uint64_t now, until = 0;

	for (unsigned spins = 0; atomic_exchange_explicit(&locked, 1, memory_order_acquire); spins++) {
		if (spins >= SPINS_MAX) {
			now = sl_now_kernel_ns(CLOCK_MONOTONIC);
			until = until ? until : now + UNLOAD_WAIT_NS;
			if (!unloads || now >= until)
				return false;
		}
		sched_yield();
	}
	return true;
}

static void unlock(void)
{
	atomic_store_explicit(&locked, 0, memory_order_release);
}

static const char digits[] = "0123456789abcdef";

/* The loader has the path as the program gave it, and the program may have gone to another folder since: the kernel knows it. */
static const char *absolute_path(const struct module *module)
{
	char begin[20] = "", *line = module->thread->file;
	size_t at = sizeof(begin) - 1;

	if (module->path[0] == '/' || !strchr(module->path, '/') || sl_open_proc_sandboxed())
		return module->path;
	begin[--at] = '-';
	for (uint64_t left = module->begin; left; left >>= 4)
		begin[--at] = digits[left & 15];
	if (!sl_procfile_find("/proc/self/maps", begin + at, line, SL_TEXT_MAX) || !strchr(line, '/'))
		return module->path;
	return strchr(line, '/');
}

static bool publish(const struct module *module)
{
	char hex[2 * 64];
	struct sl_stacks_thread *thread = module->thread;
	const char *path = module->path ? absolute_path(module) : NULL;
	struct sl_definition map = sl_definition_begin(thread->map, sizeof(thread->map), "module");
	uint32_t n = module->build_id_bytes;

	sl_definition_uint(&map, "id", ++last_id);
	sl_definition_uint(&map, "base", module->begin);
	sl_definition_uint(&map, "end", module->end);
	sl_definition_uint(&map, "bias", module->bias);
	if (path)
		sl_definition_bytes(&map, "path", thread->function,
				    sl_utf8_clean(path, strlen(path), thread->function, sizeof(thread->function)));
	if (n) {
		for (uint32_t i = 0; i < n; i++) {
			hex[2 * i] = digits[module->build_id[i] >> 4];
			hex[2 * i + 1] = digits[module->build_id[i] & 15];
		}
		sl_definition_bytes(&map, "build_id", hex, 2 * n);
	}
	sl_definition_uint(&map, "ns", module->time_ns);
	return sl_define_publish(&map);
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

/* The first place that ends behind the address. */
static uint32_t place_at(uint64_t address)
{
	uint32_t low = 0, high = place_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (places[middle].end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Room for one more place, which may split another in two. */
static bool make_room(void)
{
	uint32_t room = place_room ? 2 * place_room : 128;
	struct place *grown;

	if (place_count + 2 <= place_room)
		return true;
	grown = sl_pages_map(room * sizeof(*grown));
	if (!grown)
		return false;
	if (place_count)
		memcpy(grown, places, place_count * sizeof(*grown));
	places = grown;
	place_room = room;
	return true;
}

static void put(struct place fresh)
{
	uint32_t first = place_at(fresh.begin), next = first, count = 0;
	struct place pieces[3];

	while (next < place_count && places[next].begin < fresh.end)
		next++;
	if (next > first && places[first].begin < fresh.begin) {
		pieces[count] = places[first];
		pieces[count++].end = fresh.begin;
	}
	pieces[count++] = fresh;
	if (next > first && places[next - 1].end > fresh.end) {
		pieces[count] = places[next - 1];
		pieces[count++].begin = fresh.end;
	}
	memmove(&places[first + count], &places[next], (place_count - next) * sizeof(*places));
	memcpy(&places[first], pieces, count * sizeof(*pieces));
	place_count = place_count - (next - first) + count;
}

/* True: another object was last at some of these addresses.  *lives: it is not known to be gone. */
static bool is_other_there(const struct place *fresh, bool *lives)
{
	bool other = false;

	*lives = false;
	for (uint32_t i = place_at(fresh->begin); i < place_count && places[i].begin < fresh->end; i++)
		if (places[i].object != fresh->object) {
			other = true;
			*lives |= !places[i].gone;
		}
	return other;
}

static bool say_no(uint32_t id, const void *what)
{
	return false;
}

static bool say_yes(uint32_t id, const void *what)
{
	return true;
}

/* True: the object came where another was.  The answer of an object is kept, so that stacks through it keep their ids. */
static bool is_moved(struct sl_intern_key hash, bool other)
{
	bool moved = atomic_load(&has_moved) && sl_intern(&movers, hash, say_no, NULL);

	if (moved)
		return true;
	moved = other && !sl_intern(&originals, hash, say_no, NULL);
	if (moved)
		atomic_store(&has_moved, true);
	sl_intern(moved ? &movers : &originals, hash, say_yes, NULL);
	return moved;
}

struct visit {
	struct sl_stacks_thread *thread;
	uint64_t time_ns;
	uint64_t adds, subs;
	bool unloads, locked, failed;
};

/* The program's path is asked of the kernel once: it may forbid itself to ask (seccomp). */
static const char *path_of(const struct dl_phdr_info *info, char *buffer, size_t bytes)
{
	static char program[4096];
	static _Atomic int has_program;
	ssize_t n;

	if (info->dlpi_name && info->dlpi_name[0])
		return info->dlpi_name;
	if (atomic_load(&has_program))
		return program;
	n = sl_file_link("/proc/self/exe", buffer, bytes - 1);
	if (n <= 0) { /* no /proc here: the path as the program was called, perhaps relative */
		const char *called = (const char *)getauxval(AT_EXECFN);
		struct sl_text path = sl_text_begin(buffer, bytes);

		sl_text_add(&path, called ? called : "");
		n = (ssize_t)strlen(buffer);
	}
	buffer[n] = 0;
	if ((size_t)n < sizeof(program)) { /* several threads write the same */
		memcpy(program, buffer, (size_t)n + 1);
		atomic_store(&has_program, 1);
	}
	return buffer;
}

/*
 * The last walk saw another object at this place.  A call that came from there between the two walks may be of either object, as a
 * destructor's call during dlclose is.  So the place is defined as unknown since the last walk, and as this object from now on.
 */
static bool publish_after_doubt(const struct module *module, uint64_t now_ns)
{
	struct module doubt = {.begin = module->begin, .end = module->end, .time_ns = module->time_ns, .thread = module->thread};
	struct module sure = *module;

	sure.time_ns = now_ns;
	return publish(&doubt) && publish(&sure);
}

static bool see(const struct module *module, uint64_t now_ns)
{
	struct place fresh = {module->begin, module->end, .turn = turn}, *listed;
	struct sl_intern_key hash = SL_INTERN_KEY;
	bool other, lives;
	uint32_t at;

	sl_intern_word(&hash, module->begin);
	sl_intern_word(&hash, module->end);
	sl_intern_bytes(&hash, module->path, strlen(module->path));
	sl_intern_bytes(&hash, module->build_id, module->build_id_bytes);
	fresh.object = hash.a;
	at = place_at(module->begin);
	listed = at < place_count ? &places[at] : NULL;
	if (listed && listed->begin == fresh.begin && listed->end == fresh.end && listed->object == fresh.object && !listed->gone) {
		listed->turn = turn;
		return true;
	}
	other = is_other_there(&fresh, &lives);
	if (!make_room() || !(lives ? publish_after_doubt(module, now_ns) : publish(module)))
		return false;
	fresh.moved = is_moved(hash, other);
	put(fresh);
	return true;
}

static int visit_module(struct dl_phdr_info *info, size_t size, void *data)
{
	struct visit *visit = data;
	struct sl_objects_span span;
	struct module module = {.bias = info->dlpi_addr, .thread = visit->thread};

	if (!visit->time_ns) { /* at the first object: has anything changed at all? */
		visit->adds = info->dlpi_adds + 1;
		visit->subs = info->dlpi_subs + 1;
		if (visit->adds == atomic_load(&seen_adds) && visit->subs == atomic_load(&seen_subs)) {
			if (visit->unloads)
				atomic_store(&walked_ns, sl_now_kernel_ns(CLOCK_MONOTONIC));
			return 1;
		}
		visit->locked = lock(visit->unloads);
		visit->failed = !visit->locked;
		if (visit->failed)
			return 1;
		visit->time_ns = sl_now_kernel_ns(CLOCK_MONOTONIC);
		turn++;
	}
	span = sl_objects_span_of(info);
	module.begin = span.begin;
	module.end = span.end;
	if (module.end <= module.begin)
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum && !module.build_id; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uint64_t at = info->dlpi_addr + header->p_vaddr;

		/* Notes that are not loaded (tools for core files make such) are not in memory. */
		if (header->p_type == PT_NOTE && at >= module.begin && at + header->p_memsz <= module.end)
			find_build_id(&module, (const uint8_t *)at, header->p_memsz);
	}
	module.path = path_of(info, visit->thread->file, SL_TEXT_MAX);
	/* It came after the last walk, and so did all that is called in it. */
	module.time_ns = atomic_load(&walked_ns);
	if (!module.time_ns)
		module.time_ns = visit->time_ns;
	visit->failed |= !see(&module, visit->time_ns);
	return 0;
}

/* What no walk sees any more is gone. */
static bool sweep(struct visit *visit)
{
	for (uint32_t i = 0; i < place_count; i++) {
		struct place *place = &places[i];
		struct module none = {.begin = place->begin, .end = place->end, .time_ns = visit->time_ns, .thread = visit->thread};

		if (place->turn != turn && !place->gone && !(place->gone = publish(&none)))
			return false;
	}
	return true;
}

bool sl_modules_define(struct sl_stacks_thread *thread, bool unloads)
{
	struct visit visit = {.thread = thread, .unloads = unloads};

	sl_objects_walk(visit_module, &visit);
	if (!visit.locked)
		return !visit.failed;
	if (!visit.failed && sweep(&visit)) {
		atomic_store(&walked_ns, visit.time_ns);
		atomic_store(&seen_adds, visit.adds);
		atomic_store(&seen_subs, visit.subs);
	}
	unlock();
	return true;
}

bool sl_modules_hash(struct sl_intern_key *hash, void *const *pcs, uint32_t count)
{
	if (!atomic_load(&has_moved))
		return true;
	if (!lock(false))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = place_at((uintptr_t)pcs[i] - 1);

		if (at < place_count && places[at].begin < (uintptr_t)pcs[i] && places[at].moved)
			sl_intern_word(hash, places[at].object);
	}
	unlock();
	return true;
}

void sl_modules_child(void)
{
	sl_intern_reset(&originals);
	sl_intern_reset(&movers);
	place_count = 0;
	atomic_store(&walked_ns, 0);
	last_id = 0;
	atomic_store(&locked, 0);
	atomic_store(&has_moved, false);
	atomic_store(&seen_adds, 0);
	atomic_store(&seen_subs, 0);
}
