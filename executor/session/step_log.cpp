#include "executor/session/step_log.hpp"

#include "sim/input/document.hpp"

namespace orrery::executor {

StepLog::StepLog(const models::Question& question, const SessionOptions& options) {
  if (options.log) file_.emplace(*options.log);
  if (!options.metrics_port) return;
  page_.emplace(Address{.host = options.metrics_address.value_or("127.0.0.1"),
                        .port = *options.metrics_port});
  page_->set("orrery_ranks", MetricsPage::Kind::gauge, "Ranks of the run",
             static_cast<double>(question.plan.gpus()));
}

void StepLog::resume_after(std::int64_t steps) {
  if (!file_) return;
  file_->cut_back([&](std::string_view line) {
    const Json found = Json::parse(line, nullptr, false);
    if (!found.is_object() || !found.contains("loss")) return false;
    const auto step = found.find("step");
    return step != found.end() && step->is_number_integer() && step->get<std::int64_t>() > steps;
  });
}

void StepLog::add(const MeasuredStep& step) {
  const double rate = step.tokens / step.seconds;
  trained_ += step.tokens;
  if (file_) {
    const Json line{{"step", step.index + 1},
                    {"loss", step.loss},
                    {"gradient_norm", step.gradient_norm},
                    {"loss_scale", step.loss_scale},
                    {"skipped_updates", step.skipped},
                    {"step_time_s", step.seconds},
                    {"tokens_per_s", rate}};
    file_->add(line.dump());
  }
  if (page_) show(step, rate);
}

void StepLog::show(const MeasuredStep& step, double rate) {
  using Kind = MetricsPage::Kind;
  page_->set("orrery_step", Kind::counter, "Steps done", static_cast<double>(step.index + 1));
  page_->set("orrery_loss", Kind::gauge, "Mean loss of the last step", step.loss);
  page_->set("orrery_gradient_norm", Kind::gauge, "Gradient norm before clipping",
             step.gradient_norm);
  page_->set("orrery_step_time_seconds", Kind::gauge, "Duration of the last step", step.seconds);
  page_->set("orrery_tokens_total", Kind::counter, "Tokens trained on by this run", trained_);
  page_->set("orrery_tokens_per_second", Kind::gauge, "Tokens per second in the last step", rate);
}

}  // namespace orrery::executor
