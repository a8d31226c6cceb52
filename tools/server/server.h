/* SPDX-License-Identifier: MIT */
/* The parts of stormlog-server: the functions that others call, from the store up to the pages. */
#pragma once

#include <dirent.h>
#include <microhttpd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "common/arguments.h"
#include "analyzer/base/hash.h"
#include "analyzer/catalogue/catalogue.h"

/*
 * Stores packs as files: STORE/packs/ab/abcd...stormlog, named by the SHA-256 of the content, and STORE/incoming/abcd...part
 * while they arrive.  A pack gets its name only when all of it is on disk, so after any crash it is either complete or absent.
 * packs/ may be another file system, one that can rename a file.  Any thread.
 */

#define SL_DAY_S (24 * 60 * 60)

#define SL_PACKS_NAME	64 /* hex digits of a name */
#define SL_PACKS_SUFFIX ".stormlog"

struct sl_packs {
	int folder; /* descriptor of the store's folder */
	uint64_t pack_max, quota, spare;
	uint64_t used; /* bytes of all packs, of uploads that were begun, and of pages, atomic */
};

/* One upload.  fd < 0: none is under way. */
struct sl_incoming {
	char name[SL_PACKS_NAME + 1];
	int fd;
	uint64_t size, end;    /* bytes received so far; where this upload ends */
	uint64_t total;	       /* bytes of the whole pack; UINT64_MAX: unknown, it ends with this upload */
	struct sl_digest hash; /* of the first hash.length bytes */
};

/* The outcome: an HTTP status and a sentence.  0: go on. */
struct sl_http_outcome {
	unsigned status;
	const char *why;
};

/* Makes missing folders.  False: errno; ENOTEMPTY: the folder has something in it and is no store, and stays as it is. */
bool sl_packs_open(struct sl_packs *packs, const char *path);
bool sl_packs_are_there(const char *path); /* true: a store is; false: errno */
bool sl_packs_is_name(const char *name);

/* Opens a pack for reading.  A descriptor, or -1: there is no such pack. */
int sl_packs_read(const struct sl_packs *packs, const char *name, struct stat *st);
/* "packs/ab/abcd...stormlog", relative to the store's folder. */
void sl_packs_path(const char *name, char path[SL_PACKS_NAME + 32]);
/* True: `coming` bytes more and `going` bytes less would leave less free room on the store's disk than it is to have. */
bool sl_packs_are_full(const struct sl_packs *packs, uint64_t coming, uint64_t going);
/* How many bytes an unfinished upload has left. */
uint64_t sl_packs_begun(const struct sl_packs *packs, const char *name);

/* The caller sets in->name, total and end.  200: the pack is stored already; 409: go on at in->size. */
struct sl_http_outcome sl_packs_begin(struct sl_packs *packs, struct sl_incoming *in, uint64_t offset);
struct sl_http_outcome sl_packs_add(struct sl_packs *packs, struct sl_incoming *in, const void *bytes, uint64_t size);
/* 201: stored and on disk; 202: this part is stored; anything else: refused and removed. */
struct sl_http_outcome sl_packs_end(struct sl_packs *packs, struct sl_incoming *in);
/* Keeps what has arrived, for the next try. */
void sl_packs_leave(struct sl_incoming *in);

bool sl_packs_remove(struct sl_packs *packs, const char *name);
/* Lists every pack of the folder. */
void sl_packs_each(const struct sl_packs *packs, void (*each)(void *context, const char *name, const struct stat *st),
		   void *context);
/* Removes unfinished uploads that got no data for a day. */
void sl_packs_sweep(struct sl_packs *packs);

/*
 * Who may read and who may write: STORE/tokens, a line "NAME RIGHTS SHA256" each.  A file with another line is never rewritten; the
 * server takes the lines that are tokens.  A token is 256 random bits, so its SHA-256 reveals no bit of it and needs no salt. The
 * file is read again when it changed.  While it cannot be read, for want of descriptors say, the tokens are those of the last
 * reading.  Any thread.
 */

enum sl_right { SL_RIGHT_READ = 1, SL_RIGHT_WRITE = 2 };

#define SL_TOKEN_NAME 64

struct sl_token {
	char name[SL_TOKEN_NAME + 1], digest[65];
	unsigned rights;
};

