// SPDX-License-Identifier: LGPL-2.1-or-later
// Readers over simulated lines: the estimate and the steps together.
#include "ladder.h"
#include "line.h"
#include "net/steps.h"
#include "tap.h"

#define MS LINE_MS
#define SECOND (1000 * MS)
#define START (1000 * SECOND)
#define PACKET 1200
#define RUN_PACKETS 8 // that are sent at once

// A stream: what a reader gets of it at each step, picture by picture.
typedef struct {
  const WeirStep *steps;
  size_t n;
  int64_t frame;  // duration of a picture
  unsigned group; // pictures from keyframe to keyframe
  bool is_smooth; // a picture is spread over its duration, else as the workers spread it
  size_t (*size) (int step, unsigned picture); // bytes
} Stream;

// Each 2 s a picture is a keyframe of four times the size.
static size_t
size_in_ladder (int step, unsigned picture)
{
  return (size_t) ((double) ladder[step].bits / 8 / 25 * 50 / 53 * (picture == 0 ? 4 : 1));
}

static const Stream layered = { ladder, sizeof ladder / sizeof *ladder, 40 * MS, 50, true,
  size_in_ladder };

// Three temporal layers, as browsers send them.
static const WeirStep temporal_steps[] = {
  { WEIR_STEP_KEYFRAMES, { 0, 0, 0 }, 45000 },
  { WEIR_STEP_LAYERS, { 0, 0, 0 }, 450000 },
  { WEIR_STEP_LAYERS, { 0, 1, 0 }, 1300000 },
  { WEIR_STEP_LAYERS, { -1, -1, -1 }, 4000000 },
};

static size_t
size_in_temporal (int step, unsigned picture)
{
  static const int layer_of[] = { 0, 2, 1, 2 };
  static const size_t sizes[] = { 7232, 14167, 22500 };
  int layer = layer_of[picture % 4];

  if (picture == 0)
    return 11250;
  return layer < step ? sizes[layer] : 0;
}

static const Stream temporal = { temporal_steps, sizeof temporal_steps / sizeof *temporal_steps,
  33333333, 60, false, size_in_temporal };

typedef struct {
  Line told; // the numbers and arrivals of this reader; the line itself is shared
  WeirEstimate *estimate;
  WeirSteps steps;
  uint16_t number;
  int step;
  int64_t changed;
  bool cannot_be_probed;
  bool lies; // it says that all arrives at once
  // The picture that is being sent.
  int64_t picture, picture_at, last_key;
  int64_t spread; // time over which it is sent
  uint64_t size, done;
  // The probe.
  int64_t probe_from, probe_until;
  uint64_t probe_bits, before; // `bytes` when it began
  uint64_t padded;             // bytes of it
  uint64_t bytes;              // sent, without those of probes
  uint64_t lost, sent;         // packets
} Reader;

// A TCP flow as of Reno: a packet more each round trip, and half the window after a loss.
#define TCP_UNDER_WAY 4096
typedef struct {
  double window; // packets; 0: it does not run
  int64_t arrivals[TCP_UNDER_WAY];
  size_t first, n; // packets under way
  int64_t halved;
  uint64_t bits; // that arrived
} Tcp;

#define READERS 40
#define WAITS 1000
#define UNDER_WAY 1024
typedef struct {
  int64_t departure;
  size_t size;
} Waiting;

typedef struct {
  const Stream *stream;
  Line line;
  Reader readers[READERS];
  size_t n;
  Tcp tcp;
  uint64_t others; // bit/s of other flows, which do not care
  unsigned seed;
  int64_t now;
  Waiting waiting[UNDER_WAY]; // at the line
  size_t n_waiting;
  unsigned waits[WAITS]; // of a packet at the line, in ms: how many of the milliseconds
} Sim;

static Sim sim;

static int
top (void)
{
  return (int) sim.stream->n - 1;
}

static void
add_reader (void)
{
  Reader *reader = &sim.readers[sim.n++];

  reader->step = top ();
  reader->changed = sim.now;
  reader->told.report_due = sim.now + (int64_t) sim.n * 7 * MS;
  reader->estimate = weir_estimate_new (WEIR_ESTIMATE_RING);
  weir_steps_init (
      &reader->steps, WEIR_LAYER_SET_ALL, (uint32_t) sim.n * 77 + sim.seed * 1001, sim.now);
}

