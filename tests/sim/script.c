/* SPDX-License-Identifier: MIT */
/* Scripts: EVAL as in Redis, with the same Lua. */
#include "store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "arena.h"
#include "entry.h"
#include "judge.h"

enum {
	SCRIPTS = 64
};

static lua_State *lua;
static struct store *running; /* the store that the running script uses */
static struct {
	const struct arg *key; /* its KEYS */
	int keys;
	bool others; /* its first line allows others */
} declared;

static struct {
	struct arg source;
	int compiled; /* index in the Lua registry */
} script[SCRIPTS];
static int scripts;

static const char *mutant_from, *mutant_to;

static void
push_reply(lua_State *l, const struct value *v)
{
	switch (v->kind) {
	case VALUE_NIL:
		lua_pushboolean(l, 0);
		break;
	case VALUE_INTEGER:
		lua_pushnumber(l, (lua_Number)v->integer);
		break;
	case VALUE_TEXT:
		lua_pushlstring(l, v->text, v->length);
		break;
	case VALUE_STATUS:
	case VALUE_ERROR:
		lua_newtable(l);
		lua_pushlstring(l, v->text, v->length);
		lua_setfield(l, -2, v->kind == VALUE_ERROR ? "err" : "ok");
		break;
	case VALUE_LIST:
		lua_createtable(l, (int)v->items, 0);
		for (size_t i = 0; i < v->items; i++) {
			push_reply(l, v->item[i]);
			lua_rawseti(l, -2, (int)i + 1);
		}
		break;
	}
}

/* An argument of redis.call: a string, or a number as Redis writes it. */
static bool
read_argument(lua_State *l, int index, struct arg *a)
{
	char digits[64];
	lua_Number n;

	if (lua_type(l, index) == LUA_TNUMBER) {
		n = lua_tonumber(l, index);
		(void)snprintf(digits, sizeof(digits), floor(n) == n && fabs(n) < 1e17 ? "%.0f" : "%.17g", n);
		a->length = strlen(digits);
		a->bytes = arena_copy(digits, a->length);
		return true;
	}
	if (lua_type(l, index) != LUA_TSTRING)
		return false;
	a->bytes = lua_tolstring(l, index, &a->length);
	return true;
}

static bool
is_declared(struct arg key)
{
	for (int i = 0; i < declared.keys; i++) {
		if (arg_same(declared.key[i], key))
			return true;
	}
	return declared.others;
}

/* Dragonfly and some proxies refuse a key that is not in KEYS. */
static void
check_keys(int argc, const struct arg *a)
{
	static const char *const without[] = { "TIME", "INFO" }, *const several[] = { "DEL", "EXISTS" };
	const int first = strcmp(a[0].bytes, "MEMORY") == 0 ? 2 : 1;
	bool all = false;

	for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
		if (strcmp(a[0].bytes, without[i]) == 0)
			return;
		all = all || strcmp(a[0].bytes, several[i]) == 0;
	}
	for (int i = first; i < argc && (all || i == first); i++) {
		if (!is_declared(a[i]))
			judge_breach("keys are declared", "a script calls %s of %s, which is not in KEYS", a[0].bytes,
			    a[i].bytes);
	}
}

static int
call(lua_State *l, bool protect)
{
	struct arg a[STORE_ARGS];
	const struct value *v = NULL;
	const int argc = lua_gettop(l);

	for (int i = 0; i < argc && v == NULL; i++) {
		if (i == STORE_ARGS || !read_argument(l, i + 1, &a[i]))
			v = value_error("ERR Lua redis lib command arguments must be strings or integers");
	}
	if (v == NULL) {
		check_keys(argc, a);
		v = store_run(running, argc, a, true);
	}
	push_reply(l, v);
	return v->kind == VALUE_ERROR && !protect ? lua_error(l) : 1;
}

static int
redis_call(lua_State *l)
{
	return call(l, false);
}

static int
redis_pcall(lua_State *l)
{
	return call(l, true);
}

static void
start_lua(void)
{
	lua = luaL_newstate();
	if (lua == NULL)
		abort();
	luaL_openlibs(lua);
	lua_newtable(lua);
	lua_pushcfunction(lua, redis_call);
	lua_setfield(lua, -2, "call");
	lua_pushcfunction(lua, redis_pcall);
	lua_setfield(lua, -2, "pcall");
	lua_setglobal(lua, "redis");
	/* Enough to tell some texts from others. */
	(void)luaL_dostring(lua, "function redis.sha1hex(text) return string.format('%040d', #text) end");
}

void
script_tidy(void)
{
	if (lua != NULL)
		(void)lua_gc(lua, LUA_GCCOLLECT, 0);
}

