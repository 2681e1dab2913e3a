// SPDX-License-Identifier: LGPL-2.1-or-later
// A file system that imitates a disk: slowdisk BACKING MOUNTPOINT [NAME=VALUE...]
//
// It shows the files of the folder BACKING at the folder MOUNTPOINT, and finishes reads, writes and
// syncs when a disk with one arm would (model.h). Its factors can be changed while it runs, as
// extended attributes of the mounted folder: `setfattr -n user.slowdisk.stutter -v 20 MOUNTPOINT`,
// or slowdisk.py. `user.slowdisk.stats` has counters.
//
//     slowdisk /tmp/a /mnt/a access-us=17000 rate=65625000
//
// It prints one line when the files are there. It ends at SIGINT, SIGTERM, or when the file system
// is unmounted. However it ends, nothing stays mounted (fusermount3 sees to it).

#include "slowdisk.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int64_t
slowdisk_now (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

static _Noreturn void
fail (const char *what)
{
  fprintf (stderr, "slowdisk: %s: %s\n", what, strerror (errno));
  exit (1);
}

// A disk does not wait for the processor.
static void
hurry (void)
{
  const struct sched_param first = { .sched_priority = 1 };

  prctl (PR_SET_TIMERSLACK, 1UL);
  if (sched_setscheduler (0, SCHED_FIFO, &first) < 0)
    fprintf (stderr, "slowdisk: no real-time priority, so times may be too long: %s\n",
        strerror (errno));
}

// Each file that the kernel knows has a descriptor.
static void
allow_many_files (void)
{
  struct rlimit files = { 1 << 20, 1 << 20 };

  if (setrlimit (RLIMIT_NOFILE, &files) == 0 || getrlimit (RLIMIT_NOFILE, &files) < 0)
    return;
  files.rlim_cur = files.rlim_max;
  setrlimit (RLIMIT_NOFILE, &files);
}

static void
set_factors (struct slowdisk *self, int n, char **words)
{
  for (int i = 0; i < n; i++) {
    char *value = strchr (words[i], '=');

    if (value)
      *value++ = 0;
    errno = value ? factors_set (self, words[i], value, strlen (value)) : EINVAL;
    if (errno)
      fail (words[i]);
  }
}

static int
catch_signals (void)
{
  sigset_t ends;

  sigemptyset (&ends);
  sigaddset (&ends, SIGINT);
  sigaddset (&ends, SIGTERM);
  sigaddset (&ends, SIGHUP);
  sigprocmask (SIG_BLOCK, &ends, NULL);
  return signalfd (-1, &ends, SFD_CLOEXEC);
}

// Takes all requests that the kernel has for us.
static void
take_requests (struct fuse_session *session, struct fuse_buf *buffer)
{
  while (!fuse_session_exited (session) && fuse_session_receive_buf (session, buffer) > 0)
    fuse_session_process_buf (session, buffer);
}

static void
serve (struct slowdisk *self, struct fuse_session *session)
{
  struct fuse_buf buffer = { 0 };
  struct pollfd waits[] = { { .fd = fuse_session_fd (session), .events = POLLIN },
    { .fd = catch_signals (), .events = POLLIN } };

  fcntl (waits[0].fd, F_SETFL, fcntl (waits[0].fd, F_GETFL) | O_NONBLOCK);
  while (!fuse_session_exited (session)) {
    const int64_t due = disk_due (&self->disk);
    int64_t left = due == DISK_NEVER ? 0 : due - slowdisk_now ();
    struct timespec limit;

    left = left < 0 ? 0 : left;
    limit = (struct timespec) { left / 1000000000, left % 1000000000 };
    if (ppoll (waits, 2, due == DISK_NEVER ? NULL : &limit, NULL) < 0 && errno != EINTR)
      fail ("poll");
    if (waits[1].revents)
      break;
    take_requests (session, &buffer);
    slowdisk_finish (self);
  }
  free (buffer.mem);
}

int
main (int argc, char **argv)
{
  // The program fusermount3 unmounts when this process has ended, even if it was killed.
  char *options[] = { argv[0], (char *) "-oauto_unmount,fsname=slowdisk,subtype=slowdisk" };
  struct fuse_args args = FUSE_ARGS_INIT (2, options);
  struct slowdisk self = { .root = { .lookups = 1 } };
  struct fuse_session *session;

  if (argc < 3) {
    fprintf (stderr, "Usage: slowdisk BACKING MOUNTPOINT [NAME=VALUE...]\n");
    return 2;
  }
  umask (0);
  disk_init (&self.disk);
  for (size_t i = 0; i < SLOWDISK_BUCKETS; i++)
    TAILQ_INIT (&self.nodes[i]);
  set_factors (&self, argc - 3, argv + 3);
  self.root.fd = open (argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (self.root.fd < 0)
    fail (argv[1]);
  session = fuse_session_new (&args, &slowdisk_operations, sizeof slowdisk_operations, &self);
  if (!session || fuse_session_mount (session, argv[2]) < 0)
    return 1;
  allow_many_files ();
  hurry ();
  printf ("slowdisk: %s is mounted at %s\n", argv[1], argv[2]);
  fflush (stdout);
  serve (&self, session);
  fuse_session_unmount (session);
  fuse_session_destroy (session);
  slowdisk_free (&self);
  return 0;
}
