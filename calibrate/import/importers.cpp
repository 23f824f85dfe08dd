#include "calibrate/import/importers.hpp"

#include <array>

namespace orrery::calibrate {

namespace {

bool has_all(const Json& json, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (!json.contains(key)) return false;
  }
  return true;
}

bool is_babelstream(std::string_view line) {
  const bool rates = contains(line, "B/s") || contains(line, "Bytes/sec");
  const bool table = line.starts_with("Function") && rates && !is_stream_header(line);
  return table || line.starts_with("function,num_times");
}

constexpr std::array<Importer, 10> known_importers{{
    {.name = "nccl-tests",
     .title = "nccl-tests (text or JSON)",
     .is_line =
         [](std::string_view line) { return contains(line, "algbw") && contains(line, "busbw"); },
     .read_lines = read_nccl_tests},
    {.name = "NCCL debug log",
     .title = "NCCL_DEBUG=INFO",
     .content = "communicators (their channels) or choices of an algorithm (NCCL_DEBUG_SUBSYS="
                "INIT,GRAPH,TUNING)",
     .is_text = [](std::string_view text) { return contains(text, "NCCL INFO"); },
     .read_lines = read_nccl_log},
    {.name = "OSU",
     .title = "OSU",
     .is_line = [](std::string_view line) { return line.starts_with("# OSU "); },
     .read_lines = read_osu},
    {.name = "perftest",
     .title = "perftest",
     .is_line =
         [](std::string_view line) {
           return contains(line, "#bytes") && contains(line, "#iterations");
         },
     .read_lines = read_perftest},
    {.name = "fio",
     .title = "fio JSON",
     .is_document = [](const Json& json) { return json.contains("fio version"); },
     .read_document = read_fio},
    {.name = "BabelStream",
     .title = "BabelStream",
     .is_line = is_babelstream,
     .read_lines = read_stream},
    {.name = "STREAM", .title = "STREAM", .is_line = is_stream_header, .read_lines = read_stream},
    {.name = "Kineto",
     .title = "Kineto",
     .content = "kernels that ran on a device",
     .is_document = [](const Json& json) { return json.contains("traceEvents"); },
     .read_document = read_kineto},
    {.name = "perftest JSON",
     .is_document =
         [](const Json& json) {
           return has_all(json, {"test_info", "results"});
         },
     .read_document = read_perftest_json},
    {.name = "nccl-tests JSON",
     .is_document =
         [](const Json& json) {
           return has_all(json, {"results", "config"});
         },
     .read_document = read_nccl_tests_json},
}};

}  // namespace

std::span<const Importer> importers() {
  return known_importers;
}

std::string known_formats() {
  std::string text;
  for (const Importer& each : known_importers) {
    if (!each.title.empty()) text += (text.empty() ? "" : ", ") + std::string{each.title};
  }
  return text;
}

}  // namespace orrery::calibrate
