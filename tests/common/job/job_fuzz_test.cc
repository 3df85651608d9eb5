#include <gtest/gtest.h>

#include "common/job/job.h"
#include "tests/common/json/json_mutator.h"

namespace shoal {
namespace {

// Whatever the text: an answer, never a crash; and what is accepted reads back from its resolved
// text.
TEST(JobFuzzTest, MutatedTextsNeverCrash) {
  JsonMutator mutator({
      R"({"name": "n", "model": {"a": [1]}, "data": {"training": {"images": "/x", "labels": "/y"},
          "test": {"images": "/t", "labels": "/u"}}, "loss": {"class_name": "SparseCategoricalCrossentropy",
          "config": {"from_logits": true, "reduction": "auto"}}, "metrics": ["accuracy"], "optimizer":
          {"class_name": "Adam", "config": {"learning_rate": 0.001, "beta_1": 0.9, "clipnorm": null}},
          "batch_size": 64, "epochs": 5, "strategy": {"name": "async", "chunk_bytes": 1024},
          "checkpoint": {"every_steps": 3, "keep": 2}, "seed": 1})",
      R"({"name": "n", "model": {}, "data": {"training": {"images": "/x", "labels": "/y"}}, "loss": "mse",
          "optimizer": {"class_name": "SGD", "config": {"momentum": 0.5, "use_ema": true, "learning_rate":
          {"class_name": "PiecewiseConstantDecay", "config": {"boundaries": [1, 2], "values": [3, 2, 1]}}}},
          "steps": 7, "strategy": "async", "compression": {"push": {"name": "top_k", "fraction": 0.1}, "pull": "bf16"}})",
  });
  SCOPED_TRACE(mutator.description());
  int accepted = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::string text = mutator.Next();
    const auto job = ParseResolvedJob(text, "fuzz");
    if (!job.ok()) {
      ASSERT_FALSE(job.status().message().empty()) << text;
      continue;
    }
    ++accepted;
    const std::string resolved = job->ResolvedText();
    const auto again = ParseResolvedJob(resolved, "again");
    ASSERT_TRUE(again.ok()) << text << "\n" << resolved << "\n" << again.status();
    ASSERT_EQ(again->ResolvedText(), resolved) << text;
    ASSERT_TRUE(DescribeDifferences(resolved, again->ResolvedText()).empty());
    DescribeDifferences(resolved, text);
  }
  EXPECT_GT(accepted, 100) << "mutations too wild to reach the accepting paths";
}

}  // namespace
}  // namespace shoal
