/* SPDX-License-Identifier: MIT */
#include "redis/url.h"

#include "base/text.h"
#include "tap.h"

#define X10 "xxxxxxxxxx"
#define X50 X10 X10 X10 X10 X10
#define X100 X50 X50
#define X250 X100 X100 X50

static struct url url;
static struct err err;

static const struct good {
	const char *text;
	const char *name;
	const char *host, *port, *path, *user, *password;
	int db;
	bool secure;
} good[] = {
	{ "redis://h", "h:6379", "h", "6379", "", "", "", 0, false },
	{ "redis://h/", "h:6379", "h", "6379", "", "", "", 0, false },
	{ "redis://h/0", "h:6379", "h", "6379", "", "", "", 0, false },
	{ "redis://h/15", "h:6379/15", "h", "6379", "", "", "", 15, false },
	{ "redis://h:1", "h:1", "h", "1", "", "", "", 0, false },
	{ "redis://h:65535/3", "h:65535/3", "h", "65535", "", "", "", 3, false },
	{ "redis://h:06379", "h:6379", "h", "6379", "", "", "", 0, false },
	{ "redis://redis-1.example.com:7000", "redis-1.example.com:7000", "redis-1.example.com", "7000", "", "", "", 0,
	    false },
	{ "redis://127.0.0.1:6379", "127.0.0.1:6379", "127.0.0.1", "6379", "", "", "", 0, false },
	{ "redis://my_host", "my_host:6379", "my_host", "6379", "", "", "", 0, false },
	{ "redis://%68ost", "host:6379", "host", "6379", "", "", "", 0, false },

	{ "redis://[::1]", "[::1]:6379", "::1", "6379", "", "", "", 0, false },
	{ "redis://[::1]:7000/2", "[::1]:7000/2", "::1", "7000", "", "", "", 2, false },
	{ "redis://[2001:DB8::ff]:1", "[2001:DB8::ff]:1", "2001:DB8::ff", "1", "", "", "", 0, false },
	{ "redis://[::ffff:10.0.0.1]", "[::ffff:10.0.0.1]:6379", "::ffff:10.0.0.1", "6379", "", "", "", 0, false },
	{ "redis://u:p@[::1]:7000", "[::1]:7000", "::1", "7000", "", "u", "p", 0, false },

	{ "redis://user@h", "h:6379", "h", "6379", "", "user", "", 0, false },
	{ "redis://user:@h", "h:6379", "h", "6379", "", "user", "", 0, false },
	{ "redis://:secret@h", "h:6379", "h", "6379", "", "", "secret", 0, false },
	{ "redis://@h", "h:6379", "h", "6379", "", "", "", 0, false },
	{ "redis://user:secret@h:1/2", "h:1/2", "h", "1", "", "user", "secret", 2, false },
	{ "redis://u:p%40ss%2Fw%3ard@h", "h:6379", "h", "6379", "", "u", "p@ss/w:rd", 0, false },
	{ "redis://u%3as:p@h", "h:6379", "h", "6379", "", "u:s", "p", 0, false },
	{ "redis://u:p:q@h", "h:6379", "h", "6379", "", "u", "p:q", 0, false },
	{ "redis://u:p@q@h", "h:6379", "h", "6379", "", "u", "p@q", 0, false },
	{ "redis://u@q@h", "h:6379", "h", "6379", "", "u@q", "", 0, false },
	{ "redis://u:%c3%bc%ff@h", "h:6379", "h", "6379", "", "u", "\xc3\xbc\xff", 0, false },
	{ "redis://u:a b%25@h", "h:6379", "h", "6379", "", "u", "a b%", 0, false },

	{ "rediss://h", "h:6379", "h", "6379", "", "", "", 0, true },
	{ "rediss://u:p@h:7000/3", "h:7000/3", "h", "7000", "", "u", "p", 3, true },
	{ "rediss://[::1]", "[::1]:6379", "::1", "6379", "", "", "", 0, true },

	{ "unix:///run/redis.sock", "/run/redis.sock", "", "", "/run/redis.sock", "", "", 0, false },
	{ "unix:///s?db=0", "/s", "", "", "/s", "", "", 0, false },
	{ "unix:///s?db=7", "/s", "", "", "/s", "", "", 7, false },
	{ "unix://user:secret@/s?db=7", "/s", "", "", "/s", "user", "secret", 7, false },
	{ "unix://:secret@/s", "/s", "", "", "/s", "", "secret", 0, false },
	{ "unix:///a%20b%3fc", "/a b?c", "", "", "/a b?c", "", "", 0, false },
	{ "unix:///a@b:c", "/a@b:c", "", "", "/a@b:c", "", "", 0, false },
	{ "unix:///" X100 "xxxxxx", "/" X100 "xxxxxx", "", "", "/" X100 "xxxxxx", "", "", 0, false },

	{ "/run/redis.sock", "/run/redis.sock", "", "", "/run/redis.sock", "", "", 0, false },
	{ "/", "/", "", "", "/", "", "", 0, false },
	{ "/a@b", "/a@b", "", "", "/a@b", "", "", 0, false },
	{ "/two\nlines", "/two\\nlines", "", "", "/two\nlines", "", "", 0, false },
	{ "/" X100 "xxxxxx", "/" X100 "xxxxxx", "", "", "/" X100 "xxxxxx", "", "", 0, false },

	{ "h:1", "h:1", "h", "1", "", "", "", 0, false },
	{ "localhost", "localhost:6379", "localhost", "6379", "", "", "", 0, false },
	{ "[::1]", "[::1]:6379", "::1", "6379", "", "", "", 0, false },
	{ "localhost:6379", "localhost:6379", "localhost", "6379", "", "", "", 0, false },
	{ "[::1]:6379", "[::1]:6379", "::1", "6379", "", "", "", 0, false },
};

