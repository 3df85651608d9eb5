#include "common/base/text/nearest_name.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

const std::vector<std::string> kNames = {"loss", "model", "metrics", "optimizer", "checkpoint"};

TEST(NearestNameTest, FindsOneTypingError) {
  EXPECT_EQ(NearestName("modl", kNames), "model");
  EXPECT_EQ(NearestName("modell", kNames), "model");
  EXPECT_EQ(NearestName("modil", kNames), "model");
}

TEST(NearestNameTest, SwappedNeighboursAreOneError) {
  EXPECT_EQ(NearestName("lsos", kNames), "loss");
  EXPECT_EQ(NearestName("mdoel", kNames), "model");
}

TEST(NearestNameTest, IgnoresCase) { EXPECT_EQ(NearestName("OptimiZer", kNames), "optimizer"); }

TEST(NearestNameTest, TakesTheNearest) {
  EXPECT_EQ(NearestName("metric", {"metres", "metrics"}), "metrics");
}

TEST(NearestNameTest, IsEmptyWhereNothingIsNear) {
  EXPECT_EQ(NearestName("learning_rate", kNames), "");
  EXPECT_EQ(NearestName("", kNames), "");
  EXPECT_EQ(NearestName("loss", {}), "");
}

}  // namespace
}  // namespace shoal
