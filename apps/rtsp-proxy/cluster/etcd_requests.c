// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cluster/etcd_requests.h"

#include "text/json_strict.h"

static void
begin_array (JsonBuilder *body, const gchar *name)
{
  json_builder_set_member_name (body, name);
  json_builder_begin_array (body);
}

static void
begin_request (JsonBuilder *body, const gchar *name)
{
  json_builder_begin_object (body);
  json_builder_set_member_name (body, name);
  json_builder_begin_object (body);
}

static void
end_request (JsonBuilder *body)
{
  json_builder_end_object (body);
  json_builder_end_object (body);
}

static void
add_put (JsonBuilder *body, const gchar *key, const gchar *value, gint64 lease)
{
  etcd_add_bytes (body, "key", key);
  etcd_add_bytes (body, "value", value);
  etcd_add_number (body, "lease", lease);
}

// Begins a transaction, up to its first request.
static JsonBuilder *
begin_txn (const gchar *key, const gchar *target, const gchar *name, gint64 number)
{
  JsonBuilder *body = json_builder_new ();

  json_builder_begin_object (body);
  begin_array (body, "compare");
  json_builder_begin_object (body);
  etcd_add_bytes (body, "key", key);
  json_builder_set_member_name (body, "target");
  json_builder_add_string_value (body, target);
  json_builder_set_member_name (body, "result");
  json_builder_add_string_value (body, "EQUAL");
  etcd_add_number (body, name, number);
  json_builder_end_object (body);
  json_builder_end_array (body);
  begin_array (body, "success");
  return body;
}

JsonBuilder *
etcd_put_body (const gchar *key, const gchar *value, gint64 lease)
{
  JsonBuilder *body = json_builder_new ();

  json_builder_begin_object (body);
  add_put (body, key, value, lease);
  json_builder_end_object (body);
  return body;
}

JsonBuilder *
etcd_create_body (const gchar *key, const gchar *value, gint64 lease)
{
  JsonBuilder *body = begin_txn (key, "CREATE", "create_revision", 0);

  begin_request (body, "request_put");
  add_put (body, key, value, lease);
  end_request (body);
  json_builder_end_array (body);
  begin_array (body, "failure");
  begin_request (body, "request_range");
  etcd_add_bytes (body, "key", key);
  end_request (body);
  json_builder_end_array (body);
  json_builder_end_object (body);
  return body;
}

JsonBuilder *
etcd_delete_body (const gchar *key, gint64 lease)
{
  JsonBuilder *body = begin_txn (key, "LEASE", "lease", lease);

  begin_request (body, "request_delete_range");
  etcd_add_bytes (body, "key", key);
  end_request (body);
  json_builder_end_array (body);
  json_builder_end_object (body);
  return body;
}

static JsonObject *
get_first (JsonObject *object, const gchar *name)
{
  JsonArray *array = object ? json_strict_array (object, name) : NULL;
  JsonNode *node =
      array && json_array_get_length (array) > 0 ? json_array_get_element (array, 0) : NULL;

  return node && JSON_NODE_HOLDS_OBJECT (node) ? json_node_get_object (node) : NULL;
}

gboolean
etcd_create_succeeded (JsonObject *answer, gchar **existing)
{
  JsonNode *node = json_object_get_member (answer, "succeeded");
  JsonObject *response = get_first (answer, "responses");
  JsonObject *range = response ? etcd_get_object (response, "response_range") : NULL;
  JsonObject *entry = get_first (range, "kvs");

  *existing = NULL;
  if (node && json_node_get_value_type (node) == G_TYPE_BOOLEAN && json_node_get_boolean (node))
    return TRUE;
  *existing = entry ? etcd_dup_text (entry, "value") : NULL;
  return FALSE;
}
