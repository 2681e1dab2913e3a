// SPDX-License-Identifier: LGPL-2.1-or-later
#include "access/secrets.h"

#include "base/threads.h"

#include <argon2.h>
#include <string.h>
#include <sys/random.h>

#define KNOWN_MAX 1024
#define KEY_BYTES 32

struct _Secrets {
  gchar *key; // of the checksums; random
  GThreadPool *thread;
  GMutex lock;
  GHashTable *known; // checksums of right passwords
};

typedef struct {
  gchar *encoded, *password, *checksum;
  SecretsDone done;
  gpointer data;
} Job;

gboolean
secrets_equal (const gchar *a, const gchar *b)
{
  gsize len = strlen (a);
  guint8 differ = 0;

  if (strlen (b) != len)
    return FALSE;
  for (gsize i = 0; i < len; i++)
    differ |= (guint8) a[i] ^ (guint8) b[i];
  return differ == 0;
}

gchar *
secrets_dup_random (guint n)
{
  GString *hex = g_string_sized_new (2 * n);
  guint8 bytes[KEY_BYTES];

  g_assert (n <= sizeof bytes);
  // At most 256 bytes are never interrupted, and an old kernel without getrandom() runs no proxy.
  if (getrandom (bytes, n, 0) != (gssize) n)
    g_error ("getrandom() failed");
  for (guint i = 0; i < n; i++)
    g_string_append_printf (hex, "%02x", bytes[i]);
  return g_string_free (hex, FALSE);
}

// ---- passwords that were right ----

static gchar *
dup_checksum (Secrets *self, const User *user, const gchar *password)
{
  GHmac *hmac = g_hmac_new (G_CHECKSUM_SHA256, (const guchar *) self->key, strlen (self->key));
  gchar *checksum;

  // With the ends of the texts, so that "a", "bc" differs from "ab", "c".
  g_hmac_update (hmac, (const guchar *) user->name, (gssize) strlen (user->name) + 1);
  g_hmac_update (hmac, (const guchar *) user->argon2, (gssize) strlen (user->argon2) + 1);
  g_hmac_update (hmac, (const guchar *) password, -1);
  checksum = g_strdup (g_hmac_get_string (hmac));
  g_hmac_unref (hmac);
  return checksum;
}

static gboolean
is_known (Secrets *self, const gchar *checksum)
{
  gboolean known;

  g_mutex_lock (&self->lock);
  known = g_hash_table_contains (self->known, checksum);
  g_mutex_unlock (&self->lock);
  return known;
}

// Takes ownership of `checksum`.
static void
remember (Secrets *self, gchar *checksum)
{
  g_mutex_lock (&self->lock);
  if (g_hash_table_size (self->known) >= KNOWN_MAX)
    g_hash_table_remove_all (self->known);
  g_hash_table_add (self->known, checksum);
  g_mutex_unlock (&self->lock);
}

// ---- the thread ----

static void
job_free (Job *job)
{
  explicit_bzero (job->password, strlen (job->password));
  g_free (job->password);
  g_free (job->encoded);
  g_free (job->checksum);
  g_free (job);
}

static void
check_hash (gpointer data, gpointer secrets)
{
  Job *job = data;
  gboolean right;

  thread_set_name ("passwords");
  right = argon2id_verify (job->encoded, job->password, strlen (job->password)) == ARGON2_OK;
  if (right)
    remember (secrets, g_steal_pointer (&job->checksum));
  job->done (job->data, right);
  job_free (job);
  thread_set_name (THREAD_IDLE);
}

static SecretResult
check_later (Secrets *self, const User *user, const gchar *password, gchar *checksum,
    SecretsDone done, gpointer data)
{
  Job *job;

  if (g_thread_pool_unprocessed (self->thread) >= SECRETS_WAITING_MAX) {
    g_free (checksum);
    return SECRET_BUSY;
  }
  job = g_new0 (Job, 1);
  job->encoded = g_strdup (user->argon2);
  job->password = g_strdup (password);
  job->checksum = checksum;
  job->done = done;
  job->data = data;
  g_thread_pool_push (self->thread, job, NULL);
  return SECRET_LATER;
}

// ---- checking ----

static gboolean
is_sha256_of (const gchar *expected, const gchar *text)
{
  gchar *given = g_compute_checksum_for_string (G_CHECKSUM_SHA256, text, -1);
  gboolean same = secrets_equal (given, expected);

  g_free (given);
  return same;
}

static gboolean
is_digest_of (const User *user, const gchar *password)
{
  gchar *text = g_strdup_printf ("%s:" USERS_REALM ":%s", user->name, password);
  gchar *md5 = g_compute_checksum_for_string (G_CHECKSUM_MD5, text, -1);
  gboolean same = user->sha2_digest ? is_sha256_of (user->sha2_digest, text)
                                    : user->md5_digest && secrets_equal (md5, user->md5_digest);

  explicit_bzero (text, strlen (text));
  g_free (text);
  g_free (md5);
  return same;
}

SecretResult
secrets_check (
    Secrets *self, const User *user, const gchar *password, SecretsDone done, gpointer data)
{
  gchar *checksum;
  gboolean right;

  if (!user->argon2) {
    right = user->sha256 ? is_sha256_of (user->sha256, password) : is_digest_of (user, password);
    return right ? SECRET_RIGHT : SECRET_WRONG;
  }
  checksum = dup_checksum (self, user, password);
  if (!is_known (self, checksum))
    return check_later (self, user, password, checksum, done, data);
  g_free (checksum);
  return SECRET_RIGHT;
}

// ---- construction ----

Secrets *
secrets_new (void)
{
  Secrets *self = g_new0 (Secrets, 1);

  self->key = secrets_dup_random (KEY_BYTES);
  self->thread = g_thread_pool_new (check_hash, self, 1, FALSE, NULL);
  g_mutex_init (&self->lock);
  self->known = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  return self;
}

void
secrets_free (Secrets *self)
{
  g_thread_pool_free (self->thread, FALSE, TRUE);
  g_hash_table_unref (self->known);
  g_mutex_clear (&self->lock);
  g_free (self->key);
  g_free (self);
}
