// Reads the output of `nccl-tests -J FILE`: the same figures as the text, with booleans as strings
// and null for what was not run. `cpu_time` stands for `time` under -C.
// Source  the writer in nccl-tests 2.18 (no genuine file was found in public)

#include <fmt/format.h>

#include <algorithm>

#include "calibrate/import/log_lines.hpp"
#include "calibrate/import/nccl_run.hpp"

namespace orrery::calibrate {

namespace {

NcclRun described_run(const Node& root) {
  NcclRun run;
  run.version = "nccl-tests";
  if (const auto code = root.find("nccl_version")) {
    run.version += ", " + nccl_version(code->integer(1, 1'000'000));
  }
  if (const auto arguments = root.find("args")) {
    for (const Node& each : arguments->elements()) {
      const auto operation = nccl_operation(each.as<std::string>());
      if (operation && run.operation.empty()) run.operation = *operation;
    }
  }
  if (run.operation.empty()) root.fail("args do not name an nccl-tests program");
  const Node devices = root["config"]["devices"];
  for (const Node& device : devices.elements()) {
    ++run.rank_lines;
    run.highest_rank = std::max(run.highest_rank, device["rank"].integer(0, 1 << 24));
    run.hosts.insert(device["hostname"].as<std::string>());
    run.devices.insert(device["device_info"].as<std::string>());
  }
  run.ranks = run.highest_rank + 1;
  if (*run.ranks < 1) devices.fail("no device is listed");
  return run;
}

void read_half(const Node& result, const char* half, Bytes size, Imported& imported) {
  const auto measured = result.find(half);
  if (!measured) return;
  const auto wrong = measured->find("nwrong");
  if (wrong && wrong->as<double>() != 0) {
    wrong->fail(fmt::format("{:.0f} wrong results: row refused", wrong->as<double>()));
  }
  const Node time = measured->has("time") ? (*measured)["time"] : (*measured)["cpu_time"];
  const double value = time.as<double>();
  if (!(value > 0 && value < 1e12)) time.fail_expected("a time in us above 0");
  Sample sample;
  sample.detail = half;
  sample.value = microseconds(value);
  sample.size = size;
  sample.place = measured->place();
  if (const auto count = result.find("actual_iterations"))
    sample.count = count->integer(1, 1 << 30);
  imported.samples.push_back(std::move(sample));
}

}  // namespace

Imported read_nccl_tests_json(const Node& root) {
  Imported imported;
  imported.file = root.file();
  const NcclRun run = described_run(root);
  int empty = 0;
  for (const Node& result : root["results"].elements()) {
    const Bytes size{result["size"].integer(0, std::int64_t{1} << 50)};
    if (size == Bytes{0}) {
      ++empty;
      continue;
    }
    read_half(result, "out_of_place", size, imported);
    read_half(result, "in_place", size, imported);
  }
  if (empty > 0) imported.notes.push_back(fmt::format("{} rows of size 0 dropped", empty));
  if (imported.samples.empty()) root["results"].fail("nccl-tests log without a row of results");
  finish_run(run, root["config"]["devices"].place(), imported);
  return imported;
}

}  // namespace orrery::calibrate
