// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/explain_broadcast.h"

#include "config/mount_broadcast.h"
#include "schedule/theory.h"

#define NS_PER_S 1e9
#define UNITS_PER_S 10 // a unit stands for a frame

static const guint minutes[] = { 5, 20, 60, 120 }; // lengths of titles
static const guint arrivals[] = { 1, 10, 100 };    // clients a minute

// Returns whether the scheme is a periodic broadcast, and how it cuts titles.
static gboolean
is_periodic (WeirSchemeKind scheme, WeirCut *cut)
{
  switch (scheme) {
    case WEIR_SCHEME_GDB:
    case WEIR_SCHEME_AUTO:
      *cut = WEIR_CUT_GDB;
      return TRUE;
    case WEIR_SCHEME_GREEDY:
      *cut = WEIR_CUT_GREEDY;
      return TRUE;
    case WEIR_SCHEME_SKYSCRAPER:
      *cut = WEIR_CUT_SKYSCRAPER;
      return TRUE;
    case WEIR_SCHEME_STAGGERED:
      *cut = WEIR_CUT_STAGGERED;
      return TRUE;
    case WEIR_SCHEME_BATCHING:
    case WEIR_SCHEME_PATCHING:
      break;
  }
  return FALSE;
}

static void
append_periodic (GString *out, const BroadcastConfig *broadcast, WeirCut cut)
{
  guint first = MAX ((guint) ((gdouble) broadcast->first_ns / NS_PER_S * UNITS_PER_S + 0.5), 1);
  WeirSegment segments[WEIR_SEGMENTS_MAX];

  g_string_append (out, "#\n# title     groups  streams  titles at once\n");
  for (guint i = 0; i < G_N_ELEMENTS (minutes); i++) {
    guint units = minutes[i] * 60 * UNITS_PER_S;
    int n = weir_segments_cut (cut, units, MIN (first, units), 0, 0, segments);

    if (n < 0)
      g_string_append_printf (out, "# %3u min  too many segments\n", minutes[i]);
    else
      g_string_append_printf (out, "# %3u min  %6d  %7.2f  %14u\n", minutes[i], n,
          weir_segments_streams (segments, n, 0), broadcast->n_groups / (guint) n);
  }
}

static void
append_patching (GString *out, const BroadcastConfig *broadcast)
{
  g_string_append (out, "#\n# title     clients/min  threshold  streams\n");
  for (guint i = 0; i < G_N_ELEMENTS (minutes); i++) {
    for (guint j = 0; j < G_N_ELEMENTS (arrivals); j++) {
      gdouble length = minutes[i] * 60, rate = arrivals[j] / 60.0;
      gdouble threshold = broadcast->threshold_ns
                              ? MIN ((gdouble) broadcast->threshold_ns / NS_PER_S, length)
                              : weir_patching_threshold (length, rate);

      g_string_append_printf (out, "# %3u min  %11u  %7.1f s  %7.2f\n", minutes[i], arrivals[j],
          threshold, weir_patching_streams (length, rate, threshold, 0));
    }
  }
}

gchar *
explain_broadcast (const MountConfig *mount)
{
  const BroadcastConfig config = mount_broadcast_get (mount), *broadcast = &config;
  WeirSchemeKind scheme = broadcast->scheme;
  GString *out = g_string_new (NULL);
  WeirCut cut;

  g_string_append_printf (out,
      "# %s\n#\n# The titles are broadcast by the scheme %s, on %u group%s from %s, port %u.\n",
      mount->path, weir_scheme_name (scheme), broadcast->n_groups,
      broadcast->n_groups == 1 ? "" : "s", broadcast->groups, broadcast->port);
  if (scheme == WEIR_SCHEME_PATCHING || scheme == WEIR_SCHEME_AUTO)
    g_string_append (out, "# A client does not wait while the scheme is patching.\n");
  if (scheme != WEIR_SCHEME_PATCHING)
    g_string_append_printf (out, "# A client waits for up to %g s%s.\n",
        (gdouble) broadcast->first_ns / NS_PER_S,
        scheme == WEIR_SCHEME_AUTO ? " while it is gdb" : "");
  g_string_append (out, "# One stream is the bit rate of the title.\n");
  if (is_periodic (scheme, &cut))
    append_periodic (out, broadcast, cut);
  if (scheme == WEIR_SCHEME_PATCHING || scheme == WEIR_SCHEME_AUTO)
    append_patching (out, broadcast);
  return g_string_free (out, FALSE);
}
