#include "executor/pretrained/safetensors.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <boost/interprocess/file_mapping.hpp>
#include <boost/interprocess/mapped_region.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>

#include "executor/device/formats.hpp"
#include "sim/input/document.hpp"
#include "sim/input/unreadable_file.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::executor {

namespace {

namespace ipc = boost::interprocess;

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::uint64_t length_bytes = 8;
/// Source  the limit of the safetensors library
constexpr std::uint64_t longest_header = 100'000'000;
constexpr std::int64_t most_elements = std::numeric_limits<std::int64_t>::max() / 16;

using hardware::DType;

/// Formats of elements and their names in the header.
struct FormatRow {
  DType format;
  std::string_view word;
};
constexpr FormatRow formats[] = {
    {DType::fp64, "F64"}, {DType::fp32, "F32"}, {DType::bf16, "BF16"}, {DType::fp16, "F16"}};

/// Where a tensor's bytes are, from the end of the header.
struct StoredSpan {
  std::int64_t begin = 0, end = 0;
};

StoredSpan span_of(const Node& tensor, std::uint64_t data) {
  const Node offsets = tensor["data_offsets"];
  if (offsets.elements().size() != 2) offsets.fail_expected("two offsets");
  const auto most = static_cast<std::int64_t>(data);
  const std::int64_t begin = offsets.at(0).integer(0, most);
  return {begin, offsets.at(1).integer(begin, most)};
}

/// Checks that the tensors fill the `data` bytes: one after another, none over another, no gap.
/// Source  the format's definition (github.com/huggingface/safetensors, README, "Notes": "the byte
///         buffer needs to be entirely indexed, and cannot contain holes")
void require_filled(std::vector<std::pair<StoredSpan, Node>> tensors, std::uint64_t data,
                    const std::string& path) {
  std::ranges::stable_sort(tensors, {}, [](const auto& each) {
    return std::pair{each.first.begin, each.first.end};
  });
  std::int64_t end = 0;
  for (const auto& [span, node] : tensors) {
    if (span.begin != end) {
      node["data_offsets"].fail(
          fmt::format("begins at byte {}, the tensors before it end at {}: "
                      "expected neither a gap nor an overlap",
                      span.begin, end));
    }
    end = span.end;
  }
  if (end != static_cast<std::int64_t>(data)) {
    throw InputError{path, fmt::format("has {} bytes after its last tensor",
                                       static_cast<std::int64_t>(data) - end)};
  }
}

/// Reads one tensor of the header, whose bytes must lie within the `data` bytes; nullopt where its
/// format cannot be read.
std::optional<ListedTensor> listed(const Node& node, std::uint64_t data) {
  node.only({"dtype", "shape", "data_offsets"});
  const auto* const row =
      std::find_if(std::begin(formats), std::end(formats),
                   [&](const FormatRow& each) { return node["dtype"].json() == each.word; });
  if (row == std::end(formats)) return std::nullopt;
  ListedTensor tensor;
  tensor.format = row->format;
  std::int64_t elements = 1;
  for (const Node& each : node["shape"].elements()) {
    tensor.shape.push_back(each.integer(0, most_elements));
    const std::int64_t extent = tensor.shape.back();
    if (extent > 0 && elements > most_elements / extent) node["shape"].fail("is too large");
    elements *= extent;
  }
  const auto [begin, end] = span_of(node, data);
  if (end - begin != elements * width_of(row->format)) {
    node["data_offsets"].fail(fmt::format("holds {} bytes, the shape has {}", end - begin,
                                          elements * width_of(row->format)));
  }
  tensor.begin = static_cast<std::uint64_t>(begin);
  tensor.end = static_cast<std::uint64_t>(end);
  return tensor;
}

OutputError cannot_write(const std::string& path) {
  return OutputError{path, errno};
}

}  // namespace

std::int64_t ListedTensor::elements() const {
  return static_cast<std::int64_t>(end - begin) / width_of(format);
}

SafetensorsFile::SafetensorsFile(std::string path) : path_{std::move(path)} {
  std::error_code failed;
  const auto size = std::filesystem::file_size(path_, failed);
  if (failed) throw UnreadableFile{path_, failed};
  if (size < length_bytes) throw InputError{path_, "is not a safetensors file: it is truncated"};
  try {
    const ipc::file_mapping file{path_.c_str(), ipc::read_only};
    bytes_ = std::make_unique<ipc::mapped_region>(file, ipc::read_only);
  } catch (const ipc::interprocess_exception& error) {
    throw InputError{path_, fmt::format("cannot be read: {}", error.what())};
  }
  read_header();
}

SafetensorsFile::~SafetensorsFile() = default;
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;

