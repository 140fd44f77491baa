// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Profiles: text to struct rl_profile. A line is a key and its values, empty, or a comment after
 * '#'. One table has all keys, with what this host has at most.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_netlink.h>

#include "kernel/core/shape.h"
#include "limits.h"
#include "process/stats.h"
#include "profile_parse.h"
#include "rates.h"

#define BLANKS		" \t\r"

/* ---- characters; of ASCII, whatever the locale ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The value of a hexadecimal digit; 16: it is none. */
static u32 hex_value(char c)
{
	if (is_digit(c))
		return (u32)(c - '0');
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? (u32)(c - 'a' + 10) : 16;
}

bool rl_profile_wrong(struct rl_reader *r, const char *fmt, ...)
{
	va_list ap;

	r->e->line = r->line;
	va_start(ap, fmt);
	vsnprintf(r->e->why, sizeof(r->e->why), fmt, ap);
	va_end(ap);
	return false;
}

char *rl_profile_word(struct rl_reader *r)
{
	char *word = r->at + strspn(r->at, BLANKS), *end;

	if (!*word)
		return NULL;
	end = word + strcspn(word, BLANKS);
	r->at = end + !!*end;
	*end = '\0';
	return word;
}

/* ---- words ---- */

/* Digits of base @base, all of @s. */
static bool digits(const char *s, u32 base, u64 *v)
{
	u32 d;

	for (*v = 0; *s; s++) {
		d = hex_value(*s);
		if (d >= base || *v > (UINT64_MAX - d) / base)
			return false;
		*v = *v * base + d;
	}
	return true;
}

/* Decimal, or hexadecimal after 0x. */
static bool word_number(const char *s, u64 *v)
{
	bool hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');

	s += hex ? 2 : 0;
	return *s && digits(s, hex ? 16 : 10, v);
}

/* Hexadecimal digits, @min to @max of them, then @after; NULL: no. */
static const char *word_hex(const char *s, u32 min, u32 max, char after, u32 *v)
{
	u32 n;

	*v = 0;
	for (n = 0; n < max && hex_value(s[n]) < 16; n++)
		*v = *v << 4 | hex_value(s[n]);
	return n >= min && s[n] == after ? s + n + !!after : NULL;
}

/* DDDD:BB:SS.F */
static bool word_function(const char *s, struct rl_pci_function *f)
{
	u32 domain, bus, slot, function;

	s = word_hex(s, 4, 4, ':', &domain);
	s = s ? word_hex(s, 2, 2, ':', &bus) : NULL;
	s = s ? word_hex(s, 2, 2, '.', &slot) : NULL;
	if (!s || !word_hex(s, 1, 1, '\0', &function) || slot > 31 || function > 7)
		return false;
	*f = (struct rl_pci_function){ (u16)domain, (u8)bus, (u8)slot, (u8)function };
	return true;
}

/* Functions with slashes between them. */
static bool word_pci(char *s, struct rl_pci_path *path)
{
	char *slash;

	memset(path, 0, sizeof(*path));
	do {
		slash = strchr(s, '/');
		if (slash)
			*slash = '\0';
		if (path->depth == RL_PCI_DEPTH || !word_function(s, &path->at[path->depth++]))
			return false;
		s = slash ? slash + 1 : NULL;
	} while (s);
	return true;
}

static bool is_in_name(char c)
{
	return is_digit(c) || is_letter(c) || c == '_' || c == '.' || c == '-';
}

static bool word_is_plain(const char *s)
{
	for (; *s; s++)
		if (!is_in_name(*s))
			return false;
	return true;
}

static bool word_is_pattern(const char *s)
{
	for (; *s; s++)
		if (*s == '%' ? !*++s || !strchr("dnp", *s) : !is_in_name(*s))
			return false;
	return true;
}

/* ---- values, by kind of key ---- */

enum kind { FACE, NODE_TYPE, QP_TYPES, GIDS, GID_TYPES, SPEED, WIDTH, MTU, NAME, LINK_LAYER,
	    FIGURE, FIRMWARE, TEXT, LINE, LINE_OR_NONE, GUID, PKEYS, CAPS, ATOMICS, YES, PCI_LINK,
	    PCI, NUMA, COUNTERS };