static void
begin (const Stream *stream, uint64_t rate, unsigned seed)
{
  memset (&sim, 0, sizeof sim);
  sim.stream = stream;
  sim.now = START;
  sim.seed = seed;
  sim.line = (Line) { .rate = rate, .buffer = 300 * MS, .delay = 20 * MS, .random = seed };
}

static void
end (void)
{
  for (size_t i = 0; i < sim.n; i++)
    weir_estimate_free (sim.readers[i].estimate);
}

// ---- sending ----

// Notes that bytes wait at the line until `departure`.
static void
note_waiting (size_t size, int64_t departure)
{
  sim.waiting[sim.n_waiting++ % UNDER_WAY] = (Waiting) { departure, size };
}

// Sends packets at once. The line takes them as one if its bucket has room for all.
static void
send_run (Reader *reader, size_t bytes)
{
  bool as_one = bytes <= sim.line.burst, queued = false;
  Line *told = &reader->told;
  int64_t arrival = -1;

  for (size_t size, first = bytes; bytes > 0; bytes -= size) {
    size_t unit = as_one ? first : bytes < PACKET ? bytes : PACKET;
    bool lost = line_random (&sim.line) % 1000 < sim.line.loss;

    if (!as_one || bytes == first) {
      queued = line_queue (&sim.line, unit, sim.now, &arrival);
      if (queued)
        note_waiting (unit, arrival - sim.line.delay);
    }
    lost |= !queued;
    size = bytes < PACKET ? bytes : PACKET;
    weir_estimate_sent (reader->estimate, reader->number++, size, sim.now);
    reader->lost += lost;
    reader->sent++;
    if (told->n < LINE_UNDER_WAY)
      told->arrivals[told->n++] = reader->lies ? sim.now : lost ? -1 : arrival;
  }
}

static void
begin_picture (Reader *reader)
{
  unsigned picture = (unsigned) (reader->picture % sim.stream->group);
  uint64_t pace = weir_estimate_view (reader->estimate, sim.now).bits * 5 / 2;

  if (picture == 0)
    reader->last_key = sim.now;
  reader->size += sim.stream->size (reader->step, picture) - reader->done;
  reader->done = 0;
  reader->picture_at = sim.now;
  reader->spread = sim.stream->frame;
  if (!sim.stream->is_smooth && reader->size <= RUN_PACKETS * PACKET)
    reader->spread = 0;
  else if (!sim.stream->is_smooth && pace > 0
           && (int64_t) (reader->size * 8000 * MS / pace) < reader->spread)
    reader->spread = (int64_t) (reader->size * 8000 * MS / pace);
}

static void
send_media (Reader *reader)
{
  uint64_t due;

  if (sim.now / sim.stream->frame != reader->picture) {
    reader->picture = sim.now / sim.stream->frame;
    begin_picture (reader);
  }
  due = reader->size;
  if (sim.now - reader->picture_at + MS < reader->spread)
    due = due * (uint64_t) (sim.now - reader->picture_at + MS) / (uint64_t) reader->spread;
  while (reader->done + PACKET <= due || (due == reader->size && reader->done < due)) {
    uint64_t left = due - reader->done;
    size_t bytes = left < RUN_PACKETS * PACKET ? left : RUN_PACKETS * PACKET;

    if (due < reader->size)
      bytes -= bytes % PACKET;
    send_run (reader, bytes);
    reader->done += bytes;
    reader->bytes += bytes;
  }
}

// Fills the line up to the probe's rate each 5 ms.
static void
send_probe (Reader *reader)
{
  uint64_t due;

  if (sim.now >= reader->probe_until || sim.now / MS % 5 != 0)
    return;
  due = (uint64_t) ((sim.now - reader->probe_from) / MS) * reader->probe_bits / 8000;
  while (due > reader->bytes - reader->before + reader->padded) {
    send_run (reader, PACKET);
    reader->padded += PACKET;
  }
}

// ---- deciding ----

static size_t
n_probing (void)
{
  size_t n = 0;

  for (size_t i = 0; i < sim.n; i++)
    n += weir_steps_is_probing (&sim.readers[i].steps);
  return n;
}

static int
index_of (const WeirStep *step)
{
  for (size_t i = 0; i < sim.stream->n; i++) {
    const WeirStep *each = &sim.stream->steps[i];

    if (each->kind == step->kind && weir_layer_set_equal (each->set, step->set))
      return (int) i;
  }
  return -1;
}

