/* SPDX-License-Identifier: MIT */
#include "redis/url.h"

#include "tap.h"

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
	struct url url;
	struct err err;

	for (size_t i = 0; i < COUNT(secrets); i++) {
		memset(&url, 0, sizeof(url));
		err.text[0] = '\0';
		(void)url_parse(secrets[i], &url, &err);
		ok(strstr(err.text, "hunter2") == NULL, "no password in the message: %s", secrets[i]);
		ok(strstr(url.name, "hunter2") == NULL, "no password in the name: %s", secrets[i]);
	}
}