void SafetensorsFile::read_header() {
  const auto* begin = static_cast<const char*>(bytes_->get_address());
  std::uint64_t length = 0;
  std::memcpy(&length, begin, length_bytes);
  const std::uint64_t rest = bytes_->get_size() - length_bytes;
  if (length > std::min(longest_header, rest)) {
    throw InputError{path_,
                     fmt::format("is not a safetensors file: a header of {} bytes in a file of {}",
                                 length, bytes_->get_size())};
  }
  data_ = length_bytes + length;
  const Document header = Document::parse({begin + length_bytes, length}, path_);
  std::vector<std::pair<StoredSpan, Node>> spans;
  for (const auto& [name, node] : header.root().members()) {
    if (name == "__metadata__") continue;
    spans.emplace_back(span_of(node, rest - length), node);
    const auto tensor = listed(node, rest - length);
    if (tensor) {
      tensors_.emplace(name, *tensor);
    } else {
      others_.push_back(name);
    }
  }
  require_filled(std::move(spans), rest - length, path_);
}

void SafetensorsFile::read(const ListedTensor& tensor, std::int64_t first, std::int64_t count,
                           std::int64_t stride, double* to) const {
  if (count == 0) return;
  ensure(first >= 0 && first + (count - 1) * stride < tensor.elements(),
         "elements are asked for that a stored tensor has not");
  const auto* bytes = static_cast<const std::byte*>(bytes_->get_address()) + data_ + tensor.begin;
  with_format(tensor.format, [&]<class T>(Type<T>) {
    T stored;  // copied, as it may be unaligned
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(&stored, bytes + (first + i * stride) * width_of(tensor.format), sizeof stored);
      to[i] = number_as<double>(stored);
    }
  });
}

SafetensorsWriter::SafetensorsWriter(
    std::string path, DType format,
    const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& tensors)
    : path_{std::move(path)}, format_{format} {
  const std::string_view word = format == DType::fp64 ? "F64" : "F32";
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  std::uint64_t at = 0;
  for (const auto& [name, shape] : tensors) {
    std::uint64_t size = static_cast<std::uint64_t>(width_of(format));
    for (const std::int64_t each : shape) size *= static_cast<std::uint64_t>(each);
    header[name] = {{"dtype", word}, {"shape", shape}, {"data_offsets", {at, at + size}}};
    begins_[name] = at;
    at += size;
  }
  header_ = header.dump();
  header_.resize((header_.size() + length_bytes - 1) / length_bytes * length_bytes, ' ');
  for (auto& [name, each] : begins_) each += length_bytes + header_.size();
  size_ = length_bytes + header_.size() + at;
}

SafetensorsWriter::~SafetensorsWriter() = default;

std::string SafetensorsWriter::create() {
  const auto [file, descriptor] = new_file_for(path_, 0644);
  const std::uint64_t length = header_.size();
  std::string begin(length_bytes, '\0');
  std::memcpy(begin.data(), &length, length_bytes);
  const int full = ::posix_fallocate(descriptor, 0, static_cast<off_t>(size_));
  if (full != 0) errno = full;
  const bool written = full == 0 && write_all(descriptor, begin + header_);
  const OutputError failed = cannot_write(path_);
  ::close(descriptor);
  if (written) return partial_ = file;
  ::unlink(file.c_str());
  throw failed;
}

void SafetensorsWriter::open(const std::string& created) {
  try {
    const ipc::file_mapping file{created.c_str(), ipc::read_write};
    bytes_ = std::make_unique<ipc::mapped_region>(file, ipc::read_write);
  } catch (const ipc::interprocess_exception& error) {
    throw OutputError{path_, error.get_native_error()};
  }
}

void SafetensorsWriter::write(const std::string& tensor, std::int64_t first, std::int64_t count,
                              std::int64_t stride, const double* from) {
  auto* bytes = static_cast<std::byte*>(bytes_->get_address()) + begins_.at(tensor);
  with_format(format_, [&]<class T>(Type<T>) {
    for (std::int64_t i = 0; i < count; ++i) {
      const T stored = number_as<T>(from[i]);
      std::memcpy(bytes + (first + i * stride) * width_of(format_), &stored, sizeof stored);
    }
  });
}

void SafetensorsWriter::close() {
  if (!bytes_->flush(0, 0, false)) throw cannot_write(path_);
  bytes_.reset();
}

void SafetensorsWriter::discard() const {
  ::unlink(partial_.c_str());
}

void SafetensorsWriter::commit() const {
  if (through_signals([&] { return std::rename(partial_.c_str(), path_.c_str()); }) != 0) {
    throw cannot_write(path_);
  }
  flush_folder(std::filesystem::path{path_}.parent_path().string());
}

}  // namespace orrery::executor
