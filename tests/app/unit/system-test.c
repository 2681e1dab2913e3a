// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The checks of --check-system, on made-up systems: folders in place of /proc and /sys.

#include "system/checks.h"

#include <glib/gstdio.h>
#include <gst/gst.h>
#include <string.h>

#define MOUNTS 1000
#define SYSCTL "sysctl -w "

static ProxyConfig *config; // a thousand cameras
static SystemNeeds *needs;

// ---- made-up systems ----

static void
put (const System *system, const gchar *path, const gchar *text)
{
  gchar *whole = g_strconcat (system->root, path, NULL), *folder = g_path_get_dirname (whole);

  g_assert_cmpint (g_mkdir_with_parents (folder, 0700), ==, 0);
  g_assert_true (g_file_set_contents (whole, text, -1, NULL));
  g_free (folder);
  g_free (whole);
}

static void
put_sysctl (const System *system, const gchar *key, const gchar *value)
{
  gchar *name = g_strdelimit (g_strdup (key), ".", '/'), *path;

  path = g_strconcat ("/proc/sys/", name, NULL);
  put (system, path, value);
  g_free (path);
  g_free (name);
}

static void
put_sysctls (const System *system, const gchar *value)
{
  static const gchar *const keys[] = { "net.core.rmem_max", "net.core.wmem_max",
    "net.core.rmem_default", "net.core.somaxconn", "net.ipv4.tcp_max_syn_backlog",
    "net.core.netdev_max_backlog", "net.core.netdev_budget", "net.ipv4.neigh.default.gc_thresh2",
    "net.ipv4.neigh.default.gc_thresh3", "vm.max_map_count", "kernel.threads-max", "kernel.pid_max",
    "fs.nr_open", "net.netfilter.nf_conntrack_max" };

  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    put_sysctl (system, keys[i], value);
}

static System *
empty_system (void)
{
  gchar *root = g_dir_make_tmp ("system-XXXXXX", NULL);
  System *system = system_new (root);

  g_free (root);
  return system;
}

