// SPDX-License-Identifier: LGPL-2.1-or-later
// A client of WHEP of GStreamer's webrtcbin:
//
//     webrtcbin-reader URL SECONDS [N]
//
// It reads H.264 and Opus, decodes both, and SECONDS after the first picture prints what came as
// JSON: of each kind the packets, of video also the SHA-256 of each picture, of audio the duration
// of the decoded sound in ms. With N, it loses one in N packets of media on purpose: "lost" says
// how many. It exits with 77 if an element is not installed.
#include <gst/gst.h>
#include <gst/sdp/sdp.h>
#include <json-glib/json-glib.h>
#include <libsoup/soup.h>

#include <string.h>

// Of webrtc.h, whose Debian package needs OpenCV's: the values and the layout are part of the
// library's ABI.
enum { SDP_TYPE_ANSWER = 3, DIRECTION_RECVONLY = 3 };
typedef struct {
  int type;
  GstSDPMessage *sdp;
} SessionDescription;

#define START_S 30      // the longest time until the first picture
#define LATENCY_MS 1000 // what is lost comes again meanwhile, also on a busy machine
#define RTX_WORDS "rtcp-fb-nack=true, rtcp-fb-nack-pli=true"

typedef struct {
  const gchar *kind, *offered, *decoder;
  gint packets; // atomic
  GMutex lock;
  JsonArray *pictures;
  GstClockTime duration;
} Track;

static Track tracks[] = {
  { "video",
      "application/x-rtp, media=video, encoding-name=H264, payload=96, clock-rate=90000, "
      "packetization-mode=(string)1, profile-level-id=(string)42e01f, " RTX_WORDS,
      "queue ! rtph264depay ! h264parse ! openh264dec ! video/x-raw, format=I420" },
  { "audio", "application/x-rtp, media=audio, encoding-name=OPUS, payload=111, clock-rate=48000",
      "queue ! rtpopusdepay ! opusdec" },
};

static GMainLoop *loop;
static gdouble seconds;
static guint lose;
static gint of_media, lost; // packets, atomic
static gboolean failed;

static GstPadProbeReturn
count_packet (GstPad *pad, GstPadProbeInfo *info, gpointer track)
{
  g_atomic_int_inc (&((Track *) track)->packets);
  return GST_PAD_PROBE_OK;
}

static gboolean
quit (gpointer data)
{
  g_main_loop_quit (loop);
  return FALSE;
}

static void
on_decoded (GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer data)
{
  Track *track = data;
  GstMapInfo map;

  g_mutex_lock (&track->lock);
  if (g_str_equal (track->kind, "audio")) {
    track->duration += GST_BUFFER_DURATION (buffer);
  } else if (gst_buffer_map (buffer, &map, GST_MAP_READ)) {
    gchar *hash = g_compute_checksum_for_data (G_CHECKSUM_SHA256, map.data, map.size);

    if (json_array_get_length (track->pictures) == 0)
      g_timeout_add (1000 * seconds, quit, NULL);
    json_array_add_string_element (track->pictures, hash);
    g_free (hash);
    gst_buffer_unmap (buffer, &map);
  }
  g_mutex_unlock (&track->lock);
}

static void
on_pad (GstElement *rtc, GstPad *pad, gpointer pipeline)
{
  GstCaps *caps = gst_pad_get_current_caps (pad);
  const gchar *kind = gst_structure_get_string (gst_caps_get_structure (caps, 0), "media");
  Track *track = &tracks[g_str_equal (kind, "audio")];
  GstElement *decoder = gst_parse_bin_from_description (track->decoder, TRUE, NULL);
  GstElement *sink = gst_element_factory_make ("fakesink", NULL);
  GstPad *entry = gst_element_get_static_pad (decoder, "sink");

  g_object_set (sink, "signal-handoffs", TRUE, NULL);
  g_signal_connect (sink, "handoff", G_CALLBACK (on_decoded), track);
  gst_pad_add_probe (entry, GST_PAD_PROBE_TYPE_BUFFER, count_packet, track, NULL);
  gst_bin_add_many (GST_BIN (pipeline), decoder, sink, NULL);
  gst_element_link (decoder, sink);
  gst_element_sync_state_with_parent (sink);
  gst_element_sync_state_with_parent (decoder);
  gst_pad_link (pad, entry);
  gst_object_unref (entry);
  gst_caps_unref (caps);
}

