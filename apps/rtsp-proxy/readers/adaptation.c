// SPDX-License-Identifier: LGPL-2.1-or-later
#include "readers/adaptation.h"

#include "base/clock.h"
#include "config/mount_keys.h"
#include "readers/line_choice.h"
#include "svc/adapt.h"
#include "text/layer_choice.h"

#define LAG_INTERVAL                                                                               \
  (5 * GST_SECOND)           // between checks of a TCP reader; RTCP reports have this interval
#define LOOK_INTERVAL_MS 100 // at readers whose feedback tells of each packet
#define THINNED_LAG (250 * GST_MSECOND) // lag at which fanoutsink starts to thin a reader
#define SPREAD 0x9e3779b9u              // spreads consecutive ids over the range of seeds

typedef struct {
  gatomicrefcount refs;
  Reader *reader;
  Presentation *presentation;
  guint64 *n_reports; // atomic; NULL without reports

  // Use on the main thread only, once the entry is in `entries`.
  WeirLayerSet chosen;
  WeirLayerSet limit;
  MountAdapt policy;
  gboolean begun;
  WeirAdapt adapt;
  gboolean counted; // `last` is valid
  ReaderVideo last; // at the last report
  guint64 last_n;   // of `n_reports` then
  GstClockTime last_time;
  gdouble arrived; // bit/s received between the last two reports
  LineChoice line; // with the policy gcc
  gchar *address;  // the reader's, without a port
} Entry;

static GMutex lock;
static GHashTable *entries; // Reader -> Entry; use with `lock` held

static guint looks; // GSource of look(); 0: no reader needs it. Main thread only.

