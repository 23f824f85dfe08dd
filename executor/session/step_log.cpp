#include "executor/session/step_log.hpp"

#include <algorithm>

#include "sim/input/document.hpp"

namespace orrery::executor {

StepLog::StepLog(const models::Question& question, const SessionOptions& options)
    : ranks_{question.plan.gpus()} {
  if (options.log) file_.emplace(*options.log);
  if (options.mlflow) mlflow_.emplace(*options.mlflow, question, options);
  if (!options.metrics_port) return;
  page_.emplace(Address{.host = options.metrics_address.value_or("127.0.0.1"),
                        .port = *options.metrics_port});
  gpus_.emplace();
  using Kind = MetricsPage::Kind;
  page_->set("orrery_ranks", Kind::gauge, "Ranks of the run", static_cast<double>(ranks_));
  page_->set("orrery_steps_asked", Kind::gauge, "Steps of the whole training",
             static_cast<double>(options.steps));
  page_->set("orrery_resumed_from_step", Kind::gauge, "Steps that the checkpoint had", 0);
  show_machine();
}

void StepLog::expect(Time step, double model_flops) {
  model_flops_ = model_flops;
  if (!page_) return;
  page_->set("orrery_predicted_step_time_seconds", MetricsPage::Kind::gauge,
             "Duration of a step as predicted", seconds(step));
}

void StepLog::resume_after(std::int64_t steps) {
  if (mlflow_) mlflow_->tag("orrery.resumed_from_step", std::to_string(steps));
  if (page_) {
    page_->set("orrery_resumed_from_step", MetricsPage::Kind::gauge,
               "Steps that the checkpoint had", static_cast<double>(steps));
  }
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
                    {"input_wait_s", seconds(step.input.wait)},
                    {"tokens_per_s", rate}};
    file_->add(line.dump());
  }
  if (mlflow_) mlflow_->add(step);
  if (page_) show(step, rate);
}

void StepLog::finish() {
  if (mlflow_) mlflow_->finish();
}

void StepLog::show_machine() {
  const auto now = Clock::now();
  if (machine_read_ && now - *machine_read_ < std::chrono::seconds{1}) return;
  machine_read_ = now;
  for (const auto& metrics : {host_metrics(), gpus_->read()}) {
    for (const NamedMetric& each : metrics) {
      page_->set(each.name, each.kind, each.help, each.value);
    }
  }
}

void StepLog::show(const MeasuredStep& step, double rate) {
  using Kind = MetricsPage::Kind;
  page_->set("orrery_step", Kind::gauge, "Steps done", static_cast<double>(step.index + 1));
  page_->set("orrery_loss", Kind::gauge, "Mean loss of the last step", step.loss);
  page_->set("orrery_gradient_norm", Kind::gauge, "Gradient norm before clipping",
             step.gradient_norm);
  page_->set("orrery_step_time_seconds", Kind::gauge, "Duration of the last step", step.seconds);
  page_->set("orrery_input_wait_seconds", Kind::gauge,
             "Time that the last step waited for its batch", seconds(step.input.wait));
  page_->set("orrery_tokens_total", Kind::counter, "Tokens trained on by this run", trained_);
  page_->set("orrery_tokens_per_second", Kind::gauge, "Tokens per second in the last step", rate);
  page_->set("orrery_tokens_per_second_per_rank", Kind::gauge, "The same for each rank",
             rate / static_cast<double>(ranks_));
  page_->set("orrery_model_flops_per_second", Kind::gauge,
             "FLOPs of the model per second in the last step", model_flops_ / step.seconds);
  page_->set("orrery_loss_scale", Kind::gauge, "Loss scale of fp16", step.loss_scale);
  page_->set("orrery_skipped_updates_total", Kind::counter, "Updates skipped for overflow",
             static_cast<double>(step.skipped));
  stepping_ += step.seconds;
  const double passed = std::chrono::duration<double>(Clock::now() - began_).count();
  page_->set("orrery_stepping_seconds_total", Kind::counter, "Time in steps of this run",
             stepping_);
  page_->set("orrery_run_seconds_total", Kind::counter, "Time since this run began", passed);
  page_->set("orrery_goodput_ratio", Kind::gauge, "Share of the run's time that was in steps",
             passed > 0 ? std::min(1.0, stepping_ / passed) : 0);
  show_machine();
}

}  // namespace orrery::executor
