// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "whep_client.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "outlets/webrtc/stun_hmac.h"
#include "ports.h"
#include "run/clock.h"

#define SECOND INT64_C (1000000000)
#define MILLISECOND INT64_C (1000000)
#define CHECK_NS (50 * MILLISECOND) // from the first check to the second; then twice as long
#define CHECK_MAX_NS (500 * MILLISECOND)
#define CONSENT_NS (5 * SECOND)
#define CONSENT_LOST_NS (30 * SECOND) // RFC 7675
#define REPORT_NS SECOND
#define PRIORITY 0x6e0001ffu // of a peer-reflexive candidate
#define BUFFER (1024 * 1024)
#define READS_MAX 8 // of one socket in a row, so that the others have their turn

static void fail (WhepClient *self, const gchar *format, ...) G_GNUC_PRINTF (2, 3);

// ---- the reader ----

void
whep_client_init (WhepClient *self, guint index, const Target *target, WhepRun *run)
{
  gchar *uuid = g_uuid_string_random (), *at = self->password;

  *self = (WhepClient) {
    .index = index, .run = run, .target = target, .selected = -1, .fd = -1, .due_ns = WEIR_NEVER
  };
  g_snprintf (self->ufrag, sizeof self->ufrag, "%08x", g_random_int ());
  for (const gchar *c = uuid; *c; c++) {
    if (*c != '-')
      *at++ = *c;
  }
  for (guint i = 0; i < WEIR_STUN_ID; i++)
    self->check_id[i] = (guint8) g_random_int ();
  http_call_init (&self->call, run->epoll, (guint64) index << 1 | WHEP_HTTP);
  g_free (uuid);
}

static void
close_socket (WhepClient *self)
{
  if (self->fd >= 0)
    close (self->fd);
  self->fd = -1;
}

void
whep_client_clear (WhepClient *self)
{
  close_socket (self);
  g_clear_pointer (&self->dtls, dtls_free);
  http_call_clear (&self->call);
  whep_media_clear (&self->media);
  whep_answer_clear (&self->answer);
  g_free (self->session);
  g_free (self->why);
}

static void
go_on (WhepClient *self, WhepState state, gint64 now)
{
  self->state = state;
  self->state_ns = self->due_ns = now;
}

// The socket stays open, as a caller may be reading it.
static void
fail (WhepClient *self, const gchar *format, ...)
{
  va_list args;

  if (self->why) // such as an answer that comes after its time
    return;
  va_start (args, format);
  self->why = g_strdup_vprintf (format, args);
  va_end (args);
  self->failed_in = self->state;
  self->state = WHEP_FAILED;
  self->due_ns = WEIR_NEVER;
}

// ---- ICE ----

static void
send_check (WhepClient *self, guint candidate, gboolean nominates)
{
  const WeirAddress *to = &self->answer.candidates[candidate];
  gchar *username = g_strconcat (self->answer.ufrag, ":", self->ufrag, NULL);
  const WeirStunCheck check = {
    .username = username,
    .username_len = strlen (username),
    .priority = PRIORITY,
    .tie_breaker = (guint64) self->index + 1,
    .use_candidate = nominates,
  };
  guint8 packet[WEIR_STUN_REQUEST_MAX];
  gsize len;

  self->check_id[WEIR_STUN_ID - 2] = (guint8) nominates;
  self->check_id[WEIR_STUN_ID - 1] = (guint8) candidate;
  len = weir_stun_write_request (self->check_id, &check, self->answer.password,
      strlen (self->answer.password), stun_hmac_sha1, packet);
  if (self->selected >= 0)
    send (self->fd, packet, len, MSG_DONTWAIT);
  else
    sendto (self->fd, packet, len, MSG_DONTWAIT, &to->any, weir_address_len (to));
  g_free (username);
}

// Without a choice, the first check nominates (RFC 8445, 8.1.1: when is up to the agent).
static void
check_candidates (WhepClient *self, gint64 now)
{
  const WhepAnswer *answer = &self->answer;

  if (self->selected >= 0) {
    send_check (self, (guint) self->selected, TRUE);
  } else {
    for (guint i = 0; i < answer->n_candidates; i++) {
      if (answer->candidates[i].any.sa_family == answer->candidates[0].any.sa_family)
        send_check (self, i, answer->n_candidates == 1);
    }
  }
  self->checked_ns = now;
}

