// SPDX-License-Identifier: LGPL-2.1-or-later
#include "config/webrtc_config.h"

#include <gio/gio.h>
#include <string.h>

#include "config/proxy_effect.h"

#define AT(field) G_STRUCT_OFFSET (WebrtcConfig, field)

static gchar *
check_host (SchemaText *it)
{
  return g_hostname_is_ip_address (it->text)
             ? NULL
             : g_strdup_printf (
                   "\"%s\" is not an IP address: some browsers take no names", it->text);
}

// It goes into a header.
static gchar *
check_server (SchemaText *it)
{
  static const gchar allowed[] = ".-:[]?=_%";
  const gchar *rest = g_str_has_prefix (it->text, "stun:")    ? it->text + strlen ("stun:")
                      : g_str_has_prefix (it->text, "stuns:") ? it->text + strlen ("stuns:")
                                                              : "";
  gboolean is_uri = *rest != '\0';

  for (const gchar *c = rest; *c; c++)
    is_uri &= g_ascii_isalnum (*c) || strchr (allowed, *c);
  return is_uri ? NULL
                : g_strdup_printf ("\"%s\" is not the URI of a STUN server; write it like "
                                   "stun:stun.example.org:3478",
                      it->text);
}

static const SchemaKey keys[] = {
  { "listen", SCHEMA_OTHER, AT (listen), .form = "ADDR:PORT", .value = &listen_address_value,
      .missing = "listen is missing; write it like {listen: 0.0.0.0:8189}",
      .effect = PROXY_EFFECT_RESTART,
      .help =
          "where browsers send to, written like the `listen` of the file; one UDP port, and with "
          "`tcp` the TCP port of this number, for all of them" },
  { "additional-hosts", SCHEMA_LIST, AT (additional_hosts), .form = "[ADDR, ...]",
      .check = check_host, .effect = PROXY_EFFECT_RESTART,
      .help = "further addresses at which browsers reach the port, such as the public one of a "
              "router or of the host of a container; they are told of these first" },
  { "stun-servers", SCHEMA_LIST, AT (stun_servers), .form = "[URI, ...]", .check = check_server,
      .effect = PROXY_EFFECT_RESTART,
      .help = "servers such as `stun:stun.example.org:3478` that browsers are told of (header "
              "`Link`); the proxy itself needs none" },
  { "tcp", SCHEMA_FLAG, AT (tcp), .preset = "yes", .effect = PROXY_EFFECT_RESTART,
      .help = "`yes`: browsers whose network passes no UDP connect over TCP" },
  { NULL },
};

#undef AT

void
webrtc_config_copy (WebrtcConfig *self, const WebrtcConfig *from)
{
  *self = (WebrtcConfig) { 0 };
  schema_copy (keys, self, from);
}

void
webrtc_config_clear (WebrtcConfig *self)
{
  schema_clear (keys, self);
}

const SchemaObject webrtc_config_object = { .keys = keys,
  .expected = "expected {listen: ADDR:PORT}" };
