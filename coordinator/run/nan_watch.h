#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "coordinator/cuts/checkpointer.h"

namespace shoal {

// Watches the losses of the steps: warns of the first that is not finite, and says when too many
// in a row were not. Loop thread only.
class NanWatch {
 public:
  struct Options {
    const Checkpointer* checkpointer = nullptr;  // outlives this
    std::string run_dir;
    uint64_t stop_after_steps = 0;  // in a row; 0: never
  };
  explicit NanWatch(Options options);

  // Takes a new step's loss. Returns why the run must fail; empty while it may go on.
  std::optional<std::string> OnLoss(uint64_t step, double loss_sum, int worker);
  // A timeline begins: its losses count anew.
  void Reset() { steps_ = 0; }
  // Returns what to do where values are not finite, and the checkpoint to go on from.
  std::string Advice() const;

 private:
  const Options options_;
  bool warned_ = false;
  uint64_t steps_ = 0;  // in a row, with a loss that is not finite
};

}  // namespace shoal
