// SPDX-License-Identifier: LGPL-2.1-or-later
#include "relay/tape_player.h"

#include "base/clock.h"
#include "relay/tape_private.h"

#define LOOPS_MAX 4
#define TOGETHER (100 * (gint64) GST_MSECOND) // the answer to PLAY names packets of all tracks
#define BATCH 64 // packets that a player pushes before others have their turn

struct _TapePlayer {
  LoopWatch watch; // first
  Loop *loop;
  gatomicrefcount refs;
  Relay *relay;
  RelaySource *source;
  guint n_tracks;
  // The loop's thread only.
  gint64 delay; // from a packet's arrival to its playing, ns
  gboolean runs;
  gint64 run_time;                  // where the run begins, ns of the tape
  guint64 bases[RELAY_MAX_TRACKS];  // RTP timestamps of that, or RELAY_NO_BASE
  WeirNtpMap ntp[RELAY_MAX_TRACKS]; // that the relay knows
  GMutex lock;                      // protects the fields below
  void (*ended) (gpointer owner);   // NULL once it is stopped
  gpointer owner;
  Tape *tape;      // or NULL; written by the loop's thread
  gint64 position; // of the next packet; written by the loop's thread
  gint64 time;     // of the last packet, or of the first one of the run; ns of the tape
  TapeResult result;
  gboolean at_end;
};

static Loop *
get_loop (GError **error)
{
  static GMutex lock;
  static Loop *loops[LOOPS_MAX];
  static guint n;
  static const LoopSettings settings = { .name = "title-replay" };
  guint i;
  Loop *loop;

  g_mutex_lock (&lock);
  i = n++ % MIN (g_get_num_processors (), LOOPS_MAX);
  if (!loops[i])
    loops[i] = loop_new (&settings, error);
  loop = loops[i];
  g_mutex_unlock (&lock);
  return loop;
}

// ---- playing; the loop's thread ----

// Returns the RTP timestamp of a track at the beginning of the run. The tape knows it from the
// track's first packet on.
static guint64
find_base (TapePlayer *self, guint index)
{
  TapeTrack track;

  if (self->bases[index] == RELAY_NO_BASE) {
    track = tape_get_track (self->tape, index);
    if (track.base != RELAY_NO_BASE)
      self->bases[index] =
          (guint32) (track.base + (guint64) (self->run_time / GST_SECOND * track.rate)
                     + (guint64) (self->run_time % GST_SECOND * track.rate / GST_SECOND));
  }
  return self->bases[index];
}

static void
push (TapePlayer *self, const TapeItem *items, guint n)
{
  guint32 tracks = 0;

  for (guint i = 0; i < n; i++) {
    guint track = items[i].track;

    relay_push_more (self->source, track, items[i].buffer, clock_now (), find_base (self, track));
    tracks |= 1u << track;
  }
  for (guint i = 0; self->runs && i < self->n_tracks; i++) {
    if (tracks & 1u << i)
      relay_settle (self->source, i);
  }
}

static void
set_position (TapePlayer *self, gint64 position, gint64 time)
{
  g_mutex_lock (&self->lock);
  self->position = position;
  self->time = time;
  g_mutex_unlock (&self->lock);
}

static void
tell_end (TapePlayer *self)
{
  self->runs = FALSE;
  g_mutex_lock (&self->lock);
  self->at_end = TRUE;
  if (self->ended)
    self->ended (self->owner);
  g_mutex_unlock (&self->lock);
}

static void
pass_ntp (TapePlayer *self)
{
  for (guint i = 0; i < self->n_tracks; i++) {
    WeirNtpMap map = tape_get_track (self->tape, i).ntp;

    if (!map.known || (self->ntp[i].ntp == map.ntp && self->ntp[i].timestamp == map.timestamp))
      continue;
    self->ntp[i] = map;
    relay_set_ntp_map (self->source, i, &map);
  }
}

