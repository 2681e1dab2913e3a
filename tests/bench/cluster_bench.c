// SPDX-License-Identifier: LGPL-2.1-or-later
// Simulates a cluster whose members place themselves by cluster/placement.h, for ./dev bench
// cluster.
//
// cluster_bench MEMBERS READERS STREAMS STAY SECONDS SEED
//   READERS choose a member evenly and a stream by Zipf's law, and stay for STAY s in the mean;
//   then another one comes. After SECONDS of that, a tenth of the members die at once. prints for
//   the steady state: the highest depth, the fan-out of the largest stream, the most children of a
//   member in a stream, the writes of streams' keys and all writes a second; after the deaths: the
//   highest depth, the most children when all is settled and in the meantime, writes, seconds to
//   the last write, and the readers that are not placed
//
// A member knows at once what another one has written. It sees that its parent is dead after 2 s,
// and that one it tries then is dead, 0.8 s later; all know after 7 s (the lease and etcd's time).

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/placement.h"

#define NONE WEIR_PLACEMENT_NONE
#define MS INT64_C (1000000)
#define STEP_MS 100
#define TICK_MS 500 // after which a member looks again
#define SILENCE_MS 2000
#define TRY_MS 800
#define LEASE_MS 7000
#define END_MS 20000
#define SUSPICION_NS (7000 * MS)

typedef struct {
  size_t n, n_places;
  size_t *members;                // numbers, in the order in which they asked
  WeirPlacementMember *placement; // of them
  WeirPlaced *placed;
  uint64_t hash;
} Stream;

typedef struct {
  size_t n_members, n_readers, n_streams;
  double stay_s;
  uint64_t *names; // hashes
  bool *dead;
  uint64_t *copies; // that a member sends to others
  uint32_t *counts; // readers of each stream on each member
  Stream *streams;
  double *weights; // sums of shares of the streams
  size_t *at;      // stream * n_members + member of each reader
  uint64_t writes;
  size_t depth, children;
  uint64_t random;
} Sim;

static uint64_t
draw (Sim *self)
{
  self->random = self->random * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
  return self->random >> 33;
}

