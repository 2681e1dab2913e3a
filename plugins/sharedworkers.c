// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sharedworkers.h"

#include <glib.h>

#include "core/fanout/fanout.h"

static gpointer
make_workers (gpointer unused)
{
  // Only the tasks of fanoutsink use scratch memory.
  return weir_workers_new (0, weir_fanout_scratch_size ());
}

WeirWorkers *
weir_shared_workers (void)
{
  static GOnce once = G_ONCE_INIT;

  return g_once (&once, make_workers, NULL);
}
