/* SPDX-License-Identifier: MIT */
/*
 * The memory of the devices: one small file in SIM_DIR, else SIM_JOURNAL, else a folder of this login session in /dev/shm.
 * Every process that uses them maps it. Each process image has a slot with what it took; what ended processes took is freed
 * when a process needs memory or asks for figures. If a process dies with the file's lock, the kernel passes the lock on;
 * where it cannot (a child made by clone, an emulated program), waiting processes check whether the holder lives.
 */
#include "sim.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 512 };

struct slot {
	int32_t pid;	/* 0: empty */
	uint32_t space; /* the pid namespace in which the process has this pid */
	uint64_t start; /* of the process, in ticks since boot: pids are used again */
	uint64_t image; /* of the process image: exec keeps pid and start, but not this */
	uint64_t used[SIM_MAX_DEVICES];
};

struct shared {
	uint32_t size; /* of this struct: a file left by another version is ignored */
	int32_t devices;
	uint32_t space; /* the host's pid namespace: that of the process that made the file */
	uint64_t vram;
	pthread_mutex_t lock;
	int32_t holder; /* of the lock; 0: nobody */
	uint32_t holder_space;
	uint64_t holder_start;
	uint64_t used[SIM_MAX_DEVICES];
	uint64_t asked; /* how often a process was told a device's memory */
	struct slot slots[SLOTS];
};

static struct shared *shared;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static struct slot *mine;
static uint64_t small_bytes[SIM_MAX_DEVICES]; /* of allocations below one granule, which share granules */
static char dir[2048];
static bool unnamed;
static uint32_t own_space;
static uint64_t own_start;

/* A container does not know its host's pids, so any number that no process has will do. */
enum { HOST_PIDS = 1 << 23 };

/* Neighbours (SIM_NEIGHBOURS) have the last slots, in a pid namespace that no process is in. */
enum { NEIGHBOUR_PIDS = 1 << 20, NOWHERE = 0 };

const char *sim_device_dir(void)
{
	const char *from = sim_settings_folder();
	if (!dir[0]) {
		if (from && *from)
			snprintf(dir, sizeof dir, "%s", from);
		else
			unnamed = snprintf(dir, sizeof dir, "/dev/shm/sim-gpu-%d-%d", (int)getuid(), (int)getsid(0));
		mkdir(dir, 0700);
	}
	return dir;
}

/* Whether the process lives; its start time in *start, 0 if a limit prevents reading it. */
static bool process_lives(int pid, uint64_t *start)
{
	char path[64], text[1024];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	*start = 0;
	if (fd < 0)
		return errno != ENOENT && errno != ESRCH;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	char *p = strrchr(text, ')');
	if (!p || p[2] == 'Z' || p[2] == 'X')
		return false;
	p += 2;
	for (int field = 3; field < 22 && p; field++)
		p = strchr(p, ' ') ? strchr(p, ' ') + 1 : NULL;
	*start = p ? strtoull(p, NULL, 10) : 0;
	return true;
}

/* Whether the process that began at `since` has ended, as far as /proc shows. */
static bool has_gone(int pid, uint64_t since)
{
	uint64_t start;
	return !process_lives(pid, &start) || (start && since && start != since);
}

static uint32_t space_of_this(void)
{
	struct stat status;
	if (!own_space && !stat("/proc/self/ns/pid", &status))
		own_space = status.st_ino;
	return own_space;
}

static void reclaim(struct slot *s)
{
	for (int d = 0; d < SIM_MAX_DEVICES; d++)
		shared->used[d] -= s->used[d];
	memset(s, 0, sizeof *s);
}

static void reclaim_dead(void)
{
	for (int i = 0; i < SLOTS; i++) {
		struct slot *s = &shared->slots[i];
		/* a process of another namespace is not visible here */
		if (s->pid && s != mine && s->space == space_of_this() && has_gone(s->pid, s->start))
			reclaim(s);
	}
}

