// SPDX-License-Identifier: LGPL-2.1-or-later
// Relays one stream of RTP to many readers, for omss.py.
//
//     omss_bench WAY udp|tcp ADDRESS PORT READERS UPSTREAM SECONDS
//
// WAY `daemon` sends each packet to each reader with one system call, and the other ways of
// omss_daemon.h do it without a copy; `engine` is fanoutsink, and
// `kernel` is fanoutsink with kernel=on. The stream comes to the UDP port UPSTREAM of 127.0.0.1.
// WAY `ingress` is kernelrelay, and UPSTREAM is ADDRESS:PORT of an Ethernet device. WAY `slowest`,
// `head` or `tail` is fanoutsink with this rule for dropping packets and with small buffers, and
// UPSTREAM is a clip that it plays. UDP readers are the ports from PORT on; TCP readers connect to
// ADDRESS:PORT here, and have packets framed by RFC 4571. Prints READY when all readers are there,
// for `ingress` also BEGIN and END around the time of measuring, then one line "name value" for
// each figure.

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <gio/gio.h>
#include <gst/gst.h>

#include "omss_daemon.h"

#define WARM_UP_S 1
#define SMALL_BUFFER 65536  // of a connection, so that a slow reader is seen soon
#define SMALL_WINDOW 262144 // so that it is full before a slow reader is sent fewer frames

typedef struct {
  const char *way, *address, *upstream;
  gboolean tcp;
  int port, readers, seconds;
} Job;

typedef struct {
  double cpu_s;
  double switches;
  double sent;
} Usage;

static double
now_s (clockid_t clock)
{
  struct timespec t;

  clock_gettime (clock, &t);
  return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

static Usage
usage (guint64 sent)
{
  struct rusage used;

  getrusage (RUSAGE_SELF, &used);
  return (Usage) { now_s (CLOCK_PROCESS_CPUTIME_ID), (double) (used.ru_nvcsw + used.ru_nivcsw),
    (double) sent };
}

static void
report (const Job *job, Usage before, Usage after)
{
  const double sent = after.sent - before.sent;

  g_print ("cpu %.2f\n", 100 * (after.cpu_s - before.cpu_s) / job->seconds);
  g_print ("ns %.1f\n", 1e9 * (after.cpu_s - before.cpu_s) / sent);
  g_print ("switches %.0f\n", (after.switches - before.switches) / job->seconds);
  g_print ("sent %.0f\n", sent);
}

static struct sockaddr_in
address_of (const char *address, int port)
{
  struct sockaddr_in result = { .sin_family = AF_INET, .sin_port = htons ((guint16) port) };

  inet_pton (AF_INET, address, &result.sin_addr);
  return result;
}

static int
bound_socket (int type, const char *address, int port)
{
  const struct sockaddr_in own = address_of (address, port);
  const int fd = socket (AF_INET, type, 0), one = 1;

  setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind (fd, (const struct sockaddr *) &own, sizeof own) < 0)
    g_error ("port %d: %s", port, g_strerror (errno));
  return fd;
}

static gboolean
drops (const Job *job)
{
  return !omss_daemon_knows (job->way) && !g_str_equal (job->way, "engine")
         && !g_str_equal (job->way, "kernel") && !g_str_equal (job->way, "ingress");
}

