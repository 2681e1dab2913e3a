// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text/schema.h"

#include "text/config_error.h"

#include <string.h>

#define RATE_MAX G_GUINT64_CONSTANT (1000000000000) // bits a second
#define HOUR_MS (60 * 60 * 1000)
#define DAY_MS (24 * HOUR_MS)
#define HELP_COLUMN 36
#define HELP_WIDTH 100

static inline gpointer
at (const SchemaKey *key, gconstpointer object)
{
  return (guint8 *) object + key->offset;
}

static gboolean
is_text (const SchemaKey *key)
{
  return key->type == SCHEMA_TEXT || key->type == SCHEMA_SECRET;
}

// ---- values ----
// These functions return NULL, or an error message that the caller owns.

gboolean
schema_parse_time (const gchar *text, gdouble *ms)
{
  gchar *unit = NULL;
  gdouble number;
  guint scale;

  if (!g_ascii_isdigit (*text))
    return FALSE;
  number = g_ascii_strtod (text, &unit);
  if (strspn (text, "0123456789.") != (gsize) (unit - text)) // refuses hexadecimal and exponents
    return FALSE;
  if (g_str_equal (unit, "ms"))
    scale = 1;
  else if (g_str_equal (unit, "s"))
    scale = 1000;
  else if (g_str_equal (unit, "m"))
    scale = 60 * 1000;
  else if (g_str_equal (unit, "h"))
    scale = 60 * 60 * 1000;
  else
    return FALSE;
  if (!(number * scale <= DAY_MS))
    return FALSE;
  *ms = number * scale;
  return TRUE;
}

gboolean
schema_parse_duration (const gchar *text, guint *ms)
{
  gdouble exact;

  if (!schema_parse_time (text, &exact))
    return FALSE;
  *ms = (guint) (exact + 0.5);
  return TRUE;
}

gboolean
schema_parse_bytes (const gchar *text, guint64 *bytes)
{
  static const gchar units[] = "KMGT";
  gchar *unit = NULL;
  guint64 number = g_ascii_isdigit (*text) ? g_ascii_strtoull (text, &unit, 10) : 0;
  const gchar *found = unit && *unit ? strchr (units, *unit) : NULL;
  guint shift = found ? 10 * (guint) (found - units + 1) : 0;

  if (!unit || (*unit && (!found || unit[1])) || number > G_MAXUINT32)
    return FALSE;
  *bytes = number << shift;
  return TRUE;
}

gboolean
schema_parse_rate (const gchar *text, guint64 *rate)
{
  static const gchar units[] = "kMG";
  gchar *unit = NULL;
  guint64 number = g_ascii_isdigit (*text) ? g_ascii_strtoull (text, &unit, 10) : 0;
  const gchar *found = unit && *unit ? strchr (units, *unit) : NULL;

  if (!unit || (*unit && (!found || unit[1])) || number > RATE_MAX)
    return FALSE;
  for (const gchar *u = units; found && u <= found; u++)
    number *= 1000;
  *rate = number;
  return number <= RATE_MAX;
}

static guint
longest (const SchemaKey *key)
{
  return key->max ? key->max : DAY_MS;
}

static gchar *
dup_duration (guint ms)
{
  if (ms > 0 && ms % HOUR_MS == 0)
    return g_strdup_printf ("%uh", ms / HOUR_MS);
  return ms % 1000 ? g_strdup_printf ("%ums", ms) : g_strdup_printf ("%us", ms / 1000);
}

// Returns "from 100ms to 24h".
static gchar *
dup_time_range (const SchemaKey *key)
{
  gchar *from = dup_duration (key->min), *to = dup_duration (longest (key));
  gchar *range = g_strdup_printf ("from %s to %s", from, to);

  g_free (from);
  g_free (to);
  return range;
}

static gchar *
read_duration (const SchemaKey *key, const gchar *text, guint *ms)
{
  gchar *range, *wrong;
  guint value;

  if (schema_parse_duration (text, &value) && value >= key->min && value <= longest (key)) {
    *ms = value;
    return NULL;
  }
  range = dup_time_range (key);
  wrong = g_strdup_printf (
      "\"%s\" is not a time %s; write it with a unit, such as 10s or 500ms", text, range);
  g_free (range);
  return wrong;
}

static gchar *
read_number (const SchemaKey *key, const gchar *text, guint *number)
{
  guint64 value;

  if (!g_ascii_string_to_unsigned (text, 10, key->min, key->max, &value, NULL))
    return g_strdup_printf ("\"%s\" is not a number from %u to %u", text, key->min, key->max);
  *number = (guint) value;
  return NULL;
}

