// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/picture/picture_decoder.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <glib-unix.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/timer.h"
#include "isolate/picture_wire.h"
#include "isolate/pool.h"

#define WAITING_MAX 1024
#define PATIENCE_MS 10000 // with a keyframe, and the start of the worker
#define DEATH_MS 500      // between the end of a worker's sockets and that of the worker
#define READ_BYTES 65536

typedef struct {
  const PictureWanter *functions;
  gpointer owner;
  guint width;
} Wanted;

struct _PictureDecoder {
  // The main thread's.
  Wanted *now; // what is decoded, or NULL
  Worker *worker;
  gint socket;
  guint reading;
  Timer *deadline;
  const gchar *fault; // why the worker is killed at the deadline
  GByteArray *answer;

  GMutex lock;    // protects `waiting`
  GQueue waiting; // of Wanted
};

static guint64 made, failed; // atomic

void
picture_decoder_get_counts (PictureCounts *counts)
{
  counts->made = __atomic_load_n (&made, __ATOMIC_RELAXED);
  counts->failed = __atomic_load_n (&failed, __ATOMIC_RELAXED);
}

static gboolean begin_next (gpointer decoder);

// ---- the end of a job ----

static void
tell (Wanted *wanted, GBytes *picture, const gchar *problem, gboolean harmful)
{
  __atomic_add_fetch (picture ? &made : &failed, 1, __ATOMIC_RELAXED);
  wanted->functions->done (wanted->owner, wanted->width, picture, problem, harmful);
  g_free (wanted);
}

// Ends the job, and tells its owner.
static void
end (PictureDecoder *self, GBytes *picture, const gchar *problem, gboolean harmful)
{
  g_clear_handle_id (&self->reading, g_source_remove);
  g_clear_pointer (&self->deadline, timer_remove);
  g_clear_pointer (&self->answer, g_byte_array_unref);
  if (self->socket >= 0)
    close (self->socket);
  self->socket = -1;
  if (self->worker)
    worker_leave (g_steal_pointer (&self->worker), self);
  tell (g_steal_pointer (&self->now), picture, problem, harmful);
  g_idle_add (begin_next, self); // not at once: many may fail, one in the other
}

static void
on_died (gpointer data, const gchar *reason)
{
  PictureDecoder *self = data;
  g_autofree gchar *problem = g_strdup_printf ("its decoder has failed: %s", reason);

  end (self, NULL, problem, TRUE);
}

static gboolean
kill_worker (gpointer data)
{
  PictureDecoder *self = data;

  self->deadline = NULL;
  worker_kill (self->worker, self->fault);
  return G_SOURCE_REMOVE;
}

static void
kill_later (PictureDecoder *self, guint ms, const gchar *fault)
{
  g_clear_pointer (&self->deadline, timer_remove);
  self->fault = fault;
  self->deadline = timer_add (ms, kill_worker, self);
}

// ---- the answer ----

// The worker has closed the socket. One that dies does so a moment before the system knows that.
static void
take_answer (PictureDecoder *self)
{
  g_autoptr (GBytes) picture = NULL;
  g_autofree gchar *problem = NULL;

  self->reading = 0;
  if (self->answer->len == 0) {
    kill_later (self, DEATH_MS, "was killed: it made no picture");
    return;
  }
  picture = picture_wire_read_answer (self->answer->data, self->answer->len, &problem);
  end (self, picture, problem, FALSE);
}

static gboolean
on_readable (gint socket, GIOCondition condition, gpointer data)
{
  PictureDecoder *self = data;
  guint8 bytes[READ_BYTES];
  gssize n = recv (socket, bytes, sizeof bytes, MSG_DONTWAIT);

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return G_SOURCE_CONTINUE;
  if (n <= 0) {
    take_answer (self);
    return G_SOURCE_REMOVE;
  }
  g_byte_array_append (self->answer, bytes, (guint) n);
  if (self->answer->len <= PICTURE_WIRE_ANSWER_MAX)
    return G_SOURCE_CONTINUE;
  self->reading = 0;
  kill_later (self, 0, "was killed: it sent more than a picture");
  return G_SOURCE_REMOVE;
}

// ---- the start of a job ----

