// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The key `cluster` of the configuration.

#include "config/listen_address.h"
#include "text/schema.h"

typedef struct {
  GStrv etcd; // http and https URLs
  SchemaPath etcd_ca, etcd_certificate, etcd_key;
  gchar *etcd_user, *etcd_password;
  gchar *name;    // NULL: the host's name
  gchar *address; // where the other members reach this one; NULL: there is no cluster
  gchar *secret;
  gchar *prefix;   // of all keys in etcd; ends with a slash
  gboolean mounts; // they are kept in etcd
} ClusterConfig;

extern const SchemaObject cluster_config_object;

// Report whether a text can be the name or the address of a member.
gboolean cluster_config_is_name (const gchar *text);
gboolean cluster_config_is_address (const gchar *text);

// Returns the member's name. (transfer full)
gchar *cluster_config_dup_name (const ClusterConfig *self);

// Reports whether the other members, which are on other machines, cannot reach the listener.
gboolean cluster_config_is_hidden (const ClusterConfig *self, const ListenAddress *listen);
