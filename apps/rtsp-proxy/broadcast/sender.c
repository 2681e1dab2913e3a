// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broadcast/sender.h"

#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/threads.h"
#include "schedule/work.h"

#define AHEAD_NS ((gint64) 1500 * 1000000) // blocks are read so long before their frames are due
#define AHEAD_ROUND_NS ((gint64) 100 * 1000000)
#define LATE_NS ((gint64) 1000000)         // a frame that leaves later is late
#define MISSED_NS ((gint64) GST_SECOND)    // a frame that would leave later is left out
#define RETRY_NS ((gint64) 500000)         // for a block or a channel that is not there yet
#define IDLE_NS ((gint64) 10 * 1000000000) // a channel without frames is closed
#define BLOCKS_MAX 8                       // read ahead for a group
#define SLACK_NS 1000                      // of the thread's timers

// Frames that wait to be sent.
typedef struct {
  guint32 from, to;
  gint64 at_ns; // of the first
} Range;

// A group. Of the sender's thread, except where it says so.
typedef struct {
  guint group;
  PacketFile *file;
  GQueue ranges; // of Range
  GQueue blocks; // of PacketBlock, in the order in which they are needed
  gint64 used_ns;
  gboolean opened;  // the channel is open or being opened, or that has failed
  Channel *channel; // with the lock; NULL: not open
  gboolean failed;  // with the lock: the channel could not be opened
} Output;

struct _Sender {
  BlockCache *cache;
  const SenderOwner *functions;
  gpointer owner;
  GThread *thread;
  GThreadPool *opener; // opens and closes channels, one at a time
  LogLimit failures;
  // Of the sender's thread:
  GHashTable *by_group;
  GPtrArray *outputs;
  guint64 round;
  SenderStats counts;

  GMutex lock; // protects the fields below
  GCond changed;
  gboolean stopped;
  gboolean woken; // the owner has added frames that are due soon
  SenderStats stats;
};

struct _SenderRound {
  Sender *sender;
  gboolean ahead; // the frames are due in AHEAD_NS
  gint64 now_ns;
};

// ---- opening and closing channels ----

typedef struct {
  Output *output;   // open its channel; NULL: close `channel`
  PacketFile *file; // for which
  Channel *channel;
} Opening;

static void
open_channel (Sender *self, Output *output, PacketFile *file)
{
  MulticastAddress address = { 0 };
  GError *error = NULL;
  Channel *channel;

  self->functions->address (self->owner, output->group, &address);
  channel = channel_new (&address, file, &error);
  if (!channel) {
    log_event_limited (&self->failures, "cannot send to %s: %s", address.group, error->message);
    g_error_free (error);
  }
  g_mutex_lock (&self->lock);
  output->channel = channel;
  output->failed = !channel;
  g_mutex_unlock (&self->lock);
}

static void
do_opening (gpointer data, gpointer sender)
{
  Opening *opening = data;

  thread_set_name ("broadcast-open");
  if (opening->output)
    open_channel (sender, opening->output, opening->file);
  channel_free (opening->channel);
  packet_file_unref (opening->file);
  g_free (opening);
  thread_set_name (THREAD_IDLE);
}

static void
push_opening (Sender *self, Output *output, PacketFile *file, Channel *channel)
{
  Opening *opening = g_new (Opening, 1);

  *opening = (Opening) { output, packet_file_ref (file), channel };
  g_thread_pool_push (self->opener, opening, NULL);
}

// Opens the channel again if that has failed.
static void
retry_opening (Sender *self, Output *output)
{
  gboolean failed;

  g_mutex_lock (&self->lock);
  failed = output->failed;
  output->failed = FALSE;
  g_mutex_unlock (&self->lock);
  if (failed)
    push_opening (self, output, output->file, NULL);
}

static Channel *
get_channel (Sender *self, Output *output)
{
  Channel *channel;

  g_mutex_lock (&self->lock);
  channel = output->channel;
  g_mutex_unlock (&self->lock);
  return channel;
}

// ---- groups ----

static Output *
get_output (Sender *self, guint group)
{
  Output *output = g_hash_table_lookup (self->by_group, GUINT_TO_POINTER (group));

  if (!output) {
    output = g_new0 (Output, 1);
    output->group = group;
    g_queue_init (&output->ranges);
    g_queue_init (&output->blocks);
    g_hash_table_insert (self->by_group, GUINT_TO_POINTER (group), output);
    g_ptr_array_add (self->outputs, output);
  }
  return output;
}

static void
forget_blocks (Output *self)
{
  g_queue_clear_full (&self->blocks, (GDestroyNotify) packet_block_unref);
}

