#include "common/files/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/common/base/file_content.h"
#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class OutputFileTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return directory_ / name; }
  void Write(const std::string& path, const std::string& content) const {
    std::ofstream(path) << content;
  }
  std::string Content(const std::string& name) const { return FileContent(Path(name)); }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path()))
      names.push_back(entry.path().filename().string());
    return names;
  }

 private:
  const TemporaryDirectory directory_;
};

TEST_F(OutputFileTest, IsThereOnlyWhenItIsWhole) {
  auto file = OutputFile::Create(Path("a.csv"), /*replace=*/false);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append("one,").ok());
  EXPECT_THAT(Names(), ElementsAre("a.csv.partial"));
  // What another has left is not touched.
  ASSERT_TRUE(OutputFile::Create(Path("a.csv"), /*replace=*/false).ok());
  EXPECT_THAT(Names(), ElementsAre("a.csv.partial"));
  ASSERT_TRUE((*file)->Append("two").ok());
  ASSERT_TRUE((*file)->Finish().ok());
  EXPECT_THAT(Names(), ElementsAre("a.csv"));
  EXPECT_EQ(Content("a.csv"), "one,two");
}

TEST_F(OutputFileTest, TakesThePlaceOfALinkAndNotOfItsTarget) {
  Write(Path("target"), "kept");
  std::filesystem::create_symlink(Path("target"), Path("link"));
  auto file = *OutputFile::Create(Path("link"), /*replace=*/true);
  ASSERT_TRUE(file->Append("new").ok());
  ASSERT_TRUE(file->Finish().ok());
  EXPECT_EQ(Content("link"), "new");
  EXPECT_EQ(Content("target"), "kept");
}

TEST_F(OutputFileTest, SomebodyElseMayWriteIt) {
  auto file = *OutputFile::Create(Path("runs/new/a"), /*replace=*/false);
  Write(file->partial(), "whole");
  Write(file->partial_directory() + "/on_the_way", "to it");
  ASSERT_TRUE(file->Finish().ok());
  EXPECT_EQ(Content("runs/new/a"), "whole");
  EXPECT_FALSE(std::filesystem::exists(Path("runs/new/a.partial")));
}

TEST_F(OutputFileTest, ADroppedFileLeavesNothing) {
  { ASSERT_TRUE((*OutputFile::Create(Path("a"), /*replace=*/false))->Append("x").ok()); }
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(OutputFileTest, AFileThatIsThereIsReplacedOnlyWhereThatIsWanted) {
  Write(Path("a"), "old");
  const absl::Status rejected = OutputFile::Create(Path("a"), /*replace=*/false).status();
  EXPECT_TRUE(absl::IsAlreadyExists(rejected));
  EXPECT_THAT(std::string(rejected.message()), HasSubstr(Path("a")));
  auto file = *OutputFile::Create(Path("a"), /*replace=*/true);
  ASSERT_TRUE(file->Append("new").ok());
  EXPECT_EQ(Content("a"), "old");
  ASSERT_TRUE(file->Finish().ok());
  EXPECT_EQ(Content("a"), "new");
  // Also one that has come meanwhile.
  auto late = *OutputFile::Create(Path("b"), /*replace=*/false);
  ASSERT_TRUE(late->Append("ours").ok());
  Write(Path("b"), "somebody's");
  EXPECT_TRUE(absl::IsAlreadyExists(late->Finish()));
  EXPECT_EQ(Content("b"), "somebody's");
  EXPECT_FALSE(OutputFile::Create(Path(""), /*replace=*/true).ok());
}

}  // namespace
}  // namespace shoal
