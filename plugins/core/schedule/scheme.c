// SPDX-License-Identifier: LGPL-2.1-or-later
#include "schedule/scheme.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/theory.h"

static const char *const names[] = {
  [WEIR_SCHEME_GDB] = "gdb",
  [WEIR_SCHEME_GREEDY] = "greedy",
  [WEIR_SCHEME_SKYSCRAPER] = "skyscraper",
  [WEIR_SCHEME_STAGGERED] = "staggered",
  [WEIR_SCHEME_BATCHING] = "batching",
  [WEIR_SCHEME_PATCHING] = "patching",
  [WEIR_SCHEME_AUTO] = "auto",
};
#define N_NAMES (sizeof names / sizeof names[0])

const char *
weir_scheme_name (WeirSchemeKind kind)
{
  return (size_t) kind < N_NAMES ? names[kind] : NULL;
}

int
weir_scheme_kind (const char *name)
{
  for (size_t i = 0; i < N_NAMES; i++) {
    if (strcmp (names[i], name) == 0)
      return (int) i;
  }
  return -1;
}

static bool
has_broadcast (WeirSchemeKind kind)
{
  return kind != WEIR_SCHEME_BATCHING && kind != WEIR_SCHEME_PATCHING;
}

static WeirCut
cut_of (WeirSchemeKind kind)
{
  switch (kind) {
    case WEIR_SCHEME_GREEDY:
      return WEIR_CUT_GREEDY;
    case WEIR_SCHEME_SKYSCRAPER:
      return WEIR_CUT_SKYSCRAPER;
    case WEIR_SCHEME_STAGGERED:
      return WEIR_CUT_STAGGERED;
    default:
      return WEIR_CUT_GDB;
  }
}

static double
seconds (const WeirScheme *self, int64_t frames)
{
  return (double) frames * (double) self->transmission.frame_ns / 1e9;
}

// ---- periodic broadcast ----

static int
cut (const WeirSchemeConfig *config, uint32_t n_frames, WeirSegment *segments)
{
  return weir_segments_cut (
      cut_of (config->kind), n_frames, config->first, config->at_once, config->longest, segments);
}

// Returns the last time up to `until_ns` that is `offset_ns` after a multiple of the period.
static int64_t
last_start (int64_t until_ns, int64_t offset_ns, int64_t period_ns)
{
  int64_t past = (until_ns - offset_ns) % period_ns;

  if (past < 0)
    past += period_ns;
  return until_ns - past;
}

static int64_t
period_ns (const WeirScheme *self, int i)
{
  return (int64_t) self->segments[i].period * self->transmission.frame_ns;
}

static int64_t
offset_ns (const WeirScheme *self, int i)
{
  return self->base_ns + (int64_t) self->segments[i].phase * self->transmission.frame_ns;
}

static int
add_segment (WeirScheme *self, int i, int64_t now_ns)
{
  const WeirSegment *segment = &self->segments[i];
  const int64_t period = period_ns (self, i), frame_ns = self->transmission.frame_ns;
  const WeirWork work = {
    .from = segment->from,
    .to = segment->to,
    .repeat = WEIR_REPEAT_FOREVER,
    .start_ns = last_start (now_ns + period - 1, offset_ns (self, i), period),
    .pause_ns = period - (int64_t) (segment->to - segment->from) * frame_ns,
  };
  int failed =
      weir_group_pool_take (self->pool, now_ns, INT64_MAX, self->config.rate, &self->numbers[i]);

  if (failed == 0) {
    failed = weir_transmission_add (
        &self->transmission, WEIR_CHANNEL_MULTICAST, self->numbers[i], &work);
    if (failed < 0)
      weir_group_pool_end (self->pool, self->numbers[i], now_ns);
  }
  self->last_ns[i] = INT64_MIN;
  return failed;
}

// Ends the first `n` segments as soon as the clients have received what they were promised. A frame
// that is being sent may need its group for the time of a frame.
static void
stop_segments (WeirScheme *self, int n, int64_t now_ns)
{
  for (int i = 0; i < n; i++) {
    const int64_t end_ns = weir_transmission_stop (&self->transmission, self->numbers[i],
        self->last_ns[i], now_ns + self->transmission.frame_ns);
    weir_group_pool_end (self->pool, self->numbers[i], end_ns);
  }
  self->broadcasting = false;
}

// Says that `n` streams exceed the pool's limit. Returns -EDQUOT.
static int
refuse_rate (const WeirScheme *self, int n, int64_t now_ns, char *why)
{
  snprintf (why, WEIR_SCHEME_WHY,
      "%s needs %d x %.3g Mb/s, and %.3g of the limit of %.3g Mb/s are left",
      names[self->config.kind], n, (double) self->config.rate / 1e6,
      (double) weir_group_pool_rate_left (self->pool, now_ns) / 1e6,
      (double) self->pool->rate_limit / 1e6);
  return -EDQUOT;
}

