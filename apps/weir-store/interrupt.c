// SPDX-License-Identifier: LGPL-2.1-or-later
#include "interrupt.h"

#include <signal.h>
#include <unistd.h>

static GCancellable *cancellable;
static sigset_t signals;

static gpointer
wait_for_signals (gpointer unused)
{
  int number;

  // The first one waits for a safe point, to which a disk that hangs may never let it come.
  while (sigwait (&signals, &number) == 0) {
    if (interrupted ())
      _exit (EXIT_INTERRUPTED);
    g_cancellable_cancel (cancellable);
  }
  return NULL;
}

void
interrupt_init (void)
{
  cancellable = g_cancellable_new ();
  sigemptyset (&signals);
  sigaddset (&signals, SIGINT);
  sigaddset (&signals, SIGTERM);
  // All threads inherit the mask, so that only the waiting thread gets the signals.
  pthread_sigmask (SIG_BLOCK, &signals, NULL);
  g_thread_unref (g_thread_new ("signals", wait_for_signals, NULL));
}

GCancellable *
interrupt_get (void)
{
  return cancellable;
}
