// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Signs requests to S3-compatible servers: AWS Signature Version 4, for GET and HEAD, which have no
// body. Call from any thread.

#include <gio/gio.h>

typedef struct _S3Keys S3Keys;

struct _S3Keys {
  gchar *access_key;
  gchar *secret_key;
  gchar *region;
};

// Reads keys from a credentials file of the AWS command line: section [default] with
// aws_access_key_id, aws_secret_access_key and, optionally, region (default us-east-1). Returns
// NULL with an error that names the file. Others than the owner must not be able to read the file.
S3Keys *s3_keys_read (const gchar *path, GError **error);
S3Keys *s3_keys_copy (const S3Keys *self); // NULL is allowed
void s3_keys_free (S3Keys *self);

typedef struct {
  const gchar *method; // "GET" or "HEAD"
  const gchar *host;   // as in the Host header
  const gchar *path;   // percent-encoded, with the first slash
  const gchar *query;  // parameters in order of their names, percent-encoded; "" if none
  const gchar *range;  // the Range header; NULL if none
  const gchar *date;   // the x-amz-date header: "20130524T000000Z"
} S3Request;

// The x-amz-content-sha256 header of every signed request: the hash of an empty body.
#define S3_EMPTY_HASH "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// Returns the Authorization header. The signature covers the headers host, range (if there is one),
// x-amz-content-sha256 and x-amz-date.
gchar *s3_sign (const S3Keys *keys, const S3Request *request);
