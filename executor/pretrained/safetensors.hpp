#pragma once
// Files of tensors as the safetensors library writes them: eight bytes with the length of a JSON
// header, little-endian, the header, the tensors' bytes one after another.
// Source  https://github.com/huggingface/safetensors, section Format

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace boost::interprocess {
class mapped_region;
}

namespace orrery::executor {

/// Formats of elements that can be read; those that are written are fp32 and fp64.
enum class StoredFormat : std::uint8_t { fp64, fp32, bf16, fp16 };
std::int64_t width_of(StoredFormat format);

/// A tensor as its file lists it.
struct ListedTensor {
  StoredFormat format = StoredFormat::fp32;
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
  /// Of the formats above, by name.
  const std::map<std::string, ListedTensor, std::less<>>& tensors() const { return tensors_; }
  /// Names of tensors in other formats, which cannot be read.
  const std::vector<std::string>& others() const { return others_; }
  /// Elements [first, first + count) of a tensor, one after the other, widened or narrowed.
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

/// A file in the making, which several processes fill: each writes elements of its own.
class SafetensorsWriter {
 public:
  /// Names and shapes in the order in which they are to lie; format: fp32 or fp64.
  SafetensorsWriter(std::string path, StoredFormat format,
                    const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& tensors);
  ~SafetensorsWriter();

  /// One of the processes: lays the file out, of its full length, under another name.
  /// Errors  OutputError: the disk
  void create() const;
  /// Each process that writes, once it is created.
  void open();
  void write(std::size_t tensor, std::int64_t first, std::int64_t count, std::int64_t stride,
             const double* from);
  /// What was written is on its way to the disk.
  void close();
  /// The first process, when all have closed it: gives the file its name.
  void commit() const;
  /// ... or leaves nothing behind.
  void discard() const;

 private:
  std::string partial() const { return path_ + ".partial"; }

  std::string path_;
  StoredFormat format_;
  std::string header_;
  std::vector<std::uint64_t> begins_;
  std::uint64_t size_ = 0;
  std::unique_ptr<boost::interprocess::mapped_region> bytes_;
};

}  // namespace orrery::executor