static GstPadProbeReturn
lose_some (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  guint8 start[2];

  // RTP beside RTCP, DTLS and STUN: RFC 5761, section 4, and RFC 7983.
  if (gst_buffer_extract (GST_PAD_PROBE_INFO_BUFFER (info), 0, start, 2) != 2 || start[0] >> 6 != 2
      || (start[1] >= 192 && start[1] < 224) || (g_atomic_int_add (&of_media, 1) + 1) % lose)
    return GST_PAD_PROBE_OK;
  g_atomic_int_inc (&lost);
  return GST_PAD_PROBE_DROP;
}

static void
on_element (GstBin *pipeline, GstBin *bin, GstElement *element, gpointer data)
{
  GstElementFactory *factory = gst_element_get_factory (element);
  GstPad *pad;

  if (!factory || strcmp (GST_OBJECT_NAME (factory), "nicesrc") != 0)
    return;
  pad = gst_element_get_static_pad (element, "src");
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, lose_some, NULL, NULL);
  gst_object_unref (pad);
}

// Lets webrtcbin send from the address of the URL, one of this machine: by itself, libnice sends
// from those of its networks, and over UDP it does not reach 127.0.0.1 from there.
static void
send_from (GstElement *rtc, const gchar *url)
{
  GUri *uri = g_uri_parse (url, G_URI_FLAGS_NONE, NULL);
  GObject *agent;
  gboolean added;

  g_object_get (rtc, "ice-agent", &agent, NULL);
  g_signal_emit_by_name (agent, "add-local-ip-address", g_uri_get_host (uri), &added);
  g_object_unref (agent);
  g_uri_unref (uri);
}

// Returns the offer's text, or NULL. It is webrtcbin's own description from now on.
static gchar *
make_offer (GstElement *rtc)
{
  GstPromise *promise = gst_promise_new ();
  const GValue *value = NULL;
  gchar *text = NULL;

  g_signal_emit_by_name (rtc, "create-offer", NULL, promise);
  if (gst_promise_wait (promise) == GST_PROMISE_RESULT_REPLIED)
    value = gst_structure_get_value (gst_promise_get_reply (promise), "offer");
  if (value) {
    const SessionDescription *offer = g_value_get_boxed (value);

    text = gst_sdp_message_as_text (offer->sdp);
    g_signal_emit_by_name (rtc, "set-local-description", offer, NULL);
  }
  gst_promise_unref (promise);
  return text;
}

// Returns the answer to an offer, or NULL.
static GstSDPMessage *
post (const gchar *url, const gchar *offer)
{
  SoupSession *session = soup_session_new ();
  SoupMessage *message = soup_message_new ("POST", url);
  GstSDPMessage *sdp = NULL;
  GError *error = NULL;
  GBytes *body = g_bytes_new (offer, strlen (offer)), *answer;

  soup_message_set_request_body_from_bytes (message, "application/sdp", body);
  answer = soup_session_send_and_read (session, message, NULL, &error);
  if (!answer)
    g_printerr ("webrtcbin-reader: %s: %s\n", url, error->message);
  else if (soup_message_get_status (message) != SOUP_STATUS_CREATED)
    g_printerr ("webrtcbin-reader: %s: status %u\n", url, soup_message_get_status (message));
  else {
    gst_sdp_message_new (&sdp);
    gst_sdp_message_parse_buffer (g_bytes_get_data (answer, NULL), g_bytes_get_size (answer), sdp);
  }
  g_clear_pointer (&answer, g_bytes_unref);
  g_clear_error (&error);
  g_bytes_unref (body);
  g_object_unref (message);
  g_object_unref (session);
  return sdp;
}

static gboolean
on_message (GstBus *bus, GstMessage *message, gpointer data)
{
  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR) {
    GError *error;

    gst_message_parse_error (message, &error, NULL);
    g_printerr ("webrtcbin-reader: %s: %s\n", GST_MESSAGE_SRC_NAME (message), error->message);
    g_error_free (error);
    failed = TRUE;
    g_main_loop_quit (loop);
  }
  return TRUE;
}

