// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text/schema_private.h"

#include "base/file_roots.h"
#include "text/config_error.h"

#include <string.h>

static inline gpointer
at (const SchemaKey *key, gconstpointer object)
{
  return (guint8 *) object + key->offset;
}

// Reports whether the value begins with a text that it owns.
static gboolean
is_text (const SchemaKey *key)
{
  return key->type == SCHEMA_TEXT || key->type == SCHEMA_SECRET || key->type == SCHEMA_PATH;
}

gboolean
schema_is_text (const SchemaKey *key)
{
  if (key->type == SCHEMA_OTHER)
    return key->value->is_text;
  return key->type != SCHEMA_OBJECT && key->type != SCHEMA_LIST;
}

static gchar *
get_text (const SchemaKey *key, gconstpointer object)
{
  return *(gchar **) at (key, object);
}

// Returns the bytes of a value that owns nothing.
static gsize
get_size (const SchemaKey *key)
{
  return key->type == SCHEMA_WORD   ? sizeof (gchar *)
         : key->type == SCHEMA_RATE ? sizeof (guint64)
         : key->type == SCHEMA_SIZE ? sizeof (SchemaSize)
                                    : sizeof (guint);
}

// ---- one text ----
// These functions return NULL, or an error message that the caller owns.

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
check_text (const SchemaKey *key, SchemaText *it)
{
  gchar *wrong = key->type == SCHEMA_PATH && it->from_api ? file_roots_check (it->text) : NULL;

  return wrong || !key->check ? wrong : key->check (it);
}

static gchar *
read_number (const SchemaKey *key, gpointer value, const gchar *text)
{
  guint64 number;

  if (!schema_parse_number (key, text, &number))
    return schema_dup_wrong_number (key, text);
  if (key->type == SCHEMA_SIZE)
    *(SchemaSize *) value = (SchemaSize) { number, TRUE };
  else if (key->type == SCHEMA_RATE)
    *(guint64 *) value = number;
  else
    *(guint *) value = (guint) number;
  return NULL;
}

static gchar *
read_text (const SchemaKey *key, gpointer object, SchemaText *it)
{
  gpointer value = at (key, object);
  gchar *wrong = check_text (key, it);
  guint index;

  if (wrong)
    return wrong;
  switch (key->type) {
    case SCHEMA_PATH:
      ((SchemaPath *) value)->is_limited = it->from_api;
      G_GNUC_FALLTHROUGH;
    case SCHEMA_TEXT:
    case SCHEMA_SECRET:
      g_free (*(gchar **) value);
      *(gchar **) value = it->value ? it->value : g_strdup (it->text);
      return NULL;
    case SCHEMA_WORD:
    case SCHEMA_INDEX:
      wrong = read_word (key, it->text, &index);
      if (!wrong && key->type == SCHEMA_WORD)
        *(const gchar **) value = key->words[index];
      else if (!wrong)
        *(guint *) value = index;
      return wrong;
    case SCHEMA_FLAG:
      return read_flag (it->text, value);
    default:
      return read_number (key, value, it->text);
  }
}

// ---- values ----

static void
clear_value (const SchemaKey *key, gpointer object)
{
  if (is_text (key))
    g_clear_pointer ((gchar **) at (key, object), g_free);
  else if (key->type == SCHEMA_LIST)
    g_clear_pointer ((GStrv *) at (key, object), g_strfreev);
  else if (key->type == SCHEMA_OBJECT)
    schema_clear (key->object->keys, at (key, object));
  else if (key->type == SCHEMA_OTHER && key->value->clear)
    key->value->clear (key, object);
}

static void
set_default (const SchemaKey *key, gpointer object)
{
  SchemaText preset = { .text = key->preset };

  if (key->type == SCHEMA_OTHER) {
    if (key->value->reset)
      key->value->reset (key, object);
    return;
  }
  clear_value (key, object);
  if (key->type == SCHEMA_OBJECT) {
    schema_init (key->object->keys, at (key, object));
    return;
  }
  if (key->type == SCHEMA_LIST) {
    *(GStrv *) at (key, object) = key->preset ? NULL : g_new0 (gchar *, 1);
    return;
  }
  if (key->type == SCHEMA_PATH)
    ((SchemaPath *) at (key, object))->is_limited = FALSE;
  if (!is_text (key))
    memset (at (key, object), 0, get_size (key));
  if (key->preset)
    g_free (read_text (key, object, &preset));
  if (key->type == SCHEMA_SIZE)
    ((SchemaSize *) at (key, object))->is_given = FALSE;
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
  for (const SchemaKey *key = keys; key->name; key++)
    clear_value (key, object);
}

