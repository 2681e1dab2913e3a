// SPDX-License-Identifier: LGPL-2.1-or-later

// The guards around worker processes that the kernel offers.

#include "system/checks.h"

void
checks_workers (const System *system, const SystemNeeds *needs, Report *report)
{
  const SandboxGuards *guards = &system->guards;

  if (guards->landlock > 0)
    report_good (report, "files of worker processes", "Landlock, version %u", guards->landlock);
  else
    report_add (report,
        &(Finding) { FINDING_HINT, g_strdup ("files of worker processes"),
            g_strdup ("the kernel has no Landlock"),
            g_strdup ("A worker process that a stream has taken over could read the files that the "
                      "proxy's user may read; one with devices could write into them."),
            NULL, g_strdup ("a kernel from 5.13 on whose parameter lsm= has landlock") });
  if (guards->seccomp)
    report_good (report, "system calls of worker processes", "seccomp");
  else
    report_add (report,
        &(Finding) { FINDING_HINT, g_strdup ("system calls of worker processes"),
            g_strdup ("the kernel does not filter them (seccomp)"),
            g_strdup ("A worker process that a stream has taken over could write files and connect "
                      "to other programs."),
            NULL, g_strdup ("a kernel, or a container, with CONFIG_SECCOMP_FILTER") });
}
