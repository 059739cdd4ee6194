/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_CLI_OPTION_H
#define DLOCK_CLI_OPTION_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "lock/quorum.h"

/*
 * The options: one table for the parser, the environment, the configuration file and the help.
 */

/* The commands, as bits: they say which commands use an option, and show it in their help. */
enum {
	CMD_RUN = 1,
	CMD_ACQUIRE = 2,
	CMD_RENEW = 4,
	CMD_RELEASE = 8,
	CMD_STATUS = 16,
	CMD_HELP = 32,
	CMD_BREAK = 64,
	CMD_DOCTOR = 128,
	CMD_HISTORY = 256,
	CMD_CONFIG = 512,
	CMD_ALL = 1023,
	CMD_SERVICE = CMD_ALL & ~CMD_HELP, /* those that use the nodes: an option of all of these is a common one */
	CMD_LINE_ONLY = 1024,		   /* not in a configuration file: it concerns a single call or a single lock */
	CMD_KEEP = 2048			   /* of acquire: with --keep only */
};

/* --restart-guard auto: the lease with several nodes, no guard with one. */
enum {
	GUARD_AUTO = -1
};

enum {
	KILL_AFTER_MS = 5000, /* the default, at most a sixth of the lease */
	OPTIONS_MAX = 64      /* more than the table has */
};

/* Where a value comes from; each one takes precedence over those before it. */
enum origin {
	ORIGIN_DEFAULT,
	ORIGIN_FILE,
	ORIGIN_ENVIRONMENT,
	ORIGIN_LINE
};

struct source {
	enum origin origin;
	const char *file; /* of ORIGIN_FILE: its name and the line in it */
	int line;
	const char *value; /* as it was given; NULL: without one */
};

/* The values.  Strings belong to argv, the environment or the text of the configuration, and outlive the options. */
struct options {
	const char *node[NODES_MAX];
	int node_line[NODES_MAX]; /* of a configuration file */
	int nodes;
	int64_t ttl_ms;
	bool ttl_given;
	int64_t wait_ms; /* DURATION_FOREVER: no limit */
	int max_waiters; /* 0: no limit */
	int64_t node_timeout_ms;
	bool node_timeout_given;
	const char *label; /* NULL: none given */
	const char *prefix;
	int64_t restart_guard_ms; /* GUARD_AUTO, or a duration */
	const char *config;
	const char *password_file, *password_command, *sentinel_user, *sentinel_password_file;
	const char *cacert, *cacertdir, *cert, *key, *sni;
	bool insecure;
	int replicas;
	int64_t replicas_timeout_ms;
	bool replicas_timeout_given;
	int conflict_exit;
	bool json, quiet, verbose;

	int64_t node_wait_ms; /* DURATION_FOREVER: no limit */
	int64_t min_hold_ms;
	int64_t once_per_ms;
	int64_t max_run_ms; /* 0 and DURATION_FOREVER: no limit */
	int64_t kill_after_ms;
	bool kill_after_given;
	bool only_warn;
	const char *exec_on_lost; /* NULL: none */
	int first_signal;
	bool foreground;
	bool shell;
	const char *report;

	bool export_lines;
	bool export_fish;  /* not for sh, bash, dash, ksh, zsh */
	const char *token; /* NULL: none given */
	int slots;	   /* 0: an exclusive lock */
	bool shared;
	int keep_pid; /* 0: none */
	int history;

	const char *columns; /* NULL: the default columns */
	bool no_headings;
	bool watch;
	int64_t watch_ms;
	bool prometheus;
	bool waiters;
	bool all;
	bool failed;
	int64_t max_age_ms;
	bool max_age_given;

	bool force;
	bool ask;
	bool replace;

	bool help, help_all, version;

	bool secret;			   /* a node of a file has a password; cleared by the caller */
	struct source reading;		   /* the origin of what option_set() sets now; set by the caller */
	struct source source[OPTIONS_MAX]; /* of each option of the table */
};

enum option_kind {
	OPTION_FLAG,
	OPTION_TEXT,
	OPTION_NODE,
	OPTION_DURATION, /* an argument in brackets is optional */
	OPTION_WAIT,	 /* a duration or "forever", "infinity", "inf" */
	OPTION_GUARD,	 /* a duration or "auto" */
	OPTION_NO_WAIT,
	OPTION_EXIT_CODE,
	OPTION_COUNT,
	OPTION_SLOTS,
	OPTION_WAITERS,
	OPTION_SIGNAL,
	OPTION_PID,
	OPTION_ON_LOST,
	OPTION_SHELL,
	OPTION_ALL /* the word "all" */
};

struct option_spec {
	char letter; /* 0: none */
	const char *name;
	const char *argument;	 /* NULL: none; in brackets: optional */
	const char *environment; /* NULL: no variable */
	unsigned int commands;
	enum option_kind kind;
	size_t offset;
	size_t given_offset; /* of a bool that is set if the option was given; 0: none */
	int64_t least;	     /* the minimum of a duration */
	const char *help;
};

extern const struct option_spec option_specs[];
extern const size_t option_count;

void options_default(struct options *);

/* The option with a long name, the first `length` bytes of a text; NULL: none. */
const struct option_spec *option_find(const char *name, size_t length);

/* Where the value of an option comes from. */
enum origin options_origin(const struct options *, const char *name);

/* Is its argument required? */
bool option_needs_value(const struct option_spec *);

/*
 * Set an option; `value` is NULL if there is none, and may be "0" of a flag.  A value of a source that takes precedence
 * stays.  A node is added to those of the same source, and replaces those of another one.  ST_USAGE: the value is
 * invalid; the message names the option: "--ttl", "DLOCK_TTL", or "ttl" of a file.
 */
enum status option_set(struct options *, const struct option_spec *, const char *value, struct err *);

/*
 * Set options from the environment, except those that were given on the line.  The list of nodes is copied to `buffer`,
 * which must have room for it and outlive the options.
 */
enum status options_from_environment(struct options *, char *buffer, struct err *);

/*
 * The configuration file: lines of long options without dashes ("ttl 10s"), as in a curl config file.  Empty lines and
 * lines that begin with # are skipped.  A value may be in double quotes.  "=" or ":" may separate name and value.
 */
struct config_file {
	char name[256]; /* escaped */
	char *text;	/* NULL: it was not read; the caller frees it */
};

/*
 * Read the file `path`.  If it is NULL, read /etc/dlock/config and then $XDG_CONFIG_HOME/dlock/config ($HOME/.config if
 * that is unset), whose options replace those of the first; it is not an error if one is missing.  The options point
 * into the files, which are zeroed by the caller and outlive them.  ST_CONFIG: the message names file and line.
 * *warning is set for a password in a world-readable file.
 */
enum status config_read(const char *path, struct options *, struct config_file[2], struct err *warning, struct err *);

/* The same for a text in memory, which is modified; the options point into the name, too. */
enum status config_parse(char *text, const char *name, struct options *, struct err *);

#endif
