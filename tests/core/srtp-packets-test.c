// SPDX-License-Identifier: LGPL-2.1-or-later
// SRTP with the ciphers of libcrypto: vectors of RFC 3711 and RFC 7714, libsrtp as a witness in
// both directions, and packets that must be refused.
#include "webrtc/srtp.h"

#include <errno.h>

#include <srtp2/srtp.h>

#include "fanout/srtpciphers.h"
#include "packets.h"
#include "tap.h"

#define MASTER 30
#define SSRC 0xcafebabe
#define BUFFER 2048

static const WeirSrtpProfile profiles[] = { WEIR_SRTP_CM_SHA1_80, WEIR_SRTP_GCM_128 };

#define EACH_PROFILE(p) for (size_t p = 0; p < 2; p++)

static size_t
from_hex (const char *text, uint8_t *out)
{
  size_t n = 0;
  unsigned byte;

  for (; sscanf (text, "%2x", &byte) == 1; text += 2)
    out[n++] = (uint8_t) byte;
  return n;
}

static bool
is_hex (const uint8_t *data, size_t len, const char *text)
{
  uint8_t expected[BUFFER];
  size_t n = from_hex (text, expected);

  return n == len && memcmp (data, expected, len) == 0;
}

// ---- vectors ----

static void
session_keys_are_those_of_rfc_3711_b_3 (void)
{
  uint8_t master[MASTER];
  WeirSrtpKeys keys;

  from_hex ("e1f97a0d3e018be0d64fa32c06de41390ec675ad498afeebb6960b3aabe6", master);
  CHECK_INT (weir_srtp_derive (&keys, &weir_srtp_ciphers, WEIR_SRTP_CM_SHA1_80, master, MASTER), 0);
  CHECK (is_hex (keys.rtp.key, WEIR_SRTP_KEY, "c61e7a93744f39ee10734afe3ff7a087"));
  CHECK (is_hex (keys.rtp.salt, WEIR_SRTP_SALT, "30cbbc08863d8c85d49db34a9ae1"));
  CHECK (is_hex (keys.rtp.auth, WEIR_SRTP_AUTH, "cebe321f6ff7716b6fd4ab49af256a156d38baa4"));
}

static void
the_key_stream_is_that_of_rfc_3711_b_2 (void)
{
  WeirSrtpKeys keys = { .ciphers = &weir_srtp_ciphers };
  uint8_t packet[BUFFER] = { 0x80 }, zeros[48] = { 0 };
  WeirSrtpContext context;

  from_hex ("2b7e151628aed2a6abf7158809cf4f3c", keys.rtp.key);
  from_hex ("f0f1f2f3f4f5f6f7f8f9fafbfcfd", keys.rtp.salt);
  CHECK_INT (weir_srtp_context_init (&context, &keys, true), 0);
  CHECK_INT (weir_srtp_seal_rtp (&context, 0, packet, RTP_HEADER, zeros, sizeof zeros),
      RTP_HEADER + sizeof zeros + 10);
  CHECK (is_hex (packet + RTP_HEADER, sizeof zeros,
      "e03ead0935c95e80e166b16dd92b4eb4d23513162b02d0f72a43a2fe4a5f97ab"
      "41e95b3bb0a2e8dd477901e4fca894c0"));
  weir_srtp_context_clear (&context);
}

#define RFC_7714_KEY "000102030405060708090a0b0c0d0e0f"
#define RFC_7714_SALT "517569642070726f2071756f"

