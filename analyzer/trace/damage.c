/* SPDX-License-Identifier: MIT */
#include "analyzer/base/escape.h"
#include "analyzer/trace/files.h"

#include <stdarg.h>

static void add(struct sl_damage *damage, const char *file, int64_t offset, const char *format, va_list args)
{
	char *what, *line;

	damage->count++;
	file = file ? sl_archive_member(file) : NULL;
	if (damage->lines == SL_DAMAGE_LINES || vasprintf(&what, format, args) < 0)
		return;
	if (file && offset >= 0)
		(void)!asprintf(&line, "%s: offset %lld: %s", file, (long long)offset, what);
	else if (file)
		(void)!asprintf(&line, "%s: %s", file, what);
	else
		line = strdup(what);
	free(what);
	damage->line[damage->lines++] = line;
}

void sl_damage_add(struct sl_damage *damage, const char *file, int64_t offset, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add(damage, file, offset, format, args);
	va_end(args);
	damage->damaged = true;
	damage->readable = false;
}

void sl_damage_lost(struct sl_damage *damage, const char *file, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add(damage, file, -1, format, args);
	va_end(args);
	damage->readable |= !damage->damaged;
	damage->damaged = true;
}

void sl_damage_note(struct sl_damage *damage, const char *file, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add(damage, file, -1, format, args);
	va_end(args);
}

void sl_damage_print(const struct sl_damage *damage)
{
	for (unsigned i = 0; i < damage->lines; i++)
		sl_escape_print(stderr, "stormlog-analyze: %s\n", damage->line[i]);
}

void sl_damage_free(struct sl_damage *damage)
{
	for (unsigned i = 0; i < damage->lines; i++)
		free(damage->line[i]);
	*damage = (struct sl_damage){0};
}
