// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/ts/ts_stream.h"

#include <gst/app/gstappsink.h>
#include <sys/socket.h>

#include "base/files_left.h"
#include "base/log.h"
#include "outlets/ts/mux_input.h"
#include "outlets/ts/ts_cutter.h"
#include "outlets/ts/ts_layers.h"
#include "outlets/ts/ts_way.h"
#include "readers/adaptation.h"
#include "readers/totals.h"

#define AUDIO_JOINS (500 * GST_MSECOND) // between two join points without video
#define RETRY_MS 2000                   // before a multiplexer that has failed is made again

// What a stream is made of.
typedef struct {
  Presentation *presentation;
  WeirLayerSet layers;
} Key;

struct _TsStream {
  gatomicrefcount refs;
  Key key;
  gchar *label;
  guint retry; // timer; main thread only
  MuxInput *input;
  gboolean is_choice; // it is counted (presentation_take_choice())
  // The elements of the multiplexer that select layers; NULL: it is not made yet. Use with
  // `all_lock` held.
  GPtrArray *filters;

  TsWay *readers;

  // The multiplexer's thread.
  TsCutter cutter;
  gboolean has_video;
  GstClockTime join_time; // of the last join point, without video; NONE: none
  GstBufferList *list;    // datagrams of the frame in hand
  GByteArray *packets;

  GMutex lock;        // protects the field below
  GPtrArray *targets; // of TsWay
};

static GMutex all_lock;
static GHashTable *all; // Key: TsStream; use with `all_lock` held

// ---- the multiplexer's thread ----

static void
on_datagram (gpointer data, const guint8 bytes[TS_DATAGRAM], gboolean join, guint64 time)
{
  TsStream *self = data;
  GstBuffer *buffer = gst_buffer_new_memdup (bytes, TS_DATAGRAM);

  GST_BUFFER_PTS (buffer) = GST_BUFFER_DTS (buffer) = time;
  if (!join)
    GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DELTA_UNIT);
  gst_buffer_list_add (self->list, buffer);
}

static void
add_bytes (TsStream *self, GstBuffer *buffer, gboolean *join)
{
  gsize size = gst_buffer_get_size (buffer);
  guint at = self->packets->len;

  g_byte_array_set_size (self->packets, at + (guint) size);
  gst_buffer_extract (buffer, 0, self->packets->data + at, size);
  *join |= !GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_DELTA_UNIT);
}

// Sends the datagrams to all ways.
static void
send_list (TsStream *self)
{
  GPtrArray *targets;

  g_mutex_lock (&self->lock);
  targets = g_ptr_array_ref (self->targets);
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < targets->len; i++)
    ts_way_push (g_ptr_array_index (targets, i), gst_buffer_list_ref (self->list), self->label);
  g_ptr_array_unref (targets);
  ts_way_push (self->readers, self->list, self->label);
  self->list = gst_buffer_list_new ();
}

// Without video a decoder can start anywhere.
static gboolean
is_join (TsStream *self, gboolean is_key, GstClockTime time)
{
  if (self->has_video)
    return is_key;
  if (GST_CLOCK_TIME_IS_VALID (self->join_time) && time < self->join_time + AUDIO_JOINS)
    return FALSE;
  self->join_time = time;
  return TRUE;
}

static GstFlowReturn
on_sample (GstAppSink *appsink, gpointer data)
{
  TsStream *self = data;
  g_autoptr (GstSample) sample = gst_app_sink_pull_sample (appsink);
  GstBufferList *list = sample ? gst_sample_get_buffer_list (sample) : NULL;
  GstBuffer *first = list     ? gst_buffer_list_get (list, 0)
                     : sample ? gst_sample_get_buffer (sample)
                              : NULL;
  gboolean join = FALSE;

  g_byte_array_set_size (self->packets, 0);
  for (guint i = 0; list && i < gst_buffer_list_length (list); i++)
    add_bytes (self, gst_buffer_list_get (list, i), &join);
  if (!list && first)
    add_bytes (self, first, &join);
  if (first)
    ts_cutter_take (&self->cutter, self->packets->data, self->packets->len,
        is_join (self, join, GST_BUFFER_PTS (first)), GST_BUFFER_PTS (first));
  if (gst_buffer_list_length (self->list) > 0)
    send_list (self);
  return GST_FLOW_OK;
}

