// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/memory.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SHORT_PERCENT 90
#define FULL_PERCENT 95

static guint64 used, ceiling_now; // atomic
static gint level;                // atomic

// Returns 0 if the file is missing or has no number, such as "max".
static guint64
read_number (const gchar *path)
{
  g_autofree gchar *text = NULL;
  guint64 number = 0;

  if (g_file_get_contents (path, &text, NULL, NULL))
    number = g_ascii_strtoull (text, NULL, 10);
  return number;
}

// Returns the smallest limit of the group and the groups around it.
static guint64
read_limits (const gchar *root, const gchar *group, const gchar *file)
{
  g_autofree gchar *at = g_strdup (group);
  guint64 least = 0;

  for (;;) {
    g_autofree gchar *path = g_build_filename (root, at, file, NULL);
    guint64 limit = read_number (path);
    gchar *slash = strrchr (at, '/');

    if (limit > 0 && (least == 0 || limit < least))
      least = limit;
    if (!slash)
      break;
    *slash = '\0';
  }
  return least;
}

// Returns the memory limit of the control group of this process, or 0. Versions 1 and 2 name their
// groups in lines "ID:CONTROLLERS:PATH"; those of version 2 have the id 0.
static guint64
read_group_limit (void)
{
  gchar *text = NULL;
  g_auto (GStrv) lines = NULL;
  guint64 limit = 0;

  if (!g_file_get_contents ("/proc/self/cgroup", &text, NULL, NULL))
    return 0;
  lines = g_strsplit (g_strchomp (text), "\n", 0);
  for (gchar **line = lines; *line && limit == 0; line++) {
    g_auto (GStrv) parts = g_strsplit (*line, ":", 3);

    if (g_strv_length (parts) == 3 && g_str_equal (parts[0], "0"))
      limit = read_limits ("/sys/fs/cgroup", parts[2], "memory.max");
    else if (g_strv_length (parts) == 3 && g_str_equal (parts[1], "memory"))
      limit = read_limits ("/sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes");
  }
  g_free (text);
  return limit;
}

// The first numbers of statm are pages: of the program, resident, and resident of files.
static guint64
read_used (void)
{
  g_autofree gchar *text = NULL;
  unsigned long size, resident = 0, shared = 0;

  if (g_file_get_contents ("/proc/self/statm", &text, NULL, NULL)
      && sscanf (text, "%lu %lu %lu", &size, &resident, &shared) != 3)
    resident = shared = 0;
  return (guint64) (resident - shared) * (guint64) sysconf (_SC_PAGESIZE);
}

MemoryLevel
memory_measure (guint64 ceiling)
{
  static gsize known;
  static guint64 group;
  guint64 now = read_used ();
  MemoryLevel next = MEMORY_ENOUGH;

  if (g_once_init_enter (&known)) {
    group = read_group_limit ();
    g_once_init_leave (&known, 1);
  }
  if (ceiling == 0)
    ceiling = group;
  if (ceiling > 0 && now >= ceiling / 100 * FULL_PERCENT)
    next = MEMORY_FULL;
  else if (ceiling > 0 && now >= ceiling / 100 * SHORT_PERCENT)
    next = MEMORY_SHORT;
  __atomic_store_n (&used, now, __ATOMIC_RELAXED);
  __atomic_store_n (&ceiling_now, ceiling, __ATOMIC_RELAXED);
  __atomic_store_n (&level, next, __ATOMIC_RELAXED);
  return next;
}

MemoryLevel
memory_get_level (void)
{
  return __atomic_load_n (&level, __ATOMIC_RELAXED);
}

guint64
memory_get_used (void)
{
  return __atomic_load_n (&used, __ATOMIC_RELAXED);
}

guint64
memory_get_ceiling (void)
{
  return __atomic_load_n (&ceiling_now, __ATOMIC_RELAXED);
}
