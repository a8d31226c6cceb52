/* SPDX-License-Identifier: MIT */
/* Names of frames: inlined calls of this program, and Python's frames merged into native ones. */
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyzer/symbols/symbols.h"

/* ---- inlines */

static inline __attribute__((always_inline)) uint64_t innermost(void)
{
	uint64_t pc;

#if defined(__x86_64__)
	__asm__ volatile("leaq 0(%%rip), %0" : "=r"(pc));
#else
	__asm__ volatile("adr %0, ." : "=r"(pc));
#endif
	return pc;
}

static inline __attribute__((always_inline)) uint64_t between(void)
{
	return innermost();
}

static __attribute__((noinline)) uint64_t outermost(void)
{
	return between();
}

/* The build id of this program, as its notes have it in memory. */
static const char *build_id_of(const struct dl_phdr_info *info)
{
	static char text[129];

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const char *at = (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
			   *end = at + info->dlpi_phdr[i].p_memsz;

		while (info->dlpi_phdr[i].p_type == PT_NOTE && at < end) {
			const ElfW(Nhdr) *note = (const void *)at;
			const unsigned char *bits = (const unsigned char *)at + sizeof(*note) + ((note->n_namesz + 3) & ~3u);

			for (unsigned k = 0; note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && k < note->n_descsz && k < 64;
			     k++)
				snprintf(text + 2 * k, 3, "%02x", bits[k]);
			at = (const char *)bits + ((note->n_descsz + 3) & ~3u);
		}
	}
	return text;
}

static int this_program(struct dl_phdr_info *info, size_t size, void *data)
{
	struct sl_module *module = data;

	module->base = info->dlpi_addr;
	if (!module->build_id)
		module->build_id = build_id_of(info);
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD &&
		    info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz > module->end)
			module->end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
	return 1; /* the first object is the program: stop here */
}

static void a_call_that_was_inlined_is_a_frame_of_its_own(void **state)
{
	static char path[4096];
	struct sl_module module = {.path = path};
	struct sl_symbols *symbols = sl_symbols_new();
	struct sl_symbol found[8];
	unsigned count;

	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	dl_iterate_phdr(this_program, &module);
	count = sl_symbols_find(symbols, &(const struct sl_defs){0}, &module, outermost() - 1, found, 8);
	assert_int_equal(count, 3);
	assert_string_equal(found[0].function, "innermost");
	assert_string_equal(found[1].function, "between");
	assert_string_equal(found[2].function, "outermost");
	for (unsigned i = 0; i < 3; i++) {
		assert_non_null(strstr(found[i].file, "test_stacks.c"));
		assert_true(found[i].line > 20 && found[i].line < 60);
	}
	assert_true(found[0].line < found[1].line && found[1].line < found[2].line);
	sl_symbols_free(symbols);
}

static void code_of_another_build_has_no_names(void **state)
{
	static char path[4096];
	struct sl_module module = {.path = path, .build_id = "00000000000000000000000000000000deadbeef"};
	struct sl_symbols *symbols = sl_symbols_new();
	struct sl_symbol found[8];
	const struct sl_symbols_missed *missed;

	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	dl_iterate_phdr(this_program, &module);
	assert_int_equal(sl_symbols_find(symbols, &(const struct sl_defs){0}, &module, outermost() - 1, found, 8), 0);
	assert_int_equal(sl_symbols_missed(symbols, 0, &missed), 1);
	assert_string_equal(missed[0].path, path);
	assert_non_null(strstr(missed[0].why, "another build"));
	sl_symbols_free(symbols);
}

/* ---- Python among native frames */

#define LOOP   0x500000ull /* the evaluation loop */
#define LIB(n) (0x700000ull + 0x100 * (n))

static struct sl_python_frame names[] = {{"inner", 0, 1}, {"helper", 0, 2}, {"outer", 1, 3}, {"main", 1, 4}};
static const char *files[] = {"a.py", "b.py"};

struct world {
	struct sl_defs defs;
	struct sl_python_stack python;
	struct sl_native_stack native;
};

static const uint32_t frame_ids[] = {1, 2, 3, 4};
static struct sl_eval_range loop = {LOOP, LOOP + 0x1000};

static void begin(struct world *w, const uint64_t *pcs, uint32_t pc_count, const uint32_t *boundaries, uint32_t boundary_count)
{
	*w = (struct world){0};
	w->python = (struct sl_python_stack){4, boundary_count, frame_ids, boundaries, false};
	w->native = (struct sl_native_stack){pc_count, pcs, false};
	w->defs.frames.item = names;
	w->defs.frames.count = 4;
	w->defs.files.item = files;
	w->defs.files.count = 2;
	w->defs.pythons.item = &w->python;
	w->defs.pythons.count = 1;
	w->defs.natives.item = &w->native;
	w->defs.natives.count = 1;
	w->defs.evals.item = &loop;
	w->defs.evals.count = 1;
	for (uint32_t i = 0; i < 4; i++)
		sl_idmap_set(&w->defs.frame_ids, i + 1, i);
	sl_idmap_set(&w->defs.python_ids, 1, 0);
	sl_idmap_set(&w->defs.native_ids, 1, 0);
}

static void end(struct world *w)
{
	sl_idmap_free(&w->defs.frame_ids);
	sl_idmap_free(&w->defs.python_ids);
	sl_idmap_free(&w->defs.native_ids);
}

