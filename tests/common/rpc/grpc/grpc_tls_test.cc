#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/core_names.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/mutex.h"
#include "common/rpc/grpc/grpc_network.h"
#include "common/rpc/grpc/library_log.h"
#include "common/security/certificate_authority.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/rpc/network_conformance.h"
#include "tests/common/rpc/source_conformance.h"

namespace shoal {
namespace {

// A CA, and the TLS directories that it has issued.
class TestAuthority {
 public:
  explicit TestAuthority(std::string job = "mnist") {
    const absl::Status created = CertificateAuthority::Create(
        directory_ / "ca", {.trust_domain = "shoal", .job = std::move(job), .now = absl::Now()});
    EXPECT_TRUE(created.ok()) << created;
  }

  // Returns the path of a new TLS directory. `role` is "ps/0".
  std::string Issue(const std::string& role) {
    const std::string path = directory_ / absl::StrCat("tls", next_++);
    IssueInto(role, path);
    return path;
  }
  std::string ca_pem() const { return Contents(directory_ / "ca/ca.crt"); }
  // Lets the holder of a TLS directory trust another CA, too.
  static void Trust(const std::string& ca_pem, const std::string& path) {
    const std::string both = Contents(path + "/ca.crt") + ca_pem;
    std::ofstream(path + "/ca.crt") << both;
  }
  // Replaces the files of a TLS directory.
  void Renew(const std::string& role, const std::string& path) {
    std::filesystem::remove_all(path);
    IssueInto(role, path);
  }

 private:
  static std::string Contents(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void IssueInto(const std::string& role, const std::string& path) {
    const auto authority = CertificateAuthority::Open(directory_ / "ca");
    ASSERT_TRUE(authority.ok()) << authority.status();
    const auto issued = authority->Issue({.role = role, .now = absl::Now()});
    ASSERT_TRUE(issued.ok()) << issued.status();
    const absl::Status written = WriteTlsDirectory(path, *issued);
    ASSERT_TRUE(written.ok()) << written;
  }

  const TemporaryDirectory directory_;
  int next_ = 0;
};

std::shared_ptr<TlsSession> OpenSession(const std::string& directory) {
  auto session = TlsSession::Open(directory, nullptr);
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *session : nullptr;
}

std::unique_ptr<TestNode> NodeOf(GrpcNetwork::Options options, const std::string& tls_dir) {
  options.tls = OpenSession(tls_dir);
  return std::make_unique<TestNode>(GrpcNetwork::Create(std::move(options)),
                                    [](GrpcNetwork* network) { network->Run(Time::zero()); });
}

// The first node of a test is the client, worker/1, and the others are servers, ps/0.
class TlsTransport {
 public:
  explicit TlsTransport(TransportLimits limits)
      : options_{.max_message_bytes = static_cast<int>(limits.message_bytes),
                 .max_queued_bytes = limits.queued_bytes,
                 .max_queued_messages = limits.queued_messages,
                 .copying_threads = 2} {}
  std::unique_ptr<TestNode> CreateNode() {
    return NodeOf(options_, authority_.Issue(std::exchange(role_, "ps/0")));
  }
  static std::string ListenAddress() { return "127.0.0.1:0"; }
  static std::string UnreachableAddress() { return "127.0.0.1:1"; }