static void
look (Reader *reader)
{
  WeirStepsInput input = { .line = weir_estimate_view (reader->estimate, sim.now),
    .key_ns = reader->last_key,
    .can_probe = !reader->cannot_be_probed,
    .others =
        !weir_steps_is_probing (&reader->steps) && n_probing () >= weir_steps_together (sim.n) };
  WeirStepsDecision decision =
      weir_steps_decide (&reader->steps, &input, sim.stream->steps, sim.stream->n, sim.now);
  int to = index_of (&decision.step);

  if (to != reader->step)
    reader->changed = sim.now;
  reader->step = to;
  if (decision.ends_probe)
    reader->probe_until = sim.now;
  if (decision.probe_bits > 0) {
    reader->probe_bits = decision.probe_bits;
    reader->probe_from = sim.now;
    reader->probe_until = sim.now + decision.probe_ns;
    reader->before = reader->bytes;
    reader->padded = 0;
  }
}

static void
run_tcp (void)
{
  const int64_t back = 20 * MS;
  Tcp *tcp = &sim.tcp;
  int64_t arrival;

  while (tcp->n > 0 && tcp->arrivals[tcp->first % TCP_UNDER_WAY] + back <= sim.now) {
    tcp->first++;
    tcp->n--;
    tcp->bits += PACKET * 8;
    tcp->window += 1 / tcp->window;
  }
  while ((double) tcp->n + 1 <= tcp->window && tcp->n < TCP_UNDER_WAY) {
    if (line_queue (&sim.line, PACKET, sim.now, &arrival)) {
      tcp->arrivals[(tcp->first + tcp->n++) % TCP_UNDER_WAY] = arrival;
      continue;
    }
    // One loss a round trip counts.
    if (sim.now - tcp->halved > 300 * MS) {
      tcp->window = tcp->window / 2 > 2 ? tcp->window / 2 : 2;
      tcp->halved = sim.now;
    }
    break;
  }
}

static void
note_wait (void)
{
  uint64_t bytes = 0;
  int64_t ms;

  for (size_t i = 0; i < UNDER_WAY; i++)
    bytes += sim.waiting[i].departure > sim.now ? sim.waiting[i].size : 0;
  ms = line_time (&sim.line, bytes) / MS;
  sim.waits[ms < WAITS ? ms : WAITS - 1]++;
}

static void
run (int64_t time)
{
  static WeirFeedback feedback;
  int64_t until = sim.now + time;

  for (; sim.now < until; sim.now += MS) {
    int64_t arrival;

    run_tcp ();
    if (sim.others > 0)
      line_queue (&sim.line, sim.others / 8000, sim.now, &arrival);
    for (size_t i = 0; i < sim.n; i++) {
      Reader *reader = &sim.readers[i];

      send_media (reader);
      send_probe (reader);
      if (line_feedback (&reader->told, sim.now, &feedback))
        weir_estimate_feedback (reader->estimate, &feedback, sim.now);
      if (sim.now / MS % 100 == (int64_t) i * 13 % 100)
        look (reader);
    }
    note_wait ();
  }
}

// Returns what packets waited for at most, in ms, in `part` of 1000 since the last call.
static unsigned
take_waits (unsigned part)
{
  uint64_t n = 0, seen = 0;
  unsigned ms = 0;

  for (size_t i = 0; i < WAITS; i++)
    n += sim.waits[i];
  for (; ms < WAITS && (seen += sim.waits[ms]) * 1000 < n * part; ms++)
    ;
  memset (sim.waits, 0, sizeof sim.waits);
  return ms;
}

// Returns when the reader is at a step of at least `step`, after `since`; at most 60 s.
static int64_t
time_to_reach (const Reader *reader, int step, int64_t since)
{
  while (reader->step < step && sim.now < since + 60 * SECOND)
    run (10 * MS);
  return sim.now - since;
}

