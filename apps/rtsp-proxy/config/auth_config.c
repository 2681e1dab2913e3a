// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/auth_config.h"

#include "config/web_url.h"
#include "text/config_error.h"

#define EFFECT_RELOAD 1
#define TIMEOUT_MIN_MS 100

// ---- jwt ----

static gboolean
read_jwks (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  JwtConfig *self = object;
  GError *found = NULL;
  gchar *wrong = NULL;

  self->jwks = g_strdup (yaml_text (reader, node));
  if (!self->jwks)
    return schema_fail (reader, node, key, error, "expected a file or a URL");
  if (web_url_is (self->jwks)) {
    wrong = web_url_check (self->jwks);
  } else if (!(self->keys = jwks_load (self->jwks, &found))) {
    wrong = g_strdup (found->message);
    g_error_free (found);
  }
  return !wrong || yaml_fail_take (reader, node, key->name, CONFIG_ERROR_VALUE, error, wrong);
}

static const SchemaValue jwks_value = { .read = read_jwks };

#define AT(field) G_STRUCT_OFFSET (JwtConfig, field)

static const SchemaKey jwt_keys[] = {
  { "jwks", SCHEMA_OTHER, .form = "FILE or URL", .value = &jwks_value, .effect = EFFECT_RELOAD,
      .missing = "the keys that sign tokens are missing; add jwks: FILE or jwks: URL",
      .help = "the JSON Web Key Set with the public keys that sign tokens, required; it is read "
              "again every hour, and when a token names an unknown key" },
  { "issuer", SCHEMA_TEXT, AT (issuer), .form = "TEXT", .effect = EFFECT_RELOAD,
      .help = "the claim `iss` must be this; without this key: anything" },
  { "audience", SCHEMA_TEXT, AT (audience), .form = "TEXT", .effect = EFFECT_RELOAD,
      .help = "the claim `aud` must be this or contain it; without this key: anything" },
  { "permissions-claim", SCHEMA_TEXT, AT (claim), .preset = "permissions", .form = "NAME",
      .effect = EFFECT_RELOAD,
      .help = "the claim with the permissions, a list of `{action: ..., path: ...}`" },
  { NULL },
};

#undef AT

const SchemaObject jwt_config_object = { .keys = jwt_keys };

static void
jwt_config_clear (gpointer data)
{
  JwtConfig *self = data;

  g_free (self->jwks);
  g_clear_pointer (&self->keys, jwks_unref);
  g_free (self->issuer);
  g_free (self->audience);
  g_free (self->claim);
}

JwtConfig *
jwt_config_ref (JwtConfig *self)
{
  return g_atomic_rc_box_acquire (self);
}

void
jwt_config_unref (JwtConfig *self)
{
  g_atomic_rc_box_release_full (self, jwt_config_clear);
}

JwtConfig *
jwt_config_read (const gchar *name, YamlReader *reader, YamlNode *node, GError **error)
{
  JwtConfig *self = g_atomic_rc_box_new0 (JwtConfig);
  gboolean ok;

  schema_init (jwt_keys, self);
  ok = schema_read (jwt_keys, self, reader, node, name, SCHEMA_WHOLE, error);
  if (!ok)
    g_clear_pointer (&self, jwt_config_unref);
  return self;
}

// ---- external-auth ----

static gchar *
check_url (SchemaText *it)
{
  return web_url_check (it->text);
}

// Returns the action with this name, or -1.
static gint
find_action (const gchar *name)
{
  for (gint i = 0; name && access_action_words[i]; i++) {
    if (g_str_equal (name, access_action_words[i]))
      return i;
  }
  return -1;
}

static gboolean
read_exclude (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  ExternalAuthConfig *self = object;
  YamlNode *item;
  gint action;

  if (!yaml_is_sequence (node))
    return schema_fail (
        reader, node, key, error, "expected a list of actions, such as [api, metrics]");
  for (guint i = 0; (item = yaml_item (reader, node, i)); i++) {
    action = find_action (yaml_text (reader, item));
    if (action < 0)
      return schema_fail (reader, item, key, error,
          "not an action; expected read, publish, playback, api or metrics");
    self->excluded |= 1u << action;
  }
  return TRUE;
}

static const SchemaValue exclude_value = { .read = read_exclude };

static const SchemaKey external_auth_keys[] = {
  { "url", SCHEMA_TEXT, G_STRUCT_OFFSET (ExternalAuthConfig, url), .form = "URL",
      .check = check_url, .missing = "the server to ask is missing; add url: https://HOST/PATH",
      .effect = EFFECT_RELOAD,
      .help = "where the proxy asks about each client by POST, required; an answer of 200 to 299 "
              "lets the client in" },
  { "timeout", SCHEMA_DURATION, G_STRUCT_OFFSET (ExternalAuthConfig, timeout), .preset = "5s",
      .min = TIMEOUT_MIN_MS, .max = 60000, .effect = EFFECT_RELOAD,
      .help = "a client is refused if no answer arrives in this time" },
  { "exclude", SCHEMA_OTHER, .form = "list of actions", .value = &exclude_value,
      .effect = EFFECT_RELOAD,
      .help = "actions about which the proxy does not ask, such as `[api, metrics]`; `users` and "
              "`jwt` decide about them" },
  { NULL },
};

const SchemaObject external_auth_config_object = { .keys = external_auth_keys };

static void
external_auth_config_clear (gpointer data)
{
  g_free (((ExternalAuthConfig *) data)->url);
}

ExternalAuthConfig *
external_auth_config_ref (ExternalAuthConfig *self)
{
  return g_atomic_rc_box_acquire (self);
}

void
external_auth_config_unref (ExternalAuthConfig *self)
{
  g_atomic_rc_box_release_full (self, external_auth_config_clear);
}

ExternalAuthConfig *
external_auth_config_read (const gchar *name, YamlReader *reader, YamlNode *node, GError **error)
{
  ExternalAuthConfig *self = g_atomic_rc_box_new0 (ExternalAuthConfig);
  gboolean ok;

  schema_init (external_auth_keys, self);
  ok = schema_read (external_auth_keys, self, reader, node, name, SCHEMA_WHOLE, error);
  if (!ok)
    g_clear_pointer (&self, external_auth_config_unref);
  return self;
}
