// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/notices.h"

#include "base/log.h"
#include "control/ingest_figures.h"
#include "readers/readers.h"
#include "readers/totals.h"

#define ROUND_INTERVAL_S 2
// Most readers that are sampled in one round, because a sample takes a while.
#define READERS_PER_ROUND 100
// Shortest interval between log lines about the packets of a mount, in ms.
#define PACKETS_INTERVAL_MS (60 * 1000)

// The counts of a mount that were logged last.
typedef struct {
  guint64 dropped[WEIR_N_DROPS];
  RelayStats stats;
  LogLimit losses, upstream, readers;
  guint round; // the last round in which the mount existed
} Logged;

struct _Notices {
  Proxy *proxy;
  GHashTable *mounts;  // path -> Logged
  GHashTable *thinned; // id of a thinned reader -> its state that was logged
  guint64 last_id;     // of the reader that was sampled last
  guint round;
  guint timeout;
};

// The packets that a reader gets in each state; NULL: none.
static const gchar *const state_words[READER_STATES] = { "all packets", "the lowest layers only",
  "no discardable frames", "keyframes only", NULL };

// ---- readers ----

static void
log_reader (Reader *reader, const ReaderSample *sample, guint before, LogLimit *limit)
{
  if (sample->state > before)
    log_event_limited (limit, "reader %s thinned: %s: it gets %s; lag %.1f s",
        reader_get_peer (reader), reader_get_mount (reader), state_words[sample->state],
        (gdouble) sample->lag_ns / GST_SECOND);
  else if (sample->state == 0)
    log_event_limited (limit, "reader %s recovered: %s: it gets all packets again",
        reader_get_peer (reader), reader_get_mount (reader));
}

static void
check_reader (Notices *self, Reader *reader)
{
  Logged *logged = g_hash_table_lookup (self->mounts, reader_get_mount (reader));
  gint64 id = (gint64) reader_get_id (reader);
  guint before = GPOINTER_TO_UINT (g_hash_table_lookup (self->thinned, &id));
  ReaderSample sample;

  reader_sample (reader, &sample);
  // A closed reader is leaving; that is logged elsewhere, with the reason.
  if (sample.state == before || !state_words[sample.state] || !logged)
    return;
  log_reader (reader, &sample, before, &logged->readers);
  if (sample.state)
    g_hash_table_insert (
        self->thinned, g_memdup2 (&id, sizeof id), GUINT_TO_POINTER (sample.state));
  else
    g_hash_table_remove (self->thinned, &id);
}

static gint
compare_id (gconstpointer id, gconstpointer reader)
{
  guint64 a = *(const guint64 *) id, b = reader_get_id (*(Reader *const *) reader);

  return a < b ? -1 : a > b;
}

static gboolean
has_left (gpointer id, gpointer state, gpointer data)
{
  const GPtrArray *readers = data; // sorted by id

  // An empty array has no memory, which bsearch() must not be given.
  return readers->len == 0
         || !bsearch (id, readers->pdata, readers->len, sizeof (gpointer), compare_id);
}

// Samples the next readers by id, and begins again after the last.
static void
check_readers (Notices *self)
{
  g_autoptr (GPtrArray) readers = readers_dup_all ();
  guint from = 0;

  while (from < readers->len && reader_get_id (g_ptr_array_index (readers, from)) <= self->last_id)
    from++;
  for (guint i = 0; i < MIN (readers->len, READERS_PER_ROUND); i++) {
    Reader *reader = g_ptr_array_index (readers, (from + i) % readers->len);

    check_reader (self, reader);
    self->last_id = reader_get_id (reader);
  }
  g_hash_table_foreach_remove (self->thinned, has_left, readers);
}

// ---- packets ----

// Reports whether drops for this reason are logged. A peer that has vanished causes an error for
// each packet, and its end is logged elsewhere. The other reasons are intended.
static gboolean
is_logged (WeirDrop reason)
{
  return reason == WEIR_DROP_OVERRUN || reason == WEIR_DROP_THINNED
         || (weir_drop_is_loss (reason) && reason != WEIR_DROP_ERROR);
}

static void
log_losses (Logged *logged, const gchar *path, const Totals *totals)
{
  g_autoptr (GString) reasons = g_string_new (NULL);
  guint64 rise, unlogged;

  for (guint i = 0; i < WEIR_N_DROPS; i++) {
    rise = totals->dropped[i] - logged->dropped[i];
    if (!is_logged (i) || rise == 0)
      continue;
    g_string_append_printf (
        reasons, "%s%" G_GUINT64_FORMAT " %s", reasons->len ? ", " : "", rise, weir_drop_name (i));
  }
  if (reasons->len && log_limit_pass (&logged->losses, g_get_monotonic_time (), &unlogged)) {
    log_event ("mount %s: packets not delivered to readers: %s", path, reasons->str);
    memcpy (logged->dropped, totals->dropped, sizeof logged->dropped);
  }
}

static void
log_upstream (Logged *logged, const gchar *path, const RelayStats *stats)
{
  g_autofree gchar *text = ingest_figures_describe (stats, &logged->stats);
  guint64 unlogged;

  if (text && log_limit_pass (&logged->upstream, g_get_monotonic_time (), &unlogged)) {
    log_event ("mount %s: packets from its upstream: %s", path, text);
    logged->stats = *stats;
  }
}

static Logged *
get_logged (Notices *self, const gchar *path)
{
  Logged *logged = g_hash_table_lookup (self->mounts, path);

  if (!logged) {
    logged = g_new0 (Logged, 1);
    logged->losses = logged->upstream =
        (LogLimit) { .burst = 1, .interval_ms = PACKETS_INTERVAL_MS };
    logged->readers = LOG_LIMIT_FAILURES;
    g_hash_table_insert (self->mounts, g_strdup (path), logged);
  }
  logged->round = self->round;
  return logged;
}

static void
check_mount (Notices *self, Mount *mount)
{
  const gchar *path = mount_get_path (mount);
  Logged *logged = get_logged (self, path);
  g_autoptr (Presentation) main = mount_dup_main (mount);
  RelayStats stats;
  Totals totals;

  relay_get_stats (presentation_get_relay (main), &stats);
  log_upstream (logged, path, &stats);
  if (totals_get (path, &totals))
    log_losses (logged, path, &totals);
}

static gboolean
is_removed (gpointer path, gpointer logged, gpointer self)
{
  return ((Logged *) logged)->round != ((Notices *) self)->round;
}

static gboolean
check_all (gpointer data)
{
  Notices *self = data;
  GPtrArray *mounts = mounts_dup_all (proxy_get_mounts (self->proxy));

  self->round++;
  for (guint i = 0; i < mounts->len; i++)
    check_mount (self, g_ptr_array_index (mounts, i));
  g_hash_table_foreach_remove (self->mounts, is_removed, self);
  g_ptr_array_unref (mounts);
  check_readers (self);
  return G_SOURCE_CONTINUE;
}

Notices *
notices_new (Proxy *proxy)
{
  Notices *self = g_new0 (Notices, 1);

  self->proxy = proxy;
  self->mounts = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  self->thinned = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  self->timeout = g_timeout_add_seconds (ROUND_INTERVAL_S, check_all, self);
  return self;
}

void
notices_free (Notices *self)
{
  g_source_remove (self->timeout);
  g_hash_table_unref (self->mounts);
  g_hash_table_unref (self->thinned);
  g_free (self);
}
