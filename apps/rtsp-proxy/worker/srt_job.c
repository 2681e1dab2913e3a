// SPDX-License-Identifier: LGPL-2.1-or-later
#include "worker/srt_job.h"

#include <errno.h>
#include <srt/access_control.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "worker/srt_caller.h"

#define BACKLOG 128
#define READY_MAX 256 // sockets of one kind that one wait returns
#define TICK G_GINT64_CONSTANT (1000000000)
#define WAIT_MS 1000
#define VERDICT_S 2          // the proxy answers within a millisecond
#define VERSION_MIN 0x010300 // the first with stream ids
#define COMMANDS_MAX 64      // before others get their turn

typedef struct {
  gint commands, questions, port;
  SRTSOCKET listener;
  gint epoll;

  GMutex lock;
  GHashTable *handshakes; // SRTSOCKET: of which the proxy has been asked; protected by `lock`

  // libsrt's thread of the port:
  WireMessage question;

  // Atomic: the last handshake of which the proxy was asked, and what libsrt has logged of it.
  gint last, problem; // SRTSOCKET, SrtProblem

  // The thread:
  GHashTable *callers; // SRTSOCKET: SrtCaller
  GHashTable *by_fd;   // of readers: SrtCaller
  gint64 ticked;
  gboolean over;
  WireMessage message;
} SrtJob;

// The proxy reads all it gets, so this waits only as long as the proxy is late.
static void
send_message (gint socket, const WireMessage *message)
{
  gssize n;

  do
    n = send (socket, message->data, message->len, MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);
}

// ---- handshakes; libsrt's thread of the port handles one after the other ----

static gboolean
forget (SrtJob *self, SRTSOCKET socket)
{
  gboolean was_there;

  g_mutex_lock (&self->lock);
  was_there = g_hash_table_remove (self->handshakes, GINT_TO_POINTER (socket));
  g_mutex_unlock (&self->lock);
  return was_there;
}

// libsrt does not say that it has refused a handshake after it was asked about: it closes the
// socket. It says why in its log only. Call from any thread, with a message of that thread.
static void
drop_handshakes (SrtJob *self, WireMessage *message)
{
  GList *sockets;

  g_mutex_lock (&self->lock);
  sockets = g_hash_table_get_keys (self->handshakes);
  g_mutex_unlock (&self->lock);
  for (GList *l = sockets; l; l = l->next) {
    SRTSOCKET socket = GPOINTER_TO_INT (l->data);
    gboolean is_last = socket == g_atomic_int_get (&self->last);
    gint problem = is_last ? g_atomic_int_get (&self->problem) : SRT_PROBLEM_UNKNOWN;

    if (srt_getsockstate (socket) < SRTS_BROKEN || !forget (self, socket))
      continue;
    srt_wire_put_refused (message, (guint32) socket, (SrtProblem) problem);
    send_message (self->commands, message);
  }
  g_list_free (sockets);
}

static void
on_log (gpointer data, int level, const char *file, int line, const char *area, const char *text)
{
  // Parts of libsrt's lines, since 1.4.2.
  static const gchar *const lines[SRT_PROBLEMS] = {
    [SRT_PROBLEM_SECRET_WRONG] = "KMREQ result",
    [SRT_PROBLEM_SECRET_MISSING] = "Agent declares encryption, but Peer does not",
    [SRT_PROBLEM_SECRET_UNEXPECTED] = "Peer declares encryption, but agent does not",
  };

  for (gint i = SRT_PROBLEM_UNKNOWN + 1; i < SRT_PROBLEMS; i++) {
    if (strstr (text, lines[i]))
      g_atomic_int_set (&((SrtJob *) data)->problem, i);
  }
}

// Waits for the verdict. Answers to earlier questions may come first, if the proxy was late.
static guint16
wait_for_verdict (SrtJob *self, guint32 id)
{
  guint8 data[16];
  guint32 answered;
  guint16 code;
  gssize n;

  do {
    n = recv (self->questions, data, sizeof data, 0);
    if (n > 0 && srt_wire_read_verdict (data, (gsize) n, &answered, &code) && answered == id)
      return code;
  } while (n > 0 || (n < 0 && errno == EINTR));
  return SRT_REJX_OVERLOAD;
}

static int
on_handshake (gpointer data, SRTSOCKET socket, int version, const struct sockaddr *from,
    const char *stream_id)
{
  SrtJob *self = data;
  guint16 code;

  drop_handshakes (self, &self->question); // they hold no places that this one may need
  g_atomic_int_set (&self->last, socket);
  g_atomic_int_set (&self->problem, SRT_PROBLEM_UNKNOWN);
  srt_wire_put_handshake (&self->question, (guint32) socket, from, stream_id ? stream_id : "");
  send_message (self->questions, &self->question);
  code = wait_for_verdict (self, (guint32) socket);
  if (code) {
    srt_setrejectreason (socket, code);
    return -1;
  }
  g_mutex_lock (&self->lock);
  g_hash_table_add (self->handshakes, GINT_TO_POINTER (socket));
  g_mutex_unlock (&self->lock);
  return 0;
}

