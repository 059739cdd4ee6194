#!/bin/sh
# SPDX-License-Identifier: MIT
#
# fence-job.sh STORE
#
# Add a delivery to the stock, under a lock:
#
#   dlock run stock -- fence-job.sh ./fence-files.sh
#
# STORE is one of the three fence-*.sh, or whatever reads and writes likewise; how much has come is
# printed by "count-delivery", a program of yours.  Between reading and writing this may be stopped
# for any time, its lock may become another's, and that one may write before it goes on.  The store
# sees that by the fence (DLOCK_FENCE, set by dlock) and refuses; the job fails and is begun anew.

set -eu

amount=$("$1" read apples)
delivered=$(count-delivery)
echo $((amount + delivered)) | "$1" write apples
