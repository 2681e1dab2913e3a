// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Shared by the files that read and expand YAML documents.

#include "text/yaml_reader.h"

struct _YamlReader {
  gchar *file;
  yaml_document_t document;
  GArray *mistakes;      // of Mistake, in the order of the file; the first MISTAKES_MAX
  guint n_mistakes;      // all of them
  GHashTable *wrong;     // the nodes of yaml_set_wrong()
  GHashTable *heirs;     // the mappings of yaml_inherit()
  GHashTable *variables; // value -> name of each environment variable whose value is in a node
  GHashTable *origins;   // number of a node -> where its value comes from, if not from the file
};

// Returns the number of a node in the document, from 1.
static inline int
yaml_number (const YamlReader *self, const YamlNode *node)
{
  return (int) (node - self->document.nodes.start) + 1;
}
