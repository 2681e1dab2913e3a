// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/ingest_figures.h"

#include "control/api_answer.h"

#define FIELD(field) G_STRUCT_OFFSET (RelayStats, field)
#define COUNT(what) (FIELD (counts) + (what) * sizeof (guint64))

#define REFUSED(name, logged, offset)                                                              \
  { name, "refused", "ingest_refused_packets_total", "reason", REFUSED_HELP, logged, offset }
#define REFUSED_HELP "Packets from the upstream that were dropped, by reason."
#define REPAIRED(name, logged, offset)                                                             \
  { name, NULL, "ingest_repairs_total", "repair", REPAIRED_HELP, logged, offset }
#define REPAIRED_HELP "What was put right in packets from the upstream, by kind."

const IngestFigure ingest_figures[] = {
  { "packets", NULL, "ingest_packets_total", NULL, "Packets received from the upstream.", NULL,
      FIELD (n_packets) },
  { "lost", NULL, "ingest_lost_packets_total", NULL,
      "Packets missing in the upstream's sequence numbers.", "lost", FIELD (n_lost) },
  { "overflow", NULL, "ingest_overflow_packets_total", NULL,
      "Packets from the upstream that the system dropped, as a receive buffer was full, and those "
      "that a stage did not take in time.",
      NULL, COUNT (RELAY_OVERFLOW) },
  { "malformed", NULL, "ingest_refused_packets_total", "reason", REFUSED_HELP, "malformed",
      FIELD (n_bad) },
  { "stale", NULL, "ingest_refused_packets_total", "reason", REFUSED_HELP, "stale",
      FIELD (n_stale) },
  REFUSED ("foreign", NULL, COUNT (RELAY_REFUSED + WEIR_INGEST_FOREIGN)),
  REFUSED ("other-ssrc", "dropped because another SSRC sent at the same time",
      COUNT (RELAY_REFUSED + WEIR_INGEST_OTHER_SSRC)),
  REFUSED ("payload-type", "dropped because the description does not name their payload type",
      COUNT (RELAY_REFUSED + WEIR_INGEST_PAYLOAD_TYPE)),
  REFUSED ("duplicate", NULL, COUNT (RELAY_REFUSED + WEIR_INGEST_DUPLICATE)),
  REFUSED ("late", "dropped because they came late", COUNT (RELAY_REFUSED + WEIR_INGEST_LATE)),
  REFUSED (
      "no-memory", "dropped for lack of memory", COUNT (RELAY_REFUSED + WEIR_INGEST_NO_MEMORY)),
  REPAIRED ("renumbered", "whose sequence numbers went back, renumbered",
      COUNT (RELAY_REPAIRED + WEIR_INGEST_RENUMBERED)),
  REPAIRED ("restamped", "whose timestamp jumped, moved next to their neighbours",
      COUNT (RELAY_REPAIRED + WEIR_INGEST_RESTAMPED)),
  REPAIRED (
      "skipped", "times that stray bytes between packets were skipped", COUNT (RELAY_SKIPPED)),
  REPAIRED ("split", NULL, COUNT (RELAY_SPLIT)),
  { "long", NULL, "ingest_long_packets_total", NULL,
      "Packets from the upstream of more than 1460 bytes that were not split.",
      "longer than 1460 bytes (readers over UDP need IP fragments; let them use TCP)",
      COUNT (RELAY_LONG) },
  { NULL },
};

guint64
ingest_figures_get (const IngestFigure *figure, const RelayStats *stats)
{
  return *(const guint64 *) ((const guint8 *) stats + figure->offset);
}

void
ingest_figures_write (JsonBuilder *builder, const RelayStats *stats)
{
  const gchar *group = NULL;

  for (const IngestFigure *figure = ingest_figures; figure->name; figure++) {
    if (group && figure->group != group)
      json_builder_end_object (builder);
    if (figure->group && figure->group != group) {
      json_builder_set_member_name (builder, figure->group);
      json_builder_begin_object (builder);
    }
    group = figure->group;
    api_add_number (builder, figure->name, (gint64) ingest_figures_get (figure, stats));
  }
}

// Loss and what is no RTP are always named.
gchar *
ingest_figures_describe (const RelayStats *stats, const RelayStats *last)
{
  GString *text = g_string_new (NULL);
  gboolean any = FALSE;

  for (const IngestFigure *figure = ingest_figures; figure->name; figure++) {
    guint64 n = ingest_figures_get (figure, stats) - ingest_figures_get (figure, last);

    if (!figure->logged || (n == 0 && (figure->group || figure->offset >= FIELD (counts))))
      continue;
    any |= n > 0;
    g_string_append_printf (
        text, "%s%" G_GUINT64_FORMAT " %s", text->len ? ", " : "", n, figure->logged);
  }
  return g_string_free (text, !any);
}
