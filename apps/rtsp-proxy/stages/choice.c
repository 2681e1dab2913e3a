// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stages/choice.h"

#include "text/config_error.h"

#include <string.h>

#define MAX_QUERY 512
#define MAX_CHOICES 16

typedef struct {
  gchar *param;
  gchar *value;
} Choice;

static void
choice_free (gpointer data)
{
  Choice *choice = data;

  g_free (choice->param);
  g_free (choice->value);
  g_free (choice);
}

static gboolean set_choice_error (GError **error, const gchar *format, ...) G_GNUC_PRINTF (2, 3);

static gboolean
set_choice_error (GError **error, const gchar *format, ...)
{
  va_list args;

  va_start (args, format);
  if (error)
    *error = g_error_new_valist (CONFIG_ERROR, CONFIG_ERROR_VALUE, format, args);
  va_end (args);
  return FALSE;
}

static const gchar *
name_at (const GPtrArray *stages, guint i)
{
  return stage_get_file (g_ptr_array_index (stages, i))->name;
}

static gint
find_stage (const GPtrArray *stages, const gchar *name)
{
  for (guint i = 0; i < stages->len; i++) {
    if (g_str_equal (name_at (stages, i), name))
      return (gint) i;
  }
  return -1;
}

/* Formats between stages, of video and of audio */

typedef struct {
  StageFormat video;
  StageFormat audio;
} Formats;

// Reports whether the media in `media` all have the format.
static gboolean
have_format (const Formats *formats, StageMedia media, StageFormat format)
{
  return (!(media & STAGE_VIDEO) || formats->video == format)
         && (!(media & STAGE_AUDIO) || formats->audio == format);
}

static void
set_format (Formats *formats, StageMedia media, StageFormat format)
{
  if (media & STAGE_VIDEO)
    formats->video = format;
  if (media & STAGE_AUDIO)
    formats->audio = format;
}

static gboolean
add_decoder (StageSet *set, GPtrArray *chain, const StageFile *file, GError **error)
{
  const gchar *name = stage_set_find_decoder (set, file->media);
  Stage *decoder = name ? stage_new (set, name, NULL) : NULL;

  if (!decoder)
    return set_choice_error (error, "stage %s: takes raw %s, but no stage decodes it", file->name,
        stage_media_name (file->media));
  g_ptr_array_add (chain, decoder);
  return TRUE;
}

// A stage that takes several mounts has a decoder of each beside it; see graph/graph.h.
static gboolean
add_joining (StageSet *set, GPtrArray *chain, const Formats *formats, Stage *stage, GError **error)
{
  const StageFile *file = stage_get_file (stage);

  if (!stage_set_find_decoder (set, file->media))
    return set_choice_error (error, "stage %s: takes raw %s, but no stage decodes it", file->name,
        stage_media_name (file->media));
  if (!have_format (formats, file->media, STAGE_RTP))
    return set_choice_error (error,
        "stage %s: takes several mounts, so it must come before stages that give raw %s",
        file->name, stage_media_name (file->media));
  g_ptr_array_add (chain, stage_ref (stage));
  return TRUE;
}

static gboolean
add_stage (StageSet *set, GPtrArray *chain, Formats *formats, Stage *stage, GError **error)
{
  const StageFile *file = stage_get_file (stage);

  if ((chain->len == 0) != (file->takes == STAGE_NOTHING))
    return set_choice_error (error,
        chain->len ? "stage %s: takes nothing, so it must be the first stage"
                   : "stage %s: the first stage must be a source, such as pull",
        file->name);
  if (file->inputs) {
    if (!add_joining (set, chain, formats, stage, error))
      return FALSE;
    set_format (formats, file->media, file->gives);
    return TRUE;
  }
  if (file->takes == STAGE_RAW && have_format (formats, file->media, STAGE_RTP)) {
    if (!add_decoder (set, chain, file, error))
      return FALSE;
  } else if (!have_format (formats, file->media, file->takes)) {
    return set_choice_error (error,
        "stage %s: takes %s, but stage %s before it gives another format", file->name,
        stage_formats[file->takes], name_at (chain, chain->len - 1));
  }
  set_format (formats, file->media, file->gives);
  g_ptr_array_add (chain, stage_ref (stage));
  return TRUE;
}

