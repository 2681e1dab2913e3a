// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/hls/hls_sessions.h"

#include <libsoup/soup.h>

#include "access/connections.h"
#include "base/log.h"
#include "base/timer.h"
#include "outlets/hls/hls_memory.h"
#include "outlets/http/http_refusal.h"
#include "readers/adaptation.h"
#include "readers/reader_limit.h"
#include "text/layer_choice.h"

#define SWEEP_MS 1000
#define LINGER_US (10 * G_USEC_PER_SEC)
#define LINGER_MAX 64       // groups; with more, none is kept for a client that may come again
#define REMEMBERED_MAX 1024 // sessions that their silent players may resume
#define REMEMBERED_US (3600 * (gint64) G_USEC_PER_SEC)

// Shared by all clients, because any peer can cause refusals as fast as it sends requests.
static LogLimit refusals = { .burst = 100, .interval_ms = 100 };

typedef struct {
  gchar *key;
  HlsGroup *group;
  Presentation *counted; // its layers are a choice (presentation_take_choice()); or NULL
  guint n_users;         // sessions
  gint64 since_us;       // since when it lingers, if it has no users
} Used;

struct _HlsSessions {
  HlsSettings settings;
  Mounts *mounts;
  Connections *connections; // a session counts like one, as it lasts longer than its connections
  Timer *timer;

  GMutex lock;        // protects the fields below
  GHashTable *by_id;  // id: HlsSession
  GHashTable *groups; // key: Used
  HlsMemory *memory;
  HlsNumbers next; // above those of all groups that have been removed, so that a player that
                   // resumes its session never sees numbers again
};

// ---- groups ----

static void
free_used (gpointer data)
{
  Used *used = data;

  hls_group_stop (used->group);
  hls_group_unref (used->group);
  if (used->counted) {
    presentation_leave_choice (used->counted);
    presentation_unref (used->counted);
  }
  g_free (used->key);
  g_free (used);
}

// Uses the presentations of the mount's renditions. Returns how many variants there are now.
static guint
use_renditions (Mount *mount, const MountConfig *config, HlsVariant *variants)
{
  guint n = 1;

  for (gchar **each = config->renditions; *each && n < HLS_STREAMS_MAX; each++) {
    g_autofree gchar *choices = NULL;
    const WeirLayerSet layers = mount_rendition_split (config, *each, &choices);
    const Resolved rendition = { .mount = mount, .choices = choices };
    GError *error = NULL;

    variants[n] = (HlsVariant) { mounts_use (&rendition, &error), layers };
    if (variants[n].presentation) {
      n++;
    } else {
      log_event ("hls %s: no rendition %s: %s", mount_get_path (mount), *each, error->message);
      g_error_free (error);
    }
  }
  return n;
}

// Makes the group of a variant. `config` is that of a mount whose renditions belong to it, or NULL.
// Takes ownership of a reference and a use.
static HlsGroup *
make_group (HlsSessions *self, HlsVariant first, Mount *mount, const MountConfig *config)
{
  HlsVariant variants[HLS_STREAMS_MAX] = { first };
  guint n = config ? use_renditions (mount, config, variants) : 1;
  HlsNumbers next;

  g_mutex_lock (&self->lock);
  next = self->next;
  g_mutex_unlock (&self->lock);
  return hls_group_new (variants, n, &self->settings, &next);
}

// Returns the group, with one more user, or NULL. Call with the lock held. (transfer full)
static HlsGroup *
join_group (HlsSessions *self, const gchar *key)
{
  Used *used = g_hash_table_lookup (self->groups, key);

  if (!used)
    return NULL;
  used->n_users++;
  return hls_group_ref (used->group);
}

