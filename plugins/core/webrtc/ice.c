// SPDX-License-Identifier: LGPL-2.1-or-later
#include "webrtc/ice.h"

#include <string.h>

#define ROLE_CONFLICT 487 // RFC 8445, 7.3.1.1
#define UNKNOWN_ATTRIBUTE 420

static const char letters[64] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// ---- credentials ----

void
weir_ice_make_credentials (
    const uint8_t random[WEIR_ICE_OWN_UFRAG + WEIR_ICE_OWN_PASSWORD], WeirIceCredentials *out)
{
  memset (out, 0, sizeof *out);
  for (size_t i = 0; i < WEIR_ICE_OWN_UFRAG; i++)
    out->ufrag[i] = letters[random[i] % 64];
  for (size_t i = 0; i < WEIR_ICE_OWN_PASSWORD; i++)
    out->password[i] = letters[random[WEIR_ICE_OWN_UFRAG + i] % 64];
}

static bool
is_text (const char *text, size_t min)
{
  size_t len = strnlen (text, WEIR_ICE_TEXT_MAX + 1);

  if (len < min || len > WEIR_ICE_TEXT_MAX)
    return false;
  for (size_t i = 0; i < len; i++) {
    if (!memchr (letters, text[i], sizeof letters))
      return false;
  }
  return true;
}

bool
weir_ice_is_ufrag (const char *text)
{
  return is_text (text, WEIR_ICE_UFRAG_MIN);
}

bool
weir_ice_is_password (const char *text)
{
  return is_text (text, WEIR_ICE_PASSWORD_MIN);
}

static void
set_generation (WeirIceGeneration *self, const WeirIceCredentials *own, const char *peer_ufrag)
{
  self->own = *own;
  memset (self->peer_ufrag, 0, sizeof self->peer_ufrag);
  memcpy (self->peer_ufrag, peer_ufrag, strnlen (peer_ufrag, WEIR_ICE_TEXT_MAX));
}

void
weir_ice_init (WeirIce *self, const WeirIceCredentials *own, const char *peer_ufrag, int64_t now)
{
  memset (self, 0, sizeof *self);
  set_generation (&self->now, own, peer_ufrag);
  self->alive_ns = now;
}

void
weir_ice_restart (WeirIce *self, const WeirIceCredentials *own, const char *peer_ufrag)
{
  // A peer that restarts twice may still be at the credentials before both.
  if (!self->restarting)
    self->before = self->now;
  self->restarting = true;
  set_generation (&self->now, own, peer_ufrag);
}

bool
weir_ice_find_ufrag (const WeirStun *stun, char out[WEIR_ICE_OWN_UFRAG + 1])
{
  if (stun->username_len <= WEIR_ICE_OWN_UFRAG || stun->username[WEIR_ICE_OWN_UFRAG] != ':')
    return false;
  memcpy (out, stun->username, WEIR_ICE_OWN_UFRAG);
  out[WEIR_ICE_OWN_UFRAG] = '\0';
  return true;
}

static bool
is_of (const WeirIceGeneration *generation, const WeirStun *stun)
{
  const size_t peer_len = strlen (generation->peer_ufrag);
  char ufrag[WEIR_ICE_OWN_UFRAG + 1];

  return weir_ice_find_ufrag (stun, ufrag) && strcmp (ufrag, generation->own.ufrag) == 0
         && stun->username_len == WEIR_ICE_OWN_UFRAG + 1 + peer_len
         && memcmp (stun->username + WEIR_ICE_OWN_UFRAG + 1, generation->peer_ufrag, peer_len) == 0;
}

// ---- tuples ----

static bool
is_same (const WeirIceTuple *a, const WeirIceTuple *b)
{
  return a->connection == b->connection
         && memcmp (&a->address, &b->address, sizeof a->address) == 0;
}

static WeirIcePlace *
find_place (WeirIce *self, const WeirIceTuple *tuple)
{
  for (size_t i = 0; i < self->n_places; i++) {
    if (is_same (&self->places[i].tuple, tuple))
      return &self->places[i];
  }
  return NULL;
}

// Returns the place that has been silent for longest and is not the route.
static WeirIcePlace *
find_oldest (WeirIce *self)
{
  WeirIcePlace *oldest = NULL;

  for (size_t i = 0; i < self->n_places; i++) {
    WeirIcePlace *place = &self->places[i];

    if (self->has_route && is_same (&place->tuple, &self->route))
      continue;
    if (!oldest || place->heard_ns < oldest->heard_ns)
      oldest = place;
  }
  return oldest;
}

