// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/explain_swarm.h"

#include "base/log.h"

#define MS_PER_S 1000.0

static void
append_origin (GString *out, const gchar *origin)
{
  g_autofree gchar *shown = origin ? log_redact (origin) : NULL;

  g_string_append_printf (out, "# What comes too late from peers comes from %s.\n",
      shown ? shown : "the web seed of the torrent");
}

static void
append_leave (GString *out, const MountConfig *mount)
{
  if (g_str_equal (mount->swarm.leave, "download"))
    g_string_append (out, "# A title leaves the swarm when all its pieces have been there.\n");
  else if (g_str_equal (mount->swarm.leave, "stream"))
    g_string_append (out, "# A title leaves the swarm a minute after its last reader.\n");
  else
    g_string_append_printf (out, "# Up to %u title%s stay%s in the swarm without readers.\n",
        mount->swarm.titles, mount->swarm.titles == 1 ? "" : "s",
        mount->swarm.titles == 1 ? "s" : "");
}

static void
append_peers (GString *out, const MountConfig *mount)
{
  g_string_append_printf (out, "# Peers are asked by the picker %s, with a window of %g s.\n",
      mount->swarm.picker, mount->swarm.window_ms / MS_PER_S);
  g_string_append_printf (out, "# Peers and trackers may be in %s.\n",
      mount->swarm.networks ? mount->swarm.networks : "loopback, private and link-local networks");
  g_string_append_printf (out, "# Peers are found by:%s%s%s%s%s%s.\n",
      mount->swarm.peers ? " " : "", mount->swarm.peers ? mount->swarm.peers : "",
      mount->swarm.trackers ? " trackers" : "", mount->swarm.exchange ? " exchange" : "",
      mount->swarm.dht ? " dht" : "", mount->swarm.local_discovery ? " local-discovery" : "");
  g_string_append_printf (out, "# They reach this proxy at %s, and get %s%s, %s.\n",
      mount->swarm.listen, mount->swarm.upload ? "up to " : "pieces without a limit",
      mount->swarm.upload ? mount->swarm.upload : "", mount->swarm.choking);
}

gchar *
explain_swarm (const MountConfig *mount)
{
  GString *out = g_string_new (NULL);

  g_string_append_printf (
      out, "# %s\n#\n# The titles come from swarms, one for each torrent.\n", mount->path);
  append_origin (out, mount->swarm.origin);
  append_peers (out, mount);
  g_string_append_printf (out, "# %s of each title is kept in %s.\n", mount->swarm.storage,
      mount->swarm.folder ? mount->swarm.folder : "memory");
  append_leave (out, mount);
  return g_string_free (out, FALSE);
}