struct sl_tokens {
	int folder;
	pthread_mutex_t mutex;
	struct timespec changed;
	ino_t file;
	int reported_error; /* why the file could not be read: each request tries again, but says it once; 0: it was read */
	SL_VECTOR(struct sl_token) token;
};

/* The rights of a presented token, and its name; 0: unknown token.  Takes the same time whichever token of the file it is. */
unsigned sl_tokens_rights(struct sl_tokens *tokens, const char *presented, char name[SL_TOKEN_NAME + 1]);

/* The command stormlog-server token add NAME --read|--write | list | remove NAME. */
enum sl_tokens_verb { SL_TOKENS_LIST, SL_TOKENS_ADD, SL_TOKENS_REMOVE };
struct sl_tokens_command {
	enum sl_tokens_verb verb;
	const char *name; /* of argv; NULL: list */
	unsigned rights;  /* of a token that is added */
};
/* The words after `token`.  False: not understood, which was said. */
bool sl_tokens_parse(struct sl_tokens_command *command, int argc, char **argv);
/* Returns an exit status. */
int sl_tokens_command(int folder, const struct sl_tokens_command *command);

/* State and settings that the parts of stormlog-server share. */

struct sl_work;

struct sl_server {
	char path[4096]; /* of the store's folder */
	struct sl_packs packs;
	struct sl_tokens tokens;
	struct sl_work *work;
	bool open;			/* reading needs no token */
	struct sl_texts names;		/* --name: names that the server answers to, besides numbers and localhost */
	unsigned keep_days, keep_count; /* limits for each project; 0: no limit */
	uint64_t keep_bytes;
	uint64_t project_bytes; /* limit for what a project's runs take; 0: no limit */
};

/*
 * A request and its answer, over libmicrohttpd.  Every answer has headers that forbid the browser to run anything but our own
 * scripts.
 */

struct MHD_Connection;

struct sl_request {
	struct sl_server *server;
	struct MHD_Connection *connection;
	const struct sl_route *route;
	const char *method, *rest; /* rest: the path after the route's */
	char *path;		   /* allocated copy of the request's path */
	struct sl_incoming incoming;
	struct sl_http_outcome outcome; /* of an upload so far; status 0: go on */
	char who[SL_TOKEN_NAME + 1];	/* name of the token; "": no token was sent */
	char *body;			/* a small body, whole; else NULL */
	size_t body_size;
	bool answered;
};

enum sl_route_body { SL_BODY_NONE, SL_BODY_SMALL, SL_BODY_PACK };

struct sl_route {
	const char *method; /* GET also serves HEAD, where HEAD has no route of its own */
	const char *path;   /* a path that ends in '/' matches what follows too (request->rest) */
	enum sl_right right;
	enum sl_route_body body;
	void (*answer)(struct sl_request *request); /* gives exactly one answer; a small body has arrived completely */
};

/* A value from the query string, or from the request's headers; NULL: absent. */
const char *sl_request_argument(const struct sl_request *request, const char *name);
const char *sl_request_header(const struct sl_request *request, const char *name);

/* ---- answers: exactly one of these */

struct sl_http_answer {
	unsigned status;
	const char *type, *policy;	/* policy NULL: no script may run */
	const char *const (*header)[2]; /* more headers, ended by a name of NULL; NULL: none */
	bool keep;			/* the content never changes, so that a browser may keep it */
};
void sl_request_text(struct sl_request *request, const struct sl_http_answer *answer, char *text, size_t size); /* frees text */
void sl_request_static(struct sl_request *request, const struct sl_http_answer *answer, const void *text, size_t size);
void sl_request_file(struct sl_request *request, const struct sl_http_answer *answer, int fd, uint64_t size); /* closes fd */
/* Answers with a sentence: as JSON below /api/, else as a page. */
void sl_request_say(struct sl_request *request, unsigned status, const char *why, const char *const (*header)[2]);

/* The part of /api/v1/ besides packs, as schemas/server.schema.json describes it. */

void sl_api_runs(struct sl_request *request);	 /* runs?q= */
void sl_api_run(struct sl_request *request);	 /* runs/N, runs/N/report, runs/N/page */
void sl_api_names(struct sl_request *request);	 /* names?begins= */
void sl_api_metrics(struct sl_request *request); /* metrics?q=&of=&text= */
void sl_api_history(struct sl_request *request); /* history?q=&metric=N or &field=NAME */
void sl_api_worse(struct sl_request *request);	 /* worse */

