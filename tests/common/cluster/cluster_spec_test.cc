#include "common/cluster/cluster_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A whole TF_CONFIG, as TensorFlow's guide writes it.
constexpr char kSpec[] = R"({
  "cluster": {
    "chief": ["host0:2222"],
    "ps": ["host1:2222", "host2:2222"],
    "worker": ["host3:2222", "host4:2222", "host5:2222"]
  },
  "task": {"type": "worker", "index": 1}
})";

ClusterSpec Parse(const std::string& text, bool need_task = true) {
  const auto spec = ParseClusterSpec(text, "TF_CONFIG", need_task);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.value_or(ClusterSpec{});
}

std::string ParseError(const std::string& text, bool need_task = true) {
  const auto spec = ParseClusterSpec(text, "TF_CONFIG", need_task);
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(spec.status().message());
}

// The error of a whole spec but for its cluster.
std::string ClusterError(const std::string& cluster) {
  return ParseError("{\"cluster\": " + cluster + "}", /*need_task=*/false);
}

// The error of a whole spec but for its task.
std::string TaskError(const std::string& task) {
  return ParseError(
      R"({"cluster": {"chief": ["a:1"], "ps": ["b:1", "c:1"], "worker": ["d:1"]}, "task": )" +
      task + "}");
}

TEST(ClusterSpecTest, ReadsTensorFlowsOwn) {
  const ClusterSpec spec = Parse(kSpec);
  EXPECT_EQ(spec.coordinator_address().ToString(), "host0:2222");
  EXPECT_THAT(spec.PsAddresses(), ElementsAre("host1:2222", "host2:2222"));
  EXPECT_EQ(spec.workers.size(), 3u);
  EXPECT_EQ(TaskName(spec.task), "worker 1");
  EXPECT_EQ(spec.Find(spec.task)->ToString(), "host4:2222");
  EXPECT_EQ(spec.Find({TaskType::kWorker, 3}), nullptr);
}

TEST(ClusterSpecTest, ReadsSparseJobsOfKubeflow) {
  const ClusterSpec spec =
      Parse(R"({"cluster": {"chief": {"0": "c:1"}, "ps": {"1": "p1:1", "0": "p0:1"},
      "worker": {"7": "w7:1"}}, "task": {"type": "worker", "index": 7}, "environment": "cloud"})");
  EXPECT_THAT(spec.PsAddresses(), ElementsAre("p0:1", "p1:1"));
  EXPECT_EQ(spec.Find(spec.task)->ToString(), "w7:1");
}

TEST(ClusterSpecTest, IgnoresWhatMeansNothingHere) {
  Parse(R"({"cluster": {"chief": ["a:1"], "ps": ["b:1"], "worker": ["c:1"]},
      "task": {"type": "chief", "index": 0, "trial": "1", "cloud": "x"}, "rpc_layer": "grpc",
      "environment": "cloud", "session_master": "", "job": {"scale_tier": "CUSTOM"}})");
}

TEST(ClusterSpecTest, ReadsIpv6) {
  const ClusterSpec spec =
      Parse(R"({"cluster": {"chief": ["[::1]:1"], "ps": ["[::1]:2"], "worker": ["[fe80::2]:1"]}})",
            false);
  EXPECT_EQ(spec.coordinator_address().ToString(), "[::1]:1");
}

TEST(ClusterSpecTest, EvaluatorMayBeListedOrNot) {
  const std::string rest =
      R"("ps": ["b:1"], "worker": ["c:1"]}, "task": {"type": "evaluator", "index": )";
  EXPECT_EQ(Parse(R"({"cluster": {"chief": ["a:1"], )" + rest + "0}}").task.type,
            TaskType::kEvaluator);
  Parse(R"({"cluster": {"evaluator": ["e:1"], "chief": ["a:1"], )" + rest + "0}}");
  EXPECT_EQ(ParseError(R"({"cluster": {"chief": ["a:1"], )" + rest + "1}}"),
            "TF_CONFIG: $.task.index: is 1, which is out of range; a cluster has one evaluator, of "
            "index 0");
  EXPECT_EQ(
      ClusterError(
          R"({"evaluator": ["e:1", "f:1"], "chief": ["a:1"], "ps": ["b:1"], "worker": ["c:1"]})"),
      "TF_CONFIG: $.cluster.evaluator: has 2 addresses; a cluster has one evaluator");
}

TEST(ClusterSpecTest, RejectsWhatIsNotJson) {
  EXPECT_THAT(ParseError("cluster: chief"),
              StartsWith("TF_CONFIG: is not JSON: parse error at line 1"));
  EXPECT_EQ(ParseError("[1]"), "TF_CONFIG: $: is [1], an array; must be an object");
}

