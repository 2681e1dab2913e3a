// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/metrics.h"

#include "config.h"
#include "control/broadcast_figures.h"
#include "control/cluster_figures.h"
#include "control/disk_figures.h"
#include "control/ingest_figures.h"
#include "control/recording_figures.h"
#include "control/swarm_figures.h"
#include "net/clones.h"
#include "outlets/http/http_counts.h"
#include "outlets/picture/picture_decoder.h"
#include "outlets/rtsp/entry.h"
#include "outlets/rtsp/kernel_path.h"
#include "outlets/rtsp/setup_guard.h"
#include "outlets/rtsp/silence.h"
#include "outlets/rtsp/srtp.h"
#include "outlets/rtmp/rtmp_counts.h"
#include "outlets/srt/srt_counts.h"
#include "outlets/webrtc/webrtc_feedback.h"
#include "outlets/webrtc/webrtc_intake.h"
#include "outlets/webrtc/webrtc_refusals.h"
#include "outlets/webrtc/webrtc_track.h"
#include "isolate/pool.h"
#include "access/refusals.h"
#include "base/memory.h"
#include "readers/adaptation.h"
#include "readers/line_choice.h"
#include "readers/readers.h"
#include "readers/totals.h"

#define TRANSPORTS_MAX 16 // of reader_transports

static const gchar *const lines[] = { "clear", "warning", "congested" };

// The values of one mount.
typedef struct {
  const gchar *path, *state;
  gboolean used; // the mount has had a reader; otherwise some metrics are not written
  RelayStats relay;
  guint64 failovers;
  gboolean wants_standby, has_standby;
  MountSessions sessions;
  Totals totals;
  guint states[READER_STATES], priorities[READER_PRIORITIES], transports[TRANSPORTS_MAX],
      kernel[WEIR_N_CLONES], lines[G_N_ELEMENTS (lines)];
} Sample;

// ---- sampling ----

static void
sample_readers (GHashTable *samples)
{
  g_autoptr (GPtrArray) readers = readers_dup_all ();

  for (guint i = 0; i < readers->len; i++) {
    Reader *reader = g_ptr_array_index (readers, i);
    Sample *sample = g_hash_table_lookup (samples, reader_get_mount (reader));
    AdaptationView view;
    ReaderSample from;

    if (!sample)
      continue;
    reader_sample (reader, &from);
    sample->used = TRUE; // totals_get() may not know its sink yet
    sample->totals.lost += from.lost;
    sample->totals.reports += from.reports;
    sample->states[from.state]++;
    sample->priorities[MIN (from.priority, READER_PRIORITIES - 1)]++;
    for (guint k = 0; k < WEIR_N_CLONES; k++)
      sample->kernel[k] += g_strcmp0 (from.kernel, weir_clones_name (k)) == 0;
    if (!adaptation_view (reader, &view))
      view.line = NULL;
    for (guint k = 0; k < G_N_ELEMENTS (lines); k++)
      sample->lines[k] += g_strcmp0 (view.line, lines[k]) == 0;
    for (guint t = 0; reader_transports[t]; t++)
      sample->transports[t] += g_str_equal (reader_get_transport (reader), reader_transports[t]);
  }
}

static void
sample_upstreams (Mount *mount, Sample *sample)
{
  g_autoptr (Presentation) main = mount_dup_main (mount);
  Node *node = presentation_get_node (main);

  relay_get_stats (presentation_get_relay (main), &sample->relay);
  sample->failovers = presentation_get_failovers (main);
  while (node && node_get_input (node))
    node = node_get_input (node);
  if (node)
    sample->has_standby = node_has_standby (node, &sample->wants_standby);
}

