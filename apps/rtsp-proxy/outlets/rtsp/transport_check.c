// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/rtsp/transport_check.h"

#include <gio/gio.h>
#include <string.h>

#define LOWEST_PORT 1024 // ports below are those of services
#define HIGHEST_PORT 65535
#define HIGHEST_CHANNEL 255

const gchar *const transport_verdict_names[N_TRANSPORT_VERDICTS] = { "none", "malformed",
  "unsupported", "destination", "port", "port-taken", "channels", "udp-without-srtp",
  "srtp-without-tls", "key-malformed", "key-unsupported" };

typedef struct {
  gboolean tcp, unicast, srtp;
  gboolean has_pair;
  guint pair[2]; // UDP ports or channels
} Transport;

// ---- fields ----

// Removes spaces at both ends, and quotation marks around the text.
static gchar *
strip (gchar *text)
{
  gsize len;

  text = g_strstrip (text);
  len = strlen (text);
  if (len >= 2 && text[0] == '"' && text[len - 1] == '"') {
    text[len - 1] = '\0';
    text++;
  }
  return text;
}

// Reads "N" or "N-M", both at most `max`. Without M, it is N + 1.
static gboolean
read_pair (const gchar *text, guint max, guint pair[2])
{
  const gchar *dash = strchr (text, '-');
  g_autofree gchar *first = dash ? g_strndup (text, (gsize) (dash - text)) : g_strdup (text);
  guint64 low = 0, high = 0;
  gboolean ok = g_ascii_string_to_unsigned (first, 10, 0, max, &low, NULL);

  if (ok && dash)
    ok = g_ascii_string_to_unsigned (dash + 1, 10, 0, max, &high, NULL);
  else if (ok)
    ok = (high = low + 1) <= max;
  pair[0] = (guint) low;
  pair[1] = (guint) high;
  return ok;
}

// RTP and RTCP may share a UDP port (RFC 5761).
static gboolean
is_pair (const guint pair[2])
{
  return pair[1] == pair[0] || pair[1] == pair[0] + 1;
}

static gboolean
is_peer (const gchar *host, const gchar *peer)
{
  g_autoptr (GInetAddress) a = g_inet_address_new_from_string (host);
  g_autoptr (GInetAddress) b = g_inet_address_new_from_string (peer);

  return a && b && g_inet_address_equal (a, b);
}

// live555 says "receive" for what RFC 2326 calls "record".
static gboolean
is_mode (const gchar *mode, const TransportPeer *peer)
{
  if (peer->records)
    return !g_ascii_strcasecmp (mode, "record") || !g_ascii_strcasecmp (mode, "receive");
  return !g_ascii_strcasecmp (mode, "play");
}

static TransportVerdict
read_value (const gchar *name, const gchar *value, const TransportPeer *peer, Transport *out)
{
  gboolean channels = !g_ascii_strcasecmp (name, "interleaved");

  if (!g_ascii_strcasecmp (name, "destination") && *value && !is_peer (value, peer->address))
    return TRANSPORT_DESTINATION;
  if (!g_ascii_strcasecmp (name, "mode") && !is_mode (value, peer))
    return TRANSPORT_UNSUPPORTED;
  if (channels != out->tcp || (!channels && g_ascii_strcasecmp (name, "client_port")))
    return TRANSPORT_GOOD;
  out->has_pair = TRUE;
  return read_pair (value, channels ? HIGHEST_CHANNEL : HIGHEST_PORT, out->pair)
             ? TRANSPORT_GOOD
             : TRANSPORT_MALFORMED;
}

static TransportVerdict
read_field (gchar *field, const TransportPeer *peer, Transport *out)
{
  gchar *equals = strchr (field, '=');

  if (equals) {
    *equals = '\0';
    return read_value (g_strstrip (field), strip (equals + 1), peer, out);
  }
  field = g_strstrip (field);
  out->unicast |= !g_ascii_strcasecmp (field, "unicast");
  return g_ascii_strcasecmp (field, "multicast") ? TRANSPORT_GOOD : TRANSPORT_UNSUPPORTED;
}