// A system on which nothing binds.
static System *
good_system (void)
{
  System *system = empty_system ();

  put_sysctls (system, "1000000000\n");
  put_sysctl (system, "net.ipv4.ip_local_port_range", "1024\t65535\n");
  put_sysctl (system, "net.ipv4.udp_mem", "1\t2\t1000000000\n");
  put_sysctl (system, "net.netfilter.nf_conntrack_count", "7\n");
  put (system, "/proc/meminfo", "MemTotal: 9 kB\nMemAvailable:   100000000 kB\n");
  put (system, "/proc/net/snmp",
      "Udp: InDatagrams RcvbufErrors SndbufErrors\nUdp: 5 0 0\nUdpLite: RcvbufErrors\nUdpLite: "
      "9\n");
  put (system, "/proc/net/softnet_stat", "000fffff 00000000 00000001\n");
  put (system, "/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
  put (system, "/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet\n");
  system->udp_segment = system->udp_gro = TRUE;
  system->guards = (SandboxGuards) { 1, TRUE };
  return system;
}

static void
remove_tree (const gchar *path)
{
  GDir *dir = g_dir_open (path, 0, NULL);
  const gchar *name;

  while (dir && (name = g_dir_read_name (dir))) {
    gchar *child = g_build_filename (path, name, NULL);

    remove_tree (child);
    g_free (child);
  }
  g_clear_pointer (&dir, g_dir_close);
  g_remove (path);
}

static void
end (System *system)
{
  remove_tree (system->root);
  system_free (system);
}

// ---- findings ----

// Asserts that one finding alone is not good. `now`, if not NULL, gets a copy of its command.
static void
take_only (const System *system, FindingKind kind, const gchar *name, gchar **now)
{
  Report *report = checks_run (system, needs);
  guint n = 0;

  for (guint i = 0; i < report->findings->len; i++) {
    const Finding *finding = g_ptr_array_index (report->findings, i);

    if (finding->kind == FINDING_GOOD)
      continue;
    g_assert_cmpstr (finding->name, ==, name);
    g_assert_cmpint (finding->kind, ==, kind);
    g_assert_nonnull (finding->state);
    if (now)
      *now = g_strdup (finding->now);
    n++;
  }
  g_assert_cmpuint (n, ==, 1);
  g_assert_cmpint (report_binds (report), ==, kind == FINDING_BINDS);
  report_free (report);
}

static void
assert_good (const System *system)
{
  Report *report = checks_run (system, needs);

  for (guint i = 0; i < report->findings->len; i++) {
    const Finding *finding = g_ptr_array_index (report->findings, i);

    if (finding->kind != FINDING_GOOD)
      g_error ("%s: %s", finding->name, finding->state);
  }
  report_free (report);
}

// Sets what a command "sysctl -w KEY=VALUE" or "sysctl -w 'KEY=VALUE'" sets. Returns FALSE for
// another command.
static gboolean
obey (const System *system, const gchar *command)
{
  gchar *key, *value;

  if (!command || !g_str_has_prefix (command, SYSCTL))
    return FALSE;
  key = g_strdelimit (g_strdup (command + strlen (SYSCTL)), "'", ' ');
  value = strchr (key, '=');
  g_assert_nonnull (value);
  *value++ = '\0';
  put_sysctl (system, g_strstrip (key), g_strstrip (value));
  g_free (key);
  return TRUE;
}

// ---- tests ----

static void
a_sysctl_that_binds_is_named_and_its_command_mends_it (void)
{
  static const gchar *const cases[][2] = { { "net.core.rmem_max", "212992" },
    { "net.core.wmem_max", "212992" }, { "net.core.rmem_default", "4096" },
    { "net.core.somaxconn", "128" }, { "net.ipv4.tcp_max_syn_backlog", "256" },
    { "net.core.netdev_max_backlog", "1000" }, { "net.core.netdev_budget", "300" },
    { "net.ipv4.neigh.default.gc_thresh2", "512" }, { "net.ipv4.neigh.default.gc_thresh3", "1024" },
    { "vm.max_map_count", "500" }, { "kernel.threads-max", "30" }, { "kernel.pid_max", "30" },
    { "fs.nr_open", "1024" }, { "net.netfilter.nf_conntrack_max", "8192" },
    { "net.ipv4.ip_local_port_range", "60000\t61000" }, { "net.ipv4.udp_mem", "1 2 3" } };
  System *system = good_system ();

  assert_good (system);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gchar *now = NULL;

    put_sysctl (system, cases[i][0], cases[i][1]);
    take_only (system, FINDING_BINDS, cases[i][0], &now);
    g_assert_true (obey (system, now));
    assert_good (system);
    g_free (now);
  }
  end (system);
}

// As in a container, which does not see the two files.
static void
a_buffer_limit_without_a_file_is_found_by_trying (void)
{
  System *system = good_system ();
  gchar *path = g_build_filename (system->root, "/proc/sys/net/core/rmem_max", NULL);

  g_assert_cmpint (g_remove (path), ==, 0);
  take_only (system, FINDING_UNKNOWN, "net.core.rmem_max", NULL);
  system->receive_buffer = 212992;
  take_only (system, FINDING_BINDS, "net.core.rmem_max", NULL);
  system->receive_buffer = 4 << 20;
  assert_good (system);
  g_free (path);
  end (system);
}

static void
limits_of_the_process_bind (void)
{
  System *system = good_system ();

  system->files = needs->files;
  system->user_threads = needs->threads;
  assert_good (system);
  system->files--;
  take_only (system, FINDING_BINDS, "open files (RLIMIT_NOFILE)", NULL);
  system->files++;
  system->user_threads--;
  take_only (system, FINDING_BINDS, "threads of the user (RLIMIT_NPROC)", NULL);
  end (system);
}

