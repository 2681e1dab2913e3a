// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Tables of configuration keys. A row names a key, the place of its value in a struct, the allowed
// values, the default, the meaning, and the effect of a change. The tables drive the checks, the
// defaults, --help, the documentation and the JSON of the API.

#include <json-glib/json-glib.h>

#include "base/features.h"
#include "text/yaml_reader.h"

typedef enum {
  SCHEMA_TEXT,     // gchar *
  SCHEMA_SECRET,   // gchar *; never written to JSON
  SCHEMA_PATH,     // SchemaPath
  SCHEMA_WORD,     // const gchar *, one of `words`
  SCHEMA_INDEX,    // guint, the index of one of `words`
  SCHEMA_NUMBER,   // guint, from `min` to `max`
  SCHEMA_DURATION, // guint, in ms, from `min` to a day or to `max`
  SCHEMA_SIZE,     // SchemaSize, from `min`, and to `max` unless that is 0
  SCHEMA_RATE,     // guint64, bits a second, likewise
  SCHEMA_FLAG,     // gboolean
  SCHEMA_LIST,   // GStrv, up to `max` texts unless that is 0; NULL only as the default, if `preset`
                 // is not NULL
  SCHEMA_OBJECT, // the values of the rows of `object`, whose offsets begin at `offset`
  SCHEMA_OTHER,  // handled by the functions of `value`
} SchemaType;

typedef struct {
  gchar *path;
  gboolean is_limited; // an API client has named it: below folders of base/file_roots.h
} SchemaPath;

typedef struct {
  guint64 bytes;
  gboolean is_given; // it is not the default
} SchemaSize;

typedef struct _SchemaKey SchemaKey;

// A text that a check of its own gets.
typedef struct {
  const gchar *text; // as written
  gboolean from_api;
  gint code;    // of the error: CONFIG_ERROR_VALUE, unless the check sets another one
  gchar *value; // what the check stores in place of the text (transfer full), or NULL
} SchemaText;

// Returns NULL, or an error message that the caller owns.
typedef gchar *(*SchemaCheck) (SchemaText *it);

// The rows of a SCHEMA_OBJECT. All but `keys` and `expected` may be NULL.
typedef struct {
  const SchemaKey *keys;
  const gchar *expected; // the error message for what is no mapping
  // Checks the object after all its values were read without a mistake.
  gboolean (*check) (
      const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *mapping, GError **error);
  // Reports whether JSON has the object. NULL: it has it if a value without a default is set.
  gboolean (*is_shown) (gconstpointer object);
  void (*write) (gconstpointer object, JsonBuilder *builder); // its members; NULL: those of `keys`
} SchemaObject;

// The functions of a SCHEMA_OTHER value. All but `read` may be NULL: if another key owns the value,
// or if the value owns no memory.
typedef struct {
  gboolean (*read) (
      const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error);
  void (*reset) (const SchemaKey *key, gpointer object); // sets the default; handles zeroed memory
  gboolean (*equal) (const SchemaKey *key, gconstpointer a, gconstpointer b);
  void (*write) (const SchemaKey *key, gconstpointer object, JsonBuilder *builder);
  void (*copy) (const SchemaKey *key, gpointer to, gconstpointer from); // `to` holds the default
  void (*clear) (const SchemaKey *key, gpointer object);
  gboolean is_text; // a file writes it as one text
} SchemaValue;

struct _SchemaKey {
  const gchar *name; // NULL ends a table
  SchemaType type;
  gsize offset;        // of the value in the struct
  const gchar *preset; // the default, as written in a file; NULL: none
  guint64 min, max;
  const gchar *const *words;
  const gchar *form;     // the value in the documentation, if the type does not say it
  const gchar *help;     // in Markdown
  const gchar *was;      // a former name, for an error message; or NULL
  const gchar *missing;  // the error message if the key is not set, or NULL
  const gchar *expected; // of a list: the error message for anything else; NULL: from `form`
  const gchar *zero;     // the word for 0 of a time, or NULL
  guint effect;          // of a change on running mounts; the table's owner numbers the effects.
                         // An object has the strongest of its rows that differ
  gboolean file_only;    // refused from the API
  gboolean unshown;      // JSON does not have it
  Feature feature;       // if the build does not have it, the key is refused; of `words`, the last
  SchemaCheck check;     // of a text, a path, or each item of a list; or NULL
  gchar *(*show) (const gchar *text); // what JSON has of these (transfer full); NULL: all
  const SchemaObject *object;         // of SCHEMA_OBJECT; of others: documents what `value` reads
  const SchemaValue *value;           // of SCHEMA_OTHER
};