// ---- transports ----

// Reads "RTP/AVP", "RTP/AVP/UDP" or "RTP/AVP/TCP", also with the profiles AVPF, SAVP and SAVPF.
// Returns the profile, or NULL.
static const gchar *
read_protocol (const gchar *text, Transport *out)
{
  static const gchar *const profiles[] = { "AVP", "AVPF", "SAVP", "SAVPF" };
  g_auto (GStrv) parts = g_strsplit (text, "/", 4);
  guint n = g_strv_length (parts);
  const gchar *profile = NULL;

  out->tcp = n == 3 && !g_ascii_strcasecmp (parts[2], "TCP");
  if ((n == 2 || (n == 3 && (out->tcp || !g_ascii_strcasecmp (parts[2], "UDP"))))
      && !g_ascii_strcasecmp (parts[0], "RTP")) {
    for (guint i = 0; i < G_N_ELEMENTS (profiles); i++) {
      if (!g_ascii_strcasecmp (parts[1], profiles[i]))
        profile = profiles[i];
    }
  }
  return profile;
}

static TransportVerdict
check_transport (const Transport *self, const TransportPeer *peer)
{
  if (self->srtp && !peer->tls)
    return TRANSPORT_NO_TLS;
  if (self->tcp)
    return !self->has_pair || self->pair[1] == self->pair[0] + 1 ? TRANSPORT_GOOD
                                                                 : TRANSPORT_MALFORMED;
  // Some clients write no "unicast", but only unicast has ports of a client.
  if (!self->has_pair)
    return self->unicast ? TRANSPORT_MALFORMED : TRANSPORT_UNSUPPORTED;
  if (peer->tls && !self->srtp)
    return TRANSPORT_CLEAR;
  return is_pair (self->pair) && self->pair[0] >= LOWEST_PORT ? TRANSPORT_GOOD : TRANSPORT_PORT;
}

// Appends the transport to `out` if it is good.
static TransportVerdict
check_one (const gchar *text, const TransportPeer *peer, GString *out, gboolean *srtp)
{
  g_auto (GStrv) fields = g_strsplit (text, ";", -1);
  Transport transport = { 0 };
  const gchar *profile = fields[0] ? read_protocol (g_strstrip (fields[0]), &transport) : NULL;
  TransportVerdict verdict = profile ? TRANSPORT_GOOD : TRANSPORT_UNSUPPORTED;

  for (guint i = 1; verdict == TRANSPORT_GOOD && fields[i]; i++)
    verdict = read_field (fields[i], peer, &transport);
  transport.srtp = profile && profile[0] == 'S';
  if (verdict == TRANSPORT_GOOD)
    verdict = check_transport (&transport, peer);
  if (verdict != TRANSPORT_GOOD || (out->len > 0 && *srtp != transport.srtp))
    return verdict;
  *srtp = transport.srtp;
  if (transport.srtp)
    profile++;
  g_string_append_printf (
      out, "%sRTP/%s%s;unicast", out->len ? "," : "", profile, transport.tcp ? "/TCP" : "");
  if (transport.has_pair)
    g_string_append_printf (out, ";%s=%u-%u", transport.tcp ? "interleaved" : "client_port",
        transport.pair[0], transport.pair[1]);
  return TRANSPORT_GOOD;
}

TransportVerdict
transport_check (const gchar *header, const TransportPeer *peer, gchar **good, gboolean *srtp)
{
  g_auto (GStrv) transports = g_strsplit (header, ",", TRANSPORTS_MAX + 1);
  TransportVerdict last = TRANSPORT_MALFORMED;
  GString *out = g_string_new (NULL);

  *srtp = FALSE;
  for (guint i = 0; i < TRANSPORTS_MAX && transports[i]; i++)
    last = check_one (transports[i], peer, out, srtp);
  *good = g_string_free (out, out->len == 0);
  return *good ? TRANSPORT_GOOD : last;
}