static void
a_control_group_and_its_parents_limit_threads (void)
{
  const gchar *name = "threads of the control group (pids.max)";
  System *system = good_system ();
  gchar *now = NULL, *text;

  put (system, "/proc/self/cgroup", "0::/a.slice/b.service\n");
  put (system, "/sys/fs/cgroup/a.slice/b.service/pids.max", "max\n");
  put (system, "/sys/fs/cgroup/a.slice/b.service/pids.current", "3\n");
  assert_good (system);
  text = g_strdup_printf ("%" G_GUINT64_FORMAT "\n", needs->threads + 9);
  put (system, "/sys/fs/cgroup/a.slice/pids.max", text);
  put (system, "/sys/fs/cgroup/a.slice/pids.current", "9\n");
  assert_good (system);
  put (system, "/sys/fs/cgroup/a.slice/pids.current", "10\n");
  take_only (system, FINDING_BINDS, name, &now);
  g_assert_true (g_str_has_suffix (now, " >/sys/fs/cgroup/a.slice/pids.max"));
  // Version 1 has a hierarchy for each controller.
  put (system, "/proc/self/cgroup", "2:cpu:/x\n3:freezer,pids:/y\n0::/a.slice/b.service\n");
  assert_good (system);
  put (system, "/sys/fs/cgroup/pids/y/pids.max", "40\n");
  put (system, "/sys/fs/cgroup/pids/y/pids.current", "50\n");
  take_only (system, FINDING_BINDS, name, NULL);
  g_free (text);
  g_free (now);
  end (system);
}

static void
memory_binds_as_a_control_group_limits_it (void)
{
  System *system = good_system ();

  put (system, "/proc/self/cgroup", "0::/\n");
  put (system, "/sys/fs/cgroup/memory.max", "99000000000\n");
  put (system, "/sys/fs/cgroup/memory.current", "1000\n");
  assert_good (system);
  put (system, "/sys/fs/cgroup/memory.current", "98999999999\n");
  take_only (system, FINDING_BINDS, "memory", NULL);
  put (system, "/sys/fs/cgroup/memory.max", "max\n");
  put (system, "/proc/meminfo", "MemAvailable: 100000 kB\n");
  take_only (system, FINDING_BINDS, "memory", NULL);
  end (system);
}

static void
devices_that_can_do_more_bind (void)
{
  System *system = good_system ();
  SystemDevice *device = system_add_device (system, "eth7");
  gchar *now = NULL;

  assert_good (system);
  *device = (SystemDevice) { device->name, g_strdup ("mq"), 512, 4096, OFFLOAD_ON, OFFLOAD_NONE };
  take_only (system, FINDING_BINDS, "receive ring of eth7", &now);
  g_assert_cmpstr (now, ==, "ethtool -G eth7 rx 4096");
  g_free (now);
  device->rx_ring = device->rx_ring_max = 256;
  assert_good (system);
  device->gro = OFFLOAD_OFF;
  assert_good (system); // a bridge, or the like
  put (system, "/sys/class/net/eth7/device/vendor", "0x1af4\n");
  take_only (system, FINDING_BINDS, "GRO of eth7", NULL);
  device->gro = OFFLOAD_ON;
  device->udp_segmentation = OFFLOAD_OFF;
  take_only (system, FINDING_HINT, "UDP segmentation of eth7", NULL);
  device->udp_segmentation = OFFLOAD_ON;
  system->udp_gro = FALSE;
  take_only (system, FINDING_HINT, "UDP_SEGMENT and UDP_GRO of the kernel", NULL);
  end (system);
}

static void
the_kernel_path_needs_capabilities (void)
{
  System *system = good_system ();

  needs->clones = TRUE;
  take_only (system, FINDING_HINT, "kernel path", NULL);
  system->may_clone = TRUE;
  assert_good (system);
  needs->clones = FALSE;
  end (system);
}

static void
guards_of_workers_that_are_missing_are_named (void)
{
  System *system = good_system ();

  system->guards.landlock = 0;
  take_only (system, FINDING_HINT, "files of worker processes", NULL);
  system->guards = (SandboxGuards) { 1, FALSE };
  take_only (system, FINDING_HINT, "system calls of worker processes", NULL);
  end (system);
}

