// SPDX-License-Identifier: LGPL-2.1-or-later
#include "webrtc/stun.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "stun-messages.h"
#include "tap.h"

#define PASSWORD "VOkJxbRl1RmTxUk/WvJxBt"

// The sample request of RFC 5769, 2.1.
static const uint8_t sample_request[] = { 0x00, 0x01, 0x00, 0x58, 0x21, 0x12, 0xa4, 0x42, 0xb7,
  0xe7, 0xa7, 0x01, 0xbc, 0x34, 0xd6, 0x86, 0xfa, 0x87, 0xdf, 0xae, 0x80, 0x22, 0x00, 0x10, 0x53,
  0x54, 0x55, 0x4e, 0x20, 0x74, 0x65, 0x73, 0x74, 0x20, 0x63, 0x6c, 0x69, 0x65, 0x6e, 0x74, 0x00,
  0x24, 0x00, 0x04, 0x6e, 0x00, 0x01, 0xff, 0x80, 0x29, 0x00, 0x08, 0x93, 0x2f, 0xf9, 0xb1, 0x51,
  0x26, 0x3b, 0x36, 0x00, 0x06, 0x00, 0x09, 0x65, 0x76, 0x74, 0x6a, 0x3a, 0x68, 0x36, 0x76, 0x59,
  0x20, 0x20, 0x20, 0x00, 0x08, 0x00, 0x14, 0x9a, 0xea, 0xa7, 0x0c, 0xbf, 0xd8, 0xcb, 0x56, 0x78,
  0x1e, 0xf2, 0xb5, 0xb2, 0xd3, 0xf2, 0x49, 0xc1, 0xb5, 0x71, 0xa2, 0x80, 0x28, 0x00, 0x04, 0xe5,
  0x7a, 0x3b, 0xcf };

// The sample responses of 2.2 (IPv4) and 2.3 (IPv6).
static const uint8_t sample_v4[] = { 0x01, 0x01, 0x00, 0x3c, 0x21, 0x12, 0xa4, 0x42, 0xb7, 0xe7,
  0xa7, 0x01, 0xbc, 0x34, 0xd6, 0x86, 0xfa, 0x87, 0xdf, 0xae, 0x80, 0x22, 0x00, 0x0b, 0x74, 0x65,
  0x73, 0x74, 0x20, 0x76, 0x65, 0x63, 0x74, 0x6f, 0x72, 0x20, 0x00, 0x20, 0x00, 0x08, 0x00, 0x01,
  0xa1, 0x47, 0xe1, 0x12, 0xa6, 0x43, 0x00, 0x08, 0x00, 0x14, 0x2b, 0x91, 0xf5, 0x99, 0xfd, 0x9e,
  0x90, 0xc3, 0x8c, 0x74, 0x89, 0xf9, 0x2a, 0xf9, 0xba, 0x53, 0xf0, 0x6b, 0xe7, 0xd7, 0x80, 0x28,
  0x00, 0x04, 0xc0, 0x7d, 0x4c, 0x96 };
static const uint8_t sample_v6[] = { 0x01, 0x01, 0x00, 0x48, 0x21, 0x12, 0xa4, 0x42, 0xb7, 0xe7,
  0xa7, 0x01, 0xbc, 0x34, 0xd6, 0x86, 0xfa, 0x87, 0xdf, 0xae, 0x80, 0x22, 0x00, 0x0b, 0x74, 0x65,
  0x73, 0x74, 0x20, 0x76, 0x65, 0x63, 0x74, 0x6f, 0x72, 0x20, 0x00, 0x20, 0x00, 0x14, 0x00, 0x02,
  0xa1, 0x47, 0x01, 0x13, 0xa9, 0xfa, 0xa5, 0xd3, 0xf1, 0x79, 0xbc, 0x25, 0xf4, 0xb5, 0xbe, 0xd2,
  0xb9, 0xd9, 0x00, 0x08, 0x00, 0x14, 0xa3, 0x82, 0x95, 0x4e, 0x4b, 0xe6, 0x7b, 0xf1, 0x17, 0x84,
  0xc9, 0x7c, 0x82, 0x92, 0xc2, 0x75, 0xbf, 0xe3, 0xed, 0x41, 0x80, 0x28, 0x00, 0x04, 0xc8, 0xfb,
  0x0b, 0x4c };

