// Bindings of plan, buy, train, check, scale, contention, validate, collective, compare and
// diagnose. Each returns (JSON, report, complete); on Ctrl-C it returns the results so far.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <vector>

#include "calibrate/import/import.hpp"
#include "python/attended.hpp"
#include "python/bindings.hpp"
#include "scenarios/claims/claims.hpp"
#include "scenarios/collective/measured_points.hpp"
#include "scenarios/comparison/comparison.hpp"
#include "scenarios/contention/contention.hpp"
#include "scenarios/exchange/export.hpp"
#include "scenarios/question/plan_request.hpp"
#include "scenarios/question/purchase_request.hpp"
#include "scenarios/question/validation_request.hpp"
#include "scenarios/runback/diagnosis.hpp"
#include "scenarios/runback/run_comparison.hpp"
#include "scenarios/scaling/scaling.hpp"
#include "scenarios/whole_run/whole_run.hpp"
#include "sim/output/durable_file.hpp"
#include "sim/trace/chrome.hpp"

namespace py = pybind11;

namespace orrery::scenarios {

namespace {

using Text = std::optional<std::string>;
using Texts = std::vector<std::string>;
constexpr ReportOptions plain{.tokens = {}, .published = {}, .width = 100, .colour = false};

Answered plan(const std::string& model, const std::string& cluster, std::int64_t global_batch,
              std::int64_t seq_len, const Text& software, const std::string& precision,
              const std::string& fixed, const std::string& exclude, const std::string& objective,
              const Text& pareto, double gap, const Text& tokens, const Text& deadline,
              const Text& data, std::optional<double> headroom, std::size_t top,
              const std::string& network, unsigned threads, const py::object& progress) {
  const auto mode = value_of(models::network_mode_words, network);
  if (!mode) throw InputError{"network", "expected auto or static, found '" + network + "'"};
  const PlanRequest request{.model = model,
                            .cluster = cluster,
                            .software = software,
                            .precision = precision,
                            .fixed = fixed,
                            .exclude = exclude,
                            .objective = objective,
                            .headroom = headroom,
                            .global_batch = global_batch,
                            .seq_len = seq_len,
                            .top = top,
                            .gap = gap,
                            .tokens = tokens,
                            .deadline = deadline,
                            .pareto = pareto,
                            .data = data,
                            .network = *mode,
                            .threads = threads};
  return attended(progress, [&](const Progress& counted) {
    const PlanSearch found = search(request, counted);
    const PlanReport report = found.report();
    return Answered{to_json(report).dump(), text_of(report, plain), !found.answer.stopped};
  });
}

Answered buy(const std::string& model, const std::string& tokens, const Text& software,
             const std::string& precision, std::optional<double> headroom, const Text& deadline,
             const Text& budget, double confidence, const std::string& term, const Texts& quotes,
             const Text& gpus, std::optional<std::int64_t> global_batch,
             std::optional<std::int64_t> seq_len, const Text& data, const Text& between,
             const Texts& nodes, std::size_t top, unsigned threads, const py::object& progress) {
  const PurchaseRequest request{.model = model,
                                .tokens = tokens,
                                .software = software,
                                .precision = precision,
                                .headroom = headroom,
                                .deadline = deadline,
                                .budget = budget,
                                .confidence = confidence,
                                .term = term,
                                .quotes = quotes,
                                .gpus = gpus,
                                .global_batch = global_batch,
                                .seq_len = seq_len,
                                .data = data,
                                .between = between,
                                .nodes = nodes,
                                .top = top,
                                .threads = threads};
  return attended(progress, [&](const Progress& counted) {
    const PurchaseSurvey found = survey(request, counted);
    const PurchaseReport report = found.report();
    return Answered{to_json(report).dump(), text_of(report, plain), !found.answer.stopped};
  });
}

/// The report is the files, and what the tool refuses.
Answered exported(const std::string& scenario, const Texts& to) {
  const Scenario loaded = Scenario::load(scenario);
  const ExportRequest request{.job = loaded.name(),
                              .cluster = {},
                              .collectives = loaded.json().value("collectives", Json(nullptr)),
                              .plan = loaded.json().value("plan", Json(nullptr))};
  const Exported found = export_launch(loaded.question(), to, request);
  std::string text;
  for (const LaunchText& each : found.files) text += "==> " + each.name + " <==\n" + each.text;
  for (const UnsaidOption& each : found.refused) {
    text += "refused: " + each.option + ": " + each.why + "\n";
  }
  return {to_json(found).dump(), text, true};
}

Answered trained(const std::string& scenario, const Text& tokens, const Text& deadline,
                 const Text& budget, double confidence, const Text& failures, bool all_in,
                 std::size_t samples, std::uint64_t seed, const Text& svg, unsigned threads,
                 const py::object& progress) {
  const WholeRunRequest request{.scenario = {.scenario = scenario},
                                .tokens = tokens,
                                .deadline = deadline,
                                .budget = budget,
                                .failures = failures,
                                .confidence = confidence,
                                .samples = samples,
                                .seed = seed,
                                .all_in = all_in,
                                .threads = threads};
  return attended(progress, [&](const Progress& counted) {
    const WholeRunReport report = train(request, counted);
    if (report.stopped) return Answered{"{}", "", false};
    if (svg) write_durably(*svg, picture_of(report));
    return Answered{to_json(report).dump(), text_of(report, plain.width, false), true};
  });
}

Answered checked(const std::string& claims, const std::string& name) {
  const std::vector<JudgedClaim> judged = judge_claims(Document::parse(claims, name));
  return {to_json(judged).dump(), text_of(judged, plain.width, false), true};
}

Answered scaled(const std::string& scenario, const std::string& gpus, const std::string& scaling,
                const Text& svg, unsigned threads, const py::object& progress) {
  const ScalingRequest request{.scenario = {.scenario = scenario},
                               .gpus = parse_gpu_counts(gpus),
                               .scaling = scaling_named(scaling),
                               .threads = threads};
  return attended(progress, [&](const Progress& counted) {
    const ScalingReport report = scale(request, counted);
    if (svg) write_durably(*svg, picture_of(report));
    return Answered{to_json(report).dump(), text_of(report, false), !report.stopped};
  });
}

Answered contended(const std::string& scenario, const Text& page, unsigned threads,
                   const py::object& progress) {
  const ContentionRequest request{.scenario = {.scenario = scenario}, .threads = threads};
  return attended(progress, [&](const Progress& counted) {
    const ContentionReport report = contend(request, counted);
    if (page) write_page(*page, report);
    return Answered{to_json(report).dump(), text_of(report, false), !report.stopped};
  });
}

Answered validated(const std::string& file, const Texts& by, const Texts& software,
                   std::optional<std::size_t> worst, const Text& page, const Text& record,
                   const Text& leave_out, std::size_t own, bool in_sample, unsigned threads,
                   const py::object& progress) {
  const ValidationRequest request{.file = file,
                                  .by = by,
                                  .software = software,
                                  .worst = worst,
                                  .page = page,
                                  .record = record,
                                  .leave_out = leave_out,
                                  .own = own,
                                  .in_sample = in_sample,
                                  .threads = threads};
  return attended(progress, [&](const Progress& counted) {
    const ValidationReport report = validate(request, counted);
    return Answered{report.json.dump(), report.text, !report.stopped};
  });
}

Answered collective(const std::string& cluster, const std::string& op, const Texts& sizes,
                    std::optional<std::int64_t> ranks, const std::string& algo,
                    const std::string& proto, std::optional<int> channels,
                    const std::string& counts, const std::string& network, const Text& choice,
                    const Texts& environment, const Texts& against, bool timing) {
  CollectiveRequest request{.cluster = cluster,
                            .operation = op,
                            .sizes = sizes,
                            .ranks = ranks,
                            .algorithm = algo,
                            .protocol = proto,
                            .channels = channels,
                            .counts = counts,
                            .network = network,
                            .choice = choice,
                            .environment = environment};
  for (const std::string& log : against) {
    for (MeasuredPoint& point : measured_points(calibrate::import_log(log).samples, log)) {
      request.against.push_back(std::move(point));
    }
  }
  const CollectiveReport report = answer(request);
  return {to_json(report, timing).dump(), text_of(report, timing, false), true};
}

Answered compared(const std::string& predicted, const std::string& measured) {
  const Comparison comparison = compare(read_chrome(predicted), read_chrome(measured), measured);
  return {to_json(comparison).dump(), comparison_report(comparison, false), true};
}

Answered run_compared(const std::string& scenario, const Texts& files, const std::string& step,
                      std::optional<std::size_t> skip, const Text& fit, const std::string& run) {
  const RunComparison found = compare_run(
      ScenarioRequest{.scenario = scenario}.load(),
      {.files = files, .profile = {.step_mark = step, .skip = skip}, .fit_out = fit, .run = run});
  return {to_json(found).dump(), text_of(found, plain.width, false), true};
}

Answered diagnosed(const Texts& files, const std::string& step, std::optional<std::size_t> skip) {
  DiagnosedLogs logs;
  for (const std::string& file : files) {
    if (add_run_log(file, {.step_mark = step, .skip = skip}, logs)) continue;
    logs.benchmarks.push_back(benchmark_log(calibrate::import_log(file)));
  }
  const Diagnosis found = diagnose(logs);
  return {to_json(found).dump(), text_of(found, plain.width, false), true};
}

}  // namespace

void bind_questions(py::module_& module) {
  using py::arg;
  module.def("export_launch", &exported, py::call_guard<py::gil_scoped_release>(), arg("scenario"),
             py::kw_only(), arg("to"));
  module.def("plan", &plan, py::kw_only(), arg("model"), arg("cluster"), arg("global_batch"),
             arg("seq_len"), arg("software"), arg("precision"), arg("fixed"), arg("exclude"),
             arg("objective"), arg("pareto"), arg("gap"), arg("tokens"), arg("deadline"),
             arg("data"), arg("headroom"), arg("top"), arg("network"), arg("threads"),
             arg("progress"));
  module.def("buy", &buy, py::kw_only(), arg("model"), arg("tokens"), arg("software"),
             arg("precision"), arg("headroom"), arg("deadline"), arg("budget"), arg("confidence"),
             arg("term"), arg("quote"), arg("gpus"), arg("global_batch"), arg("seq_len"),
             arg("data"), arg("between"), arg("nodes"), arg("top"), arg("threads"),
             arg("progress"));
  module.def("train", &trained, arg("scenario"), py::kw_only(), arg("tokens"), arg("deadline"),
             arg("budget"), arg("confidence"), arg("failures"), arg("all_in"), arg("samples"),
             arg("seed"), arg("svg"), arg("threads"), arg("progress"));
  module.def("check", &checked, py::call_guard<py::gil_scoped_release>(), arg("claims"),
             arg("name"));
  module.def("scale", &scaled, arg("scenario"), py::kw_only(), arg("gpus"), arg("scaling"),
             arg("svg"), arg("threads"), arg("progress"));
  module.def("contention", &contended, arg("scenario"), py::kw_only(), arg("page"), arg("threads"),
             arg("progress"));
  module.def("validate", &validated, arg("file"), py::kw_only(), arg("by"), arg("software"),
             arg("worst"), arg("page"), arg("record"), arg("leave_out"), arg("own"),
             arg("in_sample"), arg("threads"), arg("progress"));
  module.def("collective", &collective, py::call_guard<py::gil_scoped_release>(), py::kw_only(),
             arg("cluster"), arg("op"), arg("sizes"), arg("ranks"), arg("algo"), arg("proto"),
             arg("channels"), arg("counts"), arg("network"), arg("choice"), arg("env"),
             arg("against"), arg("timing"));
  module.def("compare", &compared, py::call_guard<py::gil_scoped_release>(), arg("predicted"),
             arg("measured"));
  module.def("compare_run", &run_compared, py::call_guard<py::gil_scoped_release>(),
             arg("scenario"), py::kw_only(), arg("files"), arg("step"), arg("skip"), arg("fit"),
             arg("run"));
  module.def("diagnose", &diagnosed, py::call_guard<py::gil_scoped_release>(), py::kw_only(),
             arg("files"), arg("step"), arg("skip"));
}

}  // namespace orrery::scenarios
