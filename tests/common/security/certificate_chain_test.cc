#include "common/security/certificate_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/common/base/fails_with.h"
#include "tests/common/security/test_certificates.h"

namespace shoal {
namespace {

constexpr absl::StatusCode kUnknown = absl::StatusCode::kUnauthenticated;

class CertificateChainTest : public ::testing::Test {
 protected:
  absl::Status Check(const TestCertificate& client, const std::string& intermediates = "") const {
    return CheckIssued(client.pem() + intermediates, authority_.pem(), kTestNow);
  }
  static CertificateShape Expired(CertificateShape shape) {
    shape.not_before = kTestNow - absl::Hours(48);
    shape.not_after = kTestNow - absl::Hours(24);
    return shape;
  }
  static CertificateShape Early(CertificateShape shape) {
    shape.not_before = kTestNow + absl::Hours(24);
    shape.not_after = kTestNow + absl::Hours(48);
    return shape;
  }

  const TestCertificate authority_{AuthorityShape("own")};
  const TestCertificate intermediate_{AuthorityShape("between"), authority_};
  const TestCertificate other_{AuthorityShape("other")};
};

TEST_F(CertificateChainTest, AcceptsWhomItsAuthorityHasIssued) {
  EXPECT_EQ(Check(TestCertificate({}, authority_)), absl::OkStatus());
  EXPECT_EQ(Check(TestCertificate({}, intermediate_), intermediate_.pem()), absl::OkStatus());
  EXPECT_EQ(Check(TestCertificate({}, intermediate_), other_.pem() + intermediate_.pem()),
            absl::OkStatus());
}

TEST_F(CertificateChainTest, AcceptsWhomOneOfSeveralAuthoritiesHasIssued) {
  const std::string both = authority_.pem() + other_.pem();
  for (const TestCertificate* issuer : {&authority_, &other_}) {
    const TestCertificate client({}, *issuer);
    EXPECT_EQ(CheckIssued(client.pem(), both, kTestNow), absl::OkStatus());
  }
}

TEST_F(CertificateChainTest, RejectsOthersAndNamesThem) {
  const TestCertificate stranger({}, other_);
  EXPECT_THAT(Check(stranger), FailsWith(kUnknown, {"spiffe://shoal/job/mnist/ps/0", "CN=other"}));
  EXPECT_THAT(Check(stranger, other_.pem()), FailsWith(kUnknown, {"CN=other"}))
      << "a client cannot bring a CA along";
  EXPECT_THAT(Check(TestCertificate({.alternative_names = {}}, other_)),
              FailsWith(kUnknown, {"nobody", "CN=other"}));
  EXPECT_THAT(Check(TestCertificate(CertificateShape{})), FailsWith(kUnknown, {"CN=test"}))
      << "signed by itself";
}

TEST_F(CertificateChainTest, RejectsAnAuthorityWithTheSameName) {
  const TestCertificate impostor(AuthorityShape("own"));
  EXPECT_THAT(Check(TestCertificate({}, impostor)), FailsWith(kUnknown, {"CN=own"}));
  EXPECT_THAT(Check(TestCertificate({}, impostor), impostor.pem()),
              FailsWith(kUnknown, {"CN=own"}));
}

TEST_F(CertificateChainTest, RejectsAnIssuerThatIsNoAuthority) {
  const TestCertificate task({.name = "task"}, authority_);
  EXPECT_THAT(Check(TestCertificate({}, task), task.pem()), FailsWith(kUnknown, {"CN=task"}));
}

TEST_F(CertificateChainTest, RejectsAChainWithAGap) {
  EXPECT_THAT(Check(TestCertificate({}, intermediate_)), FailsWith(kUnknown, {"CN=between"}));
}

// CheckDates() rejects it later, when the client can be told.
TEST_F(CertificateChainTest, AcceptsAClientOutOfItsDates) {
  EXPECT_EQ(Check(TestCertificate(Expired({}), authority_)), absl::OkStatus());
  EXPECT_EQ(Check(TestCertificate(Early({}), authority_)), absl::OkStatus());
}

TEST_F(CertificateChainTest, RejectsAStrangerOutOfItsDates) {
  EXPECT_THAT(Check(TestCertificate(Expired({}), other_)), FailsWith(kUnknown, {"CN=other"}));
  EXPECT_THAT(Check(TestCertificate(Early({}), other_)), FailsWith(kUnknown, {"CN=other"}));
  EXPECT_THAT(Check(TestCertificate(Expired({}))), FailsWith(kUnknown, {"CN=test"}));
}

TEST_F(CertificateChainTest, RejectsAuthoritiesOutOfTheirDates) {
  for (const bool expired : {true, false}) {
    CertificateShape shape = AuthorityShape("late");
    shape = expired ? Expired(shape) : Early(shape);
    const TestCertificate between(shape, authority_), root(shape);
    const TestCertificate below({}, between), client({}, root);
    EXPECT_THAT(Check(below, between.pem()), FailsWith(kUnknown, {"CN=late"}));
    EXPECT_THAT(CheckIssued(client.pem(), root.pem(), kTestNow), FailsWith(kUnknown, {"CN=late"}));
  }
}

TEST_F(CertificateChainTest, RejectsACertificateThatIsNotForClients) {
  EXPECT_THAT(Check(TestCertificate({.extended_key_usage = "serverAuth"}, authority_)),
              FailsWith(kUnknown, {"purpose"}));
}

TEST_F(CertificateChainTest, RejectsGarbageAndTooManyIntermediates) {
  EXPECT_EQ(CheckIssued("garbage", authority_.pem(), kTestNow).code(), kUnknown);
  EXPECT_EQ(CheckIssued("", authority_.pem(), kTestNow).code(), kUnknown);
  std::string many;
  for (int i = 0; i < 17; ++i) many += other_.pem();
  EXPECT_EQ(Check(TestCertificate({}, authority_), many).code(), kUnknown);
}

TEST_F(CertificateChainTest, CutsWhatAStrangerWrites) {
  const TestCertificate stranger(
      {.alternative_names = {absl::StrCat("URI:spiffe://", std::string(10'000, 'a'))}}, other_);
  const absl::Status rejected = Check(stranger);
  EXPECT_EQ(rejected.code(), kUnknown);
  EXPECT_LT(rejected.message().size(), 1000u);
}

TEST(CheckLeadsToCaTest, AcceptsAChainToOneOfTheCas) {
  const TestCertificate root(AuthorityShape("root")), other(AuthorityShape("other"));
  const TestCertificate intermediate(AuthorityShape("intermediate"), root);
  const TestCertificate leaf({}, intermediate);
  const std::string chain = leaf.pem() + intermediate.pem();
  const auto check = [](const std::string& chain, const std::string& ca, absl::Time now) {
    return CheckLeadsToCa(chain, ca, now, "ps/0");
  };
  EXPECT_EQ(check(chain, root.pem(), kTestNow), absl::OkStatus());
  EXPECT_EQ(check(chain, other.pem() + root.pem(), kTestNow), absl::OkStatus());
  EXPECT_EQ(check(chain + root.pem(), root.pem(), kTestNow), absl::OkStatus());
  const auto fails = FailsWith(absl::StatusCode::kUnauthenticated, {"ps/0"});
  EXPECT_THAT(check(chain, other.pem(), kTestNow), fails);
  EXPECT_THAT(check(leaf.pem(), root.pem(), kTestNow), fails) << "without the intermediate";
  EXPECT_THAT(check(chain, root.pem(), kTestNow + absl::Hours(48)), fails);
  EXPECT_THAT(check("no certificate", root.pem(), kTestNow),
              FailsWith(absl::StatusCode::kUnauthenticated));
}

}  // namespace
}  // namespace shoal
