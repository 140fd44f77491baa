// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A device's options, /sys/class/infiniband/DEVICE/weft/. They hold for the
 * connections made from then on; weft(4) explains them.
 *
 * ib_verbs.h asks new drivers to use netlink in place of device_group. RDMA
 * netlink has no attributes of a driver's own, and module parameters would
 * hold for all devices at once: until there are, it is this one file.
 */
#include <linux/device.h>
#include <linux/sysfs.h>

#include "core/alive.h"
#include "core/rtr.h"
#include "verbs.h"

#define TIMEOUT_MIN_MS	100
#define TIMEOUT_MAX_MS	(10 * 60 * 1000)

static struct weft_device *dev_of(struct device *device)
{
	return rdma_device_to_drv_device(device, struct weft_device, ibdev);
}

static ssize_t store_bool(const char *buf, size_t n, bool *opt)
{
	bool on;
	int rv = kstrtobool(buf, &on);

	if (rv)
		return rv;
	WRITE_ONCE(*opt, on);
	return n;
}

static ssize_t store_ms(const char *buf, size_t n, unsigned int *opt, unsigned int min)
{
	unsigned int ms;
	int rv = kstrtouint(buf, 0, &ms);

	if (rv)
		return rv;
	if (ms < min || ms > TIMEOUT_MAX_MS)
		return -ERANGE;
	WRITE_ONCE(*opt, ms);
	return n;
}

static ssize_t store_timeout(const char *buf, size_t n, unsigned int *opt)
{
	return store_ms(buf, n, opt, TIMEOUT_MIN_MS);
}

/* ---- MPA ---- */

static ssize_t crc_show(struct device *d, struct device_attribute *a, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(dev_of(d)->crc));
}

static ssize_t crc_store(struct device *d, struct device_attribute *a, const char *buf, size_t n)
{
	return store_bool(buf, n, &dev_of(d)->crc);
}

static ssize_t markers_show(struct device *d, struct device_attribute *a, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(dev_of(d)->markers));
}

static ssize_t markers_store(struct device *d, struct device_attribute *a, const char *buf,
			     size_t n)
{
	return store_bool(buf, n, &dev_of(d)->markers);
}

static ssize_t large_fpdus_show(struct device *d, struct device_attribute *a, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(dev_of(d)->large_fpdus));
}

static ssize_t large_fpdus_store(struct device *d, struct device_attribute *a, const char *buf,
				 size_t n)
{
	return store_bool(buf, n, &dev_of(d)->large_fpdus);
}

static ssize_t mpa_revision_show(struct device *d, struct device_attribute *a, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(dev_of(d)->mpa_rev));
}

static ssize_t mpa_revision_store(struct device *d, struct device_attribute *a, const char *buf,
				  size_t n)
{
	u8 rev;
	int rv = kstrtou8(buf, 0, &rev);

	if (rv)
		return rv;
	if (rev != 1 && rev != 2)
		return -ERANGE;
	WRITE_ONCE(dev_of(d)->mpa_rev, rev);
	return n;
}

static ssize_t extensions_show(struct device *d, struct device_attribute *a, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(dev_of(d)->extensions));
}

/* The core asks for a device's attributes once; a program that asks later must not be misled. */
static ssize_t extensions_store(struct device *d, struct device_attribute *a, const char *buf,
				size_t n)
{
	struct weft_device *dev = dev_of(d);
	ssize_t rv = store_bool(buf, n, &dev->extensions);
	enum ib_atomic_cap cap = READ_ONCE(dev->extensions) ? IB_ATOMIC_GLOB : IB_ATOMIC_NONE;

	WRITE_ONCE(dev->ibdev.attrs.atomic_cap, cap);
	WRITE_ONCE(dev->ibdev.attrs.masked_atomic_cap, cap);
	return rv;
}

/* ---- kinds of the "ready to receive" message ---- */

static ssize_t rtr_show(struct device *d, struct device_attribute *a, char *buf)
{
	char text[WEFT_RTR_TEXT];

	weft_rtr_format(READ_ONCE(dev_of(d)->rtr), text);
	return sysfs_emit(buf, "%s\n", text);
}

