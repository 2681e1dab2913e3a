// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/recording/recording_hook.h"

#include <json-glib/json-glib.h>
#include <string.h>

#include "base/http_client.h"
#include "base/log.h"
#include "base/timer.h"
#include "config/web_url.h"

#define WAITING_MAX 64
#define TIMEOUT_MS 60000
#define ANSWER_MAX 65536

typedef struct {
  gchar *path, *start, *duration, *bytes;
} Segment;

struct _RecordingHook {
  gatomicrefcount refs;
  gchar *mount, *text;
  HttpClient *client; // of a URL
  GQueue waiting;     // of Segment
  gboolean busy, ended;
  GSubprocess *process;
  Timer *timeout;
  RecordingHookCounts counts;
  LogLimit told;
};

static void run_next (RecordingHook *self);

static void
segment_free (gpointer data)
{
  Segment *event = data;

  g_free (event->path);
  g_free (event->start);
  g_free (event->duration);
  g_free (event->bytes);
  g_free (event);
}

RecordingHook *
recording_hook_new (const gchar *mount, const gchar *text)
{
  RecordingHook *self = g_new0 (RecordingHook, 1);

  g_atomic_ref_count_init (&self->refs);
  self->mount = g_strdup (mount);
  self->text = g_strdup (text);
  self->told = LOG_LIMIT_FAILURES;
  if (text && web_url_is (text))
    self->client = http_client_new (1);
  return self;
}

