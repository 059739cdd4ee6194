# SPDX-License-Identifier: MIT
#
# The tests and what they read, as Makefile.am includes them.  One file to a line, in alphabetical order unless a
# comment says otherwise; each list ends in a comment.

# A program for each source of the same name.
unit_tests = \
	tests/unit/answer \
	tests/unit/array \
	tests/unit/attempt \
	tests/unit/attempt_handoff \
	tests/unit/child \
	tests/unit/clock \
	tests/unit/commands \
	tests/unit/connect \
	tests/unit/death_pipe \
	tests/unit/doctor \
	tests/unit/duration \
	tests/unit/err \
	tests/unit/history \
	tests/unit/holds \
	tests/unit/json \
	tests/unit/keepalive \
	tests/unit/keys \
	tests/unit/label \
	tests/unit/layout \
	tests/unit/lease \
	tests/unit/loop \
	tests/unit/node \
	tests/unit/option \
	tests/unit/password \
	tests/unit/policy \
	tests/unit/process \
	tests/unit/quorum \
	tests/unit/record \
	tests/unit/reply \
	tests/unit/route \
	tests/unit/signals \
	tests/unit/supervisor \
	tests/unit/text \
	tests/unit/token \
	tests/unit/url \
	tests/unit/zk_error \
	tests/unit/zk_metadata \
	tests/unit/zk_queue \
	tests/unit/zk_session \
	tests/unit/zk_slots \
	tests/unit/zk_url \
	tests/unit/zk_wire \
	# end of unit_tests

# The simulation, see tests/sim/README.md: the world, and what happens there.
sim_world = \
	tests/sim/arena.c \
	tests/sim/arena.h \
	tests/sim/calls.c \
	tests/sim/chance.h \
	tests/sim/collections.c \
	tests/sim/entry.h \
	tests/sim/event.c \
	tests/sim/event.h \
	tests/sim/files.c \
	tests/sim/judge.h \
	tests/sim/kernel.c \
	tests/sim/kernel.h \
	tests/sim/net.c \
	tests/sim/net.h \
	tests/sim/plan.h \
	tests/sim/process.h \
	tests/sim/resp.c \
	tests/sim/script.c \
	tests/sim/server.c \
	tests/sim/server.h \
	tests/sim/sorted.c \
	tests/sim/store.c \
	tests/sim/store.h \
	tests/sim/world.h \
	# end of sim_world
tests_sim_dlock_sim_SOURCES = \
	$(sim_world) \
	tests/sim/client.c \
	tests/sim/client.h \
	tests/sim/command.c \
	tests/sim/command.h \
	tests/sim/judge.c \
	tests/sim/judge_nodes.c \
	tests/sim/judge_state.h \
	tests/sim/main.c \
	tests/sim/mutant.c \
	tests/sim/plan.c \
	tests/sim/scenario.c \
	tests/sim/shrink.c \
	tests/sim/world.c \
	# end of tests_sim_dlock_sim_SOURCES

# The fuzz target in the same world, see tests/fuzz/README.md; as a test it replays its corpus.
tests_fuzz_service_SOURCES = \
	$(sim_world) \
	tests/fuzz/replay.c \
	tests/fuzz/servers.c \
	tests/fuzz/servers.h \
	tests/fuzz/service.c \
	# end of tests_fuzz_service_SOURCES