static bool
is_authentic (const WeirStun *stun, const char *password)
{
  return weir_stun_is_authentic (stun, password, strlen (password), stun_hmac);
}

static void
the_sample_request_is_read (void)
{
  WeirStun stun;

  CHECK_INT (weir_stun_read (sample_request, sizeof sample_request, &stun), 0);
  CHECK_INT (stun.type, WEIR_STUN_REQUEST);
  CHECK (stun.username_len == 9 && memcmp (stun.username, "evtj:h6vY", 9) == 0);
  CHECK (stun.is_controlled && !stun.use_candidate);
  CHECK_INT (stun.n_unknown, 0); // SOFTWARE may be ignored
  CHECK (stun.id == sample_request + 8);
  CHECK (is_authentic (&stun, PASSWORD));
  CHECK (!is_authentic (&stun, "VOkJxbRl1RmTxUk/WvJxBu"));
}

static void
the_sample_responses_are_read (void)
{
  WeirStun stun;

  CHECK_INT (weir_stun_read (sample_v4, sizeof sample_v4, &stun), 0);
  CHECK_INT (stun.type, WEIR_STUN_SUCCESS);
  CHECK (is_authentic (&stun, PASSWORD));
  CHECK_INT (weir_stun_read (sample_v6, sizeof sample_v6, &stun), 0);
  CHECK_INT (stun.type, WEIR_STUN_SUCCESS);
  CHECK (is_authentic (&stun, PASSWORD));
}

// But for the type of FINGERPRINT: the integrity says all that counts, without one, too.
static void
a_changed_bit_is_seen (void)
{
  for (size_t i = 0; i < sizeof sample_request * 8; i++) {
    uint8_t copy[sizeof sample_request];
    WeirStun stun;

    if (i / 8 == sizeof copy - 8 || i / 8 == sizeof copy - 7)
      continue;
    memcpy (copy, sample_request, sizeof copy);
    copy[i / 8] ^= (uint8_t) (1 << i % 8);
    CHECK (
        weir_stun_read (copy, sizeof copy, &stun) == -EBADMSG || !is_authentic (&stun, PASSWORD));
  }
}

static void
no_cut_message_is_read (void)
{
  for (size_t len = 0; len < sizeof sample_request; len++) {
    uint8_t *copy = malloc (len + 1); // so that a sanitizer sees a read past the end
    WeirStun stun;

    memcpy (copy, sample_request, len);
    CHECK_INT (weir_stun_read (copy, len, &stun), -EBADMSG);
    free (copy);
  }
}

static const WeirAddress *
address (const char *text, uint16_t port)
{
  static WeirAddress out;

  memset (&out, 0, sizeof out);
  if (inet_pton (AF_INET, text, &out.v4.sin_addr) == 1) {
    out.v4.sin_family = AF_INET;
    out.v4.sin_port = htons (port);
  } else {
    inet_pton (AF_INET6, text, &out.v6.sin6_addr);
    out.v6.sin6_family = AF_INET6;
    out.v6.sin6_port = htons (port);
  }
  return &out;
}

// Beside the sample response, ours lacks SOFTWARE. So its parts are compared.
static void
answers_say_where_a_request_came_from (void)
{
  static const char *const texts[] = { "192.0.2.1", "2001:db8:1234:5678:11:2233:4455:6677" };

  for (int i = 0; i < 2; i++) {
    uint8_t out[WEIR_STUN_ANSWER_MAX];
    const WeirAddress *from = address (texts[i], 32853);
    WeirStun stun;
    size_t len = weir_stun_write_success (
        sample_request + 8, from, PASSWORD, strlen (PASSWORD), stun_hmac, out);

    CHECK_INT (weir_stun_read (out, len, &stun), 0);
    CHECK_INT (stun.type, WEIR_STUN_SUCCESS);
    CHECK (memcmp (stun.id, sample_request + 8, WEIR_STUN_ID) == 0);
    CHECK (is_authentic (&stun, PASSWORD));
    CHECK (memcmp (out + 20, (i ? sample_v6 : sample_v4) + 36, i ? 24 : 12) == 0);
  }
}

