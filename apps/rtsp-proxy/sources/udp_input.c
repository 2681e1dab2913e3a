// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/udp_input.h"

#include <gst/net/gstnetaddressmeta.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/element.h"
#include "base/log.h"
#include "ingest/udp.h"
#include "sources/endpoint.h"

// Silence after which the socket accepts another sender: one on the same host (which may be the
// same sender, restarted), or one on any host.
#define RESTART_SILENCE (50 * GST_MSECOND)
#define SENDER_SILENCE GST_SECOND

struct _UdpInput {
  GSocket *socket;
  GMutex lock; // of all below
  GSocketAddress *sender;
  gint64 heard; // arrival of its last datagram
  UdpStats stats;
  gint64 asked;  // when the kernel was asked for its drops
  guint32 taken; // its drops that udp_input_take_overflow() has returned
};

UdpInput *
udp_input_new (const PullEndpoint *endpoint, GError **error)
{
  gint fd = endpoint->is_open
                ? endpoint->fd
                : endpoint_open (endpoint, endpoint->port, 2 * UDP_INPUT_BUFFER, FALSE, error);
  GSocket *socket = fd >= 0 ? g_socket_new_from_fd (fd, error) : NULL;
  UdpInput *self;

  if (!socket) {
    if (fd >= 0)
      close (fd);
    return NULL;
  }
  self = g_new0 (UdpInput, 1);
  g_mutex_init (&self->lock);
  self->socket = socket;
  return self;
}

void
udp_input_free (gpointer data)
{
  UdpInput *self = data;

  g_object_unref (self->socket);
  g_clear_object (&self->sender);
  g_mutex_clear (&self->lock);
  g_free (self);
}

GstElement *
udp_input_add_source (UdpInput *self, GstBin *bin, GError **error)
{
  GstElement *source = element_make ("udpsrc", error);

  if (!source)
    return NULL;
  g_object_set (
      source, "socket", self->socket, "close-socket", FALSE, "auto-multicast", FALSE, NULL);
  gst_bin_add (bin, source);
  return source;
}

static GSocketAddress *
sender_of (GstBuffer *datagram)
{
  GstNetAddressMeta *meta = gst_buffer_get_net_address_meta (datagram);

  return meta ? meta->addr : NULL;
}

static gboolean
same_host (GSocketAddress *a, GSocketAddress *b)
{
  return g_inet_address_equal (g_inet_socket_address_get_address (G_INET_SOCKET_ADDRESS (a)),
      g_inet_socket_address_get_address (G_INET_SOCKET_ADDRESS (b)));
}

static gboolean
same_sender (GSocketAddress *a, GSocketAddress *b)
{
  return same_host (a, b)
         && g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (a))
                == g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (b));
}

// Call with the lock held.
static gboolean
is_admitted (UdpInput *self, GSocketAddress *sender, gint64 now)
{
  gint64 silence = now - self->heard;

  if (!self->sender || same_sender (sender, self->sender))
    return TRUE;
  return silence > (gint64) (same_host (sender, self->sender) ? RESTART_SILENCE : SENDER_SILENCE);
}

gboolean
udp_input_admits (UdpInput *self, GstBuffer *datagram, gint64 now)
{
  GSocketAddress *sender = sender_of (datagram);
  gboolean admitted;

  g_mutex_lock (&self->lock);
  admitted = sender && is_admitted (self, sender, now);
  if (!admitted)
    self->stats.n_foreign++;
  g_mutex_unlock (&self->lock);
  return admitted;
}

gboolean
udp_input_accept (UdpInput *self, GstBuffer *datagram, gint64 now)
{
  GSocketAddress *sender = sender_of (datagram);
  gboolean other, begins;

  g_mutex_lock (&self->lock);
  other = !self->sender || !same_sender (sender, self->sender);
  begins = other || now - self->heard > (gint64) SENDER_SILENCE;
  if (other)
    g_set_object (&self->sender, sender);
  self->heard = now;
  g_mutex_unlock (&self->lock);
  return begins;
}

void
udp_input_refuse (UdpInput *self)
{
  g_mutex_lock (&self->lock);
  self->stats.n_wrong++;
  g_mutex_unlock (&self->lock);
}

guint32
udp_input_take_overflow (UdpInput *self, gint64 now)
{
  guint32 n = 0, drops;

  g_mutex_lock (&self->lock);
  if (now - self->asked > (gint64) GST_SECOND) {
    self->asked = now;
    drops = weir_udp_drops (g_socket_get_fd (self->socket));
    n = drops - self->taken;
    self->taken = drops;
  }
  g_mutex_unlock (&self->lock);
  return n;
}

void
udp_input_add_stats (UdpInput *self, UdpStats *stats)
{
  guint32 drops = weir_udp_drops (g_socket_get_fd (self->socket));

  g_mutex_lock (&self->lock);
  stats->n_foreign += self->stats.n_foreign;
  stats->n_wrong += self->stats.n_wrong;
  stats->n_lost += drops;
  g_mutex_unlock (&self->lock);
}

void
udp_stats_log (const UdpStats *stats, const gchar *uri)
{
  if (stats->n_foreign + stats->n_wrong + stats->n_lost == 0)
    return;
  log_event ("upstream %s: dropped %" G_GUINT64_FORMAT " malformed datagrams, %" G_GUINT64_FORMAT
             " from other senders, %" G_GUINT64_FORMAT " for lack of buffer space",
      uri, stats->n_wrong, stats->n_foreign, stats->n_lost);
}
