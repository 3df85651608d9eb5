#include "cli/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/worker/input/data_file_content.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class OutputFileTest : public DataFileTest {};

TEST_F(OutputFileTest, IsThereOnlyWhenItIsWhole) {
  {
    auto file = OutputFile::Create(Path("a.csv"), /*replace=*/false);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append("one,").ok());
    EXPECT_THAT(NamesIn(Path("")), ElementsAre("a.csv.partial"));
    // What another has left is not touched.
    ASSERT_TRUE(OutputFile::Create(Path("a.csv"), /*replace=*/false).ok());
    EXPECT_THAT(NamesIn(Path("")), ElementsAre("a.csv.partial"));
    ASSERT_TRUE((*file)->Append("two").ok());
    ASSERT_TRUE((*file)->Finish().ok());
  }
  EXPECT_THAT(NamesIn(Path("")), ElementsAre("a.csv"));
  EXPECT_EQ(ReadAll(Path("a.csv")), "one,two");
}

TEST_F(OutputFileTest, WhatIsGivenUpLeavesNothing) {
  { ASSERT_TRUE((*OutputFile::Create(Path("a"), /*replace=*/false))->Append("x").ok()); }
  EXPECT_THAT(NamesIn(Path("")), IsEmpty());
}

TEST_F(OutputFileTest, AFileThatIsThereIsReplacedOnlyWhereThatIsWanted) {
  Write("a", "old");
  const absl::Status refused = OutputFile::Create(Path("a"), /*replace=*/false).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr(Path("a") + " is there already"));
  auto file = *OutputFile::Create(Path("a"), /*replace=*/true);
  ASSERT_TRUE(file->Append("new").ok());
  EXPECT_EQ(ReadAll(Path("a")), "old");
  ASSERT_TRUE(file->Finish().ok());
  EXPECT_EQ(ReadAll(Path("a")), "new");
  // Also one that has come meanwhile.
  auto late = *OutputFile::Create(Path("b"), /*replace=*/false);
  Write("b", "somebody's");
  EXPECT_TRUE(absl::IsFailedPrecondition(late->Finish()));
  EXPECT_EQ(ReadAll(Path("b")), "somebody's");
  EXPECT_FALSE(OutputFile::Create(Path(""), /*replace=*/true).ok());
}

}  // namespace
}  // namespace shoal