/* No pointers: the loader of each program would relocate them. */
struct key {
	char name[28];
	u8 kind;
	bool is_long;			/* u64 */
	bool repeats;
	u32 at;				/* in struct rl_profile */
	u64 min, max;			/* of a number; the room of a text */
};

static void *field(const struct rl_reader *r, const struct key *k)
{
	return (u8 *)r->p + k->at;
}

static bool read_end(struct rl_reader *r, const struct key *k)
{
	char *word = rl_profile_word(r);

	return !word || rl_profile_wrong(r, "%s: \"%.40s\" is one value too many", k->name, word);
}

static bool read_figure(struct rl_reader *r, const struct key *k, char *word)
{
	u64 v;

	if (!word_number(word, &v))
		return rl_profile_wrong(r, "%s: \"%.40s\" is no number", k->name, word);
	if (v < k->min)
		return rl_profile_wrong(r, "%s: %.40s: it must be at least %llu", k->name, word,
					(unsigned long long)k->min);
	if (v > k->max)
		return rl_profile_wrong(r, "%s: %.40s: this host has at most %llu", k->name, word,
					(unsigned long long)k->max);
	if (k->is_long)
		*(u64 *)field(r, k) = v;
	else
		*(u32 *)field(r, k) = (u32)v;
	return read_end(r, k);
}

static bool read_text(struct rl_reader *r, const struct key *k, char *word)
{
	if (strlen(word) >= k->max)
		return rl_profile_wrong(r, "%s: it is longer than %llu", k->name,
					(unsigned long long)k->max - 1);
	if (!word_is_plain(word))
		return rl_profile_wrong(r, "%s: letters, digits and _.- only", k->name);
	word = strcmp(word, "none") ? word : "";
	memcpy(field(r, k), word, strlen(word) + 1);
	return read_end(r, k);
}

/* The rest of the line. */
static bool read_line_text(struct rl_reader *r, const struct key *k, char *word)
{
	size_t len = strlen(word), n;
	char *to = field(r, k);

	n = (size_t)snprintf(to, k->max, "%s%s%s", word, *r->at ? " " : "", r->at);
	if (n >= k->max)
		return rl_profile_wrong(r, "%s: it is longer than %llu", k->name,
					(unsigned long long)k->max - 1);
	while (n > len && strchr(BLANKS, to[n - 1]))
		to[--n] = '\0';
	for (; *to; to++)
		if (*to < ' ' || *to > '~')
			return rl_profile_wrong(r, "%s: printable characters only", k->name);
	return true;
}

static bool read_line_or_none(struct rl_reader *r, const struct key *k, char *word)
{
	char *to = field(r, k);

	if (!read_line_text(r, k, word))
		return false;
	if (!strcmp(to, "none"))
		*to = '\0';
	return true;
}

static bool read_yes(struct rl_reader *r, const struct key *k, char *word)
{
	bool *v = field(r, k);

	*v = !strcmp(word, "yes");
	if (!*v && strcmp(word, "no"))
		return rl_profile_wrong(r, "%s: yes or no", k->name);
	return read_end(r, k);
}

/* ---- values that are words ---- */

struct choice {
	char word[24];
	u64 value;
};

/* @list ends with an empty word. */
static const struct choice *find_choice(const struct choice *list, const char *word)
{
	while (*list->word && strcmp(list->word, word))
		list++;
	return *list->word ? list : NULL;
}

static void list_choices(const struct choice *list, char *text, size_t size)
{
	size_t at = 0;

	for (text[0] = '\0'; *list->word && at < size; list++)
		at += (size_t)snprintf(text + at, size - at, "%s%s", at ? " " : "", list->word);
}

static bool bad_choice(struct rl_reader *r, const struct key *k, const struct choice *list,
		       const char *word)
{
	char text[120];

	list_choices(list, text, sizeof(text));
	return rl_profile_wrong(r, "%s: \"%.24s\": this host has %s", k->name, word, text);
}

