// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/timeshift.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/file_roots.h"
#include "base/log.h"
#include "outlets/rtsp/sink_address.h"
#include "text/demand.h"

// Added to the window beyond the longest delay: for the distance between keyframes, and because the
// oldest position is 1 s newer than the oldest packet.
#define BEYOND (10 * GST_SECOND)
#define PACKET_LEAST 128           // mean bytes in a packet, of a stream of small packets
#define PACKETS_MAX (1 << 24)      // the limit of fanoutsink's window-packets
#define OLDEST G_MAXUINT64         // as a delay: the oldest position
#define GRANTS_MAX 4               // rounds in which tracks agree on a delay
#define NEAR ((gint64) GST_SECOND) // a delay that is at most this much shorter counts as granted

typedef enum { ANSWER_NOTHING, ANSWER_NPT, ANSWER_CLOCK } Answer;

// The position of a session. Times are monotonic, in ns.
typedef struct {
  gboolean played, paused;
  gint64 zero_ns;     // when the packet at npt 0 was received
  gint64 position_ns; // when the packet at the reader's position was received
  Answer answer;      // how the answer to the PLAY gives the position
} Shift;

// ---- the Range of a request ----

static gint64
now_ns (void)
{
  return g_get_monotonic_time () * 1000;
}

static Shift *
get_shift (GstRTSPSessionMedia *media)
{
  Shift *self = g_object_get_data (G_OBJECT (media), "weir-shift");

  if (!self) {
    self = g_new0 (Shift, 1);
    g_object_set_data_full (G_OBJECT (media), "weir-shift", self, g_free);
  }
  return self;
}

// Sets `received_ns` to the time at which the packet at the start of a Range was received.
static GstRTSPStatusCode
read_range (const Shift *self, const gchar *header, gint64 *received_ns, Answer *answer)
{
  gint64 at;

  *answer = ANSWER_NPT;
  switch (demand_read_range (header, &at)) {
    case DEMAND_NOW:
      *received_ns = now_ns ();
      return GST_RTSP_STS_OK;
    case DEMAND_NPT:
      *received_ns = self->zero_ns + at;
      return GST_RTSP_STS_OK;
    case DEMAND_CLOCK:
      *received_ns = now_ns () + (at - g_get_real_time ()) * 1000;
      *answer = ANSWER_CLOCK;
      return GST_RTSP_STS_OK;
    case DEMAND_NOWHERE:
      return GST_RTSP_STS_INVALID_RANGE;
    default:
      return GST_RTSP_STS_BAD_REQUEST;
  }
}

// ---- the sinks ----

static void
set_delay (const SinkAddress *address, const gchar *host, gint port, guint64 delay_ns)
{
  gboolean ok;

  g_signal_emit_by_name (address->sink, "set-delay", host, port, delay_ns, &ok);
}

// Asks how far behind the live edge the reader will begin or continue, and whether its position has
// moved because the packet there has left the window. Returns FALSE if the sink does not know.
static gboolean
ask_plan (
    const SinkAddress *address, const gchar *host, gint port, guint64 *delay_ns, gboolean *moved)
{
  g_autoptr (GstStructure) plan = NULL;

  g_signal_emit_by_name (address->sink, "plan", host, port, &plan);
  return plan
         && gst_structure_get (
             plan, "delay", G_TYPE_UINT64, delay_ns, "moved", G_TYPE_BOOLEAN, moved, NULL);
}

// Returns the longest delay up to `delay_ns` that all tracks can give, so that they stay in sync.
// Asks for it with port 0, which belongs to no reader.
static guint64
grant (const GPtrArray *addresses, const gchar *name, guint64 delay_ns)
{
  guint64 granted = delay_ns, before;

  for (guint n = 0; granted > 0 && n < GRANTS_MAX; n++) {
    before = granted;
    for (guint i = 0; i < addresses->len; i++) {
      const SinkAddress *address = g_ptr_array_index (addresses, i);
      guint64 has = 0;
      gboolean moved;

      set_delay (address, name, 0, before);
      if (!ask_plan (address, name, 0, &has, &moved))
        has = 0;
      granted = MIN (granted, has);
    }
    if (granted == before)
      break;
  }
  return granted == OLDEST ? 0 : granted;
}

// ---- PLAY and PAUSE ----

static void
go_to (Shift *self, const GPtrArray *addresses, const gchar *name, gint64 delay_ns)
{
  gint64 now = now_ns ();
  guint64 granted = grant (addresses, name, (guint64) MAX (delay_ns, 0));

  for (guint i = 0; i < addresses->len; i++) {
    const SinkAddress *address = g_ptr_array_index (addresses, i);

    set_delay (address, address->host, address->port, granted);
  }
  self->position_ns = now - (gint64) granted;
}

