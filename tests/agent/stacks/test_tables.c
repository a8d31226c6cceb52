/* SPDX-License-Identifier: MIT */
/* Damaged unwind tables: those of a copy of libm with nothing mapped around its segments, intact and changed at random. */
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "agent/stacks/inner.h"
#include "agent/symbols/symbols.h"
#include "tests/agent/test.h"

#define PAGE   4096u
#define ROUNDS 4000u
#define ASKED  40u /* addresses in each round */

static struct dl_phdr_info original, copy;
static const struct dl_phdr_info *walked;
static uintptr_t code, code_bytes, header, tables_bytes;
static uint8_t *whole; /* the tables unchanged */
static uint64_t seed = 88172645463325252u;

_Atomic uint64_t sl_objects_unloads, sl_objects_loads;

int sl_objects_walk(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data)
{
	struct dl_phdr_info info = *walked;

	return visit(&info, sizeof(info), data);
}

static uint64_t draw(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 20) % below;
}

static int find_libm(struct dl_phdr_info *info, size_t size, void *unused)
{
	if (!strstr(info->dlpi_name, "/libm.so"))
		return 0;
	original = *info;
	return 1;
}

/* Tables and what is around them can be written in the copy; between segments nothing is mapped. */
static int make_copy(void **unused)
{
	uintptr_t end = 0, base, segment_end = 0;

	walked = &original;
	assert_int_equal(dl_iterate_phdr(find_libm, NULL), 1);
	for (unsigned i = 0; i < original.dlpi_phnum; i++)
		if (original.dlpi_phdr[i].p_type == PT_LOAD)
			end = original.dlpi_phdr[i].p_vaddr + original.dlpi_phdr[i].p_memsz;
	base = (uintptr_t)mmap(NULL, end + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + PAGE;
	copy = original;
	copy.dlpi_addr = base;
	for (unsigned i = 0; i < original.dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &original.dlpi_phdr[i];
		uintptr_t from = part->p_vaddr & ~(uintptr_t)(PAGE - 1);

		if (part->p_type == PT_GNU_EH_FRAME)
			header = base + part->p_vaddr;
		if (part->p_type != PT_LOAD)
			continue;
		mprotect((void *)(base + from), part->p_vaddr + part->p_filesz - from, PROT_READ | PROT_WRITE);
		memcpy((void *)(base + part->p_vaddr), (void *)(original.dlpi_addr + part->p_vaddr), part->p_filesz);
		if (part->p_flags & PF_X) {
			code = part->p_vaddr;
			code_bytes = part->p_filesz;
		}
	}
	for (unsigned i = 0; i < original.dlpi_phnum; i++)
		if (original.dlpi_phdr[i].p_type == PT_LOAD &&
		    header - (base + original.dlpi_phdr[i].p_vaddr) < original.dlpi_phdr[i].p_filesz)
			segment_end = base + original.dlpi_phdr[i].p_vaddr + original.dlpi_phdr[i].p_filesz;
	tables_bytes = segment_end - header;
	whole = malloc(tables_bytes);
	memcpy(whole, (void *)header, tables_bytes);
	return 0;
}

static struct sl_cfi_rule find_in(const struct dl_phdr_info *object, uintptr_t at)
{
	walked = object;
	return sl_cfi_find(object->dlpi_addr + at);
}

static void begin(void)
{
	memcpy((void *)header, whole, tables_bytes);
	sl_objects_unloads += SL_UNLOAD; /* as if another object had been loaded: what was cached is stale */
	atomic_store(&sl_cfi_lies, false);
}

static void a_whole_table_does_not_lie(void **unused)
{
	unsigned simple = 0;

	begin();
	for (uintptr_t at = code; at < code + code_bytes; at += 7) {
		struct sl_cfi_rule of_copy = find_in(&copy, at), of_original = find_in(&original, at);

		simple += of_copy.kind != SL_CFI_NONE;
		assert_memory_equal(&of_copy, &of_original, sizeof(of_copy));
	}
	assert_true(simple > 10000);
	assert_false(atomic_load(&sl_cfi_lies));
}

static void ask(void)
{
	for (unsigned i = 0; i < ASKED; i++)
		find_in(&copy, code + draw(code_bytes));
}

/* Noise over all of it, over the index alone or over what follows it, whole or in one byte of eight. */
static void noise_is_told(void **unused)
{
	for (unsigned round = 0; round < ROUNDS / 4; round++) {
		uint32_t count;
		uintptr_t index, from, to;

		begin();
		memcpy(&count, whole + 8, sizeof(count));
		index = 12 + 8 * (uintptr_t)count;
		from = round % 3 == 2 ? index : 0;
		to = round % 3 == 1 ? index : tables_bytes;
		for (uintptr_t i = from; i < to; i++)
			if (round % 5 < 3 || !draw(8))
				((uint8_t *)header)[i] = (uint8_t)draw(256);
		ask();
		assert_true(atomic_load(&sl_cfi_lies));
	}
}

/* A table with a few changed bytes may still look like one; nothing outside the object may be read by it. */
static void no_change_leads_out_of_the_object(void **unused)
{
	unsigned told = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		uintptr_t near = draw(4) ? draw(tables_bytes - 64) : 0;

		begin();
		for (unsigned changes = 1 + (unsigned)draw(4); changes; changes--) {
			uint8_t *at = (uint8_t *)header + (draw(2) ? near + draw(64) : draw(tables_bytes));

			*at = draw(2) ? (uint8_t)draw(256) : (uint8_t)(draw(2) ? 0xff : *at ^ 1 << draw(8));
		}
		ask();
		told += atomic_load(&sl_cfi_lies);
	}
	print_message("%u of %u tables with a few changes were told\n", told, ROUNDS);
}

static void pages_that_cannot_be_read_are_left_alone(void **unused)
{
	unsigned told = 0, rounds = 0;

	for (uintptr_t page = header & ~(uintptr_t)(PAGE - 1); page < header + tables_bytes; page += PAGE, rounds++) {
		begin();
		assert_false(mprotect((void *)page, PAGE, PROT_NONE));
		ask();
		told += atomic_load(&sl_cfi_lies);
		assert_false(mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE));
	}
	assert_true(told > rounds / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_table_does_not_lie),
		cmocka_unit_test(noise_is_told),
		cmocka_unit_test(no_change_leads_out_of_the_object),
		cmocka_unit_test(pages_that_cannot_be_read_are_left_alone),
	};
	volatile double loads_libm = 2;

	return pow(loads_libm, loads_libm) != 4 ? 1 : cmocka_run_group_tests(tests, make_copy, NULL);
}
