#pragma once
// Helpers of the readers of text logs: lines with their numbers and without the prefixes that
// launchers put before them, words, numbers. Only calibrate/import/ includes it.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/import/import.hpp"

namespace orrery::calibrate {

struct LogLine {
  std::size_t number = 0;  // from 1
  std::string_view text;   // without prefix and line end
};

/// Lines of a log. Removes these prefixes: `[1,0]<stdout>:` of mpirun, `3: ` of srun -l, a
/// timestamp.
std::vector<LogLine> log_lines(std::string_view text);

std::vector<std::string_view> words(std::string_view line);
std::string in_lower_case(std::string_view word);
bool contains(std::string_view text, std::string_view part);
/// The rest after `mark`, nothing without it.
std::optional<std::string_view> after(std::string_view text, std::string_view mark);

std::optional<double> to_number(std::string_view word);
std::optional<std::int64_t> to_integer(std::string_view word);

/// "log.txt:line 12".
std::string place_of(const std::string& file, const LogLine& line);

Time microseconds(double value);

/// The rate of `value` in a unit written as "MB/s", "MiB/sec" or "Gb/sec"; nothing for another
/// unit.
std::optional<Bandwidth> rate_of(double value, std::string_view unit);

/// The header of STREAM's table, `Function    Best Rate MB/s  Avg time ...`, not of BabelStream's.
bool is_stream_header(std::string_view line);

// The readers, one file each. `lines` are those of the whole log.
Imported read_nccl_tests(const std::vector<LogLine>& lines, const std::string& file);
Imported read_nccl_log(const std::vector<LogLine>& lines, const std::string& file);
Imported read_osu(const std::vector<LogLine>& lines, const std::string& file);
Imported read_perftest(const std::vector<LogLine>& lines, const std::string& file);
Imported read_stream(const std::vector<LogLine>& lines, const std::string& file);
Imported read_nccl_tests_json(const Node& root);
Imported read_perftest_json(const Node& root);
Imported read_fio(const Node& root);
Imported read_kineto(const Node& root);

}  // namespace orrery::calibrate
