// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/listen_address.h"

#include "text/config_error.h"

#include <gio/gio.h>
#include <string.h>

gchar *
listen_address_parse (ListenAddress *self, const gchar *text)
{
  const gchar *colon = strrchr (text, ':');
  gchar *host, *end = NULL;
  GInetAddress *inet;
  guint64 number;

  if (!colon)
    return g_strdup_printf ("\"%s\" is not ADDR:PORT; write it like 0.0.0.0:8554", text);
  number = g_ascii_strtoull (colon + 1, &end, 10);
  if (!g_ascii_isdigit (colon[1]) || *end || number > 65535)
    return g_strdup_printf ("\"%s\" is not a port from 0 to 65535", colon + 1);
  host = g_strndup (text, (gsize) (colon - text));
  if (host[0] == '[' && g_str_has_suffix (host, "]")) {
    memmove (host, host + 1, strlen (host));
    host[strlen (host) - 1] = '\0';
  }
  if (!*host) {
    g_free (host);
    host = g_strdup ("0.0.0.0");
  } else if (g_str_equal (host, "localhost")) {
    g_free (host);
    host = g_strdup ("127.0.0.1");
  }
  inet = g_inet_address_new_from_string (host);
  if (!inet) {
    gchar *wrong = g_strdup_printf ("\"%s\" is not an IP address", host);

    g_free (host);
    return wrong;
  }
  g_object_unref (inet);
  g_free (self->address);
  self->address = host;
  self->port = (guint16) number;
  return NULL;
}

gchar *
listen_address_dup_url (const ListenAddress *self, const gchar *scheme)
{
  return g_strdup_printf (strchr (self->address, ':') ? "%s://[%s]:%u" : "%s://%s:%u", scheme,
      self->address, self->port);
}

// ---- values ----

static ListenAddress *
get_listen (const SchemaKey *key, gconstpointer object)
{
  return (ListenAddress *) ((guint8 *) object + key->offset);
}

static void
clear_listen (const SchemaKey *key, gpointer object)
{
  g_clear_pointer (&get_listen (key, object)->address, g_free);
}

static void
reset_listen (const SchemaKey *key, gpointer object)
{
  clear_listen (key, object);
  *get_listen (key, object) = (ListenAddress) { 0 };
  if (key->preset)
    g_free (listen_address_parse (get_listen (key, object), key->preset));
}

static gboolean
read_address (const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node,
    const gchar *expected, GError **error)
{
  ListenAddress *listen = get_listen (key, object);
  const gchar *text = yaml_text (reader, node);
  gchar *wrong = text ? listen_address_parse (listen, text) : g_strdup (expected);

  listen->is_off = FALSE;
  listen->is_given = TRUE;
  return !wrong || yaml_fail_take (reader, node, key->name, CONFIG_ERROR_VALUE, error, wrong);
}

static gboolean
read_listen (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  return read_address (key, object, reader, node, "expected ADDR:PORT", error);
}

static gboolean
read_listen_or_off (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  if (g_strcmp0 (yaml_text (reader, node), "off") != 0)
    return read_address (key, object, reader, node, "expected ADDR:PORT or off", error);
  get_listen (key, object)->is_off = get_listen (key, object)->is_given = TRUE;
  return TRUE;
}

static gboolean
equal_listen (const SchemaKey *key, gconstpointer a, gconstpointer b)
{
  const ListenAddress *x = get_listen (key, a), *y = get_listen (key, b);

  return !g_strcmp0 (x->address, y->address) && x->port == y->port && x->is_off == y->is_off;
}

static void
copy_listen (const SchemaKey *key, gpointer to, gconstpointer from)
{
  clear_listen (key, to);
  *get_listen (key, to) = *get_listen (key, from);
  get_listen (key, to)->address = g_strdup (get_listen (key, from)->address);
}

const SchemaValue listen_address_value = { read_listen, reset_listen, equal_listen, NULL,
  copy_listen, clear_listen, TRUE };
const SchemaValue listen_address_or_off_value = { read_listen_or_off, reset_listen, equal_listen,
  NULL, copy_listen, clear_listen, TRUE };
