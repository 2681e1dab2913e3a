// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A thread that waits for sockets of many tasks and calls them. No task may block.

#include <gio/gio.h>

// How often deadlines are checked.
#define TLS_LOOP_TICK_MS 250

// The size of `scratch`: the longest TLS record.
#define TLS_LOOP_SCRATCH 16384

typedef struct _TlsLoop TlsLoop;
typedef struct _TlsTask TlsTask;
typedef struct _TlsWatch TlsWatch;

// A socket of a task. Embed it in the task.
struct _TlsWatch {
  TlsTask *task;
  gint fd;
  guint32 events; // EPOLLIN, EPOLLOUT; 0 while it is not watched
};

typedef struct {
  void (*begin) (TlsTask *task);                  // the task has moved to this loop
  void (*ready) (TlsTask *task, TlsWatch *watch); // one of the watched events has come
  void (*expired) (TlsTask *task);                // the deadline has passed
  void (*free) (TlsTask *task);                   // the loop no longer uses the task
} TlsTaskOps;

struct _TlsTask {
  const TlsTaskOps *ops;
  TlsLoop *loop;
  gint64 deadline; // us, monotonic; 0: none
  guint8 *scratch; // of the loop, for one call
  GList link;      // private
  gboolean ended;  // private
};

// Starts a thread. Returns NULL and sets `error` if the system has no thread or file left.
TlsLoop *tls_loop_new (const gchar *name, GError **error);

// Ends the thread, and frees the tasks.
void tls_loop_free (TlsLoop *self);

// Gives a task to the loop. Call from any thread.
void tls_loop_add (TlsLoop *self, TlsTask *task);

// Call all functions below only from the task's loop.

// Takes the task from its loop, for tls_loop_add() to another one. Nothing may be watched.
void tls_task_leave (TlsTask *task);

// Ends the task: the loop calls `free` soon, and nothing else. The task closes its sockets in
// `free`.
void tls_task_end (TlsTask *task);

// Watches for these events; 0 stops watching, so that the end of the socket is not reported either.
void tls_watch_set (TlsWatch *watch, guint32 events);
