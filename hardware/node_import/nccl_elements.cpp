#include "hardware/node_import/nccl_elements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/property_tree/xml_parser.hpp>
#include <map>
#include <sstream>
#include <utility>

#include "sim/errors.hpp"
#include "sim/input/text.hpp"

namespace orrery::hardware {

namespace {

constexpr int most_depth = 64;

/// Refuses what a recursive parser cannot read safely: tags too deep, a document type with its
/// entities.
class XmlScan {
 public:
  XmlScan(std::string_view text, const std::string& name) : text_{text}, name_{name} {}

  void run() {
    for (at_ = text_.find('<'); at_ < text_.size(); at_ = text_.find('<', at_)) {
      const std::string_view rest = text_.substr(at_);
      if (rest.substr(0, 4) == "<!--") {
        skip_past("-->");
      } else if (rest.substr(0, 2) == "<?") {
        skip_past("?>");
      } else if (rest.substr(0, 2) == "<!") {
        fail("unexpected document type or CDATA");
      } else {
        tag();
      }
    }
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<long>(at_), '\n');
    throw InputError{fmt::format("{}:line {}", name_, line), problem};
  }
  void skip_past(std::string_view end) {
    const std::size_t found = text_.find(end, at_);
    if (found == std::string_view::npos) fail("unterminated comment");
    at_ = found + end.size();
  }
  void tag() {
    const bool closes = text_.substr(at_, 2) == "</";
    char quote = 0;
    std::size_t end = at_ + 1;
    for (; end < text_.size() && (quote != 0 || text_[end] != '>'); ++end) {
      const char letter = text_[end];
      if (letter == '<') fail("a tag inside a tag");
      if (quote != 0 && letter == quote) {
        quote = 0;
      } else if (quote == 0 && (letter == '"' || letter == '\'')) {
        quote = letter;
      }
    }
    if (end == text_.size()) fail("unterminated tag");
    depth_ += closes ? -1 : text_[end - 1] == '/' ? 0 : 1;
    if (depth_ > most_depth) fail(fmt::format("more than {} levels", most_depth));
    at_ = end;
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

XmlTree xml_tree(std::string_view text, const std::string& name) {
  XmlScan{text, name}.run();
  std::istringstream stream{std::string{text}};
  XmlTree tree;
  try {
    boost::property_tree::read_xml(stream, tree);
  } catch (const boost::property_tree::xml_parser_error& error) {
    throw InputError{fmt::format("{}:line {}", name, error.line()), error.message()};
  }
  return tree;
}

std::string attribute_of(const XmlTree& element, const std::string& key) {
  return element.get<std::string>(XmlTree::path_type{"<xmlattr>|" + key, '|'}, "");
}

Bandwidth pcie_rate(const XmlTree& pci) {
  constexpr std::array<std::pair<std::string_view, double>, 6> generations{
      {{"2.5", 15}, {"5", 30}, {"8", 60}, {"16", 120}, {"32", 240}, {"64", 480}}};
  const std::string speed = attribute_of(pci, "link_speed");
  std::string_view transfers = std::string_view{speed}.substr(0, speed.find(' '));
  if (transfers.size() > 2 && transfers.substr(transfers.size() - 2) == ".0") {
    transfers.remove_suffix(2);
  }
  double lane = 60;
  for (const auto& [text, rate] : generations) {
    if (text == transfers) lane = rate;
  }
  const int width = number_in<int>(attribute_of(pci, "link_width")).value_or(0);
  return Bandwidth{lane * (width > 0 && width <= 32 ? width : 16) / 80 * 1e9};
}

Bandwidth socket_rate(const XmlTree& cpu) {
  const std::string arch = attribute_of(cpu, "arch");
  const std::string vendor = attribute_of(cpu, "vendor");
  if (arch == "ppc64") return 32_GBps;
  if (arch == "arm64") return 6_GBps;
  if (vendor == "AuthenticAMD") return 16_GBps;
  const int model = number_in<int>(attribute_of(cpu, "modelid")).value_or(0);
  if (model >= 0xcf) return 40_GBps;
  if (model >= 0x8f) return 22_GBps;
  return model >= 0x55 ? 10_GBps : 6_GBps;
}

Bandwidth xgmi_rate(std::string_view architecture) {
  if (architecture.starts_with("gfx")) architecture.remove_prefix(3);
  if (architecture.starts_with("94") || architecture.starts_with("95")) return 48_GBps;
  if (architecture == "90a" || architecture == "910") return 36_GBps;
  return 24_GBps;
}

Bandwidth nvlink_rate(int capability) {
  if (capability >= 100) return Bandwidth{40.1e9};
  if (capability >= 90) return Bandwidth{20.6e9};
  if (capability == 86) return 12_GBps;
  return capability >= 70 ? 20_GBps : 18_GBps;
}

Bandwidth gpu_link_rate(const XmlTree& gpu, bool xgmi) {
  if (xgmi) return xgmi_rate(attribute_of(gpu, "gcn"));
  return nvlink_rate(number_in<int>(attribute_of(gpu, "sm")).value_or(0));
}

std::string gpu_of_device(const std::string& vendor, const std::string& device) {
  static const std::map<std::pair<std::string, std::string>, std::string> known = {
      {{"0x10de", "0x1db1"}, "v100-sxm-16gb"},  {{"0x10de", "0x1db5"}, "v100-sxm-32gb"},
      {{"0x10de", "0x20b0"}, "a100-sxm-40gb"},  {{"0x10de", "0x20b2"}, "a100-sxm-80gb"},
      {{"0x10de", "0x20f1"}, "a100-pcie-40gb"}, {{"0x10de", "0x20b5"}, "a100-pcie-80gb"},
      {{"0x10de", "0x2330"}, "h100-sxm-80gb"},  {{"0x10de", "0x2331"}, "h100-pcie-80gb"},
      {{"0x10de", "0x2684"}, "rtx-4090"},       {{"0x1002", "0x74a1"}, "mi300x"}};
  const auto found = known.find({vendor, device});
  return found == known.end() ? std::string{} : found->second;
}

}  // namespace orrery::hardware