static void
a_slow_clock_and_slow_processors_bind (void)
{
  System *system = good_system ();

  put (system, "/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
  take_only (system, FINDING_BINDS, "clock source", NULL);
  put (system, "/sys/devices/system/clocksource/clocksource0/available_clocksource", "hpet\n");
  take_only (system, FINDING_HINT, "clock source", NULL);
  put (system, "/sys/devices/system/clocksource/clocksource0/current_clocksource", "kvm-clock\n");
  put (system, "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave\n");
  take_only (system, FINDING_BINDS, "governor of the processors", NULL);
  put (system, "/sys/devices/system/cpu/cpufreq/policy0/scaling_driver", "intel_pstate\n");
  assert_good (system);
  end (system);
}

static void
packets_dropped_so_far_are_hints (void)
{
  System *system = good_system ();

  put (system, "/proc/net/snmp", "Udp: RcvbufErrors SndbufErrors\nUdp: 3 0\n");
  take_only (
      system, FINDING_HINT, "received UDP packets that found a full buffer (RcvbufErrors)", NULL);
  put (system, "/proc/net/snmp", "Udp: RcvbufErrors SndbufErrors\nUdp: 0 3\n");
  take_only (
      system, FINDING_HINT, "sent UDP packets that found a full buffer (SndbufErrors)", NULL);
  put (system, "/proc/net/snmp", "Udp: RcvbufErrors\n");
  put (system, "/proc/net/softnet_stat", "00000fff 00000000 00000000\n00000fff 00000002 0\n");
  take_only (system, FINDING_HINT,
      "received packets that found no processor (softnet_stat, dropped)", NULL);
  put (system, "/proc/net/softnet_stat", "00000fff 00000000 00000002\n");
  take_only (system, FINDING_HINT,
      "passes of the network that ended early (softnet_stat, squeezed)", NULL);
  end (system);
}

// Without files, and with folders and junk in their places.
static void
what_cannot_be_read_is_named_and_does_not_bind (void)
{
  System *system = empty_system (), *junk = good_system ();
  Report *report = checks_run (system, needs);
  gchar *path = g_build_filename (junk->root, "/proc/meminfo", NULL), *text;

  g_assert_false (report_binds (report));
  text = report_dup_text (report);
  g_assert_nonnull (strstr (text, "\nCannot be read here; "));
  g_assert_nonnull (strstr (text, "\n  net.core.somaxconn: "));
  g_assert_nonnull (strstr (text, "\n  clock source: "));
  g_assert_null (strstr (text, "\n  net.netfilter")); // the module is not loaded
  report_free (report);
  g_free (text);

  g_assert_cmpint (g_remove (path), ==, 0);
  g_assert_cmpint (g_mkdir (path, 0700), ==, 0);
  take_only (junk, FINDING_UNKNOWN, "memory", NULL);
  put_sysctls (junk, "-5");
  put (junk, "/proc/self/cgroup", "x\n:::\n0::/../..\n0:pids\n");
  put (junk, "/proc/net/snmp", "Udp: \nUdp: 1 2 3 4\nUdp:\n\n");
  put (junk, "/proc/net/softnet_stat", "");
  put_sysctl (junk, "net.ipv4.udp_mem", "1 2");
  put_sysctl (junk, "net.ipv4.ip_local_port_range", "99999999999999999999999 x");
  report = checks_run (junk, needs);
  g_assert_false (report_binds (report));
  report_free (report);
  g_free (path);
  end (junk);
  end (system);
}

static void
the_limits_that_bind_come_first (void)
{
  System *system = good_system ();
  Report *report;
  gchar *text;

  put_sysctl (system, "fs.nr_open", "10\n");
  put (system, "/proc/net/snmp", "Udp: RcvbufErrors\nUdp: 3\n");
  report = checks_run (system, needs);
  text = report_dup_text (report);
  g_assert_true (
      g_str_has_prefix (text, "\n1 limit is too low. As root:\n  fs.nr_open: is 10, should be"));
  g_assert_true (strstr (text, "\nHints:\n") < strstr (text, "\nGood:\n"));
  g_free (text);
  report_free (report);
  end (system);
}

// ---- the example file ----

// Returns {key: value} of data/90-rtsp-proxy.conf, with the settings that are commented out.
static GHashTable *
read_example (void)
{
  GHashTable *table = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  gchar *path = g_build_filename (g_getenv ("WEIR_DATA"), "../../data/90-rtsp-proxy.conf", NULL);
  GRegex *setting =
      g_regex_new ("^[#-]?([a-z][a-z0-9_.-]+) = ([0-9 ]+)$", G_REGEX_MULTILINE, 0, NULL);
  GMatchInfo *match;
  gchar *text;

  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  for (g_regex_match (setting, text, 0, &match); g_match_info_matches (match);
      g_match_info_next (match, NULL))
    g_hash_table_insert (table, g_match_info_fetch (match, 1), g_match_info_fetch (match, 2));
  g_match_info_unref (match);
  g_regex_unref (setting);
  g_free (text);
  g_free (path);
  return table;
}

static guint64
last_number (const gchar *text)
{
  const gchar *space = strrchr (text, ' ');

  return g_ascii_strtoull (space ? space + 1 : text, NULL, 10);
}

static void
the_example_file_has_all_sysctls_and_suffices_for_its_configuration (void)
{
  System *system = good_system ();
  GHashTable *example = read_example ();
  GHashTableIter each;
  gpointer key, value;
  Report *report;
  guint n = 0;

  put_sysctls (system, "1");
  put_sysctl (system, "net.ipv4.ip_local_port_range", "1 2");
  put_sysctl (system, "net.ipv4.udp_mem", "1 2 3");
  report = checks_run (system, needs);
  for (guint i = 0; i < report->findings->len; i++) {
    const Finding *finding = g_ptr_array_index (report->findings, i);

    if (finding->kind != FINDING_BINDS)
      continue;
    value = g_hash_table_lookup (example, finding->name);
    if (!value)
      g_error ("data/90-rtsp-proxy.conf lacks %s", finding->name);
    g_assert_cmpuint (last_number (value), >=, last_number (strchr (finding->now, '=') + 1));
    n++;
  }
  g_assert_cmpuint (n, ==, g_hash_table_size (example));
  g_hash_table_iter_init (&each, example);
  while (g_hash_table_iter_next (&each, &key, &value))
    put_sysctl (system, key, value);
  assert_good (system);
  g_hash_table_unref (example);
  report_free (report);
  end (system);
}

// ---- needs ----

static void
an_expectation_is_a_rate_and_perhaps_readers (void)
{
  static const gchar *const wrong[] = { "", "x", "-1M", "8 M", "8MM", "8M,", "8M,x", "8M,-1",
    "8M,1000001", "999", "11G", "8M 5", ",5", "99999999999999999999999G", "8Mbit" };
  Expectation expectation = { 0 };

  g_assert_true (expectation_parse ("8M", &expectation));
  g_assert_cmpuint (expectation.rate, ==, 8000000);
  g_assert_cmpuint (expectation.readers, ==, EXPECT_DEFAULT);
  g_assert_true (expectation_parse ("12k,0", &expectation));
  g_assert_cmpuint (expectation.rate, ==, 12000);
  g_assert_cmpuint (expectation.readers, ==, 0);
  g_assert_true (expectation_parse ("10G,1000000", &expectation));
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++) {
    if (expectation_parse (wrong[i], &expectation))
      g_error ("accepted: %s", wrong[i]);
  }
  g_assert_cmpuint (expectation.readers, ==, 1000000);
}

