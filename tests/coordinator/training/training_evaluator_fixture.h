#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "tests/coordinator/scripted_evaluator.h"

namespace shoal {

// A run with one worker, and with an evaluator that was ready before the worker came.
class TrainingEvaluatorTest : public testing::Test {
 protected:
  // Call it once. No step is done yet.
  void Begin(const ScriptedCluster::Options& options) {
    cluster_.emplace(options);
    evaluator_.emplace(&*cluster_);
    evaluator_->GetReady();
    worker_ = &cluster_->Join(0);
  }

  std::optional<ScriptedCluster> cluster_;
  std::optional<ScriptedEvaluator> evaluator_;
  ScriptedWorker* worker_ = nullptr;  // the cluster owns it
};

}  // namespace shoal