static GPtrArray *
make_chain (StageSet *set, const GPtrArray *stages, GError **error)
{
  GPtrArray *chain = g_ptr_array_new_with_free_func ((GDestroyNotify) stage_unref);
  Formats formats = { STAGE_NOTHING, STAGE_NOTHING };
  gboolean ok = stages->len > 0;

  if (!ok)
    set_choice_error (error, "the pipeline is empty; begin it with a source, such as pull");
  for (guint i = 0; ok && i < stages->len; i++) {
    ok = find_stage (stages, name_at (stages, i)) == (gint) i;
    if (!ok)
      set_choice_error (error, "stage %s: appears twice", name_at (stages, i));
    else
      ok = add_stage (set, chain, &formats, g_ptr_array_index (stages, i), error);
  }
  if (ok && (formats.video == STAGE_RAW || formats.audio == STAGE_RAW))
    ok = set_choice_error (error, "stage %s: gives raw %s; add a stage that makes RTP of it",
        name_at (chain, chain->len - 1), formats.video == STAGE_RAW ? "video" : "audio");
  if (!ok)
    g_clear_pointer (&chain, g_ptr_array_unref);
  return chain;
}

/* The query */

static gboolean
has_choice (const GPtrArray *query, const gchar *param)
{
  for (guint i = 0; i < query->len; i++) {
    if (g_str_equal (((Choice *) g_ptr_array_index (query, i))->param, param))
      return TRUE;
  }
  return FALSE;
}

static gboolean
read_pairs (GPtrArray *query, const gchar *text, GError **error)
{
  GUriParamsIter iter;
  GError *wrong = NULL;
  gchar *param, *value;

  g_uri_params_iter_init (&iter, text, -1, "&", G_URI_PARAMS_NONE);
  while (g_uri_params_iter_next (&iter, &param, &value, &wrong)) {
    Choice *choice = g_new (Choice, 1);
    gboolean twice = has_choice (query, param);

    *choice = (Choice) { param, value };
    g_ptr_array_add (query, choice);
    if (twice)
      return set_choice_error (error, "%.40s is given twice", param);
    if (query->len > MAX_CHOICES)
      return set_choice_error (error, "too many choices: at most %d are allowed", MAX_CHOICES);
  }
  if (wrong) {
    g_error_free (wrong);
    return set_choice_error (error, "not a valid query; write it like size=640x360&rate=600k");
  }
  return TRUE;
}

static GPtrArray *
read_query (const gchar *text, GError **error)
{
  GPtrArray *query = g_ptr_array_new_with_free_func (choice_free);
  gboolean ok = TRUE;

  if (text && strlen (text) > MAX_QUERY)
    ok = set_choice_error (error, "the query is longer than %d characters", MAX_QUERY);
  else if (text && *text)
    ok = read_pairs (query, text, error);
  if (!ok)
    g_clear_pointer (&query, g_ptr_array_unref);
  return query;
}

/* Choices */

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const gchar *const *) a, *(const gchar *const *) b);
}

// Returns the names of the stages in `choices`, sorted, so that appended stages have a fixed order.
static GPtrArray *
dup_chosen_names (GHashTable *choices)
{
  GPtrArray *names = g_ptr_array_new ();
  GHashTableIter iter;
  gpointer name;

  if (choices) {
    g_hash_table_iter_init (&iter, choices);
    while (g_hash_table_iter_next (&iter, &name, NULL))
      g_ptr_array_add (names, name);
  }
  g_ptr_array_sort (names, compare_names);
  return names;
}

static gboolean
is_offered (GHashTable *choices, const gchar *param)
{
  GHashTableIter iter;
  gpointer params;

  if (!choices)
    return FALSE;
  g_hash_table_iter_init (&iter, choices);
  while (g_hash_table_iter_next (&iter, NULL, &params)) {
    if (g_strv_contains (params, param))
      return TRUE;
  }
  return FALSE;
}

// Reports whether an item of a query names a parameter that is offered, or `delay`, which asks for
// something that the mount does not have.
static gboolean
is_known (GHashTable *choices, const gchar *item)
{
  gchar *param = g_uri_unescape_segment (item, item + strcspn (item, "="), NULL);
  gboolean known = param && (is_offered (choices, param) || g_str_equal (param, "delay"));

  g_free (param);
  return known;
}

