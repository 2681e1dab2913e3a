// SPDX-License-Identifier: LGPL-2.1-or-later
// Fuzzes the reader of STUN messages, and an ICE agent with all that it reads. The input is the
// messages of peers, each behind two bytes: from which of 16 places it comes, and its length. An
// HMAC is zeros here, so that an input can be authentic.

#include <errno.h>
#include <string.h>

#include "bits/bytes.h"
#include "fuzz.h"
#include "webrtc/ice.h"

static const WeirIceCredentials own = { "AAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBBBB" };
static const WeirIceCredentials again = { "CCCCCCCC", "DDDDDDDDDDDDDDDDDDDDDDDD" };

static void
no_hmac (const uint8_t *key, size_t key_len, const uint8_t *head, size_t head_len,
    const uint8_t *body, size_t body_len, uint8_t out[WEIR_STUN_HMAC])
{
  static volatile uint8_t sum; // of all, so that a sanitizer sees a read past the end

  sum = key[key_len - 1] ^ head[head_len - 1];
  for (size_t i = 0; i < body_len; i++)
    sum ^= body[i];
  memset (out, 0, WEIR_STUN_HMAC);
}

static WeirIceTuple
place (uint8_t n)
{
  WeirIceTuple tuple = { .connection = n & 8 ? n : 0 };

  tuple.address.any.sa_family = n & 1 ? AF_INET6 : AF_INET;
  if (n & 1)
    tuple.address.v6.sin6_port = htons (n + 1);
  else
    tuple.address.v4.sin_port = htons (n + 1);
  return tuple;
}

static bool
is_known (const WeirIce *ice, const WeirIceTuple *tuple)
{
  for (size_t i = 0; i < ice->n_places; i++) {
    if (memcmp (&ice->places[i].tuple, tuple, sizeof *tuple) == 0)
      return true;
  }
  return false;
}

static void
check_answer (const WeirIceStep *step)
{
  WeirStun answer;

  require ((step->verdict == WEIR_ICE_ANSWERED) == (step->answer_len > 0));
  require (step->answer_len <= WEIR_STUN_ANSWER_MAX);
  if (step->answer_len == 0)
    return;
  require (weir_stun_read (step->answer, step->answer_len, &answer) == 0);
  require (answer.type == WEIR_STUN_SUCCESS || answer.type == WEIR_STUN_ERROR);
  require ((answer.type == WEIR_STUN_SUCCESS) == step->is_known);
}

static void
take (WeirIce *ice, uint8_t from, const uint8_t *data, size_t len, int64_t now)
{
  uint8_t *copy = malloc (len ? len : 1); // so that a sanitizer sees a read past its end
  WeirIceTuple tuple = place (from & 15);
  WeirIceStep step;
  WeirStun stun;
  int read;

  require (copy != NULL);
  memcpy (copy, data, len);
  read = weir_stun_read (copy, len, &stun);
  require (read == 0 || read == -EBADMSG);
  if (read == 0) {
    require (stun.username_len <= len && stun.n_unknown <= WEIR_STUN_UNKNOWN_MAX);
    weir_ice_take (ice, &tuple, &stun, no_hmac, now, &step);
    check_answer (&step);
    require (is_known (ice, &tuple) || !step.is_known);
    require (!step.is_moved || ice->has_route);
  }
  free (copy);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  WeirBytes b = weir_bytes (data, size);
  int64_t now = 0;
  WeirIce ice;

  weir_ice_init (&ice, &own, "peer", now);
  while (weir_bytes_left (&b) > 0) {
    uint8_t from, len;
    const uint8_t *message;

    if (!weir_bytes_u8 (&b, &from) || !weir_bytes_u8 (&b, &len)
        || !weir_bytes_take (&b, len, &message))
      return 0;
    if (from & 16)
      weir_ice_restart (&ice, &again, "peer");
    if (from & 32)
      weir_ice_drop_connection (&ice, from & 15);
    take (&ice, from, message, len, ++now);
    require (ice.n_places <= WEIR_ICE_TUPLES);
    require (!ice.has_route || ice.n_places > 0);
    require (!ice.has_route || is_known (&ice, &ice.route));
    require (weir_ice_get_end (&ice) <= now + WEIR_ICE_CONSENT_NS);
  }
  return 0;
}
