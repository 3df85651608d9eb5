#include "worker/job/job_data.h"

#include <gtest/gtest.h>

#include "common/loss/keras_loss.h"
#include "common/model/ops/gather.h"

namespace shoal {
namespace {

TEST(JobDataTest, AnInputThatNumbersTheRowsOfATableTakesThoseIntegers) {
  Graph model;
  const ValueId table = model.AddVariable({.name = "embedding", .shape = {1000, 8}});
  const ValueId price = model.AddInput("price", {kBatch, 3});
  const ValueId user = model.AddInput("user", {kBatch});
  ASSERT_TRUE(model.Add(std::make_shared<GatherOp>(), {table, user}, "embedding").ok());
  const std::vector<Feature> inputs = InputsOf(model);
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[0].name, "price");
  EXPECT_EQ(inputs[0].shape, Shape{3});
  EXPECT_EQ(inputs[0].type, FeatureType::kFloat);
  EXPECT_EQ(inputs[1].name, "user");
  EXPECT_EQ(inputs[1].shape, Shape{});
  EXPECT_EQ(inputs[1].type, FeatureType::kInteger);
  EXPECT_EQ(inputs[1].min, 0);
  EXPECT_EQ(inputs[1].max, 999);
  EXPECT_EQ(model.inputs().size(), 2u);
  EXPECT_EQ(price, model.inputs()[0]);
}

TEST(JobDataTest, AnInputTakesTheWholeNumbersOfItsDtype) {
  Graph model;
  const ValueId table = model.AddVariable({.name = "embedding", .shape = {1000, 8}});
  model.AddInput("picture", {kBatch, 4, 4, 1}, WholeNumbers{0, 255});
  const ValueId user = model.AddInput("user", {kBatch}, WholeNumbers{-128, 127});
  ASSERT_TRUE(model.Add(std::make_shared<GatherOp>(), {table, user}, "embedding").ok());
  const std::vector<Feature> inputs = InputsOf(model);
  EXPECT_EQ(inputs[0].type, FeatureType::kInteger);
  EXPECT_EQ(inputs[0].min, 0);
  EXPECT_EQ(inputs[0].max, 255);
  // Of both ranges what they share.
  EXPECT_EQ(inputs[1].min, 0);
  EXPECT_EQ(inputs[1].max, 127);
}

// Of a size, with labels in records of so many bytes, and these features.
class SizedDataset : public Dataset {
 public:
  SizedDataset(uint64_t size, uint64_t bytes_for_label, std::vector<Feature> features = {})
      : size_(size), bytes_for_label_(bytes_for_label), features_(std::move(features)) {}
  uint64_t size() const override { return size_; }
  const std::vector<Feature>& features() const override { return features_; }
  const Shape& label_shape() const override { return label_shape_; }
  absl::Status Read(uint64_t, std::span<const FeatureSpan>, std::span<float>) const override {
    return absl::OkStatus();
  }
  absl::Status ReadLabel(uint64_t, std::span<float>) const override { return absl::OkStatus(); }
  std::string LabelSource() const override { return "nowhere"; }
  uint64_t bytes_for_label() const override { return bytes_for_label_; }

 private:
  const uint64_t size_, bytes_for_label_;
  const std::vector<Feature> features_;
  const Shape label_shape_;
};

TEST(JobDataTest, BytesOfWhichAnyIsRightInAllDataAreTakenAsSuch) {
  const Feature pixels = {.name = "pixels", .bytes = true};
  const Feature floats = {.name = "floats"};
  const Feature whole = {
      .name = "whole", .type = FeatureType::kInteger, .min = 0, .max = 255, .bytes = true};
  const Feature ids = {
      .name = "ids", .type = FeatureType::kInteger, .min = 0, .max = 254, .bytes = true};
  const Feature weight = {.name = "weight", .type = FeatureType::kWeight, .bytes = true};
  const SizedDataset training(1, 0, {pixels, floats, whole, ids, pixels, weight});
  const SizedDataset test(1, 0, {pixels, floats, whole, ids, floats, weight});
  EXPECT_EQ(Uint8InputsOf({&training, nullptr}), (std::set<size_t>{0, 2, 4}));
  EXPECT_EQ(Uint8InputsOf({&training, &test}), (std::set<size_t>{0, 2}));
  EXPECT_EQ(Uint8InputsOf({nullptr, nullptr}), std::set<size_t>{});
}

TEST(JobDataTest, LabelsAreCheckedForAboutASecond) {
  const auto looked_at = [](uint64_t size, uint64_t bytes) {
    return CheckedLabelCount(SizedDataset(size, bytes));
  };
  EXPECT_EQ(looked_at(1000, 0), 1000u);
  EXPECT_EQ(looked_at(10'000'000, 0), 1u << 20);
  EXPECT_EQ(looked_at(10'000'000, 1000), 4096u);
  EXPECT_EQ(looked_at(10'000'000, 1 << 20), 256u);
  EXPECT_EQ(looked_at(10'000'000, uint64_t{1} << 30), 1u);
}

}  // namespace
}  // namespace shoal
