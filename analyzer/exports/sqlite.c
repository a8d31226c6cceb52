/* SPDX-License-Identifier: MIT */
/* sqlite: a database for any question (doc/sqlite.md). */
#include <errno.h>
#include <sqlite3.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/exports/export.h"
#include "analyzer/report/owners.h"
#include "analyzer/model/replay/replay.h"

static const char schema[] =
	"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; PRAGMA user_version=1;"
	"PRAGMA application_id=0x53746c58;" /* "StlX", in SQLite's header; a catalogue has another one */
	"CREATE TABLE processes(process INTEGER PRIMARY KEY, rank INTEGER, host TEXT, pid INTEGER, program TEXT, run TEXT,"
	" status TEXT, started_ns INTEGER, ended_ns INTEGER);"
	"CREATE TABLE places(process INTEGER, place INTEGER, library TEXT, line TEXT, PRIMARY KEY(process, place)) WITHOUT ROWID;"
	"CREATE TABLE frames(process INTEGER, place INTEGER, position INTEGER, language TEXT, function TEXT, file TEXT,"
	" line INTEGER, module TEXT, PRIMARY KEY(process, place, position)) WITHOUT ROWID;"
	"CREATE TABLE events(process INTEGER, t0_ns INTEGER, t1_ns INTEGER, thread INTEGER, api TEXT, verb TEXT, kind TEXT,"
	" address INTEGER, bytes INTEGER, device INTEGER, stream INTEGER, result INTEGER, label TEXT, place INTEGER);"
	"CREATE TABLE samples(process INTEGER, t_ns INTEGER, device INTEGER, used_bytes INTEGER, free_bytes INTEGER,"
	" total_bytes INTEGER, rss_bytes INTEGER);"
	"CREATE TABLE memory(process INTEGER, kind TEXT, device INTEGER, allocations INTEGER, frees INTEGER,"
	" failed_allocations INTEGER, implicit_frees INTEGER, allocated_bytes INTEGER, live_blocks INTEGER, live_bytes INTEGER,"
	" peak_bytes INTEGER);"
	"CREATE TABLE sites(process INTEGER, place INTEGER, kind TEXT, device INTEGER, label TEXT, at_peak_bytes INTEGER,"
	" live_bytes INTEGER, live_blocks INTEGER, total_bytes INTEGER, total_blocks INTEGER);"
	"CREATE TABLE entries(process INTEGER, label TEXT, step INTEGER, t0_ns INTEGER, t1_ns INTEGER, before_bytes INTEGER,"
	" after_bytes INTEGER, peak_bytes INTEGER, allocated_bytes INTEGER, freed_bytes INTEGER);";

static const char finish[] =
	"CREATE INDEX events_by_time ON events(t0_ns); CREATE INDEX events_by_address ON events(process, address);"
	"CREATE INDEX events_by_place ON events(process, place); CREATE INDEX samples_by_time ON samples(t_ns);"
	"CREATE VIEW held_at_peak AS SELECT p.rank, p.pid, s.device, pl.library, pl.line, s.kind,"
	" sum(s.at_peak_bytes) AS bytes FROM sites s JOIN processes p USING(process) JOIN places pl USING(process, place)"
	" WHERE s.at_peak_bytes > 0 GROUP BY s.process, s.device, pl.library, pl.line, s.kind ORDER BY bytes DESC;"
	"CREATE VIEW held_at_end AS SELECT p.rank, p.pid, s.device, pl.library, pl.line, s.kind, sum(s.live_bytes) AS bytes,"
	" sum(s.live_blocks) AS blocks FROM sites s JOIN processes p USING(process) JOIN places pl USING(process, place)"
	" WHERE s.live_bytes > 0 GROUP BY s.process, s.device, pl.library, pl.line, s.kind ORDER BY bytes DESC;"
	"CREATE VIEW failures AS SELECT e.t0_ns, p.rank, p.pid, e.api, e.bytes, e.result, pl.library, pl.line FROM events e"
	" JOIN processes p USING(process) LEFT JOIN places pl USING(process, place) WHERE e.result != 0 ORDER BY e.t0_ns;"
	"CREATE VIEW calls AS SELECT process, api, count(*) AS calls, sum(result != 0) AS failures,"
	" sum(CASE result WHEN 0 THEN ifnull(bytes, 0) ELSE 0 END) AS bytes, sum(t1_ns - t0_ns) AS time_ns FROM events"
	" WHERE t1_ns NOT NULL AND verb NOT GLOB 'BLOCK_*' AND verb NOT GLOB 'RANGE_*'"
	" AND verb NOT IN ('MARK', 'PAIR', 'NAME', 'PROCESS', 'UNMAP_MORE') GROUP BY process, api ORDER BY calls DESC;";

