// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config.h"

#include "filelimit.h"

#include <stdio.h>
#include <sys/resource.h>

#define OTHER_FILES 16

static guint64
files_needed (const Options *options)
{
  guint tracks = options->video_only ? 1 : 2;
  guint64 readers = (guint64) options->readers;
  guint64 udp = options->transport == TRANSPORT_UDP   ? readers
                : options->transport == TRANSPORT_TCP ? 0
                                                      : (readers + 1) / 2;

  return readers + udp * 2 * tracks + OTHER_FILES;
}

gboolean
filelimit_raise (const Options *options)
{
  guint64 needed = files_needed (options);
  struct rlimit limit = { 0 };

  getrlimit (RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= needed)
    return TRUE;
  limit.rlim_cur = needed;
  limit.rlim_max = MAX (limit.rlim_max, needed);
  if (setrlimit (RLIMIT_NOFILE, &limit) == 0)
    return TRUE;
  getrlimit (RLIMIT_NOFILE, &limit);
  fprintf (stderr,
      "rtsp-load: %d readers need %" G_GUINT64_FORMAT
      " open files, and the hard limit is %lu; raise it, as root, with \"ulimit -Hn "
      "%" G_GUINT64_FORMAT "\", or with nofile in /etc/security/filelimit.conf\n",
      options->readers, needed, (unsigned long) limit.rlim_max, needed);
  return FALSE;
}
