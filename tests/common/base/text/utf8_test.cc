#include "common/base/text/utf8.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(Utf8Test, TakesWhatRfc3629Has) {
  for (const char* text : {"", "plain\n\x1b", "Größe", "日本語", "\U0001f41f", "\xc2\x9b"})
    EXPECT_TRUE(IsUtf8(text)) << text;
  EXPECT_TRUE(IsUtf8(std::string("nul\0", 4)));
}

TEST(Utf8Test, RejectsAllElse) {
  for (const char* text : {"\xff", "\xc3", "\xc0\x9b", "\xed\xa0\x80", "\xe0\x80\x80",
                           "\xf4\x90\x80\x80", "\xf0\x80\x80\x80", "a\x80", "\xe6\x97"})
    EXPECT_FALSE(IsUtf8(text)) << testing::PrintToString(text);
}

TEST(Utf8Test, EachByteThatIsNotUtf8IsEscaped) {
  EXPECT_EQ(EscapeInvalidUtf8("Größe/日本語\n\x1b\\"), "Größe/日本語\n\x1b\\");
  EXPECT_EQ(EscapeInvalidUtf8("a\xff.png"), "a\\xff.png");
  EXPECT_EQ(EscapeInvalidUtf8("\xe6\x97"), "\\xe6\\x97") << "half a character";
  EXPECT_EQ(EscapeInvalidUtf8(""), "");
}

TEST(Utf8Test, APathThatIsNotUtf8IsRejected) {
  EXPECT_TRUE(CheckUtf8Path("/tmp/Größe/日本語").ok());
  const absl::Status status = CheckUtf8Path("/tmp/a\xff/b");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("/tmp/a\\xff/b"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace shoal
