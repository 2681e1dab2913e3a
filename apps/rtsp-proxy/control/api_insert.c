// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Clips that are inserted into the stream of a mount.

#include "control/api_handlers.h"

#include <gio/gio.h>
#include <string.h>

#include "base/log.h"
#include "config/mount_insert.h"
#include "mounts/insert.h"

#define AHEAD_MAX (24 * 60 * 60 * G_GINT64_CONSTANT (1000000))

// ---- finding ----

// Returns the mount whose path is followed by "/insert". If there is none, answers 404 and returns
// NULL. (transfer full)
static Mount *
find (ApiRequest *request)
{
  g_autofree gchar *path = g_strndup (request->rest, strlen (request->rest) - strlen ("/insert"));
  Mount *mount = mounts_get (proxy_get_mounts (request->api->proxy), path);

  if (!mount)
    api_fail (request->message, SOUP_STATUS_NOT_FOUND, NULL, "there is no mount %s", path);
  return mount;
}

// ---- answers ----

static void
write_facts (JsonBuilder *builder, Insertion *insertion)
{
  InsertionFacts facts = insertion_get_facts (insertion);

  json_builder_begin_object (builder);
  api_add_text (builder, "clip", facts.clip);
  api_add_text (builder, "state", insertion_state_name (facts.state));
  api_add_time (builder, "at", facts.at);
  if (facts.begun)
    api_add_time (builder, "begun", facts.begun);
  if (facts.length) {
    json_builder_set_member_name (builder, "length-seconds");
    json_builder_add_double_value (builder, (gdouble) facts.length / GST_SECOND);
  }
  if (facts.by_cue)
    api_add_number (builder, "event", facts.event);
  json_builder_end_object (builder);
}

static void
answer (SoupServerMessage *message, guint status, Insertion *insertion)
{
  JsonBuilder *builder = json_builder_new ();

  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "insertion");
  if (insertion)
    write_facts (builder, insertion);
  else
    json_builder_add_null_value (builder);
  json_builder_end_object (builder);
  api_answer (message, status, builder);
}

// ---- planning ----

typedef struct {
  gchar *clip, *at;
  guint length_ms;
} Body;

static gchar *
check_clip (SchemaText *it)
{
  return mount_insert_check_clip (it->text);
}

static gchar *
check_at (SchemaText *it)
{
  gint64 us = 0, now = g_get_real_time ();

  if (!api_parse_time (it->text, &us))
    return g_strdup ("expected a time such as 2026-11-23T11:15:00Z");
  if (us < now)
    return g_strdup_printf ("%s is in the past; leave \"at\" out to insert the clip now", it->text);
  if (us > now + AHEAD_MAX)
    return g_strdup_printf ("%s is more than a day ahead", it->text);
  return NULL;
}

static const SchemaKey body_keys[] = {
  { "clip", SCHEMA_TEXT, G_STRUCT_OFFSET (Body, clip), .check = check_clip,
      .missing = "the clip is missing; name a file in the mount's folder of clips" },
  { "at", SCHEMA_TEXT, G_STRUCT_OFFSET (Body, at), .check = check_at },
  { "for", SCHEMA_DURATION, G_STRUCT_OFFSET (Body, length_ms), .min = 1 },
  { NULL },
};

// A request that waits until the clip was checked.
typedef struct {
  SoupServerMessage *message;
  GCancellable *ending; // of the API
  Mount *mount;
  gchar *path;
  gulong on_finished;
  gboolean is_paused, is_done, left; // `left`: the client
} Planning;

static void
on_finished (SoupServerMessage *message, gpointer planning)
{
  ((Planning *) planning)->left = TRUE;
}

static void
planning_free (Planning *self)
{
  g_signal_handler_disconnect (self->message, self->on_finished);
  g_object_unref (self->message);
  g_object_unref (self->ending);
  mount_unref (self->mount);
  g_free (self->path);
  g_free (self);
}

static void
fail_plan (Planning *self, const GError *wrong)
{
  guint status = SOUP_STATUS_CONFLICT;

  if (g_error_matches (wrong, G_IO_ERROR, G_IO_ERROR_NOT_FOUND))
    status = SOUP_STATUS_NOT_FOUND;
  else if (g_error_matches (wrong, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT))
    status = SOUP_STATUS_BAD_REQUEST;
  api_fail (self->message, status, NULL, "%s", wrong->message);
}

static void
on_planned (gpointer data, const GError *wrong)
{
  Planning *self = data;

  self->is_done = TRUE;
  if (!self->left && !g_cancellable_is_cancelled (self->ending)) {
    if (wrong)
      fail_plan (self, wrong);
    else
      answer (self->message, SOUP_STATUS_CREATED, mount_find_insertion (self->mount));
    if (self->is_paused) {
      log_event ("api: POST %s: %u", self->path, soup_server_message_get_status (self->message));
      soup_server_message_unpause (self->message);
    }
  }
  if (self->is_paused)
    planning_free (self);
}

static void
plan_clip (ApiRequest *request, Mount *mount, const Body *body)
{
  InsertionPlan plan = { NULL, body->clip, g_get_real_time (),
    body->length_ms * (gint64) GST_MSECOND };
  Planning *self = g_new0 (Planning, 1);

  if (body->at)
    api_parse_time (body->at, &plan.at);
  self->message = g_object_ref (request->message);
  self->ending = g_object_ref (request->api->ending);
  self->mount = mount_ref (mount);
  self->path = g_strconcat ("/v1/mounts", request->rest, NULL);
  self->on_finished = g_signal_connect (self->message, "finished", G_CALLBACK (on_finished), self);
  mount_insert (mount, &plan, on_planned, self);
  if (self->is_done) {
    planning_free (self);
    return;
  }
  self->is_paused = TRUE;
  soup_server_message_pause (self->message);
}

void
api_post_insertion (ApiRequest *request)
{
  Body body = { 0 };
  Mount *mount;

  if (!api_check_query (request, NULL) || !(mount = find (request)))
    return;
  if (api_read_keys (request, body_keys, &body, SCHEMA_BODY))
    plan_clip (request, mount, &body);
  schema_clear (body_keys, &body);
  mount_unref (mount);
}

// ---- what is planned or runs ----

void
api_get_insertion (ApiRequest *request)
{
  Mount *mount;

  if (!api_check_query (request, NULL) || !(mount = find (request)))
    return;
  answer (request->message, SOUP_STATUS_OK, mount_find_insertion (mount));
  mount_unref (mount);
}

void
api_delete_insertion (ApiRequest *request)
{
  Insertion *insertion;
  Mount *mount;

  if (!api_check_query (request, NULL) || !(mount = find (request)))
    return;
  insertion = mount_find_insertion (mount);
  if (!insertion) {
    api_fail (request->message, SOUP_STATUS_NOT_FOUND, NULL,
        "no clip is planned or played at this mount");
  } else {
    answer (request->message, SOUP_STATUS_OK, insertion);
    insertion_end (insertion);
  }
  mount_unref (mount);
}