static void
a_reader_follows_its_line (void)
{
  static const int64_t buffers[] = { 60 * MS, 150 * MS, 300 * MS, 1000 * MS };
  Reader *reader = &sim.readers[0];
  int64_t slowest_down = 0, slowest_up = 0, slowest_top = 0;
  uint64_t n_lost = 0;

  for (int i = 0; i < 40; i++) {
    int64_t at, time;
    int low;

    begin (&layered, 5000000, (unsigned) i);
    sim.line.buffer = buffers[i % 4];
    add_reader ();
    // The keyframes come at another time in each round.
    run (20 * SECOND + i * 130 * MS);
    CHECK_INT (reader->step, top ());
    CHECK_INT (reader->lost, 0);

    at = sim.now;
    sim.line.rate = 600000;
    while (reader->step > 4 && sim.now < at + 60 * SECOND)
      run (10 * MS);
    slowest_down = sim.now - at > slowest_down ? sim.now - at : slowest_down;
    run (at + 2 * SECOND - sim.now);
    reader->lost = 0;
    run (18 * SECOND);
    // Short queues lose packets of a probe.
    n_lost += sim.line.buffer >= 300 * MS ? reader->lost : 0;
    low = reader->step;
    CHECK (low == 3 || low == 4);

    at = sim.now;
    sim.line.rate = 5000000;
    time = time_to_reach (reader, low + 1, at);
    slowest_up = time > slowest_up ? time : slowest_up;
    time = time_to_reach (reader, top (), at);
    slowest_top = time > slowest_top ? time : slowest_top;
    end ();
  }
  printf ("# at most: down %.1f s, a step up %.1f s, at the top %.1f s; %llu packets lost\n",
      (double) slowest_down / 1e9, (double) slowest_up / 1e9, (double) slowest_top / 1e9,
      (unsigned long long) n_lost);
  CHECK (slowest_down <= SECOND);
  CHECK (slowest_up <= 5 * SECOND);
  CHECK (slowest_top <= 15 * SECOND);
  CHECK_INT (n_lost, 0);
}

static void
random_loss_leaves_a_reader_at_the_top (void)
{
  begin (&layered, 20000000, 1);
  sim.line.loss = 20;
  add_reader ();
  run (120 * SECOND);
  CHECK_INT (sim.readers[0].step, top ());
  CHECK_INT (sim.readers[0].changed, START);
  end ();
}

static void
two_readers_share_a_line (void)
{
  double worst = 1;

  for (unsigned seed = 0; seed < 20; seed++) {
    uint64_t before[2];
    double ratio;

    begin (&layered, 2600000, seed);
    add_reader ();
    run (30 * SECOND);
    add_reader ();
    run (20 * SECOND);
    for (int i = 0; i < 2; i++)
      before[i] = sim.readers[i].bytes * 8;
    run (30 * SECOND);
    ratio = (double) (sim.readers[0].bytes * 8 - before[0])
            / (double) (sim.readers[1].bytes * 8 - before[1]);
    ratio = ratio < 1 ? 1 / ratio : ratio;
    worst = ratio > worst ? ratio : worst;
    end ();
  }
  printf ("# one has at most %.2f times as much\n", worst);
  CHECK (worst < 1.5);
}

static void
many_readers_share_a_line (void)
{
  uint64_t bits = 0, lost = 0, sent = 0, before = 0;
  int low, high = 0;

  begin (&layered, READERS * 2900000 * 6 / 10, 5);
  while (sim.n < READERS)
    add_reader ();
  low = top ();
  run (20 * SECOND);
  for (size_t i = 0; i < sim.n; i++) {
    before += sim.readers[i].bytes * 8;
    sim.readers[i].lost = sim.readers[i].sent = 0;
  }
  run (30 * SECOND);
  for (size_t i = 0; i < sim.n; i++) {
    const Reader *reader = &sim.readers[i];

    bits += reader->bytes * 8;
    lost += reader->lost;
    sent += reader->sent;
    low = reader->step < low ? reader->step : low;
    high = reader->step > high ? reader->step : high;
  }
  printf ("# they use %.0f %%, lose %.2f %%, at steps %d to %d\n",
      (double) (bits - before) / 30 / (double) sim.line.rate * 100,
      (double) lost / (double) sent * 100, low, high);
  CHECK ((double) (bits - before) / 30 > (double) sim.line.rate * 0.85);
  CHECK (lost * 1000 < sent * 3);
  CHECK (low >= 4); // at least the middle spatial layer, so nobody is two apart
  end ();
}