// Ends what the group sends. Returns FALSE if its channel is being opened.
static gboolean
clear_output (Sender *sender, Output *self)
{
  Channel *channel;
  gboolean failed;

  if (!self->file)
    return TRUE;
  g_mutex_lock (&sender->lock);
  channel = g_steal_pointer (&self->channel);
  failed = self->failed;
  self->failed = FALSE;
  g_mutex_unlock (&sender->lock);
  if (self->opened && !channel && !failed)
    return FALSE;
  if (channel)
    push_opening (sender, NULL, self->file, channel);
  self->opened = FALSE;
  g_queue_clear_full (&self->ranges, g_free);
  forget_blocks (self);
  g_clear_pointer (&self->file, packet_file_unref);
  return TRUE;
}

// Makes the group send `file`. Returns FALSE if that is not possible yet.
static gboolean
use_output (SenderRound *round, Output *self, PacketFile *file)
{
  const gboolean in_use = round->now_ns - self->used_ns < AHEAD_NS;

  if (self->file != file) {
    if ((round->ahead && self->file && in_use) || !clear_output (round->sender, self))
      return FALSE;
    self->file = packet_file_ref (file);
  }
  self->used_ns = round->now_ns;
  if (!self->opened) {
    self->opened = TRUE;
    push_opening (round->sender, self, file, NULL);
  }
  return TRUE;
}

static gint
is_other (gconstpointer block, gconstpointer number)
{
  return packet_block_number (block) != *(const guint32 *) number;
}

static void
read_ahead (Sender *sender, Output *self, guint32 from, guint32 to)
{
  const guint32 last = packet_file_block_of (self->file, to - 1);

  for (guint32 i = packet_file_block_of (self->file, from); i <= last; i++) {
    if (self->blocks.length < BLOCKS_MAX && !g_queue_find_custom (&self->blocks, &i, is_other))
      g_queue_push_tail (&self->blocks, block_cache_ask (sender->cache, self->file, i));
  }
}

static void
add_range (Output *self, guint32 from, guint32 to, gint64 at_ns)
{
  Range *last = g_queue_peek_tail (&self->ranges);

  if (last && last->to == from
      && last->at_ns + (last->to - last->from) * self->file->frame_ns == at_ns) {
    last->to = to;
    return;
  }
  last = g_new (Range, 1);
  *last = (Range) { from, to, at_ns };
  g_queue_push_tail (&self->ranges, last);
}

void
sender_add (
    SenderRound *round, guint group, PacketFile *file, guint32 from, guint32 to, gint64 at_ns)
{
  Output *output = get_output (round->sender, group);

  if (!use_output (round, output, file))
    round->sender->counts.frames_missed += round->ahead ? 0 : to - from;
  else if (round->ahead)
    read_ahead (round->sender, output, from, to);
  else
    add_range (output, from, to, at_ns);
}

// ---- sending ----

// Returns the block, which is asked for if it has not been read ahead.
static PacketBlock *
get_block (Sender *sender, Output *self, guint32 number)
{
  PacketBlock *block;

  while ((block = g_queue_peek_head (&self->blocks)) && packet_block_number (block) != number)
    packet_block_unref (g_queue_pop_head (&self->blocks));
  if (!block) {
    block = block_cache_ask (sender->cache, self->file, number);
    g_queue_push_head (&self->blocks, block);
  }
  return block;
}

typedef enum { FRAME_SENT, FRAME_MISSED, FRAME_WAITS } FrameState;

static FrameState
send_frame (Sender *sender, Output *self, const Range *range, gint64 now_ns)
{
  const PacketFile *file = self->file;
  const guint32 number = packet_file_block_of (file, range->from);
  Channel *channel = get_channel (sender, self);
  PacketBlock *block = get_block (sender, self, number);
  GBytes *bytes;
  gint failed;

  if (now_ns - range->at_ns > MISSED_NS)
    return FRAME_MISSED;
  failed = packet_block_get (block, &bytes);
  if (failed == -EAGAIN || !channel)
    return FRAME_WAITS;
  if (failed < 0) {
    log_event_limited (
        &sender->failures, "packets of a title cannot be read: %s", g_strerror (-failed));
    return FRAME_MISSED;
  }
  sender->counts.packets += channel_send (channel, bytes,
      (gsize) (file->offset[range->from] - file->offset[packet_file_block_start (file, number)]),
      (gsize) (file->offset[range->from + 1] - file->offset[range->from]), &sender->counts.bytes);
  sender->counts.frames_late += clock_now () - range->at_ns > LATE_NS;
  sender->counts.frames++;
  return FRAME_SENT;
}

// Sends what waits. Returns FALSE if something still waits.
static gboolean
send_output (Sender *sender, Output *self, gint64 now_ns)
{
  Range *range;

  while ((range = g_queue_peek_head (&self->ranges))) {
    const FrameState state = send_frame (sender, self, range, now_ns);

    if (state == FRAME_WAITS)
      return FALSE;
    sender->counts.frames_missed += state == FRAME_MISSED;
    range->from++;
    range->at_ns += self->file->frame_ns;
    if (range->from == range->to)
      g_free (g_queue_pop_head (&self->ranges));
  }
  return TRUE;
}

