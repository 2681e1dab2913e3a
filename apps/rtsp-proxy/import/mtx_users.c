// SPDX-License-Identifier: LGPL-2.1-or-later
#include "import/mtx_users.h"

#include <string.h>

#include "config/user.h"
#include "import/mtx_pattern.h"
#include "import/weir_text.h"

#define USERS_MAX 1000
#define ITEMS_MAX 200 // permissions of a user

static const gchar everybody[] =
    "users: [{name: any, permissions: [{action: publish}, {action: read}, {action: playback}]}]\n";

// ---- secrets ----

// Appends the secret of a user. Returns FALSE and adds a note if it has none that the proxy takes.
static gboolean
append_secret (
    MtxFile *self, const YamlNode *place, const gchar *name, const gchar *pass, GString *out)
{
  if (g_str_has_prefix (pass, "sha256:")) {
    gsize len = 0;
    g_autofree guchar *bytes = g_base64_decode (pass + strlen ("sha256:"), &len);
    g_autoptr (GString) hash = g_string_new ("sha256:");

    for (gsize i = 0; i < len; i++)
      g_string_append_printf (hash, "%02x", bytes[i]);
    weir_text_pair (out, "hash", hash->str);
    return TRUE;
  }
  if (g_str_has_prefix (pass, "argon2:")) {
    weir_text_pair (out, "hash", pass + strlen ("argon2:"));
    return TRUE;
  }
  if (!*pass) {
    mtx_note (self, place, name, "left out: a user of Weir other than any has a password");
    return FALSE;
  }
  for (guint i = 0; i < 2; i++) {
    g_autofree gchar *text = g_strdup_printf ("%s:" USERS_REALM ":%s", name, pass);
    g_autofree gchar *digest =
        g_compute_checksum_for_string (i ? G_CHECKSUM_MD5 : G_CHECKSUM_SHA256, text, -1);

    g_string_append_printf (
        out, "%s%s%s", i ? ", MD5:" : ", digest: [SHA-256:", digest, i ? "]" : "");
  }
  return TRUE;
}

// ---- permissions ----

// Appends a permission, or adds a note.
static void
append_permission (
    MtxFile *self, const YamlNode *node, const gchar *user, gboolean is_any, GString *out)
{
  const MtxScope scope = { node, NULL };
  const gchar *action = mtx_text (self, &scope, "action", "");
  const gchar *path = mtx_text (self, &scope, "path", "");
  const gboolean of_api = g_str_equal (action, "api") || g_str_equal (action, "metrics");
  g_autofree gchar *covered = NULL;

  if (!of_api && !g_str_equal (action, "read") && !g_str_equal (action, "publish")
      && !g_str_equal (action, "playback")) {
    mtx_note (self, node, user, "action %s: left out: Weir has no such action", action);
    return;
  }
  if (of_api && is_any) {
    mtx_note (self, node, user,
        "action %s: left out: without a password, the API serves this machine only", action);
    return;
  }
  if (*path && !of_api) {
    covered =
        path[0] == '~' ? mtx_pattern_dup_permission (path + 1) : g_strconcat ("/", path, NULL);
    if (!covered) {
      mtx_note (self, node, user, "path %s: left out: write it as a pattern with *", path);
      return;
    }
  }
  g_string_append_printf (out, "%s{action: %s", out->len ? ", " : "", action);
  if (covered) {
    g_string_append (out, ", path: ");
    weir_text_append (out, covered);
  }
  g_string_append_c (out, '}');
}

// Returns the permissions, which may be none. (transfer full)
static gchar *
dup_permissions (MtxFile *self, const MtxScope *user, const gchar *name, gboolean is_any)
{
  const YamlNode *list = mtx_find (self, user, "permissions"), *item;
  GString *out = g_string_new (NULL);

  if (list && !yaml_is_sequence (list))
    mtx_fail (self, list, "permissions", "expected a list");
  for (guint i = 0; list && yaml_is_sequence (list) && (item = yaml_item (self->reader, list, i));
      i++) {
    if (i == ITEMS_MAX || !yaml_is_mapping (item)) {
      mtx_fail (self, item, "permissions",
          i == ITEMS_MAX ? "more than 200 permissions" : "expected {action: ...}");
      break;
    }
    append_permission (self, item, name, is_any, out);
  }
  return g_string_free (out, FALSE);
}

// ---- users ----

static const YamlNode *
get_users (MtxFile *self)
{
  const MtxScope root = { yaml_root (self->reader), NULL };
  const YamlNode *list = mtx_find (self, &root, "authInternalUsers");

  if (list && !yaml_is_sequence (list)) {
    mtx_fail (self, list, "authInternalUsers", "expected a list of users");
    return NULL;
  }
  return list;
}