void
schema_copy (const SchemaKey *keys, gpointer to, gconstpointer from)
{
  for (const SchemaKey *key = keys; key->name; key++) {
    gpointer value = at (key, to);

    if (key->type == SCHEMA_OTHER) {
      if (key->value->copy)
        key->value->copy (key, to, from);
    } else if (key->type == SCHEMA_OBJECT) {
      schema_copy (key->object->keys, value, at (key, from));
    } else if (is_text (key)) {
      g_free (*(gchar **) value);
      *(gchar **) value = g_strdup (get_text (key, from));
      if (key->type == SCHEMA_PATH)
        ((SchemaPath *) value)->is_limited = ((SchemaPath *) at (key, from))->is_limited;
    } else if (key->type == SCHEMA_LIST) {
      g_strfreev (*(GStrv *) value);
      *(GStrv *) value = g_strdupv (*(GStrv *) at (key, from));
    } else {
      memcpy (value, at (key, from), get_size (key));
    }
  }
}

gboolean
schema_equal (const SchemaKey *keys, gconstpointer a, gconstpointer b)
{
  for (const SchemaKey *key = keys; key->name; key++) {
    if (!schema_key_equal (key, a, b))
      return FALSE;
  }
  return TRUE;
}

static gboolean
equal_lists (const gchar *const *a, const gchar *const *b)
{
  return a && b ? g_strv_equal (a, b) : a == b;
}

gboolean
schema_key_equal (const SchemaKey *key, gconstpointer a, gconstpointer b)
{
  if (key->type == SCHEMA_OTHER)
    return !key->value->equal || key->value->equal (key, a, b);
  if (key->type == SCHEMA_OBJECT)
    return schema_equal (key->object->keys, at (key, a), at (key, b));
  if (key->type == SCHEMA_LIST)
    return equal_lists (*(const gchar *const **) at (key, a), *(const gchar *const **) at (key, b));
  if (is_text (key) || key->type == SCHEMA_WORD)
    return !g_strcmp0 (get_text (key, a), get_text (key, b));
  if (key->type == SCHEMA_SIZE) // not its padding
    return ((SchemaSize *) at (key, a))->bytes == ((SchemaSize *) at (key, b))->bytes
           && ((SchemaSize *) at (key, a))->is_given == ((SchemaSize *) at (key, b))->is_given;
  return memcmp (at (key, a), at (key, b), get_size (key)) == 0;
}