static void
note_place (WeirIce *self, const WeirIceTuple *from, int64_t now, WeirIceStep *step)
{
  WeirIcePlace *place = find_place (self, from);

  if (!place && self->n_places < WEIR_ICE_TUPLES) {
    place = &self->places[self->n_places++];
  } else if (!place) {
    place = find_oldest (self);
    step->is_full = true;
    step->left_out = place->tuple;
  }
  *place = (WeirIcePlace) { *from, now };
  step->is_known = true;
}

static void
set_route (WeirIce *self, const WeirIceTuple *to, WeirIceStep *step)
{
  if (self->has_route && is_same (&self->route, to))
    return;
  self->route = *to;
  self->has_route = true;
  step->is_moved = true;
}

bool
weir_ice_drop_connection (WeirIce *self, uint32_t connection)
{
  size_t kept = 0;
  const WeirIcePlace *newest = NULL;

  for (size_t i = 0; i < self->n_places; i++) {
    if (self->places[i].tuple.connection != connection)
      self->places[kept++] = self->places[i];
  }
  self->n_places = kept;
  if (!self->has_route || self->route.connection != connection)
    return false;
  for (size_t i = 0; i < kept; i++) {
    if (!newest || self->places[i].heard_ns > newest->heard_ns)
      newest = &self->places[i];
  }
  self->has_route = newest != NULL;
  if (newest)
    self->route = newest->tuple;
  return true;
}

// ---- requests ----

static void
answer_error (const WeirIceGeneration *as, const WeirStun *stun, int code, WeirStunHmac hmac,
    WeirIceStep *step)
{
  const char *password = as->own.password;

  step->answer_len = weir_stun_write_error (stun->id, code, stun->unknown,
      code == UNKNOWN_ATTRIBUTE ? stun->n_unknown : 0, password, strlen (password), hmac,
      step->answer);
}

static void
answer (WeirIce *self, const WeirIceGeneration *as, const WeirIceTuple *from, const WeirStun *stun,
    WeirStunHmac hmac, int64_t now, WeirIceStep *step)
{
  const char *password = as->own.password;

  note_place (self, from, now, step);
  // Without a route, media may go to the first address that works, before the peer has chosen.
  if (stun->use_candidate || !self->has_route)
    set_route (self, from, step);
  self->alive_ns = now;
  step->answer_len = weir_stun_write_success (
      stun->id, &from->address, password, strlen (password), hmac, step->answer);
}

// Returns the credentials to which a user name belongs, or NULL.
static const WeirIceGeneration *
find_generation (const WeirIce *self, const WeirStun *stun)
{
  if (is_of (&self->now, stun))
    return &self->now;
  return self->restarting && is_of (&self->before, stun) ? &self->before : NULL;
}

void
weir_ice_take (WeirIce *self, const WeirIceTuple *from, const WeirStun *stun, WeirStunHmac hmac,
    int64_t now, WeirIceStep *step)
{
  const WeirIceGeneration *as = find_generation (self, stun);

  memset (step, 0, sizeof *step);
  step->verdict = WEIR_ICE_IGNORED;
  if (stun->type != WEIR_STUN_REQUEST)
    return;
  step->verdict = WEIR_ICE_FOREIGN;
  if (!as)
    return;
  step->verdict = WEIR_ICE_FORGED;
  if (!weir_stun_is_authentic (stun, as->own.password, strlen (as->own.password), hmac))
    return;
  step->verdict = WEIR_ICE_ANSWERED;
  if (stun->n_unknown > 0) {
    answer_error (as, stun, UNKNOWN_ATTRIBUTE, hmac, step);
  } else if (stun->is_controlled) {
    answer_error (as, stun, ROLE_CONFLICT, hmac, step);
  } else {
    if (as == &self->now)
      self->restarting = false;
    answer (self, as, from, stun, hmac, now, step);
  }
}

// ---- consent ----

void
weir_ice_note_alive (WeirIce *self, int64_t now)
{
  self->alive_ns = now;
}

int64_t
weir_ice_get_end (const WeirIce *self)
{
  return self->alive_ns + WEIR_ICE_CONSENT_NS;
}
