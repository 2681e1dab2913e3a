// SPDX-License-Identifier: LGPL-2.1-or-later

// Workers that misbehave. The program is its own worker: it does what the URI of its job names.

#include "base/clock.h"
#include "isolate/connect_broker.h"
#include "isolate/launch_paths.h"
#include "isolate/pool.h"
#include "isolate/sandbox.h"
#include "isolate/spawn.h"
#include "isolate/wire.h"
#include "sources/isolated_pull.h"

#include <errno.h>
#include <gio/gio.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PACKET 20

// ---- the worker ----

static void
put_tracks (WireMessage *message)
{
  GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);

  g_ptr_array_add (caps, gst_caps_from_string ("application/x-rtp, media=video, payload=96, "
                                               "clock-rate=90000, encoding-name=H264"));
  wire_begin (message, WIRE_TRACKS);
  wire_put_tracks (message, caps);
  g_ptr_array_unref (caps);
}

static void
put_packet (WireMessage *message, gint64 now)
{
  static const guint8 data[PACKET] = { 0x80, 0x60, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9, 0x65, 0x88 };
  GstBuffer *packet = gst_buffer_new_memdup (data, sizeof data);

  wire_begin (message, WIRE_PACKETS);
  wire_put (message, 0, 1);
  wire_put_packet (message, packet, now, RELAY_NO_BASE);
  gst_buffer_unref (packet);
}

static void
send_message (gint to, const WireMessage *message)
{
  if (send (to, message->data, message->len, MSG_NOSIGNAL) < 0)
    _exit (9);
}

static void
send_forever (gint to, WireMessage *message)
{
  wire_begin (message, WIRE_ALIVE);
  for (;;) {
    send (to, message->data, message->len, MSG_NOSIGNAL | MSG_DONTWAIT);
    g_usleep (100 * 1000);
  }
}

// Writes lines that look like the proxy's, and more than the log takes.
static void
write_lines (void)
{
  FILE *file = fdopen (2, "w");

  fputs ("2026-11-22 18:17:03.123 access refused\033[2J from 192.0.2.9\rfine", file);
  for (guint i = 0; i < 2000; i++)
    fputs ("\nline", file);
  fflush (file);
}

static void
misbehave (const gchar *how, gint job)
{
  static WireMessage message;

  if (g_str_equal (how, "garbage")) {
    send (job, "\xff garbage", 9, 0);
  } else if (g_str_equal (how, "early")) {
    put_packet (&message, 0);
    send_message (job, &message);
  } else if (g_str_equal (how, "closes")) {
    close (job);
  } else if (g_str_equal (how, "exits")) {
    _exit (3);
  } else if (g_str_equal (how, "aborts")) {
    abort ();
  } else if (g_str_equal (how, "ends")) {
    wire_begin (&message, WIRE_ENDED);
    wire_put_text (&message, "it\1is over");
    send_message (job, &message);
    close (job);
    return;
  } else if (g_str_equal (how, "changes")) {
    put_tracks (&message);
    for (guint i = 0; i < 100; i++)
      send (job, message.data, message.len, MSG_NOSIGNAL);
  } else if (g_str_equal (how, "future")) {
    put_tracks (&message);
    send_message (job, &message);
    put_packet (&message, G_MAXINT64);
    send_message (job, &message);
    recv (job, message.data, WIRE_MAX, 0); // WIRE_CLOSE
    close (job);
    return;
  }
  if (g_str_equal (how, "writes")) {
    write_lines ();
    _exit (3);
  }
  if (g_str_equal (how, "stays"))
    send_forever (job, &message);
  for (;;)
    pause ();
}

// Runs the next job. Returns FALSE if the proxy has ended.
static gboolean
run_job (void)
{
  static guint8 data[WIRE_MAX];
  union {
    struct cmsghdr head;
    guint8 space[CMSG_SPACE (2 * sizeof (gint))];
  } control;
  struct iovec bytes = { data, sizeof data };
  struct msghdr message = {
    .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
  };
  gssize n = recvmsg (WORKER_SOCKET, &message, 0);
  gchar *how;
  WeirBytes b;
  guint8 type;
  gint job;

  if (n <= 0)
    return FALSE;
  b = weir_bytes (data, (gsize) n);
  weir_bytes_u8 (&b, &type);
  memcpy (&job, CMSG_DATA (CMSG_FIRSTHDR (&message)), sizeof job);
  how = wire_dup_text (&b, 100);
  misbehave (how, job);
  g_free (how);
  return TRUE;
}

