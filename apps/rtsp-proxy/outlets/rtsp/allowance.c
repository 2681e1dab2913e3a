// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/allowance.h"

#include "access/refusals.h"
#include "base/memory.h"
#include "readers/reader_limit.h"

static GQuark
place_quark (void)
{
  return g_quark_from_static_string ("rtsp-proxy-place");
}

// ---- places ----

static void
leave (gpointer mount)
{
  reader_limit_leave (mount);
  g_free (mount);
}

static gboolean
has_place (GstRTSPSession *session)
{
  return session && g_object_get_qdata (G_OBJECT (session), place_quark ());
}

static guint
get_max (Mounts *mounts, const gchar *path)
{
  g_autoptr (Mount) mount = mounts_get (mounts, path);
  g_autoptr (MountConfig) config = mount ? mount_dup_config (mount) : NULL;

  return config ? config->max_readers : 0;
}

// A session keeps its place until TEARDOWN, or until it is freed.
static GstRTSPStatusCode
take_place (RtspConnection *connection, GstRTSPSession *session, const gchar *path)
{
  if (rtsp_connection_is_of_member (connection)) { // which reads for many, and is no reader
    g_object_set_qdata_full (G_OBJECT (session), place_quark (), g_strdup (path), g_free);
    return GST_RTSP_STS_OK;
  }
  if (!reader_limit_take (path, get_max (connection->mounts, path))) {
    refusals_note (
        REFUSED_READERS, connection->peer, "%s has no room for another reader (max-readers)", path);
    return GST_RTSP_STS_NOT_ENOUGH_BANDWIDTH;
  }
  g_object_set_qdata_full (G_OBJECT (session), place_quark (), g_strdup (path), leave);
  return GST_RTSP_STS_OK;
}

static GstRTSPStatusCode
on_pre_play (GstRTSPClient *client, GstRTSPContext *ctx, RtspConnection *connection)
{
  g_autoptr (Content) content =
      has_place (ctx->session) ? NULL : rtsp_connection_dup_content (connection);
  GstRTSPStatusCode status = GST_RTSP_STS_OK;

  if (content && ctx->session)
    status = take_place (connection, ctx->session, content_get_mount_path (content));
  return status;
}

// The session ends after the answer with its last media, but another reader may take the place as
// soon as the client has the answer.
static GstRTSPStatusCode
on_pre_teardown (GstRTSPClient *client, GstRTSPContext *ctx, gpointer unused)
{
  GList *medias = gst_rtsp_session_filter (ctx->session, NULL, NULL);

  if (!medias->next)
    g_object_set_qdata (G_OBJECT (ctx->session), place_quark (), NULL);
  g_list_free_full (medias, g_object_unref);
  return GST_RTSP_STS_OK;
}

// ---- memory ----

gboolean
allowance_is_full (RtspConnection *connection, GstRTSPSession *session, const gchar *path)
{
  return !has_place (session)
         && (memory_get_level () != MEMORY_ENOUGH
             || (path && reader_limit_is_full (path, get_max (connection->mounts, path))));
}

// A reader that plays may use what it has.
GstRTSPStatusCode
allowance_check_memory (RtspConnection *connection, GstRTSPSession *session)
{
  if (has_place (session))
    return GST_RTSP_STS_OK;
  refusals_note (REFUSED_MEMORY, connection->peer, MEMORY_PROBLEM);
  return GST_RTSP_STS_SERVICE_UNAVAILABLE;
}

void
allowance_watch (GstRTSPClient *client, RtspConnection *connection)
{
  g_signal_connect (client, "pre-play-request", G_CALLBACK (on_pre_play), connection);
  g_signal_connect (client, "pre-teardown-request", G_CALLBACK (on_pre_teardown), NULL);
}

static GstRTSPFilterResult
find_place (GstRTSPClient *client, GstRTSPSession *session, gpointer found)
{
  *(gboolean *) found |= has_place (session);
  return GST_RTSP_FILTER_KEEP;
}

gboolean
allowance_is_playing (GstRTSPClient *client)
{
  gboolean found = FALSE;

  g_list_free_full (gst_rtsp_client_session_filter (client, find_place, &found), g_object_unref);
  return found;
}
