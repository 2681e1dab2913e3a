// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests the controllers of readers' layers: tables of single reports, and simulated lines in steps
// of 100 ms, shared by one reader or many.
#include "svc/adapt.h"

#include "packets.h"
#include "tap.h"

#define S INT64_C (1000000000)
#define TICK (S / 10)
#define REPORT (5 * S)
#define SWITCH (1 * S) // time from a choice to the next IDR, where it takes effect
#define READERS_MAX 160
#define PACKET_BYTES 1000

// Approximate bitrates of a stream with 3 x 3 layers.
static const WeirAdaptStep ladder[] = {
  { { 0, 0, 0 }, 90e3 },
  { { 0, 1, 0 }, 160e3 },
  { { 0, 2, 0 }, 220e3 },
  { { 1, 0, 0 }, 370e3 },
  { { 1, 1, 0 }, 620e3 },
  { { 1, 2, 0 }, 880e3 },
  { { 2, 0, 0 }, 1200e3 },
  { { 2, 1, 0 }, 2050e3 },
  { { 2, 2, 0 }, 2900e3 },
};
#define STEPS (sizeof ladder / sizeof *ladder)

static int
step_of (WeirLayerSet set)
{
  for (size_t i = 0; i < STEPS; i++) {
    if (weir_layer_set_equal (ladder[i].set, set))
      return (int) i;
  }
  return STEPS - 1;
}

// ---- single reports ----

typedef struct {
  int from;
  double sent, loss; // bits per second; a fraction
  int to;
} Case;

static WeirAdaptReport
make_report (double sent, double loss)
{
  double packets = sent * 5 / 8 / PACKET_BYTES;

  return (WeirAdaptReport) { .bytes = (uint64_t) (sent * 5 / 8),
    .packets = (uint64_t) packets,
    .lost = (uint64_t) (packets * loss) };
}

static void
check_cases (WeirAdaptPolicy policy, const Case *cases, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    WeirAdaptReport report = make_report (cases[i].sent, cases[i].loss);
    WeirAdapt adapt;

    weir_adapt_init (&adapt, policy, ladder[cases[i].from].set, 1);
    weir_adapt_report (&adapt, S, &report, ladder, STEPS);
    CHECK_INT (
        step_of (weir_adapt_report (&adapt, S + REPORT, &report, ladder, STEPS)), cases[i].to);
  }
}

static void
aimd_goes_down_by_half_the_loss (void)
{
  static const Case cases[] = {
    { 8, 2900e3, 0, 8 }, { 8, 2900e3, 0.05, 8 }, // loss between the limits: it waits
    { 8, 2900e3, 0.11, 7 },                      // half the loss leaves 2740 kb/s
    { 6, 1200e3, 0.12, 5 },                      // 1128 kb/s
    { 8, 2900e3, 0.30, 7 },                      // 2465 kb/s
    { 8, 2900e3, 0.76, 4 },                      // 696 kb/s arrived
    { 1, 160e3, 0.95, 0 },                       // no lower step
    { 0, 90e3, 0.95, 0 },                        //
    { 4, 2900e3, 0.12, 4 }, // more was sent than the step needs: it does not go up
  };

  check_cases (WEIR_ADAPT_AIMD, cases, sizeof cases / sizeof *cases);
}

static void
bandwidth_chooses_the_first_set_above_the_rate_that_arrived (void)
{
  static const Case cases[] = {
    { 8, 2900e3, 0, 8 }, { 8, 2900e3, 0.76, 7 }, // one step per report
    { 6, 1200e3, 0.42, 5 },                      // 696 kb/s arrived: the next step above has 880
    { 5, 880e3, 0.20, 5 },                       //
    { 4, 620e3, 0, 5 },                          // it goes up to probe
  };

  check_cases (WEIR_ADAPT_BANDWIDTH, cases, sizeof cases / sizeof *cases);
}

static void
fixed_never_changes (void)
{
  static const Case cases[] = { { 8, 2900e3, 0.9, 8 }, { 0, 90e3, 0, 0 } };

  check_cases (WEIR_ADAPT_FIXED, cases, sizeof cases / sizeof *cases);
}

static void
a_lag_counts_as_loss (void)
{
  static const struct {
    int from;
    double sent;
    int64_t lag_ms;
    int to;
  } cases[] = {
    { 8, 2900e3, 0, 8 }, { 8, 2900e3, 99, 8 }, { 8, 2900e3, 100, 8 }, // some lag: it waits
    { 8, 2900e3, 300, 7 },                                            // much lag
    { 8, 700e3, 900, 4 },                                             // the line carries 700
    { 8, 0, 4000, 0 },                                                // nothing was sent
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    WeirAdaptReport report = make_report (cases[i].sent, 0);
    WeirAdapt adapt;

    report.lags = true;
    report.lag_ns = cases[i].lag_ms * 1000000;
    report.lost = report.packets; // is ignored over TCP
    weir_adapt_init (&adapt, WEIR_ADAPT_AIMD, ladder[cases[i].from].set, 1);
    weir_adapt_report (&adapt, S, &report, ladder, STEPS);
    CHECK_INT (
        step_of (weir_adapt_report (&adapt, S + REPORT, &report, ladder, STEPS)), cases[i].to);
  }
}

