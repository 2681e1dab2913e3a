// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "isolate/spawn.h"
#include "worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <gst/gst.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "isolate/fds.h"
#include "isolate/picture_wire.h"
#include "isolate/pool.h"
#include "isolate/wire.h"
#include "worker/picture_job.h"
#include "worker/pull_job.h"
#include "worker/srt_job.h"
#include "worker/stage_job.h"
#include "worker/swarm_job.h"
#include "worker/title_job.h"

gboolean
worker_is (int argc, char **argv)
{
  return argc >= 2 && g_str_equal (argv[0], WORKER_NAME);
}

// Starts the next job. Ends the process when the proxy has closed the socket.
static gboolean
on_job (gint socket, GIOCondition condition, gpointer loop)
{
  static guint8 data[WIRE_MAX];
  gint fds[FDS_MAX];
  guint n_fds;
  gssize n = fds_receive (socket, data, sizeof data, fds, &n_fds);

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return G_SOURCE_CONTINUE;
  if (n <= 0) {
    g_main_loop_quit (loop);
    return G_SOURCE_REMOVE;
  }
  if (n_fds > 0 && data[0] == WIRE_STAGE)
    stage_job_start (data, (gsize) n, fds, n_fds);
  else if (n_fds > 1 && data[0] == WIRE_TITLE)
    title_job_start (fds, n_fds);
  else if (WITH_SWARM && n_fds > 0 && data[0] == WIRE_SWARM)
    swarm_job_start (data, (gsize) n, fds, n_fds);
  else if (WITH_SRT && n_fds == SRT_JOB_FDS && data[0] == WIRE_SRT)
    srt_job_start (data, (gsize) n, fds);
  else if (n_fds == PICTURE_WIRE_FDS && data[0] == WIRE_PICTURE)
    picture_job_start (data, (gsize) n, fds);
  else if (n_fds > 0)
    pull_job_start (data, (gsize) n, fds[0], n_fds > 1 ? fds[1] : -1);
  return G_SOURCE_CONTINUE;
}

static gboolean
is_socket (gint fd)
{
  gint type = 0;
  socklen_t size = sizeof type;

  return getsockopt (fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

static void
tell_started (void)
{
  const guint8 byte = 0;

  if (send (WORKER_SOCKET, &byte, sizeof byte, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
    log_event ("worker: the proxy is gone: %s", g_strerror (errno));
}

// Returns the paths that the worker may read. They are part of `argv`; the caller owns the array.
static const gchar **
list_paths (char **argv)
{
  GPtrArray *paths = g_ptr_array_new ();

  for (; *argv; argv++) {
    if (g_str_has_prefix (*argv, WORKER_READS))
      g_ptr_array_add (paths, *argv + strlen (WORKER_READS));
  }
  g_ptr_array_add (paths, NULL);
  return (const gchar **) g_ptr_array_free (paths, FALSE);
}

static gboolean
enter_sandbox (char **argv)
{
  const gchar **reads = list_paths (argv);
  gboolean ok = sandbox_enter (sandbox_find (argv[1]), reads);

  g_free (reads);
  return ok;
}

int
worker_run (int argc, char **argv)
{
  GMainLoop *loop;

  if (!is_socket (WORKER_SOCKET) || sandbox_find (argv[1]) == SANDBOX_PROFILES) {
    fputs (WORKER_NAME " is started by rtsp-proxy only\n", stderr);
    return EXIT_FAILURE;
  }
  prctl (PR_SET_NAME, "rtsp-worker", 0, 0, 0);
  fcntl (WORKER_SOCKET, F_SETFD, FD_CLOEXEC);
  // The proxy ends its workers. A terminal and systemd signal all processes at once.
  signal (SIGINT, SIG_IGN);
  signal (SIGTERM, SIG_IGN);
  signal (SIGHUP, SIG_IGN);
  signal (SIGPIPE, SIG_IGN);
  if (!enter_sandbox (argv))
    return EXIT_FAILURE;
  gst_registry_fork_set_enabled (FALSE);
  gst_init (&argc, &argv);
  log_init ();
  loop = g_main_loop_new (NULL, FALSE);
  g_main_context_acquire (NULL);
  g_unix_fd_add (WORKER_SOCKET, G_IO_IN | G_IO_HUP, on_job, loop);
  tell_started ();
  g_main_loop_run (loop);
  if (WITH_SWARM && swarm_jobs_finish ())
    exit (EXIT_SUCCESS); // libtorrent waits there for trackers, a second at most
  _exit (EXIT_SUCCESS);  // threads may still run
}
