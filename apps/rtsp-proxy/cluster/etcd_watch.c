// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cluster/etcd_watch.h"

#include "base/main_loop.h"
#include "base/timer.h"
#include "text/json_strict.h"

#include <string.h>

#define TICK_MS 500
#define PAGE 200 // keys of one answer
#define READ_SIZE (16 << 10)
#define LINE_SIZE_MAX (16 << 20)
#define DEPTH_MAX 16
#define STOP_MS 1000

typedef enum {
  WATCH_BROKEN,  // the next tick lists
  WATCH_LISTING, // a call is under way
  WATCH_OPENING, // the watch is asked for
  WATCH_OPEN,
  WATCH_STOPPED,
} WatchState;

struct _EtcdWatch {
  Etcd *etcd;
  gchar *prefix, *range_end;
  const EtcdWatchOps *ops;
  gpointer owner;
  Timer *timer;
  WatchState state;
  GPtrArray *entries; // of a list that is not complete yet
  gint64 revision;    // of that list
  gint64 seen;        // revision of the last list or change
  guint64 generation; // of the endpoint of the connection
  GCancellable *cancellable;
  gboolean is_reading; // a connection is open, or is being opened
  GInputStream *stream;
  GString *line;
  gchar bytes[READ_SIZE];
};

static void read_more (EtcdWatch *self);

static void
entry_free (gpointer data)
{
  EtcdEntry *entry = data;

  g_free (entry->key);
  g_free (entry->value);
  g_free (entry);
}

// Returns NULL for a key that is not text: it is nobody's of ours.
static EtcdEntry *
entry_new (JsonObject *object)
{
  EtcdEntry *entry;
  gchar *key = etcd_dup_text (object, "key");

  if (!key)
    return NULL;
  entry = g_new0 (EtcdEntry, 1);
  entry->key = key;
  entry->value =
      json_object_has_member (object, "value") ? etcd_dup_text (object, "value") : g_strdup ("");
  entry->created = etcd_get_number (object, "create_revision");
  entry->revision = etcd_get_number (object, "mod_revision");
  return entry;
}

// ---- the list ----

static void list (EtcdWatch *self, const gchar *from);

static void
break_off (EtcdWatch *self)
{
  if (self->state != WATCH_STOPPED)
    self->state = WATCH_BROKEN;
  g_cancellable_cancel (self->cancellable);
}

static void
take_page (EtcdWatch *self, JsonArray *array)
{
  for (guint i = 0; array && i < json_array_get_length (array); i++) {
    JsonObject *object = etcd_get_element (array, i);
    EtcdEntry *entry = object ? entry_new (object) : NULL;

    if (entry)
      g_ptr_array_add (self->entries, entry);
  }
}

// Returns the first possible key after those of an answer, in base64; NULL if it has none.
static gchar *
dup_next_key (JsonArray *array)
{
  JsonObject *entry = array ? etcd_get_element (array, json_array_get_length (array) - 1) : NULL;
  const gchar *last = entry ? json_strict_text (entry, "key") : NULL;
  g_autofree guchar *bytes = NULL;
  gsize len;

  if (!last)
    return NULL;
  bytes = g_base64_decode (last, &len);
  bytes = g_realloc (bytes, len + 1);
  bytes[len] = 0;
  return g_base64_encode (bytes, len + 1);
}

static void open_connection (EtcdWatch *self);

static void
on_list (JsonObject *answer, const GError *error, gpointer data)
{
  EtcdWatch *self = data;
  JsonObject *header = answer ? etcd_get_object (answer, "header") : NULL;
  JsonArray *array = answer ? json_strict_array (answer, "kvs") : NULL;
  g_autofree gchar *next = NULL;

  if (self->state != WATCH_LISTING)
    return;
  if (!header) {
    break_off (self);
    return;
  }
  if (!self->revision)
    self->revision = etcd_get_number (header, "revision");
  take_page (self, array);
  next = etcd_get_boolean (answer, "more") ? dup_next_key (array) : NULL;
  if (next) {
    list (self, next);
    return;
  }
  self->seen = self->revision;
  self->ops->listed (self->owner, self->entries);
  g_ptr_array_set_size (self->entries, 0);
  open_connection (self);
}

// Asks for the keys from `from` on, which is base64; NULL: for the first ones.
static void
list (EtcdWatch *self, const gchar *from)
{
  JsonBuilder *body = json_builder_new ();

  self->state = WATCH_LISTING;
  json_builder_begin_object (body);
  if (from) {
    json_builder_set_member_name (body, "key");
    json_builder_add_string_value (body, from);
  } else {
    self->revision = 0;
    g_ptr_array_set_size (self->entries, 0);
    etcd_add_bytes (body, "key", self->prefix);
  }
  etcd_add_bytes (body, "range_end", self->range_end);
  etcd_add_number (body, "limit", PAGE);
  if (self->revision)
    etcd_add_number (body, "revision", self->revision);
  json_builder_end_object (body);
  etcd_call (self->etcd, "/v3/kv/range", body, on_list, self);
}

// ---- changes ----

static void
take_event (EtcdWatch *self, JsonObject *event)
{
  JsonObject *object = etcd_get_object (event, "kv");
  EtcdEntry *entry = object ? entry_new (object) : NULL;

  if (!entry)
    return;
  self->seen = MAX (self->seen, entry->revision);
  if (g_strcmp0 (json_strict_text (event, "type"), "DELETE") == 0)
    self->ops->deleted (self->owner, entry);
  else
    self->ops->put (self->owner, entry);
  entry_free (entry);
}