static void
implausible_reports_change_nothing (void)
{
  const WeirAdaptReport lossy = make_report (2900e3, 0.5), nothing = { .lost = 100 };
  WeirAdapt adapt;

  weir_adapt_init (&adapt, WEIR_ADAPT_AIMD, WEIR_LAYER_SET_ALL, 0);
  CHECK_INT (step_of (weir_adapt_report (&adapt, S, &lossy, ladder, STEPS)), 8);
  CHECK_INT (step_of (weir_adapt_report (&adapt, S, &lossy, ladder, STEPS)), 8); // no time passed
  CHECK_INT (step_of (weir_adapt_report (&adapt, 0, &lossy, ladder, STEPS)), 8); // time went back
  CHECK_INT (step_of (weir_adapt_report (&adapt, 2 * S, &nothing, ladder, STEPS)), 8);
  CHECK_INT (step_of (weir_adapt_report (&adapt, 3 * S, &lossy, ladder, 0)), 8);
  CHECK_INT (step_of (weir_adapt_report (&adapt, 4 * S, &lossy, ladder, 1)), 0);
}

static void
the_ladder_has_one_set_for_each_bitrate (void)
{
  WeirAdaptStep steps[WEIR_ADAPT_STEPS];
  WeirRates rates = { 0 };

  for (int i = 0; i < 9; i++)
    rates.layers[rates.n++] = (WeirLayerRate) {
      .spatial = (uint8_t) (i / 3), .temporal = (uint8_t) (i % 3), .bitrate = 100e3 * (i / 3 + 1)
    };
  // Two of the nine sets have the same bitrate as another set.
  CHECK_INT (weir_adapt_ladder (&rates, WEIR_LAYER_SET_ALL, steps), 7);
  for (int i = 1; i < 7; i++)
    CHECK (steps[i].bitrate > steps[i - 1].bitrate);
  CHECK_INT (steps[6].bitrate, 1800e3);
  CHECK_INT (steps[6].set.spatial, 2);
  CHECK_INT (steps[6].set.temporal, 2);
  CHECK_INT (weir_adapt_ladder (&rates, (WeirLayerSet) { 1, 0, -1 }, steps), 2);
  CHECK_INT (steps[1].set.spatial, 1);
  CHECK_INT (steps[1].set.temporal, 0);
  rates.n = 0;
  CHECK_INT (weir_adapt_ladder (&rates, WEIR_LAYER_SET_ALL, steps), 0);
}

// ---- simulated lines ----

typedef struct {
  WeirAdapt adapt;
  int wanted, sent; // steps
  int64_t switch_ns, report_ns;
  double bits, lost; // since the last report
  double queue;      // over TCP: waiting bits
  unsigned n_changes, n_reports;
} Reader;

static Reader readers[READERS_MAX];
static size_t n_readers;
static bool tcp;
static int64_t now;

static void
begin (WeirAdaptPolicy policy, size_t n)
{
  n_readers = n;
  now = 0;
  for (size_t i = 0; i < n; i++) {
    readers[i] = (Reader) { .wanted = STEPS - 1, .sent = STEPS - 1 };
    readers[i].report_ns = (int64_t) random_below (REPORT);
    weir_adapt_init (
        &readers[i].adapt, policy, ladder[STEPS - 1].set, (uint32_t) random_below (UINT32_MAX));
  }
}

static double
sum_of_rates (void)
{
  double sum = 0;

  for (size_t i = 0; i < n_readers; i++)
    sum += ladder[readers[i].sent].bitrate;
  return sum;
}

static void
report (Reader *reader)
{
  WeirAdaptReport report = { .bytes = (uint64_t) (reader->bits / 8),
    .packets = (uint64_t) (reader->bits / 8 / PACKET_BYTES),
    .lost = (uint64_t) (reader->lost / 8 / PACKET_BYTES),
    .lags = tcp,
    .lag_ns = (int64_t) (reader->queue / ladder[reader->sent].bitrate * 1e9) };
  int wanted = step_of (weir_adapt_report (&reader->adapt, now, &report, ladder, STEPS));

  reader->n_changes += wanted != reader->wanted;
  reader->n_reports++;
  if (wanted != reader->wanted)
    reader->switch_ns = now + SWITCH;
  reader->wanted = wanted;
  reader->report_ns = now + REPORT;
  reader->bits = reader->lost = 0;
}

