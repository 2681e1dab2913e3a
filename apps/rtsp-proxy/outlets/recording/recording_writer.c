// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/recording/recording_writer.h"

#include "base/backoff.h"
#include "base/log.h"
#include "outlets/recording/recording_threads.h"

#define QUEUE_MAX (64 * 1024 * 1024) // bytes
#define TICK_US (10 * G_USEC_PER_SEC)
#define PARTS_MAX 16 // that are written before the thread's next recording has its turn

// What the threads have of a writer: nothing, a place in their queue, a call that is running, and
// one after that. None is ever wanted of one that has ended.
typedef enum { STATE_IDLE, STATE_QUEUED, STATE_RUNNING, STATE_RUNNING_AGAIN, STATE_DONE } State;

struct _RecordingWriter {
  SegmentOutput output;
  gatomicrefcount refs;
  gchar *mount;
  RecordingSettings settings;
  RecordingList *list;
  RecordingCompleteFunc complete;
  gpointer data;
  GDestroyNotify free_data;

  // The cutter's.
  GBytes *init;
  gint64 wall_us;
  gboolean begins, breaks;

  // Of the thread that runs it.
  RecordingFolder *folder;
  guint64 segments; // when it was pruned last
  gint64 again_us;  // monotonic: when to try again
  guint n_failures;

  RecordingThreads *threads;

  GMutex lock; // protects the fields below
  State state;
  gint64 due_us; // monotonic: when to look after the folder
  GQueue queue;  // of RecordingPart
  gboolean ended, ends_file;
  RecordingCounts counts;
  gchar *problem;
};

static GMutex running_lock;
static GCond running_changed;
static guint n_running; // writers that have not ended

static void
free_part (gpointer data)
{
  RecordingPart *part = data;

  g_bytes_unref (part->init);
  g_bytes_unref (part->data);
  g_free (part);
}

// Has the writer run soon. Call with the lock held.
static void
wake (RecordingWriter *self)
{
  if (self->state == STATE_RUNNING)
    self->state = STATE_RUNNING_AGAIN;
  if (self->state != STATE_IDLE)
    return;
  self->state = STATE_QUEUED;
  recording_threads_push (self->threads, recording_writer_ref (self));
}

// ---- the cutter's side ----

static void
set_part_target (SegmentOutput *output, gint64 part_ns)
{
}

static void
begin_segment (SegmentOutput *output, GBytes *init, const SegmentFormat *format, gint64 wall_us,
    gboolean breaks)
{
  RecordingWriter *self = (RecordingWriter *) output;

  if (init) {
    g_clear_pointer (&self->init, g_bytes_unref);
    self->init = g_bytes_ref (init);
  }
  self->wall_us = wall_us;
  self->begins = TRUE;
  self->breaks |= breaks;
}

static void
add_part (SegmentOutput *output, GBytes *data, gint64 duration_ns, gboolean independent)
{
  RecordingWriter *self = (RecordingWriter *) output;
  RecordingPart *part = g_new (RecordingPart, 1);
  gsize size = g_bytes_get_size (data);
  gboolean takes;

  *part = (RecordingPart) { g_bytes_ref (self->init), data, self->wall_us, duration_ns,
    self->begins && independent, self->breaks };
  g_mutex_lock (&self->lock);
  // What follows a gap begins a file.
  takes = !self->ended && self->counts.queued_bytes + size <= QUEUE_MAX
          && (!part->breaks || part->begins);
  if (takes) {
    g_queue_push_tail (&self->queue, part);
    self->counts.queued_bytes += size;
    wake (self);
  } else {
    self->counts.dropped++;
    self->counts.dropped_bytes += size;
  }
  g_mutex_unlock (&self->lock);
  self->breaks = !takes;
  self->begins = FALSE;
  if (!takes)
    free_part (part);
}

static void
end_segment (SegmentOutput *output)
{
}

// Only keyframes end segments.
static gint64
get_segment_max (SegmentOutput *output)
{
  return G_MAXINT64 / 2;
}

static void
ref_output (SegmentOutput *output)
{
  recording_writer_ref ((RecordingWriter *) output);
}

static void
unref_output (SegmentOutput *output)
{
  recording_writer_unref ((RecordingWriter *) output);
}

static const SegmentOutputOps output_ops = { "record", "a recording", TRUE, set_part_target,
  begin_segment, add_part, end_segment, get_segment_max, ref_output, unref_output };

// ---- the threads ----

