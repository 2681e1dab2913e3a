// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/mount_push.h"

#include <gio/gio.h>
#include <string.h>

#define TTL_DEFAULT 16
#define STREAM_ID_MAX 512 // bytes, as libsrt allows, as are those of a passphrase
#define PASSPHRASE_MIN 10
#define PASSPHRASE_MAX 79
#define LATENCY_MAX_MS 60000

static const struct {
  const gchar *scheme;
  PushKind kind;
  gint port; // the default; -1: must be given
} schemes[] = {
  { "udp", PUSH_UDP, -1 },
  { "srt", PUSH_SRT, -1 },
  { "rtmp", PUSH_RTMP, 1935 },
  { "rtmps", PUSH_RTMP, 443 },
};

void
push_uri_clear (PushUri *self)
{
  g_clear_pointer (&self->uri, g_free);
  g_clear_pointer (&self->host, g_free);
  g_clear_pointer (&self->iface, g_free);
  g_clear_pointer (&self->shown, g_free);
}

// ---- the parts of a URI ----

static gchar *
read_udp_query (const gchar *query, PushUri *out)
{
  GUriParamsIter iter;
  gchar *name, *value, *wrong = NULL;
  guint64 ttl;

  g_uri_params_iter_init (&iter, query, -1, "&", G_URI_PARAMS_NONE);
  while (!wrong && g_uri_params_iter_next (&iter, &name, &value, NULL)) {
    if (g_str_equal (name, "ttl") && g_ascii_string_to_unsigned (value, 10, 1, 255, &ttl, NULL))
      out->ttl = (guint) ttl;
    else if (g_str_equal (name, "ttl"))
      wrong = g_strdup ("ttl must be from 1 to 255");
    else if (g_str_equal (name, "iface") && *value && !out->iface)
      out->iface = g_strdup (value);
    else
      wrong = g_strdup_printf ("unknown parameter \"%.40s\"; known: ttl, iface", name);
    g_free (name);
    g_free (value);
  }
  return wrong;
}

static gchar *
check_udp (GUri *uri, PushUri *out)
{
  const gchar *query = g_uri_get_query (uri), *path = g_uri_get_path (uri);
  GInetAddress *address = g_inet_address_new_from_string (out->host);

  if (!address)
    return g_strdup ("the host must be an IP address");
  g_object_unref (address);
  if (*path && !g_str_equal (path, "/"))
    return g_strdup ("a path has no meaning");
  return query ? read_udp_query (query, out) : NULL;
}

static gchar *
check_srt_parameter (const gchar *name, const gchar *value)
{
  gsize length = strlen (value);
  guint64 number;

  if (g_str_equal (name, "streamid"))
    return length <= STREAM_ID_MAX
               ? NULL
               : g_strdup_printf ("streamid must have at most %u bytes", STREAM_ID_MAX);
  if (g_str_equal (name, "passphrase"))
    return length >= PASSPHRASE_MIN && length <= PASSPHRASE_MAX
               ? NULL
               : g_strdup_printf (
                     "passphrase must have %u to %u bytes", PASSPHRASE_MIN, PASSPHRASE_MAX);
  if (g_str_equal (name, "pbkeylen"))
    return g_str_equal (value, "16") || g_str_equal (value, "24") || g_str_equal (value, "32")
               ? NULL
               : g_strdup ("pbkeylen must be 16, 24 or 32");
  if (g_str_equal (name, "latency"))
    return g_ascii_string_to_unsigned (value, 10, 0, LATENCY_MAX_MS, &number, NULL)
               ? NULL
               : g_strdup_printf (
                     "latency must be a number of milliseconds, at most %u", LATENCY_MAX_MS);
  return g_strdup_printf (
      "unknown parameter \"%.40s\"; known: streamid, latency, passphrase, pbkeylen", name);
}

static gchar *
check_srt (GUri *uri)
{
  const gchar *query = g_uri_get_query (uri), *path = g_uri_get_path (uri);
  GUriParamsIter iter;
  gchar *name, *value, *wrong = NULL;
  g_autoptr (GError) error = NULL;

  if (*path && !g_str_equal (path, "/"))
    return g_strdup ("a path has no meaning");
  if (!query)
    return NULL;
  g_uri_params_iter_init (&iter, query, -1, "&", G_URI_PARAMS_NONE);
  while (!wrong && g_uri_params_iter_next (&iter, &name, &value, &error)) {
    wrong = check_srt_parameter (name, value);
    g_free (name);
    g_free (value);
  }
  if (error)
    wrong = g_strdup ("cannot parse the parameters after the '?'");
  return wrong;
}

// The last part of the path often is a secret.
static gchar *
check_rtmp (GUri *uri, PushUri *out)
{
  const gchar *path = g_uri_get_path (uri), *last = strrchr (path, '/');
  g_autofree gchar *app = NULL;

  if (!last || last == path || !last[1])
    return g_strdup ("expected rtmp://HOST[:PORT]/APP/STREAM");
  app = g_strndup (path, (gsize) (last - path));
  g_free (out->shown);
  out->shown =
      g_strdup_printf ("%s://%s:%u%s/***", g_uri_get_scheme (uri), out->host, out->port, app);
  return NULL;
}

static gchar *
read_uri (GUri *uri, PushUri *out)
{
  const gchar *host = g_uri_get_host (uri);
  guint i = 0;

  while (i < G_N_ELEMENTS (schemes) && !g_str_equal (g_uri_get_scheme (uri), schemes[i].scheme))
    i++;
  if (i == G_N_ELEMENTS (schemes))
    return g_strdup ("expected udp://, srt://, rtmp:// or rtmps://");
  if (!host || !*host)
    return g_strdup ("the host is missing");
  if (g_uri_get_port (uri) == 0 || (g_uri_get_port (uri) < 0 && schemes[i].port < 0))
    return g_strdup ("the port is missing");
  out->kind = schemes[i].kind;
  out->host = g_strdup (host);
  out->port = (guint) (g_uri_get_port (uri) > 0 ? g_uri_get_port (uri) : schemes[i].port);
  out->ttl = TTL_DEFAULT;
  out->shown = g_strdup_printf (
      strchr (host, ':') ? "%s://[%s]:%u" : "%s://%s:%u", g_uri_get_scheme (uri), host, out->port);
  return out->kind == PUSH_UDP    ? check_udp (uri, out)
         : out->kind == PUSH_RTMP ? check_rtmp (uri, out)
                                  : check_srt (uri);
}

gchar *
push_uri_parse (const gchar *text, PushUri *out)
{
  GError *error = NULL;
  GUri *uri = g_uri_parse (text, G_URI_FLAGS_NON_DNS | G_URI_FLAGS_ENCODED, &error);
  gchar *wrong;

  *out = (PushUri) { .uri = g_strdup (text) };
  if (!uri) {
    wrong = g_strdup_printf ("not a URI: %s", error->message);
    g_error_free (error);
  } else {
    wrong = read_uri (uri, out);
    g_uri_unref (uri);
  }
  if (wrong)
    push_uri_clear (out);
  return wrong;
}

// ---- the key ----

gchar *
push_check (SchemaText *it)
{
  PushUri uri;
  gchar *wrong = push_uri_parse (it->text, &uri);

  if (!wrong)
    push_uri_clear (&uri);
  return wrong;
}

gchar *
push_dup_shown (const gchar *text)
{
  PushUri uri;
  gchar *wrong = push_uri_parse (text, &uri), *shown = g_strdup (wrong ? "***" : uri.shown);

  if (!wrong)
    push_uri_clear (&uri);
  g_free (wrong);
  return shown;
}
