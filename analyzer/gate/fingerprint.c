/* SPDX-License-Identifier: MIT */
#include "analyzer/gate/gate.h"
#include "analyzer/base/paths.h"
#include "common/fnv.h"

void sl_fingerprint_library(char *out, size_t size, const char *library)
{
	const char *so = library ? strstr(library, ".so") : NULL;
	const char *python = !library ? NULL : !strncmp(library, "lib", 3) ? library + 3 : library;

	/* python3.11, libpython3.11.so.1.0, python */
	if (python && !strncmp(python, "python", 6) && (!python[6] || (python[6] >= '0' && python[6] <= '9')))
		snprintf(out, size, "python");
	else
		snprintf(out, size, "%.*s",
			 (int)(!library				? 0
			       : so && (!so[3] || so[3] == '.') ? so + 3 - library
								: (long)strlen(library)),
			 library ? library : "");
}

/* Suffixes that compilers add to names: clone.part.0, clone.constprop.3, clone.isra.0, clone.cold, clone.llvm.123 */
static size_t plain_length(const char *function)
{
	static const char *const added[] = {".part.", ".constprop.", ".isra.", ".cold", ".llvm.", ".lto_priv."};
	size_t length = strlen(function);

	for (size_t i = 0; i < SL_COUNT(added); i++) {
		const char *at = strstr(function, added[i]);

		if (at && (size_t)(at - function) < length)
			length = (size_t)(at - function);
	}
	return length;
}

static uint64_t mix_frame(uint64_t hash, const struct sl_stack_frame *frame)
{
	char module[256];
	const char *file = sl_paths_name(frame->file);

	if (frame->python) {
		hash = sl_utf8_mix_text(hash, file);
	} else {
		sl_fingerprint_library(module, sizeof(module), frame->module);
		hash = sl_utf8_mix_text(hash, module);
	}
	return sl_utf8_mix(hash, frame->function ? frame->function : "", frame->function ? plain_length(frame->function) : 0);
}

enum part { PART_OWN, PART_PYTHON, PART_NATIVE };

static bool belongs(const struct sl_stack_frame *frame, enum part part)
{
	if (part == PART_NATIVE)
		return !frame->python && !frame->inlined;
	return frame->python && (part == PART_PYTHON || sl_stacks_is_own(frame));
}

void sl_fingerprint(char out[SL_FINGERPRINT_BYTES], unsigned kind, const char *library, const struct sl_stack_frame *frames,
		    unsigned count)
{
	uint64_t hash = SL_FNV_START, before = 0;
	char name[256];
	bool any = false;

	sl_fingerprint_library(name, sizeof(name), library);
	hash = sl_utf8_mix_text(hash, sl_event_kinds[kind].name);
	hash = sl_utf8_mix_text(hash, name);
	for (enum part part = PART_OWN; part <= PART_NATIVE && !any; part++)
		for (unsigned i = 0; i < count; i++) {
			uint64_t one;

			if (!belongs(&frames[i], part))
				continue;
			one = mix_frame(0, &frames[i]);
			any = true;
			if (one != before) /* a recursion counts once, whatever its depth */
				hash = sl_utf8_mix(hash, (const char *)&one, sizeof(one));
			before = one;
		}
	snprintf(out, SL_FINGERPRINT_BYTES, "%016llx", (unsigned long long)hash);
}
