# SPDX-License-Identifier: MIT
#
# The measurements, as Makefile.am includes them.

# A scenario bench/scenarios/NAME.py is what bench/run calls NAME.
bench_files = \
	bench/README.md \
	bench/RESULTS.md \
	bench/check \
	bench/expected.x86_64-gcc12 \
	bench/lib/ensembles.py \
	bench/lib/lab.py \
	bench/lib/locks.py \
	bench/lib/plot.py \
	bench/lib/report.py \
	bench/lib/waiters.py \
	bench/lost \
	bench/peers/kazoo-lock \
	bench/peers/redis-cli-lock \
	bench/peers/redis-py-lock \
	bench/peers/redlock-lock.js \
	bench/peers/redlock-nodes.js \
	bench/results/contend.svg \
	bench/results/handoff.svg \
	bench/results/idle.svg \
	bench/results/overhead.svg \
	bench/results/quorum.svg \
	bench/run \
	bench/scenarios/aims.py \
	bench/scenarios/contend.py \
	bench/scenarios/fleet.py \
	bench/scenarios/handoff.py \
	bench/scenarios/idle.py \
	bench/scenarios/keys.py \
	bench/scenarios/modes.py \
	bench/scenarios/overhead.py \
	bench/scenarios/quorum.py \
	bench/scenarios/repeat.py \
	bench/scenarios/server.py \
	bench/scenarios/status.py \
	bench/scenarios/summary.py \
	bench/scenarios/zookeeper.py \
	# end of bench_files

# What make bench measures with.
bench_programs = bench/spawn$(EXEEXT) bench/least$(EXEEXT) bench/load$(EXEEXT)
EXTRA_PROGRAMS += bench/spawn bench/least bench/load
bench_spawn_SOURCES = bench/spawn.c bench/tool.h
bench_load_SOURCES = bench/load.c bench/scripts.h bench/tool.h
bench_spawn_LDADD =
bench_least_LDADD =
CLEANFILES += $(bench_programs)

# BENCH says which scenarios, and whatever options bench/run has; all of them unless said.
bench: all $(bench_programs)
	@$(test_env) $(PYTHON) $(srcdir)/bench/run $(BENCH)

# Counts of instructions and system calls, against those in the tree; and new ones for the tree.
bench_check = $(test_env) CC='$(CC)' CFLAGS='$(CFLAGS)' $(PYTHON) $(srcdir)/bench/check

bench-check: all
	@$(bench_check)

bench-expect: all
	@$(bench_check) --expect

.PHONY: bench bench-check bench-expect
