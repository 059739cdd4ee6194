/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "judge.h"
#include "plan.h"
#include "server.h"
#include "world.h"

static const char usage[] =
    "usage: dlock-sim [--seed N | --seeds FROM-TO] [--jobs N] [--trace] [--shrink] [--mutant NAME]\n"
    "       dlock-sim --scenario NAME [--trace] | --scenarios | --mutants | --serve\n"
    "\n"
    "Run dlock's code in a simulated world, one schedule for each seed, and check the rules after each event.\n"
    "  --seed N, --seeds FROM-TO   these seeds (1-1000)\n"
    "  --jobs N                    as so many processes\n"
    "  --trace                     print each step\n"
    "  --all                       go on after one that fails\n"
    "  --shrink                    make a schedule that fails smaller, and print its steps\n"
    "  --mutant NAME               with this mistake made; --mutants lists them\n"
    "  --scenario NAME             what was once found, again and again; --scenarios lists them\n"
    "  --serve                     be the stand-in for Redis on standard input and output\n"
    "Exit status: 0, or 1 if a rule was broken.\n";

struct options {
	uint64_t from, to;
	int jobs;
	bool trace, shrink, all;
	const char *scenario; /* NULL: run seeds */
};

static bool
run_again(const struct plan *p)
{
	struct breach breach;

	return !world_run(p, false, &breach);
}

static void
tell(uint64_t seed, struct plan *plan, const struct breach *breach, const struct options *o)
{
	struct breach again;

	printf("seed %" PRIu64 ": %s: %s\n", seed, breach->rule, breach->what);
	if (!o->shrink)
		return;
	plan_shrink(plan, run_again);
	printf("\nthe smallest schedule found that fails:\n");
	plan_print(plan);
	(void)world_run(plan, true, &again);
	printf("%s: %s\n", again.rule, again.what);
}

/* Run every `step`-th seed.  False: one has failed.  It was the last one to run, unless all were to be run. */
static bool
run_seeds(const struct options *o, uint64_t first, uint64_t step)
{
	struct breach breach;
	struct plan plan;
	bool fine = true;
	uint64_t seed;

	for (seed = first; seed <= o->to; seed += step) {
		plan_make(&plan, seed);
		if (o->trace)
			plan_print(&plan);
		if (world_run(&plan, o->trace, &breach))
			continue;
		tell(seed, &plan, &breach, o);
		fine = false;
		if (!o->all)
			break;
	}
	return fine;
}

static void
add_counts(struct judge_counts *sum, const struct judge_counts *part)
{
	sum->schedules += part->schedules;
	sum->events += part->events;
	sum->entries += part->entries;
	sum->losses += part->losses;
	sum->requests += part->requests;
	sum->faults += part->faults;
	if (part->longest_idle_us > sum->longest_idle_us)
		sum->longest_idle_us = part->longest_idle_us;
}

/* Run one process for each share of the seeds.  They report their counts through a pipe. */
static bool
run_jobs(const struct options *o)
{
	struct judge_counts part;
	int ends[2], i, status;
	bool fine = true;
	pid_t pid;

	if (pipe(ends) != 0) {
		perror("dlock-sim");
		return false;
	}
	(void)fflush(stdout);
	for (i = 0; i < o->jobs; i++) {
		pid = fork();
		if (pid < 0) {
			perror("dlock-sim");
			fine = false;
		} else if (pid == 0) {
			fine = run_seeds(o, o->from + (uint64_t)i, (uint64_t)o->jobs);
			(void)fflush(stdout);
			(void)!write(ends[1], &judge_counts, sizeof(judge_counts));
			_exit(fine ? 0 : 1);
		}
	}
	(void)close(ends[1]);
	while (read(ends[0], &part, sizeof(part)) == (ssize_t)sizeof(part))
		add_counts(&judge_counts, &part);
	while (wait(&status) > 0 || errno == EINTR)
		fine = fine && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	return fine;
}

static bool
read_seeds(const char *text, struct options *o)
{
	char *end;

	o->from = o->to = strtoull(text, &end, 10);
	if (*end == '-')
		o->to = strtoull(end + 1, &end, 10);
	return *text != '\0' && *end == '\0' && o->from <= o->to;
}

/* Run the scenario several times with different random numbers. */
static bool
run_scenario(const struct options *o)
{
	struct breach breach;
	struct plan plan;
	int times;

	times = scenario_make(o->scenario, &plan);
	for (int i = 0; i < times; i++, plan.chance++) {
		if (o->trace)
			plan_print(&plan);
		if (!world_run(&plan, o->trace, &breach)) {
			printf("%s, chance %d: %s: %s\n", o->scenario, i, breach.rule, breach.what);
			return false;
		}
	}
	return true;
}

static int
refuse(void)
{
	(void)fputs(usage, stderr);
	return 64;
}

static int
run_all(const struct options *o)
{
	const bool fine = o->scenario != NULL ? run_scenario(o) : o->jobs > 1 ? run_jobs(o) : run_seeds(o, o->from, 1);

	printf("%lu schedules, %lu faults, %lu events, %lu requests, %lu entries, %lu locks lost; "
	       "longest idle time without a fault %.1f ms\n",
	    judge_counts.schedules, judge_counts.faults, judge_counts.events, judge_counts.requests,
	    judge_counts.entries, judge_counts.losses, (double)judge_counts.longest_idle_us / 1000);
	return fine ? 0 : 1;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = { { "seed", required_argument, NULL, 's' },
		{ "seeds", required_argument, NULL, 's' }, { "jobs", required_argument, NULL, 'j' },
		{ "trace", no_argument, NULL, 't' }, { "all", no_argument, NULL, 'a' },
		{ "shrink", no_argument, NULL, 'k' }, { "mutant", required_argument, NULL, 'm' },
		{ "mutants", no_argument, NULL, 'l' }, { "scenario", required_argument, NULL, 'c' },
		{ "scenarios", no_argument, NULL, 'n' }, { "serve", no_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 } };
	struct options o = { .from = 1, .to = 1000, .jobs = 1 };
	int option;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 's' && read_seeds(optarg, &o))
			continue;
		if (option == 'j' && (o.jobs = (int)strtol(optarg, NULL, 10)) > 0)
			continue;
		if (option == 'm' && mutant_choose(optarg))
			continue;
		if (option == 'c' && scenario_make(optarg, NULL) > 0) {
			o.scenario = optarg;
			continue;
		}
		if (option == 'l' || option == 'n')
			return option == 'l' ? mutant_list() : scenario_list();
		if (option == 'r')
			return server_serve();
		if (option == 'h')
			return fputs(usage, stdout) < 0;
		if (option != 't' && option != 'k' && option != 'a')
			return refuse();
		o.trace = o.trace || option == 't';
		o.shrink = o.shrink || option == 'k';
		o.all = o.all || option == 'a';
	}
	if (!mutant_can_be_made()) {
		(void)fputs("dlock-sim: no script has what the mutant changes\n", stderr);
		return 70;
	}
	return optind < argc ? refuse() : run_all(&o);
}