// Returns FALSE if the watch has ended, such as for changes that etcd has forgotten.
static gboolean
take_line (EtcdWatch *self, const gchar *text, gsize len)
{
  g_autoptr (JsonObject) message = json_strict_read (text, len, DEPTH_MAX);
  JsonObject *result = message ? etcd_get_object (message, "result") : NULL;
  JsonArray *events = result ? json_strict_array (result, "events") : NULL;

  if (!result || json_object_has_member (result, "canceled"))
    return FALSE;
  self->state = WATCH_OPEN;
  for (guint i = 0; events && i < json_array_get_length (events); i++) {
    JsonObject *event = etcd_get_element (events, i);

    if (event)
      take_event (self, event);
  }
  return TRUE;
}

static gboolean
take_bytes (EtcdWatch *self, gsize size)
{
  const gchar *end;

  g_string_append_len (self->line, self->bytes, (gssize) size);
  while ((end = memchr (self->line->str, '\n', self->line->len))) {
    const gsize len = (gsize) (end - self->line->str);

    if (len > 0 && !take_line (self, self->line->str, len))
      return FALSE;
    g_string_erase (self->line, 0, (gssize) len + 1);
  }
  return self->line->len <= LINE_SIZE_MAX;
}

// ---- the connection ----

static void
close_connection (EtcdWatch *self)
{
  self->is_reading = FALSE;
  g_clear_object (&self->stream);
  break_off (self);
}

static void
on_read (GObject *stream, GAsyncResult *result, gpointer data)
{
  EtcdWatch *self = data;
  const gssize size = g_input_stream_read_finish (G_INPUT_STREAM (stream), result, NULL);

  if (size <= 0 || g_cancellable_is_cancelled (self->cancellable)
      || !take_bytes (self, (gsize) size))
    close_connection (self);
  else
    read_more (self);
}

static void
read_more (EtcdWatch *self)
{
  g_input_stream_read_async (self->stream, self->bytes, sizeof self->bytes, G_PRIORITY_DEFAULT,
      self->cancellable, on_read, self);
}

static void
on_opened (GObject *session, GAsyncResult *result, gpointer data)
{
  EtcdWatch *self = data;
  SoupMessage *message = soup_session_get_async_result_message (SOUP_SESSION (session), result);
  const guint status = soup_message_get_status (message);

  self->stream = soup_session_send_finish (SOUP_SESSION (session), result, NULL);
  if (!self->stream || status != SOUP_STATUS_OK)
    close_connection (self);
  else
    read_more (self);
}

static void
open_connection (EtcdWatch *self)
{
  JsonBuilder *body = json_builder_new ();
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (SoupMessage) message = NULL;

  json_builder_begin_object (body);
  json_builder_set_member_name (body, "create_request");
  json_builder_begin_object (body);
  etcd_add_bytes (body, "key", self->prefix);
  etcd_add_bytes (body, "range_end", self->range_end);
  etcd_add_number (body, "start_revision", self->revision + 1);
  json_builder_end_object (body);
  json_builder_end_object (body);
  bytes = etcd_body_to_bytes (body);

  self->state = WATCH_OPENING;
  self->is_reading = TRUE;
  self->generation = etcd_get_generation (self->etcd);
  g_string_truncate (self->line, 0);
  g_clear_object (&self->cancellable);
  self->cancellable = g_cancellable_new ();
  message = etcd_message_new (self->etcd, "/v3/watch", bytes);
  soup_session_send_async (etcd_get_session (self->etcd), message, G_PRIORITY_DEFAULT,
      self->cancellable, on_opened, self);
}

static gboolean
on_tick (gpointer data)
{
  EtcdWatch *self = data;

  // A connection that has been cut off says nothing; calls to the same endpoint fail.
  if (self->is_reading && self->generation != etcd_get_generation (self->etcd))
    break_off (self);
  else if (self->state == WATCH_BROKEN && !self->is_reading)
    list (self, NULL);
  return G_SOURCE_CONTINUE;
}

gint64
etcd_watch_get_revision (EtcdWatch *self)
{
  return self->seen;
}

gboolean
etcd_watch_is_whole (EtcdWatch *self)
{
  return self->state == WATCH_OPEN;
}

// ---- construction ----

EtcdWatch *
etcd_watch_new (Etcd *etcd, const gchar *prefix, const EtcdWatchOps *ops, gpointer owner)
{
  EtcdWatch *self = g_new0 (EtcdWatch, 1);

  self->etcd = etcd;
  self->prefix = g_strdup (prefix);
  self->range_end = etcd_dup_range_end (prefix);
  self->ops = ops;
  self->owner = owner;
  self->entries = g_ptr_array_new_with_free_func (entry_free);
  self->cancellable = g_cancellable_new ();
  self->line = g_string_new (NULL);
  self->timer = timer_add (TICK_MS, on_tick, self);
  list (self, NULL);
  return self;
}

static gboolean
is_closed (gpointer data)
{
  return !((EtcdWatch *) data)->is_reading;
}

void
etcd_watch_stop (EtcdWatch *self)
{
  self->state = WATCH_STOPPED;
  g_clear_pointer (&self->timer, timer_remove);
  g_cancellable_cancel (self->cancellable);
  main_loop_wait (is_closed, self, STOP_MS);
}

void
etcd_watch_free (EtcdWatch *self)
{
  g_ptr_array_unref (self->entries);
  g_object_unref (self->cancellable);
  g_string_free (self->line, TRUE);
  g_free (self->prefix);
  g_free (self->range_end);
  g_free (self);
}
