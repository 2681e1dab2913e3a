// SPDX-License-Identifier: LGPL-2.1-or-later

// Limits of the network that are not one number, and packets that the system has dropped so far.

#include "system/checks.h"

#include <gio/gio.h>
#include <unistd.h>

#define NUMBER "%" G_GUINT64_FORMAT
#define PAGES_STEP 1024

// ---- ports ----

static void
check_ports (const System *system, const SystemNeeds *needs, Report *report)
{
  const gchar *key = "net.ipv4.ip_local_port_range";
  // The proxy tries pairs of ports at random, so that half of them must be free.
  guint64 range[2], wanted = 2 * needs->ports;
  GError *error = NULL;
  gchar *is, *needed;

  if (!system_read_numbers (system, "/proc/sys/net/ipv4/ip_local_port_range", range, 2, &error)) {
    report_unknown (report, key, error);
    return;
  }
  if (range[1] - range[0] + 1 >= wanted) {
    report_good (
        report, key, NUMBER " ports, at least " NUMBER " needed", range[1] - range[0] + 1, wanted);
    return;
  }
  is = g_strdup_printf (NUMBER " ports", range[1] - range[0] + 1);
  needed = g_strdup_printf (NUMBER " ports", wanted);
  checks_sysctl_binds (report, key, is, needed,
      "Each track over UDP takes two ports for its upstream and two for its readers; half of the "
      "range should be free.",
      wanted > 65536 - 16384 ? "1024 65535" : "16384 65535");
  g_free (needed);
  g_free (is);
}

// ---- memory of UDP ----

static void
check_udp_memory (const System *system, const SystemNeeds *needs, Report *report)
{
  const gchar *key = "net.ipv4.udp_mem";
  guint64 needed_pages = needs->udp_bytes / (guint64) sysconf (_SC_PAGESIZE) + 1;
  guint64 pages[3], wanted = (needed_pages / PAGES_STEP + 1) * PAGES_STEP;
  GError *error = NULL;
  gchar *is, *needed, *value;

  if (!system_read_numbers (system, "/proc/sys/net/ipv4/udp_mem", pages, 3, &error)) {
    report_unknown (report, key, error);
    return;
  }
  if (pages[2] >= needed_pages) {
    report_good (report, key, NUMBER " pages, at least " NUMBER " needed", pages[2], needed_pages);
    return;
  }
  is = g_strdup_printf (NUMBER " pages in its third number", pages[2]);
  needed = g_strdup_printf (NUMBER, needed_pages);
  value = g_strdup_printf (NUMBER " " NUMBER " " NUMBER, wanted / 2, wanted / 4 * 3, wanted);
  checks_sysctl_binds (report, key, is, needed,
      "The receive buffers of all sockets share it; a second of all streams over UDP shall fit.",
      value);
  g_free (value);
  g_free (needed);
  g_free (is);
}

// ---- connection tracking ----

// Says nothing if the system does not track connections.
static void
check_flows (const System *system, const SystemNeeds *needs, Report *report)
{
  const gchar *key = "net.netfilter.nf_conntrack_max";
  guint64 most, used = 0, wanted = needs->flows, value = 65536;
  GError *error = NULL;
  g_autofree gchar *is = NULL, *needed = NULL, *text = NULL;

  if (!system_read_numbers (system, "/proc/sys/net/netfilter/nf_conntrack_max", &most, 1, &error)) {
    if (g_error_matches (error, G_FILE_ERROR, G_FILE_ERROR_NOENT))
      g_error_free (error);
    else
      report_unknown (report, key, error);
    return;
  }
  system_read_numbers (system, "/proc/sys/net/netfilter/nf_conntrack_count", &used, 1, NULL);
  if (most >= wanted + used) {
    report_good (report, key, NUMBER ", at least " NUMBER " needed", most, wanted + used);
    return;
  }
  while (value < wanted + used)
    value *= 2;
  is = g_strdup_printf (NUMBER ", of which " NUMBER " are in use", most, used);
  needed = g_strdup_printf (NUMBER, wanted + used);
  text = g_strdup_printf (NUMBER, value);
  checks_sysctl_binds (report, key, is, needed,
      "The firewall follows each connection and each pair of UDP ports; it drops packets of "
      "others.",
      text);
}

