#include "calibrate/sample.hpp"

#include <fmt/format.h>

#include "sim/input/units.hpp"
#include "sim/output/or_null.hpp"

namespace orrery::calibrate {

Json to_json(const Sample& sample) {
  Json json{{"quantity", sample.quantity}, {"detail", or_null(sample.detail)}};
  if (const auto* time = std::get_if<Time>(&sample.value)) {
    json["value"] = static_cast<double>(time->count()) / 1e12;  // exact to the last digit
    json["unit"] = "s";
  } else if (const auto* rate = std::get_if<Bandwidth>(&sample.value)) {
    json["value"] = rate->count();
    json["unit"] = "B/s";
  } else {
    json["value"] = std::get<double>(sample.value);
    json["unit"] = "1";
  }
  json["bytes"] = or_null(sample.size);
  json["ranks"] = or_null(sample.ranks);
  json["nodes"] = or_null(sample.nodes);
  json["count"] = sample.count;
  json["device"] = or_null(sample.device);
  json["software"] = or_null(sample.software);
  json["place"] = or_null(sample.place);
  return json;
}

std::string format(const Value& value) {
  if (const auto* time = std::get_if<Time>(&value)) return orrery::format(*time);
  if (const auto* rate = std::get_if<Bandwidth>(&value)) return orrery::format(*rate);
  return fmt::format("{:.4g}", std::get<double>(value));
}

}  // namespace orrery::calibrate
