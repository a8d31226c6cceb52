/* SPDX-License-Identifier: MIT */
/*
 * turns TURNS HOW PLUGIN...: loads the plugins one after the other at one place; each thread allocates twice through each, and the
 * plugin is unloaded.  For each block turns-PID has a line: its address, and the file and function that made it, as dladdr gives them.
 * Exit status 77: most plugins were loaded elsewhere than the one before.  HOW is letters: t three more threads, f a child does the
 * same, w waits in the end to be killed, - none of these; s two threads load and unload at the same time, and each plugin
 * allocates as it is unloaded, too.
 */
#include "gpu.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, STORMING = 2, TIMES = 2 };

typedef void *taking(size_t bytes, Dl_info *here);

static FILE *out;
static _Atomic(taking *) take;
static int shared; /* turns whose plugin was loaded where the one before was */
static pthread_barrier_t begun, ended;

static void allocate(taking *take)
{
	Dl_info here;

	for (int i = 0; i < TIMES; i++) {
		void *block = take(4096, &here);

		CHECK(fprintf(out, "%lx %s %s\n", (unsigned long)block, here.dli_fname, here.dli_sname) > 0);
	}
}

static void *work(void *unused)
{
	for (;;) {
		pthread_barrier_wait(&begun);
		if (!take)
			return NULL;
		allocate(take);
		pthread_barrier_wait(&ended);
	}
}

static void turn(const char *path, int with_threads)
{
	static taking *place;
	void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	CHECK(plugin);
	take = (taking *)dlsym(plugin, "take");
	CHECK(take);
	shared += take == place;
	place = take;
	if (with_threads)
		pthread_barrier_wait(&begun);
	allocate(take);
	if (with_threads)
		pthread_barrier_wait(&ended);
	CHECK(!dlclose(plugin));
}

static void open_out(void)
{
	char name[64];

	snprintf(name, sizeof(name), "turns-%d", getpid());
	out = fopen(name, "w");
	CHECK(out);
}

static void take_turns(int turns, int with_threads, char **plugins, int count)
{
	pthread_t threads[THREADS];

	if (with_threads) {
		pthread_barrier_init(&begun, NULL, THREADS + 1);
		pthread_barrier_init(&ended, NULL, THREADS + 1);
		for (int i = 0; i < THREADS; i++)
			pthread_create(&threads[i], NULL, work, NULL);
	}
	for (int i = 0; i < turns; i++)
		turn(plugins[i % count], with_threads);
	take = NULL;
	if (with_threads) {
		pthread_barrier_wait(&begun);
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
	}
	CHECK(!fflush(out));
}

struct storm {
	int turns, count;
	unsigned seed;
	char **plugins;
};

static void *storm(void *data)
{
	struct storm *mine = data;

	for (int i = 0; i < mine->turns; i++) {
		void *plugin = dlopen(mine->plugins[rand_r(&mine->seed) % (unsigned)mine->count], RTLD_NOW | RTLD_LOCAL);

		CHECK(plugin);
		allocate((taking *)dlsym(plugin, "take"));
		*(void (**)(taking *))dlsym(plugin, "leave") = allocate;
		CHECK(!dlclose(plugin));
	}
	return NULL;
}

static void take_turns_at_once(int turns, char **plugins, int count)
{
	struct storm storms[STORMING];
	pthread_t threads[STORMING];

	for (int i = 0; i < STORMING; i++) {
		storms[i] = (struct storm){turns, count, (unsigned)i + 1, plugins};
		CHECK(!pthread_create(&threads[i], NULL, storm, &storms[i]));
	}
	for (int i = 0; i < STORMING; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(!fflush(out));
}

int main(int argc, char **argv)
{
	pid_t child = strchr(argv[2], 'f') ? fork() : -1;
	int status;
	void *block;

	OK(cudaMalloc(&block, 512));
	open_out();
	if (strchr(argv[2], 's')) {
		take_turns_at_once(atoi(argv[1]), argv + 3, argc - 3);
		return 0;
	}
	take_turns(atoi(argv[1]), strchr(argv[2], 't') != NULL, argv + 3, argc - 3);
	if (child > 0)
		CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
	if (strchr(argv[2], 'w')) {
		fclose(fopen("made", "w"));
		pause();
	}
	return 2 * shared < atoi(argv[1]) ? 77 : 0;
}