static void init_lock(struct shared *s)
{
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&s->lock, &attr);
}

/* Recomputes each device's sum from the slots. */
static void add_up(void)
{
	memset(shared->used, 0, sizeof shared->used);
	for (int i = 0; i < SLOTS; i++)
		for (int d = 0; d < SIM_MAX_DEVICES; d++)
			shared->used[d] += shared->slots[i].used[d];
}

/* Makes a new lock when the holder has ended and the kernel did not know that it held the lock. */
static void break_lock(void)
{
	int32_t holder = shared->holder;
	if (holder && shared->holder_space == space_of_this() && has_gone(holder, shared->holder_start) &&
	    __atomic_compare_exchange_n(&shared->holder, &holder, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		add_up();
		init_lock(shared);
	}
}

static void lock_shared(void)
{
	int error = pthread_mutex_trylock(&shared->lock);
	while (error == EBUSY || error == ETIMEDOUT) {
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec++;
		error = pthread_mutex_timedlock(&shared->lock, &until);
		if (error == ETIMEDOUT)
			break_lock();
	}
	if (error == EOWNERDEAD) {
		add_up();
		pthread_mutex_consistent(&shared->lock);
	}
	if (!own_start)
		process_lives(getpid(), &own_start);
	shared->holder_space = space_of_this();
	shared->holder_start = own_start;
	__atomic_store_n(&shared->holder, getpid(), __ATOMIC_RELEASE);
}

static void unlock_shared(void)
{
	shared->holder = 0;
	pthread_mutex_unlock(&shared->lock);
}

/* The last process of a machine without SIM_DIR removes its file. */
__attribute__((destructor)) static void leave(void)
{
	char path[2100];
	bool others = false;
	if (!shared || !mine || !unnamed || mine->pid != getpid())
		return;
	lock_shared();
	reclaim_dead();
	unlock_shared();
	for (int i = 0; i < SLOTS; i++)
		others |= shared->slots[i].pid && &shared->slots[i] != mine;
	snprintf(path, sizeof path, "%s/devices.state", dir);
	if (!others && !unlink(path))
		rmdir(dir);
}

/* The machine of the file, NULL where there is none yet. */
static struct shared *map_state(const char *path)
{
	struct shared *map = MAP_FAILED;
	struct stat status;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &status) && status.st_size == sizeof *map)
		map = mmap(NULL, sizeof *map, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map != MAP_FAILED && map->size == sizeof *map)
		return map;
	if (map != MAP_FAILED)
		munmap(map, sizeof *map);
	unlink(path);
	return NULL;
}

static void initialize(struct shared *s)
{
	init_lock(s);
	for (int i = 0; i < sim_config.neighbours; i++)
		s->slots[SLOTS - 1 - i] = (struct slot){.pid = NEIGHBOUR_PIDS + i, .space = NOWHERE};
	s->devices = sim_config.devices;
	s->vram = sim_config.vram;
	s->space = space_of_this();
	s->size = sizeof *s;
}

/* Makes the file and names it when it is ready. If several threads or processes do so at once, the first file counts. */
static void make_state(const char *path)
{
	char new[2200];
	snprintf(new, sizeof new, "%s.XXXXXX", path);
	int fd = mkostemp(new, O_CLOEXEC);
	if (fd < 0)
		return;
	struct shared *map = MAP_FAILED;
	if (!ftruncate(fd, sizeof *map))
		map = mmap(NULL, sizeof *map, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map != MAP_FAILED) {
		initialize(map);
		munmap(map, sizeof *map);
		(void)!link(new, path);
	}
	unlink(new);
}

