// SPDX-License-Identifier: LGPL-2.1-or-later
#include "import/mtx_paths.h"

#include <string.h>

#include "config/mount_path.h"
#include "import/mtx_pattern.h"
#include "import/mtx_source.h"
#include "import/weir_text.h"

#define PATHS_MAX 10000
#define FORWARDS_MAX 8 // as the key push has
#define DAY_MS (24 * 3600 * 1000)
#define TIMEOUT_MS 10000 // the default of both programs

static const gchar *
get_name (MtxFile *self, const YamlNode *key)
{
  const gchar *name = yaml_text (self->reader, key);

  return name ? name : "";
}

// Returns the path of the mount, or NULL and adds a note. (transfer full)
static gchar *
dup_path (MtxFile *self, const YamlNode *key, const gchar *name)
{
  gchar *path = NULL, *wrong;

  if (g_str_equal (name, "all") || g_str_equal (name, "all_others"))
    return g_strdup ("/{path*}");
  if (name[0] == '~') {
    path = mtx_pattern_dup_path (name + 1);
    if (path)
      mtx_note (self, key, name, "now %s; see that it means the same paths", path);
    else
      mtx_note (self, key, name,
          "left out: a path of Weir has whole segments as variables, such as /live/{key}");
    return path;
  }
  path = g_strconcat ("/", name, NULL);
  wrong = mount_check_path (path);
  if (wrong) {
    mtx_note (self, key, name, "left out: %s", wrong);
    g_clear_pointer (&path, g_free);
  }
  g_free (wrong);
  return path;
}

// ---- recordings ----

// Returns the folder that a recordPath begins with. (transfer full)
static gchar *
dup_folder (const MtxFile *self, const gchar *record_path)
{
  const gchar *sign = strchr (record_path, '%');
  g_autofree gchar *before = g_strndup (record_path, sign ? (gsize) (sign - record_path) : 0);
  gchar *slash = strrchr (before, '/');

  if (slash)
    slash[slash == before] = '\0';
  return mtx_dup_path (self, slash ? before : ".");
}

static void
set_record (MtxFile *self, const MtxScope *scope, MtxMount *mount)
{
  const gchar *path =
      mtx_text (self, scope, "recordPath", "./recordings/%path/%Y-%m-%d_%H-%M-%S-%f");
  const guint64 segment = mtx_time (self, scope, "recordSegmentDuration", 3600 * 1000);
  const guint64 part = mtx_time (self, scope, "recordPartDuration", 1000);
  const guint64 keep = mtx_time (self, scope, "recordDeleteAfter", DAY_MS);
  g_autofree gchar *folder = dup_folder (self, path), *text = NULL;
  GString *record = g_string_new (NULL);

  weir_text_pair (record, "folder", folder);
  if (segment != 3600 * 1000) {
    g_autofree gchar *time = weir_text_dup_time (segment);

    weir_text_pair (record, "segment", time);
  }
  if (part != 1000) {
    g_autofree gchar *time = weir_text_dup_time (part);

    weir_text_pair (record, "part", time);
  }
  text = keep > 0 && keep % DAY_MS == 0 ? g_strdup_printf ("%" G_GUINT64_FORMAT "d", keep / DAY_MS)
                                        : weir_text_dup_time (keep);
  weir_text_pair (record, "keep", text);
  mtx_mount_take (mount, "record", g_strdup_printf ("{%s}", record->str));
  g_string_free (record, TRUE);
}

// ---- a path ----

static void
set_forward (MtxFile *self, const MtxScope *scope, MtxMount *mount)
{
  const YamlNode *list = mtx_find (self, scope, "forward"), *item;
  g_autoptr (GPtrArray) uris = g_ptr_array_new_with_free_func (g_free);

  if (!list)
    return;
  if (!yaml_is_sequence (list)) {
    mtx_fail (self, list, "forward", "expected a list");
    return;
  }
  for (guint i = 0; i < FORWARDS_MAX && (item = yaml_item (self->reader, list, i)); i++) {
    const MtxScope one = { item, NULL };
    const gchar *dest = mtx_text (self, &one, "dest", "");

    if (g_str_has_prefix (dest, "srt://") || g_str_has_prefix (dest, "rtmp://")
        || g_str_has_prefix (dest, "rtmps://"))
      g_ptr_array_add (uris, g_strdup (dest));
    else
      mtx_note (self, item, mount->path, "forward: left out: Weir pushes over UDP, SRT and RTMP");
  }
  if (uris->len > 0)
    mtx_mount_take (mount, "push", weir_text_dup_list (uris));
}

