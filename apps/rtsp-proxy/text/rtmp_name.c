// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text/rtmp_name.h"

#include "text/printable.h"

#include <string.h>

// Appends the segments of a path, each behind one slash.
static void
add_path (GString *path, const gchar *text, gsize len)
{
  g_autofree gchar *part = g_strndup (text, len);
  g_auto (GStrv) segments = g_strsplit (part, "/", -1);

  for (gchar **segment = segments; *segment; segment++) {
    if (**segment)
      g_string_append_printf (path, "/%s", *segment);
  }
}

// Takes the value of a credential, unless there is one already.
static gboolean
take (gchar **field, const gchar *value, const gchar **wrong)
{
  if (*field)
    *wrong = "its user or pass is given twice";
  else if (!(*field = g_uri_unescape_string (value, NULL)) || !text_is_printable (*field))
    *wrong = "its user or pass is not UTF-8, or has control characters";
  return !*wrong;
}

static gboolean
add_item (RtmpName *self, GString *query, const gchar *item, const gchar **wrong)
{
  if (g_str_has_prefix (item, "user="))
    return take (&self->user, item + strlen ("user="), wrong);
  if (g_str_has_prefix (item, "pass="))
    return take (&self->secret, item + strlen ("pass="), wrong);
  if (*item)
    g_string_append_printf (query, "%c%s", query->len > 0 ? '&' : '?', item);
  return TRUE;
}

// Takes the path and the query of one of the two.
static gboolean
add (RtmpName *self, GString *path, GString *query, const gchar *text, const gchar **wrong)
{
  gsize len = strcspn (text, "?");
  g_auto (GStrv) items = g_strsplit (text[len] ? text + len + 1 : "", "&", -1);
  gboolean ok = TRUE;

  add_path (path, text, len);
  for (gchar **item = items; *item && ok; item++)
    ok = add_item (self, query, *item, wrong);
  for (gchar **item = items; *item; item++)
    explicit_bzero (*item, strlen (*item));
  return ok;
}

gboolean
rtmp_name_read (RtmpName *self, const gchar *app, const gchar *name, const gchar **wrong)
{
  g_autoptr (GString) path = g_string_new (NULL), query = g_string_new (NULL);
  gboolean ok;

  *self = (RtmpName) { 0 };
  *wrong = NULL;
  if (!text_is_printable (app) || !text_is_printable (name))
    *wrong = "it is not UTF-8, or has control characters";
  ok = !*wrong && add (self, path, query, app, wrong) && add (self, path, query, name, wrong);
  if (ok && path->len == 0)
    *wrong = "it has no path; the URL must be like rtmp://HOST/MOUNT";
  if (!*wrong)
    self->url = g_strconcat (path->str, query->str, NULL);
  else
    rtmp_name_clear (self);
  return !*wrong;
}

void
rtmp_name_clear (RtmpName *self)
{
  if (self->secret)
    explicit_bzero (self->secret, strlen (self->secret));
  g_clear_pointer (&self->url, g_free);
  g_clear_pointer (&self->user, g_free);
  g_clear_pointer (&self->secret, g_free);
}
