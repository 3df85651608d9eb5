#include "common/security/tls_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/common/base/fails_with.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/security/test_certificates.h"

namespace shoal {
namespace {

class TlsFilesTest : public testing::Test {
 protected:
  TlsFilesTest() : leaf_({}, ca_) {
    Write(kCaFile, ca_.pem());
    WriteLeaf(leaf_);
  }

  void Write(const std::string& name, const std::string& content) const {
    const std::string path = directory_ / name;
    unlink(path.c_str());
    std::ofstream(path) << content;
    ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  }
  void WriteLeaf(const TestCertificate& leaf) const {
    Write(kCertificateFile, leaf.pem());
    Write(kKeyFile, leaf.key_pem());
  }
  absl::Status Read() const { return ReadTlsFiles(directory_.path(), kTestNow).status(); }

  const TemporaryDirectory directory_;
  const TestCertificate ca_{AuthorityShape("ca")};
  const TestCertificate leaf_;
};

TEST_F(TlsFilesTest, AGoodDirectoryIsRead) {
  Write(kRevocationsFile, "abcdef\n");
  const absl::StatusOr<TlsFiles> files = ReadTlsFiles(directory_.path(), kTestNow);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->ca_pem, ca_.pem());
  EXPECT_EQ(files->certificate_chain_pem, leaf_.pem());
  EXPECT_EQ(files->key_pem, leaf_.key_pem());
  EXPECT_EQ(files->own.identity.ToUri(), "spiffe://shoal/job/mnist/ps/0");
  EXPECT_EQ(files->own.not_after, kTestNow + absl::Hours(24));
  EXPECT_EQ(files->revoked.size(), 1u);
}

TEST_F(TlsFilesTest, NothingNeedsToBeRevoked) {
  const absl::StatusOr<TlsFiles> files = ReadTlsFiles(directory_.path(), kTestNow);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->revoked.size(), 0u);
}

TEST_F(TlsFilesTest, AMissingFileIsNamed) {
  for (const char* name : {kCaFile, kCertificateFile, kKeyFile}) {
    const std::string path = directory_ / name;
    ASSERT_EQ(rename(path.c_str(), (path + ".away").c_str()), 0);
    EXPECT_THAT(Read(), FailsWith(absl::StatusCode::kNotFound, {path, "shoal cert issue"}));
    ASSERT_EQ(rename((path + ".away").c_str(), path.c_str()), 0);
  }
  EXPECT_THAT(ReadTlsFiles(directory_ / "none", kTestNow).status(),
              FailsWith(absl::StatusCode::kNotFound, {directory_ / "none"}));
}

TEST_F(TlsFilesTest, AFileIsRegularAndSmall) {
  for (const char* name : {kCaFile, kCertificateFile, kKeyFile, kRevocationsFile}) {
    const std::string path = directory_ / name;
    const bool existed = rename(path.c_str(), (path + ".away").c_str()) == 0;
    Write(name, std::string(kMaxPemBytes + 1, '\n'));
    EXPECT_THAT(Read(), FailsWith(absl::StatusCode::kFailedPrecondition, {path, "65536"}));
    ASSERT_EQ(unlink(path.c_str()), 0);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    EXPECT_THAT(Read(), FailsWith(absl::StatusCode::kFailedPrecondition, {path}));
    ASSERT_EQ(unlink(path.c_str()), 0);
    ASSERT_EQ(rename((path + ".away").c_str(), path.c_str()) == 0, existed);
  }
}

TEST_F(TlsFilesTest, NobodyElseReadsTheKey) {
  const std::string path = directory_ / kKeyFile;
  for (const mode_t mode : {0640, 0604, 0620, 0644, 0660, 0666}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_THAT(Read(), FailsWith(absl::StatusCode::kPermissionDenied, {path, "chmod 600 " + path}))
        << mode;
  }
  ASSERT_EQ(chmod(path.c_str(), 0400), 0);
  EXPECT_TRUE(Read().ok());
}