 private:
  const GrpcNetwork::Options options_;
  TestAuthority authority_;
  std::string role_ = "worker/1";
};

INSTANTIATE_TYPED_TEST_SUITE_P(Tls, NetworkConformance, TlsTransport);
INSTANTIATE_TYPED_TEST_SUITE_P(Tls, SourceConformance, TlsTransport);

class GrpcTlsTest : public NetworkConformance<TlsTransport> {
 protected:
  // Starts both ends with these TLS directories.
  void StartWith(const std::string& client, const std::string& server) {
    client_ = NodeOf({}, client);
    StartServer(
        NodeOf({.warn = [to = warnings_](const std::string& line) { to->Add(line); }}, server),
        TlsTransport::ListenAddress(), Logging());
  }
  // Returns how a stream of the client ends that says something.
  absl::Status Try(const char* method = kExchangeMethod) {
    StreamLog& log = NewLog();
    Stream* stream = nullptr;
    client_->OnLoop([&] {
      streams_.push_back(client_->network()->Open({address_, 0}, method, log.Callbacks()));
      stream = streams_.back().get();
      stream->Send(NumberedMessage(1));
    });
    absl::Status status = log.WaitForClose();
    Close(stream);
    return status;
  }
  // Opens a stream and sends a message on it. Returns the stream, and the server's end of it, which
  // has received the message. Sets `outdated`, unless it is null, when the stream is outdated.
  auto OpenAndTalk(StreamLog* log, Event* outdated = nullptr) {
    StreamCallbacks callbacks = log->Callbacks();
    if (outdated != nullptr) callbacks.on_outdated = [outdated] { outdated->Set(); };
    Stream* const stream = Open(address_, std::move(callbacks));
    client_->OnLoop([&] { stream->Send(NumberedMessage(1)); });
    auto accepted = WaitForAccepted();
    accepted->log.WaitForMessages(1);
    return std::pair(stream, std::move(accepted));
  }
  GrpcNetwork::Stats StatsOfServer() {
    GrpcNetwork::Stats stats;
    server_->OnLoop([&] { stats = dynamic_cast<GrpcNetwork&>(*server_->network()).stats(); });
    return stats;
  }
  uint64_t Unauthorized() { return StatsOfServer().unauthorized_streams; }
  std::vector<std::string> warnings() { return warnings_->Get(); }

  // Returns the serial of the certificate that the client has shown on a stream.
  std::string SerialOfClient(const Accepted& accepted) {
    std::string serial;
    server_->OnLoop([&] { serial = accepted.stream->client()->serial; });
    return serial;
  }
  static std::string SerialIn(const std::string& tls_dir) {
    return OpenSession(tls_dir)->files()->own.serial;
  }

  TestAuthority authority_;

 private:
  // The server may add lines until it has ended, later than this object.
  class Lines {
   public:
    void Add(const std::string& line) {
      MutexLock lock(&mutex_);
      lines_.push_back(line);
    }
    std::vector<std::string> Get() {
      MutexLock lock(&mutex_);
      return lines_;
    }

