/* SPDX-License-Identifier: MIT */
#include "redis/parcels.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "redis/route.h"

struct parcel *
parcels_add(struct parcels *all, unsigned int tag, const struct request *r, int slot)
{
	struct parcel *p = &all->parcel[all->count];

	if (all->count == PARCELS_ROOM)
		return NULL;
	all->count++;
	all->id += 2;
	*p = (struct parcel){ .tag = tag,
		.id = all->id,
		.progress = all->count > PARCELS_MAX ? LOST : HELD,
		.lasting = r->lasting,
		.once = r->once,
		.patient = r->patient,
		.connection = r->connection,
		.slot = slot,
		.part = r->part,
		.asking = NOWHERE };
	p->bytes = request_encode(r, &p->length, &p->again);
	return p;
}

void
parcels_drop(struct parcels *all, struct parcel *p)
{
	free(p->bytes);
	all->count--;
	memmove(p, p + 1, (size_t)(all->parcel + all->count - p) * sizeof(*p));
}

void
parcels_clear(struct parcels *all)
{
	while (all->count > 0) {
		if (all->parcel->progress == WRITTEN)
			reply_free(all->parcel->reply);
		parcels_drop(all, all->parcel);
	}
}

struct parcel *
parcels_first(struct parcels *all, enum progress progress)
{
	size_t i;

	for (i = 0; i < all->count; i++) {
		if (all->parcel[i].progress == progress)
			return &all->parcel[i];
	}
	return NULL;
}

struct parcel *
parcels_with_id(struct parcels *all, unsigned int id)
{
	size_t i;

	for (i = 0; i < all->count; i++) {
		if (all->parcel[i].id == id)
			return &all->parcel[i];
	}
	return NULL;
}

bool
parcels_under_way(const struct parcels *all)
{
	size_t i;

	for (i = 0; i < all->count; i++) {
		if (all->parcel[i].progress == SENT || all->parcel[i].progress == WRITTEN)
			return true;
	}
	return false;
}

bool
parcels_followed(const struct parcels *all, const struct parcel *p)
{
	while (++p < all->parcel + all->count) {
		if (p->progress == SENT)
			return true;
	}
	return false;
}

void
parcels_lose(struct parcels *all, int64_t patient_us)
{
	struct parcel *p;

	for (p = all->parcel; p < all->parcel + all->count; p++) {
		if (p->progress != HELD)
			continue;
		p->postponed = p->patient && patient_us > 0;
		if (p->postponed)
			p->not_before_us = patient_us;
		else
			p->progress = LOST;
	}
}

bool
parcels_held(const struct parcels *all)
{
	size_t i;

	for (i = 0; i < all->count; i++) {
		if (all->parcel[i].progress == HELD)
			return true;
	}
	return false;
}

bool
parcels_postponed(const struct parcels *all)
{
	size_t i;

	for (i = 0; i < all->count; i++) {
		if (all->parcel[i].progress == HELD && all->parcel[i].postponed)
			return true;
	}
	return false;
}

bool
parcels_resent(const struct parcels *all)
{
	size_t i;

	for (i = 0; i < all->count; i++) {
		if (all->parcel[i].resent && all->parcel[i].progress != LOST && !all->parcel[i].postponed)
			return true;
	}
	return false;
}

int64_t
parcels_wake_us(const struct parcels *all)
{
	int64_t wake = CLOCK_NEVER;
	bool first = true;
	size_t i;

	for (i = 0; i < all->count; i++) {
		if (all->parcel[i].progress == LOST)
			return 0;
		if (all->parcel[i].progress == HELD && first) {
			first = false; /* those behind it have to wait for it */
			wake = all->parcel[i].not_before_us > 0 ? all->parcel[i].not_before_us : CLOCK_NEVER;
		}
	}
	return wake;
}