static void
gcm_is_that_of_rfc_7714_16_1_1 (void)
{
  WeirSrtpKeys keys = { .ciphers = &weir_srtp_ciphers, .profile = WEIR_SRTP_GCM_128 };
  uint8_t packet[BUFFER], payload[BUFFER];
  WeirSrtpContext context;
  size_t len;

  from_hex (RFC_7714_KEY, keys.rtp.key);
  from_hex (RFC_7714_SALT, keys.rtp.salt);
  from_hex ("8040f17b8041f8d35501a0b2", packet);
  len = from_hex (
      "47616c6c696120657374206f6d6e69732064697669736120696e207061727465732074726573", payload);
  CHECK_INT (weir_srtp_context_init (&context, &keys, true), 0);
  len = weir_srtp_seal_rtp (&context, 0xf17b, packet, RTP_HEADER, payload, len);
  CHECK (is_hex (packet, len,
      "8040f17b8041f8d35501a0b2f24de3a3fb34de6cacba861c9d7e4bcabe633bd50d294e6f42a5f47a51c7d19b36de"
      "3adf8833899d7f27beb16a9152cf765ee4390cce"));
  weir_srtp_context_clear (&context);
}

static void
gcm_of_reports_is_that_of_rfc_7714_17_1 (void)
{
  WeirSrtpKeys keys = { .ciphers = &weir_srtp_ciphers, .profile = WEIR_SRTP_GCM_128 };
  WeirSrtpContext context;
  uint8_t packet[BUFFER];
  size_t len;

  from_hex (RFC_7714_KEY, keys.rtcp.key);
  from_hex (RFC_7714_SALT, keys.rtcp.salt);
  len = from_hex ("81c8000d4d6172734e5450314e545032525450200000042a0000e9304c756e61"
                  "deadbeefdeadbeefdeadbeefdeadbeefdeadbeef",
      packet);
  CHECK_INT (weir_srtp_context_init (&context, &keys, false), 0);
  len = weir_srtp_seal_rtcp (&context, 0x5d4, packet, len);
  CHECK (is_hex (packet, len,
      "81c8000d4d61727363e94885dcdab67ca727d7662f6b7e997ff5c0f76c06f32dc676a5f1730d6fda4ce09b468630"
      "3ded0bb9275bc84aa45896cf4d2fc5abf87245d9eade800005d4"));
  weir_srtp_context_clear (&context);
}

// ---- the witness ----

static uint8_t master[MASTER];

static srtp_t
open_witness (WeirSrtpProfile profile, srtp_ssrc_type_t type)
{
  srtp_policy_t policy = {
    .ssrc = { .type = type }, .key = master, .window_size = WEIR_SRTP_WINDOW, .allow_repeat_tx = 1
  };
  srtp_t session = NULL;

  if (profile == WEIR_SRTP_GCM_128) {
    srtp_crypto_policy_set_aes_gcm_128_16_auth (&policy.rtp);
    srtp_crypto_policy_set_aes_gcm_128_16_auth (&policy.rtcp);
  } else {
    srtp_crypto_policy_set_rtp_default (&policy.rtp);
    srtp_crypto_policy_set_rtcp_default (&policy.rtcp);
  }
  CHECK_INT (srtp_create (&session, &policy), srtp_err_status_ok);
  return session;
}

static WeirSrtpKeys
make_keys (WeirSrtpProfile profile)
{
  WeirSrtpKeys keys;

  for (size_t i = 0; i < MASTER; i++)
    master[i] = (uint8_t) random_next ();
  CHECK_INT (weir_srtp_derive (
                 &keys, &weir_srtp_ciphers, profile, master, weir_srtp_master_bytes (profile)),
      0);
  return keys;
}

// Makes a packet with CSRCs, an extension, padding, and any payload. Returns its length, and that
// of its header.
static size_t
make_rtp (uint8_t *packet, uint16_t seq, size_t *header)
{
  size_t n_csrc = random_below (4), words = random_below (4), len;
  bool has_extension = random_percent (50), padded = random_percent (20);

  put_rtp (packet, seq, (uint32_t) random_next (), random_percent (20));
  packet[0] = (uint8_t) (0x80 | n_csrc | (has_extension ? 0x10 : 0) | (padded ? 0x20 : 0));
  *header = RTP_HEADER + 4 * n_csrc + (has_extension ? 4 + 4 * words : 0);
  len = *header + (padded ? 1 : 0) + random_below (1200);
  for (size_t i = RTP_HEADER; i < len; i++)
    packet[i] = (uint8_t) random_next ();
  if (has_extension) {
    uint8_t *extension = packet + RTP_HEADER + 4 * n_csrc;

    extension[0] = 0xbe;
    extension[1] = 0xde;
    extension[2] = 0;
    extension[3] = (uint8_t) words;
  }
  if (padded)
    packet[len - 1] = 1;
  return len;
}

