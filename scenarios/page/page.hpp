#pragma once
// One page of HTML of the answers of orrery: what is predicted with its range, what was assumed and
// where it goes, for a person who decides and for one who checks. It needs no network and no
// script, follows the light or dark theme of the reader, and prints.

#include <string>
#include <vector>

#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// The page of these documents, a section each; of several, a table that compares them first.
/// Documents are what `--json` of simulate (and its tables of what-ifs), plan, buy, train, compare
/// and check prints, and `sweep_document` of a store. All their texts are escaped.
/// Errors  another document, or one that lacks a member: InputError
std::string page_of(const std::vector<Document>& documents);

/// The document of a file: what it holds, or what the page shows of a sweep's store.
/// Errors  a file that cannot be read or is damaged, a store in Parquet: InputError
Document load_result(const std::string& path);
/// The same of a text; `name` is in errors and titles.
Document result_of(const std::string& text, const std::string& name);

}  // namespace orrery::scenarios
