// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/notices.h"

#include "base/log.h"
#include "readers/readers.h"
#include "readers/totals.h"

#define LOOK_INTERVAL_S 2
// Most readers that are read in one round, because a read takes a while.
#define READERS_A_LOOK 100
#define QUIET_MS (60 * 1000)

// The counts of a mount that were logged last.
typedef struct {
  guint64 dropped[WEIR_N_DROPS];
  guint64 n_lost, n_stale, n_bad;
  LogLimit losses, upstream, readers;
  guint round; // the last round in which the mount existed
} Seen;

struct _Notices {
  Server *server;
  GHashTable *mounts; // path -> Seen
  GHashTable *worse;  // id of a thinned reader -> the state that was logged
  guint64 last_asked; // id of a reader
  guint round;
  guint timeout;
};

static const gchar *const state_words[READER_STATES] = { "everything", "the lowest layers only",
  "no discardable frames", "keyframes only", NULL };

// ---- readers ----

static void
tell_reader (Reader *reader, const ReaderSample *sample, guint before, LogLimit *limit)
{
  if (sample->state > before)
    log_event_limited (limit, "reader %s thinned: %s: it gets %s; it lags %.1f s",
        reader_get_peer (reader), reader_get_mount (reader), state_words[sample->state],
        (gdouble) sample->lag_ns / GST_SECOND);
  else if (sample->state == 0)
    log_event_limited (limit, "reader %s: %s: it gets everything again", reader_get_peer (reader),
        reader_get_mount (reader));
}

static void
ask_reader (Notices *self, Reader *reader)
{
  Seen *seen = g_hash_table_lookup (self->mounts, reader_get_mount (reader));
  gint64 id = (gint64) reader_get_id (reader);
  guint before = GPOINTER_TO_UINT (g_hash_table_lookup (self->worse, &id));
  ReaderSample sample;

  reader_sample (reader, &sample);
  // A closed reader is leaving, which is logged with the reason.
  if (sample.state == before || !state_words[sample.state] || !seen)
    return;
  tell_reader (reader, &sample, before, &seen->readers);
  if (sample.state)
    g_hash_table_insert (self->worse, g_memdup2 (&id, sizeof id), GUINT_TO_POINTER (sample.state));
  else
    g_hash_table_remove (self->worse, &id);
}

static gint
compare_id (gconstpointer id, gconstpointer reader)
{
  guint64 a = *(const guint64 *) id, b = reader_get_id (*(Reader *const *) reader);

  return a < b ? -1 : a > b;
}

static gboolean
is_gone (gpointer id, gpointer state, gpointer data)
{
  const GPtrArray *readers = data; // sorted by id

  return !bsearch (id, readers->pdata, readers->len, sizeof (gpointer), compare_id);
}

// Reads the readers whose ids follow the last one read, and continues with the first.
static void
look_at_readers (Notices *self)
{
  GPtrArray *readers = readers_dup_all ();
  guint from = 0;

  while (
      from < readers->len && reader_get_id (g_ptr_array_index (readers, from)) <= self->last_asked)
    from++;
  for (guint i = 0; i < MIN (readers->len, READERS_A_LOOK); i++) {
    Reader *reader = g_ptr_array_index (readers, (from + i) % readers->len);

    ask_reader (self, reader);
    self->last_asked = reader_get_id (reader);
  }
  g_hash_table_foreach_remove (self->worse, is_gone, readers);
  g_ptr_array_unref (readers);
}

// ---- packets ----

// Selects the drop reasons to log. A peer that is gone causes an error for each packet, and is
// logged when it leaves. The other reasons are intended.
static gboolean
is_told (WeirDrop reason)
{
  return reason == WEIR_DROP_OVERRUN || reason == WEIR_DROP_THINNED
         || (weir_drop_is_loss (reason) && reason != WEIR_DROP_ERROR);
}

static void
look_at_losses (Seen *seen, const gchar *path, const Totals *totals)
{
  GString *reasons = g_string_new (NULL);
  guint64 rise, unsaid;

  for (guint i = 0; i < WEIR_N_DROPS; i++) {
    rise = totals->dropped[i] - seen->dropped[i];
    if (!is_told (i) || rise == 0)
      continue;
    g_string_append_printf (
        reasons, "%s%" G_GUINT64_FORMAT " %s", reasons->len ? ", " : "", rise, weir_drop_name (i));
  }
  if (reasons->len && log_limit_pass (&seen->losses, g_get_monotonic_time (), &unsaid)) {
    log_event ("mount %s: packets not delivered to readers: %s", path, reasons->str);
    memcpy (seen->dropped, totals->dropped, sizeof seen->dropped);
  }
  g_string_free (reasons, TRUE);
}

static void
look_at_upstream (Seen *seen, const gchar *path, const RelayStats *stats)
{
  guint64 lost = stats->n_lost - seen->n_lost, stale = stats->n_stale - seen->n_stale;
  guint64 bad = stats->n_bad - seen->n_bad, unsaid;

  if (lost + stale + bad == 0
      || !log_limit_pass (&seen->upstream, g_get_monotonic_time (), &unsaid))
    return;
  log_event ("mount %s: packets from its upstream: %" G_GUINT64_FORMAT " lost, %" G_GUINT64_FORMAT
             " malformed, %" G_GUINT64_FORMAT " stale",
      path, lost, bad, stale);
  seen->n_lost = stats->n_lost;
  seen->n_stale = stats->n_stale;
  seen->n_bad = stats->n_bad;
}

static Seen *
get_seen (Notices *self, const gchar *path)
{
  Seen *seen = g_hash_table_lookup (self->mounts, path);

  if (!seen) {
    seen = g_new0 (Seen, 1);
    seen->losses = seen->upstream = (LogLimit) { .burst = 1, .interval_ms = QUIET_MS };
    seen->readers = LOG_LIMIT_FAILURES;
    g_hash_table_insert (self->mounts, g_strdup (path), seen);
  }
  seen->round = self->round;
  return seen;
}

static void
look_at_mount (Notices *self, Mount *mount)
{
  const gchar *path = mount_get_path (mount);
  Seen *seen = get_seen (self, path);
  Presentation *main = mount_dup_main (mount);
  RelayStats stats;
  Totals totals;

  relay_get_stats (presentation_get_relay (main), &stats);
  look_at_upstream (seen, path, &stats);
  if (totals_get (path, &totals))
    look_at_losses (seen, path, &totals);
  presentation_unref (main);
}

static gboolean
is_old (gpointer path, gpointer seen, gpointer self)
{
  return ((Seen *) seen)->round != ((Notices *) self)->round;
}

static gboolean
look (gpointer data)
{
  Notices *self = data;
  GPtrArray *mounts = mounts_dup_all (server_get_mounts (self->server));

  self->round++;
  for (guint i = 0; i < mounts->len; i++)
    look_at_mount (self, g_ptr_array_index (mounts, i));
  g_hash_table_foreach_remove (self->mounts, is_old, self);
  g_ptr_array_unref (mounts);
  look_at_readers (self);
  return G_SOURCE_CONTINUE;
}

Notices *
notices_new (Server *server)
{
  Notices *self = g_new0 (Notices, 1);

  self->server = server;
  self->mounts = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  self->worse = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  self->timeout = g_timeout_add_seconds (LOOK_INTERVAL_S, look, self);
  return self;
}

void
notices_free (Notices *self)
{
  g_source_remove (self->timeout);
  g_hash_table_unref (self->mounts);
  g_hash_table_unref (self->worse);
  g_free (self);
}
