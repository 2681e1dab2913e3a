// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/srt/srt_link.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

static WireMessage message;

typedef struct {
  guint32 id;
  gchar *peer, *stream_id;
  guint n_opened, n_samples;
  SrtProblem problem;
  SrtEnd end;
  SrtSample sample;
} Seen;

static void
on_handshake (gpointer owner, guint32 id, GInetSocketAddress *from, const gchar *stream_id)
{
  Seen *seen = owner;

  seen->id = id;
  seen->peer = g_socket_connectable_to_string (G_SOCKET_CONNECTABLE (from));
  seen->stream_id = g_strdup (stream_id);
}

static void
on_opened (gpointer owner, guint32 id)
{
  ((Seen *) owner)->n_opened++;
  ((Seen *) owner)->id = id;
}

static void
on_refused (gpointer owner, guint32 id, SrtProblem problem)
{
  ((Seen *) owner)->problem = problem;
  ((Seen *) owner)->id = id;
}

static void
on_ended (gpointer owner, guint32 id, SrtEnd end)
{
  ((Seen *) owner)->end = end;
  ((Seen *) owner)->id = id;
}

static void
on_sampled (gpointer owner, const SrtSample *sample)
{
  ((Seen *) owner)->sample = *sample;
  ((Seen *) owner)->n_samples++;
}

static const SrtWireHandler handler = { on_handshake, on_opened, on_refused, on_ended, on_sampled };

static gboolean
take (Seen *seen)
{
  return srt_wire_read (message.data, message.len, &handler, seen);
}

static void
what_a_worker_says_is_read (void)
{
  struct sockaddr_in6 from = { .sin6_family = AF_INET6, .sin6_port = htons (9000) };
  struct sockaddr_in from4 = { .sin_family = AF_INET, .sin_port = htons (9001) };
  Seen seen = { 0 };

  inet_pton (AF_INET6, "2001:db8::7", &from.sin6_addr);
  srt_wire_put_handshake (&message, 0xfedcba98, (struct sockaddr *) &from, "read:cam");
  g_assert_true (take (&seen));
  g_assert_cmpuint (seen.id, ==, 0xfedcba98);
  g_assert_cmpstr (seen.peer, ==, "[2001:db8::7]:9000");
  g_assert_cmpstr (seen.stream_id, ==, "read:cam");
  g_free (seen.peer);
  g_free (seen.stream_id);

  inet_pton (AF_INET, "192.0.2.7", &from4.sin_addr);
  srt_wire_put_handshake (&message, 1, (struct sockaddr *) &from4, "");
  g_assert_true (take (&seen));
  g_assert_cmpstr (seen.peer, ==, "192.0.2.7:9001");
  g_assert_cmpstr (seen.stream_id, ==, "");
  g_free (seen.peer);
  g_free (seen.stream_id);

  srt_wire_put_opened (&message, 2);
  g_assert_true (take (&seen));
  g_assert_true (seen.n_opened == 1 && seen.id == 2);
  srt_wire_put_refused (&message, 3, SRT_PROBLEM_SECRET_MISSING);
  g_assert_true (take (&seen));
  g_assert_true (seen.problem == SRT_PROBLEM_SECRET_MISSING && seen.id == 3);
  srt_wire_put_ended (&message, 4, SRT_END_OVER);
  g_assert_true (take (&seen));
  g_assert_true (seen.end == SRT_END_OVER && seen.id == 4);
}

static void
samples_fill_a_message (void)
{
  const SrtSample sample = { 7, G_MAXUINT64, 1234567890123, 5 };
  Seen seen = { 0 };
  guint n = 0;

  srt_wire_begin_samples (&message);
  g_assert_true (take (&seen)); // none is a sign of life
  while (srt_wire_put_sample (&message, &sample))
    n++;
  g_assert_cmpuint (n, >, 2000);
  g_assert_true (take (&seen));
  g_assert_cmpuint (seen.n_samples, ==, n);
  g_assert_true (seen.sample.id == 7 && seen.sample.late == G_MAXUINT64);
  g_assert_true (seen.sample.sent == 1234567890123 && seen.sample.overflow == 5);
}

static void
what_a_worker_gets_is_read (void)
{
  SrtCommand command;
  gchar *passphrase;
  guint32 id, latency;
  guint16 code;

  srt_wire_put_job (&message, 120, "correct-horse-battery");
  g_assert_true (srt_wire_read_job (message.data, message.len, &latency, &passphrase));
  g_assert_cmpuint (latency, ==, 120);
  g_assert_cmpstr (passphrase, ==, "correct-horse-battery");
  g_free (passphrase);
  srt_wire_put_job (&message, 120, NULL);
  g_assert_true (srt_wire_read_job (message.data, message.len, &latency, &passphrase));
  g_assert_null (passphrase);
  srt_wire_put_command (&message, SRT_COMMAND_READ, 9);
  g_assert_true (srt_wire_read_command (message.data, message.len, &command, &id));
  g_assert_true (command == SRT_COMMAND_READ && id == 9);
  srt_wire_put_verdict (&message, 10, 1403);
  g_assert_true (srt_wire_read_verdict (message.data, message.len, &id, &code));
  g_assert_true (id == 10 && code == 1403);
}