static Entry *
entry_ref (Entry *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

static void
entry_unref (gpointer data)
{
  Entry *self = data;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  renditions_free (self->line.renditions);
  presentation_unref (self->presentation);
  g_clear_pointer (&self->n_reports, g_atomic_rc_box_release);
  g_free (self->address);
  reader_unref (self->reader);
  g_free (self);
}

static Entry *
dup_entry (Reader *reader)
{
  Entry *found;

  g_mutex_lock (&lock);
  found = entries ? g_hash_table_lookup (entries, reader) : NULL;
  if (found)
    entry_ref (found);
  g_mutex_unlock (&lock);
  return found;
}

static GPtrArray *
dup_entries (void)
{
  GPtrArray *all = g_ptr_array_new_with_free_func (entry_unref);
  GHashTableIter iter;
  gpointer entry;

  g_mutex_lock (&lock);
  if (entries) {
    g_hash_table_iter_init (&iter, entries);
    while (g_hash_table_iter_next (&iter, NULL, &entry))
      g_ptr_array_add (all, entry_ref (entry));
  }
  g_mutex_unlock (&lock);
  return all;
}

WeirLayerSet
adaptation_limit (const MountConfig *config, WeirLayerSet chosen)
{
  return config->adapt == MOUNT_ADAPT_OFF ? config->layers
                                          : layer_choice_join (config->layers, chosen);
}

// ---- one reader ----

// With gcc, a reader whose feedback allows no estimate is adapted by aimd.
static WeirAdaptPolicy
find_policy (MountAdapt adapt)
{
  if (adapt == MOUNT_ADAPT_AIMD || adapt == MOUNT_ADAPT_GCC)
    return WEIR_ADAPT_AIMD;
  return adapt == MOUNT_ADAPT_BANDWIDTH ? WEIR_ADAPT_BANDWIDTH : WEIR_ADAPT_FIXED;
}

// Starts adaptation, and restarts it when the mount's configuration or the reader's choice has
// changed.
static void
configure (Entry *self)
{
  g_autoptr (MountConfig) config = presentation_dup_config (self->presentation);
  WeirLayerSet limit = adaptation_limit (config, self->chosen);
  guint32 seed = (guint32) reader_get_id (self->reader) * SPREAD;

  if (!self->begun || self->policy != config->adapt || !weir_layer_set_equal (self->limit, limit)) {
    self->begun = TRUE;
    self->policy = config->adapt;
    self->limit = limit;
    self->counted = FALSE;
    weir_adapt_init (&self->adapt, find_policy (self->policy), limit, seed);
    line_choice_begin (&self->line, self->reader, limit, seed, clock_now ());
    reader_set_layers (self->reader, limit);
  }
}

// Returns the layers' rates of the reader's sink, or NULL if it has none. `all` keeps them, so that
// a sink is read once in a round for all its readers. (transfer none)
static const WeirRates *
find_rates (GHashTable *all, Reader *reader)
{
  g_autoptr (GstElement) sink = reader_dup_video_sink (reader);
  WeirRates *rates = sink ? g_hash_table_lookup (all, sink) : NULL;

  if (sink && !rates) {
    rates = g_new0 (WeirRates, 1);
    reader_read_rates (reader, rates);
    g_hash_table_insert (all, gst_object_ref (sink), rates);
  }
  return rates;
}

// Fills a report from two samples. Loss is relative to the packets that the reader's own report
// covers, so packets sent after the report do not count.
static void
count (const ReaderVideo *from, const ReaderVideo *to, WeirAdaptReport *report)
{
  guint32 expected = to->highest - from->highest;
  gint64 lost = (gint64) to->lost - from->lost;

  report->bytes = to->bytes - from->bytes;
  report->packets = to->packets - from->packets;
  // Thinning hides the lag of a reader, so count at least THINNED_LAG.
  report->lag_ns = (gint64) (to->thinned ? MAX (to->lag_ns, THINNED_LAG) : to->lag_ns);
  if (expected > 0 && expected < G_MAXINT32)
    report->packets = expected;
  report->lost = (guint64) MAX (lost, 0);
}

static void
report (Entry *self, GstClockTime now, const ReaderVideo *video, const WeirRates *rates)
{
  WeirAdaptStep steps[WEIR_ADAPT_STEPS];
  gsize n = weir_adapt_ladder (rates, self->limit, steps);
  WeirLayerSet before = self->adapt.now, to;
  WeirAdaptReport new = { 0 };
  gdouble loss;

  // The first report is empty: its sample is the base of the next one.
  if (self->counted) {
    count (&self->last, video, &new);
    new.lags = reader_is_tcp (self->reader);
    loss = new.packets ? (gdouble) MIN (new.lost, new.packets) / (gdouble) new.packets : 0;
    self->arrived =
        (gdouble) new.bytes * 8 * GST_SECOND / (gdouble) (now - self->last_time) * (1 - loss);
  }
  to = weir_adapt_report (&self->adapt, (gint64) now, &new, steps, n);
  // The highest step is the same stream as `limit`, and a switch to `limit` needs no keyframe.
  if (n > 0 && weir_layer_set_equal (to, steps[n - 1].set))
    self->adapt.now = to = self->limit;
  if (!weir_layer_set_equal (before, to))
    reader_set_layers (self->reader, to);
  self->counted = TRUE;
  self->last = *video;
  if (self->n_reports)
    self->last_n = __atomic_load_n (self->n_reports, __ATOMIC_RELAXED);
  self->last_time = now;
}

// Reports whether a reader is due: over UDP at each of its reports, over TCP every LAG_INTERVAL.
static gboolean
is_due (const Entry *self, GstClockTime now)
{
  if (!reader_is_tcp (self->reader))
    return self->n_reports
           && __atomic_load_n (self->n_reports, __ATOMIC_RELAXED)
                  > (self->counted ? self->last_n : 0);
  return !self->counted || now >= self->last_time + LAG_INTERVAL;
}

// ---- by the estimate of the line ----

// Reports whether a reader is adapted by the estimate of its line, which is read.
static gboolean
has_estimate (Entry *self, gint64 now)
{
  return self->begun && self->policy == MOUNT_ADAPT_GCC
         && line_choice_read (&self->line, self->reader, now);
}

// The readers behind one address, which may share a line.
typedef struct {
  guint readers, probed;
} Neighbours;

static Neighbours *
find_neighbours (GHashTable *neighbours, const Entry *entry)
{
  Neighbours *found = g_hash_table_lookup (neighbours, entry->address);

  if (!found) {
    found = g_new0 (Neighbours, 1);
    g_hash_table_insert (neighbours, entry->address, found);
  }
  return found;
}

// Counts the readers behind each address. (transfer full)
static GHashTable *
count_neighbours (GPtrArray *all)
{
  GHashTable *neighbours = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, g_free);

  for (guint i = 0; i < all->len; i++) {
    Entry *entry = g_ptr_array_index (all, i);
    Neighbours *of = find_neighbours (neighbours, entry);

    of->readers++;
    of->probed += line_choice_is_probing (&entry->line);
  }
  return neighbours;
}

static void
look_at (Entry *self, GHashTable *rates, Neighbours *neighbours, gint64 now)
{
  gboolean probing = line_choice_is_probing (&self->line);
  const WeirRates *sink_rates = find_rates (rates, self->reader);

  if (!sink_rates)
    return;
  line_choice_decide (&self->line, self->reader, self->limit, sink_rates,
      !probing && neighbours->probed >= weir_steps_together (neighbours->readers), now);
  neighbours->probed += !probing && line_choice_is_probing (&self->line);
}

