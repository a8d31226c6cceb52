/* SPDX-License-Identifier: MIT */
#include "analyzer/base/host_header.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

void sl_host_header_name(const char *authority, char host[SL_HOST_HEADER_MAX])
{
	const char *text = authority ? authority : "";
	size_t size = *text == '[' ? strcspn(text, "]") + 1 : strcspn(text, ":/");

	if (size >= SL_HOST_HEADER_MAX)
		size = 0;
	for (size_t i = 0; i < size; i++)
		host[i] = (char)tolower((unsigned char)text[i]);
	host[size] = 0;
}

bool sl_host_header_is_ours(const char *host, const char *const *names, unsigned count)
{
	if (!*host)
		return false;
	if (*host == '[' || strspn(host, "0123456789.") == strlen(host) || !strcmp(host, "localhost"))
		return true;
	for (unsigned i = 0; i < count; i++)
		if (!strcasecmp(host, names[i]))
			return true;
	return false;
}