static void
on_complete (const gchar *path, const RecordingFacts *facts, gpointer data)
{
  RecordingWriter *self = data;

  self->complete (path, facts, self->data);
}

static void
set_problem (RecordingWriter *self, const GError *error)
{
  g_mutex_lock (&self->lock);
  g_free (self->problem);
  self->problem = error ? g_strdup (error->message) : NULL;
  self->counts.failing = error != NULL;
  self->counts.failures += error != NULL;
  g_mutex_unlock (&self->lock);
}

static void
fail (RecordingWriter *self, const GError *error)
{
  guint wait_ms = backoff_ms (++self->n_failures, g_random_double ());

  self->again_us = g_get_monotonic_time () + wait_ms * 1000;
  if (self->n_failures == 1)
    log_event ("record %s failed: %s; trying again", self->mount, error->message);
  set_problem (self, error);
}

static void
succeed (RecordingWriter *self)
{
  if (self->n_failures == 0)
    return;
  log_event ("record %s goes on after %u failures", self->mount, self->n_failures);
  self->n_failures = 0;
  set_problem (self, NULL);
}

static gboolean
is_open (RecordingWriter *self)
{
  GError *error = NULL;

  if (g_get_monotonic_time () < self->again_us)
    return FALSE;
  if (recording_folder_open (self->folder, &error))
    return TRUE;
  fail (self, error);
  g_error_free (error);
  return FALSE;
}

static void
note (RecordingWriter *self, const RecordingPart *part, gboolean written)
{
  g_mutex_lock (&self->lock);
  self->counts.queued_bytes -= g_bytes_get_size (part->data);
  self->counts.written = *recording_folder_get_counts (self->folder);
  if (!written) {
    self->counts.dropped++;
    self->counts.dropped_bytes += g_bytes_get_size (part->data);
  }
  g_mutex_unlock (&self->lock);
}

static void
write_part (RecordingWriter *self, const RecordingPart *part)
{
  RecordingWritten written = RECORDING_SKIPPED;
  g_autoptr (GError) error = NULL;

  if (is_open (self))
    written = recording_folder_add (self->folder, part, &error);
  if (written == RECORDING_WRITTEN)
    succeed (self);
  else if (written == RECORDING_FAILED)
    fail (self, error);
  note (self, part, written == RECORDING_WRITTEN);
}

static void
end_file (RecordingWriter *self)
{
  g_autoptr (GError) error = NULL;

  if (!recording_folder_end (self->folder, &error))
    fail (self, error);
}

// Takes the next part, or else that the file ends, or that all ends. Returns FALSE if there is
// nothing. (transfer full)
static gboolean
take (RecordingWriter *self, RecordingPart **part, gboolean *ends_file)
{
  gboolean ended;

  g_mutex_lock (&self->lock);
  *part = g_queue_pop_head (&self->queue);
  *ends_file = !*part && self->ends_file;
  if (*ends_file)
    self->ends_file = FALSE;
  ended = !*part && !*ends_file && self->ended;
  if (ended)
    self->state = STATE_DONE;
  g_mutex_unlock (&self->lock);
  return *part || *ends_file;
}

static void
finish (RecordingWriter *self)
{
  g_clear_pointer (&self->folder, recording_folder_free);
  recording_threads_leave (self->threads);
  g_mutex_lock (&running_lock);
  n_running--;
  g_cond_broadcast (&running_changed);
  g_mutex_unlock (&running_lock);
}

static void
prune (RecordingWriter *self)
{
  recording_folder_prune (self->folder, g_get_real_time ());
  self->segments = recording_folder_get_counts (self->folder)->segments;
  g_mutex_lock (&self->lock);
  self->counts.written = *recording_folder_get_counts (self->folder);
  self->due_us = g_get_monotonic_time () + TICK_US;
  g_mutex_unlock (&self->lock);
}

static gboolean
is_due (RecordingWriter *self)
{
  gboolean due;

  g_mutex_lock (&self->lock);
  due = g_get_monotonic_time () >= self->due_us;
  g_mutex_unlock (&self->lock);
  return due;
}

// Writes what waits. Returns whether there is more.
static gboolean
write_some (RecordingWriter *self)
{
  gboolean ends_file;
  RecordingPart *part;
  guint n = 0;

  while (n < PARTS_MAX && take (self, &part, &ends_file)) {
    if (part)
      write_part (self, part);
    else
      end_file (self);
    g_clear_pointer (&part, free_part);
    n++;
  }
  if (n == 0)
    is_open (self); // before the first part, so that what was there can be read
  return n == PARTS_MAX;
}

