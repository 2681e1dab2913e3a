// SPDX-License-Identifier: LGPL-2.1-or-later
// Serves readers of different layers over UDP and TCP for fanoutsink-layers-test.py, which decodes
// their packets.
//
//     fanoutsink-layers DIRECTORY SEED PICTURES
//
// With PICTURES 0, each of the 9 layer sets has a UDP reader and a TCP reader, and the file is
// played once. Otherwise two readers change their layers at about every second picture. The NAL
// units of a reader go to DIRECTORY/NUMBER.264. The program prints a line for each picture of a
// reader: reader, picture, spatial layer, and the offset of its end in the file. It exits with 0 if
// no reader's sequence numbers have a gap and all counts add up.
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gio/gio.h>
#include <gst/check/gstharness.h>

#include "avc.h"

#define CAPS "application/x-rtp,media=video,clock-rate=90000,encoding-name=H264,payload=96"
#define READERS 18
#define PATIENCE (30 * G_USEC_PER_SEC)

typedef struct {
  guint number;
  gchar *host; // an address or a token
  gint port;
  GSocket *socket;
  FILE *out;
  guint8 rest[200000];
  gsize n_rest;
  gboolean started;
  guint16 next_seq;
  guint32 time;
  gint spatial;
  guint n_packets;
} Reader;

static Reader readers[READERS];
static guint n_readers;
static GstElement *sink;

static void
write_unit (Reader *reader, const guint8 *data, gsize len, gboolean begins)
{
  if (begins)
    fwrite ("\0\0\0\1", 4, 1, reader->out);
  fwrite (data, len, 1, reader->out);
}

static void
see_layer (Reader *reader, guint8 type, const guint8 *header)
{
  if (type == 20 && (header[1] >> 4 & 7) > reader->spatial)
    reader->spatial = header[1] >> 4 & 7;
}

static void
got_packet (Reader *reader, const guint8 *data, gsize len)
{
  const guint8 *payload = data + 12;
  guint16 seq = (guint16) (data[2] << 8 | data[3]);
  guint32 time =
      (guint32) data[4] << 24 | (guint32) data[5] << 16 | (guint32) data[6] << 8 | data[7];
  guint8 header = (guint8) ((payload[0] & 0xe0) | (payload[1] & 31));

  if (reader->started && seq != reader->next_seq)
    g_error ("reader %u: packet %u follows %u", reader->number, seq, reader->next_seq - 1);
  reader->started = TRUE;
  reader->next_seq = seq + 1;
  reader->n_packets++;
  len -= 12;
  if ((payload[0] & 31) == 28) {
    if (payload[1] & 0x80) {
      write_unit (reader, &header, 1, TRUE);
      see_layer (reader, header & 31, payload + 2);
    }
    write_unit (reader, payload + 2, len - 2, FALSE);
  } else if ((payload[0] & 31) == 24) {
    for (gsize at = 1; at < len;) {
      gsize size = (gsize) (payload[at] << 8 | payload[at + 1]);

      write_unit (reader, payload + at + 2, size, TRUE);
      see_layer (reader, payload[at + 2] & 31, payload + at + 3);
      at += 2 + size;
    }
  } else {
    write_unit (reader, payload, len, TRUE);
    see_layer (reader, payload[0] & 31, payload + 1);
  }
  reader->time = time;
  if (data[1] >> 7) {
    g_print ("%u %u %d %ld\n", reader->number, (time - 1000) / 3000, reader->spatial,
        ftell (reader->out));
    reader->spatial = 0;
  }
}

static gssize
receive (Reader *reader, guint8 *data, gsize room)
{
  gssize n = recv (g_socket_get_fd (reader->socket), data, room, MSG_DONTWAIT);

  if (n < 0 && errno != EAGAIN)
    g_error ("reader %u: %s", reader->number, g_strerror (errno));
  return n;
}