// Returns an unnamed file with the bytes, or -1. It does not change any more.
static gint
make_file (GBytes *bytes, GError **error)
{
  gsize size, at = 0;
  const guint8 *data = g_bytes_get_data (bytes, &size);
  gint file = memfd_create ("keyframe", MFD_CLOEXEC | MFD_ALLOW_SEALING);

  while (file >= 0 && at < size) {
    gssize n = write (file, data + at, size - at);

    if (n < 0 && errno != EINTR)
      break;
    at += (gsize) MAX (n, 0);
  }
  if (file < 0 || at < size) {
    g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno), "cannot store its keyframe: %s",
        g_strerror (errno));
    if (file >= 0)
      close (file);
    return -1;
  }
  fcntl (file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
  return file;
}

// Gives the worker the file and a socket.
static gboolean
send_job (PictureDecoder *self, gint file, const GstCaps *caps, GError **error)
{
  g_autofree WireMessage *message = g_new (WireMessage, 1);
  gint pair[2];
  gboolean ok;

  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
    g_set_error (error, G_IO_ERROR, g_io_error_from_errno (errno), "%s", g_strerror (errno));
    return FALSE;
  }
  picture_wire_put_job (message, self->now->width, caps);
  self->socket = pair[0];
  ok = worker_send (self->worker, message->data, message->len, (gint[]) { file, pair[1] },
      PICTURE_WIRE_FDS, error);
  close (pair[1]);
  return ok;
}

static gboolean
begin_job (PictureDecoder *self, GBytes *frame, const GstCaps *caps, GError **error)
{
  gint file = make_file (frame, error);
  gboolean ok;

  if (file < 0)
    return FALSE;
  self->worker = workers_join (SANDBOX_PICTURE, on_died, self, error);
  ok = self->worker && send_job (self, file, caps, error);
  close (file);
  if (!ok)
    return FALSE;
  self->answer = g_byte_array_new ();
  self->reading = g_unix_fd_add (self->socket, G_IO_IN | G_IO_HUP, on_readable, self);
  kill_later (self, PATIENCE_MS, "was killed: it made no picture within 10 s");
  return TRUE;
}

static Wanted *
take_next (PictureDecoder *self)
{
  Wanted *next;

  g_mutex_lock (&self->lock);
  next = g_queue_pop_head (&self->waiting);
  g_mutex_unlock (&self->lock);
  return next;
}

static gboolean
begin_next (gpointer data)
{
  PictureDecoder *self = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) frame = NULL;
  g_autoptr (GstCaps) caps = NULL;

  if (self->now || !(self->now = take_next (self)))
    return G_SOURCE_REMOVE;
  if (!self->now->functions->take (self->now->owner, self->now->width, &frame, &caps))
    end (self, NULL, "the stream has ended", FALSE);
  else if (!begin_job (self, frame, caps, &error))
    end (self, NULL, error->message, FALSE);
  return G_SOURCE_REMOVE;
}

gboolean
picture_decoder_ask (
    PictureDecoder *self, const PictureWanter *functions, gpointer owner, guint width)
{
  Wanted *wanted = g_new (Wanted, 1);
  gboolean has_room;

  *wanted = (Wanted) { functions, owner, width };
  g_mutex_lock (&self->lock);
  has_room = self->waiting.length < WAITING_MAX;
  if (has_room)
    g_queue_push_tail (&self->waiting, wanted);
  g_mutex_unlock (&self->lock);
  if (has_room)
    g_idle_add (begin_next, self);
  else
    g_free (wanted);
  return has_room;
}

// ---- construction ----

PictureDecoder *
picture_decoder_new (void)
{
  PictureDecoder *self = g_new0 (PictureDecoder, 1);

  self->socket = -1;
  g_mutex_init (&self->lock);
  return self;
}

void
picture_decoder_free (PictureDecoder *self)
{
  static const gchar problem[] = "the proxy stops";
  Wanted *wanted;

  if (self->now)
    end (self, NULL, problem, FALSE);
  while ((wanted = take_next (self)))
    tell (wanted, NULL, problem, FALSE);
  while (g_idle_remove_by_data (self))
    ;
  g_mutex_clear (&self->lock);
  g_free (self);
}
