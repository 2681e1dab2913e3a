// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/webrtc/webrtc_stream.h"

#include "base/log.h"
#include "outlets/webrtc/webrtc_choice.h"
#include "outlets/webrtc/webrtc_track.h"
#include "relay/left_out.h"

#define TRACKS 2

// What a stream is made of.
typedef struct {
  Presentation *presentation;
  WebrtcChoice choice;
} Key;

struct _WebrtcStream {
  gatomicrefcount refs; // the relay's, and that of all users together
  guint users;          // with `all_lock` held
  guint leaving;        // calls of linger() that are on their way; with `all_lock` held
  guint lingers;        // the source that waits for further users; the main thread's
  Key key;
  Presentation *encoded; // the same with Opus, or NULL
  Relay *relay;          // of the presentation
  guint n_tracks;
  Relay *relays[TRACKS]; // that each track comes from
  guint numbers[TRACKS]; // of the tracks in them
  WebrtcStreamTrack *tracks[TRACKS];
  gchar *left_out;
  gint ended;       // atomic
  gboolean encodes; // a packet of sound has come from the encoder; used in on_push()

  GMutex lock; // protects the fields below
  gboolean has_clock;
  gint64 clock; // Unix time minus the relay's time, ns
};

static GMutex all_lock;
static GHashTable *all; // Key: WebrtcStream; use with `all_lock` held

// Call with `all_lock` held.
static void
forget (WebrtcStream *self)
{
  if (g_hash_table_lookup (all, &self->key) == self)
    g_hash_table_remove (all, &self->key);
}

static void
end (WebrtcStream *self)
{
  g_atomic_int_set (&self->ended, TRUE);
  g_mutex_lock (&all_lock);
  forget (self);
  g_mutex_unlock (&all_lock);
}

// ---- the relay's side ----

static gint
find_track (const WebrtcStream *self, guint number)
{
  for (guint i = 0; i < self->n_tracks; i++) {
    if (self->numbers[i] == number)
      return (gint) i;
  }
  return -1;
}

// The tracks must be those that the readers have been told.
static void
on_begun (gpointer data, Relay *relay, GPtrArray *caps, gint64 start)
{
  WebrtcStream *self = data;

  for (guint i = 0; i < self->n_tracks; i++) {
    const GstCaps *each =
        self->numbers[i] < caps->len ? g_ptr_array_index (caps, self->numbers[i]) : NULL;

    if (self->relays[i] != relay)
      continue;
    if (!each
        || webrtc_codec_from_name (left_out_codec (each))
               != webrtc_stream_track_get (self->tracks[i])->codec)
      end (self);
  }
}

// Reports whether a packet is the first one of an encoder of Opus. It begins with samples that the
// encoder adds (RFC 7845, 4.2), so the next one comes sooner after it than browsers take.
static gboolean
is_padding (WebrtcStream *self, guint track)
{
  const gboolean is_first = self->relays[track] != self->relay && !self->encodes;

  self->encodes |= is_first;
  return is_first;
}

static void
on_push (gpointer data, const RelayPacket *packet)
{
  WebrtcStream *self = data;
  const gint i = find_track (self, packet->track);

  if (i >= 0 && !webrtc_stream_has_ended (self) && !is_padding (self, (guint) i))
    webrtc_stream_track_push (self->tracks[i], packet);
  else
    gst_buffer_unref (packet->buffer);
}

static gboolean
free_here (gpointer data)
{
  WebrtcStream *self = data;

  for (guint i = 0; i < self->n_tracks; i++)
    g_clear_pointer (&self->tracks[i], webrtc_stream_track_free);
  if (self->encoded) {
    presentation_unuse (self->encoded);
    presentation_drop_derived (self->key.presentation, self->encoded);
  }
  presentation_unref (self->key.presentation);
  g_mutex_clear (&self->lock);
  g_free (self->left_out);
  g_free (self);
  return G_SOURCE_REMOVE;
}

static void
unref (WebrtcStream *self)
{
  if (g_atomic_ref_count_dec (&self->refs))
    g_main_context_invoke (NULL, free_here, self);
}

// No packets come any more.
static void
on_ended (gpointer data)
{
  end (data);
  unref (data);
}

// The first reader begins with a picture that came before the stream was made.
static const RelaySink relay_sink = {
  .begun = on_begun, .push = on_push, .ended = on_ended, .from_join = TRUE
};

// ---- the presentation with Opus, on the main thread ----

static void
on_close (Presentation *presentation, const gchar *reason, gpointer data)
{
  WebrtcStream *self = data;

  log_event (
      "mount %s: its stream for browsers ends: %s", presentation_get_label (presentation), reason);
  end (self);
}

static void
on_event (Presentation *presentation, gpointer data)
{
}

