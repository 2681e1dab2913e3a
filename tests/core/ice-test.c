// SPDX-License-Identifier: LGPL-2.1-or-later
#include "webrtc/ice.h"

#include <arpa/inet.h>

#include "stun-messages.h"
#include "tap.h"

#define SECOND ((int64_t) 1000000000)
#define PEER "peer"

static const uint8_t random_bytes[WEIR_ICE_OWN_UFRAG + WEIR_ICE_OWN_PASSWORD] = { 0, 1, 2, 63, 64,
  255, 7, 8, 9 };
static WeirIceCredentials own, own_again;
static WeirIce ice;
static WeirIceStep step;

static void
begin (void)
{
  uint8_t other[sizeof random_bytes];

  memset (other, 77, sizeof other);
  weir_ice_make_credentials (random_bytes, &own);
  weir_ice_make_credentials (other, &own_again);
  weir_ice_init (&ice, &own, PEER, 0);
}

// Where the peer is: port `n` of an IPv4 address, or of an IPv6 address if `n` is odd.
static WeirIceTuple
place (int n)
{
  WeirIceTuple tuple = { .connection = 0 };

  if (n % 2 == 0) {
    tuple.address.v4.sin_family = AF_INET;
    tuple.address.v4.sin_addr.s_addr = inet_addr ("192.0.2.7");
    tuple.address.v4.sin_port = htons ((uint16_t) (1000 + n));
  } else {
    tuple.address.v6.sin6_family = AF_INET6;
    inet_pton (AF_INET6, "2001:db8::7", &tuple.address.v6.sin6_addr);
    tuple.address.v6.sin6_port = htons ((uint16_t) (1000 + n));
  }
  return tuple;
}

typedef struct {
  const WeirIceCredentials *to; // NULL: `own`
  const char *from;             // NULL: PEER
  const char *password;         // NULL: that of `to`
  int type;                     // 0: a request
  bool use, is_controlled, lacks_username, has_unknown;
} Check;

static void
send_check (Check check, WeirIceTuple from, int64_t now)
{
  const WeirIceCredentials *to = check.to ? check.to : &own;
  StunMessage message;
  WeirStun stun;
  char username[64];

  snprintf (username, sizeof username, "%s:%s", to->ufrag, check.from ? check.from : PEER);
  stun_begin (&message, (uint16_t) (check.type ? check.type : WEIR_STUN_REQUEST));
  if (!check.lacks_username)
    stun_add (&message, 0x0006, username, strlen (username));
  if (check.use)
    stun_add (&message, 0x0025, NULL, 0);
  if (check.is_controlled)
    stun_add (&message, 0x8029, "12345678", 8);
  if (check.has_unknown)
    stun_add (&message, 0x7f00, NULL, 0);
  stun_add_integrity (&message, check.password ? check.password : to->password);
  stun_add_fingerprint (&message);
  CHECK_INT (weir_stun_read (message.bytes, message.len, &stun), 0);
  weir_ice_take (&ice, &from, &stun, stun_hmac, now, &step);
}

static bool
is_route (int n)
{
  WeirIceTuple tuple = place (n);

  return ice.has_route && memcmp (&ice.route, &tuple, sizeof tuple) == 0;
}

static bool
is_known (int n)
{
  WeirIceTuple tuple = place (n);

  for (size_t i = 0; i < ice.n_places; i++) {
    if (memcmp (&ice.places[i].tuple, &tuple, sizeof tuple) == 0)
      return true;
  }
  return false;
}

// Returns the type of the answer, and the code of an error.
static int
answer_type (int *code)
{
  WeirStun stun;

  if (weir_stun_read (step.answer, step.answer_len, &stun) < 0
      || !weir_stun_is_authentic (&stun, own.password, strlen (own.password), stun_hmac))
    return -1;
  *code = stun.type == WEIR_STUN_ERROR ? step.answer[26] * 100 + step.answer[27] : 0;
  return stun.type;
}

static void
credentials_have_letters_of_ice (void)
{
  begin ();
  CHECK (weir_ice_is_ufrag (own.ufrag) && strlen (own.ufrag) == WEIR_ICE_OWN_UFRAG);
  CHECK (weir_ice_is_password (own.password) && strlen (own.password) == WEIR_ICE_OWN_PASSWORD);
  CHECK (strncmp (own.ufrag, "ABC/A/HI", 8) == 0);
}

