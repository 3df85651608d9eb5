#include "common/monitoring/monitoring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <thread>
#include <utility>

#include "tests/common/base/temporary_directory.h"
#include "tests/common/monitoring/http_client.h"
#include "tests/common/monitoring/tls_client.h"
#include "tests/fakes/in_process/in_process_network.h"

namespace shoal {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class MonitoringTest : public ::testing::Test {
 protected:
  ~MonitoringTest() override { EndLoop(); }

  void RunLoop() {
    thread_ = std::thread([this] {
      loop_thread_ = std::this_thread::get_id();
      node_->Run();
    });
  }
  void EndLoop() {
    if (!thread_.joinable()) return;
    node_->loop()->Post([this] { node_->loop()->Stop(); });
    thread_.join();
  }
  std::unique_ptr<Monitoring> Make(std::chrono::milliseconds patience = std::chrono::minutes(1),
                                   HttpSecurity security = {}) {
    return std::make_unique<Monitoring>(
        Monitoring::Options{.loop = node_->loop(),
                            .collect =
                                [this](MetricSamples* out) {
                                  EXPECT_EQ(std::this_thread::get_id(), loop_thread_);
                                  out->Add("shoal_steps_done_total", ++collected_);
                                },
                            .check_ready = [this] { return ready_; },
                            .check_accepting = [this] { return accepting_; },
                            .patience = patience,
                            .security = std::move(security)});
  }

