// SPDX-License-Identifier: LGPL-2.1-or-later
// fanoutsink with sockets on the loopback interface.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gio/gio.h>
#include <gst/check/gstharness.h>
#include <gst/gst.h>

#include "weir.h"

#define PATIENCE_MS 30000

// Opens a UDP socket; `*port` 0 means any port.
static int
listen_on (int family, const gchar *address, guint16 *port)
{
  int fd = socket (family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  int size = 8 << 20, one = 1;
  struct sockaddr_storage ss = { .ss_family = (sa_family_t) family };
  socklen_t len = family == AF_INET ? sizeof (struct sockaddr_in) : sizeof (struct sockaddr_in6);

  g_assert_cmpint (fd, >=, 0);
  setsockopt (fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  setsockopt (fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
  setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (family == AF_INET)
    inet_pton (family, address, &((struct sockaddr_in *) &ss)->sin_addr);
  else
    inet_pton (family, address, &((struct sockaddr_in6 *) &ss)->sin6_addr);
  if (bind (fd, (struct sockaddr *) &ss, len) < 0) {
    close (fd);
    return -1;
  }
  g_assert_cmpint (getsockname (fd, (struct sockaddr *) &ss, &len), ==, 0);
  *port = ntohs (family == AF_INET ? ((struct sockaddr_in *) &ss)->sin_port
                                   : ((struct sockaddr_in6 *) &ss)->sin6_port);
  return fd;
}

// Returns a port that is closed.
static guint16
closed_port (void)
{
  guint16 port;
  int fd = listen_on (AF_INET, "127.0.0.1", &port);

  close (fd);
  return port;
}

static gssize
receive (int fd, guint8 *data, gsize size)
{
  struct pollfd pfd = { .fd = fd, .events = POLLIN };

  if (poll (&pfd, 1, PATIENCE_MS) <= 0)
    return -1;
  return recv (fd, data, size, 0);
}

static GstBuffer *
make_packet (gsize size, guint n, gboolean marker)
{
  guint8 *data = g_malloc (size);

  for (gsize i = 0; i < size; i++)
    data[i] = (guint8) (i * 7 + n * 31);
  if (size >= 12) {
    data[0] = 0x80;
    data[1] = marker ? 0xe0 : 0x60;
    GST_WRITE_UINT16_BE (data + 2, n);
  }
  return gst_buffer_new_wrapped (data, size);
}

// Returns the packet in three memories. Takes ownership of `whole`.
static GstBuffer *
cut_in_three (GstBuffer *whole)
{
  gsize size = gst_buffer_get_size (whole);
  GstBuffer *out;

  if (size < 30)
    return whole;
  out = gst_buffer_copy_region (whole, GST_BUFFER_COPY_MEMORY, 0, 12);
  out = gst_buffer_append (out, gst_buffer_copy_region (whole, GST_BUFFER_COPY_MEMORY, 12, 9));
  out = gst_buffer_append (
      out, gst_buffer_copy_region (whole, GST_BUFFER_COPY_MEMORY, 21, size - 21));
  gst_buffer_unref (whole);
  return out;
}

static GstHarness *
make_sink (const gchar *launch)
{
  GstHarness *h = gst_harness_new_parse (launch);

  gst_harness_use_testclock (h);
  gst_harness_set_src_caps_str (h, "application/x-rtp");
  return h;
}

static GstElement *
find_sink (GstHarness *h)
{
  return gst_harness_find_element (h, "fanoutsink");
}

static guint64
get_field (const GstStructure *s, const gchar *field)
{
  guint64 value = G_MAXUINT64;

  if (!gst_structure_get_uint64 (s, field, &value))
    g_error ("no field %s", field);
  return value;
}

static guint64
get_stat (GstElement *sink, const gchar *field)
{
  GstStructure *s;
  guint64 value;

  g_object_get (sink, "fanout-stats", &s, NULL);
  value = get_field (s, field);
  gst_structure_free (s);
  return value;
}

static guint64
get_reader_stat (GstElement *sink, const gchar *host, guint16 port, const gchar *field)
{
  GstStructure *s;
  guint64 value;

  g_signal_emit_by_name (sink, "get-stats", host, (gint) port, &s);
  value = get_field (s, field);
  gst_structure_free (s);
  return value;
}

static void
check_sums (GstElement *sink)
{
  GstStructure *s;

  g_object_get (sink, "fanout-stats", &s, NULL);
  g_assert_cmpuint (
      get_field (s, "packets-due"), ==, get_field (s, "packets-sent") + get_field (s, "dropped"));
  gst_structure_free (s);
}

static void
finish (GstHarness *h, GstElement *sink)
{
  gst_harness_push_event (h, gst_event_new_eos ());
  check_sums (sink);
  gst_object_unref (sink);
  gst_harness_teardown (h);
}

// Pushes frames of 1 to 64 packets of mixed sizes, one by one or as lists, and compares each byte
// that arrives at `fd`.
static void
stream_frames (GstHarness *h, int fd, gboolean lists, guint n_frames)
{
  GRand *rand = g_rand_new_with_seed (7);
  guint seq = 0;
  guint8 *got = g_malloc (70000);

  for (guint frame = 1; frame <= n_frames; frame++) {
    guint n = (frame - 1) % 64 + 1;
    gsize fragment = (gsize) g_rand_int_range (rand, 40, 1400);
    GstBufferList *list = gst_buffer_list_new ();
    GPtrArray *sent = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_buffer_unref);

    for (guint i = 0; i < n; i++) {
      gboolean last = i + 1 == n;
      gsize size = g_rand_int_range (rand, 0, 4) == 0 || last
                       ? (gsize) g_rand_int_range (rand, 12, 1401)
                       : fragment;
      GstBuffer *buffer = make_packet (size, seq++, last);

      g_ptr_array_add (sent, gst_buffer_copy_deep (buffer));
      gst_buffer_list_add (list, i % 3 == 0 ? cut_in_three (buffer) : buffer);
    }

    if (lists) {
      g_assert_cmpint (gst_pad_push_list (h->srcpad, list), ==, GST_FLOW_OK);
    } else {
      for (guint i = 0; i < n; i++)
        g_assert_cmpint (
            gst_harness_push (h, gst_buffer_ref (gst_buffer_list_get (list, i))), ==, GST_FLOW_OK);
      gst_buffer_list_unref (list);
    }
    for (guint i = 0; i < n; i++) {
      GstBuffer *buffer = g_ptr_array_index (sent, i);
      gssize len = receive (fd, got, 70000);

      g_assert_cmpint (len, ==, (gssize) gst_buffer_get_size (buffer));
      g_assert_cmpint (gst_buffer_memcmp (buffer, 0, got, (gsize) len), ==, 0);
    }
    g_ptr_array_unref (sent);
  }
  g_free (got);
  g_rand_free (rand);
}

typedef struct {
  const gchar *path;
  int family;
  const gchar *listen;
  const gchar *host;
  const gchar *properties;
  gboolean lists;
} Route;

static const Route routes[] = {
  { "v4", AF_INET, "127.0.0.1", "127.0.0.1", "gso=auto", FALSE },
  { "v4-lists", AF_INET, "127.0.0.1", "127.0.0.1", "gso=on", TRUE },
  { "v4-no-gso", AF_INET, "127.0.0.1", "127.0.0.1", "gso=off", FALSE },
  { "v4-lists-no-gso", AF_INET, "127.0.0.1", "127.0.0.1", "gso=off", TRUE },
  { "v4-no-coalescing", AF_INET, "127.0.0.1", "127.0.0.1", "max-coalesce=0", FALSE },
  { "v4-by-name", AF_INET, "127.0.0.1", "localhost", "bind-address=127.0.0.1", FALSE },
  { "v4-from-v6-socket", AF_INET, "127.0.0.1", "127.0.0.1", "bind-address=::", TRUE },
  { "v6", AF_INET6, "::1", "::1", "gso=auto", FALSE },
  { "v6-lists", AF_INET6, "::1", "::1", "gso=on", TRUE },
  { "v6-no-gso", AF_INET6, "::1", "::1", "gso=off", TRUE },
  { "multicast", AF_INET, "0.0.0.0", "239.255.77.12", "multicast-iface=lo", FALSE },
  { "multicast-lists", AF_INET, "0.0.0.0", "239.255.77.12", "multicast-iface=lo gso=off", TRUE },
};

static void
test_route (gconstpointer data)
{
  const Route *route = data;
  gchar *launch = g_strconcat ("fanoutsink ", route->properties, NULL);
  GstHarness *h = make_sink (launch);
  GstElement *sink = find_sink (h);
  guint16 port = 0;
  int fd = listen_on (route->family, route->listen, &port);

  g_free (launch);
  if (fd < 0) {
    g_test_skip ("this machine has no such address");
    goto out;
  }
  if (g_str_has_prefix (route->host, "239.")) {
    struct ip_mreqn group = { .imr_ifindex = 1 };

    inet_pton (AF_INET, route->host, &group.imr_multiaddr);
    inet_pton (AF_INET, "127.0.0.1", &group.imr_address);
    g_assert_cmpint (setsockopt (fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group), ==, 0);
  }
  if (g_str_equal (route->host, "localhost")) {
    // The system decides between IPv4 and IPv6.
    GResolver *resolver = g_resolver_get_default ();
    GList *found = g_resolver_lookup_by_name (resolver, "localhost", NULL, NULL);
    gboolean v4 = found && g_inet_address_get_family (found->data) == G_SOCKET_FAMILY_IPV4;

    g_resolver_free_addresses (found);
    g_object_unref (resolver);
    if (!v4) {
      g_test_skip ("localhost is not IPv4 here");
      goto out;
    }
  }

  g_signal_emit_by_name (sink, "add", route->host, (gint) port);
  stream_frames (h, fd, route->lists, 64);
  gst_harness_push_event (h, gst_event_new_eos ());
  g_assert_cmpuint (get_stat (sink, "packets-sent"), ==, 64 * 65 / 2);
  g_assert_cmpuint (get_stat (sink, "dropped"), ==, 0);
  g_assert_cmpuint (get_reader_stat (sink, route->host, port, "packets-sent"), ==, 64 * 65 / 2);
  if (strstr (route->properties, "gso=off"))
    g_assert_cmpuint (get_stat (sink, "gso-sends"), ==, 0);
  else if (route->lists)
    g_assert_cmpuint (get_stat (sink, "gso-sends"), >, 0);
  check_sums (sink);
out:
  if (fd >= 0)
    close (fd);
  finish (h, sink);
}

// A packet without the rest of its frame is sent after max-coalesce, and RTCP at once.
static void
test_waits_no_longer_than_max_coalesce (void)
{
  GstHarness *h = make_sink ("fanoutsink max-coalesce=1000000");
  GstElement *sink = find_sink (h);
  guint16 port;
  int fd = listen_on (AF_INET, "127.0.0.1", &port);
  guint8 got[100];
  const guint8 rtcp[8] = { 0x80, 201, 0, 1, 1, 2, 3, 4 };

  g_signal_emit_by_name (sink, "add", "127.0.0.1", (gint) port);
  gst_harness_push (h, make_packet (60, 1, FALSE));
  g_assert_cmpint (receive (fd, got, sizeof got), ==, 60);

  // With 10 s of max-coalesce, RTCP and complete frames still leave at once.
  g_object_set (sink, "max-coalesce", 10 * GST_SECOND, NULL);
  gst_harness_push (h, gst_buffer_new_memdup (rtcp, sizeof rtcp));
  g_assert_cmpint (receive (fd, got, sizeof got), ==, 8);
  gst_harness_push (h, gst_buffer_new_memdup ("anything", 8));
  g_assert_cmpint (receive (fd, got, sizeof got), ==, 8);
  // EOS sends the waiting packets.
  gst_harness_push (h, make_packet (61, 1, FALSE));
  gst_harness_push_event (h, gst_event_new_eos ());
  g_assert_cmpint (recv (fd, got, sizeof got, MSG_DONTWAIT), ==, 61);

  close (fd);
  finish (h, sink);
}

static void
test_a_closed_port_does_not_affect_others (void)
{
  GstHarness *h = make_sink ("fanoutsink");
  GstElement *sink = find_sink (h);
  GstBus *bus = gst_bus_new ();
  guint16 port;
  int fd = listen_on (AF_INET, "127.0.0.1", &port);

  gst_element_set_bus (sink, bus);
  for (guint i = 0; i < 5; i++)
    g_signal_emit_by_name (sink, "add", "127.0.0.1", (gint) closed_port ());
  g_signal_emit_by_name (sink, "add", "127.0.0.1", (gint) port);
  stream_frames (h, fd, TRUE, 64);
  gst_harness_push_event (h, gst_event_new_eos ());
  g_assert_cmpuint (get_reader_stat (sink, "127.0.0.1", port, "packets-sent"), ==, 64 * 65 / 2);
  check_sums (sink);
  g_assert_null (gst_bus_pop_filtered (bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR));

  close (fd);
  gst_element_set_bus (sink, NULL);
  gst_object_unref (bus);
  finish (h, sink);
}

static void
test_a_reader_added_three_times_gets_three_copies (void)
{
  GstHarness *h = make_sink ("fanoutsink");
  GstElement *sink = find_sink (h);
  guint16 port;
  int fd = listen_on (AF_INET, "127.0.0.1", &port);
  guint8 got[100];
  gchar *clients, *expected;

  for (guint i = 0; i < 3; i++)
    g_signal_emit_by_name (sink, "add", "127.0.0.1", (gint) port);
  g_object_get (sink, "clients", &clients, NULL);
  expected = g_strdup_printf ("127.0.0.1:%u,127.0.0.1:%u,127.0.0.1:%u", port, port, port);
  g_assert_cmpstr (clients, ==, expected);
  g_free (clients);
  g_free (expected);

  gst_harness_push (h, make_packet (50, 1, TRUE));
  for (guint i = 0; i < 3; i++)
    g_assert_cmpint (receive (fd, got, sizeof got), ==, 50);
  g_object_set (sink, "send-duplicates", FALSE, NULL);
  gst_harness_push (h, make_packet (51, 2, TRUE));
  g_assert_cmpint (receive (fd, got, sizeof got), ==, 51);
  g_object_set (sink, "send-duplicates", TRUE, NULL);
  g_signal_emit_by_name (sink, "remove", "127.0.0.1", (gint) port);
  gst_harness_push (h, make_packet (52, 3, TRUE));
  for (guint i = 0; i < 2; i++)
    g_assert_cmpint (receive (fd, got, sizeof got), ==, 52);
  gst_harness_push_event (h, gst_event_new_eos ());
  g_assert_cmpint (recv (fd, got, sizeof got, MSG_DONTWAIT), ==, -1);
  g_assert_cmpuint (get_stat (sink, "packets-sent"), ==, 6);

  close (fd);
  finish (h, sink);
}

typedef struct {
  guint added, removed;
  guint64 sent_at_removal;
} Seen;

static void
added_cb (GstElement *sink, const gchar *host, gint port, Seen *seen)
{
  seen->added++;
}

static void
removed_cb (GstElement *sink, const gchar *host, gint port, Seen *seen)
{
  seen->removed++;
  // This would hang if the sink held a lock.
  seen->sent_at_removal = get_reader_stat (sink, host, (guint16) port, "packets-sent");
  g_assert_cmpuint (get_reader_stat (sink, host, (guint16) port, "disconnect-time"), >, 0);
}

static void
test_signals_and_refusals (void)
{
  GstHarness *h = make_sink ("fanoutsink");
  GstElement *sink = find_sink (h);
  Seen seen = { 0 };
  guint16 port;
  int fd = listen_on (AF_INET, "127.0.0.1", &port);
  guint8 got[100];
  gchar *clients;

  g_signal_connect (sink, "client-added", G_CALLBACK (added_cb), &seen);
  g_signal_connect (sink, "client-removed", G_CALLBACK (removed_cb), &seen);
  g_signal_emit_by_name (sink, "add", "127.0.0.1", (gint) port);
  gst_harness_push (h, make_packet (50, 1, TRUE));
  g_assert_cmpint (receive (fd, got, sizeof got), ==, 50);
  gst_harness_push_event (h, gst_event_new_eos ());
  g_signal_emit_by_name (sink, "remove", "127.0.0.1", (gint) port);
  g_assert_cmpuint (seen.added, ==, 1);
  g_assert_cmpuint (seen.removed, ==, 1);
  g_assert_cmpuint (seen.sent_at_removal, ==, 1);

  // The sink refuses each of these without an error message.
  g_signal_emit_by_name (sink, "add", "127.0.0.1", 0);
  g_signal_emit_by_name (sink, "add", "127.0.0.1", 65536);
  g_signal_emit_by_name (sink, "add", "127.0.0.1", -1);
  g_signal_emit_by_name (sink, "add", "no such host.invalid", 5000);
  g_signal_emit_by_name (sink, "add", NULL, 5000);
  g_signal_emit_by_name (sink, "remove", "127.0.0.1", 1);
  g_assert_cmpuint (seen.added, ==, 1);

  g_object_set (sink, "clients", "127.0.0.1:5000, [::1]:5001,", NULL);
  g_object_get (sink, "clients", &clients, NULL);
  g_assert_cmpstr (clients, ==, "127.0.0.1:5000,[::1]:5001");
  g_free (clients);
  g_signal_emit_by_name (sink, "clear");
  g_object_get (sink, "clients", &clients, NULL);
  g_assert_cmpstr (clients, ==, "");
  g_free (clients);

  close (fd);
  finish (h, sink);
}

static void
test_packets_of_all_sizes_arrive (void)
{
  GstHarness *h = make_sink ("fanoutsink");
  GstElement *sink = find_sink (h);
  guint16 port;
  int fd = listen_on (AF_INET, "127.0.0.1", &port);
  static const gsize sizes[] = { 1, 11, 12, 40000, 65507 };
  guint8 *got = g_malloc (70000);

  g_signal_emit_by_name (sink, "add", "127.0.0.1", (gint) port);
  gst_harness_push (h, gst_buffer_new ());
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++) {
    GstBuffer *buffer = make_packet (sizes[i], i, TRUE);

    gst_harness_push (h, gst_buffer_ref (buffer));
    g_assert_cmpint (receive (fd, got, 70000), ==, (gssize) sizes[i]);
    g_assert_cmpint (gst_buffer_memcmp (buffer, 0, got, sizes[i]), ==, 0);
    gst_buffer_unref (buffer);
  }
  g_assert_cmpint (gst_harness_push (h, make_packet (65508, 9, TRUE)), ==, GST_FLOW_OK);
  gst_harness_push_event (h, gst_event_new_eos ());
  g_assert_cmpuint (get_stat (sink, "packets-refused"), ==, 1);
  g_assert_cmpuint (get_stat (sink, "packets-in"), ==, G_N_ELEMENTS (sizes) + 1);

  g_free (got);
  close (fd);
  finish (h, sink);
}

static void
test_packets_of_one_buffer_arrive_one_by_one (void)
{
  GstHarness *h = make_sink ("fanoutsink");
  GstElement *sink = find_sink (h);
  guint16 port;
  int fd = listen_on (AF_INET, "127.0.0.1", &port);
  static const guint16 sizes[] = { 1400, 12, 700 };
  GstBuffer *packets[G_N_ELEMENTS (sizes)], *whole = gst_buffer_new (), *part;
  guint8 got[2000];
  guint n;

  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++) {
    packets[i] = make_packet (sizes[i], i, i == G_N_ELEMENTS (sizes) - 1);
    whole = gst_buffer_append (whole, gst_buffer_ref (packets[i]));
  }
  g_assert_null (weir_buffer_get_packets (whole, &n));
  weir_buffer_set_packets (whole, sizes, G_N_ELEMENTS (sizes));
  g_assert_cmpmem (weir_buffer_get_packets (whole, &n), sizeof sizes, sizes, sizeof sizes);
  g_assert_cmpuint (n, ==, G_N_ELEMENTS (sizes));
  part = gst_buffer_copy_region (whole, GST_BUFFER_COPY_ALL, 0, 1400);
  g_assert_null (weir_buffer_get_packets (part, &n));
  gst_buffer_unref (part);
  g_signal_emit_by_name (sink, "add", "127.0.0.1", (gint) port);
  gst_harness_push (h, gst_buffer_copy (whole));
  gst_buffer_unref (whole);
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++) {
    g_assert_cmpint (receive (fd, got, sizeof got), ==, (gssize) sizes[i]);
    g_assert_cmpint (gst_buffer_memcmp (packets[i], 0, got, sizes[i]), ==, 0);
    gst_buffer_unref (packets[i]);
  }
  g_assert_cmpuint (get_stat (sink, "packets-in"), ==, G_N_ELEMENTS (sizes));
  close (fd);
  finish (h, sink);
}

