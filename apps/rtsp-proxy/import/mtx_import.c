// SPDX-License-Identifier: LGPL-2.1-or-later
#include "import/mtx_import.h"

#include "import/mtx_keys.h"
#include "import/mtx_paths.h"
#include "import/mtx_servers.h"
#include "import/mtx_users.h"
#include "text/config_error.h"
#include "text/yaml_merge.h"

// Returns the configuration; it is of no use after a mistake. (transfer full)
static gchar *
import_file (MtxFile *self)
{
  g_autoptr (GPtrArray) mounts = NULL;
  GString *out = g_string_new (NULL);

  if (!mtx_keys_note (self))
    return g_string_free (out, FALSE);
  mtx_servers_append (self, out);
  mtx_users_append (self, out);
  mounts = mtx_paths_import (self);
  mtx_mounts_append (mounts, out);
  return g_string_free (out, FALSE);
}

gchar *
mtx_import (const gchar *name, const gchar *text, gsize len, const gchar *folder, gchar **notes,
    GError **error)
{
  GError *found = NULL;
  MtxFile self = { NULL, folder, NULL, &found };
  gchar *out = NULL;

  *notes = NULL;
  if (len > MTX_IMPORT_MAX) {
    g_set_error (error, CONFIG_ERROR, CONFIG_ERROR_FILE, "%s: larger than 4 MiB", name);
    return NULL;
  }
  self.reader = yaml_reader_new (name, text, len, error);
  if (!self.reader)
    return NULL;
  self.notes = g_string_new (NULL);
  if (!yaml_root (self.reader))
    g_set_error (&found, CONFIG_ERROR, CONFIG_ERROR_YAML, "%s: the file is empty", name);
  else if (yaml_merge (self.reader, &found)
           && yaml_expect_mapping (
               self.reader, yaml_root (self.reader), NULL, "expected the keys of MediaMTX", &found))
    out = import_file (&self);
  if (found) {
    g_propagate_error (error, found);
    g_clear_pointer (&out, g_free);
    g_string_free (self.notes, TRUE);
  } else {
    *notes = g_string_free (self.notes, FALSE);
  }
  yaml_reader_free (self.reader);
  return out;
}
