#include "common/checkpoint/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "tests/common/checkpoint/small_checkpoint.h"

namespace shoal {
namespace {

using testing::HasSubstr;

Manifest FullManifest() {
  Manifest manifest = SmallManifest(0xFFFFFFFF00000001, 42);
  manifest.job_name = "größe \"quoted\"\n";
  manifest.epoch_sums = {
      .examples = 64, .loss = 0.1, .metrics = {0.25, std::nan(""), 1e300}, .seconds = 3};
  manifest.not_finite = "dense/kernel";
  manifest.files = {{"job.json", 17, 0xDEADBEEF}, {"model.json", uint64_t{1} << 60, 1}};
  return manifest;
}

// The text with another part in the middle and a checksum that fits it.
std::string Resummed(std::string text) {
  const size_t digits = text.size() - 12;
  return text.replace(digits, 8, ChecksumText(Crc32c(0, text.data(), digits)));
}
std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return Resummed(text.replace(at, from.size(), to));
}
std::string Message(const std::string& text, absl::StatusCode code = absl::StatusCode::kDataLoss) {
  const auto manifest = Manifest::Parse(text, "DIR/manifest.json");
  EXPECT_EQ(manifest.status().code(), code) << manifest.status();
  EXPECT_THAT(std::string(manifest.status().message()), HasSubstr("DIR/manifest.json"));
  return std::string(manifest.status().message());
}

TEST(ManifestTest, RoundTrip) {
  const Manifest manifest = FullManifest();
  const std::string text = manifest.ToText();
  const auto read = Manifest::Parse(text, "m");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->ToText(), text);
  EXPECT_EQ(read->timeline, manifest.timeline);
  EXPECT_EQ(read->job_name, manifest.job_name);
  EXPECT_EQ(read->job_fingerprint, manifest.job_fingerprint);
  EXPECT_EQ(read->cut_step, 42u);
  EXPECT_EQ(read->total_steps, 100u);
  EXPECT_EQ(read->epoch, 1u);
  EXPECT_EQ(read->epoch_position, 64u);
  EXPECT_EQ(read->epoch_sums.examples, 64u);
  EXPECT_EQ(read->epoch_sums.loss, 0.1);
  EXPECT_THAT(read->epoch_sums.metrics, testing::ElementsAre(0.25, testing::IsNan(), 1e300));
  EXPECT_EQ(read->epoch_sums.seconds, 3);
  EXPECT_EQ(read->slots, manifest.slots);
  EXPECT_EQ(read->not_finite, "dense/kernel");
  EXPECT_EQ(read->shard_map, manifest.shard_map);
  ASSERT_EQ(read->files.size(), 2u);
  EXPECT_EQ(read->files[0].crc32c, 0xDEADBEEF);
  EXPECT_EQ(read->files[1].size_bytes, uint64_t{1} << 60);
}

TEST(ManifestTest, SumsOfAnEpochThatAreNoneAreNamed) {
  const std::string text = FullManifest().ToText();
  EXPECT_THAT(Message(Replaced(text, "\"loss\": 0.1", "\"loss\": \"0\"")),
              HasSubstr("$.epoch_sums.loss "));
  EXPECT_THAT(Message(Replaced(text, "0.25,", "[],")), HasSubstr("$.epoch_sums.metrics "));
  EXPECT_THAT(Message(Replaced(text, "\"epoch_sums\": {", "\"epoch_sums\": 7, \"x\": {")),
              HasSubstr("$.epoch_sums.examples "));
  for (const char* seconds : {"null", "1e300", "-1"}) {
    EXPECT_THAT(Message(Replaced(text, "\"seconds\": 3.0", absl::StrCat("\"seconds\": ", seconds))),
                HasSubstr("$.epoch_sums.seconds "));
  }
  EXPECT_THAT(Message(Replaced(text, "\"examples\": 64", "\"examples\": 65")),
              HasSubstr("$.epoch_sums.examples "));
}

TEST(ManifestTest, AnyShardMapCanBeReadBack) {
  for (const std::string& map :
       {std::string(), std::string("not json"), std::string("[1,"), std::string("\"text\""),
        std::string(R"({"a":1,"a":2})"), std::string(100, '[') + std::string(100, ']')}) {
    Manifest manifest = FullManifest();
    manifest.shard_map = map;
    const auto read = Manifest::Parse(manifest.ToText(), "m");
    ASSERT_TRUE(read.ok()) << map << ": " << read.status();
    EXPECT_EQ(read->shard_map, map);
  }
}