static int
start_broadcast (WeirScheme *self, int64_t now_ns, char *why)
{
  const uint32_t free_groups = weir_group_pool_count_free (self->pool, now_ns);

  if (weir_group_pool_rate_left (self->pool, now_ns) / (uint64_t) self->n_segments
      < self->config.rate)
    return refuse_rate (self, self->n_segments, now_ns, why);
  if (free_groups < (uint32_t) self->n_segments) {
    snprintf (why, WEIR_SCHEME_WHY,
        "%s with a first segment of %g s needs %d groups for %g s; %u of the pool's %u are free",
        names[self->config.kind], seconds (self, self->config.first), self->n_segments,
        seconds (self, self->transmission.n_frames), free_groups, self->pool->n_groups);
    return -EBUSY;
  }
  // The base does not depend on the start, so titles with different delays stay apart.
  self->base_ns = last_start (now_ns, self->config.delay * self->transmission.frame_ns,
      period_ns (self, self->n_segments - 1));
  for (int i = 0; i < self->n_segments; i++) {
    const int failed = add_segment (self, i, now_ns);
    if (failed < 0) {
      stop_segments (self, i, now_ns);
      snprintf (why, WEIR_SCHEME_WHY, "no memory");
      return failed;
    }
  }
  self->broadcasting = true;
  return 0;
}

static void
admit_to_broadcast (WeirScheme *self, int64_t now_ns, WeirReception *reception)
{
  const int64_t frame_ns = self->transmission.frame_ns;
  const int64_t unit = self->config.first * frame_ns;

  reception->play_ns = last_start (now_ns + unit - 1, self->base_ns, unit);
  reception->n_items = 0;
  for (int i = 0; i < self->n_segments; i++) {
    const WeirSegment *segment = &self->segments[i];
    const int64_t due_ns = reception->play_ns + segment->from * frame_ns;
    const int64_t start_ns = last_start (due_ns, offset_ns (self, i), period_ns (self, i));
    // A client of STAGGERED needs only the group that starts now.
    if (self->config.kind == WEIR_SCHEME_STAGGERED && start_ns < reception->play_ns)
      continue;
    reception->items[reception->n_items++] = (WeirReceptionItem) {
      .type = WEIR_CHANNEL_MULTICAST,
      .number = self->numbers[i],
      .from = segment->from,
      .to = segment->to,
      .join_ns = start_ns,
      .leave_ns = start_ns + (int64_t) (segment->to - segment->from) * frame_ns,
    };
    if (start_ns > self->last_ns[i])
      self->last_ns[i] = start_ns;
  }
}

bool
weir_scheme_pulse (
    const WeirSchemeConfig *config, uint32_t n_frames, int64_t frame_ns, WeirPulse *pulse)
{
  WeirSegment segments[WEIR_SEGMENTS_MAX];
  const bool possible = has_broadcast (config->kind) && config->kind != WEIR_SCHEME_STAGGERED;
  const int n = possible ? cut (config, n_frames, segments) : 0;
  const WeirSegment *last = n > 1 ? &segments[n - 1] : NULL;

  if (!last)
    return false;
  *pulse = (WeirPulse) {
    .start_ns = (int64_t) (last->phase + config->delay) * frame_ns,
    .busy_ns = (int64_t) (last->to - last->from) * frame_ns,
    .period_ns = (int64_t) last->period * frame_ns,
  };
  return true;
}

// ---- complete streams and patches ----

static int
start_stream (WeirScheme *self, int64_t start_ns, char *why)
{
  WeirTransmission *transmission = &self->transmission;
  const WeirWork work = { .to = transmission->n_frames, .start_ns = start_ns };
  const int64_t end_ns = weir_work_end_ns (&work, transmission->frame_ns);
  uint32_t number;
  int failed = weir_group_pool_take (self->pool, start_ns, end_ns, self->config.rate, &number);

  if (failed == -EDQUOT)
    return refuse_rate (self, 1, start_ns, why);
  if (failed < 0) {
    const int64_t next = weir_group_pool_next_free (self->pool);
    int n = snprintf (why, WEIR_SCHEME_WHY,
        "%s needs a group for a complete stream, and all %u "
        "groups of the pool are in use",
        names[self->config.kind], self->pool->n_groups);
    if (next < INT64_MAX && n > 0 && n < WEIR_SCHEME_WHY)
      snprintf (why + n, (size_t) (WEIR_SCHEME_WHY - n), " for another %.1f s",
          (double) (next - start_ns) / 1e9);
    return failed;
  }
  failed = weir_transmission_add (transmission, WEIR_CHANNEL_MULTICAST, number, &work);
  if (failed < 0) {
    weir_group_pool_end (self->pool, number, start_ns);
    snprintf (why, WEIR_SCHEME_WHY, "no memory");
    return failed;
  }
  self->has_stream = true;
  self->stream_ns = start_ns;
  self->stream = number;
  return 0;
}

