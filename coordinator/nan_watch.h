#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "coordinator/cuts/checkpointer.h"

namespace shoal {

// Checks the losses of the steps. Logs the first one that is not finite, and reports when too many
// in a row are not finite. Loop thread only.
class NanWatch {
 public:
  struct Options {
    const Checkpointer* checkpointer = nullptr;  // outlives this
    std::string run_dir;
    uint64_t stop_after_steps = 0;  // in a row; 0: never
  };
  explicit NanWatch(Options options);

  // Checks the loss of a new step. Returns why the run must fail; empty while it may go on.
  std::optional<std::string> OnLoss(uint64_t step, double loss_sum, int worker);
  // A timeline begins: the count of losses in a row starts again.
  void Reset() { steps_ = 0; }
  // Returns advice for values that are not finite, and the checkpoint to continue from.
  std::string Advice() const;

 private:
  const Options options_;
  bool warned_ = false;
  uint64_t steps_ = 0;  // steps in a row with a loss that is not finite
};

}  // namespace shoal
