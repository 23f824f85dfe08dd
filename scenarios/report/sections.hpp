#pragma once
// The parts of a report, each a block of lines that ends with a line break.

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/report/result.hpp"

namespace orrery::scenarios {

/// What a part of a report is written from.
struct ReportInputs {
  const models::Question& question;
  const models::Prediction& prediction;
  const ReportOptions& options;
};

/// A bar for each part of the time between the ideal machine and the predicted step.
std::string waterfall_section(const ReportInputs& inputs);
/// The share of the step in which the slowest rank's NIC, links and SMs are busy.
std::string busy_section(const ReportInputs& inputs);
/// Contention: the time lost by which traffic, and the links over capacity; empty for static times.
std::string network_section(const ReportInputs& inputs);
/// The slowest rank's kernels by time.
std::string kernels_section(const ReportInputs& inputs);
/// Every collective and transfer with the reason for its time.
std::string collectives_section(const ReportInputs& inputs);
/// What each stage holds at its peak.
std::string memory_section(const ReportInputs& inputs);

/// A title above a section.
std::string heading(std::string_view title, const ReportOptions& options);
/// Columns left after an indentation; a narrow terminal breaks lines itself.
std::size_t columns_after(std::size_t indent, const ReportOptions& options);
/// The legend under a table: what its columns mean.
std::string legend(std::string_view text, const ReportOptions& options);
/// Text broken into lines of the terminal's width, each indented.
std::string paragraph(std::string_view text, std::size_t indent, const ReportOptions& options);
/// The assumptions, an item each; empty without any.
std::string assumed_section(const std::vector<std::string>& assumptions,
                            const ReportOptions& options);
/// "33.41 s" or "334.1 ms", in the unit that fits the whole step.
std::string step_part(Time time, Time step);
/// "12.3 %".
std::string percent(double share);

}  // namespace orrery::scenarios
