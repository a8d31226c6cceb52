/* SPDX-License-Identifier: MIT */
/*
 * bench_gadget OBJECT LIBRARY PID FROM=TO...: attaches BPF programs that another project compiled.  Those for the function FROM (in sections like
 * uprobe/libcuda:FROM) watch the function TO of the library as long as this program runs.  Prints "ready" once they are attached.
 */
#include <bpf/libbpf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The function that the BPF program is to watch; NULL: it is not to be loaded. */
static const char *target(const struct bpf_program *program, char **pairs)
{
	const char *from = strrchr(bpf_program__section_name(program), ':');
	size_t length = from ? strlen(++from) : 0;

	for (; from && *pairs; pairs++)
		if (!strncmp(*pairs, from, length) && (*pairs)[length] == '=')
			return *pairs + length + 1;
	return NULL;
}

int main(int argc, char **argv)
{
	struct bpf_object *object = argc > 4 ? bpf_object__open_file(argv[1], NULL) : NULL;
	struct bpf_program *program;
	struct bpf_map *map;
	unsigned watched = 0;

	if (!object)
		return 1;
	bpf_object__for_each_program(program, object) bpf_program__set_autoload(program, target(program, argv + 4));
	bpf_object__for_each_map(map, object) if (!bpf_map__max_entries(map) && bpf_map__type(map) == BPF_MAP_TYPE_HASH)
		bpf_map__set_max_entries(map, 1024); /* the other project's loader would choose a size */
	if (bpf_object__load(object))
		return 1;
	bpf_object__for_each_program(program, object) if (bpf_program__autoload(program))
	{
		LIBBPF_OPTS(bpf_uprobe_opts, options, .func_name = target(program, argv + 4),
			    .retprobe = !strncmp(bpf_program__section_name(program), "uretprobe", 9));

		if (!bpf_program__attach_uprobe_opts(program, atoi(argv[3]), argv[2], 0, &options))
			return 1;
		watched++;
	}
	fprintf(stderr, "%u programs watch %s\n", watched, argv[2]);
	signal(SIGINT, SIG_DFL); /* a shell's background ignores it */
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
