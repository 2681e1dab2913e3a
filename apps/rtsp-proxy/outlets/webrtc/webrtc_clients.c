// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_clients.h"

#include <string.h>

#include "access/secrets.h"

#define NAME_BYTES 16

typedef struct {
  WebrtcClient *client;
  gchar *etag;
  GInetAddress *address;
} Entry;

struct _WebrtcClients {
  WebrtcContext context;
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

  webrtc_client_unref (self->client);
  g_object_unref (self->address);
  g_free (self->etag);
  g_free (self);
}

void
webrtc_entry_clear (WebrtcEntry *session)
{
  g_clear_pointer (&session->client, webrtc_client_unref);
  g_clear_pointer (&session->name, g_free);
  g_clear_pointer (&session->etag, g_free);
}

// ---- the end of a session ----

static void
on_ended (WebrtcClient *client, gpointer data)
{
  WebrtcClients *self = data;
  GHashTableIter iter;
  gpointer entry;

  g_mutex_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->all);
  while (g_hash_table_iter_next (&iter, NULL, &entry)) {
    if (((Entry *) entry)->client == client) {
      connections_leave (self->connections, ((Entry *) entry)->address);
      g_hash_table_iter_remove (&iter);
      break;
    }
  }
  g_mutex_unlock (&self->lock);
}

void
webrtc_clients_end (WebrtcClients *self, Presentation *presentation, const gchar *reason)
{
  GHashTableIter iter;
  gpointer entry;

  g_mutex_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->all);
  while (g_hash_table_iter_next (&iter, NULL, &entry)) {
    WebrtcClient *client = ((Entry *) entry)->client;

    if (!presentation || client->presentation == presentation)
      webrtc_client_end (client, reason);
  }
  g_mutex_unlock (&self->lock);
}

guint
webrtc_clients_count (WebrtcClients *self)
{
  guint n;

  g_mutex_lock (&self->lock);
  n = g_hash_table_size (self->all);
  g_mutex_unlock (&self->lock);
  return n;
}

// ---- sessions ----

WebrtcClients *
webrtc_clients_new (WebrtcPort *port, Loop *loop)
{
  WebrtcClients *self = g_new0 (WebrtcClients, 1);

  g_mutex_init (&self->lock);
  self->context = (WebrtcContext) { port, loop, on_ended, self };
  self->connections = connections_new ();
  self->all = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, entry_free);
  return self;
}

void
webrtc_clients_free (WebrtcClients *self)
{
  connections_unref (self->connections);
  g_hash_table_unref (self->all);
  g_mutex_clear (&self->lock);
  g_free (self);
}

gchar *
webrtc_clients_enter (WebrtcClients *self, GInetAddress *address, const gchar *peer)
{
  gchar *reason = NULL;

  if (connections_admit (self->connections, address, "WebRTC sessions", peer, &reason))
    return NULL;
  return reason ? reason : g_strdup ("there is no room for a session now");
}

void
webrtc_clients_leave (WebrtcClients *self, GInetAddress *address)
{
  connections_leave (self->connections, address);
}

const WebrtcContext *
webrtc_clients_get_context (WebrtcClients *self)
{
  return &self->context;
}

void
webrtc_clients_add (
    WebrtcClients *self, WebrtcClient *client, GInetAddress *address, WebrtcEntry *session)
{
  Entry *entry = g_new0 (Entry, 1);

  entry->client = client;
  entry->etag = make_etag ();
  entry->address = g_object_ref (address);
  *session = (WebrtcEntry) { webrtc_client_ref (client), secrets_dup_random (NAME_BYTES),
    g_strdup (entry->etag) };
  // A client that ends at once waits until it is in the table.
  g_mutex_lock (&self->lock);
  webrtc_client_open (client);
  g_hash_table_insert (self->all, g_strdup (session->name), entry);
  g_mutex_unlock (&self->lock);
}

gboolean
webrtc_clients_find (WebrtcClients *self, const gchar *name, WebrtcEntry *session)
{
  gchar *key = g_strndup (name, strcspn (name, "?"));
  Entry *entry;

  g_mutex_lock (&self->lock);
  entry = g_hash_table_lookup (self->all, key);
  if (entry)
    *session =
        (WebrtcEntry) { webrtc_client_ref (entry->client), g_strdup (key), g_strdup (entry->etag) };
  g_mutex_unlock (&self->lock);
  g_free (key);
  return entry != NULL;
}

void
webrtc_clients_renew (WebrtcClients *self, WebrtcEntry *session)
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