// ---- drops ----

// Returns the value under `name` in a file of pairs of lines, names and values, such as
// /proc/net/snmp.
static guint64
find_count (const gchar *text, const gchar *protocol, const gchar *name)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1), names = NULL;
  guint64 value = 0;

  for (gchar **line = lines; *line; line++) {
    GStrv words = g_strsplit (*line, " ", -1);

    if (!*words || !g_str_equal (*words, protocol)) {
      g_strfreev (words);
    } else if (!names) {
      names = words;
    } else {
      for (guint i = 0; names[i] && words[i]; i++) {
        if (g_str_equal (names[i], name))
          value = g_ascii_strtoull (words[i], NULL, 10);
      }
      g_strfreev (words);
    }
  }
  return value;
}

static void
add_drops (Report *report, const gchar *name, guint64 n, const gchar *why, const gchar *now)
{
  if (n == 0)
    report_good (report, name, "none, or hardly any");
  else
    report_add (report, &(Finding) { FINDING_HINT, g_strdup (name),
                            g_strdup_printf (NUMBER " since the system started", n), g_strdup (why),
                            g_strdup (now), NULL });
}

static void
check_udp_drops (const System *system, Report *report)
{
  GError *error = NULL;
  gchar *text = system_read (system, "/proc/net/snmp", &error);

  if (!text) {
    report_unknown (report, "UDP packets without room", error);
    return;
  }
  add_drops (report, "received UDP packets that found a full buffer (RcvbufErrors)",
      find_count (text, "Udp:", "RcvbufErrors"),
      "Some program reads too slowly; weir_ingest_overflow_packets_total says whether a mount lost "
      "them.",
      "grep ^Udp: /proc/net/snmp  # whether it still grows");
  add_drops (report, "sent UDP packets that found a full buffer (SndbufErrors)",
      find_count (text, "Udp:", "SndbufErrors"),
      "A line is slower than the streams on it; weir_socket_lost_packets_total says whether a "
      "mount "
      "lost them.",
      "grep ^Udp: /proc/net/snmp  # whether it still grows");
  g_free (text);
}

// Each line of the file is a processor: packets, dropped, passes that ended early, ... (hex).
static void
check_processors (const System *system, Report *report)
{
  GError *error = NULL;
  gchar *text = system_read (system, "/proc/net/softnet_stat", &error);
  GStrv lines = text ? g_strsplit (text, "\n", -1) : NULL;
  guint64 packets = 0, dropped = 0, squeezed = 0;

  if (!text) {
    report_unknown (report, "packets that found no processor", error);
    return;
  }
  for (gchar **line = lines; *line; line++) {
    gchar *end = *line;

    packets += g_ascii_strtoull (end, &end, 16);
    dropped += g_ascii_strtoull (end, &end, 16);
    squeezed += g_ascii_strtoull (end, &end, 16);
  }
  add_drops (report, "received packets that found no processor (softnet_stat, dropped)", dropped,
      "A burst was larger than the queue of a processor; if it grows, double "
      "net.core.netdev_max_backlog.",
      "cat /proc/net/softnet_stat  # the second number of each processor");
  // A few are usual: one in 10,000 packets.
  add_drops (report, "passes of the network that ended early (softnet_stat, squeezed)",
      squeezed > packets / 10000 ? squeezed : 0,
      "Packets wait longer in the device; if it grows, double net.core.netdev_budget.",
      "cat /proc/net/softnet_stat  # the third number of each processor");
  g_strfreev (lines);
  g_free (text);
}

void
checks_network (const System *system, const SystemNeeds *needs, Report *report)
{
  check_ports (system, needs, report);
  check_udp_memory (system, needs, report);
  check_flows (system, needs, report);
  check_udp_drops (system, report);
  check_processors (system, report);
}