static void
receive_all (Reader *reader)
{
  static guint8 packet[70000];
  gboolean udp = g_socket_get_socket_type (reader->socket) == G_SOCKET_TYPE_DATAGRAM;
  gssize n;

  while (udp && (n = receive (reader, packet, sizeof packet)) > 0)
    got_packet (reader, packet, (gsize) n);
  while (
      !udp
      && (n = receive (reader, reader->rest + reader->n_rest, sizeof reader->rest - reader->n_rest))
             > 0) {
    gsize at = 0, len;

    reader->n_rest += (gsize) n;
    while (reader->n_rest - at >= 2
           && reader->n_rest - at - 2
                  >= (len = (gsize) reader->rest[at] << 8 | reader->rest[at + 1])) {
      got_packet (reader, reader->rest + at + 2, len);
      at += 2 + len;
    }
    memmove (reader->rest, reader->rest + at, reader->n_rest - at);
    reader->n_rest -= at;
  }
}

static GstStructure *
get_stats (const Reader *reader)
{
  GstStructure *stats;

  g_signal_emit_by_name (sink, "get-stats", reader->host, reader->port, &stats);
  return stats;
}

static guint64
get (const GstStructure *stats, const gchar *field)
{
  guint64 value = 0;

  g_assert_true (gst_structure_get_uint64 (stats, field, &value));
  return value;
}

// Receives packets until the window has no more for the reader.
static void
catch_up (Reader *reader)
{
  gint64 deadline = g_get_monotonic_time () + PATIENCE;

  for (;;) {
    GstStructure *stats = get_stats (reader);
    guint64 lag = get (stats, "lag-packets"), sent = get (stats, "packets-sent");

    gst_structure_free (stats);
    receive_all (reader);
    if (lag == 0 && reader->n_packets == sent)
      return;
    if (g_get_monotonic_time () > deadline)
      g_error ("reader %u has received %u of %" G_GUINT64_FORMAT
               " sent packets, and lags by %" G_GUINT64_FORMAT " packets",
          reader->number, reader->n_packets, sent, lag);
    g_usleep (200);
  }
}

static void
set_layers (const Reader *reader, gint spatial, gint temporal, gboolean is_there)
{
  gboolean ok;

  g_signal_emit_by_name (
      sink, "set-layers", reader->host, reader->port, spatial, -1, temporal, &ok);
  g_assert_cmpint (ok, ==, is_there);
}

static Reader *
reader_new (const gchar *directory)
{
  Reader *reader = &readers[n_readers];
  gchar *path = g_strdup_printf ("%s/%u.264", directory, n_readers);

  reader->number = n_readers++;
  reader->out = fopen (path, "wb");
  g_assert_nonnull (reader->out);
  g_free (path);
  return reader;
}

static void
add_udp (const gchar *directory, gint spatial, gint temporal)
{
  Reader *reader = reader_new (directory);
  GSocketAddress *address = g_inet_socket_address_new_from_string ("127.0.0.1", 0);

  reader->socket =
      g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_DATAGRAM, G_SOCKET_PROTOCOL_UDP, NULL);
  g_assert_true (g_socket_bind (reader->socket, address, FALSE, NULL));
  g_object_unref (address);
  address = g_socket_get_local_address (reader->socket, NULL);
  reader->host = g_strdup ("127.0.0.1");
  reader->port = g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (address));
  g_object_unref (address);
  // The layers are chosen before the reader is added.
  set_layers (reader, spatial, temporal, FALSE);
  g_signal_emit_by_name (sink, "add", reader->host, reader->port);
}

static void
add_tcp (const gchar *directory, gint spatial, gint temporal)
{
  Reader *reader = reader_new (directory);
  GSocket *other;
  int ends[2];

  g_assert_cmpint (socketpair (AF_UNIX, SOCK_STREAM, 0, ends), ==, 0);
  reader->socket = g_socket_new_from_fd (ends[0], NULL);
  other = g_socket_new_from_fd (ends[1], NULL);
  g_signal_emit_by_name (sink, "add-socket", other, 1 /* rfc4571 */, 0, &reader->host);
  g_assert_nonnull (reader->host);
  g_object_unref (other);
  set_layers (reader, spatial, temporal, TRUE);
}

