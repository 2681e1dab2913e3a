// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_handshake.h"

#include <gio/gio.h>
#include <string.h>

#include "base/clock.h"
#include "base/threads.h"

#define THREADS 2
#define THREAD "webrtc-dtls"
#define QUEUE_BYTES (32 * 1024)
// A handshake needs six datagrams of the peer, or some more if networks lose or cut them. What
// comes later is flights that come again, and the end.
#define BURST 128
#define EACH_NS (G_GINT64_CONSTANT (1000000000) / 8)

struct _WebrtcHandshakes {
  DtlsContext *context;
  GMutex lock;          // taken after that of a handshake
  GThreadPool *threads; // of handshakes with work; guarded. NULL: stopped
};

struct _WebrtcHandshake {
  WebrtcHandshakes *all;
  const WebrtcHandshakeOps *ops;
  gpointer session;
  gboolean is_client;
  guint8 fingerprint[TLS_FINGERPRINT_BYTES];
  Dtls *dtls; // of the thread that works; NULL until there is work

  GMutex lock;   // guards all below
  GQueue queue;  // of GBytes
  gsize queued;  // bytes
  gint64 due_ns; // of the bucket of datagrams: when it is full again
  gboolean begins, ticks, settles, closes, works, is_settled;
  DtlsState state;
  gint64 due;
  gchar *problem;
  const gchar *profile;
  GBytes *send, *receive;
};

// ---- work; a thread of the pool ----

static void
send_datagram (gpointer handshake, const guint8 *datagram, gsize size)
{
  WebrtcHandshake *self = handshake;

  self->ops->send (self->session, datagram, size);
}

static void
wipe_key (gpointer key)
{
  explicit_bzero (key, DTLS_KEY_MAX);
  g_free (key);
}

// Who has the last reference wipes it.
static GBytes *
make_key (const guint8 *bytes, gsize size)
{
  guint8 *key = g_malloc (DTLS_KEY_MAX);

  memcpy (key, bytes, size);
  return g_bytes_new_with_free_func (key, size, wipe_key, key);
}

static void
take_keys (WebrtcHandshake *self)
{
  guint8 send[DTLS_KEY_MAX], receive[DTLS_KEY_MAX];
  gsize size;

  self->profile = dtls_get_keys (self->dtls, send, receive, &size);
  if (self->profile) {
    self->send = make_key (send, size);
    self->receive = make_key (receive, size);
    explicit_bzero (send, sizeof send);
    explicit_bzero (receive, sizeof receive);
  } else {
    self->state = DTLS_FAILED;
    self->problem = g_strdup ("the keys of SRTP cannot be derived");
  }
}

static void
set_state (WebrtcHandshake *self, DtlsState state)
{
  const gint64 left = dtls_get_due (self->dtls);

  g_mutex_lock (&self->lock);
  self->due = left == DTLS_NEVER ? DTLS_NEVER : clock_now () + left;
  if (self->state != state && self->state < DTLS_CLOSED) {
    self->state = state;
    if (state == DTLS_CONNECTED)
      take_keys (self);
    if (state == DTLS_FAILED)
      self->problem = g_strdup (dtls_get_problem (self->dtls));
  }
  g_mutex_unlock (&self->lock);
}

static gboolean
open (WebrtcHandshake *self)
{
  if (!self->dtls)
    self->dtls =
        dtls_new (self->all->context, self->is_client, self->fingerprint, send_datagram, self);
  return self->dtls != NULL;
}

typedef struct {
  gboolean begins, ticks, settles, closes;
  GBytes *datagram;
} Work;

// Returns FALSE if there is none.
static gboolean
get_work (WebrtcHandshake *self, Work *work)
{
  gboolean has;

  g_mutex_lock (&self->lock);
  *work = (Work) { self->begins, self->ticks, self->settles, self->closes,
    g_queue_pop_head (&self->queue) };
  self->begins = self->ticks = self->settles = FALSE;
  if (work->datagram) {
    self->queued -= g_bytes_get_size (work->datagram);
    work->closes = FALSE; // after what came before
  }
  if (work->closes)
    self->closes = FALSE;
  has = work->begins || work->ticks || work->settles || work->closes || work->datagram;
  self->works = has;
  g_mutex_unlock (&self->lock);
  return has;
}

static void
do_work (WebrtcHandshake *self, const Work *work)
{
  if (!open (self))
    return; // without memory; the session's time runs out
  if (work->begins)
    set_state (self, dtls_begin (self->dtls));
  if (work->ticks)
    set_state (self, dtls_tick (self->dtls));
  if (work->settles)
    dtls_settle (self->dtls);
  if (work->datagram) {
    gsize size;
    const guint8 *data = g_bytes_get_data (work->datagram, &size);

    set_state (self, dtls_take (self->dtls, data, size));
  }
  if (work->closes)
    dtls_close (self->dtls);
}

static void
run (WebrtcHandshake *self)
{
  const WebrtcHandshakeOps *ops = self->ops;
  gpointer session = self->session;
  Work work;

  while (get_work (self, &work)) {
    do_work (self, &work);
    g_clear_pointer (&work.datagram, g_bytes_unref);
  }
  ops->changed (session);
  ops->unref (session);
}

static void
run_in_thread (gpointer handshake, gpointer unused)
{
  thread_set_name (THREAD);
  run (handshake);
  thread_set_name (THREAD_IDLE);
}

