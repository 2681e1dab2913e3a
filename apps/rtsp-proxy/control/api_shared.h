// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Operations on the mounts that a cluster keeps in etcd (cluster/shared_mounts.h). A mount's ETag
// is the revision of its last change.

#include "control/api_request.h"

// Reports whether the API changes mounts in etcd.
gboolean api_shares_mounts (const ApiRequest *request);

// Finds the request's mount in etcd.
gboolean api_find_shared (const ApiRequest *request, SharedMountView *view);

// Sets the ETag of the answer.
void api_set_revision (SoupServerMessage *message, gint64 revision);

// Checks whether the request may change its mount in etcd, by its If-Match and If-None-Match.
// Otherwise answers 409 or 412 and returns FALSE.
gboolean api_check_shared (const ApiRequest *request);

// Returns the JSON of the request's mount in etcd with the members of the body (api_read_body()) in
// place of its own; null removes one. If etcd has no such mount, or has no JSON, answers and
// returns NULL. (transfer full)
gchar *api_patch_shared (const ApiRequest *request);

// Writes the mount to etcd (NULL: removes it), and answers later. Takes ownership of `answer`,
// which is sent with `status` if that succeeds.
void api_change_shared (
    const ApiRequest *request, const gchar *value, guint status, JsonBuilder *answer);
