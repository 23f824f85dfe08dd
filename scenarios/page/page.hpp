#pragma once
// One page of HTML of the answers of orrery: what is predicted with its range, what was assumed and
// where it goes, for a person who decides and for one who checks. It needs no network and no
// script, follows the light or dark theme of the reader, and prints.

#include <string>
#include <vector>

#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// The page of these documents, a section each; of several, a table that compares them first.
/// Documents are what `--json` of simulate (and its tables of what-ifs), plan, buy, train and check
/// prints. All their texts are escaped.
/// Errors  another document, or one that lacks a member: InputError
std::string page_of(const std::vector<Document>& documents);

}  // namespace orrery::scenarios
