// SPDX-License-Identifier: LGPL-2.1-or-later

// A connection whose socket a reply has taken over ends while the reply's side still has that
// socket.

#include "outlets/http/http_connection.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE_US (30 * G_USEC_PER_SEC)

typedef struct {
  HttpReply reply; // the first field
  GMutex lock;     // protects the fields below
  GCond changed;
  int kept; // the socket; -1: not taken yet
  gboolean ended;
} Taken;

// ---- the reply ----

static gboolean
begin (HttpReply *reply, HttpHead *head, gint64 now_ns, gint64 *wake_ns)
{
  *head = (HttpHead) { 200, "video/mp2t", NULL, head->headers, -1 };
  return TRUE;
}

static gboolean
take_over (HttpReply *reply, GSocket *socket)
{
  Taken *self = (Taken *) reply;

  g_mutex_lock (&self->lock);
  self->kept = dup (g_socket_get_fd (socket));
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  return TRUE;
}

static void
free_reply (HttpReply *reply)
{
}

static HttpReply *
answer (gpointer taken, const HttpAsked *asked)
{
  return &((Taken *) taken)->reply;
}

static gchar *
dup_target (gpointer taken, const gchar *target)
{
  return NULL;
}

static void
on_ended (HttpConnection *connection, gpointer data)
{
  Taken *self = data;

  g_mutex_lock (&self->lock);
  self->ended = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

// ---- what the system says ----

// Reports whether an epoll of this process watches the file with this inode (proc(5), fdinfo).
static gboolean
is_watched (ino_t inode)
{
  GDir *all = g_dir_open ("/proc/self/fdinfo", 0, NULL);
  gchar *what = g_strdup_printf (" ino:%" G_GINT64_MODIFIER "x ", (guint64) inode);
  const gchar *name;
  gboolean found = FALSE;

  while ((name = g_dir_read_name (all))) {
    gchar *path = g_build_filename ("/proc/self/fdinfo", name, NULL), *text = NULL;

    found |= g_file_get_contents (path, &text, NULL, NULL) && strstr (text, what);
    g_free (text);
    g_free (path);
  }
  g_free (what);
  g_dir_close (all);
  return found;
}

static ino_t
get_inode (int fd)
{
  struct stat stat;

  g_assert_cmpint (fstat (fd, &stat), ==, 0);
  return stat.st_ino;
}

static void
wait_for (Taken *self, gboolean (*is_so) (const Taken *))
{
  gint64 end = g_get_monotonic_time () + PATIENCE_US;

  g_mutex_lock (&self->lock);
  while (!is_so (self))
    g_assert_true (g_cond_wait_until (&self->changed, &self->lock, end));
  g_mutex_unlock (&self->lock);
}

static gboolean
is_taken (const Taken *self)
{
  return self->kept >= 0;
}

static gboolean
has_ended (const Taken *self)
{
  return self->ended;
}

// Events of the socket would reach the freed connection.
static void
a_socket_that_a_reply_keeps_is_not_watched_any_more (void)
{
  static const HttpReplyOps ops = { .begin = begin, .take_over = take_over, .free = free_reply };
  static const gchar request[] = "GET /taken HTTP/1.1\r\nHost: localhost\r\n\r\n";
  Taken taken = { .reply = { &ops }, .kept = -1 };
  const HttpRoute routes[] = { { "/taken", ACCESS_READ, dup_target, answer, &taken }, { 0 } };
  GInetAddress *address = g_inet_address_new_loopback (G_SOCKET_FAMILY_IPV4);
  GError *error = NULL;
  HttpContext context = { .workers = weir_workers_new (1, 0),
    .loop = loop_new (&(LoopSettings) { .name = "http-poll" }, &error),
    .routes = routes,
    .ended = on_ended,
    .data = &taken };
  GSocket *socket;
  ino_t inode;
  int fds[2];

  g_mutex_init (&taken.lock);
  g_cond_init (&taken.changed);
  g_assert_no_error (error);
  g_assert_cmpint (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), ==, 0);
  inode = get_inode (fds[0]);
  socket = g_socket_new_from_fd (fds[0], &error);
  g_assert_no_error (error);
  http_connection_start (http_connection_new (&context, socket, address, "127.0.0.1:1", FALSE));
  g_assert_cmpint (write (fds[1], request, strlen (request)), ==, strlen (request));
  wait_for (&taken, is_taken);
  g_assert_true (is_watched (inode));
  shutdown (fds[1], SHUT_WR);
  wait_for (&taken, has_ended);
  g_assert_cmpuint (get_inode (taken.kept), ==, inode);
  g_assert_false (is_watched (inode));
  close (taken.kept);
  close (fds[1]);
  loop_free (context.loop);
  weir_workers_free (context.workers);
  g_object_unref (address);
  g_cond_clear (&taken.changed);
  g_mutex_clear (&taken.lock);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/http/a-socket-that-a-reply-keeps-is-not-watched-any-more",
      a_socket_that_a_reply_keeps_is_not_watched_any_more);
  return g_test_run ();
}
