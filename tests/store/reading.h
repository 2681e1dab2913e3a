// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the tests of reading share: stores that are read in both ways, and disks whose reads a test
// holds, refuses or watches.

#include "store/reader.h"
#include "store/reading.h"
#include "stores.h"

#define N_DISKS 8

// Of the imitated disks. The threads of disks wait at the gate while it is closed.
typedef struct {
  GMutex lock;
  GCond changed;
  gboolean closed[N_DISKS];
  guint came[N_DISKS]; // reads that came to the gate
  gint error[N_DISKS]; // errno of their reads; 0: they read
  gulong delay_us[N_DISKS];
  gulong ns_per_byte; // of all
  GArray *order;      // numbers of the blocks in the order in which they were read
} Gate;

static Gate gate;

static inline gboolean
gate_pass (WeirCopyRead *copy)
{
  const guint32 number = (guint32) strtoul (strrchr (copy->path, '/') + 1, NULL, 16);
  const guint disk = copy->disk->number;
  gulong delay_us;

  g_mutex_lock (&gate.lock);
  gate.came[disk]++;
  delay_us = gate.delay_us[disk] + gate.ns_per_byte * copy->length / 1000;
  if (delay_us > 0) {
    g_mutex_unlock (&gate.lock);
    g_usleep (delay_us);
    g_mutex_lock (&gate.lock);
  }
  while (gate.closed[disk])
    g_cond_wait (&gate.changed, &gate.lock);
  g_array_append_val (gate.order, number);
  copy->error = gate.error[disk];
  g_mutex_unlock (&gate.lock);
  return copy->error != 0;
}

// From now on, disks are threads that pass the gate.
static inline void
gate_install (void)
{
  weir_block_reader_threads_only = TRUE;
  memset (gate.came, 0, sizeof gate.came);
  memset (gate.closed, 0, sizeof gate.closed);
  memset (gate.error, 0, sizeof gate.error);
  g_clear_pointer (&gate.order, g_array_unref);
  gate.order = g_array_new (FALSE, FALSE, sizeof (guint32));
  weir_read_pool_test = gate_pass;
}

static inline void
gate_remove (void)
{
  weir_read_pool_test = NULL;
  weir_block_reader_threads_only = FALSE;
}

static inline void
gate_set (guint disk, gboolean closed, gint error)
{
  g_mutex_lock (&gate.lock);
  gate.closed[disk] = closed;
  gate.error[disk] = error;
  g_cond_broadcast (&gate.changed);
  g_mutex_unlock (&gate.lock);
}

static inline guint
gate_reads (void)
{
  guint n;

  g_mutex_lock (&gate.lock);
  n = gate.order->len;
  g_mutex_unlock (&gate.lock);
  return n;
}

static inline guint
gate_came (guint disk)
{
  guint n;

  g_mutex_lock (&gate.lock);
  n = gate.came[disk];
  g_mutex_unlock (&gate.lock);
  return n;
}

// Answers that a test waits for.
typedef struct {
  GMutex lock;
  GCond changed;
  guint good, bad;
} Answers;

static inline void
count_answer (WeirBlock *block, const GError *error, gpointer data)
{
  Answers *answers = data;

  if (block)
    weir_block_unref (block);
  g_mutex_lock (&answers->lock);
  if (block)
    answers->good++;
  else
    answers->bad++;
  g_cond_signal (&answers->changed);
  g_mutex_unlock (&answers->lock);
}

static inline void
wait_for_answers (Answers *answers, guint n)
{
  g_mutex_lock (&answers->lock);
  while (answers->good + answers->bad < n)
    g_cond_wait (&answers->changed, &answers->lock);
  g_mutex_unlock (&answers->lock);
}

static inline gint64
in_ms (gint64 ms)
{
  return weir_block_reader_now () + ms * WEIR_READ_MS;
}

static inline WeirDiskStats
disk_stats (WeirBlockStore *store, guint16 number)
{
  WeirDiskStats stats[N_DISKS];
  const guint n = weir_block_store_get_stats (store, stats, N_DISKS);

  for (guint i = 0; i < n; i++) {
    if (stats[i].number == number)
      return stats[i];
  }
  return (WeirDiskStats) { 0 };
}

static inline WeirReadStats
read_stats (WeirBlockStore *store)
{
  WeirReadStats stats;

  weir_block_store_get_read_stats (store, &stats);
  return stats;
}

// Waits until the condition is true, for 20 s at most.
#define WAIT_FOR(condition)                                                                        \
  do {                                                                                             \
    const gint64 wait_end = in_ms (20000);                                                         \
    while (!(condition) && weir_block_reader_now () < wait_end)                                    \
      g_usleep (1000);                                                                             \
    g_assert_true (condition);                                                                     \
  } while (0)

// Reads a block of a title by test_title() and compares its bytes.
static inline void
check_block (WeirStoredTitle *title, guint32 number, guint seed)
{
  const WeirIndexBlock *entry = &weir_stored_title_get_index (title)->blocks[number];
  GError *error = NULL;
  WeirBlock *block = weir_block_read (title, number, in_ms (1000), NULL, &error);
  g_autofree guint8 *expected = g_malloc (entry->length);
  const guint8 *bytes;
  gsize length;

  g_assert_no_error (error);
  bytes = weir_block_get_bytes (block, &length);
  test_fill (expected, entry->length, seed, entry->offset);
  g_assert_cmpmem (bytes, length, expected, entry->length);
  weir_block_unref (block);
}

static inline gchar *
copy_path (WeirStoredTitle *title, guint32 number, guint copy)
{
  const WeirIndex *index = weir_stored_title_get_index (title);

  return weir_stored_title_dup_block_path (title, number, index->blocks[number].disks[copy]);
}

// Messages are counted, not printed, and do not end the test.
static gint n_messages;

static inline void
count_message (const gchar *domain, GLogLevelFlags level, const gchar *message, gpointer data)
{
  if (level & (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL)) {
    g_log_default_handler (domain, level, message, data);
    return;
  }
  g_atomic_int_inc (&n_messages);
  g_test_message ("%s", message);
}

static inline void
count_messages (void)
{
  g_log_set_always_fatal (G_LOG_FATAL_MASK);
  // Not a writer: later GLib has one of its own for tests, so that ours would not be called.
  g_log_set_default_handler (count_message, NULL);
}