/* All words of the line, or'ed. */
static bool read_bits(struct rl_reader *r, const struct key *k, const struct choice *list,
		      char *word, u64 *bits)
{
	const struct choice *c;

	for (*bits = 0; word; word = rl_profile_word(r)) {
		c = find_choice(list, word);
		if (!c)
			return bad_choice(r, k, list, word);
		*bits |= c->value;
	}
	return true;
}

static bool read_face(struct rl_reader *r, const struct key *k, char *word)
{
	r->p->iwarp = !strcmp(word, "iwarp");
	if (!r->p->iwarp && strcmp(word, "roce"))
		return rl_profile_wrong(r, "%s: roce or iwarp", k->name);
	return read_end(r, k);
}

static bool read_node_type(struct rl_reader *r, const struct key *k, char *word)
{
	static const struct choice types[] = {
		{ "ca", RDMA_NODE_IB_CA }, { "rnic", RDMA_NODE_RNIC },
		{ "unspecified", RDMA_NODE_UNSPECIFIED }, { "", 0 },
	};
	const struct choice *c = find_choice(types, word);

	if (!c)
		return bad_choice(r, k, types, word);
	r->p->node_type = (u8)c->value;
	return read_end(r, k);
}

static bool read_link_layer(struct rl_reader *r, const struct key *k, char *word)
{
	static const struct choice layers[] = {
		{ "ethernet", IBV_LINK_LAYER_ETHERNET },
		{ "unspecified", IBV_LINK_LAYER_UNSPECIFIED }, { "", 0 },
	};
	const struct choice *c = find_choice(layers, word);

	if (!c)
		return bad_choice(r, k, layers, word);
	r->p->link_layer = (u8)c->value;
	return read_end(r, k);
}

static bool read_qp_types(struct rl_reader *r, const struct key *k, char *word)
{
	static const struct choice types[] = {
		{ "rc", 1 << IBV_QPT_RC }, { "uc", 1 << IBV_QPT_UC }, { "ud", 1 << IBV_QPT_UD },
		{ "", 0 },
	};
	u64 bits;

	if (!read_bits(r, k, types, word, &bits))
		return false;
	r->p->qp_types = (u32)bits;
	return true;
}

static bool read_caps(struct rl_reader *r, const struct key *k, char *word)
{
	static const struct choice caps[] = {
		{ "none", 0 },
		{ "srq_resize", IBV_DEVICE_SRQ_RESIZE },
		{ "mem_window", IBV_DEVICE_MEM_WINDOW },
		{ "mem_window_type_2b", IBV_DEVICE_MEM_WINDOW_TYPE_2B },
		{ "mem_mgt_extensions", IBV_DEVICE_MEM_MGT_EXTENSIONS },
		{ "port_active_event", IBV_DEVICE_PORT_ACTIVE_EVENT },
		{ "curr_qp_state_mod", IBV_DEVICE_CURR_QP_STATE_MOD },
		{ "sys_image_guid", IBV_DEVICE_SYS_IMAGE_GUID },
		{ "rc_rnr_nak_gen", IBV_DEVICE_RC_RNR_NAK_GEN },
		{ "", 0 },
	};

	return read_bits(r, k, caps, word, &r->p->device_cap_flags);
}

static bool read_atomics(struct rl_reader *r, const struct key *k, char *word)
{
	static const struct choice caps[] = {
		{ "none", IBV_ATOMIC_NONE }, { "hca", IBV_ATOMIC_HCA },
		{ "global", IBV_ATOMIC_GLOB }, { "", 0 },
	};
	const struct choice *c = find_choice(caps, word);

	if (!c)
		return bad_choice(r, k, caps, word);
	r->p->atomic_cap = (u32)c->value;
	return read_end(r, k);
}

/* ---- values with a form of their own ---- */

static bool read_name(struct rl_reader *r, const struct key *k, char *word)
{
	if (*word == '.')
		return rl_profile_wrong(r, "%s: it begins with a dot", k->name);
	if (strlen(word) >= sizeof(r->p->name) || !word_is_pattern(word))
		return rl_profile_wrong(r, "%s: at most %zu letters, digits, _.-, and %%d %%n %%p",
					k->name, sizeof(r->p->name) - 1);
	memcpy(r->p->name, word, strlen(word) + 1);
	return read_end(r, k);
}

