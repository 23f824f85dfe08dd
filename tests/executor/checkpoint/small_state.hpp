#pragma once
// A small state whose elements are distinct, and folders to keep it in.

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/parts.hpp"
#include "executor/errors.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace fs = std::filesystem;

struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "orrery-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  std::string path;
};

/// A matrix of 6 x 4 and a vector of 5, in fp32.
inline CheckpointRun small_run() {
  return {.model = "small", .tensors = {{"matrix", 6, 4}, {"vector", 1, 5}}, .seed = 7};
}

/// The value of an element: distinct by kind, tensor and place, and by when it was written.
inline float worth(StateKind kind, std::uint32_t tensor, std::int64_t element, int version) {
  return static_cast<float>(version * 10000 + static_cast<int>(kind) * 1000 +
                            static_cast<int>(tensor) * 100 + static_cast<int>(element));
}

/// State of one rank in memory, cut as its runs say.
class Held {
 public:
  explicit Held(std::vector<StateRun> runs) : runs_{std::move(runs)} {
    std::int64_t local = 0;
    for (StateRun& each : runs_) {
      each.local = local;
      local += each.count;
    }
    for (auto& kind : values_) kind.assign(static_cast<std::size_t>(local), -1);
  }
  void fill(int version) {
    for (const StateKind kind : checkpoint_kinds) {
      for (const StateRun& run : runs_) {
        for (std::int64_t i = 0; i < run.count; ++i) {
          at(kind, run.local + i) = worth(kind, run.tensor, run.offset + i, version);
        }
      }
    }
  }
  bool holds(int version) {
    for (const StateKind kind : checkpoint_kinds) {
      for (const StateRun& run : runs_) {
        for (std::int64_t i = 0; i < run.count; ++i) {
          if (at(kind, run.local + i) != worth(kind, run.tensor, run.offset + i, version)) {
            return false;
          }
        }
      }
    }
    return true;
  }
  CheckpointState state() {
    return {.runs = runs_,
            .read =
                [this](StateKind kind, std::int64_t local, std::int64_t count, void* to) {
                  std::memcpy(to, &at(kind, local), static_cast<std::size_t>(count) * 4);
                },
            .load =
                [this](StateKind kind, std::int64_t local, std::int64_t count, const void* from) {
                  std::memcpy(&at(kind, local), from, static_cast<std::size_t>(count) * 4);
                }};
  }

 private:
  float& at(StateKind kind, std::int64_t local) {
    return values_[static_cast<int>(kind)][static_cast<std::size_t>(local)];
  }
  std::vector<StateRun> runs_;
  std::vector<float> values_[3];
};

inline Held whole() {
  return Held{{{.tensor = 0, .offset = 0, .count = 24, .writer = true},
               {.tensor = 1, .offset = 0, .count = 5, .writer = true}}};
}

/// What a call is refused with, in words.
inline std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  } catch (const RunFailure& failure) {
    return "run failure: " + std::string{failure.what()};
  } catch (const OutputError& error) {
    return "output: " + std::string{error.what()};
  }
  return "";
}

}  // namespace orrery::executor
