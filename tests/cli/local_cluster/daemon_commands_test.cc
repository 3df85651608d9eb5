#include "cli/local_cluster/daemon_commands.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "common/base/usable_cores.h"
#include "common/cluster/cluster_spec.h"

namespace shoal {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const ClusterAddresses kAddresses = {.coordinator = "127.0.0.1:1001",
                                     .ps = {"127.0.0.1:1002", "127.0.0.1:1003"},
                                     .workers = {"127.0.0.1:1004"}};

TEST(TfConfigTest, IsWhatTheDaemonsRead) {
  const auto spec = ParseClusterSpec(TfConfigText(kAddresses, {TaskType::kPs, 1}), "TF_CONFIG",
                                     /*need_task=*/true);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->coordinator_address().ToString(), "127.0.0.1:1001");
  EXPECT_EQ(spec->PsAddresses(), kAddresses.ps);
  EXPECT_EQ(spec->workers.at(0).ToString(), "127.0.0.1:1004");
  EXPECT_EQ(spec->task.type, TaskType::kPs);
  EXPECT_EQ(spec->task.index, 1);
}

// A socket that is to be bound as a daemon's is.
int NewSocket() {
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  return descriptor;
}

int Bind(int descriptor, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

TEST(HeldPortsTest, HeldPortsCanBeListenedAtRepeatedly) {
  const auto held = HeldPorts::Take(40);
  ASSERT_TRUE(held.ok()) << held.status();
  const std::vector<int>& ports = (*held)->ports();
  EXPECT_EQ(std::set<int>(ports.begin(), ports.end()).size(), 40);
  EXPECT_GT(*std::min_element(ports.begin(), ports.end()), 0);
  for (int life = 0; life < 2; ++life) {
    const int task = NewSocket();
    EXPECT_EQ(Bind(task, ports[0]), 0) << std::strerror(errno);
    EXPECT_EQ(listen(task, 1), 0) << std::strerror(errno);
    close(task);
  }
  // Who takes any port gets none of these, and who does not ask to share gets none by its number.
  const int other = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_NE(Bind(other, ports[0]), 0);
  close(other);
}

TEST(ChooseAddressesTest, GivesEachTaskItsOwn) {
  const auto addresses = ChooseAddresses(/*workers=*/3, /*ps=*/2);
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  EXPECT_THAT(addresses->coordinator, StartsWith("127.0.0.1:"));
  EXPECT_EQ(addresses->ps.size(), 2);
  EXPECT_EQ(addresses->workers.size(), 3);
  const auto spec =
      ParseClusterSpec(TfConfigText(*addresses, {TaskType::kChief, 0}), "TF_CONFIG", true);
  EXPECT_TRUE(spec.ok()) << spec.status();
}

TEST(DaemonCommandsTest, StartEachTaskWithItsProgramAndFlags) {
  const std::vector<TaskCommand> commands = DaemonCommands({.addresses = kAddresses,
                                                            .binary_dir = "/bin_dir",
                                                            .job_path = "/run/job.json",
                                                            .run_dir = "/run",
                                                            .threads_per_worker = 3,
                                                            .device = "cuda:0",
                                                            .tf32 = true,
                                                            .deterministic = true},
                                                           {});
  ASSERT_EQ(commands.size(), 4);
  EXPECT_EQ(TaskName(commands[0].task), TaskName({TaskType::kChief, 0}));
  EXPECT_EQ(commands[0].process.program, "/bin_dir/shoal-coordinator");
  const std::string parent = "--exit_with_parent=" + std::to_string(getpid());
  EXPECT_THAT(commands[0].process.arguments,
              testing::ElementsAre("--job=/run/job.json", "--run_dir=/run", parent));
  EXPECT_EQ(commands[2].process.program, "/bin_dir/shoal-ps");
  EXPECT_EQ(commands[2].task.index, 1);
  EXPECT_THAT(commands[2].process.environment,
              Contains("TF_CONFIG=" + TfConfigText(kAddresses, {TaskType::kPs, 1})));
  EXPECT_EQ(commands[3].process.program, "/bin_dir/shoal-worker");
  EXPECT_THAT(commands[3].process.arguments, Contains("--threads=3"));
  EXPECT_THAT(commands[3].process.arguments, Contains("--device=cuda:0"));
  EXPECT_THAT(commands[3].process.arguments, testing::IsSupersetOf({"--tf32", "--deterministic"}));
  EXPECT_THAT(DaemonCommands({.addresses = kAddresses}, {})[3].process.arguments,
              Not(Contains(AnyOf("--tf32", "--deterministic"))));
  EXPECT_THAT(commands[3].process.environment, Contains("OMP_NUM_THREADS=3"));
  EXPECT_THAT(commands[3].process.environment, Contains("OMP_WAIT_POLICY=passive"));
}

TEST(DaemonCommandsTest, LeaveOutWhatLeadsDaemonsAstray) {
  const std::vector<TaskCommand> commands =
      DaemonCommands({.addresses = kAddresses},
                     {"PATH=/usr/bin", "TF_CONFIG={\"cluster\": {}}",
                      "http_proxy=http://proxy:3128", "NO_PROXY=localhost", "OMP_NUM_THREADS=64",
                      "SHOAL_CLUSTER_SPEC=/other.json", "SHOAL_LOG_FORMAT=json"});
  const std::vector<std::string>& environment = commands[0].process.environment;
  EXPECT_THAT(environment, Contains("PATH=/usr/bin"));
  EXPECT_THAT(environment, Contains("SHOAL_LOG_FORMAT=json"));
  EXPECT_THAT(environment, Not(Contains("TF_CONFIG={\"cluster\": {}}")));
  EXPECT_THAT(environment, Not(Contains(HasSubstr("roxy"))));
  EXPECT_THAT(environment, Not(Contains(HasSubstr("PROXY"))));
  EXPECT_THAT(environment, Not(Contains("OMP_NUM_THREADS=64")));
  EXPECT_THAT(environment, Not(Contains(HasSubstr("other.json"))));
}

TEST(ThreadsPerWorkerTest, SharesTheCoresOut) {
  const int cores = UsableCores();
  EXPECT_EQ(ThreadsPerWorker(1), cores);
  EXPECT_EQ(ThreadsPerWorker(cores), 1);
  EXPECT_EQ(ThreadsPerWorker(1000 * cores), 1);
}

}  // namespace
}  // namespace shoal
