// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The checks: each compares a part of the system with what a configuration needs, and adds its
// findings to the report. A file that is missing or cannot be read is a finding, no failure.

#include "system/needs.h"
#include "system/report.h"
#include "system/system.h"

#define CHECKS_SYSCTL_FILE "/etc/sysctl.d/90-rtsp-proxy.conf"

// Said behind a command or a setting.
#define CHECKS_IN_SHELL "  # in the shell that starts the proxy"
#define CHECKS_IN_UNIT "  # below [Service], with systemctl edit rtsp-proxy"

// Runs all checks. The caller owns the report.
Report *checks_run (const System *system, const SystemNeeds *needs);

// The parts of it.
void checks_sysctls (const System *system, const SystemNeeds *needs, Report *report);
void checks_process (const System *system, const SystemNeeds *needs, Report *report);
void checks_folders (const System *system, const SystemNeeds *needs, Report *report);
void checks_network (const System *system, const SystemNeeds *needs, Report *report);
void checks_devices (const System *system, const SystemNeeds *needs, Report *report);
void checks_workers (const System *system, const SystemNeeds *needs, Report *report);
void checks_clock (const System *system, const SystemNeeds *needs, Report *report);

// Adds that a sysctl such as "net.core.rmem_max" is too small for `needed`, with the commands that
// set it to `value`.
void checks_sysctl_binds (Report *report, const gchar *key, const gchar *is, const gchar *needed,
    const gchar *why, const gchar *value);

// Returns the setting of a unit that runs `command` before the proxy starts. The caller owns it.
gchar *checks_dup_at_start (const gchar *command);