static SystemNeeds *
need (const gchar *uri, guint64 rate, guint64 readers)
{
  ProxyConfig *one = proxy_config_new ();
  gchar *mount = g_strconcat ("/a=", uri, NULL);
  gboolean secret = FALSE;
  SystemNeeds *result;

  g_assert_true (proxy_config_add_mount (one, mount, &secret, NULL));
  result = system_needs_new (one, &(Expectation) { rate, readers });
  g_free (mount);
  proxy_config_free (one);
  return result;
}

static void
needs_grow_with_mounts_rates_and_readers (void)
{
  SystemNeeds *slow = need ("rtsp://192.0.2.7/a", 1000000, 0);
  SystemNeeds *fast = need ("rtsp://192.0.2.7/a", 50000000, 300);
  SystemNeeds *datagrams = need ("udp://127.0.0.1:5000", 1000000, 0);
  SystemNeeds *file = need ("file:///proc/self/exe", 1000000, 0);

  g_assert_cmpuint (slow->receive_buffer, ==, 512 << 10);
  g_assert_cmpuint (fast->receive_buffer, >, 50000000 / 8 / 2);
  g_assert_cmpuint (datagrams->receive_buffer, ==, 4 << 20);
  g_assert_cmpuint (file->receive_buffer, ==, 0);
  g_assert_cmpuint (file->packets_per_s, ==, 0);
  g_assert_cmpuint (fast->files, ==, slow->files + 300);
  g_assert_cmpuint (fast->hosts, ==, 301);
  g_assert_cmpuint (file->hosts, ==, 0);
  g_assert_cmpuint (fast->flows, ==, slow->flows + 5 * 300);
  g_assert_cmpuint (needs->files, >, 900 * (slow->files - 64 - 4 * g_get_num_processors ()));
  g_assert_cmpuint (needs->readers, ==, 2000);
  system_needs_free (slow);
  system_needs_free (fast);
  system_needs_free (datagrams);
  system_needs_free (file);
}