static void
texts_of_peers_are_checked (void)
{
  char text[WEIR_ICE_TEXT_MAX + 2];

  memset (text, 'a', sizeof text);
  text[WEIR_ICE_TEXT_MAX + 1] = '\0';
  CHECK (!weir_ice_is_ufrag (text) && !weir_ice_is_password (text));
  text[WEIR_ICE_TEXT_MAX] = '\0';
  CHECK (weir_ice_is_ufrag (text) && weir_ice_is_password (text));
  text[21] = '\0';
  CHECK (weir_ice_is_ufrag (text) && !weir_ice_is_password (text));
  CHECK (!weir_ice_is_ufrag ("abc") && !weir_ice_is_ufrag ("") && weir_ice_is_ufrag ("ab+/"));
  CHECK (!weir_ice_is_ufrag ("ab:cd") && !weir_ice_is_ufrag ("ab d")
         && !weir_ice_is_ufrag ("ab\xc3\xa4"));
}

static void
the_first_check_makes_a_route (void)
{
  int code;

  for (int n = 0; n < 2; n++) {
    begin ();
    send_check ((Check) { 0 }, place (n), SECOND);
    CHECK_INT (step.verdict, WEIR_ICE_ANSWERED);
    CHECK (step.is_known && step.is_moved && !step.is_full);
    CHECK_INT (answer_type (&code), WEIR_STUN_SUCCESS);
    CHECK (is_route (n) && is_known (n) && !is_known (2));
  }
}

static void
the_route_is_where_the_peer_wants_it (void)
{
  begin ();
  send_check ((Check) { 0 }, place (0), 1);
  send_check ((Check) { 0 }, place (1), 2);
  CHECK (!step.is_moved && is_route (0));
  send_check ((Check) { .use = true }, place (1), 3);
  CHECK (step.is_moved && is_route (1));
  send_check ((Check) { .use = true }, place (1), 4);
  CHECK (!step.is_moved);
  send_check ((Check) { 0 }, place (0), 5);
  CHECK (!step.is_moved && is_route (1));
  send_check ((Check) { .use = true }, place (2), 6); // its network has changed
  CHECK (step.is_moved && is_route (2));
}

static void
nothing_changes_without_the_password (void)
{
  begin ();
  send_check ((Check) { .password = "wrong", .use = true }, place (0), SECOND);
  CHECK_INT (step.verdict, WEIR_ICE_FORGED);
  CHECK_INT (step.answer_len, 0);
  CHECK (!ice.has_route && !is_known (0));
  CHECK_INT (weir_ice_get_end (&ice), WEIR_ICE_CONSENT_NS);
}

static void
user_names_must_be_of_both (void)
{
  WeirIceCredentials other;

  begin ();
  other = own;
  other.ufrag[3] = 'x';
  send_check ((Check) { .to = &other }, place (0), 1);
  CHECK_INT (step.verdict, WEIR_ICE_FOREIGN);
  send_check ((Check) { .from = "peer2" }, place (0), 1);
  CHECK_INT (step.verdict, WEIR_ICE_FOREIGN);
  send_check ((Check) { .from = "pee" }, place (0), 1);
  CHECK_INT (step.verdict, WEIR_ICE_FOREIGN);
  send_check ((Check) { .from = "" }, place (0), 1);
  CHECK_INT (step.verdict, WEIR_ICE_FOREIGN);
  send_check ((Check) { .lacks_username = true }, place (0), 1);
  CHECK_INT (step.verdict, WEIR_ICE_FOREIGN);
  CHECK (!ice.has_route);
}

static void
answers_and_indications_are_ignored (void)
{
  static const int types[] = { WEIR_STUN_INDICATION, WEIR_STUN_SUCCESS, WEIR_STUN_ERROR };

  begin ();
  for (int i = 0; i < 3; i++) {
    send_check ((Check) { .type = types[i], .use = true }, place (0), SECOND);
    CHECK_INT (step.verdict, WEIR_ICE_IGNORED);
    CHECK (!ice.has_route);
  }
  CHECK_INT (weir_ice_get_end (&ice), WEIR_ICE_CONSENT_NS);
}

// Both cannot be controlled; the peer changes its role and asks again.
static void
a_controlled_peer_is_told_so (void)
{
  int code = 0;

  begin ();
  send_check ((Check) { .is_controlled = true, .use = true }, place (0), 1);
  CHECK_INT (step.verdict, WEIR_ICE_ANSWERED);
  CHECK_INT (answer_type (&code), WEIR_STUN_ERROR);
  CHECK_INT (code, 487);
  CHECK (!step.is_known && !ice.has_route);
}

static void
a_peer_that_wants_more_is_told_so (void)
{
  int code = 0;

  begin ();
  send_check ((Check) { .has_unknown = true }, place (0), 1);
  CHECK_INT (answer_type (&code), WEIR_STUN_ERROR);
  CHECK_INT (code, 420);
  CHECK (!ice.has_route);
}

