#!/bin/sh
# SPDX-License-Identifier: MIT
#
# fence-job.sh STORE
#
# Add a delivery to the stock, under a lock:
#
#   dlock run stock -- fence-job.sh ./fence-files.sh
#
# STORE is one of the three fence-*.sh, or a program that reads and writes in the same way.  The program
# "count-delivery", one of your own, prints the amount of the delivery.  Between reading and writing this
# script may be stopped for any time.  Another client may take the lock and write before the script
# continues.  The store detects that by the fence (DLOCK_FENCE, set by dlock) and refuses; the job fails
# and is started again.

set -eu

amount=$("$1" read apples)
delivered=$(count-delivery)
echo $((amount + delivered)) | "$1" write apples