// Makes a group, and keeps it under its key unless another thread was faster. `counted` is the
// presentation if the group's layers are a choice, or NULL. Takes ownership of a use of the
// presentation of `first`. Returns the one that is kept, with one more user, or NULL with `error`.
// (transfer full)
static HlsGroup *
add_group (HlsSessions *self, const gchar *key, HlsVariant first, Mount *mount,
    const MountConfig *config, Presentation *counted, GError **error)
{
  HlsGroup *group;
  Used *used, *superfluous = NULL;

  if (counted && !presentation_take_choice (counted, error)) {
    presentation_leave (first.presentation);
    return NULL;
  }
  used = g_new (Used, 1);
  *used = (Used) { g_strdup (key), make_group (self, first, mount, config),
    counted ? presentation_ref (counted) : NULL, 1, 0 };
  g_mutex_lock (&self->lock);
  group = join_group (self, key);
  if (group) {
    superfluous = used;
  } else {
    g_hash_table_insert (self->groups, used->key, used);
    group = hls_group_ref (used->group);
  }
  g_mutex_unlock (&self->lock);
  if (superfluous)
    free_used (superfluous);
  return group;
}

// Returns the group of the presentation, with one more user, or NULL with `error`. Takes ownership
// of a use of it. (transfer full)
static HlsGroup *
use_group (HlsSessions *self, const Resolved *resolved, const Demand *demand,
    Presentation *presentation, GError **error)
{
  g_autoptr (MountConfig) config = mount_dup_config (resolved->mount);
  gboolean varies = !resolved->choices && !resolved->is_below && *config->renditions
                    && weir_layer_set_equal (demand->layers, WEIR_LAYER_SET_ALL);
  const WeirLayerSet layers = adaptation_limit (config, demand->layers);
  gboolean is_choice =
      !weir_layer_set_equal (layers, adaptation_limit (config, WEIR_LAYER_SET_ALL));
  g_autofree gchar *layers_text = layer_choice_dup_text (layers);
  g_autofree gchar *renditions = varies ? g_strjoinv ("\n", config->renditions) : g_strdup ("");
  g_autofree gchar *key =
      g_strjoin ("\n", presentation_get_path (presentation), layers_text, renditions, NULL);
  HlsGroup *group;

  g_mutex_lock (&self->lock);
  group = join_group (self, key);
  g_mutex_unlock (&self->lock);
  if (group)
    presentation_leave (presentation);
  else
    group = add_group (self, key, (HlsVariant) { presentation, layers }, resolved->mount,
        varies ? config : NULL, is_choice ? presentation : NULL, error);
  return group;
}

// Counts a user out, and removes the group with the last one, unless it lingers. Returns it then
// (transfer full), to be freed without the lock. Call with the lock held.
static Used *
unuse_group (HlsSessions *self, HlsGroup *group, gboolean lingers)
{
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init (&iter, self->groups);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    Used *used = value;

    if (used->group != group)
      continue;
    used->n_users--;
    used->since_us = g_get_monotonic_time ();
    if (used->n_users > 0 || (lingers && g_hash_table_size (self->groups) <= LINGER_MAX))
      return NULL;
    hls_group_raise (group, &self->next);
    g_hash_table_iter_steal (&iter);
    return used;
  }
  return NULL;
}

static gboolean
is_over (const Used *used)
{
  return hls_group_has_failed (used->group)
         || (used->n_users == 0 && g_get_monotonic_time () - used->since_us > LINGER_US);
}

// Removes the groups that have failed, so that new ones are made, and those that nobody came back
// to.
static void
forget_over (HlsSessions *self)
{
  g_autoptr (GPtrArray) over = g_ptr_array_new_with_free_func (free_used);
  GHashTableIter iter;
  gpointer used;

  g_mutex_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->groups);
  while (g_hash_table_iter_next (&iter, NULL, &used)) {
    if (is_over (used)) {
      hls_group_raise (((Used *) used)->group, &self->next);
      g_ptr_array_add (over, used);
      g_hash_table_iter_steal (&iter);
    }
  }
  g_mutex_unlock (&self->lock);
}

// ---- sessions ----

static void
end (HlsSessions *self, HlsSession *session, gboolean lingers)
{
  Used *last;

  g_mutex_lock (&self->lock);
  last = unuse_group (self, hls_session_get_group (session), lingers);
  g_mutex_unlock (&self->lock);
  if (last)
    free_used (last);
  reader_limit_leave (hls_session_get_mount (session));
  connections_leave (self->connections, hls_session_get_address (session));
  hls_session_end (session);
  hls_session_unref (session);
}