static void
on_due (LoopWatch *watch, gint64 now)
{
  TapePlayer *self = (TapePlayer *) watch;
  gint64 position = self->position, next;
  TapeItem items[BATCH];
  guint n;

  if (!self->runs)
    return;
  n = tape_read (self->tape, watch, &position, now - self->delay, items, BATCH, &next);
  if (n > 0) {
    gint64 time = items[n - 1].time;

    push (self, items, n);
    set_position (self, position, time);
    pass_ntp (self);
  }
  if (next == -1)
    tell_end (self);
  else if (next != G_MAXINT64)
    loop_set_due (watch, next + self->delay);
}

static void
on_left (LoopWatch *watch)
{
  TapePlayer *self = (TapePlayer *) watch;

  self->runs = FALSE;
  if (self->tape)
    tape_forget (self->tape, watch);
  relay_source_end (self->source);
  tape_player_unref (self);
}

// ---- beginning a run; the loop's thread ----

typedef struct {
  TapePlayer *player;
  Tape *tape; // or NULL
  void (*done) (gpointer data);
  gpointer data;
} Command;

static void
stop_here (TapePlayer *self)
{
  self->runs = FALSE;
  loop_set_due (&self->watch, LOOP_NEVER);
  if (self->tape)
    tape_forget (self->tape, &self->watch);
  // What waits of a run that never went on is dropped with the relay's next run.
  for (guint i = 0; i < self->n_tracks; i++)
    relay_settle (self->source, i);
}

static void
put_in (TapePlayer *self, Tape *tape)
{
  Tape *old;

  g_mutex_lock (&self->lock);
  old = self->tape;
  self->tape = tape_ref (tape);
  self->position = self->time = 0;
  g_mutex_unlock (&self->lock);
  g_clear_pointer (&old, tape_unref);
}

// Has the relay take the packets that follow as a run that begins at `time` of the tape.
static TapeResult
begin_run (TapePlayer *self, gint64 time)
{
  GPtrArray *caps = tape_dup_caps (self->tape);
  RelayTracks tracks = caps ? relay_source_begin (self->source, caps) : RELAY_TRACKS_CHANGED;

  g_clear_pointer (&caps, g_ptr_array_unref);
  if (tracks == RELAY_TRACKS_CHANGED)
    return TAPE_CHANGED;
  for (guint i = 0; i < self->n_tracks; i++) {
    self->ntp[i] = (WeirNtpMap) { 0 };
    self->bases[i] = RELAY_NO_BASE;
  }
  self->run_time = time;
  return TAPE_PLAYS;
}

// Returns when the packet came with which each track has one, if that was soon after the first one.
static gint64
find_first_end (TapePlayer *self, const TapeItem *first)
{
  guint32 missing = (1u << self->n_tracks) - 1;
  TapeItem item;

  for (guint i = 0; i < BATCH && tape_peek (self->tape, self->position + i, &item)
                    && item.now - first->now < TOGETHER;
      i++) {
    missing &= ~(1u << item.track);
    if (!missing)
      return item.now;
  }
  return first->now;
}

// Pushes the first packets of each track. They wait in the relay.
static void
push_first (TapePlayer *self, const TapeItem *first)
{
  gint64 position = self->position, end = find_first_end (self, first), next;
  TapeItem items[BATCH];
  guint n = tape_read (self->tape, &self->watch, &position, end, items, BATCH, &next);

  tape_forget (self->tape, &self->watch);
  push (self, items, n);
  set_position (self, position, first->time);
  pass_ntp (self);
}

static TapeResult
begin_here (TapePlayer *self, Tape *tape)
{
  TapeItem first;
  TapeResult result;
  gboolean any;

  if (tape)
    put_in (self, tape);
  if (!self->tape || !tape_holds (self->tape, self->position))
    return TAPE_GONE;
  any = tape_peek (self->tape, self->position, &first);
  result = begin_run (self, any ? first.time : self->time);
  self->delay = any ? clock_now () - first.now : 0;
  if (result == TAPE_PLAYS && any)
    push_first (self, &first);
  return result;
}