static void
the_oldest_tuple_but_the_route_makes_room (void)
{
  WeirIceTuple left;

  begin ();
  for (int n = 0; n < WEIR_ICE_TUPLES; n++)
    send_check ((Check) { 0 }, place (n), n + 1);
  CHECK (!step.is_full && is_route (0));
  send_check ((Check) { 0 }, place (1), 100);
  send_check ((Check) { 0 }, place (50), 101);
  left = place (2);
  CHECK (step.is_full && memcmp (&step.left_out, &left, sizeof left) == 0);
  CHECK (is_route (0) && is_known (0) && is_known (1) && !is_known (2) && is_known (50));
  CHECK_INT (ice.n_places, WEIR_ICE_TUPLES);
}

static void
consent_lasts_30_seconds (void)
{
  begin ();
  send_check ((Check) { 0 }, place (0), 5 * SECOND);
  CHECK_INT (weir_ice_get_end (&ice), 35 * SECOND);
  weir_ice_note_alive (&ice, 7 * SECOND);
  CHECK_INT (weir_ice_get_end (&ice), 37 * SECOND);
}

static void
old_credentials_count_until_the_new_ones_do (void)
{
  begin ();
  send_check ((Check) { .use = true }, place (0), 1);
  weir_ice_restart (&ice, &own_again, "again");
  send_check ((Check) { .use = true }, place (0), 2);
  CHECK_INT (step.verdict, WEIR_ICE_ANSWERED);
  send_check ((Check) { .to = &own_again, .from = PEER }, place (2), 3);
  CHECK_INT (step.verdict, WEIR_ICE_FOREIGN);
  CHECK (is_route (0) && ice.restarting);
  send_check ((Check) { .to = &own_again, .from = "again" }, place (2), 4);
  CHECK_INT (step.verdict, WEIR_ICE_ANSWERED);
  CHECK (is_route (0) && !ice.restarting);
  send_check ((Check) { .to = &own_again, .from = "again", .use = true }, place (2), 5);
  CHECK (step.is_moved && is_route (2));
  send_check ((Check) { .use = true }, place (0), 6);
  CHECK_INT (step.verdict, WEIR_ICE_FOREIGN);
}

static void
a_second_restart_keeps_the_credentials_in_use (void)
{
  WeirIceCredentials third;

  begin ();
  third = own_again;
  third.ufrag[0] = 'z';
  weir_ice_restart (&ice, &own_again, "again");
  weir_ice_restart (&ice, &third, "third");
  send_check ((Check) { 0 }, place (0), 1);
  CHECK_INT (step.verdict, WEIR_ICE_ANSWERED);
  send_check ((Check) { .to = &own_again, .from = "again" }, place (0), 1);
  CHECK_INT (step.verdict, WEIR_ICE_FOREIGN);
  send_check ((Check) { .to = &third, .from = "third" }, place (0), 1);
  CHECK_INT (step.verdict, WEIR_ICE_ANSWERED);
}

static void
a_connection_is_a_place_of_its_own (void)
{
  WeirIceTuple tcp = place (0);

  begin ();
  tcp.connection = 7;
  send_check ((Check) { .use = true }, place (0), 1);
  send_check ((Check) { .use = true }, tcp, 2);
  CHECK (step.is_moved && ice.route.connection == 7 && ice.n_places == 2);
  CHECK (!weir_ice_drop_connection (&ice, 8));
  CHECK (weir_ice_drop_connection (&ice, 7));
  CHECK (is_route (0) && ice.n_places == 1);
  begin ();
  send_check ((Check) { 0 }, tcp, 1);
  CHECK (weir_ice_drop_connection (&ice, 7));
  CHECK (!ice.has_route && ice.n_places == 0);
}

int
main (void)
{
  RUN (credentials_have_letters_of_ice);
  RUN (texts_of_peers_are_checked);
  RUN (the_first_check_makes_a_route);
  RUN (the_route_is_where_the_peer_wants_it);
  RUN (nothing_changes_without_the_password);
  RUN (user_names_must_be_of_both);
  RUN (answers_and_indications_are_ignored);
  RUN (a_controlled_peer_is_told_so);
  RUN (a_peer_that_wants_more_is_told_so);
  RUN (the_oldest_tuple_but_the_route_makes_room);
  RUN (consent_lasts_30_seconds);
  RUN (old_credentials_count_until_the_new_ones_do);
  RUN (a_second_restart_keeps_the_credentials_in_use);
  RUN (a_connection_is_a_place_of_its_own);
  return tap_done ();
}
