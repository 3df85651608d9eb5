// Source files that a page of the docs names are there, in the folder that it names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "tests/common/json/document_text.h"

namespace shoal {
namespace {

using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// Returns the source files that the page names.
std::vector<std::string> SourceFilesIn(const std::string& text) {
  const std::regex name("`([a-z0-9_/]+\\.(?:h|cc|cu|inc|proto))`");
  std::vector<std::string> names;
  for (std::sregex_iterator match(text.begin(), text.end(), name), end; match != end; ++match)
    names.push_back((*match)[1]);
  return names;
}

// Returns those that do not exist below the repository's root or below any of its `folders`.
std::vector<std::string> Missing(const std::vector<std::string>& names,
                                 const std::vector<std::string>& folders) {
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    bool found = std::filesystem::exists(SHOAL_SOURCE_DIR "/" + name);
    for (const std::string& folder : folders)
      found = found || std::filesystem::exists(SHOAL_SOURCE_DIR "/" + folder + "/" + name);
    if (!found) missing.push_back(name);
  }
  return missing;
}

TEST(NamedFilesTest, FilesOfTheArchitectureAreNamedFromTheRoot) {
  const std::vector<std::string> names = SourceFilesIn(DocumentText("architecture.md"));
  EXPECT_THAT(names, Not(IsEmpty()));
  EXPECT_THAT(Missing(names, {}), IsEmpty());
}

TEST(NamedFilesTest, FilesOfTheGpuPageAreNamedFromTheComputeFolder) {
  const std::vector<std::string> names = SourceFilesIn(DocumentText("gpu.md"));
  EXPECT_THAT(names, Not(IsEmpty()));
  EXPECT_THAT(Missing(names, {"worker/compute"}), IsEmpty());
}

TEST(NamedFilesTest, AFileThatIsNotThereIsFound) {
  EXPECT_THAT(Missing(SourceFilesIn("`gone/no_such_file.h`, `docs/no_code.md`"), {}), SizeIs(1));
}

}  // namespace
}  // namespace shoal
