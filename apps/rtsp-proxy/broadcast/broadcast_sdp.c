// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broadcast/broadcast_sdp.h"

#include <arpa/inet.h>
#include <gio/gio.h>
#include <gst/sdp/gstsdpmessage.h>
#include <string.h>

#define NTP_EPOCH G_GUINT64_CONSTANT (2208988800) // seconds from 1900 to 1970

// ---- the ordinary part ----

static void
add_media (GstSDPMessage *sdp, const PacketTrack *track, guint number)
{
  g_autofree gchar *control = g_strdup_printf ("stream=%u", number);
  GstSDPMedia *media;

  gst_sdp_media_new (&media);
  gst_sdp_media_set_port_info (media, 0, 1);
  gst_sdp_media_set_proto (media, "RTP/AVP");
  gst_sdp_media_set_media_from_caps (track->caps, media);
  gst_sdp_media_add_connection (media, "IN", "IP4", "0.0.0.0", 0, 0);
  gst_sdp_media_add_attribute (media, "control", control);
  gst_sdp_message_add_media (sdp, media);
  gst_sdp_media_free (media);
}

gchar *
broadcast_sdp_base (const PacketFile *file, const gchar *name)
{
  gchar length[G_ASCII_DTOSTR_BUF_SIZE], *range, *text;
  GstSDPMessage *sdp;

  g_ascii_formatd (
      length, sizeof length, "%.3f", (gdouble) file->n_frames * (gdouble) file->frame_ns / 1e9);
  range = g_strdup_printf ("npt=0-%s", length);
  gst_sdp_message_new (&sdp);
  gst_sdp_message_set_version (sdp, "0");
  gst_sdp_message_set_origin (sdp, "-", "1", "1", "IN", "IP4", "0.0.0.0");
  gst_sdp_message_set_session_name (sdp, name);
  gst_sdp_message_add_time (sdp, "0", "0", NULL);
  gst_sdp_message_add_attribute (sdp, "control", "*");
  gst_sdp_message_add_attribute (sdp, "range", range);
  for (guint i = 0; i < file->n_tracks; i++)
    add_media (sdp, &file->tracks[i], i);
  text = gst_sdp_message_as_text (sdp);
  gst_sdp_message_free (sdp);
  g_free (range);
  return text;
}

// ---- the schedule ----

// Reads an address. Returns FALSE and leaves the family AF_UNSPEC if it is none.
static gboolean
read_address (const gchar *text, guint16 port, WeirAddress *address)
{
  g_autoptr (GSocketAddress) read =
      text ? g_inet_socket_address_new_from_string (text, port) : NULL;
  struct sockaddr_storage storage;

  return read && g_socket_address_to_native (read, &storage, sizeof storage, NULL)
         && weir_address_normalise ((const struct sockaddr *) &storage,
                (socklen_t) g_socket_address_get_native_size (read), address)
                == 0;
}

static void
fill_packets (
    const PacketFile *file, guint32 from, guint32 to, WeirPacketRange packets[RELAY_MAX_TRACKS])
{
  for (guint i = 0; i < file->n_tracks; i++)
    packets[i] = (WeirPacketRange) { file->tracks[i].first[from], file->tracks[i].first[to] };
}

static const WeirChannel *
find_channel (const WeirTransmission *transmission, guint32 number)
{
  for (size_t i = 0; i < transmission->n_channels; i++) {
    const WeirChannel *channel = &transmission->channels[i];

    if (channel->type == WEIR_CHANNEL_MULTICAST && channel->number == number)
      return channel;
  }
  return NULL;
}

// Adds what is sent on a channel from the newest start on.
static gboolean
add_sends (WeirDescription *to, const BroadcastSdp *from, const WeirChannel *channel)
{
  for (size_t i = 0; i < channel->n_works; i++) {
    const WeirWork *work = &channel->works[i];
    const gint64 cycle = weir_work_cycle_ns (work, from->file->frame_ns);
    const gint64 past = from->now_ns > work->start_ns ? (from->now_ns - work->start_ns) / cycle : 0;
    WeirDescribedSend *send = &to->sends[to->n_sends];

    if (weir_work_end_ns (work, from->file->frame_ns) <= from->now_ns)
      continue;
    if (to->n_sends == WEIR_DESCRIPTION_SENDS_MAX)
      return FALSE;
    *send = (WeirDescribedSend) { .channel = channel->number,
      .from = work->from,
      .to = work->to,
      .repeat = work->repeat,
      .start_ns = work->start_ns + past * cycle,
      .period_ns = cycle };
    if (work->repeat != WEIR_REPEAT_FOREVER)
      send->repeat -= (guint32) past;
    fill_packets (from->file, work->from, work->to, send->packets);
    to->n_sends++;
  }
  return TRUE;
}

static gboolean
add_channel (WeirDescription *to, const BroadcastSdp *from, guint32 number)
{
  const WeirChannel *channel = find_channel (from->transmission, number);
  WeirDescribedChannel *described = &to->channels[to->n_channels];
  MulticastAddress address = { 0 };

  if (weir_description_find_channel (to, number))
    return TRUE;
  if (!channel || to->n_channels == WEIR_DESCRIPTION_CHANNELS_MAX)
    return FALSE;
  from->address (from->owner, number, &address);
  *described = (WeirDescribedChannel) { .number = number, .ttl = (guint8) address.ttl };
  read_address (address.group, address.port, &described->group);
  read_address (from->source, address.port, &described->source); // the port does not count
  to->n_channels++;
  return add_sends (to, from, channel);
}

static gboolean
add_receives (WeirDescription *to, const BroadcastSdp *from)
{
  for (size_t i = 0; i < from->reception->n_items; i++) {
    const WeirReceptionItem *item = &from->reception->items[i];
    WeirDescribedReceive *receive = &to->receives[to->n_receives];

    if (item->type != WEIR_CHANNEL_MULTICAST)
      continue;
    if (to->n_receives == WEIR_DESCRIPTION_RECEIVES_MAX || !add_channel (to, from, item->number))
      return FALSE;
    *receive = (WeirDescribedReceive) { .channel = item->number,
      .from = item->from,
      .to = item->to,
      .join_ns = item->join_ns,
      .leave_ns = item->leave_ns };
    fill_packets (from->file, item->from, item->to, receive->packets);
    to->n_receives++;
  }
  return TRUE;
}

static WeirDescription *
describe (const BroadcastSdp *from)
{
  const PacketFile *file = from->file;
  WeirDescription *self = g_new0 (WeirDescription, 1);

  self->ntp_now = (guint64) from->real_s + NTP_EPOCH;
  self->ntp_end = self->ntp_now + from->valid_s;
  g_strlcpy (self->id, file->id, sizeof self->id);
  g_strlcpy (self->scheme, from->scheme, sizeof self->scheme);
  self->now_ns = from->now_ns;
  self->play_ns = from->reception->play_ns + file->delay_ns;
  self->n_frames = file->n_frames;
  self->frame_ns = file->frame_ns;
  self->n_tracks = file->n_tracks;
  for (guint i = 0; i < file->n_tracks; i++)
    self->n_packets[i] = file->tracks[i].n_packets;
  return self;
}

gchar *
broadcast_sdp_make (const BroadcastSdp *from, GError **error)
{
  g_autofree WeirDescription *description = describe (from);
  char *text = NULL;

  if (!add_receives (description, from)
      || weir_description_write (description, from->base, strlen (from->base), &text) < 0)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
        "the schedule has more than %u channels; make the first segment longer",
        WEIR_DESCRIPTION_CHANNELS_MAX);
  return text;
}
