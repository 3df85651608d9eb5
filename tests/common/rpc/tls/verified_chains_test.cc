#include "common/rpc/tls/verified_chains.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

class VerifiedChainsTest : public ::testing::Test {
 protected:
  const std::shared_ptr<const TlsFiles> files_ = std::make_shared<TlsFiles>();
  const absl::Time now_ = absl::FromUnixSeconds(1'900'000'000);
  VerifiedChains verified_;
};

TEST_F(VerifiedChainsTest, HoldsExactlyWhatWasAdded) {
  verified_.Add("leaf ca", files_, now_);
  EXPECT_TRUE(verified_.Contains("leaf ca", files_, now_));
  for (const char* other : {"", "leaf", "leaf ca ca", "ca leaf"})
    EXPECT_FALSE(verified_.Contains(other, files_, now_)) << other;
}

TEST_F(VerifiedChainsTest, ForgetsAllAfterASecond) {
  verified_.Add("leaf", files_, now_);
  verified_.Add("late", files_, now_ + absl::Milliseconds(999));
  EXPECT_TRUE(verified_.Contains("leaf", files_, now_ + absl::Milliseconds(999)));
  for (const char* leaf : {"leaf", "late"})
    EXPECT_FALSE(verified_.Contains(leaf, files_, now_ + absl::Seconds(1))) << leaf;
  // The clock of the machine was set back.
  EXPECT_FALSE(verified_.Contains("leaf", files_, now_ - absl::Hours(1)));
}

TEST_F(VerifiedChainsTest, ForgetsAllWithOtherFiles) {
  const auto next = std::make_shared<const TlsFiles>();
  verified_.Add("leaf", files_, now_);
  EXPECT_FALSE(verified_.Contains("leaf", next, now_));
  verified_.Add("new", next, now_);
  EXPECT_TRUE(verified_.Contains("new", next, now_));
  EXPECT_FALSE(verified_.Contains("leaf", next, now_));
}

TEST_F(VerifiedChainsTest, HoldsALimitedNumberOfUsualSize) {
  verified_.Add(std::string(20'000, 'x'), files_, now_);
  EXPECT_FALSE(verified_.Contains(std::string(20'000, 'x'), files_, now_));
  int held = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string leaf = absl::StrCat("leaf ", i);
    verified_.Add(leaf, files_, now_);
    held += verified_.Contains(leaf, files_, now_) ? 1 : 0;
  }
  EXPECT_EQ(held, 1000);
}

}  // namespace
}  // namespace shoal
