// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Topologies: a profile's lines, and "rail" lines, after each the lines of its own device. */
#include <arpa/inet.h>
#include <stdlib.h>

#include "profile_parse.h"

struct topology {
	struct rl_reader r;
	struct rl_profile base;		/* of the devices that follow */
	struct rl_origin of_base, of_rail;
	struct rl_rails *rails;
};

static struct rl_rail *last_rail(struct topology *t)
{
	return t->rails->n ? &t->rails->at[t->rails->n - 1] : NULL;
}

static bool word_address(const char *word, u8 gid[16])
{
	memset(gid, 0, 16);
	if (inet_pton(AF_INET, word, gid + 12) == 1) {
		memset(gid + 10, 0xff, 2);
		return true;
	}
	return inet_pton(AF_INET6, word, gid) == 1;
}

static const struct rl_rail *rail_with(const struct rl_rails *rails, const u8 gid[16])
{
	const struct rl_rail *rail;
	u32 i;

	for (rail = rails->at; rail < rails->at + rails->n; rail++)
		for (i = 0; i < rail->addresses; i++)
			if (!memcmp(rail->address[i], gid, 16))
				return rail;
	return NULL;
}

static bool add_address(struct topology *t, struct rl_rail *rail, const char *word)
{
	const struct rl_rail *other;
	u8 gid[16];

	if (!word_address(word, gid))
		return rl_profile_wrong(&t->r, "rail: \"%.45s\" is no address", word);
	other = rail_with(t->rails, gid);
	if (other)
		return rl_profile_wrong(&t->r, "rail: %.45s is in line %u, too", word, other->line);
	if (rail->addresses == RL_RAIL_ADDRESSES)
		return rl_profile_wrong(&t->r, "rail: more than %u addresses", RL_RAIL_ADDRESSES);
	memcpy(rail->address[rail->addresses++], gid, 16);
	return true;
}

/* rail NETDEV [ADDRESS...] */
static bool begin_rail(struct topology *t)
{
	struct rl_rails *rails = t->rails;
	char *netdev = rl_profile_word(&t->r), *word;
	struct rl_rail *rail;

	if (!netdev || strlen(netdev) >= IFNAMSIZ || strchr(netdev, '/') || strchr(netdev, ':'))
		return rl_profile_wrong(&t->r, "rail: the name of a netdev comes first");
	if (rails->n == RL_RAILS)
		return rl_profile_wrong(&t->r, "rail: more than %u", RL_RAILS);
	rail = &rails->at[rails->n];
	rails->own[rails->n] = t->base;
	*rail = (struct rl_rail){ .about = &rails->own[rails->n], .line = t->r.line };
	memcpy(rail->netdev, netdev, strlen(netdev) + 1);
	t->r.p = &rails->own[rails->n++];
	t->of_rail = (struct rl_origin){ 0 };
	memcpy(t->of_rail.any, t->of_base.any, sizeof(t->of_rail.any));
	while ((word = rl_profile_word(&t->r)))
		if (!add_address(t, rail, word))
			return false;
	return true;
}

/* A name without a number, which two devices would have. */
static bool has_same_name(const struct rl_rail *a, const struct rl_rail *b)
{
	return !strcmp(a->about->name, b->about->name) && !strchr(a->about->name, '%');
}

/* Of the last rail, beside those before it. */
static bool finish_rail(struct topology *t)
{
	static const struct rl_pci_path longest = { 1, { { 0xffff, 255, 31, 7 } } };
	const struct rl_rail *rail = last_rail(t), *other;
	char name[RL_PROFILE_NAMES];

	if (!rl_profile_finish(&t->r, &t->of_rail))
		return false;
	t->r.line = rail->line;
	if (!rl_profile_name(rail->about, RL_RAILS, rail->netdev, &longest, name))
		return rl_profile_wrong(&t->r, "rail: its device's name would be too long");
	for (other = t->rails->at; other < rail; other++) {
		if (has_same_name(other, rail))
			return rl_profile_wrong(&t->r, "rail: its device would be %s, as that of "
						"line %u", name, other->line);
		if (other->about->iwarp != rail->about->iwarp)
			return rl_profile_wrong(&t->r, "rail: RoCE devices and RNICs in one file");
		if (!strcmp(other->netdev, rail->netdev) && !(other->addresses && rail->addresses))
			return rl_profile_wrong(&t->r, "rail: line %u has %s, too: both need "
						"addresses", other->line, rail->netdev);
	}
	return true;
}

static bool topology_line(struct topology *t)
{
	char *word = rl_profile_word(&t->r);
	u32 line = t->r.line;

	if (!word)
		return true;
	if (strcmp(word, "rail"))
		return rl_profile_read_key(&t->r, t->rails->n ? &t->of_rail : &t->of_base, word);
	if (t->rails->n && !finish_rail(t))
		return false;
	t->r.line = line;
	return begin_rail(t);
}

static bool topology_parse(struct topology *t, const char *text, size_t len)
{
	char line[RL_PROFILE_LINE];
	int rv;

	while ((rv = rl_profile_next_line(&t->r, &text, &len, line)) > 0)
		if (!topology_line(t))
			return false;
	if (rv)
		return false;
	if (!t->rails->n)
		return rl_profile_wrong(&t->r, "there is no rail");
	return finish_rail(t);
}

bool rl_rails_parse(const struct rl_profile *base, const char *text, size_t len,
		    struct rl_rails *rails, struct rl_profile_error *e)
{
	struct topology *t = calloc(1, sizeof(*t));
	bool done = false;

	*e = (struct rl_profile_error){ .why = "no memory" };
	*rails = (struct rl_rails){
		.at = calloc(RL_RAILS, sizeof(*rails->at)),
		.own = calloc(RL_RAILS, sizeof(*rails->own)),
	};
	if (t && rails->at && rails->own) {
		t->base = *base;
		t->rails = rails;
		t->r = (struct rl_reader){ .p = &t->base, .e = e };
		done = topology_parse(t, text, len);
	}
	if (!done)
		rl_rails_free(rails);
	free(t);
	return done;
}

void rl_rails_free(struct rl_rails *r)
{
	free(r->at);
	free(r->own);
	*r = (struct rl_rails){ .n = 0 };
}
