// SPDX-License-Identifier: LGPL-2.1-or-later
// Balances in the background. A thread looks now and then whether a balance is due.

#include "store/balancing.h"

#include <string.h>
#include <unistd.h>

#define RETRY_US (600 * (gint64) G_USEC_PER_SEC) // after a balance that could not do all
#define END_US G_USEC_PER_SEC                    // for which the end waits for a disk

gint64 weir_balancer_look_us = 2 * G_USEC_PER_SEC;

struct _WeirStoreBalancer {
  gint refs; // atomic: of the owner and of the thread
  WeirBlockStore *store;
  guint64 rate;
  GCancellable *cancellable;
  GMutex lock;
  GCond changed;
  gboolean ending, ended; // with the lock

  // Of the thread.
  gint64 tried[3]; // what was due at the last balance
  gint64 retry_us;
  gchar *told; // of the balance before
  // Of the balance at work.
  gboolean moves;
  gchar *problem; // the last one
  guint n_problems;
};

static void
unref (WeirStoreBalancer *self)
{
  if (!g_atomic_int_dec_and_test (&self->refs))
    return;
  g_clear_object (&self->cancellable);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self->told);
  g_free (self->problem);
  g_free (self);
}

// The first copy that is moved begins what is worth a line.
static void
follow (guint64 done, guint64 total, const gchar *title, const gchar *problem, gpointer data)
{
  WeirStoreBalancer *self = data;

  if (problem) {
    g_free (self->problem);
    self->problem = g_strdup (problem);
    self->n_problems++;
  } else if (!self->moves) {
    self->moves = TRUE;
    g_message ("%s: is being balanced, as its disks have changed", self->store->path);
  }
}

static const gchar *
describe (const GError *error)
{
  if (!error)
    return "balanced";
  return g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED) ? "balancing was ended"
                                                                   : error->message;
}

static void
tell_end (WeirStoreBalancer *self, const WeirUpkeepResult *result, const GError *error)
{
  GString *text = g_string_new (NULL);

  g_string_printf (text, "%s: %s; %" G_GUINT64_FORMAT " copies were moved", self->store->path,
      describe (error), result->moved);
  if (self->problem)
    g_string_append_printf (text, "; %u problems, the last: %s", self->n_problems, self->problem);
  // A balance that can never be complete is not told each time.
  if (self->moves || ((error || self->problem) && g_strcmp0 (text->str, self->told) != 0))
    g_message ("%s", text->str);
  g_free (self->told);
  self->told = g_string_free (text, FALSE);
}

static void
balance (WeirStoreBalancer *self, int turn)
{
  Upkeep up = { .store = self->store,
    .progress = follow,
    .data = self,
    .cancellable = self->cancellable,
    .rate = self->rate,
    .background = TRUE,
    .turn = turn };
  g_autoptr (GError) error = NULL;

  self->moves = FALSE;
  self->n_problems = 0;
  g_clear_pointer (&self->problem, g_free);
  balancing_run (&up, &error);
  tell_end (self, &up.result, error);
  // Another program goes on, but may be ended.
  self->retry_us =
      g_error_matches (error, G_IO_ERROR, G_IO_ERROR_BUSY) ? 0 : g_get_monotonic_time () + RETRY_US;
}

// Balances if that is due, and was not tried in vain just now.
static void
look (WeirStoreBalancer *self)
{
  const gint64 now = g_get_monotonic_time ();
  g_autoptr (GError) error = NULL;
  gint64 due[3];
  int turn;

  store_refresh (self->store); // so that readers know of disks that another program removes
  if (!balancing_is_due (self->store, due)
      || (memcmp (due, self->tried, sizeof due) == 0 && now < self->retry_us))
    return;
  turn = balancing_begin (self->store, TRUE, self->cancellable, &error);
  if (turn < 0 && g_error_matches (error, G_IO_ERROR, G_IO_ERROR_BUSY))
    return;
  memcpy (self->tried, due, sizeof due);
  if (turn < 0) {
    self->retry_us = now + RETRY_US;
    tell_end (self, &(WeirUpkeepResult) { 0 }, error);
    return;
  }
  balance (self, turn);
  close (turn);
}

static gpointer
run_balancer (gpointer data)
{
  WeirStoreBalancer *self = data;

  g_mutex_lock (&self->lock);
  while (!self->ending) {
    const gint64 next = g_get_monotonic_time () + weir_balancer_look_us;

    g_mutex_unlock (&self->lock);
    look (self);
    g_mutex_lock (&self->lock);
    while (!self->ending && g_cond_wait_until (&self->changed, &self->lock, next))
      ;
  }
  g_mutex_unlock (&self->lock);
  weir_block_store_unref (self->store);
  g_mutex_lock (&self->lock);
  self->ended = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  unref (self);
  return NULL;
}

WeirStoreBalancer *
weir_store_balancer_new (WeirBlockStore *store, guint64 rate)
{
  WeirStoreBalancer *self = g_new0 (WeirStoreBalancer, 1);

  self->refs = 2;
  self->store = weir_block_store_ref (store);
  self->rate = rate;
  self->cancellable = g_cancellable_new ();
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  g_thread_unref (g_thread_new ("weir-balance", run_balancer, self));
  return self;
}

void
weir_store_balancer_free (WeirStoreBalancer *self)
{
  const gint64 end = g_get_monotonic_time () + END_US;

  g_cancellable_cancel (self->cancellable);
  g_mutex_lock (&self->lock);
  self->ending = TRUE;
  g_cond_broadcast (&self->changed);
  while (!self->ended && g_cond_wait_until (&self->changed, &self->lock, end))
    ;
  g_mutex_unlock (&self->lock);
  unref (self);
}
