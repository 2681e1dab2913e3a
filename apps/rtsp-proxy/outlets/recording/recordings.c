// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/recording/recordings.h"

#include "base/main_loop.h"
#include "base/timer.h"

#include <signal.h>

#define TICK_MS 500

typedef struct {
  Mounts *mounts;
  Timer *timer;
  GHashTable *all; // mount: Recording
} Recordings;

static Recordings *the;

static void
keep_wanted (Recordings *self, GHashTable *wanted, Mount *mount)
{
  g_autoptr (MountConfig) config = mount_dup_config (mount);
  Recording *recording = g_hash_table_lookup (self->all, config->path);

  if (config->record.folder) {
    if (!recording || !recording_is_of (recording, config))
      g_hash_table_replace (
          self->all, g_strdup (config->path), recording_new (self->mounts, config));
    g_hash_table_add (wanted, g_strdup (config->path));
  }
}

static gboolean
is_not_wanted (gpointer mount, gpointer recording, gpointer wanted)
{
  return !g_hash_table_contains (wanted, mount);
}

static gboolean
tick (gpointer data)
{
  Recordings *self = data;
  g_autoptr (GHashTable) wanted = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GPtrArray) mounts = mounts_dup_all (self->mounts);
  GHashTableIter iter;
  gpointer recording;

  for (guint i = 0; i < mounts->len; i++)
    keep_wanted (self, wanted, g_ptr_array_index (mounts, i));
  g_hash_table_foreach_remove (self->all, is_not_wanted, wanted);
  g_hash_table_iter_init (&iter, self->all);
  while (g_hash_table_iter_next (&iter, NULL, &recording))
    recording_tick (recording);
  return G_SOURCE_CONTINUE;
}

static gpointer
start (Proxy *proxy, ProxyConfig *config, GError **error)
{
  Recordings *self = g_new0 (Recordings, 1);

  signal (SIGXFSZ, SIG_IGN); // a limit of a file's size is an error of the write
  self->mounts = proxy_get_mounts (proxy);
  self->all = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, recording_free);
  self->timer = timer_add (TICK_MS, tick, self);
  the = self;
  tick (self); // before the first publisher comes
  return self;
}

static gboolean
are_idle (gpointer hooks)
{
  const GPtrArray *all = hooks;

  for (guint i = 0; i < all->len; i++) {
    if (recording_hook_is_busy (g_ptr_array_index (all, i)))
      return FALSE;
  }
  return TRUE;
}

static void
end_hooks (GPtrArray *hooks, guint timeout_ms)
{
  if (hooks->len == 0)
    return;
  main_loop_drain (); // the last files may start hooks
  main_loop_wait (are_idle, hooks, timeout_ms);
  for (guint i = 0; i < hooks->len; i++)
    recording_hook_end (g_ptr_array_index (hooks, i));
}

static gboolean
stop (gpointer data, guint timeout_ms)
{
  Recordings *self = data;
  g_autoptr (GPtrArray) hooks = g_ptr_array_new_with_free_func (recording_hook_unref);
  GHashTableIter iter;
  gpointer recording;

  the = NULL;
  timer_remove (self->timer);
  g_hash_table_iter_init (&iter, self->all);
  while (g_hash_table_iter_next (&iter, NULL, &recording))
    g_ptr_array_add (hooks, recording_hook_ref (recording_get_hook (recording)));
  g_hash_table_unref (self->all);
  recording_writer_wait_all (timeout_ms);
  end_hooks (hooks, timeout_ms);
  g_free (self);
  return TRUE;
}

const Outlet recordings_outlet = { start, stop, NULL };

Recording *
recordings_find (const gchar *mount)
{
  return the ? g_hash_table_lookup (the->all, mount) : NULL;
}