static void
errors_name_what_is_not_known (void)
{
  static const uint16_t unknown[] = { 0x7f01, 0x7f02, 0x7f03 };
  uint8_t out[WEIR_STUN_ANSWER_MAX];
  WeirStun stun;
  size_t len = weir_stun_write_error (
      sample_request + 8, 420, unknown, 3, PASSWORD, strlen (PASSWORD), stun_hmac, out);

  CHECK_INT (weir_stun_read (out, len, &stun), 0);
  CHECK_INT (stun.type, WEIR_STUN_ERROR);
  CHECK (is_authentic (&stun, PASSWORD));
  CHECK (memcmp (out + 20, "\0\x09\0\x04\0\0\x04\x14\0\x0a\0\x06\x7f\x01\x7f\x02\x7f\x03\0\0", 20)
         == 0);
  len = weir_stun_write_error (
      sample_request + 8, 487, NULL, 0, PASSWORD, strlen (PASSWORD), stun_hmac, out);
  CHECK_INT (weir_stun_read (out, len, &stun), 0);
  CHECK (memcmp (out + 20, "\0\x09\0\x04\0\0\x04\x57\0\x08", 10) == 0);
}

static void
requests_say_who_asks_for_what (void)
{
  static const char longest[WEIR_STUN_USERNAME_MAX] = { 'x' };
  // PRIORITY, and ICE-CONTROLLING with the tie breaker.
  static const uint8_t role[] = { 0, 0x24, 0, 4, 0x6e, 0, 0x01, 0xff, 0x80, 0x2a, 0, 8, 0x93, 0x2f,
    0xf9, 0xb1, 0x51, 0x26, 0x3b, 0x36 };

  for (int nominates = 0; nominates < 2; nominates++) {
    const WeirStunCheck check = { .username = nominates ? "evtj:h6vY" : longest,
      .username_len = nominates ? 9 : sizeof longest,
      .priority = 0x6e0001ff,
      .tie_breaker = 0x932ff9b151263b36,
      .use_candidate = nominates };
    uint8_t out[WEIR_STUN_REQUEST_MAX];
    WeirStun stun;
    size_t len = weir_stun_write_request (
        sample_request + 8, &check, PASSWORD, strlen (PASSWORD), stun_hmac, out);

    CHECK (len <= sizeof out);
    CHECK_INT (weir_stun_read (out, len, &stun), 0);
    CHECK_INT (stun.type, WEIR_STUN_REQUEST);
    CHECK (memcmp (stun.id, sample_request + 8, WEIR_STUN_ID) == 0);
    CHECK_INT (stun.username_len, check.username_len);
    CHECK (memcmp (stun.username, check.username, check.username_len) == 0);
    CHECK (!stun.is_controlled);
    CHECK_INT (stun.use_candidate, nominates);
    CHECK (memmem (out, len, role, sizeof role) != NULL);
    CHECK (is_authentic (&stun, PASSWORD));
  }
}

// One attribute of a request, and whether the message may be read with it.
static void
values_have_the_lengths_of_their_types (void)
{
  static const struct {
    uint16_t type;
    size_t len;
    bool good;
  } table[] = {
    { 0x0006, 0, true },    // USERNAME
    { 0x0006, 513, true },  //
    { 0x0006, 514, false }, //
    { 0x0024, 4, true },    // PRIORITY
    { 0x0024, 3, false },   //
    { 0x0025, 0, true },    // USE-CANDIDATE
    { 0x0025, 4, false },   //
    { 0x8029, 8, true },    // ICE-CONTROLLED
    { 0x8029, 4, false },   //
    { 0x802a, 8, true },    // ICE-CONTROLLING
    { 0x802a, 0, false },   //
    { 0x0008, 16, false },  // MESSAGE-INTEGRITY
    { 0x8028, 4, false },   // FINGERPRINT, with a wrong value
    { 0x8028, 0, false },   //
    { 0x0020, 8, false },   // XOR-MAPPED-ADDRESS of no family
    { 0x7f00, 700, true },  // unknown
    { 0xc057, 4, true },    // Chromium's network cost
  };

  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    static const uint8_t zeros[1024];
    StunMessage message;
    WeirStun stun;

    stun_begin (&message, WEIR_STUN_REQUEST);
    stun_add (&message, table[i].type, zeros, table[i].len);
    CHECK_INT (weir_stun_read (message.bytes, message.len, &stun) == 0, table[i].good);
  }
}