RecordingHook *
recording_hook_ref (RecordingHook *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

static gboolean
free_client (gpointer client)
{
  http_client_free (client);
  return G_SOURCE_REMOVE;
}

void
recording_hook_unref (gpointer data)
{
  RecordingHook *self = data;

  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  // Later, as it may be at work on the answer that ends the last run.
  if (self->client)
    g_idle_add_full (G_PRIORITY_DEFAULT, free_client, self->client, NULL);
  g_free (self->mount);
  g_free (self->text);
  g_free (self);
}

// ---- one run ----

static void
finish (RecordingHook *self, const gchar *problem)
{
  self->busy = FALSE;
  self->counts.run++;
  if (problem && !self->ended) {
    self->counts.failed++;
    log_event_limited (&self->told, "record %s: the hook failed: %s", self->mount, problem);
  }
  run_next (self);
  recording_hook_unref (self);
}

static void
on_ended (GObject *process, GAsyncResult *result, gpointer data)
{
  RecordingHook *self = data;
  g_autoptr (GError) error = NULL;
  gboolean timed_out = !self->timeout;

  g_subprocess_wait_check_finish (G_SUBPROCESS (process), result, &error);
  g_clear_pointer (&self->timeout, timer_remove);
  g_clear_object (&self->process);
  finish (self, timed_out ? "it ran for more than a minute" : error ? error->message : NULL);
}

static gboolean
on_timeout (gpointer data)
{
  RecordingHook *self = data;

  self->timeout = NULL;
  g_subprocess_force_exit (self->process);
  return G_SOURCE_REMOVE;
}

static void
run_command (RecordingHook *self, const Segment *event)
{
  GSubprocessLauncher *launcher = g_subprocess_launcher_new (G_SUBPROCESS_FLAGS_STDOUT_SILENCE);
  GError *error = NULL;
  g_auto (GStrv) words = NULL;

  g_subprocess_launcher_setenv (launcher, "WEIR_MOUNT", self->mount, TRUE);
  g_subprocess_launcher_setenv (launcher, "WEIR_FILE", event->path, TRUE);
  g_subprocess_launcher_setenv (launcher, "WEIR_START", event->start, TRUE);
  g_subprocess_launcher_setenv (launcher, "WEIR_DURATION", event->duration, TRUE);
  g_subprocess_launcher_setenv (launcher, "WEIR_BYTES", event->bytes, TRUE);
  if (g_shell_parse_argv (self->text, NULL, &words, &error))
    self->process = g_subprocess_launcher_spawnv (launcher, (const gchar *const *) words, &error);
  g_object_unref (launcher);
  if (self->process) {
    self->timeout = timer_add (TIMEOUT_MS, on_timeout, self);
    g_subprocess_wait_check_async (self->process, NULL, on_ended, self);
  } else {
    finish (self, error->message);
    g_error_free (error);
  }
}

static void
on_answer (const HttpAnswer *answer, gpointer data)
{
  g_autofree gchar *problem = answer->error ? g_strdup (answer->error->message)
                              : answer->status / 100 != 2
                                  ? g_strdup_printf ("the server answered %u", answer->status)
                                  : NULL;

  finish (data, problem);
}

static void
post (RecordingHook *self, const Segment *event)
{
  JsonBuilder *builder = json_builder_new ();
  const gchar *const members[] = { "mount", self->mount, "file", event->path, "start", event->start,
    "duration", event->duration, "bytes", event->bytes };
  JsonNode *root;
  GBytes *body;
  gchar *text;

  json_builder_begin_object (builder);
  for (guint i = 0; i < G_N_ELEMENTS (members); i += 2) {
    json_builder_set_member_name (builder, members[i]);
    if (i < 6)
      json_builder_add_string_value (builder, members[i + 1]);
    else if (i == 6)
      json_builder_add_double_value (builder, g_ascii_strtod (members[i + 1], NULL));
    else
      json_builder_add_int_value (builder, g_ascii_strtoll (members[i + 1], NULL, 10));
  }
  json_builder_end_object (builder);
  root = json_builder_get_root (builder);
  text = json_to_string (root, FALSE);
  body = g_bytes_new_take (text, strlen (text));
  json_node_unref (root);
  g_object_unref (builder);
  http_client_send (self->client, self->text, body, TIMEOUT_MS, ANSWER_MAX, on_answer, self);
  g_bytes_unref (body);
}

static void
run_next (RecordingHook *self)
{
  Segment *event = self->busy || self->ended ? NULL : g_queue_pop_head (&self->waiting);

  if (!event)
    return;
  self->busy = TRUE;
  recording_hook_ref (self);
  if (self->client)
    post (self, event);
  else
    run_command (self, event);
  segment_free (event);
}

// ---- events ----

typedef struct {
  RecordingHook *hook;
  Segment *event;
} Added;

static gboolean
add_here (gpointer data)
{
  Added *added = data;
  RecordingHook *self = added->hook;

  if (self->ended || self->waiting.length == WAITING_MAX) {
    self->counts.dropped += !self->ended;
    segment_free (added->event);
  } else {
    g_queue_push_tail (&self->waiting, added->event);
    run_next (self);
  }
  recording_hook_unref (self);
  g_free (added);
  return G_SOURCE_REMOVE;
}

void
recording_hook_add (RecordingHook *self, const gchar *path, const RecordingFacts *facts)
{
  Segment *event = g_new (Segment, 1);
  Added *added = g_new (Added, 1);
  gchar duration[G_ASCII_DTOSTR_BUF_SIZE];

  g_ascii_formatd (
      duration, sizeof duration, "%.3f", (gdouble) recording_facts_get_duration_ns (facts) / 1e9);
  *event = (Segment) { g_strdup (path), recording_file_dup_time (facts->start_us),
    g_strdup (duration), g_strdup_printf ("%" G_GUINT64_FORMAT, facts->size) };
  *added = (Added) { recording_hook_ref (self), event };
  if (self->text) {
    g_idle_add_full (G_PRIORITY_DEFAULT, add_here, added, NULL);
  } else {
    segment_free (event);
    g_free (added);
    recording_hook_unref (self);
  }
}

void
recording_hook_end (RecordingHook *self)
{
  self->ended = TRUE;
  if (self->process)
    g_subprocess_force_exit (self->process);
  g_queue_clear_full (&self->waiting, segment_free);
  g_clear_pointer (&self->client, http_client_free);
}

gboolean
recording_hook_is_busy (RecordingHook *self)
{
  return self->busy || self->waiting.length > 0;
}

void
recording_hook_get_counts (RecordingHook *self, RecordingHookCounts *counts)
{
  *counts = self->counts;
}
