#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/job/job.h"
#include "common/model/model_layout.h"
#include "common/model/variable.h"
#include "common/step_plan/round_plan.h"
#include "common/step_plan/step_plan.h"

namespace shoal {

// A job of a few steps on a few numbers, without files. Each step adds a small integer to each
// element of each variable, which depends on step and element only. So the trained values show
// which steps were applied, and how often.
class FuzzJob {
 public:
  static constexpr uint64_t kTrainingExamples = 8;
  static constexpr uint64_t kTestExamples = 3;
  static constexpr int kVariants = 16;

  // Bits of `variant`: 1 a test set, 2 a small window, 4 synchronous rounds of two steps,
  // 8 checkpoints every three steps.
  explicit FuzzJob(uint8_t variant);
  // Returns the job of this variant, which lives as long as the process.
  static const FuzzJob& Of(uint8_t variant);

  const Job& job() const { return job_; }
  const std::string& text() const { return text_; }  // as the coordinator sends it
  uint32_t fingerprint() const { return fingerprint_; }
  const std::vector<Variable>& variables() const { return variables_; }
  const ModelLayout& layout() const { return layout_; }
  const StepPlan& plan() const { return plan_; }
  uint64_t test_examples() const { return job_.test.empty() ? 0 : kTestExamples; }
  // Returns the round of a step; none if each step is an update.
  const std::optional<RoundPlan>& rounds() const { return rounds_; }

  // Returns what a step pushes for an element of a variable.
  static float Pushed(uint64_t step, int variable, int64_t element);
  // Returns the value of an element when all steps are applied once.
  float Trained(int variable, int64_t element) const;

 private:
  Job job_;
  std::string text_;
  uint32_t fingerprint_ = 0;
  std::vector<Variable> variables_;
  ModelLayout layout_;
  StepPlan plan_;
  std::optional<RoundPlan> rounds_;
};

}  // namespace shoal
