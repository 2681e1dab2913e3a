// SPDX-License-Identifier: LGPL-2.1-or-later
#include "readers/totals.h"

typedef struct {
  Totals gone;           // of sinks that are gone; without reports
  GPtrArray *sinks;      // of GstElement
  guint64 lost, reports; // of readers that have left
  guint64 lost_told, reports_told;
} Known;

static GMutex lock;
static GHashTable *known; // path -> Known; under the lock

static void
known_free (gpointer data)
{
  Known *self = data;

  g_ptr_array_unref (self->sinks);
  g_free (self);
}

// Call with the lock held.
static Known *
get_known (const gchar *mount)
{
  Known *self;

  if (!known)
    known = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, known_free);
  self = g_hash_table_lookup (known, mount);
  if (!self) {
    self = g_new0 (Known, 1);
    self->sinks = g_ptr_array_new_with_free_func (gst_object_unref);
    g_hash_table_insert (known, g_strdup (mount), self);
  }
  return self;
}

void
totals_watch_sink (const gchar *mount, GstElement *sink)
{
  Known *self;

  g_mutex_lock (&lock);
  self = get_known (mount);
  if (!g_ptr_array_find (self->sinks, sink, NULL))
    g_ptr_array_add (self->sinks, gst_object_ref (sink));
  g_mutex_unlock (&lock);
}

void
totals_reader_left (const gchar *mount, guint64 lost, guint64 reports)
{
  Known *self;

  g_mutex_lock (&lock);
  self = get_known (mount);
  self->lost += lost;
  self->reports += reports;
  g_mutex_unlock (&lock);
}

void
totals_clear (void)
{
  g_mutex_lock (&lock);
  g_clear_pointer (&known, g_hash_table_unref);
  g_mutex_unlock (&lock);
}

static guint64
get_uint64 (const GstStructure *from, const gchar *field)
{
  guint64 value = 0;

  gst_structure_get_uint64 (from, field, &value);
  return value;
}

// Adds a sink's counts. Reading them may take a while.
static void
add_sink (Totals *sums, GstElement *sink)
{
  GstStructure *stats = NULL;

  g_object_get (sink, "fanout-stats", &stats, NULL);
  if (!stats)
    return;
  sums->due += get_uint64 (stats, "packets-due");
  sums->sent += get_uint64 (stats, "packets-sent");
  sums->bytes += get_uint64 (stats, "bytes-sent");
  for (guint reason = 0; reason < WEIR_N_DROPS; reason++) {
    gchar *field = g_strconcat ("dropped-", weir_drop_name (reason), NULL);

    sums->dropped[reason] += get_uint64 (stats, field);
    g_free (field);
  }
  gst_structure_free (stats);
}

// Sums the counts of all sinks of a mount, including those that are gone. Call from the main thread
// only. A reader's PLAY needs the lock, so sinks are read without it; only this function removes
// sinks.
static Totals
collect (Known *self)
{
  GPtrArray *sinks;
  Totals sums;

  g_mutex_lock (&lock);
  sinks = g_ptr_array_copy (self->sinks, (GCopyFunc) (void (*) (void)) gst_object_ref, NULL);
  g_mutex_unlock (&lock);
  g_ptr_array_set_free_func (sinks, gst_object_unref);
  sums = self->gone;
  for (guint i = 0; i < sinks->len; i++) {
    GstElement *sink = g_ptr_array_index (sinks, i);
    gboolean over =
        GST_STATE (sink) == GST_STATE_NULL; // it has left its pipeline and counts no more

    add_sink (&sums, sink);
    if (!over)
      continue;
    add_sink (&self->gone, sink);
    g_mutex_lock (&lock);
    g_ptr_array_remove_fast (self->sinks, sink);
    g_mutex_unlock (&lock);
  }
  g_ptr_array_unref (sinks);
  return sums;
}

static GStrv
dup_paths (void)
{
  GStrvBuilder *paths = g_strv_builder_new ();
  GHashTableIter iter;
  gpointer path;
  GStrv all;

  g_mutex_lock (&lock);
  if (known) {
    g_hash_table_iter_init (&iter, known);
    while (g_hash_table_iter_next (&iter, &path, NULL))
      g_strv_builder_add (paths, path);
  }
  g_mutex_unlock (&lock);
  all = g_strv_builder_end (paths);
  g_strv_builder_unref (paths);
  return all;
}

// The result may be used without the lock: only the main thread frees it.
static Known *
find_known (const gchar *path)
{
  Known *self;

  g_mutex_lock (&lock);
  self = known ? g_hash_table_lookup (known, path) : NULL;
  g_mutex_unlock (&lock);
  return self;
}

static void
forget (const gchar *path)
{
  g_mutex_lock (&lock);
  g_hash_table_remove (known, path);
  g_mutex_unlock (&lock);
}

void
totals_collect (TotalsServedFunc is_served, gpointer data)
{
  GStrv paths = dup_paths ();

  for (gchar **path = paths; *path; path++) {
    if (is_served (*path, data))
      collect (find_known (*path));
    else
      forget (*path);
  }
  g_strfreev (paths);
}

gboolean
totals_get (const gchar *mount, Totals *totals)
{
  Known *self = find_known (mount);

  *totals = (Totals) { 0 };
  if (!self)
    return FALSE;
  *totals = collect (self);
  g_mutex_lock (&lock);
  totals->lost = self->lost;
  totals->reports = self->reports;
  g_mutex_unlock (&lock);
  return TRUE;
}

void
totals_settle_reports (const gchar *mount, Totals *totals)
{
  Known *self;

  g_mutex_lock (&lock);
  self = known ? g_hash_table_lookup (known, mount) : NULL;
  if (self) {
    totals->lost = self->lost_told = MAX (self->lost_told, totals->lost);
    totals->reports = self->reports_told = MAX (self->reports_told, totals->reports);
  }
  g_mutex_unlock (&lock);
}