// Reports whether a file writes the value as one text, no list or mapping.
gboolean schema_is_text (const SchemaKey *key);

// Sets each key to its default. `object` must be zeroed.
void schema_init (const SchemaKey *keys, gpointer object);

// Frees the values of all keys.
void schema_clear (const SchemaKey *keys, gpointer object);

// Copies all values. `to` must hold the defaults.
void schema_copy (const SchemaKey *keys, gpointer to, gconstpointer from);

// Report whether two objects have the same values for all keys, and for one.
gboolean schema_equal (const SchemaKey *keys, gconstpointer a, gconstpointer b);
gboolean schema_key_equal (const SchemaKey *key, gconstpointer a, gconstpointer b);

// Returns the effect of the change of one key, or 0 if its value stays the same.
guint schema_key_effect (const SchemaKey *key, gconstpointer from, gconstpointer to);

typedef enum {
  SCHEMA_WHOLE, // of a file: missing keys keep the default
  SCHEMA_BODY,  // from an API client: the same
  SCHEMA_PATCH, // from an API client: missing keys keep their value; null restores the default
} SchemaMode;

// Reads the values of a mapping into `object`, in the order of the table. Continues after a
// mistake, so that `error` has all mistakes. `name` is the mapping's name for errors, or NULL for a
// whole document. Returns FALSE if there was a mistake.
gboolean schema_read (const SchemaKey *keys, gpointer object, YamlReader *reader,
    const YamlNode *mapping, const gchar *name, SchemaMode mode, GError **error);

// Adds the values to the JSON object that `builder` is building. Leaves out secrets.
void schema_write (const SchemaKey *keys, gconstpointer object, JsonBuilder *builder);

// Returns the allowed values of a key as Markdown. The caller owns the result.
gchar *schema_dup_form (const SchemaKey *key);

// Returns the keys as a table in Markdown. Puts `prefix` before each name. `effects` holds the
// words for the effects, by number. The caller owns the result.
gchar *schema_to_markdown (const SchemaKey *keys, const gchar *prefix, const gchar *const *effects);

// Calls `each` for the keys, and then for those of each row's `object`, with the prefix of their
// names, such as "tls." or "users.permissions.".
void schema_each_table (const SchemaKey *keys, const gchar *prefix,
    void (*each) (const SchemaKey *keys, const gchar *prefix, gpointer data), gpointer data);

// Returns the keys as lines "key: default  help" for --help. The caller owns the result.
gchar *schema_to_help (const SchemaKey *keys, const gchar *indent);

// Appends `subject` for --help, and `help` in a column of its own, wrapped and without its Markdown
// quotes.
void schema_append_help (GString *out, const gchar *subject, const gchar *help);

// Parse a time like "10s", "500ms", "2m" or "1h" into `*ms`, rounded or exact. Return FALSE for any
// other text, and for more than a day.
gboolean schema_parse_duration (const gchar *text, guint *ms);
gboolean schema_parse_time (const gchar *text, gdouble *ms);

// Parses a whole number of bytes with an optional K, M, G or T (powers of 1024).
gboolean schema_parse_bytes (const gchar *text, guint64 *bytes);

// Parses a whole number of bits a second with an optional k, M or G (powers of 1000).
gboolean schema_parse_rate (const gchar *text, guint64 *rate);

// Return a time or a rate as it is written in a file. The caller owns the result.
gchar *schema_dup_duration (guint ms);
gchar *schema_dup_rate (guint64 rate);

// The value of a key that names a file (its name ends in "-file") or an environment variable
// ("-env"): stores the content of the file or variable at the key's offset.
extern const SchemaValue schema_secret_elsewhere;

// Sets the error for a wrong value of `key`, for use in SchemaValue.read(). Returns FALSE.
gboolean schema_fail (
    YamlReader *reader, YamlNode *node, const SchemaKey *key, GError **error, const gchar *text);
