// SPDX-License-Identifier: LGPL-2.1-or-later

// The times of a relay's tracks to each other, and the sender reports that say them.

#include "relay/relay_private.h"

// rtpbin does not believe greater differences either (its property max-ts-offset).
#define OFFSET_MAX (3 * GST_SECOND)

// Data that come now and then have no reports, and nobody hears that they are late.
static gboolean
has_sync (const RelayTrack *track)
{
  const gchar *media = gst_structure_get_string (gst_caps_get_structure (track->caps, 0), "media");

  return !g_strcmp0 (media, "video") || !g_strcmp0 (media, "audio");
}

static gboolean
is_reported (const SourceTrack *track)
{
  return track->alive && track->ntp.known && track->ntp.ssrc == track->ssrc;
}

// Returns the track that keeps its times.
static guint
find_reference (const Relay *self)
{
  for (guint i = 0; i < self->n_tracks; i++) {
    const GstStructure *s = gst_caps_get_structure (self->tracks[i].caps, 0);

    if (!g_strcmp0 (gst_structure_get_string (s, "media"), "video"))
      return i;
  }
  return 0;
}

static gint64
find_report_time (const Relay *self, guint index)
{
  return weir_splice_time (&self->tracks[index].splice, self->current->tracks[index].ntp.timestamp);
}

gboolean
relay_compare_reports (const Relay *self, RelaySync *sync)
{
  const SourceTrack *from = self->current->tracks;
  guint reference = find_reference (self);
  gint64 time;

  if (!is_reported (&from[reference]))
    return FALSE;
  time = find_report_time (self, reference);
  sync->has_clock = TRUE;
  sync->clock = weir_ntp_to_unix (from[reference].ntp.ntp) - time;
  for (guint i = 0; i < self->n_tracks; i++) {
    gint64 offset;

    if (!has_sync (&self->tracks[i]))
      continue;
    if (!is_reported (&from[i]))
      return FALSE;
    offset = weir_ntp_minus (from[i].ntp.ntp, from[reference].ntp.ntp)
             - (find_report_time (self, i) - time);
    sync->offsets[i] = ABS (offset) <= (gint64) OFFSET_MAX ? offset : 0;
  }
  return TRUE;
}

// Reports whether no track's place was guessed, here and in the relays that the media come through.
static gboolean
is_stated (Relay *self)
{
  gboolean stated;
  Relay *from = NULL;

  g_mutex_lock (&self->lock);
  stated = self->current != NULL;
  if (stated && self->current->from)
    from = relay_ref (self->current->from);
  for (guint i = 0; i < self->n_tracks && stated; i++) {
    if (has_sync (&self->tracks[i]))
      stated = self->current->tracks[i].alive && (from || self->current->tracks[i].stated);
  }
  g_mutex_unlock (&self->lock);
  stated = stated && (!from || is_stated (from));
  g_clear_pointer (&from, relay_unref);
  return stated;
}

static guint
count_synced (const Relay *self)
{
  guint n = 0;

  for (guint i = 0; i < self->n_tracks; i++)
    n += has_sync (&self->tracks[i]);
  return n;
}

void
relay_get_sync (Relay *self, RelaySync *sync)
{
  gboolean alone;

  *sync = (RelaySync) { 0 };
  g_mutex_lock (&self->lock);
  sync->run = self->n_runs;
  if (self->current && self->n_tracks > 0) {
    sync->opened = self->current->run_arrival;
    sync->known = relay_compare_reports (self, sync);
  }
  alone = count_synced (self) < 2;
  g_mutex_unlock (&self->lock);
  if (!sync->known) {
    memset (sync->offsets, 0, sizeof sync->offsets);
    sync->known = alone || is_stated (self);
  }
}

void
relay_set_place (RelaySource *self, const TitlePlace *place)
{
  Relay *relay = self->relay;
  g_autoptr (GPtrArray) sinks = NULL;

  g_mutex_lock (&relay->lock);
  if (!relay->current || self == relay->current)
    sinks = g_ptr_array_ref (relay->sinks);
  g_mutex_unlock (&relay->lock);
  for (guint i = 0; sinks && i < sinks->len; i++) {
    RelaySinkEntry *entry = g_ptr_array_index (sinks, i);

    if (entry->functions->placed)
      entry->functions->placed (entry->sink, place);
  }
}

void
relay_set_ntp_map (RelaySource *self, guint index, const WeirNtpMap *map)
{
  Relay *relay = self->relay;
  gboolean pass;

  // A clip has the clock of the source that it replaces.
  if (index >= RELAY_MAX_TRACKS || self->is_clip)
    return;
  g_mutex_lock (&relay->lock);
  pass = self == relay->current && self->tracks[index].alive;
  // Before the first packet the SSRC of the track is unknown, so any report is accepted.
  if (!self->tracks[index].alive || map->ssrc == self->tracks[index].ssrc)
    self->tracks[index].ntp = *map;
  g_mutex_unlock (&relay->lock);
  if (pass)
    relay_pass_ntp (relay, index);
}