// Looks at all readers with an estimate. A reader who gets all and whose line is not congested
// costs one look at the estimate only.
static gboolean
look (gpointer unused)
{
  g_autoptr (GHashTable) rates = g_hash_table_new_full (NULL, NULL, gst_object_unref, g_free);
  g_autoptr (GPtrArray) all = dup_entries ();
  g_autoptr (GHashTable) neighbours = count_neighbours (all);
  gint64 now = clock_now ();
  gboolean any = FALSE;

  for (guint i = 0; i < all->len; i++) {
    Entry *entry = g_ptr_array_index (all, i);

    if (!has_estimate (entry, now))
      continue;
    any = TRUE;
    if (line_choice_is_open (&entry->line, entry->limit))
      look_at (entry, rates, find_neighbours (neighbours, entry), now);
  }
  if (!any)
    looks = 0;
  return any;
}

// ---- all of them ----

static void
adapt (Entry *self, GstClockTime now, GHashTable *rates)
{
  const WeirRates *sink_rates;
  ReaderVideo video;

  configure (self);
  if (has_estimate (self, clock_now ())) {
    if (looks == 0)
      looks = g_timeout_add (LOOK_INTERVAL_MS, look, NULL);
    return;
  }
  if (self->adapt.policy == WEIR_ADAPT_FIXED || !is_due (self, now))
    return;
  sink_rates = find_rates (rates, self->reader);
  if (!sink_rates || sink_rates->n == 0 || !reader_sample_video (self->reader, &video))
    return;
  // A reader that receives the past faster than real time is behind on purpose.
  if (video.catching_up)
    self->counted = FALSE;
  else
    report (self, now, &video, sink_rates);
}

// ---- control ----

gboolean
adaptation_run (gpointer unused)
{
  g_autoptr (GHashTable) rates = g_hash_table_new_full (NULL, NULL, gst_object_unref, g_free);
  g_autoptr (GPtrArray) all = dup_entries ();
  GstClockTime now = gst_util_get_timestamp ();

  for (guint i = 0; i < all->len; i++)
    adapt (g_ptr_array_index (all, i), now, rates);
  return G_SOURCE_CONTINUE;
}

// Returns a peer without its port. (transfer full)
static gchar *
dup_address (const gchar *peer)
{
  const gchar *port = strrchr (peer, ':');

  return port ? g_strndup (peer, (gsize) (port - peer)) : g_strdup (peer);
}

void
adaptation_watch (Reader *reader, Presentation *presentation, Mount *varies, WeirLayerSet chosen)
{
  Entry *self = g_new0 (Entry, 1);

  g_atomic_ref_count_init (&self->refs);
  self->reader = reader_ref (reader);
  self->presentation = presentation_ref (presentation);
  self->n_reports = reader_ref_report_count (reader);
  self->chosen = chosen;
  if (varies)
    self->line.renditions = renditions_new (varies, presentation);
  self->address = dup_address (reader_get_peer (reader));
  g_mutex_lock (&lock);
  if (!entries)
    entries = g_hash_table_new_full (NULL, NULL, NULL, entry_unref);
  g_hash_table_insert (entries, reader, self);
  g_mutex_unlock (&lock);
}

void
adaptation_forget (Reader *reader)
{
  Entry *self = dup_entry (reader);

  if (!self)
    return;
  g_mutex_lock (&lock);
  g_hash_table_remove (entries, reader);
  g_mutex_unlock (&lock);
  entry_unref (self); // without the lock, because it may free the reader
}

gboolean
adaptation_choose (Reader *reader, WeirLayerSet chosen)
{
  Entry *self = dup_entry (reader);

  if (!self)
    return FALSE;
  self->chosen = chosen;
  configure (self);
  entry_unref (self);
  return TRUE;
}

gboolean
adaptation_view (Reader *reader, AdaptationView *view)
{
  Entry *self = dup_entry (reader);

  if (!self)
    return FALSE;
  configure (self);
  *view = (AdaptationView) { .policy = mount_adapt_names[self->policy],
    .may_choose = self->policy != MOUNT_ADAPT_OFF,
    .limit = self->limit,
    .estimate = MAX (self->adapt.allowed, self->arrived) };
  if (has_estimate (self, clock_now ())) {
    view->estimate = (gdouble) self->line.line.bits;
    view->line = line_choice_get_state (&self->line);
    view->queue_ns = self->line.line.queue_ns;
    view->step = line_choice_get_step (&self->line);
    view->rendition = line_choice_get_rendition (&self->line);
    view->reason = line_choice_get_reason (&self->line);
  }
  entry_unref (self);
  return TRUE;
}