static bool open_shared(void)
{
	char path[2100];
	snprintf(path, sizeof path, "%s/devices.state", sim_device_dir());
	struct shared *map = map_state(path);
	if (!map) {
		make_state(path);
		map = map_state(path);
	}
	if (!map) { /* no folder to share */
		map = mmap(NULL, sizeof *map, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (map == MAP_FAILED)
			return false;
		initialize(map);
	}
	__atomic_store_n(&shared, map, __ATOMIC_RELEASE);
	return true;
}

static bool attach(void)
{
	sim_process_check();
	if (sim_config.off)
		return false;
	if (__atomic_load_n(&shared, __ATOMIC_ACQUIRE))
		return true;
	pthread_mutex_lock(&opening);
	bool open = shared || open_shared();
	pthread_mutex_unlock(&opening);
	return open;
}

static bool take_slot(void)
{
	uint64_t image = 0;
	void *random = (void *)getauxval(AT_RANDOM);
	if (random)
		memcpy(&image, random, sizeof image);
	reclaim_dead();
	for (int i = 0; i < SLOTS; i++) {
		struct slot *s = &shared->slots[i];
		if (s->pid != getpid() || s->start != own_start || s->space != space_of_this())
			continue;
		if (s->image != image) /* what this process held before exec */
			reclaim(s);
		else
			mine = s;
	}
	for (int i = 0; i < SLOTS && !mine; i++)
		if (!shared->slots[i].pid)
			mine = &shared->slots[i];
	if (mine && !mine->pid) {
		mine->start = own_start;
		mine->image = image;
		mine->space = space_of_this();
		mine->pid = getpid();
	}
	return mine != NULL;
}

void sim_device_forget(void)
{
	mine = NULL;
	own_space = 0;
	own_start = 0;
	memset(&opening, 0, sizeof opening);
	memset(small_bytes, 0, sizeof small_bytes);
}

/* CUDA_VISIBLE_DEVICES as a list of numbers; it ends at the first entry that is not a device's number. */
static int listed(int map[SIM_MAX_DEVICES])
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	int all = attach() ? shared->devices : 0, n = 0;
	if (!list) {
		for (n = 0; n < all; n++)
			map[n] = n;
		return n;
	}
	for (char *end; n < SIM_MAX_DEVICES; list = end + (*end == ',')) {
		long d = strtol(list, &end, 10);
		if (end == list || d < 0 || d >= all)
			break;
		map[n++] = d;
	}
	return n;
}

/* A process sees one MIG instance. */
static int visible(int map[SIM_MAX_DEVICES])
{
	int n = listed(map);
	return sim_config.mig && n > 1 ? 1 : n;
}

static int visible_map[SIM_MAX_DEVICES], visible_count = -1;

int sim_device_count(void)
{
	if (visible_count < 0)
		visible_count = visible(visible_map);
	return visible_count;
}

int sim_device_physical(int ordinal)
{
	return ordinal >= 0 && ordinal < sim_device_count() ? visible_map[ordinal] : -1;
}

int sim_device_take(int device, uint64_t bytes)
{
	int d = sim_device_physical(device), result = SIM_OUT_OF_MEMORY;
	if (d < 0)
		return SIM_INVALID_DEVICE;
	if (!bytes)
		return SIM_OK;
	lock_shared();
	if (mine || take_slot()) {
		if (bytes > shared->vram || shared->used[d] > shared->vram - bytes)
			reclaim_dead();
		if (bytes <= shared->vram && shared->used[d] <= shared->vram - bytes) {
			mine->used[d] += bytes;
			shared->used[d] += bytes;
			result = SIM_OK;
		}
	}
	unlock_shared();
	return result;
}

void sim_device_give(int device, uint64_t bytes)
{
	int d = sim_device_physical(device);
	if (d < 0 || !bytes || !mine)
		return;
	lock_shared();
	mine->used[d] -= bytes;
	shared->used[d] -= bytes;
	unlock_shared();
}