// It gets its own stream and short probes, which are at most all that an honest reader gets.
static void
a_liar_takes_no_more_than_its_stream (void)
{
  Reader *reader = &sim.readers[0];
  uint64_t before;

  begin (&temporal, 5000000, 1);
  add_reader ();
  run (10 * SECOND);
  sim.line.rate = 600000;
  run (10 * SECOND);
  CHECK_INT (reader->step, 1);
  reader->lies = true;
  before = reader->sent;
  run (60 * SECOND);
  CHECK_INT (reader->step, top ());
  CHECK ((reader->sent - before) * PACKET * 8 < 60 * 4000000 * UINT64_C (11) / 10);
  end ();
}

// Another flow begins with a burst. The queue drains slowly, and the reader's own rate meanwhile
// does not say what the line carries.
static void
a_queue_that_drains_costs_one_fall (void)
{
  for (unsigned seed = 0; seed < 20; seed++) {
    int64_t until;

    begin (&temporal, 5000000, seed);
    sim.line.buffer = 400 * MS;
    add_reader ();
    run (15 * SECOND + seed * 170 * MS);
    sim.others = 10000000;
    run (300 * MS);
    sim.others = 4000000;
    for (until = sim.now + 10 * SECOND; sim.now < until;) {
      run (100 * MS);
      CHECK (sim.readers[0].step >= 1);
    }
    end ();
  }
}

// ---- beside TCP ----

static void
a_reader_shares_a_line_with_tcp (void)
{
  double least = 1, most = 0, sum = 0;

  for (unsigned seed = 1; seed <= 10; seed++) {
    uint64_t before;
    double share;

    begin (&layered, 4000000, seed);
    add_reader ();
    run (10 * SECOND);
    sim.tcp.window = 10;
    run (20 * SECOND);
    before = sim.readers[0].bytes;
    run (60 * SECOND);
    share = (double) (sim.readers[0].bytes - before) * 8 / 60 / (double) sim.line.rate;
    least = share < least ? share : least;
    most = share > most ? share : most;
    sum += share;
    end ();
  }
  printf ("# %.0f to %.0f %% of the line beside TCP, %.0f in the mean\n", least * 100, most * 100,
      sum * 10);
  CHECK (least > 0.2 && sum > 2.5 && most < 0.75);
}

// ---- a line that passes some packets at once ----

// As a token bucket does, so that it seems to carry more than it does.
static void
a_narrow_line_has_no_long_queue (void)
{
  Reader *reader = &sim.readers[0];
  unsigned worst = 0, sum = 0;
  int64_t slowest_up = 0, slowest_top = 0;

  for (unsigned seed = 0; seed < 20; seed++) {
    int64_t at, time;
    unsigned waits;
    int low;

    begin (&temporal, 5000000, seed);
    sim.line.burst = 8192;
    sim.line.buffer = 400 * MS;
    add_reader ();
    run (15 * SECOND + seed * 170 * MS);
    CHECK_INT (reader->step, top ());
    sim.line.rate = 600000;
    sim.line.buffer = 400 * MS + line_time (&sim.line, sim.line.burst);
    sim.line.free_at = sim.now + line_time (&sim.line, sim.line.burst);
    run (2 * SECOND);
    take_waits (0);
    reader->lost = 0;
    run (23 * SECOND);
    waits = take_waits (950);
    worst = waits > worst ? waits : worst;
    sum += waits;
    CHECK_INT (reader->lost, 0);
    low = reader->step;
    at = sim.now;
    sim.line.rate = 5000000;
    sim.line.buffer = 400 * MS;
    time = time_to_reach (reader, low + 1, at);
    slowest_up = time > slowest_up ? time : slowest_up;
    time = time_to_reach (reader, top (), at);
    slowest_top = time > slowest_top ? time : slowest_top;
    end ();
  }
  printf ("# waits of %u ms at p95, in the mean %u; a step up %.1f s, at the top %.1f s, at most\n",
      worst, sum / 20, (double) slowest_up / 1e9, (double) slowest_top / 1e9);
  CHECK (worst < 170 && sum / 20 < 120);
  CHECK (slowest_up < 6 * SECOND);
  CHECK (slowest_top < 15 * SECOND);
}

int
main (void)
{
  RUN (a_reader_follows_its_line);
  RUN (random_loss_leaves_a_reader_at_the_top);
  RUN (two_readers_share_a_line);
  RUN (many_readers_share_a_line);
  RUN (a_queue_that_drains_costs_one_fall);
  RUN (a_liar_takes_no_more_than_its_stream);
  RUN (a_reader_shares_a_line_with_tcp);
  RUN (a_narrow_line_has_no_long_queue);
  return tap_done ();
}
