// SPDX-License-Identifier: LGPL-2.1-or-later

// Tells ThreadSanitizer about GLib's locks and queues, which it cannot see because GLib is not
// built with it. GstHarness hands buffers to a test through a GAsyncQueue. Linked into a test,
// these functions replace GLib's own for GStreamer and the plugins too.

#include <dlfcn.h>
#include <glib.h>

#pragma GCC visibility push(default)

void __tsan_acquire (void *address);
void __tsan_release (void *address);

#define GLIBS_OWN(name) ((typeof (&name)) glibs_own (&own_##name, #name))

static gpointer own_g_mutex_lock, own_g_mutex_unlock, own_g_rec_mutex_lock, own_g_rec_mutex_unlock,
    own_g_cond_wait, own_g_cond_wait_until, own_g_async_queue_push, own_g_async_queue_try_pop,
    own_g_async_queue_timeout_pop;

static gpointer
glibs_own (gpointer *function, const gchar *name)
{
  if (!g_atomic_pointer_get (function))
    g_atomic_pointer_set (function, dlsym (RTLD_NEXT, name));
  return g_atomic_pointer_get (function);
}

void
g_mutex_lock (GMutex *mutex)
{
  GLIBS_OWN (g_mutex_lock) (mutex);
  __tsan_acquire (mutex);
}

void
g_mutex_unlock (GMutex *mutex)
{
  __tsan_release (mutex);
  GLIBS_OWN (g_mutex_unlock) (mutex);
}

void
g_rec_mutex_lock (GRecMutex *mutex)
{
  GLIBS_OWN (g_rec_mutex_lock) (mutex);
  __tsan_acquire (mutex);
}

void
g_rec_mutex_unlock (GRecMutex *mutex)
{
  __tsan_release (mutex);
  GLIBS_OWN (g_rec_mutex_unlock) (mutex);
}

void
g_cond_wait (GCond *cond, GMutex *mutex)
{
  __tsan_release (mutex);
  GLIBS_OWN (g_cond_wait) (cond, mutex);
  __tsan_acquire (mutex);
}

gboolean
g_cond_wait_until (GCond *cond, GMutex *mutex, gint64 end)
{
  gboolean signalled;

  __tsan_release (mutex);
  signalled = GLIBS_OWN (g_cond_wait_until) (cond, mutex, end);
  __tsan_acquire (mutex);
  return signalled;
}

void
g_async_queue_push (GAsyncQueue *queue, gpointer data)
{
  __tsan_release (queue);
  GLIBS_OWN (g_async_queue_push) (queue, data);
}

gpointer
g_async_queue_try_pop (GAsyncQueue *queue)
{
  gpointer data = GLIBS_OWN (g_async_queue_try_pop) (queue);

  __tsan_acquire (queue);
  return data;
}

gpointer
g_async_queue_timeout_pop (GAsyncQueue *queue, guint64 timeout)
{
  gpointer data = GLIBS_OWN (g_async_queue_timeout_pop) (queue, timeout);

  __tsan_acquire (queue);
  return data;
}

#pragma GCC visibility pop