typedef struct {
  GstElement *sink;
  guint base;
} Churn;

static gpointer
churn_thread (gpointer data)
{
  const Churn *churn = data;

  for (guint round = 0; round < 3; round++) {
    for (guint i = 0; i < 1000; i++)
      g_signal_emit_by_name (churn->sink, "add", "127.1.2.3", (gint) (churn->base + i));
    for (guint i = 0; i < 1000; i++)
      g_signal_emit_by_name (churn->sink, "remove", "127.1.2.3", (gint) (churn->base + i));
  }
  return NULL;
}

static void
test_a_reader_loses_nothing_while_others_come_and_go (void)
{
  GstHarness *h = make_sink ("fanoutsink");
  GstElement *sink = find_sink (h);
  Churn churn[2] = { { sink, 10000 }, { sink, 20000 } };
  GThread *threads[2];
  guint16 port;
  int fd = listen_on (AF_INET, "127.0.0.1", &port);
  gchar *clients;

  g_signal_emit_by_name (sink, "add", "127.0.0.1", (gint) port);
  for (guint i = 0; i < 2; i++)
    threads[i] = g_thread_new ("churn", churn_thread, &churn[i]);
  stream_frames (h, fd, TRUE, 64);
  for (guint i = 0; i < 2; i++)
    g_thread_join (threads[i]);
  gst_harness_push_event (h, gst_event_new_eos ());
  check_sums (sink);
  g_assert_cmpuint (get_reader_stat (sink, "127.0.0.1", port, "packets-sent"), ==, 64 * 65 / 2);
  g_object_get (sink, "clients", &clients, NULL);
  g_assert_null (strchr (clients, ','));
  g_free (clients);

  close (fd);
  finish (h, sink);
}

