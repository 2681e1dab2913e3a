// SPDX-License-Identifier: LGPL-2.1-or-later
#include "readers/totals.h"

typedef struct {
  Totals stopped;                          // counts of sinks that have stopped; without reports
  GPtrArray *sinks;                        // of GstElement
  guint64 lost, reports;                   // of readers that have left
  guint64 bytes;                           // sent without a sink
  guint64 lost_returned, reports_returned; // see totals_settle_reports()
} MountTotals;

static GMutex lock;
static GHashTable *mounts; // path -> MountTotals; use with `lock` held

static void
mount_totals_free (gpointer data)
{
  MountTotals *self = data;

  g_ptr_array_unref (self->sinks);
  g_free (self);
}

// Call with the lock held.
static MountTotals *
get_mount (const gchar *mount)
{
  MountTotals *self;

  if (!mounts)
    mounts = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, mount_totals_free);
  self = g_hash_table_lookup (mounts, mount);
  if (!self) {
    self = g_new0 (MountTotals, 1);
    self->sinks = g_ptr_array_new_with_free_func (gst_object_unref);
    g_hash_table_insert (mounts, g_strdup (mount), self);
  }
  return self;
}

void
totals_watch_sink (const gchar *mount, GstElement *sink)
{
  MountTotals *self;

  g_mutex_lock (&lock);
  self = get_mount (mount);
  if (!g_ptr_array_find (self->sinks, sink, NULL))
    g_ptr_array_add (self->sinks, gst_object_ref (sink));
  g_mutex_unlock (&lock);
}

void
totals_reader_left (const gchar *mount, guint64 lost, guint64 reports)
{
  MountTotals *self;

  g_mutex_lock (&lock);
  self = get_mount (mount);
  self->lost += lost;
  self->reports += reports;
  g_mutex_unlock (&lock);
}

void
totals_add_bytes (const gchar *mount, guint64 bytes)
{
  g_mutex_lock (&lock);
  get_mount (mount)->bytes += bytes;
  g_mutex_unlock (&lock);
}

void
totals_clear (void)
{
  g_mutex_lock (&lock);
  g_clear_pointer (&mounts, g_hash_table_unref);
  g_mutex_unlock (&lock);
}

static guint64
get_uint64 (const GstStructure *from, const gchar *field)
{
  guint64 value = 0;

  gst_structure_get_uint64 (from, field, &value);
  return value;
}

// Adds a sink's counts. May take a while.
static void
add_sink (Totals *sums, GstElement *sink)
{
  g_autoptr (GstStructure) stats = NULL;

  g_object_get (sink, "fanout-stats", &stats, NULL);
  if (!stats)
    return;
  sums->due += get_uint64 (stats, "packets-due");
  sums->sent += get_uint64 (stats, "packets-sent");
  sums->bytes += get_uint64 (stats, "bytes-sent");
  sums->clones += get_uint64 (stats, "clones");
  sums->clones_dropped += get_uint64 (stats, "clones-dropped");
  for (guint reason = 0; reason < WEIR_N_DROPS; reason++) {
    g_autofree gchar *field = g_strconcat ("dropped-", weir_drop_name (reason), NULL);

    sums->dropped[reason] += get_uint64 (stats, field);
  }
}

// Sums the counts of all sinks of a mount, including sinks that have stopped. Call from the main
// thread only. Reads the sinks without the lock, because a PLAY request waits for the lock. Only
// this function removes sinks.
static Totals
collect (MountTotals *self)
{
  g_autoptr (GPtrArray) sinks = NULL;
  Totals sums;

  g_mutex_lock (&lock);
  sinks = g_ptr_array_copy (self->sinks, (GCopyFunc) (void (*) (void)) gst_object_ref, NULL);
  g_mutex_unlock (&lock);
  g_ptr_array_set_free_func (sinks, gst_object_unref);
  sums = self->stopped;
  for (guint i = 0; i < sinks->len; i++) {
    GstElement *sink = g_ptr_array_index (sinks, i);
    gboolean stopped = GST_STATE (sink) == GST_STATE_NULL; // before it is read for the last time

    add_sink (&sums, sink);
    if (!stopped)
      continue;
    add_sink (&self->stopped, sink);
    g_mutex_lock (&lock);
    g_ptr_array_remove_fast (self->sinks, sink);
    g_mutex_unlock (&lock);
  }
  return sums;
}

static GStrv
dup_paths (void)
{
  g_autoptr (GStrvBuilder) paths = g_strv_builder_new ();
  GHashTableIter iter;
  gpointer path;

  g_mutex_lock (&lock);
  if (mounts) {
    g_hash_table_iter_init (&iter, mounts);
    while (g_hash_table_iter_next (&iter, &path, NULL))
      g_strv_builder_add (paths, path);
  }
  g_mutex_unlock (&lock);
  return g_strv_builder_end (paths);
}

// Returns the totals of a mount, or NULL. The main thread may use them without the lock, because
// only the main thread frees them.
static MountTotals *
find_mount (const gchar *path)
{
  MountTotals *self;

  g_mutex_lock (&lock);
  self = mounts ? g_hash_table_lookup (mounts, path) : NULL;
  g_mutex_unlock (&lock);
  return self;
}

static void
forget (const gchar *path)
{
  g_mutex_lock (&lock);
  g_hash_table_remove (mounts, path);
  g_mutex_unlock (&lock);
}

void
totals_collect (TotalsServedFunc is_served, gpointer data)
{
  g_auto (GStrv) paths = dup_paths ();

  for (gchar **path = paths; *path; path++) {
    if (is_served (*path, data))
      collect (find_mount (*path));
    else
      forget (*path);
  }
}

gboolean
totals_get (const gchar *mount, Totals *totals)
{
  MountTotals *self = find_mount (mount);

  *totals = (Totals) { 0 };
  if (!self)
    return FALSE;
  *totals = collect (self);
  g_mutex_lock (&lock);
  totals->bytes += self->bytes;
  totals->lost = self->lost;
  totals->reports = self->reports;
  g_mutex_unlock (&lock);
  return TRUE;
}

void
totals_settle_reports (const gchar *mount, Totals *totals)
{
  MountTotals *self;

  g_mutex_lock (&lock);
  self = mounts ? g_hash_table_lookup (mounts, mount) : NULL;
  if (self) {
    totals->lost = self->lost_returned = MAX (self->lost_returned, totals->lost);
    totals->reports = self->reports_returned = MAX (self->reports_returned, totals->reports);
  }
  g_mutex_unlock (&lock);
}