static void
begin (gpointer data)
{
  Command *command = data;
  TapePlayer *self = command->player;
  TapeResult result;

  stop_here (self);
  result = begin_here (self, command->tape);
  g_mutex_lock (&self->lock);
  self->at_end = FALSE;
  self->result = result;
  g_mutex_unlock (&self->lock);
  command->done (command->data);
  g_clear_pointer (&command->tape, tape_unref);
  tape_player_unref (self);
  g_free (command);
}

static void
pause_here (gpointer data)
{
  Command *command = data;

  stop_here (command->player);
  command->done (command->data);
  tape_player_unref (command->player);
  g_free (command);
}

static void
go (gpointer data)
{
  TapePlayer *self = data;

  g_mutex_lock (&self->lock);
  self->runs = self->ended && self->tape && self->result == TAPE_PLAYS;
  g_mutex_unlock (&self->lock);
  for (guint i = 0; self->runs && i < self->n_tracks; i++)
    relay_settle (self->source, i);
  loop_set_due (&self->watch, 0);
  tape_player_unref (self);
}

// ---- control ----

void
tape_player_begin (TapePlayer *self, Tape *tape, void (*done) (gpointer data), gpointer data)
{
  Command *command = g_new (Command, 1);

  *command = (Command) { tape_player_ref (self), tape ? tape_ref (tape) : NULL, done, data };
  loop_post (self->loop, begin, command);
}

TapeResult
tape_player_get_result (TapePlayer *self)
{
  TapeResult result;

  g_mutex_lock (&self->lock);
  result = self->result;
  g_mutex_unlock (&self->lock);
  return result;
}

void
tape_player_go (TapePlayer *self)
{
  loop_post (self->loop, go, tape_player_ref (self));
}

void
tape_player_pause (TapePlayer *self, void (*done) (gpointer data), gpointer data)
{
  Command *command = g_new (Command, 1);

  *command = (Command) { tape_player_ref (self), NULL, done, data };
  loop_post (self->loop, pause_here, command);
}

gint64
tape_player_get_position (TapePlayer *self)
{
  gint64 at = 0;
  TitlePlace place;

  g_mutex_lock (&self->lock);
  if (self->tape && tape_get_place (self->tape, &place))
    at = CLAMP (MAX (place.from, 0) + self->time, place.start, place.end);
  g_mutex_unlock (&self->lock);
  return at;
}

gboolean
tape_player_is_at_end (TapePlayer *self)
{
  gboolean is;

  g_mutex_lock (&self->lock);
  is = self->at_end;
  g_mutex_unlock (&self->lock);
  return is;
}

TapePlayer *
tape_player_new (
    Relay *relay, Tape *tape, void (*ended) (gpointer owner), gpointer owner, GError **error)
{
  static const LoopOps ops = { .due = on_due, .left = on_left };
  Loop *loop = get_loop (error);
  GPtrArray *caps = tape_dup_caps (tape);
  TapePlayer *self;

  if (!loop || !caps) {
    g_clear_pointer (&caps, g_ptr_array_unref);
    return NULL;
  }
  self = g_new0 (TapePlayer, 1);
  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->loop = loop;
  self->relay = relay_ref (relay);
  self->source = relay_source_new (relay, NULL, NULL);
  self->tape = tape_ref (tape);
  self->n_tracks = MIN (caps->len, RELAY_MAX_TRACKS);
  self->ended = ended;
  self->owner = owner;
  relay_source_begin (self->source, caps);
  g_ptr_array_unref (caps);
  loop_join (loop, &self->watch, &ops);
  tape_player_ref (self); // until it has left
  return self;
}

TapePlayer *
tape_player_ref (TapePlayer *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
tape_player_unref (TapePlayer *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_clear_pointer (&self->tape, tape_unref);
  relay_source_unref (self->source);
  relay_unref (self->relay);
  g_mutex_clear (&self->lock);
  g_free (self);
}

void
tape_player_stop (TapePlayer *self)
{
  g_mutex_lock (&self->lock);
  self->ended = NULL;
  g_mutex_unlock (&self->lock);
  loop_leave (&self->watch);
}
