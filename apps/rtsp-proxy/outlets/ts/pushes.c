// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/ts/pushes.h"

#include "base/timer.h"
#include "outlets/ts/push.h"
#include "outlets/ts/ts_stream.h"

#define TICK_MS 500

typedef struct {
  Mounts *mounts;
  Timer *timer;
  GHashTable *all; // "MOUNT URI": Push
} Pushes;

static void
add_wanted (Pushes *self, GHashTable *wanted, const gchar *mount, const gchar *text)
{
  gchar *key = g_strdup_printf ("%s %s", mount, text);
  PushUri uri;
  g_autofree gchar *wrong = NULL;

  if (!g_hash_table_contains (self->all, key)) {
    wrong = push_uri_parse (text, &uri); // the configuration has checked it
    if (!wrong)
      g_hash_table_insert (self->all, g_strdup (key), push_new (self->mounts, mount, &uri));
  }
  g_hash_table_add (wanted, key);
}

static gboolean
is_not_wanted (gpointer key, gpointer push, gpointer wanted)
{
  return !g_hash_table_contains (wanted, key);
}

static gboolean
tick (gpointer data)
{
  Pushes *self = data;
  g_autoptr (GHashTable) wanted = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GPtrArray) mounts = mounts_dup_all (self->mounts);
  GHashTableIter iter;
  gpointer push;

  for (guint i = 0; i < mounts->len; i++) {
    Mount *mount = g_ptr_array_index (mounts, i);

    for (gchar **uri = mount_get_config (mount)->push; *uri; uri++)
      add_wanted (self, wanted, mount_get_path (mount), *uri);
  }
  g_hash_table_foreach_remove (self->all, is_not_wanted, wanted);
  g_hash_table_iter_init (&iter, self->all);
  while (g_hash_table_iter_next (&iter, NULL, &push))
    push_tick (push);
  return G_SOURCE_CONTINUE;
}

static gpointer
start (Proxy *proxy, ProxyConfig *config, GError **error)
{
  Pushes *self = g_new0 (Pushes, 1);

  self->mounts = proxy_get_mounts (proxy);
  self->all = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, push_free);
  self->timer = timer_add (TICK_MS, tick, self);
  proxy_add_closer (proxy, ts_stream_close_readers, NULL); // of HTTP and SRT, too
  return self;
}

static gboolean
stop (gpointer data, guint timeout_ms)
{
  Pushes *self = data;

  timer_remove (self->timer);
  g_hash_table_unref (self->all);
  g_free (self);
  return TRUE;
}

const Outlet pushes_outlet = { start, stop, NULL };