typedef struct {
  GstPad *pad;
  gint n;
} Pusher;

static gpointer
push_thread (gpointer data)
{
  Pusher *pusher = data;

  while (gst_pad_push (pusher->pad, make_packet (1200, (guint) pusher->n, pusher->n % 20 == 19))
         == GST_FLOW_OK)
    g_atomic_int_inc (&pusher->n);
  return NULL;
}

// Stops while the socket is full and the streaming thread waits.
static void
test_stops_while_the_socket_is_full (void)
{
  GstElement *sink = gst_element_factory_make ("fanoutsink", NULL);
  GstPad *src = gst_pad_new ("src", GST_PAD_SRC), *pad;
  GstSegment segment;
  Pusher pusher = { src, 0 };
  GThread *thread;
  gint64 began;
  GstCaps *caps = gst_caps_new_empty_simple ("application/x-rtp");

  g_object_set (sink, "sync", FALSE, "async", FALSE, "buffer-size", 1, NULL);
  // So many packets cannot be sent in the time that a stop allows.
  for (guint i = 0; i < 20000; i++) {
    gchar *host = g_strdup_printf ("127.1.%u.%u", i / 200, i % 200 + 1);

    g_signal_emit_by_name (sink, "add", host, 9);
    g_free (host);
  }
  pad = gst_element_get_static_pad (sink, "sink");
  g_assert_cmpint (gst_pad_link (src, pad), ==, GST_PAD_LINK_OK);
  gst_pad_set_active (src, TRUE);
  gst_element_set_state (sink, GST_STATE_PLAYING);
  gst_pad_push_event (src, gst_event_new_stream_start ("test"));
  gst_pad_push_event (src, gst_event_new_caps (caps));
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_pad_push_event (src, gst_event_new_segment (&segment));
  thread = g_thread_new ("push", push_thread, &pusher);
  while (g_atomic_int_get (&pusher.n) < 300)
    g_usleep (1000);

  began = g_get_monotonic_time ();
  gst_element_set_state (sink, GST_STATE_READY);
  g_thread_join (thread);
  g_assert_cmpuint (get_stat (sink, "dropped-flushed"), >, 0);
  check_sums (sink);
  gst_element_set_state (sink, GST_STATE_NULL);
  check_sums (sink);
  g_assert_cmpint (g_get_monotonic_time () - began, <, 2 * G_USEC_PER_SEC);

  gst_caps_unref (caps);
  gst_object_unref (pad);
  gst_object_unref (src);
  gst_object_unref (sink);
}

