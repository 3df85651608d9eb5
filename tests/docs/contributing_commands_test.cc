// What docs/contributing/adding-a-kind.md names for people to build and run is there.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "tests/common/base/file_content.h"
#include "tests/common/json/document_text.h"

namespace shoal {
namespace {

// The first groups of all matches.
std::set<std::string> FindAll(const std::string& text, const char* pattern) {
  const std::regex expression(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), expression), end; match != end; ++match)
    found.insert((*match)[1]);
  return found;
}

class ContributingCommandsTest : public ::testing::Test {
 protected:
  ContributingCommandsTest() {
    const std::filesystem::path tests = SHOAL_SOURCE_DIR "/tests";
    for (const auto& entry : std::filesystem::recursive_directory_iterator(tests)) {
      const std::string extension = entry.path().extension();
      if (extension == ".cc" || extension == ".h") sources_ += FileContent(entry.path());
      if (entry.path().filename() == "CMakeLists.txt") builds_ += FileContent(entry.path());
    }
  }

  const std::string page_ = DocumentText("contributing/adding-a-kind.md");
  std::string sources_;
  std::string builds_;
};

TEST_F(ContributingCommandsTest, TargetsAreBuilt) {
  const std::set<std::string> targets = FindAll(page_, "--target ([a-z_]+)");
  EXPECT_FALSE(targets.empty());
  for (const std::string& target : targets)
    EXPECT_NE(builds_.find("shoal_test(" + target + " "), std::string::npos) << target;
}

TEST_F(ContributingCommandsTest, TestCasesAreWritten) {
  const std::set<std::string> there =
      FindAll(sources_, "\n(?:TEST\\(|TEST_F\\(|TEST_P\\(|class )([A-Za-z0-9]+Test)\\b");
  const std::set<std::string> named = FindAll(page_, "\\b([A-Z][A-Za-z0-9]+Test)\\b");
  EXPECT_FALSE(named.empty());
  for (const std::string& name : named) EXPECT_TRUE(there.contains(name)) << name;
}

TEST_F(ContributingCommandsTest, ScriptsAndFilesAreThere) {
  for (const std::string& path : FindAll(page_, "(?:^|[ `])((?:scripts|tests)/[a-zA-Z0-9_./-]+)")) {
    const std::filesystem::path named = SHOAL_SOURCE_DIR "/" + path;
    // NAME stands for any file of the folder.
    const bool any = path.find("NAME") != path.npos;
    EXPECT_TRUE(std::filesystem::exists(any ? named.parent_path() : named)) << path;
  }
}

}  // namespace
}  // namespace shoal
