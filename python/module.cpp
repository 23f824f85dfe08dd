// orrery._core: takes scenarios and returns answers as JSON text. The public API is python/orrery,
// which adds types and names; both compute only what the command `orrery` computes. All functions
// here run without the GIL and share no state, so threads run in parallel.

#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/errors.hpp"
#include "hardware/catalogue.hpp"
#include "models/model/model.hpp"
#include "models/prediction/prediction.hpp"
#include "models/software/software.hpp"
#include "python/bindings.hpp"
#include "scenarios/page/page.hpp"
#include "scenarios/page/step_document.hpp"
#include "scenarios/report/result.hpp"
#include "scenarios/report/trace_file.hpp"
#include "scenarios/scenario/scenario.hpp"
#include "scenarios/schema/schema.hpp"
#include "scenarios/version.hpp"
#include "sim/errors.hpp"
#include "sim/input/document.hpp"

namespace py = pybind11;

namespace orrery::scenarios {

namespace {

using Names = std::vector<std::string>;
using Unlocked = py::call_guard<py::gil_scoped_release>;

/// A prediction with its question.
struct Answer {
  models::Question question;
  models::Prediction prediction;
  std::optional<Published> published;
  std::optional<double> tokens;
};

Scenario load(const std::optional<std::string>& path_or_name,
              const std::optional<std::string>& model, const std::optional<std::string>& cluster,
              const std::optional<std::string>& plan, const std::optional<std::string>& software) {
  return Scenario::load(path_or_name, {model, cluster, plan, software});
}

Scenario parse(const std::string& text, const std::string& name) {
  return Scenario::parse(Document::parse(text, name).json(), name);
}

/// A copy of the scenario with values replaced; each value is JSON text.
Scenario replace(const Scenario& scenario,
                 const std::vector<std::pair<std::string, std::string>>& changes) {
  std::vector<std::pair<std::string, Json>> parsed;
  for (const auto& [pointer, text] : changes) {
    parsed.emplace_back(pointer, Document::parse(text, pointer).json());
  }
  return scenario.replace(parsed);
}

/// Rewrites an error message that names flags: a --set is named by its pointer, another flag by its
/// argument.
std::string without_flags(const std::string& message) {
  for (const std::string flag : {"--set ", "--set: "}) {
    if (message.rfind(flag, 0) == 0) return message.substr(flag.size());
  }
  if (message.rfind("--", 0) != 0) return message;
  std::string named = message.substr(2);
  const std::size_t end = std::min(named.find(':'), named.size());
  std::replace(named.begin(), named.begin() + static_cast<std::ptrdiff_t>(end), '-', '_');
  return named;
}

double checked_headroom(double share) {
  if (share >= 0 && share < 1) return share;
  throw InputError{"headroom", fmt::format("expected a share from 0 to below 1, found {}", share)};
}

/// headroom: share of a GPU's memory to leave free; nothing: the measured error
Answer predict(const Scenario& scenario, std::optional<double> headroom) {
  models::Question question = scenario.question();
  if (headroom) question.headroom = checked_headroom(*headroom);
  models::Prediction prediction = models::predict(question);
  return {std::move(question), std::move(prediction), scenario.published(), scenario.tokens()};
}

std::string answer_json(const Answer& answer) {
  return to_json(answer.question, answer.prediction, answer.tokens).dump();
}

std::string answer_report(const Answer& answer, bool explain, int width) {
  return report(answer.question, answer.prediction,
                {.explain = explain,
                 .tokens = answer.tokens,
                 .published = answer.published,
                 .width = width,
                 .colour = false});
}

/// Returns the files that were written.
Names save_trace(const Answer& answer, const std::string& path, bool operations, bool kineto) {
  const TraceDetail detail = operations ? TraceDetail::operations : TraceDetail::instructions;
  const MarkedTrace marked = marked_trace_of(answer.question, answer.prediction, detail);
  if (!kineto) return {write_trace_file(marked, path).path};
  Names written;
  for (const WrittenTrace& each : write_kineto(marked, answer.question, answer.prediction, path)) {
    written.push_back(each.path);
  }
  return written;
}

/// documents  name and text of each; one without a text is the file of that name
std::string page(const std::vector<std::pair<std::string, std::optional<std::string>>>& documents) {
  std::vector<Document> read;
  for (const auto& [name, text] : documents) {
    read.push_back(text ? result_of(*text, name) : load_result(name));
  }
  return page_of(read);
}

Names catalogue(const std::string& kind) {
  if (kind == "gpus") return hardware::Catalogue::gpus();
  if (kind == "nodes") return hardware::Catalogue::nodes();
  if (kind == "clusters") return hardware::Catalogue::clusters();
  if (kind == "models") return models::model_names();
  if (kind == "software") return models::software_names();
  if (kind == "scenarios") return scenario_names();
  throw ContractError{"catalogue: a kind that orrery.catalogue does not name"};
}

/// InputError becomes orrery.InputError, a ValueError; RunFailure becomes orrery.RunFailure;
/// OutputError is an OSError; ContractError is a RuntimeError already.
void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const InputError& error) {
    const py::object type = py::module_::import("orrery.errors").attr("InputError");
    PyErr_SetObject(type.ptr(), py::str(without_flags(error.what())).ptr());
  } catch (const executor::RunFailure& error) {
    const py::object type = py::module_::import("orrery.errors").attr("RunFailure");
    const auto code = static_cast<int>(error.code());
    PyErr_SetObject(type.ptr(), type(error.what(), code).ptr());
  } catch (const OutputError& error) {
    PyErr_SetString(PyExc_OSError, error.what());
  }
}

}  // namespace

}  // namespace orrery::scenarios

PYBIND11_MODULE(_core, module) {
  using namespace orrery::scenarios;
  using py::arg;
  py::register_local_exception_translator(translate);

  py::class_<Scenario>(module, "Scenario", py::is_final())
      .def_property_readonly("json", [](const Scenario& self) { return self.json().dump(); })
      .def_property_readonly("name", &Scenario::name)
      .def_property_readonly("file", &Scenario::file)
      .def(
          "heading",
          [](const Scenario& self) { return heading_of(self.name(), self.question()).dump(); },
          Unlocked())
      .def("replace", &replace, Unlocked(), arg("changes"))
      .def("predict", &predict, Unlocked(), py::kw_only(), arg("headroom"));

  py::class_<Answer>(module, "Prediction", py::is_final())
      .def("json", &answer_json, Unlocked())
      .def("report", &answer_report, Unlocked(), py::kw_only(), arg("explain"), arg("width"))
      .def(
          "timeline", [](const Answer& self) { return timeline_json(self.prediction).dump(); },
          Unlocked())
      .def("save_trace", &save_trace, Unlocked(), arg("path"), py::kw_only(), arg("operations"),
           arg("kineto"));

  module.def("load", &load, Unlocked(), arg("path_or_name"), py::kw_only(), arg("model"),
             arg("cluster"), arg("plan"), arg("software"));
  module.def("parse", &parse, Unlocked(), arg("text"), arg("name"));
  module.def("catalogue", &catalogue, arg("kind"));
  module.def("page", &page, Unlocked(), arg("documents"));
  module.def(
      "schema", [](const std::string& name) { return schema_named(name).dump(); }, arg("name"));
  module.def("made_with", [] { return made_with().dump(); });
  module.attr("__version__") = version_number;
  bind_questions(module);
  bind_execution(module);
  bind_calibration(module);
  bind_sweeps(module);
}
