// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ingest/sharedingest.h"

typedef struct {
  WeirIngest *engine;
  gint64 tick_ns;
  guint refs;
} Shared;

static GMutex lock; // guards `engines`
static GSList *engines;

WeirIngest *
weir_shared_ingest_ref (gint64 tick_ns)
{
  const WeirIngestSettings settings = { .tick_ns = tick_ns };
  Shared *shared = NULL;
  WeirIngest *engine;

  g_mutex_lock (&lock);
  for (GSList *l = engines; l && !shared; l = l->next) {
    if (((Shared *) l->data)->tick_ns == tick_ns)
      shared = l->data;
  }
  if (!shared) {
    shared = g_new0 (Shared, 1);
    shared->engine = weir_ingest_new (&settings);
    if (!shared->engine)
      g_error ("relaysrc: no memory"); // as GLib does
    shared->tick_ns = tick_ns;
    engines = g_slist_prepend (engines, shared);
  }
  shared->refs++;
  engine = shared->engine;
  g_mutex_unlock (&lock);
  return engine;
}

void
weir_shared_ingest_unref (WeirIngest *engine)
{
  gboolean last = FALSE;

  g_mutex_lock (&lock);
  for (GSList *l = engines; l && !last; l = l->next) {
    Shared *shared = l->data;

    if (shared->engine != engine)
      continue;
    last = --shared->refs == 0;
    if (last) {
      engines = g_slist_delete_link (engines, l);
      g_free (shared);
    }
    break;
  }
  g_mutex_unlock (&lock);
  if (last)
    weir_ingest_free (engine);
}