// Starts and stops repeatedly, with sockets that the sink opens and with given ones.
static void
test_restarts_with_own_and_given_sockets (void)
{
  GstElement *sink = gst_element_factory_make ("fanoutsink", NULL);
  GSocket *given =
      g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_DATAGRAM, G_SOCKET_PROTOCOL_UDP, NULL);
  GSocket *used;

  gst_object_ref_sink (sink);
  for (guint i = 0; i < 20; i++) {
    g_assert_cmpint (gst_element_set_state (sink, GST_STATE_READY), ==, GST_STATE_CHANGE_SUCCESS);
    g_object_get (sink, "used-socket", &used, NULL);
    g_assert_nonnull (used);
    g_object_unref (used);
    gst_element_set_state (sink, GST_STATE_NULL);
    g_object_get (sink, "used-socket", &used, NULL);
    g_assert_null (used);
  }
  g_object_set (sink, "socket", given, "close-socket", FALSE, NULL);
  gst_element_set_state (sink, GST_STATE_READY);
  g_object_get (sink, "used-socket", &used, NULL);
  g_assert_true (used == given);
  g_object_unref (used);
  gst_element_set_state (sink, GST_STATE_NULL);
  g_assert_false (g_socket_is_closed (given));
  g_object_set (sink, "close-socket", TRUE, NULL);
  gst_element_set_state (sink, GST_STATE_READY);
  gst_element_set_state (sink, GST_STATE_NULL);
  g_assert_true (g_socket_is_closed (given));
  g_object_unref (given);
  gst_object_unref (sink);
}

