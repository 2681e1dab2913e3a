// SPDX-License-Identifier: LGPL-2.1-or-later
#include "metrics.h"

#include "config.h"
#include "drops.h"
#include "readers.h"

// Of all sinks that a mount has had, or has.
typedef struct {
  guint64 due, sent, bytes;
  guint64 dropped[WEIR_N_DROPS];
} Sent;

typedef struct {
  Sent gone;             // of sinks that are no longer there
  GPtrArray *sinks;      // of GstElement
  guint64 lost, reports; // of readers that have left
  guint64 lost_told, reports_told;
} Known;

// What one mount is told with.
typedef struct {
  const gchar *path, *state;
  gboolean used; // it has had readers: else there is not much to tell
  RelayStats relay;
  MountSessions sessions;
  Sent sent;
  guint64 lost, reports;
  guint states[READER_STATES], classes[READER_CLASSES], udp, tcp;
} Sample;

static GMutex lock;
static GHashTable *known; // path -> Known; with the lock

// ---- what is kept ----

static void
known_free (gpointer data)
{
  Known *self = data;

  g_ptr_array_unref (self->sinks);
  g_free (self);
}

// With the lock.
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
metrics_watch_sink (const gchar *mount, GstElement *sink)
{
  Known *self;

  g_mutex_lock (&lock);
  self = get_known (mount);
  if (!g_ptr_array_find (self->sinks, sink, NULL))
    g_ptr_array_add (self->sinks, gst_object_ref (sink));
  g_mutex_unlock (&lock);
}

void
metrics_reader_left (const gchar *mount, guint64 lost, guint64 reports)
{
  Known *self;

  g_mutex_lock (&lock);
  self = get_known (mount);
  self->lost += lost;
  self->reports += reports;
  g_mutex_unlock (&lock);
}

void
metrics_clear (void)
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

// Asks the sink, which may take a while.
static void
add_sink (Sent *sums, GstElement *sink)
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