static void
print_result (void)
{
  JsonObject *result = json_object_new ();
  JsonNode *node = json_node_init_object (json_node_alloc (), result);
  gchar *text;
  guint i;

  json_object_set_int_member (result, "lost", g_atomic_int_get (&lost));
  for (i = 0; i < G_N_ELEMENTS (tracks); i++) {
    JsonObject *track = json_object_new ();

    json_object_set_int_member (track, "packets", g_atomic_int_get (&tracks[i].packets));
    if (i == 0)
      json_object_set_array_member (track, "pictures", tracks[i].pictures);
    else
      json_object_set_int_member (track, "ms", tracks[i].duration / GST_MSECOND);
    json_object_set_object_member (result, tracks[i].kind, track);
  }
  text = json_to_string (node, FALSE);
  g_print ("%s\n", text);
  g_free (text);
  json_node_unref (node);
}

static gboolean
has_elements (void)
{
  static const gchar *const needed[] = { "webrtcbin", "nicesrc", "dtlssrtpdec", "srtpdec",
    "openh264dec", "opusdec" };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (needed); i++) {
    GstElementFactory *factory = gst_element_factory_find (needed[i]);

    if (!factory) {
      g_print ("GStreamer has no element %s\n", needed[i]);
      return FALSE;
    }
    gst_object_unref (factory);
  }
  return TRUE;
}

int
main (int argc, char **argv)
{
  GstElement *pipeline, *rtc;
  SessionDescription answer = { SDP_TYPE_ANSWER, NULL };
  GstPromise *promise;
  GstBus *bus;
  gchar *offer;
  guint i;

  gst_init (&argc, &argv);
  if (argc < 3 || argc > 4) {
    g_printerr ("usage: webrtcbin-reader URL SECONDS [N]\n");
    return 2;
  }
  if (!has_elements ())
    return 77;
  loop = g_main_loop_new (NULL, FALSE);
  seconds = g_ascii_strtod (argv[2], NULL);
  pipeline = gst_pipeline_new (NULL);
  rtc = gst_element_factory_make ("webrtcbin", NULL);
  gst_util_set_object_arg (G_OBJECT (rtc), "bundle-policy", "max-bundle");
  g_object_set (rtc, "latency", LATENCY_MS, NULL);
  if (argc > 3) {
    lose = g_ascii_strtoull (argv[3], NULL, 10);
    g_signal_connect (pipeline, "deep-element-added", G_CALLBACK (on_element), NULL);
  }
  send_from (rtc, argv[1]);
  gst_bin_add (GST_BIN (pipeline), rtc);
  g_signal_connect (rtc, "pad-added", G_CALLBACK (on_pad), pipeline);
  bus = gst_element_get_bus (pipeline);
  gst_bus_add_watch (bus, on_message, NULL);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  for (i = 0; i < G_N_ELEMENTS (tracks); i++) {
    GstCaps *caps = gst_caps_from_string (tracks[i].offered);
    GObject *transceiver;

    g_mutex_init (&tracks[i].lock);
    tracks[i].pictures = json_array_new ();
    g_signal_emit_by_name (rtc, "add-transceiver", DIRECTION_RECVONLY, caps, &transceiver);
    g_object_set (transceiver, "do-nack", TRUE, NULL);
    g_object_unref (transceiver);
    gst_caps_unref (caps);
  }

  offer = make_offer (rtc);
  if (!offer) {
    g_printerr ("webrtcbin-reader: webrtcbin makes no offer\n");
    return 1;
  }
  answer.sdp = post (argv[1], offer);
  g_free (offer);
  if (!answer.sdp)
    return 1;
  promise = gst_promise_new ();
  g_signal_emit_by_name (rtc, "set-remote-description", &answer, promise);
  gst_promise_wait (promise);
  gst_promise_unref (promise);
  gst_sdp_message_free (answer.sdp);

  g_timeout_add_seconds (START_S + seconds, quit, NULL);
  g_main_loop_run (loop);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  print_result ();
  gst_bus_remove_watch (bus);
  gst_object_unref (bus);
  gst_object_unref (pipeline);
  g_main_loop_unref (loop);
  return failed;
}