// Continues at the position of the PAUSE, or at the join point to which the sink has moved it.
static void
continue_play (Shift *self, const GPtrArray *addresses, const gchar *name)
{
  gint64 now = now_ns ();
  guint64 delay_ns = 0, longest = 0;
  gboolean moved = FALSE, any = FALSE;

  for (guint i = 0; i < addresses->len; i++) {
    const SinkAddress *address = g_ptr_array_index (addresses, i);

    if (!ask_plan (address, address->host, address->port, &delay_ns, &moved))
      continue;
    longest = MAX (longest, delay_ns);
    any |= moved;
  }
  if (any)
    log_event ("reader %s moved: its position is no longer in the window; it continues at the next "
               "join point, %.1f s behind the live edge",
        name, (gdouble) longest / GST_SECOND);
  self->position_ns = now - (gint64) longest;
  self->answer = ANSWER_NPT;
}

// Starts at the delay of the URL, or at the oldest position if the delay is longer than the window.
// In that case the answer gives the clock time of the position.
static void
go_behind (Shift *self, const GPtrArray *addresses, const gchar *name, gint64 delay_ns)
{
  gint64 wanted_ns = now_ns () - delay_ns;

  go_to (self, addresses, name, delay_ns);
  self->answer = self->position_ns > wanted_ns + NEAR ? ANSWER_CLOCK : ANSWER_NPT;
}

static void
pause_sinks (const GPtrArray *addresses)
{
  gboolean ok;

  for (guint i = 0; i < addresses->len; i++) {
    const SinkAddress *address = g_ptr_array_index (addresses, i);

    g_signal_emit_by_name (address->sink, "pause", address->host, address->port, &ok);
  }
}

// Pauses a reader that plays before it moves, because the packets of the new position must follow
// the answer.
static void
leave_position (GstRTSPSessionMedia *media, const GPtrArray *addresses, Reader *reader)
{
  if (gst_rtsp_session_media_get_rtsp_state (media) != GST_RTSP_STATE_PLAYING)
    return;
  if (reader)
    reader_pause (reader, TRUE);
  pause_sinks (addresses);
  gst_rtsp_session_media_set_state (media, GST_STATE_PAUSED);
}

static GstRTSPStatusCode
play (Shift *self, const GPtrArray *addresses, GstRTSPContext *ctx, gint64 delay_ns,
    const gchar *name, Reader *reader)
{
  GstRTSPMessage *request = ctx->request;
  gchar *header = NULL;
  gint64 received_ns = 0, now = now_ns ();
  GstRTSPStatusCode status;

  self->answer = ANSWER_NOTHING;
  if (!self->played)
    self->zero_ns = now - MAX (delay_ns, 0);
  if (gst_rtsp_message_get_header (request, GST_RTSP_HDR_RANGE, &header, 0) == GST_RTSP_OK) {
    status = read_range (self, header, &received_ns, &self->answer);
    if (status != GST_RTSP_STS_OK)
      return status;
    // gst-rtsp-server would refuse to seek in a live stream.
    gst_rtsp_message_remove_header (request, GST_RTSP_HDR_RANGE, -1);
    leave_position (ctx->sessmedia, addresses, reader);
    go_to (self, addresses, name, now - received_ns);
  } else if (self->paused) {
    continue_play (self, addresses, name);
  } else if (!self->played && delay_ns >= 0) {
    go_behind (self, addresses, name, delay_ns);
  }
  return GST_RTSP_STS_OK;
}

GstRTSPStatusCode
timeshift_play (GstRTSPContext *ctx, gint64 delay_ns, const gchar *name, Reader *reader)
{
  Shift *self = get_shift (ctx->sessmedia);
  GPtrArray *addresses = sink_addresses_new (ctx->sessmedia);
  GstRTSPStatusCode status = play (self, addresses, ctx, delay_ns, name, reader);

  g_ptr_array_unref (addresses);
  if (status != GST_RTSP_STS_OK)
    return status;
  if (!self->played && self->answer != ANSWER_NOTHING)
    self->zero_ns = self->position_ns;
  self->played = TRUE;
  self->paused = FALSE;
  return GST_RTSP_STS_OK;
}

void
timeshift_pause (GstRTSPContext *ctx)
{
  g_autoptr (GPtrArray) addresses = sink_addresses_new (ctx->sessmedia);

  pause_sinks (addresses);
  get_shift (ctx->sessmedia)->paused = TRUE;
}

// ---- answers ----

// Returns a monotonic time as wall-clock time, such as "20261121T211500.123Z". (transfer full)
static gchar *
format_clock (gint64 received_ns)
{
  gint64 us = g_get_real_time () + (received_ns - now_ns ()) / 1000;
  g_autoptr (GDateTime) time = g_date_time_new_from_unix_utc (us / G_USEC_PER_SEC);
  g_autofree gchar *day = g_date_time_format (time, "%Y%m%dT%H%M%S");

  return g_strdup_printf ("%s.%03dZ", day, (gint) (us / 1000 % 1000));
}

