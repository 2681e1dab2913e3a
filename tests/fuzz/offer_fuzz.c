// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the reader of a WebRTC client's offer, and what is chosen and answered to it: as to a
// reader's, as to a publisher's, and as to a part that is trickled.

#include "app.h"

#include "outlets/webrtc/sdp_sent.h"

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  init_gst ();
  only_critical ();
  return 0;
}

static void
check_answer (const SdpOffer *offer, const GArray *choices, gboolean receives)
{
  static const AnswerCandidate candidate = { "192.0.2.7", 8189, FALSE };
  const AnswerOwn own = { 1, "AAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBBBB", "00:11", FALSE, "weir",
    &candidate, 1, receives };
  gchar *answer = sdp_answer_write (offer, choices, &own);

  require (answer && g_str_has_prefix (answer, "v=0\r\n") && g_str_has_suffix (answer, "\r\n"));
  require (g_utf8_validate (answer, -1, NULL));
  g_free (answer);
}

static void
check_read (const SdpOffer *offer)
{
  static const AnswerTrack tracks[] = { { TRUE, "H264", "profile-level-id=42c01f" },
    { TRUE, "VP9", NULL }, { FALSE, "OPUS", NULL } };
  GError *error = NULL;
  GArray *choices = sdp_answer_choose (offer, tracks, G_N_ELEMENTS (tracks), &error);

  check_error (choices != NULL, &error);
  if (!choices)
    return;
  require (choices->len > 0 && choices->len <= G_N_ELEMENTS (tracks));
  check_answer (offer, choices, FALSE);
  for (guint i = 0; i < choices->len; i++) {
    GBytes *extensions =
        sdp_answer_make_extensions (offer, &g_array_index (choices, AnswerChoice, i));

    g_clear_pointer (&extensions, g_bytes_unref);
  }
  g_array_unref (choices);
}

static void
check_sent (const SdpOffer *offer)
{
  GError *error = NULL;
  GArray *choices = sdp_sent_choose (offer, TRUE, &error);

  check_error (choices != NULL, &error);
  if (!choices)
    return;
  require (choices->len <= offer->media->len);
  check_answer (offer, choices, TRUE);
  for (guint i = 0; i < choices->len; i++) {
    GstCaps *caps = sdp_sent_make_caps (offer, &g_array_index (choices, AnswerChoice, i));

    require (gst_caps_is_fixed (caps));
    gst_caps_unref (caps);
  }
  g_array_unref (choices);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  gchar *text = g_memdup2 (data, size),
        *ufrag = NULL; // so that a sanitizer sees a read past its end
  GError *error = NULL;
  SdpOffer *offer = sdp_offer_new (text, size, &error);

  check_error (offer != NULL, &error);
  if (offer) {
    require (offer->media->len <= SDP_OFFER_MEDIA_MAX && offer->ufrag);
    check_read (offer);
    check_sent (offer);
    check_error (sdp_offer_read_fragment (offer, text, size, &ufrag, &error), &error);
    g_free (ufrag);
    sdp_offer_free (offer);
  }
  g_free (text);
  return 0;
}
