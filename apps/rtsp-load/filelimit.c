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

  if (options->hls || options->whep)
    return 2 * readers + OTHER_FILES;
  return readers + udp * 2 * tracks + OTHER_FILES;
}

// Returns the limit that not even root may exceed.
static guint64
system_limit (void)
{
  guint64 limit = G_MAXUINT64;
  gchar *text = NULL;

  if (g_file_get_contents ("/proc/sys/fs/nr_open", &text, NULL, NULL))
    limit = g_ascii_strtoull (text, NULL, 10);
  g_free (text);
  return limit;
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
      " open files, and the limit is %" G_GUINT64_FORMAT
      "; raise it, as root, with %s%" G_GUINT64_FORMAT "\n",
      options->readers, needed, (guint64) limit.rlim_max,
      needed > system_limit () ? "sysctl fs.nr_open=" : "ulimit -Hn ", needed);
  return FALSE;
}
