// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Profiles and topologies: what is read, and what is refused, by line. */
#include <dirent.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

#include "devices/gid.h"
#include "devices/profile.h"
#include "devices/rates.h"
#include "devices/setup.h"
#include "parse.h"

static struct rl_profile p;

static bool read_text(const char *text, size_t len, struct rl_profile_error *e)
{
	rl_profile_init(&p);
	return rl_profile_parse(&p, text, len, e);
}

/* ---- what is read ---- */

static void an_empty_profile_is_wefts_own(void **state)
{
	struct rl_profile own;

	rl_profile_init(&own);
	assert_true(parse(""));
	assert_memory_equal(&p, &own, sizeof(p));
	assert_true(parse("\n  # nothing\n\t\r\n#"));
	assert_memory_equal(&p, &own, sizeof(p));
	assert_string_equal(p.name, "weft_%n");
}

static void values_of_each_kind_are_read(void **state)
{
	assert_true(parse("name mlx5_%d\nvendor_id 0x02c9\nvendor_part_id 4125 # a comment\n"
			  "fw_ver 22.36.1010\nnode_desc  two words\t\nnode_guid 0c42:a103:0011:2233\n"
			  "gids ipv4 link-local\ngid_types v2\nactive_speed 400\nactive_width 4\n"
			  "active_mtu 1024\nqp_types uc ud\ndevice_cap_flags srq_resize mem_window\n"
			  "atomic_cap hca\nodp no\nmax_mr_size 0x100000000\nmax_qp_wr 100\n"
			  "pci 7766:16:02.0/7766:17:00.1\nnuma_node 1 -1\nhw_counters none a b\n"
			  "hw_counters c"));
	assert_string_equal(p.name, "mlx5_%d");
	assert_int_equal(p.vendor_id, 0x2c9);
	assert_int_equal(p.vendor_part_id, 4125);
	assert_string_equal(p.fw_ver, "22.36.1010");
	assert_true(p.fw_number == (22ull << 32 | 36 << 16 | 1010));
	assert_string_equal(p.node_desc, "two words");
	assert_memory_equal(p.node_guid, "\x0c\x42\xa1\x03\x00\x11\x22\x33", 8);
	assert_int_equal(p.gid_classes, 2);
	assert_int_equal(p.gid_order[0], RL_GIDS_IPV4);
	assert_int_equal(p.gid_types, RL_GID_V2);
	assert_int_equal(p.active_mbps, 400000);
	assert_int_equal(p.active_mtu, IBV_MTU_1024);
	assert_int_equal(p.qp_types, 1 << IBV_QPT_UC | 1 << IBV_QPT_UD);
	assert_true(p.device_cap_flags == (IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW));
	assert_true(p.max_mr_size == 1ull << 32);
	assert_int_equal(p.max_qp_wr, 100);
	assert_int_equal(p.pci[0].depth, 2);
	assert_int_equal(p.pci[0].at[1].bus, 0x17);
	assert_int_equal(p.pci[0].at[1].function, 1);
	assert_int_equal(p.numa_nodes, 2);
	assert_int_equal(p.numa_node[1], -1);
	assert_false(p.own_counters || p.odp);
	assert_int_equal(p.nhw_counters, 3);
	assert_string_equal(p.hw_counters[2], "c");
}

static void a_type_of_hca_is_a_line_or_none(void **state)
{
	assert_true(parse("hca_type  two words/here\t# a comment\n"));
	assert_string_equal(p.hca_type, "two words/here");
	assert_true(parse("hca_type none\n"));
	assert_string_equal(p.hca_type, "");
	assert_true(parse("node_desc none\n"));
	assert_string_equal(p.node_desc, "none");
}

static void an_rnic_has_rc_alone(void **state)
{
	assert_true(parse("face iwarp\n"));
	assert_true(p.iwarp);
	assert_int_equal(p.qp_types, 1 << IBV_QPT_RC);
	assert_int_equal(p.max_ah, 0);
	assert_refused("qp_types rc ud\n\nface iwarp\n", 1, "an RNIC has rc alone");
	assert_refused("face iwarp\ngids ipv4\n", 2, "one GID, its MAC");
	assert_refused("node_type rnic\n", 1, "face iwarp");
	assert_refused("face iwarp\nnode_type ca\n", 2, "RNIC's");
}

/* ---- what this host cannot do ---- */

