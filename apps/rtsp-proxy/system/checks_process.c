// SPDX-License-Identifier: LGPL-2.1-or-later

// Limits of the process and of its control group.

#include "system/checks.h"

#include <gio/gio.h>
#include <string.h>

#define MIB (G_GUINT64_CONSTANT (1) << 20)
#define NUMBER "%" G_GUINT64_FORMAT

// ---- open files ----

static void
check_files (const System *system, const SystemNeeds *needs, Report *report)
{
  const gchar *name = "open files (RLIMIT_NOFILE)";
  guint64 value = 65536;

  if (system->files == G_MAXUINT64) {
    report_good (report, name, "no limit, " NUMBER " needed", needs->files);
    return;
  }
  if (system->files >= needs->files) {
    report_good (report, name, NUMBER ", at least " NUMBER " needed", system->files, needs->files);
    return;
  }
  while (value < needs->files)
    value *= 2;
  report_add (report,
      &(Finding) { FINDING_BINDS, g_strdup (name),
          g_strdup_printf (
              "is " NUMBER ", should be at least " NUMBER, system->files, needs->files),
          g_strdup ("Each socket is an open file: of an upstream, of a served track, of a reader."),
          g_strdup_printf ("ulimit -Hn " NUMBER CHECKS_IN_SHELL, value),
          g_strdup_printf ("LimitNOFILE=" NUMBER CHECKS_IN_UNIT, value) });
}

// ---- threads ----

// Returns a limit for a need, not below that of the unit.
static guint64
threads_to_set (guint64 needed)
{
  return MAX (2 * needed, 32768);
}

static void
check_user_threads (const System *system, const SystemNeeds *needs, Report *report)
{
  const gchar *name = "threads of the user (RLIMIT_NPROC)";

  if (system->user_threads == G_MAXUINT64) {
    report_good (report, name, "no limit, " NUMBER " needed", needs->threads);
    return;
  }
  if (system->user_threads >= needs->threads) {
    report_good (
        report, name, NUMBER ", at least " NUMBER " needed", system->user_threads, needs->threads);
    return;
  }
  report_add (report,
      &(Finding) { FINDING_BINDS, g_strdup (name),
          g_strdup_printf (
              "is " NUMBER ", should be at least " NUMBER, system->user_threads, needs->threads),
          g_strdup ("A mount that cannot start its threads gives no media."),
          g_strdup_printf ("prlimit --nproc=" NUMBER " --pid $$" CHECKS_IN_SHELL,
              threads_to_set (needs->threads)),
          g_strdup_printf ("LimitNPROC=" NUMBER CHECKS_IN_UNIT, threads_to_set (needs->threads)) });
}

// The tightest limit of a control group and those around it.
typedef struct {
  guint64 limit, used;
  gchar *path; // of the file with the limit
} GroupLimit;

// Returns FALSE if there is no limit.
static gboolean
find_group_limit (const System *system, const gchar *controller, const gchar *limit_file,
    const gchar *used_file, GroupLimit *found)
{
  gchar *path;

  *found = (GroupLimit) { G_MAXUINT64, 0, NULL };
  for (guint level = 0;
      (path = system_dup_group_file (system, controller, level, limit_file)) != NULL; level++) {
    gchar *used_path = system_dup_group_file (system, controller, level, used_file);
    guint64 limit = G_MAXUINT64, used = 0;

    // Version 1 writes the largest number of pages for no limit.
    if (system_read_numbers (system, path, &limit, 1, NULL) && limit < G_MAXINT64 / 2
        && system_read_numbers (system, used_path, &used, 1, NULL)
        && (found->limit == G_MAXUINT64
            || limit - MIN (used, limit) < found->limit - found->used)) {
      g_free (found->path);
      *found = (GroupLimit) { limit, MIN (used, limit), g_steal_pointer (&path) };
    }
    g_free (used_path);
    g_free (path);
  }
  return found->path != NULL;
}

static void
check_group_threads (const System *system, const SystemNeeds *needs, Report *report)
{
  const gchar *name = "threads of the control group (pids.max)";
  guint64 wanted;
  GroupLimit group;

  if (!find_group_limit (system, "pids", "pids.max", "pids.current", &group)) {
    report_good (report, name, "no limit, " NUMBER " needed", needs->threads);
    return;
  }
  wanted = needs->threads + group.used;
  if (group.limit >= wanted) {
    report_good (report, name, NUMBER ", at least " NUMBER " needed", group.limit, wanted);
  } else {
    report_add (
        report, &(Finding) { FINDING_BINDS, g_strdup (name),
                    g_strdup_printf ("is " NUMBER ", should be at least " NUMBER ", with " NUMBER
                                     " that run",
                        group.limit, wanted, group.used),
                    g_strdup ("A mount that cannot start its threads gives no media."),
                    g_strdup_printf ("echo " NUMBER " >%s", threads_to_set (wanted), group.path),
                    g_strdup_printf ("TasksMax=" NUMBER CHECKS_IN_UNIT, threads_to_set (wanted)) });
  }
  g_free (group.path);
}

// ---- memory ----

// Returns 0 if it cannot be read.
static guint64
available_memory (const System *system, GError **error)
{
  g_autofree gchar *text = system_read (system, "/proc/meminfo", error);
  g_auto (GStrv) lines = text ? g_strsplit (text, "\n", -1) : NULL;
  guint64 kib = 0;

  for (gchar **line = lines; line && *line; line++) {
    if (g_str_has_prefix (*line, "MemAvailable:"))
      kib = g_ascii_strtoull (*line + strlen ("MemAvailable:"), NULL, 10);
  }
  if (text && kib == 0)
    g_set_error (
        error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "/proc/meminfo has no line MemAvailable");
  return kib * 1024;
}

static void
check_memory (const System *system, const SystemNeeds *needs, Report *report)
{
  GroupLimit group;
  GError *error = NULL;
  guint64 free_bytes = available_memory (system, &error);
  gboolean v2 = find_group_limit (system, "memory", "memory.max", "memory.current", &group);
  gboolean limited = v2
                     || find_group_limit (system, "memory", "memory.limit_in_bytes",
                         "memory.usage_in_bytes", &group);

  if (limited && (error || group.limit - group.used < free_bytes)) {
    g_clear_error (&error);
    free_bytes = group.limit - group.used;
  }
  if (error)
    report_unknown (report, "memory", error);
  else if (free_bytes >= needs->memory)
    report_good (report, "memory", NUMBER " MiB free, " NUMBER " MiB needed", free_bytes / MIB,
        needs->memory / MIB + 1);
  else
    report_add (report,
        &(Finding) { FINDING_BINDS, g_strdup ("memory"),
            g_strdup_printf (NUMBER " MiB free, should be at least " NUMBER " MiB",
                free_bytes / MIB, needs->memory / MIB + 1),
            g_strdup ("The windows of all mounts, and their caches without `spill`, lie in "
                      "memory."),
            NULL,
            g_strdup ("a smaller `time` or `bytes` of `cache`, or `spill` to a disk; or more "
                      "memory") });
  g_free (group.path);
}

void
checks_process (const System *system, const SystemNeeds *needs, Report *report)
{
  check_files (system, needs, report);
  check_user_threads (system, needs, report);
  check_group_threads (system, needs, report);
  check_memory (system, needs, report);
}
