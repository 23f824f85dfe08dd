#pragma once
// The file of a sweep: one line that says what was asked, then one line for each variant, in order.
// It only grows, so that a sweep which was killed goes on after its last whole line, and ends with
// the bytes of one that was not.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/whatif/sweep_answers.hpp"

namespace orrery::scenarios {

/// A contiguous part of a sweep's variants: number 1 to `of`.
struct SweepShard {
  std::uint64_t number = 1, of = 1;

  bool whole() const { return of == 1; }
  std::uint64_t begin(std::uint64_t variants) const;
  std::uint64_t end(std::uint64_t variants) const;
};
/// "2/8". Errors  InputError at --shard
SweepShard parse_shard(std::string_view text);
inline constexpr std::uint64_t most_shards = 1'000'000;

/// The first line of a store: `{"orrery_sweep": 1, "id", "version", "catalogue", "inputs",
/// "scenario", "vary": [{"pointer", "values"}], "tokens", "headroom", "variants", "shard": null or
/// {"number", "of"}}`. `id` is a hash of all but the shard, `catalogue` of the data built in,
/// `inputs` of the expanded scenario.
std::string store_header(const SweepQuestions& questions, const SweepShard& shard);

/// A store that is open for writing, locked against a second writer.
/// Errors of all calls  OutputError: cannot be written
class SweepStore {
 public:
  /// Continues the file, or begins it. `seen` gets each line of a variant that is there.
  /// Errors  another sweep's, or no store, or a damaged line: InputError
  SweepStore(std::string path, const std::string& header, std::uint64_t begin, std::uint64_t end,
             const std::function<void(std::string_view line)>& seen);
  ~SweepStore();
  SweepStore(const SweepStore&) = delete;
  SweepStore& operator=(const SweepStore&) = delete;

  /// The first variant that is not there.
  std::uint64_t next() const { return next_; }
  /// Appends whole lines, each with its end.
  void append(std::string_view lines, std::uint64_t count);
  /// Flushes to the disk.
  void flush();

 private:
  void read(const std::string& header, std::uint64_t begin, std::uint64_t end,
            const std::function<void(std::string_view)>& seen);

  std::string path_;
  int descriptor_ = -1;
  std::uint64_t next_ = 0;
};

/// Is the file the store of a sweep: lines of JSON, or Parquet as the Python package writes it?
/// False where there is none.
bool is_sweep_store(const std::string& path);

/// What `merge` found.
struct MergedSweep {
  std::string scenario;
  std::uint64_t variants = 0, shards = 0;
};
/// Joins the stores of all shards of a sweep: the bytes of the same sweep in one store.
/// put     gets them piece by piece, once all files have been checked
/// Errors  a shard that is missing, twice or not complete, a store of another sweep: InputError
MergedSweep merge_stores(const std::vector<std::string>& paths,
                         const std::function<void(std::string_view)>& put);

}  // namespace orrery::scenarios