TEST(ClusterSpecTest, AnswersAMissingChiefWithTheCorrectedText) {
  const std::string message =
      ParseError(R"({"cluster": {"worker": ["h0:2222", "h1:2222"], "ps": ["h0:2223"]},
                     "task": {"type": "worker", "index": 0}})");
  const std::string corrected =
      R"({"cluster":{"chief":["h0:2224"],"ps":["h0:2223"],"worker":["h0:2222","h1:2222"]},)"
      R"("task":{"index":0,"type":"worker"}})";
  EXPECT_EQ(
      message,
      "TF_CONFIG: $.cluster.chief: is missing: the chief runs Shoal's coordinator, which some "
      "TensorFlow tutorials leave out; corrected: " +
          corrected);
  Parse(corrected);
}

TEST(ClusterSpecTest, CorrectedTextFindsAFreePortAboveTheHighest) {
  const std::string message = ClusterError(R"({"worker": ["h:65535"], "ps": ["h:1024"]})");
  EXPECT_THAT(message, HasSubstr(R"("chief":["h:1025"])"));
}

TEST(ClusterSpecTest, NamesMissingPsAndWorker) {
  EXPECT_EQ(
      ClusterError(R"({"chief": ["a:1"]})"),
      "TF_CONFIG: $.cluster.ps: is missing: at least one ps holds the parameters, for example "
      "\"ps\": [\"host1:2222\"]\n"
      "TF_CONFIG: $.cluster.worker: is missing: at least one worker computes, for example "
      "\"worker\": [\"host2:2222\"]");
  EXPECT_THAT(ClusterError(R"({"chief": [], "ps": [], "worker": []})"),
              HasSubstr("$.cluster.chief: is missing"));
  EXPECT_THAT(ParseError("{}"), HasSubstr("$.cluster: is missing"));
}

TEST(ClusterSpecTest, RejectsMasterWithAWordAboutChief) {
  const std::string message =
      ClusterError(R"({"master": ["a:1"], "ps": ["b:1"], "worker": ["c:1"]})");
  EXPECT_THAT(message,
              HasSubstr("$.cluster.master: is TensorFlow 1's name; call this task \"chief\""));
  EXPECT_THAT(
      TaskError(R"({"type": "master", "index": 0})"),
      HasSubstr(
          "$.task.type: is \"master\", which is TensorFlow 1's name; call this task \"chief\""));
}

TEST(ClusterSpecTest, NamesTheNearestTaskType) {
  EXPECT_EQ(
      ClusterError(R"({"chief": ["a:1"], "ps": ["b:1"], "worker": ["c:1"], "wroker": ["d:1"]})"),
      "TF_CONFIG: $.cluster.wroker: is not a task type; did you mean \"worker\"? "
      "Known: chief, ps, worker, evaluator");
  EXPECT_EQ(
      TaskError(R"({"type": "Chief", "index": 0})"),
      "TF_CONFIG: $.task.type: is \"Chief\", which is not a task type; did you mean \"chief\"? "
      "Known: chief, ps, worker, evaluator");
}

TEST(ClusterSpecTest, RejectsMoreThanOneChief) {
  EXPECT_EQ(ClusterError(R"({"chief": ["a:1", "b:1"], "ps": ["c:1"], "worker": ["d:1"]})"),
            "TF_CONFIG: $.cluster.chief: has 2 addresses; a cluster has one chief");
  EXPECT_EQ(ClusterError(R"({"chief": {"1": "a:1"}, "ps": ["c:1"], "worker": ["d:1"]})"),
            "TF_CONFIG: $.cluster.chief: has the index 1; the one chief has the index 0");
}

TEST(ClusterSpecTest, RejectsDuplicateAddresses) {
  EXPECT_EQ(
      ClusterError(R"({"chief": ["a:1"], "ps": ["A:1"], "worker": ["d:1", "d:1"]})"),
      "TF_CONFIG: $.cluster.ps[0]: is \"A:1\", as $.cluster.chief[0] is; every task needs an "
      "address "
      "of its own\n"
      "TF_CONFIG: $.cluster.worker[1]: is \"d:1\", as $.cluster.worker[0] is; every task needs an "
      "address of its own");
}

TEST(ClusterSpecTest, PsIndicesHaveNoGap) {
  EXPECT_EQ(
      ClusterError(R"({"chief": ["a:1"], "ps": {"0": "b:1", "2": "c:1"}, "worker": ["d:1"]})"),
      "TF_CONFIG: $.cluster.ps: has the indices 0, 2; the variables are divided over all ps, so "
      "their "
      "indices must be 0 to n-1 without a gap");
}

