// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The keys `jwt` and `external-auth`: who else decides about clients. The values do not change
// after they were read, so any thread may use them. Both are reference counted.

#include "config/action.h"
#include "text/jwks.h"
#include "text/schema.h"

typedef struct {
  gchar *jwks;     // a file, or an http(s) URL
  Jwks *keys;      // of the file; NULL for a URL
  gchar *issuer;   // or NULL: any
  gchar *audience; // or NULL: any
  gchar *claim;    // with the permissions
} JwtConfig;

typedef struct {
  gchar *url;
  guint timeout;  // ms
  guint excluded; // bits 1 << AccessAction: not asked about these
} ExternalAuthConfig;

JwtConfig *jwt_config_ref (JwtConfig *self);
void jwt_config_unref (JwtConfig *self);
ExternalAuthConfig *external_auth_config_ref (ExternalAuthConfig *self);
void external_auth_config_unref (ExternalAuthConfig *self);

// Read the mapping of the key `name`. Return NULL and set `error` if anything is wrong. (transfer
// full)
JwtConfig *jwt_config_read (const gchar *name, YamlReader *reader, YamlNode *node, GError **error);
ExternalAuthConfig *external_auth_config_read (
    const gchar *name, YamlReader *reader, YamlNode *node, GError **error);

// The keys in `jwt` and in `external-auth`. Their effect is 1, at a reload.
extern const SchemaObject jwt_config_object, external_auth_config_object;
