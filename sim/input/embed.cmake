# Writes OUTPUT, a C++ source with the files named in LIST (one path per line, relative to SOURCE)
# as NAMESPACE::embedded_files(). Run by `cmake -P` whenever one of the files changes.
# Every byte becomes \xNN, so no content can end a literal or be read as CMake.
file(STRINGS ${LIST} files)
set(arrays "")
set(entries "")
set(index 0)
foreach(path IN LISTS files)
  file(READ ${SOURCE}/${path} bytes HEX)
  string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${bytes}")
  string(APPEND arrays "constexpr char file_${index}[] = \"${bytes}\";\n")
  string(APPEND entries "    {\"${path}\", {file_${index}, sizeof(file_${index}) - 1}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUTPUT} "#include \"${NAMESPACE}/embedded.hpp\"

#include <array>

namespace orrery::${NAMESPACE} {
namespace {
${arrays}
constexpr std::array<EmbeddedFile, ${index}> files{{
${entries}}};
}  // namespace

std::span<const EmbeddedFile> embedded_files() { return files; }

}  // namespace orrery::${NAMESPACE}
")
