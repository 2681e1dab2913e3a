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

gboolean
listen_address_equal (const ListenAddress *a, const ListenAddress *b)
{
  return !g_strcmp0 (a->address, b->address) && a->port == b->port;
}

gchar *
listen_address_dup_url (const ListenAddress *self, const gchar *scheme)
{
  return g_strdup_printf (strchr (self->address, ':') ? "%s://[%s]:%u" : "%s://%s:%u", scheme,
      self->address, self->port);
}

gboolean
listen_address_maybe_equal (const ListenAddress *a, const ListenAddress *b)
{
  return a->address && b->address ? listen_address_equal (a, b) : a->address == b->address;
}

static gboolean
read_listen (
    const SchemaKey *key, gpointer object, YamlReader *reader, YamlNode *node, GError **error)
{
  ListenAddress *listen = (ListenAddress *) ((guint8 *) object + key->offset);
  const gchar *text = yaml_text (reader, node);
  gchar *wrong = text ? listen_address_parse (listen, text) : g_strdup ("expected ADDR:PORT");

  return !wrong || yaml_fail_take (reader, node, key->name, CONFIG_ERROR_VALUE, error, wrong);
}

const SchemaValue listen_address_value = { .read = read_listen };
