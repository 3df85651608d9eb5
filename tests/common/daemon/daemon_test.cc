#include "common/daemon/daemon.h"

#include <gmock/gmock.h>
#include <grpc/support/log.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <future>

#include "common/base/version.h"
#include "common/daemon/process/exit_code.h"
#include "proto/cluster.pb.h"
#include "tests/fakes/in_process/in_process_network.h"

namespace shoal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSpec[] =
    R"({"cluster": {"chief": ["a:1"], "ps": ["b:1"], "worker": {"3": "c:1"}}, "task": )";

class DaemonTest : public ::testing::Test {
 protected:
  DaemonTest() { unsetenv("TF_CONFIG"); }

  int Run(Daemon& daemon, std::vector<std::string> arguments,
          const std::function<absl::Status()>& body) {
    std::vector<char*> argv;
    arguments.insert(arguments.begin(), "shoal-test");
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::testing::internal::CaptureStderr();
    const int code = daemon.Run(static_cast<int>(arguments.size()), argv.data(), body);
    log_ = ::testing::internal::GetCapturedStderr();
    return code;
  }

  Daemon daemon_{"shoal-test", TaskType::kWorker, "Tests."};
  std::string log_;
};

TEST_F(DaemonTest, LogsItsConfigurationWithWhereItCameFrom) {
  std::string data_dir = "here";
  daemon_.settings().AddText("data_dir", &data_dir, "Data");
  EXPECT_EQ(Run(daemon_, {"--log_level=info"}, [] { return absl::OkStatus(); }), 0);
  EXPECT_THAT(log_, HasSubstr(std::string(" I worker shoal-test ") + kVersion));
  EXPECT_THAT(log_, HasSubstr(" log_level=\"info (flag)\"\n"));
  EXPECT_THAT(log_, HasSubstr(" I worker ended exit_code=0\n"));
  Daemon plain("shoal-test", TaskType::kPs, "Tests.");
  EXPECT_EQ(Run(plain, {}, [] { return absl::OkStatus(); }), 0);
  EXPECT_THAT(log_, AllOf(HasSubstr(std::string(" I ps shoal-test ") + kVersion),
                          Not(HasSubstr("log_level="))));
}

TEST_F(DaemonTest, MessagesOfLibrariesAreInTheLog) {
  EXPECT_EQ(Run(daemon_, {"--log_format=json"},
                [] {
                  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);  // as gRPC does when it starts
                  gpr_log(GPR_ERROR, "no \"port\"");
                  proto::StatusReply reply;
                  EXPECT_FALSE(reply.ParseFromString("\x0a\x01\xff"));
                  return absl::OkStatus();
                }),
            0);
  EXPECT_THAT(log_, HasSubstr(R"("message":"grpc: no \"port\""})"));
  EXPECT_THAT(log_, HasSubstr(R"("message":"protobuf: )"));
}

TEST_F(DaemonTest, ReadsItsClusterSpecAndNamesItsTaskInTheLog) {
  setenv("TF_CONFIG", (std::string(kSpec) + R"({"type": "worker", "index": 3}})").c_str(), 1);
  int index = -1;
  EXPECT_EQ(Run(daemon_, {},
                [&]() -> absl::Status {
                  const auto spec = daemon_.ReadClusterSpec();
                  if (!spec.ok()) return spec.status();
                  index = spec->task.index;
                  return absl::OkStatus();
                }),
            0);
  EXPECT_EQ(index, 3);
  EXPECT_THAT(log_, AllOf(HasSubstr(" I worker-3 "),
                          HasSubstr(" from=TF_CONFIG chief=a:1 ps=1 workers=1")));
}

TEST_F(DaemonTest, RejectsATaskOfAnotherType) {
  setenv("TF_CONFIG", (std::string(kSpec) + R"({"type": "ps", "index": 0}})").c_str(), 1);
  EXPECT_EQ(Run(daemon_, {}, [&] { return daemon_.ReadClusterSpec().status(); }),
            kExitBadConfiguration);
  EXPECT_THAT(log_, AllOf(HasSubstr("TF_CONFIG: $.task.type: is \"ps\""), HasSubstr("shoal-ps")));
}

TEST_F(DaemonTest, AWorkerMayBeTheEvaluator) {
  setenv("TF_CONFIG", (std::string(kSpec) + R"({"type": "evaluator", "index": 0}})").c_str(), 1);
  EXPECT_EQ(Run(daemon_, {}, [&] { return daemon_.ReadClusterSpec().status(); }), kExitDone);
  EXPECT_THAT(log_, HasSubstr(" I evaluator-0 "));
  Daemon ps("shoal-test", TaskType::kPs, "Tests.");
  EXPECT_EQ(Run(ps, {}, [&] { return ps.ReadClusterSpec().status(); }), kExitBadConfiguration);
  EXPECT_THAT(log_, HasSubstr("shoal-worker"));
}

