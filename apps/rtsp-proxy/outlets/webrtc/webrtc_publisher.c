// SPDX-License-Identifier: LGPL-2.1-or-later
// The port's thread decrypts what comes, and the receive engine puts it in order.
#include "outlets/webrtc/webrtc_publisher.h"

#include "base/clock.h"
#include "base/log.h"
#include "outlets/webrtc/webrtc_intake.h"

#define WATCH_MS 250
#define ALIVE_NS G_GINT64_CONSTANT (1000000000) // between two notes of consent

typedef struct {
  WebrtcClient client; // first
  Mounts *mounts;
  GArray *choices; // of AnswerChoice
  gchar *path;     // of the mount
  gchar *identity;
  guint read_timeout_ms;
  PublicationTracks shared;

  // The port's thread's.
  gchar *host; // of the route
  gint64 alive_noted;

  gint64 since; // when it was connected, ns

  // Changed by the port's thread, and by the loop's when no event comes any more; with the client's
  // lock, with which others read it.
  WebrtcIntake *intake; // NULL: not connected, or it has ended
  gint64 due;           // of the watch; guarded by that lock
  gint64 watch_due;     // when the mount is looked at next; the loop's thread's
} Publisher;

static void
publisher_free (WebrtcClient *client)
{
  Publisher *self = (Publisher *) client;

  g_array_unref (self->choices);
  g_free (self->path);
  g_free (self->identity);
  g_free (self->host);
  g_free (self);
}

// ---- requests for keyframes, from any thread ----

// There may be feedback earlier than the loop knows.
static void
advance_due (Publisher *self)
{
  gint64 due;

  g_mutex_lock (&self->client.lock);
  due = self->intake ? webrtc_intake_get_due (self->intake) : WEIR_NEVER;
  if (due < self->due) {
    self->due = due;
    loop_set_due (&self->client.watch, due);
  }
  g_mutex_unlock (&self->client.lock);
}

static void
ask (Publisher *self, void (*ask_intake) (WebrtcIntake *intake, guint number), guint number)
{
  g_mutex_lock (&self->client.lock);
  if (self->intake)
    ask_intake (self->intake, number);
  g_mutex_unlock (&self->client.lock);
  advance_due (self);
}

static void
on_ask_key (gpointer publisher, guint index)
{
  ask (publisher, webrtc_intake_ask_key, index);
}

static void
on_ask_layer (gpointer publisher, guint layer)
{
  ask (publisher, webrtc_intake_ask_layer, layer);
}

static void
unref_owner (gpointer publisher)
{
  webrtc_client_unref (publisher);
}

// ---- events of the session, in the port's thread ----

static void
on_route (gpointer publisher, const WebrtcRoute *route)
{
  Publisher *self = publisher;

  g_free (self->host);
  self->host = g_strdup (route->host);
}

static void
begin_publication (Publisher *self)
{
  GPtrArray *caps = webrtc_intake_dup_caps (self->intake);

  log_event (
      "publisher %s in: %s over WebRTC, %u tracks", self->client.peer, self->path, caps->len);
  publication_begin (self->shared.publication, "WebRTC", caps);
  g_ptr_array_unref (caps);
}

static void
on_connected (gpointer publisher, const WebrtcKeys *keys)
{
  Publisher *self = publisher;
  const WebrtcIntakeParts parts = { self->client.offer, self->choices, self->client.cname,
    self->host, keys, self->path, self->client.peer, self->identity, on_ask_layer,
    webrtc_client_ref (&self->client), unref_owner };
  WebrtcIntake *intake = webrtc_intake_new (&self->shared, &parts);

  if (!intake) {
    webrtc_client_unref (&self->client);
    webrtc_client_end (&self->client, "there is no memory for its tracks");
    return;
  }
  self->since = clock_now ();
  g_mutex_lock (&self->client.lock);
  self->intake = intake;
  self->due = self->watch_due = loop_next_tick (self->since, WATCH_MS);
  loop_set_due (&self->client.watch, self->due);
  g_mutex_unlock (&self->client.lock);
  begin_publication (self);
}

static void
take (Publisher *self, guint8 *packet, gsize size, gboolean is_rtcp, gint64 arrival)
{
  const gint64 now = clock_now ();

  if (!self->intake || !webrtc_intake_take (self->intake, packet, size, is_rtcp, arrival, now))
    return;
  if (now - self->alive_noted > ALIVE_NS) {
    self->alive_noted = now;
    webrtc_client_note_alive (&self->client);
  }
  advance_due (self);
}

