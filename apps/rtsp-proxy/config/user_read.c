// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/user_read.h"

#include "text/config_error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_MAX_LEN 64
#define PASSWORD_MAX_LEN 1024
#define MD5_LEN 32
#define SHA256_LEN 64

// Bounds of argon2id, as a check of one password costs this much.
#define ARGON2_KIB_MAX (256 * 1024)
#define ARGON2_PASSES_MAX 16
#define ARGON2_LANES_MAX 8

// ---- secrets ----
// These functions return NULL, or an error message that the caller owns.

static gboolean
is_hex (const gchar *text, gsize len)
{
  return strlen (text) == len && strspn (text, "0123456789abcdefABCDEF") == len;
}

static gchar *
read_argon2 (User *self, const gchar *text)
{
  unsigned kib, passes, lanes;
  int end = 0;

  if (sscanf (text, "$argon2id$v=19$m=%u,t=%u,p=%u$%n", &kib, &passes, &lanes, &end) != 3 || !end
      || strspn (text + end, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/$")
             != strlen (text + end)
      || !strchr (text + end, '$'))
    return g_strdup ("not a hash of rtsp-proxy hash-password");
  if (kib < 8 || kib > ARGON2_KIB_MAX || passes < 1 || passes > ARGON2_PASSES_MAX || lanes < 1
      || lanes > ARGON2_LANES_MAX)
    return g_strdup_printf ("this hash costs too much to check: at most m=%u, t=%u and p=%u are "
                            "allowed",
        ARGON2_KIB_MAX, ARGON2_PASSES_MAX, ARGON2_LANES_MAX);
  self->argon2 = g_strdup (text);
  self->kib = kib;
  self->passes = passes;
  self->lanes = lanes;
  return NULL;
}

static gchar *
read_hash_text (User *self, const gchar *text)
{
  if (g_str_has_prefix (text, "$argon2"))
    return read_argon2 (self, text);
  if (!g_str_has_prefix (text, "sha256:") || !is_hex (text + 7, SHA256_LEN))
    return g_strdup ("expected $argon2id$... or sha256:HEX; rtsp-proxy hash-password makes one");
  self->sha256 = g_ascii_strdown (text + 7, -1);
  return NULL;
}

static gchar *
read_digest_text (User *self, const gchar *text)
{
  gboolean is_md5 = g_str_has_prefix (text, "MD5:") && is_hex (text + 4, MD5_LEN);
  gboolean is_sha256 = g_str_has_prefix (text, "SHA-256:") && is_hex (text + 8, SHA256_LEN);
  gchar **place = is_md5 ? &self->md5_digest : &self->sha2_digest;

  if (!is_md5 && !is_sha256)
    return g_strdup ("expected MD5:HEX or SHA-256:HEX; rtsp-proxy hash-password --user NAME makes "
                     "them");
  if (*place)
    return g_strdup ("the same algorithm appears twice");
  *place = g_ascii_strdown (strchr (text, ':') + 1, -1);
  return NULL;
}

gchar *
user_check_secret_file (const gchar *file)
{
  struct stat st;

  if (stat (file, &st) < 0 || access (file, R_OK) < 0)
    return g_strdup_printf ("cannot read %s: %s", file, g_strerror (errno));
  if (!S_ISREG (st.st_mode))
    return g_strdup_printf ("%s is not a file", file);
  if (st.st_mode & S_IROTH)
    return g_strdup_printf ("every user of this machine can read %s; run chmod o-rwx on it", file);
  return NULL;
}

// Keeps what checks a password instead of the password.
static void
take_password (User *self, gchar *password)
{
  g_autofree gchar *text = g_strdup_printf ("%s:" USERS_REALM ":%s", self->name, password);

  self->sha256 = g_compute_checksum_for_string (G_CHECKSUM_SHA256, password, -1);
  self->md5_digest = g_compute_checksum_for_string (G_CHECKSUM_MD5, text, -1);
  self->sha2_digest = g_compute_checksum_for_string (G_CHECKSUM_SHA256, text, -1);
  explicit_bzero (text, strlen (text));
  explicit_bzero (password, strlen (password));
  g_free (password);
}

static gchar *
read_password_from (User *self, const gchar *file)
{
  gchar *wrong = user_check_secret_file (file), *password = NULL;
  GError *error = NULL;
  gsize len = 0;

  if (wrong || !self->name) // a missing name is an error of its own
    return wrong;
  if (!g_file_get_contents (file, &password, &len, &error)) {
    wrong = g_strdup (error->message);
    g_error_free (error);
    return wrong;
  }
  password[strcspn (password, "\r\n")] = '\0';
  if (!*password || strlen (password) > PASSWORD_MAX_LEN) {
    wrong = g_strdup_printf (
        "the first line of %s must be a password of at most %u bytes", file, PASSWORD_MAX_LEN);
    explicit_bzero (password, len);
    g_free (password);
    return wrong;
  }
  take_password (self, password);
  return NULL;
}

// ---- keys of a permission ----

static gchar *
check_path (SchemaText *it)
{
  if (it->text[0] == '/' || it->text[0] == '*')
    return NULL;
  return g_strdup ("expected a path like /cam, or a pattern like /cam/*");
}

static const SchemaKey permission_table[] = {
  { "action", SCHEMA_INDEX, G_STRUCT_OFFSET (Permission, action), .words = access_action_words,
      .missing = "the action is missing; add action: read", .effect = 1,
      .help = "`read`: live streams; `playback`: stored titles, and the past of live streams; "
              "`publish`: streams that clients send, over RTSP, SRT or RTMP; `api`, `metrics`: the "
              "HTTP "
              "interface" },
  { "path", SCHEMA_TEXT, G_STRUCT_OFFSET (Permission, path), .form = "PATH", .check = check_path,
      .effect = 1,
      .help = "a mount, with everything below it, or a pattern in which `*` stands for any text; "
              "without this key: all paths" },
  { NULL },
};

static const SchemaObject permission_object = { .keys = permission_table };

static gboolean
read_permission (User *user, YamlReader *reader, YamlNode *node, GError **error)
{
  Permission *self = g_new0 (Permission, 1);
  YamlNode *path;

  g_ptr_array_add (user->permissions, self);
  if (!schema_read (permission_table, self, reader, node, "permissions", SCHEMA_WHOLE, error))
    return FALSE;
  path = yaml_get (reader, node, "path");
  if (path && (self->action == ACCESS_API || self->action == ACCESS_METRICS))
    return yaml_fail (
        reader, path, "path", CONFIG_ERROR_KEY, error, "the actions api and metrics have no path");
  if (self->path && strchr (self->path, '*'))
    self->pattern = g_pattern_spec_new (self->path);
  self->place = yaml_dup_place (reader, path ? path : node);
  return TRUE;
}

// ---- keys of a user ----

static gchar *
check_name (SchemaText *it)
{
  if (strlen (it->text) > NAME_MAX_LEN || !g_utf8_validate (it->text, -1, NULL))
    return g_strdup ("expected a name of at most 64 bytes");
  for (const gchar *c = it->text; *c; c++) {
    if ((guchar) *c <= 0x20 || *c == 0x7f || strchr (":\"\\,", *c))
      return g_strdup ("a name contains no blank, colon, comma, quote, backslash or control "
                       "character");
  }
  return NULL;
}

static gboolean
finish_value (
    const SchemaKey *key, YamlReader *reader, YamlNode *node, GError **error, gchar *wrong)
{
  return !wrong || yaml_fail_take (reader, node, key->name, CONFIG_ERROR_VALUE, error, wrong);
}

static gboolean
read_hash (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const gchar *text = yaml_text (reader, node);

  return finish_value (key, reader, node, error, read_hash_text (object, text ? text : ""));
}

static gboolean
read_digest (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const gchar *text = yaml_text (reader, node);
  gboolean ok = TRUE;
  YamlNode *item;

  if (!yaml_is_sequence (node))
    return finish_value (key, reader, node, error, read_digest_text (object, text ? text : ""));
  for (guint i = 0; (item = yaml_item (reader, node, i)); i++) {
    text = yaml_text (reader, item);
    ok = finish_value (key, reader, item, error, read_digest_text (object, text ? text : "")) && ok;
  }
  return ok;
}

static gboolean
read_password_file (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  const gchar *text = yaml_text (reader, node);

  if (!text)
    return schema_fail (reader, node, key, error, "expected a file");
  return finish_value (key, reader, node, error, read_password_from (object, text));
}

static gboolean
read_networks (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  User *self = object;
  gboolean ok = TRUE;
  YamlNode *item;

  if (!yaml_is_sequence (node) || !yaml_item (reader, node, 0))
    return schema_fail (
        reader, node, key, error, "expected a list of networks, such as [192.0.2.0/24]");
  for (guint i = 0; (item = yaml_item (reader, node, i)); i++) {
    const gchar *text = yaml_text (reader, item);
    GError *found = NULL;
    GInetAddressMask *mask = g_inet_address_mask_new_from_string (text ? text : "", &found);

    if (mask) {
      g_ptr_array_add (self->networks, mask);
      continue;
    }
    ok = yaml_fail_take (reader, item, key->name, CONFIG_ERROR_VALUE, error,
        g_strdup_printf ("\"%s\" is not a network; write it like 192.0.2.0/24", text ? text : ""));
    g_clear_error (&found);
  }
  return ok;
}

static gboolean
read_permissions (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  gboolean ok = TRUE;
  YamlNode *item;

  if (!yaml_is_sequence (node) || !yaml_item (reader, node, 0))
    return schema_fail (
        reader, node, key, error, "expected a list, such as [{action: read, path: /cam}]");
  for (guint i = 0; (item = yaml_item (reader, node, i)); i++)
    ok = read_permission (object, reader, item, error) && ok;
  return ok;
}

static const SchemaValue hash_value = { .read = read_hash };
static const SchemaValue digest_value = { .read = read_digest };
static const SchemaValue password_file_value = { .read = read_password_file };
static const SchemaValue networks_value = { .read = read_networks };
static const SchemaValue permissions_value = { .read = read_permissions };

static const SchemaKey user_table[] = {
  { "name", SCHEMA_TEXT, G_STRUCT_OFFSET (User, name), .form = "NAME", .check = check_name,
      .effect = 1, .missing = "the name is missing; add name: NAME",
      .help = "the name that the client sends; `any` is everybody, and has no secret" },
  { "password-file", SCHEMA_OTHER, .form = "FILE", .value = &password_file_value, .effect = 1,
      .help = "a file with the password in its first line, which other users of the machine cannot "
              "read; serves digest and basic authentication" },
  { "hash", SCHEMA_OTHER, .form = "`$argon2id$...` or `sha256:HEX`", .value = &hash_value,
      .effect = 1,
      .help = "a hash of the password, for basic authentication; `sha256` is for long random "
              "passwords only" },
  { "digest", SCHEMA_OTHER, .form = "list of `MD5:HEX`, `SHA-256:HEX`", .value = &digest_value,
      .effect = 1,
      .help = "secrets for RTSP digest authentication; `rtsp-proxy hash-password` makes them" },
  { "networks", SCHEMA_OTHER, .form = "list of networks", .value = &networks_value, .effect = 1,
      .help = "where the user may come from, such as `[192.0.2.0/24, 2001:db8::/32]`; without this "
              "key: from anywhere" },
  { "permissions", SCHEMA_OTHER, .form = "list of `{action: ..., path: ...}`",
      .value = &permissions_value, .object = &permission_object, .effect = 1,
      .help = "what the user may do" },
  { NULL },
};

const SchemaObject user_object = { .keys = user_table };

// ---- a user ----

// Checks the user after all its keys were read.
static gboolean
check (const User *self, YamlReader *reader, YamlNode *node, GError **error)
{
  if (self->is_any && user_has_secret (self))
    return yaml_fail (reader, node, "users", CONFIG_ERROR_VALUE, error,
        "the user any is everybody and has no secret; remove it, or choose another name");
  if (!self->is_any && !user_has_secret (self))
    return yaml_fail_take (reader, node, "users", CONFIG_ERROR_KEY, error,
        g_strdup_printf (
            "the user \"%s\" has no secret; add password-file, hash or digest", self->name));
  if (self->permissions->len == 0)
    return yaml_fail_take (reader, node, "users", CONFIG_ERROR_KEY, error,
        g_strdup_printf (
            "the user \"%s\" has no permissions; add permissions: [{action: read}]", self->name));
  return TRUE;
}

User *
user_read (YamlReader *reader, YamlNode *node, GError **error)
{
  User *self = g_new0 (User, 1);
  gboolean ok;

  self->networks = g_ptr_array_new_with_free_func (g_object_unref);
  self->permissions = g_ptr_array_new_with_free_func (permission_free);
  ok = schema_read (user_table, self, reader, node, "users", SCHEMA_WHOLE, error);
  self->is_any = !g_strcmp0 (self->name, "any");
  if (ok && yaml_get (reader, node, "hash") && yaml_get (reader, node, "password-file"))
    ok = yaml_fail (
        reader, node, "users", CONFIG_ERROR_KEY, error, "set hash or password-file, not both");
  if (ok && check (self, reader, node, error))
    return self;
  user_free (self);
  return NULL;
}
