// SPDX-License-Identifier: LGPL-2.1-or-later
#include "progress.h"

#include "units.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BAR_US 100000
#define LINE_US 5000000
#define BAR_WIDTH 24
#define LABEL_MAX 40

static gint64 started, shown;
static gboolean drawn;

static void
draw (const gchar *label, guint64 done, guint64 total, gint64 now)
{
  gdouble share = total ? MIN ((gdouble) done / (gdouble) total, 1) : 0;
  gdouble seconds = (gdouble) (now - started) / 1e6;
  guint64 rate = seconds > 0.5 ? (guint64) ((gdouble) done / seconds) : 0;
  g_autofree gchar *speed = units_dup_size (rate);
  gint filled = (gint) (share * BAR_WIDTH),
       left = rate ? (gint) ((total - MIN (done, total)) / rate) : 0;
  gchar bar[BAR_WIDTH + 1];
  glong length = g_utf8_strlen (label, -1);

  memset (bar, '.', BAR_WIDTH);
  memset (bar, '#', (gsize) filled);
  bar[BAR_WIDTH] = '\0';
  if (length > LABEL_MAX) // its end tells more than its beginning
    label = g_utf8_offset_to_pointer (label, length - LABEL_MAX);
  fprintf (stderr, "\r\033[K%s [%s] %3.0f %%", label, bar, share * 100);
  if (rate)
    fprintf (stderr, "  %s/s  %d:%02d left", speed, left / 60, left % 60);
  fflush (stderr);
  drawn = TRUE;
}

void
progress_show (const gchar *label, guint64 done, guint64 total)
{
  gboolean terminal = isatty (STDERR_FILENO);
  gint64 now = g_get_monotonic_time ();

  if (started == 0) {
    started = now;
    shown = terminal ? 0 : now;
  }
  if (now - shown < (terminal ? BAR_US : LINE_US))
    return;
  shown = now;
  if (terminal)
    draw (label, done, total, now);
  else
    fprintf (stderr, "%s: %.0f %%\n", label, total ? (gdouble) done / (gdouble) total * 100 : 0);
}

void
progress_clear (void)
{
  if (drawn)
    fputs ("\r\033[K", stderr);
  drawn = FALSE;
  started = 0;
}
