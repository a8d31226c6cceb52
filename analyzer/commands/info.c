/* SPDX-License-Identifier: MIT */
/* stormlog-analyze info: this machine, and those of its libraries that would be recorded. */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/format.h"
#include "analyzer/base/json.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/commands.h"
#include "analyzer/machine/machine.h"

struct settings {
	bool json;
};

#define INTO struct settings
static const struct sl_option table[] = {
	{"--json", 0, NULL, "print it as JSON (schemas/info.schema.json)", SL_TO_FLAG(json)},
	{0},
};

struct host {
	struct utsname system;
	char distribution[128];
	long cpus;
	uint64_t memory_bytes;
};

static void look_at_host(struct host *host)
{
	FILE *release = fopen("/etc/os-release", "re");
	char line[256];

	*host = (struct host){.cpus = sysconf(_SC_NPROCESSORS_ONLN),
			      .memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE)};
	uname(&host->system);
	while (release && fgets(line, sizeof(line), release))
		if (sscanf(line, "PRETTY_NAME=\"%127[^\"]", host->distribution) == 1)
			break;
	if (release)
		fclose(release);
}

static const char *or_null(const char *text)
{
	return *text ? text : NULL;
}

static void put_device(struct sl_json *j, const struct sl_machine_device *device)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "family", device->family);
	sl_json_uint(j, "index", device->index);
	sl_json_string(j, "name", or_null(device->name));
	sl_json_string(j, "uuid", or_null(device->uuid));
	sl_json_string(j, "pci", or_null(device->pci));
	sl_json_bool(j, "mig", device->mig);
	sl_json_bool(j, "shares_host", device->shares_host);
	sl_json_known_uint(j, "total_bytes", device->total_bytes);
	sl_json_known_uint(j, "used_bytes", device->used_bytes);
	sl_json_end(j);
}

static bool put_json(const struct host *host, const struct sl_machine *machine)
{
	struct sl_json *j = sl_json_new(stdout, SL_JSON_INDENT);

	sl_json_document(j, "stormlog.info", 1);
	sl_json_string(j, "version", SL_VERSION);
	sl_json_string(j, "host", host->system.nodename);
	sl_json_string(j, "kernel", host->system.release);
	sl_json_string(j, "architecture", host->system.machine);
	sl_json_string(j, "distribution", or_null(host->distribution));
	sl_json_int(j, "cpus", host->cpus);
	sl_json_uint(j, "memory_bytes", host->memory_bytes);
	sl_json_object(j, "drivers");
	sl_json_string(j, "nvidia", or_null(machine->nvidia_driver));
	sl_json_string(j, "cuda", or_null(machine->cuda));
	sl_json_string(j, "amdgpu", or_null(machine->amdgpu));
	sl_json_string(j, "no_nvml", machine->no_nvml);
	sl_json_end(j);
	sl_json_array(j, "devices");
	for (size_t i = 0; i < machine->devices.count; i++)
		put_device(j, &machine->devices.item[i]);
	sl_json_end(j);
	sl_json_array(j, "libraries");
	for (size_t i = 0; i < machine->libraries.count; i++) {
		sl_json_object(j, NULL);
		sl_json_string(j, "path", machine->libraries.item[i].path);
		sl_json_string(j, "recorded", machine->libraries.item[i].what);
		sl_json_end(j);
	}
	sl_json_end(j);
	return sl_json_finish(j);
}

static void put_text(const struct host *host, const struct sl_machine *machine)
{
	char used[SL_FORMAT_BYTES] = "?", total[SL_FORMAT_BYTES] = "?";

	sl_escape_print(stdout, "%s  %s, Linux %s, %s  %ld cores, %s\n", host->system.nodename,
			*host->distribution ? host->distribution : "unknown", host->system.release, host->system.machine,
			host->cpus, SL_SIZE(host->memory_bytes));
	if (machine->no_nvml)
		sl_escape_print(stdout, "NVIDIA  %s\n", machine->no_nvml);
	else
		sl_escape_print(stdout, "NVIDIA  driver %s, CUDA up to %s\n", machine->nvidia_driver, machine->cuda);
	if (*machine->amdgpu)
		sl_escape_print(stdout, "AMD     amdgpu %s\n", machine->amdgpu);
	for (size_t i = 0; i < machine->devices.count; i++) {
		const struct sl_machine_device *device = &machine->devices.item[i];

		if (device->used_bytes != SL_MACHINE_UNKNOWN)
			sl_format_size(used, device->used_bytes);
		if (device->total_bytes != SL_MACHINE_UNKNOWN)
			sl_format_size(total, device->total_bytes);
		sl_escape_print(stdout, "GPU %-3u %s  %s of %s in use%s  %s\n", device->index,
				*device->name ? device->name : device->family, used, total,
				device->mig	      ? ", cut into MIG instances"
				: device->shares_host ? " by host and device, which share it"
						      : "",
				device->uuid);
	}
	if (!machine->devices.count)
		fputs("no GPU is known to a driver here\n", stdout);
	fputs("would be recorded of a program that loads them:\n", stdout);
	for (size_t i = 0; i < machine->libraries.count; i++)
		sl_escape_print(stdout, "  %-32s %s\n", machine->libraries.item[i].what, machine->libraries.item[i].path);
	if (!machine->libraries.count)
		fputs("  no library is installed; those of a virtual environment are seen when the program loads them\n", stdout);
	fputs("stormlog-run --check -- COMMAND says what would work for one program\n", stdout);
}

static const char about[] = "This machine: drivers, GPUs, and the libraries whose calls would be recorded.";

static int run(struct sl_arguments *options)
{
	struct sl_machine machine;
	struct host host;
	struct settings settings = {0};
	int status = sl_arguments_parse(options, NULL, &settings);
	bool fine = true;

	if (status >= 0)
		return status;
	look_at_host(&host);
	sl_machine_look(&machine, true);
	if (settings.json)
		fine = put_json(&host, &machine);
	else
		put_text(&host, &machine);
	sl_machine_free(&machine);
	return fine ? SL_EXIT_FINE : SL_EXIT_UNSAVED;
}

const struct sl_command sl_command_info = {
	"info", "this machine, and the libraries that would be recorded", "info [--json]", about, table, run, SL_PATHS_NONE};
