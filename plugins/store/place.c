// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/place.h"

#include "store/blockstore.h"

#include <string.h>

void
weir_store_place_install (GObjectClass *klass, const gchar *title_blurb)
{
  g_object_class_install_property (klass, WEIR_STORE_PROP_LOCATION,
      g_param_spec_string (
          "location", "Location", "Folder of the block store", NULL, WEIR_STORE_PROP_FLAGS));
  g_object_class_install_property (klass, WEIR_STORE_PROP_TITLE,
      g_param_spec_string ("title", "Title", title_blurb, NULL, WEIR_STORE_PROP_FLAGS));
}

void
weir_store_place_clear (WeirStorePlace *self)
{
  g_clear_pointer (&self->location, g_free);
  g_clear_pointer (&self->title, g_free);
}

gboolean
weir_store_place_set (WeirStorePlace *self, guint id, const GValue *value)
{
  gchar **text = id == WEIR_STORE_PROP_LOCATION ? &self->location : &self->title;

  if (id < WEIR_STORE_PROP_LOCATION || id > WEIR_STORE_PROP_LAST)
    return FALSE;
  g_free (*text);
  *text = g_value_dup_string (value);
  return TRUE;
}

gboolean
weir_store_place_get (const WeirStorePlace *self, guint id, GValue *value)
{
  if (id < WEIR_STORE_PROP_LOCATION || id > WEIR_STORE_PROP_LAST)
    return FALSE;
  g_value_set_string (value, id == WEIR_STORE_PROP_LOCATION ? self->location : self->title);
  return TRUE;
}

gboolean
weir_store_place_check (const WeirStorePlace *self, GstElement *element)
{
  if (self->location && self->title)
    return TRUE;
  GST_ELEMENT_ERROR (
      element, RESOURCE, SETTINGS, ("set the properties location and title"), (NULL));
  return FALSE;
}

// Splits the path after the first folder that is a store.
static gboolean
split (WeirStorePlace *self, const gchar *path)
{
  for (const gchar *end = strchr (path + 1, '/'); end && end[1]; end = strchr (end + 1, '/')) {
    g_autofree gchar *dir = g_strndup (path, (gsize) (end - path));
    g_autofree gchar *file = g_build_filename (dir, WEIR_STORE_FILE, NULL);

    if (!g_file_test (file, G_FILE_TEST_IS_REGULAR))
      continue;
    self->location = g_steal_pointer (&dir);
    self->title = g_strdup (end + 1);
    return TRUE;
  }
  return FALSE;
}

gboolean
weir_store_place_from_uri (WeirStorePlace *self, const gchar *uri, GError **error)
{
  g_autoptr (GUri) parsed = g_uri_parse (uri, G_URI_FLAGS_NONE, NULL);
  const gchar *path = parsed ? g_uri_get_path (parsed) : NULL;

  *self = (WeirStorePlace) { NULL };
  if (!parsed || *path != '/' || (g_uri_get_host (parsed) && *g_uri_get_host (parsed))
      || g_uri_get_query (parsed) || g_uri_get_fragment (parsed)) {
    g_set_error (error, GST_URI_ERROR, GST_URI_ERROR_BAD_URI,
        "%s is not of the form store:///FOLDER/TITLE; write ? as %%3F, # as %%23 and %% as %%25",
        uri);
    return FALSE;
  }
  if (split (self, path))
    return TRUE;
  g_set_error (error, GST_URI_ERROR, GST_URI_ERROR_BAD_REFERENCE,
      "%s leads to no block store: no folder of it has a " WEIR_STORE_FILE, path);
  return FALSE;
}

gchar *
weir_store_place_dup_uri (const WeirStorePlace *self)
{
  g_autofree gchar *dir = NULL, *path = NULL, *escaped = NULL;

  if (!self->location || !self->title)
    return NULL;
  dir = g_canonicalize_filename (self->location, NULL);
  path = g_strconcat (dir, "/", self->title, NULL);
  escaped = g_uri_escape_string (path, G_URI_RESERVED_CHARS_ALLOWED_IN_PATH, FALSE);
  return g_strconcat ("store://", escaped, NULL);
}
