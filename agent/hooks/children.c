/* SPDX-License-Identifier: MIT */
#include "agent/hooks/parts.h"
#include "agent/file/file.h"
#include "agent/stacks/stacks.h"
#include "agent/symbols/symbols.h"
#include "common/text.h"

#define NAME "LD_PRELOAD="
/* Modules already loaded at the start: preloaded ones come right behind the program and are never unloaded */
#define AT_START 16
/* Bytes on the stack of the thread that starts a child: always, and where the stack is known to have them. */
#define LITTLE 8192u
#define MOST   (256u << 10)
#define BELOW  16384u /* what exec and spawn take themselves, below that */

struct environment {
	size_t count, preload; /* preload: index of LD_PRELOAD in the environment; it equals count if there is none */
	bool records;	       /* the child is to be recorded: it inherits our settings */
};

static bool begins(const char *entry, const char *name)
{
	return !strncmp(entry, name, strlen(name));
}

static struct environment look_at(char *const *envp)
{
	struct environment found = {.preload = SIZE_MAX};
	bool disabled = false;

	for (; envp && envp[found.count]; found.count++) { /* without an environment the kernel gives an empty one */
		const char *entry = envp[found.count];

		if (begins(entry, NAME) && found.preload == SIZE_MAX)
			found.preload = found.count;
		found.records |= begins(entry, "STORMLOG_DIR=") || begins(entry, "STORMLOG_LAUNCHER=");
		disabled |= !strcmp(entry, "STORMLOG_DISABLE=1");
	}
	found.records &= !disabled;
	if (found.preload == SIZE_MAX)
		found.preload = found.count;
	return found;
}

/* The path under which the agent was preloaded; NULL where this code is linked into a program, as in the tests. */
static const char *own_path(void)
{
	const struct link_map *object = sl_objects_first();

	for (unsigned i = 0; object && i < AT_START; i++, object = object->l_next)
		if (object->l_name && strstr(object->l_name, SL_IDENTITY_LIBRARY))
			return object->l_name;
	return NULL;
}

/* noted_for: the recording that has this note already. */
static void say(_Atomic uint64_t *noted_for, const char *note)
{
	uint64_t generation = atomic_load(&sl_agent->generation);

	if (generation && atomic_exchange(noted_for, generation) != generation)
		sl_define_note(note);
}

size_t sl_children_room(char *const *envp)
{
	struct environment found = look_at(envp);
	static _Atomic uint64_t removed, too_large;
	const char *value, *own;
	size_t bytes;

	if (!found.records)
		return 0;
	value = envp[found.preload];
	if (value && strstr(value, SL_IDENTITY_LIBRARY))
		return 0;
	if (!value || !value[strlen(NAME)]) {
		say(&removed, "a program was started with LD_PRELOAD taken away: it and its children are not recorded");
		return 0;
	}
	own = own_path();
	bytes = own ? (found.count + 1) * sizeof(*envp) + strlen(NAME) + strlen(own) + strlen(value) : 0;
	if (bytes <= LITTLE || (bytes <= MOST && sl_stacks_could_take(bytes + BELOW)))
		return bytes;
	say(&too_large,
	    "a program was started with LD_PRELOAD changed, and with more variables than there is room for on the stack of "
	    "the thread that started it: it and its children are not recorded");
	return 0;
}

char *const *sl_children_fill(char *const *envp, void *room, size_t bytes)
{
	struct environment found = look_at(envp);
	size_t vector_bytes = (found.count + 1) * sizeof(*envp);
	struct sl_text entry = sl_text_begin((char *)room + vector_bytes, bytes - vector_bytes);
	char **vector = room;

	memcpy(vector, envp, vector_bytes);
	sl_text_add(&entry, NAME);
	sl_text_add(&entry, own_path());
	sl_text_add(&entry, ":");
	sl_text_add(&entry, envp[found.preload] + strlen(NAME));
	vector[found.preload] = entry.text;
	return vector;
}
