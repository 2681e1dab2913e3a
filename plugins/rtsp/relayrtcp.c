// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relayrtcp.h"

#include "net/address.h"
#include "relaybin.h"
#include "reports.h"
#include "srtp.h"

#include <gst/base/gstbasesrc.h>
#include <pthread.h>
#include <sys/epoll.h>

#define DRAIN_INTERVAL_MS 100
#define GATHER_MS 20 // pause after packets, so that a wake-up takes many; a request waits as long
#define EVENTS 64
#define BATCH 64        // packets taken from a stream at a time
#define PACKET_MAX 2048 // longest packet that is read

// The number of a socket is the sum of these.
#define IPV6 1
#define RTP 2 // else RTCP
#define SOCKETS 4

struct _WeirRelayRtcp {
  GstRTSPStream *stream;
  GstElement *bin, *source;  // or NULL
  GSocket *sockets[SOCKETS]; // by the numbers below; NULL without the family
  guint64 id;
};

// ---- packets ----

static void
take_request (WeirRelayRtcp *self, const guint8 *data, gsize len)
{
  if (self->bin)
    weir_relay_bin_take_feedback (self->bin, gst_rtsp_stream_get_index (self->stream), data, len);
}

static void
take_rtcp (WeirRelayRtcp *self, const WeirAddress *from, guint8 *data, gsize len)
{
  if (weir_reports_take (self->stream, from, data, &len))
    take_request (self, data, len);
}

// Takes RTCP, or what comes to the RTP port: many players send a datagram there to open firewalls.
// Returns whether there is more.
static gboolean
receive (WeirRelayRtcp *self, guint number)
{
  GSocket *socket = self->sockets[number];
  guint8 data[PACKET_MAX];

  for (guint i = 0; i < BATCH; i++) {
    struct sockaddr_storage address;
    socklen_t address_len = sizeof address;
    gssize len = recvfrom (g_socket_get_fd (socket), data, sizeof data, MSG_DONTWAIT | MSG_TRUNC,
        (struct sockaddr *) &address, &address_len);
    WeirAddress from;

    if (len < 0)
      return FALSE;
    if (weir_address_normalise ((struct sockaddr *) &address, address_len, &from) < 0)
      continue;
    if (number & RTP)
      weir_reports_hear (self->stream, &from);
    else
      take_rtcp (self, &from, data, (gsize) len <= sizeof data ? (gsize) len : 0);
  }
  return TRUE;
}

// Takes RTCP that came within a reader's connection. Owns the buffer.
static void
take_interleaved (WeirRelayRtcp *self, GstBuffer *buffer)
{
  GObject *srtp = weir_srtp_dup_of_sender (buffer);
  GstMapInfo map;

  if ((!srtp || weir_srtp_unprotect_buffer (srtp, &buffer))
      && gst_buffer_map (buffer, &map, GST_MAP_READ)) {
    take_request (self, map.data, map.size);
    gst_buffer_unmap (buffer, &map);
  }
  gst_buffer_unref (buffer);
  g_clear_object (&srtp);
}

// Takes the RTCP of TCP readers out of the appsrc, as its task would do.
static void
drain (WeirRelayRtcp *self)
{
  guint64 waiting;

  g_object_get (self->source, "current-level-buffers", &waiting, NULL);
  for (guint i = 0; i < MIN (waiting, BATCH); i++) {
    GstBaseSrc *source = GST_BASE_SRC (self->source);
    GstBuffer *buffer = NULL;

    if (GST_BASE_SRC_GET_CLASS (source)->create (source, 0, (guint) -1, &buffer) != GST_FLOW_OK)
      return;
    take_interleaved (self, buffer);
  }
}

// ---- the thread ----

static struct {
  int epoll; // set once

  GMutex lock;     // guards all below
  GCond idle;      // `busy` has become NULL
  GHashTable *all; // id -> WeirRelayRtcp
  WeirRelayRtcp *busy;
  guint64 last_id;
} shared;

// Returns the stream, which stays valid until leave(), or NULL if it was removed.
static WeirRelayRtcp *
enter (guint64 id)
{
  g_mutex_lock (&shared.lock);
  shared.busy = g_hash_table_lookup (shared.all, &id);
  g_mutex_unlock (&shared.lock);
  return shared.busy;
}

static void
leave (void)
{
  g_mutex_lock (&shared.lock);
  shared.busy = NULL;
  g_cond_broadcast (&shared.idle);
  g_mutex_unlock (&shared.lock);
}