static const char *const bad[] = { "", " ", ":", ":1", "h:", "h:0", "h:65536", "h:99999999999", "h:-1", "h:+1", "h:1x",
	"h: 1", "h:1 ", "h:1/0", "h:1/", "h:1?", "h:1#x", "h x:1", "h\n:1", "h;id:1", "$(id):1", "\xc3\xbc:1",
	"u:p@h:1", "u@h:1", "::1:6379", "[::1:6379", "[]:1", "[::1]1", "[::1]:", "[g::]:1", "[a b]:1", "./sock",
	"~/sock",

	"redis:", "redis:/", "redis:///", "redis://", "redis:///0", "redis://:6379", "redis://h:", "redis://h:/0",
	"redis://h:0", "redis://h:65536", "redis://h:0x1", "redis://h:1e3", "redis://h/x", "redis://h/-1",
	"redis://h/+1", "redis://h/1x", "redis://h/1/2", "redis://h/1?x=2", "redis://h/ 1", "redis://h/99999999",
	"redis://h/4294967296", "redis://h/18446744073709551616", "redis://h?db=1", "redis://h#0", "redis://h:1#0",
	"redis://h h", "redis://h\n", "redis://h\x01", "redis://[::1", "redis://[]", "redis://[::1]x",
	"redis://[::1]:0", "redis://h,g", "redis://h h:1", "redis://[41]", "redis://[%41]", "redis://%00h",
	"redis://%0ah", "redis://%", "redis://%4", "redis://%zz", "redis://u:p@", "redis://u:p@:1", "redis://%00@h",
	"redis://u%@h", X250 "xxxxxx:1", "redis://" X250 "xxxxxx", "redis://[" X250 "xxxxxx]",
	"redis://" X250 "xxxxxx@h",

	"unix:", "unix:/s", "unix://", "unix://s", "unix://host/s?db", "unix:///s?", "unix:///s?db=", "unix:///s?db=x",
	"unix:///s?db=-1", "unix:///s?db=1&x=2", "unix:///s?x=1", "unix:///s?DB=1", "unix:///%00", "unix:///a%",
	"unix:///a%2", "unix:///a%g0", "unix:///" X100 "xxxxxxx", "/" X100 "xxxxxxx",

	"http://h:1", "rediss://", "rediss://h:x", "rediss:///s", "rediss+unix:///s", "REDIS://h", "redis+sentinel://",
	"redis+sentinel://h", "redis+sentinel://h/", "redis+sentinel:///s", "redis+sentinel://h,/s",
	"redis+sentinel://,h/s", "redis+sentinel://h:0/s", "redis+sentinel://h,h:x/s", "redis+sentinel://h/s/x",
	"redis+sentinel://h/s/1/", "redis+sentinel://a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a/s", "redis+cluster://",
	"redis+cluster://h,", "redis+cluster://,h", "redis+cluster://h/1", "redis+cluster:///s",
	"redis+sentinels://h/s", "zk://h:2181", "tcp://h:1", "file:///s", "://", "://h:1" };