static void
an_address_has_the_length_of_its_family (void)
{
  static const size_t lens[] = { 4, 8, 16, 20 };

  for (uint8_t family = 0; family < 4; family++) {
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
      const uint8_t value[20] = { 0, family };
      StunMessage message;
      WeirStun stun;

      stun_begin (&message, WEIR_STUN_SUCCESS);
      stun_add (&message, 0x0020, value, lens[i]);
      CHECK_INT (
          weir_stun_read (message.bytes, message.len, &stun) == 0, lens[i]
                                                                       == (family == 1   ? 8
                                                                           : family == 2 ? 20
                                                                                         : 0));
    }
  }
}

static void
what_must_be_known_is_noted (void)
{
  StunMessage message;
  WeirStun stun;

  stun_begin (&message, WEIR_STUN_REQUEST);
  for (uint16_t i = 0; i < 9; i++)
    stun_add (&message, (uint16_t) (0x7f00 + i), "abc", 3);
  stun_add (&message, 0xff00, "abc", 3);
  CHECK_INT (weir_stun_read (message.bytes, message.len, &stun), 0);
  CHECK_INT (stun.n_unknown, WEIR_STUN_UNKNOWN_MAX);
  CHECK_INT (stun.unknown[0], 0x7f00);
}

// Anybody on the way could have added it.
static void
nothing_counts_after_the_integrity (void)
{
  StunMessage message;
  WeirStun stun;

  stun_begin (&message, WEIR_STUN_REQUEST);
  stun_add (&message, 0x0006, "a:b", 3);
  stun_add_integrity (&message, PASSWORD);
  stun_add (&message, 0x0025, NULL, 0);
  stun_add (&message, 0x0008, "01234567890123456789", 20);
  stun_add (&message, 0x7f00, NULL, 0);
  stun_add_fingerprint (&message);
  CHECK_INT (weir_stun_read (message.bytes, message.len, &stun), 0);
  CHECK (is_authentic (&stun, PASSWORD));
  CHECK (!stun.use_candidate && stun.n_unknown == 0);
}

static void
the_fingerprint_is_last_and_may_be_absent (void)
{
  StunMessage message;
  WeirStun stun;

  stun_begin (&message, WEIR_STUN_REQUEST);
  stun_add (&message, 0x0006, "a:b", 3);
  stun_add_integrity (&message, PASSWORD);
  CHECK_INT (weir_stun_read (message.bytes, message.len, &stun), 0);
  CHECK (is_authentic (&stun, PASSWORD));
  stun_add_fingerprint_before (&message, 4);
  stun_add (&message, 0xff00, NULL, 0);
  CHECK_INT (weir_stun_read (message.bytes, message.len, &stun), -EBADMSG);
}

static void
a_message_without_integrity_is_not_authentic (void)
{
  StunMessage message;
  WeirStun stun;

  stun_begin (&message, WEIR_STUN_REQUEST);
  stun_add (&message, 0x0006, "a:b", 3);
  stun_add_fingerprint (&message);
  CHECK_INT (weir_stun_read (message.bytes, message.len, &stun), 0);
  CHECK (!is_authentic (&stun, "") && !is_authentic (&stun, PASSWORD));
}

static void
other_methods_and_old_stun_are_refused (void)
{
  static const uint16_t types[] = { 0x0003, 0x0004, 0x0113, 0x0000, 0x3fff };
  StunMessage message;
  WeirStun stun;

  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    stun_begin (&message, types[i]);
    CHECK_INT (weir_stun_read (message.bytes, message.len, &stun), -EBADMSG);
  }
  stun_begin (&message, WEIR_STUN_REQUEST); // of RFC 3489: without the cookie
  message.bytes[4] = 0;
  CHECK_INT (weir_stun_read (message.bytes, message.len, &stun), -EBADMSG);
  CHECK_INT (weir_stun_read (NULL, 0, &stun), -EBADMSG);
}

int
main (void)
{
  RUN (the_sample_request_is_read);
  RUN (the_sample_responses_are_read);
  RUN (a_changed_bit_is_seen);
  RUN (no_cut_message_is_read);
  RUN (answers_say_where_a_request_came_from);
  RUN (errors_name_what_is_not_known);
  RUN (requests_say_who_asks_for_what);
  RUN (values_have_the_lengths_of_their_types);
  RUN (an_address_has_the_length_of_its_family);
  RUN (what_must_be_known_is_noted);
  RUN (nothing_counts_after_the_integrity);
  RUN (the_fingerprint_is_last_and_may_be_absent);
  RUN (a_message_without_integrity_is_not_authentic);
  RUN (other_methods_and_old_stun_are_refused);
  return tap_done ();
}
