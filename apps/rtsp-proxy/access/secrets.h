// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Checks passwords against the secrets of users. An argon2id hash takes some 20 ms and 19 MiB to
// check, so it is checked on a thread of its own, and a password that was right once is remembered
// by a keyed checksum. Every wrong password costs as much as one of the user with the costliest
// hash, so that nobody can find out names of users by the time. Call from any thread.

#include "config/users.h"

// Passwords that may wait for the thread. It takes the clients in turn. When that many wait, the
// client with the most loses one for another client, so that one who guesses keeps nobody out.
#define SECRETS_WAITING_MAX 512

typedef struct _Secrets Secrets;

Secrets *secrets_new (void);

// The passwords that wait are not checked; their `done` is called with SECRET_BUSY.
void secrets_free (Secrets *self);

typedef enum {
  SECRET_RIGHT,
  SECRET_WRONG,
  SECRET_BUSY,  // too many passwords wait
  SECRET_LATER, // `done` will be called with one of the others
} SecretResult;

// Called on any thread.
typedef void (*SecretsDone) (gpointer data, SecretResult result);

// Checks the password of a user of the set, or takes as long if `user` is NULL. `client` is the key
// of its address. Users and set must be valid until `done` was called.
SecretResult secrets_check (Secrets *self, const UserSet *users, const User *user,
    const gchar *password, const gchar *client, SecretsDone done, gpointer data);

// Returns what all argon2id hashes of the process so far have cost: KiB times passes. For tests.
guint64 secrets_get_work (void);

// Reports whether two texts are the same, in a time that depends on their lengths only.
gboolean secrets_equal (const gchar *a, const gchar *b);

// Returns `n` random bytes as lower-case hex. (transfer full)
gchar *secrets_dup_random (guint n);
