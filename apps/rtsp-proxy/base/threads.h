// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Names threads by their work, for `ps -L` and `top -H`. The kernel keeps 15 bytes of a name.

#include <gst/gst.h>

#define THREAD_IDLE "pool-rtsp-proxy" // GLib's name for an idle thread of a pool

// Names the calling thread; cuts the name to 15 bytes.
void thread_set_name (const gchar *name);

// Calls `work` soon in a thread of a pool, which has that name meanwhile. There are as many threads
// as there is work, so it may block; who calls this bounds how much there is. `name` is a literal.
// Call from any thread.
void thread_run (const gchar *name, void (*work) (gpointer data), gpointer data);

// Names the calling thread "PREFIX:ELEMENT".
void thread_set_task_name (const gchar *prefix, GstElement *element);

// Names the thread of each task of `pipeline` "PREFIX:ELEMENT" when it starts. Call once, before
// the pipeline leaves the state NULL. `prefix` must outlive the pipeline.
void threads_name_tasks (GstElement *pipeline, const gchar *prefix);
