#pragma once
// What `orrery calibrate` writes and prints, of a processor and of GPUs.

#include <string>
#include <vector>

#include "calibrate/findings.hpp"

namespace orrery::scenarios {

void write_json(const std::string& path, const Json& json);
/// Told before anything is measured; a profile that is there stays as it is.
void require_writable(const std::string& path);
/// "profile.samples.json" beside "profile.json".
std::string samples_path(const std::string& profile);

Json curves_json(const std::vector<calibrate::CurveCard>& curves);
/// Every point's median with what it was, without the single runs.
Json medians(const Json& raw);
void print_curves(const std::vector<calibrate::CurveCard>& curves);

}  // namespace orrery::scenarios