// The send buffer has the size of `buffer-size`, or a default, up to the limit of the system.
static void
test_buffer_size_sets_the_send_buffer (void)
{
  const struct {
    gint asked, expected;
  } cases[] = { { 0, 1 << 20 }, { 100000, 100000 }, { 3000000, 3000000 } };
  GstElement *sink = gst_element_factory_make ("fanoutsink", NULL);

  gst_object_ref_sink (sink);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gint most = cases[i].expected, size;
    GSocket *used, *other;

    other =
        g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_DATAGRAM, G_SOCKET_PROTOCOL_UDP, NULL);
    g_assert_true (g_socket_set_option (other, SOL_SOCKET, SO_SNDBUF, most, NULL));
    g_socket_set_option (other, SOL_SOCKET, SO_SNDBUFFORCE, most, NULL);
    g_assert_true (g_socket_get_option (other, SOL_SOCKET, SO_SNDBUF, &most, NULL));
    g_object_set (sink, "buffer-size", cases[i].asked, NULL);
    gst_element_set_state (sink, GST_STATE_READY);
    g_object_get (sink, "used-socket", &used, NULL);
    g_assert_true (g_socket_get_option (used, SOL_SOCKET, SO_SNDBUF, &size, NULL));
    g_assert_cmpint (size, ==, most);
    g_object_unref (used);
    g_object_unref (other);
    gst_element_set_state (sink, GST_STATE_NULL);
  }
  gst_object_unref (sink);
}

