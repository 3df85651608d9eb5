#include "common/rpc/shared/own_address.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(OwnAddressTest, LoopbackAndUnixSocketsAreOfThisMachine) {
  EXPECT_TRUE(IsOwnAddress("127.0.0.1:4711"));
  EXPECT_TRUE(IsOwnAddress("127.9.8.7:1"));
  EXPECT_TRUE(IsOwnAddress("unix:"));
}

TEST(OwnAddressTest, OtherAddressesAreNot) {
  // Of the blocks that are for documentation.
  EXPECT_FALSE(IsOwnAddress("192.0.2.1:4711"));
  EXPECT_FALSE(IsOwnAddress("[2001:db8::1]:4711"));
}

TEST(OwnAddressTest, TextsWithoutAnAddressAreNot) {
  for (const char* text : {"", ":", "[]:1", "[:1", "localhost:1", "127.0.0.1", "fd:3", "[::1"}) {
    EXPECT_FALSE(IsOwnAddress(text)) << text;
  }
}

}  // namespace
}  // namespace shoal
