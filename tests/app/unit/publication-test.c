// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/publication.h"

static guint n_displaced, n_freed, n_begun, n_ended;
static gchar *reason;

static void
displaced (gpointer owner)
{
  n_displaced++;
}

static void
ask_key (gpointer owner, guint track)
{
}

static void
count_free (gpointer owner)
{
  n_freed++;
}

static const PublicationOps ops = { displaced, ask_key };

static Publication *
claim (const gchar *peer, gboolean takeover, GError **error)
{
  return publication_claim (
      &(PublicationClaim) { "/cam", peer, "address 127.0.0.1", takeover, 100 }, &ops, NULL,
      count_free, error);
}

static void
begin (Publication *self)
{
  GPtrArray *caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);

  g_ptr_array_add (
      caps, gst_caps_from_string ("application/x-rtp, media=video, clock-rate=90000, payload=96, "
                                  "encoding-name=H264, packetization-mode=(string)1"));
  publication_begin (self, "SRT", caps);
  g_ptr_array_unref (caps);
}

static void
on_begun (gpointer owner, RelayTracks tracks)
{
  n_begun++;
}

static void
on_packet (gpointer owner, gint64 now)
{
}

static void
on_ended (gpointer owner, const gchar *why)
{
  n_ended++;
  g_free (reason);
  reason = g_strdup (why);
}

static void
ignore (gpointer data)
{
}

static void
assert_refused (const gchar *holder)
{
  GError *error = NULL;
  gchar *start = g_strdup_printf ("%s publishes /cam already", holder);

  g_assert_null (claim ("192.0.2.99:1", FALSE, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
  g_assert_true (g_str_has_prefix (error->message, start));
  g_error_free (error);
  g_free (start);
}

static void
test_taken (void)
{
  GError *error = NULL;
  Publication *first = claim ("192.0.2.1:1", FALSE, &error), *second;

  g_assert_no_error (error);
  assert_refused ("192.0.2.1:1");
  g_assert_cmpuint (n_displaced, ==, 0);
  second = claim ("192.0.2.2:2", TRUE, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (n_displaced, ==, 1);
  publication_end (first, "displaced");
  assert_refused ("192.0.2.2:2");
  publication_end (second, "left");
  g_assert_cmpuint (n_freed, ==, 2);
}

static Publication *
claim_as (const gchar *identity, gint64 now)
{
  return publication_claim (&(PublicationClaim) { "/cam", "192.0.2.3:3", identity, FALSE, now },
      &ops, NULL, count_free, NULL);
}

// A further rank is taken by an upstream of that rank only.
static void
test_ranks (void)
{
  const PublicationClaim claims[] = { { .path = "/cam", .peer = "a", .identity = "i" },
    { .path = "/cam", .peer = "a", .identity = "i", .rank = 1 } };
  Publication *best = publication_claim (&claims[0], &ops, NULL, NULL, NULL);
  Publication *second = publication_claim (&claims[1], &ops, NULL, NULL, NULL);
  PublisherFacts facts;

  g_assert_nonnull (best);
  g_assert_nonnull (second);
  begin (second);
  g_assert_false (publication_find ("/cam", &facts));
  g_assert_false (publication_is_taken ("/cam", "other", 1));
  begin (best);
  publication_note_layer (best, "l");
  publication_note_layer (best, "h");
  g_assert_true (publication_find ("/cam", &facts));
  g_assert_cmpstr (facts.layer, ==, "h");
  g_free (facts.peer);
  g_free (facts.layer);
  publication_end (best, "left");
  g_assert_false (publication_find ("/cam", &facts));
  publication_end (second, "left");
}

// One that has lost its line may come back at once, but two that send do not displace each other.
static void
test_back (void)
{
  const gint64 second = G_GINT64_CONSTANT (1000000000);
  Publication *first = claim_as ("user camera", second), *back;

  n_displaced = n_freed = 0;
  begin (first);
  // It has sent nothing yet.
  g_assert_null (claim_as ("user camera", 90 * second));
  publication_hear (first, 100 * second);
  g_assert_null (claim_as ("user camera", 100 * second + second / 2));
  g_assert_true (publication_is_taken ("/cam", "user camera", 100 * second + second / 2));
  g_assert_null (claim_as ("user other", 200 * second));
  g_assert_null (claim_as ("address 192.0.2.3", 200 * second));
  g_assert_true (publication_is_taken ("/cam", "user other", 200 * second));
  g_assert_false (publication_is_taken ("/cam", "user camera", 102 * second));
  g_assert_false (publication_is_taken ("/other", "user other", 102 * second));
  g_assert_cmpuint (n_displaced, ==, 0);
  back = claim_as ("user camera", 102 * second);
  g_assert_nonnull (back);
  g_assert_cmpuint (n_displaced, ==, 1);
  publication_end (first, "displaced");
  publication_end (back, "left");
  g_assert_cmpuint (n_freed, ==, 2);
}

// While the last packets of the first publisher are on their way, the second one may claim the
// mount. Its tracks begin when the first has ended.
static void
test_given_back (void)
{
  static const PullCallbacks callbacks = { on_begun, on_packet, on_ended, on_ended };
  Relay *relay = relay_new ();
  PullConfig config = { .path = (gchar *) "/cam" };
  PullContext context = { .config = &config, .callbacks = &callbacks };
  GError *error = NULL;
  Publication *first, *second;
  PublishRun *packets;
  gpointer run;

  n_displaced = n_freed = 0;
  context.source = relay_source_new (relay, NULL, NULL);
  run = publish_pull_light.start (&context, &error);
  g_assert_no_error (error);
  first = claim ("192.0.2.1:1", FALSE, &error);
  begin (first);
  g_assert_cmpuint (n_begun, ==, 1);

  publication_give_back (first);
  second = claim ("192.0.2.2:2", FALSE, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (n_displaced, ==, 0);
  begin (second);
  assert_refused ("192.0.2.2:2");
  packets = publication_enter (first);
  g_assert_nonnull (packets);
  publication_leave (packets);
  g_assert_null (publication_enter (second));
  g_assert_cmpuint (n_begun, ==, 1);

  publication_end (first, "the publisher has left");
  g_assert_cmpuint (n_ended, ==, 1);
  g_assert_cmpstr (reason, ==, "the publisher has left");
  publish_pull_light.close (run, ignore, NULL);
  run = publish_pull_light.start (&context, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (n_begun, ==, 2);
  packets = publication_enter (second);
  g_assert_nonnull (packets);
  publication_leave (packets);

  assert_refused ("192.0.2.2:2");
  publication_end (second, "the publisher has left");
  g_assert_cmpuint (n_ended, ==, 2);
  publish_pull_light.close (run, ignore, NULL);
  relay_source_end (context.source);
  relay_source_unref (context.source);
  relay_unref (relay);
  g_assert_cmpuint (n_freed, ==, 2);
  g_clear_pointer (&reason, g_free);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/publication/one-publisher-has-a-mount", test_taken);
  g_test_add_func ("/publication/the-same-one-may-come-back", test_back);
  g_test_add_func ("/publication/layers-have-a-place-for-each-rank", test_ranks);
  g_test_add_func ("/publication/the-next-one-need-not-wait-for-the-last-packets", test_given_back);
  return g_test_run ();
}