gchar *
choice_cut_unknown (GHashTable *choices, const gchar *query)
{
  gchar **items = g_strsplit (query, "&", -1);
  GString *known = g_string_new (NULL);

  for (gchar **item = items; *item; item++) {
    if (is_known (choices, *item))
      g_string_append_printf (known, "%s%s", known->len ? "&" : "", *item);
  }
  g_strfreev (items);
  return known->len > 0 ? g_string_free (known, FALSE) : (g_string_free (known, TRUE), NULL);
}

static gboolean
check_declared (GHashTable *choices, const GPtrArray *query, GError **error)
{
  for (guint i = 0; i < query->len; i++) {
    const Choice *choice = g_ptr_array_index (query, i);

    if (!is_offered (choices, choice->param))
      return set_choice_error (error, "\"%.40s\" is not a choice of this mount", choice->param);
  }
  return TRUE;
}

// Sets the parameters `params` of the stage `name` from the query. Changes nothing if the query has
// none of them.
static gboolean
apply (StageSet *set, GPtrArray *stages, const gchar *name, const gchar *const *params,
    const GPtrArray *query, GError **error)
{
  gint at = find_stage (stages, name);
  Stage *stage = NULL;
  gchar *wrong = NULL;

  for (guint i = 0; !wrong && i < query->len; i++) {
    const Choice *choice = g_ptr_array_index (query, i);

    if (!g_strv_contains (params, choice->param))
      continue;
    if (!stage)
      stage = at >= 0 ? stage_copy (g_ptr_array_index (stages, at)) : stage_new (set, name, error);
    if (!stage)
      return FALSE;
    wrong = stage_assign (stage, choice->param, choice->value);
  }
  if (wrong) {
    set_choice_error (error, "%s", wrong);
    g_free (wrong);
    stage_unref (stage);
    return FALSE;
  }
  if (stage && at >= 0) {
    stage_unref (g_ptr_array_index (stages, at));
    g_ptr_array_index (stages, at) = stage;
  } else if (stage) {
    g_ptr_array_add (stages, stage);
  }
  return TRUE;
}

static GPtrArray *
ref_stages (const GPtrArray *stages)
{
  GPtrArray *copy = g_ptr_array_new_with_free_func ((GDestroyNotify) stage_unref);

  for (guint i = 0; i < stages->len; i++)
    g_ptr_array_add (copy, stage_ref (g_ptr_array_index (stages, i)));
  return copy;
}

static gboolean
apply_all (
    StageSet *set, GPtrArray *stages, GHashTable *choices, const GPtrArray *query, GError **error)
{
  GPtrArray *names = dup_chosen_names (choices);
  gboolean ok = check_declared (choices, query, error);

  for (guint i = 0; ok && i < names->len; i++) {
    const gchar *name = g_ptr_array_index (names, i);

    ok = apply (set, stages, name, g_hash_table_lookup (choices, name), query, error);
  }
  g_ptr_array_unref (names);
  return ok;
}

GPtrArray *
choice_make_chain (
    StageSet *set, const GPtrArray *stages, GHashTable *choices, const gchar *query, GError **error)
{
  GPtrArray *read = read_query (query, error), *chosen, *chain = NULL;

  if (!read)
    return NULL;
  chosen = ref_stages (stages);
  if (apply_all (set, chosen, choices, read, error))
    chain = make_chain (set, chosen, error);
  g_ptr_array_unref (chosen);
  g_ptr_array_unref (read);
  return chain;
}

/* Checking a mount */

static gboolean
check_param (const Stage *stage, GHashTable *seen, const gchar *param, GError **error)
{
  const StageFile *file = stage_get_file (stage);
  const StageParam *found = stage_file_find_param (file, param);
  const gchar *other = g_hash_table_lookup (seen, param);

  if (!found)
    return set_choice_error (
        error, "choices: stage %s has no parameter \"%.40s\"", file->name, param);
  if (g_str_equal (param, "layers"))
    return set_choice_error (error,
        "choices: layers cannot be offered, because layers= in a URL selects the reader's layers");
  if (!stage_param_is_for_urls (found))
    return set_choice_error (error, "choices: a URL cannot set %s of stage %s", param, file->name);
  if (other)
    return set_choice_error (error,
        "choices: %s is a parameter of both %s and %s; offer only one of them", param, other,
        file->name);
  g_hash_table_insert (seen, (gpointer) param, file->name);
  return TRUE;
}

