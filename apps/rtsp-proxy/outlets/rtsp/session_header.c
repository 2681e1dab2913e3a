// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/session_header.h"

#include <string.h>

// Returns the value of a header line if it has this name, else NULL. (transfer full)
static gchar *
dup_value (const gchar *line, const gchar *name)
{
  const gchar *colon = strchr (line, ':');
  g_autofree gchar *own = colon ? g_strstrip (g_strndup (line, (gsize) (colon - line))) : NULL;
  gboolean is_it = own && g_ascii_strcasecmp (own, name) == 0;

  return is_it ? g_strstrip (g_strdup (colon + 1)) : NULL;
}

// Takes the lines of the header out. Returns the first value (transfer full), or NULL.
static gchar *
cut_session (GPtrArray *lines)
{
  gchar *first = NULL;

  for (guint i = lines->len; i-- > 1;) {
    gchar *value = dup_value (g_ptr_array_index (lines, i), "Session");

    if (!value)
      continue;
    g_ptr_array_remove_index (lines, i);
    g_free (first);
    first = value;
  }
  return first;
}

typedef struct {
  const gchar *path;
  gchar *id;
} Search;

static GstRTSPFilterResult
find_media (GstRTSPSessionPool *pool, GstRTSPSession *session, gpointer data)
{
  Search *search = data;
  gint matched;

  if (!search->id && gst_rtsp_session_get_media (session, search->path, &matched))
    search->id = g_strdup (gst_rtsp_session_get_sessionid (session));
  return GST_RTSP_FILTER_KEEP;
}

// Returns the id of the session that has the media of a URL. (transfer full)
static gchar *
dup_id_of_url (GstRTSPClient *client, GstRTSPSessionPool *pool, const gchar *text)
{
  GstRTSPUrl *url = NULL;
  Search search = { 0 };
  g_autofree gchar *path = NULL;

  if (gst_rtsp_url_parse (text, &url) != GST_RTSP_OK)
    return NULL;
  path = GST_RTSP_CLIENT_GET_CLASS (client)->make_path_from_uri (client, url);
  search.path = path;
  if (path && *path)
    g_list_free_full (gst_rtsp_session_pool_filter (pool, find_media, &search), g_object_unref);
  gst_rtsp_url_free (url);
  return search.id;
}

static gboolean
has_session (GstRTSPSessionPool *pool, const gchar *id)
{
  GstRTSPSession *session = id ? gst_rtsp_session_pool_find (pool, id) : NULL;
  gboolean has = session != NULL;

  g_clear_object (&session);
  return has;
}

static GByteArray *
join (GPtrArray *lines, const gchar *id)
{
  GByteArray *head = g_byte_array_new ();

  for (guint i = 0; i < lines->len; i++) {
    const gchar *line = g_ptr_array_index (lines, i);
    g_autofree gchar *session =
        i == 0 && id ? g_strconcat ("\r\nSession: ", id, NULL) : g_strdup ("");

    g_byte_array_append (head, (const guint8 *) line, (guint) strlen (line));
    g_byte_array_append (head, (const guint8 *) session, (guint) strlen (session));
    if (i + 1 < lines->len)
      g_byte_array_append (head, (const guint8 *) "\r\n", 2);
  }
  return head;
}

static GByteArray *
correct (GstRTSPClient *client, GPtrArray *lines, const gchar *url)
{
  GstRTSPSessionPool *pool = gst_rtsp_client_get_session_pool (client);
  g_autofree gchar *given = cut_session (lines), *id = NULL;
  GByteArray *head = NULL;

  if (!has_session (pool, given)) {
    id = url ? dup_id_of_url (client, pool, url) : NULL;
    head = given || id ? join (lines, id) : NULL;
  }
  g_object_unref (pool);
  return head;
}

GByteArray *
session_header_correct (GstRTSPClient *client, const guint8 *head, gsize len)
{
  g_autofree gchar *text = g_strndup ((const gchar *) head, len);
  g_auto (GStrv) all = g_strsplit (text, "\r\n", -1);
  g_autofree gchar *first = g_strstrip (g_strdelimit (g_strdup (all[0]), "\t", ' '));
  g_auto (GStrv) words = g_strsplit (first, " ", 2);
  gboolean sets_up = words[0] && g_ascii_strcasecmp (words[0], "SETUP") == 0;
  g_autofree gchar *url = sets_up && words[1] ? g_strstrip (g_strdup (words[1])) : NULL;
  g_autoptr (GPtrArray) lines = g_ptr_array_new ();
  GByteArray *corrected = NULL;

  for (gchar **line = all; *line; line++)
    g_ptr_array_add (lines, *line);
  if (url)
    url[strcspn (url, " ")] = '\0';
  if (url || (words[0] && g_ascii_strcasecmp (words[0], "ANNOUNCE") == 0))
    corrected = correct (client, lines, url);
  return corrected;
}