static void more_than_the_host_has_is_refused(void **state)
{
	assert_refused("max_sge 30\nmax_qp_wr 32768\n", 2, "at most 16384");
	assert_refused("max_sge 33", 1, "at most 32");
	assert_refused("max_inline_data 1024", 1, "at most 512");
	assert_refused("max_cqe 4194303", 1, "at most 262144");
	assert_refused("max_sge_rd 2", 1, "at most 1");
	assert_refused("max_qp 0", 1, "at least 1");
	assert_refused("qp_types rc xrc", 1, "this host has rc uc ud");
	assert_refused("device_cap_flags xrc", 1, "this host has none srq_resize");
	assert_refused("pkeys 0x8001", 1, "0xffff alone");
	assert_refused("fw_ver 1.2.3.4", 1, "three numbers");
	assert_refused("fw_ver 1.2.70000", 1, "below 65536");
}

static void rates_that_no_lanes_have_are_refused(void **state)
{
	assert_refused("active_speed 30", 1, "2.5, 5, 10");
	assert_refused("active_width 4\nactive_speed 25", 2, "no lane");
	assert_refused("active_width 4", 1, "needs an active_speed");
	assert_refused("active_width 3\nactive_speed 100", 1, "lanes");
	assert_refused("max_mtu 1024\nactive_mtu 4096", 2, "above max_mtu");
	assert_refused("active_mtu 1500", 1, "netdev, 256");
	assert_true(parse("active_speed 100\nactive_width 1"));
	assert_true(parse("active_speed 800"));
}

/* ---- what is not well written ---- */

static void faults_of_writing_are_named_by_line(void **state)
{
	assert_refused("\n\nmax_qp_wrs 5\n", 3, "\"max_qp_wrs\" is no key");
	assert_refused("max_qp\n", 1, "value is missing");
	assert_refused("max_qp many\n", 1, "\"many\" is no number");
	assert_refused("max_qp 1 2\n", 1, "\"2\" is one value too many");
	assert_refused("max_qp -1\n", 1, "no number");
	assert_refused("max_qp 0x\n", 1, "no number");
	assert_refused("max_qp 99999999999999999999999\n", 1, "no number");
	assert_refused("max_qp 5\nmax_qp 6\n", 2, "in line 1, too");
	assert_refused("face ib\n", 1, "roce or iwarp");
	assert_refused("name mlx5 %d\n", 1, "one value too many");
	assert_refused("name mlx5_%x\n", 1, "%d %n %p");
	assert_refused("name a/b\n", 1, "%d %n %p");
	assert_refused("name a%\n", 1, "%d %n %p");
	assert_refused("name .a\n", 1, "begins with a dot");
	assert_refused("name ..\n", 1, "begins with a dot");
	assert_refused("node_guid 1:2:3:4\n", 1, "XXXX");
	assert_refused("gids ipv4 ipv4\n", 1, "twice");
	assert_refused("pci 0000:17:20.0\n", 1, "DDDD:BB:SS.F");
	assert_refused("pci 0000:17:00.0/\n", 1, "DDDD:BB:SS.F");
	assert_refused("pci_link 12 4\n", 1, "GT/s");
	assert_refused("numa_node 2000\n", 1, "up to 1023");
	assert_refused("hw_counters a a\n", 1, "twice");
	assert_refused("hw_counters a\nhw_counters a/b\n", 2, "letters");
	assert_refused("hw_counters a ..\n", 1, ".. begins with a dot");
	assert_refused("hw_counters none lifespan\n", 1, "lifespan is weft's own");
	assert_refused("hw_counters a\nhw_counters rx_fpdus\n", 2, "rx_fpdus is weft's own");
	assert_refused("odp maybe\n", 1, "yes or no");
	assert_refused("rail lo\n", 1, "no key");
}

static void lines_have_an_end(void **state)
{
	char text[3000];

	memset(text, 'a', sizeof(text));
	text[0] = '\n';
	text[sizeof(text) - 1] = '\0';
	assert_refused(text, 2, "longer than 1023");
	rl_profile_init(&p);
	assert_false(rl_profile_parse(&p, "max_qp 5\n\0", 10, &e));
	assert_int_equal(e.line, 2);
	assert_non_null(strstr(e.why, "octet of zero"));
}

/* ---- topologies ---- */

static struct rl_rails rails;

static bool parse_rails(const char *text)
{
	struct rl_profile base;

	rl_profile_init(&base);
	memset(&e, 0, sizeof(e));
	return rl_rails_parse(&base, text, strlen(text), &rails, &e);
}

static void assert_rails_refused(const char *text, unsigned int line, const char *why)
{
	assert_false(parse_rails(text));
	assert_null(rails.at);
	assert_int_equal(e.line, line);
	if (!strstr(e.why, why))
		fail_msg("\"%s\" does not say \"%s\"", e.why, why);
}

