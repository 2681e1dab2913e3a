// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/check_system.h"

#include "system/checks.h"
#include "system/probe.h"
#include "text/config_error.h"

#define NUMBER "%" G_GUINT64_FORMAT

// Returns the first paragraph: what the checks assume.
static gchar *
dup_assumptions (const SystemNeeds *needs)
{
  return g_strdup_printf (
      "Checked for " NUMBER
      " mount%s of %g Mb/s, each with a video and a sound track, and for " NUMBER
      " readers;\nto change them: --expect RATE,READERS. The limits of processes are those of this "
      "process.\n",
      needs->mounts, needs->mounts == 1 ? "" : "s", (gdouble) needs->rate / 1e6, needs->readers);
}

gchar *
check_system (const ProxyConfig *config, const gchar *expect, gboolean *binds, GError **error)
{
  Expectation expectation = { EXPECT_RATE, EXPECT_DEFAULT };
  g_autofree gchar *assumptions = NULL, *findings = NULL;
  gchar *text;
  SystemNeeds *needs;
  System *system;
  Report *report;

  if (expect && !expectation_parse (expect, &expectation)) {
    g_set_error (error, CONFIG_ERROR, CONFIG_ERROR_VALUE,
        "--expect: \"%s\" is not RATE or RATE,READERS: a bit rate from 1k to 10G, such as 8M, and "
        "a number up to 1000000, such as 8M,500",
        expect);
    return NULL;
  }
  needs = system_needs_new (config, &expectation);
  system = probe_system ();
  report = checks_run (system, needs);
  assumptions = dup_assumptions (needs);
  findings = report_dup_text (report);
  text = g_strconcat (assumptions, findings, NULL);
  *binds = report_binds (report);
  report_free (report);
  system_free (system);
  system_needs_free (needs);
  return text;
}
