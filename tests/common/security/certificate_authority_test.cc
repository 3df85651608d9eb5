#include "common/security/certificate_authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "common/files/durable_file.h"
#include "common/security/tls_files.h"
#include "tests/common/base/fails_with.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/security/test_certificates.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

mode_t ModeOf(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777;
}

std::string ContentOf(const std::string& path) {
  return ReadSmallFile(path, kMaxPemBytes).value_or("");
}

class CertificateAuthorityTest : public testing::Test {
 protected:
  absl::Status Create(const std::string& name, const std::string& job = "mnist") const {
    return CertificateAuthority::Create(
        directory_ / name, {.trust_domain = "lab.example", .job = job, .now = kTestNow});
  }
  absl::StatusOr<CertificateAuthority::Issued> Issue(const std::string& role) const {
    const auto authority = CertificateAuthority::Open(directory_ / "ca");
    if (!authority.ok()) return authority.status();
    return authority->Issue({.role = role, .now = kTestNow});
  }

  const TemporaryDirectory directory_;
};

TEST_F(CertificateAuthorityTest, ADaemonTakesWhatItIssues) {
  ASSERT_TRUE(Create("ca").ok());
  for (const char* role :
       {"coordinator", "ps/0", "worker/12", "worker", "evaluator", "operator", "viewer"}) {
    const auto issued = Issue(role);
    ASSERT_TRUE(issued.ok()) << issued.status();
    const std::string output = directory_ / "tls/" + role;
    ASSERT_TRUE(WriteTlsDirectory(output, *issued).ok());
    for (const absl::Time now :
         {kTestNow, kTestNow - absl::Minutes(4),
          kTestNow + absl::Hours(24) * kCertificateDays - absl::Minutes(1)}) {
      const absl::StatusOr<TlsFiles> files = ReadTlsFiles(output, now);
      ASSERT_TRUE(files.ok()) << files.status();
      EXPECT_EQ(files->own.identity.ToUri(), std::string("spiffe://lab.example/job/mnist/") + role);
    }
    EXPECT_FALSE(
        ReadTlsFiles(output, kTestNow + absl::Hours(24) * kCertificateDays + absl::Minutes(1))
            .ok());
  }
}

TEST_F(CertificateAuthorityTest, OnlyTheOwnerReadsWhatIsWritten) {
  const mode_t before = umask(0);
  ASSERT_TRUE(Create("new/ca").ok());
  const auto authority = CertificateAuthority::Open(directory_ / "new/ca");
  ASSERT_TRUE(authority.ok()) << authority.status();
  ASSERT_TRUE(
      WriteTlsDirectory(directory_ / "tls", *authority->Issue({.role = "viewer", .now = kTestNow}))
          .ok());
  umask(before);
  EXPECT_EQ(ModeOf(directory_ / "new/ca"), 0700u);
  EXPECT_EQ(ModeOf(directory_ / "new/ca/ca.key"), 0600u);
  EXPECT_EQ(ModeOf(directory_ / "new/ca/ca.crt"), 0600u);
  EXPECT_EQ(ModeOf(directory_ / "tls"), 0700u);
  for (const char* name : {kCaFile, kCertificateFile, kKeyFile})
    EXPECT_EQ(ModeOf(directory_ / "tls/" + name), 0600u) << name;
}

TEST_F(CertificateAuthorityTest, NothingIsOverwritten) {
  ASSERT_TRUE(Create("ca").ok());
  const std::string key = ContentOf(directory_ / "ca/ca.key");
  EXPECT_THAT(key, StartsWith("-----BEGIN PRIVATE KEY-----"));
  EXPECT_THAT(Create("ca", "other"), FailsWith(absl::StatusCode::kAlreadyExists, {"ca.key"}));
  EXPECT_EQ(ContentOf(directory_ / "ca/ca.key"), key);

  // A certificate alone keeps the new key from staying.
  std::filesystem::remove(directory_ / "ca/ca.key");
  EXPECT_THAT(Create("ca", "other"), FailsWith(absl::StatusCode::kAlreadyExists, {"ca.crt"}));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "ca/ca.key"));
}