TEST(good)
{
	for (size_t i = 0; i < COUNT(good); i++) {
		const struct good *g = &good[i];

		memset(&url, 0x5a, sizeof(url));
		err.text[0] = '\0';
		if (!is_int(url_parse(g->text, &url, &err), ST_OK, "%s", g->text))
			continue;
		each(strcmp(url.name, g->name) == 0, "%s: name %s", g->text, url.name);
		each(strcmp(url.endpoint.host, g->host) == 0, "%s: host %s", g->text, url.endpoint.host);
		each(strcmp(url.endpoint.port, g->port) == 0, "%s: port %s", g->text, url.endpoint.port);
		each(strcmp(url.endpoint.path, g->path) == 0, "%s: path %s", g->text, url.endpoint.path);
		each(strcmp(url.user, g->user) == 0, "%s: user %s", g->text, url.user);
		each(strcmp(url.password, g->password) == 0, "%s: password %s", g->text, url.password);
		each(url.db == g->db, "%s: db %d", g->text, url.db);
		each(url.secure == g->secure, "%s: %s", g->text, g->secure ? "under TLS" : "plain");
		each_ok("%s: every part", g->text);
	}
}

static const struct {
	const char *text, *name, *hosts, *service, *user, *password;
	enum url_kind kind;
	int db;
	bool secure;
} services[] = {
	{ "redis+sentinel://h/s", "redis+sentinel://h:26379/s", "h:26379", "s", "", "", URL_SENTINEL, 0, false },
	{ "redis+sentinel://a:1,b,[::1]:3/jobs/7", "redis+sentinel://a:1,b:26379,[::1]:3/jobs/7", "a:1 b:26379 ::1:3",
	    "jobs", "", "", URL_SENTINEL, 7, false },
	{ "rediss+sentinel://u:p%2c@a,b/%6aobs", "rediss+sentinel://a:26379,b:26379/jobs", "a:26379 b:26379", "jobs",
	    "u", "p,", URL_SENTINEL, 0, true },
	{ "redis+cluster://h", "redis+cluster://h:6379", "h:6379", "", "", "", URL_CLUSTER, 0, false },
	{ "redis+cluster://u:p@a:7000,b:7001/", "redis+cluster://a:7000,b:7001", "a:7000 b:7001", "", "u", "p",
	    URL_CLUSTER, 0, false },
	{ "rediss+cluster://:p@[2001:db8::1]", "rediss+cluster://[2001:db8::1]:6379", "2001:db8::1:6379", "", "", "p",
	    URL_CLUSTER, 0, true },
};

TEST(services)
{
	char hosts[300];
	struct text text;

	for (size_t i = 0; i < COUNT(services); i++) {
		memset(&url, 0x5a, sizeof(url));
		if (!is_int(url_parse(services[i].text, &url, &err), ST_OK, "%s", services[i].text))
			continue;
		text = text_in(hosts, sizeof(hosts));
		for (int j = 0; j < url.seeds; j++)
			text_addf(&text, "%s%s:%s", j > 0 ? " " : "", url.seed[j].host, url.seed[j].port);
		each(strcmp(hosts, services[i].hosts) == 0, "hosts %s", hosts);
		each(strcmp(url.name, services[i].name) == 0, "name %s", url.name);
		each(strcmp(url.service, services[i].service) == 0, "service %s", url.service);
		each(strcmp(url.user, services[i].user) == 0 && strcmp(url.password, services[i].password) == 0,
		    "user %s, password %s", url.user, url.password);
		each(url.kind == services[i].kind && url.db == services[i].db && url.secure == services[i].secure,
		    "kind %d, db %d, %s", (int)url.kind, url.db, url.secure ? "under TLS" : "plain");
		each_ok("%s: every part", services[i].text);
	}
}

static bool
one_line(const char *text)
{
	for (; *text != '\0'; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	}
	return true;
}