// What all sinks of a mount have counted, those too that are gone. Main thread. A reader that comes
// to PLAY needs the lock, so no sink is asked with it; nobody else takes a sink away meanwhile.
static Sent
collect (Known *self)
{
  GPtrArray *sinks;
  Sent sent;

  g_mutex_lock (&lock);
  sinks = g_ptr_array_copy (self->sinks, (GCopyFunc) (void (*) (void)) gst_object_ref, NULL);
  g_mutex_unlock (&lock);
  g_ptr_array_set_free_func (sinks, gst_object_unref);
  sent = self->gone;
  for (guint i = 0; i < sinks->len; i++) {
    GstElement *sink = g_ptr_array_index (sinks, i);
    gboolean over = GST_STATE (sink) == GST_STATE_NULL; // it has left its pipeline: no more to come

    add_sink (&sent, sink);
    if (!over)
      continue;
    add_sink (&self->gone, sink);
    g_mutex_lock (&lock);
    g_ptr_array_remove_fast (self->sinks, sink);
    g_mutex_unlock (&lock);
  }
  g_ptr_array_unref (sinks);
  return sent;
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

// Who has found it uses it without the lock: the main thread alone lets it go.
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
metrics_collect (Server *server)
{
  GStrv paths = dup_paths ();

  for (gchar **path = paths; *path; path++) {
    Mount *mount = server_get_mount (server, *path);

    if (mount)
      collect (find_known (*path));
    else
      forget (*path);
    g_clear_pointer (&mount, mount_unref);
  }
  g_strfreev (paths);
}

// ---- sampling ----

static void
sample_known (Sample *sample)
{
  Known *self = find_known (sample->path);

  sample->used = self != NULL;
  if (!self)
    return;
  sample->sent = collect (self);
  g_mutex_lock (&lock);
  sample->lost = self->lost;
  sample->reports = self->reports;
  g_mutex_unlock (&lock);
}

static void
sample_readers (Server *server, GHashTable *samples)
{
  GPtrArray *readers = server_dup_readers (server);

  for (guint i = 0; i < readers->len; i++) {
    Reader *reader = g_ptr_array_index (readers, i);
    Sample *sample = g_hash_table_lookup (samples, reader_get_mount (reader));
    ReaderSample of;

    if (!sample)
      continue;
    reader_sample (reader, &of);
    sample->lost += of.lost;
    sample->reports += of.reports;
    sample->states[of.state]++;
    sample->classes[MIN (of.class, READER_CLASSES - 1)]++;
    sample->udp += g_str_equal (reader_get_transport (reader), "UDP");
    sample->tcp += g_str_equal (reader_get_transport (reader), "TCP");
  }
  g_ptr_array_unref (readers);
}

// A reader that is just leaving is with neither those that are there nor those that have left, and
// what comes late is taken off what was lost: but a counter never goes back.
static void
tell_reports (Sample *sample)
{
  Known *self;

  g_mutex_lock (&lock);
  self = known ? g_hash_table_lookup (known, sample->path) : NULL;
  if (self) {
    sample->lost = self->lost_told = MAX (self->lost_told, sample->lost);
    sample->reports = self->reports_told = MAX (self->reports_told, sample->reports);
  }
  g_mutex_unlock (&lock);
}

static void
sample_relay (Mount *mount, RelayStats *stats)
{
  Presentation *main = mount_dup_main (mount);

  relay_get_stats (presentation_get_relay (main), stats);
  presentation_unref (main);
}

static Sample *
sample_mounts (Server *server, GPtrArray *mounts)
{
  Sample *samples = g_new0 (Sample, mounts->len + 1);
  GHashTable *by_path = g_hash_table_new (g_str_hash, g_str_equal);

  for (guint i = 0; i < mounts->len; i++) {
    Mount *mount = g_ptr_array_index (mounts, i);

    samples[i].path = mount_get_path (mount);
    samples[i].state = mount_get_state_name (mount);
    sample_relay (mount, &samples[i].relay);
    mount_get_sessions (mount, &samples[i].sessions);
    sample_known (&samples[i]);
    g_hash_table_insert (by_path, (gpointer) samples[i].path, &samples[i]);
  }
  sample_readers (server, by_path);
  for (guint i = 0; i < mounts->len; i++)
    tell_reports (&samples[i]);
  g_hash_table_unref (by_path);
  return samples;
}

// ---- the text ----

typedef struct {
  GString *out;
  const Sample *samples;
  guint n;
} Page;

static void
head (Page *page, const gchar *name, const gchar *type, const gchar *help)
{
  g_string_append_printf (
      page->out, "# HELP weir_%s %s\n# TYPE weir_%s %s\n", name, help, name, type);
}

static void
one (Page *page, const gchar *name, const Sample *sample, const gchar *label, const gchar *value,
    guint64 number)
{
  g_string_append_printf (page->out, "weir_%s{mount=\"%s\"", name, sample->path);
  if (label)
    g_string_append_printf (page->out, ",%s=\"%s\"", label, value);
  g_string_append_printf (page->out, "} %" G_GUINT64_FORMAT "\n", number);
}

// A counter that is at this offset of a sample.
static void
counter (Page *page, const gchar *name, gsize offset, const gchar *help)
{
  head (page, name, "counter", help);
  for (guint i = 0; i < page->n; i++)
    one (page, name, &page->samples[i], NULL, NULL,
        *(const guint64 *) ((const guint8 *) &page->samples[i] + offset));
}

// Of the packets that were lost in the system, or of those that were left out.
static void
dropped (Page *page, const gchar *name, bool loss, const gchar *help)
{
  head (page, name, "counter", help);
  for (guint i = 0; i < page->n; i++) {
    for (guint reason = 0; reason < WEIR_N_DROPS && page->samples[i].used; reason++) {
      if (weir_drop_is_loss (reason) == loss)
        one (page, name, &page->samples[i], "reason", weir_drop_name (reason),
            page->samples[i].sent.dropped[reason]);
    }
  }
}

static void
ingest (Page *page)
{
  static const gchar refused[] = "ingest_refused_packets_total";

  counter (page, "ingest_packets_total", G_STRUCT_OFFSET (Sample, relay.n_packets),
      "Packets that came from the upstream.");
  counter (page, "ingest_lost_packets_total", G_STRUCT_OFFSET (Sample, relay.n_lost),
      "Packets missing between the sequence numbers of those that came.");
  head (page, refused, "counter", "Packets that came and were of no use.");
  for (guint i = 0; i < page->n; i++) {
    one (page, refused, &page->samples[i], "reason", "stale", page->samples[i].relay.n_stale);
    one (page, refused, &page->samples[i], "reason", "malformed", page->samples[i].relay.n_bad);
  }
}

static void
sending (Page *page)
{
  counter (page, "due_packets_total", G_STRUCT_OFFSET (Sample, sent.due),
      "Packets that all readers together should have got.");
  counter (
      page, "sent_packets_total", G_STRUCT_OFFSET (Sample, sent.sent), "Packets sent to readers.");
  counter (
      page, "sent_bytes_total", G_STRUCT_OFFSET (Sample, sent.bytes), "Bytes sent to readers.");
  dropped (page, "socket_lost_packets_total", true, "Packets that the system did not take.");
  dropped (page, "left_out_packets_total", false,
      "Packets left out for readers that lag, catch up, leave, or get fewer layers.");
  counter (page, "reader_lost_packets_total", G_STRUCT_OFFSET (Sample, lost),
      "Packets lost on the way to readers, as they reported (RTCP over UDP).");
  counter (page, "reader_reports_total", G_STRUCT_OFFSET (Sample, reports),
      "Reports that readers sent (RTCP over UDP).");
}

// Of stored titles alone.
static void
intervals (Page *page)
{
  head (page, "interval_sessions", "gauge", "Sessions of a stored title's upstream that run.");
  for (guint i = 0; i < page->n; i++) {
    if (page->samples[i].sessions.misses > 0)
      one (page, "interval_sessions", &page->samples[i], NULL, NULL,
          page->samples[i].sessions.running);
  }
  counter (page, "interval_hits_total", G_STRUCT_OFFSET (Sample, sessions.hits),
      "Times that a stored title was asked for and came from a session that was there.");
  counter (page, "interval_misses_total", G_STRUCT_OFFSET (Sample, sessions.misses),
      "Times that it needed another session of its upstream.");
}

static void
gauges (Page *page)
{
  static const gchar *const mount_states[] = { "idle", "starting", "up", "down" };

  head (page, "mount_state", "gauge", "1 for the state that the mount is in.");
  for (guint i = 0; i < page->n; i++) {
    for (guint s = 0; s < G_N_ELEMENTS (mount_states); s++)
      one (page, "mount_state", &page->samples[i], "state", mount_states[s],
          g_str_equal (page->samples[i].state, mount_states[s]));
  }
  head (page, "readers", "gauge", "Readers that play, by transport.");
  for (guint i = 0; i < page->n; i++) {
    one (page, "readers", &page->samples[i], "transport", "udp", page->samples[i].udp);
    one (page, "readers", &page->samples[i], "transport", "tcp", page->samples[i].tcp);
  }
  head (page, "readers_in_state", "gauge", "Readers that play, by state.");
  for (guint i = 0; i < page->n; i++) {
    for (guint s = 0; s < READER_STATES && page->samples[i].used; s++)
      one (page, "readers_in_state", &page->samples[i], "state", reader_state_names[s],
          page->samples[i].states[s]);
  }
  head (page, "readers_in_class", "gauge", "Readers that play, by class.");
  for (guint i = 0; i < page->n; i++) {
    for (guint c = 0; c < READER_CLASSES && page->samples[i].used; c++) {
      const gchar name[] = { (gchar) ('0' + c), '\0' };

      one (page, "readers_in_class", &page->samples[i], "class", name, page->samples[i].classes[c]);
    }
  }
}

gchar *
metrics_dup_text (Server *server)
{
  GPtrArray *mounts = server_dup_mounts (server);
  Sample *samples = sample_mounts (server, mounts);
  Page page = { g_string_new (NULL), samples, mounts->len };

  head (&page, "info", "gauge", "Always 1; the version is a label.");
  g_string_append (page.out, "weir_info{version=\"" PACKAGE_VERSION "\"} 1\n");
  ingest (&page);
  sending (&page);
  intervals (&page);
  gauges (&page);
  g_free (samples);
  g_ptr_array_unref (mounts);
  return g_string_free (page.out, FALSE);
}
