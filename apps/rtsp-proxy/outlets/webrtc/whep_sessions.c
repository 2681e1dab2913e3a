// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/whep_sessions.h"

#include <string.h>

#include "access/secrets.h"

#define NAME_BYTES 16

typedef struct {
  WebrtcReader *reader;
  gchar *etag;
  GInetAddress *address;
} Entry;

struct _WhepSessions {
  WebrtcReaders readers;
  Connections *connections;

  GMutex lock;     // guards the fields below
  GHashTable *all; // name: Entry
};

static gchar *
make_etag (void)
{
  return g_strdup_printf ("\"%08x%08x\"", g_random_int (), g_random_int ());
}

static void
entry_free (gpointer data)
{
  Entry *self = data;

  webrtc_reader_unref (self->reader);
  g_object_unref (self->address);
  g_free (self->etag);
  g_free (self);
}

void
whep_session_clear (WhepSession *session)
{
  g_clear_pointer (&session->reader, webrtc_reader_unref);
  g_clear_pointer (&session->name, g_free);
  g_clear_pointer (&session->etag, g_free);
}

// ---- the end of a session ----

static void
on_ended (WebrtcReader *reader, gpointer data)
{
  WhepSessions *self = data;
  GHashTableIter iter;
  gpointer entry;

  g_mutex_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->all);
  while (g_hash_table_iter_next (&iter, NULL, &entry)) {
    if (((Entry *) entry)->reader == reader) {
      connections_leave (self->connections, ((Entry *) entry)->address);
      g_hash_table_iter_remove (&iter);
      break;
    }
  }
  g_mutex_unlock (&self->lock);
}

void
whep_sessions_end (WhepSessions *self, Presentation *presentation, const gchar *reason)
{
  GHashTableIter iter;
  gpointer entry;

  g_mutex_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->all);
  while (g_hash_table_iter_next (&iter, NULL, &entry)) {
    WebrtcReader *reader = ((Entry *) entry)->reader;

    if (!presentation || webrtc_reader_get_presentation (reader) == presentation)
      webrtc_reader_end (reader, reason);
  }
  g_mutex_unlock (&self->lock);
}

guint
whep_sessions_count (WhepSessions *self)
{
  guint n;

  g_mutex_lock (&self->lock);
  n = g_hash_table_size (self->all);
  g_mutex_unlock (&self->lock);
  return n;
}

// ---- sessions ----

WhepSessions *
whep_sessions_new (WebrtcPort *port, Loop *loop)
{
  WhepSessions *self = g_new0 (WhepSessions, 1);

  g_mutex_init (&self->lock);
  self->readers = (WebrtcReaders) { port, loop, on_ended, self };
  self->connections = connections_new ();
  self->all = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, entry_free);
  return self;
}

void
whep_sessions_free (WhepSessions *self)
{
  connections_unref (self->connections);
  g_hash_table_unref (self->all);
  g_mutex_clear (&self->lock);
  g_free (self);
}

gchar *
whep_sessions_enter (WhepSessions *self, GInetAddress *address, const gchar *peer)
{
  gchar *reason = NULL;

  if (connections_admit (self->connections, address, "WebRTC sessions", peer, &reason))
    return NULL;
  return reason ? reason : g_strdup ("there is no room for a session now");
}

void
whep_sessions_leave (WhepSessions *self, GInetAddress *address)
{
  connections_leave (self->connections, address);
}

gboolean
whep_sessions_add (WhepSessions *self, const WebrtcReaderParts *parts, GInetAddress *address,
    WhepSession *session, GError **error)
{
  WebrtcReader *reader;
  Entry *entry;

  // A reader that ends at once waits until it is in the table.
  g_mutex_lock (&self->lock);
  reader = webrtc_reader_new (&self->readers, parts, error);
  if (reader) {
    entry = g_new0 (Entry, 1);
    entry->reader = reader;
    entry->etag = make_etag ();
    entry->address = g_object_ref (address);
    *session = (WhepSession) { webrtc_reader_ref (reader), secrets_dup_random (NAME_BYTES),
      g_strdup (entry->etag) };
    g_hash_table_insert (self->all, g_strdup (session->name), entry);
  }
  g_mutex_unlock (&self->lock);
  return reader != NULL;
}

gboolean
whep_sessions_find (WhepSessions *self, const gchar *name, WhepSession *session)
{
  gchar *key = g_strndup (name, strcspn (name, "?"));
  Entry *entry;

  g_mutex_lock (&self->lock);
  entry = g_hash_table_lookup (self->all, key);
  if (entry)
    *session =
        (WhepSession) { webrtc_reader_ref (entry->reader), g_strdup (key), g_strdup (entry->etag) };
  g_mutex_unlock (&self->lock);
  g_free (key);
  return entry != NULL;
}

void
whep_sessions_renew (WhepSessions *self, WhepSession *session)
{
  Entry *entry;

  g_free (session->etag);
  session->etag = make_etag ();
  g_mutex_lock (&self->lock);
  entry = g_hash_table_lookup (self->all, session->name);
  if (entry) {
    g_free (entry->etag);
    entry->etag = g_strdup (session->etag);
  }
  g_mutex_unlock (&self->lock);
}