static size_t
make_rtcp (uint8_t *packet, uint8_t ssrc)
{
  size_t words = 1 + random_below (100);

  for (size_t i = 0; i < 4 * (words + 1); i++)
    packet[i] = (uint8_t) random_next ();
  packet[0] = 0x80;
  packet[1] = (uint8_t) (200 + random_below (7));
  packet[2] = 0;
  packet[3] = (uint8_t) words;
  packet[4] = packet[5] = packet[6] = 0;
  packet[7] = ssrc;
  return 4 * (words + 1);
}

// Over two wraps, with lost packets.
static void
libsrtp_reads_what_is_sent (void)
{
  EACH_PROFILE (p)
  {
    WeirSrtpKeys keys = make_keys (profiles[p]);
    srtp_t witness = open_witness (profiles[p], ssrc_any_inbound);
    uint8_t plain[BUFFER], sealed[BUFFER];
    WeirSrtpCount count = { 0 };
    WeirSrtpContext context;
    uint16_t seq = 30000;

    CHECK_INT (weir_srtp_context_init (&context, &keys, true), 0);
    for (size_t i = 0; i < 5000; i++) {
      size_t header, len = make_rtp (plain, seq, &header), sealed_len;
      uint64_t index;
      int got;

      CHECK (weir_srtp_count (&count, seq, &index));
      memcpy (sealed, plain, header);
      sealed_len =
          weir_srtp_seal_rtp (&context, index, sealed, header, plain + header, len - header);
      CHECK_INT (sealed_len, len + (p == 0 ? 10 : WEIR_SRTP_RTP_ROOM));
      got = (int) sealed_len;
      if (random_percent (70)) {
        CHECK_INT (srtp_unprotect (witness, sealed, &got), srtp_err_status_ok);
        CHECK (got == (int) len && memcmp (sealed, plain, len) == 0);
      }
      seq = (uint16_t) (seq + (random_percent (10) ? 1 : 37));
    }
    CHECK (count.newest > 2 * 65536);
    weir_srtp_context_clear (&context);
    srtp_dealloc (witness);
  }
}

static void
what_libsrtp_sends_is_read (void)
{
  EACH_PROFILE (p)
  {
    WeirSrtpKeys keys = make_keys (profiles[p]);
    srtp_t witness = open_witness (profiles[p], ssrc_any_outbound);
    uint8_t plain[BUFFER], sealed[BUFFER], copy[BUFFER];
    WeirSrtpReceiver receiver;
    uint16_t seq = 60000;

    CHECK_INT (weir_srtp_receiver_init (&receiver, &keys, true), 0);
    for (size_t i = 0; i < 5000; i++, seq = (uint16_t) (seq + 31)) {
      size_t header;
      int len = (int) make_rtp (plain, seq, &header), got = len;

      memcpy (sealed, plain, (size_t) len);
      CHECK_INT (srtp_protect (witness, sealed, &got), srtp_err_status_ok);
      memcpy (copy, sealed, sizeof copy);
      copy[random_below ((uint64_t) got)] ^= 1;
      CHECK (weir_srtp_open_rtp (&receiver, copy, (size_t) got) < 0);
      memcpy (copy, sealed, sizeof copy);
      CHECK_INT (weir_srtp_open_rtp (&receiver, copy, (size_t) got), len);
      CHECK (memcmp (copy, plain, (size_t) len) == 0);
      CHECK_INT (weir_srtp_open_rtp (&receiver, sealed, (size_t) got), -EALREADY);
    }
    weir_srtp_receiver_clear (&receiver);
    srtp_dealloc (witness);
  }
}

