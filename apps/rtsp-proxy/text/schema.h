// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A mapping of the configuration as a table: one line for each key says where its value is kept,
// what it may be, what it is by default, and what it means. From the table come the check, the
// defaults, the help, the documentation and the JSON of the API.

#include <json-glib/json-glib.h>

#include "text/yaml_reader.h"

typedef enum {
  SCHEMA_TEXT,     // gchar *
  SCHEMA_SECRET,   // gchar *; never given out
  SCHEMA_WORD,     // const gchar *, one of `words`
  SCHEMA_INDEX,    // guint, the index of one of `words`
  SCHEMA_NUMBER,   // guint, from `min` to `max`
  SCHEMA_DURATION, // guint, milliseconds, from `min` on
  SCHEMA_FLAG,     // gboolean
  SCHEMA_OTHER,    // what the functions of its SchemaValue make of it
} SchemaType;

typedef struct _SchemaKey SchemaKey;

// How a value of SCHEMA_OTHER is handled. All but `read` may be NULL: for a key that is another way
// to say what another key says, and for a value that lies in the object itself.
typedef struct {
  gboolean (*read) (
      const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error);
  void (*reset) (const SchemaKey *key, gpointer object); // to the default, at first from zeros
  gboolean (*equal) (gconstpointer a, gconstpointer b);
  void (*write) (gconstpointer object, JsonBuilder *builder); // NULL: not given out
  void (*copy) (gpointer to, gconstpointer from);             // `to` has its default
  void (*clear) (gpointer object);
  guint (*effect) (gconstpointer from, gconstpointer to); // of this change; NULL: the key's
} SchemaValue;

struct _SchemaKey {
  const gchar *name; // NULL ends a table
  SchemaType type;
  gsize offset;        // of the value in the object
  const gchar *preset; // the default, as it would be written; NULL: none
  guint min, max;
  const gchar *const *words;
  const gchar *form; // of the value of a SCHEMA_OTHER or SCHEMA_TEXT, for the documentation
  const gchar *help;
  const gchar *was;         // the name that it had before
  guint effect;             // what a change of it does to what runs; the table's owner numbers them
  gboolean file_only;       // what comes from elsewhere than the file may not say it
  const SchemaValue *value; // of a SCHEMA_OTHER
};

// Gives each key its default. The object is zeroed before.
void schema_init (const SchemaKey *keys, gpointer object);

// Frees the values.
void schema_clear (const SchemaKey *keys, gpointer object);

// Copies all values; `to` has its defaults.
void schema_copy (const SchemaKey *keys, gpointer to, gconstpointer from);

// Do they agree in this key?
gboolean schema_key_equal (const SchemaKey *key, gconstpointer a, gconstpointer b);

// What it does to what runs that a key has another value, as its row says; 0 if it has the same.
guint schema_key_effect (const SchemaKey *key, gconstpointer from, gconstpointer to);

typedef enum {
  SCHEMA_WHOLE, // a key that is not there keeps what it has: the default
  SCHEMA_PATCH, // the same over what was there before; null: the default again
} SchemaMode;

// Checks the keys of a mapping and reads the values, in the order of the table; what is wrong with
// one does not keep the others from being looked at. `name` names the mapping, or is NULL for a
// whole document.
gboolean schema_read (const SchemaKey *keys, gpointer object, YamlReader *reader,
    const YamlNode *mapping, const gchar *name, SchemaMode mode, GError **error);

// The values as members of the object that is being built.
void schema_write (const SchemaKey *keys, gconstpointer object, JsonBuilder *builder);

// What a value may be, as Markdown; to be freed.
gchar *schema_dup_form (const SchemaKey *key);

// A table in Markdown, and lines "key: default  help" for --help. `effects` are the words for the
// effects of its keys, by number.
gchar *schema_to_markdown (const SchemaKey *keys, const gchar *const *effects);
gchar *schema_to_help (const SchemaKey *keys, const gchar *indent);

// "10s", "500ms", "2m", "1h" in milliseconds; FALSE for anything else or above a day.
gboolean schema_parse_duration (const gchar *text, guint *ms);

// Of a key whose name ends in -file or -env: the text at its offset is what such a file or variable
// holds.
extern const SchemaValue schema_secret_elsewhere;

// For a SchemaValue's read(): the error that the key's value is wrong. Gives FALSE.
gboolean schema_fail (
    YamlReader *reader, YamlNode *node, const SchemaKey *key, GError **error, const gchar *text);
