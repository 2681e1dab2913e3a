// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the server's side of RTMP: the first byte says how many bytes come at a time, and the
// others are what a client sends behind its handshake.

#include <string.h>

#include "fuzz.h"
#include "rtmp/amf.h"
#include "rtmp/flv.h"
#include "rtmp/session.h"

#define HANDSHAKE (1 + 2 * 1536)

// Touches each byte, so that AddressSanitizer sees those that are not there.
static void
touch (const uint8_t *data, size_t len)
{
  static volatile uint8_t sum;

  for (size_t i = 0; i < len; i++)
    sum = (uint8_t) (sum + data[i]);
}

// The body of a picture is its own record here.
static void
check_units (const WeirFlv *flv)
{
  uint8_t *units = malloc (flv->len);
  size_t n_empty, len;
  bool cut;

  len = weir_flv_copy_units (
      flv->codec, flv->data, flv->len, flv->data, flv->len, units, &n_empty, &cut);
  require (len + n_empty <= flv->len && (cut || flv->len == 0 || len + n_empty > 0));
  touch (units, len);
  free (units);
}

static void
check_media (const WeirRtmpEvent *event)
{
  char codec[WEIR_FLV_CODEC_TEXT] = "";
  uint16_t channels;
  uint32_t rate;
  WeirFlv flv;
  int result = (event->type == WEIR_RTMP_VIDEO ? weir_flv_read_video : weir_flv_read_audio) (
      event->data, event->len, &flv, codec);

  if (result == 0)
    touch (flv.data, flv.len);
  if (result == 0 && event->type == WEIR_RTMP_VIDEO)
    check_units (&flv);
  else
    require (strlen (codec) < sizeof codec);
  if (result == 0 && weir_flv_read_aac_config (flv.data, flv.len, &rate, &channels) == 0)
    require (rate > 0 && channels <= 8);
}

static void
check_metadata (const WeirRtmpEvent *event)
{
  WeirBytes b = weir_bytes (event->data, event->len);
  WeirAmf value, field;

  while (weir_amf_read (&b, &value) == 0) {
    if (weir_amf_find (&value, "a", &field) && field.type == WEIR_AMF_STRING)
      touch (field.text, field.len);
  }
}

static void
check_event (WeirRtmpSession *session, const WeirRtmpEvent *event)
{
  switch (event->type) {
    case WEIR_RTMP_PUBLISH:
      require (strlen (event->app) <= 1024 && strlen (event->name) <= 1024);
      if (event->name[0] == '!')
        require (weir_rtmp_session_refuse (session, "NetStream.Publish.BadName", event->name));
      else
        require (weir_rtmp_session_accept (session));
      break;
    case WEIR_RTMP_METADATA:
      check_metadata (event);
      break;
    case WEIR_RTMP_AUDIO:
    case WEIR_RTMP_VIDEO:
      require (event->len <= WEIR_RTMP_MESSAGE_MAX);
      check_media (event);
      break;
    case WEIR_RTMP_END:
      break;
  }
}

static void
drop_output (WeirRtmpSession *session)
{
  size_t len;
  const uint8_t *output = weir_rtmp_session_get_output (session, &len);

  // A read leaves little to send, whatever came.
  require (len <= 16384);
  touch (output, len);
  weir_rtmp_session_drop_output (session, len);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static const uint8_t random[WEIR_RTMP_RANDOM];
  WeirRtmpSession *session = weir_rtmp_session_new (random);
  size_t len = HANDSHAKE + size, each = size > 0 && data[0] > 0 ? data[0] : len, from = 0, to = 0;
  uint8_t *bytes = calloc (1, len);
  int result = 0;

  bytes[0] = 3;
  if (size > 1)
    memcpy (bytes + HANDSHAKE, data + 1, size - 1);
  while (result >= 0 && to < len) {
    size_t used = 1;

    to = to + each < len ? to + each : len;
    while (result >= 0 && (used > 0 || result == 1)) {
      WeirRtmpEvent event;

      result = weir_rtmp_session_read (session, bytes + from, to - from, &used, &event);
      require (used <= to - from);
      from += used;
      if (result == 1)
        check_event (session, &event);
      require (result >= 0 || weir_rtmp_session_get_problem (session));
      drop_output (session);
    }
  }
  weir_rtmp_session_free (session);
  free (bytes);
  return 0;
}