static size_t
draw_stream (Sim *self)
{
  const double x = (double) draw (self) / (double) (UINT64_C (1) << 31);
  size_t low = 0, high = self->n_streams - 1;

  while (low < high) {
    const size_t middle = (low + high) / 2;

    if (self->weights[middle] > x)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// ---- the tree of a stream ----

static size_t
place (Sim *self, Stream *stream, int64_t now_ns)
{
  for (size_t i = 0; i < stream->n; i++)
    stream->placement[i].load = self->copies[stream->members[i]];
  return weir_placement_run (stream->placement, stream->n, weir_placement_fan_out (stream->n),
      stream->hash, now_ns, stream->placed);
}

static void
set_parent (Sim *self, Stream *stream, size_t i, size_t parent)
{
  const size_t before = stream->placement[i].parent;

  if (before == parent)
    return;
  if (before != NONE)
    self->copies[stream->members[before]]--;
  if (parent != NONE)
    self->copies[stream->members[parent]]++;
  stream->placement[i].parent = parent;
  self->writes += 2; // whom it is to read, and that its stream comes from there
}

// Takes over where all are placed. Returns how many have moved.
static size_t
settle (Sim *self, Stream *stream)
{
  size_t moved = 0;

  for (size_t i = 0; i < stream->n; i++) {
    if (stream->placed[i].depth > self->depth)
      self->depth = stream->placed[i].depth;
    if (stream->placed[i].children > self->children)
      self->children = stream->placed[i].children;
    moved += stream->placed[i].parent != stream->placement[i].parent;
    set_parent (self, stream, i, stream->placed[i].parent);
  }
  return moved;
}

static void
append (Sim *self, Stream *stream, size_t member)
{
  const size_t i = stream->n++;

  if (stream->n > stream->n_places) {
    stream->n_places = 2 * stream->n;
    stream->members = realloc (stream->members, stream->n_places * sizeof *stream->members);
    stream->placement = realloc (stream->placement, stream->n_places * sizeof *stream->placement);
    stream->placed = realloc (stream->placed, stream->n_places * sizeof *stream->placed);
  }
  stream->members[i] = member;
  stream->placement[i] = (WeirPlacementMember) { .name = self->names[member], .parent = NONE };
  if (i == 0)
    self->writes++; // it claims the stream
}

// Takes one out that nobody reads.
static void
cut (Sim *self, Stream *stream, size_t i)
{
  const size_t behind = stream->n - i - 1;

  if (stream->placement[i].parent != NONE)
    self->copies[stream->members[stream->placement[i].parent]]--;
  memmove (stream->members + i, stream->members + i + 1, behind * sizeof *stream->members);
  memmove (stream->placement + i, stream->placement + i + 1, behind * sizeof *stream->placement);
  stream->n--;
  for (size_t k = 0; k < stream->n; k++) {
    if (stream->placement[k].parent != NONE && stream->placement[k].parent > i)
      stream->placement[k].parent--;
  }
  self->writes++;
}

static bool
is_read (const Stream *stream, size_t i)
{
  for (size_t k = i + 1; k < stream->n; k++) {
    if (stream->placement[k].parent == i)
      return true;
  }
  return false;
}

static size_t
find (const Stream *stream, size_t member)
{
  for (size_t i = 0; i < stream->n; i++) {
    if (stream->members[i] == member)
      return i;
  }
  return NONE;
}

// A member leaves that has no readers and feeds nobody, and then its parent, if that is such a one.
static void
leave (Sim *self, Stream *stream, size_t number, size_t i)
{
  while (i != NONE && self->counts[number * self->n_members + stream->members[i]] == 0
         && !is_read (stream, i)) {
    const size_t parent = stream->placement[i].parent;

    cut (self, stream, i);
    i = parent;
  }
}

// ---- readers ----

static size_t
draw_member (Sim *self)
{
  size_t member;

  do
    member = draw (self) % self->n_members;
  while (self->dead[member]);
  return member;
}

static bool
join (Sim *self, size_t reader)
{
  const size_t number = draw_stream (self), member = draw_member (self);

  self->at[reader] = number * self->n_members + member;
  if (self->counts[self->at[reader]]++ > 0 || find (&self->streams[number], member) != NONE)
    return false;
  append (self, &self->streams[number], member);
  return true;
}

static void
zap (Sim *self, size_t reader)
{
  const size_t number = self->at[reader] / self->n_members;
  Stream *stream = &self->streams[number];

  if (--self->counts[self->at[reader]] == 0)
    leave (self, stream, number, find (stream, self->at[reader] % self->n_members));
  if (!join (self, reader))
    return;
  stream = &self->streams[self->at[reader] / self->n_members];
  place (self, stream, 0);
  settle (self, stream);
}

// ---- deaths ----

// What one member of a stream has seen.
typedef struct {
  int64_t looks_at; // ms; when it next sees whether its parent lives
  int64_t *gone;    // of each that it suspects, or NULL
} View;

// Returns the parent that a member chooses that suspects some others.
static size_t
choose (Sim *self, Stream *stream, const View *view, size_t i, int64_t now_ns)
{
  WeirPlacementMember *placement = stream->placement;
  size_t parent;

  stream->placement = malloc (stream->n * sizeof *placement);
  memcpy (stream->placement, placement, stream->n * sizeof *placement);
  for (size_t k = 0; k < stream->n; k++)
    stream->placement[k].gone_until = view->gone[k];
  place (self, stream, now_ns);
  parent = stream->placed[i].parent;
  free (stream->placement);
  stream->placement = placement;
  return parent;
}

static bool
is_dead (const Sim *self, const Stream *stream, size_t i)
{
  return i != NONE && self->dead[stream->members[i]];
}

// Suspects the parent of a member that has not answered, and chooses another one.
static bool
doubt (Sim *self, Stream *stream, View *view, size_t i, int64_t now_ms)
{
  const size_t parent = stream->placement[i].parent;
  size_t next;

  if (!view->gone)
    view->gone = calloc (stream->n, sizeof *view->gone);
  view->gone[parent] = now_ms * MS + SUSPICION_NS;
  next = choose (self, stream, view, i, now_ms * MS);
  view->looks_at = now_ms + TRY_MS;
  set_parent (self, stream, i, next);
  return true;
}

static size_t
find_most_children (const Sim *self, const Stream *stream)
{
  size_t *children = calloc (stream->n, sizeof *children), most = 0;

  for (size_t i = 0; i < stream->n; i++) {
    const size_t parent = stream->placement[i].parent;

    if (!is_dead (self, stream, i) && parent != NONE && ++children[parent] > most)
      most = children[parent];
  }
  free (children);
  return most;
}

// What those do who suspect nobody: who sees that its parent has too many goes elsewhere.
static bool
look_all (Sim *self, Stream *stream, const View *views, int64_t now_ms)
{
  bool moved = false;

  place (self, stream, now_ms * MS);
  for (size_t i = 0; i < stream->n; i++) {
    const bool own_view = views[i].gone && now_ms < LEASE_MS;

    if (is_dead (self, stream, i) || own_view
        || stream->placed[i].parent == stream->placement[i].parent)
      continue;
    set_parent (self, stream, i, stream->placed[i].parent);
    moved = true;
  }
  return moved;
}

static bool
step (Sim *self, Stream *stream, View *views, int64_t now_ms)
{
  bool moved = false;

  for (size_t i = 0; i < stream->n && now_ms < LEASE_MS; i++) {
    if (!is_dead (self, stream, i) && is_dead (self, stream, stream->placement[i].parent)
        && now_ms >= views[i].looks_at)
      moved |= doubt (self, stream, &views[i], i, now_ms);
  }
  if (now_ms % TICK_MS == 0)
    moved |= look_all (self, stream, views, now_ms);
  return moved;
}

// The members of a stream move after the deaths. Returns the time of the last move in ms.
static int64_t
recover (Sim *self, Stream *stream, size_t *most)
{
  View *views = calloc (stream->n, sizeof *views);
  int64_t last = 0;

  for (size_t i = 0; i < stream->n; i++)
    views[i].looks_at = SILENCE_MS + (int64_t) (draw (self) % TICK_MS);
  for (int64_t now_ms = SILENCE_MS; now_ms < END_MS; now_ms += STEP_MS) {
    for (size_t i = 0; now_ms == LEASE_MS && i < stream->n; i++)
      stream->placement[i].gone_until = is_dead (self, stream, i) ? INT64_MAX : 0;
    if (step (self, stream, views, now_ms))
      last = now_ms;
    if (find_most_children (self, stream) > *most)
      *most = find_most_children (self, stream);
  }
  for (size_t i = 0; i < stream->n; i++)
    free (views[i].gone);
  free (views);
  return last;
}

// The other streams: where their members are in the end.
static void
recover_at_once (Sim *self, Stream *stream)
{
  for (size_t i = 0; i < stream->n; i++)
    stream->placement[i].gone_until = is_dead (self, stream, i) ? INT64_MAX : 0;
  place (self, stream, 0);
  settle (self, stream);
}

static void
forget_dead (Sim *self, Stream *stream)
{
  for (size_t i = stream->n; i-- > 0;) {
    if (is_dead (self, stream, i)) {
      stream->placement[i].parent = NONE; // its copies count no more
      cut (self, stream, i);
    }
  }
}

static size_t
count_unplaced (Sim *self)
{
  size_t unplaced = 0;

  for (size_t number = 0; number < self->n_streams; number++) {
    Stream *stream = &self->streams[number];

    place (self, stream, 0);
    settle (self, stream);
    for (size_t i = 0; i < stream->n; i++) {
      if (i > 0 && stream->placed[i].parent == NONE)
        unplaced += self->counts[number * self->n_members + stream->members[i]];
    }
  }
  return unplaced;
}

// ---- the whole ----

static void
begin (Sim *self)
{
  double sum = 0;

  self->names = malloc (self->n_members * sizeof *self->names);
  self->dead = calloc (self->n_members, sizeof *self->dead);
  self->copies = calloc (self->n_members, sizeof *self->copies);
  self->counts = calloc (self->n_members * self->n_streams, sizeof *self->counts);
  self->streams = calloc (self->n_streams, sizeof *self->streams);
  self->weights = malloc (self->n_streams * sizeof *self->weights);
  self->at = malloc (self->n_readers * sizeof *self->at);
  for (size_t i = 0; i < self->n_members; i++) {
    char name[32];

    self->names[i] =
        weir_placement_hash (name, (size_t) snprintf (name, sizeof name, "hall-%zu", i));
  }
  for (size_t i = 0; i < self->n_streams; i++) {
    char path[32];

    self->streams[i].hash =
        weir_placement_hash (path, (size_t) snprintf (path, sizeof path, "/camera-%zu", i));
    sum += 1 / (double) (i + 1);
    self->weights[i] = sum;
  }
  for (size_t i = 0; i < self->n_streams; i++)
    self->weights[i] /= sum;
  for (size_t reader = 0; reader < self->n_readers; reader++)
    join (self, reader);
  for (size_t i = 0; i < self->n_streams; i++) {
    place (self, &self->streams[i], 0);
    settle (self, &self->streams[i]);
  }
}

static void
run_steadily (Sim *self, double seconds)
{
  const uint64_t zaps = (uint64_t) ((double) self->n_readers / self->stay_s * seconds);

  self->writes = 0;
  for (uint64_t i = 0; i < zaps; i++)
    zap (self, (draw (self) << 31 | draw (self)) % self->n_readers);
  printf ("%zu %zu %zu %g ", self->depth, weir_placement_fan_out (self->streams[0].n),
      self->children, (double) self->writes / seconds);
}

static void
let_die (Sim *self)
{
  size_t meanwhile = 0, unplaced;
  int64_t last;

  for (size_t i = 0; i < self->n_members / 10; i++)
    self->dead[draw_member (self)] = true;
  self->writes = self->n_members / 10; // their entries are deleted
  self->depth = self->children = 0;
  last = recover (self, &self->streams[0], &meanwhile);
  for (size_t i = 0; i < self->n_streams; i++) {
    if (i > 0)
      recover_at_once (self, &self->streams[i]);
    forget_dead (self, &self->streams[i]);
  }
  for (size_t reader = 0; reader < self->n_readers; reader++) {
    if (self->dead[self->at[reader] % self->n_members])
      join (self, reader);
  }
  unplaced = count_unplaced (self);
  printf ("%zu %zu %zu %llu %g %zu\n", self->depth, self->children, meanwhile,
      (unsigned long long) self->writes, (double) last / 1000, unplaced);
}

int
main (int argc, char **argv)
{
  Sim sim = { 0 };

  if (argc != 7)
    return 2;
  sim.n_members = (size_t) atol (argv[1]);
  sim.n_readers = (size_t) atol (argv[2]);
  sim.n_streams = (size_t) atol (argv[3]);
  sim.stay_s = atof (argv[4]);
  sim.random = (uint64_t) atol (argv[6]);
  begin (&sim);
  run_steadily (&sim, atof (argv[5]));
  let_die (&sim);
  return 0;
}
