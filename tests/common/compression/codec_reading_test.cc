#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "common/compression/codec.h"
#include "common/compression/codec_table.h"
#include "tests/common/json/document_text.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string ErrorsOf(const std::string& json, Direction direction) {
  JsonErrors errors("job.json");
  ReadCodec(nlohmann::json::parse(json), "$.compression.push", direction, &errors);
  return std::string(errors.ToStatus().message());
}

TEST(ReadCodecTest, ANameOrAnObject) {
  for (const char* config : {"bf16", "int8", "e3m0"}) {
    EXPECT_EQ((*MakeCodec(config, Direction::kPush))->config(), config);
    JsonErrors errors("");
    const nlohmann::json object = {{"name", config}};
    EXPECT_EQ(ReadCodec(object, "$", Direction::kPush, &errors)->config(), config);
  }
  EXPECT_EQ((*MakeCodec("top_k", Direction::kPush))->config(),
            R"({"fraction":0.01,"name":"top_k"})");
  EXPECT_EQ((*MakeCodec(R"({"name":"top_k","fraction":0.25})", Direction::kPush))->config(),
            R"({"fraction":0.25,"name":"top_k"})");
  EXPECT_EQ(*MakeCodec("", Direction::kPush), nullptr);
}

TEST(ReadCodecTest, AnUnknownCodecIsNamedWithTheNearest) {
  EXPECT_THAT(ErrorsOf("\"int4\"", Direction::kPush),
              AllOf(HasSubstr("job.json: $.compression.push: is \"int4\""), HasSubstr("\"int8\""),
                    HasSubstr("bf16, int8, e3m0, top_k")));
  EXPECT_THAT(ErrorsOf("\"int4\"", Direction::kPull), HasSubstr(" bf16, int8"));
  EXPECT_THAT(ErrorsOf("8", Direction::kPush), HasSubstr("is 8"));
  EXPECT_THAT(ErrorsOf("{}", Direction::kPush), HasSubstr("$.compression.push.name: "));
  EXPECT_THAT(ErrorsOf(R"({"name": "int8", "fraction": 0.1})", Direction::kPush),
              HasSubstr("$.compression.push.fraction"));
  EXPECT_THAT(ErrorsOf(R"({"name": "top_k", "fraction": 0.6})", Direction::kPush),
              HasSubstr("is 0.6"));
}

TEST(ReadCodecTest, ValuesAreNotPulledByWhatLeavesPartsOut) {
  for (const char* name : {"\"e3m0\"", "\"top_k\""}) {
    EXPECT_THAT(ErrorsOf(name, Direction::kPull), HasSubstr("$.compression.push"));
  }
}

// docs/job-file.md has a row for each codec, with the ways that it is good for.
TEST(CodecDocsTest, HasARowForEachCodec) {
  std::istringstream document(DocumentText("job-file.md"));
  std::vector<std::string> push, pull;
  bool table = false;
  for (std::string line; std::getline(document, line);) {
    if (line.starts_with("| codec |")) table = true;
    if (line.empty()) table = false;
    if (!table || !line.starts_with("| `")) continue;
    const std::string name = line.substr(3, line.find('`', 3) - 3);
    push.push_back(name);
    if (line.find("`pull`") != std::string::npos) pull.push_back(name);
  }
  EXPECT_EQ(push, CodecNames(Direction::kPush));
  EXPECT_EQ(pull, CodecNames(Direction::kPull));
}

}  // namespace
}  // namespace shoal