static const PresentationCallbacks encoded_callbacks = { on_close, on_event, on_event };

// ---- construction ----

static gboolean
add_track (WebrtcStream *self, Relay *relay, gint number, GstCaps *caps, GSocket *v4, GSocket *v6,
    GError **error)
{
  WebrtcStreamTrack *track =
      webrtc_stream_track_new (self->key.presentation, relay, (guint) number, caps, v4, v6, error);

  if (!track)
    return FALSE;
  self->relays[self->n_tracks] = relay;
  self->numbers[self->n_tracks] = (guint) number;
  self->tracks[self->n_tracks++] = track;
  return TRUE;
}

static gboolean
add_tracks (WebrtcStream *self, GSocket *v4, GSocket *v6, GError **error)
{
  const WebrtcChoice *choice = &self->key.choice;
  Relay *relay = self->relay;
  gboolean ok = TRUE;
  GstCaps *caps;

  if (choice->video >= 0) {
    caps = relay_dup_caps (relay, (guint) choice->video);
    ok = add_track (self, relay, choice->video, caps, v4, v6, error);
    gst_caps_unref (caps);
  }
  if (ok && choice->audio >= 0) {
    caps = choice->encodes
               ? gst_caps_new_simple ("application/x-rtp", "media", G_TYPE_STRING, "audio",
                     "encoding-name", G_TYPE_STRING, "OPUS", "clock-rate", G_TYPE_INT, 48000, NULL)
               : relay_dup_caps (relay, (guint) choice->audio);
    if (choice->encodes)
      relay = presentation_get_relay (self->encoded);
    ok = add_track (self, relay, choice->audio, caps, v4, v6, error);
    gst_caps_unref (caps);
  }
  return ok;
}

static WebrtcStream *
make (const Key *key, GSocket *v4, GSocket *v6, GError **error)
{
  WebrtcStream *self = g_new0 (WebrtcStream, 1);

  g_atomic_ref_count_init (&self->refs);
  self->users = 1;
  g_mutex_init (&self->lock);
  self->key = *key;
  presentation_ref (key->presentation);
  self->relay = presentation_get_relay (key->presentation);
  if (key->choice.encodes)
    self->encoded = presentation_derive (
        key->presentation, WEBRTC_SOUND_STAGE, &encoded_callbacks, self, error);
  if (self->encoded)
    presentation_use (self->encoded);
  if ((key->choice.encodes && !self->encoded) || !add_tracks (self, v4, v6, error)) {
    unref (self);
    return NULL;
  }
  return self;
}

static void
begin_with (WebrtcStream *self, Relay *relay)
{
  guint32 tracks = 0;

  for (guint i = 0; i < self->n_tracks; i++)
    tracks |= self->relays[i] == relay ? 1u << self->numbers[i] : 0;
  if (!tracks)
    return;
  g_atomic_ref_count_inc (&self->refs); // the relay's
  relay_add_sink (relay, &relay_sink, self, tracks, 0);
}

// Lets the packets come, if the tracks are still the same. A stage that fails takes the sound, and
// nothing else: the picture does not come through it.
static void
begin (WebrtcStream *self)
{
  begin_with (self, self->relay);
  if (self->encoded)
    begin_with (self, presentation_get_relay (self->encoded));
}

static guint
hash_key (gconstpointer key)
{
  const Key *self = key;

  return g_direct_hash (self->presentation) ^ (guint) self->choice.video << 8
         ^ (guint) self->choice.audio << 16 ^ (guint) self->choice.encodes;
}

static gboolean
is_equal_key (gconstpointer a, gconstpointer b)
{
  const Key *one = a, *other = b;

  return one->presentation == other->presentation && one->choice.video == other->choice.video
         && one->choice.audio == other->choice.audio
         && one->choice.encodes == other->choice.encodes;
}

// Call with `all_lock` held.
static WebrtcStream *
find (const Key *key)
{
  WebrtcStream *self = all ? g_hash_table_lookup (all, key) : NULL;

  if (self)
    self->users++;
  return self;
}

// Adds a stream, unless another thread has added one of the same, and returns the one that is in
// use. Takes ownership of `made`.
static WebrtcStream *
add (WebrtcStream *made)
{
  WebrtcStream *first;

  g_mutex_lock (&all_lock);
  if (!all)
    all = g_hash_table_new (hash_key, is_equal_key);
  first = find (&made->key);
  if (!first && !webrtc_stream_has_ended (made))
    g_hash_table_insert (all, &made->key, made);
  g_mutex_unlock (&all_lock);
  if (first)
    unref (made);
  else
    begin (made);
  return first ? first : made;
}