/* query_device has it as one number, which the provider prints as three. */
static bool word_firmware(char *word, u64 n[3])
{
	u32 i;

	for (i = 0; i < 3; i++) {
		char *dot = strchr(word, '.');

		if (!dot != (i == 2) || word == dot)
			return false;
		if (dot)
			*dot = '\0';
		if (!*word || !digits(word, 10, &n[i]) || n[i] > (i ? 0xffff : 999999999))
			return false;
		word = dot ? dot + 1 : word;
	}
	return true;
}

static bool read_firmware(struct rl_reader *r, const struct key *k, char *word)
{
	u64 n[3];

	r->p->fw_ver[0] = '\0';
	r->p->fw_number = 0;
	if (!strcmp(word, "none"))
		return read_end(r, k);
	if (!word_firmware(word, n))
		return rl_profile_wrong(r, "%s: none or A.B.C, since verbs report three numbers, "
					   "the last two below 65536", k->name);
	snprintf(r->p->fw_ver, sizeof(r->p->fw_ver), "%u.%u.%u", (u32)n[0], (u32)n[1],
		 (u32)n[2]);
	r->p->fw_number = n[0] << 32 | n[1] << 16 | n[2];
	return read_end(r, k);
}

static bool read_guid(struct rl_reader *r, const struct key *k, char *word)
{
	u8 *guid = field(r, k);
	const char *s = word;
	u32 i, v;

	memset(guid, 0, 8);
	if (!strcmp(word, "netdev"))
		return read_end(r, k);
	for (i = 0; i < 4; i++) {
		s = word_hex(s, 4, 4, i == 3 ? '\0' : ':', &v);
		if (!s)
			return rl_profile_wrong(r, "%s: netdev or XXXX:XXXX:XXXX:XXXX", k->name);
		guid[2 * i] = (u8)(v >> 8);
		guid[2 * i + 1] = (u8)v;
	}
	return read_end(r, k);
}

static bool read_gids(struct rl_reader *r, const struct key *k, char *word)
{
	static const struct choice classes[] = {
		{ "link-local", RL_GIDS_LINK_LOCAL }, { "ipv4", RL_GIDS_IPV4 },
		{ "ipv6", RL_GIDS_IPV6 }, { "", 0 },
	};
	const struct choice *c;
	u32 seen = 0;

	for (r->p->gid_classes = 0; word; word = rl_profile_word(r)) {
		c = find_choice(classes, word);
		if (!c)
			return bad_choice(r, k, classes, word);
		if (seen & 1u << c->value)
			return rl_profile_wrong(r, "%s: %s twice", k->name, word);
		seen |= 1u << c->value;
		r->p->gid_order[r->p->gid_classes++] = (u8)c->value;
	}
	return true;
}

static bool read_gid_types(struct rl_reader *r, const struct key *k, char *word)
{
	static const struct choice types[] = {
		{ "v1", RL_GID_V1 }, { "v2", RL_GID_V2 }, { "", 0 },
	};
	u64 bits;

	if (!read_bits(r, k, types, word, &bits))
		return false;
	r->p->gid_types = (u8)bits;
	return true;
}

/* QPs of different partitions would meet: there is the default one alone. */
static bool read_pkeys(struct rl_reader *r, const struct key *k, char *word)
{
	u64 v;

	if (!word_number(word, &v) || v != 0xffff)
		return rl_profile_wrong(r, "%s: this host has 0xffff alone", k->name);
	return read_end(r, k);
}

/* "2.5" or "100": in megabits; false: it is none. */
static bool word_gigabits(const char *s, u32 *mbps)
{
	u64 gigabits;

	if (!strcmp(s, "2.5")) {
		*mbps = 2500;
		return true;
	}
	if (!*s || strlen(s) > 3 || !digits(s, 10, &gigabits))
		return false;
	*mbps = (u32)gigabits * 1000;
	return true;
}

static bool read_speed(struct rl_reader *r, const struct key *k, char *word)
{
	r->p->active_mbps = 0;
	if (strcmp(word, "netdev") && (!word_gigabits(word, &r->p->active_mbps) ||
				       !r->p->active_mbps))
		return rl_profile_wrong(r, "%s: netdev, or Gb/s", k->name);
	return read_end(r, k);
}

