/* SPDX-License-Identifier: MIT */
#include "zk/path.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "net/authority.h"

/* The number of bytes of the character at the start that may stand in a path; 0: its first byte must be escaped. */
static size_t
plain_length(const char *at, size_t left)
{
	unsigned long code = 0;
	const size_t length = text_character(at, left, &code);

	if (length == 0 || code < 0x20 || code == '%' || (code >= 0x7f && code <= 0x9f) ||
	    (code >= 0xd800 && code <= 0xf8ff) || code >= 0xfff0)
		return 0;
	return length;
}

/* Is the component of this length "." or ".."? */
static bool
is_dots(const char *component, size_t length)
{
	return (length == 1 || length == 2) && strncmp(component, "..", length) == 0;
}

/* Append the escaped byte. */
static char *
escape(char *out, char byte)
{
	return out + snprintf(out, 4, "%%%02X", (unsigned int)(unsigned char)byte);
}

/*
 * Escape a KEY without its leading slash.  Returns the end of the output, which has at most three bytes for each byte.
 */
static char *
escape_key(const char *key, char *out)
{
	const char *const end = key + strlen(key), *at = key, *component = key;
	size_t length, i;

	while (at < end) {
		if (at == component && is_dots(at, strcspn(at, "/"))) {
			for (length = strcspn(at, "/"); length > 0; length--)
				out = escape(out, *at++);
			continue;
		}
		if (*at == '/' && at > component && at + 1 < end) {
			*out++ = *at++;
			component = at;
			continue;
		}
		length = *at == '/' ? 0 : plain_length(at, (size_t)(end - at));
		if (length == 0)
			out = escape(out, *at++);
		for (i = 0; i < length; i++)
			*out++ = *at++;
	}
	return out;
}

void
path_of_key(const char *chroot, const char *key, char path[PATH_LOCK_SIZE])
{
	char *out = path + snprintf(path, PATH_CHROOT_MAX + 1, "%s", chroot);

	if (key[0] == '/' && key[1] != '\0')
		key++;
	*out++ = '/';
	*escape_key(key, out) = '\0';
}

bool
path_to_key(const char *path, size_t chroot_length, char *key, size_t size)
{
	const char *below;
	char again[PATH_LOCK_SIZE];
	size_t n;

	if (strlen(path) >= PATH_LOCK_SIZE || strlen(path) <= chroot_length + 1)
		return false;
	below = path + chroot_length + 1;
	if (!url_decode((struct url_part){ below, strlen(below) }, key, size))
		return false;
	n = strlen(key);
	if (n > 1 && key[0] == '/' && n + 1 < size) /* of two slashes, the first was dropped */
		memmove(key + 1, key, ++n);
	if (n > PATH_KEY_MAX / 3)
		return false;
	path_of_key("", key, again);
	return strcmp(again, below - 1) == 0;
}

bool
path_is_chroot(const char *chroot)
{
	char path[PATH_LOCK_SIZE];

	if (chroot[0] == '\0')
		return true;
	if (chroot[0] != '/' || chroot[1] == '\0' || strlen(chroot) > PATH_CHROOT_MAX || strchr(chroot, '%') != NULL)
		return false;
	path_of_key("", chroot + 1, path);
	return strcmp(path, chroot) == 0 && !path_is_reserved(chroot);
}

bool
path_is_reserved(const char *path)
{
	static const char own[] = "/zookeeper";
	const size_t length = sizeof(own) - 1;

	return strncmp(path, own, length) == 0 && (path[length] == '\0' || path[length] == '/');
}