TEST_F(CertificateAuthorityTest, ATlsDirectoryIsNotOverwritten) {
  ASSERT_TRUE(Create("ca").ok());
  ASSERT_TRUE(WriteTlsDirectory(directory_ / "tls", *Issue("ps/0")).ok());
  const std::string key = ContentOf(directory_ / "tls/tls.key");
  EXPECT_THAT(WriteTlsDirectory(directory_ / "tls", *Issue("ps/0")),
              FailsWith(absl::StatusCode::kAlreadyExists, {kKeyFile}));
  EXPECT_EQ(ContentOf(directory_ / "tls/tls.key"), key);
  EXPECT_TRUE(ReadTlsFiles(directory_ / "tls", kTestNow).ok());
}

TEST_F(CertificateAuthorityTest, NothingIsWrittenThroughALink) {
  namespace fs = std::filesystem;
  fs::create_directory(directory_ / "ca");
  fs::permissions(directory_ / "ca", fs::perms::owner_all);
  fs::create_symlink(directory_ / "victim", directory_ / "ca/ca.key");
  EXPECT_THAT(Create("ca"), FailsWith(absl::StatusCode::kAlreadyExists));
  EXPECT_FALSE(fs::exists(directory_ / "victim"));
  fs::create_directory_symlink(directory_ / "ca", directory_ / "link");
  EXPECT_THAT(Create("link"),
              FailsWith(absl::StatusCode::kFailedPrecondition, {directory_ / "link"}));
}

TEST_F(CertificateAuthorityTest, TheDirectoryIsPrivate) {
  const std::string path = directory_ / "ca";
  ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
  ASSERT_EQ(chmod(path.c_str(), 0750), 0);
  EXPECT_THAT(Create("ca"), FailsWith(absl::StatusCode::kFailedPrecondition,
                                      {path, "0750", "chmod 700 " + path}));
  ASSERT_EQ(chmod(path.c_str(), 0700), 0);
  EXPECT_TRUE(Create("ca").ok());
  const std::string output = directory_ / "tls";
  ASSERT_EQ(mkdir(output.c_str(), 0700), 0);
  ASSERT_EQ(chmod(output.c_str(), 0775), 0);
  EXPECT_THAT(WriteTlsDirectory(output, *Issue("viewer")),
              FailsWith(absl::StatusCode::kFailedPrecondition, {output, "0775"}));
  ASSERT_EQ(chmod(output.c_str(), 0755), 0);
  EXPECT_TRUE(WriteTlsDirectory(output, *Issue("viewer")).ok());
}

TEST_F(CertificateAuthorityTest, ItKnowsItsNames) {
  ASSERT_TRUE(Create("ca", std::string(64, 'j')).ok());
  const auto authority = CertificateAuthority::Open(directory_ / "ca");
  ASSERT_TRUE(authority.ok()) << authority.status();
  EXPECT_EQ(authority->job(), std::string(64, 'j'));
  EXPECT_EQ(authority->trust_domain(), "lab.example");
  EXPECT_EQ(authority->not_after(), kTestNow + absl::Hours(24) * kAuthorityDays);
  EXPECT_THAT(Create("other", std::string(65, 'j')),
              FailsWith(absl::StatusCode::kInvalidArgument, {"65", "64"}));
  EXPECT_THAT(Create("other", "a/b"), FailsWith(absl::StatusCode::kInvalidArgument, {"a/b"}));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "other"));
}

TEST_F(CertificateAuthorityTest, SerialsAndKeysAreNew) {
  ASSERT_TRUE(Create("ca").ok());
  const auto first = Issue("ps/0");
  const auto second = Issue("ps/0");
  EXPECT_NE(first->key_pem, second->key_pem);
  EXPECT_NE(ReadCertificate(first->certificate_pem)->serial,
            ReadCertificate(second->certificate_pem)->serial);
}

