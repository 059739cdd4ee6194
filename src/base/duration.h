/* SPDX-License-Identifier: MIT */
#ifndef DLOCK_BASE_DURATION_H
#define DLOCK_BASE_DURATION_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DURATION_FOREVER INT64_MAX
#define DAY_MS INT64_C(86400000)
#define DURATION_MOST_MS (36525 * DAY_MS) /* a hundred years */
#define LATEST_MS (INT64_C(1) << 53) /* no time of day, and no length of time, is greater, whatever a server sends */

/*
 * Durations as users write them: "250ms", "30s", "5m", "2h", "1d", "1m30s", and a number of seconds with decimals, as
 * accepted by timeout(1).  Units are in descending order, each at most once.  A fraction of a millisecond is rounded
 * up, so that only 0 is 0.
 *
 * duration_parse() returns false and leaves *ms unchanged for anything else, such as a sign or an empty string.  A
 * duration longer than DURATION_MOST_MS becomes DURATION_FOREVER.
 */
bool duration_parse(const char *text, int64_t *ms);

/* Format a duration for messages: "840ms", "24.3s", "5m10s", "3h02m", "2d04h"; "forever". */
void duration_show(int64_t ms, char *text, size_t size);

/*
 * A time of day for people, in the local time zone: "12:05:10", with the date if that is not today's.  Returns `shown`.
 */
enum {
	TIME_SIZE = 24
};
const char *duration_show_time(int64_t wall_us, char shown[TIME_SIZE]);

#endif
