// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * PCI functions in the tree. A device's function is its netdev's, which the kernel shows, or one
 * that is made up of the profile. There is no modalias: libibverbs must not choose another provider
 * by it.
 */
#include <fcntl.h>
#include <stdio.h>

#include "process/raw.h"
#include "tree_fill.h"
#include "tree_node.h"

/* ---- the CPUs of a node ---- */

/* Its length; 0: there is none. */
static size_t read_node_file(s32 node, const char *name, char *text, size_t size)
{
	char path[64];
	long fd, n;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/%s", node, name);
	fd = node < 0 ? -1 : rl_raw(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = rl_raw(SYS_read, fd, text, size);
	rl_raw(SYS_close, fd);
	return n < 0 ? 0 : (size_t)n;
}

/* The mask of @n CPUs; the highest 32 first. */
static void format_mask(u32 n, char *text, size_t size)
{
	u32 words = (n + 31) / 32, i;
	size_t at = 0;

	for (i = 0; i < words && at < size; i++) {
		u32 bits = i || !(n % 32) ? 32 : n % 32;

		at += (size_t)snprintf(text + at, size - at, "%s%0*x", i ? "," : "",
				       (int)(bits + 3) / 4, bits == 32 ? ~0u : (1u << bits) - 1);
	}
}

static u32 count_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	return n < 1 ? 1 : n > 4096 ? 4096 : (u32)n;
}

/* Of a node that this host does not have, or of none: all. */
static size_t make_cpus(const struct rl_node *n, char *text, size_t size)
{
	size_t len = read_node_file(n->dev->numa_node, "cpumap", text, size);
	char mask[2048];

	if (len)
		return len;
	format_mask(count_cpus(), mask, sizeof(mask));
	return rl_node_print(text, size, "%s\n", mask);
}

static size_t make_cpu_list(const struct rl_node *n, char *text, size_t size)
{
	size_t len = read_node_file(n->dev->numa_node, "cpulist", text, size);

	return len ? len : rl_node_print(text, size, "0-%u\n", count_cpus() - 1);
}

/* ---- a function ---- */

static void config_word(char *at, u32 v)
{
	at[0] = (char)v;
	at[1] = (char)(v >> 8);
}

/* The part of the configuration space that every user may read: an endpoint without regions. */
static size_t make_config(const struct rl_node *n, char *text, size_t size)
{
	const struct rl_profile *p = n->dev->about;

	memset(text, 0, 64);
	config_word(text, p->pci_vendor);
	config_word(text + 2, p->pci_device);
	config_word(text + 4, 0x0006);		/* memory, bus master */
	config_word(text + 9, p->pci_class);
	text[11] = (char)(p->pci_class >> 16);
	config_word(text + 0x2c, p->pci_subsystem_vendor);
	config_word(text + 0x2e, p->pci_subsystem_device);
	return 64;
}

/* As the kernel lists regions: from, to, flags. libpci reads them. */
static size_t make_resource(const struct rl_node *n, char *text, size_t size)
{
	size_t at = 0;
	int i;

	for (i = 0; i < 13; i++)
		at += rl_node_print(text + at, size - at, "0x%016x 0x%016x 0x%016x\n", 0, 0, 0);
	return at;
}

static void fill_net(struct rl_node *dir, const struct rl_device *d)
{
	char up[3 * 16 + 1] = "";
	const char *s;
	size_t at = 0;

	for (s = d->pci_folder; s && at + 3 < sizeof(up); s = strchr(s + 1, '/'))
		at += rl_node_print(up + at, sizeof(up) - at, "../");
	rl_node_add_link(rl_node_add_dir(dir, "net"), d->netdev, "%s../class/net/%s", up,
			 d->netdev);
}

static void fill_function(struct rl_node *dir, const struct rl_device *d)
{
	const struct rl_profile *p = d->about;
	const char *name = strrchr(d->pci_folder, '/') + 1, *kind;

	rl_node_add_file(dir, "vendor", "0x%04x\n", p->pci_vendor);
	rl_node_add_file(dir, "device", "0x%04x\n", p->pci_device);
	rl_node_add_file(dir, "subsystem_vendor", "0x%04x\n", p->pci_subsystem_vendor);
	rl_node_add_file(dir, "subsystem_device", "0x%04x\n", p->pci_subsystem_device);
	rl_node_add_file(dir, "class", "0x%06x\n", p->pci_class);
	rl_node_add_file(dir, "revision", "0x00\n");
	rl_node_add_file(dir, "enable", "1\n");
	rl_node_add_file(dir, "irq", "0\n");
	rl_node_add_live(dir, "config", d, make_config, NULL);
	rl_node_add_live(dir, "resource", d, make_resource, NULL);
	rl_node_add_file(dir, "numa_node", "%d\n", d->numa_node);
	rl_node_add_live(dir, "local_cpus", d, make_cpus, NULL);
	rl_node_add_live(dir, "local_cpulist", d, make_cpu_list, NULL);
	for (kind = "current"; kind; kind = *kind == 'c' ? "max" : NULL) {
		char file[32];

		snprintf(file, sizeof(file), "%s_link_speed", kind);
		rl_node_add_file(dir, file, "%s GT/s PCIe\n", p->pci_speed);
		snprintf(file, sizeof(file), "%s_link_width", kind);
		rl_node_add_file(dir, file, "%u\n", p->pci_width);
	}
	rl_node_add_file(dir, "uevent", "DRIVER=%s\nPCI_CLASS=%X\nPCI_ID=%04X:%04X\n"
			 "PCI_SUBSYS_ID=%04X:%04X\nPCI_SLOT_NAME=%s\n", p->pci_driver,
			 p->pci_class, p->pci_vendor, p->pci_device, p->pci_subsystem_vendor,
			 p->pci_subsystem_device, name);
}

/* Is @name below @folder in the kernel's tree? */
static bool kernel_has(const char *folder, const char *name)
{
	char path[160];

	snprintf(path, sizeof(path), "/sys/%s/%s", folder, name);
	return !rl_raw(SYS_faccessat, AT_FDCWD, path, F_OK);
}

/* All functions of the host, and this one. */
static void list_function(struct rl_node *sys, const struct rl_device *d)
{
	struct rl_node *pci = rl_node_add_real(rl_node_add_real(sys, "bus"), "pci");
	struct rl_node *devices = rl_node_add_path(pci, "devices", false);

	if (!devices)
		return;
	devices->merged = true;
	rl_node_add_link(devices, strrchr(d->pci_folder, '/') + 1, "../../../%s", d->pci_folder);
}

struct rl_node *rl_pci_fill(struct rl_node *sys, const struct rl_device *d)
{
	struct rl_node *devices = rl_node_add_real(sys, "devices"), *dir;
	const char *path = strchr(d->pci_folder, '/') + 1;
	char root[16];

	if (d->own_pci) {
		dir = rl_node_add_path(devices, path, true);
		if (!kernel_has(d->pci_folder, "net"))
			fill_net(dir, d);
		return dir;
	}
	snprintf(root, sizeof(root), "%.*s", (int)strcspn(path, "/"), path);
	if (kernel_has("devices", root))
		rl_node_add_real(devices, root);
	dir = rl_node_add_path(devices, path, false);
	fill_function(dir, d);
	fill_net(dir, d);
	list_function(sys, d);
	return dir;
}