/* Convert the result of a script to a reply, as Redis does. */
static struct value *
read_result(int index)
{
	struct value *v, *items[64];
	const char *text;
	size_t length, n;

	switch (lua_type(lua, index)) {
	case LUA_TNUMBER:
		return value_integer((int64_t)lua_tonumber(lua, index));
	case LUA_TSTRING:
		text = lua_tolstring(lua, index, &length);
		return value_text(VALUE_TEXT, text, length);
	case LUA_TBOOLEAN:
		return lua_toboolean(lua, index) ? value_integer(1) : value_of(VALUE_NIL);
	case LUA_TTABLE:
		break;
	default:
		return value_of(VALUE_NIL);
	}
	lua_getfield(lua, index, "err");
	lua_getfield(lua, index, "ok");
	v = lua_type(lua, -2) == LUA_TSTRING ? value_error(lua_tostring(lua, -2))
	    : lua_type(lua, -1) == LUA_TSTRING
	    ? value_text(VALUE_STATUS, lua_tostring(lua, -1), strlen(lua_tostring(lua, -1)))
	    : NULL;
	lua_pop(lua, 2);
	if (v != NULL)
		return v;
	for (n = 0; n < sizeof(items) / sizeof(items[0]); n++) {
		lua_rawgeti(lua, index, (int)n + 1);
		if (lua_isnil(lua, -1)) {
			lua_pop(lua, 1);
			break;
		}
		items[n] = read_result(lua_gettop(lua));
		lua_pop(lua, 1);
	}
	v = value_list(n);
	memcpy(v->item, items, n * sizeof(items[0]));
	return v;
}

static void
set_global(const char *name, const struct arg *a, int count)
{
	lua_createtable(lua, count, 0);
	for (int i = 0; i < count; i++) {
		lua_pushlstring(lua, a[i].bytes, a[i].length);
		lua_rawseti(lua, -2, i + 1);
	}
	lua_setglobal(lua, name);
}

void
script_mutate(const char *from, const char *to)
{
	mutant_from = from;
	mutant_to = to;
}

/* The source of a script after the mutation. */
static struct arg
changed(struct arg source)
{
	const char *at = mutant_from != NULL ? strstr(source.bytes, mutant_from) : NULL;
	const size_t from = at != NULL ? strlen(mutant_from) : 0, to = at != NULL ? strlen(mutant_to) : 0;
	const size_t front = at != NULL ? (size_t)(at - source.bytes) : 0;
	char *text;

	if (at == NULL)
		return source;
	text = arena_bytes(source.length - from + to + 1);
	memcpy(text, source.bytes, front);
	memcpy(text + front, mutant_to, to);
	memcpy(text + front + to, at + from, source.length - front - from + 1);
	return (struct arg){ text, source.length - from + to };
}

/* Push the compiled script.  False: the error is on the stack instead. */
static bool
push_script(struct arg source)
{
	struct arg text;
	char *copy;

	for (int i = 0; i < scripts; i++) {
		if (arg_same(script[i].source, source)) {
			lua_rawgeti(lua, LUA_REGISTRYINDEX, script[i].compiled);
			return true;
		}
	}
	text = changed(source);
	if (luaL_loadbuffer(lua, text.bytes, text.length, "@user_script") != 0)
		return false;
	copy = scripts < SCRIPTS ? malloc(source.length + 1) : NULL;
	if (copy == NULL)
		return true; /* not cached: it is compiled each time */
	memcpy(copy, source.bytes, source.length + 1);
	lua_pushvalue(lua, -1);
	script[scripts].source = (struct arg){ copy, source.length };
	script[scripts++].compiled = luaL_ref(lua, LUA_REGISTRYINDEX);
	return true;
}

struct value *
run_eval(struct store *s, struct entry *e, int argc, const struct arg *a)
{
	struct value *v;
	int64_t keys;

	if (!arg_number(a[2], &keys))
		return value_error("ERR value is not an integer or out of range");
	if (keys < 0)
		return value_error("ERR Number of keys can't be negative");
	if (keys > argc - 3)
		return value_error("ERR Number of keys can't be greater than number of args");
	if (lua == NULL)
		start_lua();
	running = s;
	declared.key = a + 3;
	declared.keys = (int)keys;
	declared.others = strncmp(a[1].bytes, "--!df flags=allow-undeclared-keys\n", 34) == 0;
	set_global("KEYS", a + 3, (int)keys);
	set_global("ARGV", a + 3 + keys, argc - 3 - (int)keys);
	if (push_script(a[1]) && lua_pcall(lua, 0, 1, 0) == 0)
		v = read_result(lua_gettop(lua));
	else {
		v = read_result(lua_gettop(lua));
		if (v->kind == VALUE_TEXT)
			v = value_error(v->text);
	}
	lua_settop(lua, 0);
	return v;
}
