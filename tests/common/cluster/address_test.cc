#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/cluster/cluster_spec.h"
#include "tests/common/base/fails_with.h"

namespace shoal {
namespace {

// Requires that the text is rejected by a message that quotes it and has the values.
void ExpectRejected(const std::string& text, std::vector<std::string> values = {}) {
  values.push_back("is \"" + text + "\"");
  EXPECT_THAT(Address::Parse(text).status(), FailsWith(absl::StatusCode::kInvalidArgument, values));
}

TEST(AddressTest, ReadsAndWritesTheSameText) {
  for (const char* text : {"localhost:2222", "10.0.0.1:1", "[::1]:65535", "[fe80::1:2]:80",
                           "job-ps-0.my_space.svc:2222", "1.example.org:2222"}) {
    const auto address = Address::Parse(text);
    ASSERT_TRUE(address.ok()) << text << ": " << address.status();
    EXPECT_EQ(address->ToString(), text);
  }
  EXPECT_EQ(Address::Parse("[::1]:2222")->host, "::1");
  EXPECT_EQ(Address::Parse("[::1]:2222")->port, 2222);
}

TEST(AddressTest, SaysWhatIsWrong) {
  ExpectRejected("host", {"\":2222\""});
  ExpectRejected("[::1]", {"\":2222\""});
  ExpectRejected("host:", {"\":2222\""});
  ExpectRejected("::1:2222", {"\"[::1]:2222\""});
  ExpectRejected("[::1:2222", {"\"]\""});
  ExpectRejected("[host]:2222", {"\"host:port\"", "\"[ipv6]:port\""});
  ExpectRejected("[::1]2222", {"\"host:port\"", "\"[ipv6]:port\""});
  ExpectRejected("", {"\"host:port\"", "\"[ipv6]:port\""});
  ExpectRejected(":2222", {"\"host:port\"", "\"[ipv6]:port\""});
  ExpectRejected("grpc://host:2222", {"\"host:port\"", "\"[ipv6]:port\"", "\"grpc://\""});
  ExpectRejected(" host:2222", {"\" \"", "\"-\"", "\".\"", "\"_\""});
}

TEST(AddressTest, RejectsPortsOutOfRange) {
  for (const char* port : {"0", "65536", "-1", "99999999999999999999", "22a", "+5", " 5"}) {
    ExpectRejected(std::string("host:") + port, {"1", "65535"});
  }
}

TEST(AddressTest, ShowsLittleOfALongText) {
  const std::string text(100000, 'a');
  for (const std::string& each : {text, text + ":1"}) {
    const absl::Status status = Address::Parse(each).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_LT(status.message().size(), 300u);
  }
}

TEST(AddressTest, KnowsLoopback) {
  for (const char* host : {"127.0.0.1", "127.9.8.7", "::1", "localhost", "LocalHost"}) {
    EXPECT_TRUE((Address{host, 1}.IsLoopback())) << host;
  }
  for (const char* host :
       {"128.0.0.1", "127.example.org", "127.0.0.1.example.org", "::2", "host"}) {
    EXPECT_FALSE((Address{host, 1}.IsLoopback())) << host;
  }
}

}  // namespace
}  // namespace shoal