int sim_device_charge(int device, uint64_t bytes, uint64_t *charge)
{
	uint64_t g = sim_config.granularity;
	if (bytes >= g) {
		*charge = sim_round_up(bytes, g);
		return *charge < bytes ? SIM_OUT_OF_MEMORY : sim_device_take(device, *charge);
	}
	*charge = sim_round_up(bytes, 512);
	uint64_t before = sim_round_up(small_bytes[device], g), after = sim_round_up(small_bytes[device] + *charge, g);
	int error = sim_device_take(device, after - before);
	if (!error)
		small_bytes[device] += *charge;
	return error;
}

void sim_device_discharge(int device, uint64_t charge)
{
	uint64_t g = sim_config.granularity;
	if (charge >= g) {
		sim_device_give(device, charge);
		return;
	}
	uint64_t before = sim_round_up(small_bytes[device], g);
	small_bytes[device] -= charge;
	sim_device_give(device, before - sim_round_up(small_bytes[device], g));
}

/* splitmix64: the numbers look random and are the same in each run. */
static uint64_t scatter(uint64_t n)
{
	n += 0x9e3779b97f4a7c15;
	n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9;
	n = (n ^ n >> 27) * 0x94d049bb133111eb;
	return n ^ n >> 31;
}

static void stir(int device)
{
	uint64_t number = scatter(shared->asked++), g = sim_config.granularity, most = sim_config.neighbour_bytes / g;
	struct slot *s = &shared->slots[SLOTS - 1 - (int)(number % 256 % sim_config.neighbours)];
	uint64_t others = shared->used[device] - s->used[device], wanted = (number >> 8) % (most + 1) * g;
	if (others + wanted > shared->vram / 2)
		wanted = 0;
	shared->used[device] = others + wanted;
	s->used[device] = wanted;
}

void sim_device_stir(int device)
{
	if (!sim_config.neighbours || !attach() || device < 0 || device >= shared->devices)
		return;
	lock_shared();
	stir(device);
	unlock_shared();
}

void sim_device_info(int device, uint64_t *free_bytes, uint64_t *total)
{
	int d = attach() ? device : -1;
	*free_bytes = *total = 0;
	if (d < 0 || d >= shared->devices)
		return;
	lock_shared();
	reclaim_dead();
	*total = shared->vram;
	*free_bytes = shared->vram - shared->used[d];
	unlock_shared();
}

int sim_device_processes(int device, int *pids, uint64_t *bytes, int max)
{
	int n = 0;
	if (!attach() || sim_config.pids == SIM_PIDS_NONE)
		return 0;
	lock_shared();
	reclaim_dead();
	for (int i = 0; i < SLOTS; i++) {
		struct slot *s = &shared->slots[i];
		bool known = s->space == shared->space && sim_config.pids == SIM_PIDS_HOST;
		if (!s->pid || !s->used[device])
			continue;
		/* MPS: the server holds what its clients asked for, and is the only process that NVML lists */
		if (sim_config.pids == SIM_PIDS_SERVER && n) {
			bytes[0] += s->used[device];
			continue;
		}
		if (n < max) {
			pids[n] = s->pid + (known ? 0 : HOST_PIDS);
			bytes[n] = s->used[device];
		}
		n++;
	}
	unlock_shared();
	return n;
}

/* With MIG the devices are the instances of one GPU: they have its PCI id, and uuids of their own beside its. */
void sim_device_uuid(int device, unsigned char uuid[16])
{
	static const unsigned char base[16] = {0x51, 0x4d, 0x00, 0x00, 0x67, 0x70, 0x40, 0x75,
					       0x80, 0x00, 0x73, 0x69, 0x6d, 0x00, 0x00, 0x00};
	memcpy(uuid, base, sizeof base);
	uuid[14] = sim_config.mig ? 'M' : 0;
	uuid[15] = device;
}

void sim_device_whole_uuid(int device, unsigned char uuid[16])
{
	sim_device_uuid(sim_config.mig ? 0 : device, uuid);
	uuid[14] = 0;
}

void sim_device_pci(int device, char *text, size_t size)
{
	snprintf(text, size, "%08X:%02X:00.0", 0, (sim_config.mig ? 0 : device) + 1);
}