   private:
    Mutex mutex_;
    std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  };
  const std::shared_ptr<Lines> warnings_ = std::make_shared<Lines>();
};

TEST_F(GrpcTlsTest, TheServerKnowsItsClient) {
  StartWith(authority_.Issue("worker/3"), authority_.Issue("ps/0"));
  StreamLog& log = NewLog();
  Open(&log);
  const auto accepted = WaitForAccepted();
  server_->OnLoop([&] {
    ASSERT_NE(accepted->stream->client(), nullptr);
    EXPECT_EQ(accepted->stream->client()->identity.ToUri(), "spiffe://shoal/job/mnist/worker/3");
  });
}

TEST_F(GrpcTlsTest, ClaimsOfAnotherIndexAreRejectedAndCounted) {
  StartWith(authority_.Issue("worker/3"), authority_.Issue("ps/0"));
  StreamLog& log = NewLog();
  Open(&log);
  const auto accepted = WaitForAccepted();
  server_->OnLoop([&] {
    EXPECT_TRUE(accepted->stream->CheckClaim(3).ok());
    for (int i = 0; i < 2; ++i) {
      const absl::Status claim = accepted->stream->CheckClaim(4);
      EXPECT_EQ(claim.code(), absl::StatusCode::kPermissionDenied);
      EXPECT_THAT(std::string(claim.message()), ::testing::HasSubstr("worker 4"));
    }
  });
  EXPECT_EQ(Unauthorized(), 2u);
  EXPECT_THAT(warnings(), ::testing::SizeIs(1)) << "the same, twice";
}

TEST_F(GrpcTlsTest, AnElasticWorkerMayClaimAnyIndex) {
  StartWith(authority_.Issue("worker"), authority_.Issue("ps/0"));
  StreamLog& log = NewLog();
  Open(&log);
  const auto accepted = WaitForAccepted();
  server_->OnLoop([&] { EXPECT_TRUE(accepted->stream->CheckClaim(4).ok()); });
  EXPECT_EQ(Unauthorized(), 0u);
}

TEST_F(GrpcTlsTest, AServerRejectsRolesWithoutPermission) {
  for (const char* role : {"ps/0", "ps/1", "coordinator", "evaluator", "viewer", "operator"}) {
    SCOPED_TRACE(role);
    // The client's own check would stop it earlier: it asks for what it may, at another address.
    StartWith(authority_.Issue(role), authority_.Issue("ps/0"));
    const absl::Status status = Try();
    EXPECT_THAT(status.code(), ::testing::AnyOf(absl::StatusCode::kPermissionDenied,
                                                absl::StatusCode::kUnavailable));
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(role));
    EXPECT_TRUE(accepted_.empty());
    StopServer();
    client_->OnLoop([&] { streams_.clear(); });
  }
}

TEST_F(GrpcTlsTest, AClientRejectsServersOfAnotherRoleOrIndex) {
  for (const char* role : {"worker/1", "worker", "coordinator", "ps/1", "viewer"}) {
    SCOPED_TRACE(role);
    StartWith(authority_.Issue("worker/1"), authority_.Issue(role));
    const absl::Status status = Try();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(role));
    EXPECT_TRUE(accepted_.empty());
    StopServer();
    client_->OnLoop([&] { streams_.clear(); });
  }
}

TEST_F(GrpcTlsTest, StrangersEndAtTheHandshake) {
  TestAuthority other, other_job("cifar");
  for (const std::string& stranger : {other.Issue("worker/1"), other_job.Issue("worker/1")}) {
    StartWith(stranger, authority_.Issue("ps/0"));
    EXPECT_EQ(Try().code(), absl::StatusCode::kUnavailable);
    EXPECT_TRUE(accepted_.empty());
    StopServer();
    client_->OnLoop([&] { streams_.clear(); });
  }
}

// Its own CA is the same name and job, and it trusts the server.
TEST_F(GrpcTlsTest, AClientOfAnUnknownAuthorityIsNamedOnBothSides) {
  const std::string server = authority_.Issue("ps/0");
  TestAuthority other;
  const std::string stranger = other.Issue("worker/1");
  std::ofstream(stranger + "/ca.crt", std::ios::app) << std::ifstream(server + "/ca.crt").rdbuf();
  StartWith(stranger, server);
  const Certificate shown = OpenSession(stranger)->files()->own;
  const uint64_t before = StatsOfServer().rejected_handshakes;
  const absl::Status status = Try();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              ::testing::AllOf(::testing::HasSubstr("spiffe://shoal/job/mnist/ps/0"),
                               ::testing::HasSubstr("spiffe://shoal/job/mnist/worker/1"),
                               ::testing::HasSubstr(shown.serial)));
  EXPECT_GT(StatsOfServer().rejected_handshakes, before);
  EXPECT_EQ(Unauthorized(), 0u) << "it got no further than the handshake";
  EXPECT_THAT(warnings(), ::testing::ElementsAre(::testing::AllOf(
                              ::testing::HasSubstr("spiffe://shoal/job/mnist/worker/1"),
                              ::testing::HasSubstr(shown.serial))));
  EXPECT_TRUE(accepted_.empty());
}

// Its connection is from a time when its CA was known.
TEST_F(GrpcTlsTest, AClientOfAFormerAuthorityGetsNoNewStreams) {
  const std::string server = authority_.Issue("ps/0");
  StartWith(authority_.Issue("worker/1"), server);
  StreamLog& open = NewLog();
  OpenAndTalk(&open);
  TestAuthority next;
  next.Renew("ps/0", server);
  const auto deadline = std::chrono::steady_clock::now() + kTestDeadline;
  absl::Status status;
  while (status.ok()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    StreamLog& log = NewLog();
    Stream* const later = Open(&log);
    client_->OnLoop([&] { later->Finish(absl::OkStatus()); });
    status = log.WaitForClose();
    Close(later);
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated) << status;
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("spiffe://shoal/job/mnist/worker/1"));
  EXPECT_EQ(Unauthorized(), 1u);
}

TEST_F(GrpcTlsTest, APlainClientIsNotHeard) {
  StartServer(NodeOf({}, authority_.Issue("ps/0")), TlsTransport::ListenAddress(), Logging());
  client_ = std::make_unique<TestNode>(GrpcNetwork::Create({}),
                                       [](GrpcNetwork* network) { network->Run(Time::zero()); });
  const absl::Status status = Try();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("--tls_dir"));
  EXPECT_TRUE(accepted_.empty());
}

