#pragma once
// What a launch file says in the words that tools share: fields of a plan, model and cluster, and
// quantities from which fields follow (accumulation, buckets in elements, layers per virtual
// stage). Both directions between facts and plans stand here, so that neither tool nor file format
// matters for them.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/model/model.hpp"
#include "models/plan/plan.hpp"

namespace orrery::scenarios {

/// Facts as text, lists with colons as in --plan.
class Facts {
 public:
  /// One of `values` holds. Where earlier statements leave several, those in common stay, in the
  /// order of `values`; where nothing is in common, the later statement counts.
  void narrow(const std::string& field, const std::vector<std::string>& values);
  void set(const std::string& field, std::string value) { values_[field] = {std::move(value)}; }
  void erase(const std::string& field) { values_.erase(field); }

  bool has(std::string_view field) const { return values_.find(field) != values_.end(); }
  bool is(std::string_view field, std::string_view value) const { return text(field) == value; }
  /// Empty where nothing is known.
  std::string text(std::string_view field) const;
  std::optional<std::int64_t> integer(std::string_view field) const;
  std::optional<double> number(std::string_view field) const;
  std::int64_t integer_or(std::string_view field, std::int64_t otherwise) const {
    return integer(field).value_or(otherwise);
  }
  /// The fields in alphabetical order.
  std::vector<std::string> fields() const;

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

/// What else a plan follows from.
struct FactBasis {
  const models::Model* model = nullptr;  // none: not known
  std::int64_t gpus = 0;                 // 0: not known
  double gradient_bytes = 4;             // of one gradient, as it is reduced
  /// Fields whose value is a fact though it is a default that plans leave out.
  std::set<std::string, std::less<>> stated{};
};

/// A plan without the fields that no fact states.
/// notes  one sentence for each fact that cannot be a field, and why
Json plan_of(Facts facts, const FactBasis& basis, std::vector<std::string>& notes);

/// Every field of a complete plan that matters in it, and the quantities that follow.
/// Fields that do not matter (context_form without context parallelism) are left out.
Facts facts_of(const models::Plan& plan, const FactBasis& basis);

/// Pipeline chunks as Megatron-Core's pipeline_model_parallel_layout writes them: E embedding, t a
/// layer, m a layer that predicts further tokens, L loss, * repeats, | between chunks in model
/// order. predictions  layers of the model that predict further tokens, all on the last chunk
/// Source  Megatron-LM, core/transformer/pipeline_parallel_layer_layout.py
std::string layout_of(const std::vector<std::int64_t>& layers, std::int64_t predictions = 0);
/// Layers of each chunk. Errors  nullopt: not such a text
std::optional<std::vector<std::int64_t>> layers_of_layout(std::string_view layout);

/// Model facts (model.layers, ...) as Orrery's own JSON for a model, or the name of the catalogue's
/// model with the same sizes; null: not enough is known.
Json model_of(const Facts& facts, std::vector<std::string>& notes);
/// A model of torchtitan: model.name and model.flavor.
struct ModelFlavor {
  std::string_view family, flavor, model;  // of the catalogue
};
/// null: torchtitan has no flavor of that model. Source  torchtitan 0.2.2, models/*/__init__.py
const ModelFlavor* flavor_of(std::string_view model);
/// The name of the catalogue's model that another hub's or tool's name means, such as
/// "meta-llama/Llama-3.1-8B" or "llama3 8B"; empty: none.
std::string catalogue_model(std::string_view name);
/// Facts of a model. not_said  sentences about what no fact says
Facts facts_of(const models::Model& model, std::vector<std::string>& not_said);

}  // namespace orrery::scenarios
