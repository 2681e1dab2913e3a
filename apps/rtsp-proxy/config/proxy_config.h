// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The configuration of the proxy, from a YAML file, from arguments, or from both. It is checked as
// a whole before anything starts.

#include <glib.h>

#include "config/auth_config.h"
#include "config/cluster_config.h"
#include "config/http_config.h"
#include "config/listen_address.h"
#include "config/hls_config.h"
#include "config/hooks_config.h"
#include "config/limits.h"
#include "config/mount_config.h"
#include "config/proxy_effect.h"
#include "config/rtmp_config.h"
#include "config/srt_config.h"
#include "config/tls_config.h"
#include "config/users.h"
#include "config/webrtc_config.h"
#include "text/schema.h"

typedef struct {
  ListenAddress listen; // off: readers connect over TLS only
  TlsConfig tls;
  HttpConfig http;
  // Each is NULL if it is not configured.
  JwtConfig *jwt;
  ExternalAuthConfig *external_auth;
  ListenAddress api;      // if it is not given, the proxy serves even if it is in use
  gchar *api_token;       // NULL: the API asks for no token
  GStrv hosts;            // names by which HTTP clients may call this machine
  GStrv file_roots;       // folders below which API clients may name files
  GStrv trusted_networks; // NULL: private ones
  HlsConfig hls;
  SrtConfig srt;
  RtmpConfig rtmp;
  HooksConfig hooks;
  WebrtcConfig webrtc;
  ClusterConfig cluster;
  Limits limits;
  guint receive_tick;      // us, between two rounds of receiving; 0: no rounds
  guint isolate;           // Isolate
  guint kernel;            // KernelPath
  guint workers;           // processes of each kind, at most
  gchar *stage_folder;     // searched for stages first; may be NULL
  StageSet *stage_set;     // NULL before proxy_config_load_stages()
  UserSet *users;          // NULL: the file says nothing about users
  gboolean strict;         // a mount that lacks something of this machine is an error
  gboolean strict_queries; // refuse unknown parameters of URLs
  gboolean basic;          // RTSP takes passwords by basic authentication without TLS
  GPtrArray *mounts;       // of MountConfig
  GPtrArray *patterns;     // of MountConfig: paths with variables
  GHashTable *paths;       // the paths of `mounts` and `patterns`
} ProxyConfig;

// Returns the table of the keys of the whole file.
const SchemaKey *proxy_config_keys (void);

// Makes a configuration with the defaults: 127.0.0.1:8554, no mounts. The caller frees it with
// proxy_config_free().
ProxyConfig *proxy_config_new (void);
void proxy_config_free (ProxyConfig *self);

// Reads a file into `self`, or no file if that is NULL, and the environment (variables.h). Returns
// FALSE and sets `error` to lines of the form "FILE:LINE:COLUMN: key: message", or
// "VARIABLE: key: message", if anything is wrong.
gboolean proxy_config_load (ProxyConfig *self, const gchar *file, GError **error);

// Sets the listening address: "ADDR:PORT", "[ADDR6]:PORT" or ":PORT" (all IPv4 addresses).
gboolean proxy_config_set_listen (ProxyConfig *self, const gchar *listen, GError **error);

// Adds a mount "/path=URI". Sets `*has_password` to TRUE if the URI contains a password.
gboolean proxy_config_add_mount (
    ProxyConfig *self, const gchar *mount, gboolean *has_password, GError **error);

// Loads `stage_set` from `stage_folder` and the installed folders, if they are not loaded yet.
gboolean proxy_config_load_stages (ProxyConfig *self, GError **error);

// Writes where readers can connect, and then an entry without an address. The texts stay those of
// `self`.
void proxy_config_list_listen (const ProxyConfig *self, ListenAddress own[3]);

// Reports whether the API asks clients who they are before they may do `action`, ACCESS_API or
// ACCESS_METRICS.
gboolean proxy_config_guards (const ProxyConfig *self, AccessAction action);

// Reports whether `address`, a valid IP address, is a loopback address.
gboolean proxy_config_is_loopback (const gchar *address);
