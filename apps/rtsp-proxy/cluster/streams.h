// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The streams that this member serves: for each it claims to run the upstream, or reads a member
// that has it. Call from the main thread only.

#include "cluster/map.h"
#include "cluster/registration.h"

typedef struct _Streams Streams;

// Begins to share the upstreams of mounts; see sources/sharing.h. All must outlive the result,
// which must outlive the calls of `etcd`.
Streams *streams_new (
    Etcd *etcd, ClusterMap *map, Registration *registration, const ClusterConfig *config);

// Ends that; mounts run their own upstreams from then on.
void streams_stop (Streams *self);
void streams_free (Streams *self);

// The map has changed: all of it (NULL), or this stream.
void streams_look (Streams *self, const gchar *path);

// Gives the streams to other members that have them; what only this one has stays.
void streams_drain (Streams *self);

// This member's keys are gone, or may be.
void streams_lose_keys (Streams *self);
