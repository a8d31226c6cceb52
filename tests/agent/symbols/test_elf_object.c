/* SPDX-License-Identifier: MIT */
#include "tests/agent/test.h"
#include "agent/process/process.h"

/* A loaded object with one symbol, `answer`, at STARTS behind its first byte. */
#define STARTS 24

static struct image {
	ElfW(Dyn) dynamic[4];
	ElfW(Sym) symbols[2];
	uint32_t hash[5]; /* one bucket, two symbols; the bucket, the chain */
	char strings[16];
} image = {
	.symbols[1] = {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1},
	.hash = {1, 2, 1, 0, 0},
	.strings = "\0answer",
};

/* Linked to be at `linked`; the loader has made addresses of what the dynamic section names, or has not. */
static void *answer_of(ElfW(Addr) linked, bool relocated)
{
	ElfW(Addr) base = (ElfW(Addr)) & image - linked, names = linked + (relocated ? base : 0);
	struct sl_elf_name name = sl_elf_name("answer", NULL);
	struct sl_elf_object object;

	image.symbols[1].st_value = linked + STARTS;
	image.dynamic[0] = (ElfW(Dyn)){DT_SYMTAB, {names + offsetof(struct image, symbols)}};
	image.dynamic[1] = (ElfW(Dyn)){DT_STRTAB, {names + offsetof(struct image, strings)}};
	image.dynamic[2] = (ElfW(Dyn)){DT_HASH, {names + offsetof(struct image, hash)}};
	assert_true(sl_elf_read(&object, base, image.dynamic));
	return sl_elf_find(&object, &name);
}

static void a_symbol_is_found_wherever_its_object_was_linked_to_lie(void **state)
{
	static const ElfW(Addr) linked[] = {0, 0x400000, 0x3000000000, 0xffffffffff700000}; /* the last: a vdso before Linux 3.16 */

	for (size_t i = 0; i < sizeof(linked) / sizeof(linked[0]); i++)
		for (int relocated = 0; relocated < 2; relocated++)
			assert_ptr_equal(answer_of(linked[i], relocated), (char *)&image + STARTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_symbol_is_found_wherever_its_object_was_linked_to_lie),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
