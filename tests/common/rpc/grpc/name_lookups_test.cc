#include "common/rpc/grpc/name_lookups.h"

#include <gtest/gtest.h>

#include <memory>

namespace shoal {
namespace {

TEST(NameLookupsTest, AHostIsLookedUpUntilTheLastLookupEnds) {
  auto first = std::make_unique<NameLookup>("a.test");
  auto second = std::make_unique<NameLookup>("a.test");
  EXPECT_TRUE(IsLookedUp("a.test"));
  EXPECT_FALSE(IsLookedUp("b.test"));
  first.reset();
  EXPECT_TRUE(IsLookedUp("a.test"));
  second.reset();
  EXPECT_FALSE(IsLookedUp("a.test"));
}

TEST(NameLookupsTest, TheHostOfAnAddressIsWithoutPortAndBrackets) {
  EXPECT_EQ(HostOf("ps-0.pods:2222"), "ps-0.pods");
  EXPECT_EQ(HostOf("[::1]:2222"), "::1");
}

}  // namespace
}  // namespace shoal
