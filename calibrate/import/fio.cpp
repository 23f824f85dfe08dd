// Reads fio's JSON (json and json+): of each job and direction the bandwidth, the operations a
// second and the mean latency.

#include "calibrate/import/log_lines.hpp"

namespace orrery::calibrate {

namespace {

/// "4k" of a job's options, as fio writes sizes: k, m, g are powers of 1024.
std::optional<Bytes> block_size(const Node& job) {
  const auto options = job.find("job options");
  const auto written = options ? options->find("bs") : std::nullopt;
  if (!written || !written->is_string()) return std::nullopt;
  const auto text = written->as<std::string>();
  const std::size_t digits = text.find_first_not_of("0123456789");
  const auto count = to_integer(std::string_view{text}.substr(0, digits));
  if (!count || *count <= 0 || *count > (std::int64_t{1} << 40)) return std::nullopt;
  if (digits == std::string::npos) return Bytes{*count};
  switch (text[digits]) {
    case 'k':
    case 'K':
      return Bytes{*count << 10};
    case 'm':
    case 'M':
      return Bytes{*count << 20};
    case 'g':
    case 'G':
      return Bytes{*count << 30};
    default:
      return std::nullopt;
  }
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
    common.size = block_size(job);
    common.software = root["fio version"].as<std::string>();
    read_direction(job, "read", common, imported);
    read_direction(job, "write", common, imported);
  }
  if (imported.samples.empty()) root["jobs"].fail("no job read or wrote a byte");
  return imported;
}

}  // namespace orrery::calibrate