static bool read_width(struct rl_reader *r, const struct key *k, char *word)
{
	u64 lanes;

	r->p->active_width = word_number(word, &lanes) && lanes <= 12 ?
			     rl_rate_width((u32)lanes) : 0;
	if (!r->p->active_width)
		return rl_profile_wrong(r, "%s: 1, 2, 4, 8 or 12 lanes", k->name);
	return read_end(r, k);
}

/* The number of an MTU in verbs; 0: it is none. */
static u8 word_mtu(const char *word)
{
	u64 octets;
	u8 n;

	for (n = 1; word_number(word, &octets) && n <= 5; n++)
		if (octets == 128u << n)
			return n;
	return 0;
}

static bool read_mtu(struct rl_reader *r, const struct key *k, char *word)
{
	u8 *mtu = field(r, k);

	*mtu = word_mtu(word);
	if (!*mtu && (k->max || strcmp(word, "netdev")))
		return rl_profile_wrong(r, "%s: %s256, 512, 1024, 2048 or 4096", k->name,
					k->max ? "" : "netdev, ");
	return read_end(r, k);
}

static bool read_pci(struct rl_reader *r, const struct key *k, char *word)
{
	struct rl_profile *p = r->p;

	for (p->pci_paths = 0; word; word = rl_profile_word(r)) {
		if (p->pci_paths == RL_PROFILE_PLACES)
			return rl_profile_wrong(r, "%s: more than %u", k->name, RL_PROFILE_PLACES);
		if (!word_pci(word, &p->pci[p->pci_paths++]))
			return rl_profile_wrong(r, "%s: DDDD:BB:SS.F, with those of up to %u "
						"bridges and slashes before it", k->name,
						RL_PCI_DEPTH - 1);
	}
	return true;
}

static bool read_pci_link(struct rl_reader *r, const struct key *k, char *word)
{
	static const struct choice speeds[] = {
		{ "2.5", 0 }, { "5", 0 }, { "8", 0 }, { "16", 0 }, { "32", 0 }, { "64", 0 },
		{ "", 0 },
	};
	char *lanes = rl_profile_word(r);
	u64 width = 0;

	if (!find_choice(speeds, word) || !lanes || !word_number(lanes, &width) || width > 32 ||
	    !width || (width & (width - 1)))
		return rl_profile_wrong(r, "%s: GT/s (2.5, 5, 8, 16, 32, 64) and lanes", k->name);
	snprintf(r->p->pci_speed, sizeof(r->p->pci_speed), "%s%s", word,
		 strchr(word, '.') ? "" : ".0");
	r->p->pci_width = (u32)width;
	return read_end(r, k);
}

static bool read_numa(struct rl_reader *r, const struct key *k, char *word)
{
	struct rl_profile *p = r->p;
	u64 v;

	p->numa_nodes = 0;
	if (!strcmp(word, "netdev"))
		return read_end(r, k);
	for (; word; word = rl_profile_word(r)) {
		bool none = !strcmp(word, "-1");

		if (p->numa_nodes == RL_PROFILE_PLACES)
			return rl_profile_wrong(r, "%s: more than %u", k->name, RL_PROFILE_PLACES);
		if (!none && (!word_number(word, &v) || v > 1023))
			return rl_profile_wrong(r, "%s: netdev, -1, or nodes up to 1023", k->name);
		p->numa_node[p->numa_nodes++] = none ? -1 : (s32)v;
	}
	return true;
}

/* Files of hw_counters that weft has, with or without its own counters. */
static bool counter_is_wefts(const char *word)
{
	u32 i;

	for (i = 0; i < rl_stat_count; i++)
		if (!strcmp(rl_stat_names[i], word))
			return true;
	return !strcmp(word, "lifespan");
}