// ---- the multiplexer ----

static void
note_filters (TsStream *self, GPtrArray *filters)
{
  g_mutex_lock (&all_lock);
  g_clear_pointer (&self->filters, g_ptr_array_unref);
  self->filters = g_ptr_array_ref (filters);
  g_mutex_unlock (&all_lock);
}

static gboolean
on_made (gpointer owner, GstElement *pipeline, GPtrArray *filters, gboolean has_video)
{
  GstAppSinkCallbacks callbacks = { .new_sample = on_sample };
  TsStream *self = owner;
  GstElement *out = gst_bin_get_by_name (GST_BIN (pipeline), "out");

  ts_cutter_init (&self->cutter, on_datagram, self);
  self->has_video = has_video;
  self->join_time = GST_CLOCK_TIME_NONE;
  gst_app_sink_set_callbacks (GST_APP_SINK (out), &callbacks, self, NULL);
  gst_object_unref (out);
  note_filters (self, filters);
  return TRUE;
}

static const MuxInputCallbacks input_callbacks;

static gboolean
begin_again (gpointer data)
{
  TsStream *self = data;

  self->retry = 0;
  g_clear_pointer (&self->input, mux_input_free);
  self->input = mux_input_new (&carriage_ts, presentation_get_relay (self->key.presentation),
      self->key.layers, self->label, NULL, &input_callbacks, self);
  return G_SOURCE_REMOVE;
}

// A receiver would have to know that another program follows, so readers begin anew.
static void
on_ended (gpointer owner, const gchar *reason)
{
  TsStream *self = owner;

  log_event ("%s: the transport stream ends: %s", self->label, reason);
  g_signal_emit_by_name (self->readers->sink, "clear");
  if (!self->retry)
    self->retry = g_timeout_add (RETRY_MS, begin_again, self);
}

static const MuxInputCallbacks input_callbacks = { on_made, on_ended };

gchar *
ts_stream_dup_problem (TsStream *self)
{
  return mux_input_dup_problem (&carriage_ts, presentation_get_relay (self->key.presentation));
}

gchar *
ts_stream_dup_left_out (TsStream *self)
{
  gchar *left_out;

  mux_input_choose (&carriage_ts, presentation_get_relay (self->key.presentation), &left_out);
  return left_out;
}

// ---- construction ----

static gboolean
free_here (gpointer data)
{
  TsStream *self = data;

  g_clear_handle_id (&self->retry, g_source_remove);
  g_clear_pointer (&self->input, mux_input_free);
  ts_way_unref (self->readers);
  g_ptr_array_unref (self->targets);
  g_clear_pointer (&self->list, gst_buffer_list_unref);
  g_byte_array_unref (self->packets);
  g_clear_pointer (&self->filters, g_ptr_array_unref);
  if (self->is_choice)
    presentation_leave_choice (self->key.presentation);
  presentation_unref (self->key.presentation);
  g_mutex_clear (&self->lock);
  g_free (self->label);
  g_free (self);
  return G_SOURCE_REMOVE;
}

static TsStream *
make (const Key *key, GError **error)
{
  TsStream *self = g_new0 (TsStream, 1);
  Presentation *presentation = presentation_ref (key->presentation);
  MountConfig *config = presentation_dup_config (presentation);

  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->key = *key;
  self->label = g_strdup_printf ("mount %s", presentation_get_label (presentation));
  self->targets = g_ptr_array_new_with_free_func (ts_way_unref);
  self->list = gst_buffer_list_new ();
  self->packets = g_byte_array_new ();
  self->readers = ts_way_new ();
  if (ts_way_init (self->readers, presentation_get_relay (presentation), self->label,
          "fanoutsink name=sink sync=false async=false", error)) {
    gst_util_set_object_arg (G_OBJECT (self->readers->sink), "join", config->join);
    g_object_set (self->readers->sink, "priority", config->priority, NULL);
    totals_watch_sink (presentation_get_mount_path (presentation), self->readers->sink);
  }
  mount_config_unref (config);
  if (!self->readers->bin || !ts_way_start (self->readers, error)) {
    g_main_context_invoke (NULL, free_here, self);
    return NULL;
  }
  self->input = mux_input_new (&carriage_ts, presentation_get_relay (presentation), key->layers,
      self->label, NULL, &input_callbacks, self);
  return self;
}

