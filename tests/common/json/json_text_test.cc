#include "common/json/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/common/base/fails_with.h"
#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string ParseError(const std::string& text) {
  const auto parsed = ParseJson(text, "f.json");
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(parsed.status().message());
}

TEST(ParseJsonTest, ReadsAValue) {
  const auto parsed = ParseJson(R"({"a": [1, {"b": null}], "c": {"a": 2}})", "f.json");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ((*parsed)["a"][0], 1);
  EXPECT_EQ((*parsed)["c"]["a"], 2);
}

TEST(ParseJsonTest, SaysWhereTheTextIsNotJson) {
  EXPECT_THAT(ParseError("{\n  \"a\": tru}\n"), StartsWith("f.json: is not JSON: "));
  EXPECT_THAT(ParseError("{\n  \"a\": tru}\n"), HasSubstr("line 2"));
  EXPECT_THAT(ParseError(""), HasSubstr("f.json: "));
  EXPECT_THAT(ParseError("{} {}"), HasSubstr("f.json: "));
  EXPECT_THAT(ParseError("{\"a\": NaN}"), HasSubstr("f.json: "));
  EXPECT_THAT(ParseError("{\"a\": 1e999}"), HasSubstr("f.json: "));
  EXPECT_THAT(ParseError("\"\xff\""), HasSubstr("f.json: "));
}

TEST(ParseJsonTest, MessageIsShortWhateverTheText) {
  EXPECT_LT(ParseError("\"" + std::string(100000, 'x')).size(), 400u);
}

TEST(ParseJsonTest, RejectsAKeyThatComesTwice) {
  EXPECT_THAT(ParseError(R"({"a": {"b": 1, "c": 2, "b": 3}})"), StartsWith("f.json: $.a.b: "));
  EXPECT_THAT(ParseError(R"({"a": [{"b": 1}, {"b": 1, "b": {}}], "a": 2})"),
              StartsWith("f.json: $.a.b: "));
}

TEST(ParseJsonTest, RejectsDeepNesting) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(ParseJson(nested(kMaxJsonDepth), "f.json").ok());
  EXPECT_THAT(ParseError(nested(kMaxJsonDepth + 1)), HasSubstr(" 100 levels"));
  // Neither the stack nor time runs out where nobody closes what was opened.
  EXPECT_THAT(ParseError(std::string(1'000'000, '[')), HasSubstr("f.json: "));
}

TEST(ParseJsonTest, ReadsAnElementInTheSameTimeHoweverManyThereAre) {
  // Whoever looks at all that came before is not done in an hour.
  std::string text = "[{}";
  for (int i = 1; i < 1'000'000; ++i) text += ",{}";
  const auto parsed = ParseJson(text + "]", "f.json");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->size(), 1'000'000u);
}

TEST(JsonPathTest, QuotesKeysThatAreNoWords) {
  EXPECT_EQ(JsonPath("$", "batch_size"), "$.batch_size");
  EXPECT_EQ(JsonPath("$.a", "b c"), "$.a[\"b c\"]");
  EXPECT_EQ(JsonPath("$.a", ""), "$.a[\"\"]");
  EXPECT_EQ(JsonPath("$.a", 3), "$.a[3]");
}

TEST(ShortJsonTest, CutsBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "ö";
  const std::string shown = ShortJson(nlohmann::json(text));
  EXPECT_LE(shown.size(), 80u);
  EXPECT_EQ((shown.size() - 1 - 3) % 2, 0u) << shown;  // quote, whole letters, dots
}

class ReadJsonFileTest : public ::testing::Test {
 protected:
  const TemporaryDirectory directory_;
};

TEST_F(ReadJsonFileTest, ReadsTheWholeFile) {
  std::ofstream(directory_ / "f") << std::string("a\0b\n", 4);
  EXPECT_EQ(*ReadJsonFile(directory_ / "f"), std::string("a\0b\n", 4));
}

TEST_F(ReadJsonFileTest, NamesTheFileInErrors) {
  EXPECT_THAT(ReadJsonFile(directory_ / "none").status(),
              FailsWith(absl::StatusCode::kNotFound, {directory_ / "none: "}));
  EXPECT_THAT(ReadJsonFile(directory_.path()).status(),
              FailsWith(absl::StatusCode::kInvalidArgument, {directory_.path() + ": "}));
}

TEST_F(ReadJsonFileTest, RejectsAFileAboveTheCap) {
  std::ofstream(directory_ / "large").close();
  std::filesystem::resize_file(directory_ / "large", kMaxJsonBytes + 1);  // sparse
  EXPECT_THAT(ReadJsonFile(directory_ / "large").status(),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        {directory_ / "large: ", " 67108865 bytes", " 67108864 "}));
}

}  // namespace
}  // namespace shoal