static void
malformed_messages_are_refused (void)
{
  static const struct {
    const gchar *what;
    guint8 data[16];
    gsize len;
  } cases[] = {
    { "nothing", { 0 }, 0 },
    { "type 0", { 0, 0, 0, 0, 1 }, 5 },
    { "an unknown type", { 6, 0, 0, 0, 1 }, 5 },
    { "opened, cut", { 2, 0, 0, 0 }, 4 },
    { "opened, with more", { 2, 0, 0, 0, 1, 0 }, 6 },
    { "refused, with an unknown problem", { 3, 0, 0, 0, 1, SRT_PROBLEMS }, 6 },
    { "ended, with an unknown end", { 4, 0, 0, 0, 1, SRT_ENDS }, 6 },
    { "half a sample", { 5, 0, 0, 0, 1, 0 }, 6 },
    { "a handshake without an address", { 1, 0, 0, 0, 1, 0, 0, 0 }, 8 },
    { "a handshake of another family", { 1, 0, 0, 0, 1, 2, 1, 0, 0, 0 }, 10 },
  };
  Seen seen = { 0 };
  guint32 id;
  guint16 code;
  SrtCommand command;

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_test_message ("%s", cases[i].what);
    g_assert_false (srt_wire_read (cases[i].data, cases[i].len, &handler, &seen));
  }
  srt_wire_put_command (&message, SRT_COMMANDS, 1);
  g_assert_false (srt_wire_read_command (message.data, message.len, &command, &id));
  srt_wire_put_command (&message, SRT_COMMAND_CLOSE, 1);
  g_assert_false (srt_wire_read_command (message.data, message.len - 1, &command, &id));
  g_assert_false (srt_wire_read_verdict (message.data, message.len, &id, &code));
  g_assert_true (!seen.n_opened && !seen.n_samples && !seen.peer);
}

static guint
take_commands (gint socket, guint first)
{
  guint8 data[16];
  SrtCommand command;
  guint32 id;
  gssize len;
  guint n = 0;

  while ((len = recv (socket, data, sizeof data, MSG_DONTWAIT)) > 0) {
    g_assert_true (srt_wire_read_command (data, (gsize) len, &command, &id));
    g_assert_cmpuint (id, ==, first + n++);
  }
  return n;
}

static void
commands_wait_for_a_late_worker (void)
{
  gint commands[2], questions[2];
  Seen seen = { 0 };
  gboolean heard;
  SrtLink *link;
  guint n = 0;

  g_assert_cmpint (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, commands), ==, 0);
  g_assert_cmpint (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, questions), ==, 0);
  link = srt_link_new (commands[0], questions[0]);
  for (guint i = 0; i < 5000; i++)
    srt_link_send (link, SRT_COMMAND_PUBLISH, i, i % 100 ? -1 : commands[0]);
  while (n < 5000) {
    n += take_commands (commands[1], n);
    g_assert_true (srt_link_run (link, &handler, &seen, &heard));
    g_assert_false (heard);
  }
  // One that never reads any is stuck.
  for (guint i = 0; i < 200000; i++)
    srt_link_send (link, SRT_COMMAND_CLOSE, i, -1);
  g_assert_false (srt_link_run (link, &handler, &seen, &heard));
  srt_link_free (link);
  close (commands[1]);
  close (questions[1]);
}

static void
ends_are_heard_before_a_new_handshake (void)
{
  struct sockaddr_in from = { .sin_family = AF_INET };
  gint commands[2], questions[2];
  Seen seen = { .id = 99 };
  gboolean heard;
  SrtLink *link;

  g_assert_cmpint (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, commands), ==, 0);
  g_assert_cmpint (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, questions), ==, 0);
  link = srt_link_new (commands[0], questions[0]);
  srt_wire_put_refused (&message, 1, SRT_PROBLEM_SECRET_WRONG);
  g_assert_cmpint (send (commands[1], message.data, message.len, 0), ==, message.len);
  srt_wire_put_handshake (&message, 2, (struct sockaddr *) &from, "read:cam");
  g_assert_cmpint (send (questions[1], message.data, message.len, 0), ==, message.len);
  g_assert_true (srt_link_run (link, &handler, &seen, &heard));
  g_assert_true (heard && seen.problem == SRT_PROBLEM_SECRET_WRONG && seen.id == 2);
  g_free (seen.peer);
  g_free (seen.stream_id);
  // Questions come over their own socket only.
  g_assert_cmpint (send (commands[1], message.data, message.len, 0), ==, message.len);
  g_assert_false (srt_link_run (link, &handler, &seen, &heard));
  close (commands[1]);
  close (questions[1]);
  srt_link_run (link, &handler, &seen, &heard);
  srt_link_finish (link, 10000); // does not wait for a worker that is gone
  srt_link_free (link);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/srt-wire/what_a_worker_says_is_read", what_a_worker_says_is_read);
  g_test_add_func ("/srt-wire/samples_fill_a_message", samples_fill_a_message);
  g_test_add_func ("/srt-wire/what_a_worker_gets_is_read", what_a_worker_gets_is_read);
  g_test_add_func ("/srt-wire/malformed_messages_are_refused", malformed_messages_are_refused);
  g_test_add_func ("/srt-wire/commands_wait_for_a_late_worker", commands_wait_for_a_late_worker);
  g_test_add_func (
      "/srt-wire/ends_are_heard_before_a_new_handshake", ends_are_heard_before_a_new_handshake);
  return g_test_run ();
}