// ---- callers; the thread ----

static void
drop (SrtJob *self, SRTSOCKET socket)
{
  SrtCaller *caller = g_hash_table_lookup (self->callers, GINT_TO_POINTER (socket));

  if (!caller)
    return;
  g_hash_table_remove (self->by_fd, GINT_TO_POINTER (srt_caller_get_fd (caller)));
  g_hash_table_remove (self->callers, GINT_TO_POINTER (socket)); // frees it
}

static void
run_job (SrtJob *self, SRTSOCKET socket)
{
  SrtCaller *caller = g_hash_table_lookup (self->callers, GINT_TO_POINTER (socket));
  SrtEnd end;

  if (!caller || srt_caller_run (caller, &end))
    return;
  drop (self, socket);
  srt_wire_put_ended (&self->message, (guint32) socket, end);
  send_message (self->commands, &self->message);
}

static void
accept_all (SrtJob *self)
{
  SRTSOCKET socket;

  while ((socket = srt_accept (self->listener, NULL, NULL)) != SRT_INVALID_SOCK) {
    if (!forget (self, socket)) {
      srt_close (socket);
      continue;
    }
    g_hash_table_insert (
        self->callers, GINT_TO_POINTER (socket), srt_caller_new (socket, self->epoll));
    srt_wire_put_opened (&self->message, (guint32) socket);
    send_message (self->commands, &self->message);
    run_job (self, socket);
  }
}

static void
run_all (SrtJob *self)
{
  GList *sockets = g_hash_table_get_keys (self->callers);

  for (GList *l = sockets; l; l = l->next)
    run_job (self, GPOINTER_TO_INT (l->data));
  g_list_free (sockets);
}

static void
tell_samples (SrtJob *self)
{
  GHashTableIter iter;
  SrtSample sample;
  gpointer caller;

  srt_wire_begin_samples (&self->message);
  g_hash_table_iter_init (&iter, self->callers);
  while (g_hash_table_iter_next (&iter, NULL, &caller)) {
    srt_caller_sample (caller, &sample);
    if (srt_wire_put_sample (&self->message, &sample))
      continue;
    send_message (self->commands, &self->message);
    srt_wire_begin_samples (&self->message);
    srt_wire_put_sample (&self->message, &sample);
  }
  send_message (self->commands, &self->message);
}

// ---- what the proxy says; the thread ----

static void
obey (SrtJob *self, SrtCommand command, SRTSOCKET socket, gint fd)
{
  SrtCaller *caller = g_hash_table_lookup (self->callers, GINT_TO_POINTER (socket));

  if (command == SRT_COMMAND_CLOSE) {
    drop (self, socket);
  } else if (caller && fd >= 0) {
    srt_caller_begin (caller, command, fd);
    fd = -1;
    if (command == SRT_COMMAND_READ)
      g_hash_table_insert (
          self->by_fd, GINT_TO_POINTER (srt_caller_get_fd (caller)), GINT_TO_POINTER (socket));
    run_job (self, socket);
  }
  if (fd >= 0)
    close (fd);
}

