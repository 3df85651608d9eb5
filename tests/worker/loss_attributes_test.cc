#include "worker/loss_attributes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal {
namespace {

using Kind = LossAttributes::Kind;

TEST(LossAttributesTest, AreThoseOfTheJob) {
  const auto sparse =
      LossAttributesOf({.class_name = "SparseCategoricalCrossentropy", .from_logits = true});
  ASSERT_TRUE(sparse.ok()) << sparse.status();
  EXPECT_EQ(sparse->kind, Kind::kSparseCategoricalCrossentropy);
  EXPECT_TRUE(sparse->from_logits);
  const auto categorical =
      LossAttributesOf({.class_name = "CategoricalCrossentropy", .label_smoothing = 0.1});
  ASSERT_TRUE(categorical.ok()) << categorical.status();
  EXPECT_EQ(categorical->kind, Kind::kCategoricalCrossentropy);
  EXPECT_FALSE(categorical->from_logits);
  EXPECT_DOUBLE_EQ(categorical->label_smoothing, 0.1);
  EXPECT_EQ(LossAttributesOf({.class_name = "MeanSquaredError"})->kind, Kind::kMeanSquaredError);
}

TEST(LossAttributesTest, AnUnknownLossIsNamed) {
  const absl::Status status = LossAttributesOf({.class_name = "Hinge"}).status();
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_EQ(status.message(), "loss Hinge is not known here");
}

absl::Status Check(Kind kind, const Shape& output, const Shape& label) {
  return CheckLabels({.kind = kind}, output, label, "train-labels.idx");
}

TEST(CheckLabelsTest, SparseLabelsAreOneClassNumberAnExample) {
  EXPECT_TRUE(Check(Kind::kSparseCategoricalCrossentropy, {kBatch, 10}, {}).ok());
  EXPECT_TRUE(Check(Kind::kSparseCategoricalCrossentropy, {kBatch, 10}, {1}).ok());
  EXPECT_TRUE(Check(Kind::kSparseCategoricalCrossentropy, {kBatch, 7, 10}, {7}).ok());
  EXPECT_TRUE(Check(Kind::kSparseCategoricalCrossentropy, {kBatch, 7, 10}, {7, 1}).ok());
  EXPECT_FALSE(Check(Kind::kSparseCategoricalCrossentropy, {kBatch, 7, 10}, {}).ok());
}

TEST(CheckLabelsTest, OtherLabelsHaveTheShapeOfTheOutput) {
  for (const Kind kind : {Kind::kCategoricalCrossentropy, Kind::kMeanSquaredError}) {
    EXPECT_TRUE(Check(kind, {kBatch, 10}, {10}).ok());
    EXPECT_TRUE(Check(kind, {kBatch, 4, 4, 3}, {4, 4, 3}).ok());
    EXPECT_FALSE(Check(kind, {kBatch, 10}, {}).ok());
    EXPECT_FALSE(Check(kind, {kBatch, 10}, {1}).ok());
    EXPECT_FALSE(Check(kind, {kBatch, 10}, {10, 1, 1}).ok());
    EXPECT_FALSE(Check(kind, {kBatch, 4, 4, 3}, {4, 4}).ok());
  }
}

TEST(CheckLabelsTest, ALastAxisOfOneMayBeThereOrNot) {
  EXPECT_TRUE(Check(Kind::kMeanSquaredError, {kBatch, 1}, {}).ok());
  EXPECT_TRUE(Check(Kind::kMeanSquaredError, {kBatch, 1}, {1, 1}).ok());
  EXPECT_TRUE(Check(Kind::kMeanSquaredError, {kBatch, 7, 1}, {7}).ok());
  EXPECT_TRUE(Check(Kind::kMeanSquaredError, {kBatch, 10}, {10, 1}).ok());
  EXPECT_TRUE(Check(Kind::kMeanSquaredError, {kBatch}, {1}).ok());
  EXPECT_TRUE(Check(Kind::kCategoricalCrossentropy, {kBatch, 10}, {10, 1}).ok());
  // Nothing can be learnt from the only class.
  EXPECT_FALSE(Check(Kind::kCategoricalCrossentropy, {kBatch, 1}, {}).ok());
}

TEST(CheckLabelsTest, TheErrorNamesFileShapesAndWhatWouldBeRight) {
  const absl::Status one_hot = Check(Kind::kSparseCategoricalCrossentropy, {kBatch, 10}, {10});
  EXPECT_TRUE(absl::IsInvalidArgument(one_hot));
  EXPECT_EQ(one_hot.message(),
            "the loss SparseCategoricalCrossentropy does not suit the labels of train-labels.idx: "
            "on a model output of " +
                ShapeToString({kBatch, 10}) + " it takes labels of shape " + ShapeToString({}) +
                ", one class number an example; these have shape " + ShapeToString({10}));
  const absl::Status number = Check(Kind::kMeanSquaredError, {kBatch, 10}, {});
  EXPECT_TRUE(absl::IsInvalidArgument(number));
  EXPECT_EQ(number.message(),
            "the loss MeanSquaredError does not suit the labels of train-labels.idx: on a model "
            "output of " +
                ShapeToString({kBatch, 10}) + " it takes labels of shape " + ShapeToString({10}) +
                ", one number for each output; these have shape " + ShapeToString({}));
}

}  // namespace
}  // namespace shoal
