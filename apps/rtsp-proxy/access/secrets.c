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
  GMutex lock;         // protects the fields below
  GHashTable *known;   // checksums of right passwords
  guint n_waiting;     // jobs
  GHashTable *clients; // key -> Line, of clients that wait
  GQueue turns;        // of Line: whose job is next
};

// The jobs of a client.
typedef struct {
  gchar *client;
  GQueue jobs; // not empty
} Line;

typedef struct {
  gchar *encoded; // the hash of the user; NULL: the password is wrong
  gchar *password, *checksum;
  guint kib, passes, lanes; // of what a wrong password costs on top
  guint64 cost;             // of `encoded`
  SecretsDone done;
  gpointer data;
} Job;

static guint64 work; // atomic

guint64
secrets_get_work (void)
{
  return __atomic_load_n (&work, __ATOMIC_RELAXED);
}

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
  g_autoptr (GHmac) hmac =
      g_hmac_new (G_CHECKSUM_SHA256, (const guchar *) self->key, strlen (self->key));

  // With the ends of the texts, so that "a", "bc" differs from "ab", "c".
  g_hmac_update (hmac, (const guchar *) user->name, (gssize) strlen (user->name) + 1);
  g_hmac_update (hmac, (const guchar *) user->argon2, (gssize) strlen (user->argon2) + 1);
  g_hmac_update (hmac, (const guchar *) password, -1);
  return g_strdup (g_hmac_get_string (hmac));
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

// ---- jobs that wait ----

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
line_free (gpointer data)
{
  Line *line = data;

  g_free (line->client);
  g_free (line);
}

// Takes a job from a client's line; the line goes if it was the last one. Call with the lock held.
static Job *
take (Secrets *self, Line *line, gboolean newest)
{
  Job *job = newest ? g_queue_pop_tail (&line->jobs) : g_queue_pop_head (&line->jobs);

  self->n_waiting--;
  if (line->jobs.length == 0) {
    g_queue_remove (&self->turns, line);
    g_hash_table_remove (self->clients, line->client); // frees it
  }
  return job;
}

// Returns the next job, of each client in turn, or NULL.
static Job *
take_next (Secrets *self)
{
  Job *job = NULL;
  Line *line;

  g_mutex_lock (&self->lock);
  line = g_queue_pop_head (&self->turns);
  if (line) {
    g_queue_push_tail (&self->turns, line);
    job = take (self, line, FALSE);
  }
  g_mutex_unlock (&self->lock);
  return job;
}

// Returns the line with the most jobs, or NULL if a client with `n` has as many with its next one.
static Line *
find_longest (Secrets *self, guint n)
{
  Line *longest = NULL;

  for (GList *l = self->turns.head; l; l = l->next) {
    Line *line = l->data;

    if (line->jobs.length > (longest ? longest->jobs.length : n + 1))
      longest = line;
  }
  return longest;
}

// Lets a job wait. Returns FALSE if there is no room. `removed` is a job that has to go for it, or
// NULL.
static gboolean
put (Secrets *self, const gchar *client, Job *job, Job **removed)
{
  Line *line, *longest = NULL;
  gboolean ok;

  g_mutex_lock (&self->lock);
  line = g_hash_table_lookup (self->clients, client);
  if (self->n_waiting >= SECRETS_WAITING_MAX)
    longest = find_longest (self, line ? line->jobs.length : 0);
  ok = self->n_waiting < SECRETS_WAITING_MAX || longest;
  *removed = longest ? take (self, longest, TRUE) : NULL;
  if (ok && !line) {
    line = g_new0 (Line, 1);
    line->client = g_strdup (client);
    g_hash_table_insert (self->clients, line->client, line);
    g_queue_push_tail (&self->turns, line);
  }
  if (ok) {
    g_queue_push_tail (&line->jobs, job);
    self->n_waiting++;
  }
  g_mutex_unlock (&self->lock);
  return ok;
}

static void
refuse (Job *job)
{
  job->done (job->data, SECRET_BUSY);
  job_free (job);
}

// ---- the thread ----

static void
add_work (guint64 cost)
{
  __atomic_add_fetch (&work, cost, __ATOMIC_RELAXED);
}

static gboolean
is_password_of (const Job *job)
{
  add_work (job->cost);
  return argon2id_verify (job->encoded, job->password, strlen (job->password)) == ARGON2_OK;
}

