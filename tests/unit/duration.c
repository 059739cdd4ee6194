/* SPDX-License-Identifier: MIT */
#include "base/duration.h"

#include <time.h>

#include "tap.h"

#define S INT64_C(1000)
#define M (60 * S)
#define H (60 * M)
#define D (24 * H)
#define CENTURY (36525 * D)
#define UNTOUCHED (-77)

/* What means the same. */
static const struct {
	int64_t ms;
	const char *text[10];
} good[] = {
	/* as the manual has them, and others */
	{ 250, { "250ms", "0.25" } },
	{ 500, { ".5", ".5s" } },
	{ 7 * S, { "007" } },
	{ 30 * S, { "30s", "30" } },
	{ 90 * S, { "1m30s" } },
	{ 2 * M, { "1.5m30s" } },
	{ 5 * M, { "5m" } },
	{ 90 * M, { "1.5h" } },
	{ 2 * H, { "2h" } },
	{ H + 90 * M, { "1h90m" } },
	{ D, { "1d" } },
	{ D + 5, { "1d5ms" } },
	{ D + 2 * H + 3 * M + 4 * S + 5, { "1d2h3m4s5ms" } },

	/* only 0 is 0 */
	{ 0, { "0", "0.0", "0ms", "0d0h0m0s0ms" } },
	{ 1, { "0000000000000000000000000000001ms", "0.001", "0.0001", "0.1ms" } },
	{ 1, { "0.00000000000000000000000000000000001d" } },
	{ 2, { "0.00000001199d", "0.00000027799h", "0.00001666699m" } },
	{ 55, { "0.0000006250000001d" } },
	{ 999, { "0.999000000s" } },
	{ S, { "1.00000000000000000000000000000", "0.99999999999999999999s" } },
	{ S + 1, { "1.0009", "1.001" } },
	{ S + 2, { "1.0010000000000000000000000000001" } },

	/* up to a hundred years */
	{ CENTURY, { "36525d", "876600h", "52596000m", "3155760000s", "3155760000", "3155760000000ms" } },
	{ CENTURY, { "36524d24h", "36524.999999999999d" } },
};

static const char *const junk[] = { "", " ", ".", "..", "5.", "5.s", ".s", "1..5", "1.2.3", "1.5.", "1,5", "-1", "+1",
	"-0", "+0", "--1", "1-", "1s-1ms", "- 1", " 1", "1 ", "1s ", " 1s", "1 s", "1m 30s", "\t1", "1\n", "ms", "s",
	"d", "1M", "1S", "1D", "1H", "1MS", "1Ms", "1w", "1y", "1us", "1ns", "1sec", "1min", "1mss", "1sm", "1dd",
	"1msms", "1e3", "1E3", "1e", "1e3s", "0x10", "0x1p3", "0b1", "1_000", "1'000", "inf", "infinity", "INF", "nan",
	"forever", "never", "1/2", "50%", "1s,", "1s;", "(1)", "1:30", "s1", "m5s", "1m30", "1d2", "1h2m3", "1.5m30",
	"1s1s", "1m1m", "1d1d", "1ms1ms", "1ms1s", "1s1m", "1m1h", "1h1d", "1s1d", "1d1m1h", "1h1m1h",
	"99999999999999999999x", "99999999999999999999h1d", "36526d1", "\xd9\xa1s", "1\xc2\xa0s", "1\xef\xbc\x93",
	"\xff" };

/* More than a hundred years, and more than any number. */
static const char *const endless[] = { "36525.00000000001d", "36526d", "876601h", "52596001m", "3155760001s",
	"3155760001", "3155760000.0001", "3155760000001ms", "3155760000000.1ms", "36525d1ms", "36524d25h",
	"36525d0.0000000001ms", "9999999999999d", "106751991168d", "213503982336d", "9223372036854775807",
	"9223372036854775808", "9223372036854775807ms", "18446744073709551616", "18446744073709551617ms",
	"9223372036854776s", "153722867280913m", "2562047788016h",
	"99999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999ms",
	"99999999999999999999d1ms", "1d99999999999999999999h", "36526d1h" };

TEST(tables)
{
	int64_t ms;

	for (size_t i = 0; i < COUNT(good); i++) {
		for (size_t j = 0; j < COUNT(good[i].text) && good[i].text[j] != NULL; j++) {
			ms = UNTOUCHED;
			if (!duration_parse(good[i].text[j], &ms))
				ms = -1;
			is_int(ms, good[i].ms, "'%s' is a duration", good[i].text[j]);
		}
	}
	for (size_t i = 0; i < COUNT(junk); i++) {
		ms = UNTOUCHED;
		ok(!duration_parse(junk[i], &ms) && ms == UNTOUCHED, "'%s' is none, and nothing is set", junk[i]);
	}
	for (size_t i = 0; i < COUNT(endless); i++) {
		ok(duration_parse(endless[i], &ms) && ms == DURATION_FOREVER, "'%s' is too long", endless[i]);
		ms = UNTOUCHED;
	}
}