static ssize_t rtr_store(struct device *d, struct device_attribute *a, const char *buf, size_t n)
{
	u8 rtr = weft_rtr_parse(buf);

	if (!rtr)
		return -EINVAL;
	WRITE_ONCE(dev_of(d)->rtr, rtr);
	return n;
}

/* ---- sockets ---- */

static ssize_t bind_netdev_show(struct device *d, struct device_attribute *a, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(dev_of(d)->bind_netdev));
}

static ssize_t bind_netdev_store(struct device *d, struct device_attribute *a, const char *buf,
				 size_t n)
{
	return store_bool(buf, n, &dev_of(d)->bind_netdev);
}

/* ---- time-outs ---- */

static ssize_t startup_timeout_ms_show(struct device *d, struct device_attribute *a, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(dev_of(d)->startup_timeout_ms));
}

static ssize_t startup_timeout_ms_store(struct device *d, struct device_attribute *a,
					const char *buf, size_t n)
{
	return store_timeout(buf, n, &dev_of(d)->startup_timeout_ms);
}

static ssize_t accept_timeout_ms_show(struct device *d, struct device_attribute *a, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(dev_of(d)->accept_timeout_ms));
}

static ssize_t accept_timeout_ms_store(struct device *d, struct device_attribute *a,
				       const char *buf, size_t n)
{
	return store_timeout(buf, n, &dev_of(d)->accept_timeout_ms);
}

static ssize_t close_timeout_ms_show(struct device *d, struct device_attribute *a, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(dev_of(d)->close_timeout_ms));
}

static ssize_t close_timeout_ms_store(struct device *d, struct device_attribute *a,
				      const char *buf, size_t n)
{
	return store_timeout(buf, n, &dev_of(d)->close_timeout_ms);
}

static ssize_t dead_peer_timeout_ms_show(struct device *d, struct device_attribute *a, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(dev_of(d)->dead_peer_timeout_ms));
}

static ssize_t dead_peer_timeout_ms_store(struct device *d, struct device_attribute *a,
					  const char *buf, size_t n)
{
	return store_ms(buf, n, &dev_of(d)->dead_peer_timeout_ms, WEFT_DEAD_MS_MIN);
}

static ssize_t rnr_timeout_ms_show(struct device *d, struct device_attribute *a, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(dev_of(d)->rnr_timeout_ms));
}

static ssize_t rnr_timeout_ms_store(struct device *d, struct device_attribute *a,
				    const char *buf, size_t n)
{
	return store_ms(buf, n, &dev_of(d)->rnr_timeout_ms, 0);
}

static DEVICE_ATTR_RW(crc);
static DEVICE_ATTR_RW(markers);
static DEVICE_ATTR_RW(large_fpdus);
static DEVICE_ATTR_RW(mpa_revision);
static DEVICE_ATTR_RW(extensions);
static DEVICE_ATTR_RW(rtr);
static DEVICE_ATTR_RW(bind_netdev);
static DEVICE_ATTR_RW(startup_timeout_ms);
static DEVICE_ATTR_RW(accept_timeout_ms);
static DEVICE_ATTR_RW(close_timeout_ms);
static DEVICE_ATTR_RW(dead_peer_timeout_ms);
static DEVICE_ATTR_RW(rnr_timeout_ms);

static struct attribute *weft_option_attrs[] = {
	&dev_attr_crc.attr,
	&dev_attr_markers.attr,
	&dev_attr_large_fpdus.attr,
	&dev_attr_mpa_revision.attr,
	&dev_attr_extensions.attr,
	&dev_attr_rtr.attr,
	&dev_attr_bind_netdev.attr,
	&dev_attr_startup_timeout_ms.attr,
	&dev_attr_accept_timeout_ms.attr,
	&dev_attr_close_timeout_ms.attr,
	&dev_attr_dead_peer_timeout_ms.attr,
	&dev_attr_rnr_timeout_ms.attr,
	NULL,
};

const struct attribute_group weft_options = {
	.name = "weft",
	.attrs = weft_option_attrs,
};
