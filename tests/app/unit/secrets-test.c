// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Passwords: what a wrong one costs, judged by the hashes that are computed, and who waits for
// whom.
#include "access/access.h"
#include "access/secrets.h"

#include <argon2.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#define RIGHT "right"

// ---- users ----

static gchar *
hash (guint kib, guint passes)
{
  gchar encoded[256];

  g_assert_cmpint (argon2id_hash_encoded (passes, kib, 1, RIGHT, strlen (RIGHT), "saltsaltsalt", 12,
                       32, encoded, sizeof encoded),
      ==, ARGON2_OK);
  return g_strdup (encoded);
}

static ProxyConfig *
read_config (const gchar *text)
{
  ProxyConfig *config = proxy_config_new ();
  GError *error = NULL;
  gchar *name = NULL;
  gint file = g_file_open_tmp (NULL, &name, &error);

  g_assert_no_error (error);
  close (file);
  g_file_set_contents (name, text, -1, &error);
  g_assert_no_error (error);
  proxy_config_load (config, name, &error);
  g_assert_no_error (error);
  g_unlink (name);
  g_free (name);
  return config;
}

// Users with all kinds of secrets. `dear` says whether some have an argon2id hash.
static ProxyConfig *
make_config (gboolean dear)
{
  gchar *costly = hash (1024, 2), *cheap = hash (64, 1);
  gchar *sha256 = g_compute_checksum_for_string (G_CHECKSUM_SHA256, RIGHT, -1);
  gchar *md5 = g_compute_checksum_for_string (G_CHECKSUM_MD5, "md5:" USERS_REALM ":" RIGHT, -1);
  gchar *sha2 =
      g_compute_checksum_for_string (G_CHECKSUM_SHA256, "sha2:" USERS_REALM ":" RIGHT, -1);
  gchar *elsewhere = dear ? g_strdup (cheap) : g_strconcat ("sha256:", sha256, NULL);
  gchar *hashes =
      dear ? g_strdup_printf ("  - {name: costly, hash: \"%s\", permissions: [{action: read}]}\n"
                              "  - {name: cheap, hash: \"%s\", permissions: [{action: read}]}\n",
                 costly, cheap)
           : g_strdup ("");
  gchar *text =
      g_strdup_printf ("basic-without-tls: yes\nusers:\n%s"
                       "  - {name: elsewhere, networks: [203.0.113.0/24], hash: \"%s\", "
                       "permissions: [{action: read}]}\n"
                       "  - {name: sha256, hash: \"sha256:%s\", permissions: [{action: read}]}\n"
                       "  - {name: md5, digest: \"MD5:%s\", permissions: [{action: read}]}\n"
                       "  - {name: sha2, digest: \"SHA-256:%s\", permissions: [{action: read}]}\n",
          hashes, elsewhere, sha256, md5, sha2);
  ProxyConfig *config = read_config (text);

  g_free (text);
  g_free (hashes);
  g_free (elsewhere);
  g_free (sha2);
  g_free (md5);
  g_free (sha256);
  g_free (cheap);
  g_free (costly);
  return config;
}

// ---- access ----

static GMutex lock;
static GCond cond;

static void
on_decided (AccessDecision *decided, gpointer data)
{
  g_mutex_lock (&lock);
  *(gboolean *) data = TRUE;
  g_cond_broadcast (&cond);
  g_mutex_unlock (&lock);
}

static AccessVerdict
ask (Access *access, const gchar *user, const gchar *password)
{
  static guint n; // each comes from an address of its own, which is not slowed down
  gchar *address = g_strdup_printf ("192.0.%u.%u", 1 + n / 250, 1 + n % 250);
  AccessPeer *peer = access_peer_new (address, "rtsp");
  gchar *pair = g_strconcat (user, ":", password, NULL);
  gchar *coded = g_base64_encode ((const guchar *) pair, strlen (pair));
  gchar *header = g_strconcat ("Basic ", coded, NULL);
  const AccessRequest request = { .action = ACCESS_READ,
    .path = "/cam",
    .mount = "/cam",
    .method = "DESCRIBE",
    .authorization = header };
  gboolean done = FALSE;
  AccessDecision *asked = access_ask (access, peer, &request, on_decided, &done);
  AccessVerdict verdict;

  n++;
  g_mutex_lock (&lock);
  while (access_decision_is_later (asked) && !done)
    g_cond_wait (&cond, &lock);
  g_mutex_unlock (&lock);
  verdict = access_decision_get_verdict (asked);
  access_decision_unref (asked);
  access_peer_unref (peer);
  g_free (header);
  g_free (coded);
  g_free (pair);
  g_free (address);
  return verdict;
}

