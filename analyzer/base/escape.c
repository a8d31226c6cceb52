/* SPDX-License-Identifier: MIT */
#include "analyzer/base/escape.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/utf8.h"
#include "common/arguments.h"

/* Characters that have a meaning in the form. */
static const char *const special[] = {
	[SL_ESCAPE_LINE] = "",	    [SL_ESCAPE_FRAME] = ";",	  [SL_ESCAPE_MARKDOWN] = "\\`*_[]<>|~&:@.$",
	[SL_ESCAPE_XML] = "&<>\"'", [SL_ESCAPE_CSV] = "\";",	  [SL_ESCAPE_METRIC] = "\\\"",
	[SL_ESCAPE_COMMAND] = "%",  [SL_ESCAPE_PROPERTY] = "%:,", [SL_ESCAPE_TEXT] = "",
};

/* "://" and "www." begin a link, a word behind '@' a mention or an address; otherwise these characters are harmless. */
static void put_markdown(FILE *out, const char *begin, const char *at)
{
	bool links = *at == ':' ? !strncmp(at, "://", 3) : at - begin >= 3 && !strncasecmp(at - 3, "www", 3);

	if (!strchr(":.@", *at) || (*at != '@' && links))
		fputc('\\', out);
	fputc(*at, out);
	if (*at == '@' && isalnum((unsigned char)at[1]))
		fputc(' ', out);
}

/* Skips the blanks, of any script, that GitHub's runner removes. */
static const char *behind_blanks(const char *text)
{
	for (const char *next = text; *text && sl_utf8_is_space(sl_utf8_next(&next)); text = next)
		;
	return text;
}

/* A spreadsheet takes full-width forms for the signs themselves. */
static bool begins_formula(const char *text)
{
	uint32_t code = sl_utf8_next(&text);

	return code && wcschr(L"=+-@\t\r\uff1d\uff0b\uff0d\uff20", (wchar_t)code);
}

/* Where ';' separates cells, a cell begins behind it, and the quotes around ours are letters. */
static void put_semicolon(FILE *out, const char *behind)
{
	for (const char *next; (next = *behind == '"' ? behind + 1 : behind_blanks(behind)) > behind;)
		behind = next;
	fputs(begins_formula(behind) ? ";'" : ";", out);
}

static void put_special(FILE *out, enum sl_door door, const char *begin, const char *at)
{
	switch (door) {
	case SL_ESCAPE_FRAME:
		fputc('?', out);
		break;
	case SL_ESCAPE_XML:
		fprintf(out, "&#%u;", (unsigned char)*at);
		break;
	case SL_ESCAPE_CSV:
		if (*at == ';')
			put_semicolon(out, at + 1);
		else
			fputs("\"\"", out);
		break;
	case SL_ESCAPE_COMMAND:
	case SL_ESCAPE_PROPERTY:
		fprintf(out, "%%%02X", (unsigned char)*at);
		break;
	case SL_ESCAPE_MARKDOWN:
		put_markdown(out, begin, at);
		break;
	default:
		fprintf(out, "\\%c", *at);
	}
}

/* "##" begins a command of Azure Pipelines (##vso[), TeamCity and older runners of GitHub, anywhere in a line. */
static void put_hash(FILE *out, enum sl_door door, bool second)
{
	if (second && door == SL_ESCAPE_XML)
		fputs("&#35;", out);
	else
		fputs(!second || door == SL_ESCAPE_TEXT ? "#" : door == SL_ESCAPE_MARKDOWN ? "\\#" : " #", out);
}

static const char *put_shown(FILE *out, enum sl_door door, const char *text)
{
	char shown[SL_UTF8_SEQUENCE];
	unsigned size = sl_utf8_shown(&text, shown, door == SL_ESCAPE_TEXT);

	fwrite(shown, 1, size, out);
	return text;
}

static const char *put_start(FILE *out, enum sl_door door, const char *text, bool *quoted)
{
	const char *word = behind_blanks(text);
	bool command = !strncmp(word, "::", 2);

	*quoted = door == SL_ESCAPE_CSV && strpbrk(text, ",;\"");
	if (*quoted)
		fputc('"', out);
	if (door == SL_ESCAPE_CSV && (command || begins_formula(text)))
		fputc('\'', out);
	if ((door == SL_ESCAPE_LINE || door == SL_ESCAPE_FRAME) && command) {
		while (text < word)
			text = put_shown(out, door, text);
		fputs(": ", out);
		text++;
	}
	return text;
}