static bool add_counter(struct rl_reader *r, const struct key *k, const char *word)
{
	struct rl_profile *p = r->p;
	u32 i;

	if (strlen(word) >= sizeof(p->hw_counters[0]) || !word_is_plain(word))
		return rl_profile_wrong(r, "%s: \"%.24s\": at most %zu letters, digits and _.-",
					k->name, word, sizeof(p->hw_counters[0]) - 1);
	if (*word == '.' || counter_is_wefts(word))
		return rl_profile_wrong(r, "%s: %s %s", k->name, word,
					*word == '.' ? "begins with a dot" : "is weft's own");
	for (i = 0; i < p->nhw_counters; i++)
		if (!strcmp(p->hw_counters[i], word))
			return rl_profile_wrong(r, "%s: %s twice", k->name, word);
	if (p->nhw_counters == RL_PROFILE_COUNTERS)
		return rl_profile_wrong(r, "%s: more than %u", k->name, RL_PROFILE_COUNTERS);
	memcpy(p->hw_counters[p->nhw_counters++], word, strlen(word) + 1);
	return true;
}

static bool read_counters(struct rl_reader *r, const struct key *k, char *word)
{
	for (; word; word = rl_profile_word(r)) {
		if (!strcmp(word, "weft"))
			r->p->own_counters = true;
		else if (!strcmp(word, "none"))
			r->p->own_counters = false;
		else if (!add_counter(r, k, word))
			return false;
	}
	return true;
}

/* ---- the keys ---- */

#define AT(field) offsetof(struct rl_profile, field)
#define SIZE(field) sizeof(((struct rl_profile *)NULL)->field)
#define NUMBER(field, most) { #field, FIGURE, false, false, AT(field), 0, most }
#define COUNT(field, most) { #field, FIGURE, false, false, AT(field), 1, most }
#define LONG(field, least) { #field, FIGURE, true, false, AT(field), least, UINT64_MAX }
#define WORD(field) { #field, TEXT, false, false, AT(field), 0, SIZE(field) }
#define OWN(field, kind) { #field, kind, false, false, AT(field), 0, 0 }
#define APART(name, kind) { name, kind, false, false, 0, 0, 0 }

enum { KEY_FACE, KEY_NODE_TYPE, KEY_QP_TYPES, KEY_GIDS, KEY_GID_TYPES, KEY_SPEED, KEY_WIDTH,
       KEY_ACTIVE_MTU, KEY_NUMBERED };

static const struct key keys[] = {
	[KEY_FACE] = APART("face", FACE),
	[KEY_NODE_TYPE] = OWN(node_type, NODE_TYPE),
	[KEY_QP_TYPES] = OWN(qp_types, QP_TYPES),
	[KEY_GIDS] = APART("gids", GIDS),
	[KEY_GID_TYPES] = OWN(gid_types, GID_TYPES),
	[KEY_SPEED] = APART("active_speed", SPEED),
	[KEY_WIDTH] = OWN(active_width, WIDTH),
	[KEY_ACTIVE_MTU] = OWN(active_mtu, MTU),
	OWN(name, NAME),
	OWN(link_layer, LINK_LAYER),
	NUMBER(vendor_id, 0xffffff),
	NUMBER(vendor_part_id, UINT32_MAX),
	NUMBER(hw_ver, UINT32_MAX),
	OWN(fw_ver, FIRMWARE),
	{ "hca_type", LINE_OR_NONE, false, false, AT(hca_type), 0, SIZE(hca_type) },
	WORD(board_id),
	WORD(hw_rev),
	{ "node_desc", LINE, false, false, AT(node_desc), 0, SIZE(node_desc) },
	OWN(node_guid, GUID),
	OWN(sys_image_guid, GUID),
	APART("pkeys", PKEYS),
	{ "max_mtu", MTU, false, false, AT(max_mtu), 0, 1 },
	COUNT(max_msg_sz, 1u << 31),
	OWN(device_cap_flags, CAPS),
	OWN(atomic_cap, ATOMICS),
	OWN(immediate, YES),
	OWN(odp, YES),
	LONG(max_mr_size, 4096),
	LONG(page_size_cap, 4096),
	COUNT(max_qp, RL_MAX_QP),
	COUNT(max_qp_wr, WEFT_MAX_QP_WR),
	COUNT(max_sge, WEFT_MAX_SGE),
	/* Responses fill one region: RFC 5040. */
	COUNT(max_sge_rd, 1),
	NUMBER(max_inline_data, WEFT_MAX_INLINE),
	COUNT(max_cq, RL_MAX_CQ),
	COUNT(max_cqe, WEFT_MAX_CQE),
	COUNT(max_mr, RL_MAX_MR),
	NUMBER(max_mw, RL_MAX_MR),
	COUNT(max_pd, RL_MAX_PD),
	NUMBER(max_srq, RL_MAX_SRQ),
	NUMBER(max_srq_wr, WEFT_MAX_QP_WR),
	NUMBER(max_srq_sge, WEFT_MAX_SGE),
	NUMBER(max_ah, INT32_MAX),
	NUMBER(max_mcast_grp, RL_MAX_QP),
	NUMBER(max_mcast_qp_attach, RL_GROUP_MEMBERS),
	NUMBER(max_total_mcast_qp_attach, RL_MAX_QP),
	COUNT(max_qp_rd_atom, RL_MAX_IRD),
	NUMBER(max_res_rd_atom, RL_MAX_QP * RL_MAX_IRD),
	COUNT(max_qp_init_rd_atom, RL_MAX_ORD),
	COUNT(max_pkeys, 65535),
	NUMBER(local_ca_ack_delay, 31),
	NUMBER(pci_vendor, 0xffff),
	NUMBER(pci_device, 0xffff),
	NUMBER(pci_subsystem_vendor, 0xffff),
	NUMBER(pci_subsystem_device, 0xffff),
	NUMBER(pci_class, 0xffffff),
	WORD(pci_driver),
	APART("pci_link", PCI_LINK),
	APART("pci", PCI),
	APART("numa_node", NUMA),
	OWN(port_counters, YES),
	{ "hw_counters", COUNTERS, false, true, 0, 0, 0 },
};

