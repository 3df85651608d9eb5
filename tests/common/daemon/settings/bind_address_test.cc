#include "common/daemon/settings/bind_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal {
namespace {

TEST(BindAddressTest, LoopbackIsBoundAsItIsWithoutWarning) {
  for (const auto& [own, listen] :
       {std::pair("127.0.0.1:2222", "127.0.0.1:2222"), std::pair("127.3.0.1:80", "127.3.0.1:80"),
        std::pair("[::1]:2222", "[::1]:2222"), std::pair("localhost:2222", "127.0.0.1:2222")}) {
    const BindAddress bind = BindAddressOf(*Address::Parse(own));
    EXPECT_EQ(bind.listen, listen) << own;
    EXPECT_EQ(bind.warning, "") << own;
  }
}

TEST(BindAddressTest, OtherAddressesBindAllInterfacesWithAWarning) {
  for (const auto& [own, listen] : {std::pair("10.0.0.1:2222", "0.0.0.0:2222"),
                                    std::pair("job-ps-0.space.svc:80", "0.0.0.0:80"),
                                    std::pair("[fe80::1]:2222", "[::]:2222")}) {
    const BindAddress bind = BindAddressOf(*Address::Parse(own));
    EXPECT_EQ(bind.listen, listen) << own;
    EXPECT_THAT(bind.warning, ::testing::HasSubstr(listen)) << own;
  }
}

}  // namespace
}  // namespace shoal