static void
test_warns_of_a_small_send_buffer (void)
{
  GstElement *sink = gst_element_factory_make ("fanoutsink", NULL);
  GstBus *bus = gst_bus_new ();
  GstMessage *message;
  GError *warning;

  gst_object_ref_sink (sink);
  g_object_set (sink, "buffer-size", G_MAXINT, NULL);
  gst_element_set_bus (sink, bus);
  gst_element_set_state (sink, GST_STATE_READY);
  message = gst_bus_pop_filtered (bus, GST_MESSAGE_WARNING);
  g_assert_nonnull (message);
  gst_message_parse_warning (message, &warning, NULL);
  g_assert_nonnull (strstr (warning->message, "buffer-size=2147483647"));
  g_error_free (warning);
  gst_message_unref (message);
  gst_element_set_bus (sink, NULL);
  gst_object_unref (bus);
  gst_element_set_state (sink, GST_STATE_NULL);
  gst_object_unref (sink);
}

static void
test_keeps_the_last_sample (void)
{
  GstHarness *h = make_sink ("fanoutsink");
  GstElement *sink = find_sink (h);
  GstSample *sample;

  gst_harness_push (h, make_packet (50, 1, TRUE));
  g_object_get (sink, "last-sample", &sample, NULL);
  g_assert_nonnull (sample);
  g_assert_nonnull (gst_sample_get_caps (sample));
  gst_sample_unref (sample);
  finish (h, sink);
}

