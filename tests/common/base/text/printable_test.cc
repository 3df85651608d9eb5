#include "common/base/text/printable.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(PrintableTest, LeavesTextAsItIs) {
  for (const char* text :
       {"", "plain text, with \"quotes\" and \\", "Größe", "日本語", "\U0001f41f"})
    EXPECT_EQ(Printable(text, 100), text);
}

TEST(PrintableTest, ControlCharactersAreShownNotObeyed) {
  EXPECT_EQ(Printable("a\x1b[2Jb", 100), "a\\x1b[2Jb");
  EXPECT_EQ(Printable("one\ntwo\r\tthree\x7f", 100), "one\\ntwo\\r\\tthree\\x7f");
  EXPECT_EQ(Printable(std::string("nul\0", 4), 100), "nul\\x00");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "2J",
                      100),
            "\\xc2\\x9b2J")
      << "U+009B begins a sequence, too";
}

TEST(PrintableTest, BytesThatAreNotUtf8AreShown) {
  EXPECT_EQ(Printable("\xff", 100), "\\xff");
  EXPECT_EQ(Printable("\xc3", 100), "\\xc3") << "half a character";
  EXPECT_EQ(Printable("\xc0\x9b", 100), "\\xc0\\x9b") << "ESC in too many bytes";
  EXPECT_EQ(Printable("\xed\xa0\x80", 100), "\\xed\\xa0\\x80") << "half of UTF-16";
}

TEST(PrintableTest, ALongTextIsCut) {
  EXPECT_EQ(Printable("12345", 5), "12345");
  EXPECT_EQ(Printable("123456", 5), "12345... (1 bytes more)");
  EXPECT_EQ(Printable("1234ß", 5), "1234... (2 bytes more)") << "not in a character";
  EXPECT_LT(Printable(std::string(1 << 20, '\x1b'), 100).size(), 500);
}

TEST(PrintableTest, LinesKeepTheirEnds) {
  EXPECT_EQ(PrintableLines("one\n\x1b[A\ntwo", 100), "one\n\\x1b[A\ntwo");
  EXPECT_EQ(PrintableLines("123\n56", 4), "123\n... (2 bytes more)");
}

}  // namespace
}  // namespace shoal