static void
libsrtp_reads_the_reports_that_are_sent (void)
{
  EACH_PROFILE (p)
  {
    WeirSrtpKeys keys = make_keys (profiles[p]);
    srtp_t witness = open_witness (profiles[p], ssrc_any_inbound);
    uint8_t plain[BUFFER], sealed[BUFFER];
    WeirSrtpContext context;

    CHECK_INT (weir_srtp_context_init (&context, &keys, false), 0);
    for (uint32_t i = 0; i < 500; i++) {
      size_t len = make_rtcp (plain, (uint8_t) (i % 3));
      int got;

      memcpy (sealed, plain, len);
      got = (int) weir_srtp_seal_rtcp (&context, i, sealed, len);
      CHECK_INT (got, len + (p == 0 ? 14 : WEIR_SRTP_RTCP_ROOM));
      CHECK_INT (srtp_unprotect_rtcp (witness, sealed, &got), srtp_err_status_ok);
      CHECK (got == (int) len && memcmp (sealed, plain, len) == 0);
    }
    weir_srtp_context_clear (&context);
    srtp_dealloc (witness);
  }
}

static void
reports_that_libsrtp_sends_are_read_once (void)
{
  EACH_PROFILE (p)
  {
    WeirSrtpKeys keys = make_keys (profiles[p]);
    srtp_t witness = open_witness (profiles[p], ssrc_any_outbound);
    uint8_t plain[BUFFER], sealed[BUFFER], copy[BUFFER];
    WeirSrtpReceiver receiver;

    CHECK_INT (weir_srtp_receiver_init (&receiver, &keys, false), 0);
    for (uint32_t i = 0; i < 100; i++) {
      int len = (int) make_rtcp (plain, (uint8_t) (i % 10)), got = len;

      memcpy (sealed, plain, (size_t) len);
      CHECK_INT (srtp_protect_rtcp (witness, sealed, &got), srtp_err_status_ok);
      for (int at = 0; at < got; at++) {
        memcpy (copy, sealed, sizeof copy);
        copy[at] ^= 1;
        CHECK (weir_srtp_open_rtcp (&receiver, copy, (size_t) got) < 0);
        memcpy (copy, sealed, sizeof copy);
        CHECK_INT (weir_srtp_open_rtcp (&receiver, copy, (size_t) at), -EBADMSG);
      }
      memcpy (copy, sealed, sizeof copy);
      CHECK_INT (weir_srtp_open_rtcp (&receiver, copy, (size_t) got), len);
      CHECK (memcmp (copy, plain, (size_t) len) == 0);
      CHECK_INT (weir_srtp_open_rtcp (&receiver, sealed, (size_t) got), -EALREADY);
    }
    weir_srtp_receiver_clear (&receiver);
    srtp_dealloc (witness);
  }
}

// ---- indexes ----

static void
a_number_far_behind_is_not_sent (void)
{
  WeirSrtpCount count = { 0 };
  uint64_t index = 0;

  CHECK (weir_srtp_count (&count, 100, &index) && index == 100);
  CHECK (!weir_srtp_count (&count, 65535, &index)); // before the first
  CHECK (weir_srtp_count (&count, 99, &index) && index == 99);
  CHECK (weir_srtp_count (&count, 30000, &index) && index == 30000);
  CHECK (weir_srtp_count (&count, 60000, &index) && index == 60000);
  CHECK (weir_srtp_count (&count, 5, &index) && index == 65536 + 5);
  CHECK (weir_srtp_count (&count, 65535, &index) && index == 65535); // again: the counter of then
  CHECK (!weir_srtp_count (&count, 40000, &index));                  // a jump back
  CHECK_INT (count.newest, 65536 + 5);
}