/* The message shows the scheme, if there is one, and nothing else of the text. */
static bool
is_named(const char *bad_url, const char *message)
{
	const char *const scheme = strstr(bad_url, "://");
	char shown[40];

	if (scheme == NULL || bad_url[0] < 'a')
		return strncmp(message, "invalid node: ", 14) == 0;
	(void)snprintf(shown, sizeof(shown), "invalid node '%.*s://...': ", (int)(scheme - bad_url), bad_url);
	return strncmp(message, shown, strlen(shown)) == 0;
}

TEST(bad)
{
	for (size_t i = 0; i < COUNT(bad); i++) {
		memset(&err, 'z', sizeof(err));
		err.text[sizeof(err.text) - 1] = '\0';
		if (!is_int(url_parse(bad[i], &url, &err), ST_USAGE, "%s", bad[i]))
			continue;
		each(is_named(bad[i], err.text), "%s is not named: %s", bad[i], err.text);
		each(one_line(err.text) && strlen(err.text) < 600, "%s: %s", bad[i], err.text);
	}
	each_ok("each message is one line and shows the scheme only");
}

static const struct {
	const char *text, *why; /* the end of the message */
} faults[] = {
	{ "", "it is empty" },
	{ "h:1 g:1", "it contains a blank" },
	{ "redis://", "a host is missing" },
	{ "redis://u:p@:1", "a host is missing" },
	{ "redis://h,g", "or separate them by blanks in DLOCK_NODES" },
	{ "redis://hredis://g", "or separate them by blanks in DLOCK_NODES" },
	{ "redis+cluster://h,", "a host is missing behind a comma" },
	{ "redis+cluster://h,,g", "a host is missing behind a comma" },
	{ "redis+cluster://h:1,g:x", "its host has characters that no host name has" },
	{ "redis+cluster://h:0,g", "its port is not a number from 1 to 65535" },
	{ "h:65536", "its port is not a number from 1 to 65535" },
	{ "redis://[::1]:0", "its port is not a number from 1 to 65535" },
	{ "redis://[::1]x", "its host has characters that no host name has" },
	{ "redis://h:1/x", "what follows the host is not the number of a database" },
	{ "redis+sentinel://h:1,g:2", "the name of the service is missing" },
	{ "unix://s", "the path of the socket must begin with /" },
	{ "unix:///s?x=1", "what follows the path is not ?db= and the number of a database" },
	{ "unix:///a%g0", "the path of the socket is too long, or has a malformed escape" },
	{ "u@h", "a login needs a scheme such as redis://" },
	{ "http://u@h", "its scheme is unknown" },
};

TEST(faults)
{
	for (size_t i = 0; i < COUNT(faults); i++) {
		const char *end = err.text;

		(void)url_parse(faults[i].text, &url, &err);
		if (strlen(err.text) > strlen(faults[i].why))
			end += strlen(err.text) - strlen(faults[i].why);
		is_str(end, faults[i].why, "%s", faults[i].text);
	}
}

TEST(hiding)
{
	static const char *const texts[][3] = {
		{ "redis://u:p@h/1", "redis://u:***@h/1", "redis://***@h/1" },
		{ "redis://us@h", "redis://us@h", "redis://**@h" },
		{ "u:p:q@h:1", "u:***@h:1", "*****@h:1" },
		{ "redis://h:1/a@b", "redis://h:1/a@b", "redis://h:1/a@b" },
	};
	char shown[64];
	struct text text;

	for (size_t i = 0; i < COUNT(texts); i++) {
		text = text_in(shown, sizeof(shown));
		url_add_hidden(texts[i][0], &text);
		is_str(shown, texts[i][1], "%s without its password", texts[i][0]);
		is_int(url_has_password(texts[i][0]), strcmp(texts[i][0], shown) != 0, "whether it has one");
		(void)snprintf(shown, sizeof(shown), "%s", texts[i][0]);
		url_blot(shown);
		is_str(shown, texts[i][2], "%s without its login", texts[i][0]);
	}
}

