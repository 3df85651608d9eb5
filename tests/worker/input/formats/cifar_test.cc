#include <gmock/gmock.h>

#include "tests/common/base/fails_with.h"
#include "tests/worker/input/formats/format_test.h"

namespace shoal {
namespace {

// Labels, then planes of which each byte is plane * 50 + pixel / 32.
std::string Record(const std::string& labels) {
  std::string record = labels;
  for (int plane = 0; plane < 3; ++plane) {
    for (int i = 0; i < 1024; ++i) record.push_back(static_cast<char>(plane * 50 + i / 32));
  }
  return record;
}

class CifarTest : public FormatTest {
 protected:
  CifarTest() {
    source_.format = "cifar10";
    inputs_ = {{.name = "x", .shape = {32, 32, 3}}};
  }
  std::vector<float> Labels() {
    const auto dataset = Open();
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    std::vector<float> labels;
    for (uint64_t i = 0; dataset.ok() && i < (*dataset)->size(); ++i) {
      EXPECT_TRUE((*dataset)->ReadLabel(i, std::span(&labels.emplace_back(), 1)).ok());
    }
    return labels;
  }
};

TEST_F(CifarTest, FilesOfAPatternInTheirOrder) {
  Write("data_batch_2.bin", Record("\x09"));
  Write("data_batch_1.bin", Record("\x03") + Record("\x04"));
  Write("test_batch.bin", Record("\x05"));
  source_.paths = {Path("data_batch_*.bin")};
  EXPECT_EQ(Labels(), (std::vector<float>{3, 4, 9}));
  source_.paths = {Path("test_batch.bin"), Path("data_batch_1.bin")};
  EXPECT_EQ(Labels(), (std::vector<float>{5, 3, 4}));
  std::vector<float> pixels(32 * 32 * 3), label(1);
  const auto dataset = Open();
  EXPECT_TRUE((*dataset)->features()[0].bytes);
  ASSERT_TRUE((*dataset)->Read(2, std::vector<FeatureSpan>{pixels}, label).ok());
  EXPECT_EQ(label[0], 4);
  std::vector<uint8_t> bytes(pixels.size());
  ASSERT_TRUE((*dataset)->Read(2, std::vector<FeatureSpan>{bytes}, label).ok());
  EXPECT_EQ(std::vector<float>(bytes.begin(), bytes.end()), pixels);
  for (int i = 0; i < 1024; ++i) {
    for (int c = 0; c < 3; ++c) ASSERT_EQ(pixels[3 * i + c], c * 50 + i / 32) << i;
  }
}

TEST_F(CifarTest, Cifar100HasFineAndCoarseLabels) {
  Write("train.bin", Record(std::string("\x13\x63")));
  source_.format = "cifar100";
  source_.paths = {Path("train.bin")};
  EXPECT_EQ(Labels(), std::vector<float>{99});
  source_.label_mode = "coarse";
  EXPECT_EQ(Labels(), std::vector<float>{19});
}

TEST_F(CifarTest, WrongFilesAreNamedWithThePlace) {
  source_.paths = {Write("batch.bin", Record("\x03") + Record("\x04").substr(1))};
  EXPECT_THAT(ErrorOf(), FailsWith(absl::StatusCode::kDataLoss,
                                   {Path("batch.bin") + ": ", "6145", "3073", "CIFAR-10"}));
  Write("batch.bin", Record("\x03") + Record("\x0a"));
  EXPECT_THAT(ErrorOf(), FailsWith(absl::StatusCode::kDataLoss,
                                   {Path("batch.bin") + ": at byte 3073: ", "10"}));
  source_.paths = {Path("*.nothing")};
  EXPECT_THAT(ErrorOf(), FailsWith(absl::StatusCode::kNotFound, {Path("*.nothing")}));
  Write("batch.bin", Record("\x03"));
  source_.paths = {Path("batch.bin")};
  inputs_[0].shape = {28, 28, 1};
  EXPECT_THAT(ErrorOf(), FailsWith(absl::StatusCode::kInvalidArgument,
                                   {"(None, 32, 32, 3)", "(None, 28, 28, 1)"}));
}

}  // namespace
}  // namespace shoal