WebrtcStream *
webrtc_stream_get (
    Presentation *presentation, guint32 codecs, GSocket *v4, GSocket *v6, GError **error)
{
  Key key = { presentation };
  WebrtcStream *self, *made;
  gchar *left_out;

  if (!webrtc_choice_make (&key.choice, presentation, codecs, &left_out, error)) {
    g_free (left_out);
    return NULL;
  }
  g_mutex_lock (&all_lock);
  self = find (&key);
  g_mutex_unlock (&all_lock);
  if (!self && (made = make (&key, v4, v6, error))) {
    made->left_out = g_steal_pointer (&left_out);
    self = add (made);
  }
  g_free (left_out);
  return self;
}

WebrtcStream *
webrtc_stream_ref (WebrtcStream *self)
{
  g_mutex_lock (&all_lock);
  self->users++;
  g_mutex_unlock (&all_lock);
  return self;
}

// Ends the stream unless it has users again.
static gboolean
end_lingering (gpointer data)
{
  WebrtcStream *self = data;
  gboolean unused;

  g_mutex_lock (&all_lock);
  unused = self->users == 0 && self->leaving == 0;
  if (unused)
    forget (self);
  g_mutex_unlock (&all_lock);
  self->lingers = 0;
  if (unused) {
    relay_remove_sink (self->relay, self);
    if (self->encoded)
      relay_remove_sink (presentation_get_relay (self->encoded), self);
    unref (self);
  }
  return G_SOURCE_REMOVE;
}

// The next user begins at once, at a keyframe that is in the window already.
static gboolean
linger (gpointer data)
{
  WebrtcStream *self = data;
  MountConfig *config = presentation_dup_config (self->key.presentation);

  g_mutex_lock (&all_lock);
  self->leaving--;
  g_mutex_unlock (&all_lock);
  g_clear_handle_id (&self->lingers, g_source_remove);
  self->lingers =
      g_timeout_add (webrtc_stream_has_ended (self) ? 0 : config->linger_ms, end_lingering, self);
  mount_config_unref (config);
  return G_SOURCE_REMOVE;
}

void
webrtc_stream_unref (WebrtcStream *self)
{
  gboolean last;

  g_mutex_lock (&all_lock);
  last = --self->users == 0;
  self->leaving += last;
  g_mutex_unlock (&all_lock);
  if (last)
    g_main_context_invoke (NULL, linger, self);
}

// ---- what readers ask ----

guint
webrtc_stream_n_tracks (WebrtcStream *self)
{
  return self->n_tracks;
}

const WebrtcTrack *
webrtc_stream_get_track (WebrtcStream *self, guint track)
{
  return webrtc_stream_track_get (self->tracks[track]);
}

gboolean
webrtc_stream_has_ended (WebrtcStream *self)
{
  return g_atomic_int_get (&self->ended);
}

gchar *
webrtc_stream_dup_left_out (WebrtcStream *self)
{
  return g_strdup (self->left_out);
}

gint64
webrtc_stream_ask_key (WebrtcStream *self, guint track, gint64 now)
{
  return track < self->n_tracks ? webrtc_stream_track_ask_key (self->tracks[track], now) : 0;
}

// Returns Unix time minus the relay's time: of the source's clock if it has sent reports by the
// first call, else of the system's. It stays, so that all reports are of one clock.
static gint64
get_clock (WebrtcStream *self, const RelaySync *sync, gint64 time)
{
  gint64 clock;

  g_mutex_lock (&self->lock);
  if (!self->has_clock)
    self->clock = sync->has_clock ? sync->clock : g_get_real_time () * (gint64) GST_USECOND - time;
  self->has_clock = TRUE;
  clock = self->clock;
  g_mutex_unlock (&self->lock);
  return clock;
}

gboolean
webrtc_stream_get_clock (WebrtcStream *self, guint track, gint64 now, guint32 *rtp, guint64 *ntp)
{
  RelaySync sync;
  gint64 time;

  if (track >= self->n_tracks || !webrtc_stream_track_get_time (self->tracks[track], now, &time))
    return FALSE;
  *rtp = relay_get_timestamp (self->relays[track], self->numbers[track], time);
  if (!relay_convert_time (self->relays[track], self->relay, &time))
    return FALSE;
  relay_get_sync (self->relay, &sync);
  *ntp = weir_ntp_from_unix (
      get_clock (self, &sync, time) + time + sync.offsets[self->numbers[track]]);
  return TRUE;
}

gboolean
webrtc_stream_is_of (const WebrtcStream *self, const Presentation *presentation)
{
  return self->key.presentation == presentation;
}

gboolean
webrtc_stream_get_ahead (
    WebrtcStream *self, guint track, WebrtcStream *other, guint other_track, guint32 *ahead)
{
  return relay_get_ahead (self->relays[track], self->numbers[track], other->relays[other_track],
      other->numbers[other_track], ahead);
}
