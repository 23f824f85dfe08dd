#pragma once
// Builds the question that `predict` answers from what a run states: model, plan, cluster and
// software, with the stack's defaults for empty cells, each reported as an assumption.

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "models/prediction/prediction.hpp"
#include "scenarios/validation/runs/measured_run.hpp"
#include "scenarios/validation/runs/run_cluster.hpp"

namespace orrery::scenarios {

/// The reason why a run cannot be simulated.
struct Skip {
  std::string reason;
};

/// Builds the questions of runs. `profiles` replace the shipped ones for the stacks that they name.
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

/// Why a run cannot be simulated today; empty if it can.
std::string out_of_scope(const MeasuredRun& run);

/// The transformer that a row's sizes describe. The family decides the rest: `gpt` has learned
/// positions, a plain MLP and tied embeddings; `llama` rotary positions, a gated MLP and untied
/// embeddings; `bert` is an encoder with its pre-training heads.
models::Model model_of(const MeasuredRun& run, const models::RunDefaults& defaults,
                       std::vector<std::string>& assumptions);

/// The plan of a row. What neither the row nor the recipes of its stack state is the stack's
/// default; every default is reported.
models::Plan plan_of(const MeasuredRun& run, const models::Model& model,
                     const models::Software& software, std::vector<std::string>& assumptions,
                     const hardware::Gpu* gpu = nullptr);

}  // namespace orrery::scenarios
