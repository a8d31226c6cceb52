/* SPDX-License-Identifier: MIT */
/* The settings of the simulated machine, from the environment; the dry run has its own (dry/settings.c). */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct sim_fail *fail_rules;
static struct {
	char name[64];
	uint64_t ns;
} latencies[16];
static int latency_count;

static uint64_t parse_size(const char *name, uint64_t fallback)
{
	const char *text = getenv(name);
	if (!text || !*text)
		return fallback;
	char *end;
	uint64_t value = strtoull(text, &end, 0);
	switch (*end) {
	case 'T':
	case 't':
		return value << 40;
	case 'G':
	case 'g':
		return value << 30;
	case 'M':
	case 'm':
		return value << 20;
	case 'K':
	case 'k':
		return value << 10;
	}
	return value;
}

/* SIM_FAIL=name:first[:code[:count]],...; first 0 is every call, code defaults to out of memory. */
static void parse_fail(const char *text)
{
	char *copy = text ? strdup(text) : NULL, *save = NULL;
	for (char *item = copy ? strtok_r(copy, ",", &save) : NULL; item; item = strtok_r(NULL, ",", &save)) {
		struct sim_fail *rule = calloc(1, sizeof *rule);
		unsigned first = 1, count = 1;
		if (rule)
			rule->code = SIM_OUT_OF_MEMORY;
		if (!rule || sscanf(item, "%63[^:]:%u:%d:%u", rule->name, &first, &rule->code, &count) < 1) {
			free(rule);
			continue;
		}
		rule->first = first ? first : 1;
		rule->count = first ? count : UINT32_MAX;
		rule->next = fail_rules;
		fail_rules = rule;
	}
	free(copy);
}

/* SIM_LATENCY=ns or name:ns, a list. */
static void parse_latency(const char *text)
{
	char *copy = text ? strdup(text) : NULL, *save = NULL;
	for (char *item = copy ? strtok_r(copy, ",", &save) : NULL; item; item = strtok_r(NULL, ",", &save)) {
		char *colon = strchr(item, ':');
		if (!colon) {
			sim_config.latency_ns = strtoull(item, NULL, 0);
		} else if (latency_count < (int)SIM_ARRAY_SIZE(latencies)) {
			*colon = 0;
			snprintf(latencies[latency_count].name, sizeof latencies[0].name, "%s", item);
			latencies[latency_count++].ns = strtoull(colon + 1, NULL, 0);
		}
	}
	free(copy);
}

void sim_settings_read(void)
{
	struct sim_config *c = &sim_config;
	c->devices = parse_size("SIM_DEVICES", 1);
	if (c->devices > SIM_MAX_DEVICES)
		c->devices = SIM_MAX_DEVICES;
	c->integrated = parse_size("SIM_INTEGRATED", 0);
	c->vram = parse_size("SIM_VRAM", c->integrated ? (uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) : 8ull << 30);
	c->ctx_bytes = parse_size("SIM_CTX_BYTES", 300ull << 20);
	c->granularity = parse_size("SIM_GRANULARITY", 2ull << 20);
	if (c->granularity < 512)
		c->granularity = 512;
	c->pool_step = c->granularity;
	c->module_bytes = parse_size("SIM_MODULE_BYTES", 4ull << 20);
	c->pinned_limit = parse_size("SIM_PINNED", UINT64_MAX);
	c->driver_version = parse_size("SIM_DRIVER_VERSION", 13000);
	c->journal_all = parse_size("SIM_JOURNAL_ALL", 0);
	c->mig = parse_size("SIM_MIG", 0);
	c->neighbours = parse_size("SIM_NEIGHBOURS", 0);
	if (c->neighbours > SIM_MAX_NEIGHBOURS)
		c->neighbours = SIM_MAX_NEIGHBOURS;
	c->neighbour_bytes = parse_size("SIM_NEIGHBOUR_BYTES", 512ull << 20);
	const char *pids = getenv("SIM_PIDS");
	static const char *const names[] = {"host", "none", "others", "server"};
	for (unsigned i = 0; pids && i < sizeof names / sizeof *names; i++)
		if (!strcmp(pids, names[i]))
			c->pids = (enum sim_pids)i;
	const char *loading = getenv("CUDA_MODULE_LOADING");
	c->lazy_modules = !loading || strcmp(loading, "EAGER");
	parse_fail(getenv("SIM_FAIL"));
	parse_latency(getenv("SIM_LATENCY"));
}

struct sim_fail *sim_process_fail_rules(const char *name)
{
	for (struct sim_fail *rule = fail_rules; rule; rule = rule->next)
		if (!strcmp(rule->name, name))
			return rule;
	return NULL;
}

uint64_t sim_process_latency(const char *name)
{
	for (int i = 0; i < latency_count; i++)
		if (!strcmp(latencies[i].name, name))
			return latencies[i].ns;
	return sim_config.latency_ns;
}

const char *sim_settings_folder(void)
{
	const char *from = getenv("SIM_DIR");

	return from && *from ? from : getenv("SIM_JOURNAL");
}
