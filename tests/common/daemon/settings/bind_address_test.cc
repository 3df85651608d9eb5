#include "common/daemon/settings/bind_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::pair<const char*, const char*> kBeyondLoopback[] = {
    {"10.0.0.1:2222", "0.0.0.0:2222"},
    {"job-ps-0.space.svc:80", "0.0.0.0:80"},
    {"[fe80::1]:2222", "[::]:2222"}};

TEST(BindAddressTest, LoopbackIsBoundAsItIsWithoutWarning) {
  for (const PortSecurity security :
       {PortSecurity::kNone, PortSecurity::kInsecure, PortSecurity::kTls}) {
    for (const auto& [own, listen] :
         {std::pair("127.0.0.1:2222", "127.0.0.1:2222"), std::pair("127.3.0.1:80", "127.3.0.1:80"),
          std::pair("[::1]:2222", "[::1]:2222"), std::pair("localhost:2222", "127.0.0.1:2222")}) {
      const auto bind = BindAddressOf(*Address::Parse(own), security);
      ASSERT_TRUE(bind.ok()) << bind.status();
      EXPECT_EQ(bind->listen, listen) << own;
      EXPECT_EQ(bind->warning, "") << own;
    }
  }
}

TEST(BindAddressTest, OtherAddressesAreRefusedWithoutTls) {
  for (const auto& [own, listen] : kBeyondLoopback) {
    const auto bind = BindAddressOf(*Address::Parse(own), PortSecurity::kNone);
    EXPECT_EQ(bind.status().code(), absl::StatusCode::kInvalidArgument) << own;
    EXPECT_THAT(std::string(bind.status().message()),
                AllOf(HasSubstr(own), HasSubstr("--tls_dir=DIR"), HasSubstr("`shoal cert`"),
                      HasSubstr("docs/security.md"), HasSubstr("--insecure")));
  }
}

TEST(BindAddressTest, InsecureBindsAllInterfacesWithAWarning) {
  for (const auto& [own, listen] : kBeyondLoopback) {
    const auto bind = BindAddressOf(*Address::Parse(own), PortSecurity::kInsecure);
    ASSERT_TRUE(bind.ok()) << bind.status();
    EXPECT_EQ(bind->listen, listen) << own;
    EXPECT_THAT(bind->warning, HasSubstr(listen)) << own;
  }
}

TEST(BindAddressTest, TlsBindsAllInterfacesWithoutWarning) {
  for (const auto& [own, listen] : kBeyondLoopback) {
    const auto bind = BindAddressOf(*Address::Parse(own), PortSecurity::kTls);
    ASSERT_TRUE(bind.ok()) << bind.status();
    EXPECT_EQ(bind->listen, listen) << own;
    EXPECT_EQ(bind->warning, "") << own;
  }
}

}  // namespace
}  // namespace shoal