struct base {
	struct sl_export_job *job;
	sqlite3 *db;
	sqlite3_stmt *entries;
	bool wrong;
	int why; /* errno of the first failure */
};

static void fail(struct base *base)
{
	if (!base->wrong)
		base->why = sqlite3_errcode(base->db) == SQLITE_FULL			? ENOSPC
			    : errno == EFBIG || sqlite3_system_errno(base->db) == EFBIG ? EFBIG /* sqlite3_exec does not keep it */
											: EIO;
	if (!base->wrong && base->why == EIO)
		sl_escape_print(stderr, "stormlog-analyze: %s: %s\n", base->job->path, sqlite3_errmsg(base->db));
	base->wrong = true;
}

static void execute(struct base *base, const char *sql)
{
	if (!base->wrong && sqlite3_exec(base->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail(base);
}

static sqlite3_stmt *prepare(struct base *base, const char *sql)
{
	sqlite3_stmt *statement = NULL;

	if (!base->wrong && sqlite3_prepare_v2(base->db, sql, -1, &statement, NULL) != SQLITE_OK)
		fail(base);
	return statement;
}

/* Writes one row. types, a letter a column: i int64; u int64, 0 is NULL; n int64, below 0 is NULL; t text or NULL. */
static void insert(struct base *base, sqlite3_stmt *statement, const char *types, ...)
{
	va_list args;

	if (!statement || base->wrong)
		return;
	va_start(args, types);
	for (int i = 1; types[i - 1]; i++) {
		if (types[i - 1] == 't') {
			const char *text = va_arg(args, const char *);

			if (text)
				sqlite3_bind_text(statement, i, sl_escape_text(text), -1, free);
			else
				sqlite3_bind_null(statement, i);
		} else {
			int64_t value = va_arg(args, int64_t);

			if ((types[i - 1] == 'u' && !value) || (types[i - 1] == 'n' && value < 0))
				sqlite3_bind_null(statement, i);
			else
				sqlite3_bind_int64(statement, i, value);
		}
	}
	va_end(args);
	if (sqlite3_step(statement) != SQLITE_DONE)
		fail(base);
	sqlite3_reset(statement);
}

static int64_t or_minus_one(uint64_t value)
{
	return value == SL_UNKNOWN ? -1 : (int64_t)value;
}

struct entering {
	struct base *base;
	const struct sl_merge_process *process;
};

/* A range that never closed has NULL as its end and as its use at the end. */
static void put_entry(void *context, const struct sl_model *model, const struct sl_entry *entry)
{
	const struct entering *entering = context;
	const char *label = sl_defs_text(model->defs, model->labels.item[entry->label].text);

	insert(entering->base, entering->base->entries, "itniuinini", (int64_t)entering->process->index, label,
	       label && strchr(label, '#') ? (int64_t)entry->step : (int64_t)-1,
	       (int64_t)sl_process_unix(&entering->process->process, entry->begin_ns),
	       entry->end_ns ? (int64_t)sl_process_unix(&entering->process->process, entry->end_ns) : (int64_t)0,
	       (int64_t)entry->before, or_minus_one(entry->after), (int64_t)entry->peak, (int64_t)entry->made_bytes,
	       (int64_t)entry->gone_bytes);
}

static void put_events(struct base *base)
{
	sqlite3_stmt *events = prepare(base, "INSERT INTO events VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
	sqlite3_stmt *samples = prepare(base, "INSERT INTO samples VALUES(?,?,?,?,?,?,?)");
	struct sl_merge_process *p;
	struct sl_event_view v;
	uint64_t rows = 0;

	execute(base, "BEGIN");
	while (!base->wrong && (p = sl_merge_next(base->job->merge))) {
		if (p->item->kind == SL_ITEM_EVENT) {
			sl_merge_view(&v, p);
			/* the result of a call that did not return is -1, which n writes as NULL */
			insert(base, events, v.returned ? "iiuitttuunuiti" : "iiuitttuununti", (int64_t)p->index,
			       (int64_t)v.begin_ns, (int64_t)v.end_ns, v.tid, v.api, v.verb, v.kind, (int64_t)v.event->address,
			       (int64_t)v.event->bytes, (int64_t)v.event->device, (int64_t)v.event->stream,
			       v.returned ? (int64_t)v.event->result : (int64_t)-1, v.label,
			       (int64_t)sl_merge_where(base->job->merge, p, sl_stack_of(v.event)));
		} else if (p->item->kind == SL_ITEM_SAMPLE) {
			const struct sl_sample *s = &p->item->sample;

			insert(base, samples, "iinnnnn", (int64_t)p->index, (int64_t)p->unix_ns, (int64_t)s->device,
			       or_minus_one(s->used_bytes), or_minus_one(s->free_bytes), or_minus_one(s->total_bytes),
			       or_minus_one(s->rss_bytes));
		}
		if (!(++rows % 500000))
			execute(base, "COMMIT; BEGIN");
	}
	execute(base, "COMMIT");
	sqlite3_finalize(events);
	sqlite3_finalize(samples);
}

static void put_memory(struct base *base, const struct sl_merge_process *p, sqlite3_stmt *memory)
{
	for (unsigned kind = 0; kind < SL_KIND_COUNT; kind++)
		for (int d = 0; d <= SL_DEVICES_MAX; d++) {
			const struct sl_row *row = sl_model_row(p->process.model, kind, d);

			if (row->used && kind != SL_KIND_block)
				insert(base, memory, "itniiiiiiii", (int64_t)p->index, sl_event_kinds[kind].name, (int64_t)d - 1,
				       (int64_t)row->allocations, (int64_t)row->frees, (int64_t)row->failed_allocations,
				       (int64_t)row->implicit_frees, (int64_t)row->allocated_bytes, (int64_t)row->live_blocks,
				       (int64_t)row->live_bytes, (int64_t)row->peak_bytes);
		}
}

static void put_sites(struct base *base, struct sl_merge_process *p, sqlite3_stmt *sites)
{
	const struct sl_model *model = p->process.model;
	uint64_t bytes;

	for (const struct sl_site *site = NULL; (site = sl_owners_next(&p->process, SL_DEVICE_ANY, SL_WEIGH_ANY, site, &bytes));)
		insert(base, sites, "iitntiiiii", (int64_t)p->index, (int64_t)sl_merge_where(base->job->merge, p, site->stack),
		       sl_event_kinds[site->kind].name, (int64_t)site->device,
		       site->label ? sl_defs_text(model->defs, site->label) : NULL, (int64_t)sl_model_site_at_peak(model, site),
		       (int64_t)site->live_bytes, (int64_t)site->live_blocks, (int64_t)site->total_bytes,
		       (int64_t)site->total_blocks);
}

static void put_places(struct base *base, struct sl_merge_process *p, sqlite3_stmt *places, sqlite3_stmt *frames)
{
	struct sl_stack_frame stack[SL_STACK_MAX];

	for (size_t i = 0; i < p->wheres.count; i++) {
		const struct sl_where *where = &p->wheres.item[i];
		unsigned count = sl_process_stack(&p->process, stack, where->stack);

		insert(base, places, "iitt", (int64_t)p->index, (int64_t)i, where->library, where->line[0] ? where->line : NULL);
		for (unsigned f = 0; f < count; f++)
			insert(base, frames, "iiitttut", (int64_t)p->index, (int64_t)i, (int64_t)f,
			       stack[f].python ? "python" : "native", stack[f].function, stack[f].file, (int64_t)stack[f].line,
			       stack[f].module);
	}
}

static void put_processes(struct base *base)
{
	sqlite3_stmt *processes = prepare(base, "INSERT INTO processes VALUES(?,?,?,?,?,?,?,?,?)");
	sqlite3_stmt *memory = prepare(base, "INSERT INTO memory VALUES(?,?,?,?,?,?,?,?,?,?,?)");
	sqlite3_stmt *sites = prepare(base, "INSERT INTO sites VALUES(?,?,?,?,?,?,?,?,?,?)");
	sqlite3_stmt *places = prepare(base, "INSERT INTO places VALUES(?,?,?,?)");
	sqlite3_stmt *frames = prepare(base, "INSERT INTO frames VALUES(?,?,?,?,?,?,?,?)");

	execute(base, "BEGIN");
	for (unsigned i = 0; i < base->job->merge->count; i++) {
		struct sl_merge_process *p = &base->job->merge->processes[i];
		const struct sl_header *h = &p->process.trace->header;

		sl_replay_end(p->process.model, sl_trace_lost_events(p->process.trace));
		insert(base, processes,
		       "intittt"
		       "uu",
		       (int64_t)i, h->rank, h->host, h->pid, h->exe ? sl_paths_name(h->exe) : NULL, h->run_id,
		       sl_trace_status(p->process.trace), (int64_t)h->started_ns,
		       (int64_t)sl_process_unix(&p->process, p->process.model->now_ns));
		put_memory(base, p, memory);
		put_sites(base, p, sites);
		put_places(base, p, places, frames);
	}
	execute(base, "COMMIT");
	sqlite3_finalize(processes);
	sqlite3_finalize(memory);
	sqlite3_finalize(sites);
	sqlite3_finalize(places);
	sqlite3_finalize(frames);
}

/* SQLite sorts in /var/tmp by default, where a confined process may not write (base/sandbox.h). */
static void sort_beside(const char *path)
{
	char folder[4096];
	const char *slash = strrchr(path, '/');

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	setenv("SQLITE_TMPDIR", folder, false);
}

static bool run(struct sl_export_job *job)
{
	struct base base = {.job = job};
	struct entering *entering = sl_memory_must(calloc(job->merge->count + 1, sizeof(*entering)));

	sort_beside(job->path);
	if (sqlite3_open_v2(job->path, &base.db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
		fail(&base);
	execute(&base, schema);
	base.entries = prepare(&base, "INSERT INTO entries VALUES(?,?,?,?,?,?,?,?,?,?)");
	for (unsigned i = 0; i < job->merge->count; i++) {
		entering[i] = (struct entering){&base, &job->merge->processes[i]};
		job->merge->processes[i].process.model->entry = put_entry;
		job->merge->processes[i].process.model->entry_context = &entering[i];
	}
	put_events(&base);
	put_processes(&base);
	sqlite3_finalize(base.entries);
	free(entering);
	execute(&base, finish);
	if (sqlite3_close(base.db) != SQLITE_OK)
		fail(&base);
	errno = base.why;
	return !base.wrong;
}

const struct sl_export sl_export_sqlite = {.name = "sqlite",
					   .summary = "a database with views for common questions",
					   .models = true,
					   .places = true,
					   .wants_path = true,
					   .run = run};
