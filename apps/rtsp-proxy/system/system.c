// SPDX-License-Identifier: LGPL-2.1-or-later
#include "system/system.h"

#include <gio/gio.h>
#include <string.h>

static void
free_device (gpointer data)
{
  SystemDevice *device = data;

  g_free (device->name);
  g_free (device->qdisc);
  g_free (device);
}

System *
system_new (const gchar *root)
{
  System *self = g_new0 (System, 1);

  self->root = g_strdup (root);
  self->files = self->user_threads = G_MAXUINT64;
  self->devices = g_ptr_array_new_with_free_func (free_device);
  return self;
}

void
system_free (System *self)
{
  g_ptr_array_unref (self->devices);
  g_free (self->root);
  g_free (self);
}

SystemDevice *
system_add_device (System *self, const gchar *name)
{
  SystemDevice *device = g_new0 (SystemDevice, 1);

  device->name = g_strdup (name);
  g_ptr_array_add (self->devices, device);
  return device;
}

// ---- files ----

gchar *
system_read (const System *self, const gchar *path, GError **error)
{
  gchar *whole = g_strconcat (self->root, path, NULL), *text = NULL;

  if (g_file_get_contents (whole, &text, NULL, error))
    g_strstrip (text);
  g_free (whole);
  return text;
}

static gboolean
parse_number (const gchar *text, guint64 *number)
{
  if (g_str_equal (text, "max")) {
    *number = G_MAXUINT64;
    return TRUE;
  }
  return g_ascii_string_to_unsigned (text, 10, 0, G_MAXUINT64, number, NULL);
}

gboolean
system_read_numbers (
    const System *self, const gchar *path, guint64 *numbers, guint n, GError **error)
{
  g_autofree gchar *text = system_read (self, path, error);
  g_auto (GStrv) words = NULL;
  guint read = 0;

  if (!text)
    return FALSE;
  words = g_strsplit_set (text, " \t\n", -1);
  for (gchar **word = words; *word && read < n; word++) {
    if (!**word)
      continue;
    if (!parse_number (*word, &numbers[read]))
      break;
    read++;
  }
  if (read < n)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s: expected %u number%s", path, n,
        n == 1 ? "" : "s");
  return read == n;
}

// ---- control groups ----

// Returns the line "ID:CONTROLLERS:PATH" of /proc/self/cgroup that is for `controller`, or the one
// for all ("0::PATH"), as a vector of its three parts.
static GStrv
find_group (const System *self, const gchar *controller)
{
  g_autofree gchar *text = system_read (self, "/proc/self/cgroup", NULL);
  GStrv lines = text ? g_strsplit (text, "\n", -1) : NULL, found = NULL;

  for (gchar **line = lines; line && *line; line++) {
    g_auto (GStrv) parts = g_strsplit (*line, ":", 3);
    g_auto (GStrv) names = g_strv_length (parts) == 3 ? g_strsplit (parts[1], ",", -1) : NULL;

    if (names && g_strv_contains ((const gchar *const *) names, controller)) {
      g_strfreev (found);
      found = g_steal_pointer (&parts);
    } else if (names && !*parts[1] && !found) {
      found = g_steal_pointer (&parts);
    }
  }
  g_strfreev (lines);
  return found;
}

gchar *
system_dup_group_file (const System *self, const gchar *controller, guint level, const gchar *file)
{
  g_auto (GStrv) group = find_group (self, controller);
  gchar *path = NULL, *end;

  if (!group)
    return NULL;
  // Inside a container the path may begin with "/..": it is above the root that is seen there.
  for (end = group[2] + strlen (group[2]); level > 0 && end > group[2]; level--) {
    end = g_strrstr_len (group[2], end - group[2], "/");
    if (!end)
      end = group[2];
    *end = '\0';
  }
  if (level == 0 && !strstr (group[2], "/.."))
    path = g_build_filename ("/sys/fs/cgroup", *group[1] ? controller : "", group[2], file, NULL);
  return path;
}