// Returns what the attempt cost.
static guint64
try (Access *access, const gchar *user, const gchar *password, AccessVerdict verdict)
{
  guint64 before = secrets_get_work ();

  g_assert_cmpint (ask (access, user, password), ==, verdict);
  return secrets_get_work () - before;
}

static void
check_costs (gboolean dear)
{
  static const gchar *const names[] = { "nobody", "costly", "cheap", "elsewhere", "sha256", "md5",
    "sha2", "", "any" };
  ProxyConfig *config = make_config (dear);
  Access *access = access_new (config);
  guint64 cost = dear ? 1024 * 2 : 0;

  for (guint round = 0; round < 2; round++) {
    for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
      g_test_message ("%s", names[i]);
      g_assert_cmpuint (try (access, names[i], "wrong", ACCESS_ASKED), ==, cost);
      g_assert_cmpuint (try (access, names[i], "", ACCESS_ASKED), ==, cost);
    }
    // The right password of another network's user tells nothing either.
    g_assert_cmpuint (try (access, "elsewhere", RIGHT, ACCESS_ASKED), ==, cost);
    if (dear && round == 0) {
      g_assert_cmpuint (try (access, "costly", RIGHT, ACCESS_ADMITTED), ==, 1024 * 2);
      g_assert_cmpuint (try (access, "cheap", RIGHT, ACCESS_ADMITTED), ==, 64);
    }
    // Passwords that were right before, and those without an argon2id hash, cost nothing.
    for (guint i = dear ? 1 : 4; i < 7; i++) {
      if (i != 3)
        g_assert_cmpuint (try (access, names[i], RIGHT, ACCESS_ADMITTED), ==, 0);
    }
  }
  access_close (access);
  access_free (access);
  proxy_config_free (config);
}

static void
every_wrong_password_costs_the_same (void)
{
  check_costs (TRUE);
}

static void
without_costly_hashes_nothing_waits (void)
{
  check_costs (FALSE);
}

// ---- who waits ----

// Passwords are checked in the order of `order`; the first one is held until they all wait.
typedef struct {
  Secrets *secrets;
  ProxyConfig *config;
  const User *user;
  gboolean held, going;   // guarded by `lock`, as the fields below
  GString *order;         // the clients' letters
  guint n_busy, n_wanted; // refused; decided when all are
  gchar refused;          // the last client that was refused
} Queue;

typedef struct {
  Queue *queue;
  gchar client;
} Try;

static void
on_checked (gpointer data, SecretResult result)
{
  Try *try = data;
  Queue *queue = try->queue;

  g_mutex_lock (&lock);
  if (try->client == '0') {
    queue->held = TRUE;
    g_cond_broadcast (&cond);
    while (!queue->going)
      g_cond_wait (&cond, &lock);
  } else if (result == SECRET_BUSY) {
    queue->n_busy++;
    queue->refused = try->client;
  } else {
    g_string_append_c (queue->order, try->client);
  }
  g_cond_broadcast (&cond);
  g_mutex_unlock (&lock);
  g_free (try);
}

// Returns whether the password waits.
static gboolean
put (Queue *queue, gchar client)
{
  const gchar key[] = { client, '\0' };
  Try *try = g_new (Try, 1);
  SecretResult result;

  *try = (Try) { queue, client };
  result = secrets_check (
      queue->secrets, queue->config->users, queue->user, "wrong", key, on_checked, try);
  if (result == SECRET_BUSY)
    g_free (try);
  else
    g_assert_cmpint (result, ==, SECRET_LATER);
  return result == SECRET_LATER;
}