/* The runs that the server knows: a catalogue in which the SHA-256 of its pack identifies a run. */

/*
 * False: the catalogue is damaged, misplaced, another program's or may not be written, which was printed.  A trouble that may pass,
 * as a full disk, is printed too.
 * Before the first thread.
 */
bool sl_runs_examine(const struct sl_server *server);
/* This thread's store; it is closed when the thread ends.  NULL: the reason was printed on stderr. */
struct sl_store *sl_runs_store(struct sl_server *server);
enum sl_runs_put {
	SL_RUNS_PUT,
	SL_RUNS_NO_CARD, /* which was printed */
	SL_RUNS_BUSY,	 /* another process writes into the catalogue, which was printed */
	SL_RUNS_LATER,	 /* the catalogue did not take it for another reason, which was printed and may stay */
	SL_RUNS_FULL	 /* so is the project, and the pack was removed */
};
/* Takes the card that a child made from an untrusted pack, and tells its project ("": none). */
enum sl_runs_put sl_runs_put(struct sl_server *server, const char *pack, const char *text, size_t size,
			     char project[SL_CARD_TEXT + 1]);
/* *is_known: the pack's run is in the catalogue.  False: the catalogue does not answer, which was printed. */
bool sl_runs_known(struct sl_server *server, const char *pack, bool *is_known);

/* Reads from a request's arguments what is asked of the catalogue. */

#define SL_ASK_RUNS 200 /* runs per answer, unless limit= says otherwise; at most SL_ASK_MOST */
#define SL_ASK_MOST 1000

struct sl_ask {
	struct sl_store *store;
	struct sl_query query;
	struct sl_store_ask runs; /* from q, order (a field; -field: largest first), limit, skip */
	struct sl_query_error error;
	bool wrong; /* q could not be parsed; see error */
};

/* False: the store cannot be opened, or an argument is wrong (400); the request has been answered. */
bool sl_ask_begin(struct sl_ask *ask, struct sl_request *request);
void sl_ask_end(struct sl_ask *ask);
int64_t sl_ask_number(const struct sl_request *request, const char *name, int64_t absent, int64_t limit);

/* The files of tools/server/web/, compiled in as bytes (embed.py). */

struct sl_asset {
	const char *name, *type;
	const unsigned char *bytes;
	size_t size;
};
extern const struct sl_asset sl_assets[]; /* ended by a name of NULL */

/*
 * The course of one quantity over several runs: its values in order, and the runs at which it changed
 * (analyzer/catalogue/catalogue.h).
 */

#define SL_COURSE_CHANGES 64

struct sl_course_point {
	int64_t run, when_ns, value;
	char commit[16];
};

struct sl_course {
	bool is_dry;				  /* the points are of dry runs; the others' and these are never in one course */
	SL_VECTOR(struct sl_course_point) points; /* one for each run that has the value, oldest first */
	struct sl_series_change changes[SL_COURSE_CHANGES];
	size_t change_count;
	int64_t max_value;
};

/* Reads a metric by its number, or if that is 0 a field of the card.  False: the store failed. */
bool sl_course_read(struct sl_course *course, struct sl_store *store, const struct sl_query *query, int64_t metric, int field);
void sl_course_free(struct sl_course *course);

/* A query for every run of a project (NULL: runs without one).  The name is never parsed as a query.  Free with sl_query_free. */
void sl_course_project(struct sl_query *query, const char *project);
static inline bool sl_course_is_bytes(int64_t metric, int field)
{
	return metric || sl_card_fields[field].type == SL_CARD_BYTES;
}

/* Folders of the store, whose content is not trusted. */

/* Opens a folder, which the caller closes.  `follow`: O_NOFOLLOW refuses a link, 0 follows it.  NULL: errno. */
DIR *sl_server_folder_open(int at, const char *name, int follow);
/* Removes a folder with its content: links are removed, not followed. */
void sl_server_folder_remove(int at, const char *name);
/* Bytes of all files in a folder; 0: there is none. */
uint64_t sl_server_folder_bytes(int at, const char *name);