TEST(ClusterSpecTest, RejectsWhatIsNoAddressOrIndex) {
  EXPECT_EQ(
      ClusterError(R"({"chief": ["a"], "ps": [7], "worker": {"01": "d:1", "0": "e:1"}})"),
      "TF_CONFIG: $.cluster.chief[0]: is \"a\"; has no port; append one, for example \":2222\"\n"
      "TF_CONFIG: $.cluster.ps[0]: is 7, an integer; must be an address, for example "
      "\"host:2222\"\n"
      "TF_CONFIG: $.cluster.worker.01: is not an index; must be a number from 0 to 99999, for "
      "example "
      "{\"1\": \"host:2222\"}");
  EXPECT_EQ(ClusterError(R"({"chief": "a:1", "ps": ["b:1"], "worker": ["c:1"]})"),
            "TF_CONFIG: $.cluster.chief: is \"a:1\", a string; must be a list of addresses, or an "
            "object of "
            "them by index");
  EXPECT_THAT(
      ClusterError(R"({"chief": ["a:1"], "ps": ["b:99999"], "worker": ["c:1"]})"),
      HasSubstr(
          "$.cluster.ps[0]: is \"b:99999\"; has a port that is not a number from 1 to 65535"));
  EXPECT_EQ(ClusterError("7"), "TF_CONFIG: $.cluster: is 7, an integer; must be an object");
}

TEST(ClusterSpecTest, RejectsIndicesOutOfRange) {
  EXPECT_EQ(TaskError(R"({"type": "ps", "index": 2})"),
            "TF_CONFIG: $.task.index: is 2, which is out of range; $.cluster.ps has 0 to 1");
  EXPECT_EQ(TaskError(R"({"type": "worker", "index": -1})"),
            "TF_CONFIG: $.task.index: is -1, which is out of range; $.cluster.worker has 0 alone");
  EXPECT_THAT(TaskError(R"({"type": "worker", "index": 18446744073709551615})"),
              HasSubstr("is out of range; $.cluster.worker has 0 alone"));
  EXPECT_EQ(
      ParseError(
          R"({"cluster": {"chief": ["a:1"], "ps": ["b:1"], "worker": {"1": "c:1", "4": "d:1"}},
                           "task": {"type": "worker", "index": 2}})"),
      "TF_CONFIG: $.task.index: is 2, which is out of range; $.cluster.worker has 1, 4");
}

TEST(ClusterSpecTest, RejectsTasksOfWrongTypes) {
  EXPECT_EQ(TaskError(R"({"type": "worker", "index": "0"})"),
            "TF_CONFIG: $.task.index: is \"0\", a string; must be an integer, from 0");
  EXPECT_EQ(
      TaskError(R"({"type": 3})"),
      "TF_CONFIG: $.task.type: is 3; must be one of \"chief\", \"ps\", \"worker\", \"evaluator\"\n"
      "TF_CONFIG: $.task.index: is missing: the task's number, from 0");
  EXPECT_EQ(TaskError("[]"), "TF_CONFIG: $.task: is [], an array; must be an object");
  EXPECT_THAT(ParseError(R"({"cluster": {"chief": ["a:1"], "ps": ["b:1"], "worker": ["c:1"]}})"),
              HasSubstr("$.task: is missing"));
}

TEST(ClusterSpecTest, RejectsUnknownKeysAndOtherRpcLayers) {
  EXPECT_EQ(ParseError(R"({"cluster": {"chief": ["a:1"], "ps": ["b:1"], "worker": ["c:1"]},
                           "task": {"type": "chief", "index": 0, "idx": 0}, "rpclayer": "grpc"})"),
            "TF_CONFIG: $.task.idx: is not a known key; known: type, index, trial, cloud\n"
            "TF_CONFIG: $.rpclayer: is not a known key; did you mean \"rpc_layer\"? "
            "Known: cluster, task, rpc_layer, environment, session_master, job");
  EXPECT_EQ(ParseError(R"({"cluster": {"chief": ["a:1"], "ps": ["b:1"], "worker": ["c:1"]},
                           "rpc_layer": "grpc+verbs"})",
                       false),
            "TF_CONFIG: $.rpc_layer: is \"grpc+verbs\"; must be \"grpc\", or left out");
}

TEST(LoadClusterSpecTest, PrefersTheFileAndNamesItsSource) {
  const TemporaryDirectory directory;
  const std::string file = directory / "spec.json";
  std::ofstream(file) << kSpec;
  setenv("TF_CONFIG", "{}", 1);
  EXPECT_TRUE(LoadClusterSpec(file, true).ok());
  EXPECT_TRUE(ClusterSpecGiven(file));
  EXPECT_TRUE(ClusterSpecGiven(""));
  EXPECT_THAT(std::string(LoadClusterSpec("", true).status().message()), StartsWith("TF_CONFIG: "));
  std::remove(file.c_str());
  EXPECT_THAT(std::string(LoadClusterSpec(file, true).status().message()),
              StartsWith(file + ": No such file"));
  for (const char* empty : {"", static_cast<const char*>(nullptr)}) {
    if (empty != nullptr) setenv("TF_CONFIG", empty, 1);
    if (empty == nullptr) unsetenv("TF_CONFIG");
    EXPECT_FALSE(ClusterSpecGiven(""));
    EXPECT_TRUE(ClusterSpecGiven(file));
    EXPECT_EQ(LoadClusterSpec("", true).status().message(),
              "no cluster spec: neither the flag --cluster_spec=FILE nor the environment variable "
              "TF_CONFIG is set");
  }
}

}  // namespace
}  // namespace shoal
