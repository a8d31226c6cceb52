/* SPDX-License-Identifier: MIT */
/*
 * Who a process is among the processes of its job, from the environment and /proc.  process.c, which fills the trace's
 * header, and the launcher, which names the run, must agree on it.  No allocation, no stdio.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* -1: the environment names none. */
struct sl_identity_rank {
	int rank, local_rank, world_size;
};

/*
 * STORMLOG_RANK and STORMLOG_WORLD_SIZE, else the first complete group of RANK, OMPI_COMM_WORLD_*, SLURM_* (rank and size;
 * a missing local rank is the rank, as in Python Stormlog), else of PMI, Flux, JSM, PMIx.  A group with impossible numbers
 * is passed over, and so is Slurm's outside srun's steps, which Python Stormlog takes for rank 0 of the job's tasks.
 */
struct sl_identity_rank sl_identity_rank(void);

/* STORMLOG_JOB_ID, else the job as the scheduler names it; "" none. */
void sl_identity_job(char *out, size_t size);

/* HIP_VISIBLE_DEVICES, else CUDA_VISIBLE_DEVICES, which HIP reads too; "" neither. */
void sl_identity_hip_devices(char *out, size_t size);

/*
 * The run, if the environment names one for all its processes: STORMLOG_RUN_ID, a scheduler's job step, torchrun's run.  False, and
 * out "": it names none.
 */
bool sl_identity_run_named(char *out, size_t size);

/*
 * Run id when the environment names none: made of host, boot, and pid and start of the session leader of process pid (under
 * torchrun: of its parent); where that is outside the pid namespace, number of the namespace and start of its process 1.  pid 0: of
 * this process.
 */
void sl_identity_run_fallback(char *out, size_t size, const char *host, const char *boot_id, int pid);

/*
 * For a launcher: the environment names the run for it and its siblings (srun stormlog-run, mpirun stormlog-run), so it
 * must not make up a name.
 */
bool sl_identity_run_shared(void);

/* How often torchrun or the scheduler restarted the job; -1: unknown. */
int sl_identity_restart(void);
