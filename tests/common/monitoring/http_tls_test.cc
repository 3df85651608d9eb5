#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "common/monitoring/http_server.h"
#include "tests/common/monitoring/http_client.h"
#include "tests/common/monitoring/tls_client.h"

namespace shoal {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kServerUri[] = "spiffe://test/job/j/ps/0";
constexpr char kViewerUri[] = "spiffe://test/job/j/viewer";

TlsPem PemFrom(const TestIdentity& identity, const TestCa& ca) {
  return {.certificate = identity.certificate, .key = identity.key, .ca = ca.pem()};
}

// A server that answers with the client's certificate as DER, or with why it has none.
class HttpTlsTest : public ::testing::Test {
 protected:
  HttpTlsTest() {
    server_ = HttpServer::Start("127.0.0.1:0", {.handler =
                                                    [](const HttpRequest& request) {
                                                      const auto& shown =
                                                          request.client_certificate;
                                                      if (!shown.ok()) return HttpReply{403};
                                                      return HttpReply{200, "shown:" + *shown};
                                                    },
                                                .tls = PemFrom(identity_, ca_)})
                  .value();
  }
  std::string Get(const TestIdentity& client = {}) {
    return TlsRequest(server_->address(), "GET /", {.ca = ca_.pem(), .client = client});
  }

  const TestCa ca_{"ca"};
  const TestIdentity identity_ = ca_.Issue(kServerUri);
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpTlsTest, SpeaksTls13Only) {
  EXPECT_THAT(Get(), EndsWith("\r\n\r\nshown:"));
  EXPECT_THAT(
      TlsRequest(server_->address(), "GET /", {.ca = ca_.pem(), .max_version = TLS1_2_VERSION}),
      IsEmpty());
  EXPECT_THAT(Request(server_->address(), "GET /"), Not(HasSubstr("shown:")));
}

TEST_F(HttpTlsTest, TheHandlerSeesTheClientsCertificate) {
  const TestIdentity viewer = ca_.Issue(kViewerUri);
  EXPECT_THAT(Get(viewer), EndsWith("shown:" + viewer.der));
}

TEST_F(HttpTlsTest, ACertificateThatDoesNotVerifyIsNone) {
  const TestCa same_name("ca");
  EXPECT_THAT(Get(same_name.Issue(kViewerUri)), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(Get(TestCa("other").Issue(kViewerUri)), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(Get(ca_.Issue(kViewerUri, {.valid_for = -std::chrono::minutes(1)})),
              StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(Get(ca_.Issue(kViewerUri, {.purposes = "serverAuth"})), StartsWith("HTTP/1.1 403 "));
}

TEST_F(HttpTlsTest, NewConnectionsUseNewCertificates) {
  const TestCa next("next");
  ASSERT_TRUE(server_->SetTls(PemFrom(next.Issue(kServerUri), next)).ok());
  EXPECT_THAT(Get(), IsEmpty());
  const TestIdentity viewer = next.Issue(kViewerUri);
  EXPECT_THAT(TlsRequest(server_->address(), "GET /", {.ca = next.pem(), .client = viewer}),
              EndsWith("shown:" + viewer.der));
  EXPECT_THAT(
      TlsRequest(server_->address(), "GET /", {.ca = next.pem(), .client = ca_.Issue(kViewerUri)}),
      StartsWith("HTTP/1.1 403 "));
}

TEST_F(HttpTlsTest, CertificatesThatAreNotValidChangeNothing) {
  TlsPem other_key = PemFrom(identity_, ca_);
  other_key.key = ca_.Issue(kServerUri).key;
  TlsPem no_key = PemFrom(identity_, ca_);
  no_key.key = "";
  TlsPem no_ca = PemFrom(identity_, ca_);
  no_ca.ca = "no PEM";
  for (const TlsPem& wrong : {other_key, no_key, no_ca}) {
    EXPECT_EQ(server_->SetTls(wrong).code(), absl::StatusCode::kInvalidArgument);
    const auto started = HttpServer::Start(
        "127.0.0.1:0", {.handler = [](const HttpRequest&) { return HttpReply(); }, .tls = wrong});
    EXPECT_EQ(started.status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(Get(), EndsWith("shown:"));
}

TEST_F(HttpTlsTest, ALargePageArrivesWhole) {
  const std::string page(8 << 20, 'x');
  server_ = HttpServer::Start("127.0.0.1:0", {.handler =
                                                  [&](const HttpRequest&) {
                                                    return HttpReply{200, page};
                                                  },
                                              .tls = PemFrom(identity_, ca_)})
                .value();
  EXPECT_THAT(Get(), EndsWith(page));
}

// libmicrohttpd 0.9.75 with epoll keeps a core busy meanwhile.
TEST_F(HttpTlsTest, AnUnfinishedHandshakeIsCutOffAndCostsNoTime) {
  HttpClient client(server_->address());
  ASSERT_TRUE(client.Send("\x16\x03\x01"));
  const auto began = std::chrono::steady_clock::now();
  const std::clock_t cpu_before = std::clock();
  client.Receive();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  EXPECT_LT(static_cast<double>(std::clock() - cpu_before) / CLOCKS_PER_SEC, took.count() / 4);
}

}  // namespace
}  // namespace shoal
