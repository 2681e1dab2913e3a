// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text/demand.h"

#include "text/layer_choice.h"
#include "text/schema.h"

#include <gst/rtsp/gstrtsprange.h>
#include <math.h>
#include <string.h>

#define DELAY_MAX ((gint64) (86400 * GST_SECOND))
#define SECONDS_MAX 1e9 // in a Range

// ---- the URL ----

static gboolean
names_track (const gchar *segment)
{
  return g_str_has_prefix (segment, "/stream=") && g_ascii_isdigit (segment[8])
         && segment[9] == '\0';
}

// Cuts the track, or a trailing slash, off `text`, but not its first `kept` characters. Returns the
// track, or ""; the caller owns it.
static gchar *
cut_track (gchar *text, gsize kept)
{
  gchar *slash = strrchr (text, '/');
  gchar *track = g_strdup ("");

  if (slash && slash >= text + kept && (slash[1] == '\0' || names_track (slash))) {
    if (slash[1]) {
      g_free (track);
      track = g_strdup (slash);
    }
    *slash = '\0';
  }
  return track;
}

// Takes a parameter out of a query. Returns how often the parameter appears, with `bare` also
// without a value. Sets `*value` to its first value, or NULL, and `*rest` to the other parameters,
// or NULL; the caller owns both.
static guint
cut_param (const gchar *query, const gchar *param, gboolean bare, gchar **value, gchar **rest)
{
  g_auto (GStrv) items = NULL;
  GString *left;
  gsize len = strlen (param);
  guint n = 0;

  *value = NULL;
  if (!query || !strstr (query, param)) {
    query = query ? query + strspn (query, "&") : "";
    *rest = *query ? g_strdup (query) : NULL;
    return 0;
  }
  items = g_strsplit (query, "&", 0);
  left = g_string_new (NULL);
  for (gchar **item = items; *item; item++) {
    if (strncmp (*item, param, len) != 0
        || ((*item)[len] != '=' && !(bare && (*item)[len] == '\0')))
      g_string_append_printf (left, "%s%s", left->len ? "&" : "", *item);
    else if (n++ == 0)
      *value = g_strdup (*item + len + ((*item)[len] == '='));
  }
  *rest = left->len > 0 ? g_string_free (left, FALSE) : (g_string_free (left, TRUE), NULL);
  return n;
}

// Makes the URL of its parts again.
static void
write_url (Demand *self)
{
  g_free (self->url);
  self->url = g_strconcat (
      self->path, self->query ? "?" : "", self->query ? self->query : "", self->track, NULL);
}

// Takes the token out of the query and of the URL.
static void
take_token (Demand *self)
{
  g_autofree gchar *value = NULL, *rest = NULL;
  guint n = cut_param (self->query, "token", FALSE, &value, &rest);

  if (n == 1 && *value)
    self->token = g_uri_unescape_string (value, NULL);
  if (self->token && !g_utf8_validate (self->token, -1, NULL))
    g_clear_pointer (&self->token, g_free);
  if (n > 0) {
    g_free (self->query);
    self->query = g_steal_pointer (&rest);
    write_url (self);
  }
}

// Takes the mark of a reader that another member has sent.
static void
take_mark (Demand *self)
{
  g_autofree gchar *value = NULL, *rest = NULL;

  self->moved = cut_param (self->query, "moved", TRUE, &value, &rest) > 0;
  if (!self->moved)
    return;
  g_free (self->query);
  self->query = g_steal_pointer (&rest);
  write_url (self);
}

const gchar *
demand_cut_layers (const gchar *query, WeirLayerSet *layers, gchar **rest)
{
  g_autofree gchar *value = NULL, *left = NULL;
  guint n = cut_param (query, "layers", TRUE, &value, &left);
  gboolean fine = n == 0;

  *layers = WEIR_LAYER_SET_ALL;
  if (n == 1)
    fine = layer_choice_parse (value, layers);
  // A query without layers stays unchanged, even if it is empty.
  *rest = n > 0 ? g_steal_pointer (&left) : g_strdup (query);
  return fine ? NULL
              : "layers must be given once, as SPATIAL.QUALITY.TEMPORAL, such as layers=1.0.2";
}

// Takes the way of feedback. Another one stays a parameter that nothing knows.
static void
take_feedback (Demand *self)
{
  g_autofree gchar *value = NULL, *left = NULL;

  if (cut_param (self->stages, "feedback", FALSE, &value, &left) == 0
      || !g_str_equal (value, "transport-cc"))
    return;
  self->feedback = TRUE;
  g_free (self->stages);
  self->stages = g_steal_pointer (&left);
}

