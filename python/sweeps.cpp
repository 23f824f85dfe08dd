// Bindings of sweeps that are stored: their questions, lines of a range of variants, and the store
// of JSON lines.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/attended.hpp"
#include "python/bindings.hpp"
#include "scenarios/search/query.hpp"
#include "scenarios/whatif/sensitivity.hpp"
#include "scenarios/whatif/sweep.hpp"
#include "sim/output/durable_file.hpp"

namespace py = pybind11;

namespace orrery::scenarios {

namespace {

using Text = std::optional<std::string>;

/// Pointers with their values, each as JSON text.
using Vary = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// A sweep's questions, with what its answers share.
class StoredSweep {
 public:
  StoredSweep(const Scenario& base, const Vary& vary, const Text& tokens,
              std::optional<double> headroom, std::uint64_t limit)
      : questions_{sweep_questions(base, lists_of(vary), request_of(tokens, headroom), limit)},
        answers_{questions_} {}

  std::uint64_t variants() const { return questions_.grid.variants(); }
  std::string header(std::uint64_t number, std::uint64_t of) const {
    return store_header(questions_, {number, of});
  }
  std::pair<std::uint64_t, std::uint64_t> range(std::uint64_t number, std::uint64_t of) const {
    const SweepShard shard{number, of};
    return {shard.begin(variants()), shard.end(variants())};
  }

  /// The lines of [begin, end), and whether all are there.
  Answered lines(std::uint64_t begin, std::uint64_t end, unsigned threads,
                 const py::object& progress) {
    return attended(progress, [&](const Progress& counted) {
      std::string all;
      const bool complete = sweep_lines(
          answers_, questions_.grid, begin, end, {.threads = threads, .progress = counted},
          [&](std::string_view lines, std::uint64_t) { all += lines; });
      return Answered{std::move(all), "", complete};
    });
  }

  Answered run(const std::string& store, std::uint64_t number, std::uint64_t of, unsigned threads,
               const py::object& progress) {
    return attended(progress, [&](const Progress& counted) {
      const SweepReport report =
          sweep(questions_, {.store = store, .shard = {number, of}, .threads = threads}, counted);
      return Answered{to_json(report).dump(), text_of(report, false), !report.stopped};
    });
  }

 private:
  static std::vector<ValueList> lists_of(const Vary& vary) {
    std::vector<ValueList> lists;
    for (const auto& [pointer, texts] : vary) {
      ValueList& list = lists.emplace_back(ValueList{pointer, {}});
      for (const std::string& text : texts) {
        list.values.push_back(Document::parse(text, pointer).json());
      }
    }
    return lists;
  }
  static WhatIfRequest request_of(const Text& tokens, std::optional<double> headroom) {
    WhatIfRequest request{.headroom = headroom, .tokens = {}};
    if (tokens) request.tokens = read_tokens_flag(*tokens);
    return request;
  }

  SweepQuestions questions_;
  SweepAnswers answers_;
};

/// A store of JSON lines that chunks from elsewhere are appended to.
class LineStore {
 public:
  LineStore(const std::string& path, const StoredSweep& sweep, std::uint64_t number,
            std::uint64_t of)
      : LineStore{path, sweep.header(number, of), sweep.range(number, of)} {}

  std::uint64_t next() const { return store_->next(); }
  void append(const std::string& lines) {
    store_->append(lines, static_cast<std::uint64_t>(std::count(lines.begin(), lines.end(), '\n')));
  }
  void close() {
    if (store_) store_->flush();
    store_.reset();
  }

 private:
  LineStore(const std::string& path, const std::string& header,
            std::pair<std::uint64_t, std::uint64_t> range)
      : store_{std::make_unique<SweepStore>(path, header, range.first, range.second,
                                            [](std::string_view) {})} {}
  std::unique_ptr<SweepStore> store_;
};

std::unique_ptr<StoredSweep> stored_sweep(const Scenario& base, const Vary& vary,
                                          const Text& tokens, std::optional<double> headroom,
                                          std::uint64_t limit) {
  return std::make_unique<StoredSweep>(base, vary, tokens, headroom, limit);
}

std::unique_ptr<LineStore> line_store(const std::string& path, const StoredSweep& sweep,
                                      std::uint64_t number, std::uint64_t of) {
  return std::make_unique<LineStore>(path, sweep, number, of);
}

std::pair<std::uint64_t, std::uint64_t> shard_of(const std::string& text) {
  const SweepShard shard = parse_shard(text);
  return {shard.number, shard.of};
}

Answered sensed(const Scenario& scenario, std::optional<double> headroom, const Text& svg,
                unsigned threads, const py::object& progress) {
  return attended(progress, [&](const Progress& counted) {
    const SensitivityReport report =
        sensitivity(scenario, headroom, {.threads = threads, .progress = counted});
    if (svg && !report.stopped) write_durably(*svg, picture_of(report));
    const Json json{{"scenario", report.scenario}, {"numbers", to_json(report)}};
    return Answered{json.dump(), text_of(report, false), !report.stopped};
  });
}

std::string merged(const std::vector<std::string>& files, const std::string& store) {
  DurableFile out{store};
  const MergedSweep found = merge_stores(files, [&](std::string_view lines) { out.write(lines); });
  out.commit();
  return Json{{"store", store},
              {"scenario", found.scenario},
              {"shards", found.shards},
              {"variants", found.variants}}
      .dump();
}

}  // namespace

void bind_sweeps(py::module_& module) {
  using py::arg;
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  py::class_<StoredSweep>(module, "StoredSweep", py::is_final())
      .def_property_readonly("variants", &StoredSweep::variants)
      .def("header", &StoredSweep::header, Unlocked(), arg("number"), arg("of"))
      .def("range", &StoredSweep::range, arg("number"), arg("of"))
      .def("lines", &StoredSweep::lines, arg("begin"), arg("end"), py::kw_only(), arg("threads"),
           arg("progress"))
      .def("run", &StoredSweep::run, arg("store"), py::kw_only(), arg("number"), arg("of"),
           arg("threads"), arg("progress"));
  py::class_<LineStore>(module, "LineStore", py::is_final())
      .def_property_readonly("next", &LineStore::next)
      .def("append", &LineStore::append, Unlocked(), arg("lines"))
      .def("close", &LineStore::close, Unlocked());
  module.def("stored_sweep", &stored_sweep, Unlocked(), arg("base"), arg("vary"), py::kw_only(),
             arg("tokens"), arg("headroom"), arg("limit"));
  module.def("line_store", &line_store, Unlocked(), arg("path"), arg("sweep"), arg("number"),
             arg("of"));
  module.def("sensitivity", &sensed, arg("scenario"), py::kw_only(), arg("headroom"), arg("svg"),
             arg("threads"), arg("progress"));
  module.def("parse_shard", &shard_of, arg("text"));
  module.def("merge", &merged, Unlocked(), arg("files"), arg("store"));
}

}  // namespace orrery::scenarios
