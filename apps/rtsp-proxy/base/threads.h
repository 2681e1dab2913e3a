// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What a thread is for, as `ps -L` and `top -H` show it. The kernel keeps 15 bytes of a name.

#include <gst/gst.h>

#define THREAD_IDLE "pool-rtsp-proxy" // of GLib's, between two works, as GLib calls it

// Of the thread that calls.
void thread_set_name (const gchar *name);

// The same, "WHO:ELEMENT".
void thread_set_task_name (const gchar *who, GstElement *element);

// Names the threads of a pipeline's tasks so, as they begin. To be called once, before
// the pipeline leaves NULL; `who` must outlive it.
void threads_name_tasks (GstElement *pipeline, const gchar *who);