static void
select_candidate (WhepClient *self, guint candidate, gint64 now)
{
  const WeirAddress *to = &self->answer.candidates[candidate];

  if (connect (self->fd, &to->any, weir_address_len (to)) < 0) {
    fail (self, "cannot use the server's candidate: %s", g_strerror (errno));
    return;
  }
  self->selected = (gint) candidate;
}

static void take_dtls_state (WhepClient *self, DtlsState state, gint64 now);

static void
take_stun_answer (WhepClient *self, const WeirStun *stun, gint64 now)
{
  gboolean nominated = stun->id[WEIR_STUN_ID - 2];
  guint candidate = stun->id[WEIR_STUN_ID - 1];

  if (memcmp (stun->id, self->check_id, WEIR_STUN_ID - 2) != 0
      || candidate >= self->answer.n_candidates
      || !weir_stun_is_authentic (
          stun, self->answer.password, strlen (self->answer.password), stun_hmac_sha1))
    return;
  self->consented_ns = now;
  if (self->state != WHEP_CHECKING)
    return;
  if (self->selected < 0) {
    select_candidate (self, candidate, now);
    if (self->state == WHEP_CHECKING && !nominated)
      check_candidates (self, now);
  }
  if (self->state == WHEP_CHECKING && nominated) {
    go_on (self, WHEP_SHAKING, now);
    if (!self->answer.peer_is_client)
      take_dtls_state (self, dtls_begin (self->dtls), now);
  }
}

// A server with all of ICE checks back.
static void
take_stun_request (WhepClient *self, const WeirStun *stun)
{
  guint8 answer[WEIR_STUN_ANSWER_MAX];
  gsize len;

  if (self->selected < 0
      || !weir_stun_is_authentic (stun, self->password, strlen (self->password), stun_hmac_sha1))
    return;
  len = weir_stun_write_success (stun->id, &self->answer.candidates[self->selected], self->password,
      strlen (self->password), stun_hmac_sha1, answer);
  send (self->fd, answer, len, MSG_DONTWAIT);
}

static void
take_stun (WhepClient *self, const guint8 *data, gsize len, gint64 now)
{
  WeirStun stun;

  if (weir_stun_read (data, len, &stun) != 0)
    return;
  if (stun.type == WEIR_STUN_SUCCESS)
    take_stun_answer (self, &stun, now);
  else if (stun.type == WEIR_STUN_REQUEST)
    take_stun_request (self, &stun);
}

// ---- DTLS ----

static void
send_dtls (gpointer data, const guint8 *datagram, gsize size)
{
  WhepClient *self = data;

  send (self->fd, datagram, size, MSG_DONTWAIT);
}

static void
begin_media (WhepClient *self, gint64 now)
{
  guint8 sends[DTLS_KEY_MAX], receives[DTLS_KEY_MAX];
  gsize size = 0;
  const gchar *profile = dtls_get_keys (self->dtls, sends, receives, &size);

  if (!profile || !whep_media_init (&self->media, &self->answer, profile, sends, receives, size)) {
    fail (self, "the keys of DTLS cannot be used");
    return;
  }
  weir_histogram_add (&self->run->dtls_done, now - self->began_ns);
  self->consented_ns = now;
  go_on (self, WHEP_RECEIVING, now);
  self->report_ns = now;
}

static void
take_dtls_state (WhepClient *self, DtlsState state, gint64 now)
{
  gint64 due;

  if (state == DTLS_FAILED)
    fail (self, "DTLS: %s", dtls_get_problem (self->dtls));
  else if (state == DTLS_CLOSED)
    fail (self, "the server ended the session");
  else if (state == DTLS_CONNECTED && self->state == WHEP_SHAKING)
    begin_media (self, now);
  if (self->state != WHEP_SHAKING)
    return;
  due = dtls_get_due (self->dtls);
  self->due_ns = weir_now_ns () + MIN (due, SECOND); // `now` may be long ago
}

// ---- packets ----