static gchar *
read_word (const SchemaKey *key, const gchar *text, guint *index)
{
  gchar *all, *wrong;

  for (*index = 0; key->words[*index]; ++*index) {
    if (g_str_equal (text, key->words[*index]))
      return NULL;
  }
  all = g_strjoinv (", ", (gchar **) key->words);
  wrong = g_strdup_printf ("\"%s\" is not one of %s", text, all);
  g_free (all);
  return wrong;
}

static gchar *
read_flag (const gchar *text, gboolean *flag)
{
  if (g_str_equal (text, "yes") || g_str_equal (text, "true"))
    *flag = TRUE;
  else if (g_str_equal (text, "no") || g_str_equal (text, "false"))
    *flag = FALSE;
  else
    return g_strdup_printf ("\"%s\" is not yes or no", text);
  return NULL;
}

static gchar *
read_text (const SchemaKey *key, gpointer object, const gchar *text)
{
  gpointer value = at (key, object);
  guint index;
  gchar *wrong;

  switch (key->type) {
    case SCHEMA_TEXT:
    case SCHEMA_SECRET:
      g_free (*(gchar **) value);
      *(gchar **) value = g_strdup (text);
      return NULL;
    case SCHEMA_WORD:
      wrong = read_word (key, text, &index);
      if (!wrong)
        *(const gchar **) value = key->words[index];
      return wrong;
    case SCHEMA_INDEX:
      wrong = read_word (key, text, &index);
      if (!wrong)
        *(guint *) value = index;
      return wrong;
    case SCHEMA_NUMBER:
      return read_number (key, text, value);
    case SCHEMA_DURATION:
      return read_duration (key, text, value);
    case SCHEMA_FLAG:
      return read_flag (text, value);
    case SCHEMA_OTHER:
      break;
  }
  return NULL;
}

static void
set_default (const SchemaKey *key, gpointer object)
{
  if (key->type == SCHEMA_OTHER && key->value->reset)
    key->value->reset (key, object);
  if (is_text (key))
    g_clear_pointer ((gchar **) at (key, object), g_free);
  if (key->type != SCHEMA_OTHER && key->preset)
    g_free (read_text (key, object, key->preset));
}

void
schema_init (const SchemaKey *keys, gpointer object)
{
  for (const SchemaKey *key = keys; key->name; key++)
    set_default (key, object);
}

void
schema_clear (const SchemaKey *keys, gpointer object)
{
  for (const SchemaKey *key = keys; key->name; key++) {
    if (is_text (key))
      g_clear_pointer ((gchar **) at (key, object), g_free);
    else if (key->type == SCHEMA_OTHER && key->value->clear)
      key->value->clear (object);
  }
}

void
schema_copy (const SchemaKey *keys, gpointer to, gconstpointer from)
{
  for (const SchemaKey *key = keys; key->name; key++) {
    if (is_text (key)) {
      g_free (*(gchar **) at (key, to));
      *(gchar **) at (key, to) = g_strdup (*(gchar **) at (key, from));
    } else if (key->type == SCHEMA_WORD) {
      *(const gchar **) at (key, to) = *(const gchar **) at (key, from);
    } else if (key->type == SCHEMA_OTHER) {
      if (key->value->copy)
        key->value->copy (to, from);
    } else {
      *(guint *) at (key, to) = *(guint *) at (key, from);
    }
  }
}

gboolean
schema_key_equal (const SchemaKey *key, gconstpointer a, gconstpointer b)
{
  if (key->type == SCHEMA_OTHER)
    return !key->value->equal || key->value->equal (a, b);
  if (is_text (key) || key->type == SCHEMA_WORD)
    return !g_strcmp0 (*(gchar **) at (key, a), *(gchar **) at (key, b));
  return *(guint *) at (key, a) == *(guint *) at (key, b);
}

guint
schema_key_effect (const SchemaKey *key, gconstpointer from, gconstpointer to)
{
  if (schema_key_equal (key, from, to))
    return 0;
  return key->type == SCHEMA_OTHER && key->value->effect ? key->value->effect (from, to)
                                                         : key->effect;
}

// ---- from YAML ----

gboolean
schema_fail (
    YamlReader *reader, YamlNode *node, const SchemaKey *key, GError **error, const gchar *text)
{
  return yaml_fail (reader, node, key->name, CONFIG_ERROR_VALUE, error, text);
}

