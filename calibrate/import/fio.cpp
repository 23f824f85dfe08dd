// Reads fio's JSON (json and json+): of each job and direction the bandwidth, the operations a
// second and the mean latency.

#include <algorithm>

#include "calibrate/import/log_lines.hpp"
#include "sim/input/text.hpp"

namespace orrery::calibrate {

namespace {

/// "4k", "1M" or "4096B", as fio writes sizes: k, m, g are powers of 1024.
std::optional<Bytes> size_in(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto count = to_integer(text.substr(0, digits));
  if (!count || *count <= 0 || *count > (std::int64_t{1} << 40)) return std::nullopt;
  const std::string unit = in_lower_case(text.substr(digits));
  if (unit.empty() || unit == "b") return Bytes{*count};
  if (unit == "k" || unit == "kb") return Bytes{*count << 10};
  if (unit == "m" || unit == "mb") return Bytes{*count << 20};
  if (unit == "g" || unit == "gb") return Bytes{*count << 30};
  return std::nullopt;
}

/// Block size of a direction, from the job's own options or those of all jobs. `bs` is one size, or
/// the sizes of reads and writes with a comma between them.
std::optional<Bytes> block_size(const Node& root, const Node& job, bool writes) {
  for (const auto& options : {job.find("job options"), root.find("global options")}) {
    const auto written = options ? options->find("bs") : std::nullopt;
    if (!written || !written->is_string()) continue;
    const auto text = written->as<std::string>();
    const auto sizes = split(text, ',');
    return size_in(writes && sizes.size() > 1 ? sizes[1] : sizes[0]);
  }
  return std::nullopt;
}

void read_direction(const Node& job, const char* direction, Sample common, Imported& imported) {
  const auto side = job.find(direction);
  if (!side || (*side)["io_bytes"].as<double>() <= 0) return;
  common.place = side->place();
  common.count = static_cast<std::int64_t>((*side)["total_ios"].as<double>());
  const std::string quantity = std::string{"storage."} + direction;
  const double rate = (*side)["bw_bytes"].as<double>();
  if (rate <= 0) (*side)["bw_bytes"].fail_expected("a bandwidth above 0");
  common.quantity = quantity;
  common.value = Bandwidth{rate};
  imported.samples.push_back(common);
  common.quantity = quantity + ".operations_per_s";
  common.value = (*side)["iops"].as<double>();
  imported.samples.push_back(common);
  common.quantity = quantity + ".latency";
  common.value = from_seconds((*side)["lat_ns"]["mean"].as<double>() * 1e-9);
  imported.samples.push_back(common);
}

}  // namespace

Imported read_fio(const Node& root) {
  Imported imported;
  imported.file = root.file();
  for (const Node& job : root["jobs"].elements()) {
    const auto error = job.find("error");
    if (error && error->as<double>() != 0) error->fail("the job failed: it is not imported");
    Sample common;
    common.detail = job.value_or<std::string>("jobname", "");
    common.software = root["fio version"].as<std::string>();
    common.size = block_size(root, job, false);
    read_direction(job, "read", common, imported);
    common.size = block_size(root, job, true);
    read_direction(job, "write", common, imported);
  }
  if (imported.samples.empty()) root["jobs"].fail("no job read or wrote a byte");
  return imported;
}

}  // namespace orrery::calibrate