static guint
hash_key (gconstpointer key)
{
  const Key *self = key;

  return g_direct_hash (self->presentation) ^ (guint) self->layers.spatial << 8
         ^ (guint) self->layers.quality << 16 ^ (guint) self->layers.temporal << 24;
}

static gboolean
is_equal_key (gconstpointer a, gconstpointer b)
{
  const Key *one = a, *other = b;

  return one->presentation == other->presentation
         && weir_layer_set_equal (one->layers, other->layers);
}

// ---- choices that make no difference ----

// Sets `top` to the highest layers of the presentation, as one of its streams has seen them.
// Returns FALSE if none knows. Call with `all_lock` held.
static gboolean
find_top (Presentation *presentation, WeirLayerSet *top)
{
  GHashTableIter iter;
  gpointer value;

  g_hash_table_iter_init (&iter, all);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    TsStream *each = value;

    // Without a choice, the multiplexer has no such elements.
    if (each->key.presentation == presentation && each->filters
        && !weir_layer_set_equal (each->key.layers, WEIR_LAYER_SET_ALL)
        && ts_layers_read_top (each->filters, top))
      return TRUE;
  }
  return FALSE;
}

// Returns the stream with the same layers, or NULL. The layers of `key` become `usual`, those
// without a choice, if these are the same. Call with `all_lock` held.
static TsStream *
find (Key *key, WeirLayerSet usual)
{
  TsStream *found = g_hash_table_lookup (all, key);
  GHashTableIter iter;
  WeirLayerSet top;
  gpointer value;

  if (found || !find_top (key->presentation, &top))
    return found;
  g_hash_table_iter_init (&iter, all);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    TsStream *each = value;

    if (each->key.presentation == key->presentation
        && ts_layers_select_same (each->key.layers, key->layers, top))
      return each;
  }
  if (ts_layers_select_same (usual, key->layers, top))
    key->layers = usual;
  return NULL;
}

// Makes a stream, and counts it if its layers are a choice. Call with `all_lock` held.
static TsStream *
add (const Key *key, WeirLayerSet usual, GError **error)
{
  gboolean is_choice = !weir_layer_set_equal (key->layers, usual);
  TsStream *self;

  if (is_choice && !presentation_take_choice (key->presentation, error))
    return NULL;
  self = make (key, error);
  if (self)
    g_hash_table_insert (all, &self->key, self);
  else if (is_choice)
    presentation_leave_choice (key->presentation);
  if (self)
    self->is_choice = is_choice;
  return self;
}

TsStream *
ts_stream_get (Presentation *presentation, WeirLayerSet chosen, GError **error)
{
  MountConfig *config = presentation_dup_config (presentation);
  const WeirLayerSet usual = adaptation_limit (config, WEIR_LAYER_SET_ALL);
  Key key = { presentation, adaptation_limit (config, chosen) };
  TsStream *self;

  mount_config_unref (config);
  g_mutex_lock (&all_lock);
  if (!all)
    all = g_hash_table_new (hash_key, is_equal_key);
  self = find (&key, usual);
  if (self)
    ts_stream_ref (self);
  else
    self = add (&key, usual, error);
  g_mutex_unlock (&all_lock);
  return self;
}

