// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/jwks_source.h"

#include "base/log.h"
#include "base/timer.h"
#include "config/web_url.h"

#define HOUR_MS (60 * 60 * 1000)
#define FETCH_TIMEOUT_MS 10000

typedef struct {
  GFunc done;
  gpointer data;
} Waiter;

struct _JwksSource {
  gint refs; // of the owner, and of functions that are sent to the main thread
  gchar *where;
  HttpClient *http; // NULL: freed
  gint64 quiet_us;
  Timer *hourly;
  LogLimit failures;

  GMutex lock; // protects the fields below
  Jwks *keys;  // or NULL
  gboolean loading;
  gint64 due_us;   // when the keys may be loaded again, monotonic
  GArray *waiters; // of Waiter
};

static void
unref (gpointer data)
{
  JwksSource *self = data;

  if (!g_atomic_int_dec_and_test (&self->refs))
    return;
  g_clear_pointer (&self->keys, jwks_unref);
  g_array_unref (self->waiters);
  g_mutex_clear (&self->lock);
  g_free (self->where);
  g_free (self);
}

static void
call_waiters (JwksSource *self)
{
  g_autoptr (GArray) waiters = NULL;

  g_mutex_lock (&self->lock);
  waiters = self->waiters;
  self->waiters = g_array_new (FALSE, FALSE, sizeof (Waiter));
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < waiters->len; i++) {
    const Waiter *waiter = &g_array_index (waiters, Waiter, i);

    waiter->done (waiter->data, NULL);
  }
}

// Replaces the keys by `keys`, unless that is NULL, and calls the functions that wait. Takes
// ownership of both arguments.
static void
loaded (JwksSource *self, Jwks *keys, GError *error)
{
  Jwks *old = NULL;
  gboolean is_new;

  if (error)
    log_event_limited (
        &self->failures, "jwt: the keys were not loaded, old ones stay: %s", error->message);
  g_clear_error (&error);
  g_mutex_lock (&self->lock);
  is_new = keys && !(self->keys && jwks_equal (self->keys, keys));
  if (is_new) {
    old = self->keys;
    self->keys = jwks_ref (keys);
  }
  self->loading = FALSE;
  g_mutex_unlock (&self->lock);
  if (is_new)
    log_event ("jwt: %u keys loaded from %s", jwks_count (keys), self->where);
  g_clear_pointer (&old, jwks_unref);
  g_clear_pointer (&keys, jwks_unref);
  call_waiters (self);
}

static void
on_answer (const HttpAnswer *answer, gpointer data)
{
  JwksSource *self = data;
  GError *error = NULL;
  Jwks *keys = NULL;
  gsize size;
  gconstpointer text;

  if (answer->error) {
    error = g_error_copy (answer->error);
  } else if (answer->status != 200) {
    g_set_error (&error, G_IO_ERROR, G_IO_ERROR_FAILED, "the server answered %u", answer->status);
  } else {
    text = g_bytes_get_data (answer->body, &size);
    keys = jwks_new (text ? text : "", size, &error);
  }
  if (error)
    g_prefix_error (&error, "%s: ", self->where);
  loaded (self, keys, error);
  unref (self);
}

// Runs on the main thread, with `loading` set.
static gboolean
load (gpointer data)
{
  JwksSource *self = data;
  GError *error = NULL;
  Jwks *keys;

  if (!self->http) {
    loaded (self, NULL, NULL);
  } else if (web_url_is (self->where)) {
    g_atomic_int_inc (&self->refs);
    http_client_send (
        self->http, self->where, NULL, FETCH_TIMEOUT_MS, JWKS_SIZE_MAX, on_answer, self);
  } else {
    keys = jwks_load (self->where, &error);
    loaded (self, keys, error);
  }
  return G_SOURCE_REMOVE;
}

gboolean
jwks_source_load (JwksSource *self, GFunc done, gpointer data)
{
  gint64 now_us = g_get_monotonic_time ();
  Waiter waiter = { done, data };
  gboolean begins, waits;

  g_mutex_lock (&self->lock);
  begins = !self->loading && now_us >= self->due_us;
  waits = begins || self->loading;
  if (begins) {
    self->loading = TRUE;
    self->due_us = now_us + self->quiet_us;
  }
  if (waits && done)
    g_array_append_val (self->waiters, waiter);
  g_mutex_unlock (&self->lock);
  if (begins) {
    g_atomic_int_inc (&self->refs);
    g_idle_add_full (G_PRIORITY_DEFAULT, load, self, unref);
  }
  return waits;
}

Jwks *
jwks_source_dup_keys (JwksSource *self)
{
  Jwks *keys;

  g_mutex_lock (&self->lock);
  keys = self->keys ? jwks_ref (self->keys) : NULL;
  g_mutex_unlock (&self->lock);
  return keys;
}

// ---- construction ----

static gboolean
on_hour (gpointer self)
{
  jwks_source_load (self, NULL, NULL);
  return G_SOURCE_CONTINUE;
}

JwksSource *
jwks_source_new (const gchar *where, Jwks *keys, HttpClient *http, guint quiet_ms)
{
  JwksSource *self = g_new0 (JwksSource, 1);

  self->refs = 1;
  self->where = g_strdup (where);
  self->http = http;
  self->quiet_us = (gint64) quiet_ms * 1000;
  self->failures = LOG_LIMIT_FAILURES;
  self->keys = keys ? jwks_ref (keys) : NULL;
  self->waiters = g_array_new (FALSE, FALSE, sizeof (Waiter));
  g_mutex_init (&self->lock);
  self->hourly = timer_add (HOUR_MS, on_hour, self);
  if (!keys)
    jwks_source_load (self, NULL, NULL);
  return self;
}

void
jwks_source_free (JwksSource *self)
{
  timer_remove (self->hourly);
  self->http = NULL;
  call_waiters (self);
  unref (self);
}