// Remembers a session whose player was silent. Call with the lock held.
static void
remember (HlsSessions *self, HlsSession *session)
{
  const gchar *id = hls_session_get_id (session);

  if (hls_session_is_closed (session))
    hls_memory_forget (self->memory, id);
  else
    hls_memory_put (self->memory, id, hls_session_get_target (session), g_get_monotonic_time ());
}

// Returns sessions that are over, or all; a request may resume them from now on. (transfer full)
static GPtrArray *
take_out (HlsSessions *self, gboolean all)
{
  GPtrArray *out = g_ptr_array_new ();
  GHashTableIter iter;
  gpointer session;

  g_mutex_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->by_id);
  while (g_hash_table_iter_next (&iter, NULL, &session)) {
    if (all || hls_session_is_over (session)) {
      g_ptr_array_add (out, session);
      g_hash_table_iter_steal (&iter);
      remember (self, session);
    }
  }
  g_mutex_unlock (&self->lock);
  return out;
}

static void
end_sessions (HlsSessions *self, gboolean all)
{
  g_autoptr (GPtrArray) out = take_out (self, all);

  for (guint i = 0; i < out->len; i++)
    end (self, g_ptr_array_index (out, i), FALSE);
}

static gboolean
sweep (gpointer self)
{
  end_sessions (self, FALSE);
  forget_over (self);
  return G_SOURCE_CONTINUE;
}

HlsSessions *
hls_sessions_new (const HlsSettings *settings, Mounts *mounts)
{
  HlsSessions *self = g_new0 (HlsSessions, 1);

  g_mutex_init (&self->lock);
  self->settings = *settings;
  self->mounts = mounts;
  self->connections = connections_new ();
  self->by_id = g_hash_table_new (g_str_hash, g_str_equal);
  self->groups = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, free_used);
  self->memory = hls_memory_new (REMEMBERED_MAX, REMEMBERED_US);
  self->timer = timer_add_tick (SWEEP_MS, sweep, self);
  return self;
}

void
hls_sessions_free (HlsSessions *self)
{
  timer_remove (self->timer);
  end_sessions (self, TRUE);
  g_hash_table_unref (self->by_id);
  g_hash_table_unref (self->groups);
  hls_memory_free (self->memory);
  connections_unref (self->connections);
  g_mutex_clear (&self->lock);
  g_free (self);
}

// ---- the beginning of a session ----

// Logs and sets why the demand, which was not resolved, is for nothing that the mounts have.
static void
explain (HlsSessions *self, const Demand *demand, const gchar *peer, gchar **text)
{
  Resolved resolved = { 0 };
  GError *error = NULL;

  if (mounts_resolve (self->mounts, demand, &resolved, &error)) { // a mount was added meanwhile
    resolved_clear (&resolved);
    return;
  }
  log_event_limited (&refusals, "reader %s refused: %s", peer, error->message);
  *text = g_strdup (error->message);
  g_error_free (error);
}

static Presentation *
use_presentation (HlsSessions *self, const Resolved *resolved, const Demand *demand,
    const gchar *peer, guint *status, gchar **text)
{
  GError *error = NULL;
  Presentation *presentation;

  if (!resolved->mount) {
    *status = SOUP_STATUS_NOT_FOUND;
    explain (self, demand, peer, text);
    return NULL;
  }
  if (resolved->title || !resolved->path) {
    *status = SOUP_STATUS_UNSUPPORTED_MEDIA_TYPE;
    *text = g_strdup ("HLS serves live streams, not stored titles");
    return NULL;
  }
  presentation = mounts_use (resolved, &error);
  if (presentation)
    return presentation;
  *status = SOUP_STATUS_SERVICE_UNAVAILABLE;
  *text = g_strdup (error->message);
  g_clear_error (&error);
  return NULL;
}