// Computes a hash that nobody needs.
static void
waste (const Job *job)
{
  static const guint8 salt[16] = { 0 };
  guint8 hash[32];

  if (job->kib < 8 * job->lanes) // the least of argon2
    return;
  add_work ((guint64) job->kib * job->passes);
  argon2id_hash_raw (job->passes, job->kib, job->lanes, job->password, strlen (job->password), salt,
      sizeof salt, hash, sizeof hash);
}

static void
check_next (gpointer unused, gpointer secrets)
{
  Job *job = take_next (secrets);
  gboolean known, right;

  if (!job) // one was removed
    return;
  thread_set_name ("passwords");
  // Another client may have come with the same password meanwhile.
  known = job->encoded && is_known (secrets, job->checksum);
  right = known || (job->encoded && is_password_of (job));
  if (!right)
    waste (job);
  else if (!known)
    remember (secrets, g_steal_pointer (&job->checksum));
  job->done (job->data, right ? SECRET_RIGHT : SECRET_WRONG);
  job_free (job);
  thread_set_name (THREAD_IDLE);
}

// Takes ownership of `checksum`. `user` is NULL if the password is known to be wrong.
static SecretResult
check_later (Secrets *self, const User *costliest, const User *user, const gchar *password,
    gchar *checksum, const gchar *client, SecretsDone done, gpointer data)
{
  Job *job = g_new0 (Job, 1), *removed;
  guint64 own = user ? user_get_cost (user) : 0;

  *job = (Job) { .encoded = g_strdup (user ? user->argon2 : NULL),
    .password = g_strdup (password),
    .checksum = checksum,
    .cost = own,
    .passes = costliest->passes,
    .kib = (guint) ((user_get_cost (costliest) - own) / costliest->passes),
    .lanes = costliest->lanes,
    .done = done,
    .data = data };
  if (!put (self, client, job, &removed)) {
    job_free (job);
    return SECRET_BUSY;
  }
  if (removed)
    refuse (removed);
  g_thread_pool_push (self->thread, self, NULL);
  return SECRET_LATER;
}

// ---- checking ----

// Reports whether a password is that of a user without an argon2id hash. `user` may be NULL: the
// same is computed then.
static gboolean
is_quickly_right (const User *user, const gchar *password)
{
  g_autofree gchar *text =
      g_strdup_printf ("%s:" USERS_REALM ":%s", user ? user->name : "", password);
  g_autofree gchar *sha256 = g_compute_checksum_for_string (G_CHECKSUM_SHA256, password, -1);
  g_autofree gchar *sha2_digest = g_compute_checksum_for_string (G_CHECKSUM_SHA256, text, -1);
  g_autofree gchar *md5_digest = g_compute_checksum_for_string (G_CHECKSUM_MD5, text, -1);
  gboolean right = FALSE;

  if (user && user->sha256)
    right = secrets_equal (sha256, user->sha256);
  else if (user && user->sha2_digest)
    right = secrets_equal (sha2_digest, user->sha2_digest);
  else if (user && user->md5_digest)
    right = secrets_equal (md5_digest, user->md5_digest);
  explicit_bzero (text, strlen (text));
  return right;
}

SecretResult
secrets_check (Secrets *self, const UserSet *users, const User *user, const gchar *password,
    const gchar *client, SecretsDone done, gpointer data)
{
  const User *costliest = user_set_get_costliest (users);
  gboolean hashed = user && user->argon2;
  gchar *checksum;

  if (is_quickly_right (hashed ? NULL : user, password))
    return SECRET_RIGHT;
  if (!costliest)
    return SECRET_WRONG;
  checksum = hashed ? dup_checksum (self, user, password) : NULL;
  if (!checksum || !is_known (self, checksum))
    return check_later (
        self, costliest, hashed ? user : NULL, password, checksum, client, done, data);
  g_free (checksum);
  return SECRET_RIGHT;
}

// ---- construction ----

Secrets *
secrets_new (void)
{
  Secrets *self = g_new0 (Secrets, 1);

  self->key = secrets_dup_random (KEY_BYTES);
  self->thread = g_thread_pool_new (check_next, self, 1, FALSE, NULL);
  g_mutex_init (&self->lock);
  self->known = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self->clients = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, line_free);
  return self;
}

void
secrets_free (Secrets *self)
{
  Job *job;

  while ((job = take_next (self)))
    refuse (job);
  g_thread_pool_free (self->thread, FALSE, TRUE);
  g_hash_table_unref (self->clients);
  g_hash_table_unref (self->known);
  g_mutex_clear (&self->lock);
  g_free (self->key);
  g_free (self);
}
