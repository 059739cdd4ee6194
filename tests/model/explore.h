// SPDX-License-Identifier: MIT
//
// All states of a model, breadth first.  A model is a struct `state` of bytes without padding, and
//
//   void successors(const state &, emit)   emit(next, "step") for each step; each is atomic
//   const char *wrong(const state &)       the property that the state violates, or NULL
//
// States are remembered by 64 bits of a hash, so that a search of 10^8 states is exhaustive but for a chance of 3 in 10^4.
// With `trace` all of them are kept, and the shortest way to the first violation is printed.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

struct table {
	std::vector<uint64_t> slot;
	uint64_t used = 0;
	table() : slot(1 << 20)
	{
	}
	static uint64_t
	mix(uint64_t h)
	{
		h ^= h >> 31;
		h *= 0x7fb5d329728ea185;
		h ^= h >> 27;
		h *= 0x81dadef4bc2dd44d;
		return h ^ h >> 33;
	}
	static uint64_t
	hash(const void *p, size_t n)
	{
		const unsigned char *b = (const unsigned char *)p;
		uint64_t h = 0x9e3779b97f4a7c15 ^ n, w;
		for (; n >= 8; n -= 8, b += 8) {
			memcpy(&w, b, 8);
			h = mix(h ^ w) + 0x9e3779b97f4a7c15;
		}
		w = 0;
		memcpy(&w, b, n);
		h = mix(h ^ w);
		return h == 0 ? 1 : h;
	}
	bool
	add(uint64_t h)
	{
		if (used * 10 > slot.size() * 7) {
			std::vector<uint64_t> old(slot.size() * 2);
			old.swap(slot);
			for (uint64_t x : old)
				if (x != 0)
					put(x);
		}
		if (!put(h))
			return false;
		used++;
		return true;
	}
	bool
	put(uint64_t h)
	{
		size_t i = h & (slot.size() - 1);
		for (; slot[i] != 0; i = (i + 1) & (slot.size() - 1))
			if (slot[i] == h)
				return false;
		slot[i] = h;
		return true;
	}
};

template <class state> struct visit {
	state s;
	uint32_t from;
	std::string step;
};

/* The steps to a state, from the first one. */
template <class state, class Show>
void
print_way(const std::vector<visit<state>> &all, uint32_t to, Show show)
{
	std::vector<uint32_t> way;

	for (uint32_t i = to; i != UINT32_MAX; i = all[i].from)
		way.push_back(i);
	for (size_t i = way.size(); i-- > 0;) {
		printf("%-30s ", all[way[i]].step.c_str());
		show(all[way[i]].s);
		printf("\n");
	}
}

/* What all models take on their command lines. */
struct search {
	bool trace = false;
	double most_seconds = 300;

	bool
	take(const char *argument)
	{
		if (!strncmp(argument, "seconds=", 8)) {
			most_seconds = strtod(argument + 8, NULL);
			return true;
		}
		trace = trace || !strcmp(argument, "trace");
		return !strcmp(argument, "trace");
	}
};

/* A word of the command line, 1 where it is given: a setting, or a rule that is left out; with a number behind it, that. */
struct word {
	static inline std::vector<word *> all;
	const char *name;
	int value;
	bool numbered;
	word(const char *word_name, int otherwise = 0, bool number = false)
	    : name(word_name), value(otherwise), numbered(number)
	{
		all.push_back(this);
	}
	operator int() const
	{
		return value;
	}
	bool
	take(const char *argument)
	{
		const size_t length = strlen(name);
		if (strncmp(argument, name, length) != 0 || (argument[length] != '\0' && !numbered))
			return false;
		value = numbered ? (int)strtol(argument + length, NULL, 10) : 1;
		return true;
	}
};

/* Reads the command line behind the first argument, and prints all but the time that it gives. */
inline bool
read_line(const char *model, int argc, char **argv, search &how)
{
	printf("%s", model);
	for (int i = 1; i < argc; i++) {
		bool known = i == 1 || how.take(argv[i]);
		for (word *w : word::all)
			known = known || w->take(argv[i]);
		if (!known)
			fprintf(stderr, "unknown: %s\n", argv[i]);
		if (!known)
			return false;
		if (strncmp(argv[i], "seconds=", 8))
			printf(" %s", argv[i]);
	}
	printf(": ");
	fflush(stdout);
	return argc > 1;
}

/* Search, and print a line: what was found, how many states, how long it took, and whether it was exhaustive. */
template <class state, class Next, class Wrong, class Show>
int
explore(const std::vector<state> &initial, Next successors, Wrong wrong, Show show, const search &how)
{
	const auto began = std::chrono::steady_clock::now();
	table seen;
	std::deque<state> queue;
	std::vector<visit<state>> all;
	uint64_t at = 0;
	const char *found = NULL;
	bool whole = true;
	uint32_t bad = 0;
	auto took = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
	auto come = [&](const state &s, uint32_t from, const char *step) {
		if (found != NULL || !seen.add(table::hash(&s, sizeof(s))))
			return;
		if (how.trace)
			all.push_back({ s, from, step });
		else
			queue.push_back(s);
		const char *w = wrong(s);
		if (w != NULL) {
			found = w;
			bad = (uint32_t)all.size() - 1;
		}
	};
	for (const state &s : initial)
		come(s, UINT32_MAX, "start");
	while (found == NULL && (how.trace ? at < all.size() : !queue.empty())) {
		state s;
		if (how.trace)
			s = all[at].s;
		else {
			s = queue.front();
			queue.pop_front();
		}
		const uint32_t from = (uint32_t)at++;
		successors(s, [&](const state &t, const char *step) { come(t, from, step); });
		if ((at & 0xffff) == 0 && took() > how.most_seconds) {
			whole = false;
			break;
		}
	}
	if (how.trace && found != NULL)
		print_way(all, bad, show);
	printf("%-11s %10llu states %7.1f s  %s\n", found == NULL ? "nothing" : found, (unsigned long long)seen.used,
	    took(),
	    found != NULL ? "until the first"
		: whole	  ? "exhaustive"
			  : "NOT EXHAUSTIVE");
	return 0;
}