// The lock is held.
static void
wake (WebrtcHandshake *self)
{
  WebrtcHandshakes *all = self->all;

  if (self->works)
    return;
  g_mutex_lock (&all->lock);
  if (all->threads) {
    self->works = TRUE;
    self->ops->ref (self->session);
    // Without a thread it waits for one.
    g_thread_pool_push (all->threads, self, NULL);
  }
  g_mutex_unlock (&all->lock);
}

// ---- asking for work ----

void
webrtc_handshake_begin (WebrtcHandshake *self)
{
  g_mutex_lock (&self->lock);
  self->begins = TRUE;
  wake (self);
  g_mutex_unlock (&self->lock);
}

void
webrtc_handshake_tick (WebrtcHandshake *self)
{
  g_mutex_lock (&self->lock);
  self->due = DTLS_NEVER;
  self->ticks = TRUE;
  wake (self);
  g_mutex_unlock (&self->lock);
}

void
webrtc_handshake_settle (WebrtcHandshake *self)
{
  g_mutex_lock (&self->lock);
  if (self->state == DTLS_CONNECTED && !self->is_settled) {
    self->settles = self->is_settled = TRUE;
    wake (self);
  }
  g_mutex_unlock (&self->lock);
}

void
webrtc_handshake_close (WebrtcHandshake *self)
{
  g_mutex_lock (&self->lock);
  if (self->state != DTLS_OPENING) {
    self->closes = TRUE;
    wake (self);
  }
  g_mutex_unlock (&self->lock);
}

// The lock is held.
static gboolean
has_room (WebrtcHandshake *self, gsize size, gint64 now)
{
  if (self->due_ns < now)
    self->due_ns = now;
  if (self->due_ns - now > (BURST - 1) * EACH_NS || self->queued + size > QUEUE_BYTES)
    return FALSE;
  self->due_ns += EACH_NS;
  return TRUE;
}

gboolean
webrtc_handshake_push (WebrtcHandshake *self, const guint8 *datagram, gsize size, gint64 now)
{
  gboolean taken;

  g_mutex_lock (&self->lock);
  taken = has_room (self, size, now);
  if (taken) {
    g_queue_push_tail (&self->queue, g_bytes_new (datagram, size));
    self->queued += size;
    wake (self);
  }
  g_mutex_unlock (&self->lock);
  return taken;
}

// ---- results ----

DtlsState
webrtc_handshake_get_state (WebrtcHandshake *self)
{
  DtlsState state;

  g_mutex_lock (&self->lock);
  state = self->state;
  g_mutex_unlock (&self->lock);
  return state;
}

gint64
webrtc_handshake_get_due (WebrtcHandshake *self)
{
  gint64 due;

  g_mutex_lock (&self->lock);
  due = self->due;
  g_mutex_unlock (&self->lock);
  return due;
}

gchar *
webrtc_handshake_dup_problem (WebrtcHandshake *self)
{
  gchar *problem;

  g_mutex_lock (&self->lock);
  problem = g_strdup (self->problem);
  g_mutex_unlock (&self->lock);
  return problem;
}

const gchar *
webrtc_handshake_get_keys (WebrtcHandshake *self, GBytes **send, GBytes **receive)
{
  g_mutex_lock (&self->lock);
  *send = g_bytes_ref (self->send);
  *receive = g_bytes_ref (self->receive);
  g_mutex_unlock (&self->lock);
  return self->profile;
}

// ---- construction ----

WebrtcHandshakes *
webrtc_handshakes_new (GError **error)
{
  WebrtcHandshakes *self = g_new0 (WebrtcHandshakes, 1);

  g_mutex_init (&self->lock);
  self->context = dtls_context_new (error);
  if (self->context)
    self->threads = g_thread_pool_new (run_in_thread, NULL, THREADS, FALSE, NULL);
  else
    g_clear_pointer (&self, webrtc_handshakes_free);
  return self;
}

void
webrtc_handshakes_stop (WebrtcHandshakes *self)
{
  GThreadPool *threads;

  g_mutex_lock (&self->lock);
  threads = g_steal_pointer (&self->threads);
  g_mutex_unlock (&self->lock);
  if (threads)
    g_thread_pool_free (threads, FALSE, TRUE);
}

void
webrtc_handshakes_free (WebrtcHandshakes *self)
{
  webrtc_handshakes_stop (self);
  g_clear_pointer (&self->context, dtls_context_free);
  g_mutex_clear (&self->lock);
  g_free (self);
}

const gchar *
webrtc_handshakes_get_fingerprint (WebrtcHandshakes *self)
{
  return dtls_context_get_fingerprint (self->context);
}

WebrtcHandshake *
webrtc_handshake_new (WebrtcHandshakes *all, gboolean is_client,
    const guint8 fingerprint[TLS_FINGERPRINT_BYTES], const WebrtcHandshakeOps *ops,
    gpointer session)
{
  WebrtcHandshake *self = g_new0 (WebrtcHandshake, 1);

  self->all = all;
  self->ops = ops;
  self->session = session;
  self->is_client = is_client;
  memcpy (self->fingerprint, fingerprint, sizeof self->fingerprint);
  self->due = DTLS_NEVER;
  g_mutex_init (&self->lock);
  g_queue_init (&self->queue);
  return self;
}

void
webrtc_handshake_free (WebrtcHandshake *self)
{
  g_queue_clear_full (&self->queue, (GDestroyNotify) g_bytes_unref);
  g_clear_pointer (&self->dtls, dtls_free);
  g_clear_pointer (&self->send, g_bytes_unref);
  g_clear_pointer (&self->receive, g_bytes_unref);
  g_free (self->problem);
  g_mutex_clear (&self->lock);
  g_free (self);
}