// As Kubernetes mounts a secret with fsGroup: links to a link to a directory.
TEST_F(TlsFilesTest, TheGroupMayReadTheKeyInAVolumeOfKubernetes) {
  namespace fs = std::filesystem;
  fs::create_directory(directory_ / "..2026");
  for (const char* name : {kCaFile, kCertificateFile, kKeyFile}) {
    fs::rename(directory_ / name, directory_ / "..2026/" + name);
    fs::create_symlink(std::string("..data/") + name, directory_ / name);
  }
  fs::create_symlink("..2026", directory_ / "..data");
  const std::string key = directory_ / "..2026/" + kKeyFile;
  ASSERT_EQ(chmod(key.c_str(), 0440), 0);
  EXPECT_TRUE(Read().ok()) << Read();
  for (const mode_t mode : {0444, 0644, 0460}) {
    ASSERT_EQ(chmod(key.c_str(), mode), 0);
    EXPECT_THAT(Read(), FailsWith(absl::StatusCode::kPermissionDenied,
                                  {directory_ / kKeyFile, "defaultMode: 0440"}))
        << mode;
  }
}

// As Kubernetes mounts a projected volume with a directory for each ps: ..data/0/tls.key.
TEST_F(TlsFilesTest, TheGroupMayReadTheKeyInADirectoryOfAVolumeOfKubernetes) {
  namespace fs = std::filesystem;
  fs::create_directories(directory_ / "volume/..2026/0");
  for (const char* name : {kCaFile, kCertificateFile, kKeyFile})
    fs::rename(directory_ / name, directory_ / "volume/..2026/0/" + name);
  fs::create_symlink("..data/0", directory_ / "volume/0");
  const std::string key = directory_ / "volume/..2026/0/" + kKeyFile;
  ASSERT_EQ(chmod(key.c_str(), 0440), 0);
  const auto read = [this] { return ReadTlsFiles(directory_ / "volume/0", kTestNow).status(); };
  fs::create_symlink("..2026", directory_ / "volume/..data");
  EXPECT_TRUE(read().ok()) << read();
  ASSERT_EQ(chmod(key.c_str(), 0444), 0);
  EXPECT_THAT(read(), FailsWith(absl::StatusCode::kPermissionDenied, {"defaultMode: 0440"}));
}

// As systemd makes credentials where it cannot give them to the user, and as a package's files are.
TEST_F(TlsFilesTest, TheGroupMayReadAKeyOfRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make files of root";
  constexpr id_t kOther = 65534;
  ASSERT_EQ(chmod(directory_.path().c_str(), 0755), 0);
  for (const char* name : {kCaFile, kCertificateFile, kKeyFile}) {
    const std::string path = directory_ / name;
    ASSERT_EQ(chown(path.c_str(), 0, kOther), 0);
    ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  }
  EXPECT_THAT(Read(), FailsWith(absl::StatusCode::kPermissionDenied, {directory_ / kKeyFile}))
      << "root's own daemon needs no group";
  const auto read_as_other = [this] {
    EXPECT_EQ(setegid(kOther), 0);
    EXPECT_EQ(seteuid(kOther), 0);
    const absl::Status status = Read();
    EXPECT_EQ(seteuid(0), 0);
    EXPECT_EQ(setegid(0), 0);
    return status;
  };
  EXPECT_TRUE(read_as_other().ok()) << read_as_other();
  const std::string key = directory_ / kKeyFile;
  for (const mode_t mode : {0660, 0644}) {
    ASSERT_EQ(chmod(key.c_str(), mode), 0);
    EXPECT_THAT(read_as_other(), FailsWith(absl::StatusCode::kPermissionDenied, {key})) << mode;
  }
}