static void
receive (WeirReception *reception, WeirChannelType type, uint32_t number, uint32_t from,
    uint32_t to, int64_t join_ns, int64_t leave_ns)
{
  reception->items[reception->n_items++] = (WeirReceptionItem) {
    .type = type,
    .number = number,
    .from = from,
    .to = to,
    .join_ns = join_ns,
    .leave_ns = leave_ns,
  };
}

// The client has missed the frames of the newest stream that were sent before it came.
static int
admit_to_stream (WeirScheme *self, int64_t now_ns, WeirReception *reception, char *why)
{
  WeirTransmission *transmission = &self->transmission;
  const int64_t frame_ns = transmission->frame_ns;
  const int64_t missed = (now_ns - self->stream_ns + frame_ns - 1) / frame_ns;
  const WeirWork patch = { .to = (uint32_t) missed, .start_ns = now_ns };

  reception->play_ns = now_ns;
  reception->n_items = 0;
  if (missed > 0) {
    const int failed =
        weir_transmission_add (transmission, WEIR_CHANNEL_UNICAST, self->n_patches, &patch);
    if (failed < 0) {
      snprintf (why, WEIR_SCHEME_WHY, "no memory");
      return failed;
    }
    receive (reception, WEIR_CHANNEL_UNICAST, self->n_patches++, 0, patch.to, now_ns,
        now_ns + missed * frame_ns);
  }
  receive (reception, WEIR_CHANNEL_MULTICAST, self->stream, patch.to, transmission->n_frames,
      now_ns, self->stream_ns + transmission->n_frames * frame_ns);
  return 0;
}

static int64_t
threshold_ns (const WeirScheme *self, int64_t now_ns)
{
  const double rate = weir_arrivals_rate (&self->arrivals, now_ns);
  const double length = seconds (self, self->transmission.n_frames);

  if (self->config.threshold > 0)
    return self->config.threshold * self->transmission.frame_ns;
  return (int64_t) (weir_patching_threshold (length, rate) * 1e9);
}

static int
admit_to_patching (WeirScheme *self, int64_t now_ns, WeirReception *reception, char *why)
{
  const int64_t age_ns = self->has_stream ? now_ns - self->stream_ns : INT64_MAX;
  const int64_t frame_ns = self->transmission.frame_ns;
  // One frame at least is left to share.
  const bool runs = age_ns <= (int64_t) (self->transmission.n_frames - 1) * frame_ns;

  if (!runs || age_ns > threshold_ns (self, now_ns)) {
    const int failed = start_stream (self, now_ns, why);
    // A longer patch is better than no service.
    if (failed < 0 && !runs)
      return failed;
  }
  return admit_to_stream (self, now_ns, reception, why);
}

static int
admit_to_batch (WeirScheme *self, int64_t now_ns, WeirReception *reception, char *why)
{
  const int64_t frame_ns = self->transmission.frame_ns;

  if (!self->has_stream || self->stream_ns < now_ns) {
    const int failed = start_stream (self, now_ns + self->config.first * frame_ns, why);
    if (failed < 0)
      return failed;
  }
  reception->play_ns = self->stream_ns;
  reception->n_items = 0;
  receive (reception, WEIR_CHANNEL_MULTICAST, self->stream, 0, self->transmission.n_frames,
      self->stream_ns, self->stream_ns + self->transmission.n_frames * frame_ns);
  return 0;
}

// ---- public functions ----

static int
prepare_broadcast (WeirScheme *self, char *why)
{
  const WeirSchemeConfig *config = &self->config;
  const uint32_t n_frames = self->transmission.n_frames;
  const uint32_t cached = config->cached < n_frames ? config->cached : 0;
  WeirSegment segments[WEIR_SEGMENTS_MAX];
  const int n = cut (config, n_frames, segments);

  if (n < 0) {
    snprintf (why, WEIR_SCHEME_WHY,
        "%s with a first segment of %g s cuts a title of %g s into too many; make the first longer",
        names[config->kind], seconds (self, config->first), seconds (self, n_frames));
    return n;
  }
  self->segments = calloc ((size_t) n, sizeof *self->segments);
  self->numbers = calloc ((size_t) n, sizeof *self->numbers);
  self->last_ns = calloc ((size_t) n, sizeof *self->last_ns);
  if (!self->segments || !self->numbers || !self->last_ns) {
    snprintf (why, WEIR_SCHEME_WHY, "no memory");
    return -ENOMEM;
  }
  memcpy (self->segments, segments, (size_t) n * sizeof *segments);
  self->n_segments = n;
  self->crossing =
      weir_patching_crossing (seconds (self, n_frames), seconds (self, config->threshold),
          seconds (self, cached), weir_segments_streams (segments, n, cached));
  return 0;
}