/* Reads the body of an HTML form (application/x-www-form-urlencoded). */

/* False: no value of that name, or it is longer than size - 1. */
bool sl_form_value(const char *body, const char *name, char *value, size_t size);

/*
 * Writes a page.  Markup comes from the program; all other text is escaped (base/escape.h), so that it cannot be markup.
 *
 * 	sl_html_begin(&page, request, "Runs");
 * 	sl_html(&page, "<p title='$'><a href='/search?q=%'>$</a></p>", why, query, name);
 * 	sl_html_end(&page, 200);
 */

struct sl_html {
	struct sl_request *request;
	FILE *out;
	char *text;
	size_t size;
};

void sl_html_begin(struct sl_html *page, struct sl_request *request, const char *title); /* not moved until its end */
/*
 * Each $ is replaced by the next text, each % by the next text encoded for an address.  Pass as many `const char *` as there
 * are of both.  NULL is shown as a dash.
 */
void sl_html(struct sl_html *page, const char *markup, ...);
/* Numbers as texts for the above; an unknown one (below zero) is NULL.  `buffer` holds SL_FORMAT_BYTES. */
const char *sl_html_size(char *buffer, int64_t bytes);
const char *sl_html_number(char *buffer, int64_t number);
const char *sl_html_time(char *buffer, int64_t unix_ns);
/* The query that finds a project's runs, of at most `size` bytes.  NULL and "": runs without a project. */
void sl_html_project(char *query, size_t size, const char *project);
/* Sends the page. */
void sl_html_end(struct sl_html *page, unsigned status);

/* Sends a page that the browser loads again by itself, because `what` is still being computed. */
void sl_html_wait(struct sl_request *request, const char *what);

/*
 * HTTP: wraps libmicrohttpd.  Requests that are too large, unauthorized or sent by another site are answered here; the
 * rest go to the route named by their method and path.
 */

struct sl_http;
/* Starts listening, with threads of its own.  NULL: errno. */
struct sl_http *sl_http_start(struct sl_server *server, const struct sockaddr *address, socklen_t size, int *port);
void sl_http_stop(struct sl_http *http);

/* A queue of jobs for packs (work.c): first come, first taken.  The caller locks. */

struct sl_job {
	char pack[SL_PACKS_NAME + 1], after[SL_PACKS_NAME + 1]; /* after "": only the pack is worked on */
	uint64_t from_ns, to_ns;				/* of a window; to_ns 0: the first report of the pack */
};

/* All zeroes is an empty queue. */
struct sl_jobs {
	SL_VECTOR(struct sl_job) list;
	size_t taken_count;    /* the first so many of the list */
	struct sl_map waiting; /* keys of the others; the word of one that was taken is 0 */
};

/*
 * Which packs a store keeps: the newest runs of each project, limited by the options in number, total size and age.  Pinned
 * runs, and the runs on both sides of a change of the project's peak, are always kept; so is everything while the catalogue
 * does not answer.  The caller first has every pack read whose run is not in the catalogue: what may go depends on all runs.
 */

/* Called by one thread, now and then. */
void sl_keep(struct sl_server *server);

/* Paths in the store of what child processes have made. */

/*
 * What a child made for the page: its data, or in a build without the interactive page all of it.  The number is the version of
 * the data (doc/report-page.md): a pack whose page has another one is read again.
 */
#if SL_REPORT_PAGE
#define SL_PLACES_PAGE "page-2.msgpack.gz"
#else
#define SL_PLACES_PAGE "page.html"
#endif
#define SL_WINDOW_SUFFIX ".window-2"

/* "pages/ab/abcd.../NAME"; the second for a comparison of two packs. */
void sl_places_of(const char *pack, const char *name, char path[SL_PACKS_NAME + 64]);
/* The lines of only a part of the run, in ns since it began. */
void sl_places_window(const char *pack, uint64_t from_ns, uint64_t to_ns, char path[SL_PACKS_NAME + 64]);
void sl_places_compare(const char *before, const char *after, char path[2 * SL_PACKS_NAME + 64]);

/*
 * --project-quota limits what a project's runs take together.  Which project a pack belongs to is known only after its upload,
 * when a child process has read it.  A pack that does not fit is then removed and remembered, so that a second try is refused
 * before any byte.
 */