// Reports whether a value needs the key's feature: words but the last one, such as `off` and
// `auto`, do not.
static gboolean
insists (const SchemaKey *key, const gchar *text)
{
  return !key->words || !g_strcmp0 (text, key->words[g_strv_length ((gchar **) key->words) - 1]);
}

static gboolean
read_key (const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const gchar *lack = feature_get_lack (key->feature), *text;
  gchar *wrong;

  if (lack && insists (key, yaml_text (reader, node)))
    return schema_fail (reader, node, key, error, lack);
  if (yaml_is_missing (node))
    return schema_fail (reader, node, key, error,
        "the value is missing; a text that begins with #, & or ! needs quotes");
  if (key->type == SCHEMA_OTHER)
    return key->value->read (key, object, reader, node, error);
  text = yaml_text (reader, node);
  if (!text)
    return schema_fail (reader, node, key, error, "expected a single value");
  wrong = read_text (key, object, text);
  if (wrong)
    return yaml_fail_take (reader, node, key->name, CONFIG_ERROR_VALUE, error, wrong);
  return TRUE;
}

static GStrv
dup_names (const SchemaKey *keys)
{
  GStrvBuilder *names = g_strv_builder_new ();
  GStrv all;

  for (const SchemaKey *key = keys; key->name; key++)
    g_strv_builder_add (names, key->name);
  all = g_strv_builder_end (names);
  g_strv_builder_unref (names);
  return all;
}

static GStrv
dup_renamed (const SchemaKey *keys)
{
  GStrvBuilder *names = g_strv_builder_new ();
  GStrv all;

  for (const SchemaKey *key = keys; key->name; key++) {
    if (key->was)
      g_strv_builder_add_many (names, key->was, key->name, NULL);
  }
  all = g_strv_builder_end (names);
  g_strv_builder_unref (names);
  return all;
}

gboolean
schema_read (const SchemaKey *keys, gpointer object, YamlReader *reader, const YamlNode *mapping,
    const gchar *name, SchemaMode mode, GError **error)
{
  GStrv names = dup_names (keys), renamed = dup_renamed (keys);
  gboolean ok = yaml_check_keys (
      reader, mapping, name, (const gchar *const *) names, (const gchar *const *) renamed, error);

  g_strfreev (names);
  g_strfreev (renamed);
  if (!ok)
    yaml_set_wrong (reader, mapping);
  for (const SchemaKey *key = keys; yaml_is_mapping (mapping) && key->name; key++) {
    YamlNode *node = yaml_get (reader, mapping, key->name);

    if (node && mode == SCHEMA_PATCH && yaml_is_null (node)) {
      set_default (key, object);
    } else if (node && !read_key (key, object, reader, node, error)) {
      yaml_set_wrong (reader, node);
      ok = FALSE;
    }
  }
  return ok;
}

// ---- secrets in files and environment variables ----

static gchar *
read_password_file (const gchar *file, gchar **password)
{
  GError *error = NULL;
  gchar *text = NULL, *wrong;

  if (g_file_get_contents (file, &text, NULL, &error)) {
    g_strchomp (text);
    *password = text;
    return NULL;
  }
  wrong = g_strdup (error->message);
  g_error_free (error);
  return wrong;
}

static gchar *
read_password_env (const gchar *variable, gchar **password)
{
  const gchar *value = g_getenv (variable);

  if (!value)
    return g_strdup_printf ("the environment variable %s is not set", variable);
  *password = g_strdup (value);
  return NULL;
}

static void
reset_secret (const SchemaKey *key, gpointer object)
{
  g_clear_pointer ((gchar **) at (key, object), g_free);
}

static gboolean
read_secret (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const gchar *text = yaml_text (reader, node);
  gchar **password = (gchar **) at (key, object);
  gboolean in_file = g_str_has_suffix (key->name, "-file");
  gchar *wrong;

  g_clear_pointer (password, g_free);
  if (!text)
    return schema_fail (reader, node, key, error, "expected a single value");
  wrong = in_file ? read_password_file (text, password) : read_password_env (text, password);
  if (wrong)
    return yaml_fail_take (
        reader, node, key->name, in_file ? CONFIG_ERROR_ABSENT : CONFIG_ERROR_VALUE, error, wrong);
  return TRUE;
}

const SchemaValue schema_secret_elsewhere = { .read = read_secret, .reset = reset_secret };

// ---- to JSON ----

static void
write_duration (JsonBuilder *builder, guint ms)
{
  gchar *text = ms % 1000 ? g_strdup_printf ("%ums", ms) : g_strdup_printf ("%us", ms / 1000);

  json_builder_add_string_value (builder, text);
  g_free (text);
}