static void expect(struct world *w, const char *wanted)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_stacks_resolve(frames, &w->defs, NULL, (struct sl_stack){.python = 1, .native = 1});
	char text[512] = "";
	size_t at = 0;

	for (unsigned i = 0; i < count; i++)
		at += (size_t)(frames[i].python
				       ? snprintf(text + at, sizeof(text) - at, "%s ", frames[i].function)
				       : snprintf(text + at, sizeof(text) - at, "%llx ", (unsigned long long)frames[i].offset + 1));
	assert_string_equal(text, wanted);
	end(w);
}

static const uint64_t two_loops[] = {LIB(1), LOOP + 8, LIB(2), LOOP + 8, LIB(3)};

static void each_frame_of_the_loop_is_replaced_by_its_run(void **state)
{
	static const uint32_t boundaries[] = {1, 3};
	struct world w;

	begin(&w, two_loops, 5, boundaries, 2);
	expect(&w, "700100 inner helper 700200 outer main 700300 ");
}

static void a_run_of_each_frame_where_every_frame_is_a_boundary(void **state)
{
	static const uint64_t pcs[] = {LIB(1), LOOP + 8, LOOP + 8, LIB(2), LOOP + 8, LOOP + 8, LIB(3)};
	static const uint32_t boundaries[] = {0, 1, 2, 3};
	struct world w;

	begin(&w, pcs, 7, boundaries, 4);
	expect(&w, "700100 inner helper 700200 outer main 700300 ");
}

static void stacks_that_do_not_fit_stand_apart(void **state)
{
	static const uint64_t pcs[] = {LIB(1), LOOP + 8, LIB(2), LIB(9), LIB(3)}; /* LIB(9) was a loop not yet known */
	static const uint32_t boundaries[] = {1, 3};
	struct world w;

	begin(&w, pcs, 5, boundaries, 2);
	expect(&w, "700100 500008 700200 700900 700300 inner helper outer main ");
}

static void a_truncated_native_stack_merges_as_far_as_it_goes(void **state)
{
	static const uint32_t boundaries[] = {1, 3};
	struct world w;

	begin(&w, two_loops, 3, boundaries, 2);
	w.native.truncated = true;
	expect(&w, "700100 inner helper 700200 outer main ");
}

static void a_truncated_python_stack_merges_as_far_as_it_goes(void **state)
{
	static const uint32_t boundaries[] = {1};
	struct world w;

	begin(&w, two_loops, 5, boundaries, 1);
	w.python.truncated = true;
	expect(&w, "700100 inner helper 700200 outer main 700300 ");
}

static void frames_of_the_interpreter_and_its_bridges_fold_unless_there_is_nothing_else(void **state)
{
	static struct sl_module modules[] = {{LIB(1), LIB(2), 0, "/x/libtensor.so", NULL},
					     {LIB(2), LIB(3), 0, "/x/libffi.so.8", NULL},
					     {LIB(3), LIB(4), 0, "/usr/bin/python3.11", NULL}};
	static const uint64_t pcs[] = {LIB(1) + 8, LIB(2) + 8, LOOP + 8, LIB(3) + 8}, only[] = {LIB(2) + 8, LIB(3) + 8};
	struct sl_stack_frame frames[SL_STACK_MAX];
	struct world w;

	begin(&w, pcs, 4, NULL, 0);
	w.defs.modules.item = modules;
	w.defs.modules.count = 3;
	assert_int_equal(sl_stacks_resolve(frames, &w.defs, NULL, (struct sl_stack){.python = 1, .native = 1}), 7);
	assert_int_equal(sl_stacks_fold(frames, 7), 5);
	assert_string_equal(frames[0].module, "libtensor.so");
	assert_string_equal(frames[1].function, "inner");
	modules[1].path = "/opt/lib/python3.12/lib-dynload/_asyncio.cpython-312-x86_64-linux-gnu.so"; /* with symbols */
	assert_int_equal(sl_stacks_resolve(frames, &w.defs, NULL, (struct sl_stack){.python = 1, .native = 1}), 7);
	assert_int_equal(sl_stacks_fold(frames, 7), 5);
	modules[2].path = "/opt/bin/python3.13t"; /* free-threaded */
	assert_int_equal(sl_stacks_resolve(frames, &w.defs, NULL, (struct sl_stack){.python = 1, .native = 1}), 7);
	assert_int_equal(sl_stacks_fold(frames, 7), 5);
	w.native = (struct sl_native_stack){2, only, false};
	assert_int_equal(sl_stacks_resolve(frames, &w.defs, NULL, (struct sl_stack){.native = 1}), 2);
	assert_int_equal(sl_stacks_fold(frames, 2), 2);
	end(&w);
}

static void what_is_in_no_module_is_its_name_alone(void **unused)
{
	char line[64];

	(void)unused;
	sl_stacks_describe(line, sizeof(line), &(struct sl_stack_frame){.function = "made while asleep", .file = "<asleep>"});
	assert_string_equal(line, "made while asleep");
	sl_stacks_describe(line, sizeof(line), &(struct sl_stack_frame){.function = "f", .module = "libx.so"});
	assert_string_equal(line, "libx.so f");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_that_was_inlined_is_a_frame_of_its_own),
		cmocka_unit_test(code_of_another_build_has_no_names),
		cmocka_unit_test(each_frame_of_the_loop_is_replaced_by_its_run),
		cmocka_unit_test(a_run_of_each_frame_where_every_frame_is_a_boundary),
		cmocka_unit_test(what_is_in_no_module_is_its_name_alone),
		cmocka_unit_test(stacks_that_do_not_fit_stand_apart),
		cmocka_unit_test(a_truncated_native_stack_merges_as_far_as_it_goes),
		cmocka_unit_test(a_truncated_python_stack_merges_as_far_as_it_goes),
		cmocka_unit_test(frames_of_the_interpreter_and_its_bridges_fold_unless_there_is_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