// Returns the sockets of the TCP readers.
static int *
accept_all (const Job *job)
{
  const int listener = bound_socket (SOCK_STREAM, job->address, job->port), one = 1;
  const int small = SMALL_BUFFER;
  int *readers = g_new (int, job->readers);

  listen (listener, 4096);
  g_print ("LISTENING\n");
  for (int i = 0; i < job->readers; i++) {
    readers[i] = accept (listener, NULL, NULL);
    if (readers[i] < 0)
      g_error ("accept: %s", g_strerror (errno));
    setsockopt (readers[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (drops (job))
      setsockopt (readers[i], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  }
  close (listener);
  return readers;
}

// ---- the daemon ----

static void
run_daemon (const Job *job)
{
  const int in = bound_socket (SOCK_DGRAM, "127.0.0.1", atoi (job->upstream));
  const struct sockaddr_in first = address_of (job->address, job->port);
  int *connections = job->tcp ? accept_all (job) : NULL;
  OmssDaemon *relay = omss_daemon_new (job->way, connections, &first, job->readers);
  double begin = 0, end = G_MAXDOUBLE;
  Usage before = { 0 };
  guint64 sent = 0;

  g_print ("READY\n");
  while (now_s (CLOCK_MONOTONIC) < end) {
    const gssize length = recv (in, omss_daemon_room (relay), 2048, 0);
    if (length <= 0)
      g_error ("upstream: %s", g_strerror (errno));
    sent += (guint64) omss_daemon_send (relay, (gsize) length);
    if (begin == 0)
      begin = now_s (CLOCK_MONOTONIC) + WARM_UP_S;
    if (before.cpu_s == 0 && now_s (CLOCK_MONOTONIC) >= begin) {
      before = usage (sent);
      end = now_s (CLOCK_MONOTONIC) + job->seconds;
    }
  }
  report (job, before, usage (sent));
  g_print ("copied %.1f\n", 100 * (double) omss_daemon_copied (relay) / (double) MAX (sent, 1));
}

// ---- kernelrelay ----

static guint64
packets_relayed (GstElement *relay)
{
  GstStructure *stats;
  guint64 value = 0;

  g_object_get (relay, "stats", &stats, NULL);
  gst_structure_get_uint64 (stats, "packets-sent", &value);
  if (!g_str_equal (gst_structure_get_string (stats, "kernel"), "ingress"))
    value = 0;
  gst_structure_free (stats);
  return value;
}

static void
run_relay (const Job *job)
{
  gchar **upstream = g_strsplit (job->upstream, ":", 2);
  GstElement *relay = gst_element_factory_make ("kernelrelay", NULL);
  GString *clients = g_string_new (NULL);
  Usage before;

  for (int i = 0; i < job->readers; i++)
    g_string_append_printf (clients, "%s:%d,", job->address, job->port + i);
  g_object_set (
      relay, "address", upstream[0], "port", atoi (upstream[1]), "clients", clients->str, NULL);
  if (gst_element_set_state (relay, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE)
    g_error ("kernelrelay does not start");
  g_print ("READY\n");
  while (packets_relayed (relay) == 0)
    g_usleep (1000);
  g_usleep (WARM_UP_S * G_USEC_PER_SEC);
  g_print ("BEGIN\n");
  before = usage (packets_relayed (relay));
  g_usleep ((gulong) job->seconds * G_USEC_PER_SEC);
  g_print ("END\n");
  report (job, before, usage (packets_relayed (relay)));
  gst_element_set_state (relay, GST_STATE_NULL);
  gst_object_unref (relay);
  g_string_free (clients, TRUE);
  g_strfreev (upstream);
}

// ---- fanoutsink ----

static guint64
packets_sent (GstElement *sink)
{
  GstStructure *stats;
  guint64 value = 0;

  g_object_get (sink, "fanout-stats", &stats, NULL);
  gst_structure_get_uint64 (stats, "packets-sent", &value);
  gst_structure_free (stats);
  return value;
}

static void
add_readers (const Job *job, GstElement *sink)
{
  int *connections = job->tcp ? accept_all (job) : NULL;

  for (int i = 0; i < job->readers; i++) {
    if (connections) {
      GSocket *connection = g_socket_new_from_fd (connections[i], NULL);
      gchar *token = NULL;
      g_signal_emit_by_name (sink, "add-socket", connection, 1, 0, &token);
      if (!token)
        g_error ("add-socket failed");
      g_free (token);
    } else {
      g_signal_emit_by_name (sink, "add", job->address, job->port + i);
    }
  }
}

static gchar *
pipeline_of (const Job *job)
{
  if (!drops (job))
    return g_strdup_printf ("udpsrc address=127.0.0.1 port=%s caps=\"application/x-rtp, "
                            "media=video, clock-rate=90000, encoding-name=X-BENCH\" ! "
                            "fanoutsink name=sink %s",
        job->upstream, g_str_equal (job->way, "kernel") ? "kernel=on" : "");
  return g_strdup_printf ("filesrc location=\"%s\" ! qtdemux ! h264parse ! rtph264pay mtu=1450 ! "
                          "fanoutsink name=sink drop-policy=%s window-bytes=%d",
      job->upstream, job->way, SMALL_WINDOW);
}

static void
run_sink (const Job *job)
{
  gchar *launch = pipeline_of (job);
  GError *error = NULL;
  GstElement *pipeline = gst_parse_launch (launch, &error), *sink;
  Usage before;

  if (!pipeline)
    g_error ("%s", error->message);
  sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  gst_element_set_state (pipeline, GST_STATE_READY);
  add_readers (job, sink);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  g_print ("READY\n");
  gst_element_get_state (pipeline, NULL, NULL, 5 * GST_SECOND);
  while (packets_sent (sink) == 0)
    g_usleep (1000);
  g_usleep (WARM_UP_S * G_USEC_PER_SEC);
  before = usage (packets_sent (sink));
  g_usleep ((gulong) job->seconds * G_USEC_PER_SEC);
  report (job, before, usage (packets_sent (sink)));
  gst_element_set_state (pipeline, GST_STATE_NULL);
  g_free (launch);
}

int
main (int argc, char **argv)
{
  Job job;

  gst_init (&argc, &argv);
  if (argc != 8)
    g_error ("usage: omss_bench WAY udp|tcp ADDRESS PORT READERS UPSTREAM SECONDS");
  job = (Job) { argv[1], argv[3], argv[6], g_str_equal (argv[2], "tcp"), atoi (argv[4]),
    atoi (argv[5]), atoi (argv[7]) };
  if (omss_daemon_knows (job.way))
    run_daemon (&job);
  else if (g_str_equal (job.way, "ingress"))
    run_relay (&job);
  else
    run_sink (&job);
  return 0;
}