static GArray *
dup_ids (void)
{
  GArray *ids;
  GHashTableIter iter;
  gpointer id;

  g_mutex_lock (&shared.lock);
  ids = g_array_sized_new (FALSE, FALSE, sizeof (guint64), g_hash_table_size (shared.all));
  g_hash_table_iter_init (&iter, shared.all);
  while (g_hash_table_iter_next (&iter, &id, NULL))
    g_array_append_vals (ids, id, 1);
  g_mutex_unlock (&shared.lock);
  return ids;
}

static void
drain_all (void)
{
  GArray *ids = dup_ids ();

  for (guint i = 0; i < ids->len; i++) {
    WeirRelayRtcp *self = enter (g_array_index (ids, guint64, i));

    if (self && self->source)
      drain (self);
    leave ();
  }
  g_array_unref (ids);
}

// Returns whether there is more.
static gboolean
receive_all (const struct epoll_event *events, int n)
{
  gboolean more = n == EVENTS;

  for (int i = 0; i < n; i++) {
    WeirRelayRtcp *self = enter (events[i].data.u64 / SOCKETS);

    if (self)
      more |= receive (self, (guint) (events[i].data.u64 % SOCKETS));
    leave ();
  }
  return more;
}

static gpointer
run (gpointer unused)
{
  gint64 next_ms = 0;

  pthread_setname_np (pthread_self (), "weir-rtcp");
  for (;;) {
    struct epoll_event events[EVENTS];
    gint64 left_ms = next_ms - g_get_monotonic_time () / 1000;
    int n = epoll_wait (shared.epoll, events, EVENTS, (int) MAX (left_ms, 0));

    if (!receive_all (events, n) && n > 0)
      g_usleep (GATHER_MS * 1000);
    if (left_ms > 0)
      continue;
    drain_all ();
    next_ms = g_get_monotonic_time () / 1000 + DRAIN_INTERVAL_MS;
  }
  return NULL;
}

static void
start (void)
{
  static gsize started;

  if (!g_once_init_enter (&started))
    return;
  shared.all = g_hash_table_new (g_int64_hash, g_int64_equal);
  shared.epoll = epoll_create1 (EPOLL_CLOEXEC);
  g_thread_unref (g_thread_new ("weir-rtcp", run, NULL));
  g_once_init_leave (&started, 1);
}

// ---- streams ----

static GSocket *
watch_socket (WeirRelayRtcp *self, guint number)
{
  GSocketFamily family = number & IPV6 ? G_SOCKET_FAMILY_IPV6 : G_SOCKET_FAMILY_IPV4;
  GSocket *socket = number & RTP ? gst_rtsp_stream_get_rtp_socket (self->stream, family)
                                 : gst_rtsp_stream_get_rtcp_socket (self->stream, family);
  struct epoll_event event = { .events = EPOLLIN };

  event.data.u64 = self->id * SOCKETS + number;
  if (socket)
    epoll_ctl (shared.epoll, EPOLL_CTL_ADD, g_socket_get_fd (socket), &event);
  return socket;
}

static void
forget_socket (GSocket *socket)
{
  if (!socket)
    return;
  epoll_ctl (shared.epoll, EPOLL_CTL_DEL, g_socket_get_fd (socket), NULL);
  g_object_unref (socket);
}

WeirRelayRtcp *
weir_relay_rtcp_new (GstRTSPStream *stream, GstElement *bin, GstElement *source)
{
  WeirRelayRtcp *self = g_new0 (WeirRelayRtcp, 1);

  start ();
  self->stream = g_object_ref (stream);
  self->bin = bin ? gst_object_ref (bin) : NULL;
  self->source = source ? gst_object_ref (source) : NULL;
  g_mutex_lock (&shared.lock);
  self->id = ++shared.last_id;
  for (guint number = 0; number < SOCKETS; number++)
    self->sockets[number] = watch_socket (self, number);
  g_hash_table_insert (shared.all, &self->id, self);
  g_mutex_unlock (&shared.lock);
  return self;
}

void
weir_relay_rtcp_free (WeirRelayRtcp *self)
{
  g_mutex_lock (&shared.lock);
  g_hash_table_remove (shared.all, &self->id);
  while (shared.busy == self)
    g_cond_wait (&shared.idle, &shared.lock);
  g_mutex_unlock (&shared.lock);
  for (guint number = 0; number < SOCKETS; number++)
    forget_socket (self->sockets[number]);
  g_object_unref (self->stream);
  gst_clear_object (&self->bin);
  gst_clear_object (&self->source);
  g_free (self);
}
