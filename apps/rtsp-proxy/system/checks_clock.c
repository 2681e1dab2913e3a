// SPDX-License-Identifier: LGPL-2.1-or-later

// The clock and the frequency of the processors.

#include "system/checks.h"

#include <gio/gio.h>
#include <string.h>

#define SOURCES "/sys/devices/system/clocksource/clocksource0/"
#define POLICIES "/sys/devices/system/cpu/cpufreq"

static void
check_source (const System *system, Report *report)
{
  static const gchar *const slow[] = { "hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit",
    NULL };
  GError *error = NULL;
  g_autofree gchar *source = system_read (system, SOURCES "current_clocksource", &error);
  g_autofree gchar *others = system_read (system, SOURCES "available_clocksource", NULL);
  gboolean tsc = others && strstr (others, "tsc");

  if (!source)
    report_unknown (report, "clock source", error);
  else if (!g_strv_contains (slow, source))
    report_good (report, "clock source", "%s", source);
  else
    report_add (report,
        &(Finding) { tsc ? FINDING_BINDS : FINDING_HINT, g_strdup ("clock source"),
            g_strdup_printf ("is %s, should be tsc", source),
            g_strdup ("The proxy reads the clock many thousand times a second, and each reading of "
                      "this one takes about 1 us."),
            tsc ? g_strdup ("echo tsc >" SOURCES "current_clocksource") : NULL,
            g_strdup ("the kernel's parameter clocksource=tsc, with tsc=reliable if the kernel "
                      "does not trust it") });
}

// In these drivers "powersave" follows the load.
static gboolean
is_dynamic (const gchar *driver)
{
  return driver
         && (g_str_equal (driver, "intel_pstate") || g_str_has_prefix (driver, "amd-pstate-epp")
             || g_str_equal (driver, "amd_pstate_epp"));
}

// Reads a file of a policy of the processors' frequency.
static gchar *
read_policy (const System *system, const gchar *policy, const gchar *file, GError **error)
{
  g_autofree gchar *path = g_build_filename (POLICIES, policy, file, NULL);

  return system_read (system, path, error);
}

static void
add_governor (Report *report, const gchar *governor, const gchar *driver)
{
  static const gchar command[] =
      "sh -c 'echo performance | tee " POLICIES "/policy*/scaling_governor'";

  if (g_str_equal (governor, "powersave") && !is_dynamic (driver))
    report_add (report, &(Finding) { FINDING_BINDS, g_strdup ("governor of the processors"),
                            g_strdup ("is powersave, should be performance or schedutil"),
                            g_strdup ("The processors stay at their lowest frequency."),
                            g_strdup (command), checks_dup_at_start (command) });
  else
    report_good (report, "governor of the processors", "%s", governor);
}

// Says nothing if the system does not set frequencies, as in most virtual machines.
static void
check_governor (const System *system, Report *report)
{
  g_autofree gchar *folder = g_strconcat (system->root, POLICIES, NULL);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const gchar *policy = dir ? g_dir_read_name (dir) : NULL;
  GError *error = NULL;
  g_autofree gchar *governor =
      policy ? read_policy (system, policy, "scaling_governor", &error) : NULL;
  g_autofree gchar *driver = governor ? read_policy (system, policy, "scaling_driver", NULL) : NULL;

  if (governor)
    add_governor (report, governor, driver);
  else if (error)
    report_unknown (report, "governor of the processors", error);
}

void
checks_clock (const System *system, const SystemNeeds *needs, Report *report)
{
  check_source (system, report);
  check_governor (system, report);
}
