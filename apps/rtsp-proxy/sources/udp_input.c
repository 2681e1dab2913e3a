// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/udp_input.h"

#include <gst/net/gstnetaddressmeta.h>
#include <net/if.h>
#include <sys/socket.h>

#include "base/element.h"
#include "base/log.h"
#include "ingest/udp.h"

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

// SO_RCVBUFFORCE exceeds the system's limit; it needs CAP_NET_ADMIN.
static void
set_buffer (GSocket *socket)
{
  int fd = g_socket_get_fd (socket), size = UDP_INPUT_BUFFER;

  if (setsockopt (fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) < 0)
    setsockopt (fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

static GSocketAddress *
bind_address (const PullEndpoint *endpoint, GInetAddress *address)
{
  guint scope = endpoint->iface && g_inet_address_get_is_mc_link_local (address)
                        && g_inet_address_get_family (address) == G_SOCKET_FAMILY_IPV6
                    ? if_nametoindex (endpoint->iface)
                    : 0;

  return g_object_new (G_TYPE_INET_SOCKET_ADDRESS, "address", address, "port",
      (guint) endpoint->port, "scope-id", scope, NULL);
}

// Binds a multicast socket to the address of its group, so that it gets no datagrams of other
// groups with the same port, and shares the address, so that other sockets of this host can join
// the group.
static gboolean
open_socket (UdpInput *self, const PullEndpoint *endpoint, GError **error)
{
  GInetAddress *address = g_inet_address_new_from_string (endpoint->address);
  gboolean group = g_inet_address_get_is_multicast (address);
  GSocketAddress *where = bind_address (endpoint, address);
  gboolean ok = FALSE;

  self->socket = g_socket_new (
      g_inet_address_get_family (address), G_SOCKET_TYPE_DATAGRAM, G_SOCKET_PROTOCOL_UDP, error);
  if (self->socket) {
    set_buffer (self->socket);
    ok = g_socket_bind (self->socket, where, group, error)
         && (!group
             || g_socket_join_multicast_group (
                 self->socket, address, FALSE, endpoint->iface, error));
  }
  if (!ok)
    g_prefix_error (error, "%s port %u: ", endpoint->address, endpoint->port);
  g_object_unref (where);
  g_object_unref (address);
  return ok;
}

UdpInput *
udp_input_new (const PullEndpoint *endpoint, GError **error)
{
  UdpInput *self;

  if (endpoint->iface && !if_nametoindex (endpoint->iface)) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND,
        "no such network interface: %s", endpoint->iface);
    return NULL;
  }
  self = g_new0 (UdpInput, 1);
  g_mutex_init (&self->lock);
  if (!open_socket (self, endpoint, error)) {
    udp_input_free (self);
    return NULL;
  }
  return self;
}

void
udp_input_free (gpointer data)
{
  UdpInput *self = data;

  g_clear_object (&self->socket);
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

gboolean
udp_input_is_from_sender (UdpInput *self, GstBuffer *datagram)
{
  GSocketAddress *sender = sender_of (datagram);
  gboolean is;

  g_mutex_lock (&self->lock);
  is = sender && (!self->sender || same_host (sender, self->sender));
  g_mutex_unlock (&self->lock);
  return is;
}

void
udp_input_answer (UdpInput *self, const guint8 *data, gsize size)
{
  GOutputVector vector = { data, size };
  GSocketAddress *to;

  g_mutex_lock (&self->lock);
  to = self->sender ? g_object_ref (self->sender) : NULL;
  g_mutex_unlock (&self->lock);
  if (!to)
    return;
  // A packet that would block is dropped: the keyframe will be requested again.
  g_socket_send_message_with_timeout (
      self->socket, to, &vector, 1, NULL, 0, G_SOCKET_MSG_NONE, 0, NULL, NULL, NULL);
  g_object_unref (to);
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
