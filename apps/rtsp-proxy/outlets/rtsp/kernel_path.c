// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/kernel_path.h"

#include <gst/gst.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"

static const gchar *const names[] = { "off", "auto", "on" }; // by KernelPath

static KernelPath used;

const gchar *
kernel_path_get (void)
{
  return names[used];
}

// Takes CAP_BPF and CAP_NET_ADMIN from this thread, and so from those that it starts.
static void
drop_capabilities (void)
{
  struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
  struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
  const guint dropped[] = { CAP_BPF, CAP_NET_ADMIN };

  if (geteuid () == 0 || syscall (SYS_capget, &header, data) < 0)
    return;
  for (guint i = 0; i < G_N_ELEMENTS (dropped); i++) {
    guint32 keep = ~(guint32) CAP_TO_MASK (dropped[i]);
    struct __user_cap_data_struct *word = &data[CAP_TO_INDEX (dropped[i])];

    word->effective &= keep;
    word->permitted &= keep;
    word->inheritable &= keep;
    prctl (PR_CAP_AMBIENT, PR_CAP_AMBIENT_LOWER, dropped[i], 0, 0);
  }
  if (syscall (SYS_capset, &header, data) < 0)
    log_event ("cannot give up CAP_BPF and CAP_NET_ADMIN");
}

// Takes the reason why a sink does not use the kernel path from its bus. The caller owns it; NULL
// if it uses it.
static GError *
take_reason (GstBus *bus)
{
  g_autoptr (GstMessage) message =
      gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING | GST_MESSAGE_INFO);
  const GstStructure *structure = message ? gst_message_get_structure (message) : NULL;
  GError *reason = NULL;

  if (structure)
    gst_structure_get (structure, "gerror", G_TYPE_ERROR, &reason, NULL);
  return reason;
}

static gchar no_sink;

// Starts the sink that comes through the queue, with the capabilities of this thread.
static gpointer
start_sink (gpointer queue)
{
  GstElement *sink = g_async_queue_pop (queue);

  if (sink != (gpointer) &no_sink)
    gst_element_set_state (sink, GST_STATE_PAUSED);
  return NULL;
}

// The sink's threads start when it is made, so that happens without the capabilities. Only the
// thread that loads the kernel path, and the one that it leaves behind, have them.
static GstElement *
make_sink (GThread **starter, GAsyncQueue *queue)
{
  *starter = g_thread_new ("kernel-path", start_sink, queue);
  drop_capabilities ();
  return gst_element_factory_make ("fanoutsink", NULL);
}

gboolean
kernel_path_load (KernelPath wanted, GError **error)
{
  GAsyncQueue *queue;
  gboolean ok = TRUE;
  GstElement *sink;
  GThread *starter;
  g_autoptr (GError) reason = NULL;
  g_autoptr (GstBus) bus = NULL;

  if (wanted == KERNEL_PATH_OFF)
    return TRUE;
  queue = g_async_queue_new ();
  sink = make_sink (&starter, queue);
  if (!sink) { // the server does not start, and says so
    g_async_queue_push (queue, &no_sink);
    g_thread_join (starter);
    g_async_queue_unref (queue);
    return TRUE;
  }
  bus = gst_bus_new ();
  gst_element_set_bus (sink, bus);
  g_object_set (sink, "async", FALSE, NULL);
  gst_util_set_object_arg (G_OBJECT (sink), "kernel", names[wanted]);
  g_async_queue_push (queue, sink);
  g_thread_join (starter);
  g_async_queue_unref (queue);
  reason = take_reason (bus);
  // The sinks notice when rules that are in the way have gone.
  if (!reason || g_error_matches (reason, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_BUSY))
    used = wanted;
  if (reason && wanted == KERNEL_PATH_ON) {
    g_set_error_literal (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS, reason->message);
    ok = FALSE;
  } else if (reason) {
    log_event ("%s", reason->message);
  }
  gst_element_set_state (sink, GST_STATE_NULL);
  gst_element_set_bus (sink, NULL);
  gst_object_unref (sink);
  return ok;
}
