// SPDX-License-Identifier: LGPL-2.1-or-later
#include "isolate/output.h"

#include <fcntl.h>
#include <glib-unix.h>
#include <unistd.h>

#include "base/log.h"
#include "base/timer.h"

#define LINE_MAX_BYTES 1024
// Of one read. A worker that writes faster than READ_MAX in PAUSE_MS waits.
#define READ_MAX 16384
#define PAUSE_MS 100
#define PIPE_MAX 65536

struct _Output {
  const gchar *name;
  gint fd;
  gint pid;
  guint source; // 0: none
  Timer *pause;
  GString *line; // not ended yet
  LogLimit limit;
};

static void
end_line (Output *self)
{
  g_autofree gchar *text = NULL;

  if (!self->line->len)
    return;
  text = g_utf8_make_valid (self->line->str, (gssize) self->line->len);
  log_event_limited (&self->limit, "%s %d: %s", self->name, self->pid, text);
  g_string_truncate (self->line, 0);
}

// Returns FALSE at the end, or if nothing is there.
static gboolean
read_some (Output *self)
{
  gchar data[READ_MAX];
  gssize n = read (self->fd, data, sizeof data);

  for (gssize i = 0; i < n; i++) {
    if (data[i] != '\n')
      g_string_append_c (self->line, data[i] ? data[i] : '?');
    if (data[i] == '\n' || self->line->len == LINE_MAX_BYTES)
      end_line (self);
  }
  return n > 0;
}

static void watch (Output *self);

static gboolean
on_pause_over (gpointer data)
{
  Output *self = data;

  self->pause = NULL;
  watch (self);
  return G_SOURCE_REMOVE;
}

static gboolean
on_readable (gint fd, GIOCondition condition, gpointer data)
{
  Output *self = data;

  self->source = 0;
  if (read_some (self))
    self->pause = timer_add (PAUSE_MS, on_pause_over, self);
  return G_SOURCE_REMOVE;
}

static void
watch (Output *self)
{
  self->source = g_unix_fd_add (self->fd, G_IO_IN | G_IO_HUP, on_readable, self);
}

Output *
output_new (const gchar *name, gint *theirs)
{
  gint pair[2];
  Output *self;

  if (pipe2 (pair, O_CLOEXEC) < 0)
    return NULL;
  g_unix_set_fd_nonblocking (pair[0], TRUE, NULL);
  self = g_new0 (Output, 1);
  self->name = name;
  self->fd = pair[0];
  self->line = g_string_new (NULL);
  // Room for the report of a sanitizer.
  self->limit = (LogLimit) { .burst = 200, .interval_ms = 1000 };
  *theirs = pair[1];
  return self;
}

void
output_start (Output *self, gint pid)
{
  self->pid = pid;
  watch (self);
}

void
output_free (Output *self)
{
  for (guint n = 0; n < PIPE_MAX && self->pid && read_some (self); n += READ_MAX)
    ;
  end_line (self);
  if (self->source)
    g_source_remove (self->source);
  g_clear_pointer (&self->pause, timer_remove);
  close (self->fd);
  g_string_free (self->line, TRUE);
  g_free (self);
}
