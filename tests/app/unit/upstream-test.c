// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sources/upstream.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/files_left.h"

// An element that opens like rtspsrc: in its own thread, it posts an error first and cleans up
// afterwards.
typedef struct {
  GstElement parent;
  GThread *thread;
} Opener;

typedef struct {
  GstElementClass parent_class;
} OpenerClass;

GType opener_get_type (void);
G_DEFINE_TYPE (Opener, opener, GST_TYPE_ELEMENT)

static gint cleaning, n_stopped_while_cleaning, n_stopped; // atomic
static gboolean tells_the_end;

static void
tell (GstElement *self, GstProgressType type)
{
  gst_element_post_message (
      self, gst_message_new_progress (GST_OBJECT (self), type, "open", "Opening"));
}

static gpointer
open_and_fail (gpointer self)
{
  tell (self, GST_PROGRESS_TYPE_START);
  g_atomic_int_set (&cleaning, TRUE);
  GST_ELEMENT_ERROR (self, RESOURCE, OPEN_READ, ("it can't be opened"), (NULL));
  g_usleep (100 * 1000);
  g_atomic_int_set (&cleaning, FALSE);
  if (tells_the_end)
    tell (self, GST_PROGRESS_TYPE_ERROR);
  return NULL;
}

static GstStateChangeReturn
opener_change_state (GstElement *element, GstStateChange transition)
{
  Opener *self = (Opener *) element;

  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED) {
    self->thread = g_thread_new ("opener", open_and_fail, element);
  } else if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) {
    n_stopped_while_cleaning += g_atomic_int_get (&cleaning);
    g_thread_join (g_steal_pointer (&self->thread));
    g_atomic_int_inc (&n_stopped);
  }
  return GST_ELEMENT_CLASS (opener_parent_class)->change_state (element, transition);
}

static void
opener_init (Opener *self)
{
}

static void
opener_class_init (OpenerClass *klass)
{
  GST_ELEMENT_CLASS (klass)->change_state = opener_change_state;
}

static GstElement *
make (const PullContext *context, GError **error)
{
  GstElement *pipeline = gst_pipeline_new (NULL);

  gst_bin_add (GST_BIN (pipeline), g_object_new (opener_get_type (), NULL));
  return pipeline;
}

static void
on_connecting (gpointer unused)
{
}

static void
on_down (gpointer n_down, const gchar *reason, guint retry_ms)
{
  g_assert_cmpstr (reason, ==, "it can't be opened");
  ++*(guint *) n_down;
}

static const UpstreamCallbacks callbacks = { .connecting = on_connecting, .down = on_down };

// Also an element that never reports the end of its clean-up: the wait for it is limited.
static void
a_failed_run_is_closed_after_its_clean_up (gconstpointer tells)
{
  PullConfig config = { .make = make, .connect_timeout_ms = 5000, .read_timeout_ms = 5000 };
  Relay *relay = relay_new ();
  RelaySource *source = relay_source_new (relay, NULL, NULL);
  guint n_down = 0;
  Upstream *upstream = upstream_new (&config, make, source, &callbacks, &n_down);

  tells_the_end = GPOINTER_TO_INT (tells);
  g_atomic_int_set (&n_stopped, 0);
  upstream_start (upstream);
  while (n_down == 0)
    g_main_context_iteration (NULL, TRUE);
  upstream_stop (upstream);
  while (upstream_n_closing () > 0)
    g_usleep (1000);
  g_assert_cmpint (n_stopped, ==, 1);
  g_assert_cmpint (n_stopped_while_cleaning, ==, 0);
  upstream_free (upstream);
  relay_source_unref (source);
  relay_unref (relay);
}

static void
on_full (gpointer n_down, const gchar *reason, guint retry_ms)
{
  g_assert_cmpstr (reason, ==, FILES_PROBLEM);
  ++*(guint *) n_down;
}

static void
a_descriptor_that_no_run_takes_is_closed (void)
{
  static const UpstreamCallbacks on = { .connecting = on_connecting, .down = on_full };
  PullConfig config = { .make = make, .connect_timeout_ms = 5000, .read_timeout_ms = 5000 };
  Relay *relay = relay_new ();
  RelaySource *source = relay_source_new (relay, NULL, NULL);
  struct rlimit limit, few;
  gint fds[2];
  guint n_down = 0;
  Upstream *upstream = upstream_new (&config, make, source, &on, &n_down);

  g_assert_cmpint (socketpair (AF_UNIX, SOCK_STREAM, 0, fds), ==, 0);
  config.endpoint.is_open = TRUE;
  config.endpoint.fd = fds[0];
  g_assert_cmpint (getrlimit (RLIMIT_NOFILE, &limit), ==, 0);
  few = (struct rlimit) { (rlim_t) fds[1] + 1, limit.rlim_max };
  g_assert_cmpint (setrlimit (RLIMIT_NOFILE, &few), ==, 0);
  upstream_start (upstream);
  g_assert_cmpint (setrlimit (RLIMIT_NOFILE, &limit), ==, 0);
  upstream_free (upstream);
  g_assert_cmpuint (n_down, ==, 1);
  g_assert_cmpint (fcntl (fds[0], F_GETFD), <, 0);
  g_assert_cmpint (read (fds[1], &limit, 1), ==, 0);
  close (fds[1]);
  relay_source_unref (source);
  relay_unref (relay);
}

// A kind that reports the end of each run while it starts, as a publisher may leave meanwhile.
static gpointer
start_and_end (const PullContext *context, GError **error)
{
  context->callbacks->ended (context->owner, "it can't be opened");
  if (tells_the_end)
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_FAILED, "it can't be opened");
  return tells_the_end ? NULL : (gpointer) context;
}

static void
close_at_once (gpointer run, GDestroyNotify closed, gpointer data)
{
  closed (data);
}

static const PullLight ends = { .start = start_and_end, .close = close_at_once };

static void
a_run_may_end_while_it_starts (gconstpointer fails)
{
  PullConfig config = { .light = &ends, .connect_timeout_ms = 5000, .read_timeout_ms = 5000 };
  Relay *relay = relay_new ();
  RelaySource *source = relay_source_new (relay, NULL, NULL);
  guint n_down = 0;
  Upstream *upstream = upstream_new (&config, NULL, source, &callbacks, &n_down);

  tells_the_end = GPOINTER_TO_INT (fails);
  upstream_start (upstream);
  while (n_down == 0)
    g_main_context_iteration (NULL, TRUE);
  upstream_stop (upstream);
  while (g_main_context_iteration (NULL, FALSE))
    ;
  g_assert_cmpuint (n_down, ==, 1);
  g_assert_cmpuint (upstream_n_closing (), ==, 0);
  upstream_free (upstream);
  relay_source_unref (source);
  relay_unref (relay);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/upstream/a-failed-run-is-closed-after-its-clean-up",
      GINT_TO_POINTER (TRUE), a_failed_run_is_closed_after_its_clean_up);
  g_test_add_data_func ("/upstream/a-failed-run-that-never-reports-is-closed",
      GINT_TO_POINTER (FALSE), a_failed_run_is_closed_after_its_clean_up);
  g_test_add_data_func ("/upstream/a-run-may-end-while-it-starts", GINT_TO_POINTER (FALSE),
      a_run_may_end_while_it_starts);
  g_test_add_data_func ("/upstream/a-run-may-end-and-then-fail-to-start", GINT_TO_POINTER (TRUE),
      a_run_may_end_while_it_starts);
  g_test_add_func ("/upstream/a-descriptor-that-no-run-takes-is-closed",
      a_descriptor_that_no_run_takes_is_closed);
  return g_test_run ();
}