static void
set_others (MtxFile *self, const MtxScope *scope, guint64 timeout, MtxMount *mount)
{
  const guint64 max_readers = mtx_number (self, scope, "maxReaders", 0);
  const gchar *file = mtx_text (self, scope, "alwaysAvailableFile", "");

  if (max_readers > 0)
    mtx_mount_take (mount, "max-readers", g_strdup_printf ("%" G_GUINT64_FORMAT, max_readers));
  if (timeout != TIMEOUT_MS)
    mtx_mount_take (mount, "read-timeout", weir_text_dup_time (timeout));
  if (mtx_flag (self, scope, "alwaysAvailable", FALSE) && *file) {
    g_autofree gchar *path = mtx_dup_path (self, file);

    mtx_mount_set (mount, "slate", path);
  }
  if (mtx_flag (self, scope, "record", FALSE))
    set_record (self, scope, mount);
  set_forward (self, scope, mount);
}

// Returns NULL after a note or a mistake. `timeout` is how long an upstream may be silent, in ms.
static MtxMount *
import_path (MtxFile *self, const YamlNode *key, const YamlNode *value, const YamlNode *defaults,
    guint64 timeout)
{
  const MtxScope scope = { value, defaults };
  const gchar *name = get_name (self, key);
  g_autofree gchar *path = NULL;
  MtxMount *mount;

  if (!yaml_is_null (value) && !yaml_is_mapping (value)) {
    mtx_fail (self, value, name, "expected the keys of a path");
    return NULL;
  }
  path = dup_path (self, key, name);
  if (!path)
    return NULL;
  mount = mtx_mount_new (path);
  if (!mtx_source_import (self, &scope, key, name, mount)) {
    mtx_mount_free (mount);
    return NULL;
  }
  set_others (self, &scope, timeout, mount);
  return mount;
}

// Gets the mapping `paths`, which may be missing, and that of the defaults.
static const YamlNode *
get_paths (MtxFile *self, const YamlNode **defaults)
{
  const MtxScope root = { yaml_root (self->reader), NULL };
  const YamlNode *paths = mtx_find (self, &root, "paths");

  *defaults = mtx_find (self, &root, "pathDefaults");
  if (*defaults && !yaml_is_mapping (*defaults))
    mtx_fail (self, *defaults, "pathDefaults", "expected the keys of a path");
  if (paths && !yaml_is_mapping (paths)) {
    mtx_fail (self, paths, "paths", "expected a mapping of paths");
    return NULL;
  }
  return paths;
}

GPtrArray *
mtx_paths_import (MtxFile *self)
{
  const MtxScope root = { yaml_root (self->reader), NULL };
  const guint64 timeout = mtx_time (self, &root, "readTimeout", TIMEOUT_MS);
  const YamlNode *defaults, *paths = get_paths (self, &defaults);
  GPtrArray *mounts = g_ptr_array_new_with_free_func ((GDestroyNotify) mtx_mount_free);
  g_autoptr (GHashTable) taken = g_hash_table_new (g_str_hash, g_str_equal);
  YamlNode *key, *value;

  for (guint i = 0; paths && yaml_pair (self->reader, paths, i, &key, &value); i++) {
    MtxMount *mount = NULL;

    if (i == PATHS_MAX) {
      mtx_fail (self, key, "paths", "more than 10000 paths");
      break;
    }
    mount = import_path (self, key, value, defaults, timeout);
    if (mount && g_hash_table_contains (taken, mount->path)) {
      mtx_note (self, key, get_name (self, key), "left out: %s is there already", mount->path);
      g_clear_pointer (&mount, mtx_mount_free);
    }
    if (mount) {
      g_hash_table_add (taken, mount->path);
      g_ptr_array_add (mounts, mount);
    }
  }
  return mounts;
}

const gchar *
mtx_paths_get_passphrase (MtxFile *self)
{
  static const gchar *const keys[] = { "srtPublishPassphrase", "srtReadPassphrase" };
  const YamlNode *defaults, *paths = get_paths (self, &defaults);
  const gchar *found = "";
  YamlNode *key, *value;

  for (guint i = 0; paths && yaml_pair (self->reader, paths, i, &key, &value); i++) {
    const MtxScope scope = { value, defaults };

    for (guint k = 0; k < G_N_ELEMENTS (keys); k++) {
      const gchar *passphrase = mtx_text (self, &scope, keys[k], "");

      if (*passphrase && *found && !g_str_equal (found, passphrase))
        mtx_note (self, key, get_name (self, key),
            "%s: left out: Weir has one passphrase for all paths, that of the first one", keys[k]);
      found = *found ? found : passphrase;
    }
  }
  return found;
}
