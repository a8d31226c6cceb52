/* SPDX-License-Identifier: MIT */
#include "agent/symbols/symbols.h"
#include "agent/process/valgrind.h"
#include "common/text.h"

/*
 * A runtime that is linked into the program exports only names that some library has or asks for.  So ask for a function
 * of the C library that only sanitizers replace, and see whether another object provides it.
 */
bool sl_sanitizers_present(void)
{
	const void *rare = sl_resolve_symbol("ether_hostton");

	return sl_valgrind_present() || sl_resolve_symbol("__sanitizer_set_report_fd") ||
	       (rare && !sl_resolve_beside(rare, "gnu_get_libc_version"));
}

/* Other sanitizers leave the C library's usleep as it is. */
bool sl_sanitizers_of_threads(void)
{
	const void *usual = sl_resolve_symbol("usleep");

	return usual && !sl_resolve_beside(usual, "gnu_get_libc_version") && sl_sanitizers_present() && !sl_valgrind_present();
}

/*
 * AddressSanitizer's shared runtime calls a function of this name for its options; the program's own comes first.  By default
 * the runtime insists on being the first library, since an earlier one could hold memory of the C library's malloc.  The agent
 * holds none.  Options that another library gives are passed on.
 */
__attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	static char options[1024];
	const char *(*next)(void) = (const char *(*)(void))sl_resolve_symbol("__asan_default_options");
	struct sl_text text = sl_text_begin(options, sizeof(options));

	sl_text_add(&text, "verify_asan_link_order=0:");
	if (next)
		sl_text_add(&text, next());
	return options;
}
