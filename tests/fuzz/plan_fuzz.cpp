// Plans, as JSON and as the command line writes them, up to the prediction of a small model: its
// figures are possible, or the plan is refused.
#include "hardware/catalogue.hpp"
#include "models/plan/conflicts.hpp"
#include "models/prediction/prediction.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace orrery::models {
namespace {

Question small_question() {
  Question question;
  const Document model = Document::parse(
      R"({"format": "orrery-model", "layers": 2, "hidden": 64, "heads": 4, "vocab": 128,
          "max_positions": 1073741824, "positions": "rotary"})",
      "model.json");
  question.model = read_model(model.root());
  question.cluster = hardware::named_cluster("dgx-h100");
  const Document software = Document::from(software_profile("megatron-lm"), "software.json");
  question.software = read_software(software.root());
  return question;
}

void predict_quickly(const Question& question) {
  constexpr std::int64_t quickly = 256;  // micro-batches
  if (question.plan.micro_batches() > quickly) return;
  const Prediction prediction = predict(question);
  if (!(prediction.mfu >= 0 && prediction.mfu <= 1)) std::abort();
  if (prediction.step <= Time{} || !(prediction.tokens_per_second > 0)) std::abort();
}

}  // namespace
}  // namespace orrery::models

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  static const models::Question small = models::small_question();
  const std::string_view text = text_of(data, size);
  const bool json = !text.empty() && text.front() == '{';
  survives([&] {
    const Document plan = json ? Document::parse(text, "plan.json")
                               : Document::from(models::plan_from_text(text), "--plan");
    models::Question question = small;
    question.plan =
        models::read_plan(plan.root(), small.model, small.cluster.gpus(), question.assumptions);
    if (!models::conflicts(question).empty()) return;
    models::predict_quickly(question);
  });
  return 0;
}
