#pragma once
// JSON Schema (draft 2020-12) of the documents that orrery reads and prints. Members are rows of
// inputs.csv and answers.csv; the fields of a plan, the words of enumerations, units and quantities
// of claims come from the tables that read them. What a schema cannot say is left to the readers:
// members that exclude each other, names that must be in the catalogue.

#include <string>
#include <vector>

#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// A document that has a schema of its own.
struct SchemaName {
  std::string name;
  bool is_input = true;
  std::string meaning;
};
/// Inputs first, in the order of the tables.
std::vector<SchemaName> schema_names();

/// An input's objects accept no other members, as its reader does; an answer's may get more later.
/// Errors  an unknown name: InputError
Json schema_named(const std::string& name);

/// One line for each document.
std::string schema_list_text(int width, bool colour);

}  // namespace orrery::scenarios
