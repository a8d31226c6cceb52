/* SPDX-License-Identifier: MIT */
/* stormlog-analyze info: what this machine has. */
#include <dlfcn.h>
#include <link.h>

#include "analyzer/base/format.h"
#include "analyzer/base/json.h"
#include "analyzer/commands/commands.h"

static const char about[] =
	"This machine's drivers, its devices and their present use, the vendors' libraries that a program would "
	"find, and how many recordings run.  `ranks` shows what they hold.";

struct info {
	bool json;
	struct sl_machine machine;
	unsigned recordings;
};

#define INTO struct info
static const struct sl_option table[] = {
	{"--json", 0, NULL, "a JSON object on stdout (schemas/info.schema.json)", SL_TO_FLAG(json)},
	{0},
};

static const char *const libraries[] = {"libcuda.so.1",	    "libnvidia-ml.so.1",     "libcudart.so.11.0", "libcudart.so.12",
					"libcudart.so.13",  "libnccl.so.2",	     "libamdhip64.so.5",  "libamdhip64.so.6",
					"libamdhip64.so.7", "libhsa-runtime64.so.1", "librccl.so.1"};

/* Where a program would find this library; it is loaded.  False: nowhere. */
static bool find_library(const char *name, char *path, size_t size)
{
	void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
	struct link_map *map = NULL;

	if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map))
		return false;
	snprintf(path, size, "%s", map->l_name);
	return true;
}

static void put_text(const struct info *info, const struct sl_terminal *to)
{
	const struct sl_machine *machine = &info->machine;
	struct sl_cells devices = {.columns = "llrrw"}, found = {.columns = "lw"};
	static const char *const titles[] = {"device", "driver", "in use", "of", "name"};

	if (*machine->nvidia_driver)
		sl_terminal_line(to, 0, 4, "driver of NVIDIA %s, CUDA up to %s", machine->nvidia_driver,
				 *machine->cuda ? machine->cuda : "?");
	if (!machine->devices.count)
		sl_terminal_line(to, 0, 4,
				 "no device: no driver of NVIDIA or AMD answers here.  A dry run works without: stormlog-run "
				 "--dry=list");
	for (size_t i = 0; i < SL_COUNT(titles) && machine->devices.count; i++)
		sl_cells_put(&devices, SL_COLOUR_DIM, "%s", titles[i]);
	for (size_t i = 0; i < machine->devices.count; i++) {
		const struct sl_machine_device *d = &machine->devices.item[i];

		sl_cells_put(&devices, SL_COLOUR_NONE, "%u", d->index);
		sl_cells_put(&devices, SL_COLOUR_NONE, "%s", d->family);
		sl_cells_put(&devices, SL_COLOUR_NONE, "%s", d->used_bytes == SL_MACHINE_UNKNOWN ? "?" : SL_SIZE(d->used_bytes));
		sl_cells_put(&devices, SL_COLOUR_NONE, "%s", d->total_bytes == SL_MACHINE_UNKNOWN ? "?" : SL_SIZE(d->total_bytes));
		sl_cells_put(&devices, SL_COLOUR_NONE, "%s%s", *d->uuid ? d->uuid : d->pci, d->mig ? ", divided (MIG)" : "");
	}
	sl_cells_print(&devices, to, 2);
	for (size_t i = 0; i < SL_COUNT(libraries); i++) {
		char path[PATH_MAX];

		if (!find_library(libraries[i], path, sizeof(path)))
			continue;
		if (!found.cell.count)
			puts("libraries");
		sl_cells_put(&found, SL_COLOUR_NONE, "%s", libraries[i]);
		sl_cells_put(&found, SL_COLOUR_NONE, "%s", path);
	}
	sl_cells_print(&found, to, 2);
	sl_terminal_line(to, 0, 4, "%u recording%s%s", info->recordings, info->recordings == 1 ? " runs" : "s run",
			 info->recordings ? ": stormlog-analyze ranks" : "");
}

static bool put_json(const struct info *info)
{
	struct sl_json *j = sl_json_new(stdout, SL_JSON_INDENT);

	sl_json_document(j, "stormlog.info", 1);
	sl_json_string(j, "nvidia_driver", *info->machine.nvidia_driver ? info->machine.nvidia_driver : NULL);
	sl_json_string(j, "cuda", *info->machine.cuda ? info->machine.cuda : NULL);
	sl_json_array(j, "devices");
	for (size_t i = 0; i < info->machine.devices.count; i++) {
		const struct sl_machine_device *d = &info->machine.devices.item[i];

		sl_json_object(j, NULL);
		sl_json_string(j, "family", d->family);
		sl_json_uint(j, "device", d->index);
		sl_json_string(j, "uuid", *d->uuid ? d->uuid : NULL);
		sl_json_string(j, "pci", *d->pci ? d->pci : NULL);
		sl_json_known_uint(j, "total_bytes", d->total_bytes);
		sl_json_known_uint(j, "used_bytes", d->used_bytes);
		sl_json_bool(j, "mig", d->mig);
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_json_array(j, "libraries");
	for (size_t i = 0; i < SL_COUNT(libraries); i++) {
		char path[PATH_MAX];

		if (!find_library(libraries[i], path, sizeof(path)))
			continue;
		sl_json_object(j, NULL);
		sl_json_string(j, "name", libraries[i]);
		sl_json_string(j, "path", path);
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_json_uint(j, "recordings", info->recordings);
	return sl_json_finish(j);
}

static int run(struct sl_arguments *parsed)
{
	struct info info = {0};
	struct sl_follow *follow;
	struct sl_terminal to = sl_terminal_here();
	int status = sl_arguments_parse(parsed, NULL, &info);

	if (status >= 0)
		return status;
	follow = sl_follow_new();
	sl_machine_look(&info.machine);
	sl_follow_node(follow, 0);
	info.recordings = sl_follow_count(follow);
	if (!info.json)
		put_text(&info, &to);
	status = !info.json || put_json(&info) ? SL_EXIT_FINE : SL_EXIT_UNSAVED;
	sl_follow_free(follow);
	sl_machine_free(&info.machine);
	return status;
}

const struct sl_command sl_command_info = {
	"info", "drivers, devices and libraries of this machine", "info [options]", about, table, run, SL_PATHS_NONE};