// Sends packet `seq` of `ssrc`, and returns what the receiver says.
static int
pass_on (const WeirSrtpContext *context, WeirSrtpReceiver *receiver, uint32_t ssrc, uint64_t index)
{
  uint8_t packet[BUFFER];
  size_t len;

  put_rtp (packet, (uint16_t) index, 0, false);
  packet[8] = (uint8_t) ssrc;
  memset (packet + RTP_HEADER, 7, 100);
  len = weir_srtp_seal_rtp (context, index, packet, RTP_HEADER, packet + RTP_HEADER, 100);
  return weir_srtp_open_rtp (receiver, packet, len);
}

static void
the_window_knows_what_came (void)
{
  EACH_PROFILE (p)
  {
    WeirSrtpKeys keys = make_keys (profiles[p]);
    bool came[20000] = { false };
    WeirSrtpReceiver receiver;
    WeirSrtpContext context;
    int64_t newest = -1;

    CHECK_INT (weir_srtp_context_init (&context, &keys, true), 0);
    CHECK_INT (weir_srtp_receiver_init (&receiver, &keys, true), 0);
    for (size_t i = 0; i < 20000; i++) {
      int64_t index = newest + 1500 - (int64_t) random_below (3500);
      bool old;

      if (random_percent (98))
        index = newest + 3 - (int64_t) random_below (20);
      if (index < 0 || index >= 20000)
        continue;
      old = came[index] || index <= newest - WEIR_SRTP_WINDOW;
      CHECK_INT (
          pass_on (&context, &receiver, 1, (uint64_t) index), old ? -EALREADY : RTP_HEADER + 100);
      came[index] = true;
      newest = index > newest ? index : newest;
    }
    CHECK (newest > 10000);
    weir_srtp_receiver_clear (&receiver);
    weir_srtp_context_clear (&context);
  }
}

static void
the_source_that_was_silent_longest_makes_room (void)
{
  WeirSrtpKeys keys = make_keys (WEIR_SRTP_GCM_128);
  WeirSrtpReceiver receiver;
  WeirSrtpContext context;

  CHECK_INT (weir_srtp_context_init (&context, &keys, true), 0);
  CHECK_INT (weir_srtp_receiver_init (&receiver, &keys, true), 0);
  for (uint32_t ssrc = 0; ssrc < WEIR_SRTP_SOURCES; ssrc++)
    CHECK_INT (pass_on (&context, &receiver, ssrc, 9), RTP_HEADER + 100);
  CHECK_INT (pass_on (&context, &receiver, 0, 10), RTP_HEADER + 100);
  CHECK_INT (pass_on (&context, &receiver, 100, 9), RTP_HEADER + 100);
  for (uint32_t ssrc = 0; ssrc < WEIR_SRTP_SOURCES; ssrc++) {
    if (ssrc != 1)
      CHECK_INT (pass_on (&context, &receiver, ssrc, 9), -EALREADY);
  }
  CHECK_INT (pass_on (&context, &receiver, 1, 9), RTP_HEADER + 100);
  weir_srtp_receiver_clear (&receiver);
  weir_srtp_context_clear (&context);
}

// ---- bad input ----

static void
keys_of_another_length_are_refused (void)
{
  WeirSrtpKeys keys;

  EACH_PROFILE (p)
  {
    for (size_t len = 0; len <= MASTER; len++)
      CHECK_INT (weir_srtp_derive (&keys, &weir_srtp_ciphers, profiles[p], master, len),
          len == weir_srtp_master_bytes (profiles[p]) ? 0 : -EINVAL);
  }
}

