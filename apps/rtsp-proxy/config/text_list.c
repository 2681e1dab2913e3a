// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/text_list.h"

#include "text/config_error.h"

gboolean
text_list_read (GStrv *list, const SchemaKey *key, TextListCheck check, YamlReader *reader,
    YamlNode *node, GError **error)
{
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

gboolean
text_list_equal (gchar *const *a, gchar *const *b)
{
  static gchar *const none[] = { NULL };

  return g_strv_equal (
      (const gchar *const *) (a ? a : none), (const gchar *const *) (b ? b : none));
}
