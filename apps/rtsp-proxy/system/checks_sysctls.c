// SPDX-License-Identifier: LGPL-2.1-or-later

// Sysctls that are one number, which must not be smaller than what is needed.

#include "system/checks.h"

#include <gio/gio.h>
#include <string.h>

#define MS_OF_STALL 10 // for so long a processor may leave packets waiting: a tick of the kernel
#define MS_OF_PASS 2

// Return how large the value must be, 0 if nothing is needed.
static guint64
packets_in (const SystemNeeds *needs, guint64 ms)
{
  return needs->packets_per_s * ms / 1000 + 1;
}

static guint64
need_receive_buffer (const SystemNeeds *needs)
{
  return needs->receive_buffer;
}

static guint64
need_send_buffer (const SystemNeeds *needs)
{
  return needs->send_buffer;
}

static guint64
need_default_buffer (const SystemNeeds *needs)
{
  return needs->default_buffer;
}

static guint64
need_backlog (const SystemNeeds *needs)
{
  return needs->backlog;
}

static guint64
need_device_backlog (const SystemNeeds *needs)
{
  return packets_in (needs, MS_OF_STALL);
}

static guint64
need_budget (const SystemNeeds *needs)
{
  return packets_in (needs, MS_OF_PASS);
}

static guint64
need_hosts (const SystemNeeds *needs)
{
  return needs->hosts;
}

static guint64
need_most_hosts (const SystemNeeds *needs)
{
  return 2 * needs->hosts;
}

static guint64
need_maps (const SystemNeeds *needs)
{
  return needs->maps;
}

static guint64
need_threads (const SystemNeeds *needs)
{
  return needs->threads;
}

static guint64
need_files (const SystemNeeds *needs)
{
  return needs->files;
}

static const struct {
  const gchar *key;
  guint64 (*need) (const SystemNeeds *needs);
  const gchar *why;
} sysctls[] = {
  { "net.core.rmem_max", need_receive_buffer,
      "Without CAP_NET_ADMIN, the socket of an upstream gets no larger buffer; a full one loses "
      "packets." },
  { "net.core.wmem_max", need_send_buffer,
      "Without CAP_NET_ADMIN, the socket to a mount's readers gets no larger buffer; a burst fills "
      "it." },
  { "net.core.rmem_default", need_default_buffer,
      "The receiver reports of all readers of a mount wait in a buffer of this size." },
  { "net.core.somaxconn", need_backlog,
      "At most this many connections of new readers wait to be accepted." },
  { "net.ipv4.tcp_max_syn_backlog", need_backlog,
      "At most this many connections of new readers wait for the end of their handshake." },
  { "net.core.netdev_max_backlog", need_device_backlog,
      "Each processor queues at most this many received packets; those of 10 ms should fit." },
  { "net.core.netdev_budget", need_budget,
      "The kernel takes at most this many packets in one pass; those of 2 ms should fit." },
  { "net.ipv4.neigh.default.gc_thresh2", need_hosts,
      "If the local network has more hosts, the kernel forgets their addresses and asks again." },
  { "net.ipv4.neigh.default.gc_thresh3", need_most_hosts,
      "If the local network has more hosts, the kernel does not reach all of them." },
  { "vm.max_map_count", need_maps,
      "A thread takes two mappings of memory, and each 4 MiB of a window on a disk take one." },
  { "kernel.threads-max", need_threads, "The system runs at most this many threads." },
  { "kernel.pid_max", need_threads, "The system numbers at most this many threads." },
  { "fs.nr_open", need_files, "The limit of open files cannot be raised further." },
};

// ---- the check ----

static guint64
round_up (guint64 value)
{
  guint64 power = 1;

  while (power < value)
    power <<= 1;
  return power;
}

void
checks_sysctl_binds (Report *report, const gchar *key, const gchar *is, const gchar *needed,
    const gchar *why, const gchar *value)
{
  report_add (
      report, &(Finding) { FINDING_BINDS, g_strdup (key),
                  g_strdup_printf ("is %s, should be at least %s", is, needed), g_strdup (why),
                  g_strdup_printf (
                      strchr (value, ' ') ? "sysctl -w '%s=%s'" : "sysctl -w %s=%s", key, value),
                  g_strdup_printf ("echo '%s = %s' >>" CHECKS_SYSCTL_FILE, key, value) });
}

static void
compare (Report *report, guint i, guint64 is, guint64 needed)
{
  g_autofree gchar *has = NULL, *should = NULL, *value = NULL;

  if (is >= needed) {
    report_good (report, sysctls[i].key,
        "%" G_GUINT64_FORMAT ", at least %" G_GUINT64_FORMAT " needed", is, needed);
    return;
  }
  has = g_strdup_printf ("%" G_GUINT64_FORMAT, is);
  should = g_strdup_printf ("%" G_GUINT64_FORMAT, needed);
  value = g_strdup_printf ("%" G_GUINT64_FORMAT, round_up (needed));
  checks_sysctl_binds (report, sysctls[i].key, has, should, sysctls[i].why, value);
}

// A container may not see the files of these two, but a socket tells the value.
static guint64
found_by_trying (const System *system, const gchar *key)
{
  if (g_str_equal (key, "net.core.rmem_max"))
    return system->receive_buffer;
  if (g_str_equal (key, "net.core.wmem_max"))
    return system->send_buffer;
  return 0;
}

static gchar *
dup_path (const gchar *key)
{
  g_autofree gchar *name = g_strdelimit (g_strdup (key), ".", '/');

  return g_strconcat ("/proc/sys/", name, NULL);
}

void
checks_sysctls (const System *system, const SystemNeeds *needs, Report *report)
{
  for (guint i = 0; i < G_N_ELEMENTS (sysctls); i++) {
    g_autofree gchar *path = dup_path (sysctls[i].key);
    GError *error = NULL;
    guint64 is = 0;

    if (!system_read_numbers (system, path, &is, 1, &error))
      is = found_by_trying (system, sysctls[i].key);
    if (error && is > 0)
      g_clear_error (&error);
    if (error)
      report_unknown (report, sysctls[i].key, error);
    else
      compare (report, i, is, sysctls[i].need (needs));
  }
}
