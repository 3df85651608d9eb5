#include "common/security/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/common/base/fails_with.h"
#include "tests/common/security/test_certificates.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CertificateTest, AGoodOneIsRead) {
  const TestCertificate made(CertificateShape{});
  for (const std::string& bytes : {made.pem(), made.der()}) {
    const absl::StatusOr<Certificate> read = ReadCertificate(bytes);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->identity, *ParseIdentity("spiffe://shoal/job/mnist/ps/0"));
    EXPECT_EQ(read->not_before, kTestNow - absl::Hours(24));
    EXPECT_EQ(read->not_after, kTestNow + absl::Hours(24));
    EXPECT_FALSE(read->serial.empty());
  }
}

TEST(CertificateTest, TheFirstOfAChainCounts) {
  const TestCertificate ca(AuthorityShape("ca"));
  const TestCertificate leaf({}, ca);
  EXPECT_TRUE(ReadCertificate(leaf.pem() + ca.pem()).ok());
  EXPECT_THAT(ReadCertificate(ca.pem() + leaf.pem()).status(),
              FailsWith(absl::StatusCode::kUnauthenticated));
}

TEST(CertificateTest, OtherNamesBesideTheIdentityAreFine) {
  CertificateShape shape;
  shape.alternative_names = {"DNS:ps0.lan", "URI:spiffe://shoal/job/mnist/ps/0", "IP:10.0.0.1"};
  EXPECT_TRUE(ReadCertificate(TestCertificate(shape).pem()).ok());
  shape.extended_key_usage = "";
  EXPECT_TRUE(ReadCertificate(TestCertificate(shape).pem()).ok());
  shape.constraints = "";
  EXPECT_TRUE(ReadCertificate(TestCertificate(shape).pem()).ok());
}

TEST(CertificateTest, ABrokenRuleIsNamed) {
  struct Case {
    std::function<void(CertificateShape*)> change;
    std::vector<std::string> words;
  };
  const std::string uri = "URI:spiffe://shoal/job/mnist/ps/0";
  const Case cases[] = {
      {[](CertificateShape* shape) { shape->alternative_names = {}; }, {"0 URIs"}},
      {[](CertificateShape* shape) { shape->alternative_names = {"DNS:ps0.lan"}; }, {"0 URIs"}},
      {[&](CertificateShape* shape) {
         shape->alternative_names = {uri, "URI:spiffe://shoal/job/mnist/operator"};
       },
       {"2 URIs"}},
      {[&](CertificateShape* shape) {
         shape->alternative_names = {uri, uri};
       },
       {"2 URIs"}},
      {[](CertificateShape* shape) { shape->alternative_names = {"URI:https://shoal/ps/0"}; },
       {"https://shoal/ps/0"}},
      {[](CertificateShape* shape) { shape->alternative_names = {"URI:spiffe://shoal"}; },
       {"spiffe://shoal"}},
      {[](CertificateShape* shape) { shape->constraints = "critical,CA:TRUE"; }, {"authority"}},
      {[](CertificateShape* shape) { shape->key_usage = ""; }, {"digitalSignature"}},
      {[](CertificateShape* shape) { shape->key_usage = "digitalSignature"; }, {"critical"}},
      {[](CertificateShape* shape) { shape->key_usage = "critical,keyAgreement"; },
       {"digitalSignature"}},
      {[](CertificateShape* shape) { shape->key_usage = "critical,digitalSignature,keyCertSign"; },
       {"keyCertSign"}},
      {[](CertificateShape* shape) { shape->key_usage = "critical,digitalSignature,cRLSign"; },
       {"cRLSign"}},
      {[](CertificateShape* shape) { shape->extended_key_usage = "serverAuth"; }, {"clientAuth"}},
      {[](CertificateShape* shape) { shape->extended_key_usage = "clientAuth"; }, {"serverAuth"}},
      {[](CertificateShape* shape) { shape->extended_key_usage = "codeSigning"; }, {"serverAuth"}},
  };
  for (const auto& [change, words] : cases) {
    CertificateShape shape;
    change(&shape);
    EXPECT_THAT(ReadCertificate(TestCertificate(shape).pem()).status(),
                FailsWith(absl::StatusCode::kUnauthenticated, words))
        << words[0];
  }
}