static Sample *
sample_mounts (Proxy *proxy, GPtrArray *mounts)
{
  Sample *samples = g_new0 (Sample, mounts->len + 1);
  g_autoptr (GHashTable) by_path = g_hash_table_new (g_str_hash, g_str_equal);

  for (guint i = 0; i < mounts->len; i++) {
    Mount *mount = g_ptr_array_index (mounts, i);

    samples[i].path = mount_get_path (mount);
    samples[i].state = mount_get_state_name (mount);
    sample_upstreams (mount, &samples[i]);
    mount_get_sessions (mount, &samples[i].sessions);
    samples[i].used = totals_get (samples[i].path, &samples[i].totals);
    g_hash_table_insert (by_path, (gpointer) samples[i].path, &samples[i]);
  }
  sample_readers (by_path);
  for (guint i = 0; i < mounts->len; i++)
    totals_settle_reports (samples[i].path, &samples[i].totals);
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
simple (Page *page, const gchar *name, const gchar *type, guint64 value, const gchar *help)
{
  head (page, name, type, help);
  g_string_append_printf (page->out, "weir_%s %" G_GUINT64_FORMAT "\n", name, value);
}

static void
line (Page *page, const gchar *name, const Sample *sample, const gchar *label, const gchar *value,
    guint64 number)
{
  g_string_append_printf (page->out, "weir_%s{mount=\"%s\"", name, sample->path);
  if (label)
    g_string_append_printf (page->out, ",%s=\"%s\"", label, value);
  g_string_append_printf (page->out, "} %" G_GUINT64_FORMAT "\n", number);
}

// Writes a counter from the field at `offset` of each sample.
static void
counter (Page *page, const gchar *name, gsize offset, const gchar *help)
{
  head (page, name, "counter", help);
  for (guint i = 0; i < page->n; i++)
    line (page, name, &page->samples[i], NULL, NULL,
        *(const guint64 *) ((const guint8 *) &page->samples[i] + offset));
}

// Writes the counters of one kind of drop reasons: packets lost in a socket (`loss`), or left out
// on purpose.
static void
dropped (Page *page, const gchar *name, bool loss, const gchar *help)
{
  head (page, name, "counter", help);
  for (guint i = 0; i < page->n; i++) {
    for (guint reason = 0; reason < WEIR_N_DROPS && page->samples[i].used; reason++) {
      if (weir_drop_is_loss (reason) == loss)
        line (page, name, &page->samples[i], "reason", weir_drop_name (reason),
            page->samples[i].totals.dropped[reason]);
    }
  }
}

static void
ingest (Page *page)
{
  const gchar *metric = NULL;

  for (const IngestFigure *figure = ingest_figures; figure->name; figure++) {
    if (g_strcmp0 (figure->metric, metric) != 0)
      head (page, figure->metric, "counter", figure->help);
    metric = figure->metric;
    for (guint i = 0; i < page->n; i++)
      line (page, metric, &page->samples[i], figure->label, figure->name,
          ingest_figures_get (figure, &page->samples[i].relay));
  }
  counter (page, "failovers_total", G_STRUCT_OFFSET (Sample, failovers),
      "Times that another upstream, or the slate, took over from one that had failed.");
  head (page, "standby_ready", "gauge",
      "1 while a warm standby could take over at once, 0 while not.");
  for (guint i = 0; i < page->n; i++) {
    if (page->samples[i].wants_standby)
      line (page, "standby_ready", &page->samples[i], NULL, NULL, page->samples[i].has_standby);
  }
}

static void
sending (Page *page)
{
  counter (page, "due_packets_total", G_STRUCT_OFFSET (Sample, totals.due),
      "Packets for readers: sent, lost in a socket, or left out.");
  counter (page, "sent_packets_total", G_STRUCT_OFFSET (Sample, totals.sent),
      "Packets sent to readers.");
  counter (
      page, "sent_bytes_total", G_STRUCT_OFFSET (Sample, totals.bytes), "Bytes sent to readers.");
  dropped (page, "socket_lost_packets_total", true,
      "Packets that the kernel did not accept for sending.");
  dropped (page, "left_out_packets_total", false,
      "Packets dropped on purpose, for readers that lag, catch up, leave, or get fewer layers.");
  counter (page, "reader_lost_packets_total", G_STRUCT_OFFSET (Sample, totals.lost),
      "Packets lost on the network, as readers reported (RTCP over UDP).");
  counter (page, "reader_reports_total", G_STRUCT_OFFSET (Sample, totals.reports),
      "Receiver reports from readers (RTCP over UDP).");
}

// Writes the metrics of mounts with the key `interval`.
static void
handshakes (Page *page, TlsFront *tls)
{
  TlsCounts counts = { 0 };
  const struct {
    const gchar *result;
    const guint64 *n;
  } rows[] = {
    { "ok", &counts.ok },
    { "failed", &counts.failed },
    { "timeout", &counts.timeout },
    { "refused", &counts.refused },
  };

  if (tls)
    tls_front_count (tls, &counts);
  head (page, "tls_handshakes_total", "counter", "TLS handshakes with clients, by result.");
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    g_string_append_printf (page->out,
        "weir_tls_handshakes_total{result=\"%s\"} %" G_GUINT64_FORMAT "\n", rows[i].result,
        *rows[i].n);
}

static void
intervals (Page *page)
{
  head (page, "interval_sessions", "gauge", "Running sessions of stored titles (key interval).");
  for (guint i = 0; i < page->n; i++) {
    if (page->samples[i].sessions.misses > 0)
      line (page, "interval_sessions", &page->samples[i], NULL, NULL,
          page->samples[i].sessions.running);
  }
  counter (page, "interval_hits_total", G_STRUCT_OFFSET (Sample, sessions.hits),
      "Requests for a stored title that joined a running session.");
  counter (page, "interval_misses_total", G_STRUCT_OFFSET (Sample, sessions.misses),
      "Requests for a stored title that started a session.");
}

static void
gauges (Page *page)
{
  static const gchar *const mount_states[] = { "idle", "starting", "waiting", "up", "down" };

  head (page, "mount_state", "gauge", "1 for the state of the mount, 0 for the other states.");
  for (guint i = 0; i < page->n; i++) {
    for (guint s = 0; s < G_N_ELEMENTS (mount_states); s++)
      line (page, "mount_state", &page->samples[i], "state", mount_states[s],
          g_str_equal (page->samples[i].state, mount_states[s]));
  }
  head (page, "readers", "gauge", "Playing readers, by transport.");
  for (guint i = 0; i < page->n; i++) {
    for (guint t = 0; reader_transports[t]; t++) {
      g_autofree gchar *name = g_ascii_strdown (reader_transports[t], -1);

      line (page, "readers", &page->samples[i], "transport", name, page->samples[i].transports[t]);
    }
  }
  head (page, "readers_in_state", "gauge", "Playing readers, by state.");
  for (guint i = 0; i < page->n; i++) {
    for (guint s = 0; s < READER_STATES && page->samples[i].used; s++)
      line (page, "readers_in_state", &page->samples[i], "state", reader_state_names[s],
          page->samples[i].states[s]);
  }
  head (page, "readers_by_line", "gauge",
      "Playing readers whose line is estimated (layers.line in the API), by its state.");
  for (guint i = 0; i < page->n; i++) {
    for (guint k = 0; k < G_N_ELEMENTS (lines) && page->samples[i].used; k++)
      line (
          page, "readers_by_line", &page->samples[i], "state", lines[k], page->samples[i].lines[k]);
  }
  head (page, "readers_with_priority", "gauge", "Playing readers, by priority.");
  for (guint i = 0; i < page->n; i++) {
    for (guint p = 0; p < READER_PRIORITIES && page->samples[i].used; p++) {
      const gchar name[] = { (gchar) ('0' + p), '\0' };

      line (page, "readers_with_priority", &page->samples[i], "priority", name,
          page->samples[i].priorities[p]);
    }
  }
}

static void
kernel_path (Page *page)
{
  static const gchar readers[] = "kernel_readers";

  head (page, readers, "gauge",
      "Playing readers by how the kernel path serves them: clones, or the reason why not.");
  for (guint i = 0; i < page->n; i++) {
    for (guint k = 0; k < WEIR_N_CLONES && !g_str_equal (kernel_path_get (), "off"); k++)
      line (page, readers, &page->samples[i], "state", weir_clones_name (k),
          page->samples[i].kernel[k]);
  }
  counter (page, "kernel_clones_total", G_STRUCT_OFFSET (Sample, totals.clones),
      "Messages that the kernel cloned for a reader.");
  counter (page, "kernel_dropped_clones_total", G_STRUCT_OFFSET (Sample, totals.clones_dropped),
      "Clones that the kernel did not send; their packets count as lost in a socket.");
}

static guint64
count_srtcp_refused (void)
{
  return srtp_count_refused () + (WITH_WEBRTC ? webrtc_feedback_count_forged () : 0);
}

static void
guards (Page *page)
{
  static const gchar refused[] = "refused_setups_total", closed[] = "closed_readers_total";

  head (page, refused, "counter",
      "SETUP requests that were refused because of their transport or key.");
  for (TransportVerdict verdict = TRANSPORT_GOOD + 1; verdict < N_TRANSPORT_VERDICTS; verdict++)
    g_string_append_printf (page->out, "weir_%s{reason=\"%s\"} %" G_GUINT64_FORMAT "\n", refused,
        transport_verdict_names[verdict], setup_guard_count (verdict));
  head (page, closed, "counter", "Readers over UDP from whose ports no datagram came.");
  g_string_append_printf (
      page->out, "weir_%s{reason=\"silent\"} %" G_GUINT64_FORMAT "\n", closed, silence_count ());
  simple (page, "srtcp_refused_total", "counter", count_srtcp_refused (),
      "RTCP packets of readers with SRTP that were dropped because they were not authentic.");
}

static void
adaptation (Page *page)
{
  LineChoiceCounts counts;

  line_choice_count (&counts);
  simple (page, "adaptation_down_total", "counter", counts.down,
      "Times that a reader got less, by the estimate of its line.");
  simple (page, "adaptation_up_total", "counter", counts.up,
      "Times that a reader got more, by the estimate of its line.");
  simple (page, "adaptation_probes_total", "counter", counts.probes,
      "Times that a reader's line was filled to see whether it carries more.");
  simple (page, "adaptation_failed_total", "counter", counts.failed,
      "Of these, and of rises on trial, those that showed no room.");
}

static void
srt (Page *page)
{
  simple (page, "srt_connections", "gauge", srt_counts_get_connections (),
      "Callers over SRT that publish, read or wait for a decision.");
  simple (page, "srt_late_received_total", "counter", srt_counts_get_late (TRUE),
      "Packets of publishers that SRT has dropped because they came too late.");
  simple (page, "srt_late_sent_total", "counter", srt_counts_get_late (FALSE),
      "Packets to readers that SRT has dropped because they would have come too late.");
  simple (page, "srt_dropped_datagrams_total", "counter", srt_counts_get_dropped (),
      "Datagrams to the SRT port that the kernel dropped: malformed, or without room.");
}

static void
webrtc_publishers (Page *page)
{
  static const gchar unused[] = "webrtc_unused_total";

  head (page, unused, "counter",
      "Packets of publishers over WebRTC that are not passed on, by reason.");
  for (guint reason = 0; reason < WEBRTC_INTAKE_REASONS; reason++)
    g_string_append_printf (page->out, "weir_%s{reason=\"%s\"} %" G_GUINT64_FORMAT "\n", unused,
        webrtc_intake_get_reason (reason), webrtc_intake_count (reason));
}

static void
webrtc_readers (Page *page)
{
  static const gchar refused[] = "webrtc_refused_total", left_out[] = "webrtc_left_out_total";

  head (page, refused, "counter",
      "Datagrams and TCP connections that the port of WebRTC refused, by reason.");
  for (guint reason = 0; reason < WEBRTC_REFUSALS; reason++)
    g_string_append_printf (page->out, "weir_%s{reason=\"%s\"} %" G_GUINT64_FORMAT "\n", refused,
        webrtc_refusal_get_name (reason), webrtc_refusals_get (reason));
  head (page, left_out, "counter",
      "Packets that are left out for all readers over WebRTC, by reason.");
  for (guint reason = 0; reason < WEIR_FIT_N_RESULTS; reason++) {
    if (webrtc_track_get_reason (reason))
      g_string_append_printf (page->out, "weir_%s{reason=\"%s\"} %" G_GUINT64_FORMAT "\n", left_out,
          webrtc_track_get_reason (reason), webrtc_track_get_left_out (reason));
  }
}

static void
rtmp (Page *page)
{
  simple (page, "rtmp_connections", "gauge", rtmp_counts_get_connections (),
      "Clients over RTMP that publish, or are about to.");
  simple (page, "rtmp_unusable_total", "counter", rtmp_counts_get_unusable (),
      "Audio and video messages of publishers that were dropped: before the record of their codec, "
      "empty, malformed, or of a track that is left out.");
}

static void
workers (Page *page)
{
  WorkerCounts counts;

  workers_get_counts (&counts);
  simple (page, "workers", "gauge", counts.running, "Running worker processes.");
  simple (page, "workers_started_total", "counter", counts.started,
      "Worker processes that were started.");
  simple (page, "workers_failed_total", "counter", counts.failed,
      "Worker processes that crashed, or that the proxy killed as they did not answer.");
}

static void
access_counts (Page *page, Proxy *proxy)
{
  AccessCounts counts;

  access_get_counts (proxy_get_access (proxy), &counts);
  simple (page, "access_admitted_total", "counter", counts.admitted,
      "Requests that the check of users admitted.");
  simple (page, "access_challenged_total", "counter", counts.challenged,
      "Requests that were answered with a request for credentials (401).");
  head (page, "access_refused_total", "counter", "Refused requests, by reason.");
  for (guint i = 0; i < counts.refused->len; i++) {
    const AccessRefusals *refused = &g_array_index (counts.refused, AccessRefusals, i);

    g_string_append_printf (page->out,
        "weir_access_refused_total{reason=\"%s\"} %" G_GUINT64_FORMAT "\n", refused->reason,
        refused->n);
  }
  simple (page, "access_waiting", "gauge", counts.waiting,
      "Requests that wait because their address has sent wrong credentials.");
  simple (page, "access_addresses", "gauge", counts.addresses,
      "Addresses that have sent wrong credentials or were refused lately.");
  g_array_unref (counts.refused);
}

static void
refusals (Page *page)
{
  head (page, "refusals_total", "counter",
      "Connections and requests that a limit refused, readers that it closed, and SRT callers "
      "refused because of their passphrase.");
  for (guint reason = 0; reason < REFUSED_N_REASONS; reason++)
    g_string_append_printf (page->out, "weir_refusals_total{reason=\"%s\"} %" G_GUINT64_FORMAT "\n",
        refused_names[reason], refusals_get (reason));
}

// ---- disks of block stores ----

typedef struct {
  const gchar *path;
  StoreDisk disks[DISK_FIGURES_MAX];
  guint n;
} MountDisks;

static GArray *
sample_disks (GPtrArray *mounts)
{
  GArray *all = g_array_new (FALSE, FALSE, sizeof (MountDisks));

  for (guint i = 0; i < mounts->len; i++) {
    MountDisks sample = { .path = mount_get_path (g_ptr_array_index (mounts, i)) };

    sample.n = disk_figures_sample (g_ptr_array_index (mounts, i), sample.disks);
    if (sample.n > 0)
      g_array_append_val (all, sample);
  }
  return all;
}

static void
disks (Page *page, GPtrArray *mounts)
{
  g_autoptr (GArray) all = sample_disks (mounts);

  for (const Figure *figure = disk_figures; figure->name; figure++) {
    head (page, figure->metric, figure->type, figure->help);
    for (guint i = 0; i < all->len; i++) {
      const MountDisks *sample = &g_array_index (all, MountDisks, i);

      for (guint j = 0; j < sample->n; j++)
        g_string_append_printf (page->out,
            "weir_%s{mount=\"%s\",disk=\"%u\"} %" G_GUINT64_FORMAT "\n", figure->metric,
            sample->path, sample->disks[j].number, figure_get (figure, &sample->disks[j]));
    }
  }
}

// ---- other figures ----

// Writes a table for the mounts of which `sample` gives a sample of `size` bytes.
static void
figures (Page *page, GPtrArray *mounts, const Figure *table, gsize size,
    gboolean (*sample) (Mount *mount, gpointer result))
{
  g_autoptr (GPtrArray) samples = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; i < mounts->len; i++) {
    gpointer each = g_malloc0 (size);

    g_ptr_array_add (samples, each);
    if (!sample (g_ptr_array_index (mounts, i), each))
      g_clear_pointer (&g_ptr_array_index (samples, i), g_free);
  }
  for (; table->name; table++) {
    if (!table->metric)
      continue;
    head (page, table->metric, table->type, table->help);
    for (guint i = 0; i < mounts->len; i++) {
      if (g_ptr_array_index (samples, i))
        g_string_append_printf (page->out, "weir_%s{mount=\"%s\"} %" G_GUINT64_FORMAT "\n",
            table->metric, mount_get_path (g_ptr_array_index (mounts, i)),
            figure_get (table, g_ptr_array_index (samples, i)));
    }
  }
}

