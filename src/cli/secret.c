/* SPDX-License-Identifier: MIT */
#include "cli/secret.h"

#include <string.h>
#include <sys/stat.h>

/* The @ after the login of the URL, and the start of the login; NULL if there is none. */
static const char *
find_login(const char *url, const char **start)
{
	const char *scheme = strstr(url, "://"), *at = NULL, *p;
	const char *end;

	*start = scheme != NULL ? scheme + 3 : url;
	end = *start + strcspn(*start, "/?#");
	for (p = *start; p < end; p++) {
		if (*p == '@')
			at = p;
	}
	return at;
}

bool
secret_in_url(const char *url)
{
	const char *start, *at = find_login(url, &start);

	return at != NULL && memchr(start, ':', (size_t)(at - start)) != NULL;
}

void
secret_blot(char *url)
{
	const char *start, *at = find_login(url, &start);

	if (at != NULL)
		memset(url + (start - url), '*', (size_t)(at - start));
}

bool
secret_is_public(int fd)
{
	struct stat info;

	return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & S_IROTH) != 0;
}
