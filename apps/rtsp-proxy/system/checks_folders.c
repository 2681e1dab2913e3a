// SPDX-License-Identifier: LGPL-2.1-or-later

// The folders that a configuration writes to: the room on their disks, and whether the service may
// write there.

#include "system/checks.h"

#include <errno.h>
#include <gio/gio.h>
#include <string.h>
#include <sys/stat.h>

#define MIB (G_GUINT64_CONSTANT (1) << 20)
#define NUMBER "%" G_GUINT64_FORMAT
#define UNIT "rtsp-proxy.service"
#define USER SYSTEM_SERVICE_USER

// ---- room ----

typedef struct {
  const FolderNeed *need;
  dev_t device;
  guint64 free_bytes;
  guint64 missing; // bytes that are not written yet
} Room;

// Returns the bytes of the files that count against the need.
static guint64
measure (const FolderNeed *need)
{
  guint64 sum = 0;

  for (guint i = 0; i < need->counted->len; i++) {
    g_autoptr (GFile) folder = g_file_new_for_path (g_ptr_array_index (need->counted, i));
    guint64 bytes = 0;

    if (g_file_measure_disk_usage (
            folder, G_FILE_MEASURE_NONE, NULL, NULL, NULL, &bytes, NULL, NULL, NULL))
      sum += bytes;
  }
  return sum;
}

// Returns FALSE and reports why if the disk cannot be asked.
static gboolean
look (const FolderNeed *need, Room *room, Report *report)
{
  GFile *folder = g_file_new_for_path (need->path);
  GError *error = NULL;
  GFileInfo *info =
      g_file_query_filesystem_info (folder, G_FILE_ATTRIBUTE_FILESYSTEM_FREE, NULL, &error);
  struct stat status;

  g_object_unref (folder);
  if (error || stat (need->path, &status) < 0) {
    g_autofree gchar *name = g_strdup_printf ("disk of %s", need->path);

    if (!error)
      error = g_error_new (G_IO_ERROR, g_io_error_from_errno (errno), "%s", g_strerror (errno));
    report_unknown (report, name, error);
    g_clear_object (&info);
    return FALSE;
  }
  *room = (Room) { need, status.st_dev,
    g_file_info_get_attribute_uint64 (info, G_FILE_ATTRIBUTE_FILESYSTEM_FREE), 0 };
  g_object_unref (info);
  room->missing = need->bytes - MIN (measure (need), need->bytes);
  return TRUE;
}

static void
report_room (const Room *room, guint64 wanted, const gchar *others, Report *report)
{
  g_autofree gchar *name = g_strdup_printf ("disk of %s%s", room->need->path, others);
  gboolean records = room->need->counted->len > 0;

  if (room->free_bytes >= wanted)
    report_good (report, name, NUMBER " MiB free, " NUMBER " MiB needed", room->free_bytes / MIB,
        wanted / MIB + 1);
  else
    report_add (report,
        &(Finding) { FINDING_BINDS, g_strdup (name),
            g_strdup_printf (NUMBER " MiB free, should be at least " NUMBER " MiB",
                room->free_bytes / MIB, wanted / MIB + 1),
            g_strdup (records
                          ? "When the disk is full, nothing is recorded."
                          : "When the disk is full, readers cannot go back as far as `time` says."),
            NULL,
            g_strdup (records ? "a smaller `keep` or `limit` of `record`; or a larger disk"
                              : "a smaller `time` or `bytes` of `cache`; or a larger disk") });
}

// Reports each disk once, with all folders on it.
static void
check_rooms (const SystemNeeds *needs, Report *report)
{
  g_autofree Room *rooms = g_new (Room, needs->folders->len);
  guint n = 0;

  for (guint i = 0; i < needs->folders->len; i++) {
    const FolderNeed *need = g_ptr_array_index (needs->folders, i);

    if (need->endless)
      report_add (
          report, &(Finding) { FINDING_HINT, g_strdup_printf ("recordings in %s", need->path),
                      g_strdup ("are never deleted"), g_strdup ("They fill the disk."), NULL,
                      g_strdup ("`keep` or `limit` of `record`") });
    n += need->bytes > 0 && look (need, &rooms[n], report);
  }
  for (guint i = 0; i < n; i++) {
    g_autoptr (GString) others = g_string_new (NULL);
    guint64 wanted = rooms[i].missing;
    gboolean first = TRUE;

    for (guint k = 0; k < n; k++) {
      if (k == i || rooms[k].device != rooms[i].device)
        continue;
      first &= k > i;
      wanted += rooms[k].missing;
      g_string_append_printf (others, ", %s", rooms[k].need->path);
    }
    if (first)
      report_room (&rooms[i], wanted, others->str, report);
  }
}

// ---- the service ----

// Adds the values of `name` in a unit file or in a drop-in. An empty value removes those before.
static void
add_values (GPtrArray *values, const gchar *text, const gchar *name, const gchar *before)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);

  for (gchar **line = lines; *line; line++) {
    const gchar *value = g_strstrip (*line);
    gchar **words;
    gint n;

    if (!g_str_has_prefix (value, name) || value[strlen (name)] != '=')
      continue;
    value += strlen (name) + 1;
    if (!*value)
      g_ptr_array_set_size (values, 0);
    if (!g_shell_parse_argv (value, &n, &words, NULL))
      continue;
    for (gint i = 0; i < n; i++)
      g_ptr_array_add (values, g_strconcat (before, words[i] + strspn (words[i], "-+"), NULL));
    g_strfreev (words);
  }
}