TEST(ManifestTest, NewerFormatSaysWhoWroteIt) {
  std::string text = FullManifest().ToText();
  text = Replaced(text, "\"format_version\": 1", "\"format_version\": 7");
  text = Replaced(text, "\"program_version\": \"0.1.0\"", "\"program_version\": \"9.8.7\"");
  const std::string message = Message(text, absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(message, HasSubstr(" version 7"));
  EXPECT_THAT(message, HasSubstr("9.8.7"));
  EXPECT_THAT(message, HasSubstr("up to 1"));
}

TEST(ManifestTest, DamageIsNamed) {
  const std::string text = FullManifest().ToText();
  Message("");
  Message(text.substr(0, text.size() - 1));
  std::string flipped = text;
  flipped[20] ^= 1;
  EXPECT_THAT(Message(flipped),
              HasSubstr(ChecksumText(Crc32c(0, flipped.data(), flipped.size() - 12))));
}

TEST(ManifestTest, WrongContentUnderARightChecksum) {
  const std::string text = FullManifest().ToText();
  EXPECT_THAT(Message(Replaced(text, "\"epoch\": 1", "\"epoch\": -1")), HasSubstr("$.epoch "));
  EXPECT_THAT(Message(Replaced(text, "\"epoch\": 1,", "")), HasSubstr("$.epoch "));
  EXPECT_THAT(Message(Replaced(text, "\"epoch\": 1", "\"epoch\": 1, \"epoch\": 2")),
              HasSubstr("$.epoch: "));
  EXPECT_THAT(Message(Replaced(text, "\"deadbeef\"", "\"DEADBEEF\"")),
              HasSubstr("$.files[0].crc32c "));
  EXPECT_THAT(Message(Replaced(text, "\"name\": \"model.json\"", "\"name\": \"job.json\"")),
              HasSubstr("$.files[1].name"));
  for (const char* name : {"../job.json", "/etc/passwd", "a/b", "", ".", "..", "manifest.json"}) {
    EXPECT_THAT(Message(Replaced(text, "\"name\": \"model.json\"",
                                 std::string("\"name\": \"") + name + "\"")),
                HasSubstr("$.files[1].name"));
  }
  EXPECT_THAT(Message(Replaced(text, "\"adam_m\"", "3")), HasSubstr("$.slots "));
  Message(Replaced(text, "{\n  \"format_version\"", "[\n  \"format_version\""));
  Message(Replaced(text, "\"ps\": [", "\"ps\": " + std::string(40, '[')));
}

TEST(ManifestTest, MoreFilesThanAnyCheckpointHasAreRejected) {
  Manifest manifest = FullManifest();
  manifest.files.clear();
  while (manifest.files.size() < 10'000)
    manifest.files.push_back({absl::StrCat("f", manifest.files.size()), 1, 1});
  EXPECT_TRUE(Manifest::Parse(manifest.ToText(), "m").ok());
  manifest.files.push_back({"one-more", 1, 1});
  EXPECT_THAT(Message(manifest.ToText()), HasSubstr("$.files has 10001 "));
}

TEST(ManifestFuzzTest, MutatedTextsAreRejectedOrSound) {
  const std::string original = FullManifest().ToText();
  const std::vector<std::string> pieces = {
      "{",         "}",  "[",   "]", ",", ":", "\"", "null", "-1", "1e9", "18446744073709551616",
      "\"files\"", "{}", "\xC3"};
  int accepted = 0;
  for (uint32_t seed = 1; seed <= 20'000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::string text = original;
    for (uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
      // Not in the tail, so that the checksum can be made to fit and the parser behind it is
      // reached.
      const size_t at = random() % (text.size() - 40);
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, std::min<size_t>(1 + random() % 6, text.size() - 40 - at));
          break;
        default:
          text.insert(at, pieces[random() % pieces.size()]);
          break;
      }
    }
    EXPECT_EQ(text == original, Manifest::Parse(text, "m").ok());
    const auto manifest = Manifest::Parse(Resummed(text), "m");
    if (!manifest.ok()) continue;
    ++accepted;
    const auto again = Manifest::Parse(manifest->ToText(), "m");
    ASSERT_TRUE(again.ok()) << again.status();
    ASSERT_EQ(again->ToText(), manifest->ToText());
  }
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 15'000);
}

TEST(ManifestTest, TermsAreReadable) {
  EXPECT_EQ(TermText((uint64_t{12} << 32) | 0xBADCAFE), "12-0badcafe");
}

}  // namespace
}  // namespace shoal
