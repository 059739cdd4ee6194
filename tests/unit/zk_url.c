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

TEST(paths)
{
	static const struct {
		const char *key, *path;
	} cases[] = {
		{ "a", "/a" },
		{ "/a", "/a" },
		{ "a/b", "/a/b" },
		{ "a/", "/a%2F" },
		{ "//a", "/%2Fa" },
		{ "a//b", "/a/%2Fb" },
		{ "/", "/%2F" },
		{ "//", "/%2F" },
		{ ".", "/%2E" },
		{ "..", "/%2E%2E" },
		{ "...", "/..." },
		{ "a/../b", "/a/%2E%2E/b" },
		{ "a/.b", "/a/.b" },
		{ "100%", "/100%25" },
		{ "a b", "/a b" },
		{ "\x1f\x7f", "/%1F%7F" },
		{ "\xc3\xa4", "/\xc3\xa4" },
		{ "\xc2\x80", "/%C2%80" },
		{ "\xc2\x9f\xc2\xa0", "/%C2%9F\xc2\xa0" },
		{ "\xff", "/%FF" },
		{ "\xed\x9f\xbf\xee\x80\x80", "/\xed\x9f\xbf%EE%80%80" },
		{ "\xef\xa3\xbf\xef\xa4\x80", "/%EF%A3%BF\xef\xa4\x80" },
		{ "\xf0\x9f\x98\x80", "/%F0%9F%98%80" },
		{ "\xef\xbf\xbd", "/%EF%BF%BD" },
		{ "\xef\xbf\xb0", "/%EF%BF%B0" },
		{ "\xef\xbf\xaf", "/\xef\xbf\xaf" },
		{ "zookeeper", "/zookeeper" },
	};
	char path[PATH_LOCK_SIZE], chroot[PATH_CHROOT_MAX + 1] = "/";

	for (size_t i = 0; i < COUNT(cases); i++) {
		path_of_key("", cases[i].key, path);
		is_str(path, cases[i].path, "KEY %s", cases[i].key);
	}
	path_of_key("/c", "a", path);
	is_str(path, "/c/a", "below a chroot");
	memset(chroot + 1, 'c', PATH_CHROOT_MAX - 1);
	path_of_key(chroot, "a", path);
	ok(path_is_chroot(chroot) && strncmp(path, chroot, PATH_CHROOT_MAX) == 0 &&
		strcmp(path + PATH_CHROOT_MAX, "/a") == 0,
	    "below the longest chroot");
}

/* The KEY without the slash that is dropped; a slash behind it is kept by both. */
static const char *
without_slash(const char *key)
{
	return key[0] == '/' && key[1] != '\0' && (key[1] != '/' || key[2] == '\0') ? key + 1 : key;
}

TEST(round_trip)
{
	static const char pieces[] = "/.%ab\x01\xc3\xa4\xff\xf0\x90\x80\x80";
	char key[32], again[1100], path[PATH_LOCK_SIZE];
	int length;

	for (int i = 0; i < 100000; i++) {
		length = 1 + (int)below(12);
		for (int c = 0; c < length; c++)
			key[c] = i % 2 == 0 ? (char)(1 + below(255)) : pieces[below(sizeof(pieces) - 1)];
		key[length] = '\0';
		path_of_key("/c/d", key, path);
		each(path_to_key(path, 4, again, sizeof(again)) && strcmp(again, without_slash(key)) == 0,
		    "'%s' is '%s' is '%s'", key, path, again);
	}
	each_ok("a KEY is found again");
}

TEST(other_paths)
{
	char key[16];

	ok(!path_to_key("/a%41", 0, key, sizeof(key)), "an escape that dlock would not write");
	ok(!path_to_key("/a%00", 0, key, sizeof(key)), "a NUL");
	ok(!path_to_key("/", 0, key, sizeof(key)), "the root");
	ok(!path_to_key("/0123456789abcdef", 0, key, sizeof(key)), "a KEY that is too long");
	ok(path_to_key("/c/0123456789abcde", 2, key, sizeof(key)), "the longest");
}

/* What path_cut_slot() makes of a path. */
static void
check_cut(const char *text, int slot, const char *cut)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s", text);
	is_int(path_cut_slot(path, 2), slot, "%s", text);
	is_str(path, cut, "what is left of it");
}

TEST(slots)
{
	static const char *const others[] = { "/c/gpu/leases/slot-65", "/c/gpu/leases/slot-0", "/c/gpu/leases/slot-01",
		"/c/gpu/leases/slot-4294967297", "/c/gpu/leases/slot-2x", "/c/gpu/slot-2", "/c/leases/slot-2",
		"/c/leases", "/c/gpu/oldleases" };

	check_cut("/c/gpu/leases/slot-1", 1, "/c/gpu/leases");
	check_cut("/c/a/b/leases/slot-64", 64, "/c/a/b/leases");
	check_cut("/c/gpu/leases", 0, "/c/gpu/leases");
	for (size_t i = 0; i < COUNT(others); i++)
		check_cut(others[i], -1, others[i]);
}

TEST(chroots)
{
	ok(path_is_chroot("") && path_is_chroot("/a") && path_is_chroot("/a/b c"), "valid chroots");
	ok(!path_is_chroot("/") && !path_is_chroot("a") && !path_is_chroot("/a/") && !path_is_chroot("/a//b"),
	    "a chroot with empty components is invalid");
	ok(!path_is_chroot("/..") && !path_is_chroot("/a%41") && !path_is_chroot("/\x01"),
	    "a chroot with a component that must be escaped is invalid");
	ok(!path_is_chroot("/zookeeper") && !path_is_chroot("/zookeeper/a") && path_is_chroot("/zookeepers"),
	    "a chroot in the tree of ZooKeeper itself is invalid");
}