TEST_F(GrpcTlsTest, ATlsClientSaysWhatAPlainServerMayLack) {
  StartServer(std::make_unique<TestNode>(GrpcNetwork::Create({}),
                                         [](GrpcNetwork* network) { network->Run(Time::zero()); }),
              TlsTransport::ListenAddress(), Logging());
  client_ = NodeOf({}, authority_.Issue("worker/1"));
  const absl::Status status = Try();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("--tls_dir"));
}

TEST_F(GrpcTlsTest, ARevokedClientLosesItsStreams) {
  const std::string server = authority_.Issue("ps/0");
  StartWith(authority_.Issue("worker/1"), server);
  StreamLog& log = NewLog();
  OpenAndTalk(&log);
  std::ofstream(server + "/revoked") << "spiffe://shoal/job/mnist/worker/1\n";
  EXPECT_EQ(log.WaitForClose().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Try().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Unauthorized(), 1u);
}

TEST_F(GrpcTlsTest, ARevokedClientGetsNoMoreOfASource) {
  const std::string server = authority_.Issue("ps/0");
  StartWith(authority_.Issue("worker/1"), server);
  StreamLog& log = NewLog();
  Open(&log);
  const auto accepted = WaitForAccepted();
  // The source never ends by itself.
  server_->OnLoop([&] {
    accepted->stream->SendFrom([] { return std::optional<Message>(NumberedMessage(1)); });
  });
  log.WaitForMessages(1);
  std::ofstream(server + "/revoked") << "spiffe://shoal/job/mnist/worker/1\n";
  EXPECT_EQ(log.WaitForClose().code(), absl::StatusCode::kPermissionDenied);
}

// No disk of the daemon's other files keeps a client in, and none of the TLS directory stops
// others.
TEST_F(GrpcTlsTest, TheDirectoryIsReadAlthoughOtherDisksHang) {
  const std::string server = authority_.Issue("ps/0");
  StartWith(authority_.Issue("worker/1"), server);
  StreamLog& log = NewLog();
  Open(&log);
  const auto accepted = WaitForAccepted();
  Event revoked, ended;
  server_->OnLoop([&] {
    for (const Lane lane : {Lane::kBrief, Lane::kFiles}) {
      server_->loop()->Offload(
          lane, [&] { revoked.Wait(); },
          [&, lane] {
            if (lane == Lane::kFiles) ended.Set();
          });
    }
  });
  std::ofstream(server + "/revoked") << "spiffe://shoal/job/mnist/worker/1\n";
  EXPECT_EQ(log.WaitForClose().code(), absl::StatusCode::kPermissionDenied);
  revoked.Set();
  EXPECT_TRUE(ended.Wait());
}

