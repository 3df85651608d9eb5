#include "common/monitoring/metrics_access.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/log/logging.h"
#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

class MetricsAccessTest : public ::testing::Test {
 protected:
  void Write(const std::string& token) {
    std::ofstream(file_) << token;
    SetMode(0600);
  }
  void SetMode(int mode) {
    std::filesystem::permissions(file_, static_cast<std::filesystem::perms>(mode));
  }
  // Returns the status of the answer; 200 if the client may see /metrics.
  static int StatusFor(MetricsAccess* access, const HttpRequest& request) {
    const std::optional<HttpReply> reply = access->Check(request);
    return reply ? reply->status : 200;
  }
  static int StatusForToken(MetricsAccess* access, const std::string& authorization) {
    return StatusFor(access, {.path = "/metrics", .authorization = authorization});
  }

  const TemporaryDirectory directory_;
  const std::string file_ = directory_ / "token";
};

TEST_F(MetricsAccessTest, WithoutSecurityEveryoneIsLetIn) {
  MetricsAccess access({});
  EXPECT_EQ(StatusForToken(&access, ""), 200);
}

TEST_F(MetricsAccessTest, OnlyTheWholeTokenLetsIn) {
  Write(" s3cret \n");
  MetricsAccess access({.token_file = file_});
  for (const char* right : {"Bearer s3cret", "bearer s3cret", "Bearer  s3cret "})
    EXPECT_EQ(StatusForToken(&access, right), 200) << right;
  for (const char* wrong : {"", "s3cret", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3cret1",
                            "Bearer s3creT", "Basic s3cret", "Bearers3cret"}) {
    EXPECT_EQ(StatusForToken(&access, wrong), 401) << wrong;
  }
}

TEST_F(MetricsAccessTest, ANewTokenIsValidAtOnce) {
  Write("first");
  MetricsAccess access({.token_file = file_});
  EXPECT_EQ(StatusForToken(&access, "Bearer first"), 200);
  Write("next");
  EXPECT_EQ(StatusForToken(&access, "Bearer first"), 401);
  EXPECT_EQ(StatusForToken(&access, "Bearer next"), 200);
}

TEST_F(MetricsAccessTest, AFileWithoutATokenLetsNobodyIn) {
  MetricsAccess access({.token_file = file_});
  EXPECT_EQ(StatusForToken(&access, "Bearer "), 401) << "the file is missing";
  for (const std::string& none : {std::string(), std::string(" \n"), std::string(5000, 'x')}) {
    Write(none);
    EXPECT_EQ(StatusForToken(&access, "Bearer " + none), 401) << none.size();
  }
  Write("token");
  EXPECT_EQ(StatusForToken(&access, "Bearer token"), 200);
  std::filesystem::remove(file_);
  EXPECT_EQ(StatusForToken(&access, "Bearer token"), 401);
}

TEST_F(MetricsAccessTest, ATokenThatOthersCanReadLetsNobodyIn) {
  std::vector<std::string> log;
  SendLogTo([&log](const std::string& message, const LogFields&) { log.push_back(message); });
  Write("token");
  MetricsAccess access({.token_file = file_});
  EXPECT_TRUE(log.empty());
  for (const int mode : {0640, 0604, 0620, 0602}) {
    SetMode(mode);
    const auto reply = access.Check({.path = "/metrics", .authorization = "Bearer token"});
    ASSERT_TRUE(reply.has_value()) << mode;
    EXPECT_EQ(reply->status, 401);
    EXPECT_NE(reply->body.find("log"), std::string::npos) << "not: a wrong token";
    ASSERT_FALSE(log.empty());
    EXPECT_NE(log.back().find("chmod 600 " + file_), std::string::npos) << log.back();
  }
  EXPECT_EQ(log.size(), 4u);
  EXPECT_EQ(StatusForToken(&access, "Bearer token"), 401);
  EXPECT_EQ(log.size(), 4u) << "the same again";
  for (const int mode : {0600, 0400}) {
    SetMode(mode);
    EXPECT_EQ(StatusForToken(&access, "Bearer token"), 200) << mode;
  }
  SendLogTo({});
}

TEST_F(MetricsAccessTest, ATokenIsNotReadFromAPipe) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  MetricsAccess access({.token_file = file_});
  EXPECT_EQ(StatusForToken(&access, "Bearer token"), 401);
}

TEST_F(MetricsAccessTest, TheCallerDecidesAboutCertificates) {
  MetricsAccess access({.tls = TlsPem(), .check_client = [](std::string_view der) {
                          return der == "viewer" ? absl::OkStatus()
                                                 : absl::PermissionDeniedError("a worker");
                        }});
  EXPECT_EQ(StatusFor(&access, {.client_certificate = std::string("viewer")}), 200);
  EXPECT_EQ(StatusFor(&access, {.client_certificate = std::string("worker")}), 403);
  EXPECT_EQ(StatusFor(&access, {.client_certificate = absl::PermissionDeniedError("expired")}),
            403);
  EXPECT_EQ(StatusFor(&access, {}), 401);
  EXPECT_EQ(StatusForToken(&access, "Bearer x"), 401) << "there is no file of a token";
}

TEST_F(MetricsAccessTest, ATokenHelpsWhereACertificateDoesNot) {
  Write("token");
  MetricsAccess access(
      {.tls = TlsPem(),
       .check_client = [](std::string_view) { return absl::PermissionDeniedError("a worker"); },
       .token_file = file_});
  EXPECT_EQ(StatusFor(&access, {.authorization = "Bearer token",
                                .client_certificate = std::string("worker")}),
            200);
  EXPECT_EQ(StatusFor(&access, {.authorization = "Bearer other",
                                .client_certificate = std::string("worker")}),
            403);
}

TEST_F(MetricsAccessTest, NobodyIsLetInByACertificateThatNobodyChecks) {
  MetricsAccess access({.tls = TlsPem()});
  EXPECT_EQ(StatusFor(&access, {.client_certificate = std::string("viewer")}), 401);
}

}  // namespace
}  // namespace shoal