TEST_F(CertificateAuthorityTest, AddressesAreNames) {
  ASSERT_TRUE(Create("ca").ok());
  const auto authority = CertificateAuthority::Open(directory_ / "ca");
  const auto issued = authority->Issue(
      {.role = "ps/0",
       .addresses = {"10.0.0.1", "fe80::1", "ps0.lan", "*.lab.example", "localhost", "my_host"},
       .now = kTestNow});
  ASSERT_TRUE(issued.ok()) << issued.status();
  EXPECT_THAT(
      DescribeCertificates(issued->certificate_pem)->front().addresses,
      ElementsAre("10.0.0.1", "fe80::1", "ps0.lan", "*.lab.example", "localhost", "my_host"));
  for (const std::string address :
       {"", "ps0.lan:2222", "[::1]", "a..b", "-a", "a-", "*", "*.lan", "a,URI:spiffe://x", "a b",
        "10.0.0.0/8", "a.*.b", "10.0.0.256"}) {
    EXPECT_THAT(
        authority->Issue({.role = "ps/0", .addresses = {address}, .now = kTestNow}).status(),
        FailsWith(absl::StatusCode::kInvalidArgument, {"\"" + address + "\""}));
    EXPECT_FALSE(CheckCertificateAddress(address).ok()) << address;
  }
}

TEST_F(CertificateAuthorityTest, ItIssuesOnlyWhatItOutlives) {
  ASSERT_TRUE(
      CertificateAuthority::Create(
          directory_ / "ca", {.trust_domain = "lab", .job = "mnist", .days = 30, .now = kTestNow})
          .ok());
  const auto authority = CertificateAuthority::Open(directory_ / "ca");
  EXPECT_TRUE(authority->Issue({.role = "viewer", .days = 30, .now = kTestNow}).ok());
  EXPECT_THAT(authority->Issue({.role = "viewer", .days = 31, .now = kTestNow}).status(),
              FailsWith(absl::StatusCode::kFailedPrecondition, {UtcText(authority->not_after())}));
  EXPECT_THAT(authority->Issue({.role = "viewer", .days = 0, .now = kTestNow}).status(),
              FailsWith(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(authority->Issue({.role = "ps", .days = 1, .now = kTestNow}).status(),
              FailsWith(absl::StatusCode::kInvalidArgument));
}

TEST_F(CertificateAuthorityTest, WrongFilesAreNamed) {
  EXPECT_THAT(CertificateAuthority::Open(directory_ / "ca").status(),
              FailsWith(absl::StatusCode::kNotFound, {directory_ / "ca"}));
  ASSERT_TRUE(Create("ca").ok());
  ASSERT_TRUE(Create("other").ok());
  const std::string key = directory_ / "ca/ca.key";
  ASSERT_EQ(chmod(key.c_str(), 0640), 0);
  EXPECT_THAT(CertificateAuthority::Open(directory_ / "ca").status(),
              FailsWith(absl::StatusCode::kPermissionDenied, {key, "chmod 600 " + key}));
  ASSERT_EQ(chmod(key.c_str(), 0600), 0);
  ASSERT_TRUE(CertificateAuthority::Open(directory_ / "ca").ok());
  const std::string right = ContentOf(key);
  std::ofstream(key) << ContentOf(directory_ / "other/ca.key");
  EXPECT_THAT(CertificateAuthority::Open(directory_ / "ca").status(),
              FailsWith(absl::StatusCode::kFailedPrecondition, {key}));
  std::ofstream(key) << right;
  ASSERT_TRUE(CertificateAuthority::Open(directory_ / "ca").ok());
  // A CA of someone else names no job, and a task is no CA.
  const std::string certificate = directory_ / "ca/ca.crt";
  for (const std::string& pem : {TestCertificate(AuthorityShape("mnist")).pem(),
                                 Issue("ps/0")->certificate_pem, std::string("no certificate")}) {
    std::ofstream(certificate) << pem;
    EXPECT_THAT(CertificateAuthority::Open(directory_ / "ca").status(),
                FailsWith(absl::StatusCode::kFailedPrecondition, {certificate}));
    std::ofstream(certificate) << "";
  }
}

}  // namespace
}  // namespace shoal