// Ends a run. Returns what is wanted then: another one, nothing, or nothing ever.
static State
settle (RecordingWriter *self, gboolean more)
{
  State state;

  g_mutex_lock (&self->lock);
  if (self->state != STATE_DONE)
    self->state = more || self->state == STATE_RUNNING_AGAIN ? STATE_QUEUED : STATE_IDLE;
  state = self->state;
  g_mutex_unlock (&self->lock);
  return state;
}

static void
run (gpointer data)
{
  RecordingWriter *self = data;
  gboolean more;
  State state;

  g_mutex_lock (&self->lock);
  self->state = STATE_RUNNING;
  g_mutex_unlock (&self->lock);
  more = write_some (self);
  if (self->segments != recording_folder_get_counts (self->folder)->segments || is_due (self))
    prune (self);
  state = settle (self, more);
  if (state == STATE_QUEUED) {
    recording_threads_push (self->threads, self);
    return;
  }
  if (state == STATE_DONE)
    finish (self);
  recording_writer_unref (self);
}

// ---- the owner's side ----

RecordingWriter *
recording_writer_new (const gchar *mount, const RecordingSettings *settings,
    RecordingCompleteFunc complete, gpointer data, GDestroyNotify free_data)
{
  RecordingWriter *self = g_new0 (RecordingWriter, 1);

  self->output.ops = &output_ops;
  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->mount = g_strdup (mount);
  self->settings = *settings;
  self->list = recording_list_new ();
  self->complete = complete;
  self->data = data;
  self->free_data = free_data;
  self->breaks = TRUE;
  self->folder = recording_folder_new (mount, &self->settings, self->list, on_complete, self);
  g_mutex_lock (&running_lock);
  n_running++;
  g_mutex_unlock (&running_lock);
  self->threads = recording_threads_join (settings->folder, run);
  recording_writer_tick (self);
  return self;
}

void
recording_writer_tick (RecordingWriter *self)
{
  g_mutex_lock (&self->lock);
  if (g_get_monotonic_time () >= self->due_us)
    wake (self);
  g_mutex_unlock (&self->lock);
}

RecordingWriter *
recording_writer_ref (RecordingWriter *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
recording_writer_unref (RecordingWriter *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_queue_clear_full (&self->queue, free_part);
  g_clear_pointer (&self->init, g_bytes_unref);
  recording_list_unref (self->list);
  self->free_data (self->data);
  g_mutex_clear (&self->lock);
  g_free (self->problem);
  g_free (self->settings.folder);
  g_free (self->mount);
  g_free (self);
}

void
recording_writer_end_file (RecordingWriter *self)
{
  g_mutex_lock (&self->lock);
  self->ends_file = TRUE;
  wake (self);
  g_mutex_unlock (&self->lock);
}

void
recording_writer_end (RecordingWriter *self)
{
  g_mutex_lock (&self->lock);
  self->ended = TRUE;
  wake (self);
  g_mutex_unlock (&self->lock);
}

gboolean
recording_writer_wait_all (guint timeout_ms)
{
  gint64 until = g_get_monotonic_time () + timeout_ms * G_GINT64_CONSTANT (1000);
  gboolean in_time = TRUE;

  g_mutex_lock (&running_lock);
  while (n_running > 0 && in_time)
    in_time = g_cond_wait_until (&running_changed, &running_lock, until);
  g_mutex_unlock (&running_lock);
  return in_time;
}

SegmentOutput *
recording_writer_get_output (RecordingWriter *self)
{
  return &self->output;
}

RecordingList *
recording_writer_get_list (RecordingWriter *self)
{
  return self->list;
}

const gchar *
recording_writer_get_folder (RecordingWriter *self)
{
  return self->settings.folder;
}

const gchar *
recording_writer_get_mount (RecordingWriter *self)
{
  return self->mount;
}

void
recording_writer_get_counts (RecordingWriter *self, RecordingCounts *counts)
{
  g_mutex_lock (&self->lock);
  *counts = self->counts;
  g_mutex_unlock (&self->lock);
}

gchar *
recording_writer_dup_problem (RecordingWriter *self)
{
  gchar *problem;

  g_mutex_lock (&self->lock);
  problem = g_strdup (self->problem);
  g_mutex_unlock (&self->lock);
  return problem;
}
