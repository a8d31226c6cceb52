/* SPDX-License-Identifier: MIT */
#include "tools/attach/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void count(void *data, const char *name, const Elf64_Sym *symbol)
{
	(void)name;
	(void)symbol;
	++*(unsigned *)data;
}

/* A copy of this program, which exports names (-rdynamic). */
static void copy_self(const char *path)
{
	char bytes[4096];
	FILE *from = fopen("/proc/self/exe", "rb"), *to = fopen(path, "wb");
	size_t got;

	assert_true(from && to);
	while ((got = fread(bytes, 1, sizeof(bytes), from)))
		assert_int_equal(fwrite(bytes, 1, got, to), got);
	fclose(from);
	fclose(to);
}

static void test_a_file_that_is_cut_while_it_is_open_reads_as_zeros_from_there(void **state)
{
	char path[] = "/tmp/stormlog-exports-XXXXXX";
	struct sl_exports file;
	unsigned before = 0, after = 0;

	(void)state;
	close(mkstemp(path));
	copy_self(path);
	assert_true(sl_exports_open(&file, path));
	sl_exports_each(&file, count, &before);
	assert_true(before);
	assert_int_equal(truncate(path, 64), 0);
	sl_exports_each(&file, count, &after);
	assert_int_equal(after, 0);
	assert_int_equal(file.bytes[file.size - 1], 0);
	sl_exports_close(&file);
	unlink(path);
}

/* Writes an ELF file with `tables` section headers of one symbol table, whose symbols all have the same name. */
static void write_tables(const char *path, uint16_t tables, uint64_t symbols, uint64_t name_bytes)
{
	const Elf64_Sym symbol = {.st_name = 1, .st_info = STT_FUNC, .st_shndx = 1};
	const Elf64_Off at = 4096, names = at + symbols * sizeof(symbol), headers = names + name_bytes;
	const Elf64_Ehdr elf = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64},
				.e_shoff = headers,
				.e_shentsize = sizeof(Elf64_Shdr),
				.e_shnum = (uint16_t)(tables + 1)};
	const Elf64_Shdr text = {.sh_type = SHT_STRTAB, .sh_offset = names, .sh_size = name_bytes},
			 table = {.sh_type = SHT_DYNSYM, .sh_offset = at, .sh_size = symbols * sizeof(symbol)};
	FILE *to = fopen(path, "wb");

	assert_true(to && fwrite(&elf, sizeof(elf), 1, to));
	fseek(to, (long)at, SEEK_SET);
	for (uint64_t i = 0; i < symbols; i++)
		assert_true(fwrite(&symbol, sizeof(symbol), 1, to));
	fputc(0, to);
	for (uint64_t i = 2; i < name_bytes; i++)
		fputc('n', to);
	fputc(0, to);
	assert_true(fwrite(&text, sizeof(text), 1, to));
	for (unsigned i = 0; i < tables; i++)
		assert_true(fwrite(&table, sizeof(table), 1, to));
	fclose(to);
}

static void test_a_file_that_was_made_to_be_read_for_ever_is_read_once(void **state)
{
	static const struct {
		uint16_t tables;
		uint64_t symbols, name_bytes;
		unsigned seen;
	} made[] = {{1, 1000, 8, 1000}, {60000, 1000, 8, 1000}, {1, (1 << 20) + 9, 8, 1 << 20}, {1, 1000, 1 << 20, 0}};
	char path[] = "/tmp/stormlog-exports-XXXXXX";

	(void)state;
	close(mkstemp(path));
	for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
		struct sl_exports file;
		unsigned seen = 0;

		write_tables(path, made[i].tables, made[i].symbols, made[i].name_bytes);
		assert_true(sl_exports_open(&file, path));
		sl_exports_each(&file, count, &seen);
		assert_int_equal(seen, made[i].seen);
		sl_exports_close(&file);
	}
	unlink(path);
}

static void test_what_is_no_file_is_not_waited_for(void **state)
{
	char folder[] = "/tmp/stormlog-exports-XXXXXX", path[64];
	struct sl_exports file;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/fifo", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_false(sl_exports_open(&file, path));
	assert_false(sl_exports_open(&file, "/dev/zero"));
	assert_int_equal(errno, ENOEXEC);
	assert_false(sl_exports_open(&file, "/proc/self/none"));
	assert_int_equal(errno, ENOENT);
	unlink(path);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_file_that_is_cut_while_it_is_open_reads_as_zeros_from_there),
		cmocka_unit_test(test_a_file_that_was_made_to_be_read_for_ever_is_read_once),
		cmocka_unit_test(test_what_is_no_file_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
