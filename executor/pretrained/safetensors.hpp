#pragma once
// Reads and writes files of tensors in the format of the safetensors library: eight bytes with the
// length of a JSON header, little-endian, the header, the tensors' bytes one after another.
// Source  https://github.com/huggingface/safetensors, section Format

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hardware/dtype.hpp"

namespace boost::interprocess {
class mapped_region;
}

namespace orrery::executor {

/// A tensor as its file lists it; in fp64, fp32, bf16 or fp16.
struct ListedTensor {
  hardware::DType format = hardware::DType::fp32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  // of its bytes, after the header

  std::int64_t elements() const;
};

/// A file mapped into memory; what is not read is not loaded.
class SafetensorsFile {
 public:
  /// Errors  InputError `FILE: ...`: missing, cut short, no such file; `FILE:/NAME/data_offsets:
  ///         ...` in the header
  explicit SafetensorsFile(std::string path);
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&&) noexcept;

  const std::string& path() const { return path_; }
  /// Tensors in the formats above, by name.
  const std::map<std::string, ListedTensor, std::less<>>& tensors() const { return tensors_; }
  /// Names of tensors in other formats, which cannot be read.
  const std::vector<std::string>& others() const { return others_; }
  /// Reads `count` elements of a tensor from `first` on, `stride` apart, widened or narrowed.
  void read(const ListedTensor& tensor, std::int64_t first, std::int64_t count, std::int64_t stride,
            double* to) const;

 private:
  void read_header();

  std::string path_;
  std::unique_ptr<boost::interprocess::mapped_region> bytes_;
  std::uint64_t data_ = 0;  // where the header ends
  std::map<std::string, ListedTensor, std::less<>> tensors_;
  std::vector<std::string> others_;
};

/// Writes a file that several processes fill, each with elements of its own.
class SafetensorsWriter {
 public:
  /// Names and shapes in the order of the file; format: fp32 or fp64.
  SafetensorsWriter(std::string path, hardware::DType format,
                    const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& tensors);
  ~SafetensorsWriter();

  /// Called by one of the processes: makes the file, at its full length, under a name that nothing
  /// had, and returns that name. Errors  OutputError: the disk
  std::string create();
  /// Called by each process that writes, with the name that `create` returned.
  void open(const std::string& created);
  void write(const std::string& tensor, std::int64_t first, std::int64_t count, std::int64_t stride,
             const double* from);
  /// Flushes what was written.
  void close();
  /// Called by the first process when all have closed the file: gives it its name.
  void commit() const;
  /// ... or removes it.
  void discard() const;

 private:
  std::string path_;
  std::string partial_;  // the file's name until `commit`
  hardware::DType format_;
  std::string header_;
  std::map<std::string, std::uint64_t> begins_;  // by tensor
  std::uint64_t size_ = 0;
  std::unique_ptr<boost::interprocess::mapped_region> bytes_;
};

}  // namespace orrery::executor