// Checks a stage with choices. Appends it to `stages` if it is not in there.
static gboolean
check_choice (StageSet *set, GPtrArray *stages, GHashTable *seen, const gchar *name,
    const gchar *const *params, GError **error)
{
  gint at = find_stage (stages, name);
  Stage *stage =
      at >= 0 ? stage_ref (g_ptr_array_index (stages, at)) : stage_new (set, name, error);
  gboolean ok = stage != NULL;

  for (guint i = 0; ok && params[i]; i++)
    ok = check_param (stage, seen, params[i], error);
  if (ok && at < 0)
    g_ptr_array_add (stages, stage);
  else if (stage)
    stage_unref (stage);
  return ok;
}

// Checks the decoder that a stage with several inputs needs.
static gboolean
check_decoder (StageSet *set, const StageFile *file, GError **error)
{
  const gchar *name = file->inputs ? stage_set_find_decoder (set, file->media) : NULL;
  Stage *decoder = name ? stage_new (set, name, NULL) : NULL;
  gboolean ok = !decoder || stage_check_elements (decoder, NULL, error);

  g_clear_pointer (&decoder, stage_unref);
  return ok;
}

static gboolean
check_elements (StageSet *set, const GPtrArray *chain, GError **error)
{
  for (guint i = 0; i < chain->len; i++) {
    const Stage *stage = g_ptr_array_index (chain, i);
    const gchar *codec = choice_get_codec (chain, i, stage_get_file (stage)->media, NULL);

    if (!stage_check_elements (stage, codec, error)
        || !check_decoder (set, stage_get_file (stage), error))
      return FALSE;
  }
  return TRUE;
}

static gchar *
dup_file_sums (StageSet *set, const GPtrArray *chain)
{
  GString *files = g_string_new (NULL);

  for (guint i = 0; i < chain->len; i++) {
    const StageFile *file = stage_get_file (g_ptr_array_index (chain, i));
    const StageFile *decoder =
        file->inputs ? stage_set_find (set, stage_set_find_decoder (set, file->media)) : NULL;

    g_string_append_printf (files, "%s %s\n", file->name, file->sum);
    if (decoder)
      g_string_append_printf (files, "%s %s\n", decoder->name, decoder->sum);
  }
  return g_string_free (files, FALSE);
}

// Checks the chain with all stages that choices can append.
static gboolean
check_choices (
    StageSet *set, const GPtrArray *stages, GHashTable *choices, gchar **files, GError **error)
{
  GHashTable *seen = g_hash_table_new (g_str_hash, g_str_equal);
  GPtrArray *names = dup_chosen_names (choices), *all = ref_stages (stages), *chain = NULL;
  gboolean ok = TRUE;

  for (guint i = 0; ok && i < names->len; i++) {
    const gchar *name = g_ptr_array_index (names, i);

    ok = check_choice (set, all, seen, name, g_hash_table_lookup (choices, name), error);
  }
  if (ok)
    chain = make_chain (set, all, error);
  ok = chain && check_elements (set, chain, error);
  if (ok && files)
    *files = dup_file_sums (set, chain);
  g_clear_pointer (&chain, g_ptr_array_unref);
  g_hash_table_unref (seen);
  g_ptr_array_unref (names);
  g_ptr_array_unref (all);
  return ok;
}

gboolean
choice_check (
    StageSet *set, const GPtrArray *stages, GHashTable *choices, gchar **files, GError **error)
{
  GPtrArray *chain = make_chain (set, stages, error);

  if (!chain)
    return FALSE;
  g_ptr_array_unref (chain);
  return check_choices (set, stages, choices, files, error);
}

/* The chain */

gchar *
choice_dup_key (const GPtrArray *stages)
{
  GString *key = g_string_new (NULL);

  for (guint i = 0; i < stages->len; i++) {
    gchar *one = stage_dup_key (g_ptr_array_index (stages, i));

    g_string_append_printf (key, "%s%s", i ? " ! " : "", one);
    g_free (one);
  }
  return g_string_free (key, FALSE);
}

const gchar *
choice_get_codec (const GPtrArray *stages, guint n, StageMedia media, const gchar *codec)
{
  for (guint i = 0; i < n; i++) {
    const StageFile *file = stage_get_file (g_ptr_array_index (stages, i));

    if (file->codec && file->media & media)
      codec = file->codec;
  }
  return codec;
}
