// SPDX-License-Identifier: LGPL-2.1-or-later
//
// gst-rtsp-server 1.22 to 1.26 asks the kernel for a port again and again, without end, if none is
// free (alloc_ports_one_family() counts its tries only from the first success on). It tries each
// port of an address pool once, though. So ports are found here, and the stream gets a pool with
// just these.
//
// Readers over TCP need no ports, but gst-rtsp-server makes no sink for a stream without sockets.
// Without free ports the sockets are on an address of 127.0.0.0/8 of their own, on a port that the
// kernel gives to nobody who does not name it. Nothing is sent from them.
#include "ports.h"

#include <string.h>
#include <unistd.h>

#include "ingest/udp.h"

#define TRIES 8 // somebody else may take a port that was free
#define STAND_IN_TRIES 32
#define STAND_IN_FIRST 1024
#define STAND_IN_PAIRS 8192 // up to port 17406

// Qdata of a stream: our pool, and whether its sockets only stand in.
static GQuark
pool_quark (void)
{
  return g_quark_from_static_string ("weir-ports");
}

static GQuark
stand_in_quark (void)
{
  return g_quark_from_static_string ("weir-ports-stand-in");
}

gboolean
weir_stream_is_tcp_only (GstRTSPStream *stream)
{
  return g_object_get_qdata (G_OBJECT (stream), stand_in_quark ()) != NULL;
}

static gboolean
has_sockets (GstRTSPStream *stream)
{
  GSocket *v4 = gst_rtsp_stream_get_rtp_socket (stream, G_SOCKET_FAMILY_IPV4);
  GSocket *v6 = gst_rtsp_stream_get_rtp_socket (stream, G_SOCKET_FAMILY_IPV6);
  gboolean has = v4 || v6;

  g_clear_object (&v4);
  g_clear_object (&v6);
  return has;
}

static gboolean
allocate (GstRTSPStream *stream, GSocketFamily family)
{
  GstRTSPTransport transport = { 0 };

  gst_rtsp_transport_init (&transport);
  transport.lower_transport = GST_RTSP_LOWER_TRANS_UDP;
  return gst_rtsp_stream_allocate_udp_sockets (stream, family, &transport, FALSE);
}

// Allocates sockets on this port of an address, and the next one.
static gboolean
allocate_at (GstRTSPStream *stream, GSocketFamily family, const gchar *address, guint16 port)
{
  GstRTSPAddressPool *pool = gst_rtsp_address_pool_new ();

  gst_rtsp_address_pool_add_range (pool, address, address, port, (guint16) (port + 1), 0);
  gst_rtsp_stream_set_address_pool (stream, pool);
  g_object_set_qdata_full (G_OBJECT (stream), pool_quark (), pool, g_object_unref);
  return allocate (stream, family);
}

static gboolean
open_family (GstRTSPStream *stream, GSocketFamily family)
{
  const gboolean v6 = family == G_SOCKET_FAMILY_IPV6;
  WeirAddress any;

  memset (&any, 0, sizeof any);
  any.any.sa_family = v6 ? AF_INET6 : AF_INET;
  for (guint i = 0; i < TRIES; i++) {
    int fds[2], port = weir_udp_open_pair (&any, 0, 0, FALSE, fds);

    if (port < 0)
      return FALSE;
    close (fds[0]);
    close (fds[1]);
    if (allocate_at (stream, family,
            v6 ? GST_RTSP_ADDRESS_POOL_ANY_IPV6 : GST_RTSP_ADDRESS_POOL_ANY_IPV4, (guint16) port))
      return TRUE;
  }
  return FALSE;
}

static gboolean
open_stand_in (GstRTSPStream *stream)
{
  gboolean open = FALSE;

  for (guint i = 0; !open && i < STAND_IN_TRIES; i++) {
    guint32 host = g_random_int ();
    guint16 port = (guint16) (STAND_IN_FIRST + 2 * g_random_int_range (0, STAND_IN_PAIRS));
    gchar *address =
        g_strdup_printf ("127.%u.%u.%u", 1 + host % 254, host >> 8 & 0xff, 1 + (host >> 16) % 254);

    open = allocate_at (stream, G_SOCKET_FAMILY_IPV4, address, port);
    g_free (address);
  }
  if (open) {
    gst_rtsp_stream_set_protocols (stream, GST_RTSP_LOWER_TRANS_TCP);
    g_object_set_qdata (G_OBJECT (stream), stand_in_quark (), stream);
  }
  return open;
}

gboolean
weir_ports_open (GstRTSPStream *stream, gboolean ipv6)
{
  GstRTSPAddressPool *pool = gst_rtsp_stream_get_address_pool (stream);
  gboolean own = pool && pool != g_object_get_qdata (G_OBJECT (stream), pool_quark ());
  gboolean v4, v6;

  g_clear_object (&pool);
  if (has_sockets (stream))
    return TRUE;
  // A pool of the program's is used as it is.
  v6 = ipv6 && (own ? allocate : open_family) (stream, G_SOCKET_FAMILY_IPV6);
  v4 = (own ? allocate : open_family) (stream, G_SOCKET_FAMILY_IPV4);
  return v4 || v6 || (!own && open_stand_in (stream));
}