static void a_rail_has_what_all_have_and_its_own(void **state)
{
	assert_true(parse_rails("name r%d\nactive_width 4\nactive_speed 100\n"
				"hw_counters none a\nrail lo 127.0.0.1\nrail lo 127.0.0.2 ::2\nactive_speed 25\n"
				"numa_node 1\nhw_counters b\n"));
	assert_int_equal(rails.n, 2);
	assert_int_equal(rails.at[0].about->active_mbps, 100000);
	assert_int_equal(rails.at[1].about->active_mbps, 25000);
	assert_int_equal(rails.at[1].about->numa_node[0], 1);
	assert_int_equal(rails.at[0].about->numa_nodes, 0);
	assert_string_equal(rails.at[0].about->hw_counters[0], "a");
	assert_int_equal(rails.at[1].about->nhw_counters, 1);
	assert_string_equal(rails.at[1].about->hw_counters[0], "b");
	assert_int_equal(rails.at[1].addresses, 2);
	assert_int_equal(rails.at[1].address[1][15], 2);
	assert_int_equal(rails.at[1].line, 6);
	rl_rails_free(&rails);
}

static void faults_of_topologies_are_named_by_line(void **state)
{
	assert_rails_refused("", 0, "no rail");
	assert_rails_refused("max_qp 5\n", 1, "no rail");
	assert_rails_refused("rail\n", 1, "netdev comes first");
	assert_rails_refused("rail lo nowhere\n", 1, "no address");
	assert_rails_refused("rail lo 127.0.0.1\nrail lo 127.0.0.1\n", 2, "in line 1, too");
	assert_rails_refused("rail lo 127.0.0.1\nrail lo\n", 2, "both need addresses");
	assert_rails_refused("name x\nrail lo 127.0.0.1\n\nrail lo 127.0.0.2\n", 4, "as that of line 2");
	assert_rails_refused("rail lo 127.0.0.1\nmax_qp_wr 99999\n", 2, "at most 16384");
	assert_rails_refused("rail lo 127.0.0.1\nactive_speed 3\nrail lo 127.0.0.2\n", 2, "2.5, 5");
	assert_rails_refused("face roce\nrail lo 127.0.0.1\nrail eth0\nface iwarp\n", 3,
			     "RoCE devices and RNICs");
	assert_rails_refused("name a-name-of-almost-thirty-ch%p\nrail lo 127.0.0.1\n", 2, "too long");
}

static void rails_are_bounded(void **state)
{
	char text[70 * 32] = "";
	int i;

	for (i = 0; i < 65; i++)
		sprintf(text + strlen(text), "rail lo 127.0.1.%d\n", i);
	assert_rails_refused(text, 65, "more than 64");
}

/* ---- one device of a profile ---- */

static void more_devices_than_places_get_other_functions(void **state)
{
	struct rl_pci_path path;
	char name[RL_PROFILE_NAMES];

	assert_true(parse("name roce%p\npci 0000:17:00.0 0000:65:00.0\n"));
	rl_profile_pci(&p, 1, 0, &path);
	assert_int_equal(path.at[0].bus, 0x65);
	rl_profile_pci(&p, 2, 1, &path);
	assert_int_equal(path.at[0].bus, 0x17);
	assert_int_equal(path.at[0].function, 1);
	assert_true(rl_profile_name(&p, 2, "eth0", &path, name));
	assert_string_equal(name, "rocep23s0f1");
	rl_profile_pci(&p, 2, 9, &path);
	assert_int_equal(path.at[0].slot, 1);
	assert_int_equal(path.at[0].function, 1);
}

static void a_rate_reads_the_same_in_verbs_and_sysfs(void **state)
{
	static const struct {
		unsigned int mbps, width, speed;
		const char *text;
	} all[] = {
		{ 1000, 1, 1, "2.5 Gb/sec (1X SDR)" }, { 10000, 1, 8, "10 Gb/sec (1X FDR10)" },
		{ 25000, 1, 32, "25 Gb/sec (1X EDR)" }, { 40000, 2, 8, "40 Gb/sec (4X FDR10)" },
		{ 100000, 2, 32, "100 Gb/sec (4X EDR)" }, { 200000, 2, 64, "200 Gb/sec (4X HDR)" },
		{ 400000, 2, 128, "400 Gb/sec (4X NDR)" }, { 800000, 4, 128, "800 Gb/sec (8X NDR)" },
		{ 5000000, 4, 128, "800 Gb/sec (8X NDR)" },
	};
	char text[40];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(all); i++) {
		struct rl_rate r = rl_rate_of(all[i].mbps, 0);

		rl_rate_format(&r, text, sizeof(text));
		assert_string_equal(text, all[i].text);
		assert_int_equal(r.width, all[i].width);
		assert_int_equal(r.speed, all[i].speed);
	}
}