TEST_F(TlsFilesTest, TheKeyBelongsToTheCertificate) {
  Write(kKeyFile, TestCertificate({}, ca_).key_pem());
  EXPECT_THAT(Read(), FailsWith(absl::StatusCode::kFailedPrecondition,
                                {directory_ / kKeyFile, directory_ / kCertificateFile}));
  Write(kKeyFile, "no key");
  EXPECT_THAT(Read(), FailsWith(absl::StatusCode::kFailedPrecondition, {directory_ / kKeyFile}));
}

TEST_F(TlsFilesTest, AnEncryptedKeyIsNotAskedFor) {
  Write(kKeyFile,
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIGj\n-----END ENCRYPTED PRIVATE KEY-----\n");
  EXPECT_THAT(Read(), FailsWith(absl::StatusCode::kFailedPrecondition,
                                {directory_ / kKeyFile, "encrypted"}));
}

TEST_F(TlsFilesTest, DatesAreNamed) {
  WriteLeaf(TestCertificate({.not_after = kTestNow - absl::Hours(1)}, ca_));
  EXPECT_THAT(Read(), FailsWith(absl::StatusCode::kUnauthenticated,
                                {directory_ / kCertificateFile, "expired",
                                 UtcText(kTestNow - absl::Hours(1))}));
  WriteLeaf(TestCertificate({.not_before = kTestNow + absl::Hours(1)}, ca_));
  EXPECT_THAT(Read(), FailsWith(absl::StatusCode::kUnauthenticated,
                                {directory_ / kCertificateFile, "not valid before",
                                 UtcText(kTestNow + absl::Hours(1))}));
}

TEST_F(TlsFilesTest, RulesOfIdentitiesHold) {
  CertificateShape two;
  two.alternative_names.push_back("URI:spiffe://shoal/job/mnist/operator");
  CertificateShape none;
  none.alternative_names = {"DNS:ps0.lan"};
  CertificateShape authority = AuthorityShape("ps/0");
  authority.alternative_names = {"URI:spiffe://shoal/job/mnist/ps/0"};
  for (const CertificateShape& shape : {two, none, authority}) {
    WriteLeaf(TestCertificate(shape, ca_));
    EXPECT_THAT(Read(),
                FailsWith(absl::StatusCode::kUnauthenticated, {directory_ / kCertificateFile}));
  }
}

TEST_F(TlsFilesTest, TheChainLeadsToATrustedAuthority) {
  const TestCertificate other(AuthorityShape("other"));
  const TestCertificate impostor(AuthorityShape("ca"));  // the same name, another key
  for (const TestCertificate* ca : {&other, &impostor}) {
    Write(kCaFile, ca->pem());
    EXPECT_THAT(Read(), FailsWith(absl::StatusCode::kUnauthenticated,
                                  {directory_ / kCertificateFile, directory_ / kCaFile}));
  }
  WriteLeaf(TestCertificate(CertificateShape{}));  // signed by itself
  EXPECT_THAT(Read(), FailsWith(absl::StatusCode::kUnauthenticated));
}

TEST_F(TlsFilesTest, OldAndNewAuthoritiesAreTrustedTogether) {
  const TestCertificate renewed(AuthorityShape("ca"));
  Write(kCaFile, renewed.pem() + ca_.pem());
  EXPECT_TRUE(Read().ok()) << Read();
  WriteLeaf(TestCertificate({}, renewed));
  EXPECT_TRUE(Read().ok()) << Read();
  CertificateShape expired = AuthorityShape("old");
  expired.not_after = kTestNow - absl::Hours(1);
  Write(kCaFile, TestCertificate(expired).pem() + renewed.pem());
  EXPECT_TRUE(Read().ok()) << Read();
}

TEST_F(TlsFilesTest, AnExpiredAuthorityIsNamed) {
  CertificateShape shape = AuthorityShape("old");
  shape.not_after = kTestNow - absl::Hours(1);
  const TestCertificate expired(shape);
  Write(kCaFile, expired.pem());
  WriteLeaf(TestCertificate({}, expired));
  EXPECT_THAT(Read(), FailsWith(absl::StatusCode::kUnauthenticated,
                                {"CN=old", UtcText(kTestNow - absl::Hours(1))}));
}

TEST_F(TlsFilesTest, IntermediatesBelongToTheChain) {
  const TestCertificate intermediate(AuthorityShape("between"), ca_);
  const TestCertificate leaf({}, intermediate);
  WriteLeaf(leaf);
  EXPECT_THAT(Read(), FailsWith(absl::StatusCode::kUnauthenticated, {kCertificateFile}));
  Write(kCertificateFile, leaf.pem() + intermediate.pem());
  EXPECT_TRUE(Read().ok()) << Read();
}

// Otherwise every worker could issue an operator's certificate.
TEST_F(TlsFilesTest, ATaskIssuesNothing) {
  CertificateShape wants_more;
  wants_more.alternative_names = {"URI:spiffe://shoal/job/mnist/operator"};
  const TestCertificate forged(wants_more, leaf_);
  WriteLeaf(forged);
  Write(kCertificateFile, forged.pem() + leaf_.pem());
  EXPECT_THAT(Read(), FailsWith(absl::StatusCode::kUnauthenticated, {kCertificateFile}));
  Write(kCaFile, ca_.pem() + leaf_.pem());
  EXPECT_THAT(Read(), FailsWith(absl::StatusCode::kFailedPrecondition, {kCaFile}));
}

TEST_F(TlsFilesTest, AuthoritiesAreFew) {
  std::string pem;
  for (size_t i = 0; i < kMaxCertificates; ++i) pem += ca_.pem();
  Write(kCaFile, pem);
  EXPECT_TRUE(Read().ok()) << Read();
  Write(kCaFile, pem + ca_.pem());
  EXPECT_THAT(Read(), FailsWith(absl::StatusCode::kFailedPrecondition, {directory_ / kCaFile}));
}

TEST_F(TlsFilesTest, OnlyPemIsTaken) {
  Write(kCertificateFile, leaf_.der());
  EXPECT_THAT(Read(),
              FailsWith(absl::StatusCode::kFailedPrecondition, {directory_ / kCertificateFile}));
  Write(kCertificateFile, "no certificate");
  EXPECT_THAT(Read(),
              FailsWith(absl::StatusCode::kFailedPrecondition, {directory_ / kCertificateFile}));
}

TEST_F(TlsFilesTest, AWrongLineOfRevokedIsAnError) {
  Write(kRevocationsFile, "# fine\nbob\n");
  const std::string line = directory_ / kRevocationsFile + ":2";
  EXPECT_THAT(Read(), FailsWith(absl::StatusCode::kFailedPrecondition, {line}));
  EXPECT_THAT(ReadRevocations(directory_.path()).status(),
              FailsWith(absl::StatusCode::kFailedPrecondition, {line}));
}

TEST_F(TlsFilesTest, RevokedThatCannotBeReadIsAnError) {
  const std::string path = directory_ / kRevocationsFile;
  std::filesystem::create_symlink("nowhere", path);
  EXPECT_THAT(Read(), FailsWith(absl::StatusCode::kFailedPrecondition, {path}));
  EXPECT_FALSE(ReadRevocations(directory_.path()).ok());
  std::filesystem::remove(path);
  EXPECT_TRUE(ReadRevocations(directory_.path()).ok());
  EXPECT_EQ(ReadRevocations(directory_.path())->size(), 0u);
  // The whole directory is away for a moment: that is not an empty list.
  EXPECT_THAT(ReadRevocations(directory_ / "none").status(),
              FailsWith(absl::StatusCode::kNotFound));
}

TEST_F(TlsFilesTest, ItsOwnCertificateIsNotRevoked) {
  Write(kRevocationsFile, "spiffe://shoal/job/mnist/ps/0\n");
  EXPECT_THAT(Read(), FailsWith(absl::StatusCode::kPermissionDenied,
                                {directory_ / kCertificateFile, "spiffe://shoal/job/mnist/ps/0"}));
}

}  // namespace
}  // namespace shoal
