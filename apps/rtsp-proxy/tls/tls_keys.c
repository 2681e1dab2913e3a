// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tls/tls_keys.h"

#include <string.h>

#include "base/file_stamp.h"
#include "base/log.h"

struct _TlsKeys {
  gchar *certificate, *key;
  TlsPair *pair;
  FileStamp read[2], seen[2]; // of the files as last read, and as seen a moment ago
  guint timer;
};

static void
take_stamps (TlsKeys *self, FileStamp stamps[2])
{
  stamps[0] = file_stamp_take (self->certificate);
  stamps[1] = file_stamp_take (self->key);
}

static void
log_pair (TlsKeys *self)
{
  g_autofree gchar *summary = tls_pair_dup_summary (self->pair);
  g_autofree gchar *warning =
      tls_pair_dup_warning (self->pair, g_get_real_time () / G_USEC_PER_SEC);

  log_event ("tls certificate read: %s: %s", self->certificate, summary);
  if (warning)
    log_event ("warning: the tls certificate in %s %s", self->certificate, warning);
}

void
tls_keys_reload (TlsKeys *self)
{
  GError *error = NULL;
  TlsPair *pair;

  take_stamps (self, self->read);
  pair = tls_pair_load (self->certificate, self->key, &error);
  if (!pair) {
    log_event ("tls certificate not read again; the old one stays in use: %s", error->message);
    g_error_free (error);
    return;
  }
  tls_pair_unref (self->pair);
  self->pair = pair;
  log_pair (self);
}

static gboolean
on_timer (gpointer data)
{
  TlsKeys *self = data;
  FileStamp now[2];
  gboolean rests;

  take_stamps (self, now);
  rests = memcmp (now, self->seen, sizeof now) == 0;
  memcpy (self->seen, now, sizeof now);
  if (rests && memcmp (now, self->read, sizeof now) != 0)
    tls_keys_reload (self);
  return G_SOURCE_CONTINUE;
}

TlsKeys *
tls_keys_new (const gchar *certificate, const gchar *key, TlsPair *pair)
{
  TlsKeys *self = g_new0 (TlsKeys, 1);

  self->certificate = g_strdup (certificate);
  self->key = g_strdup (key);
  self->pair = pair;
  take_stamps (self, self->read);
  memcpy (self->seen, self->read, sizeof self->seen);
  self->timer = g_timeout_add_seconds (TLS_KEYS_INTERVAL_S, on_timer, self);
  log_pair (self);
  return self;
}

void
tls_keys_free (TlsKeys *self)
{
  g_source_remove (self->timer);
  tls_pair_unref (self->pair);
  g_free (self->certificate);
  g_free (self->key);
  g_free (self);
}

TlsPair *
tls_keys_dup_pair (TlsKeys *self)
{
  return tls_pair_ref (self->pair);
}
