// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/threads.h"

#include <pthread.h>

#define NAME_MAX_BYTES 15

void
thread_set_name (const gchar *name)
{
  g_autofree gchar *fits = g_strndup (name, NAME_MAX_BYTES);

  pthread_setname_np (pthread_self (), fits);
}

// ---- work that may block ----

typedef struct {
  const gchar *name;
  void (*work) (gpointer data);
  gpointer data;
} Job;

static void
run_job (gpointer data, gpointer unused)
{
  Job *job = data;

  thread_set_name (job->name);
  job->work (job->data);
  thread_set_name (THREAD_IDLE);
  g_free (job);
}

void
thread_run (const gchar *name, void (*work) (gpointer data), gpointer data)
{
  static gsize threads;
  Job *job = g_new (Job, 1);

  if (g_once_init_enter (&threads))
    g_once_init_leave (&threads, (gsize) g_thread_pool_new (run_job, NULL, -1, FALSE, NULL));
  *job = (Job) { name, work, data };
  g_thread_pool_push ((GThreadPool *) threads, job, NULL);
}

// ---- tasks of GStreamer ----

static gchar *
dup_task_name (const gchar *prefix, GstElement *element)
{
  return g_strdup_printf ("%s:%s", prefix, GST_OBJECT_NAME (element));
}

void
thread_set_task_name (const gchar *prefix, GstElement *element)
{
  g_autofree gchar *name = dup_task_name (prefix, element);

  thread_set_name (name);
}

// Runs in the starting thread, before GStreamer names the thread after its task.
static void
on_stream_status (GstBus *bus, GstMessage *message, gpointer prefix)
{
  const GValue *value = gst_message_get_stream_status_object (message);
  GstStreamStatusType type;
  GstElement *owner;
  g_autofree gchar *name = NULL;

  gst_message_parse_stream_status (message, &type, &owner);
  if (!value || !G_VALUE_HOLDS (value, GST_TYPE_TASK))
    return;
  if (type == GST_STREAM_STATUS_TYPE_ENTER) {
    name = dup_task_name (prefix, owner);
    gst_object_set_name (g_value_get_object (value), name);
  } else if (type == GST_STREAM_STATUS_TYPE_LEAVE) {
    thread_set_name (THREAD_IDLE);
  }
}

void
threads_name_tasks (GstElement *pipeline, const gchar *prefix)
{
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);

  gst_bus_enable_sync_message_emission (bus);
  g_signal_connect (
      bus, "sync-message::stream-status", G_CALLBACK (on_stream_status), (gpointer) prefix);
}
