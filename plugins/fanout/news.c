// SPDX-License-Identifier: LGPL-2.1-or-later
// Logs what happens to readers: refused segmented sends, thinning, closing.
#include "fanoutsink_private.h"

GST_DEBUG_CATEGORY_EXTERN (fanoutsink_debug);
#define GST_CAT_DEFAULT fanoutsink_debug

enum { NEWS_REFUSED, NEWS_THINNED, NEWS_CLOSED, N_NEWS };

// The log line of the first reader with one kind of news, and the number of others with it.
typedef struct {
  gchar *first;
  guint n_others;
} Told;

static const gchar *
describe_state (WeirReaderState state)
{
  switch (state) {
    case WEIR_READER_NO_UPPER_LAYERS:
      return "the base layer only";
    case WEIR_READER_REFERENCES:
      return "only frames that other frames need";
    case WEIR_READER_KEYFRAMES:
      return "keyframes only";
    default:
      return "everything";
  }
}

static gchar *
say_thinned (WeirFanoutSink *self, const Name *name, WeirReaderState state)
{
  WeirReaderCounters counters;

  weir_reader_counters (
      fanout_name_get_fanout (self, name), name->reader, weir_now_ns (), &counters);
  if (counters.restricted == state)
    return g_strdup_printf (
        "%s is restricted and now gets %s", name->shown, describe_state (state));
  return g_strdup_printf ("%s lags by %d ms and now gets %s", name->shown,
      (gint) (counters.lag_ns / GST_MSECOND), describe_state (state));
}

static gchar *
say_closed (const Name *name, gint error)
{
  return g_strdup_printf ("%s is closed: %s", name->shown,
      error == ETIMEDOUT ? WEIR_CONNECTION_STALLED : g_strerror (error));
}

static gchar *
say_refused (const Name *name, gint error)
{
  return g_strdup_printf ("%s: the path refuses segmented sends (%s); it gets single packets",
      name->shown, g_strerror (error));
}

static gboolean
is_first (Told *told)
{
  told->n_others += told->first != NULL;
  return !told->first;
}

// Call with `lock` held.
static void
note_news (WeirFanoutSink *self, const Name *name, Told *told)
{
  WeirReaderNews news;

  if (!weir_reader_take_news (name->reader, &news))
    return;
  if (news.gso_error && is_first (&told[NEWS_REFUSED]))
    told[NEWS_REFUSED].first = say_refused (name, news.gso_error);
  if (news.state <= news.before)
    return;
  if (news.state != WEIR_READER_CLOSED) {
    if (is_first (&told[NEWS_THINNED]))
      told[NEWS_THINNED].first = say_thinned (self, name, news.state);
    // The program knows of connections that it closes itself.
  } else if (news.closed_by != ECANCELED && is_first (&told[NEWS_CLOSED])) {
    told[NEWS_CLOSED].first = say_closed (name, news.closed_by);
  }
}

static void
log_news (WeirFanoutSink *self, Told *told)
{
  for (guint i = 0; i < N_NEWS; i++) {
    if (told[i].n_others > 0)
      GST_WARNING_OBJECT (
          self, "reader %s; the same holds for %u other readers", told[i].first, told[i].n_others);
    else if (told[i].first)
      GST_WARNING_OBJECT (self, "reader %s", told[i].first);
    g_free (told[i].first);
  }
}

void
fanout_news_tell (WeirFanoutSink *self)
{
  Told told[N_NEWS] = { 0 };

  g_mutex_lock (&self->lock);
  for (GList *l = self->names.head; l; l = l->next)
    note_news (self, l->data, told);
  g_mutex_unlock (&self->lock);
  log_news (self, told);
}

void
fanout_news_tell_of (WeirFanoutSink *self, const Name *name)
{
  Told told[N_NEWS] = { 0 };

  g_mutex_lock (&self->lock);
  note_news (self, name, told);
  g_mutex_unlock (&self->lock);
  log_news (self, told);
}