// Appends the line of a user, unless it has nothing that the proxy can take.
static void
append_user (MtxFile *self, const YamlNode *node, GHashTable *names, GString *out)
{
  const MtxScope scope = { node, NULL };
  const gchar *name = mtx_text (self, &scope, "user", "");
  const gboolean is_any = g_str_equal (name, "any");
  g_autofree gchar *permissions = dup_permissions (self, &scope, name, is_any);
  g_autoptr (GPtrArray) networks = mtx_list (self, &scope, "ips");
  g_autoptr (GString) line = g_string_new (NULL);

  if (!*permissions)
    return;
  if (g_str_has_prefix (name, "sha256:") || g_str_has_prefix (name, "argon2:")) {
    mtx_note (self, node, "user", "left out: Weir needs the name itself, not a hash of it");
    return;
  }
  if (g_hash_table_contains (names, name)) {
    mtx_note (self, node, name, "left out: Weir has a user once; join the permissions by hand");
    return;
  }
  weir_text_pair (line, "name", name);
  if (!is_any && !append_secret (self, node, name, mtx_text (self, &scope, "pass", ""), line))
    return;
  g_hash_table_add (names, (gpointer) name);
  if (networks->len > 0) {
    g_autofree gchar *list = weir_text_dup_list (networks);

    g_string_append_printf (line, ", networks: %s", list);
  }
  g_string_append_printf (out, "  - {%s, permissions: [%s]}\n", line->str, permissions);
}

static void
append_users (MtxFile *self, GString *out)
{
  const YamlNode *list = get_users (self), *item;
  g_autoptr (GHashTable) names = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GString) lines = g_string_new (NULL);

  for (guint i = 0; list && (item = yaml_item (self->reader, list, i)); i++) {
    if (i == USERS_MAX || !yaml_is_mapping (item)) {
      mtx_fail (self, item, "authInternalUsers",
          i == USERS_MAX ? "more than 1000 users" : "expected {user: ..., pass: ...}");
      break;
    }
    append_user (self, item, names, lines);
  }
  if (!list)
    g_string_append (out, everybody);
  else
    g_string_append_printf (out, lines->len ? "users:\n%s" : "users: []\n%s", lines->str);
}

gboolean
mtx_users_guard_api (MtxFile *self)
{
  const YamlNode *list = get_users (self), *item;
  gboolean found = FALSE;

  for (guint i = 0; list && !found && i < USERS_MAX && (item = yaml_item (self->reader, list, i));
      i++) {
    const MtxScope scope = { item, NULL };
    const gchar *pass = mtx_text (self, &scope, "pass", "");
    g_autofree gchar *permissions = NULL;
    g_autoptr (GString) unsaid = g_steal_pointer (&self->notes);

    self->notes = g_string_new (NULL); // append_users() says them
    permissions = dup_permissions (self, &scope, "user", FALSE);
    found = *pass && g_strcmp0 (mtx_text (self, &scope, "user", ""), "any")
            && strstr (permissions, "{action: api");
    g_string_free (self->notes, TRUE);
    self->notes = g_steal_pointer (&unsaid);
  }
  return found;
}

// ---- other ways ----

static void
append_jwt (MtxFile *self, const MtxScope *root, GString *out)
{
  static const gchar *const keys[][2] = { { "authJWTJWKS", "jwks" }, { "authJWTIssuer", "issuer" },
    { "authJWTAudience", "audience" } };
  g_autoptr (GString) pairs = g_string_new (NULL);

  for (guint i = 0; i < G_N_ELEMENTS (keys); i++) {
    const gchar *text = mtx_text (self, root, keys[i][0], "");

    if (*text)
      weir_text_pair (pairs, keys[i][1], text);
  }
  weir_text_pair (
      pairs, "permissions-claim", mtx_text (self, root, "authJWTClaimKey", "mediamtx_permissions"));
  g_string_append_printf (out, "jwt: {%s}\n", pairs->str);
}

// Actions about which the server is not asked.
static void
append_excluded (MtxFile *self, const MtxScope *root, GString *pairs)
{
  const YamlNode *list = mtx_find (self, root, "authHTTPExclude"), *item;
  g_autoptr (GPtrArray) actions = g_ptr_array_new_with_free_func (g_free);
  g_autofree gchar *text = NULL;

  if (list && !yaml_is_sequence (list))
    mtx_fail (self, list, "authHTTPExclude", "expected a list");
  for (guint i = 0; list && yaml_is_sequence (list) && (item = yaml_item (self->reader, list, i));
      i++) {
    const MtxScope one = { item, NULL };
    const gchar *action = mtx_text (self, &one, "action", "");

    if (g_str_equal (action, "pprof"))
      continue;
    if (*mtx_text (self, &one, "path", ""))
      mtx_note (self, item, "authHTTPExclude", "left out: Weir excludes actions, not paths");
    else if (*action && actions->len < ITEMS_MAX)
      g_ptr_array_add (actions, g_strdup (action));
  }
  if (!list || actions->len > 0) {
    text = list ? weir_text_dup_list (actions) : g_strdup ("[api, metrics]");
    g_string_append_printf (pairs, ", exclude: %s", text);
  }
}

void
mtx_users_append (MtxFile *self, GString *out)
{
  const MtxScope root = { yaml_root (self->reader), NULL };
  const gchar *method = mtx_text (self, &root, "authMethod", "internal");
  g_autoptr (GString) pairs = g_string_new (NULL);

  if (g_str_equal (method, "jwt")) {
    append_jwt (self, &root, out);
  } else if (g_str_equal (method, "http")) {
    weir_text_pair (pairs, "url", mtx_text (self, &root, "authHTTPAddress", ""));
    append_excluded (self, &root, pairs);
    g_string_append_printf (out, "external-auth: {%s}\n", pairs->str);
  } else {
    if (!g_str_equal (method, "internal"))
      mtx_fail (self, mtx_find (self, &root, "authMethod"), "authMethod",
          "expected internal, http or jwt");
    append_users (self, out);
  }
}
