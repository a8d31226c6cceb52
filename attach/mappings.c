/* SPDX-License-Identifier: MIT */
#include "attach/mappings.h"

#include <stdio.h>
#include <string.h>

void sl_mappings_each(long pid, bool (*each)(void *data, const struct sl_mapping *mapping), void *data)
{
	char path[64], line[8192];
	bool over = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/maps", pid);
	file = fopen(path, "re");
	while (file && !over && fgets(line, sizeof(line), file)) {
		struct sl_mapping mapping = {.name = strchr(line, '/')};
		unsigned long long begin, end, offset;
		char rights[8];

		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%llx-%llx %7s %llx", &begin, &end, rights, &offset) != 4)
			continue;
		mapping.begin = begin;
		mapping.end = end;
		mapping.offset = offset;
		mapping.is_code = rights[2] == 'x';
		if (mapping.name)
			snprintf(mapping.path, sizeof(mapping.path), "/proc/%ld/root%s", pid, mapping.name);
		over = each(data, &mapping);
	}
	if (file)
		fclose(file);
}