static void
push_picture (GstHarness *h, const AvcRtp *rtp, gsize *at, guint n_aus, guint picture)
{
  GstBufferList *list = gst_buffer_list_new ();
  static guint16 seq = 65000;
  gboolean marker = FALSE;

  if (picture % n_aus == 0)
    *at = 0;
  for (; !marker; ++*at) {
    const AvcPacket *packet = &rtp->packets[*at];
    guint8 *data = g_memdup2 (packet->data, packet->len);

    GST_WRITE_UINT16_BE (data + 2, seq++);
    GST_WRITE_UINT32_BE (data + 4, 1000 + picture * 3000);
    marker = data[1] >> 7;
    gst_buffer_list_insert (list, -1, gst_buffer_new_wrapped (data, packet->len));
  }
  g_assert_cmpint (gst_pad_push_list (h->srcpad, list), ==, GST_FLOW_OK);
  for (guint i = 0; i < n_readers; i++)
    catch_up (&readers[i]);
}

static void
finish (Reader *reader)
{
  GstStructure *stats = get_stats (reader);

  catch_up (reader);
  g_assert_cmpuint (
      get (stats, "packets-due"), ==, get (stats, "packets-sent") + get (stats, "dropped"));
  g_assert_cmpuint (get (stats, "dropped"), ==, get (stats, "dropped-layers"));
  g_assert_cmpuint (get (stats, "dropped"), ==, get (stats, "left-out"));
  g_assert_cmpuint (get (stats, "packets-sent"), ==, reader->n_packets);
  gst_structure_free (stats);
  fclose (reader->out);
  g_object_unref (reader->socket);
  g_free (reader->host);
}

int
main (int argc, char **argv)
{
  guint n_pictures, turn;
  GstHarness *h;
  GRand *random;
  AvcRtp rtp;
  gsize at = 0;
  Avc avc;

  gst_init (&argc, &argv);
  if (argc != 4 || !avc_load (&avc, "svc_3s3t.264"))
    g_error ("usage: fanoutsink-layers DIRECTORY SEED PICTURES");
  random = g_rand_new_with_seed ((guint32) atoi (argv[2]));
  n_pictures = (guint) atoi (argv[3]);
  turn = n_pictures == 0;
  rtp = avc_packetize (&avc, g_rand_boolean (random), 0);
  // With PICTURES 0 the streaming thread serves the readers, otherwise the workers do.
  h = gst_harness_new_parse (turn ? "fanoutsink join=keyframe inline-readers=100"
                                  : "fanoutsink join=keyframe inline-readers=0");
  gst_harness_set_src_caps_str (h, CAPS);
  sink = gst_harness_find_element (h, "fanoutsink");
  for (gint i = 0; turn && i < 9; i++) {
    add_udp (argv[1], i / 3, i % 3);
    add_tcp (argv[1], i / 3, i % 3);
  }
  if (!turn) {
    add_udp (argv[1], 2, 2);
    add_tcp (argv[1], -1, -1);
  }
  for (guint picture = 0; picture < (turn ? avc.n_aus : n_pictures); picture++) {
    for (guint i = 0; !turn && i < n_readers; i++) {
      if (g_rand_int_range (random, 0, 100) < 60)
        set_layers (
            &readers[i], g_rand_int_range (random, -1, 3), g_rand_int_range (random, -1, 3), TRUE);
    }
    push_picture (h, &rtp, &at, avc.n_aus, picture);
  }
  for (guint i = 0; i < n_readers; i++)
    finish (&readers[i]);
  gst_object_unref (sink);
  gst_harness_teardown (h);
  g_rand_free (random);
  free (rtp.packets);
  avc_free (&avc);
  return 0;
}