TsStream *
ts_stream_ref (TsStream *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
ts_stream_unref (TsStream *self)
{
  gboolean last;

  g_mutex_lock (&all_lock);
  last = g_atomic_ref_count_dec (&self->refs);
  if (last)
    g_hash_table_remove (all, &self->key);
  g_mutex_unlock (&all_lock);
  if (last)
    g_main_context_invoke (NULL, free_here, self);
}

void
ts_stream_close_readers (Presentation *presentation, const gchar *reason, gpointer unused)
{
  g_autoptr (GPtrArray) found = g_ptr_array_new_with_free_func ((GDestroyNotify) ts_stream_unref);
  GHashTableIter iter;
  gpointer stream;

  g_mutex_lock (&all_lock);
  if (all)
    g_hash_table_iter_init (&iter, all);
  while (all && g_hash_table_iter_next (&iter, NULL, &stream)) {
    if (((TsStream *) stream)->key.presentation == presentation)
      g_ptr_array_add (found, ts_stream_ref (stream));
  }
  g_mutex_unlock (&all_lock);
  for (guint i = 0; i < found->len; i++)
    g_signal_emit_by_name (((TsStream *) g_ptr_array_index (found, i))->readers->sink, "clear");
}

// ---- readers ----

gchar *
ts_stream_add_socket (TsStream *self, GSocket *socket)
{
  gchar *name = NULL;

  g_signal_emit_by_name (self->readers->sink, "add-socket", socket, 0, 0, &name);
  return name;
}

gchar *
ts_stream_add_pair (TsStream *self, GSocket **end, GError **error)
{
  gchar *name = NULL;
  GSocket *own;
  int fds[2];

  if (!files_are_left (FILES_FOR_CONNECTION)
      || socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0) {
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_FAILED, FILES_PROBLEM);
    return NULL;
  }
  own = g_socket_new_from_fd (fds[0], NULL);
  *end = g_socket_new_from_fd (fds[1], NULL);
  name = ts_stream_add_socket (self, own);
  g_object_unref (own);
  if (!name) {
    g_clear_object (end);
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_FAILED, "the stream takes no reader");
  }
  return name;
}

void
ts_stream_remove_socket (TsStream *self, const gchar *name)
{
  g_signal_emit_by_name (self->readers->sink, "remove", name, 0);
}

// Adds a way, or removes the way with `sink`. The multiplexer's thread may use the old array.
static void
replace_targets (TsStream *self, TsWay *added, GstElement *sink)
{
  GPtrArray *old, *now = g_ptr_array_new_with_free_func (ts_way_unref);

  g_mutex_lock (&self->lock);
  old = self->targets;
  for (guint i = 0; i < old->len; i++) {
    TsWay *way = g_ptr_array_index (old, i);

    if (way->sink != sink)
      g_ptr_array_add (now, g_atomic_rc_box_acquire (way));
  }
  if (added)
    g_ptr_array_add (now, added);
  self->targets = now;
  g_mutex_unlock (&self->lock);
  g_ptr_array_unref (old);
}

GstElement *
ts_stream_add_target (TsStream *self, const TsTarget *target, GError **error)
{
  TsWay *way = ts_way_new ();

  if (!ts_way_init (way, presentation_get_relay (self->key.presentation), self->label,
          "ratepacer mode=timestamp ! fanoutsink name=sink sync=false async=false "
          "auto-multicast=false join=live",
          error)) {
    ts_way_unref (way);
    return NULL;
  }
  g_object_set (way->sink, "ttl-mc", (gint) target->ttl, "multicast-iface", target->iface, NULL);
  if (!ts_way_start (way, error)) {
    ts_way_unref (way);
    return NULL;
  }
  g_signal_emit_by_name (way->sink, "add", target->host, (gint) target->port);
  totals_watch_sink (presentation_get_mount_path (self->key.presentation), way->sink);
  replace_targets (self, way, NULL);
  return gst_object_ref (way->sink);
}

void
ts_stream_remove_target (TsStream *self, GstElement *sink)
{
  replace_targets (self, NULL, sink);
}

GstElement *
ts_stream_get_sink (TsStream *self)
{
  return self->readers->sink;
}
