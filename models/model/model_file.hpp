#pragma once
// Finds and reads the file of a model as it was downloaded: a config.json, or the folder that holds
// one.

#include <optional>
#include <string>
#include <vector>

#include "models/model/model.hpp"
#include "sim/input/document.hpp"

namespace orrery::models {

/// The config.json of a folder; nullopt if `path` is no folder with one.
std::optional<std::string> config_of_folder(const std::string& path);

/// A model's JSON, which may hold Python's NaN and Infinity, and a key twice that decides nothing
/// (irrelevant_keys.hpp). One without a name, or a path as its name, is named after its file; a
/// config.json after its folder.
/// Errors  as Document::load
Document load_model(const std::string& path);

/// "/model/rope_type: not used" for each key of the file that was not used, but for those of which
/// the model's assumptions say so.
std::vector<std::string> unused_keys_said(const Model& model);
/// What its reader assumed, by the place in a scenario: "/model/seq_len: ...", "/model: ...".
std::vector<std::string> assumptions_said(const Model& model);

}  // namespace orrery::models
