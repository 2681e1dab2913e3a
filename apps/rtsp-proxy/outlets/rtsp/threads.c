// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/threads.h"

#include "base/threads.h"
#include "outlets/rtsp/client_loops.h"

typedef struct {
  GstRTSPThreadPool parent;
} RtspThreads;

typedef struct {
  GstRTSPThreadPoolClass parent_class;
} RtspThreadsClass;

GType rtsp_threads_get_type (void);
G_DEFINE_TYPE (RtspThreads, rtsp_threads, GST_TYPE_RTSP_THREAD_POOL)

static void
rtsp_threads_enter (GstRTSPThreadPool *pool, GstRTSPThread *thread)
{
  thread_set_name ("rtsp-media");
}

static void
rtsp_threads_leave (GstRTSPThreadPool *pool, GstRTSPThread *thread)
{
  thread_set_name (THREAD_IDLE);
}

// Returns a thread (transfer full) for a media that a client asks for. It is never used: a live
// media has the thread of all relay media, and that of a title is prepared. gst-rtsp-server would
// make one for each DESCRIBE and each SETUP.
static GstRTSPThread *
ref_unused (GstRTSPThreadPool *pool)
{
  static gsize thread;

  if (g_once_init_enter (&thread)) {
    GstRTSPThread *made = GST_RTSP_THREAD_POOL_CLASS (rtsp_threads_parent_class)
                              ->get_thread (pool, GST_RTSP_THREAD_TYPE_MEDIA, NULL);

    g_once_init_leave (&thread, (gsize) made);
  }
  gst_rtsp_thread_reuse ((GstRTSPThread *) thread);
  return (GstRTSPThread *) thread;
}

static GstRTSPThread *
rtsp_threads_get_thread (GstRTSPThreadPool *pool, GstRTSPThreadType type, GstRTSPContext *context)
{
  if (type == GST_RTSP_THREAD_TYPE_CLIENT)
    return client_loops_get_thread ();
  if (context)
    return ref_unused (pool);
  return GST_RTSP_THREAD_POOL_CLASS (rtsp_threads_parent_class)->get_thread (pool, type, context);
}

static void
rtsp_threads_init (RtspThreads *self)
{
}

static void
rtsp_threads_class_init (RtspThreadsClass *klass)
{
  GST_RTSP_THREAD_POOL_CLASS (klass)->get_thread = rtsp_threads_get_thread;
  GST_RTSP_THREAD_POOL_CLASS (klass)->thread_enter = rtsp_threads_enter;
  GST_RTSP_THREAD_POOL_CLASS (klass)->thread_leave = rtsp_threads_leave;
}

GstRTSPThreadPool *
rtsp_threads_new (void)
{
  return g_object_new (rtsp_threads_get_type (), NULL);
}
