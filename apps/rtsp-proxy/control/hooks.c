// SPDX-License-Identifier: LGPL-2.1-or-later
#include "control/hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <json-glib/json-glib.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/http_client.h"
#include "base/log.h"
#include "base/timer.h"
#include "config/web_url.h"
#include "isolate/output.h"

#define ANSWER_MAX 65536

extern char **environ;

struct _Hooks {
  const HooksConfig *config;
  EventsWatch *watch;
  HttpClient *client;
  guint64 number;  // of the last event that was looked at
  GPtrArray *runs; // of Run: programs
  guint n_running; // programs and requests
  gboolean looking, ended;
  LogLimit failures, losses;
};

// A program that runs.
typedef struct {
  Hooks *hooks;
  EventKind kind;
  pid_t pid;
  gint fd; // of the process
  guint source;
  Output *output;
  Timer *timeout;
  gboolean timed_out;
} Run;

static void look (Hooks *self);

static void
finish (Hooks *self, EventKind kind, const gchar *problem)
{
  self->n_running--;
  if (problem && !self->ended)
    log_event_limited (
        &self->failures, "the hook on-%s failed: %s", event_get_name (kind), problem);
  if (!self->ended && !self->looking)
    look (self);
}

// ---- a program ----

// Kills the process and its children, as long as they are in its group, and waits for it. The
// process has not been waited for, so its group is still its own.
static void
end_run (Run *run, gint *status)
{
  kill (-run->pid, SIGKILL);
  waitpid (run->pid, status, 0);
  if (run->source)
    g_source_remove (run->source);
  g_clear_pointer (&run->timeout, timer_remove);
  output_free (run->output);
  close (run->fd);
  g_free (run);
}

static gboolean
on_ended (gint fd, GIOCondition condition, gpointer data)
{
  Run *run = data;
  Hooks *self = run->hooks;
  const EventKind kind = run->kind;
  const gboolean timed_out = run->timed_out;
  g_autofree gchar *problem = NULL;
  gint status = 0;

  run->source = 0;
  g_ptr_array_remove_fast (self->runs, run);
  end_run (run, &status);
  if (timed_out)
    problem = g_strdup ("it ran too long (hooks.timeout)");
  else if (WIFSIGNALED (status))
    problem = g_strdup_printf ("it was ended by signal %d", WTERMSIG (status));
  else if (WEXITSTATUS (status))
    problem = g_strdup_printf ("exit status %d", WEXITSTATUS (status));
  finish (self, kind, problem);
  return G_SOURCE_REMOVE;
}

static gboolean
on_timeout (gpointer data)
{
  Run *run = data;

  run->timeout = NULL;
  run->timed_out = TRUE;
  kill (-run->pid, SIGKILL); // on_ended() comes
  return G_SOURCE_REMOVE;
}

// Returns the environment of a program: "peer" of the event is WEIR_PEER. (transfer full)
static GStrv
dup_environment (const Event *event)
{
  JsonNode *root = json_from_string (event->json, NULL);
  GStrv environment = g_strdupv (environ);
  JsonObjectIter iter;
  const gchar *name;
  JsonNode *value;

  json_object_iter_init (&iter, json_node_get_object (root));
  while (json_object_iter_next (&iter, &name, &value)) {
    g_autofree gchar *upper = g_ascii_strup (name, -1);
    g_autofree gchar *variable = g_strconcat ("WEIR_", upper, NULL);
    g_autofree gchar *text =
        JSON_NODE_HOLDS_VALUE (value) && json_node_get_value_type (value) == G_TYPE_STRING
            ? g_strdup (json_node_get_string (value))
            : json_to_string (value, FALSE);

    environment = g_environ_setenv (environment, variable, text, TRUE);
  }
  json_node_unref (root);
  return environment;
}

