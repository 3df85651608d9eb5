#include "worker/job/label_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/base/fails_with.h"
#include "tests/common/loss/loss_of.h"

namespace shoal {
namespace {

constexpr char kSparseClass[] = "SparseCategoricalCrossentropy";
constexpr char kCategorical[] = "CategoricalCrossentropy";
constexpr char kMeanSquared[] = "MeanSquaredError";

absl::Status Check(const std::string& loss, const Shape& output, const Shape& label) {
  return CheckLabelShape(*LossOf(loss), output, label, "train-labels.idx");
}

TEST(CheckLabelShapeTest, SparseLabelsAreOneClassNumberAnExample) {
  EXPECT_TRUE(Check(kSparseClass, {kBatch, 10}, {}).ok());
  EXPECT_TRUE(Check(kSparseClass, {kBatch, 10}, {1}).ok());
  EXPECT_TRUE(Check(kSparseClass, {kBatch, 7, 10}, {7}).ok());
  EXPECT_TRUE(Check(kSparseClass, {kBatch, 7, 10}, {7, 1}).ok());
  EXPECT_FALSE(Check(kSparseClass, {kBatch, 7, 10}, {}).ok());
}

TEST(CheckLabelShapeTest, OtherLabelsHaveTheShapeOfTheOutput) {
  for (const char* loss : {kCategorical, kMeanSquared, "KLDivergence", "Huber", "Dice"}) {
    EXPECT_TRUE(Check(loss, {kBatch, 10}, {10}).ok());
    EXPECT_TRUE(Check(loss, {kBatch, 4, 4, 3}, {4, 4, 3}).ok());
    EXPECT_FALSE(Check(loss, {kBatch, 10}, {}).ok());
    EXPECT_FALSE(Check(loss, {kBatch, 10}, {1}).ok());
    EXPECT_FALSE(Check(loss, {kBatch, 10}, {10, 1, 1}).ok());
    EXPECT_FALSE(Check(loss, {kBatch, 4, 4, 3}, {4, 4}).ok());
  }
}

TEST(CheckLabelShapeTest, ALastAxisOfOneMayBeThereOrNot) {
  EXPECT_TRUE(Check(kMeanSquared, {kBatch, 1}, {}).ok());
  EXPECT_TRUE(Check(kMeanSquared, {kBatch, 1}, {1, 1}).ok());
  EXPECT_TRUE(Check(kMeanSquared, {kBatch, 7, 1}, {7}).ok());
  EXPECT_TRUE(Check(kMeanSquared, {kBatch, 10}, {10, 1}).ok());
  EXPECT_TRUE(Check(kMeanSquared, {kBatch}, {1}).ok());
  EXPECT_TRUE(Check(kCategorical, {kBatch, 10}, {10, 1}).ok());
  EXPECT_TRUE(Check("BinaryCrossentropy", {kBatch, 1}, {}).ok());
  // Nothing can be learnt from the only class.
  EXPECT_FALSE(Check(kCategorical, {kBatch, 1}, {}).ok());
}

TEST(CheckLabelShapeTest, TheErrorNamesFileShapesAndWhatWouldBeRight) {
  const absl::Status one_hot = Check(kSparseClass, {kBatch, 10}, {10});
  EXPECT_THAT(one_hot, FailsWith(absl::StatusCode::kInvalidArgument,
                                 {kSparseClass,
                                  "train-labels.idx: ", " " + ShapeToString({kBatch, 10}) + " ",
                                  " " + ShapeToString({}) + ",", " " + ShapeToString({10}) + ";",
                                  " categorical_crossentropy"}));
  EXPECT_THAT(std::string(Check(kCategorical, {kBatch, 10}, {}).message()),
              testing::HasSubstr("sparse_categorical_crossentropy"));
  const absl::Status number = Check(kMeanSquared, {kBatch, 10}, {});
  EXPECT_THAT(number, FailsWith(absl::StatusCode::kInvalidArgument,
                                {"MeanSquaredError",
                                 "train-labels.idx: ", " " + ShapeToString({kBatch, 10}) + " ",
                                 " " + ShapeToString({10}) + ",", " " + ShapeToString({})}));
}

}  // namespace
}  // namespace shoal