static void
take_media (WhepClient *self, const guint8 *data, gsize len, gint64 arrival_ns)
{
  WhepMedia *media = &self->media;
  gboolean is_first = media->first_ns == 0, had_keyframe = media->keyframe_ns != 0;

  if (weir_rtp_is_rtcp (data, len)) {
    whep_media_take_rtcp (media, data, len, arrival_ns);
    return;
  }
  whep_media_take_rtp (media, data, len, arrival_ns);
  if (is_first && media->first_ns)
    weir_histogram_add (&self->run->first_packet, media->first_ns - self->began_ns);
  if (!had_keyframe && media->keyframe_ns)
    weir_histogram_add (&self->run->keyframe, media->keyframe_ns - self->began_ns);
}

// The first byte tells what a datagram is (RFC 7983).
static void
take_datagram (gpointer user, const guint8 *data, gsize len, gint64 arrival_ns)
{
  WhepClient *self = user;

  if (len == 0 || self->state == WHEP_FAILED)
    return;
  if (data[0] <= 3)
    take_stun (self, data, len, arrival_ns);
  else if (data[0] >= 20 && data[0] <= 63)
    take_dtls_state (self, dtls_take (self->dtls, data, len), arrival_ns);
  else if (data[0] >= 128 && data[0] <= 191 && self->state == WHEP_RECEIVING)
    take_media (self, data, len, arrival_ns);
}

static void
read_datagrams (WhepClient *self)
{
  int n = RECEIVER_BATCH;

  for (guint i = 0; i < READS_MAX && n == RECEIVER_BATCH; i++)
    n = receiver_read (self->run->receiver, self->fd, &self->socket_drops, take_datagram, self);
  if (self->state == WHEP_RECEIVING)
    self->due_ns = MIN (self->due_ns, whep_media_feedback_due (&self->media));
  if (self->state == WHEP_FAILED)
    close_socket (self);
}

// ---- requests ----