TEST_F(DaemonTest, WithoutAClusterSpecSaysBothWaysToGiveOne) {
  Daemon ps("shoal-test", TaskType::kPs, "Tests.");
  EXPECT_EQ(Run(ps, {}, [&] { return ps.ReadClusterSpec().status(); }), kExitBadConfiguration);
  EXPECT_THAT(log_, AllOf(HasSubstr("--cluster_spec=FILE"), HasSubstr("TF_CONFIG")));
  EXPECT_EQ(Run(daemon_, {}, [&] { return daemon_.ReadClusterSpec().status(); }),
            kExitBadConfiguration);
  EXPECT_THAT(log_, AllOf(HasSubstr("--chief=HOST:PORT"), HasSubstr("--cluster_spec=FILE"),
                          HasSubstr("TF_CONFIG")))
      << "a worker has a third one";
}

// Opens TLS and listens at `own`, as coordinator and ps do.
absl::Status ListenAt(Daemon& daemon, const char* own) {
  InProcessHub hub;
  const auto node = hub.CreateNode();
  const auto tls = daemon.OpenTls({Role::kWorker});
  if (!tls.ok()) return tls.status();
  return daemon.Listen(
      *Address::Parse(own), node.get(),
      [](const std::string&, std::unique_ptr<Stream>) { return StreamCallbacks{}; });
}

TEST_F(DaemonTest, AnAddressBeyondLoopbackWithoutTlsIsRefused) {
  EXPECT_EQ(Run(daemon_, {}, [&] { return ListenAt(daemon_, "10.0.0.1:2222"); }),
            kExitBadConfiguration);
  EXPECT_THAT(log_, AllOf(HasSubstr("10.0.0.1:2222"), HasSubstr("--insecure"),
                          Not(HasSubstr(" listening address="))));
  EXPECT_FALSE(daemon_.serves_insecurely());
}

TEST_F(DaemonTest, InsecureListensBeyondLoopbackAndWarns) {
  EXPECT_EQ(Run(daemon_, {"--insecure"}, [&] { return ListenAt(daemon_, "10.0.0.1:2222"); }),
            kExitDone);
  EXPECT_THAT(log_, AllOf(HasSubstr(" W worker insecure: "),
                          HasSubstr(" listening address=0.0.0.0:2222\n")));
  EXPECT_TRUE(daemon_.serves_insecurely());
}

TEST_F(DaemonTest, InsecureChangesNothingOnLoopback) {
  EXPECT_EQ(Run(daemon_, {"--insecure"}, [&] { return ListenAt(daemon_, "127.0.0.1:2222"); }),
            kExitDone);
  EXPECT_THAT(log_, Not(HasSubstr(" W worker ")));
  EXPECT_FALSE(daemon_.serves_insecurely());
}

TEST_F(DaemonTest, InsecureMayComeFromTheEnvironment) {
  setenv("SHOAL_INSECURE", "1", 1);
  EXPECT_EQ(Run(daemon_, {}, [&] { return ListenAt(daemon_, "10.0.0.1:2222"); }), kExitDone);
  unsetenv("SHOAL_INSECURE");
}

TEST_F(DaemonTest, InsecureAndTlsContradictEachOther) {
  EXPECT_EQ(Run(daemon_, {"--insecure", "--tls_dir=nowhere"},
                [&] { return ListenAt(daemon_, "10.0.0.1:2222"); }),
            kExitBadConfiguration);
  EXPECT_THAT(log_, AllOf(HasSubstr("--insecure"), HasSubstr("--tls_dir=nowhere"),
                          HasSubstr("leave one out")));
}

TEST_F(DaemonTest, HelpEndsWithExamplesAndExitCodes) {
  daemon_.SetExamples("Example:\n  shoal-test --fast");
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Run(daemon_, {"--help"}, [] { return absl::OkStatus(); }), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr("Example:\n  shoal-test --fast\n"), HasSubstr("Exit codes: 0 "),
                    HasSubstr("138 ")));
}

TEST_F(DaemonTest, DoesNotRunAfterAUsageError) {
  EXPECT_EQ(Run(daemon_, {"--log_format=xml"},
                [] {
                  ADD_FAILURE();
                  return absl::OkStatus();
                }),
            kExitUsage);
}

TEST_F(DaemonTest, StopSignalReachesTheBody) {
  EXPECT_EQ(Run(daemon_, {},
                [&]() -> absl::Status {
                  std::promise<int> told;
                  daemon_.OnStopSignal([&](int count) { told.set_value(count); });
                  kill(getpid(), SIGTERM);
                  auto count = told.get_future();
                  EXPECT_EQ(count.wait_for(std::chrono::seconds(30)), std::future_status::ready);
                  EXPECT_EQ(count.get(), 1);
                  daemon_.OnStopSignal(nullptr);
                  return absl::CancelledError("stopped");
                }),
            kExitDrained);
}

TEST_F(DaemonTest, ProxiesOfTheEnvironmentAreNotUsed) {
  setenv("http_proxy", "http://proxy:1", 1);
  Run(daemon_, {}, [] {
    EXPECT_EQ(std::getenv("http_proxy"), nullptr);
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace shoal
