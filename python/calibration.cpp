// Bindings of `calibrate`: measures this machine, or imports logs, into a cluster profile.

#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <vector>

#include "calibrate/calibrate.hpp"
#include "calibrate/import/import_logs.hpp"
#include "hardware/catalogue.hpp"
#include "python/attended.hpp"
#include "python/bindings.hpp"
#include "scenarios/exchange/sections.hpp"
#include "scenarios/question/one_gpu_scenarios.hpp"
#include "sim/input/units.hpp"

namespace py = pybind11;

namespace orrery::scenarios {

namespace {

using Text = std::optional<std::string>;

Time budget_of(const std::string& text) {
  const auto budget = parse_quantity<Time>(text);
  if (budget && *budget >= 1_s) return *budget;
  throw InputError{"budget", fmt::format("expected a time of 1 s or more, found '{}'", text)};
}

Json expanded_cluster(const std::string& text) {
  return is_path(text) ? hardware::expand_cluster(Document::load(text).root())
                       : hardware::Catalogue::cluster(text);
}

Answered calibrated(const std::string& backend, const std::string& budget,
                    const std::vector<int>& ranks, const std::string& fabric, const Text& storage,
                    const Text& cluster, std::int64_t widest, const Text& out, std::uint64_t seed,
                    const py::object& progress) {
  calibrate::CalibrateRequest request{.backend = backend,
                                      .budget = budget_of(budget),
                                      .ranks = ranks,
                                      .fabric = fabric,
                                      .storage = storage,
                                      .cluster = {},
                                      .widest = widest,
                                      .plans = {},
                                      .out = out,
                                      .seed = seed};
  if (cluster) request.cluster = expanded_cluster(*cluster);
  for (const NamedQuestion& each : one_gpu_scenarios()) {
    request.plans.push_back({each.name, each.question.model, each.question.plan});
  }
  return attended(progress, [&](const calibrate::Watcher& counted) {
    const calibrate::CalibrateAnswer answer = calibrate::calibrate(request, counted);
    if (!answer.profile) return Answered{"null", "", !answer.stopped};
    return Answered{to_json(request, answer).dump(), table_of(answer), !answer.stopped};
  });
}

Answered imported(const std::vector<std::string>& logs, const Text& cluster, const Text& out) {
  calibrate::ImportRequest request{.logs = logs, .cluster_name = cluster.value_or(""), .out = out};
  if (cluster) {
    request.cluster = expanded_cluster(*cluster);
  }
  const calibrate::ImportAnswer answer = calibrate::import_logs(request);
  return {to_json(request, answer).dump(), table_of(request, answer), true};
}

}  // namespace

void bind_calibration(py::module_& module) {
  using py::arg;
  module.def("calibrate", &calibrated, py::kw_only(), arg("backend"), arg("budget"), arg("ranks"),
             arg("fabric"), arg("storage"), arg("cluster"), arg("widest"), arg("out"), arg("seed"),
             arg("progress"));
  module.def("import_logs", &imported, py::call_guard<py::gil_scoped_release>(), py::kw_only(),
             arg("logs"), arg("cluster"), arg("out"));
}

}  // namespace orrery::scenarios
