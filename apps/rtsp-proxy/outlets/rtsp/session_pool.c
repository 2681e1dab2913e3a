// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/session_pool.h"

#include <sys/random.h>

#define ID_BYTES 16

typedef struct {
  GstRTSPSessionPool parent;
} SessionPool;

typedef struct {
  GstRTSPSessionPoolClass parent_class;
} SessionPoolClass;

GType session_pool_get_type (void);
G_DEFINE_TYPE (SessionPool, session_pool, GST_TYPE_RTSP_SESSION_POOL)

// Without an id, gst-rtsp-server makes no session and answers 503.
static gchar *
session_pool_create_session_id (GstRTSPSessionPool *self)
{
  guint8 bytes[ID_BYTES];
  GString *id;

  // Requests of up to 256 bytes are never answered with fewer.
  if (getrandom (bytes, sizeof bytes, 0) != sizeof bytes)
    return NULL;
  id = g_string_sized_new (2 * ID_BYTES);
  for (guint i = 0; i < ID_BYTES; i++)
    g_string_append_printf (id, "%02x", bytes[i]);
  return g_string_free (id, FALSE);
}

typedef struct {
  gint64 now;
  gint left_ms;
} Expiry;

static GstRTSPFilterResult
find_first (GstRTSPSessionPool *pool, GstRTSPSession *session, gpointer data)
{
  Expiry *first = data;

  first->left_ms = MIN (first->left_ms, gst_rtsp_session_next_timeout_usec (session, first->now));
  return GST_RTSP_FILTER_KEEP;
}

gint
session_pool_get_left (GstRTSPSessionPool *self, gint64 now)
{
  Expiry first = { now, G_MAXINT };

  g_list_free_full (gst_rtsp_session_pool_filter (self, find_first, &first), g_object_unref);
  return first.left_ms;
}

static void
session_pool_init (SessionPool *self)
{
}

static void
session_pool_class_init (SessionPoolClass *klass)
{
  GST_RTSP_SESSION_POOL_CLASS (klass)->create_session_id = session_pool_create_session_id;
}

GstRTSPSessionPool *
session_pool_new (void)
{
  return g_object_new (session_pool_get_type (), NULL);
}
