// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/cluster_figures.h"

#include "readers/elsewhere.h"

static void
head (GString *out, const gchar *name, const gchar *type, const gchar *help)
{
  g_string_append_printf (out, "# HELP weir_%s %s\n# TYPE weir_%s %s\n", name, help, name, type);
}

static void
gauge (GString *out, const gchar *name, guint64 value, const gchar *help)
{
  head (out, name, "gauge", help);
  g_string_append_printf (out, "weir_%s %" G_GUINT64_FORMAT "\n", name, value);
}

void
cluster_figures_write (Cluster *cluster, GString *out)
{
  static const gchar moved[] = "cluster_moved_readers_total";
  ClusterFigures figures;

  cluster_get_figures (cluster, &figures);
  gauge (out, "cluster_joined", figures.is_joined, "This member is in etcd (1 or 0).");
  gauge (out, "cluster_etcd", figures.has_etcd, "etcd has answered the last call (1 or 0).");
  gauge (out, "cluster_members", figures.members, "Members of the cluster, with this one.");
  gauge (out, "cluster_streams_owned", figures.owned,
      "Streams whose upstream this member runs for all.");
  gauge (out, "cluster_streams_read", figures.taken,
      "Streams that this member reads from another one.");
  gauge (out, "cluster_wrong_mounts", figures.wrong_mounts,
      "Mounts in etcd that are wrong on this member.");
  gauge (out, "cluster_revision", (guint64) figures.revision,
      "The revision of etcd that this member knows.");
  head (out, moved, "counter", "New readers that were sent to another member, by the cause.");
  for (guint full = 0; full < 2; full++)
    g_string_append_printf (out, "weir_%s{cause=\"%s\"} %" G_GUINT64_FORMAT "\n", moved,
        full ? "full" : "drains", elsewhere_count ((gboolean) full));
}
