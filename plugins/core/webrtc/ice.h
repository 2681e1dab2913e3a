// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A lite agent of ICE (RFC 8445) for one peer and one component: it answers the peer's checks,
// keeps the addresses from which authentic ones came, and sends to the one that the peer nominates.
// It has no socket and no clock. Calls for one agent are serialised by the caller.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/address.h"
#include "webrtc/stun.h"

#define WEIR_ICE_TUPLES 8
#define WEIR_ICE_UFRAG_MIN 4 // characters (RFC 8839, 5.4)
#define WEIR_ICE_PASSWORD_MIN 22
#define WEIR_ICE_TEXT_MAX 256
#define WEIR_ICE_OWN_UFRAG 8
#define WEIR_ICE_OWN_PASSWORD 24

// How long the peer may be silent: an authentic request is its consent to be sent to (RFC 7675).
#define WEIR_ICE_CONSENT_NS (30 * (int64_t) 1000000000)

// Where a peer is: its address, and the TCP connection by which it came, or 0 for UDP.
typedef struct {
  WeirAddress address;
  uint32_t connection;
} WeirIceTuple;

typedef struct {
  char ufrag[WEIR_ICE_OWN_UFRAG + 1];
  char password[WEIR_ICE_OWN_PASSWORD + 1];
} WeirIceCredentials;

// Private.
typedef struct {
  WeirIceCredentials own;
  char peer_ufrag[WEIR_ICE_TEXT_MAX + 1];
} WeirIceGeneration;

typedef struct {
  WeirIceTuple tuple;
  int64_t heard_ns; // when the last authentic request came from there
} WeirIcePlace;

typedef struct {
  WeirIceGeneration now, before; // before a restart, until the peer uses the new one
  bool restarting;
  WeirIcePlace places[WEIR_ICE_TUPLES];
  size_t n_places;
  WeirIceTuple route;
  bool has_route;
  int64_t alive_ns;
} WeirIce;

typedef enum {
  WEIR_ICE_ANSWERED, // send the answer to where the request came from
  WEIR_ICE_IGNORED,  // a message that asks for nothing, such as an indication
  WEIR_ICE_FOREIGN,  // its user name is not of this agent and peer
  WEIR_ICE_FORGED,   // it is not authentic
  WEIR_ICE_VERDICTS
} WeirIceVerdict;

// What a message led to.
typedef struct {
  WeirIceVerdict verdict;
  uint8_t answer[WEIR_STUN_ANSWER_MAX];
  size_t answer_len;
  bool is_known; // the tuple is one of the agent's from now on
  bool is_moved; // the route is another one
  bool is_full;  // `left_out` made room, and is no tuple of the agent any more
  WeirIceTuple left_out;
} WeirIceStep;

// Makes credentials of `random`.
void weir_ice_make_credentials (
    const uint8_t random[WEIR_ICE_OWN_UFRAG + WEIR_ICE_OWN_PASSWORD], WeirIceCredentials *out);

// Reports whether a text can be a peer's user name or password: 4 or 22 to 256 characters of those
// that ICE allows.
bool weir_ice_is_ufrag (const char *text);
bool weir_ice_is_password (const char *text);

// Begins with the agent's own credentials, and the peer's user name of its offer
// (weir_ice_is_ufrag() holds). `now`: ns, monotonic, as in all functions below.
void weir_ice_init (
    WeirIce *self, const WeirIceCredentials *own, const char *peer_ufrag, int64_t now);

// Restarts (RFC 8445, 9): new credentials and a new user name of the peer. The route stays, and the
// old credentials count until the peer uses the new ones.
void weir_ice_restart (WeirIce *self, const WeirIceCredentials *own, const char *peer_ufrag);

// Finds the part of a user name that is the agent's own, before the colon. Returns false if that is
// not as long as those that this file makes.
bool weir_ice_find_ufrag (const WeirStun *stun, char out[WEIR_ICE_OWN_UFRAG + 1]);

// Takes a message that came from `from`. A request that is not answered changes nothing.
void weir_ice_take (WeirIce *self, const WeirIceTuple *from, const WeirStun *stun,
    WeirStunHmac hmac, int64_t now, WeirIceStep *step);

// Forgets the tuples of a TCP connection that has closed. Returns true if the route is another one,
// or there is none any more.
bool weir_ice_drop_connection (WeirIce *self, uint32_t connection);

// Notes other proof that the peer lives and wants media, such as authentic SRTCP.
void weir_ice_note_alive (WeirIce *self, int64_t now);

// Returns when consent ends unless something authentic comes before.
int64_t weir_ice_get_end (const WeirIce *self);