static void
http (Page *page)
{
  static const gchar answers[] = "http_responses_total", starved[] = "http_starvations_total";
  PictureCounts made;

  head (page, answers, "counter", "Responses to HTTP clients, by the first digit of the status.");
  for (guint digit = 2; digit <= 5; digit++)
    g_string_append_printf (page->out, "weir_%s{status=\"%uxx\"} %" G_GUINT64_FORMAT "\n", answers,
        digit, http_counts_get_answers (digit));
  head (page, starved, "counter",
      "Time slices of titles of which HTTP readers had to wait for a byte, by the cause.");
  for (guint cause = 0; cause < HTTP_N_STARVED; cause++)
    g_string_append_printf (page->out, "weir_%s{cause=\"%s\"} %" G_GUINT64_FORMAT "\n", starved,
        http_starved_names[cause], http_counts_get_starved (cause));
  simple (page, "http_connections", "gauge", http_counts_get_connections (), "HTTP connections.");
  picture_decoder_get_counts (&made);
  simple (page, "pictures_total", "counter", made.made, "Still pictures that were made.");
  simple (page, "picture_failures_total", "counter", made.failed,
      "Keyframes of which no still picture could be made.");
}

static void
process (Page *page)
{
  simple (page, "connections", "gauge", entry_count (), "RTSP connections.");
  simple (page, "memory_bytes", "gauge", memory_get_used (),
      "Memory of the process, without pages of files.");
  simple (page, "memory_limit_bytes", "gauge", memory_get_ceiling (),
      "The ceiling of weir_memory_bytes; 0: none.");
}