TEST_F(GrpcTlsTest, RevocationsCountAlthoughAnotherFileIsDamaged) {
  const std::string server = authority_.Issue("ps/0");
  const auto session = OpenSession(server);
  ASSERT_NE(session, nullptr);
  const auto peer = TlsSession::Open(authority_.Issue("worker/1"), nullptr);
  ASSERT_TRUE(peer.ok()) << peer.status();
  const Certificate client = (*peer)->files()->own;
  std::ofstream(server + "/tls.crt") << "damaged\n";
  EXPECT_FALSE(session->Refresh(session->Read()));
  EXPECT_TRUE(session->CheckValid(client).ok());
  std::ofstream(server + "/revoked") << "spiffe://shoal/job/mnist/worker/1\n";
  EXPECT_FALSE(session->Refresh(session->Read()));
  EXPECT_EQ(session->CheckValid(client).code(), absl::StatusCode::kPermissionDenied);
  // A missing list lets nobody in again.
  std::filesystem::remove(server + "/revoked");
  EXPECT_FALSE(session->Refresh(session->Read()));
  EXPECT_EQ(session->CheckValid(client).code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(GrpcTlsTest, ARevokedServerIsLeft) {
  const std::string client = authority_.Issue("worker/1");
  StartWith(client, authority_.Issue("ps/0"));
  StreamLog& log = NewLog();
  OpenAndTalk(&log);
  std::ofstream(client + "/revoked") << "spiffe://shoal/job/mnist/ps/0\n";
  EXPECT_EQ(log.WaitForClose().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Try().code(), absl::StatusCode::kUnavailable);
}

// The CA, too: new clients of the old one stay outside, and open streams of the old one end.
TEST_F(GrpcTlsTest, NewFilesServeNewStreams) {
  const std::string client = authority_.Issue("worker/1"), server = authority_.Issue("ps/0");
  StartWith(client, server);
  StreamLog& old_log = NewLog();
  Stream* const old_stream = Open(&old_log);
  client_->OnLoop([&] { old_stream->Send(NumberedMessage(1)); });
  WaitForAccepted()->log.WaitForMessages(1);
  TestAuthority next;
  next.Renew("worker/1", client);
  next.Renew("ps/0", server);
  const auto deadline = std::chrono::steady_clock::now() + kTestDeadline;
  const std::string strange = authority_.Issue("worker/2");
  for (bool outside = false; !outside;) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    const auto stranger = NodeOf({}, strange);
    StreamLog& log = NewLog();
    std::unique_ptr<Stream> stream;
    stranger->OnLoop([&] {
      stream = stranger->network()->Open({address_, 0}, kExchangeMethod, log.Callbacks());
      stream->Finish(absl::OkStatus());
    });
    outside = !log.WaitForClose().ok();
    stranger->OnLoop([&] { stream.reset(); });
  }
  absl::Status status = absl::UnknownError("");
  while (!status.ok() && std::chrono::steady_clock::now() < deadline) {
    StreamLog& log = NewLog();
    Stream* const stream = Open(&log);
    client_->OnLoop([&] { stream->Finish(absl::OkStatus()); });
    status = log.WaitForClose();
    Close(stream);
  }
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(old_log.WaitForClose().code(), absl::StatusCode::kUnauthenticated);
}

// Here only the server knows that the CA does not count any more.
TEST_F(GrpcTlsTest, AClientOfACaThatIsTakenOutLosesItsStreams) {
  const std::string server = authority_.Issue("ps/0");
  StartWith(authority_.Issue("worker/1"), server);
  StreamLog& log = NewLog();
  OpenAndTalk(&log);
  TestAuthority().Renew("ps/0", server);
  EXPECT_EQ(log.WaitForClose().code(), absl::StatusCode::kUnauthenticated);
}

// Here only the client does. Its owner has had a second to reopen the stream.
TEST_F(GrpcTlsTest, AServerOfACaThatIsTakenOutIsLeft) {
  const std::string client = authority_.Issue("worker/1");
  StartWith(client, authority_.Issue("ps/0"));
  StreamLog& log = NewLog();
  Event outdated;
  OpenAndTalk(&log, &outdated);
  TestAuthority().Renew("worker/1", client);
  ASSERT_TRUE(outdated.Wait());
  EXPECT_EQ(log.WaitForClose().code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(GrpcTlsTest, APeerIsComparedWithTodaysCas) {
  TestAuthority next;
  const std::string own = authority_.Issue("ps/0");
  const auto session = OpenSession(own);
  ASSERT_NE(session, nullptr);
  const auto peer_of = [](const std::string& directory) {
    const auto peer = OpenSession(directory);
    return TlsSession::Peer{.certificate = peer->files()->own,
                            .chain_pem = peer->files()->certificate_chain_pem};
  };
  TlsSession::Peer old_peer = peer_of(authority_.Issue("worker/1"));
  TlsSession::Peer next_peer = peer_of(next.Issue("worker/1"));
  EXPECT_TRUE(session->CheckPeer(&old_peer).ok());
  next.Renew("ps/0", own);
  next.Trust(authority_.ca_pem(), own);
  ASSERT_TRUE(session->Refresh(session->Read()));
  EXPECT_TRUE(session->CheckPeer(&old_peer).ok());
  EXPECT_TRUE(session->CheckPeer(&next_peer).ok());
  next.Renew("ps/0", own);
  ASSERT_TRUE(session->Refresh(session->Read()));
  EXPECT_EQ(session->CheckPeer(&old_peer).code(), absl::StatusCode::kUnauthenticated);
  EXPECT_TRUE(session->CheckPeer(&next_peer).ok());
}

TEST_F(GrpcTlsTest, AStreamIsOutdatedOnceThisEndHasOtherFiles) {
  const std::string client = authority_.Issue("worker/1");
  StartWith(client, authority_.Issue("ps/0"));
  StreamLog& log = NewLog();
  Event outdated;
  const auto [stream, first] = OpenAndTalk(&log, &outdated);
  EXPECT_EQ(SerialOfClient(*first), SerialIn(client));
  authority_.Renew("worker/1", client);
  ASSERT_TRUE(outdated.Wait());
  client_->OnLoop([stream = stream] { stream->Finish(absl::OkStatus()); });
  EXPECT_TRUE(log.WaitForClose().ok());
  StreamLog& next_log = NewLog();
  Open(&next_log);
  EXPECT_EQ(SerialOfClient(*WaitForAccepted(1)), SerialIn(client));
}

TEST_F(GrpcTlsTest, NewRevocationsOutdateNoStream) {
  const std::string own = authority_.Issue("worker/1");
  const auto session = OpenSession(own);
  ASSERT_NE(session, nullptr);
  auto server = std::make_shared<TlsSession::Server>();
  session->ForChannel(kExchangeMethod, 0, server);
  std::ofstream(own + "/revoked") << "abcdef\n";
  ASSERT_TRUE(session->Refresh(session->Read()));
  EXPECT_FALSE(session->IsOutdated(*server));
  authority_.Renew("worker/1", own);
  ASSERT_TRUE(session->Refresh(session->Read()));
  EXPECT_TRUE(session->IsOutdated(*server));
}

// The client leaves it for the next one, an hour before its end.
TEST_F(GrpcTlsTest, AStreamIsOutdatedOnceTheServersCertificateIsOld) {
  const auto session = OpenSession(authority_.Issue("worker/1"));
  ASSERT_NE(session, nullptr);
  auto server = std::make_shared<TlsSession::Server>();
  session->ForChannel(kExchangeMethod, 0, server);
  EXPECT_FALSE(session->IsOutdated(*server)) << "before the handshake";
  Certificate certificate = OpenSession(authority_.Issue("ps/0"))->files()->own;
  const auto shake_hands = [&](absl::Time at) {
    MutexLock lock(&server->mutex);
    server->peer = TlsSession::Peer{.certificate = certificate};
    server->shaken_at = at;
  };
  shake_hands(absl::Now());
  EXPECT_FALSE(session->IsOutdated(*server));
  certificate.not_before = absl::Now() - absl::Hours(240);
  certificate.not_after = absl::Now() + absl::Minutes(59);
  shake_hands(absl::Now() - absl::Hours(2));
  EXPECT_TRUE(session->IsOutdated(*server));
  shake_hands(absl::Now());
  EXPECT_FALSE(session->IsOutdated(*server)) << "the server has no later one";
  // A sixth of a short life.
  certificate.not_before = absl::Now() - absl::Minutes(50);
  certificate.not_after = absl::Now() + absl::Minutes(11);
  shake_hands(absl::Now() - absl::Minutes(49));
  EXPECT_FALSE(session->IsOutdated(*server));
  certificate.not_after = absl::Now() + absl::Minutes(9);
  shake_hands(absl::Now() - absl::Minutes(49));
  EXPECT_TRUE(session->IsOutdated(*server));
}

using KeyPtr = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using CertificatePtr = std::unique_ptr<X509, decltype(&X509_free)>;

KeyPtr ReadKey(const std::string& tls_dir) {
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> file(
      BIO_new_file((tls_dir + "/tls.key").c_str(), "r"), BIO_free_all);
  return {PEM_read_bio_PrivateKey(file.get(), nullptr, nullptr, nullptr), EVP_PKEY_free};
}

CertificatePtr ReadOwn(const std::string& tls_dir) {
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> file(
      BIO_new_file((tls_dir + "/tls.crt").c_str(), "r"), BIO_free_all);
  return {PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr), X509_free};
}

// Returns a key with the public part of a certificate, as OpenSSL demands it of who shows that, and
// the private part of another key.
KeyPtr ForgeKey(X509* certificate, EVP_PKEY* own) {
  BIGNUM* secret = nullptr;
  EXPECT_EQ(EVP_PKEY_get_bn_param(own, OSSL_PKEY_PARAM_PRIV_KEY, &secret), 1);
  unsigned char point[128];
  size_t size = 0;
  EXPECT_EQ(EVP_PKEY_get_octet_string_param(X509_get0_pubkey(certificate), OSSL_PKEY_PARAM_PUB_KEY,
                                            point, sizeof(point), &size),
            1);
  const std::unique_ptr<OSSL_PARAM_BLD, decltype(&OSSL_PARAM_BLD_free)> builder(
      OSSL_PARAM_BLD_new(), OSSL_PARAM_BLD_free);
  OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0);
  OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point, size);
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_PRIV_KEY, secret);
  const std::unique_ptr<OSSL_PARAM, decltype(&OSSL_PARAM_free)> parameters(
      OSSL_PARAM_BLD_to_param(builder.get()), OSSL_PARAM_free);
  const std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> context(
      EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr), EVP_PKEY_CTX_free);
  EVP_PKEY* forged = nullptr;
  EXPECT_EQ(EVP_PKEY_fromdata_init(context.get()), 1);
  EXPECT_EQ(EVP_PKEY_fromdata(context.get(), &forged, EVP_PKEY_KEYPAIR, parameters.get()), 1);
  BN_free(secret);
  return {forged, EVP_PKEY_free};
}

