// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ratepacer_private.h"

#include "enumtype.h"

enum {
  PROP_0,
  PROP_MODE,
  PROP_MAX_BURST,
  PROP_BITRATE,
  PROP_BURST,
  PROP_BLOCK_TIME,
  PROP_ROUNDS,
  PROP_MICROROUNDS,
  PROP_ROUND_BYTES,
  PROP_BLOCKSIZE,
  PROP_STATS,
};

#define DEFAULT_MODE WEIR_PACE_TIMESTAMP
#define DEFAULT_MAX_BURST 1
#define DEFAULT_BITRATE 0
#define DEFAULT_BURST 0
#define DEFAULT_BLOCK_TIME (5 * GST_SECOND)
#define DEFAULT_ROUNDS 0
#define DEFAULT_MICROROUNDS 1
#define DEFAULT_ROUND_BYTES 0
#define DEFAULT_BLOCKSIZE 0

#define WEIR_TYPE_PACE_MODE (weir_pace_mode_get_type ())
static GType
weir_pace_mode_get_type (void)
{
  static gsize type;
  static const GEnumValue values[] = {
    { WEIR_PACE_TIMESTAMP, "Spread each frame's packets evenly over the time to the next frame",
        "timestamp" },
    { WEIR_PACE_BITRATE, "Send at a bit rate, with a token bucket", "bitrate" },
    { WEIR_PACE_BLOCK, "Send two blocks at once, then one block every block-time", "block" },
    { 0, NULL, NULL },
  };

  return weir_enum_type (&type, "WeirPaceMode", values);
}

// Call with the lock.
static GstStructure *
rate_pacer_make_stats (const WeirRatePacer *self)
{
  const WeirPacer *p = &self->pacer;
  const WeirPaceCounts *c = &p->counts;

  return gst_structure_new ("application/x-weir-ratepacer-stats", "in", G_TYPE_UINT64, c->in, "out",
      G_TYPE_UINT64, c->out, "flushed", G_TYPE_UINT64, c->flushed, "queued", G_TYPE_UINT64,
      (guint64) weir_pacer_queued (p), "bytes-out", G_TYPE_UINT64, c->bytes_out, "queued-bytes",
      G_TYPE_UINT64, p->bytes, "repaired", G_TYPE_UINT64, c->repaired, "late", G_TYPE_UINT64,
      c->late, "latest", G_TYPE_UINT64, (guint64) c->latest_ns, "bitrate", G_TYPE_UINT64,
      (guint64) p->measured, "latency", G_TYPE_UINT64, (guint64) weir_pacer_latency (p), "deficit",
      G_TYPE_UINT64, (guint64) p->deficit_ns, "overruns", G_TYPE_UINT64, c->overruns, "starvations",
      G_TYPE_UINT64, c->starvations, NULL);
}

