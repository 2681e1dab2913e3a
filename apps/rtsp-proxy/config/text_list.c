// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/text_list.h"

#include "text/config_error.h"

gboolean
text_list_read (const SchemaKey *key, gpointer object, TextListCheck check, YamlReader *reader,
    YamlNode *node, GError **error)
{
  GStrv *list = (GStrv *) ((guint8 *) object + key->offset);
  GStrvBuilder *texts;
  YamlNode *item;
  gboolean ok = TRUE;

  g_clear_pointer (list, g_strfreev);
  if (!yaml_is_sequence (node)) {
    gchar *text = g_strdup_printf ("expected a list: %s", key->form);

    return yaml_fail_take (reader, node, key->name, CONFIG_ERROR_VALUE, error, text);
  }
  texts = g_strv_builder_new ();
  for (guint i = 0; (item = yaml_item (reader, node, i)); i++) {
    const gchar *text = yaml_text (reader, item);
    gchar *wrong = text ? check (text) : g_strdup ("expected a single value");

    if (wrong)
      ok = yaml_fail_take (reader, item, key->name, CONFIG_ERROR_VALUE, error, wrong);
    else
      g_strv_builder_add (texts, text);
  }
  *list = g_strv_builder_end (texts);
  g_strv_builder_unref (texts);
  return ok;
}

static gchar *
check_folder (const gchar *folder)
{
  return g_path_is_absolute (folder)
             ? NULL
             : g_strdup_printf ("\"%s\" is not the absolute path of a folder, "
                                "such as /srv/films",
                   folder);
}

gboolean
text_list_read_folders (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  return text_list_read (key, object, check_folder, reader, node, error);
}

gboolean
text_list_equal (gchar *const *a, gchar *const *b)
{
  static gchar *const none[] = { NULL };

  return g_strv_equal (
      (const gchar *const *) (a ? a : none), (const gchar *const *) (b ? b : none));
}