// Returns 0 or an errno.
static gint
spawn (const Event *event, gchar **arguments, gint output, pid_t *pid)
{
  g_auto (GStrv) environment = dup_environment (event);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none, reset;
  gint error;

  sigemptyset (&none);
  sigemptyset (&reset);
  sigaddset (&reset, SIGPIPE);
  posix_spawn_file_actions_init (&actions);
  posix_spawnattr_init (&attributes);
  posix_spawnattr_setsigmask (&attributes, &none);
  posix_spawnattr_setsigdefault (&attributes, &reset);
  posix_spawnattr_setpgroup (&attributes, 0);
  posix_spawnattr_setflags (
      &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  posix_spawn_file_actions_addopen (&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2 (&actions, output, 1);
  posix_spawn_file_actions_adddup2 (&actions, output, 2);
  posix_spawn_file_actions_addclosefrom_np (&actions, 3);
  error = posix_spawn (pid, arguments[0], &actions, &attributes, arguments, environment);
  posix_spawnattr_destroy (&attributes);
  posix_spawn_file_actions_destroy (&actions);
  return error;
}

static void
run_program (Hooks *self, const Event *event, gchar **arguments)
{
  Run *run = g_new0 (Run, 1);
  gint theirs = -1, error = 0;

  self->n_running++;
  run->hooks = self;
  run->kind = event->kind;
  run->output = output_new ("hook", &theirs);
  if (!run->output)
    error = errno;
  else
    error = spawn (event, arguments, theirs, &run->pid);
  if (theirs >= 0)
    close (theirs);
  run->fd = error ? -1 : (gint) syscall (SYS_pidfd_open, run->pid, 0);
  if (!error && run->fd < 0) {
    error = errno;
    kill (-run->pid, SIGKILL);
    waitpid (run->pid, NULL, 0);
  }
  if (error) {
    g_clear_pointer (&run->output, output_free);
    g_free (run);
    finish (self, event->kind, g_strerror (error));
    return;
  }
  output_start (run->output, run->pid);
  run->source = g_unix_fd_add (run->fd, G_IO_IN, on_ended, run);
  run->timeout = timer_add (self->config->timeout_ms, on_timeout, run);
  g_ptr_array_add (self->runs, run);
}

// ---- a URL ----

typedef struct {
  Hooks *hooks;
  EventKind kind;
} Asked;

static void
on_answer (const HttpAnswer *answer, gpointer data)
{
  Asked *asked = data;
  g_autofree gchar *problem = answer->error ? g_strdup (answer->error->message)
                              : answer->status / 100 != 2
                                  ? g_strdup_printf ("the server answered %u", answer->status)
                                  : NULL;

  finish (asked->hooks, asked->kind, problem);
  g_free (asked);
}

static void
post (Hooks *self, const Event *event, const gchar *url)
{
  g_autoptr (GBytes) body = g_bytes_new (event->json, strlen (event->json));
  Asked *asked = g_new (Asked, 1);

  *asked = (Asked) { self, event->kind };
  self->n_running++;
  http_client_send (
      self->client, url, body, self->config->timeout_ms, ANSWER_MAX, on_answer, asked);
}

// ---- events ----

// Runs what belongs to the next events, as many as may run at once.
static void
look (Hooks *self)
{
  self->looking = TRUE;
  while (self->n_running < self->config->at_once) {
    gboolean lost;
    g_autoptr (Event) event = events_next (self->number, &lost);
    GStrv run = event ? self->config->run[event->kind] : NULL;

    if (!event)
      break;
    if (lost)
      log_event_limited (&self->losses,
          "hooks: %" G_GUINT64_FORMAT " events were left out, because earlier ones still ran",
          event->number - self->number - 1);
    self->number = event->number;
    if (run && run[0] && web_url_is (run[0]))
      post (self, event, run[0]);
    else if (run && run[0])
      run_program (self, event, run);
  }
  self->looking = FALSE;
}

static void
on_added (gpointer self)
{
  look (self);
}

Hooks *
hooks_new (const HooksConfig *config)
{
  Hooks *self;

  if (hooks_config_is_empty (config))
    return NULL;
  self = g_new0 (Hooks, 1);
  self->config = config;
  self->runs = g_ptr_array_new ();
  self->client = http_client_new (config->at_once);
  self->number = events_get_newest ();
  self->failures = self->losses = LOG_LIMIT_FAILURES;
  self->watch = events_watch_new (on_added, self);
  return self;
}

void
hooks_free (Hooks *self)
{
  self->ended = TRUE;
  events_watch_free (self->watch);
  for (guint i = 0; i < self->runs->len; i++)
    end_run (g_ptr_array_index (self->runs, i), NULL);
  http_client_free (self->client);
  g_ptr_array_unref (self->runs);
  g_free (self);
}
