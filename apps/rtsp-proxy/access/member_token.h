// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Tokens by which members of a cluster know each other: JSON Web Tokens (RFC 7519) that the secret
// of the cluster signs by HS256. Each is for one member, and its time is that of this member's
// clock. Call from any thread.

#include <glib.h>

typedef enum {
  MEMBER_TOKEN_GOOD,
  MEMBER_TOKEN_NONE,  // it is not such a token
  MEMBER_TOKEN_WRONG, // another secret, another member, or malformed
  MEMBER_TOKEN_EXPIRED,
} MemberVerdict;

// Returns a token of the member `from` for the member `to`, until `expires_s` (Unix time, by the
// clock of `to`). (transfer full)
gchar *member_token_new (const gchar *secret, const gchar *from, const gchar *to, gint64 expires_s);

// Checks a token for the member `to` at `now_s`. For MEMBER_TOKEN_GOOD and MEMBER_TOKEN_EXPIRED
// sets
// `*from` to the member that sent it (transfer full); otherwise to NULL.
MemberVerdict member_token_check (
    const gchar *secret, const gchar *token, const gchar *to, gint64 now_s, gchar **from);
