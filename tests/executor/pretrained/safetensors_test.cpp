#include "executor/pretrained/safetensors.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <string>

#include "tests/executor/checkpoint/small_state.hpp"

namespace orrery::executor {

namespace {

/// A file of this header and `bytes` bytes of data.
std::string file_with(const Folder& folder, const std::string& header, std::size_t bytes) {
  const std::uint64_t length = header.size();
  std::string begin(sizeof length, '\0');
  std::memcpy(begin.data(), &length, sizeof length);
  std::string path = folder.path + "/model.safetensors";
  std::ofstream{path, std::ios::binary} << begin << header << std::string(bytes, '\0');
  return path;
}

std::string refused_file(const std::string& header, std::size_t bytes) {
  const Folder folder;
  const std::string path = file_with(folder, header, bytes);
  const std::string said = refusal([&] { SafetensorsFile{path}; });
  return said.rfind(path, 0) == 0 ? said.substr(path.size()) : said;
}

/// Two vectors of two fp32 numbers at these offsets.
std::string two_at(const std::string& first, const std::string& second) {
  return R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)" + first +
         R"(},"b":{"dtype":"F32","shape":[2],"data_offsets":)" + second + "}}";
}

}  // namespace

TEST_CASE("Tensors fill the file, in any order") {
  CHECK(refused_file(two_at("[0,8]", "[8,16]"), 16).empty());
  CHECK(refused_file(two_at("[8,16]", "[0,8]"), 16).empty());
  CHECK(refused_file(R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})", 0).empty());
  CHECK(refused_file("{}", 0).empty());
}

TEST_CASE("Tensors that overlap, leave a gap or leave bytes over are refused: they are damaged") {
  CHECK(refused_file(two_at("[0,8]", "[0,8]"), 16) ==
        ":/b/data_offsets: begins at byte 0, the tensors before it end at 8: expected neither a "
        "gap nor an overlap");
  CHECK(refused_file(two_at("[0,8]", "[12,20]"), 20) ==
        ":/b/data_offsets: begins at byte 12, the tensors before it end at 8: expected neither a "
        "gap nor an overlap");
  CHECK(refused_file(two_at("[4,12]", "[12,20]"), 20) ==
        ":/a/data_offsets: begins at byte 4, the tensors before it end at 0: expected neither a "
        "gap nor an overlap");
  CHECK(refused_file(two_at("[0,8]", "[8,16]"), 20) == ": has 4 bytes after its last tensor");
  // A format that is not read has its place, too.
  CHECK(refused_file(R"({"a":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},)"
                     R"("b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})",
                     16) ==
        ":/b/data_offsets: begins at byte 8, the tensors before it end at 16: expected neither a "
        "gap nor an overlap");
}

TEST_CASE("An export neither uses nor removes a file that the user has next to it") {
  const Folder folder;
  const std::string path = folder.path + "/out.safetensors";
  for (const char* each : {".partial", ".tmp"}) std::ofstream{path + each} << "mine";
  SafetensorsWriter writer{path, hardware::DType::fp32, {{"a", {2}}}};
  const double values[] = {1, 2};
  const std::string created = writer.create();
  CHECK_FALSE(fs::exists(path));
  writer.open(created);
  writer.write("a", 0, 2, 1, values);
  writer.close();
  writer.commit();
  CHECK(SafetensorsFile{path}.tensors().count("a") == 1);
  SafetensorsWriter given_up{path, hardware::DType::fp32, {{"a", {2}}}};
  const std::string draft = given_up.create();
  given_up.discard();
  CHECK_FALSE(fs::exists(draft));
  for (const char* each : {".partial", ".tmp"}) {
    std::string text;
    std::ifstream{path + each} >> text;
    CHECK(text == "mine");
  }
  CHECK(std::distance(fs::directory_iterator{folder.path}, fs::directory_iterator{}) == 3);
}

}  // namespace orrery::executor