static void
make_config (void)
{
  gboolean secret = FALSE;

  config = proxy_config_new ();
  for (guint i = 0; i < MOUNTS; i++) {
    gchar *mount = g_strdup_printf ("/c%u=rtsp://10.0.%u.%u/a", i, i / 250, i % 250 + 1);

    g_assert_true (proxy_config_add_mount (config, mount, &secret, NULL));
    g_free (mount);
  }
  needs = system_needs_new (config, &(Expectation) { EXPECT_RATE, EXPECT_DEFAULT });
}

int
main (int argc, char **argv)
{
  int status;

  gst_init (NULL, NULL);
  g_test_init (&argc, &argv, NULL);
  make_config ();
#define ADD(name, function) g_test_add_func ("/system/" name, function)
  ADD ("a-sysctl-that-binds-is-named-and-its-command-mends-it",
      a_sysctl_that_binds_is_named_and_its_command_mends_it);
  ADD ("a-buffer-limit-without-a-file-is-found-by-trying",
      a_buffer_limit_without_a_file_is_found_by_trying);
  ADD ("limits-of-the-process-bind", limits_of_the_process_bind);
  ADD ("a-control-group-and-its-parents-limit-threads",
      a_control_group_and_its_parents_limit_threads);
  ADD ("memory-binds-as-a-control-group-limits-it", memory_binds_as_a_control_group_limits_it);
  ADD ("devices-that-can-do-more-bind", devices_that_can_do_more_bind);
  ADD ("the-kernel-path-needs-capabilities", the_kernel_path_needs_capabilities);
  ADD (
      "guards-of-workers-that-are-missing-are-named", guards_of_workers_that_are_missing_are_named);
  ADD ("a-slow-clock-and-slow-processors-bind", a_slow_clock_and_slow_processors_bind);
  ADD ("packets-dropped-so-far-are-hints", packets_dropped_so_far_are_hints);
  ADD ("what-cannot-be-read-is-named-and-does-not-bind",
      what_cannot_be_read_is_named_and_does_not_bind);
  ADD ("the-limits-that-bind-come-first", the_limits_that_bind_come_first);
  ADD ("the-example-file-has-all-sysctls-and-suffices-for-its-configuration",
      the_example_file_has_all_sysctls_and_suffices_for_its_configuration);
  ADD (
      "an-expectation-is-a-rate-and-perhaps-readers", an_expectation_is_a_rate_and_perhaps_readers);
  ADD ("needs-grow-with-mounts-rates-and-readers", needs_grow_with_mounts_rates_and_readers);
  status = g_test_run ();
  system_needs_free (needs);
  proxy_config_free (config);
  return status;
}
