# SPDX-License-Identifier: MIT
#
# The library and the scripts, as Makefile.am includes them.  One file to a line in alphabetical order; the list ends in
# a comment, so that adding a file is one line of difference.  Headers stand beside their sources.

src_libdlock_a_SOURCES = \
	src/base/array.c \
	src/base/array.h \
	src/base/clock.c \
	src/base/clock.h \
	src/base/duration.c \
	src/base/duration.h \
	src/base/err.c \
	src/base/err.h \
	src/base/json.c \
	src/base/json.h \
	src/base/random.c \
	src/base/random.h \
	src/base/text.c \
	src/base/text.h \
	src/cli/acquisition.c \
	src/cli/acquisition.h \
	src/cli/cmd_break.c \
	src/cli/cmd_config.c \
	src/cli/cmd_doctor.c \
	src/cli/cmd_look.c \
	src/cli/cmd_run.c \
	src/cli/cmd_token.c \
	src/cli/command.c \
	src/cli/command.h \
	src/cli/invocation.c \
	src/cli/layout.c \
	src/cli/layout.h \
	src/cli/option.c \
	src/cli/option.h \
	src/cli/output.c \
	src/cli/output.h \
	src/cli/setup.c \
	src/cli/setup.h \
	src/cli/view.c \
	src/cli/view.h \
	src/lock/attempt.c \
	src/lock/attempt.h \
	src/lock/finding.c \
	src/lock/finding.h \
	src/lock/history.c \
	src/lock/history.h \
	src/lock/lease.c \
	src/lock/lease.h \
	src/lock/quorum.c \
	src/lock/quorum.h \
	src/lock/record.c \
	src/lock/record.h \
	src/lock/service.c \
	src/lock/service.h \
	src/lock/token.c \
	src/lock/token.h \
	src/net/authority.c \
	src/net/authority.h \
	src/net/channel.c \
	src/net/channel.h \
	src/net/connect.c \
	src/net/connect.h \
	src/net/libssl.h \
	src/net/loop.c \
	src/net/loop.h \
	src/net/password.c \
	src/net/password.h \
	src/net/tls.c \
	src/net/tls.h \
	src/redis/acquire.c \
	src/redis/answer.c \
	src/redis/answer.h \
	src/redis/backend.c \
	src/redis/backend.h \
	src/redis/command.c \
	src/redis/command.h \
	src/redis/doctor.c \
	src/redis/doctor.h \
	src/redis/look.c \
	src/redis/node.c \
	src/redis/node.h \
	src/redis/nodes.c \
	src/redis/nodes.h \
	src/redis/operations.h \
	src/redis/release.c \
	src/redis/renew.c \
	src/redis/reply.c \
	src/redis/reply.h \
	src/redis/route.c \
	src/redis/route.h \
	src/redis/server.c \
	src/redis/server.h \
	src/redis/slots.c \
	src/redis/slots.h \
	src/redis/url.c \
	src/redis/url.h \
	src/redis/waitqueue.c \
	src/run/child.c \
	src/run/child.h \
	src/run/death_pipe.c \
	src/run/death_pipe.h \
	src/run/keepalive.c \
	src/run/keepalive.h \
	src/run/loss.c \
	src/run/loss.h \
	src/run/policy.c \
	src/run/policy.h \
	src/run/process.c \
	src/run/process.h \
	src/run/signals.c \
	src/run/signals.h \
	src/run/supervisor.c \
	src/run/supervisor.h \
	src/services.c \
	src/zk/acquire.c \
	src/zk/backend.c \
	src/zk/backend.h \
	src/zk/doctor.c \
	src/zk/entry.c \
	src/zk/entry.h \
	src/zk/lease.c \
	src/zk/look.c \
	src/zk/metadata.c \
	src/zk/metadata.h \
	src/zk/queue.c \
	src/zk/queue.h \
	src/zk/slots.c \
	src/zk/slots.h \
	src/zk/session.c \
	src/zk/session.h \
	src/zk/url.c \
	src/zk/url.h \
	src/zk/wire.c \
	src/zk/wire.h \
	# end of src_libdlock_a_SOURCES
if STATIC_BINARY
src_libdlock_a_SOURCES += src/net/static.c
else
src_libdlock_a_SOURCES += src/net/libssl.c
endif

lua_scripts = \
	src/lua/acquire.lua \
	src/lua/ask.lua \
	src/lua/break.lua \
	src/lua/fence.lua \
	src/lua/heal.lua \
	src/lua/history.lua \
	src/lua/inspect.lua \
	src/lua/invite.lua \
	src/lua/last.lua \
	src/lua/leave.lua \
	src/lua/pass.lua \
	src/lua/release.lua \
	src/lua/renew.lua \
	src/lua/share.lua \
	src/lua/slots.lua \
	src/lua/undo.lua \
	src/lua/unshare.lua \
	# end of lua_scripts

# Everything but main: the tests link the very same objects.
noinst_LIBRARIES = src/libdlock.a
bin_PROGRAMS = dlock
dlock_SOURCES = src/dlock.c

src/scripts.inc: $(lua_scripts) build-aux/embed-lua.sh
	@$(MKDIR_P) src
	$(AM_V_GEN)(cd $(srcdir) && $(SHELL) build-aux/embed-lua.sh $(lua_scripts)) >$@.tmp && \
	  mv -f $@.tmp $@

# Said here because BUILT_SOURCES alone does not serve "make dlock".
src/redis/command.$(OBJEXT): src/scripts.inc
BUILT_SOURCES = src/scripts.inc
CLEANFILES = src/scripts.inc src/scripts.inc.tmp