void sl_escape_put(FILE *out, enum sl_door door, const char *text)
{
	bool quoted;
	const char *begin = text;

	for (text = put_start(out, door, text, &quoted); *text;) {
		size_t plain = 0;

		while (text[plain] >= 0x20 && text[plain] < 0x7f && text[plain] != '#' && !strchr(special[door], text[plain]))
			plain++;
		fwrite(text, 1, plain, out);
		text += plain;
		if (!*text)
			break;
		if (*text == '#') {
			put_hash(out, door, text > begin && text[-1] == '#');
			text++;
		} else if (strchr(special[door], *text)) {
			put_special(out, door, begin, text++);
		} else {
			text = put_shown(out, door, text);
		}
	}
	if (quoted)
		fputc('"', out);
}

void sl_escape_address(FILE *out, const char *text, const char *plain)
{
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		if (((byte | 32) >= 'a' && (byte | 32) <= 'z') || (byte >= '0' && byte <= '9') || strchr(plain, byte))
			fputc(byte, out);
		else
			fprintf(out, "%%%02X", byte);
	}
}

char *sl_escape_text(const char *text)
{
	size_t plain = 0, size;
	char *clean;
	FILE *memory;

	while (text[plain] >= 0x20 && text[plain] < 0x7f)
		plain++;
	if (!text[plain])
		return sl_memory_copy(text);
	memory = sl_memory_must(open_memstream(&clean, &size));
	sl_escape_put(memory, SL_ESCAPE_TEXT, text);
	fclose(memory);
	return clean;
}

/* ---- printing: the format is parsed, so that the texts are cleaned and the format itself is not */

struct print {
	FILE *out;
	int written;
	bool begins; /* this line has only blanks and colons so far */
	bool colon;  /* its last character is a colon */
};

/* Parts two colons at the beginning of a line, which would begin a command. */
static void part_colons(struct print *p, const char *text)
{
	if (p->begins && p->colon && *text == ':') {
		fputc(' ', p->out);
		p->written++;
	}
}

/* Updates the state after `text` was written. */
static void went(struct print *p, const char *text, size_t size)
{
	const char *line = memrchr(text, '\n', size), *at = line ? line + 1 : text;

	p->written += (int)size;
	if (line)
		p->begins = true, p->colon = false;
	while (p->begins && at < text + size) {
		uint32_t code = sl_utf8_next(&at);

		p->colon = code == ':';
		p->begins = p->colon || sl_utf8_is_space(code);
	}
}

static void print_text(struct print *p, const char *text, const char *flags, int width, int precision)
{
	char *clean = NULL, *part = precision >= 0 ? strndup(text, (size_t)precision) : NULL;
	size_t size = 0;
	FILE *memory = sl_memory_must(open_memstream(&clean, &size));
	const char *plain = part ? part : text;
	int pad;

	if (!p->begins && *behind_blanks(plain) == ':') { /* in the middle of a line it cannot begin a command */
		for (const char *word = behind_blanks(plain); plain <= word;)
			plain = put_shown(memory, SL_ESCAPE_LINE, plain);
	}
	sl_escape_put(memory, SL_ESCAPE_LINE, plain);
	fclose(memory);
	part_colons(p, clean);
	pad = width > (int)size ? width - (int)size : 0;
	if (!strchr(flags, '-'))
		fprintf(p->out, "%*s", pad, "");
	fwrite(clean, 1, size, p->out);
	if (strchr(flags, '-'))
		fprintf(p->out, "%*s", pad, "");
	p->written += pad;
	went(p, clean, size);
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

static int take_number(const char **at, va_list *args)
{
	int number = 0;

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
	width = take_number(&at, args);
	if (*at == '.') {
		at++;
		precision = take_number(&at, args);
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

int sl_escape_print(FILE *out, const char *format, ...)
{
	struct print p = {.out = out, .begins = true};
	va_list args;

	va_start(args, format);
	flockfile(out);
	while (*format) {
		size_t plain = strcspn(format, "%");

		part_colons(&p, format);
		fwrite(format, 1, plain, out);
		went(&p, format, plain);
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
	funlockfile(out);
	va_end(args);
	return p.written;
}

int sl_escape_fail(const char *program, int status, const char *format, ...)
{
	va_list arguments;
	char *why;

	va_start(arguments, format);
	why = sl_memory_vprint(format, arguments);
	va_end(arguments);
	sl_escape_print(stderr, "%s: %s\n", program, why);
	free(why);
	return status;
}

void sl_escape_refuse(const struct sl_arguments *options, const struct sl_option *row, const char *value)
{
	const char *text = options->argv[options->at];
	const struct sl_option *o = options->table;
	size_t size = strcspn(text, "=");

	while (o->name && (strncmp(o->name, text, size) || !o->name[size]))
		o++;
	if (value)
		sl_escape_fail(options->program, 2, "%s is not what this option takes", value);
	else if (row || !o->name)
		sl_escape_fail(options->program, 2, "%s %s; --help lists the options", text,
			       row ? "needs a value" : "is no option");
	else
		sl_escape_fail(options->program, 2, "options are written in full: %s", o->name);
}
