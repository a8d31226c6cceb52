/* SPDX-License-Identifier: MIT */
/*
 * Functions of the program's own with names that ISO C leaves to programs, and that the C library has too.  Each prints that it was
 * called: nobody but the program may call one.
 */
extern int cudaMalloc(void **at, unsigned long size), cudaFree(void *at), printf(const char *format, ...);

#define OWN(name)                                                                                                                  \
	long name(long a, long b, long c);                                                                                         \
	long name(long a, long b, long c)                                                                                          \
	{                                                                                                                          \
		printf("%s was called\n", #name);                                                                                  \
		return -1;                                                                                                         \
	}

OWN(on_exit)
OWN(pipe2)
OWN(uname)
OWN(sysconf)
OWN(getsid)
OWN(prctl)
OWN(fdatasync)
OWN(mremap)
OWN(munlock)
OWN(sched_yield)
OWN(process_vm_readv)
OWN(process_vm_writev)
OWN(mincore)
OWN(msync)

extern int usleep(unsigned us);

int main(void)
{
	for (int i = 0; i < 200; i++) {
		void *p;

		if (cudaMalloc(&p, 4096) || cudaFree(p))
			return 1;
		usleep(500);
	}
	return 5;
}