// Over UDP the excess is lost, in equal shares. Over TCP it waits; when half a second of it waits,
// the reader is thinned.
static void
tick (double line)
{
  double sum = sum_of_rates (), loss = sum > line ? 1 - line / sum : 0;

  for (size_t i = 0; i < n_readers; i++) {
    Reader *reader = &readers[i];
    double rate = ladder[reader->sent].bitrate, most = rate / 2;

    if (!tcp) {
      reader->bits += rate / 10;
      reader->lost += rate / 10 * loss;
    } else {
      double in = reader->queue + rate / 10, share = line / (double) n_readers / 10;
      double out = in < share ? in : share;

      reader->bits += out;
      reader->queue = in - out < most ? in - out : most;
    }
    if (now >= reader->switch_ns)
      reader->sent = reader->wanted;
    if (now >= reader->report_ns)
      report (reader);
  }
  now += TICK;
}

static void
run (int64_t time, double line)
{
  for (int64_t end = now + time; now < end;)
    tick (line);
}

// A line of 3 Mb/s drops to 700 kb/s.
static void
follow_a_cut (void)
{
  for (int i = 0; i < 100; i++) {
    double window[150] = { 0 }, sum = 0;
    unsigned n_reports;
    size_t at = 0;

    begin (WEIR_ADAPT_AIMD, 1);
    run (60 * S + (int64_t) random_below (REPORT), 3000e3);
    CHECK_INT (readers[0].sent, STEPS - 1);
    n_reports = readers[0].n_reports;
    while (readers[0].n_reports < n_reports + 3)
      tick (700e3);
    CHECK (ladder[readers[0].wanted].bitrate < 770e3);
    run (SWITCH + TICK, 700e3);
    // From now on, the mean over any 15 s fits.
    for (int k = 0; k < 3000; k++) {
      sum -= window[at];
      sum += window[at] = sum_of_rates ();
      at = (at + 1) % 150;
      CHECK (k < 150 || sum / 150 < 770e3);
      tick (700e3);
    }
    // The controller does not try the next step again and again.
    CHECK (readers[0].n_changes < 20);
    if (!tap_ok)
      return;
  }
}

static void
a_narrower_line_is_followed_within_three_reports (void)
{
  tcp = false;
  follow_a_cut ();
  tcp = true;
  follow_a_cut ();
  tcp = false;
}

static void
a_line_that_recovers_is_used_again (void)
{
  for (int i = 0; i < 20; i++) {
    begin (WEIR_ADAPT_AIMD, 1);
    run (60 * S, 3000e3);
    run (120 * S, 700e3);
    run (300 * S, 3000e3);
    CHECK_INT (readers[0].sent, STEPS - 1);
  }
}

static int
spatial_of (double bitrate)
{
  size_t at = 0;

  while (at + 1 < STEPS && ladder[at + 1].bitrate <= bitrate)
    at++;
  return ladder[at].set.spatial;
}

// Five minutes to settle, then ten minutes of measurement.
static void
share_a_line (size_t n, double part)
{
  const int n_ticks = 6000;
  double line = part * (double) n * ladder[STEPS - 1].bitrate, sum = 0, over = 0;
  double mean[READERS_MAX] = { 0 }, least, most;

  begin (WEIR_ADAPT_AIMD, n);
  run (300 * S, line);
  for (int k = 0; k < n_ticks; k++) {
    tick (line);
    sum += sum_of_rates () / n_ticks;
    over += sum_of_rates () > 1.1 * line;
    for (size_t i = 0; i < n; i++)
      mean[i] += ladder[readers[i].sent].bitrate / n_ticks;
  }
  least = most = mean[0];
  for (size_t i = 1; i < n; i++) {
    least = mean[i] < least ? mean[i] : least;
    most = mean[i] > most ? mean[i] : most;
  }
  printf ("# %zu readers, %.0f %% of the rate: %.1f %% of the line, %.1f %% of the time above "
          "110 %% of it; readers get %.0f to %.0f kb/s\n",
      n, 100 * part, 100 * sum / line, 100 * over / n_ticks, least / 1e3, most / 1e3);
  // The controller ignores a loss below 2 %.
  CHECK (sum <= 1.02 * line);
  CHECK (sum >= 0.6 * line);
  CHECK (over < 0.2 * n_ticks);
  if (n == READERS_MAX && part == 0.6)
    CHECK (spatial_of (most) - spatial_of (least) <= 1);
}

static void
readers_share_a_line_fairly (void)
{
  static const double parts[] = { 0.1, 0.25, 0.4, 0.6, 0.8 };

  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    share_a_line (2, parts[i]);
    share_a_line (20, parts[i]);
    share_a_line (160, parts[i]);
  }
}

int
main (void)
{
  random_state = 1; // the simulation is the same in each run
  RUN (aimd_goes_down_by_half_the_loss);
  RUN (bandwidth_chooses_the_first_set_above_the_rate_that_arrived);
  RUN (fixed_never_changes);
  RUN (a_lag_counts_as_loss);
  RUN (implausible_reports_change_nothing);
  RUN (the_ladder_has_one_set_for_each_bitrate);
  RUN (a_narrower_line_is_followed_within_three_reports);
  RUN (a_line_that_recovers_is_used_again);
  RUN (readers_share_a_line_fairly);
  return tap_done ();
}