static void
what_is_malformed_is_refused (void)
{
  EACH_PROFILE (p)
  {
    WeirSrtpKeys keys = make_keys (profiles[p]);
    WeirSrtpReceiver rtp, rtcp;
    uint8_t packet[200];

    CHECK_INT (weir_srtp_receiver_init (&rtp, &keys, true), 0);
    CHECK_INT (weir_srtp_receiver_init (&rtcp, &keys, false), 0);
    for (size_t i = 0; i < 20000; i++) {
      size_t len = random_below (sizeof packet);
      uint8_t *copy = malloc (len + 1); // so that a sanitizer sees a read past the end

      for (size_t at = 0; at < len; at++)
        copy[at] = (uint8_t) random_next ();
      if (len > 1 && random_percent (80)) {
        copy[0] = (uint8_t) (0x80 | (copy[0] & 0x3f));
        copy[1] = random_percent (50) ? 201 : copy[1];
      }
      memcpy (packet, copy, len);
      CHECK_INT (weir_srtp_open_rtp (&rtp, copy, len), -EBADMSG);
      memcpy (copy, packet, len);
      CHECK_INT (weir_srtp_open_rtcp (&rtcp, copy, len), -EBADMSG);
      free (copy);
    }
    weir_srtp_receiver_clear (&rtp);
    weir_srtp_receiver_clear (&rtcp);
  }
}

// Its sender may do so, but the key exchange said otherwise.
static void
an_authentic_report_in_the_clear_is_refused (void)
{
  WeirSrtpKeys keys = make_keys (WEIR_SRTP_CM_SHA1_80);
  srtp_policy_t policy = { .ssrc = { .type = ssrc_any_outbound }, .key = master };
  uint8_t packet[BUFFER] = { 0x80, 201, 0, 1 };
  WeirSrtpReceiver receiver;
  srtp_t witness;
  int len = 8;

  srtp_crypto_policy_set_rtp_default (&policy.rtp);
  srtp_crypto_policy_set_rtcp_default (&policy.rtcp);
  policy.rtcp.sec_serv = sec_serv_auth;
  CHECK_INT (srtp_create (&witness, &policy), srtp_err_status_ok);
  CHECK_INT (srtp_protect_rtcp (witness, packet, &len), srtp_err_status_ok);
  CHECK_INT (weir_srtp_receiver_init (&receiver, &keys, false), 0);
  CHECK_INT (weir_srtp_open_rtcp (&receiver, packet, (size_t) len), -EBADMSG);
  weir_srtp_receiver_clear (&receiver);
  srtp_dealloc (witness);
}

static void
what_is_no_report_is_not_sent (void)
{
  WeirSrtpKeys keys = make_keys (WEIR_SRTP_CM_SHA1_80);
  uint8_t packet[100] = { 0x80, 200, 0, 1 };
  WeirSrtpContext context;

  CHECK_INT (weir_srtp_context_init (&context, &keys, false), 0);
  CHECK_INT (weir_srtp_seal_rtcp (&context, 1, packet, 7), 0);
  CHECK_INT (weir_srtp_seal_rtcp (&context, 1, packet, 8), 22);
  packet[1] = 96;
  CHECK_INT (weir_srtp_seal_rtcp (&context, 1, packet, 8), 0);
  weir_srtp_context_clear (&context);
}

int
main (void)
{
  random_init ();
  srtp_init ();
  RUN (session_keys_are_those_of_rfc_3711_b_3);
  RUN (the_key_stream_is_that_of_rfc_3711_b_2);
  RUN (gcm_is_that_of_rfc_7714_16_1_1);
  RUN (gcm_of_reports_is_that_of_rfc_7714_17_1);
  RUN (libsrtp_reads_what_is_sent);
  RUN (what_libsrtp_sends_is_read);
  RUN (libsrtp_reads_the_reports_that_are_sent);
  RUN (reports_that_libsrtp_sends_are_read_once);
  RUN (a_number_far_behind_is_not_sent);
  RUN (the_window_knows_what_came);
  RUN (the_source_that_was_silent_longest_makes_room);
  RUN (keys_of_another_length_are_refused);
  RUN (what_is_malformed_is_refused);
  RUN (an_authentic_report_in_the_clear_is_refused);
  RUN (what_is_no_report_is_not_sent);
  return tap_done ();
}
