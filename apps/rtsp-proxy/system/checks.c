// SPDX-License-Identifier: LGPL-2.1-or-later
#include "system/checks.h"

Report *
checks_run (const System *system, const SystemNeeds *needs)
{
  Report *report = report_new ();

  checks_process (system, needs, report);
  checks_folders (system, needs, report);
  checks_sysctls (system, needs, report);
  checks_network (system, needs, report);
  checks_devices (system, needs, report);
  checks_workers (system, needs, report);
  checks_clock (system, needs, report);
  return report;
}
