// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/srt/srt_reader.h"

#include <fcntl.h>

#include "base/files_left.h"
#include "base/log.h"
#include "mounts/start_wait.h"
#include "outlets/http/http_refusal.h"
#include "outlets/ts/ts_reader.h"
#include "outlets/ts/ts_stream.h"
#include "readers/reader_limit.h"

#define SLOW_AFTER 10 // seconds

struct _SrtReader {
  gchar *peer, *path;
  void (*close) (gpointer owner, const gchar *reason);
  gpointer owner;
  StartWait *wait;
  Mount *mount;
  Presentation *presentation;
  TsStream *stream; // from the start, so that it has the presentation's first packets
  gchar *problem;   // what srt_reader_run() returned
  gboolean has_place;
  gchar *name; // in the stream's sink; NULL: it does not play yet
  TsReader *shown;
  // At the beginning of the seconds in hand.
  guint seconds;
  guint64 dropped, sent;
};

// ---- the start ----

static gboolean
use (SrtReader *self, Mounts *mounts, const Demand *demand, GError **error)
{
  Resolved resolved;

  if (!mounts_resolve (mounts, demand, &resolved, error))
    return FALSE;
  if (!mounts_make (mounts, demand, &resolved, error))
    return FALSE;
  if (resolved.title) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "a title cannot be read over SRT");
  } else {
    self->mount = mount_ref (resolved.mount);
    self->presentation = mounts_use (&resolved, error);
  }
  resolved_clear (&resolved);
  if (self->presentation)
    self->stream = ts_stream_get (self->presentation, demand->layers, error);
  return self->stream != NULL;
}

SrtReader *
srt_reader_new (Mounts *mounts, const Demand *demand, const gchar *peer,
    void (*ready) (gpointer owner), void (*close) (gpointer owner, const gchar *reason),
    gpointer owner, GError **error)
{
  SrtReader *self = g_new0 (SrtReader, 1);

  self->peer = g_strdup (peer);
  self->path = g_strdup (demand->path);
  self->close = close;
  self->owner = owner;
  if (!use (self, mounts, demand, error)) {
    srt_reader_free (self, NULL);
    return NULL;
  }
  self->wait = start_wait_new (self->presentation, ready, owner);
  return self;
}

static gboolean
fail_reader (SrtReader *self, gchar *problem)
{
  self->problem = problem;
  return FALSE;
}

static gboolean
take_place (SrtReader *self)
{
  const HttpRefusal *problem = http_refusal_of_reader (self->mount);

  if (problem) {
    refusals_note (problem->reason, self->peer, "%s", problem->text);
    return fail_reader (self, g_strdup (problem->text));
  }
  self->has_place = TRUE;
  return TRUE;
}

static gboolean
check_presentation (SrtReader *self)
{
  GError *error = NULL;
  gchar *problem;

  switch (presentation_ask (self->presentation, &error)) {
    case PRESENTATION_READY:
      problem = ts_stream_dup_problem (self->stream);
      return !problem || fail_reader (self, problem);
    case PRESENTATION_DOWN:
      problem = g_strdup (error->message);
      g_error_free (error);
      return fail_reader (self, problem);
    default:
      return fail_reader (self, g_strdup ("the upstream takes too long to start (start-timeout)"));
  }
}

static gboolean
play (SrtReader *self, gint *fd)
{
  GError *error = NULL;
  g_autofree gchar *left_out = NULL;
  GSocket *end;

  if (!check_presentation (self) || !take_place (self))
    return FALSE;
  self->name = ts_stream_add_pair (self->stream, &end, &error);
  if (!self->name) {
    fail_reader (self, g_strdup (error->message));
    g_error_free (error);
    return FALSE;
  }
  left_out = ts_stream_dup_left_out (self->stream);
  self->shown = ts_reader_new (ts_stream_get_sink (self->stream), self->name, 0,
      mount_get_path (self->mount), self->peer, "SRT", left_out, self->close, self->owner);
  *fd = fcntl (g_socket_get_fd (end), F_DUPFD_CLOEXEC, 0);
  g_object_unref (end);
  log_event ("reader %s in: %s over SRT", self->peer, self->path);
  return TRUE;
}

// ---- while it reads ----

gboolean
srt_reader_run (SrtReader *self, gint *fd, const gchar **reason)
{
  if (self->name || !start_wait_is_over (self->wait))
    return TRUE;
  *reason = FILES_PROBLEM;
  if (play (self, fd))
    return *fd >= 0;
  *reason = self->problem;
  return FALSE;
}

gboolean
srt_reader_is_slow (SrtReader *self, guint64 dropped, guint64 sent)
{
  gboolean slow = dropped - self->dropped > sent - self->sent;

  if (++self->seconds < SLOW_AFTER)
    return FALSE;
  self->seconds = 0;
  self->dropped = dropped;
  self->sent = sent;
  return slow;
}

void
srt_reader_free (SrtReader *self, const gchar *reason)
{
  g_clear_pointer (&self->wait, start_wait_free);
  if (reason)
    log_event ("reader %s out: %s: %s", self->peer, self->path, reason);
  g_clear_pointer (&self->shown, ts_reader_end);
  if (self->name)
    ts_stream_remove_socket (self->stream, self->name);
  if (self->has_place)
    reader_limit_leave (mount_get_path (self->mount));
  g_clear_pointer (&self->stream, ts_stream_unref);
  g_clear_pointer (&self->presentation, presentation_leave);
  g_clear_pointer (&self->mount, mount_unref);
  g_free (self->problem);
  g_free (self->name);
  g_free (self->path);
  g_free (self->peer);
  g_free (self);
}