void
timeshift_answer (GstRTSPContext *ctx)
{
  const Shift *self = get_shift (ctx->sessmedia);
  gchar npt[G_ASCII_DTOSTR_BUF_SIZE], *clock, *text;

  if (self->answer == ANSWER_NOTHING)
    return;
  clock = format_clock (self->position_ns);
  g_ascii_formatd (
      npt, sizeof npt, "%.3f", MAX ((gdouble) (self->position_ns - self->zero_ns) / GST_SECOND, 0));
  text = self->answer == ANSWER_CLOCK ? g_strdup_printf ("clock=%s-", clock)
                                      : g_strdup_printf ("npt=%s-", npt);
  gst_rtsp_message_remove_header (ctx->response, GST_RTSP_HDR_RANGE, -1);
  gst_rtsp_message_take_header (ctx->response, GST_RTSP_HDR_RANGE, text);
  g_free (clock);
}

void
timeshift_describe (GstRTSPMedia *media, GstSDPMessage *sdp, const gchar *name)
{
  g_autoptr (GPtrArray) addresses = sink_addresses_new_for_media (media, name);
  gint64 now = now_ns ();
  g_autofree gchar *clock = NULL, *text = NULL;

  clock = format_clock (now - (gint64) grant (addresses, name, OLDEST));
  text = g_strdup_printf ("clock=%s-", clock);
  gst_sdp_message_add_attribute (sdp, "range", text);
}

// Resets a property to its default, unless it has its default: the sink acts on each setting, even
// of an equal value.
static void
reset (GstElement *sink, const gchar *name)
{
  GParamSpec *spec = g_object_class_find_property (G_OBJECT_GET_CLASS (sink), name);
  GValue value = G_VALUE_INIT;

  g_value_init (&value, spec->value_type);
  g_object_get_property (G_OBJECT (sink), name, &value);
  if (!g_param_value_defaults (spec, &value))
    g_object_set_property (G_OBJECT (sink), name, g_param_spec_get_default_value (spec));
  g_value_unset (&value);
}

#define SPILL_FOLDER "spill-folder" // its descriptor + 1

static void
close_folder (gpointer folder)
{
  close (GPOINTER_TO_INT (folder) - 1);
}

// The folder that an API client has named is opened once. The name that is then given to the sink
// means this folder, whatever happens to its path.
static void
set_spill (GstElement *sink, const MountConfig *config)
{
  g_autofree gchar *name = NULL;
  int fd;

  if (!config->cache.spill.is_limited) {
    g_object_set (sink, "spill-dir", config->cache.spill.path, NULL);
    return;
  }
  if (g_object_get_data (G_OBJECT (sink), SPILL_FOLDER)) // readers are closed if it changes
    return;
  fd = file_roots_open (config->cache.spill.path, O_PATH | O_DIRECTORY);
  name = file_roots_dup_name (fd);
  g_object_set_data_full (G_OBJECT (sink), SPILL_FOLDER, GINT_TO_POINTER (fd + 1), close_folder);
  g_object_set (sink, "spill-dir", name, NULL);
}

void
timeshift_configure_sink (GstElement *sink, const MountConfig *config)
{
  guint64 bytes = config->cache.size.bytes;

  if (config->cache.time_ms == 0) {
    reset (sink, "window-time");
    reset (sink, "window-bytes");
    reset (sink, "window-packets");
    return;
  }
  g_object_set (sink, "window-time", config->cache.time_ms * GST_MSECOND + BEYOND, "window-bytes",
      bytes, "window-packets", MIN (bytes / PACKET_LEAST, PACKETS_MAX), NULL);
  set_spill (sink, config);
}

static void
on_full (GstBus *bus, GstMessage *message, gpointer name)
{
  const GstStructure *s = gst_message_get_structure (message);
  guint64 capacity;

  if (!gst_structure_has_name (s, "fanout-spill-full")
      || !gst_structure_get_uint64 (s, "capacity", &capacity))
    return;
  log_event ("mount %s: the disk of its cache is full; the cache of a track is limited to "
             "%" G_GUINT64_FORMAT " MB",
      (const gchar *) name, capacity >> 20);
}

void
timeshift_watch (GstElement *pipeline, const MountConfig *config)
{
  g_autoptr (GstBus) bus = NULL;

  if (!config->cache.spill.path)
    return;
  bus = gst_element_get_bus (pipeline);
  gst_bus_enable_sync_message_emission (bus);
  g_signal_connect_data (bus, "sync-message::element", G_CALLBACK (on_full),
      g_strdup (config->path), (GClosureNotify) (void (*) (void)) g_free, 0);
}
