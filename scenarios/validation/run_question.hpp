#pragma once
// From what a run states to what `predict` is asked: model, plan, cluster and software, with the
// stack's defaults in the cells that are empty, each reported as an assumption.

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "models/prediction/prediction.hpp"
#include "scenarios/validation/measured_run.hpp"
#include "scenarios/validation/run_cluster.hpp"

namespace orrery::scenarios {

/// Why a run cannot be simulated, in words.
struct Skip {
  std::string reason;
};

/// Asks questions of runs. `profiles` stand before the shipped ones for the stacks that they name.
class Questions {
 public:
  explicit Questions(std::vector<models::Software> profiles = {})
      : profiles_{std::move(profiles)} {}

  std::variant<models::Question, Skip> of(const MeasuredRun& run);

 private:
  models::Question question_of(const MeasuredRun& run);

  RunClusters clusters_;
  std::vector<models::Software> profiles_;
};

/// Empty if today's models reach the run; otherwise why not.
std::string out_of_scope(const MeasuredRun& run);

/// The transformer that a row's sizes describe. Family says the rest: `gpt` learned positions, a
/// plain MLP and tied embeddings; `llama` rotary positions, a gated MLP and untied embeddings;
/// `bert` an encoder with its pre-training heads.
models::Model model_of(const MeasuredRun& run, const models::RunDefaults& defaults,
                       std::vector<std::string>& assumptions);

/// The plan of a row; every default is reported. What neither the row nor the recipes of its stack
/// state is the stack's default.
models::Plan plan_of(const MeasuredRun& run, const models::Model& model,
                     const models::RunDefaults& defaults, std::vector<std::string>& assumptions,
                     const hardware::Gpu* gpu = nullptr);

}  // namespace orrery::scenarios
