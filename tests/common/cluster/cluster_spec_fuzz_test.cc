#include <gtest/gtest.h>

#include <cstdlib>

#include "common/cluster/cluster_spec.h"
#include "tests/common/json/json_mutator.h"

namespace shoal {
namespace {

// Whatever the text: an answer, never a crash; and what is accepted keeps the promises of
// ClusterSpec.
TEST(ClusterSpecFuzzTest, MutatedTextsNeverCrash) {
  JsonMutator mutator({
      R"({"cluster": {"chief": ["h0:2222"], "ps": ["h1:2222", "[::1]:2223"], "worker": {"0": "h3:1", "7": "h4:1"}},
          "task": {"type": "worker", "index": 7}, "rpc_layer": "grpc", "environment": "cloud"})",
      R"({"cluster": {"worker": ["localhost:1"], "evaluator": ["e:65535"], "master": []}, "task": {}})",
  });
  SCOPED_TRACE(mutator.description());
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string text = mutator.Next();
    const bool need_task = i % 2 == 0;
    const auto spec = ParseClusterSpec(text, "fuzz", need_task);
    if (!spec.ok()) {
      ASSERT_FALSE(spec.status().message().empty()) << text;
      continue;
    }
    ++accepted;
    ASSERT_EQ(spec->chief.size(), 1u) << text;
    ASSERT_FALSE(spec->workers.empty()) << text;
    ASSERT_EQ(spec->ps.rbegin()->first + 1, static_cast<int>(spec->ps.size())) << text;
    for (const std::string& address : spec->PsAddresses()) {
      ASSERT_TRUE(Address::Parse(address).ok()) << text;
    }
    if (need_task && spec->task.type != TaskType::kEvaluator) {
      ASSERT_NE(spec->Find(spec->task), nullptr) << text;
    }
  }
  EXPECT_GT(accepted, 0) << "mutations too wild to reach the accepting paths";
}

}  // namespace
}  // namespace shoal