// A client of OpenSSL: the certificates that it shows, and how it speaks.
struct Handshake {
  X509* certificate = nullptr;
  EVP_PKEY* key = nullptr;
  int version = TLS1_3_VERSION;  // the newest
};
// A client of OpenSSL, which the test writes to by itself.
class RawTlsClient {
 public:
  RawTlsClient(const std::string& address, const Handshake& handshake)
      : context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(address, ':');
    SSL_CTX* const context = context_.get();
    if (handshake.certificate != nullptr) {
      EXPECT_EQ(SSL_CTX_use_certificate(context, handshake.certificate), 1);
      EXPECT_EQ(SSL_CTX_use_PrivateKey(context, handshake.key), 1);
    }
    EXPECT_EQ(SSL_CTX_set_max_proto_version(context, handshake.version), 1);
    EXPECT_EQ(SSL_CTX_set_alpn_protos(context, reinterpret_cast<const unsigned char*>("\x02h2"), 3),
              0);
    connection_.reset(BIO_new_ssl_connect(context));
    BIO_set_conn_hostname(connection_.get(), parts.first.c_str());
    BIO_set_conn_port(connection_.get(), parts.second.c_str());
  }
  bool ShakesHands() { return BIO_do_handshake(connection_.get()) == 1; }
  // Returns whether there is something to read.
  bool ReadByte() {
    char byte = 0;
    return BIO_read(connection_.get(), &byte, 1) == 1;
  }
  // Returns whether the connection still takes it.
  bool Write(const std::string& bytes) {
    const int size = static_cast<int>(bytes.size());
    return BIO_write(connection_.get(), bytes.data(), size) == size;
  }

 private:
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<BIO, decltype(&BIO_free_all)> connection_{nullptr, BIO_free_all};
};