# What they put themselves in place of: system calls, and what the simulation's mutants do wrong.
wraps = $(shell sed -n 's/^WRAPPED.[^,]*, \([a-z_]*\),.*/-Wl,--wrap=\1/p' $(addprefix $(srcdir)/tests/,$(1)))
sim_wraps = $(call wraps,sim/*.c)
fuzz_wraps = $(call wraps,sim/calls.c fuzz/servers.c)

# The longest first, so that no long one is left for the end, when the other processors idle.
bats_tests = \
	tests/zookeeper/faults.bats \
	tests/zookeeper/lost-replies.bats \
	tests/zookeeper/holder.bats \
	tests/zookeeper/locks.bats \
	tests/zookeeper/ensemble.bats \
	tests/zookeeper/hostile.bats \
	tests/zookeeper/shared.bats \
	tests/zookeeper/slots.bats \
	tests/run/lost.bats \
	tests/run/keep.bats \
	tests/run/keep-release.bats \
	tests/servers/errors.bats \
	tests/servers/states.bats \
	tests/queue/failures.bats \
	tests/queue/order.bats \
	tests/queue/handoff.bats \
	tests/quorum/heal.bats \
	tests/slots/queue.bats \
	tests/slots/quorum.bats \
	tests/shared/queue.bats \
	tests/shared/quorum.bats \
	tests/servers/sentinel.bats \
	tests/quorum/commands.bats \
	tests/run/run.bats \
	tests/run/several.bats \
	tests/run/replace.bats \
	tests/run/limits.bats \
	tests/run/report.bats \
	tests/run/process.bats \
	tests/run/signals.bats \
	tests/run/places.bats \
	tests/run/stopped.bats \
	tests/docs/manual.bats \
	tests/docs/help.bats \
	tests/docs/pages.bats \
	tests/docs/screens.bats \
	tests/quorum/majority-down.bats \
	tests/servers/idle.bats \
	tests/servers/resend.bats \
	tests/commands/completions-bash.bats \
	tests/commands/completions-zsh.bats \
	tests/commands/completions-fish.bats \
	tests/quorum/contenders.bats \
	tests/servers/cluster.bats \
	tests/zookeeper/options.bats \
	tests/harness/faults.bats \
	tests/zookeeper/interop.bats \
	tests/run/reentry.bats \
	tests/quorum/reentry.bats \
	tests/harness/simulation.bats \
	tests/quorum/guard.bats \
	tests/docs/examples.bats \
	tests/run/terminal.bats \
	tests/harness/refusals.bats \
	tests/security/hostile.bats \
	tests/harness/limits.bats \
	tests/harness/ends.bats \
	tests/queue/wait.bats \
	tests/servers/tls.bats \
	tests/security/rotation.bats \
	tests/security/tls.bats \
	tests/zookeeper/tls.bats \
	tests/docs/examples-fences.bats \
	tests/commands/node-wait.bats \
	tests/run/exec-on-lost.bats \
	tests/commands/options.bats \
	tests/commands/urls.bats \
	tests/commands/config.bats \
	tests/quorum/other-clients.bats \
	tests/servers/other-clients.bats \
	tests/servers/scripts.bats \
	tests/servers/scripts-queue.bats \
	tests/servers/scripts-shared.bats \
	tests/servers/scripts-history.bats \
	tests/servers/scripts-holds.bats \
	tests/run/pitfalls.bats \
	tests/quorum/fences-recorded.bats \
	tests/commands/status-all.bats \
	tests/commands/status.bats \
	tests/quorum/minority-down.bats \
	tests/commands/status-table.bats \
	tests/commands/terminal-width.bats \
	tests/quorum/fences-increase.bats \
	tests/quorum/outcome.bats \
	tests/security/acl.bats \
	tests/commands/history.bats \
	tests/commands/break.bats \
	tests/commands/ask.bats \
	tests/commands/doctor.bats \
	tests/slots/commands.bats \
	tests/shared/commands.bats \
	tests/commands/export.bats \
	tests/quorum/status.bats \
	tests/security/secrets.bats \
	tests/commands/acquire.bats \
	tests/commands/release.bats \
	tests/run/random.bats \
	tests/commands/status-watch.bats \
	tests/docs/examples-deployed.bats \
	tests/commands/holder.bats \
	tests/commands/keys.bats \
	tests/commands/renew.bats \
	tests/commands/messages.bats \
	tests/commands/output.bats \
	tests/harness/leaks.bats \
	# end of bats_tests

# Not in make check, but in make check-slow.
slow_tests = \
	tests/slow/bench.bats \
	tests/slow/cluster.bats \
	tests/slow/faults.bats \
	tests/slow/fences-increase.bats \
	tests/slow/model.bats \
	tests/slow/queue.bats \
	tests/slow/quorum.bats \
	tests/slow/refusals.bats \
	tests/slow/sentinel.bats \
	tests/slow/simulation.bats \
	tests/slow/soak.bats \
	tests/slow/status.bats \
	tests/slow/zookeeper.bats \
	# end of slow_tests

# Not in make check, but in make check-valgrind.
valgrind_tests = tests/slow/valgrind.bats

# Not in make check, but in make check-static, after which these run with the static binary, too.
static_tests = tests/slow/static.bats
static_too = \
	tests/commands/acquire.bats \
	tests/run/limits.bats \
	tests/run/report.bats \
	tests/run/run.bats \
	tests/servers/tls.bats \
	# end of static_too

# What the tests read; a folder counts with all that is in it.
tests_data = \
	tests/.shellcheckrc \
	tests/claims.tsv \
	tests/coverage/README.md \
	tests/coverage/flush.c \
	tests/coverage/run \
	tests/fault \
	tests/inject/README.md \
	tests/inject/inject.bash \
	tests/inject/inject.c \
	tests/inject/inject.py \
	tests/inject/leak.c \
	tests/inject/scenarios.py \
	tests/lib \
	tests/model \
	tests/sim/README.md \
	tests/sim/compare.py \
	tests/unit/attempt_scene.h \
	tests/unit/memory.h \
	tests/unit/memory_service.h \
	tests/unit/server.h \
	tests/unit/tap.h \
	tests/zookeeper/Peer.java \
	tests/zookeeper/kazoo_peer.py \
	# end of tests_data

fuzz_data = \
	tests/fuzz/README.md \
	tests/fuzz/corpus.txt \
	tests/fuzz/run \
	# end of fuzz_data

# All of these and what they read.
tests_dist = \
	$(bats_tests) \
	$(fuzz_data) \
	$(slow_tests) \
	$(static_tests) \
	$(tests_data) \
	$(valgrind_tests) \
	# end of tests_dist

tested = $(abs_top_builddir)/dlock$(EXEEXT)
test_env = \
	DLOCK='$(tested)' \
	BENCH_SPAWN='$(abs_top_builddir)/bench/spawn$(EXEEXT)' \
	REDIS_SERVER='$(REDIS_SERVER)' \
	REDIS_CLI='$(REDIS_CLI)' \
	RCLI='$(abs_top_builddir)/tests/rcli$(EXEEXT)' \
	PYTHON='$(PYTHON)' \
	PYTHONDONTWRITEBYTECODE=1 \
	top_srcdir='$(abs_top_srcdir)'

# With these tests/fault/mutants.py compiles.
mutants_env = \
	CC='$(CC)' \
	FAULT_FLAGS='$(DEFS) $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS)' \
	FAULT_LIBS='$(AM_LDFLAGS) $(LDFLAGS) $(HIREDIS_LIBS) $(LIBS)' \
	top_builddir='$(abs_top_builddir)'
# For LD_PRELOAD; not for the sanitizers, so none of CFLAGS.
check_DATA = tests/inject/inject.so tests/inject/leak.so
preload = $(MKDIR_P) tests/inject && $(CC) -O2 -g -Wall -Wextra -fPIC -shared -o $@
tests/inject/inject.so: tests/inject/inject.c
	$(AM_V_CCLD)$(preload) $(top_srcdir)/tests/inject/inject.c -ldl
tests/inject/leak.so: tests/inject/leak.c
	$(AM_V_CCLD)$(preload) $(top_srcdir)/tests/inject/leak.c

# A shell starts background jobs with INT ignored, nohup with HUP; tests send both.
default_signals = $$(env --default-signal true 2>/dev/null && echo --default-signal)
tap_driver = env $(default_signals) AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
AM_TESTS_ENVIRONMENT = $(test_env) $(mutants_env); \
	export DLOCK BENCH_SPAWN REDIS_SERVER REDIS_CLI RCLI PYTHON PYTHONDONTWRITEBYTECODE top_srcdir \
	  CC FAULT_FLAGS FAULT_LIBS top_builddir;
LOG_DRIVER = $(tap_driver)
TEST_EXTENSIONS = .bats
BATS_LOG_DRIVER = $(tap_driver)
BATS_LOG_COMPILER = $(BATS)
AM_BATS_LOG_FLAGS = --tap

# TESTS as given to make, or these.
chosen = TESTS='$(if $(filter command,$(origin TESTS)),$(TESTS),$(1))'
slow_suite = $(call chosen,$(slow_tests)) TEST_SUITE_LOG=slow-suite.log
MOSTLYCLEANFILES = $(check_DATA) valgrind-suite.log slow-suite.log static-suite.log \
	$(slow_tests:.bats=.log) $(slow_tests:.bats=.trs) $(static_tests:.bats=.log) $(static_tests:.bats=.trs) \
	$(valgrind_tests:.bats=.log) $(valgrind_tests:.bats=.trs)

# What Python leaves in these folders where somebody calls it by hand.
dist-hook:
	find $(distdir)/tests -name __pycache__ -prune -exec rm -rf {} +

# They are built by make check, make sim, or make fuzz.
EXTRA_PROGRAMS = tests/sim/dlock-sim tests/fuzz/service
tests_sim_dlock_sim_CPPFLAGS = $(AM_CPPFLAGS) $(LUA_CFLAGS)
tests_sim_dlock_sim_LDFLAGS = $(AM_LDFLAGS) $(sim_wraps)
tests_sim_dlock_sim_LDADD = $(LDADD) $(LUA_LIBS) -lm
tests_fuzz_service_CPPFLAGS = $(tests_sim_dlock_sim_CPPFLAGS)
tests_fuzz_service_LDFLAGS = $(AM_LDFLAGS) $(fuzz_wraps)
tests_fuzz_service_LDADD = $(tests_sim_dlock_sim_LDADD)
if HAVE_SIM
sim_program = tests/sim/dlock-sim
fuzz_tests = tests/fuzz/service
endif

sim: tests/sim/dlock-sim$(EXEEXT)

# Where a program that the tests need is missing, no test passes for lack of it.
if CAN_TEST
check_PROGRAMS = $(unit_tests) $(fuzz_tests) $(sim_program) bench/spawn bench/least bench/load \
  tests/rcli
TESTS = $(bats_tests) $(fuzz_tests) $(unit_tests)
can_test = :
else
TESTS =
can_test = { echo "The tests need what configure did not find: $(TESTS_LACK)."; \
  echo "Run ./bootstrap, which installs it."; exit 1; } >&2
endif

check-local: check-TESTS
	@$(can_test)

# Behind the tests and before the count, whether they pass or not.  The alias keeps automake's own rule.
suite_log = $(TEST_SUITE_LOG)
$(suite_log): | skipped
skipped: $(TEST_LOGS)
	@$(SHELL) $(top_srcdir)/build-aux/skipped.sh $(TEST_LOGS)

check-slow: all $(check_DATA) $(sim_program)
	@$(can_test)
	$(MAKE) $(AM_MAKEFLAGS) $(slow_suite) check-TESTS

check-static: all $(check_DATA) dist-static
	@$(can_test)
	$(MAKE) $(AM_MAKEFLAGS) $(call chosen,$(static_tests) $(static_too)) TEST_SUITE_LOG=static-suite.log \
	  tested='$(abs_top_builddir)/static/dlock$(EXEEXT)' check-TESTS

# What of the program the tests run, on a copy of the source: this one may be configured already.
coverage:
	@$(can_test)
	rm -rf coverage && $(MKDIR_P) coverage
	$(MAKE) $(AM_MAKEFLAGS) distdir distdir=coverage/source
	+cd coverage && source/tests/coverage/run source

check-valgrind: all
	@$(can_test)
	$(MAKE) $(AM_MAKEFLAGS) $(call chosen,$(valgrind_tests)) TEST_SUITE_LOG=valgrind-suite.log check-TESTS

# Needs clang, for FUZZ_SECONDS.  See tests/fuzz/README.md.
fuzz: all
	@$(test_env) FUZZ_CFLAGS='$(HIREDIS_CFLAGS) $(LUA_CFLAGS)' FUZZ_LIBS='$(HIREDIS_LIBS) $(LUA_LIBS) -lm -ldl' \
	  $(srcdir)/tests/fuzz/run $(filter %.c,$(tests_fuzz_service_SOURCES)) $(fuzz_wraps)

# All states of the protocol's models; needs spin.
model:
	@$(srcdir)/tests/model/run

.PHONY: check-slow check-static check-valgrind coverage fuzz model sim skipped