static void
open_socket (WhepClient *self)
{
  struct epoll_event event = { .events = EPOLLIN,
    .data.u64 = (guint64) self->index << 1 | WHEP_UDP };

  self->fd = socket (
      self->answer.candidates[0].any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (self->fd < 0) {
    fail (self, "cannot open a UDP socket: %s", g_strerror (errno));
    return;
  }
  ports_set_up (self->fd, BUFFER);
  epoll_ctl (self->run->epoll, EPOLL_CTL_ADD, self->fd, &event);
}

// Keeps the path of the session's URL, which may be relative to that of the POST.
static void
keep_session (WhepClient *self, const gchar *location)
{
  gchar *full =
      location ? g_uri_resolve_relative (self->target->uri, location, G_URI_FLAGS_ENCODED, NULL)
               : NULL;

  self->session = full ? target_dup_path (full) : NULL;
  g_free (full);
}

static void
take_answer (WhepClient *self, gint64 now)
{
  const HttpReply *reply = &self->call.reply;
  WeirAddress server = { 0 };
  const gchar *why;

  if (reply->status != 201) {
    fail (self, "the server answers %u to POST: %.*s", reply->status,
        (int) MIN (strcspn (reply->body->str, "\r\n"), 200), reply->body->str);
    return;
  }
  weir_histogram_add (&self->run->answer, now - self->began_ns);
  keep_session (self, reply->location);
  weir_address_normalise (
      (const struct sockaddr *) &self->target->address, self->target->address_len, &server);
  why = whep_sdp_read (&self->answer, reply->body->str, &server);
  if (!why && !self->session)
    why = "has no Location";
  if (why) {
    fail (self, "the answer %s", why);
    return;
  }
  self->dtls = dtls_new (
      self->run->dtls, !self->answer.peer_is_client, self->answer.fingerprint, send_dtls, self);
  if (!self->dtls) {
    fail (self, "no memory for DTLS");
    return;
  }
  self->check_gap_ns = CHECK_NS;
  open_socket (self);
  if (self->state == WHEP_ASKING)
    go_on (self, WHEP_CHECKING, now);
}

static void
on_http (WhepClient *self, HttpCallState state, gint64 now)
{
  if (state == HTTP_CALL_OPEN)
    return;
  if (self->state == WHEP_LEAVING)
    go_on (self, WHEP_GONE, now);
  else if (state == HTTP_CALL_FAILED)
    fail (self, "the POST failed: %s", self->call.problem);
  else
    take_answer (self, now);
  if (self->state == WHEP_CHECKING)
    whep_client_tick (self, now);
}

void
whep_client_start (WhepClient *self, gint64 now)
{
  gchar *offer = whep_sdp_offer (
      self->ufrag, self->password, dtls_context_get_fingerprint (self->run->dtls), self->run->twcc);
  gchar *path = target_dup_path (self->target->uri);

  self->began_ns = now;
  go_on (self, WHEP_ASKING, now);
  on_http (self,
      http_call_begin (&self->call, self->target, "POST", path,
          "Content-Type: application/sdp\r\nAccept: application/sdp\r\n", offer),
      now);
  g_free (offer);
  g_free (path);
}

void
whep_client_leave (WhepClient *self, gint64 now)
{
  if (self->dtls && self->fd >= 0)
    dtls_close (self->dtls);
  close_socket (self);
  go_on (self, self->session ? WHEP_LEAVING : WHEP_GONE, now);
  if (self->session)
    on_http (
        self, http_call_begin (&self->call, self->target, "DELETE", self->session, "", ""), now);
}

// ---- events and times ----

void
whep_client_on_event (WhepClient *self, WhepSocket socket, gint64 now)
{
  if (socket == WHEP_UDP && self->fd >= 0)
    read_datagrams (self);
  else if (socket == WHEP_HTTP && self->call.fd >= 0)
    on_http (self, http_call_on_event (&self->call), now);
}

static void
report (WhepClient *self, gint64 now)
{
  for (guint kind = 0; kind < WHEP_KINDS; kind++) {
    guint8 packet[WHEP_REPORT_MAX];
    gsize len = whep_media_report (&self->media, (WhepKind) kind, now, packet);

    if (len > 0)
      send (self->fd, packet, len, MSG_DONTWAIT);
  }
}

// Once a second.
static void
keep_up (WhepClient *self, gint64 now)
{
  report (self, now);
  if (now - self->checked_ns >= CONSENT_NS)
    check_candidates (self, now);
  if (now - self->consented_ns > CONSENT_LOST_NS)
    fail (self, "no answer to STUN for %.0f s", (gdouble) CONSENT_LOST_NS / 1e9);
  else if (!self->media.first_ns && now - self->state_ns > self->run->timeout_ns)
    fail (self, "no media within %.0f s", (gdouble) self->run->timeout_ns / 1e9);
  self->report_ns = MIN (self->report_ns + REPORT_NS, now + REPORT_NS);
}

static void
give_feedback (WhepClient *self)
{
  guint8 packet[WHEP_FEEDBACK_MAX];
  gsize len = whep_media_feedback (&self->media, packet);

  if (len > 0)
    send (self->fd, packet, len, MSG_DONTWAIT);
}

// What a reader does that receives.
static void
tick_media (WhepClient *self, gint64 now)
{
  if (whep_media_feedback_due (&self->media) <= now)
    give_feedback (self);
  if (self->report_ns <= now)
    keep_up (self, now);
  if (self->state == WHEP_RECEIVING)
    self->due_ns = MIN (self->report_ns, whep_media_feedback_due (&self->media));
}

static void
fail_by_time (WhepClient *self)
{
  static const gchar *const missing[WHEP_STATES] = {
    [WHEP_ASKING] = "answer to POST",
    [WHEP_CHECKING] = "answer to STUN from the server's candidates",
    [WHEP_SHAKING] = "end of the DTLS handshake",
  };

  fail (self, "no %s within %.0f s", missing[self->state], (gdouble) self->run->timeout_ns / 1e9);
}

void
whep_client_tick (WhepClient *self, gint64 now)
{
  gboolean is_late = now - self->state_ns > self->run->timeout_ns;

  self->due_ns = now + SECOND / 10;
  if (self->state == WHEP_RECEIVING) {
    tick_media (self, now);
  } else if (self->state == WHEP_LEAVING && is_late) {
    self->state = WHEP_GONE;
  } else if (self->state >= WHEP_ASKING && self->state <= WHEP_SHAKING && is_late) {
    fail_by_time (self);
  } else if (self->state == WHEP_CHECKING) {
    check_candidates (self, now);
    self->due_ns = now + self->check_gap_ns;
    self->check_gap_ns = MIN (2 * self->check_gap_ns, CHECK_MAX_NS);
  } else if (self->state == WHEP_SHAKING) {
    take_dtls_state (self, dtls_tick (self->dtls), now);
  }
  if (self->state == WHEP_FAILED)
    close_socket (self);
}