TEST(CertificateTest, BytesThatAreNoneAreRejected) {
  const std::string pem = TestCertificate(CertificateShape{}).pem();
  const std::string der = TestCertificate(CertificateShape{}).der();
  const std::string key = TestCertificate(CertificateShape{}).key_pem();
  for (const std::string& bytes :
       {std::string(), std::string("x"), key, pem.substr(0, pem.size() / 2),
        der.substr(0, der.size() - 1), der + "x", std::string(kMaxPemBytes + 1, '\n')}) {
    EXPECT_THAT(ReadCertificate(bytes).status(), FailsWith(absl::StatusCode::kUnauthenticated))
        << bytes.size();
    EXPECT_THAT(DescribeCertificates(bytes).status(), FailsWith(absl::StatusCode::kDataLoss))
        << bytes.size();
  }
}

TEST(CertificateTest, ATextHasFewCertificates) {
  std::string pem;
  const std::string one = TestCertificate(CertificateShape{}).pem();
  for (size_t i = 0; i < kMaxCertificates; ++i) pem += one;
  EXPECT_EQ(DescribeCertificates(pem)->size(), kMaxCertificates);
  EXPECT_THAT(DescribeCertificates(pem + one).status(), FailsWith(absl::StatusCode::kDataLoss));
}

TEST(CertificateTest, DatesAreCompared) {
  const Certificate read = *ReadCertificate(TestCertificate(CertificateShape{}).pem());
  EXPECT_TRUE(CheckDates(read, read.not_before, "x").ok());
  EXPECT_TRUE(CheckDates(read, read.not_after, "x").ok());
  EXPECT_THAT(CheckDates(read, read.not_before - absl::Seconds(1), "file"),
              FailsWith(absl::StatusCode::kUnauthenticated,
                        {"file", UtcText(read.not_before), "not valid"}));
  EXPECT_THAT(
      CheckDates(read, read.not_after + absl::Seconds(1), "file"),
      FailsWith(absl::StatusCode::kUnauthenticated, {"file", UtcText(read.not_after), "expired"}));
  EXPECT_EQ(UtcText(absl::FromUnixSeconds(0)), "1970-01-01 00:00:00 UTC");
}

TEST(CertificateTest, PeopleSeeWhatACertificateSays) {
  const TestCertificate ca(AuthorityShape("mnist"));
  CertificateShape shape{.name = "ps/0"};
  shape.alternative_names.push_back("DNS:ps0.lan");
  shape.alternative_names.push_back("IP:10.0.0.1");
  shape.alternative_names.push_back("IP:fe80::1");
  const TestCertificate leaf(shape, ca);
  const auto described = DescribeCertificates(leaf.key_pem() + leaf.pem() + ca.pem());
  ASSERT_TRUE(described.ok()) << described.status();
  ASSERT_EQ(described->size(), 2u);
  const CertificateDescription& first = described->front();
  EXPECT_EQ(first.subject, "CN=ps/0");
  EXPECT_EQ(first.issuer, "CN=mnist");
  EXPECT_THAT(first.uris, ElementsAre("spiffe://shoal/job/mnist/ps/0"));
  EXPECT_THAT(first.addresses, ElementsAre("ps0.lan", "10.0.0.1", "fe80::1"));
  EXPECT_FALSE(first.is_ca);
  EXPECT_EQ(first.key, "EC 256 bits");
  EXPECT_EQ(first.sha256.size(), 64u);
  EXPECT_TRUE(first.certificate.ok());
  EXPECT_EQ(first.serial, first.certificate->serial);
  const CertificateDescription& second = described->back();
  EXPECT_TRUE(second.is_ca);
  EXPECT_THAT(second.uris, IsEmpty());
  EXPECT_FALSE(second.certificate.ok());
}

}  // namespace
}  // namespace shoal
