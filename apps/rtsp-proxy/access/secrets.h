// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Checks passwords against the secrets of users. An argon2id hash takes some 20 ms and 19 MiB to
// check, so it is checked on a thread of its own, and a password that was right once is remembered
// by a keyed checksum. Call from any thread.

#include "config/user.h"

#define SECRETS_WAITING_MAX 64 // passwords that may wait for the thread

typedef struct _Secrets Secrets;

Secrets *secrets_new (void);

// Waits until all passwords that were given are checked.
void secrets_free (Secrets *self);

typedef enum {
  SECRET_RIGHT,
  SECRET_WRONG,
  SECRET_LATER, // `done` will be called
  SECRET_BUSY,  // too many passwords wait
} SecretResult;

// Called on the thread that checks hashes.
typedef void (*SecretsDone) (gpointer data, gboolean is_right);

// Checks the password of a user, who must be valid until `done` was called.
SecretResult secrets_check (
    Secrets *self, const User *user, const gchar *password, SecretsDone done, gpointer data);

// Reports whether two texts are the same, in a time that depends on their lengths only.
gboolean secrets_equal (const gchar *a, const gchar *b);

// Returns `n` random bytes as lower-case hex. (transfer full)
gchar *secrets_dup_random (guint n);