guint
schema_key_effect (const SchemaKey *key, gconstpointer from, gconstpointer to)
{
  guint most = 0;

  if (schema_key_equal (key, from, to))
    return 0;
  if (key->type != SCHEMA_OBJECT)
    return key->effect;
  for (const SchemaKey *row = key->object->keys; row->name; row++)
    most = MAX (most, schema_key_effect (row, at (key, from), at (key, to)));
  return most;
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
read_list (const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node,
    SchemaMode mode, GError **error)
{
  g_autoptr (GStrvBuilder) texts = g_strv_builder_new ();
  GStrv *list = at (key, object);
  gboolean ok = yaml_is_sequence (node);
  YamlNode *item;

  if (!ok)
    yaml_fail_take (reader, node, key->name, CONFIG_ERROR_VALUE, error,
        key->expected ? g_strdup (key->expected)
                      : g_strdup_printf ("expected a list: %s", key->form));
  for (guint i = 0; yaml_is_sequence (node) && (item = yaml_item (reader, node, i)); i++) {
    SchemaText it = { yaml_text (reader, item), mode != SCHEMA_WHOLE, CONFIG_ERROR_VALUE, NULL };
    gchar *wrong = !it.text ? g_strdup (key->expected ? key->expected : "expected a single value")
                   : key->max && i >= key->max
                       ? g_strdup_printf ("too many: at most %u are allowed", (guint) key->max)
                       : check_text (key, &it);

    if (wrong)
      ok = yaml_fail_take (reader, item, key->name, it.code, error, wrong);
    else
      g_strv_builder_add (texts, it.text);
    if (key->max && i >= key->max)
      break;
  }
  g_strfreev (*list);
  *list = g_strv_builder_end (texts);
  return ok;
}

static gboolean
read_object (const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node,
    SchemaMode mode, GError **error)
{
  const SchemaObject *type = key->object;

  set_default (key, object);
  if (!yaml_expect_mapping (reader, node, key->name, type->expected, error)
      || !schema_read (type->keys, at (key, object), reader, node, key->name,
          mode == SCHEMA_PATCH ? SCHEMA_BODY : mode, error))
    return FALSE;
  return !type->check || type->check (key, at (key, object), reader, node, error);
}

static gboolean
fail_from_api (const SchemaKey *key, YamlReader *reader, YamlNode *node, GError **error)
{
  gboolean elsewhere = key->type == SCHEMA_OTHER && key->value == &schema_secret_elsewhere;
  gchar *wrong = g_strdup_printf ("this key is allowed in the configuration file only%s%.*s",
      elsewhere ? "; use " : "", elsewhere ? (gint) (strrchr (key->name, '-') - key->name) : 0,
      key->name);

  return yaml_fail_take (reader, node, key->name, CONFIG_ERROR_VALUE, error, wrong);
}

static gboolean
read_key (const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node,
    SchemaMode mode, GError **error)
{
  const gchar *lack = feature_get_lack (key->feature);
  SchemaText it = { yaml_text (reader, node), mode != SCHEMA_WHOLE, CONFIG_ERROR_VALUE, NULL };
  gchar *wrong;

  if (mode != SCHEMA_WHOLE && key->file_only)
    return fail_from_api (key, reader, node, error);
  if (lack && insists (key, it.text))
    return schema_fail (reader, node, key, error, lack);
  if (yaml_is_missing (node))
    return schema_fail (reader, node, key, error,
        "the value is missing; a text that begins with #, & or ! needs quotes");
  if (key->type == SCHEMA_OTHER)
    return key->value->read (key, object, reader, node, error);
  if (key->type == SCHEMA_OBJECT)
    return read_object (key, object, reader, node, mode, error);
  if (key->type == SCHEMA_LIST)
    return read_list (key, object, reader, node, mode, error);
  if (!it.text)
    return schema_fail (reader, node, key, error, "expected a single value");
  wrong = read_text (key, object, &it);
  return !wrong || yaml_fail_take (reader, node, key->name, it.code, error, wrong);
}

static GStrv
dup_names (const SchemaKey *keys)
{
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();

  for (const SchemaKey *key = keys; key->name; key++)
    g_strv_builder_add (names, key->name);
  return g_strv_builder_end (names);
}

static GStrv
dup_renamed (const SchemaKey *keys)
{
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();

  for (const SchemaKey *key = keys; key->name; key++) {
    if (key->was)
      g_strv_builder_add_many (names, key->was, key->name, NULL);
  }
  return g_strv_builder_end (names);
}

gboolean
schema_read (const SchemaKey *keys, gpointer object, YamlReader *reader, const YamlNode *mapping,
    const gchar *name, SchemaMode mode, GError **error)
{
  g_auto (GStrv) names = dup_names (keys), renamed = dup_renamed (keys);
  gboolean known = yaml_check_keys (
      reader, mapping, name, (const gchar *const *) names, (const gchar *const *) renamed, error);
  gboolean ok = known;

  if (!known)
    yaml_set_wrong (reader, mapping);
  for (const SchemaKey *key = keys; yaml_is_mapping (mapping) && key->name; key++) {
    YamlNode *node = yaml_get (reader, mapping, key->name);

    if (node && mode == SCHEMA_PATCH && yaml_is_null (node)) {
      set_default (key, object);
    } else if (node && !read_key (key, object, reader, node, mode, error)) {
      yaml_set_wrong (reader, node);
      ok = FALSE;
    } else if (!node && key->missing && known
               && mode != SCHEMA_PATCH) { // otherwise perhaps misspelled
      ok = yaml_fail (reader, mapping, name, CONFIG_ERROR_KEY, error, key->missing);
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

const SchemaValue schema_secret_elsewhere = {
  .read = read_secret, .reset = reset_secret, .is_text = TRUE
};

// ---- to JSON ----

static void
add_text (const SchemaKey *key, JsonBuilder *builder, const gchar *text)
{
  g_autofree gchar *shown = key->show ? key->show (text) : g_strdup (text);

  json_builder_add_string_value (builder, shown);
}

static void
add_list (const SchemaKey *key, JsonBuilder *builder, GStrv list)
{
  json_builder_begin_array (builder);
  for (; *list; list++)
    add_text (key, builder, *list);
  json_builder_end_array (builder);
}

static void
add_number (const SchemaKey *key, JsonBuilder *builder, gconstpointer value)
{
  g_autofree gchar *text = NULL;

  if (key->type == SCHEMA_NUMBER) {
    json_builder_add_int_value (builder, *(guint *) value);
    return;
  }
  text = key->type == SCHEMA_RATE ? schema_dup_rate (*(guint64 *) value)
         : key->type == SCHEMA_SIZE
             ? g_strdup_printf ("%" G_GUINT64_FORMAT "K", ((SchemaSize *) value)->bytes >> 10)
         : key->zero && *(guint *) value == 0 ? g_strdup (key->zero)
                                              : schema_dup_duration (*(guint *) value);
  json_builder_add_string_value (builder, text);
}

// Reports whether a value differs from one that nobody has set. That of a key with a default does
// not, unless it shows that it was given.
static gboolean
is_set (const SchemaKey *key, gconstpointer object)
{
  gconstpointer value = at (key, object);

  if (is_text (key))
    return *(gchar **) value != NULL;
  if (key->type == SCHEMA_SIZE)
    return ((SchemaSize *) value)->is_given;
  if (key->preset || key->type == SCHEMA_OTHER)
    return FALSE;
  return key->type == SCHEMA_RATE ? *(guint64 *) value != 0
                                  : key->type == SCHEMA_DURATION && *(guint *) value != 0;
}

static void
write_object (const SchemaKey *key, gconstpointer object, JsonBuilder *builder)
{
  const SchemaKey *rows = key->object->keys;
  gboolean shown = FALSE;

  for (const SchemaKey *row = rows; row->name; row++)
    shown |= is_set (row, object);
  if (key->object->is_shown ? !key->object->is_shown (object) : !shown)
    return;
  json_builder_set_member_name (builder, key->name);
  json_builder_begin_object (builder);
  if (key->object->write)
    key->object->write (object, builder);
  else
    schema_write (rows, object, builder);
  json_builder_end_object (builder);
}

static void
write_key (const SchemaKey *key, gconstpointer object, JsonBuilder *builder)
{
  gconstpointer value = at (key, object);

  if (key->unshown)
    return;
  if (key->type == SCHEMA_OTHER && key->value->write)
    key->value->write (key, object, builder);
  if (key->type == SCHEMA_OBJECT)
    write_object (key, value, builder);
  if (key->type == SCHEMA_SECRET || key->type == SCHEMA_OTHER || key->type == SCHEMA_OBJECT
      || (key->type == SCHEMA_LIST ? !*(GStrv *) value
                                   : !is_set (key, object) && (!key->preset || is_text (key))))
    return;
  json_builder_set_member_name (builder, key->name);
  if (is_text (key))
    add_text (key, builder, *(gchar **) value);
  else if (key->type == SCHEMA_LIST)
    add_list (key, builder, *(GStrv *) value);
  else if (key->type == SCHEMA_WORD)
    json_builder_add_string_value (builder, *(gchar **) value);
  else if (key->type == SCHEMA_INDEX)
    json_builder_add_string_value (builder, key->words[*(guint *) value]);
  else if (key->type == SCHEMA_FLAG)
    json_builder_add_boolean_value (builder, *(gboolean *) value);
  else
    add_number (key, builder, value);
}

void
schema_write (const SchemaKey *keys, gconstpointer object, JsonBuilder *builder)
{
  for (const SchemaKey *key = keys; key->name; key++)
    write_key (key, object, builder);
}