static void
begin (Queue *queue)
{
  gchar *cheap = hash (8, 1);
  gchar *text = g_strdup_printf (
      "users: [{name: ann, hash: \"%s\", permissions: [{action: read}]}]\n", cheap);

  *queue = (Queue) { .config = read_config (text), .secrets = secrets_new () };
  queue->order = g_string_new (NULL);
  queue->user = g_hash_table_lookup (queue->config->users->by_name, "ann");
  g_assert_true (put (queue, '0'));
  g_mutex_lock (&lock);
  while (!queue->held)
    g_cond_wait (&cond, &lock);
  g_mutex_unlock (&lock);
  g_free (text);
  g_free (cheap);
}

// Lets the thread go on until `n` passwords have been checked.
static void
go (Queue *queue, guint n)
{
  g_mutex_lock (&lock);
  queue->going = TRUE;
  g_cond_broadcast (&cond);
  while (queue->order->len < n)
    g_cond_wait (&cond, &lock);
  g_mutex_unlock (&lock);
}

static void
end (Queue *queue)
{
  g_mutex_lock (&lock);
  queue->going = TRUE;
  g_cond_broadcast (&cond);
  g_mutex_unlock (&lock);
  secrets_free (queue->secrets);
  proxy_config_free (queue->config);
  g_string_free (queue->order, TRUE);
}

static void
clients_take_turns (void)
{
  Queue queue;

  begin (&queue);
  for (const gchar *c = "aaaabbca"; *c; c++)
    g_assert_true (put (&queue, *c));
  g_assert_true (put (&queue, 'h'));
  go (&queue, 9);
  g_assert_cmpstr (queue.order->str, ==, "abchabaaa");
  end (&queue);
}

static void
three_hundred_guesses_are_all_judged (void)
{
  Queue queue;

  begin (&queue);
  for (guint i = 0; i < 300; i++)
    g_assert_true (put (&queue, (gchar) ('a' + i % 10)));
  g_assert_true (put (&queue, 'z')); // an honest one
  go (&queue, 301);
  g_assert_cmpuint (queue.n_busy, ==, 0);
  g_assert_cmpint (strchr (queue.order->str, 'z') - queue.order->str, <=, 10);
  end (&queue);
}

static void
who_guesses_keeps_nobody_out (void)
{
  Queue queue;

  begin (&queue);
  for (guint i = 0; i < SECRETS_WAITING_MAX; i++)
    g_assert_true (put (&queue, 'a'));
  g_assert_false (put (&queue, 'a')); // nobody else to lose one
  for (guint i = 0; i < 20; i++) {
    g_assert_true (put (&queue, (gchar) ('b' + i)));
    g_assert_cmpint (queue.refused, ==, 'a');
  }
  g_assert_cmpuint (queue.n_busy, ==, 20);
  go (&queue, 21);
  for (gchar c = 'b'; c < 'b' + 20; c++)
    g_assert_nonnull (memchr (queue.order->str, c, 21));
  end (&queue);
}

static void
the_queue_is_bounded (void)
{
  Queue queue;

  begin (&queue);
  for (guint i = 0; i < SECRETS_WAITING_MAX; i++)
    g_assert_true (put (&queue, (gchar) (1 + i % 128)));
  for (guint i = 0; i < 128; i++) // all have as many
    g_assert_false (put (&queue, (gchar) (1 + i % 128)));
  g_assert_cmpuint (queue.n_busy, ==, 0);
  end (&queue); // at once, without their hashes
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func (
      "/secrets/every wrong password costs the same", every_wrong_password_costs_the_same);
  g_test_add_func (
      "/secrets/without costly hashes nothing waits", without_costly_hashes_nothing_waits);
  g_test_add_func ("/secrets/clients take turns", clients_take_turns);
  g_test_add_func ("/secrets/300 guesses are all judged", three_hundred_guesses_are_all_judged);
  g_test_add_func ("/secrets/who guesses keeps nobody out", who_guesses_keeps_nobody_out);
  g_test_add_func ("/secrets/the queue is bounded", the_queue_is_bounded);
  return g_test_run ();
}
