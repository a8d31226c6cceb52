/* SPDX-License-Identifier: MIT */
#include "analyzer/base/door.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/text.h"

/* Characters that have a meaning in the form. */
static const char *const special[] = {
	[SL_DOOR_LINE] = "",	  [SL_DOOR_FRAME] = ";",      [SL_DOOR_MARKDOWN] = "\\`*_[]<>|~&:",
	[SL_DOOR_XML] = "&<>\"'", [SL_DOOR_CSV] = "\"",	      [SL_DOOR_METRIC] = "\\\"",
	[SL_DOOR_COMMAND] = "%",  [SL_DOOR_PROPERTY] = "%:,",
};

static void put_special(FILE *out, enum sl_door door, const char *at)
{
	switch (door) {
	case SL_DOOR_FRAME:
		fputc('?', out);
		break;
	case SL_DOOR_XML:
		fprintf(out, "&#%u;", (unsigned char)*at);
		break;
	case SL_DOOR_CSV:
		fputs("\"\"", out);
		break;
	case SL_DOOR_COMMAND:
	case SL_DOOR_PROPERTY:
		fprintf(out, "%%%02X", (unsigned char)*at);
		break;
	default: /* "://" begins a link; any other colon is harmless */
		if (*at != ':' || !strncmp(at, "://", 3))
			fputc('\\', out);
		fputc(*at, out);
	}
}

static const char *put_start(FILE *out, enum sl_door door, const char *text, bool *quoted)
{
	size_t blank = strspn(text, " ");

	*quoted = door == SL_DOOR_CSV && strpbrk(text, ",\"");
	if (*quoted)
		fputc('"', out);
	if (door == SL_DOOR_CSV && *text && strchr("=+-@\t\r", *text))
		fputc('\'', out);
	if ((door == SL_DOOR_LINE || door == SL_DOOR_FRAME) && !strncmp(text + blank, "::", 2)) {
		fprintf(out, "%*s: ", (int)blank, "");
		return text + blank + 1;
	}
	return text;
}

void sl_door_put(FILE *out, enum sl_door door, const char *text)
{
	bool quoted;
	char shown[SL_TEXT_SEQUENCE];

	for (text = put_start(out, door, text, &quoted); *text;) {
		size_t plain = 0;
		unsigned size;

		while (text[plain] >= 0x20 && text[plain] < 0x7f && text[plain] != '#' && !strchr(special[door], text[plain]))
			plain++;
		fwrite(text, 1, plain, out);
		text += plain;
		if (!*text)
			break;
		if (strchr(special[door], *text)) {
			put_special(out, door, text++);
		} else {
			if (!strncmp(text, "##[", 3)) {
				fputs("## [", out);
				text += 3;
				continue;
			}
			size = sl_text_shown(&text, shown);
			fwrite(shown, 1, size, out);
		}
	}
	if (quoted)
		fputc('"', out);
}

/* ---- printing: the format is parsed, so that the texts are cleaned and the format itself is not */

struct print {
	FILE *out;
	int written;
	bool begins; /* only blanks so far on this line */
};

static void print_text(struct print *p, const char *text, const char *flags, int width, int precision)
{
	char *clean = NULL, *part = precision >= 0 ? strndup(text, (size_t)precision) : NULL;
	size_t size = 0;
	FILE *memory = sl_memory_must(open_memstream(&clean, &size));
	const char *plain = part ? part : text;
	int pad;

	if (!p->begins && plain[strspn(plain, " ")] == ':') { /* in the middle of a line it cannot begin a command */
		fputc(':', memory);
		plain += strspn(plain, " ") + 1;
	}
	sl_door_put(memory, SL_DOOR_LINE, plain);
	fclose(memory);
	pad = width > (int)size ? width - (int)size : 0;
	if (!strchr(flags, '-'))
		fprintf(p->out, "%*s", pad, "");
	fwrite(clean, 1, size, p->out);
	if (strchr(flags, '-'))
		fprintf(p->out, "%*s", pad, "");
	p->written += pad + (int)size;
	p->begins &= clean[strspn(clean, " ")] == 0;
	free(clean);
	free(part);
}

/* Formats a number; `spec` is the conversion with its length. */
static int print_number(FILE *out, const char *spec, char conversion, const char *length, int width, int precision, va_list *args)
{
	if (strchr("eEfgGaA", conversion))
		return fprintf(out, spec, width, precision, va_arg(*args, double));
	if (conversion == 'p')
		return fprintf(out, spec, width, precision, va_arg(*args, void *));
	if (!strcmp(length, "ll") || !strcmp(length, "j"))
		return fprintf(out, spec, width, precision, va_arg(*args, long long));
	if (!strcmp(length, "l") || !strcmp(length, "z") || !strcmp(length, "t"))
		return fprintf(out, spec, width, precision, va_arg(*args, long));
	return fprintf(out, spec, width, precision, va_arg(*args, int));
}

static int take_number(const char **at, va_list *args, int absent)
{
	int number = absent;

	if (**at == '*') {
		++*at;
		return va_arg(*args, int);
	}
	if (**at >= '0' && **at <= '9')
		number = (int)strtol(*at, (char **)at, 10);
	return number;
}

static const char *print_one(struct print *p, const char *at, va_list *args)
{
	char flags[8] = "", length[4] = "", spec[32];
	int width, precision = -1;
	size_t count = strspn(at, "-+ #0");

	memcpy(flags, at, count < sizeof(flags) ? count : sizeof(flags) - 1);
	at += count;
	width = take_number(&at, args, 0);
	if (*at == '.') {
		at++;
		precision = take_number(&at, args, 0);
	}
	count = strspn(at, "hljzt");
	memcpy(length, at, count < sizeof(length) ? count : sizeof(length) - 1);
	at += count;
	if (*at == 's') {
		const char *text = va_arg(*args, const char *);

		print_text(p, text ? text : "(null)", flags, width, precision);
	} else if (*at == 'c') {
		char text[2] = {(char)va_arg(*args, int), 0};

		print_text(p, text, flags, width, precision);
	} else {
		snprintf(spec, sizeof(spec), "%%%s*.*%s%c", flags, length, *at);
		p->written += print_number(p->out, spec, *at, length, width, precision, args);
		p->begins = false;
	}
	return at + 1;
}

int sl_door_print(FILE *out, const char *format, ...)
{
	struct print p = {.out = out, .begins = true};
	va_list args;

	va_start(args, format);
	while (*format) {
		size_t plain = strcspn(format, "%");
		const char *line = memrchr(format, '\n', plain);
		size_t tail = line ? (size_t)(line + 1 - format) : 0;

		p.begins = (line || p.begins) && strspn(format + tail, " ") >= plain - tail;
		fwrite(format, 1, plain, out);
		p.written += (int)plain;
		format += plain;
		if (format[0] == '%' && format[1] == '%') {
			fputc('%', out);
			p.written++;
			p.begins = false;
			format += 2;
		} else if (*format) {
			format = print_one(&p, format + 1, &args);
		}
	}
	va_end(args);
	return p.written;
}