static void
on_rtp (gpointer publisher, guint8 *packet, gsize size, gint64 arrival)
{
  take (publisher, packet, size, FALSE, arrival);
}

static void
on_rtcp (gpointer publisher, guint8 *packet, gsize size, gint64 arrival)
{
  take (publisher, packet, size, TRUE, arrival);
}

static void
on_closed (gpointer publisher, const gchar *reason)
{
  webrtc_client_end (publisher, reason);
}

// ---- the publication, from any thread ----

static void
on_displaced (gpointer publisher)
{
  webrtc_client_end (publisher, "another publisher has taken the mount over");
}

// ---- the loop's thread ----

static void
check_mount (Publisher *self, gint64 now)
{
  const gint64 heard = __atomic_load_n (&self->shared.heard, __ATOMIC_RELAXED);
  gboolean exists;
  MountConfig *config = mounts_dup_publish_config (self->mounts, self->path, &exists);
  gchar *reason = NULL;

  if (!config)
    reason = g_strdup ("the mount no longer takes publishers");
  else if (now - MAX (heard, self->since) > self->read_timeout_ms * (gint64) GST_MSECOND)
    reason = g_strdup_printf ("no media for %.1f s", self->read_timeout_ms / 1000.0);
  g_clear_pointer (&config, mount_config_unref);
  if (reason)
    webrtc_client_end (&self->client, reason);
  g_free (reason);
}

static void
on_due (WebrtcClient *client, gint64 now)
{
  Publisher *self = (Publisher *) client;
  guint8 packet[WEBRTC_INTAKE_ROOM];
  gsize size;

  if (now >= self->watch_due) {
    check_mount (self, now);
    webrtc_intake_refresh (self->intake, now);
    self->watch_due = loop_next_tick (now, WATCH_MS);
  }
  while ((size = webrtc_intake_write (self->intake, now, packet)) > 0)
    webrtc_session_send (client->session, packet, size);
  g_mutex_lock (&client->lock);
  self->due = MIN (webrtc_intake_get_due (self->intake), self->watch_due);
  loop_set_due (&client->watch, self->due);
  g_mutex_unlock (&client->lock);
}

static void
end (WebrtcClient *client, const gchar *reason)
{
  Publisher *self = (Publisher *) client;
  gchar *whole = g_strdup_printf ("the publisher has left (%s)", reason);
  WebrtcIntake *intake;

  g_mutex_lock (&client->lock);
  intake = g_steal_pointer (&self->intake);
  g_mutex_unlock (&client->lock);
  log_event ("publisher %s out: %s: %s", client->peer, self->path, reason);
  if (intake)
    webrtc_intake_free (intake, whole);
  publication_end (self->shared.publication, whole);
  g_free (whole);
}

// ---- construction ----

static gchar *
write_answer (WebrtcClient *client, const AnswerOwn *own)
{
  AnswerOwn receiver = *own;

  receiver.receives = TRUE;
  return sdp_answer_write (client->offer, ((Publisher *) client)->choices, &receiver);
}

WebrtcClient *
webrtc_publisher_new (
    const WebrtcContext *context, const WebrtcPublisherParts *parts, GError **error)
{
  static const WebrtcClientOps ops = { { .connected = on_connected,
                                           .route = on_route,
                                           .rtcp = on_rtcp,
                                           .rtp = on_rtp,
                                           .closed = on_closed },
    write_answer, on_due, NULL, end, publisher_free };
  static const PublicationOps publication = { on_displaced, on_ask_key };
  const PublicationClaim claim = { parts->path, parts->peer, parts->identity,
    parts->config->takeover, clock_now () };
  Publisher *self = g_new0 (Publisher, 1);

  webrtc_client_init (&self->client, &ops, context, parts->offer, parts->peer);
  self->mounts = parts->mounts;
  self->choices = g_array_ref (parts->choices);
  self->path = g_strdup (parts->path);
  self->identity = g_strdup (parts->identity);
  self->read_timeout_ms = parts->config->pull.read_timeout_ms;
  self->shared.publication = publication_claim (
      &claim, &publication, webrtc_client_ref (&self->client), unref_owner, error);
  if (self->shared.publication)
    return &self->client;
  webrtc_client_unref (&self->client);
  self->client.offer = NULL; // the caller's still
  webrtc_client_unref (&self->client);
  return NULL;
}