// Returns FALSE when there is none.
static gboolean
take_command (SrtJob *self)
{
  guint8 data[16];
  union {
    struct cmsghdr head;
    guint8 space[CMSG_SPACE (sizeof (gint))];
  } control;
  struct iovec bytes = { data, sizeof data };
  struct msghdr message = {
    .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
  };
  gssize n = recvmsg (self->commands, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  struct cmsghdr *head = n > 0 ? CMSG_FIRSTHDR (&message) : NULL;
  SrtCommand command;
  guint32 id;
  gint fd = -1;

  self->over |= n == 0;
  if (n <= 0)
    return n < 0 && errno == EINTR;
  if (head && head->cmsg_type == SCM_RIGHTS)
    memcpy (&fd, CMSG_DATA (head), sizeof fd);
  if (srt_wire_read_command (data, (gsize) n, &command, &id))
    obey (self, command, (SRTSOCKET) id, fd);
  return TRUE;
}

// ---- the thread ----

static void
run_ready (SrtJob *self, const SRTSOCKET *sockets, int n)
{
  for (int i = 0; i < n; i++) {
    if (sockets[i] == self->listener)
      accept_all (self);
    else
      run_job (self, sockets[i]);
  }
}

static void
run_fds (SrtJob *self, const SYSSOCKET *fds, int n)
{
  for (int i = 0; i < n; i++) {
    gpointer socket = g_hash_table_lookup (self->by_fd, GINT_TO_POINTER (fds[i]));

    if (fds[i] != self->commands && socket)
      run_job (self, GPOINTER_TO_INT (socket));
    for (guint k = 0; fds[i] == self->commands && k < COMMANDS_MAX && take_command (self); k++)
      ;
  }
}

static gpointer
serve (gpointer data)
{
  SrtJob *self = data;
  SRTSOCKET in[READY_MAX], out[READY_MAX];
  SYSSOCKET fds[READY_MAX];

  while (!self->over) {
    int n_in = READY_MAX, n_out = READY_MAX, n_fds = READY_MAX;

    if (srt_epoll_wait (self->epoll, in, &n_in, out, &n_out, WAIT_MS, fds, &n_fds, NULL, NULL)
        >= 0) {
      run_ready (self, in, MIN (n_in, READY_MAX));
      run_ready (self, out, MIN (n_out, READY_MAX));
      run_fds (self, fds, MIN (n_fds, READY_MAX));
    }
    if (clock_now () - self->ticked < TICK)
      continue;
    self->ticked = clock_now ();
    drop_handshakes (self, &self->message);
    run_all (self);
    tell_samples (self);
  }
  srt_close (self->listener);
  g_hash_table_remove_all (self->callers); // tells them
  close (self->commands);
  srt_cleanup (); // waits for libsrt's threads
  close (self->questions);
  g_hash_table_unref (self->handshakes);
  g_hash_table_unref (self->callers);
  g_hash_table_unref (self->by_fd);
  g_mutex_clear (&self->lock);
  g_free (self);
  return NULL;
}

// ---- the start ----

static gboolean
set_options (SRTSOCKET socket, guint32 latency_ms, const gchar *passphrase)
{
  const int32_t latency = (int32_t) latency_ms, version = VERSION_MIN;
  const bool no = false;

  return srt_setsockflag (socket, SRTO_RCVSYN, &no, sizeof no) >= 0
         && srt_setsockflag (socket, SRTO_SNDSYN, &no, sizeof no) >= 0
         && srt_setsockflag (socket, SRTO_LATENCY, &latency, sizeof latency) >= 0
         && srt_setsockflag (socket, SRTO_MINVERSION, &version, sizeof version) >= 0
         && (!passphrase
             || srt_setsockflag (socket, SRTO_PASSPHRASE, passphrase, (int) strlen (passphrase))
                    >= 0);
}

static gboolean
listen_on_port (SrtJob *self, guint32 latency_ms, const gchar *passphrase)
{
  int events = SRT_EPOLL_IN;

  srt_startup ();
  // Inside, libsrt reports errors by C++ exceptions. The first one prepares the process for them,
  // and has ended it when it came while no files were left. So it comes now.
  srt_recvmsg (SRT_INVALID_SOCK, (char[1]) { 0 }, 1);
  srt_setloglevel (LOG_ERR);
  srt_setloghandler (self, on_log);
  self->epoll = srt_epoll_create ();
  self->listener = srt_create_socket ();
  return self->epoll >= 0 && self->listener != SRT_INVALID_SOCK
         && set_options (self->listener, latency_ms, passphrase)
         && srt_listen_callback (self->listener, on_handshake, self) >= 0
         && srt_bind_acquire (self->listener, self->port) >= 0
         && srt_listen (self->listener, BACKLOG) >= 0
         && srt_epoll_add_usock (self->epoll, self->listener, &events) >= 0
         && srt_epoll_add_ssock (self->epoll, self->commands, &events) >= 0;
}

void
srt_job_start (const guint8 *message, gsize len, const gint *fds)
{
  const struct timeval patience = { .tv_sec = VERDICT_S };
  SrtJob *self = g_new0 (SrtJob, 1);
  g_autofree gchar *passphrase = NULL;
  guint32 latency_ms;

  self->commands = fds[0];
  self->questions = fds[1];
  self->port = fds[2];
  g_mutex_init (&self->lock);
  self->handshakes = g_hash_table_new (NULL, NULL);
  self->callers = g_hash_table_new_full (NULL, NULL, NULL, (GDestroyNotify) srt_caller_free);
  self->by_fd = g_hash_table_new (NULL, NULL);
  setsockopt (self->questions, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (!srt_wire_read_job (message, len, &latency_ms, &passphrase)
      || !listen_on_port (self, latency_ms, passphrase)) {
    log_event ("SRT: cannot listen: %s", srt_getlasterror_str ());
    _exit (EXIT_FAILURE);
  }
  g_thread_unref (g_thread_new ("srt", serve, self));
}