static int
check (WeirScheme *self, uint32_t n_frames, int64_t frame_ns, char *why)
{
  const WeirSchemeConfig *config = &self->config;

  if (!weir_scheme_name (config->kind)
      || weir_transmission_init (&self->transmission, n_frames, frame_ns) < 0) {
    snprintf (why, WEIR_SCHEME_WHY,
        "%u frames of %g ms: a title has at least one frame, and up to "
        "%g s",
        n_frames, (double) frame_ns / 1e6, (double) WEIR_TITLE_NS_MAX / 1e9);
    return -EINVAL;
  }
  if (config->kind != WEIR_SCHEME_PATCHING && (config->first == 0 || config->first > n_frames)) {
    snprintf (why, WEIR_SCHEME_WHY,
        "a first segment or wait of %g s is not between one frame and "
        "the title's %g s",
        seconds (self, config->first), seconds (self, n_frames));
    return -EINVAL;
  }
  if (config->longest > 0 && config->longest < config->first) {
    snprintf (why, WEIR_SCHEME_WHY, "the longest segment, %g s, is shorter than the first, %g s",
        seconds (self, config->longest), seconds (self, config->first));
    return -EINVAL;
  }
  if (config->threshold > n_frames || config->delay / 2 > n_frames) {
    snprintf (why, WEIR_SCHEME_WHY, "a threshold or delay is longer than the title's %g s",
        seconds (self, n_frames));
    return -EINVAL;
  }
  return 0;
}

int
weir_scheme_init (WeirScheme *self, const WeirSchemeConfig *config, uint32_t n_frames,
    int64_t frame_ns, WeirGroupPool *pool, int64_t now_ns, char why[WEIR_SCHEME_WHY])
{
  int failed;

  *self = (WeirScheme) { .config = *config, .pool = pool };
  failed = check (self, n_frames, frame_ns, why);
  if (failed < 0)
    return failed;
  if (has_broadcast (config->kind))
    failed = prepare_broadcast (self, why);
  if (failed == 0 && has_broadcast (config->kind) && config->kind != WEIR_SCHEME_AUTO)
    failed = start_broadcast (self, now_ns, why);
  if (failed < 0)
    weir_scheme_free (self, now_ns);
  return failed;
}

void
weir_scheme_free (WeirScheme *self, int64_t now_ns)
{
  // What is left then is in groups that are this scheme's.
  weir_transmission_advance (&self->transmission, now_ns);
  for (size_t i = 0; i < self->transmission.n_channels; i++) {
    if (self->transmission.channels[i].type == WEIR_CHANNEL_MULTICAST)
      weir_group_pool_end (self->pool, self->transmission.channels[i].number, now_ns);
  }
  weir_transmission_free (&self->transmission);
  free (self->segments);
  free (self->numbers);
  free (self->last_ns);
  *self = (WeirScheme) { 0 };
}

// Changes between patching and broadcast. The lead keeps an estimate that varies from changing back
// and forth. If the pool lacks groups for the broadcast, patching goes on.
static void
choose (WeirScheme *self, int64_t now_ns)
{
  const double rate = weir_arrivals_rate (&self->arrivals, now_ns);
  char why[WEIR_SCHEME_WHY];

  if (self->config.kind != WEIR_SCHEME_AUTO)
    return;
  if (!self->broadcasting && rate > self->crossing * WEIR_SCHEME_LEAD)
    start_broadcast (self, now_ns, why);
  else if (self->broadcasting && rate < self->crossing / WEIR_SCHEME_LEAD)
    stop_segments (self, self->n_segments, now_ns);
}

int
weir_scheme_admit (
    WeirScheme *self, int64_t now_ns, WeirReception *reception, char why[WEIR_SCHEME_WHY])
{
  weir_arrivals_add (&self->arrivals, now_ns);
  choose (self, now_ns);
  if (self->config.kind == WEIR_SCHEME_BATCHING)
    return admit_to_batch (self, now_ns, reception, why);
  if (!self->broadcasting)
    return admit_to_patching (self, now_ns, reception, why);
  admit_to_broadcast (self, now_ns, reception);
  return 0;
}

void
weir_scheme_advance (WeirScheme *self, int64_t now_ns)
{
  choose (self, now_ns);
  weir_transmission_advance (&self->transmission, now_ns);
}