  InProcessHub hub_;
  const std::unique_ptr<InProcessHub::Node> node_ = hub_.CreateNode();
  std::thread thread_;
  std::thread::id loop_thread_;  // known to that thread
  int collected_ = 0;
  absl::Status ready_;
  absl::Status accepting_;
};

TEST_F(MonitoringTest, ServesWhatTheLoopCollects) {
  RunLoop();
  const auto monitoring = Make();
  ASSERT_TRUE(monitoring->Listen("127.0.0.1:0").ok());
  const std::string answer = Request(monitoring->address(), "GET /metrics");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  EXPECT_THAT(answer, HasSubstr("\nshoal_steps_done_total 1\n"));
  EXPECT_THAT(answer, HasSubstr("\nprocess_threads "));
  EXPECT_THAT(answer, HasSubstr("\nshoal_event_loop_lag_seconds "));
  EXPECT_THAT(Request(monitoring->address(), "GET /healthz"), EndsWith("\r\n\r\nok\n"));
  EXPECT_THAT(Request(monitoring->address(), "GET /readyz"), EndsWith("\r\n\r\nready\n"));
  EXPECT_THAT(Request(monitoring->address(), "GET /"), StartsWith("HTTP/1.1 404 "));
}

TEST_F(MonitoringTest, MetricsNeedTheTokenThatIsGiven) {
  RunLoop();
  const TemporaryDirectory directory;
  std::ofstream(directory / "token") << "s3cret\n";
  std::filesystem::permissions(directory / "token", std::filesystem::perms::owner_read);
  const auto monitoring = Make(std::chrono::minutes(1), {.token_file = directory / "token"});
  ASSERT_TRUE(monitoring->Listen("127.0.0.1:0").ok());
  const std::string answer = Request(monitoring->address(), "GET /metrics");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(answer, HasSubstr("\r\nWWW-Authenticate: Bearer\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("shoal_steps_done_total")));
  EXPECT_THAT(Request(monitoring->address(), "GET /metrics", "Authorization: Bearer s3cret\r\n"),
              StartsWith("HTTP/1.1 200 "));
  for (const char* open : {"GET /healthz", "GET /readyz"})
    EXPECT_THAT(Request(monitoring->address(), open), StartsWith("HTTP/1.1 200 "));
}

TEST_F(MonitoringTest, WithTlsMetricsNeedACertificateThatIsLetIn) {
  RunLoop();
  const TestCa ca("ca");
  const TestIdentity own = ca.Issue("spiffe://test/job/j/ps/0");
  const TestIdentity viewer = ca.Issue("spiffe://test/job/j/viewer");
  const TestIdentity worker = ca.Issue("spiffe://test/job/j/worker");
  const auto monitoring =
      Make(std::chrono::minutes(1), {.tls = TlsPem{own.certificate, own.key, ca.pem()},
                                     .check_client = [&](std::string_view der) {
                                       return der == viewer.der
                                                  ? absl::OkStatus()
                                                  : absl::PermissionDeniedError("not a viewer");
                                     }});
  ASSERT_TRUE(monitoring->Listen("127.0.0.1:0").ok());
  const auto get = [&](const std::string& path, const TestIdentity& client) {
    return TlsRequest(monitoring->address(), "GET " + path, {.ca = ca.pem(), .client = client});
  };
  EXPECT_THAT(get("/metrics", viewer), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(get("/metrics", worker), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(get("/metrics", worker), EndsWith("not a viewer\n"));
  EXPECT_THAT(get("/metrics", {}), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(get("/healthz", {}), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(get("/readyz", worker), StartsWith("HTTP/1.1 200 "));

  const TestCa next_ca("next ca");
  const TestIdentity next = next_ca.Issue("spiffe://test/job/j/ps/0");
  EXPECT_TRUE(monitoring
                  ->ReplaceCertificates(
                      {.certificate = next.certificate, .key = next.key, .ca = next_ca.pem()})
                  .ok());
  EXPECT_EQ(get("/healthz", {}), "") << "a client that trusts the old CA only";
  EXPECT_THAT(TlsRequest(monitoring->address(), "GET /healthz", {.ca = next_ca.pem()}),
              StartsWith("HTTP/1.1 200 "));
}

TEST_F(MonitoringTest, ADaemonThatIsNotReadySaysWhy) {
  RunLoop();
  ready_ = absl::UnavailableError("loading variables");
  const auto monitoring = Make();
  const HttpReply reply = monitoring->Answer({"/readyz"});
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.body, "loading variables\n");
  EXPECT_EQ(monitoring->Answer({"/healthz"}).status, 200);
}

TEST_F(MonitoringTest, AStuckLoopIsNotHealthyButItsProcessIsSeen) {
  const auto monitoring = Make(std::chrono::milliseconds(20));  // the loop does not run
  EXPECT_EQ(monitoring->Answer({"/healthz"}).status, 503);
  EXPECT_EQ(monitoring->Answer({"/readyz"}).status, 503);
  const HttpReply metrics = monitoring->Answer({"/metrics"});
  EXPECT_EQ(metrics.status, 200);
  EXPECT_THAT(metrics.body, HasSubstr("process_threads "));
  EXPECT_THAT(metrics.body, Not(HasSubstr("shoal_event_loop_lag_seconds")));
  // What the loop finds when it runs again is for nobody any more.
  RunLoop();
  EXPECT_EQ(Make()->Answer({"/healthz"}).status, 200);
}

TEST_F(MonitoringTest, ADaemonThatNobodyCanConnectToIsNotHealthy) {
  RunLoop();
  accepting_ = absl::ResourceExhaustedError("127.0.0.1:1 takes no more connections");
  const auto monitoring = Make();
  EXPECT_EQ(monitoring->Answer({"/healthz"}).status, 503);
  EXPECT_THAT(monitoring->Answer({"/healthz"}).body, HasSubstr("127.0.0.1:1 "));
}

TEST_F(MonitoringTest, NobodyWaitsForALoopThatHasEnded) {
  RunLoop();
  EndLoop();
  const auto monitoring = Make(std::chrono::hours(1));
  EXPECT_EQ(monitoring->Answer({"/healthz"}).status, 503);
}

TEST_F(MonitoringTest, AFloodOfScrapesAsksTheLoopNowAndThenOnly) {
  RunLoop();
  const auto monitoring = Make();
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(monitoring->Answer({"/metrics"}).status, 200);
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_LE(collected_, 1 + took / std::chrono::milliseconds(200));
}

TEST_F(MonitoringTest, ADiskThatHangsTakesOneScrapeOnly) {
  RunLoop();
  std::promise<void> disk_hangs, disk_answers;
  bool hangs = false;  // from the second scrape on
  Monitoring monitoring({.loop = node_->loop(),
                         .collect = [](MetricSamples*) {},
                         .check_ready = [] { return absl::OkStatus(); },
                         .collect_off_loop =
                             [&](MetricSamples*) {
                               if (!std::exchange(hangs, true)) return;
                               disk_hangs.set_value();
                               disk_answers.get_future().wait();
                             },
                         .patience = std::chrono::minutes(1)});
  const std::string first = monitoring.Answer({"/metrics"}).body;
  // Figures stay fresh for a while.
  std::thread stuck([&] {
    while (monitoring.Answer({"/metrics"}).body == first) std::this_thread::yield();
  });
  disk_hangs.get_future().wait();
  EXPECT_EQ(monitoring.Answer({"/metrics"}).body, first);
  EXPECT_EQ(monitoring.Answer({"/healthz"}).status, 200);
  disk_answers.set_value();
  stuck.join();
}

}  // namespace
}  // namespace shoal