// The group that comes first differs from round to round, see weir_transmission_due().
static gboolean
send_all (Sender *self, gint64 now_ns)
{
  const guint n = self->outputs->len;
  const guint first = n > 0 ? weir_round_first (self->round++, n) : 0;
  gboolean all = TRUE;

  for (guint i = 0; i < n; i++)
    all &= send_output (self, g_ptr_array_index (self->outputs, (first + i) % n), now_ns);
  return all;
}

static void
look_after_channels (Sender *self, gint64 now_ns)
{
  self->counts.channels = 0;
  for (guint i = 0; i < self->outputs->len; i++) {
    Output *output = g_ptr_array_index (self->outputs, i);

    if (output->file && now_ns - output->used_ns > IDLE_NS)
      clear_output (self, output);
    else if (output->file)
      retry_opening (self, output);
    self->counts.channels += output->file != NULL;
  }
}

// ---- the thread ----

// Waits until `due_ns`, or until woken. Returns FALSE if the thread is to end.
static gboolean
wait_until (Sender *self, gint64 due_ns, gboolean *woken)
{
  gboolean goes_on;

  g_mutex_lock (&self->lock);
  self->stats = self->counts;
  while (!self->stopped && !self->woken) {
    if (due_ns == G_MAXINT64)
      g_cond_wait (&self->changed, &self->lock);
    else if (!g_cond_wait_until (&self->changed, &self->lock, (due_ns + 999) / 1000))
      break;
  }
  *woken = self->woken;
  self->woken = FALSE;
  goes_on = !self->stopped;
  g_mutex_unlock (&self->lock);
  return goes_on;
}

// Lets the thread run as soon as a frame is due, also on a busy machine. Without the right to do so
// (CAP_SYS_NICE or LimitRTPRIO), it runs like any other.
static void
hurry (void)
{
  const struct sched_param least = { .sched_priority = 1 };

  prctl (PR_SET_TIMERSLACK, SLACK_NS);
  sched_setscheduler (0, SCHED_RR | SCHED_RESET_ON_FORK, &least);
}

static gpointer
run_sender (gpointer data)
{
  Sender *self = data;
  const gint64 begun = clock_now ();
  gint64 from = begun, ahead = begun + AHEAD_NS, ahead_next = begun, next;
  gboolean all_sent, woken = FALSE;

  thread_set_name ("broadcast");
  hurry ();
  do {
    SenderRound round = { self, FALSE, MAX (clock_now (), from) };

    next = self->functions->due (self->owner, from, round.now_ns, FALSE, &round);
    from = round.now_ns;
    all_sent = send_all (self, from);
    if (from >= ahead_next || woken) {
      round.ahead = TRUE;
      self->functions->due (self->owner, woken ? from : ahead, from + AHEAD_NS, TRUE, &round);
      ahead = from + AHEAD_NS;
      ahead_next = from + AHEAD_ROUND_NS;
      look_after_channels (self, from);
    }
    if (next < G_MAXINT64 || self->counts.channels > 0)
      next = MIN (next, ahead_next);
    // A frame that is due at a time is of the round after it.
    next = all_sent ? (next == G_MAXINT64 ? next : next + 1) : MIN (next, from + RETRY_NS);
  } while (wait_until (self, next, &woken));
  return NULL;
}

Sender *
sender_new (BlockCache *cache, const SenderOwner *functions, gpointer owner)
{
  Sender *self = g_new0 (Sender, 1);

  self->cache = block_cache_ref (cache);
  self->functions = functions;
  self->owner = owner;
  self->failures = LOG_LIMIT_FAILURES;
  self->by_group = g_hash_table_new (NULL, NULL);
  self->outputs = g_ptr_array_new ();
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  self->opener = g_thread_pool_new (do_opening, self, 1, FALSE, NULL);
  self->thread = g_thread_new ("broadcast", run_sender, self);
  return self;
}

void
sender_free (Sender *self)
{
  g_mutex_lock (&self->lock);
  self->stopped = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  g_thread_join (self->thread);
  g_thread_pool_free (self->opener, FALSE, TRUE);
  for (guint i = 0; i < self->outputs->len; i++) {
    g_autofree Output *output = g_ptr_array_index (self->outputs, i);

    channel_free (output->channel);
    g_queue_clear_full (&output->ranges, g_free);
    forget_blocks (output);
    g_clear_pointer (&output->file, packet_file_unref);
  }
  g_ptr_array_unref (self->outputs);
  g_hash_table_unref (self->by_group);
  block_cache_unref (self->cache);
  g_cond_clear (&self->changed);
  g_mutex_clear (&self->lock);
  g_free (self);
}

void
sender_wake (Sender *self)
{
  g_mutex_lock (&self->lock);
  self->woken = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

void
sender_get_stats (Sender *self, SenderStats *stats)
{
  g_mutex_lock (&self->lock);
  *stats = self->stats;
  g_mutex_unlock (&self->lock);
}
