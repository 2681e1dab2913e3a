// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broadcast/broadcast_title.h"

#include "broadcast/broadcast_sdp.h"

#define SENT_NS (30 * (gint64) GST_SECOND)  // after the last client has received everything
#define KEPT_NS (600 * (gint64) GST_SECOND) // after the last client has played the title
#define FAILED_NS (5 * (gint64) GST_SECOND) // a failure is told; then the title is tried again
#define ESTIMATE_MAX 60

BroadcastTitle *
broadcast_title_new (const gchar *name, gint64 now_ns)
{
  BroadcastTitle *self = g_new0 (BroadcastTitle, 1);

  self->name = g_strdup (name);
  self->since_ns = now_ns;
  return self;
}

void
broadcast_title_free (BroadcastTitle *self)
{
  g_clear_error (&self->error);
  g_clear_pointer (&self->file, packet_file_unref);
  g_free (self->stamp);
  g_free (self->sdp);
  g_free (self->name);
  g_free (self);
}

void
broadcast_title_set_file (BroadcastTitle *self, PacketFile *file, gint64 now_ns)
{
  self->state = TITLE_READY;
  self->since_ns = self->needed_ns = now_ns;
  self->file = file;
  self->sdp = broadcast_sdp_base (file, self->name);
}

void
broadcast_title_set_error (BroadcastTitle *self, GError *error, gint64 now_ns)
{
  self->state = TITLE_FAILED;
  self->since_ns = now_ns;
  self->error = error;
}

void
broadcast_title_retire (BroadcastTitle *self, gint64 now_ns)
{
  // No name of a title has a line break, and no other version was ready at this time.
  gchar *name = g_strdup_printf ("%s\n%" G_GINT64_FORMAT, self->name, self->since_ns);

  g_free (self->name);
  self->name = name;
  self->needed_ns = now_ns - KEPT_NS;
}

guint
broadcast_title_estimate (const BroadcastTitle *self, gint64 now_ns)
{
  const gdouble past = (gdouble) (now_ns - self->since_ns) / 1e9;

  if (self->state != TITLE_PACKETIZES || self->done < 0.01)
    return 1;
  return (guint) CLAMP (past * (1 - self->done) / self->done + 1, 1, ESTIMATE_MAX);
}

gint
broadcast_title_start (BroadcastTitle *self, const WeirSchemeConfig *config,
    const WeirPulse *others, guint n_others, WeirGroupPool *pool, gint64 now_ns,
    gchar why[WEIR_SCHEME_WHY])
{
  const gint64 frame_ns = self->file->frame_ns;
  WeirSchemeConfig own = *config;
  gint failed;

  if (self->is_sent)
    return 0;
  if (weir_scheme_pulse (&own, self->file->n_frames, frame_ns, &self->pulse))
    own.delay =
        own.first * weir_stagger_choose (&self->pulse, others, n_others, own.first * frame_ns);
  failed =
      weir_scheme_init (&self->scheme, &own, self->file->n_frames, frame_ns, pool, now_ns, why);
  self->is_sent = failed == 0;
  self->has_pulse =
      self->is_sent && weir_scheme_pulse (&own, self->file->n_frames, frame_ns, &self->pulse);
  self->promised_ns = now_ns;
  self->next_ns = now_ns;
  return failed;
}

void
broadcast_title_stop (BroadcastTitle *self, gint64 now_ns)
{
  if (self->is_sent)
    weir_scheme_free (&self->scheme, now_ns);
  self->is_sent = self->has_pulse = FALSE;
}

gint
broadcast_title_admit (
    BroadcastTitle *self, gint64 now_ns, WeirReception *reception, gchar why[WEIR_SCHEME_WHY])
{
  const gint failed = weir_scheme_admit (&self->scheme, now_ns, reception, why);
  const gint64 length_ns = self->file->n_frames * self->file->frame_ns;

  if (failed < 0)
    return failed;
  for (size_t i = 0; i < reception->n_items; i++)
    self->promised_ns = MAX (self->promised_ns, reception->items[i].leave_ns);
  self->needed_ns = MAX (self->needed_ns, reception->play_ns + length_ns);
  self->next_ns = now_ns;
  return 0;
}

gboolean
broadcast_title_tidy (BroadcastTitle *self, gint64 now_ns)
{
  if (self->state == TITLE_FAILED)
    return now_ns - self->since_ns > FAILED_NS;
  if (self->state != TITLE_READY)
    return FALSE;
  if (self->is_sent)
    weir_scheme_advance (&self->scheme, now_ns);
  if (self->is_sent && now_ns - self->promised_ns > SENT_NS)
    broadcast_title_stop (self, now_ns);
  return !self->is_sent && now_ns - self->needed_ns > KEPT_NS;
}