TEST(lengths)
{
	static char text[2048];

	(void)snprintf(text, sizeof(text), "redis://%s%s:%s%s%sxxxxxxxxxxx@%sxxxxx:65535/1000000", X250, "xxxxx", X250,
	    X250, "", X250);
	ok(url_parse(text, &url, &err) == ST_OK, "the longest of all parts fit");
	ok(strlen(url.user) == 255 && strlen(url.password) == 511 && strlen(url.endpoint.host) == 255,
	    "the longest parts are stored whole");
	ok(strlen(url.name) == 255 + strlen(":65535/1000000"), "in the name as well");
	(void)snprintf(text, sizeof(text), "redis://u:%s%sxxxxxxxxxxxx@h", X250, X250);
	ok(url_parse(text, &url, &err) == ST_USAGE, "a password of 512 bytes is too long");
	ok(url_parse("redis+cluster://a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a", &url, &err) == ST_OK && url.seeds == SEEDS_MAX,
	    "the most servers of a Cluster");
}

/* Random input: no crash, no string without its NUL, no control character in a name. */
TEST(random)
{
	static const char *const words[] = { "redis://", "unix://", "/", ":", "@", "[", "]", "?db=", "%", "%41", "%00",
		"6379", "h", "::1", "\n", "\xff", "#", "0", " ", "-", "99999", X100 };
	char text[1024], *copy;
	int j, n;

	for (int i = 0; i < 50000; i++) {
		text[0] = '\0';
		for (j = 0, n = 0; j < 7; j++)
			n += snprintf(text + n, sizeof(text) - (size_t)n, "%s", words[below(COUNT(words))]);
		copy = strdup(text); /* so that a sanitizer sees what is read behind its end */
		if (copy == NULL)
			break;
		err.text[0] = '\0';
		if (url_parse(copy, &url, &err) == ST_OK)
			each(one_line(url.name) && url.name[0] != '\0' &&
				(url.endpoint.host[0] == '\0') == (url.endpoint.path[0] != '\0') && url.db >= 0,
			    "%s: %s", text, url.name);
		else
			each(one_line(err.text) && err.text[0] != '\0', "%s: %s", text, err.text);
		free(copy);
	}
	each_ok("random input is refused or parsed");
}

/* No message and no name contains a password, whether the URL is valid or not. */
static const char *const secrets[] = { "redis://u:hunter2@h:1/0", "redis://:hunter2@h", "unix://u:hunter2@/s",
	"redis://u:hunter2@", "redis://u:hunter2@h:x", "redis://u:hunter2@h/x", "redis://u:hunter2@[::1",
	"redis://u:hunter2@h:1?x", "redis://u:hunter2@h/1#x", "redis://u:hunter2%@h", "redis://u:hunter2%zz@h",
	"redis://u:hunter2%00@h", "redis://%zz:hunter2@h", "redis://u:a/hunter2@h", "redis://u:hunter2/b@h",
	"redis://u:hunter2?b@h", "redis://u:hunter2#b@h", "redis://u:hunter2@@", "redis://u:@hunter2@h h",
	"unix://u:hunter2@s", "unix://u:hunter2@", "unix://u:hunter2%@/s", "unix://u:hunter2@/s?x=1",
	"unix://u:/hunter2@/s?x=1", "rediss://u:hunter2@h:1", "rediss://u:hunter2@", "http://u:hunter2@h",
	"u:hunter2@h:1", ":hunter2@h:1", "hunter2@h:1", "redis:u:hunter2@h", "redis:/u:hunter2@h:1", "://u:hunter2@h",
	"redis+cluster://u:hunter2@h", "redis+cluster://u:hunter2@h,", "redis+sentinel://u:hunter2@h/s",
	"redis+sentinel://u:hunter2@a,b", "redis://u:hunter2@h,redis://u:hunter2@g", "redis://:hunter2",
	"redis://bob:hunter2", "redis://bob:1hunter2", "redis://pass/x:hunter2", "redis://bob:pass@word:hunter2",
	"redis+sentinel://bob:hunter2", "redis+cluster://:hunter2", "unix://u:hunter2", "http://u:hunter2",
	"bob:hunter2", ":hunter2", "redis:hunter2", "redis://[::1]:hunter2", "redis:///:hunter2" };

TEST(secrets)
{
	for (size_t i = 0; i < COUNT(secrets); i++) {
		memset(&url, 0, sizeof(url));
		err.text[0] = '\0';
		(void)url_parse(secrets[i], &url, &err);
		ok(strstr(err.text, "hunter2") == NULL, "no password in the message: %s", secrets[i]);
		ok(strstr(url.name, "hunter2") == NULL, "no password in the name: %s", secrets[i]);
	}
}
