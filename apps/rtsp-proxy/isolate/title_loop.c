// SPDX-License-Identifier: LGPL-2.1-or-later
#include "isolate/title_loop.h"

Loop *
title_loop_get (void)
{
  static const LoopSettings settings = { .name = "title-control" };
  static GMutex lock;
  static Loop *loop;
  Loop *found;

  g_mutex_lock (&lock);
  if (!loop)
    loop = loop_new (&settings, NULL);
  found = loop;
  g_mutex_unlock (&lock);
  return found;
}
