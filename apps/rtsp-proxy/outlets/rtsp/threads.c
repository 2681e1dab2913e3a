// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/threads.h"

#include "base/threads.h"

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
  thread_set_name (thread->type == GST_RTSP_THREAD_TYPE_CLIENT ? "rtsp-clients" : "rtsp-media");
}

static void
rtsp_threads_leave (GstRTSPThreadPool *pool, GstRTSPThread *thread)
{
  thread_set_name (THREAD_IDLE);
}

static void
rtsp_threads_init (RtspThreads *self)
{
}

static void
rtsp_threads_class_init (RtspThreadsClass *klass)
{
  GST_RTSP_THREAD_POOL_CLASS (klass)->thread_enter = rtsp_threads_enter;
  GST_RTSP_THREAD_POOL_CLASS (klass)->thread_leave = rtsp_threads_leave;
}

GstRTSPThreadPool *
rtsp_threads_new (void)
{
  return g_object_new (rtsp_threads_get_type (), NULL);
}