gchar *
metrics_dup_text (Proxy *proxy, Cluster *cluster)
{
  g_autoptr (GPtrArray) mounts = mounts_dup_all (proxy_get_mounts (proxy));
  g_autofree Sample *samples = sample_mounts (proxy, mounts);
  Page page = { g_string_new (NULL), samples, mounts->len };

  head (&page, "info", "gauge", "Always 1; the label has the version.");
  g_string_append (page.out, "weir_info{version=\"" PACKAGE_VERSION "\"} 1\n");
  ingest (&page);
  sending (&page);
  handshakes (&page, proxy_get_tls (proxy));
  intervals (&page);
  gauges (&page);
  adaptation (&page);
  kernel_path (&page);
  guards (&page);
  if (WITH_SRT)
    srt (&page);
  if (WITH_WEBRTC) {
    webrtc_readers (&page);
    webrtc_publishers (&page);
  }
  rtmp (&page);
  workers (&page);
  access_counts (&page, proxy);
  refusals (&page);
  http (&page);
  if (WITH_STORE)
    disks (&page, mounts);
  if (WITH_BROADCAST)
    figures (&page, mounts, broadcast_figures, sizeof (BroadcastStats), broadcast_figures_sample);
  figures (&page, mounts, recording_figures, sizeof (RecordingSample), recording_figures_sample);
  if (WITH_SWARM)
    figures (&page, mounts, swarm_figures, sizeof (StoreSwarmTitle), swarm_figures_sum);
  cluster_figures_write (cluster, page.out);
  process (&page);
  return g_string_free (page.out, FALSE);
}