static bool read_value(struct rl_reader *r, const struct key *k, char *word)
{
	switch ((enum kind)k->kind) {
	case FACE:
		return read_face(r, k, word);
	case NODE_TYPE:
		return read_node_type(r, k, word);
	case QP_TYPES:
		return read_qp_types(r, k, word);
	case GIDS:
		return read_gids(r, k, word);
	case GID_TYPES:
		return read_gid_types(r, k, word);
	case SPEED:
		return read_speed(r, k, word);
	case WIDTH:
		return read_width(r, k, word);
	case MTU:
		return read_mtu(r, k, word);
	case NAME:
		return read_name(r, k, word);
	case LINK_LAYER:
		return read_link_layer(r, k, word);
	case FIGURE:
		return read_figure(r, k, word);
	case FIRMWARE:
		return read_firmware(r, k, word);
	case TEXT:
		return read_text(r, k, word);
	case LINE:
		return read_line_text(r, k, word);
	case LINE_OR_NONE:
		return read_line_or_none(r, k, word);
	case GUID:
		return read_guid(r, k, word);
	case PKEYS:
		return read_pkeys(r, k, word);
	case CAPS:
		return read_caps(r, k, word);
	case ATOMICS:
		return read_atomics(r, k, word);
	case YES:
		return read_yes(r, k, word);
	case PCI_LINK:
		return read_pci_link(r, k, word);
	case PCI:
		return read_pci(r, k, word);
	case NUMA:
		return read_numa(r, k, word);
	case COUNTERS:
		return read_counters(r, k, word);
	}
	return false;
}

#define KEYS ARRAY_SIZE(keys)

static const struct key *find_key(const char *word)
{
	const struct key *k;

	for (k = keys; k < keys + KEYS; k++)
		if (!strcmp(k->name, word))
			return k;
	return NULL;
}

/* ---- what goes together ---- */

static_assert(KEYS <= RL_PROFILE_KEYS, "room for their lines");

bool rl_profile_read_key(struct rl_reader *r, struct rl_origin *o, const char *name)
{
	const struct key *k = find_key(name);
	char *word;
	u32 i;

	if (!k)
		return rl_profile_wrong(r, "\"%.40s\" is no key", name);
	i = (u32)(k - keys);
	if (o->own[i] && !k->repeats)
		return rl_profile_wrong(r, "%s: it is in line %u, too", name, o->own[i]);
	if (!o->own[i] && k->repeats)	/* a section has counters of its own */
		r->p->nhw_counters = 0;
	if (i == KEY_SPEED && !o->own[KEY_WIDTH])	/* the width was another speed's */
		r->p->active_width = 0;
	o->own[i] = o->any[i] = r->line;
	word = rl_profile_word(r);
	if (!word)
		return rl_profile_wrong(r, "%s: the value is missing", name);
	return read_value(r, k, word);
}