/* The sentence of a 507 answer to a refused pack. */
#define SL_QUOTA_FULL "the quota of this run's project is used up (--project-quota): it is not kept; reading goes on"

/* Bytes of a run: its pack and its pages, as --quota counts them; 0: there is no such pack.  Any thread. */
uint64_t sl_quota_taken(const struct sl_server *server, const char *pack);

/* True: this pack fits into its project (NULL: no project).  A new pack that does not fit is removed.  One thread. */
bool sl_quota_admits(struct sl_server *server, struct sl_store *store, const char *project, const char *pack);
/* To be called when a run's pack was removed, or what was made of it changed.  Any thread. */
void sl_quota_changed(const struct sl_server *server, const char *pack);
/* True: the pack was removed for lack of room, and there is still no room.  Any thread. */
bool sl_quota_refuses(struct sl_server *server, struct sl_store *store, const char *pack);

/* The pages of the server for people; api.c is for programs. */

void sl_site_landing(struct sl_request *request); /* / */
void sl_site_search(struct sl_request *request);  /* /search?q= */
void sl_run_page(struct sl_request *request);	  /* /runs/N, /runs/N/report */
void sl_trends_page(struct sl_request *request);  /* /trends?q=&metric=N or &field=NAME */
void sl_run_change(struct sl_request *request);	  /* POST /runs/N/pin, /runs/N/unpin, /runs/N/note */

/*
 * The report page of a run and of two runs compared, and the data that it asks for.  The page is ours and the same for every
 * run; the data is what a child made of packs, stored as gzip of msgpack and sent as it is.  A build without the interactive
 * page sends the plain one, which a child made whole.
 */

void sl_view_report(struct sl_request *request, const struct sl_card *card); /* /runs/N/report */
void sl_view_data(struct sl_request *request, const struct sl_card *card);   /* /api/v1/runs/N/page?from=&to= */
void sl_view_compare(struct sl_request *request);			     /* /compare?before=N&after=N */
void sl_view_changes(struct sl_request *request);			     /* /api/v1/compare?before=N&after=N */

/* The page, made by analyzer/outputs/html/bundle.py: gzip of HTML; the policy lets only its own script run. */
extern const unsigned char sl_served_page[];
extern const char sl_served_policy[];
extern const size_t sl_served_page_size;

/*
 * Computes pages from packs.  Child processes (tools/server/child/) do it, one after the other, on a thread of its own, each in a
 * folder that is removed afterwards.  Results are kept as files (places.c): STORE/pages/ab/abcd.../page-2.msgpack.gz and
 * report.json of a pack ("failed", with a sentence, where that was impossible), STORE/pages/compare/A-B.page-2.msgpack.gz of two
 * packs, and beside the page of a pack the latest windows of the run that somebody asked for.
 */

struct sl_server;
struct sl_work;

/* Begins with packs that have no pages yet.  NULL: errno. */
struct sl_work *sl_work_new(struct sl_server *server);
void sl_work_free(struct sl_work *work);

void sl_work_index(struct sl_work *work, const char *pack);
/* Queues the work unless it has been done; false: the queue is full. */
bool sl_work_compare(struct sl_work *work, const char *before, const char *after);

/* The same for a window of a run, in ns since it began. */
bool sl_work_window(struct sl_work *work, const char *pack, uint64_t from_ns, uint64_t to_ns);

/*
 * Changes for the worse in the newest runs of each project: peak, leaks, errors and largest places.  Kept in memory and
 * computed again, on the worker's thread, when a run arrives.  Any thread may read them.
 */

struct sl_worse {
	const char *project;		  /* stays valid; "": runs without a project */
	char what[256];			  /* a phrase for people */
	int64_t metric;			  /* 0: `what` is a field */
	int64_t before_run, run, when_ns; /* the last run before the change, and the run that made it */
	char commit[16];		  /* of the run that made it; "": not known */
	double before, after;
	bool bytes, settled; /* settled: later runs cannot change this result */
};

void sl_worse_look(struct sl_server *server, const char *project); /* "": runs without a project */
/* The projects of the newest runs, as the map's texts. */
void sl_worse_projects(struct sl_server *server, struct sl_map *projects);
/* Newest first. */
void sl_worse_each(void (*each)(void *context, const struct sl_worse *worse), void *context);