static void a_link_local_gid_leads_to_its_ipv4_address(void **state)
{
	const uint32_t v4 = 0x0100007f;
	uint8_t gid[16], mapped[16], out[16];

	rl_gid_of_v4((const void *)&v4, mapped);
	rl_gid_link_local_of_v4((const void *)&v4, gid);
	assert_int_equal(gid[0], 0xfe);
	rl_gid_resolve(gid, out);
	assert_memory_equal(out, mapped, 16);
	rl_gid_resolve(mapped, out);
	assert_memory_equal(out, mapped, 16);
	gid[11] = 0xff;
	rl_gid_resolve(gid, out);
	assert_memory_equal(out, gid, 16);
}

/* ---- files and the host ---- */

/* Without a writer, and without waiting for one. */
static void a_file_that_can_be_read_once_is_refused(void **state)
{
	char folder[] = "/tmp/weft-profile-XXXXXX", path[64];
	size_t len;
	int p[2];

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/fifo", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_null(rl_profile_read(path, &len, &e));
	assert_non_null(strstr(e.why, "regular file"));
	unlink(path);
	assert_null(rl_profile_read(folder, &len, &e));
	assert_non_null(strstr(e.why, "regular file"));
	rmdir(folder);
	assert_int_equal(pipe(p), 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", p[0]);
	assert_null(rl_profile_read(path, &len, &e));
	assert_non_null(strstr(e.why, "regular file"));
	close(p[0]);
	close(p[1]);
	assert_null(rl_profile_read("/nowhere/at/all", &len, &e));
	assert_non_null(strstr(e.why, "No such file"));
}

/* Look-ups that find each netdev; then there is none any more. */
static int lookups;

unsigned int __wrap_if_nametoindex(const char *name);
unsigned int __wrap_if_nametoindex(const char *name)
{
	return lookups-- > 0 ? 1000 : 0;
}

static void a_netdev_that_vanishes_takes_no_other_along(void **state)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { 0x0100007f } };
	char gone[] = "gone0", here[] = "here0";
	struct ifaddrs all[2] = {
		{ .ifa_next = &all[1], .ifa_name = gone, .ifa_flags = IFF_UP,
		  .ifa_addr = (struct sockaddr *)&a },
		{ .ifa_name = here, .ifa_flags = IFF_UP, .ifa_addr = (struct sockaddr *)&a },
	};
	struct rl_wishes none = { 0 }, two = { .rails = "2", .netdevs = "gone0,here0" };
	struct rl_setup s;
	const char *file;

	lookups = 2;
	assert_true(rl_setup_make(&none, all, &s, &file, &e));
	assert_int_equal(s.rails.n, 2);
	rl_rails_free(&s.rails);
	lookups = 2;
	assert_false(rl_setup_make(&two, all, &s, &file, &e));
	assert_non_null(strstr(e.why, "has no gone0"));
}

static void the_profiles_that_are_shipped_are_read(void **state)
{
	const char *folder = getenv("PROFILES") ?: "../../providers/rootless/profiles";
	DIR *dir = opendir(folder);
	struct dirent *d;
	char path[512];
	int n = 0;

	assert_non_null(dir);
	while ((d = readdir(dir))) {
		size_t len;
		char *text;

		if (d->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, d->d_name);
		text = rl_profile_read(path, &len, &e);
		assert_non_null(text);
		rl_profile_init(&p);
		if (!rl_profile_parse(&p, text, len, &e))
			fail_msg("%s: line %u: %s", d->d_name, e.line, e.why);
		free(text);
		n++;
	}
	closedir(dir);
	assert_int_equal(n, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_profile_is_wefts_own),
		cmocka_unit_test(values_of_each_kind_are_read),
		cmocka_unit_test(a_type_of_hca_is_a_line_or_none),
		cmocka_unit_test(an_rnic_has_rc_alone),
		cmocka_unit_test(more_than_the_host_has_is_refused),
		cmocka_unit_test(rates_that_no_lanes_have_are_refused),
		cmocka_unit_test(faults_of_writing_are_named_by_line),
		cmocka_unit_test(lines_have_an_end),
		cmocka_unit_test(a_rail_has_what_all_have_and_its_own),
		cmocka_unit_test(faults_of_topologies_are_named_by_line),
		cmocka_unit_test(rails_are_bounded),
		cmocka_unit_test(more_devices_than_places_get_other_functions),
		cmocka_unit_test(a_rate_reads_the_same_in_verbs_and_sysfs),
		cmocka_unit_test(a_link_local_gid_leads_to_its_ipv4_address),
		cmocka_unit_test(a_file_that_can_be_read_once_is_refused),
		cmocka_unit_test(a_netdev_that_vanishes_takes_no_other_along),
		cmocka_unit_test(the_profiles_that_are_shipped_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
