// Whatever bytes a file holds: an error that names it, or a data set that can be read; never a
// crash.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/fakes/test_seed.h"
#include "tests/worker/input/formats/data_file_content.h"
#include "worker/input/formats/arrays/array_file.h"

namespace shoal {
namespace {

class DatasetFuzzTest : public DataFileTest {
 protected:
  void OpenAndRead(const std::string& content) {
    const std::string path = Write("data", content);
    const auto file = ArrayFile::Open(path, {});
    if (!file.ok()) {
      ++rejected_;
      ASSERT_THAT(std::string(file.status().message()), testing::HasSubstr(path));
      return;
    }
    ++opened_;
    std::vector<float> row(ElementCount((*file)->row_shape()));
    for (uint64_t i = 0; i < (*file)->rows(); ++i) ASSERT_TRUE((*file)->ReadRow(i, row).ok());
  }

  int opened_ = 0;
  int rejected_ = 0;
};

std::string Damaged(std::string content, std::mt19937& random) {
  for (uint32_t changes = 1 + random() % 3; changes > 0 && !content.empty(); --changes) {
    // Mostly in the head, where it matters.
    const size_t at =
        random() % (random() % 4 == 0 ? content.size() : std::min<size_t>(content.size(), 130));
    switch (random() % 5) {
      case 0:
        content[at] = static_cast<char>(random());
        break;
      case 1:
        content[at] ^= static_cast<char>(1 << random() % 8);
        break;
      case 2:
        content.resize(at);
        break;
      case 3:
        content.insert(at, 1 + random() % 4, static_cast<char>(random()));
        break;
      case 4:
        content.erase(at, 1 + random() % 4);
        break;
    }
  }
  return content;
}

TEST_F(DatasetFuzzTest, DamagedFiles) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  std::mt19937 random(seed);
  const std::string data(8 * 12, 'd');
  const std::vector<std::string> files = {
      IdxHeader(0x08, {96}) + data, IdxHeader(0x0E, {3, 2, 2}) + data,
      NpyHeader(1, NpyDict("<f8", "(3, 4)")) + data, NpyHeader(2, NpyDict("|u1", "(4, 24)")) + data,
      NpyHeader(3, NpyDict("<i2", "(48,)")) + data};
  for (int round = 0; round < 4000; ++round) {
    const std::string& file = files[random() % files.size()];
    switch (random() % 3) {
      case 0:
        OpenAndRead(Damaged(file, random));
        break;
      case 1:
        OpenAndRead(Gzip(Damaged(file, random)));
        break;
      case 2:
        OpenAndRead(Damaged(Gzip(file), random));
        break;
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(opened_, 0);
  EXPECT_GT(rejected_, 1000);
}

TEST_F(DatasetFuzzTest, RandomBytesAfterAMagic) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  std::mt19937 random(seed);
  const std::vector<std::string> magics = {"",
                                           std::string(2, '\0'),
                                           std::string("\0\0\x08", 3),
                                           "\x93NUMPY\x01",
                                           std::string("\x93NUMPY\x01\0\x20\0{", 11),
                                           "\x1f\x8b",
                                           "\x1f\x8b\x08"};
  for (int round = 0; round < 4000; ++round) {
    std::string content = magics[random() % magics.size()];
    for (uint32_t count = random() % 80; count > 0; --count)
      content.push_back(static_cast<char>(random()));
    OpenAndRead(content);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace shoal