static int
run_worker (void)
{
  prctl (PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  while (run_job ())
    ;
  return 0;
}

// ---- the proxy ----

typedef struct {
  GMutex lock;
  gchar *reason;
  guint n_begun;
  gint64 arrival;
  gint closed; // atomic
} Seen;

static void
on_begun (gpointer owner, RelayTracks tracks)
{
  ((Seen *) owner)->n_begun++;
}

static void
on_packet (gpointer owner, gint64 now)
{
  Seen *seen = owner;

  g_mutex_lock (&seen->lock);
  seen->arrival = now;
  g_mutex_unlock (&seen->lock);
}

static void
on_ended (gpointer owner, const gchar *reason)
{
  Seen *seen = owner;

  g_mutex_lock (&seen->lock);
  g_assert_null (seen->reason);
  seen->reason = g_strdup (reason);
  g_mutex_unlock (&seen->lock);
}

static void
on_closed (gpointer seen)
{
  g_atomic_int_set (&((Seen *) seen)->closed, 1);
}

static const PullCallbacks callbacks = { on_begun, on_packet, on_ended, on_ended };

static gboolean
has (Seen *seen, gboolean reason)
{
  gboolean there;

  g_mutex_lock (&seen->lock);
  there = reason ? seen->reason != NULL : seen->arrival != 0;
  g_mutex_unlock (&seen->lock);
  return there;
}

static void
wait_for (Seen *seen, gboolean reason)
{
  while (!has (seen, reason)) {
    g_main_context_iteration (NULL, FALSE);
    g_usleep (1000);
  }
}

typedef struct {
  PullConfig config;
  PullContext context;
  Relay *relay;
  gpointer run;
  gint pid;
  Seen seen;
} Fixture;

static void
start (Fixture *self, const gchar *how)
{
  GError *error = NULL;

  self->config = (PullConfig) { .uri = (gchar *) how, .parser = PULL_PARSES_ONLINE };
  self->relay = relay_new ();
  self->context = (PullContext) { .source = relay_source_new (self->relay, NULL, NULL),
    .config = &self->config,
    .callbacks = &callbacks,
    .owner = &self->seen };
  self->run = isolated_pull_light.start (&self->context, &error);
  g_assert_no_error (error);
  self->pid = worker_get_pid (isolated_pull_light.get_worker (self->run));
}

static void
finish (Fixture *self)
{
  g_atomic_int_set (&self->context.cancelled, 1);
  isolated_pull_light.close (self->run, on_closed, &self->seen);
  while (!g_atomic_int_get (&self->seen.closed)) {
    g_main_context_iteration (NULL, FALSE);
    g_usleep (1000);
  }
  relay_source_end (self->context.source);
  relay_source_unref (self->context.source);
  relay_unref (self->relay);
  g_free (self->seen.reason);
}

typedef struct {
  const gchar *how, *reason;
} Case;

static void
a_fault_ends_the_run_with_its_reason (gconstpointer data)
{
  const Case *fault = data;
  Fixture self = { 0 };
  gchar *reason;

  start (&self, fault->how);
  wait_for (&self.seen, TRUE);
  reason = g_strdup_printf (fault->reason, self.pid);
  g_assert_cmpstr (self.seen.reason, ==, reason);
  g_free (reason);
  finish (&self);
}

static void
a_worker_that_does_not_close_is_killed (void)
{
  WorkerCounts before, after;
  Fixture self = { 0 };

  workers_get_counts (&before);
  start (&self, "stays");
  finish (&self);
  do {
    g_main_context_iteration (NULL, TRUE);
    workers_get_counts (&after);
  } while (after.failed == before.failed);
}

// Runs the worker that writes lines, in a process whose log is a pipe.
static void
lines_of_a_worker_are_marked_in_the_log (void)
{
  gchar *argv[] = { (gchar *) "/proc/self/exe", (gchar *) "--writes", NULL }, *log = NULL;
  guint n_lines = 0;
  GStrv lines;

  g_assert_true (
      g_spawn_sync (NULL, argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, NULL, &log, NULL, NULL));
  lines = g_strsplit (log, "\n", -1);
  g_assert_true (g_regex_match_simple ("^[-0-9]+ [:0-9]+\\.[0-9]+ worker [0-9]+: 2026-11-22 "
                                       "18:17:03.123 access refused\\?\\[2J from 192.0.2.9\\?fine$",
      lines[0], 0, 0));
  for (GStrv line = lines; *line; line++)
    n_lines += strstr (*line, ": line") != NULL;
  g_assert_cmpuint (n_lines, >, 100);
  g_assert_cmpuint (n_lines, <, 1000);
  g_assert_nonnull (strstr (log, " ended with status 3; it ran 1 job\n"));
  g_strfreev (lines);
  g_free (log);
}

static int
run_writer (void)
{
  Fixture self = { 0 };

  g_main_context_acquire (NULL);
  start (&self, "writes");
  wait_for (&self.seen, TRUE);
  finish (&self);
  return 0;
}

static void
packets_arrive_at_a_time_that_can_be (void)
{
  Fixture self = { 0 };

  start (&self, "future");
  wait_for (&self.seen, FALSE);
  g_assert_cmpint (self.seen.arrival, <=, clock_now ());
  g_assert_cmpint (self.seen.n_begun, ==, 1);
  finish (&self);
}

// ---- the sandbox ----

static gboolean
is_refused (gssize result)
{
  return result < 0 && errno == EPERM;
}

// Returns the number of the first call that is not refused, or 0.
static gint
find_hole (gboolean online, gboolean sends, gint pair)
{
  struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons (9) };
  struct msghdr none = { 0 };

  if (is_refused (socket (AF_INET, SOCK_DGRAM, 0)) == online)
    return 1;
  if (is_refused (socket (AF_UNIX, SOCK_STREAM, 0)) == online)
    return 2;
  if (!sends && !is_refused (sendto (pair, "", 1, 0, (struct sockaddr *) &to, sizeof to)))
    return 3;
  if (!online && !is_refused (connect (pair, (struct sockaddr *) &to, sizeof to)))
    return 4;
  if (!sends && !is_refused (sendmsg (pair, &none, 0)))
    return 5;
  if (send (pair, "", 1, 0) != 1)
    return 6;
  if (!is_refused (kill (getppid (), 0)) || kill (getpid (), 0) != 0)
    return 7;
  if (!is_refused (fork ()))
    return 8;
  if (!is_refused (execl ("/bin/true", "true", NULL)))
    return 9;
  if (!is_refused (ptrace (PTRACE_TRACEME, 0, NULL, NULL)))
    return 10;
  if (prctl (PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || prctl (PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
    return 11;
  return 0;
}

static gpointer
do_nothing (gpointer data)
{
  return data;
}

static int
run_sandbox (SandboxProfile profile)
{
  gboolean online =
      profile == SANDBOX_PULL || profile == SANDBOX_LAUNCH || profile == SANDBOX_SWARM;
  gint pair[2], hole;

  if (socketpair (AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0 || !sandbox_enter (profile, NULL))
    return 99;
  hole = find_hole (online, online || profile == SANDBOX_SRT, pair[0]);
  g_thread_join (g_thread_new ("thread", do_nothing, NULL));
  return hole;
}

static void
the_sandbox_refuses_what_a_parser_does_not_need (gconstpointer kind)
{
  gchar *argv[] = { (gchar *) "/proc/self/exe", (gchar *) "--sandbox", (gchar *) kind, NULL };
  gint status = 0;

  g_assert_true (
      g_spawn_sync (NULL, argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, NULL, NULL, &status, NULL));
  g_assert_true (WIFEXITED (status));
  g_assert_cmpint (WEXITSTATUS (status), ==, 0);
}

// ---- what operators name ----

static void
paths_of_a_launch_text_are_found (void)
{
  static const struct {
    const gchar *text, *found;
  } cases[] = {
    { "filesrc location=/usr/bin ! fakesink", "/usr/bin" },
    { "filesrc location=\"/usr/bin\" ! fakesink", "/usr/bin" },
    { "uridecodebin uri=file:///usr/bin ! fakesink", "/usr/bin" },
    { "multifilesrc location=/usr/bin/%05d.png ! fakesink", "/usr/bin" },
    { "a location=/usr/bin ! b location='/usr/lib'", "/usr/bin,/usr/lib" },
    { "videotestsrc ! video/x-raw,framerate=25/1 ! fakesink", "" },
    { "filesrc location=/ ! filesrc location=/.. ! filesrc location=/nowhere/at/all", "" },
    { "", "" },
    { "location=", "" },
    { "location=\"/usr/bin", "/usr/bin" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GStrv found = launch_paths_find (cases[i].text);
    gchar *all = g_strjoinv (",", found);

    g_assert_cmpstr (all, ==, cases[i].found);
    g_free (all);
    g_strfreev (found);
  }
}

static gboolean
admits (const gchar *host, guint16 port)
{
  GSocketAddress *address = g_inet_socket_address_new_from_string (host, port);
  guint8 native[sizeof (struct sockaddr_storage)];
  gsize size = (gsize) g_socket_address_get_native_size (address);
  gboolean admitted;

  g_assert_true (g_socket_address_to_native (address, native, sizeof native, NULL));
  admitted = connect_broker_admits ((struct sockaddr *) native, size, FALSE);
  g_assert_false (connect_broker_admits ((struct sockaddr *) native, 3, FALSE)); // cut
  g_object_unref (address);
  return admitted;
}

static void
connections_go_where_upstreams_are (void)
{
  static const gchar *const local[] = { "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1",
    "0.0.0.0", "::" };
  struct sockaddr_in peer = { AF_INET, htons (6881), { htonl (INADDR_LOOPBACK) }, { 0 } };
  struct sockaddr_un path = { AF_UNIX, "/run/dbus/system_bus_socket" };

  connect_broker_allow_text ("http://camera:8081/a.m3u8");
  connect_broker_allow_text ("rtspsrc location=rtsp://x/ ! udpsink port=5004 host=::1");
  connect_broker_refuse_port (9554);
  connect_broker_allow_text ("http://camera:9554/");
  for (guint i = 0; i < G_N_ELEMENTS (local); i++) {
    g_assert_true (admits (local[i], 8081) && admits (local[i], 5004) && admits (local[i], 554));
    g_assert_true (admits (local[i], 53));
    g_assert_false (admits (local[i], 9554) || admits (local[i], 80) || admits (local[i], 6379));
  }
  g_assert_true (connect_broker_admits ((struct sockaddr *) &peer, sizeof peer, TRUE));
  peer.sin_port = htons (9554);
  g_assert_false (connect_broker_admits ((struct sockaddr *) &peer, sizeof peer, TRUE));
  g_assert_true (admits ("192.0.2.9", 9554) && admits ("2001:db8::1", 80));
  g_assert_false (connect_broker_admits ((struct sockaddr *) &path, sizeof path, FALSE));
  strcpy (path.sun_path, "/run/avahi-daemon/socket");
  g_assert_true (connect_broker_admits ((struct sockaddr *) &path, sizeof path, FALSE));
}

int
main (int argc, char **argv)
{
  static const Case cases[] = {
    { "garbage", "worker %d was killed: it sent a malformed message" },
    { "early", "worker %d was killed: it sent a malformed message" },
    { "closes", "worker %d was killed: it closed the socket of a job" },
    { "exits", "worker %d ended with status 3" },
    { "aborts", "worker %d ended by SIGABRT" },
    { "changes", "worker %d was killed: it changed its tracks too often" },
    { "ends", "it?is over" },
  };

  if (g_str_equal (argv[0], WORKER_NAME)) {
    gst_init (NULL, NULL);
    return run_worker ();
  }
  if (argc == 3 && g_str_equal (argv[1], "--sandbox"))
    _exit (run_sandbox (sandbox_find (argv[2]))); // LeakSanitizer would call ptrace()
  gst_init (&argc, &argv);
  if (argc == 2 && g_str_equal (argv[1], "--writes"))
    return run_writer ();
  g_test_init (&argc, &argv, NULL);
  g_main_context_acquire (NULL); // as the proxy does, so that no other thread runs its functions
  workers_set_limit (WORKERS_MAX);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gchar *path =
        g_strconcat ("/isolated/a-fault-ends-the-run-with-its-reason/", cases[i].how, NULL);

    g_test_add_data_func (path, &cases[i], a_fault_ends_the_run_with_its_reason);
    g_free (path);
  }
  g_test_add_func (
      "/isolated/packets-arrive-at-a-time-that-can-be", packets_arrive_at_a_time_that_can_be);
  g_test_add_func (
      "/isolated/lines-of-a-worker-are-marked-in-the-log", lines_of_a_worker_are_marked_in_the_log);
  g_test_add_func (
      "/isolated/a-worker-that-does-not-close-is-killed", a_worker_that_does_not_close_is_killed);
  g_test_add_func ("/isolated/paths-of-a-launch-text-are-found", paths_of_a_launch_text_are_found);
  g_test_add_func (
      "/isolated/connections-go-where-upstreams-are", connections_go_where_upstreams_are);
  for (SandboxProfile i = 0; i < SANDBOX_PROFILES; i++) {
    const gchar *name = sandbox_get_name (i);
    gchar *path =
        g_strconcat ("/isolated/the-sandbox-refuses-what-a-parser-does-not-need/", name, NULL);

    g_test_add_data_func (path, name, the_sandbox_refuses_what_a_parser_does_not_need);
    g_free (path);
  }
  return g_test_run ();
}
