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

// Ends a transaction behind its requests; where it fails, its answer has what the key has.
static void
end_txn (JsonBuilder *body, const gchar *key)
{
  json_builder_end_array (body);
  begin_array (body, "failure");
  begin_request (body, "request_range");
  etcd_add_bytes (body, "key", key);
  end_request (body);
  json_builder_end_array (body);
  json_builder_end_object (body);
}

// Returns that, or NULL if there is no key.
static JsonObject *
find_existing (JsonObject *answer)
{
  JsonObject *response = etcd_get_element (json_strict_array (answer, "responses"), 0);
  JsonObject *range = response ? etcd_get_object (response, "response_range") : NULL;

  return range ? etcd_get_element (json_strict_array (range, "kvs"), 0) : NULL;
}

JsonBuilder *
etcd_create_body (const gchar *key, const gchar *value, gint64 lease)
{
  JsonBuilder *body = begin_txn (key, "CREATE", "create_revision", 0);

  begin_request (body, "request_put");
  add_put (body, key, value, lease);
  end_request (body);
  end_txn (body, key);
  return body;
}

JsonBuilder *
etcd_replace_body (const gchar *key, const gchar *value, gint64 revision)
{
  JsonBuilder *body = begin_txn (key, "MOD", "mod_revision", revision);

  begin_request (body, value ? "request_put" : "request_delete_range");
  if (value)
    add_put (body, key, value, 0);
  else
    etcd_add_bytes (body, "key", key);
  end_request (body);
  end_txn (body, key);
  return body;
}

// An earlier try, whose answer was lost, may have changed the key already.
gboolean
etcd_replace_succeeded (JsonObject *answer, const gchar *value, gint64 *revision)
{
  const gboolean succeeded = etcd_get_boolean (answer, "succeeded");
  JsonObject *header = etcd_get_object (answer, "header");
  JsonObject *entry = succeeded ? NULL : find_existing (answer);
  g_autofree gchar *existing = entry ? etcd_dup_text (entry, "value") : NULL;

  *revision = entry    ? etcd_get_number (entry, "mod_revision")
              : header ? etcd_get_number (header, "revision")
                       : 0;
  return succeeded || g_strcmp0 (existing, value) == 0;
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

gboolean
etcd_create_succeeded (JsonObject *answer, gint64 lease, gchar **existing)
{
  JsonObject *entry = find_existing (answer);
  const gboolean succeeded = etcd_get_boolean (answer, "succeeded")
                             || (entry && etcd_get_number (entry, "lease") == lease);

  *existing = !succeeded && entry ? etcd_dup_text (entry, "value") : NULL;
  return succeeded;
}
