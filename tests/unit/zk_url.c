/* SPDX-License-Identifier: MIT */
#include "zk/url.h"

#include "tap.h"

TEST(urls)
{
	static const struct {
		const char *text, *name, *user, *password, *chroot;
		int servers;
	} cases[] = {
		{ "zk://h", "zk://h:2181", "", "", "", 1 },
		{ "zk://h/", "zk://h:2181", "", "", "", 1 },
		{ "zks://h:1/a/b", "zks://h:1/a/b", "", "", "/a/b", 1 },
		{ "zk://a:1,b,[::1]:3/locks/", "zk://a:1,b:2181,[::1]:3/locks", "", "", "/locks", 3 },
		{ "zk://u:p%40w@h", "zk://h:2181", "u", "p@w", "", 1 },
		{ "zk://u@h/a%20b", "zk://h:2181/a b", "u", "", "/a b", 1 },
	};
	struct zk_url url;
	struct err err;

	for (size_t i = 0; i < COUNT(cases); i++) {
		is_int(zk_url_parse(cases[i].text, &url, &err), ST_OK, "%s", cases[i].text);
		is_str(url.name, cases[i].name, "its name");
		is_str(url.user, cases[i].user, "its user");
		is_str(url.password, cases[i].password, "its password");
		is_str(url.chroot, cases[i].chroot, "its chroot");
		is_int(url.servers, cases[i].servers, "its servers");
		is_int(url.secure, cases[i].text[2] == 's', "its TLS");
	}
}

TEST(refused)
{
	static const char *const texts[] = { "zk://", "zk:///a", "zk://h,", "zk://h:0", "zk://h:65536", "zk://h//",
		"zk://h/a//b", "zk://h/..", "zk://h/a?b", "zk://h/zookeeper", "zk://:secret@h", "zk://h/%25",
		"zk://h/%00", "redis://h", "h:1", "zk://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16" };
	static const struct {
		const char *text, *fault;
	} faults[] = {
		{ "zk://h:1,i:2/a//b", "not allow locks at its path /a//b" },
		{ "zk://h/zookeeper", "at its path /zookeeper" },
		{ "zk://h/a?b\x1b", "at its path /a?b\\e" },
		{ "zk://u:1/secret?@h/x//y", "at its path h/x//y" },
		{ "zk://u:1/a@secret?@h/x//y", "at its path h/x//y" },
		{ "zk://h,", "a host is missing behind a comma" },
		{ "zk://a:1,b:2,/x,", "a host is missing behind a comma" },
		{ "zk://a,,b", "a host is missing behind a comma" },
		{ "zk://,a", "a host is missing" },
		{ "zk://[::1/a", "its host has" },
		{ "zk://:p@h/a", "its password has no user" },
		{ "zk:///a", "a host is missing" },
		{ "zk://h:0/a", "its port is" },
		{ "zk://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", "too many servers" },
		{ "zk://1,2,3,4,5,6,7,8,9,10,11,12,13,14,h:0", "its port is" },
	};
	struct zk_url url;
	struct err err;

	for (size_t i = 0; i < COUNT(faults); i++) {
		(void)zk_url_parse(faults[i].text, &url, &err);
		ok(strstr(err.text, faults[i].fault) != NULL, "%s", err.text);
	}
	for (size_t i = 0; i < COUNT(texts); i++) {
		is_int(zk_url_parse(texts[i], &url, &err), ST_USAGE, "%s", texts[i]);
		ok(strstr(err.text, "secret") == NULL, "%s", err.text);
	}
	ok(zk_url_is("zk://") && zk_url_is("zks://x") && !zk_url_is("zk:x") && !zk_url_is("redis://zk://"),
	    "the schemes");
}