static void
add_file (GPtrArray *values, const System *system, const gchar *path)
{
  g_autofree gchar *text = system_read (system, path, NULL);

  if (text) {
    add_values (values, text, "ReadWritePaths", "");
    add_values (values, text, "StateDirectory", "/var/lib/");
    add_values (values, text, "CacheDirectory", "/var/cache/");
  }
}

static void
add_drop_ins (GPtrArray *values, const System *system, const gchar *folder)
{
  g_autofree gchar *whole = g_strconcat (system->root, folder, NULL);
  GDir *dir = g_dir_open (whole, 0, NULL);
  const gchar *name;

  while (dir && (name = g_dir_read_name (dir)) != NULL) {
    g_autofree gchar *path = g_strconcat (folder, "/", name, NULL);

    if (g_str_has_suffix (name, ".conf"))
      add_file (values, system, path);
  }
  if (dir)
    g_dir_close (dir);
}

// Returns the folders below which the unit lets the service write, or NULL if there is no unit.
static GPtrArray *
find_writable (const System *system)
{
  static const gchar *const folders[] = { "/etc/systemd/system/", "/usr/local/lib/systemd/system/",
    "/usr/lib/systemd/system/", "/lib/systemd/system/" };
  GPtrArray *values = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; i < G_N_ELEMENTS (folders); i++) {
    g_autofree gchar *path = g_strconcat (folders[i], UNIT, NULL);
    gchar *text = system_read (system, path, NULL);

    if (text) {
      add_file (values, system, path);
      add_drop_ins (values, system, "/etc/systemd/system/" UNIT ".d");
      g_free (text);
      return values;
    }
  }
  g_ptr_array_unref (values);
  return NULL;
}

static gboolean
is_below (const gchar *path, const gchar *folder)
{
  gsize len = strlen (folder);

  while (len > 0 && folder[len - 1] == '/')
    len--;
  return strncmp (path, folder, len) == 0 && (path[len] == '/' || !path[len]);
}

static gboolean
is_below_any (const gchar *path, GPtrArray *folders)
{
  for (guint i = 0; i < folders->len; i++) {
    if (is_below (path, g_ptr_array_index (folders, i)))
      return TRUE;
  }
  return FALSE;
}

static gboolean
is_home (const gchar *path)
{
  return is_below (path, "/home") || is_below (path, "/root") || is_below (path, "/run/user");
}

// Appends a path as a unit file quotes it.
static void
append_path (GString *text, const gchar *path)
{
  g_string_append_printf (
      text, strchr (path, ' ') ? "%s\"%s\"" : "%s%s", text->len ? " " : "", path);
}

static void
check_unit (const SystemNeeds *needs, GPtrArray *writable, Report *report)
{
  const gchar *name = "folders that the service may write";
  g_autoptr (GString) missing = g_string_new (NULL);
  gboolean home = FALSE;

  for (guint i = 0; i < needs->folders->len; i++) {
    const gchar *path = ((FolderNeed *) g_ptr_array_index (needs->folders, i))->path;

    if (is_below_any (path, writable))
      continue;
    append_path (missing, path);
    home |= is_home (path);
  }
  if (missing->len == 0)
    report_good (report, name, "all that the configuration names");
  else
    report_add (report,
        &(Finding) { FINDING_BINDS, g_strdup (name), g_strdup_printf ("lack %s", missing->str),
            g_strdup ("The unit " UNIT " lets it write nowhere else."), NULL,
            g_strdup_printf ("ReadWritePaths=%s%s" CHECKS_IN_UNIT, missing->str,
                home ? CHECKS_IN_UNIT "\n             ProtectHome=read-only" : "") });
}

static gboolean
may_write (const System *system, const struct stat *status)
{
  mode_t mode = status->st_mode;

  if (status->st_uid == system->service_uid)
    return (mode & 0300) == 0300;
  if (status->st_gid == system->service_gid)
    return (mode & 0030) == 0030;
  return (mode & 0003) == 0003;
}

static void
check_owner (const System *system, const gchar *path, Report *report)
{
  struct stat status;
  g_autofree gchar *quoted = g_shell_quote (path), *name = g_strdup_printf ("owner of %s", path);

  if (stat (path, &status) < 0)
    report_add (
        report, &(Finding) { FINDING_BINDS, g_strdup (path), g_strdup (g_strerror (errno)),
                    g_strdup ("The service cannot write there."),
                    g_strdup_printf ("install -d -o " USER " -g " USER " %s", quoted), NULL });
  else if (!may_write (system, &status))
    report_add (report, &(Finding) { FINDING_BINDS, g_strdup (name),
                            g_strdup_printf ("is user %u, should be " USER, (guint) status.st_uid),
                            g_strdup ("The service runs as that user, who may not write there."),
                            g_strdup_printf ("chown -R " USER ": %s", quoted), NULL });
}

void
checks_folders (const System *system, const SystemNeeds *needs, Report *report)
{
  g_autoptr (GPtrArray) writable = needs->folders->len ? find_writable (system) : NULL;

  check_rooms (needs, report);
  if (!writable)
    return;
  check_unit (needs, writable, report);
  if (system->has_service_user) {
    for (guint i = 0; i < needs->folders->len; i++)
      check_owner (system, ((FolderNeed *) g_ptr_array_index (needs->folders, i))->path, report);
  }
}