// Returns the group of what is asked for, with one more user, and with a place and a connection for
// its session; or NULL, with `status` and `*text`. (transfer full)
static HlsGroup *
admit (HlsSessions *self, const HttpAsked *asked, guint *status, gchar **text)
{
  Presentation *presentation =
      use_presentation (self, asked->resolved, asked->demand, asked->peer, status, text);
  const HttpRefusal *full;
  GError *error = NULL;
  HlsGroup *group;

  if (!presentation)
    return NULL;
  *status = SOUP_STATUS_SERVICE_UNAVAILABLE;
  *text = NULL;
  full = connections_admit (self->connections, asked->address, "HLS sessions", asked->peer, text)
             ? http_refusal_of_reader (asked->resolved->mount)
             : NULL;
  if (full) {
    connections_leave (self->connections, asked->address);
    *text = g_strdup (full->text);
    refusals_note (full->reason, asked->peer, "%s", *text);
  }
  if (*text) {
    presentation_leave (presentation);
    return NULL;
  }
  group = use_group (self, asked->resolved, asked->demand, presentation, &error);
  if (!group) {
    connections_leave (self->connections, asked->address);
    reader_limit_leave (mount_get_path (asked->resolved->mount));
    log_event_limited (&refusals, "reader %s refused: %s", asked->peer, error->message);
    *text = g_strdup (error->message);
    g_error_free (error);
  }
  return group;
}

HlsSession *
hls_sessions_begin (HlsSessions *self, const HttpAsked *asked, const HlsTarget *target,
    gboolean *is_new, guint *status, gchar **text)
{
  gboolean resumes = target->thing != HLS_MASTER;
  gchar *mount_target = resumes ? hls_sessions_dup_target (self, target->session)
                                : hls_target_dup_mount (asked->request->target);
  HlsGroup *group = mount_target ? admit (self, asked, status, text) : NULL;
  HlsSession *session = NULL, *other;

  *is_new = FALSE;
  if (!mount_target) { // a request for another of its playlists was faster
    *status = SOUP_STATUS_NOT_FOUND;
    return hls_sessions_find (self, target->session);
  }
  if (group) {
    session = hls_session_new (resumes ? target->session : NULL, mount_target,
        mount_get_path (asked->resolved->mount), asked->address, asked->peer, group);
    g_mutex_lock (&self->lock);
    other = g_hash_table_lookup (self->by_id, hls_session_get_id (session));
    if (other)
      hls_session_ref (other);
    else
      g_hash_table_insert (
          self->by_id, (gpointer) hls_session_get_id (session), hls_session_ref (session));
    g_mutex_unlock (&self->lock);
    *is_new = !other;
    if (other) { // a request for another of its playlists was faster
      end (self, session, TRUE);
      session = other;
    }
  }
  g_free (mount_target);
  return session;
}

gchar *
hls_sessions_dup_target (HlsSessions *self, const gchar *id)
{
  HlsSession *session;
  gboolean is_over;
  gchar *target;

  g_mutex_lock (&self->lock);
  session = g_hash_table_lookup (self->by_id, id);
  is_over = session && hls_session_is_over (session);
  target = !session ? hls_memory_dup (self->memory, id, g_get_monotonic_time ()) : NULL;
  g_mutex_unlock (&self->lock);
  if (!is_over)
    return target;
  end_sessions (self, FALSE);
  g_mutex_lock (&self->lock);
  target = hls_memory_dup (self->memory, id, g_get_monotonic_time ());
  g_mutex_unlock (&self->lock);
  return target;
}

void
hls_sessions_drop (HlsSessions *self, HlsSession *session)
{
  const gchar *id = hls_session_get_id (session);
  gboolean is_here;

  g_mutex_lock (&self->lock);
  is_here = g_hash_table_lookup (self->by_id, id) == session;
  if (is_here)
    g_hash_table_remove (self->by_id, id);
  if (is_here && hls_session_is_closed (session))
    hls_memory_forget (self->memory, id);
  g_mutex_unlock (&self->lock);
  // A client that does not wait may come again, and again: the streams go on starting meanwhile.
  if (is_here)
    end (self, session, TRUE);
}

HlsSession *
hls_sessions_find (HlsSessions *self, const gchar *id)
{
  HlsSession *session;

  g_mutex_lock (&self->lock);
  session = g_hash_table_lookup (self->by_id, id);
  if (session)
    hls_session_ref (session);
  g_mutex_unlock (&self->lock);
  if (session && hls_session_is_over (session))
    g_clear_pointer (&session, hls_session_unref);
  return session;
}
