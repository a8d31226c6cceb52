/* SPDX-License-Identifier: MIT */
/*
 * churn PLUGIN...: each plugin is linked with another runtime, whose cudaMalloc returns its own number.  They are opened RTLD_LOCAL,
 * alone and together, closed, and opened again where others lay.  Each must reach its own runtime every time.
 */
#include <dlfcn.h>
#include <stdio.h>

static int wrong;

static void *open_and_ask(const char *path, int expected)
{
	void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int (*ask)(void) = plugin ? (int (*)(void))dlsym(plugin, "plugin_ask") : NULL;
	int (*look_up)(void) = plugin ? (int (*)(void))dlsym(plugin, "plugin_look_up") : NULL;

	if (!ask || !look_up || ask() != expected || ask() != expected || look_up() != expected)
		wrong++;
	return plugin;
}

int main(int argc, char **argv)
{
	void *open[8];

	for (int round = 0; round < 50; round++)
		for (int i = 1; i < argc; i++)
			dlclose(open_and_ask(argv[i], 100 + i));
	for (int round = 0; round < 20; round++) {
		for (int i = 1; i < argc; i++)
			open[i] = open_and_ask(argv[1 + (i + round) % (argc - 1)], 101 + (i + round) % (argc - 1));
		for (int i = 1; i < argc; i++)
			dlclose(open[i]);
	}
	printf("wrong: %d\n", wrong);
	return 0;
}
