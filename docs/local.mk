# SPDX-License-Identifier: MIT
#
# What is installed beside the program, as Makefile.am includes it.

dist_man_MANS = \
	man/dlock-nodes.7 \
	man/dlock-protocol.7 \
	man/dlock-slots.7 \
	man/dlock.1 \
	# end of dist_man_MANS

dist_bashcomp_DATA = completions/bash/dlock
dist_zshcomp_DATA = completions/zsh/_dlock
dist_fishcomp_DATA = completions/fish/dlock.fish

dist_doc_DATA = \
	COPYING \
	DESIGN.md \
	NEWS.md \
	README.md \
	README.zh-CN.md \
	SECURITY.md \
	# end of dist_doc_DATA

docsdir = $(docdir)/docs
dist_docs_DATA = \
	docs/comparison.md \
	docs/containers.md \
	docs/costs.md \
	docs/guarantees.md \
	docs/proof.md \
	docs/screens.md \
	docs/tested-with.md \
	# end of dist_docs_DATA

examplesdir = $(docdir)/examples
dist_examples_SCRIPTS = \
	examples/demo.sh \
	examples/deploy.sh \
	examples/fence-files.sh \
	examples/fence-job.sh \
	examples/fence-postgresql.sh \
	examples/fence-sqlite.sh \
	examples/newest-deploy.sh \
	examples/pinged.sh \
	examples/rolling-restart.sh \
	examples/test-device.sh \
	# end of dist_examples_SCRIPTS

dist_examples_DATA = \
	examples/alerts.yml \
	examples/crontab \
	examples/docker-compose.yml \
	examples/gitlab-ci.yml \
	examples/kubernetes-cronjob.yaml \
	examples/leader.service \
	examples/nightly.service \
	examples/nightly.timer \
	examples/stock.sql \
	# end of dist_examples_DATA
