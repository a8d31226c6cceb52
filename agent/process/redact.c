/* SPDX-License-Identifier: MIT */
#include "agent/process/process.h"
#include "common/text.h"

#define ARGUMENTS_MAX (16u << 10) /* most bytes of the command line */

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static bool same(const char *bytes, const char *word, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (lower(bytes[i]) != word[i])
			return false;
	return true;
}

static bool contains(const char *bytes, size_t size, const char *word)
{
	size_t length = strlen(word);

	for (; size >= length; bytes++, size--)
		if (same(bytes, word, length))
			return true;
	return false;
}

static bool ends(const char *bytes, size_t size, const char *word)
{
	size_t length = strlen(word);

	return size >= length && same(bytes + size - length, word, length);
}

/* True: a word begins there: at the start, behind a separator, or with a capital (accessToken). */
static bool begins_word(const char *name, size_t at)
{
	return !at || strchr("-_.:+", name[at - 1]) || (lower(name[at]) != name[at] && lower(name[at - 1]) == name[at - 1]);
}

/*
 * True: a thing of this name holds a secret.  Words like "token" count only as the last word: --hf-token holds one,
 * --max-tokens and --tokenizer do not.
 */
static bool is_secret_name(const char *name, size_t size)
{
	static const char *const anywhere[] = {"password", "passwd",  "passphrase", "secret",	    "apikey",
					       "api-key",  "api_key", "credential", "authorization"};
	static const char *const last[] = {"token", "key", "pass", "pwd", "pw", "auth", "cookie", "bearer", "pat"};

	for (size_t i = 0; i < SL_COUNT(anywhere); i++)
		if (contains(name, size, anywhere[i]))
			return true;
	for (size_t i = 0; i < SL_COUNT(last); i++)
		if (ends(name, size, last[i]) && begins_word(name, size - strlen(last[i])))
			return true;
	return false;
}

/* True: it looks like a token of a well-known service, or like an HTTP header with one. */
static bool is_secret_value(const char *value)
{
	static const char *const shapes[] = {"hf_",   "sk-",  "ghp_", "gho_", "ghs_",	 "github_pat_", "glpat-", "xoxb-",
					     "xoxp-", "akia", "asia", "eyjh", "bearer ", "basic ",	"npm_",	  "pypi-"};
	size_t size = strlen(value);

	if (contains(value, size, "authorization:") || contains(value, size, "api-key:") || contains(value, size, "cookie:"))
		return true;
	for (size_t i = 0; i < SL_COUNT(shapes); i++)
		if (size >= strlen(shapes[i]) + 16 && same(value, shapes[i], strlen(shapes[i])))
			return true;
	return false;
}

/* Writes value; if it is a URL, the part between :// and @ is masked. */
static void add_value(struct sl_text *text, const char *value)
{
	const char *scheme, *at;

	if (is_secret_value(value)) {
		sl_text_add(text, SL_REDACTED);
		return;
	}
	while ((scheme = strstr(value, "://"))) {
		scheme += 3;
		at = scheme + strcspn(scheme, "@/?# ");
		sl_text_add_bytes(text, value, (size_t)(scheme - value));
		if (*at == '@') {
			sl_text_add(text, SL_REDACTED);
			scheme = at;
		}
		value = scheme;
	}
	/* masks secrets in a URL's query, up to the next & or the end */
	for (;;) {
		size_t length = strcspn(value, "?&"), name;

		sl_text_add_bytes(text, value, length);
		value += length;
		if (!*value)
			return;
		name = strcspn(value + 1, "=&");
		sl_text_add_bytes(text, value, 1 + name);
		value += 1 + name;
		if (*value != '=' || !is_secret_name(value - name, name))
			continue;
		sl_text_add(text, "=" SL_REDACTED);
		value += strcspn(value, "&# ");
	}
}

void sl_redact_argument(const char *argument, enum sl_redact_follows *follows, char *out, size_t size)
{
	struct sl_text text = sl_text_begin(out, size);
	size_t dashes = strspn(argument, "-"), name = strcspn(argument + dashes, "=: \t\n'\"");
	bool secret = is_secret_name(argument + dashes, name), alone = dashes && !argument[dashes + name];
	enum sl_redact_follows announced = *follows;

	*follows = SL_REDACT_NOTHING;
	if (alone && secret)
		*follows = SL_REDACT_SECRET;
	else if (alone && (!strcmp(argument, "-u") || !strcmp(argument, "--user")))
		*follows = SL_REDACT_USER;
	if (!dashes && (announced == SL_REDACT_SECRET || (announced == SL_REDACT_USER && strchr(argument, ':')))) {
		sl_text_add(&text, SL_REDACTED);
		return;
	}
	if (argument[dashes + name] == '=') {
		sl_text_add_bytes(&text, argument, dashes + name + 1);
		argument += dashes + name + 1;
		if (secret && *argument) {
			sl_text_add(&text, SL_REDACTED);
			return;
		}
	}
	add_value(&text, argument);
}

void sl_redact_pack(struct sl_definition *out, const char *cmdline)
{
	static char line[ARGUMENTS_MAX], masked[ARGUMENTS_MAX]; /* too large for the stack of a small thread */
	long size = sl_procfile_read(cmdline, line, sizeof(line));
	enum sl_redact_follows follows = SL_REDACT_NOTHING;
	unsigned count = 0;

	for (long i = 0; i < size; i++)
		count += !line[i];
	if (size > 0 && line[size - 1])
		count++; /* cut here, or rewritten by the program without its terminator */
	sl_definition_key(out, "argv");
	sl_pack_array(&out->pack, count);
	for (const char *at = line; count--; at += strlen(at) + 1) {
		sl_redact_argument(at, &follows, masked, sizeof(masked));
		sl_pack_text(&out->pack, masked);
	}
}