static bool conflict(struct rl_reader *r, const struct rl_origin *o, u32 key, const char *why)
{
	if (o->any[key])
		r->line = o->any[key];
	return rl_profile_wrong(r, "%s: %s", keys[key].name, why);
}

/* What is not given of an RNIC is that of RNICs. */
static bool check_face(struct rl_reader *r, const struct rl_origin *o)
{
	struct rl_profile *p = r->p;

	if (!p->iwarp)
		return p->node_type != RDMA_NODE_RNIC ||
		       conflict(r, o, KEY_NODE_TYPE, "an RNIC has face iwarp");
	if (o->any[KEY_GIDS] || o->any[KEY_GID_TYPES])
		return conflict(r, o, o->any[KEY_GIDS] ? KEY_GIDS : KEY_GID_TYPES,
				"an RNIC has one GID, its MAC");
	if (o->any[KEY_NODE_TYPE] && p->node_type != RDMA_NODE_RNIC)
		return conflict(r, o, KEY_NODE_TYPE, "face iwarp is an RNIC's");
	if (o->any[KEY_QP_TYPES] && p->qp_types != 1 << IBV_QPT_RC)
		return conflict(r, o, KEY_QP_TYPES, "an RNIC has rc alone");
	rl_profile_set_iwarp(p);
	return true;
}

static bool check_rate(struct rl_reader *r, const struct rl_origin *o)
{
	const struct rl_profile *p = r->p;

	if (p->active_mbps && !rl_rate_is(p->active_mbps, p->active_width))
		return conflict(r, o, KEY_SPEED, p->active_width ?
				"no lane of this width has that speed" :
				"2.5, 5, 10, 20, 25, 40, 50, 56, 100, 200, 400 or 800");
	if (p->active_width && !p->active_mbps)
		return conflict(r, o, KEY_WIDTH, "it needs an active_speed in Gb/s");
	if (p->active_mtu > p->max_mtu)
		return conflict(r, o, KEY_ACTIVE_MTU, "it is above max_mtu");
	return true;
}

bool rl_profile_finish(struct rl_reader *r, const struct rl_origin *o)
{
	return check_face(r, o) && check_rate(r, o);
}

/* ---- lines ---- */

/* A comment begins a line, or follows a blank. */
static void cut_comment(char *line)
{
	char *s;

	for (s = line; *s; s++) {
		if (*s == '#' && (s == line || strchr(BLANKS, s[-1]))) {
			*s = '\0';
			return;
		}
	}
}

int rl_profile_next_line(struct rl_reader *r, const char **text, size_t *len,
			 char buf[RL_PROFILE_LINE])
{
	const char *end;
	size_t n;

	if (!*len)
		return 0;
	r->line++;
	end = memchr(*text, '\n', *len);
	n = end ? (size_t)(end - *text) : *len;
	if (n >= RL_PROFILE_LINE || memchr(*text, '\0', n)) {
		rl_profile_wrong(r, n >= RL_PROFILE_LINE ? "it is longer than %d characters" :
				 "it has an octet of zero", RL_PROFILE_LINE - 1);
		return -1;
	}
	memcpy(buf, *text, n);
	buf[n] = '\0';
	n += !!end;
	*text += n;
	*len -= n;
	cut_comment(buf);
	r->at = buf;
	return 1;
}

bool rl_profile_parse(struct rl_profile *p, const char *text, size_t len,
		      struct rl_profile_error *e)
{
	struct rl_reader r = { .p = p, .e = e };
	struct rl_origin o = { 0 };
	char line[RL_PROFILE_LINE], *word;
	int rv;

	while ((rv = rl_profile_next_line(&r, &text, &len, line)) > 0) {
		word = rl_profile_word(&r);
		if (word && !rl_profile_read_key(&r, &o, word))
			return false;
	}
	return !rv && rl_profile_finish(&r, &o);
}
