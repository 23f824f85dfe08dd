// Whatever stands in a cluster file, it is read or it is an InputError that begins with its place.

#include <catch2/catch.hpp>

#include "hardware/catalogue.hpp"

using namespace orrery;
using namespace orrery::hardware;

namespace {

void pointers_of(const Json& value, const std::string& pointer, std::vector<std::string>& all) {
  all.push_back(pointer);
  if (!value.is_structured()) return;
  for (const auto& [key, member] : value.items()) {
    std::string step;
    for (const char letter : key) {
      step += letter == '/' ? "~1" : letter == '~' ? "~0" : std::string(1, letter);
    }
    pointers_of(member, pointer + "/" + step, all);
  }
}

/// Any other exception would leave this function and fail the test.
void read_or_refuse(const Json& json, bool expand) {
  const Document file = Document::from(json, "mine.json");
  try {
    if (expand) {
      const Document expanded = Document::from(expand_cluster(file.root()), "mine.json");
      read_cluster(expanded.root());
    } else {
      read_cluster(file.root());
    }
  } catch (const InputError& error) {
    const std::string message = error.what();
    INFO(message);
    CHECK(message.rfind("mine.json", 0) == 0);
    CHECK(message.find('\n') == std::string::npos);
  }
}

void mutate_everywhere(const Json& original, bool expand) {
  const char* const strange[] = {"null", "7",  "-1", "1.5",     "true", "\"x\"",
                                 "\"\"", "[]", "{}", "[1, {}]", "1e300"};
  std::vector<std::string> pointers;
  pointers_of(original, "", pointers);
  for (const std::string& pointer : pointers) {
    for (const char* value : strange) {
      INFO(pointer << " = " << value);
      Json changed = original;
      changed[Json::json_pointer{pointer}] = Json::parse(value);
      read_or_refuse(changed, expand);
    }
  }
}

}  // namespace

TEST_CASE("A cluster file with anything anywhere is read or refused with its place") {
  mutate_everywhere(Json::parse(R"({
    "name": "mine",
    "node": {
      "like": "dgx-h100", "name": "my-node", "gpus": 4, "nics": 2, "nic": "hdr",
      "gpu": {"like": "h100", "name": "my-gpu", "memory": "64 GiB",
              "gemm": {"bf16": {"compute_share": 0.5, "memory_share": 0.5, "overhead": "1 us",
                                "corner": 2}},
              "sources": {"/memory": "mine"}},
      "scale_up": {"kind": "pcie", "group_rates": [{"ranks": 2, "ring": "1 GB/s"}]}
    },
    "nodes": 2,
    "fabric": {"like": "infiniband-fat-tree-2", "switch": {"like": "quantum-hdr", "ports": 36},
               "latency_class": "roce", "network": "1 us"},
    "price_per_gpu_hour": "$2/h",
    "assumptions": ["mine"],
    "sources": {"/price_per_gpu_hour": "mine"}
  })"),
                    true);
}

TEST_CASE("An expanded cluster with anything anywhere is read or refused with its place") {
  mutate_everywhere(Catalogue::cluster("l40s-8x x 2"), false);
  mutate_everywhere(Catalogue::cluster("l40s-8x x 2"), true);
}
