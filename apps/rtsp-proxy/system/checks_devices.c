// SPDX-License-Identifier: LGPL-2.1-or-later

// Network devices and the support of the kernel for them.

#include "system/checks.h"

#define MS_OF_STALL 10 // for so long packets may have to wait in the device
#define RING_LEAST 256

gchar *
checks_dup_at_start (const gchar *command)
{
  return g_strdup_printf ("ExecStartPre=+%s" CHECKS_IN_UNIT, command);
}

// Adds a finding about a device, with a command that sets it.
static void
add_setting (Report *report, FindingKind kind, const SystemDevice *device, const gchar *what,
    gchar *state, const gchar *why, gchar *command)
{
  report_add (report, &(Finding) { kind, g_strdup_printf ("%s of %s", what, device->name), state,
                          g_strdup (why), command, checks_dup_at_start (command) });
}

static void
check_ring (const SystemDevice *device, const SystemNeeds *needs, Report *report)
{
  guint64 wanted = needs->packets_per_s * MS_OF_STALL / 1000;
  guint size = RING_LEAST;
  g_autofree gchar *name = g_strdup_printf ("receive ring of %s", device->name);

  while (size < wanted && size < device->rx_ring_max)
    size *= 2;
  size = MIN (size, device->rx_ring_max);
  if (device->rx_ring_max == 0)
    report_good (report, name, "the device has none that can be set");
  else if (device->rx_ring >= size)
    report_good (
        report, name, "%u of %u packets, %u needed", device->rx_ring, device->rx_ring_max, size);
  else
    add_setting (report, FINDING_BINDS, device, "receive ring",
        g_strdup_printf ("is %u, should be %u", device->rx_ring, size),
        "The device drops packets that find the ring full.",
        g_strdup_printf ("ethtool -G %s rx %u", device->name, size));
}

// A bridge, a tunnel or the like has no device of its own.
static gboolean
is_hardware (const System *system, const SystemDevice *device)
{
  g_autofree gchar *path =
      g_strconcat (system->root, "/sys/class/net/", device->name, "/device", NULL);

  return g_file_test (path, G_FILE_TEST_EXISTS);
}

static void
check_gro (const System *system, const SystemDevice *device, Report *report)
{
  g_autofree gchar *name = g_strdup_printf ("GRO of %s", device->name);

  if (device->gro == OFFLOAD_OFF && is_hardware (system, device))
    add_setting (report, FINDING_BINDS, device, "GRO", g_strdup ("is off, should be on"),
        "The kernel merges received packets, so that receiving takes less of a processor.",
        g_strdup_printf ("ethtool -K %s gro on", device->name));
  else if (device->gro == OFFLOAD_OFF)
    report_good (report, name, "off, as usual for a device that is not hardware");
  else if (device->gro == OFFLOAD_ON)
    report_good (report, name, "on");
  else
    report_good (report, name, "the device does not say");
}

// Without it the kernel cuts, just before the device, which costs little more.
static void
check_segmentation (const SystemDevice *device, const SystemNeeds *needs, Report *report)
{
  g_autofree gchar *name = g_strdup_printf ("UDP segmentation of %s", device->name);

  if (device->udp_segmentation == OFFLOAD_OFF)
    add_setting (report, FINDING_HINT, device, "UDP segmentation", g_strdup ("is off, can be on"),
        "The device cuts what is sent into packets, in place of the processor.",
        g_strdup_printf ("ethtool -K %s tx-udp-segmentation on", device->name));
  else if (device->udp_segmentation == OFFLOAD_ON)
    report_good (report, name, "on");
  else
    report_good (report, name, "not by the device; the kernel cuts just before it, which is fast%s",
        needs->clones ? ", but kernel: auto makes no clones over it" : "");
}

static void
check_clones (const System *system, Report *report)
{
  if (system->may_clone)
    report_good (report, "kernel path", "this process has CAP_BPF and CAP_NET_ADMIN");
  else
    report_add (report,
        &(Finding) { FINDING_HINT, g_strdup ("kernel path"),
            g_strdup ("needs CAP_BPF and CAP_NET_ADMIN, which this process lacks"),
            g_strdup (
                "Without them, the proxy does not start with kernel: on, and serves readers by "
                "sends with kernel: auto."),
            NULL,
            g_strdup ("CapabilityBoundingSet=, AmbientCapabilities= and SystemCallFilter= as in "
                      "docs/kernel.md" CHECKS_IN_UNIT) });
}

// Only with max-pacing-rate does the proxy set a rate of sending for the kernel.
static void
check_queue (const SystemDevice *device, Report *report)
{
  g_autofree gchar *name = g_strdup_printf ("queue of %s", device->name);

  if (!device->qdisc)
    report_good (report, name, "not known; the proxy needs no special one");
  else
    report_good (report, name, "%s%s", device->qdisc,
        g_str_equal (device->qdisc, "fq")
            ? ""
            : "; only the key max-pacing-rate needs fq, for readers over UDP");
}

void
checks_devices (const System *system, const SystemNeeds *needs, Report *report)
{
  if (!system->udp_segment || !system->udp_gro)
    report_add (report,
        &(Finding) { FINDING_HINT, g_strdup ("UDP_SEGMENT and UDP_GRO of the kernel"),
            g_strdup ("are missing"),
            g_strdup ("Packets are sent and received one by one, which costs several times as "
                      "much."),
            NULL, g_strdup ("Linux 5.0 or later") });
  else
    report_good (report, "UDP_SEGMENT and UDP_GRO of the kernel", "present");
  if (needs->clones)
    check_clones (system, report);
  for (guint i = 0; i < system->devices->len; i++) {
    const SystemDevice *device = g_ptr_array_index (system->devices, i);

    check_ring (device, needs, report);
    check_gro (system, device, report);
    check_segmentation (device, needs, report);
    check_queue (device, report);
  }
}