// Reports whether `value`, which parse_delay() refused, is a time of more than a day. With such a
// delay a reader begins at the oldest packet.
static gboolean
is_over_a_day (const gchar *value)
{
  gsize n = strspn (value, "0123456789");
  static const gchar *const units[] = { "", "s", "m", "h", NULL };

  return n > 0 && g_strv_contains (units, value + n);
}

// Parses a time as in the configuration; a number without a unit is in seconds.
static gboolean
parse_delay (const gchar *value, guint *ms)
{
  gboolean bare = *value && g_ascii_isdigit (value[strlen (value) - 1]);
  g_autofree gchar *text = g_strconcat (value, bare ? "s" : "", NULL);

  return schema_parse_duration (text, ms);
}

static void
take_delay (Demand *self)
{
  g_autofree gchar *value = NULL;
  guint n = cut_param (self->stages, "delay", TRUE, &value, &self->choices), ms;

  self->delay_ns = -1;
  if (n > 1)
    self->wrong_delay = "delay is given twice";
  if (value && parse_delay (value, &ms))
    self->delay_ns = (gint64) ms * (gint64) GST_MSECOND;
  else if (value && is_over_a_day (value))
    self->delay_ns = DELAY_MAX;
  else if (value)
    self->wrong_delay = "delay is not a time; write it like 30, 30s or 2m";
  if (self->wrong_delay)
    self->delay_ns = -1;
}

// Cuts the track off the URL. Some players append it to the query, others to the path before the
// query; then it is put behind the query.
static void
take_track (Demand *self)
{
  self->track = self->query ? cut_track (self->query, 0) : g_strdup ("");
  if (*self->track)
    return;
  g_free (self->track);
  self->track = cut_track (self->path, 1);
  if (self->query && *self->track)
    write_url (self);
}

Demand *
demand_new (const gchar *url)
{
  Demand *self = g_new0 (Demand, 1);
  gsize len = strcspn (url, "?");

  self->url = g_strdup (url);
  self->path = g_strndup (url, len);
  self->query = url[len] ? g_strdup (url + len + 1) : NULL;
  take_track (self);
  take_token (self);
  take_mark (self);
  self->wrong_layers = demand_cut_layers (self->query, &self->layers, &self->stages);
  take_feedback (self);
  take_delay (self);
  return self;
}

void
demand_free (Demand *self)
{
  g_free (self->url);
  g_free (self->path);
  g_free (self->track);
  g_free (self->query);
  g_free (self->stages);
  g_free (self->choices);
  g_free (self->token);
  g_free (self);
}

// ---- the Range ----

// Returns the beginning of a clock range in us since the Unix epoch, or -1 if it is not a date.
static gint64
read_utc (const GstRTSPTimeRange *range)
{
  const GstRTSPTime2 *day = &range->min2;
  gint64 seconds = (gint64) range->min.seconds;
  g_autoptr (GDateTime) time = g_date_time_new_utc ((gint) day->year, (gint) day->month,
      (gint) day->day, (gint) (seconds / 3600), (gint) (seconds / 60 % 60), 0);

  if (!time)
    return -1;
  return g_date_time_to_unix (time) * G_USEC_PER_SEC
         + (gint64) ((range->min.seconds - (gdouble) (seconds / 60 * 60)) * G_USEC_PER_SEC);
}

// Reports whether the range begins at a time or at the live edge, and does not end before it
// begins.
static gboolean
is_valid_range (const GstRTSPTimeRange *range)
{
  if (range->min.type != GST_RTSP_TIME_SECONDS && range->min.type != GST_RTSP_TIME_UTC)
    return range->min.type == GST_RTSP_TIME_NOW;
  if (!(fabs (range->min.seconds) < SECONDS_MAX))
    return FALSE;
  return range->max.type != GST_RTSP_TIME_SECONDS || range->max.seconds > range->min.seconds;
}

static DemandStart
read_start (const GstRTSPTimeRange *range, gint64 *at)
{
  if (!is_valid_range (range))
    return DEMAND_NOWHERE;
  if (range->unit == GST_RTSP_RANGE_CLOCK && (*at = read_utc (range)) >= 0)
    return DEMAND_CLOCK;
  if (range->unit != GST_RTSP_RANGE_NPT)
    return DEMAND_NOWHERE;
  if (range->min.type == GST_RTSP_TIME_NOW)
    return DEMAND_NOW;
  *at = (gint64) (range->min.seconds * (gdouble) GST_SECOND);
  return DEMAND_NPT;
}

DemandStart
demand_read_range (const gchar *header, gint64 *at)
{
  GstRTSPTimeRange *range = NULL;
  DemandStart start;

  *at = 0;
  if (gst_rtsp_range_parse (header, &range) != GST_RTSP_OK)
    return DEMAND_UNREADABLE;
  start = read_start (range, at);
  gst_rtsp_range_free (range);
  return start;
}