static const struct {
	const char *name;
	int64_t ms, most;
} units[] = {
	{ "d", D, 30000 },
	{ "h", H, 5000 },
	{ "m", M, 5000 },
	{ "s", S, 5000 },
	{ "ms", 1, 50000 },
};

/* A component with a random number of decimals; its milliseconds, calculated in full. */
static int64_t
add_component(char **at, size_t unit, bool decimals)
{
	const int64_t whole = below(8) == 0 ? 0 : below(units[unit].most);
	const int places = decimals ? (int)below(11) + 1 : 0;
	int64_t fraction, scale = 1;

	for (int i = 0; i < places; i++)
		scale *= 10;
	fraction = below(4) == 0 ? below(20) % scale : below(scale);
	*at += snprintf(*at, 64, below(5) == 0 ? "00%" PRId64 : "%" PRId64, whole);
	if (places > 0)
		*at += snprintf(*at, 64, ".%0*" PRId64, places, fraction);
	*at += snprintf(*at, 8, "%s", units[unit].name);
	return whole * units[unit].ms + (fraction * units[unit].ms + scale - 1) / scale;
}

/* Any units in their order, the last one perhaps with decimals. */
TEST(random)
{
	char text[512], *at;
	int64_t wanted, ms;
	unsigned int chosen;

	for (int i = 0; i < 20000; i++) {
		chosen = (unsigned int)below(31) + 1;
		wanted = 0;
		at = text;
		for (size_t unit = 0; unit < COUNT(units); unit++) {
			if ((chosen >> unit & 1) != 0)
				wanted += add_component(&at, unit, chosen >> (unit + 1) == 0 && below(2) == 0);
		}
		ms = UNTOUCHED;
		each(duration_parse(text, &ms) && ms == wanted, "%s: %" PRId64 ", not %" PRId64, text, ms, wanted);
	}
	each_ok("random durations have exactly their length");
}

/* Whatever the bytes: an answer, and a sane one. */
TEST(noise)
{
	static const char alphabet[] = "0123456789019..smhd-+ e";
	char text[16];
	int64_t ms;
	int length;

	for (int i = 0; i < 50000; i++) {
		length = (int)below((int64_t)sizeof(text));
		for (int j = 0; j < length; j++)
			text[j] = alphabet[below((int64_t)sizeof(alphabet) - 1)];
		text[length] = '\0';
		ms = UNTOUCHED;
		if (duration_parse(text, &ms))
			each(((ms >= 0 && ms <= CENTURY) || ms == DURATION_FOREVER) && strpbrk(text, "-+ e") == NULL,
			    "'%s': %" PRId64, text, ms);
		else
			each(ms == UNTOUCHED, "'%s' is refused but sets %" PRId64, text, ms);
	}
	each_ok("noise is refused, or is a length from 0 to a hundred years or too long");
}

static const struct shown {
	int64_t ms;
	const char *text;
} shown[] = {
	{ 0, "0ms" },
	{ 1, "1ms" },
	{ 840, "840ms" },
	{ 999, "999ms" },
	{ S, "1.0s" },
	{ 24300, "24.3s" },
	{ 24399, "24.3s" },
	{ 30 * S, "30.0s" },
	{ M - 1, "59.9s" },
	{ M, "1m00s" },
	{ 310 * S, "5m10s" },
	{ H - 1, "59m59s" },
	{ H, "1h00m" },
	{ 3 * H + 2 * M, "3h02m" },
	{ D - 1, "23h59m" },
	{ D, "1d00h" },
	{ 2 * D + 4 * H, "2d04h" },
	{ CENTURY, "36525d00h" },
	{ INT64_MAX - 1, "106751991167d07h" },
	{ DURATION_FOREVER, "forever" },
};

TEST(show)
{
	char text[32], tiny[4] = "xxx";

	for (size_t i = 0; i < COUNT(shown); i++) {
		duration_show(shown[i].ms, text, sizeof(text));
		is_str(text, shown[i].text, "%" PRId64 " ms for people", shown[i].ms);
	}
	duration_show(DURATION_FOREVER, tiny, sizeof(tiny));
	ok(strlen(tiny) < sizeof(tiny), "a small buffer stays terminated");
}

TEST(time_of_day)
{
	char shown_time[TIME_SIZE], expected[TIME_SIZE];
	const time_t now = time(NULL);
	struct tm tm;
	time_t then;

	(void)localtime_r(&now, &tm);
	tm.tm_year--;
	tm.tm_mday = tm.tm_yday + 1;
	tm.tm_mon = 0;
	tm.tm_isdst = -1;
	then = mktime(&tm);
	(void)strftime(expected, sizeof(expected), "%Y-%m-%d %H:%M:%S", &tm);
	is_str(duration_show_time((int64_t)then * 1000000, shown_time), expected, "this day of last year has its date");
}