static void
weir_rate_pacer_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  WeirRatePacer *self = WEIR_RATE_PACER (object);
  WeirPaceSettings *settings = &self->settings;

  g_mutex_lock (&self->lock);
  switch (id) {
    case PROP_MODE:
      settings->mode = (WeirPaceMode) g_value_get_enum (value);
      break;
    case PROP_MAX_BURST:
      settings->max_burst = g_value_get_uint (value);
      break;
    case PROP_BITRATE:
      settings->bitrate = g_value_get_uint64 (value);
      break;
    case PROP_BURST:
      settings->burst = g_value_get_uint (value);
      break;
    case PROP_BLOCK_TIME:
      settings->block_ns = (gint64) g_value_get_uint64 (value);
      break;
    case PROP_ROUNDS:
      settings->round_ns = (gint64) g_value_get_uint64 (value);
      break;
    case PROP_MICROROUNDS:
      self->microrounds = g_value_get_uint (value);
      break;
    case PROP_ROUND_BYTES:
      settings->round_bytes = g_value_get_uint (value);
      break;
    case PROP_BLOCKSIZE:
      self->blocksize = g_value_get_uint (value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
  rate_pacer_apply_settings (self);
  rate_pacer_look (self);
  g_mutex_unlock (&self->lock);
}

static void
weir_rate_pacer_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  WeirRatePacer *self = WEIR_RATE_PACER (object);
  const WeirPaceSettings *settings = &self->settings;

  g_mutex_lock (&self->lock);
  switch (id) {
    case PROP_MODE:
      g_value_set_enum (value, (gint) settings->mode);
      break;
    case PROP_MAX_BURST:
      g_value_set_uint (value, settings->max_burst);
      break;
    case PROP_BITRATE:
      g_value_set_uint64 (value, settings->bitrate);
      break;
    case PROP_BURST:
      g_value_set_uint (value, settings->burst);
      break;
    case PROP_BLOCK_TIME:
      g_value_set_uint64 (value, (guint64) settings->block_ns);
      break;
    case PROP_ROUNDS:
      g_value_set_uint64 (value, (guint64) settings->round_ns);
      break;
    case PROP_MICROROUNDS:
      g_value_set_uint (value, self->microrounds);
      break;
    case PROP_ROUND_BYTES:
      g_value_set_uint (value, settings->round_bytes);
      break;
    case PROP_BLOCKSIZE:
      g_value_set_uint (value, (guint) self->blocksize);
      break;
    case PROP_STATS:
      g_value_take_boxed (value, rate_pacer_make_stats (self));
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
  g_mutex_unlock (&self->lock);
}

void
rate_pacer_properties_init (WeirRatePacer *self)
{
  self->settings = (WeirPaceSettings) {
    .mode = DEFAULT_MODE,
    .max_burst = DEFAULT_MAX_BURST,
    .bitrate = DEFAULT_BITRATE,
    .burst = DEFAULT_BURST,
    .block_ns = (gint64) DEFAULT_BLOCK_TIME,
    .round_ns = DEFAULT_ROUNDS,
    .round_bytes = DEFAULT_ROUND_BYTES,
  };
  self->microrounds = DEFAULT_MICROROUNDS;
  self->blocksize = DEFAULT_BLOCKSIZE;
}

void
rate_pacer_properties_install (GObjectClass *klass)
{
  const GParamFlags ro = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;
  const GParamFlags rw = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

  klass->set_property = weir_rate_pacer_set_property;
  klass->get_property = weir_rate_pacer_get_property;

  g_object_class_install_property (klass, PROP_MODE,
      g_param_spec_enum (
          "mode", "Mode", "Rule for sending packets", WEIR_TYPE_PACE_MODE, DEFAULT_MODE, rw));
  g_object_class_install_property (klass, PROP_MAX_BURST,
      g_param_spec_uint ("max-burst", "Maximum burst",
          "Number of packets of a frame that leave together, with mode=timestamp", 1, 1024,
          DEFAULT_MAX_BURST, rw));
  /**
   * WeirRatePacer:bitrate:
   *
   * Bit rate in bits per second, with #WeirRatePacer:mode bitrate and block. 0 uses the stream's
   * own rate. With bitrate, the element measures that rate from the packets' times, and sends at up
   * to twice the rate while it lags; packets leave at once until 200 ms of the stream have arrived.
   * With block, the packets' times decide which packets belong to a block.
   */
  g_object_class_install_property (klass, PROP_BITRATE,
      g_param_spec_uint64 ("bitrate", "Bit rate",
          "Bit rate in bits per second, with mode=bitrate and mode=block; 0 = the stream's own", 0,
          G_MAXUINT64, DEFAULT_BITRATE, rw));
  g_object_class_install_property (klass, PROP_BURST,
      g_param_spec_uint ("burst", "Burst",
          "Size of the token bucket in bytes: how much may leave at once after a pause, with "
          "mode=bitrate; 0 = one packet",
          0, G_MAXUINT, DEFAULT_BURST, rw));
  g_object_class_install_property (klass, PROP_BLOCK_TIME,
      g_param_spec_uint64 ("block-time", "Block time", "Duration of a block in ns, with mode=block",
          GST_MSECOND, GST_SECOND * 3600, DEFAULT_BLOCK_TIME, rw));
  /**
   * WeirRatePacer:rounds:
   *
   * Duration of a round in ns. With thousands of pacers in a process, each pacer wakes once a round
   * and pushes everything that has become due since the last round. This means fewer wake-ups and
   * longer bursts. No packet leaves early, and none more than one round late. 0 turns rounds
   * off.
   */
  g_object_class_install_property (klass, PROP_ROUNDS,
      g_param_spec_uint64 ("rounds", "Rounds",
          "Duration of a round in ns: packets leave once a round; 0 = each leaves at its own time",
          0, GST_SECOND, DEFAULT_ROUNDS, rw));
  g_object_class_install_property (klass, PROP_MICROROUNDS,
      g_param_spec_uint ("microrounds", "Micro-rounds",
          "Number of wake-up slots in a round, over which the process spreads its pacers", 1, 1024,
          DEFAULT_MICROROUNDS, rw));
  g_object_class_install_property (klass, PROP_ROUND_BYTES,
      g_param_spec_uint ("round-bytes", "Bytes in a round",
          "A round with more bytes is divided into three; 0 = never", 0, G_MAXUINT,
          DEFAULT_ROUND_BYTES, rw));
  g_object_class_install_property (klass, PROP_BLOCKSIZE,
      g_param_spec_uint ("blocksize", "Block size",
          "Splits larger non-RTP buffers to this size in bytes; 0 = never", 0, G_MAXUINT,
          DEFAULT_BLOCKSIZE, rw));
  /**
   * WeirRatePacer:stats:
   *
   * All fields are #guint64. Packets, counted after the split by #WeirRatePacer:blocksize: `in`,
   * and its parts `out`, `flushed` and `queued`; `repaired` (the timestamp was missing, jumped or
   * went back); `late` (left more than 5 ms after it was due). `latest`: the longest such delay, in
   * ns. `bytes-out`, `queued-bytes`. `bitrate`: the measured input rate in bits per second.
   * `latency`: how much later than the latency of the pipeline asks for a packet may leave, in ns:
   * the duration of a frame, a round, and the delay of late frames.
   * With #WeirRatePacer:mode block: `deficit`, the delay that is not made up yet, in ns;
   * `overruns`, blocks that took longer than block-time to send; `starvations`, blocks of which the
   * receiver had to wait for a packet.
   */
  g_object_class_install_property (klass, PROP_STATS,
      g_param_spec_boxed (
          "stats", "Statistics", "Counts of packets and their delay", GST_TYPE_STRUCTURE, ro));
  gst_type_mark_as_plugin_api (WEIR_TYPE_PACE_MODE, 0);
}
