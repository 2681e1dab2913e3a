// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The API's view of the cluster.

#include "cluster/cluster.h"
#include "control/api_handlers.h"
#include "readers/readers.h"

void
api_get_cluster (ApiRequest *request)
{
  JsonBuilder *builder = json_builder_new ();

  json_builder_begin_object (builder);
  cluster_write (request->api->cluster, builder);
  json_builder_end_object (builder);
  api_answer (request->message, SOUP_STATUS_OK, builder);
}

void
api_post_drain (ApiRequest *request)
{
  Cluster *cluster = request->api->cluster;
  g_autoptr (GPtrArray) readers = readers_dup_all ();
  JsonBuilder *builder = json_builder_new ();

  if (cluster)
    cluster_drain (cluster);
  json_builder_begin_object (builder);
  cluster_write_drain (cluster, builder);
  api_add_number (builder, "readers", readers->len);
  json_builder_end_object (builder);
  api_answer (request->message, SOUP_STATUS_OK, builder);
}