void
schema_write (const SchemaKey *keys, gconstpointer object, JsonBuilder *builder)
{
  for (const SchemaKey *key = keys; key->name; key++) {
    gconstpointer value = at (key, object);

    if (key->type == SCHEMA_SECRET || (key->type == SCHEMA_OTHER && !key->value->write)
        || (key->type == SCHEMA_TEXT && !*(gchar **) value))
      continue;
    if (key->type == SCHEMA_OTHER) {
      key->value->write (object, builder);
      continue;
    }
    json_builder_set_member_name (builder, key->name);
    if (key->type == SCHEMA_TEXT || key->type == SCHEMA_WORD)
      json_builder_add_string_value (builder, *(gchar **) value);
    else if (key->type == SCHEMA_INDEX)
      json_builder_add_string_value (builder, key->words[*(guint *) value]);
    else if (key->type == SCHEMA_NUMBER)
      json_builder_add_int_value (builder, *(guint *) value);
    else if (key->type == SCHEMA_DURATION)
      write_duration (builder, *(guint *) value);
    else
      json_builder_add_boolean_value (builder, *(gboolean *) value);
  }
}

// ---- documentation ----

gchar *
schema_dup_form (const SchemaKey *key)
{
  gchar *words, *range, *form;

  switch (key->type) {
    case SCHEMA_WORD:
    case SCHEMA_INDEX:
      words = g_strjoinv ("`, `", (gchar **) key->words);
      form = g_strdup_printf ("`%s`", words);
      g_free (words);
      return form;
    case SCHEMA_NUMBER:
      return g_strdup_printf ("number from %u to %u", key->min, key->max);
    case SCHEMA_DURATION:
      range = dup_time_range (key);
      form = g_strdup_printf ("time %s", range);
      g_free (range);
      return form;
    case SCHEMA_FLAG:
      return g_strdup ("`yes`, `no`");
    default:
      return g_strdup (key->form);
  }
}

gchar *
schema_to_markdown (const SchemaKey *keys, const gchar *prefix, const gchar *const *effects)
{
  GString *out = g_string_new ("| key | value | default | change | meaning |\n"
                               "|---|---|---|---|---|\n");

  for (const SchemaKey *key = keys; key->name; key++) {
    gchar *form = schema_dup_form (key);
    const gchar *quote = key->preset ? "`" : "";

    g_string_append_printf (out, "| `%s%s` | %s | %s%s%s | %s | %s |\n", prefix, key->name, form,
        quote, key->preset ? key->preset : "", quote, effects[key->effect], key->help);
    g_free (form);
  }
  return g_string_free (out, FALSE);
}

// Appends a text without its Markdown quotes, wrapped at HELP_WIDTH and indented to HELP_COLUMN.
// The current line of `out` is HELP_COLUMN long.
static void
append_wrapped (GString *out, const gchar *text)
{
  gchar **words = g_strsplit (text, " ", 0);
  gsize column = HELP_COLUMN;

  for (gchar **word = words; *word; word++) {
    gchar **parts = g_strsplit (*word, "`", 0);
    gchar *plain = g_strjoinv ("", parts);

    if (column > HELP_COLUMN && column + 1 + strlen (plain) > HELP_WIDTH) {
      g_string_append_printf (out, "\n%*s", HELP_COLUMN, "");
      column = HELP_COLUMN;
    }
    g_string_append_printf (out, "%s%s", column > HELP_COLUMN ? " " : "", plain);
    column += (column > HELP_COLUMN) + strlen (plain);
    g_strfreev (parts);
    g_free (plain);
  }
  g_strfreev (words);
}

void
schema_append_help (GString *out, const gchar *subject, const gchar *help)
{
  gsize len = strlen (subject);

  g_string_append (out, subject);
  if (len >= HELP_COLUMN) {
    g_string_append_c (out, '\n');
    len = 0;
  }
  g_string_append_printf (out, "%*s", (int) (HELP_COLUMN - len), "");
  append_wrapped (out, help);
  g_string_append_c (out, '\n');
}

gchar *
schema_to_help (const SchemaKey *keys, const gchar *indent)
{
  GString *out = g_string_new (NULL);

  for (const SchemaKey *key = keys; key->name; key++) {
    gchar *subject =
        g_strdup_printf ("%s%s: %s", indent, key->name, key->preset ? key->preset : key->form);

    schema_append_help (out, subject, key->help);
    g_free (subject);
  }
  return g_string_free (out, FALSE);
}