// A seek cuts a frame off; the first frame after it may have the same timestamp.
static GstBuffer *
make_part_of_frame (guint n)
{
  GstBuffer *packet = make_packet (60, n, FALSE);

  gst_buffer_memset (packet, 4, 0, 4); // the timestamp
  return packet;
}

static void
test_a_flush_forgets_the_packets_before_it (void)
{
  const gchar *joins[] = { "live", "keyframe" };

  for (guint i = 0; i < G_N_ELEMENTS (joins); i++) {
    GstHarness *h = make_sink ("fanoutsink window-time=1000000000");
    GstElement *sink = find_sink (h);
    GstSegment segment;
    guint16 port;
    int fd = listen_on (AF_INET, "127.0.0.1", &port);
    guint8 got[100];

    gst_util_set_object_arg (G_OBJECT (sink), "join", joins[i]);
    gst_segment_init (&segment, GST_FORMAT_TIME);
    for (guint n = 1; n <= 3; n++)
      gst_harness_push (h, make_part_of_frame (n));
    gst_harness_push_event (h, gst_event_new_flush_start ());
    gst_harness_push_event (h, gst_event_new_flush_stop (TRUE));
    gst_harness_push_event (h, gst_event_new_segment (&segment));
    gst_harness_push (h, make_part_of_frame (4));
    g_signal_emit_by_name (sink, "add", "127.0.0.1", (gint) port);
    gst_harness_push (h, make_part_of_frame (5));
    for (guint8 n = 4; n <= 5; n++) {
      g_assert_cmpint (receive (fd, got, sizeof got), ==, 60);
      g_assert_cmpuint (got[3], ==, n);
    }
    close (fd);
    finish (h, sink);
  }
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (routes); i++) {
    gchar *path = g_strconcat ("/fanoutsink/arrives-byte-exact/", routes[i].path, NULL);

    g_test_add_data_func (path, &routes[i], test_route);
    g_free (path);
  }
  g_test_add_func (
      "/fanoutsink/waits-no-longer-than-max-coalesce", test_waits_no_longer_than_max_coalesce);
  g_test_add_func ("/fanoutsink/a-closed-port-does-not-affect-others",
      test_a_closed_port_does_not_affect_others);
  g_test_add_func ("/fanoutsink/a-reader-added-three-times-gets-three-copies",
      test_a_reader_added_three_times_gets_three_copies);
  g_test_add_func ("/fanoutsink/signals-and-refusals", test_signals_and_refusals);
  g_test_add_func ("/fanoutsink/packets-of-all-sizes-arrive", test_packets_of_all_sizes_arrive);
  g_test_add_func ("/fanoutsink/packets-of-one-buffer-arrive-one-by-one",
      test_packets_of_one_buffer_arrive_one_by_one);
  g_test_add_func ("/fanoutsink/a-reader-loses-nothing-while-others-come-and-go",
      test_a_reader_loses_nothing_while_others_come_and_go);
  g_test_add_func (
      "/fanoutsink/stops-while-the-socket-is-full", test_stops_while_the_socket_is_full);
  g_test_add_func (
      "/fanoutsink/restarts-with-own-and-given-sockets", test_restarts_with_own_and_given_sockets);
  g_test_add_func (
      "/fanoutsink/buffer-size-sets-the-send-buffer", test_buffer_size_sets_the_send_buffer);
  g_test_add_func ("/fanoutsink/warns-of-a-small-send-buffer", test_warns_of_a_small_send_buffer);
  g_test_add_func ("/fanoutsink/keeps-the-last-sample", test_keeps_the_last_sample);
  g_test_add_func ("/fanoutsink/a-flush-forgets-the-packets-before-it",
      test_a_flush_forgets_the_packets_before_it);
  return g_test_run ();
}
