#include <gtest/gtest.h>

#include "common/cluster/cluster_spec.h"

namespace shoal {
namespace {

std::string ParseError(const std::string& text) {
  const auto parsed = Address::Parse(text);
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(parsed.status().message());
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
  EXPECT_EQ(ParseError("host"), "is \"host\"; has no port; append one, for example \":2222\"");
  EXPECT_EQ(ParseError("[::1]"), "is \"[::1]\"; has no port; append one, for example \":2222\"");
  EXPECT_EQ(ParseError("host:"),
            "is \"host:\"; has no port after its colon; append one, for example \":2222\"");
  EXPECT_EQ(ParseError("::1:2222"),
            "is \"::1:2222\"; has more than one colon; an IPv6 address stands in brackets: "
            "\"[::1]:2222\"");
  EXPECT_EQ(ParseError("[::1:2222"),
            "is \"[::1:2222\"; lacks the closing \"]\" of an IPv6 address");
  EXPECT_EQ(ParseError("[host]:2222"),
            "is \"[host]:2222\"; has no IPv6 address in its brackets; must be "
            "\"host:port\" or \"[ipv6]:port\"");
  EXPECT_EQ(ParseError("[::1]2222"), "is \"[::1]2222\"; must be \"host:port\" or \"[ipv6]:port\"");
  EXPECT_EQ(ParseError(""), "is \"\"; must be \"host:port\" or \"[ipv6]:port\"");
  EXPECT_EQ(ParseError(":2222"),
            "is \":2222\"; has no host; must be \"host:port\" or \"[ipv6]:port\"");
  EXPECT_EQ(ParseError("grpc://host:2222"),
            "is \"grpc://host:2222\"; must be \"host:port\" or "
            "\"[ipv6]:port\", without a scheme such as \"grpc://\"");
  EXPECT_EQ(ParseError(" host:2222"),
            "is \" host:2222\"; has the character \" \" in its host; letters, "
            "digits, \"-\", \".\" and \"_\" may stand there");
}

TEST(AddressTest, RefusesPortsOutOfRange) {
  for (const char* port : {"0", "65536", "-1", "99999999999999999999", "22a", "+5", " 5"}) {
    const std::string text = std::string("host:") + port;
    EXPECT_EQ(ParseError(text),
              "is \"" + text + "\"; has a port that is not a number from 1 to 65535");
  }
}

TEST(AddressTest, ShowsLittleOfALongText) {
  EXPECT_LT(ParseError(std::string(100000, 'a')).size(), 300u);
  EXPECT_LT(ParseError(std::string(100000, 'a') + ":1").size(), 300u);
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