// Returns whether the server lets the client speak HTTP/2: its settings arrive.
bool GetsThrough(const std::string& address, const Handshake& handshake) {
  RawTlsClient client(address, handshake);
  return client.ShakesHands() && client.ReadByte();
}

TEST_F(GrpcTlsTest, OnlyTls13IsSpoken) {
  const std::string client = authority_.Issue("worker/1");
  StartWith(client, authority_.Issue("ps/0"));
  const CertificatePtr own = ReadOwn(client);
  const KeyPtr key = ReadKey(client);
  EXPECT_FALSE(GetsThrough(address_, {own.get(), key.get(), TLS1_2_VERSION}));
  EXPECT_TRUE(GetsThrough(address_, {own.get(), key.get(), TLS1_3_VERSION}));
}

TEST_F(GrpcTlsTest, AClientWithoutACertificateEndsAtTheHandshake) {
  StartWith(authority_.Issue("worker/1"), authority_.Issue("ps/0"));
  EXPECT_FALSE(GetsThrough(address_, {}));
}

// The lines of the library's log, for the whole process.
struct LibraryLines {
  Mutex mutex;
  std::vector<std::string> lines ABSL_GUARDED_BY(mutex);
};
LibraryLines& Library() {
  static auto* const library = new LibraryLines;
  return *library;
}

TEST_F(GrpcTlsTest, FailedHandshakesAreCountedAndLoggedInWords) {
  SendLibraryLogTo([](const std::string& line) {
    MutexLock lock(&Library().mutex);
    Library().lines.push_back(line);
  });
  StartWith(authority_.Issue("worker/1"), authority_.Issue("ps/0"));
  const uint64_t before = StatsOfServer().rejected_handshakes;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(GetsThrough(address_, {}));
  EXPECT_EQ(StatsOfServer().rejected_handshakes, before + 3);
  MutexLock lock(&Library().mutex);
  EXPECT_THAT(Library().lines,
              ::testing::Contains(::testing::AllOf(::testing::HasSubstr("no certificate"),
                                                   ::testing::HasSubstr("--tls_dir"))));
  EXPECT_LT(Library().lines.size(), FailedHandshakes()) << "the same once a minute";
}

// A certificate is no secret. Only its key shows whose it is.
TEST_F(GrpcTlsTest, AStolenCertificateIsOfNoUseWithoutItsKey) {
  const std::string victim = authority_.Issue("worker/1"), thief = authority_.Issue("worker/2");
  StartWith(victim, authority_.Issue("ps/0"));
  const CertificatePtr stolen = ReadOwn(victim);
  const KeyPtr own = ReadKey(thief), right = ReadKey(victim);
  EXPECT_FALSE(GetsThrough(address_, {stolen.get(), ForgeKey(stolen.get(), own.get()).get()}));
  EXPECT_TRUE(GetsThrough(address_, {stolen.get(), right.get()}));
  EXPECT_TRUE(GetsThrough(address_, {stolen.get(), ForgeKey(stolen.get(), right.get()).get()}))
      << "the forgery itself is fine";
}

TEST_F(GrpcTlsTest, HeadersWithoutEndEndTheConnection) {
  signal(SIGPIPE, SIG_IGN);  // of OpenSSL's write
  StartWith(authority_.Issue("worker/1"), authority_.Issue("ps/0"));
  // Headers arrive before the server looks at the role: any certificate of the CA will do.
  const std::string viewer = authority_.Issue("viewer");
  const CertificatePtr own = ReadOwn(viewer);
  const KeyPtr key = ReadKey(viewer);
  RawTlsClient client(address_, {own.get(), key.get()});
  ASSERT_TRUE(client.ShakesHands());
  const std::string settings("\0\0\0\4\0\0\0\0\0", 9);
  const std::string headers("\0\0\0\1\0\0\0\0\1", 9);  // empty, to be continued
  ASSERT_TRUE(client.Write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings + headers));
  std::string continued("\0\x40\0\x9\0\0\0\0\1", 9);
  for (int i = 0; i < 4096; ++i) continued += std::string("\0\1a\0", 4);  // the field "a"
  constexpr int kMaxFrames = 2000;                                        // 32 MB
  int frames = 0;
  while (frames < kMaxFrames && client.Write(continued)) ++frames;
  EXPECT_LT(frames, kMaxFrames);
  ExpectWorks(0);
}

TEST_F(GrpcTlsTest, AMessageTooLongForItsRoleEndsTheConnection) {
  StartWith(authority_.Issue("viewer"), authority_.Issue("coordinator"));
  const auto send = [this](size_t bytes) {
    StreamLog& log = NewLog();
    Stream* stream = nullptr;
    client_->OnLoop([&] {
      streams_.push_back(client_->network()->Open(address_, kStatusMethod, log.Callbacks()));
      stream = streams_.back().get();
      stream->Send({.payload = {OwnedSlice(std::string(bytes, 'x'))}});
    });
    const absl::Status status = log.WaitForClose();
    Close(stream);
    return status.code();
  };
  // gRPC has all of it in memory before the server rejects it.
  EXPECT_EQ(send(100'000), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(send(40'000'000), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace shoal
